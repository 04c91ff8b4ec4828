//! Rectangular areas: fill, erase, copy and change the attributes of the cells in them.
//!
//! `Term` has none of these. An area counts from the margins in origin mode and is cut at the edge of the screen; margins
//! do not confine it otherwise, and the cursor stays where it is. The checksum of an area (DECRQCRA) is left out on
//! purpose: it lets a program read back what others have written.

use std::ops::Range;

use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::Attr;

use super::edit::Erase;
use super::machine::Machine;
use super::print::clear_half;
use super::sgr;
use crate::parser::Sequence;

/// Rows and columns of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Area {
    rows: Range<usize>,
    cols: Range<usize>,
}

impl Area {
    fn cells(&self) -> usize {
        self.rows.len() * self.cols.len()
    }
}

/// What copying a cell costs, in cells: it is read and written twice.
const COPY_COST: usize = 3;

impl Machine {
    /// The area that four parameters name, top, left, bottom, right; `None` when it is empty.
    fn area(&self, sequence: &Sequence, first: usize) -> Option<Area> {
        let area = self.corners(sequence, first);
        (!area.rows.is_empty() && !area.cols.is_empty()).then_some(area)
    }

    /// The same, empty or not.
    fn corners(&self, sequence: &Sequence, first: usize) -> Area {
        let param = |index: usize, default: u16| usize::from(sequence.param_or(first + index, default));
        let (top, left) = self.area_origin();
        let (bottom_limit, right_limit) = self.area_limit();
        let rows = top + param(0, 1) - 1..(top + param(2, u16::MAX)).min(bottom_limit);
        let cols = left + param(1, 1) - 1..(left + param(3, u16::MAX)).min(right_limit);
        Area { rows, cols }
    }

    /// The cell that row 1, column 1 of an area stands for.
    fn area_origin(&self) -> (usize, usize) {
        if self.has_mode(TermMode::ORIGIN) { (self.region.start, self.columns.start) } else { (0, 0) }
    }

    /// Row and column after the last ones that an area may reach.
    fn area_limit(&self) -> (usize, usize) {
        if self.has_mode(TermMode::ORIGIN) { (self.region.end, self.columns.end) } else { (self.rows(), self.cols()) }
    }

    /// DECERA and DECSERA.
    pub(super) fn erase_area(&mut self, sequence: &Sequence, kind: Erase) {
        if let Some(area) = self.area(sequence, 0).filter(|area| self.work.take(area.cells())) {
            let Area { rows, cols } = area;
            rows.for_each(|row| self.erase_cells(row, cols.clone(), kind));
        }
    }

    /// DECFRA: one printable character of Latin-1 in the present look.
    pub(super) fn fill_area(&mut self, sequence: &Sequence) {
        let code = sequence.param_or(0, 0);
        let Some(c) = u8::try_from(code).ok().map(char::from).filter(|c| !c.is_control()) else { return };
        let Some(area) = self.area(sequence, 1).filter(|area| self.work.take(area.cells())) else { return };
        let cell = Cell { c, ..self.cursor().template.clone() };
        self.detach_area(&area);
        for row in area.rows {
            self.cells(row)[Column(area.cols.start)..Column(area.cols.end)].fill(cell.clone());
        }
    }

    /// DECCRA: copies an area to another place; there is one page.
    pub(super) fn copy_area(&mut self, sequence: &Sequence) {
        let Some(from) = self.area(sequence, 0) else { return };
        let (top, left) = self.area_origin();
        let (bottom_limit, right_limit) = self.area_limit();
        let row = top + usize::from(sequence.param_or(5, 1)) - 1;
        let col = left + usize::from(sequence.param_or(6, 1)) - 1;
        let to = Area {
            rows: row..(row + from.rows.len()).min(bottom_limit),
            cols: col..(col + from.cols.len()).min(right_limit),
        };
        if to.rows.is_empty() || to.cols.is_empty() || !self.work.take(COPY_COST * to.cells()) {
            return;
        }
        let grid = self.term.grid();
        let source = Column(from.cols.start)..Column(from.cols.start + to.cols.len());
        let mut copied: Vec<Cell> = Vec::with_capacity(to.cells());
        for row in from.rows.start..from.rows.start + to.rows.len() {
            let start = copied.len();
            copied.extend_from_slice(&grid[Line(row as i32)][source.clone()]);
            keep_whole_characters(&mut copied[start..]);
        }
        self.detach_area(&to);
        let mut copied = copied.into_iter();
        for row in to.rows {
            let target = &mut self.cells(row)[Column(to.cols.start)..Column(to.cols.end)];
            target.iter_mut().zip(&mut copied).for_each(|(cell, copy)| *cell = copy);
        }
    }

