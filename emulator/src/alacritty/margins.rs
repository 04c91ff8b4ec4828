//! Left and right margins (DECLRMM, DECSLRM): the columns that text, scrolling and editing are confined to.
//!
//! `Term` has none. Without margins the columns are the whole width and [`Machine::narrowed`] is false, so that the common
//! path pays for one branch. Rows between the margins are parts of rows: what scrolls there never goes into the history,
//! and a wrap at the right margin joins no rows.

use std::ops::Range;

use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::TermMode;

use super::machine::Machine;
use super::print::clear_half;

/// Cells that are moved to another row in the time in which one is written.
const MOVES_PER_CELL: usize = 4;

impl Machine {
    /// DECLRMM: without the mode there are no margins.
    pub(super) fn set_margin_mode(&mut self, on: bool) {
        self.margin_mode = on;
        if !on {
            self.reset_columns();
        }
    }

    /// No margins: the columns are those of the screen.
    pub(super) fn reset_columns(&mut self) {
        self.columns = 0..self.cols();
        self.narrowed = false;
    }

    /// DECSLRM: margins that leave fewer than two columns are ignored; otherwise the cursor goes home.
    pub(super) fn set_columns(&mut self, left: usize, right: usize) {
        let right = right.min(self.cols());
        if left + 1 < right {
            self.columns = left..right;
            self.narrowed = self.columns.len() < self.cols();
            self.go_to(0, 0);
        }
    }

    /// CUP: in origin mode the position counts from the margins and stays within them.
    pub(super) fn go_to(&mut self, row: usize, col: usize) {
        if self.has_mode(TermMode::ORIGIN) {
            let (region, columns) = (self.region.clone(), self.columns.clone());
            self.place_cursor((region.start + row).min(region.end - 1), (columns.start + col).min(columns.end - 1));
        } else {
            self.place_cursor(row, col);
        }
    }

    /// The cursor is between the left and the right margin.
    pub(super) fn is_in_columns(&self) -> bool {
        !self.narrowed || self.columns.contains(&self.col())
    }

    /// The cursor is inside all four margins.
    pub(super) fn is_in_margins(&self) -> bool {
        self.region.contains(&self.row()) && self.is_in_columns()
    }

    /// Column after the last one that text at the cursor may take: right of the right margin the edge of the screen counts.
    #[inline]
    pub(super) fn line_end(&self) -> usize {
        if self.narrowed && self.col() < self.columns.end { self.columns.end } else { self.cols() }
    }

    /// Where a return of the carriage leads: left of the left margin to the edge of the screen, except in origin mode.
    #[inline]
    pub(super) fn line_start(&self) -> usize {
        let outside = self.narrowed && self.col() < self.columns.start && !self.has_mode(TermMode::ORIGIN);
        if outside { 0 } else { self.columns.start }
    }

    /// First column that moving left stops at.
    pub(super) fn left_stop(&self, col: usize) -> usize {
        if col >= self.columns.start { self.columns.start } else { 0 }
    }

    /// Moves the cells between the margins up, from `rows.start` on; blanks come in below.
    pub(super) fn scroll_columns_up(&mut self, rows: Range<usize>, count: usize) {
        let count = count.min(rows.len());
        let below = rows.end - count..rows.end;
        if !self.may_move_columns(&rows, &below) {
            return;
        }
        self.detach_columns(rows.clone());
        for row in rows.start..rows.end - count {
            self.swap_columns(row + count, row);
        }
        self.blank_columns(below);
    }

    /// Moves the cells between the margins down, from `rows.start` on; blanks come in above.
    pub(super) fn scroll_columns_down(&mut self, rows: Range<usize>, count: usize) {
        let count = count.min(rows.len());
        let above = rows.start..rows.start + count;
        if !self.may_move_columns(&rows, &above) {
            return;
        }
        self.detach_columns(rows.clone());
        for row in (rows.start + count..rows.end).rev() {
            self.swap_columns(row - count, row);
        }
        self.blank_columns(above);
    }

    /// There is work left to move the cells of these rows. If not, only those that come in are blanked, at best: a line feed
    /// is one byte, and moves all that is between the margins.
    fn may_move_columns(&mut self, rows: &Range<usize>, incoming: &Range<usize>) -> bool {
        let width = self.columns.len();
        let affordable = self.work.take(rows.len() * width / MOVES_PER_CELL);
        if !affordable && self.work.take(incoming.len() * width) {
            self.detach_columns(incoming.clone());
            self.blank_columns(incoming.clone());
        }
        affordable
    }

    /// Separates the cells between the margins from what is beside them: no wide character reaches over a margin, and no row
    /// continues another.
    fn detach_columns(&mut self, rows: Range<usize>) {
        let columns = self.columns.clone();
        for row in rows.start..=rows.end.min(self.rows() - 1) {
            self.end_wrap_into(row);
        }
        for row in rows {
            let cells = self.cells(row);
            clear_half(cells, columns.start);
            clear_half(cells, columns.end);
        }
    }

    /// Moves cells to another row; what was there takes their place and is blanked or moved in the end. Cheaper than copies.
    fn swap_columns(&mut self, from: usize, to: usize) {
        let columns = Column(self.columns.start)..Column(self.columns.end);
        let grid = self.term.grid_mut();
        let mut taken = std::mem::take(&mut grid[Line(from as i32)]);
        grid[Line(to as i32)][columns.clone()].swap_with_slice(&mut taken[columns]);
        grid[Line(from as i32)] = taken;
    }

    fn blank_columns(&mut self, rows: Range<usize>) {
        let columns = Column(self.columns.start)..Column(self.columns.end);
        let blank = self.blank();
        for row in rows {
            self.cells(row)[columns.clone()].fill(blank.clone());
        }
    }

    /// DECBI: left a column; at the left margin the columns move right instead.
    pub(super) fn back_index(&mut self) {
        let (row, col) = (self.row(), self.col());
        if col == self.columns.start && self.region.contains(&row) {
            self.insert_columns(col, 1);
        } else {
            self.place_cursor(row, col.saturating_sub(1));
        }
    }

    /// DECFI: right a column; at the right margin the columns move left instead.
    pub(super) fn forward_index(&mut self) {
        let (row, col) = (self.row(), self.col());
        if col + 1 == self.columns.end && self.region.contains(&row) {
            self.delete_columns(self.columns.start, 1);
        } else {
            self.place_cursor(row, col + 1);
        }
    }
}
