//! Logical lines and their numbers: the live rows joined at soft wraps, behind the finished lines of the
//! history.
//!
//! Owns the mapping from a line's number to the rows that show it. Rows above the screen do not change within
//! an epoch, so their lines are found once; only the screen is looked at again for each read.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use unicode_width::UnicodeWidthChar;

use crate::engine::{Engine, Limits};
use crate::screen::{Buffer, Width};

/// Where the lines of the live rows begin.
#[derive(Debug, Default)]
pub(crate) struct LineIndex {
    epoch: Option<u64>,
    /// First rows of the lines that begin above the screen, counted from the first row of the epoch.
    above: VecDeque<u64>,
    /// Rows of the epoch that `above` covers.
    counted: u64,
    /// The live row 0, counted from the first row of the epoch.
    top: u64,
    /// First rows of the lines that begin on the screen, as live rows.
    on_screen: Vec<usize>,
    /// Live rows in all.
    rows: usize,
    /// Live rows above the screen.
    rows_above: usize,
}

impl LineIndex {
    /// Brings the index up to date with the buffer that the engine shows.
    pub(crate) fn update(&mut self, engine: &dyn Engine, limits: &Limits) {
        let longest = limits.rows_of_longest_line(engine.size()) as u64;
        self.top = engine.drained_rows();
        self.rows = engine.live_rows();
        self.rows_above = self.rows - usize::from(engine.size().rows());
        let screen = self.top + self.rows_above as u64;
        if self.epoch != Some(engine.epoch()) || self.counted < self.top || self.counted > screen {
            self.epoch = Some(engine.epoch());
            self.above.clear();
            self.counted = self.top;
        }
        while self.above.front().is_some_and(|&start| start < self.top) {
            self.above.pop_front();
        }
        let starts_line = |row: u64, line: Option<u64>| match line {
            Some(line) => row - line == longest || !engine.row_is_wrapped((row - 1 - self.top) as usize),
            None => true,
        };
        for row in self.counted..screen {
            if starts_line(row, self.above.back().copied()) {
                self.above.push_back(row);
            }
        }
        self.counted = screen;
        self.on_screen.clear();
        let mut line = self.above.back().copied();
        for row in screen..self.top + self.rows as u64 {
            if starts_line(row, line) {
                line = Some(row);
                self.on_screen.push((row - self.top) as usize);
            }
        }
    }

    /// Live lines.
    fn len(&self) -> usize {
        self.above.len() + self.on_screen.len()
    }

    /// First live row of a live line; the number of rows for the line after the last.
    fn start(&self, line: usize) -> usize {
        match self.above.get(line) {
            Some(&start) => (start - self.top) as usize,
            None => self.on_screen.get(line - self.above.len()).copied().unwrap_or(self.rows),
        }
    }

    fn rows(&self, line: usize) -> Range<usize> {
        self.start(line)..self.start(line + 1)
    }

    /// The live line that shows a live row.
    fn line_at(&self, row: usize) -> usize {
        let above = self.above.partition_point(|&start| start <= self.top + row as u64);
        let on_screen = self.on_screen.partition_point(|&start| start <= row);
        (above + on_screen).saturating_sub(1)
    }
}

/// All lines of one buffer at one moment.
pub(crate) struct Lines<'a> {
    engine: &'a dyn Engine,
    index: &'a LineIndex,
    /// Number of the first live line.
    first_live: u64,
    oldest: u64,
    next: u64,
    screen_first: u64,
}

impl<'a> Lines<'a> {
    /// The index must be up to date.
    pub(crate) fn new(engine: &'a dyn Engine, index: &'a LineIndex) -> Self {
        // The alternate screen has lines of its own, numbered from its first row.
        let (oldest, first_live) = match engine.buffer() {
            Buffer::Main => (engine.history().oldest(), engine.history().next()),
            Buffer::Alternate => (0, 0),
        };
        let screen_first = first_live + index.line_at(index.rows_above) as u64;
        let last_text = (index.rows_above..index.rows).rev().find(|&row| engine.row_has_text(row));
        let next = match last_text {
            Some(row) => first_live + index.line_at(row) as u64 + 1,
            // Nothing on the screen: the lines above it are all there is.
            None => first_live + index.above.len() as u64,
        };
        Self { engine, index, first_live, oldest, next, screen_first }
    }

