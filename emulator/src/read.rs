//! Reading: tail, viewport, delta, range and full, with a filter over whole lines and caps that keep the newest.
//!
//! The order is fixed: lines are chosen, each passes the filter whole, rows are separated if asked for, and only
//! then is anything cut. A secret that a cut would halve is therefore masked before.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::choice::Choice;
use crate::history::Loss;
use crate::lines::Lines;
use crate::marker::MarkerId;
use crate::screen::{Buffer, Cursor};
use crate::size::Size;

/// What to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The last lines of history and screen, down to the last row with text.
    #[default]
    Tail,
    /// Exactly the visible rows, blank ones included. `max_lines` does not apply.
    Viewport,
    /// What was added or changed since a marker; without one, the tail.
    Delta {
        /// The marker of an earlier answer.
        since: Option<MarkerId>,
    },
    /// Lines by number.
    Range {
        /// The first line wanted.
        from: u64,
        /// The number after the last line wanted; the end of the text when not given.
        until: Option<u64>,
    },
    /// Everything that is kept.
    Full,
}

/// Which of the two screens to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Which {
    /// The one that is shown.
    #[default]
    Active,
    /// The main one with its history, also while a full-screen program hides it.
    Main,
}

/// A read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What to read.
    pub mode: Mode,
    /// Soft-wrapped rows are joined to the line the program wrote.
    pub merge_wrapped: bool,
    /// Entries of `lines` at most; the newest are kept.
    pub max_lines: Option<usize>,
    /// Characters of `text` at most; the newest are kept.
    pub max_chars: Option<usize>,
    /// Which screen.
    pub which: Which,
    /// Lines before the first one returned that the filter sees too, so that what it carries from line to line
    /// (the inside of a key block, say) is right when the window opens.
    pub filter_lead: u64,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            mode: Mode::Tail,
            merge_wrapped: true,
            max_lines: None,
            max_chars: None,
            which: Which::Active,
            filter_lead: 0,
        }
    }
}

impl Request {
    /// A read of this mode, wrapped rows joined, uncapped.
    pub fn new(mode: Mode) -> Self {
        Self { mode, ..Self::default() }
    }
}

/// Sees every logical line of a read whole and in order, also the unchanged ones between two lines of a delta.
pub trait LineFilter {
    /// Told first: all the lines that will come, with newlines between.
    fn begin(&mut self, _page: &str) {}

    /// What to show of the next line; `None` leaves it as it is.
    fn filter(&mut self, line: &str) -> Option<String>;
}

impl<F: FnMut(&str) -> Option<String>> LineFilter for F {
    fn filter(&mut self, line: &str) -> Option<String> {
        self(line)
    }
}

/// What a read found. A caller whose filter vouches for the text can give it a type of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<T = String> {
    /// The lines, joined by newlines.
    pub text: T,
    /// Where each line ends in `text`.
    pub(crate) line_ends: Vec<usize>,
    /// The number of each line; rows of one line share it.
    pub line_numbers: Vec<u64>,
    /// Something asked for was left out because of a cap.
    pub truncated: bool,
    /// Characters left out by `max_chars`, newlines between lines included.
    pub dropped_chars: usize,
    /// Lines left out by either cap.
    pub dropped_lines: usize,
    /// Number of the first line returned; `next_line` when none is.
    pub first_line: u64,
    /// Number after the last line that there is.
    pub next_line: u64,
    /// Number of the oldest line that is still kept.
    pub oldest_line: u64,
    /// Number of the line that the cursor is on.
    pub cursor_line: u64,
    /// The cursor.
    pub cursor: Cursor,
    /// Which screen was read.
    pub buffer: Buffer,
    /// Its size.
    pub size: Size,
    /// For a delta.
    pub delta: Option<Delta>,
}

impl<T: AsRef<str>> Answer<T> {
    /// The lines, one by one.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        split_lines(self.text.as_ref(), &self.line_ends)
    }
}

