//! The screen as plain values: what pictures, pages and attached clients draw from.
//!
//! Nothing here refers to an engine; a [`Screen`] stays true when the terminal goes on.

use std::ops::{BitOr, BitOrAssign};
use std::sync::Arc;

use crate::size::Size;

/// Everything a terminal shows at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Width and height.
    pub size: Size,
    /// Top to bottom, `size.rows()` of them.
    pub rows: Vec<Row>,
    /// Where the next character goes.
    pub cursor: Cursor,
    /// What the program asked of the keyboard, the mouse and the paste.
    pub modes: Modes,
    /// The window title, if one was set.
    pub title: Option<String>,
    /// Which of the two buffers is shown.
    pub buffer: Buffer,
}

/// One row of cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Left to right, `size.cols()` of them.
    pub cells: Vec<Cell>,
    /// The text goes on in the next row.
    pub wrapped: bool,
}

/// One cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The base character; a blank for the second half of a wide one.
    pub c: char,
    /// Combining marks on it, at most 16.
    pub marks: Vec<char>,
    /// Columns the character takes.
    pub width: Width,
    /// Colours and attributes.
    pub style: Style,
    /// Where a click leads.
    pub link: Option<Arc<str>>,
}

/// How many columns a cell's character takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Width {
    /// An ordinary cell.
    #[default]
    Single,
    /// The first half of a wide character.
    Double,
    /// The second half of a wide character, or the gap before one that did not fit the row.
    Spacer,
}

/// Colours and attributes of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Style {
    /// Colour of the text.
    pub fg: Color,
    /// Colour behind the text.
    pub bg: Color,
    /// Colour of the underline, when it differs from the text's.
    pub underline_color: Option<Color>,
    /// Bold, italic and so on.
    pub attributes: Attributes,
}

/// A colour as the program named it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Color {
    /// The terminal's own foreground or background.
    #[default]
    Default,
    /// One of the 256 colours of the palette.
    Indexed(u8),
    /// Red, green, blue.
    Rgb(u8, u8, u8),
}

/// A set of text attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes(u16);

#[expect(missing_docs, reason = "each name says it all")]
impl Attributes {
    pub const BOLD: Self = Self(1);
    pub const DIM: Self = Self(1 << 1);
    pub const ITALIC: Self = Self(1 << 2);
    pub const INVERSE: Self = Self(1 << 3);
    pub const HIDDEN: Self = Self(1 << 4);
    pub const STRIKEOUT: Self = Self(1 << 5);
    pub const UNDERLINE: Self = Self(1 << 6);
    pub const DOUBLE_UNDERLINE: Self = Self(1 << 7);
    pub const CURLY_UNDERLINE: Self = Self(1 << 8);
    pub const DOTTED_UNDERLINE: Self = Self(1 << 9);
    pub const DASHED_UNDERLINE: Self = Self(1 << 10);
}

impl Attributes {
    /// True when every attribute of `other` is set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The set as a number below 2048.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// The reverse of [`Attributes::bits`]; bits that mean nothing are left out.
    pub fn from_bits(bits: u16) -> Self {
        Self(bits & ((1 << 11) - 1))
    }

    /// True when no attribute is set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The parameters of SGR that switch these on.
    pub fn sgr(self) -> impl Iterator<Item = &'static str> {
        SGR.into_iter().filter(move |(attribute, _)| self.contains(*attribute)).map(|(_, parameter)| parameter)
    }
}

/// What switches each attribute on.
const SGR: [(Attributes, &str); 11] = [
    (Attributes::BOLD, "1"),
    (Attributes::DIM, "2"),
    (Attributes::ITALIC, "3"),
    (Attributes::UNDERLINE, "4"),
    (Attributes::DOUBLE_UNDERLINE, "4:2"),
    (Attributes::CURLY_UNDERLINE, "4:3"),
    (Attributes::DOTTED_UNDERLINE, "4:4"),
    (Attributes::DASHED_UNDERLINE, "4:5"),
    (Attributes::INVERSE, "7"),
    (Attributes::HIDDEN, "8"),
    (Attributes::STRIKEOUT, "9"),
];

impl BitOr for Attributes {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Attributes {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Position and look of the cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Column, from 0.
    pub col: u16,
    /// Row of the screen, from 0.
    pub row: u16,
    /// The program lets it be seen.
    pub visible: bool,
    /// Its form.
    pub shape: CursorShape,
    /// It blinks.
    pub blinking: bool,
}

/// Form of the cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each name says it all")]
pub enum CursorShape {
    #[default]
    Block,
    Underline,
    Beam,
}

/// What a program asked of keyboard, mouse and paste; a sender of keys encodes by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// Arrow keys send SS3 sequences (DECCKM).
    pub application_cursor: bool,
    /// The keypad sends sequences (DECKPAM).
    pub application_keypad: bool,
    /// Pasted text is to be wrapped in markers (mode 2004).
    pub bracketed_paste: bool,
    /// Focus changes are to be reported (mode 1004).
    pub focus_events: bool,
    /// Which mouse events are wanted.
    pub mouse: Mouse,
    /// Mouse events in the SGR form (mode 1006).
    pub sgr_mouse: bool,
    /// Line feed also returns the carriage (LNM).
    pub newline: bool,
    /// Text wraps at the right edge (DECAWM).
    pub wrap: bool,
    /// Flags of the kitty keyboard protocol, 0 when it is off.
    pub kitty_keyboard: u8,
    /// A synchronized update is open and not shown yet.
    pub synchronized: bool,
}

/// Which mouse events a program wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mouse {
    /// None.
    #[default]
    Off,
    /// Presses and releases (mode 1000).
    Click,
    /// And motion with a button down (mode 1002).
    Drag,
    /// And every motion (mode 1003).
    Motion,
}

/// The two buffers of a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Buffer {
    /// The one with history.
    #[default]
    Main,
    /// The one full-screen programs draw on.
    Alternate,
}