    /// DECCARA: gives the cells of an area attributes, as SGR would.
    pub(super) fn change_area(&mut self, sequence: &Sequence) {
        let mut attributes = Vec::new();
        sgr::each_attribute_from(sequence, 4, |attribute| attributes.push(attribute));
        self.update_area(sequence, |flags| attributes.iter().for_each(|attribute| apply(flags, attribute)));
    }

    /// DECRARA: reverses attributes of the cells of an area.
    pub(super) fn reverse_area(&mut self, sequence: &Sequence) {
        let mut reversed = Flags::empty();
        for param in sequence.params().skip(4) {
            reversed ^= match param {
                0 => Flags::BOLD | Flags::UNDERLINE | Flags::INVERSE,
                1 => Flags::BOLD,
                4 => Flags::UNDERLINE,
                7 => Flags::INVERSE,
                8 => Flags::HIDDEN,
                _ => Flags::empty(),
            };
        }
        self.update_area(sequence, |flags| flags.toggle(reversed));
    }

    /// DECSACE: whether the two above mean a rectangle or the text from its first to its last cell.
    pub(super) fn set_area_extent(&mut self, extent: u16) {
        self.area_is_rectangle = extent == 2;
    }

    fn update_area(&mut self, sequence: &Sequence, change: impl Fn(&mut Flags)) {
        let Area { rows, cols } = self.corners(sequence, 0);
        let width = self.cols();
        if !self.work.take(rows.len() * width) {
            return;
        }
        for row in rows.clone() {
            let stream_start = if row == rows.start { cols.start } else { 0 };
            let stream_end = if row + 1 == rows.end { cols.end } else { width };
            let range = if self.area_is_rectangle { cols.clone() } else { stream_start..stream_end };
            if !range.is_empty() {
                self.cells(row)[Column(range.start)..Column(range.end)]
                    .iter_mut()
                    .for_each(|cell| change(&mut cell.flags));
            }
        }
    }

    /// An area is about to be overwritten: no wide character reaches over its border, and rows that it takes part in to the
    /// edge of the screen no longer go on.
    fn detach_area(&mut self, area: &Area) {
        let reaches_edge = area.cols.end == self.term.grid().columns();
        for row in area.rows.clone() {
            let cells = self.cells(row);
            clear_half(cells, area.cols.start);
            clear_half(cells, area.cols.end);
            if reaches_edge && row + 1 < self.rows() {
                self.end_wrap_into(row + 1);
            }
        }
    }
}

/// Cells cut out of a row: halves of wide characters become blanks, and the marks of the row's end stay behind.
fn keep_whole_characters(cells: &mut [Cell]) {
    let blank_half = |cell: &mut Cell, half: Flags| {
        if cell.flags.contains(half) {
            cell.c = ' ';
            cell.flags.remove(half);
            cell.extra = None;
        }
    };
    if let Some(first) = cells.first_mut() {
        blank_half(first, Flags::WIDE_CHAR_SPACER);
    }
    if let Some(last) = cells.last_mut() {
        blank_half(last, Flags::WIDE_CHAR);
        last.flags.remove(Flags::WRAPLINE | Flags::LEADING_WIDE_CHAR_SPACER);
    }
}

/// Changes the flags of a cell as SGR changes those of the cursor; colours are left alone.
fn apply(flags: &mut Flags, attribute: &Attr) {
    match attribute {
        Attr::Reset => {
            flags.remove(Flags::BOLD_ITALIC | Flags::DIM | Flags::INVERSE | Flags::HIDDEN | Flags::STRIKEOUT);
            flags.remove(Flags::ALL_UNDERLINES);
        }
        Attr::Bold => flags.insert(Flags::BOLD),
        Attr::CancelBoldDim => flags.remove(Flags::BOLD | Flags::DIM),
        Attr::Underline => flags.insert(Flags::UNDERLINE),
        Attr::CancelUnderline => flags.remove(Flags::ALL_UNDERLINES),
        Attr::Reverse => flags.insert(Flags::INVERSE),
        Attr::CancelReverse => flags.remove(Flags::INVERSE),
        Attr::Hidden => flags.insert(Flags::HIDDEN),
        Attr::CancelHidden => flags.remove(Flags::HIDDEN),
        _ => (),
    }
}