    /// Number of the oldest line that can be read.
    pub(crate) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Number after the last line that has text, or that has left the screen.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Number of the first live line; every line below it is final.
    pub(crate) fn first_live(&self) -> u64 {
        self.first_live
    }

    /// Number of the line that the first row of the screen belongs to.
    pub(crate) fn screen_first(&self) -> u64 {
        self.screen_first
    }

    /// Number after the line of the last row of the screen, blank or not.
    pub(crate) fn screen_end(&self) -> u64 {
        self.first_live + self.index.len() as u64
    }

    /// Number of the line that shows a row of the screen.
    pub(crate) fn line_of_screen_row(&self, row: usize) -> u64 {
        self.first_live + self.index.line_at(self.index.rows_above + row) as u64
    }

    /// Characters of its line before a place on the screen; blanks that nothing was written to count.
    pub(crate) fn chars_before(&self, row: usize, col: usize) -> usize {
        let row = self.index.rows_above + row;
        let first = self.index.start(self.index.line_at(row));
        let mut text = String::new();
        (first..row).for_each(|row| self.engine.push_row(row, &mut text));
        let above = text.chars().count();
        text.clear();
        self.engine.push_row(row, &mut text);
        if text.is_ascii() {
            return above + col;
        }
        // How many columns a character takes depends on the modes in which it was printed: the cells know.
        let (mut chars, mut width) = (0, 0);
        let cells = self.engine.row_cells(row).cells;
        for (at, cell) in cells.iter().enumerate().take(col) {
            if cell.width != Width::Spacer {
                let end = at + if cell.width == Width::Double { 2 } else { 1 };
                if end > col {
                    break;
                }
                (chars, width) = (chars + 1 + cell.marks.len(), end);
            }
        }
        above + chars + col.saturating_sub(width)
    }

    /// Where a character of a live line is shown: the row, counted from the first row of the screen, and the column.
    pub(crate) fn position_of(&self, number: u64, chars: usize) -> Option<(isize, usize)> {
        let rows = self.live_rows_of(number)?;
        let (last, mut left) = (rows.end.checked_sub(1)?, chars);
        let mut text = String::new();
        for row in rows {
            text.clear();
            self.engine.push_row(row, &mut text);
            let here = text.chars().count();
            if left < here || row == last {
                let col = if text.is_ascii() { left } else { self.column_of(row, left) };
                return Some((row as isize - self.index.rows_above as isize, col));
            }
            left -= here;
        }
        None
    }

    /// The column in which a character of a row stands.
    fn column_of(&self, row: usize, chars: usize) -> usize {
        let cells = self.engine.row_cells(row).cells;
        let mut before = 0;
        for (col, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.width != Width::Spacer) {
            if before >= chars {
                return col;
            }
            before += 1 + cell.marks.len();
        }
        cells.len()
    }

    /// Appends the text of a line, without trailing blanks; one that was cut for its length keeps them.
    pub(crate) fn push_text(&self, number: u64, out: &mut String) {
        match self.live(number) {
            Some(line) => {
                let start = out.len();
                let rows = self.index.rows(line);
                let last = rows.end - 1;
                rows.for_each(|row| self.engine.push_row(row, out));
                if !self.engine.row_is_wrapped(last) {
                    out.truncate(start + out[start..].trim_end_matches(' ').len());
                }
            }
            None => {
                let history = self.engine.history();
                let text = history.text(number).unwrap_or_default();
                let text = if history.is_continued(number) { text } else { text.trim_end_matches(' ') };
                out.push_str(text);
            }
        }
    }

