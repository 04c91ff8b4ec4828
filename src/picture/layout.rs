//! Converts cells to drawing elements: backgrounds, shapes and text runs.
//!
//! Owns the grid: every position follows from the cell, never from the width of a glyph.

use std::fmt::Write as _;

use kpty_emulator::{Attributes, Cell, Cursor, CursorShape, Width};

use super::boxes::{self, Canvas};
use super::font::Coverage;
use super::shapes::{Paths, Pixels, Rect, Rects, Unit, px};
use super::theme::{Inks, Rgb, Theme};
use super::{CELL, Subject};

/// Maximum run of blanks inside a text run; a longer gap starts a new run.
const MAX_GAP: usize = 40;

/// A picture as layers in drawing order.
#[derive(Debug)]
pub(super) struct Drawing {
    pub(super) cols: usize,
    pub(super) rows: usize,
    pub(super) theme: Theme,
    pub(super) backgrounds: Rects,
    pub(super) shapes: Rects,
    pub(super) strokes: Paths,
    pub(super) fills: Paths,
    pub(super) texts: Vec<TextRun>,
    /// Drawn above the text: strikethrough lines and thin cursors.
    pub(super) over: Rects,
}

/// Characters with the same style.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TextRun {
    pub(super) row: usize,
    pub(super) ink: Ink,
    pub(super) text: String,
    pub(super) place: Placement,
}

/// Style of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ink {
    pub(super) color: Rgb,
    pub(super) bold: bool,
    pub(super) italic: bool,
}

/// Positions of the characters of a run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Placement {
    /// One character per cell, starting at this column.
    Even(usize),
    /// One column per character; with a single column the text may have several characters.
    Each(Vec<usize>),
    /// Like `Each` for wide characters, centred in two columns.
    Wide(Vec<usize>),
    /// Small label of a placeholder, centred at a point.
    Small(Unit, Unit),
}

/// Lays out a picture. With a font, characters it lacks become placeholders.
pub(super) fn lay_out(subject: &Subject, theme: Theme, font: Option<&Coverage>) -> Drawing {
    let drawing = Drawing {
        cols: subject.cols,
        rows: subject.rows.len(),
        theme,
        backgrounds: Rects::default(),
        shapes: Rects::default(),
        strokes: Paths::default(),
        fills: Paths::default(),
        texts: Vec::new(),
        over: Rects::default(),
    };
    let cursor = subject.cursor.filter(|cursor| cursor.visible);
    let mut layout = Layout { drawing, font, cursor };
    for (index, row) in subject.rows.iter().enumerate() {
        for (col, cell) in row.cells.iter().enumerate().take(subject.cols) {
            layout.cell(index, col, cell);
        }
        layout.row_done();
    }
    layout.drawing
}

struct Layout<'a> {
    drawing: Drawing,
    font: Option<&'a Coverage>,
    cursor: Option<Cursor>,
}

/// Returns the upper left corner of a cell.
fn corner(row: usize, col: usize) -> (Unit, Unit) {
    (px(CELL.0 as Unit) * col as Unit, px(CELL.1 as Unit) * row as Unit)
}

