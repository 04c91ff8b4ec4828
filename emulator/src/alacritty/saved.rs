//! Cursor moves, the saved cursor and the switch between the two screens.
//!
//! `Term` ignores the margins in relative moves, adds the origin twice in CHA, restores a pending wrap with
//! the cursor and forgets origin mode, and knows one way to the alternate screen of three.

use alacritty_terminal::grid::{Cursor, Dimensions, Grid};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::vte::ansi::{CharsetIndex, Handler, NamedPrivateMode};

use super::cells::{self, PROTECTED};
use super::machine::Machine;
use crate::screen::Buffer;

/// What DECSC keeps.
pub(super) struct SavedCursor {
    cursor: Cursor<Cell>,
    charset: CharsetIndex,
    origin: bool,
}

impl Machine {
    /// CUU: stops at the top margin, or at the top of the screen when it starts above the margin.
    pub(super) fn cursor_up(&mut self, count: usize) {
        let row = self.row();
        let stop = if row >= self.region.start { self.region.start } else { 0 };
        self.place_cursor(row.saturating_sub(count).max(stop), self.col());
    }

    /// CUD: stops at the bottom margin, or at the bottom of the screen when it starts below the margin.
    pub(super) fn cursor_down(&mut self, count: usize) {
        let row = self.row();
        let stop = if row < self.region.end { self.region.end } else { self.rows() } - 1;
        self.place_cursor((row + count).min(stop), self.col());
    }

    /// CUF: stops at the right margin, or at the edge of the screen when it starts right of the margin.
    pub(super) fn cursor_right(&mut self, count: usize) {
        let last = self.line_end() - 1;
        self.place_cursor(self.row(), (self.col() + count).min(last));
    }

    /// CUB, BS: stops at the left margin, or at the edge of the screen when it starts left of the margin. In the modes 45 and 1045 also back over the left edge, and a pending wrap counts as a column.
    pub(super) fn cursor_left(&mut self, count: usize) {
        let (row, col) = (self.row(), self.col());
        if (self.reverse_wrap || self.reverse_wrap_always) && self.has_mode(TermMode::LINE_WRAP) {
            let left = count - usize::from(self.cursor().input_needs_wrap);
            return self.move_back(left);
        }
        self.place_cursor(row, col.saturating_sub(count).max(self.left_stop(col)));
    }

    /// Moves left by so many columns, from the start of a row to the end of the one before as far as the modes allow.
    fn move_back(&mut self, count: usize) {
        let (mut row, mut col, mut left) = (self.row(), self.col(), count);
        // Bounded: what would lead more than once around the screen is cut short.
        for _ in 0..=self.rows() {
            let step = left.min(col - self.left_stop(col));
            (col, left) = (col - step, left - step);
            match self.row_before(row) {
                Some(before) if left > 0 => (row, col, left) = (before, self.columns.end - 1, left - 1),
                _ => break,
            }
        }
        self.place_cursor(row, col);
    }

    /// The row that moving left from the start of a row leads to.
    fn row_before(&self, row: usize) -> Option<usize> {
        if self.reverse_wrap_always {
            return Some(match row {
                row if row == self.region.start => self.region.end - 1,
                0 => self.rows() - 1,
                row => row - 1,
            });
        }
        (row > self.region.start && self.wraps_into(row)).then(|| row - 1)
    }

    /// CHA, HPA: the row stays; in origin mode the column counts from the left margin.
    pub(super) fn cursor_to_col(&mut self, col: usize) {
        let col = match self.has_mode(TermMode::ORIGIN) {
            true => (self.columns.start + col).min(self.columns.end - 1),
            false => col,
        };
        self.place_cursor(self.row(), col);
    }

    fn wraps_into(&self, row: usize) -> bool {
        cells::is_wrapped(&self.term.grid()[Line(row as i32 - 1)])
    }

    /// HT, CHT. A pending wrap stays pending: there is no stop beyond the edge. In mode 41 the row is wrapped first.
    pub(super) fn tab_forward(&mut self, count: u16) {
        if self.tab_wraps && self.cursor().input_needs_wrap {
            self.wrap();
        }
        let last = self.line_end() - 1;
        self.term.move_forward_tabs(count);
        // A right margin stops tabs as the edge of the screen does.
        let column = self.cursor().point.column.0.min(last);
        self.cursor().point.column = Column(column);
    }

