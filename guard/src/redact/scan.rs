//! One pass over text: keywords are looked for first, and a rule is tried only where one of its own stands.
//!
//! Each rule is tried at its keyword and nowhere else, and what was found is not looked at again; so the time grows
//! with the text, whatever the text is. Lines part secrets, but for key blocks: those are carried from call to call.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use regex::bytes::{Regex, RegexBuilder};

use super::blocks::Block;
use super::keywords::{Keyword, Keywords};
use super::names::NameMemo;
use super::rules::{Find, RULES, Rule};
use super::{assign, values};

/// So many bytes of base64 are data, whatever they seem to spell.
const LONG_BLOB: usize = 40;

/// A stretch to hide, and what is shown in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) range: Range<usize>,
    pub(super) mask: &'static str,
    /// The rule that found it; none for a value that was known.
    pub(super) rule: &'static str,
    /// Of spans over the same stretch, the lowest names it.
    rank: u8,
}

/// What one text says about the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Carry {
    /// The text ended inside a private key.
    pub(super) block: Option<Block>,
    /// The text ended with the name of a secret, whose value is the next line.
    pub(super) wants_value: bool,
}

impl Carry {
    /// It says nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.block.is_none() && !self.wants_value
    }
}

/// A stretch that ends at the same place from wherever in it one begins.
#[derive(Debug, Default)]
pub(super) struct Run {
    range: Range<usize>,
    judged: usize,
}

/// Values that begin in one stretch and are judged each for itself. More of them are made to cost time.
const MOST_JUDGED: usize = 16;

impl Run {
    /// The end of the stretch at a place; it is looked for only if the place is not in the one that is known.
    pub(super) fn end(&mut self, at: usize, length: impl FnOnce() -> usize) -> usize {
        if !self.range.contains(&at) {
            *self = Self { range: at..at + length(), judged: 0 };
        }
        self.range.end
    }

    /// Counts a value of the stretch that was judged. True when there are too many: then the rest is hidden unread.
    pub(super) fn is_crowded(&mut self) -> bool {
        self.judged += 1;
        self.judged > MOST_JUDGED
    }
}

/// A text that is looked at.
pub(super) struct Scan<'a> {
    pub(super) text: &'a [u8],
    pub(super) carry: Carry,
    /// Names before this were judged.
    pub(super) name_end: usize,
    /// What the last names were judged to be: texts use few names, again and again.
    pub(super) names: NameMemo,
    /// The last stretches that were followed to their ends, so that none is followed twice.
    pub(super) bare: Run,
    pub(super) credentials: Run,
    pub(super) words: Run,
    pub(super) cookies: Run,
    dotted: Run,
    /// No token of dotted parts has a part that ends here.
    not_dotted: usize,
    /// The last line of cookies and the last web key end here.
    pub(super) cookies_end: usize,
    pub(super) web_key_end: usize,
    spans: Vec<Span>,
    /// Everything before this is hidden or done with.
    covered: usize,
    /// The same for tokens, which may stand in the values of names.
    tokens_covered: usize,
    /// The same for what stands beside something else.
    groups_covered: usize,
    rule: &'static Rule,
}

pub(super) static KEYWORDS: LazyLock<Keywords> = LazyLock::new(|| {
    let of_rule = |(index, rule): (usize, &&'static Rule)| {
        let is_exact = rule.find.respects_case();
        rule.keywords.iter().map(move |&word| Keyword { word, rule: index, is_exact })
    };
    Keywords::new(&RULES.iter().enumerate().flat_map(of_rule).collect::<Vec<_>>())
});

/// The expressions, each made when its keyword is met for the first time.
static COMPILED: LazyLock<Vec<OnceLock<Regex>>> = LazyLock::new(|| RULES.iter().map(|_| OnceLock::new()).collect());

/// Makes an expression that matches bytes at the place where it is tried.
pub(super) fn compile(regex: &str) -> Regex {
    let anchored = format!("^(?:{regex})");
    RegexBuilder::new(&anchored).unicode(false).build().expect("a test compiles every rule")
}