impl<T> Answer<T> {
    /// Where each line stands in the text.
    pub fn line_ranges(&self) -> impl Iterator<Item = Range<usize>> {
        line_ranges(&self.line_ends)
    }

    /// The same answer with its text as another type. The text has to stay as it is: the lines are known by their
    /// places in it.
    pub fn map_text<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        Answer {
            text: change(self.text),
            line_ends: self.line_ends,
            line_numbers: self.line_numbers,
            truncated: self.truncated,
            dropped_chars: self.dropped_chars,
            dropped_lines: self.dropped_lines,
            first_line: self.first_line,
            next_line: self.next_line,
            oldest_line: self.oldest_line,
            cursor_line: self.cursor_line,
            cursor: self.cursor,
            buffer: self.buffer,
            size: self.size,
            delta: self.delta,
        }
    }
}

/// The lines of a text by their ends; a newline stands between two.
fn split_lines<'a>(text: &'a str, ends: &'a [usize]) -> impl Iterator<Item = &'a str> {
    line_ranges(ends).map(|range| &text[range])
}

fn line_ranges(ends: &[usize]) -> impl Iterator<Item = Range<usize>> {
    let starts = std::iter::once(0).chain(ends.iter().map(|end| end + 1));
    ends.iter().zip(starts).map(|(&end, start)| start..end)
}

/// What only a delta tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delta {
    /// Where the next delta goes on.
    pub marker: MarkerId,
    /// The marker was not known any more, or lines after it went unseen.
    pub marker_disposed: bool,
    /// Lines that came and went unseen since the marker; `None` when the marker was not known.
    pub missed_lines: Option<u64>,
    /// Why they went.
    pub loss: Option<Loss>,
}

/// Logical lines with the ends of their rows, before anything is filtered or cut.
struct Whole {
    /// The lines, with newlines between.
    text: String,
    /// Of each line: its number, whether it was asked for, where it ends in the text, and where its rows end below.
    lines: Vec<(u64, bool, usize, usize)>,
    /// Where each row ends in its line.
    row_ends: Vec<usize>,
}

/// Bytes of a line, to begin with.
const USUAL_LINE_BYTES: usize = 40;

impl Whole {
    fn with_room(lines: usize) -> Self {
        let text = String::with_capacity(lines * USUAL_LINE_BYTES);
        Self { text, lines: Vec::with_capacity(lines), row_ends: Vec::with_capacity(lines) }
    }

    fn push(&mut self, lines: &Lines<'_>, number: u64, is_chosen: bool) {
        if !self.lines.is_empty() {
            self.text.push('\n');
        }
        lines.push_rows(number, &mut self.text, &mut self.row_ends);
        self.lines.push((number, is_chosen, self.text.len(), self.row_ends.len()));
    }

    /// Number, whether it was asked for, text and ends of rows of each line.
    fn lines(&self) -> impl Iterator<Item = (u64, bool, &str, &[usize])> {
        let (mut start, mut first_row) = (0, 0);
        self.lines.iter().map(move |&(number, is_chosen, end, last_row)| {
            let line = (number, is_chosen, &self.text[start..end], &self.row_ends[first_row..last_row]);
            (start, first_row) = (end + 1, last_row);
            line
        })
    }
}

/// The text of an answer while it is put together.
#[derive(Default)]
pub(crate) struct Page {
    text: String,
    line_ends: Vec<usize>,
    numbers: Vec<u64>,
    dropped_chars: usize,
    dropped_lines: usize,
}

impl Page {
    /// Reads the chosen lines through the filter and cuts them.
    pub(crate) fn read(
        lines: &Lines<'_>,
        choice: &Choice,
        request: &Request,
        filter: Option<&mut dyn LineFilter>,
    ) -> Self {
        let mut page = Self::default();
        if request.merge_wrapped && request.mode != Mode::Viewport && filter.is_none() {
            page.push_plain(lines, &choice.numbers);
        } else {
            page.push_filtered(lines, choice, request, filter);
        }
        page.cut(request, choice.cap_is_the_question);
        page
    }

