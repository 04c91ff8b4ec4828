//! From the engine's cells to text, looks and plain cells.
//!
//! The only place that knows how `alacritty_terminal` marks wide characters, wraps and blanks.

use alacritty_terminal::grid::Row as GridRow;
use alacritty_terminal::term::cell::{Cell as GridCell, Flags};
use alacritty_terminal::vte::ansi::{Color as GridColor, NamedColor};

use crate::history::{LinkNumber, Look};
use crate::screen::{Attributes, Color, Style, Width};

/// Our mark for cells that DECSCA protects from selective erase; the engine leaves this bit alone.
pub(super) const PROTECTED: Flags = Flags::from_bits_retain(1 << 15);

/// The flags that change how a cell looks.
const LOOK_FLAGS: Flags = Flags::INVERSE
    .union(Flags::BOLD_ITALIC)
    .union(Flags::ALL_UNDERLINES)
    .union(Flags::DIM)
    .union(Flags::HIDDEN)
    .union(Flags::STRIKEOUT);

/// Cells that hold no character of their own.
const SPACERS: Flags = Flags::WIDE_CHAR_SPACER.union(Flags::LEADING_WIDE_CHAR_SPACER);

/// The text of this row goes on in the next one.
pub(super) fn is_wrapped(row: &GridRow<GridCell>) -> bool {
    row.last().is_some_and(|cell| cell.flags.contains(Flags::WRAPLINE))
}

/// Nothing to see and nothing to keep: a blank in the default look.
pub(super) fn is_blank(cell: &GridCell) -> bool {
    cell.c == ' '
        && cell.bg == GridColor::Named(NamedColor::Background)
        && !cell.flags.intersects(Flags::INVERSE.union(Flags::ALL_UNDERLINES).union(Flags::STRIKEOUT))
        && cell.extra.is_none()
}

/// A blank as far as text goes, whatever its colours.
fn is_text_blank(cell: &GridCell) -> bool {
    cell.c == ' ' && cell.zerowidth().is_none_or(<[char]>::is_empty)
}

/// The cells of a row up to the last one that is not blank; all of them when the text goes on. Cells from `written` on
/// are known to be blank.
pub(super) fn content(row: &GridRow<GridCell>, written: usize) -> &[GridCell] {
    debug_assert!(row[..][written..].iter().all(is_blank), "a row is written beyond what was noted");
    let cells = &row[..][..written];
    if cells.len() == row.len() && is_wrapped(row) {
        return cells;
    }
    let len = cells.iter().rposition(|cell| !is_blank(cell)).map_or(0, |last| last + 1);
    &cells[..len]
}

/// True when the row has text.
pub(super) fn has_text(row: &GridRow<GridCell>) -> bool {
    !row[..].iter().all(is_text_blank)
}

/// Appends the text of a row; trailing blanks are left out unless the row goes on. Cells from `written` on are known to be
/// blank.
pub(super) fn push_text(row: &GridRow<GridCell>, written: usize, out: &mut String) {
    debug_assert!(row[..][written..].iter().all(is_blank), "a row is written beyond what was noted");
    let cells = &row[..][..written];
    let len = if cells.len() == row.len() && is_wrapped(row) {
        cells.len()
    } else {
        cells.iter().rposition(|cell| !is_text_blank(cell)).map_or(0, |last| last + 1)
    };
    push_cells(&cells[..len], out);
}

/// Takes text that is UTF-8 by construction.
pub(super) trait Utf8Out {
    fn put(&mut self, utf8: &[u8]);
}

impl Utf8Out for String {
    fn put(&mut self, utf8: &[u8]) {
        self.push_str(std::str::from_utf8(utf8).unwrap_or_default());
    }
}

impl Utf8Out for Vec<u8> {
    fn put(&mut self, utf8: &[u8]) {
        self.extend_from_slice(utf8);
    }
}

/// Cells that are encoded aside and copied in one go.
const STEP: usize = 64;

/// Appends the characters of cells with their marks.
pub(super) fn push_cells(cells: &[GridCell], out: &mut impl Utf8Out) {
    let mut ascii = [0; STEP];
    for step in cells.chunks(STEP) {
        // Nearly all text is plain ASCII. The loop has no early exit on purpose: it is faster so, and a step that begins
        // otherwise does not enter it.
        let mut odd = !step[0].c.is_ascii();
        if !odd {
            for (byte, cell) in ascii.iter_mut().zip(step) {
                *byte = cell.c as u8;
                odd |= !cell.c.is_ascii() | cell.flags.intersects(SPACERS) | cell.extra.is_some();
            }
        }
        if odd {
            push_unicode(step, out);
        } else {
            out.put(&ascii[..step.len()]);
        }
    }
}

