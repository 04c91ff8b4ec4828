//! Finds the keywords of all rules in one pass over a text.
//!
//! Two sets at once: words whose case counts, and words in capitals or not. Both are built as automata by
//! aho-corasick and then walked together into one table, small enough for the cache and with nothing to decide per
//! byte but its next state. Case is settled when the table is built: `MT` would else be met in every `mt` of a text.

use std::collections::HashMap;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::{Anchored, StartKind, dfa};

/// Kinds of bytes that a state tells apart, a power of two.
const STRIDE: usize = 128;

/// The keywords of all rules.
pub(super) struct Keywords {
    /// The kind of each byte: those that no keyword has are one.
    kinds: [u8; 256],
    /// The next state for each state and kind.
    next: Vec<[u16; STRIDE]>,
    /// In states from this one on a keyword ends.
    first_end: u16,
    /// What ends in each of them, the longest keyword first.
    ends: Vec<Vec<End>>,
}

/// A keyword that ends at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// Its length in bytes.
    pub(super) length: usize,
    /// The rules that are tried there, by their numbers.
    pub(super) rules: Vec<usize>,
}

/// A keyword with the number of its rule.
pub(super) struct Keyword {
    pub(super) word: &'static str,
    pub(super) rule: usize,
    /// Only as it is written.
    pub(super) is_exact: bool,
}

/// One of the two automata.
struct Words {
    dfa: dfa::DFA,
    /// The rules of each of its words.
    rules: Vec<usize>,
}

impl Words {
    fn new<'a>(keywords: impl Iterator<Item = &'a Keyword>, ignores_case: bool) -> Self {
        let keywords: Vec<&Keyword> = keywords.collect();
        let mut builder = dfa::Builder::new();
        builder.ascii_case_insensitive(ignores_case).start_kind(StartKind::Unanchored).prefilter(false);
        let dfa = builder.build(keywords.iter().map(|keyword| keyword.word)).expect("a test builds the table");
        Self { dfa, rules: keywords.iter().map(|keyword| keyword.rule).collect() }
    }

    fn start(&self) -> StateID {
        self.dfa.start_state(Anchored::No).expect("it was built to begin anywhere")
    }

    fn step(&self, state: StateID, byte: u8) -> StateID {
        self.dfa.next_state(Anchored::No, state, byte)
    }

    /// Length and rule of each word that ends in a state.
    fn ends(&self, state: StateID) -> impl Iterator<Item = (usize, usize)> {
        let count = if self.dfa.is_match(state) { self.dfa.match_len(state) } else { 0 };
        (0..count).map(move |nth| {
            let word = self.dfa.match_pattern(state, nth);
            (self.dfa.pattern_len(word), self.rules[word.as_usize()])
        })
    }
}

impl Keywords {
    pub(super) fn new(keywords: &[Keyword]) -> Self {
        let exact = Words::new(keywords.iter().filter(|keyword| keyword.is_exact), false);
        let folded = Words::new(keywords.iter().filter(|keyword| !keyword.is_exact), true);
        let (kinds, samples) = kinds(keywords);
        let step = |(a, b), byte| (exact.step(a, byte), folded.step(b, byte));
        let mut states = vec![(exact.start(), folded.start())];
        let mut numbers = HashMap::from([(states[0], 0)]);
        let mut next: Vec<[usize; STRIDE]> = Vec::new();
        // Most bytes lead from everywhere to where they lead from the start; those need not be looked up.
        let from_start: Vec<_> = samples.iter().map(|&byte| step(states[0], byte)).collect();
        while let Some(&state) = states.get(next.len()) {
            let mut row = next.first().copied().unwrap_or([0; STRIDE]);
            for (kind, &byte) in samples.iter().enumerate() {
                let to = step(state, byte);
                if next.is_empty() || to != from_start[kind] {
                    row[kind] = *numbers.entry(to).or_insert_with(|| {
                        states.push(to);
                        states.len() - 1
                    });
                }
            }
            next.push(row);
        }
        // States in which something ends go behind the others.
        let ends: Vec<Vec<End>> =
            states.iter().map(|&(a, b)| merged(exact.ends(a).chain(folded.ends(b)).collect())).collect();
        let mut order: Vec<usize> = (0..states.len()).collect();
        order.sort_by_key(|&state| !ends[state].is_empty());
        let first_end = order.partition_point(|&state| ends[state].is_empty());
        let mut places = vec![0; states.len()];
        order.iter().enumerate().for_each(|(place, &state)| places[state] = place);
        assert!(states.len() <= usize::from(u16::MAX), "too many keywords for a table");
        let next = order.iter().map(|&state| next[state].map(|to| places[to] as u16)).collect();
        let ends = order[first_end..].iter().map(|&state| ends[state].clone()).collect();
        Self { kinds, next, first_end: first_end as u16, ends }
    }

