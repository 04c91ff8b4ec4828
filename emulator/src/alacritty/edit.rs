//! Editing the screen: erase, insert and delete cells, columns and lines, with both halves of a wide
//! character treated as one.
//!
//! `Term` has most of these, but erases to the wrong side (DCH past the end), skips row 1 (ED 1 on row 2),
//! leaves half characters behind, or lacks them (DECSED, SL, DECIC and their like). Each function here is one
//! operation done right.

use std::ops::Range;

use alacritty_terminal::grid::{Dimensions, Row};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};

use super::cells::{self, PROTECTED};
use super::machine::Machine;
use super::print::clear_half;
use crate::screen::Buffer;

/// Which cells an erase spares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Erase {
    /// None (ED, EL), except what SPA guards.
    All,
    /// Those that DECSCA protects (DECSED, DECSEL).
    Unprotected,
}

/// Which erases spare protected cells. A cell has one mark for both kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Protection {
    /// The selective ones: DECSCA protects.
    #[default]
    Selective,
    /// The ordinary ones: SPA and EPA guard an area.
    Guarded,
}

impl Machine {
    /// ED 0: from the cursor to the end of the screen.
    pub(super) fn erase_below(&mut self, kind: Erase) {
        let row = self.row();
        self.erase_line_right(kind);
        self.erase_rows(row + 1..self.rows(), kind);
    }

    /// ED 1: from the top of the screen to the cursor.
    pub(super) fn erase_above(&mut self, kind: Erase) {
        let (row, col) = (self.row(), self.col());
        self.erase_rows(0..row, kind);
        self.erase_cells(row, 0..col + 1, kind);
    }

    /// ED 2: the whole screen. On the main screen its text moves into the history instead of being lost.
    pub(super) fn erase_screen(&mut self, kind: Erase) {
        if self.buffer() == Buffer::Alternate || kind == Erase::Unprotected || self.spares_protected(kind) {
            self.erase_rows(0..self.rows(), kind);
            return;
        }
        let used = self.used_rows();
        let rows = self.rows();
        self.end_wrap_into(used);
        if used > 0 {
            // What scrolls in is blanked in the colour of the erase.
            let colour = self.erase_colour(used);
            let template = std::mem::replace(&mut self.cursor().template, colour);
            self.term.grid_mut().scroll_up(&(Line(0)..Line(rows as i32)), used);
            self.cursor().template = template;
        }
        self.occupancy.scroll(used);
        self.occupancy.forget(rows - used..rows);
        self.erase_rows(0..rows, kind);
        self.drain_if_full();
    }

    /// EL 0. With a wrap pending the cursor is behind the last cell: nothing is right of it.
    pub(super) fn erase_line_right(&mut self, kind: Erase) {
        if !self.cursor().input_needs_wrap {
            let (row, col) = (self.row(), self.col());
            self.erase_cells(row, col..self.cols(), kind);
        }
    }

    /// EL 1.
    pub(super) fn erase_line_left(&mut self, kind: Erase) {
        let (row, col) = (self.row(), self.col());
        self.erase_cells(row, 0..col + 1, kind);
    }

    /// EL 2.
    pub(super) fn erase_line(&mut self, kind: Erase) {
        let row = self.row();
        self.erase_cells(row, 0..self.cols(), kind);
    }

    /// ECH.
    pub(super) fn erase_chars(&mut self, count: usize) {
        let (row, col) = (self.row(), self.col());
        self.erase_cells(row, col..(col + count).min(self.cols()), Erase::All);
        self.cursor().input_needs_wrap = false;
    }

    /// ICH. On the second half of a wide character the blanks go behind it: nothing has to be cut in two.
    pub(super) fn insert_chars(&mut self, count: usize) {
        let (row, col) = (self.row(), self.col());
        let on_second_half = self.term.grid()[Line(row as i32)][Column(col)].flags.contains(Flags::WIDE_CHAR_SPACER);
        self.insert_cells(row, (col + usize::from(on_second_half)).min(self.cols()), count);
        self.cursor().input_needs_wrap = false;
    }

    /// DCH.
    pub(super) fn delete_chars(&mut self, count: usize) {
        let (row, col) = (self.row(), self.col());
        self.delete_cells(row, col, count);
        self.cursor().input_needs_wrap = false;
    }

