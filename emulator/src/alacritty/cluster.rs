//! Grapheme clusters (mode 2027): what a reader takes for one character takes the columns of one character.
//!
//! Without the mode every code point has its own width, as programs that use `wcwidth` assume. With it, a code point that
//! continues the cluster before the cursor goes into that cell, like a combining mark, and the cell becomes wide when the
//! cluster is. The mode is off until a program sets it.

use alacritty_terminal::grid::Row;
use alacritty_terminal::index::{Column, Point};
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::{Cell, Flags};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::machine::Machine;
use super::print::{MARKS_LIMIT, clear_half};

impl Machine {
    /// Text beyond ASCII in mode 2027.
    pub(super) fn print_clusters(&mut self, text: &[char]) {
        for &c in text {
            if !self.join_cluster(c) {
                self.print(c);
            }
        }
    }

    /// Adds a character to the cluster before the cursor, if it belongs there.
    fn join_cluster(&mut self, c: char) -> bool {
        if never_joins(c) {
            return false;
        }
        let Some(at) = self.last_printed() else { return false };
        let cell = &self.term.grid()[at.line][at.column];
        let mut cluster: String =
            std::iter::once(cell.c).chain(cell.zerowidth().into_iter().flatten().copied()).collect();
        let marks = cell.zerowidth().map_or(0, <[char]>::len);
        let is_narrow = !cell.flags.contains(Flags::WIDE_CHAR);
        cluster.push(c);
        if cluster.graphemes(true).nth(1).is_some() {
            return false;
        }
        if marks < MARKS_LIMIT {
            self.term.grid_mut()[at.line][at.column].push_zerowidth(c);
            self.forget_occupancy(self.row()..self.row() + 1);
            if is_narrow && cluster.width() > 1 {
                self.widen(at);
            }
            self.note_mark();
        }
        true
    }

    /// The cell of the character that was printed last, if the cursor is still behind it.
    fn last_printed(&self) -> Option<Point> {
        let cursor = &self.term.grid().cursor;
        let mut at = cursor.point;
        self.repeatable.filter(|(_, after)| *after == at)?;
        if !cursor.input_needs_wrap {
            at.column = Column(at.column.0.checked_sub(1)?);
        }
        if self.term.grid()[at.line][at.column].flags.contains(Flags::WIDE_CHAR_SPACER) {
            at.column = Column(at.column.0.checked_sub(1)?);
        }
        Some(at)
    }

    /// Gives the narrow character directly before the cursor a second column, in the next row if this one is full.
    fn widen(&mut self, at: Point) {
        let (row, col) = (at.line.0 as usize, at.column.0);
        let limit = self.line_end();
        if col + 1 < limit {
            if self.has_mode(TermMode::INSERT) {
                self.insert_cells(row, col + 1, 1);
            }
            let cells = self.cells(row);
            make_wide(cells, col);
            let end = col + 2;
            self.place_cursor(row, end.min(limit - 1));
            self.cursor().input_needs_wrap = end == limit;
        } else if self.has_mode(TermMode::LINE_WRAP) && self.cols() > 1 {
            self.cursor().point.column = at.column;
            let moved = self.cells(row)[at.column].clone();
            if self.narrowed {
                self.cells(row)[at.column] = self.blank();
            } else {
                self.leave_gap_at_edge();
            }
            self.wrap();
            let (row, col) = (self.row(), self.col());
            let cells = self.cells(row);
            clear_half(cells, col);
            cells[Column(col)] = moved;
            make_wide(cells, col);
            let end = col + 2;
            let limit = self.line_end();
            self.place_cursor(row, end.min(limit - 1));
            self.cursor().input_needs_wrap = end == limit;
        }
        let after = self.cursor().point;
        self.repeatable = self.repeatable.map(|(c, _)| (c, after));
    }
}

/// Spreads a character over its cell and the next one.
fn make_wide(cells: &mut Row<Cell>, col: usize) {
    clear_half(cells, col + 2);
    let first = &mut cells[Column(col)];
    first.flags.insert(Flags::WIDE_CHAR);
    first.flags.remove(Flags::WRAPLINE);
    let mut spacer = first.clone();
    spacer.clear_wide();
    spacer.flags.insert(Flags::WIDE_CHAR_SPACER);
    cells[Column(col + 1)] = spacer;
}

/// Characters that always begin a cluster: the large blocks of East Asian text need no look into the tables.
fn never_joins(c: char) -> bool {
    matches!(c, '\u{2500}'..='\u{257f}' | '\u{3041}'..='\u{3096}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}
