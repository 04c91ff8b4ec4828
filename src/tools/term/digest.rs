//! A long output in few characters: its head, its tail, and the lines between that look like errors, with the number of
//! every line that is not where it seems to be, and exact counts of what is left out.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::terminal::search::Pattern;

/// An output of this length is shown whole where the caller gives no limit.
const WHOLE_CHARS: usize = 4_000;
/// What a longer one is cut to, and one of a command that succeeded.
const DIGEST_CHARS: usize = 2_000;
const SUCCESS_CHARS: usize = 800;
/// Of these characters the head, the tail and the lines between get so much, in hundredths.
const HEAD_SHARE: usize = 20;
const TAIL_SHARE: usize = 40;
const BETWEEN_SHARE: usize = 40;
/// Lines at either end: many short ones cost as much as few long ones.
const HEAD_LINES: usize = 10;
const TAIL_LINES: usize = 15;
/// What the end of a line costs: as much as a few characters.
const END_CHARS: usize = 3;
/// Rows of a screen that are the same are told once from this number on.
const LEAST_REPEATED: usize = 4;
/// Characters of a line in a digest; long lines are seldom worth all of theirs.
const LINE_CHARS: usize = 240;
/// What the number of a line, or a note, costs.
const NUMBER_CHARS: usize = 8;

/// The expression for lines that tell what went wrong.
pub(super) const ERRORS: &str = concat!(
    r"\b(FAIL(ED|URE)?S?|panicked at|Traceback|\w*(Error|Exception)\b)|\b(error|fatal)(\[|:)|^E\s|^not ok\b|✗|✘",
    r"|undefined reference|Segmentation fault|core dumped|command not found"
);
/// Lines that tell what went wrong.
static STRONG: LazyLock<Option<Pattern>> = LazyLock::new(|| Pattern::regex(ERRORS, false).ok());
/// Lines that may.
static WEAK: LazyLock<Option<Pattern>> = LazyLock::new(|| {
    Pattern::regex(r"\b(errors?|fail(ed|ures?|s)?|fatal|denied|abort(ed)?|panic|exception)\b", true).ok()
});
/// Lines that say that nothing did.
static NONE: LazyLock<Option<Pattern>> =
    LazyLock::new(|| Pattern::regex(r"\b(0|no) (\w+ )?(errors?|fail\w*)\b|\b(errors?|fail\w*)[:=] *0\b", true).ok());

/// Lines with their numbers in an output; numbers that are missing are lines that are not at hand.
pub(super) struct Lines<'a> {
    pub(super) numbered: Vec<(u64, &'a str)>,
    /// The number after the last line.
    pub(super) end: u64,
}

impl<'a> Lines<'a> {
    /// All lines of a text, the first of which has this number.
    pub(super) fn of(text: &'a str, first: u64) -> Self {
        let numbered: Vec<_> = (first..).zip(text.split('\n')).collect();
        Self { end: first + numbered.len() as u64, numbered }
    }

    /// The room that it takes.
    fn cost(&self) -> usize {
        self.numbered.iter().map(|(_, line)| line.chars().count() + END_CHARS).sum::<usize>()
    }

    fn is_whole(&self) -> bool {
        self.numbered.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0)
            && self.numbered.last().is_none_or(|(last, _)| last + 1 == self.end)
    }
}

/// A text that may have been cut.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Digest {
    pub(super) text: String,
    /// The first line that was left out.
    pub(super) missing: Option<u64>,
}

/// The output of a command that succeeded: less of it matters.
pub(super) fn digest_of_success(lines: &Lines<'_>, max_chars: Option<usize>) -> Digest {
    cut(lines, max_chars.unwrap_or(WHOLE_CHARS), max_chars.unwrap_or(SUCCESS_CHARS))
}

/// Shows an output whole where it is short enough, else the parts that matter most.
pub(super) fn digest(lines: &Lines<'_>, max_chars: Option<usize>) -> Digest {
    cut(lines, max_chars.unwrap_or(WHOLE_CHARS), max_chars.unwrap_or(DIGEST_CHARS))
}

fn cut(lines: &Lines<'_>, whole: usize, room: usize) -> Digest {
    if lines.is_whole() && lines.cost() <= whole {
        let text = lines.numbered.iter().map(|(_, line)| *line).collect::<Vec<_>>().join("\n");
        return Digest { text, missing: None };
    }
    let all = &lines.numbered;
    let ends = |room: usize| {
        let head = taking(all.iter().take(HEAD_LINES), room * HEAD_SHARE / 100).max(1).min(all.len());
        let tail = taking(all[head..].iter().rev().take(TAIL_LINES), room * TAIL_SHARE / 100);
        head..all.len() - tail.max(1).min(all.len() - head)
    };
    let mut middle = ends(room);
    let mut between = telling(all, middle.clone(), room * BETWEEN_SHARE / 100);
    if !between.is_empty() {
        // What went wrong says more than what is around it.
        middle = ends(room / 2);
        between = telling(all, middle.clone(), room * BETWEEN_SHARE / 100);
    }
    let mut shown = String::new();
    let mut next = all.first().map_or(0, |(number, _)| *number);
    let mut missing = None;
    for (index, &(number, line)) in all.iter().enumerate() {
        let is_between = middle.contains(&index);
        if is_between && !between.contains(&index) {
            continue;
        }
        if number > next {
            missing = missing.or(Some(next));
            let count = number - next;
            add(&mut shown, &format!("[… {count} line{}]", if count == 1 { "" } else { "s" }));
        }
        match is_between {
            true => add(&mut shown, &format!("{number}: {}", clipped(line))),
            false => add(&mut shown, &clipped(line)),
        }
        next = number + 1;
    }
    Digest { text: shown, missing }
}

