//! Printing: runs of text straight into the row, and the wrap and the scroll that printing leads to.
//!
//! `Term` takes one character at a time and writes 24 bytes for each through several checks; a run needs the checks
//! once. Nothing else writes text. Scrolling at the top of the screen feeds the live history, and the drain is
//! asked after every such scroll, so the live grid never outgrows its bound inside a chunk.

use alacritty_terminal::grid::{Dimensions, Row};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{Color, Handler, NamedColor, StandardCharset};
use unicode_width::UnicodeWidthChar;

use super::machine::Machine;
use crate::screen::Buffer;

/// Combining marks after which rows above the screen are finished: a few megabytes.
const MOST_MARKS: usize = 16 << 10;
/// Combining marks on one cell; more are dropped.
pub(super) const MARKS_LIMIT: usize = 16;

impl Machine {
    /// A run of printable ASCII.
    pub(super) fn print_ascii(&mut self, run: &[u8]) {
        if self.has_mode(TermMode::INSERT) && self.insert_ascii(run) {
            return;
        }
        if self.has_mode(TermMode::INSERT) || self.term.grid().cursor.charsets[self.charset] != StandardCharset::Ascii {
            run.iter().for_each(|&byte| self.print(char::from(byte)));
            return;
        }
        let last = run.last().map(|&byte| char::from(byte));
        let wraps = self.has_mode(TermMode::LINE_WRAP);
        let mut run = run;
        while !run.is_empty() {
            if self.cursor().input_needs_wrap {
                if wraps {
                    self.wrap();
                } else if self.col() + 1 == self.line_end() {
                    // Without wrapping every further character replaces the one at the edge.
                    run = &run[run.len() - 1..];
                }
            }
            let limit = self.line_end();
            let room = limit - self.col();
            let (head, rest) = run.split_at(run.len().min(room));
            self.write_ascii(head, limit);
            run = rest;
        }
        self.repeatable = last.map(|c| (c, self.cursor().point));
    }

    /// Insert mode: a run that fits what is left of the row moves the rest of it once. False where it does not.
    fn insert_ascii(&mut self, run: &[u8]) -> bool {
        let limit = self.line_end();
        let is_plain = self.term.grid().cursor.charsets[self.charset] == StandardCharset::Ascii;
        if !is_plain || self.cursor().input_needs_wrap || self.col() + run.len() >= limit {
            return false;
        }
        self.insert_cells(self.row(), self.col(), run.len());
        self.write_ascii(run, limit);
        self.repeatable = run.last().map(|&byte| (char::from(byte), self.cursor().point));
        true
    }

    /// Writes a run that fits the row up to a column.
    fn write_ascii(&mut self, run: &[u8], limit: usize) {
        let grid = self.term.grid_mut();
        let point = grid.cursor.point;
        let (start, end) = (point.column.0, point.column.0 + run.len());
        let template = grid.cursor.template.clone();
        let row = &mut grid[point.line];
        clear_half(row, start);
        clear_half(row, end);
        for (cell, &byte) in row[Column(start)..Column(end)].iter_mut().zip(run) {
            set_cell(cell, char::from(byte), &template, template.flags);
        }
        grid.cursor.point.column = Column(end.min(limit - 1));
        grid.cursor.input_needs_wrap = end == limit;
        self.note_written(point.line.0 as usize, end);
    }

    /// Cells of a row were written up to a column, in the look of the cursor.
    #[inline]
    fn note_written(&mut self, row: usize, end: usize) {
        if self.buffer() == Buffer::Main {
            let plain = super::cells::is_plain(&self.term.grid().cursor.template);
            self.occupancy.write(row, end, plain);
        }
    }

    /// A run of text beyond ASCII.
    pub(super) fn print_text(&mut self, text: &[char]) {
        if self.clusters {
            return self.print_clusters(text);
        }
        let inserts = self.has_mode(TermMode::INSERT);
        let mut rest = text;
        while let Some((&c, behind)) = rest.split_first() {
            let special = inserts || self.cursor().input_needs_wrap;
            let taken = if special { 0 } else { self.write_fitting(rest) };
            if taken == 0 {
                // A mark, or a character at the edge of the row.
                self.print(c);
                rest = behind;
            } else {
                rest = &rest[taken..];
            }
        }
    }

    /// Writes the characters at the start of a text that fit the row and need nothing special. Returns their number.
    fn write_fitting(&mut self, text: &[char]) -> usize {
        let limit = self.line_end();
        let grid = self.term.grid_mut();
        let point = grid.cursor.point;
        let template = grid.cursor.template.clone();
        let row = &mut grid[point.line];
        let (mut col, mut taken, mut last) = (point.column.0, 0, None);
        for &c in text {
            let columns = width(c).unwrap_or(0);
            if columns == 0 || col + columns > limit {
                break;
            }
            if last.is_none() {
                clear_half(row, col);
            }
            match columns {
                1 => set_cell(&mut row[Column(col)], c, &template, template.flags),
                _ => {
                    set_cell(&mut row[Column(col)], c, &template, template.flags | Flags::WIDE_CHAR);
                    col += 1;
                    set_cell(&mut row[Column(col)], ' ', &template, template.flags | Flags::WIDE_CHAR_SPACER);
                }
            }
            col += 1;
            taken += 1;
            last = Some(c);
        }
        if let Some(last) = last {
            clear_orphan(row, col);
            grid.cursor.point.column = Column(col.min(limit - 1));
            grid.cursor.input_needs_wrap = col == limit;
            self.note_written(point.line.0 as usize, col);
            self.repeatable = Some((last, self.cursor().point));
        }
        taken
    }