    /// Keeps what the caps allow.
    pub(crate) fn cut(&mut self, request: &Request, cap_is_the_question: bool) {
        if let Some(max) = request.max_lines.filter(|_| request.mode != Mode::Viewport) {
            self.keep_last_lines(max, cap_is_the_question);
        }
        if let Some(max) = request.max_chars {
            self.keep_last_chars(max);
        }
    }

    /// Number of the first line that is left.
    pub(crate) fn first_number(&self) -> Option<u64> {
        self.numbers.first().copied()
    }

    /// Puts the text and its counts into an answer.
    pub(crate) fn finish(self, answer: Answer) -> Answer {
        Answer {
            truncated: self.dropped_chars > 0 || self.dropped_lines > 0,
            text: self.text,
            line_ends: self.line_ends,
            line_numbers: self.numbers,
            dropped_chars: self.dropped_chars,
            dropped_lines: self.dropped_lines,
            ..answer
        }
    }

    /// The parts of the answer.
    pub(crate) fn into_answer(self, lines: &Lines<'_>, cursor: Cursor, buffer: Buffer, size: Size) -> Answer {
        Answer {
            truncated: self.dropped_chars > 0 || self.dropped_lines > 0,
            first_line: self.numbers.first().copied().unwrap_or(lines.next()),
            next_line: lines.next(),
            oldest_line: lines.oldest(),
            cursor_line: lines.line_of_screen_row(usize::from(cursor.row)),
            text: self.text,
            line_ends: self.line_ends,
            line_numbers: self.numbers,
            dropped_chars: self.dropped_chars,
            dropped_lines: self.dropped_lines,
            cursor,
            buffer,
            size,
            delta: None,
        }
    }

    /// Joined lines without a filter go straight into the text.
    fn push_plain(&mut self, lines: &Lines<'_>, numbers: &[u64]) {
        for &number in numbers {
            self.begin_line(number);
            lines.push_text(number, &mut self.text);
            self.line_ends.push(self.text.len());
        }
    }

    fn push_filtered(
        &mut self,
        lines: &Lines<'_>,
        choice: &Choice,
        request: &Request,
        mut filter: Option<&mut dyn LineFilter>,
    ) {
        let (Some(&first), Some(&last)) = (choice.numbers.first(), choice.numbers.last()) else { return };
        let lead = if filter.is_some() { request.filter_lead } else { 0 };
        let mut chosen = choice.numbers.iter().copied().peekable();
        let seen = first.saturating_sub(lead).max(lines.oldest())..=last;
        let mut whole = Whole::with_room(if filter.is_some() { seen.clone().count() } else { choice.numbers.len() });
        for number in seen {
            let is_chosen = chosen.next_if_eq(&number).is_some();
            // Also lines that are not returned pass the filter: what it carries must not jump over them.
            if is_chosen || filter.is_some() {
                whole.push(lines, number, is_chosen);
            }
        }
        let mut changed = Vec::new();
        if let Some(filter) = &mut filter {
            filter.begin(&whole.text);
            for (index, (_, _, line, _)) in whole.lines().enumerate() {
                changed.extend(filter.filter(line).map(|filtered| (index, filtered)));
            }
        }
        let hidden_rows = |number| if request.mode == Mode::Viewport { lines.rows_above_screen(number) } else { 0 };
        let has_no_gaps = last - first + 1 == choice.numbers.len() as u64;
        // Only the first line of a screen can begin above it.
        if changed.is_empty() && has_no_gaps && request.merge_wrapped && hidden_rows(first) == 0 {
            return self.take(whole, choice.numbers.len());
        }
        let mut changed = changed.into_iter().peekable();
        self.text.reserve(whole.text.len());
        for (index, (number, is_chosen, line, row_ends)) in whole.lines().enumerate() {
            let filtered = changed.next_if(|(at, _)| *at == index);
            if !is_chosen {
                continue;
            }
            let hidden = hidden_rows(number);
            match filtered {
                Some((_, filtered)) => {
                    let mut row_ends = row_ends.to_vec();
                    map_row_ends(line, &filtered, &mut row_ends);
                    self.push_split(number, &filtered, &row_ends, hidden, request.merge_wrapped);
                }
                None => self.push_split(number, line, row_ends, hidden, request.merge_wrapped),
            }
        }
    }