impl Layout<'_> {
    fn cell(&mut self, row: usize, col: usize, cell: &Cell) {
        let theme = self.drawing.theme;
        let mut inks = theme.inks(&cell.style);
        let (x, y) = corner(row, col);
        let (w, h) = (px(CELL.0 as Unit), px(CELL.1 as Unit));
        if let Some(shape) = self.cursor_at(row, col, cell) {
            let color = theme.foreground();
            match shape {
                CursorShape::Block => inks = under_block(inks, color, theme.background()),
                CursorShape::Underline => self.drawing.over.add(color, Rect { x, y: y + px(17), w, h: px(3) }),
                CursorShape::Beam => self.drawing.over.add(color, Rect { x, y, w: px(2), h }),
            }
        }
        if inks.bg != theme.background() {
            self.drawing.backgrounds.add(inks.bg, Rect { x, y, w, h });
        }
        let attributes = cell.style.attributes;
        if attributes.contains(Attributes::HIDDEN) {
            return;
        }
        self.underline(attributes, (x, y), inks.underline);
        if attributes.contains(Attributes::STRIKEOUT) {
            self.drawing.over.add(inks.fg, Rect { x, y: y + px(11), w, h: px(1) });
        }
        if cell.width != Width::Spacer && !(cell.c == ' ' && cell.marks.is_empty()) {
            self.glyph(row, col, cell, inks);
        }
    }

    /// Returns the cursor shape if the cursor is in this cell; a block covers both halves of a wide character.
    fn cursor_at(&self, row: usize, col: usize, cell: &Cell) -> Option<CursorShape> {
        let cursor = self.cursor.filter(|cursor| usize::from(cursor.row) == row)?;
        let at = usize::from(cursor.col);
        let is_second_half = cell.width == Width::Spacer && at + 1 == col && cursor.shape != CursorShape::Beam;
        (at == col || is_second_half).then_some(cursor.shape)
    }

    fn underline(&mut self, attributes: Attributes, (x, y): (Unit, Unit), color: Rgb) {
        let shapes = &mut self.drawing.shapes;
        let mut line = |from: Unit, length: Unit, top: Unit| {
            shapes.add(color, Rect { x: x + px(from), y: y + px(top), w: px(length), h: px(1) });
        };
        if attributes.contains(Attributes::DOUBLE_UNDERLINE) {
            line(0, 10, 17);
            line(0, 10, 19);
        } else if attributes.contains(Attributes::CURLY_UNDERLINE) {
            let (x, y) = (Pixels(x), Pixels(y + px(18)));
            // Writing to a string cannot fail.
            let _ = write!(self.drawing.strokes.of(color), "M{x} {y}q2.5 -3 5 0t5 0");
        } else if attributes.contains(Attributes::DOTTED_UNDERLINE) {
            (0..10).step_by(2).for_each(|from| line(from, 1, 18));
        } else if attributes.contains(Attributes::DASHED_UNDERLINE) {
            [0, 5].into_iter().for_each(|from| line(from, 3, 18));
        } else if attributes.contains(Attributes::UNDERLINE) {
            line(0, 10, 18);
        }
    }

    fn glyph(&mut self, row: usize, col: usize, cell: &Cell, inks: Inks) {
        let Drawing { shapes, strokes, fills, .. } = &mut self.drawing;
        let mut canvas = Canvas { rects: shapes, strokes, fills };
        if boxes::draw(cell.c, corner(row, col), inks, &mut canvas) {
            return;
        }
        if self.font.is_some_and(|font| !font.has(cell.c)) {
            return self.placeholder(row, col, cell, inks.fg);
        }
        let attributes = cell.style.attributes;
        let bold = attributes.contains(Attributes::BOLD);
        let ink = Ink { color: inks.fg, bold, italic: attributes.contains(Attributes::ITALIC) };
        let marks = cell.marks.iter().filter(|mark| self.font.is_none_or(|font| font.has(**mark)));
        let text: String = std::iter::once(&cell.c).chain(marks).collect();
        let last = self.drawing.texts.last_mut().filter(|last| last.row == row && last.ink == ink);
        // A position list assigns one position per UTF-16 code unit, so other characters get a run of their own.
        let is_listable = text.chars().count() == 1 && cell.c.len_utf16() == 1;
        match last {
            Some(TextRun { place: Placement::Even(start), text: run, .. }) if cell.c.is_ascii() && is_listable => {
                let gap = col - *start - run.len();
                if gap <= MAX_GAP {
                    run.extend(std::iter::repeat_n(' ', gap));
                    run.push(cell.c);
                    return;
                }
            }
            Some(TextRun { place: Placement::Each(cols), text: run, .. })
                if is_listable && !cell.c.is_ascii() && cell.width == Width::Single && is_list(cols, run) =>
            {
                cols.push(col);
                run.push(cell.c);
                return;
            }
            Some(TextRun { place: Placement::Wide(cols), text: run, .. })
                if is_listable && cell.width == Width::Double && is_list(cols, run) =>
            {
                cols.push(col);
                run.push(cell.c);
                return;
            }
            _ => {}
        }
        let place = match cell.width {
            Width::Double => Placement::Wide(vec![col]),
            _ if cell.c.is_ascii() && is_listable => Placement::Even(col),
            _ => Placement::Each(vec![col]),
        };
        self.drawing.texts.push(TextRun { row, ink, text, place });
    }

    /// Draws a frame with the code point in it, as wide as the character would be.
    fn placeholder(&mut self, row: usize, col: usize, cell: &Cell, color: Rgb) {
        let (x, y) = corner(row, col);
        let is_wide = cell.width == Width::Double;
        let w = px(if is_wide { 2 * CELL.0 } else { CELL.0 } as Unit);
        let (left, top, right, bottom) = (x + px(1), y + px(2), x + w - px(1), y + px(18));
        let shapes = &mut self.drawing.shapes;
        for rect in [
            Rect { x: left, y: top, w: right - left, h: px(1) },
            Rect { x: left, y: bottom - px(1), w: right - left, h: px(1) },
            Rect { x: left, y: top, w: px(1), h: bottom - top },
            Rect { x: right - px(1), y: top, w: px(1), h: bottom - top },
        ] {
            shapes.add(color, rect);
        }
        let code = match format!("{:04X}", cell.c as u32) {
            // Five digits do not fit in one column.
            code if code.len() > 4 && !is_wide => "?".to_owned(),
            code => code,
        };
        let per_line = if is_wide { code.len().div_ceil(2) } else { 2 };
        let lines: Vec<_> = code.as_bytes().chunks(per_line).map(String::from_utf8_lossy).collect();
        let first = if lines.len() > 1 { y + px(9) } else { y + px(12) };
        for (index, line) in lines.into_iter().enumerate() {
            let place = Placement::Small(x + w / 2, first + px(7) * index as Unit);
            let ink = Ink { color, bold: false, italic: false };
            self.drawing.texts.push(TextRun { row, ink, text: line.into_owned(), place });
        }
    }

    /// Ends the open runs; a run does not continue in the next row.
    fn row_done(&mut self) {
        if let Some(last) = self.drawing.texts.last_mut() {
            last.text.truncate(last.text.trim_end_matches(' ').len());
        }
    }
}

/// Returns whether every column has one character of one UTF-16 code unit, without combining marks.
fn is_list(cols: &[usize], run: &str) -> bool {
    run.chars().all(|c| c.len_utf16() == 1) && run.chars().count() == cols.len()
}

/// Returns the colours of a cell under a block cursor.
fn under_block(inks: Inks, cursor: Rgb, background: Rgb) -> Inks {
    let text = if inks.bg == cursor { background } else { inks.bg };
    Inks { fg: text, bg: cursor, underline: text }
}