    /// One character of any kind.
    pub(super) fn print(&mut self, c: char) {
        match width(c) {
            None => (),
            Some(0) => self.combine(c),
            Some(width) => {
                self.print_wide_or_narrow(c, width);
                self.repeatable = Some((c, self.cursor().point));
            }
        }
    }

    fn print_wide_or_narrow(&mut self, c: char, width: usize) {
        let wraps = self.has_mode(TermMode::LINE_WRAP);
        if width > self.cols() {
            // A wide character has no place in a terminal of one column; the engine would panic.
            return;
        }
        if self.cursor().input_needs_wrap && wraps {
            self.wrap();
        }
        if width == 2 && self.col() + 1 >= self.line_end() {
            if !wraps {
                self.cursor().input_needs_wrap = true;
                return;
            }
            if !self.narrowed {
                self.leave_gap_at_edge();
            }
            self.wrap();
        }
        // No wrap is pending any more, and the character fits the row.
        self.cursor().input_needs_wrap = false;
        if self.has_mode(TermMode::INSERT) {
            self.insert_char(c, width);
        } else {
            let c = self.term.grid().cursor.charsets[self.charset].map(c);
            self.write_fitting(&[c]);
        }
    }

    /// Insert mode: what is right of the cursor moves on first.
    fn insert_char(&mut self, c: char, width: usize) {
        if self.narrowed {
            self.insert_cells(self.row(), self.col(), width);
            let c = self.term.grid().cursor.charsets[self.charset].map(c);
            self.write_fitting(&[c]);
            return;
        }
        let (row, col, cols) = (self.row(), self.col(), self.cols());
        let cells = &mut self.term.grid_mut()[Line(row as i32)];
        clear_half(cells, col);
        // What is pushed over the edge may be half of a wide character.
        clear_half(cells, cols - width);
        // The engine neither wraps nor scrolls here.
        self.term.input(c);
        self.note_written(row, cols);
    }

    /// The cell left over before a wide character that does not fit the row.
    pub(super) fn leave_gap_at_edge(&mut self) {
        let (row, col) = (self.row(), self.col());
        let grid = self.term.grid_mut();
        let template = grid.cursor.template.clone();
        let cells = &mut grid[Line(row as i32)];
        clear_half(cells, col);
        let gap = &mut cells[Column(col)];
        *gap = template;
        gap.c = ' ';
        gap.flags.insert(Flags::LEADING_WIDE_CHAR_SPACER);
        self.note_written(row, col + 1);
    }

    /// Puts a combining mark on the character before the cursor. At the start of a line there is none: the mark
    /// would only wait in a blank cell to be overwritten.
    fn combine(&mut self, mark: char) {
        let (mut row, mut col) = (self.row(), self.col());
        if !self.cursor().input_needs_wrap {
            if col > 0 {
                col -= 1;
            } else if row > 0 && super::cells::is_wrapped(&self.term.grid()[Line(row as i32 - 1)]) {
                // The character before is the last one of the row that wrapped into this one.
                (row, col) = (row - 1, self.cols() - 1);
            } else {
                return;
            }
        }
        let cells = &mut self.term.grid_mut()[Line(row as i32)];
        let skip = Flags::WIDE_CHAR_SPACER.union(Flags::LEADING_WIDE_CHAR_SPACER);
        while col > 0 && cells[Column(col)].flags.intersects(skip) {
            col -= 1;
        }
        let cell = &mut cells[Column(col)];
        if cell.zerowidth().map_or(0, <[char]>::len) < MARKS_LIMIT {
            cell.push_zerowidth(mark);
            self.note_written(row, col + 1);
            self.note_mark();
        }
    }

    /// A cell got a combining mark, or will get a link or a colour of its underline: much memory for a few bytes. After many
    /// of them the rows above the screen become finished lines, where a mark is text; a line of very many rows is cut.
    pub(super) fn note_mark(&mut self) {
        self.marks += 1;
        if self.marks >= MOST_MARKS {
            self.marks = 0;
            if self.buffer() == Buffer::Main {
                self.drain(1);
                if self.term.grid().history_size() > self.rows() {
                    self.drain_cutting();
                }
            }
            // The engine keeps rows for later, with the marks in them.
            self.term.grid_mut().truncate();
        }
    }