/// Finds what is to be hidden in plain text.
pub(super) fn scan(text: &[u8], carry: &mut Carry) -> Vec<Span> {
    let mut keywords = KEYWORDS.found_in(text).peekable();
    // Most lines have nothing in them that is worth the preparations.
    if keywords.peek().is_none() && carry.is_empty() {
        return Vec::new();
    }
    let mut scan = Scan {
        text,
        carry: std::mem::take(carry),
        name_end: 0,
        names: NameMemo::default(),
        bare: Run::default(),
        credentials: Run::default(),
        words: Run::default(),
        cookies: Run::default(),
        dotted: Run::default(),
        not_dotted: 0,
        cookies_end: 0,
        web_key_end: 0,
        spans: Vec::new(),
        covered: 0,
        tokens_covered: 0,
        groups_covered: 0,
        rule: RULES[0],
    };
    scan.take_up();
    for (ends, at) in keywords {
        for end in ends {
            end.rules.iter().for_each(|&rule| scan.try_rule(rule, at - end.length..at));
        }
    }
    *carry = scan.carry;
    scan.spans
}

impl<'a> Scan<'a> {
    fn try_rule(&mut self, index: usize, hit: Range<usize>) {
        self.rule = RULES[index];
        let is_done = match self.rule.find {
            Find::Code(_) => hit.start < self.covered,
            _ if self.rule.has_group => hit.start < self.groups_covered,
            _ => hit.start < self.tokens_covered,
        };
        if is_done {
            return;
        }
        match self.rule.find {
            Find::Code(find) => find(self, hit),
            Find::At(regex) => self.try_at(index, regex, hit.start),
            Find::Token(regex) if starts_word(self.text, hit.start) => self.try_at(index, regex, hit.start),
            Find::Strict(regex) if starts_word(self.text, hit.start) && !follows_blob(self.text, hit.start) => {
                self.try_at(index, regex, hit.start);
            }
            Find::Dotted(regex) if starts_word(self.text, hit.start) && !follows_blob(self.text, hit.start) => {
                let (text, found) = (self.text, self.spans.len());
                let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
                let end = self.dotted.end(hit.start, || text[hit.start..].iter().take_while(is_part).count());
                if end != self.not_dotted && matches!(text.get(end), Some(b'.' | b'=')) {
                    self.try_at(index, regex, hit.start);
                }
                // What follows the part is the same from wherever in it one begins.
                if self.spans.len() == found {
                    self.not_dotted = end;
                }
            }
            Find::Back(most, regex) => {
                let before = &self.text[self.tokens_covered.min(hit.start)..hit.start];
                let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-.~".contains(byte);
                let start = hit.start - before.iter().rev().take(most).take_while(is_part).count();
                self.try_at(index, regex, start);
            }
            Find::Token(_) | Find::Strict(_) | Find::Dotted(_) => {}
        }
    }

    fn try_at(&mut self, index: usize, regex: &'static str, start: usize) {
        let regex = COMPILED[index].get_or_init(|| compile(regex));
        let rest = &self.text[start..];
        let found = match self.rule.has_group {
            false => regex.find(rest).map(|found| found.range()),
            true => {
                regex.captures(rest).and_then(|found| found.iter().skip(1).flatten().next().map(|group| group.range()))
            }
        };
        let Some(found) = found else { return };
        let range = start + found.start..start + found.end;
        if self.rule.is_judged && values::kind(&self.text[range.clone()]) == values::Kind::Harmless {
            return;
        }
        // The very first patterns hide whatever fits them.
        let is_first = matches!(self.rule.id, "sk-key" | "github-token");
        if !is_first && values::is_filled_in(&self.text[range.clone()]) {
            return;
        }
        let has_group = self.rule.has_group;
        let covered = if has_group { &mut self.groups_covered } else { &mut self.tokens_covered };
        if range.start < *covered {
            return;
        }
        *covered = range.end;
        let rank = if has_group { 2 } else { 1 };
        self.spans.push(Span { range, mask: self.rule.mask, rule: self.rule.id, rank });
    }

    /// Goes on with what the text before this one began.
    fn take_up(&mut self) {
        if let Some(block) = self.carry.block.take() {
            self.rule = RULES.iter().find(|rule| rule.id == "private-key").unwrap_or(&RULES[0]);
            self.hide_block(block, 0);
        }
        if std::mem::take(&mut self.carry.wants_value) {
            self.rule = RULES.iter().find(|rule| rule.id == "assignment").unwrap_or(&RULES[0]);
            // An empty line may stand between.
            let is_empty = self.text.iter().all(u8::is_ascii_whitespace);
            self.carry.wants_value = is_empty && !self.text.is_empty();
            assign::hide_line(self, 0);
        }
    }

