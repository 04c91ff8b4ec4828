//! Changing the size: `Term` reflows, and this keeps it within bounds and puts right what it leaves behind.

use alacritty_terminal::grid::{Dimensions, Grid, Row};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};

use super::machine::{Machine, TermSize};
use crate::screen::Buffer;
use crate::size::Size;

/// Cells, of 24 bytes, that narrowing a window may allocate in one go.
const NARROWING_CELLS: usize = 2 << 20;

impl Machine {
    /// Changes the size. Lines keep their numbers.
    pub(super) fn resize(&mut self, size: Size) {
        self.prepare_resize(size);
        // The engine splits a row from its front, and every piece keeps the memory of all that followed it. Halving the
        // width at a time, and giving the memory back in between, keeps the sum in proportion.
        while self.cost_of_narrowing(size) > NARROWING_CELLS {
            let halfway = Size::new((self.cols() / 2) as u16, size.rows()).unwrap_or(size);
            self.term.resize(TermSize(halfway));
            self.fit_row_memory();
        }
        let narrower = usize::from(size.cols()) < self.cols();
        self.term.resize(TermSize(size));
        if narrower {
            self.fit_row_memory();
        }
        self.finish_resize();
    }

    /// Cells that the engine would allocate to narrow the window in one go.
    fn cost_of_narrowing(&self, size: Size) -> usize {
        let (old, new) = (self.cols(), usize::from(size.cols()));
        if old < 2 * new { 0 } else { self.term.grid().total_lines() * old * (old / (2 * new)) }
    }

    /// Gives back what rows hold beyond their cells, on both screens.
    fn fit_row_memory(&mut self) {
        fit_rows(self.term.grid_mut());
        self.look_at_main();
        fit_rows(self.term.grid_mut());
        self.back_to_active();
    }

    /// Before a resize: rows that a narrower window would multiply beyond measure leave now.
    fn prepare_resize(&mut self, size: Size) {
        let (old, new) = (self.cols(), usize::from(size.cols()));
        self.look_at_main();
        let most = 4 * self.limits.live_rows;
        if self.term.grid().history_size() * old > most * new {
            self.drain((most * new / old).min(self.limits.live_rows));
        }
        if new == 1 {
            self.give_up_wide_characters();
        }
        self.back_to_active();
    }

    /// After a resize: back to the usual number of live rows, and no half characters at the edge.
    fn finish_resize(&mut self) {
        self.region = 0..self.rows();
        self.reset_columns();
        self.kept_alternate = None;
        self.spare_alternate = None;
        self.begin_epoch();
        self.tidy_grid();
        self.look_at_main();
        self.tidy_grid();
        self.restart_occupancy();
        self.drain_if_full();
        self.back_to_active();
        self.drop_spare_rows();
    }

    /// The engine keeps up to a thousand rows that it no longer shows, on each screen and in the width that they had, and
    /// allocates as many for one row more. After a large window that is tens of megabytes.
    fn drop_spare_rows(&mut self) {
        self.term.grid_mut().truncate();
        match self.buffer() {
            Buffer::Alternate => {
                self.look_at_main();
                self.term.grid_mut().truncate();
                self.back_to_active();
            }
            // What is on the hidden screen does not matter: it is empty when it is shown.
            Buffer::Main => {
                self.term.swap_alt();
                self.term.grid_mut().truncate();
                self.term.swap_alt();
            }
        }
    }

    /// A wide character has no place in a terminal of one column: the engine would try for ever.
    fn give_up_wide_characters(&mut self) {
        let grid = self.term.grid_mut();
        let top = -(grid.history_size() as i32);
        for line in top..grid.screen_lines() as i32 {
            for cell in &mut grid[Line(line)][..] {
                if cell.flags.contains(Flags::WIDE_CHAR) {
                    cell.c = char::REPLACEMENT_CHARACTER;
                }
                cell.flags.remove(Flags::WIDE_CHAR | Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER);
            }
        }
    }

    /// What the engine leaves behind in the grid that is looked at.
    fn tidy_grid(&mut self) {
        self.clear_old_edges();
        self.mark_rows_written();
        self.move_pending_wrap();
    }

    /// A wrap that was pending at the old edge is none inside a wider row: the next character goes behind the last.
    fn move_pending_wrap(&mut self) {
        let last = self.cols() - 1;
        let cursor = self.cursor();
        if cursor.input_needs_wrap && cursor.point.column.0 < last {
            cursor.input_needs_wrap = false;
            cursor.point.column += 1;
        }
    }

    /// A row that was cleared to a background and then widened has cells of two kinds, but the engine believes that
    /// nothing was written to it, and would leave the old background there when the row is used again.
    fn mark_rows_written(&mut self) {
        let grid = self.term.grid_mut();
        for line in -(grid.history_size() as i32)..grid.screen_lines() as i32 {
            // Asking for the last cell to write to it is what marks a row.
            let _ = grid[Line(line)].last_mut();
        }
    }

    /// On a screen that does not reflow, a narrower edge may have cut a wide character in two, and in a wider row the marks
    /// of the old edge stand in the middle: the gap before a wide character, and the wrap.
    fn clear_old_edges(&mut self) {
        let grid = self.term.grid_mut();
        let last = grid.columns() - 1;
        for line in (0..grid.screen_lines() as i32).map(Line) {
            if grid[line][Column(last)].flags.contains(Flags::WIDE_CHAR) {
                grid[line][Column(last)].clear_wide();
            }
            for cell in &mut grid[line][..Column(last)] {
                cell.flags.remove(Flags::LEADING_WIDE_CHAR_SPACER | Flags::WRAPLINE);
            }
        }
    }
}

/// Copies every row into memory of its own length.
fn fit_rows(grid: &mut Grid<Cell>) {
    for line in (-(grid.history_size() as i32)..grid.screen_lines() as i32).map(Line) {
        let cells = grid[line][..].to_vec();
        let len = cells.len();
        grid[line] = Row::from_vec(cells, len);
    }
}
