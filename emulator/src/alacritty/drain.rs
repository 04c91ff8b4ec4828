//! Moving logical lines from the live grid into the history, and clearing both.
//!
//! Only whole lines leave, oldest first, and some rows always stay: growing the window pulls rows back from
//! the live history, and the engine clears a blank screen wrongly when it has no history at all. On the
//! alternate screen nothing leaves: its grid has no history.

use alacritty_terminal::grid::{Dimensions, Grid, Row};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};

use super::cells;
use super::machine::{ENGINE_ROWS, Machine, TermSize};
use super::occupancy::Occupancy;
use crate::history::LineWriter;
use crate::screen::Buffer;
use crate::size::Size;

/// Rows moved at a time, so that a flood pays for the bookkeeping once in a hundred lines.
const BATCH: usize = 128;
/// Cells, of 24 bytes, that narrowing a window may allocate in one go.
const NARROWING_CELLS: usize = 2 << 20;

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
        let total = self.term.grid().history_size();
        let limit = total.saturating_sub(keep.max(1));
        let longest = self.limits.rows_of_longest_line(self.size());
        let mut drained = 0;
        while let Some((len, continued)) = self.next_line(drained, limit, longest) {
            let grid = self.term.grid();
            let mut writer = self.history.begin_line();
            for row in drained..drained + len {
                write_row(&mut writer, cells::content(row_at(grid, row), self.occupancy.of(row)));
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

    /// RIS: every line is gone, and counted, the screen's too.
    pub(super) fn forget_everything(&mut self) {
        self.look_at_main();
        let used = self.used_rows();
        let rows = self.term.grid().history_size() + used;
        let (lines, open) = self.count_lines(rows);
        self.history.clear(self.history.next() + lines + u64::from(open));
        self.back_to_active();
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
        self.term.grid_mut().truncate();
        self.back_to_active();
        self.term.grid_mut().truncate();
        self.history.shrink();
    }

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
        self.begin_epoch();
        self.tidy_grid();
        self.look_at_main();
        self.tidy_grid();
        self.restart_occupancy();
        self.drain_if_full();
        self.back_to_active();
    }

    /// The rows of the main screen were rearranged.
    pub(super) fn restart_occupancy(&mut self) {
        let grid = self.term.grid();
        self.occupancy = Occupancy::unknown(grid.total_lines(), grid.screen_lines(), grid.columns());
    }

    /// Rows of the screen were written in a way that is not followed.
    pub(super) fn forget_occupancy(&mut self, rows: std::ops::Range<usize>) {
        if self.buffer() == Buffer::Main {
            self.occupancy.forget(rows);
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
        self.clear_cut_characters();
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

    /// On a screen that does not reflow, a narrower edge may have cut a wide character in two.
    fn clear_cut_characters(&mut self) {
        let grid = self.term.grid_mut();
        let last = Column(grid.columns() - 1);
        for line in (0..grid.screen_lines() as i32).map(Line) {
            if grid[line][last].flags.contains(Flags::WIDE_CHAR) {
                grid[line][last].clear_wide();
            }
        }
    }

    /// Puts the alternate screen aside, so that the engine's grid is the main one.
    pub(super) fn look_at_main(&mut self) {
        if self.buffer() == Buffer::Alternate {
            let stand_in = Grid::new(self.rows(), self.cols(), 0);
            self.set_aside = Some(std::mem::replace(self.term.grid_mut(), stand_in));
            self.term.swap_alt();
        }
    }

    /// Ends [`Machine::look_at_main`].
    pub(super) fn back_to_active(&mut self) {
        if let Some(alternate) = self.set_aside.take() {
            self.term.swap_alt();
            *self.term.grid_mut() = alternate;
        }
    }

    pub(super) fn size(&self) -> Size {
        // The grid was made from a `Size`.
        Size::new(self.cols() as u16, self.rows() as u16).unwrap_or_default()
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

/// A live row, counted from the oldest.
pub(super) fn row_at(grid: &Grid<Cell>, row: usize) -> &Row<Cell> {
    &grid[Line(row as i32 - grid.history_size() as i32)]
}

/// Appends the cells of a row, one run of equal look after the other.
fn write_row(writer: &mut LineWriter<'_>, mut cells: &[Cell]) {
    while let Some(first) = cells.first() {
        let len = 1 + cells[1..].iter().take_while(|cell| cells::same_look(first, cell)).count();
        let (run, rest) = cells.split_at(len);
        writer.set_look(cells::look(first));
        cells::push_cells(run, writer.text());
        cells = rest;
    }
}