    /// SR from the first column, DECIC from the cursor's: blank columns in every row of the scroll region. Like all
    /// of these, only when the cursor is inside the margins.
    pub(super) fn insert_columns(&mut self, col: usize, count: usize) {
        if self.is_in_margins() && self.work.take(2 * self.region.len() * self.columns.len()) {
            self.region.clone().for_each(|row| self.insert_cells(row, col, count));
        }
    }

    /// SL from the first column, DECDC from the cursor's: columns go in every row of the scroll region.
    pub(super) fn delete_columns(&mut self, col: usize, count: usize) {
        if self.is_in_margins() && self.work.take(2 * self.region.len() * self.columns.len()) {
            self.region.clone().for_each(|row| self.delete_cells(row, col, count));
        }
    }

    /// IL: inside the margins only; the cursor goes to the first column.
    pub(super) fn insert_lines(&mut self, count: usize) {
        let row = self.row();
        if self.is_in_margins() {
            self.scroll_rows_down(row, count);
            self.carriage_return();
        }
    }

    /// DL: inside the margins only; the cursor goes to the first column. What is deleted is gone: it does not
    /// go into the history, not even at the top of the screen.
    pub(super) fn delete_lines(&mut self, count: usize) {
        let (row, end) = (self.row(), self.region.end);
        if !self.is_in_margins() {
            return;
        }
        if self.narrowed {
            self.scroll_columns_up(row..end, count);
            return self.carriage_return();
        }
        let count = count.min(end - row);
        self.end_wrap_into(row);
        self.end_wrap_out_of_region();
        let grid = self.term.grid_mut();
        for target in row..end - count {
            let moved = std::mem::take(&mut grid[Line((target + count) as i32)]);
            let freed = std::mem::replace(&mut grid[Line(target as i32)], moved);
            grid[Line((target + count) as i32)] = freed;
        }
        grid.reset_region(Line((end - count) as i32)..Line(end as i32));
        self.forget_occupancy(row..end);
        self.carriage_return();
    }

    /// SD: rows of the scroll region move down.
    pub(super) fn scroll_down(&mut self, count: usize) {
        self.scroll_rows_down(self.region.start, count);
    }

    /// Moves the rows from `top` to the bottom margin down; blank rows come in above them.
    fn scroll_rows_down(&mut self, top: usize, count: usize) {
        let end = self.region.end;
        if self.narrowed {
            return self.scroll_columns_down(top..end, count);
        }
        self.end_wrap_into(top);
        self.term.grid_mut().scroll_down(&(Line(top as i32)..Line(end as i32)), count.min(end - top));
        // What followed the row that is now at the margin was pushed out.
        self.end_wrap_into(end);
        self.forget_occupancy(top..end);
    }

    /// RI: up a row, scrolling at the top margin. A pending wrap is dropped, as in xterm.
    pub(super) fn reverse_index(&mut self) {
        let row = self.row();
        self.cursor().input_needs_wrap = false;
        if row == self.region.start {
            if self.is_in_columns() {
                self.scroll_down(1);
            }
        } else if row > 0 {
            self.cursor().point.line = Line(row as i32 - 1);
        }
    }

    /// Rows of the screen down to the last one that is not blank.
    pub(super) fn used_rows(&self) -> usize {
        let grid = self.term.grid();
        let above = grid.history_size();
        let is_used =
            |row: &usize| self.written(above + row) > 0 && !grid[Line(*row as i32)][..].iter().all(cells::is_blank);
        (0..self.rows()).rev().find(is_used).map_or(0, |row| row + 1)
    }

    /// Erases whole rows. Those that are blank already cost nothing, and others what it cost to write them.
    fn erase_rows(&mut self, rows: Range<usize>, kind: Erase) {
        if rows.is_empty() {
            return;
        }
        if self.spares_protected(kind) {
            // Each cell has to be looked at.
            if self.work.take(rows.len() * self.cols()) {
                rows.for_each(|row| self.erase_some_cells(row, 0..self.cols(), kind));
            }
            return;
        }
        if kind == Erase::All {
            self.end_wrap_into(rows.start);
        }
        let colour = self.erase_colour(rows.len());
        let rows = if cells::is_blank(&colour) { self.unless_blank(rows) } else { rows };
        let template = std::mem::replace(&mut self.cursor().template, colour);
        self.term.grid_mut().reset_region(Line(rows.start as i32)..Line(rows.end as i32));
        self.note_erased_rows(rows);
        self.cursor().template = template;
    }

