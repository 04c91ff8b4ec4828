//! Moving logical lines from the live grid into the history, and clearing both.
//!
//! Only whole lines leave, oldest first, and some rows always stay: growing the window pulls rows back from
//! the live history, and the engine clears a blank screen wrongly when it has no history at all. On the
//! alternate screen nothing leaves: its grid has no history.

use alacritty_terminal::grid::{Dimensions, Grid, Row};
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::vte::ansi::{Color, NamedColor};

use super::cells;
use super::machine::{ENGINE_ROWS, Machine};
use super::occupancy::Occupancy;
use crate::history::{LineWriter, Look};
use crate::screen::Buffer;

/// Rows moved at a time, so that a flood pays for the bookkeeping once in a hundred lines.
const BATCH: usize = 128;

impl Machine {
    /// Drains when the live history is full. Cheap enough to ask after every scroll.
    #[inline]
    pub(super) fn drain_if_full(&mut self) {
        let full = self.full_at();
        if self.term.grid().history_size() >= full {
            self.drain(full.saturating_sub(BATCH));
        }
    }

    /// Rows above the screen at which a drain is due: with the screen they stay within the engine's first
    /// allocation of a thousand rows, also after an operation that adds a whole screen.
    fn full_at(&self) -> usize {
        let live = self.limits.live_rows;
        live.saturating_sub(self.rows()).max(live / 2).max(2)
    }

    /// Moves whole lines into the history as long as at least `keep` rows stay, and always one.
    pub(super) fn drain(&mut self, keep: usize) {
        self.drain_lines(keep, self.limits.rows_of_longest_line(self.size()));
    }

    /// Moves all rows above the screen but one, also those of a line that goes on: it is cut as one that is too long.
    pub(super) fn drain_cutting(&mut self) {
        self.drain_lines(1, self.rows());
        // Lines begin at other rows than their length tells.
        self.begin_epoch();
    }

    fn drain_lines(&mut self, keep: usize, longest: usize) {
        let total = self.term.grid().history_size();
        let limit = total.saturating_sub(keep.max(1));
        let mut drained = 0;
        while let Some((len, continued)) = self.next_line(drained, limit, longest) {
            let grid = self.term.grid();
            let mut writer = self.history.begin_line();
            for row in drained..drained + len {
                let cells = cells::content(row_at(grid, row), self.occupancy.written(row));
                if self.occupancy.is_plain(row) {
                    debug_assert!(cells.iter().all(cells::is_plain), "a row is written in a look that was not noted");
                    cells::push_cells(cells, writer.text());
                } else {
                    write_styled(&mut writer, cells);
                }
            }
            writer.finish(continued);
            drained += len;
        }
        if drained > 0 {
            self.history.trim();
            self.term.grid_mut().update_history(total - drained);
            self.term.grid_mut().update_history(ENGINE_ROWS);
            self.occupancy.drain(drained);
            self.drained_rows += drained as u64;
        }
    }

    /// Length in rows of the line that begins at a live row and ends before `limit`; whether it was cut.
    fn next_line(&self, start: usize, limit: usize, longest: usize) -> Option<(usize, bool)> {
        let grid = self.term.grid();
        for row in start..limit {
            // A row that is not written to its end cannot go on, and its last cell need not be fetched.
            let goes_on = self.occupancy.is_full(row) && cells::is_wrapped(row_at(grid, row));
            let len = row + 1 - start;
            if !goes_on || len == longest {
                return Some((len, goes_on));
            }
        }
        None
    }

    /// ED 3: what is above the screen is gone, and counted. The line that reaches into the screen keeps
    /// its number.
    pub(super) fn clear_scrollback(&mut self) {
        if self.buffer() == Buffer::Alternate {
            return;
        }
        let above = self.term.grid().history_size();
        let (lines, _) = self.count_lines(above);
        self.history.clear(self.history.next() + lines);
        self.term.grid_mut().clear_history();
        self.occupancy.drain(above);
        self.begin_epoch();
    }

    /// RIS: every line is gone, and counted, the screen's too. The main screen is shown.
    pub(super) fn forget_lines(&mut self) {
        let grid = self.term.grid();
        let has_text = |row: &usize| self.written(*row) > 0 && cells::has_text(row_at(grid, *row));
        let above = grid.history_size();
        let rows = (above..grid.total_lines()).rev().find(has_text).map_or(above, |row| row + 1);
        let (lines, open) = self.count_lines(rows);
        self.history.clear(self.history.next() + lines + u64::from(open));
        self.begin_epoch();
    }

    /// Complete lines in the first `rows` live rows, and whether an open one follows.
    fn count_lines(&self, rows: usize) -> (u64, bool) {
        let longest = self.limits.rows_of_longest_line(self.size());
        let (mut at, mut lines) = (0, 0);
        while let Some((len, _)) = self.next_line(at, rows, longest) {
            at += len;
            lines += 1;
        }
        (lines, at < rows)
    }

    pub(super) fn begin_epoch(&mut self) {
        self.epoch += 1;
        self.drained_rows = 0;
    }

    /// Gives the rows above the screen up for good; a larger window shows blank rows instead.
    pub(super) fn drain_everything(&mut self) {
        self.look_at_main();
        self.drain(1);
        self.spare_alternate = None;
        self.term.grid_mut().truncate();
        self.back_to_active();
        self.term.grid_mut().truncate();
        self.history.shrink();
    }

    /// The rows of the main screen were rearranged.
    pub(super) fn restart_occupancy(&mut self) {
        let grid = self.term.grid();
        self.occupancy = Occupancy::unknown(grid.total_lines(), grid.screen_lines(), grid.columns());
    }

    /// Columns of a live row that may be written. Of the alternate screen nothing is known.
    pub(super) fn written(&self, row: usize) -> usize {
        match self.buffer() {
            Buffer::Main => self.occupancy.written(row),
            Buffer::Alternate => self.cols(),
        }
    }

    /// Rows of the screen were erased on the background of the cursor.
    pub(super) fn note_erased_rows(&mut self, rows: std::ops::Range<usize>) {
        let is_default = self.term.grid().cursor.template.bg == Color::Named(NamedColor::Background);
        match self.buffer() {
            Buffer::Main if is_default => self.occupancy.blank(rows),
            Buffer::Main => self.occupancy.forget(rows),
            Buffer::Alternate => (),
        }
    }

    /// Rows of the screen were written in a way that is not followed.
    pub(super) fn forget_occupancy(&mut self, rows: std::ops::Range<usize>) {
        if self.buffer() == Buffer::Main {
            self.occupancy.forget(rows);
        }
    }
}

/// A live row, counted from the oldest.
pub(super) fn row_at(grid: &Grid<Cell>, row: usize) -> &Row<Cell> {
    &grid[Line(row as i32 - grid.history_size() as i32)]
}

/// Appends the cells of a row, one run of equal look after the other.
fn write_styled(writer: &mut LineWriter<'_>, mut cells: &[Cell]) {
    while let Some(first) = cells.first() {
        let len = 1 + cells[1..].iter().take_while(|cell| cells::same_look(first, cell)).count();
        let (run, rest) = cells.split_at(len);
        writer.set_look(cells::look(first));
        cells::push_cells(run, writer.text());
        cells = rest;
    }
    writer.set_look(Look::default());
}