    /// The keywords of a text, each with the place where it ends.
    pub(super) fn found_in<'k>(&'k self, text: &[u8]) -> impl Iterator<Item = (&'k [End], usize)> {
        let (mut state, mut at) = (0, 0);
        std::iter::from_fn(move || {
            at += self.next_end(&text[at..], &mut state)?;
            Some((self.ends[usize::from(state - self.first_end)].as_slice(), at))
        })
    }

    /// Bytes up to the end of the next keyword. Kept apart from what is done there, so that nothing but the state and
    /// the table is in the registers.
    #[inline(never)]
    fn next_end(&self, text: &[u8], state: &mut u16) -> Option<usize> {
        let (next, kinds, first_end) = (self.next.as_slice(), &self.kinds, self.first_end);
        let mut now = usize::from(*state);
        for (at, &byte) in text.iter().enumerate() {
            // The bound tells the compiler what is true anyhow.
            let to = next[now][usize::from(kinds[usize::from(byte)]) % STRIDE];
            now = usize::from(to);
            if to >= first_end {
                *state = to;
                return Some(at + 1);
            }
        }
        None
    }
}

/// The kind of each byte, and a byte of each kind. The first kind is of the bytes that no keyword has.
fn kinds(keywords: &[Keyword]) -> ([u8; 256], Vec<u8>) {
    let mut is_used = [false; 256];
    for byte in keywords.iter().flat_map(|keyword| keyword.word.bytes()) {
        is_used[usize::from(byte.to_ascii_lowercase())] = true;
        is_used[usize::from(byte.to_ascii_uppercase())] = true;
    }
    let (mut kinds, mut samples) = ([0; 256], vec![0]);
    for byte in (0..=u8::MAX).filter(|byte| is_used[usize::from(*byte)]) {
        kinds[usize::from(byte)] = samples.len() as u8;
        samples.push(byte);
    }
    assert!(samples.len() <= STRIDE && !is_used[0], "too many kinds of bytes for a table");
    (kinds, samples)
}

/// Ends in the order in which they are tried: the longest first, and the rules of one length as the table has them.
fn merged(mut found: Vec<(usize, usize)>) -> Vec<End> {
    found.sort_unstable_by_key(|&(length, rule)| (std::cmp::Reverse(length), rule));
    let mut ends: Vec<End> = Vec::new();
    for (length, rule) in found {
        match ends.last_mut() {
            Some(end) if end.length == length => end.rules.push(rule),
            _ => ends.push(End { length, rules: vec![rule] }),
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_their_own_case_and_in_any() {
        let keyword = |word, rule, is_exact| Keyword { word, rule, is_exact };
        let all =
            [keyword("Token", 0, true), keyword("tok", 1, false), keyword("ken", 2, true), keyword("token", 3, false)];
        let keywords = Keywords::new(&all);
        let found = |text: &str| {
            let found = keywords.found_in(text.as_bytes());
            let rules =
                |at| move |end: &End| end.rules.iter().map(move |&rule| (at, end.length, rule)).collect::<Vec<_>>();
            found.flat_map(|(ends, at)| ends.iter().flat_map(rules(at)).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        assert_eq!(found("a Token"), [(5, 3, 1), (7, 5, 0), (7, 5, 3), (7, 3, 2)]);
        assert_eq!(found("TOKEN tok"), [(3, 3, 1), (5, 5, 3), (9, 3, 1)]);
        assert_eq!(found("toketoken"), [(3, 3, 1), (7, 3, 1), (9, 5, 3), (9, 3, 2)]);
        assert_eq!(found("ßtö ke"), []);
    }
}