    /// Hides the lines of a key block from a place on, which begins a line.
    pub(super) fn hide_block(&mut self, mut block: Block, from: usize) {
        let mut at = from;
        while at < self.text.len() {
            let end = line_end(self.text, at);
            match block.feed(&self.text[at..end]) {
                super::blocks::Line::Hidden(range) => self.hide(at + range.start..at + range.end, self.rule.mask),
                super::blocks::Line::Passed => {}
                super::blocks::Line::Over => {
                    self.covered = self.covered.max(at);
                    self.tokens_covered = self.tokens_covered.max(at);
                    return;
                }
            }
            at = end + 1;
        }
        (self.covered, self.tokens_covered) = (self.text.len(), self.text.len());
        self.carry.block = Some(block);
    }

    /// Where nothing is hidden yet.
    pub(super) fn free_from(&self) -> usize {
        self.covered
    }

    /// The text of the rule that is tried.
    pub(super) fn mask(&self) -> &'static str {
        self.rule.mask
    }

    /// Hides a stretch.
    pub(super) fn hide(&mut self, range: Range<usize>, mask: &'static str) {
        if range.is_empty() {
            return;
        }
        self.covered = self.covered.max(range.end);
        self.spans.push(Span { range, mask, rule: self.rule.id, rank: 3 });
    }
}

impl Span {
    /// A value that was known.
    pub(super) fn known(range: Range<usize>, mask: &'static str) -> Self {
        Self { range, mask, rule: "known-value", rank: 0 }
    }
}

/// The end of a line, without its newline.
pub(super) fn line_end(text: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |length| at + length)
}

/// Puts spans in order and makes one of those that overlap. The longest of those that begin first names it.
pub(super) fn merged(mut spans: Vec<Span>, text: &[u8]) -> Vec<Span> {
    spans.sort_by_key(|span| (span.range.start, Reverse(span.range.end), span.rank));
    let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
    for mut span in spans {
        // Characters are hidden whole.
        let is_inside = |at: usize| text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
        while is_inside(span.range.start) && span.range.start > 0 {
            span.range.start -= 1;
        }
        while is_inside(span.range.end) {
            span.range.end += 1;
        }
        match merged.last_mut() {
            Some(last) if span.range.start < last.range.end => {
                last.range.end = last.range.end.max(span.range.end);
                if span.range.start == last.range.start && span.rank < last.rank {
                    (last.mask, last.rank) = (span.mask, span.rank);
                }
            }
            _ => merged.push(span),
        }
    }
    merged
}

/// No word goes on here: what stands before is no letter, or a letter that spells something else.
pub(super) fn starts_word(text: &[u8], at: usize) -> bool {
    let Some(&before) = at.checked_sub(1).and_then(|before| text.get(before)) else { return true };
    if !before.is_ascii_alphanumeric() && before != b'_' {
        return true;
    }
    let near = &text[at.saturating_sub(12)..at];
    let length = near.len();
    // `\n`, `%3D`, `\u003d`, `[32m` are one character each.
    let is_escape = length >= 2 && near[length - 2] == b'\\' && b"nrtbfve".contains(&before);
    let is_hex = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    let is_percent = length >= 3 && near[length - 3] == b'%' && is_hex(&near[length - 2..]);
    let is_unicode = length >= 6 && &near[length - 6..length - 4] == b"\\u" && is_hex(&near[length - 4..]);
    let is_colour = before == b'm'
        && near[..length - 1]
            .iter()
            .rposition(|byte| !byte.is_ascii_digit() && *byte != b';')
            .is_some_and(|b| near[b] == b'[');
    is_escape || is_percent || is_unicode || is_colour
}

/// The place is inside what may be encoded data, where short prefixes come by chance.
fn follows_blob(text: &[u8], at: usize) -> bool {
    let before = &text[at.saturating_sub(LONG_BLOB)..at];
    let goes_on = before.len() > 1
        && b"-.".contains(&before[before.len() - 1])
        && (before[before.len() - 2].is_ascii_alphanumeric() || before[before.len() - 2] == b']');
    let is_encoded = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
    goes_on || (before.len() == LONG_BLOB && before.iter().all(is_encoded))
}