    /// These rows without those at both ends that are known to be blank in the default look.
    fn unless_blank(&self, rows: Range<usize>) -> Range<usize> {
        match self.buffer() {
            Buffer::Main => self.occupancy.unless_blank(rows),
            Buffer::Alternate => rows,
        }
    }

    /// A blank cell on the present background, or on the default one: it takes all cells of a row to change its colour,
    /// and three bytes to ask for that.
    fn erase_colour(&mut self, rows: usize) -> Cell {
        let blank = self.blank();
        let affordable = cells::is_blank(&blank) || self.work.take(rows * self.cols());
        if affordable { blank } else { Cell::default() }
    }

    /// Protected cells stay in an erase of this kind.
    fn spares_protected(&self, kind: Erase) -> bool {
        self.has_protected && (kind == Erase::Unprotected) == (self.protection == Protection::Selective)
    }

    pub(super) fn erase_cells(&mut self, row: usize, range: Range<usize>, kind: Erase) {
        if range == (0..self.cols()) {
            self.erase_rows(row..row + 1, kind);
        } else {
            self.erase_some_cells(row, range, kind);
        }
    }

    fn erase_some_cells(&mut self, row: usize, range: Range<usize>, kind: Erase) {
        let spares = self.spares_protected(kind);
        if range.start == 0 && kind == Erase::All && range.end == self.cols() {
            self.end_wrap_into(row);
        }
        let blank = self.blank();
        let cells = self.cells(row);
        clear_half(cells, range.start);
        clear_half(cells, range.end);
        for cell in &mut cells[Column(range.start)..Column(range.end)] {
            if !(spares && cell.flags.contains(PROTECTED)) {
                *cell = blank.clone();
            }
        }
    }

    /// A row that was emptied, or replaced by another, no longer continues the one above it.
    pub(super) fn end_wrap_into(&mut self, row: usize) {
        if row > 0 {
            let above = Line(row as i32 - 1);
            if cells::is_wrapped(&self.term.grid()[above]) {
                unwrap_row(&mut self.term.grid_mut()[above]);
            }
        }
    }

    /// The last row of the scroll region is about to move away from the row that continues it below the region.
    pub(super) fn end_wrap_out_of_region(&mut self) {
        if self.region.end < self.rows() {
            self.end_wrap_into(self.region.end);
        }
    }

    /// Inserts blanks; what is between them and the right margin moves. Outside of the margins nothing happens.
    pub(super) fn insert_cells(&mut self, row: usize, col: usize, count: usize) {
        let Range { start, end } = self.columns;
        if !(start..=end).contains(&col) {
            return;
        }
        let blank = self.blank();
        let cells = self.cells(row);
        let count = count.min(end - col);
        clear_half(cells, col);
        clear_half(cells, end - count);
        clear_half(cells, end);
        unwrap_row(cells);
        cells[Column(col)..Column(end)].rotate_right(count);
        cells[Column(col)..Column(col + count)].fill(blank);
    }

    /// Deletes cells; what is between them and the right margin moves. Outside of the margins nothing happens.
    fn delete_cells(&mut self, row: usize, col: usize, count: usize) {
        let Range { start, end } = self.columns;
        if !(start..=end).contains(&col) {
            return;
        }
        let blank = self.blank();
        let cells = self.cells(row);
        let count = count.min(end - col);
        clear_half(cells, col);
        clear_half(cells, col + count);
        clear_half(cells, end);
        unwrap_row(cells);
        cells[Column(col)..Column(end)].rotate_left(count);
        cells[Column(end - count)..Column(end)].fill(blank);
    }

    /// The cells of a row, to be changed anywhere.
    pub(super) fn cells(&mut self, row: usize) -> &mut Row<Cell> {
        self.forget_occupancy(row..row + 1);
        &mut self.term.grid_mut()[Line(row as i32)]
    }

    /// What erased cells become: a blank on the current background.
    pub(super) fn blank(&mut self) -> Cell {
        self.cursor().template.bg.into()
    }
}

/// The row ends here: it does not go on in the next one, and leaves no gap for a wide character there.
fn unwrap_row(cells: &mut Row<Cell>) {
    if let Some(last) = cells.last_mut() {
        last.flags.remove(Flags::WRAPLINE | Flags::LEADING_WIDE_CHAR_SPACER);
    }
}