    /// Takes the last lines as they are.
    fn take(&mut self, whole: Whole, count: usize) {
        let (lead, lines) = whole.lines.split_at(whole.lines.len() - count);
        let start = lead.last().map_or(0, |&(_, _, end, _)| end + 1);
        self.line_ends = lines.iter().map(|&(_, _, end, _)| end - start).collect();
        self.numbers = lines.iter().map(|&(number, ..)| number).collect();
        self.text = whole.text;
        self.text.drain(..start);
    }

    /// Adds a line, or its rows, without the first `hidden` rows.
    pub(crate) fn push_split(&mut self, number: u64, line: &str, row_ends: &[usize], hidden: usize, merge: bool) {
        let mut start = if hidden == 0 { 0 } else { row_ends.get(hidden - 1).copied().unwrap_or(line.len()) };
        let visible = row_ends.get(hidden..).unwrap_or_default();
        if merge {
            self.push_line(number, &line[start..]);
            return;
        }
        for &end in visible {
            self.push_line(number, line[start..end].trim_end_matches(' '));
            start = end;
        }
    }

    fn push_line(&mut self, number: u64, line: &str) {
        self.begin_line(number);
        self.text.push_str(line);
        self.line_ends.push(self.text.len());
    }

    fn begin_line(&mut self, number: u64) {
        if !self.line_ends.is_empty() {
            self.text.push('\n');
        }
        self.numbers.push(number);
    }

    fn keep_last_lines(&mut self, max: usize, is_the_question: bool) {
        let surplus = self.line_ends.len().saturating_sub(max);
        if surplus > 0 {
            self.drop_lines(surplus);
            if !is_the_question {
                self.dropped_lines += surplus;
            }
        }
    }

    /// Takes whole lines away from the front. Returns the characters that went.
    fn drop_lines(&mut self, count: usize) {
        let from = self.line_ends[count - 1] + 1;
        self.text.drain(..from.min(self.text.len()));
        self.line_ends.drain(..count);
        self.numbers.drain(..count);
        self.line_ends.iter_mut().for_each(|end| *end -= from);
    }

    fn keep_last_chars(&mut self, max: usize) {
        let chars = self.text.chars().count();
        let Some(surplus) = chars.checked_sub(max).filter(|&surplus| surplus > 0) else { return };
        let cut = self.text.char_indices().nth(surplus).map_or(self.text.len(), |(at, _)| at);
        // Whole lines before the cut go; a cut that falls on a newline ends the line before it.
        let gone = self.line_ends.partition_point(|&end| end < cut).min(self.line_ends.len());
        if gone > 0 {
            self.drop_lines(gone);
            self.dropped_lines += gone;
        }
        let removed = chars - self.text.chars().count();
        let left = surplus.saturating_sub(removed);
        let more = self.drop_graphemes(left);
        self.dropped_chars = removed + more;
        if max == 0 && self.text.is_empty() {
            self.dropped_lines += self.line_ends.len();
            self.line_ends.clear();
            self.numbers.clear();
        }
    }

    /// Takes at least `chars` characters away from the front of the first line, whole graphemes only.
    fn drop_graphemes(&mut self, chars: usize) -> usize {
        let first = &self.text[..self.line_ends.first().copied().unwrap_or(0)];
        let (mut bytes, mut dropped) = (0, 0);
        for grapheme in first.graphemes(true) {
            if dropped >= chars {
                break;
            }
            dropped += grapheme.chars().count();
            bytes += grapheme.len();
        }
        self.text.drain(..bytes);
        self.line_ends.iter_mut().for_each(|end| *end -= bytes);
        dropped
    }
}

