//! Keys by name, as the bytes a terminal sends for them.
//!
//! [`Key::parse`] reads names and chords such as `Ctrl-C`; [`encode`] gives the bytes for the modes that the program
//! has set: legacy sequences as xterm sends them, or the kitty keyboard protocol as far as the program asked for it.
//! [`mouse`] does the same for clicks and the wheel. There is no keyboard here and so no layout: a key is the
//! character it types, and Shift changes letters only.

mod key;
mod kitty;
mod legacy;
pub mod mouse;
mod name;

use kpty_emulator::Modes;

pub use self::key::{Code, Key, Keypad, Modifiers};
pub use self::name::KeyError;

/// What the program asked of the keyboard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyModes {
    /// Arrow keys send SS3 sequences (DECCKM).
    pub application_cursor: bool,
    /// The keypad sends sequences (DECKPAM).
    pub application_keypad: bool,
    /// Enter sends a line feed too (LNM).
    pub newline: bool,
    /// Flags of the kitty keyboard protocol, 0 when it is off.
    pub kitty: u8,
}

impl From<&Modes> for KeyModes {
    fn from(modes: &Modes) -> Self {
        Self {
            application_cursor: modes.application_cursor,
            application_keypad: modes.application_keypad,
            newline: modes.newline,
            kitty: modes.kitty_keyboard,
        }
    }
}

/// The bytes that a terminal in these modes sends when the key is pressed.
pub fn encode(key: &Key, modes: &KeyModes) -> Vec<u8> {
    kitty::encode(*key, modes.kitty).unwrap_or_else(|| legacy::encode(*key, modes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modes_of_a_screen_are_those_of_its_keys() {
        let modes = Modes { application_cursor: true, newline: true, kitty_keyboard: 5, ..Modes::default() };
        let expected = KeyModes { application_cursor: true, newline: true, kitty: 5, ..KeyModes::default() };
        assert_eq!(KeyModes::from(&modes), expected);
        let keypad = Modes { application_keypad: true, ..Modes::default() };
        assert!(KeyModes::from(&keypad).application_keypad);
    }
}