/// A screen with rows that are the same told once: an editor has many of them.
pub(super) fn without_repetition(screen: &str) -> String {
    let rows: Vec<&str> = screen.split('\n').collect();
    let mut text = String::new();
    let mut is_first = true;
    for same in rows.chunk_by(|a, b| a == b) {
        let is_told_once = same.len() >= LEAST_REPEATED && !same[0].is_empty();
        for row in if is_told_once { &same[..1] } else { same } {
            text.push_str(if is_first { "" } else { "\n" });
            text.push_str(row);
            is_first = false;
        }
        if is_told_once {
            text.push_str(&format!("\n[{} more such rows]", same.len() - 1));
        }
    }
    text
}

/// How many lines fit.
fn taking<'a>(lines: impl Iterator<Item = &'a (u64, &'a str)>, room: usize) -> usize {
    let mut left = room;
    lines
        .take_while(|(_, line)| {
            let cost = line.chars().count().min(LINE_CHARS) + END_CHARS;
            let fits = cost <= left;
            left = left.saturating_sub(cost);
            fits
        })
        .count()
}

/// The lines among these that tell what went wrong, each with the one after it: from both ends, because the first error
/// of a compiler and the last of a test run matter most.
fn telling(all: &[(u64, &str)], among: std::ops::Range<usize>, room: usize) -> BTreeSet<usize> {
    let has =
        |pattern: &LazyLock<Option<Pattern>>, line: &str| pattern.as_ref().is_some_and(|pattern| pattern.is_in(line));
    let of = |pattern: &'static LazyLock<Option<Pattern>>| -> Vec<usize> {
        among.clone().filter(|&index| has(pattern, all[index].1) && !has(&NONE, all[index].1)).collect()
    };
    let mut found = of(&STRONG);
    if found.is_empty() {
        found = of(&WEAK);
    }
    let (mut from_front, mut from_back) = (found.iter(), found.iter().rev());
    let mut chosen = BTreeSet::new();
    let mut left = room;
    for turn in 0..found.len() {
        let next = if turn % 2 == 0 { from_front.next() } else { from_back.next() };
        let Some(&index) = next else { break };
        let follows =
            index + 1 < among.end && all[index + 1].0 == all[index].0 + 1 && !all[index + 1].1.trim().is_empty();
        let with = if follows { index..=index + 1 } else { index..=index };
        let cost: usize =
            with.clone().map(|at| all[at].1.chars().count().min(LINE_CHARS) + NUMBER_CHARS).sum::<usize>()
                + 2 * NUMBER_CHARS;
        if cost > left {
            break;
        }
        left -= cost;
        chosen.extend(with);
    }
    chosen
}

/// A line, of a long one the beginning and how much is missing.
fn clipped(line: &str) -> String {
    let chars = line.chars().count();
    match line.char_indices().nth(LINE_CHARS) {
        Some((at, _)) => format!("{}[… {} chars]", &line[..at], chars - LINE_CHARS),
        None => line.to_owned(),
    }
}

fn add(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_output_is_shown_whole() {
        let text = "one\n\n  two ";
        assert_eq!(digest(&Lines::of(text, 0), None), Digest { text: text.to_owned(), missing: None });
        assert_eq!(digest(&Lines::of("", 0), None).text, "");
    }

    #[test]
    fn a_long_output_shows_both_ends_and_what_went_wrong() {
        let mut lines: Vec<String> = (0..2_000).map(|number| format!("line {number} ok, 0 errors")).collect();
        lines[700] = "FAILED tests/test_x.py::test_sum".to_owned();
        lines[701] = "E  assert 3 == 4".to_owned();
        let text = lines.join("\n");
        let Digest { text: shown, missing } = digest(&Lines::of(&text, 0), None);
        assert!(shown.chars().count() < 2_200, "{shown}");
        assert!(shown.starts_with("line 0 ok") && shown.ends_with("line 1999 ok, 0 errors"), "{shown}");
        assert!(shown.contains("700: FAILED tests/test_x.py::test_sum\n701: E  assert 3 == 4\n"), "{shown}");
        // Every line is shown or counted.
        let counted: usize = shown
            .lines()
            .filter_map(|line| line.strip_prefix("[… ")?.split(' ').next()?.parse().ok())
            .collect::<Vec<usize>>()
            .iter()
            .sum();
        let shown_lines = shown.lines().filter(|line| !line.starts_with("[…")).count();
        assert_eq!(counted + shown_lines, 2_000);
        assert_eq!(missing, lines.iter().position(|line| !shown.contains(&format!("{line}\n"))).map(|at| at as u64));
    }

    #[test]
    fn lines_that_are_not_at_hand_are_counted() {
        let lines = Lines { numbered: vec![(0, "first"), (1, "second"), (9_998, "last")], end: 9_999 };
        let Digest { text, missing } = digest(&lines, Some(20));
        assert_eq!((text.as_str(), missing), ("first\n[… 9997 lines]\nlast", Some(1)));
    }

    #[test]
    fn rows_that_are_the_same_are_told_once() {
        for (screen, expected) in [
            ("", ""),
            ("a\n\n\n\n\nb", "a\n\n\n\n\nb"),
            ("a\n~\n~\n~\n~\n~\nb", "a\n~\n[4 more such rows]\nb"),
            ("~\n~\n~", "~\n~\n~"),
        ] {
            assert_eq!(without_repetition(screen), expected);
        }
    }

    #[test]
    fn one_long_line_is_clipped() {
        let shown = digest(&Lines::of(&"x".repeat(10_000), 0), None).text;
        assert!(shown.ends_with("[… 9760 chars]"), "{shown}");
    }
}