/// Moves the ends of rows from a line to what a filter made of it. What stayed the same at either end of the line
/// keeps its rows; what was replaced stands in the row where the replacement begins.
fn map_row_ends(before: &str, after: &str, row_ends: &mut [usize]) {
    let prefix = common_prefix(before, after);
    let suffix = common_suffix(&before[prefix..], &after[prefix..]);
    for end in row_ends {
        if *end > prefix {
            let from_end = (before.len() - *end).min(suffix);
            *end = after.len() - from_end;
        }
    }
}

/// Bytes, at a character border, that both begin with.
fn common_prefix(a: &str, b: &str) -> usize {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    a.floor_char_boundary(same).min(b.floor_char_boundary(same))
}

/// Bytes, at a character border, that both end with.
fn common_suffix(a: &str, b: &str) -> usize {
    let same = a.bytes().rev().zip(b.bytes().rev()).take_while(|(a, b)| a == b).count();
    let back = |text: &str| text.len() - text.ceil_char_boundary(text.len() - same);
    back(a).min(back(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(lines: &[&str]) -> Page {
        let mut page = Page::default();
        for (number, line) in lines.iter().enumerate() {
            page.push_line(number as u64, line);
        }
        page
    }

    fn kept(page: &Page) -> Vec<&str> {
        split_lines(&page.text, &page.line_ends).collect()
    }

    #[test]
    fn a_cap_on_characters_keeps_the_newest_and_whole_graphemes() {
        let family = "👩\u{200d}💻x";
        for (lines, max, expected, chars, dropped) in [
            (vec!["abc", "def"], 7, vec!["abc", "def"], 0, 0),
            (vec!["abc", "def"], 6, vec!["bc", "def"], 1, 0),
            (vec!["abc", "def"], 4, vec!["", "def"], 3, 0),
            (vec!["abc", "def"], 3, vec!["def"], 4, 1),
            (vec!["abc", "def"], 2, vec!["ef"], 5, 1),
            (vec!["abc", "def"], 0, vec![], 7, 2),
            (vec![family], 3, vec!["x"], 3, 0),
            (vec!["ae\u{301}"], 1, vec![""], 3, 0),
            (vec!["", "", "a"], 1, vec!["a"], 2, 2),
        ] {
            let mut page = page(&lines);
            page.keep_last_chars(max);
            assert_eq!(kept(&page), expected, "{lines:?} to {max}");
            assert_eq!((page.dropped_chars, page.dropped_lines), (chars, dropped), "{lines:?} to {max}");
            assert_eq!(page.numbers.len(), page.line_ends.len());
        }
    }

    #[test]
    fn a_cap_on_lines_keeps_the_newest() {
        let mut page = page(&["a", "b", "c"]);
        page.keep_last_lines(2, false);
        assert_eq!((kept(&page), page.dropped_lines), (vec!["b", "c"], 1));
        page.keep_last_lines(0, true);
        assert_eq!((kept(&page), page.dropped_lines), (vec![], 1));
        assert_eq!(page.text, "");
    }

    #[test]
    fn replaced_text_stands_in_the_row_where_it_begins() {
        let split = |before: &str, after: &str, ends: &[usize]| {
            let mut ends = ends.to_vec();
            map_row_ends(before, after, &mut ends);
            let mut start = 0;
            let rows: Vec<String> =
                ends.iter().map(|&end| after[std::mem::replace(&mut start, end)..end].to_owned()).collect();
            rows
        };
        assert_eq!(split("key=abcdefgh rest", "key=[masked] rest", &[8, 16, 17]), ["key=[masked]", " res", "t"]);
        assert_eq!(split("abcd1234", "[masked]", &[4, 8]), ["[masked]", ""]);
        assert_eq!(split("aaaa", "aa", &[2, 4]), ["aa", ""]);
        assert_eq!(split("same same", "same same", &[4, 9]), ["same", " same"]);
        assert_eq!(split("é1é", "éé", &[2, 5]), ["é", "é"]);
    }
}