    /// Marks the row as going on and moves to the start of the next one.
    pub(super) fn wrap(&mut self) {
        let (row, last) = (self.row(), self.cols() - 1);
        // Between margins only a part of the row goes on.
        if !self.narrowed && (row + 1 == self.region.end || row + 1 < self.rows()) {
            self.term.grid_mut()[Line(row as i32)][Column(last)].flags.insert(Flags::WRAPLINE);
            // Also a row that is blank at its end may go on: the cursor can be moved with the wrap pending.
            self.note_written(row, last + 1);
        }
        self.move_down();
        self.cursor().point.column = Column(self.columns.start);
    }

    pub(super) fn carriage_return(&mut self) {
        let start = self.line_start();
        let cursor = self.cursor();
        cursor.point.column = Column(start);
        cursor.input_needs_wrap = false;
    }

    /// LF: down a line. A pending wrap stays pending, as in alacritty, tmux and vt100; xterm drops it.
    pub(super) fn line_feed(&mut self) {
        let pending = self.cursor().input_needs_wrap && !self.has_mode(TermMode::LINE_FEED_NEW_LINE);
        self.vertical_tab();
        self.cursor().input_needs_wrap = pending;
    }

    /// VT, FF: down a line as well, and to its start in new-line mode. A pending wrap is dropped, as in xterm.
    pub(super) fn vertical_tab(&mut self) {
        self.index();
        if self.has_mode(TermMode::LINE_FEED_NEW_LINE) {
            self.carriage_return();
        }
    }

    /// Down a row, scrolling at the bottom margin. A pending wrap is dropped, as in xterm.
    pub(super) fn index(&mut self) {
        if self.row() + 1 == self.region.end {
            self.end_wrap_out_of_region();
        }
        self.move_down();
    }

    fn move_down(&mut self) {
        let next = self.row() + 1;
        self.cursor().input_needs_wrap = false;
        if next == self.region.end {
            if self.is_in_columns() {
                self.scroll_rows_up(1);
            }
        } else if next < self.rows() {
            self.cursor().point.line = Line(next as i32);
        }
    }

    /// SU: the rows of the scroll region move up; at the top of the screen they go into the live history.
    pub(super) fn scroll_up(&mut self, count: usize) {
        self.end_wrap_out_of_region();
        self.scroll_rows_up(count.min(self.region.len()));
    }

    fn scroll_rows_up(&mut self, count: usize) {
        if self.narrowed {
            return self.scroll_columns_up(self.region.clone(), count);
        }
        self.end_wrap_into(self.region.start);
        let region = Line(self.region.start as i32)..Line(self.region.end as i32);
        let grid = self.term.grid_mut();
        grid.scroll_up(&region, count);
        // Rows scrolled in are blank unless they are filled with a background.
        let blank = grid.cursor.template.bg == Color::Named(NamedColor::Background);
        if self.buffer() == Buffer::Alternate {
            return;
        }
        if self.region.start == 0 {
            self.occupancy.scroll(count);
        }
        if self.region.end < self.rows() || self.region.start > 0 || !blank {
            self.occupancy.forget_screen();
        }
        if self.region.start == 0 {
            self.drain_if_full();
        }
    }
}

/// Columns of a character. The large blocks whose answer is the same throughout need no look into the tables.
#[inline]
fn width(c: char) -> Option<usize> {
    match c {
        ' '..='~' | '\u{ae}'..='\u{2ff}' | '\u{2500}'..='\u{257f}' => Some(1),
        '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => Some(2),
        _ => c.width(),
    }
}

/// Makes a cell what the template says, with a character of its own.
#[inline(always)]
fn set_cell(cell: &mut Cell, c: char, template: &Cell, flags: Flags) {
    cell.c = c;
    cell.fg = template.fg;
    cell.bg = template.bg;
    cell.flags = flags;
    if cell.extra.is_some() || template.extra.is_some() {
        cell.extra.clone_from(&template.extra);
    }
}

/// Blanks the wide character that straddles the border left of `col`, before one half of it is overwritten.
pub(super) fn clear_half(row: &mut Row<Cell>, col: usize) {
    // Looking must not touch the row mutably: the engine would take it for written up to there.
    if col == 0 || col >= row.len() || !row[Column(col)].flags.contains(Flags::WIDE_CHAR_SPACER) {
        return;
    }
    for cell in &mut row[Column(col - 1)..Column(col + 1)] {
        cell.c = ' ';
        cell.flags.remove(Flags::WIDE_CHAR | Flags::WIDE_CHAR_SPACER);
        cell.extra = None;
    }
}

/// Blanks the second half of a wide character whose first half was just overwritten.
fn clear_orphan(row: &mut Row<Cell>, col: usize) {
    if col < row.len() && row[Column(col)].flags.contains(Flags::WIDE_CHAR_SPACER) {
        let cell = &mut row[Column(col)];
        cell.flags.remove(Flags::WIDE_CHAR_SPACER);
        cell.extra = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_way_to_a_width_gives_the_same_as_the_tables() {
        for c in '\u{20}'..char::MAX {
            assert_eq!(width(c), c.width(), "{c:?}");
        }
    }
}