    /// CBT. Without a stop it goes to the first column. A pending wrap stays pending, as in xterm.
    pub(super) fn tab_backward(&mut self, count: u16) {
        for _ in 0..count {
            let before = self.col();
            self.term.move_backward_tabs(1);
            if self.col() == before {
                self.cursor().point.column = Column(0);
                break;
            }
        }
    }

    /// DECST8C: a tab stop every eight columns.
    pub(super) fn reset_tab_stops(&mut self) {
        let col = self.col();
        self.term.clear_tabs(alacritty_terminal::vte::ansi::TabulationClearMode::All);
        for stop in (0..self.cols()).step_by(8) {
            self.cursor().point.column = Column(stop);
            self.term.set_horizontal_tabstop();
        }
        self.cursor().point.column = Column(col);
    }

    /// DECSC.
    pub(super) fn save_cursor(&mut self) {
        let buffer = self.buffer() as usize;
        self.saved[buffer] = Some(SavedCursor {
            cursor: self.cursor().clone(),
            charset: self.charset,
            origin: self.has_mode(TermMode::ORIGIN),
        });
    }

    /// DECRC: position, attributes, character sets and origin mode, but no pending wrap.
    pub(super) fn restore_cursor(&mut self) {
        self.restore_cursor_with_wrap();
        self.cursor().input_needs_wrap = false;
    }

    /// Restores the cursor exactly, as the way back from the alternate screen does.
    pub(super) fn restore_cursor_with_wrap(&mut self) {
        let buffer = self.buffer() as usize;
        let Some(saved) = self.saved[buffer].take() else { return self.go_home_plain() };
        let origin = NamedPrivateMode::Origin.into();
        if saved.origin {
            self.term.set_private_mode(origin);
        } else {
            self.term.unset_private_mode(origin);
        }
        let point = saved.cursor.point;
        self.become_cursor(saved.cursor.clone(), saved.charset);
        self.place_cursor(point.line.0.max(0) as usize, point.column.0);
        self.cursor().input_needs_wrap = saved.cursor.input_needs_wrap && self.cursor().point == point;
        self.saved[buffer] = Some(saved);
    }

    /// Without a saved cursor: home, within the margins in origin mode, everything plain.
    fn go_home_plain(&mut self) {
        self.become_cursor(Cursor::default(), CharsetIndex::G0);
        self.go_to(0, 0);
    }

    fn become_cursor(&mut self, cursor: Cursor<Cell>, charset: CharsetIndex) {
        self.protecting = cursor.template.flags.contains(PROTECTED);
        *self.cursor() = cursor;
        self.charset = charset;
        self.term.set_active_charset(charset);
    }

    /// To the alternate screen, which is empty then or as mode 47 left it; the cursor comes along.
    pub(super) fn enter_alternate(&mut self) {
        if self.buffer() == Buffer::Main {
            self.term.swap_alt();
            let (cols, rows) = (self.cols(), self.rows());
            let same_size = |grid: &Grid<Cell>| grid.columns() == cols && grid.screen_lines() == rows;
            if let Some(kept) = self.kept_alternate.take().filter(same_size) {
                let cursor = self.cursor().clone();
                self.spare_alternate = Some(std::mem::replace(self.term.grid_mut(), kept));
                *self.cursor() = cursor;
            }
        }
    }

    /// Back to the main screen; the cursor comes along. What is on the alternate one may be kept for the next time.
    pub(super) fn leave_alternate(&mut self, keep: bool) {
        if self.buffer() == Buffer::Alternate {
            let cursor = self.cursor().clone();
            if keep {
                // The engine blanks it before it is shown.
                let stand_in = self.spare_alternate.take().unwrap_or_else(|| Grid::new(self.rows(), self.cols(), 0));
                self.kept_alternate = Some(std::mem::replace(self.term.grid_mut(), stand_in));
            }
            self.term.swap_alt();
            *self.cursor() = cursor;
        }
    }
}