/// Appends up to [`STEP`] cells of any kind.
fn push_unicode(cells: &[GridCell], out: &mut impl Utf8Out) {
    let mut bytes = [0; 4 * STEP];
    let mut len = 0;
    for cell in cells {
        if cell.flags.intersects(SPACERS) {
            continue;
        }
        len += cell.c.encode_utf8(&mut bytes[len..]).len();
        if let Some(marks) = cell.zerowidth().filter(|marks| !marks.is_empty()) {
            out.put(&bytes[..len]);
            marks.iter().for_each(|mark| out.put(mark.encode_utf8(&mut [0; 4]).as_bytes()));
            len = 0;
        }
    }
    out.put(&bytes[..len]);
}

/// True when both cells look the same, which is cheaper to see than what they look like.
#[inline]
pub(super) fn same_look(a: &GridCell, b: &GridCell) -> bool {
    a.fg == b.fg
        && a.bg == b.bg
        && (a.flags ^ b.flags).intersection(LOOK_FLAGS).is_empty()
        && a.extra.is_none()
        && b.extra.is_none()
}

/// In the default look; combining marks do not matter.
pub(super) fn is_plain(cell: &GridCell) -> bool {
    cell.fg == GridColor::Named(NamedColor::Foreground)
        && cell.bg == GridColor::Named(NamedColor::Background)
        && !cell.flags.intersects(LOOK_FLAGS)
        && (cell.extra.is_none() || (cell.underline_color().is_none() && cell.hyperlink().is_none()))
}

/// Style and link of a cell.
pub(super) fn look(cell: &GridCell) -> Look {
    if is_plain(cell) {
        return Look::default();
    }
    Look { style: style(cell), link: link(cell) }
}

/// Colours and attributes of a cell.
pub(super) fn style(cell: &GridCell) -> Style {
    Style {
        fg: color(cell.fg),
        bg: color(cell.bg),
        underline_color: cell.underline_color().map(color),
        attributes: attributes(cell.flags),
    }
}

/// How many columns the cell's character takes.
pub(super) fn width(cell: &GridCell) -> Width {
    if cell.flags.contains(Flags::WIDE_CHAR) {
        Width::Double
    } else if cell.flags.intersects(SPACERS) {
        Width::Spacer
    } else {
        Width::Single
    }
}

/// Number of the cell's link, 0 for none. The engine's cells carry the number as their address.
pub(super) fn link(cell: &GridCell) -> LinkNumber {
    cell.hyperlink().and_then(|link| link.uri().parse().ok()).unwrap_or(0)
}

fn color(color: GridColor) -> Color {
    match color {
        GridColor::Named(named) if (named as usize) < 16 => Color::Indexed(named as u8),
        GridColor::Named(_) => Color::Default,
        GridColor::Indexed(index) => Color::Indexed(index),
        GridColor::Spec(rgb) => Color::Rgb(rgb.r, rgb.g, rgb.b),
    }
}

fn attributes(flags: Flags) -> Attributes {
    let table = [
        (Flags::BOLD, Attributes::BOLD),
        (Flags::DIM, Attributes::DIM),
        (Flags::ITALIC, Attributes::ITALIC),
        (Flags::INVERSE, Attributes::INVERSE),
        (Flags::HIDDEN, Attributes::HIDDEN),
        (Flags::STRIKEOUT, Attributes::STRIKEOUT),
        (Flags::UNDERLINE, Attributes::UNDERLINE),
        (Flags::DOUBLE_UNDERLINE, Attributes::DOUBLE_UNDERLINE),
        (Flags::UNDERCURL, Attributes::CURLY_UNDERLINE),
        (Flags::DOTTED_UNDERLINE, Attributes::DOTTED_UNDERLINE),
        (Flags::DASHED_UNDERLINE, Attributes::DASHED_UNDERLINE),
    ];
    let mut attributes = Attributes::default();
    for (flag, attribute) in table {
        if flags.contains(flag) {
            attributes |= attribute;
        }
    }
    attributes
}
