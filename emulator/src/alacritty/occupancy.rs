//! What is known of each live row without looking at its cells: how far it is written, and whether it is plain.
//!
//! The engine knows the first of its rows but does not tell. A short line in a wide terminal is two bytes of text and
//! three kilobytes of blank cells, so this decides the speed of `yes` and `seq`; and most rows are in the default look
//! throughout, which spares the drain a comparison for each cell. The bound may be too large, never too small, and a row
//! counted as styled may be plain, never the reverse: whoever writes cells in a way not followed here calls
//! [`Occupancy::forget`].

use std::collections::VecDeque;
use std::ops::Range;

/// What a row may hold. Columns fit below the bit that marks other looks than the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Content(u16);

impl Content {
    const BLANK: Self = Self(0);
    const STYLED: u16 = 1 << 15;

    fn anything(cols: usize) -> Self {
        Self(cols as u16 | Self::STYLED)
    }

    fn cols(self) -> usize {
        usize::from(self.0 & !Self::STYLED)
    }

    fn is_plain(self) -> bool {
        self.0 & Self::STYLED == 0
    }
}

/// The rows of the main screen, oldest first.
#[derive(Debug)]
pub(super) struct Occupancy {
    rows: VecDeque<Content>,
    screen_rows: usize,
    cols: usize,
}

impl Occupancy {
    /// Nothing is known yet of `live` rows, the last `screen_rows` of which are the screen.
    pub(super) fn unknown(live: usize, screen_rows: usize, cols: usize) -> Self {
        Self { rows: std::iter::repeat_n(Content::anything(cols), live).collect(), screen_rows, cols }
    }

    /// The terminal is as new: a blank screen and nothing above it.
    pub(super) fn reset(&mut self, screen_rows: usize) {
        self.rows.clear();
        self.rows.resize(screen_rows, Content::BLANK);
    }

    /// Rows of the screen were blanked in the default look.
    pub(super) fn blank(&mut self, rows: Range<usize>) {
        let screen = self.rows.len() - self.screen_rows;
        self.rows.range_mut(screen + rows.start..screen + rows.end).for_each(|content| *content = Content::BLANK);
    }

    /// These rows of the screen without the blank ones at both ends.
    pub(super) fn unless_blank(&self, rows: Range<usize>) -> Range<usize> {
        let screen = self.rows.len() - self.screen_rows;
        let is_used = |content: &Content| *content != Content::BLANK;
        let first = self.rows.range(screen + rows.start..screen + rows.end).position(is_used);
        let Some(first) = first else { return rows.start..rows.start };
        let last = self.rows.range(screen + rows.start..screen + rows.end).rposition(is_used).unwrap_or(first);
        rows.start + first..rows.start + last + 1
    }

    /// A row of the screen was written up to a column, in the default look or in another.
    #[inline]
    pub(super) fn write(&mut self, row: usize, end: usize, plain: bool) {
        let index = self.rows.len() - self.screen_rows + row;
        if let Some(content) = self.rows.get_mut(index) {
            let styled = if plain { content.0 & Content::STYLED } else { Content::STYLED };
            *content = Content(content.cols().max(end) as u16 | styled);
        }
    }

    /// All rows moved up by `count` and blank rows came in below.
    #[inline]
    pub(super) fn scroll(&mut self, count: usize) {
        for _ in 0..count {
            self.rows.push_back(Content::BLANK);
        }
    }

    /// Rows of the screen may hold anything.
    pub(super) fn forget(&mut self, rows: Range<usize>) {
        let screen = self.rows.len() - self.screen_rows;
        let anything = Content::anything(self.cols);
        self.rows.range_mut(screen + rows.start..screen + rows.end).for_each(|content| *content = anything);
    }

    /// Any row of the screen may hold anything.
    pub(super) fn forget_screen(&mut self) {
        self.forget(0..self.screen_rows);
    }

    /// The oldest rows left.
    pub(super) fn drain(&mut self, count: usize) {
        self.rows.drain(..count);
    }

    /// Columns of a live row, counted from the oldest, that may be written.
    pub(super) fn written(&self, row: usize) -> usize {
        self.rows.get(row).map_or(self.cols, |content| content.cols())
    }

    /// A live row may be written to its last column.
    pub(super) fn is_full(&self, row: usize) -> bool {
        self.written(row) == self.cols
    }

    /// Everything in a live row is in the default look.
    pub(super) fn is_plain(&self, row: usize) -> bool {
        self.rows[row].is_plain()
    }
}
