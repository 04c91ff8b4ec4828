//! Clicks and the wheel, as the bytes a terminal reports them with.
//!
//! Nothing is sent to a program that did not ask for the mouse: it would read the bytes as typed keys.

use std::fmt;

use kpty_emulator::{Modes, Mouse};

use super::Modifiers;

/// The last column or row, from 1, that the old form has a byte for.
const LAST_OF_OLD_FORM: u16 = 223;
/// What the old form says for a release, whichever button it was.
const OLD_RELEASE: u8 = 3;

/// Something the mouse did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MouseEvent {
    /// What it was.
    pub kind: MouseKind,
    /// Column, from 0.
    pub col: u16,
    /// Row of the screen, from 0.
    pub row: u16,
    /// Keys held meanwhile.
    pub modifiers: Modifiers,
}

/// What the mouse did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each name says it all")]
pub enum MouseKind {
    Press(Button),
    Release(Button),
    ScrollUp,
    ScrollDown,
}

/// A button of the mouse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each name says it all")]
pub enum Button {
    #[default]
    Left,
    Middle,
    Right,
}

/// Why a mouse event cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MouseRefused {
    /// The program has not asked for the mouse.
    NotWanted,
    /// The program asked for the old form, which cannot tell this place.
    TooFar {
        /// Column, from 0.
        col: u16,
        /// Row, from 0.
        row: u16,
    },
}

impl fmt::Display for MouseRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWanted => f.write_str("the program has not asked for the mouse: use keys instead"),
            Self::TooFar { col, row } => write!(
                f,
                "the program takes mouse events up to column and row {}, not column {col}, row {row}: use keys, or a \
                 smaller terminal",
                LAST_OF_OLD_FORM - 1
            ),
        }
    }
}

impl std::error::Error for MouseRefused {}

/// The bytes that report the event to a program with these modes.
pub fn encode(event: MouseEvent, modes: &Modes) -> Result<Vec<u8>, MouseRefused> {
    match modes.mouse {
        Mouse::Off => Err(MouseRefused::NotWanted),
        Mouse::Click | Mouse::Drag | Mouse::Motion if modes.sgr_mouse => Ok(sgr(event)),
        Mouse::Click | Mouse::Drag | Mouse::Motion => old_form(event),
    }
}

/// A press and a release in the same place.
pub fn click(button: Button, col: u16, row: u16, modifiers: Modifiers, modes: &Modes) -> Result<Vec<u8>, MouseRefused> {
    let event = |kind| MouseEvent { kind, col, row, modifiers };
    let mut bytes = encode(event(MouseKind::Press(button)), modes)?;
    bytes.extend(encode(event(MouseKind::Release(button)), modes)?);
    Ok(bytes)
}

fn sgr(event: MouseEvent) -> Vec<u8> {
    let code = button_code(event.kind) + modifier_code(event.modifiers);
    let (col, row) = (u32::from(event.col) + 1, u32::from(event.row) + 1);
    let last = if matches!(event.kind, MouseKind::Release(_)) { 'm' } else { 'M' };
    format!("\x1b[<{code};{col};{row}{last}").into_bytes()
}

fn old_form(event: MouseEvent) -> Result<Vec<u8>, MouseRefused> {
    let MouseEvent { kind, col, row, modifiers } = event;
    let place = |at: u16| u8::try_from(at).ok().filter(|at| u16::from(*at) < LAST_OF_OLD_FORM).map(|at| 33 + at);
    let (Some(x), Some(y)) = (place(col), place(row)) else { return Err(MouseRefused::TooFar { col, row }) };
    let code = match kind {
        MouseKind::Release(_) => OLD_RELEASE,
        _ => button_code(kind),
    };
    Ok(vec![b'\x1b', b'[', b'M', 32 + code + modifier_code(modifiers), x, y])
}

fn button_code(kind: MouseKind) -> u8 {
    match kind {
        MouseKind::Press(button) | MouseKind::Release(button) => button as u8,
        MouseKind::ScrollUp => 64,
        MouseKind::ScrollDown => 65,
    }
}

