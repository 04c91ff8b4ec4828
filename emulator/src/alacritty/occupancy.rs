//! How far each live row is written: an upper bound that spares the drain a look at every blank cell.
//!
//! The engine knows this of its rows but does not tell. A short line in a wide terminal is two bytes of text and
//! three kilobytes of blank cells, so the bound decides the speed of `yes` and `seq`. It may be too large, never too
//! small: whoever writes cells in a way not followed here calls [`Occupancy::forget_screen`].

use std::collections::VecDeque;
use std::ops::Range;

/// Written columns of the live rows of the main screen, oldest first.
#[derive(Debug)]
pub(super) struct Occupancy {
    written: VecDeque<u16>,
    rows: usize,
    cols: u16,
}

impl Occupancy {
    /// Nothing is known yet of `live` rows, the last `rows` of which are the screen.
    pub(super) fn unknown(live: usize, rows: usize, cols: usize) -> Self {
        let cols = cols as u16;
        Self { written: std::iter::repeat_n(cols, live).collect(), rows, cols }
    }

    /// A row of the screen was written up to a column.
    #[inline]
    pub(super) fn write(&mut self, row: usize, end: usize) {
        let index = self.written.len() - self.rows + row;
        if let Some(written) = self.written.get_mut(index) {
            *written = (*written).max(end as u16);
        }
    }

    /// All rows moved up by `count` and blank rows came in below.
    #[inline]
    pub(super) fn scroll(&mut self, count: usize) {
        for _ in 0..count {
            self.written.push_back(0);
        }
    }

    /// Rows of the screen may be written to their end.
    pub(super) fn forget(&mut self, rows: Range<usize>) {
        let screen = self.written.len() - self.rows;
        self.written.range_mut(screen + rows.start..screen + rows.end).for_each(|written| *written = self.cols);
    }

    /// Any row of the screen may be written to its end.
    pub(super) fn forget_screen(&mut self) {
        self.forget(0..self.rows);
    }

    /// The oldest rows left.
    pub(super) fn drain(&mut self, count: usize) {
        self.written.drain(..count);
    }

    /// Written columns of a live row, counted from the oldest.
    pub(super) fn of(&self, row: usize) -> usize {
        usize::from(self.written[row])
    }

    /// A live row may be written to its last column.
    pub(super) fn is_full(&self, row: usize) -> bool {
        self.written[row] == self.cols
    }
}