    /// The line was cut for its length and goes on in the next one.
    pub(crate) fn is_continued(&self, number: u64) -> bool {
        match self.live(number) {
            Some(line) => self.index.rows(line).last().is_some_and(|row| self.engine.row_is_wrapped(row)),
            None => self.engine.history().is_continued(number),
        }
    }

    /// Appends the text of a line, and where each of its rows ends in it.
    pub(crate) fn push_rows(&self, number: u64, text: &mut String, row_ends: &mut Vec<usize>) {
        let (start, first) = (text.len(), row_ends.len());
        match self.live(number) {
            Some(line) => {
                for row in self.index.rows(line) {
                    self.engine.push_row(row, text);
                    row_ends.push(text.len() - start);
                }
                if row_ends.len() - first > 1 {
                    text.truncate(start);
                    self.push_text(number, text);
                    row_ends[first..].iter_mut().for_each(|end| *end = (text.len() - start).min(*end));
                }
            }
            None => {
                self.push_text(number, text);
                wrap(&text[start..], usize::from(self.engine.size().cols()), row_ends);
            }
        }
    }

    /// The live rows of a line; `None` for a finished one.
    pub(crate) fn live_rows_of(&self, number: u64) -> Option<Range<usize>> {
        self.live(number).map(|line| self.index.rows(line))
    }

    /// Rows of a line that are above the screen.
    pub(crate) fn rows_above_screen(&self, number: u64) -> usize {
        self.live(number).map_or(0, |line| self.index.rows_above.saturating_sub(self.index.start(line)))
    }

    /// Rows of the kept text before a line, at the present width; finished lines are counted as they would be shown.
    pub(crate) fn rows_before(&self, number: u64) -> u64 {
        let (history, cols) = (self.engine.history(), usize::from(self.engine.size().cols()));
        let rows_of = |number: u64| match history.text(number) {
            // Bytes are at least as many as columns.
            Some(text) if text.len() > cols => {
                let mut ends = Vec::new();
                wrap(text, cols, &mut ends);
                ends.len() as u64
            }
            _ => 1,
        };
        let finished: u64 = (self.oldest..number.min(self.first_live)).map(rows_of).sum();
        let live = number.saturating_sub(self.first_live).min(self.index.len() as u64) as usize;
        finished + self.index.start(live) as u64
    }

    /// Rows of the kept text before the screen.
    pub(crate) fn rows_before_screen(&self) -> u64 {
        self.rows_before(self.first_live) + self.index.rows_above as u64
    }

    /// A number that changes with the text of the line.
    pub(crate) fn hash(&self, number: u64, scratch: &mut String) -> u64 {
        scratch.clear();
        self.push_text(number, scratch);
        let mut hasher = DefaultHasher::new();
        scratch.hash(&mut hasher);
        hasher.finish()
    }

    fn live(&self, number: u64) -> Option<usize> {
        number.checked_sub(self.first_live).map(|line| line as usize).filter(|&line| line < self.index.len())
    }
}

/// Notes where the rows of a text end that is wrapped at a width.
fn wrap(text: &str, cols: usize, row_ends: &mut Vec<usize>) {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        let width = c.width().unwrap_or(0);
        if used + width > cols && used > 0 {
            row_ends.push(at);
            used = 0;
        }
        used += width;
    }
    row_ends.push(text.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_line_is_wrapped_by_width_and_keeps_marks_with_their_character() {
        for (text, cols, expected) in [
            ("", 4, vec![0]),
            ("abcd", 4, vec![4]),
            ("abcdef", 4, vec![4, 6]),
            ("a日本", 4, vec![4, 7]),
            ("abce\u{301}f", 4, vec![6, 7]),
        ] {
            let mut ends = Vec::new();
            wrap(text, cols, &mut ends);
            assert_eq!(ends, expected, "{text:?}");
        }
    }
}