fn modifier_code(modifiers: Modifiers) -> u8 {
    4 * u8::from(modifiers.shift) + 8 * u8::from(modifiers.alt) + 16 * u8::from(modifiers.ctrl)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Modifiers = Modifiers { shift: false, alt: false, ctrl: false };
    const ALL: Modifiers = Modifiers { shift: true, alt: true, ctrl: true };

    fn modes(mouse: Mouse, sgr_mouse: bool) -> Modes {
        Modes { mouse, sgr_mouse, ..Modes::default() }
    }

    fn event(kind: MouseKind, col: u16, row: u16, modifiers: Modifiers) -> MouseEvent {
        MouseEvent { kind, col, row, modifiers }
    }

    #[test]
    fn a_program_that_did_not_ask_gets_nothing() {
        for sgr in [false, true] {
            let refused = encode(event(MouseKind::ScrollUp, 0, 0, NONE), &modes(Mouse::Off, sgr));
            assert_eq!(refused, Err(MouseRefused::NotWanted));
            assert_eq!(click(Button::Left, 0, 0, NONE, &modes(Mouse::Off, sgr)), Err(MouseRefused::NotWanted));
        }
    }

    #[test]
    fn sgr_events_have_no_edge() {
        for (event, expected) in [
            (event(MouseKind::Press(Button::Left), 0, 0, NONE), "\x1b[<0;1;1M"),
            (event(MouseKind::Release(Button::Left), 0, 0, NONE), "\x1b[<0;1;1m"),
            (event(MouseKind::Press(Button::Middle), 9, 4, NONE), "\x1b[<1;10;5M"),
            (event(MouseKind::Release(Button::Right), 999, 500, ALL), "\x1b[<30;1000;501m"),
            (event(MouseKind::ScrollUp, 1, 2, NONE), "\x1b[<64;2;3M"),
            (event(MouseKind::ScrollDown, u16::MAX, 2, NONE), "\x1b[<65;65536;3M"),
        ] {
            for mouse in [Mouse::Click, Mouse::Drag, Mouse::Motion] {
                assert_eq!(encode(event, &modes(mouse, true)), Ok(expected.as_bytes().to_vec()));
            }
        }
    }

    #[test]
    fn old_events_are_bytes_up_to_an_edge() {
        for (event, expected) in [
            (event(MouseKind::Press(Button::Left), 0, 0, NONE), Ok([32, 33, 33])),
            (event(MouseKind::Press(Button::Right), 0, 1, NONE), Ok([34, 33, 34])),
            (event(MouseKind::Release(Button::Right), 0, 1, NONE), Ok([35, 33, 34])),
            (event(MouseKind::ScrollDown, 222, 222, ALL), Ok([32 + 65 + 28, 255, 255])),
            (event(MouseKind::ScrollUp, 223, 0, NONE), Err(MouseRefused::TooFar { col: 223, row: 0 })),
            (event(MouseKind::ScrollUp, 0, 256, NONE), Err(MouseRefused::TooFar { col: 0, row: 256 })),
        ] {
            let expected = expected.map(|bytes| [b"\x1b[M", &bytes[..]].concat());
            assert_eq!(encode(event, &modes(Mouse::Click, false)), expected);
        }
    }

    #[test]
    fn a_click_is_a_press_and_a_release() {
        let sgr = click(Button::Middle, 1, 2, NONE, &modes(Mouse::Click, true));
        assert_eq!(sgr, Ok(b"\x1b[<1;2;3M\x1b[<1;2;3m".to_vec()));
        let old = click(Button::Left, 0, 0, NONE, &modes(Mouse::Motion, false));
        assert_eq!(old, Ok(b"\x1b[M !!\x1b[M#!!".to_vec()));
        let far = click(Button::Left, 300, 0, NONE, &modes(Mouse::Motion, false));
        assert_eq!(far, Err(MouseRefused::TooFar { col: 300, row: 0 }));
    }
}
