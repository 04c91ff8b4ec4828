//! Keys by the kitty keyboard protocol, as far as a program asked for it.
//!
//! Only presses are sent, so the flag for event types changes the form of function keys and nothing else. Of the
//! alternate keys the shifted one is reported, for letters; there is no layout to know others from. Associated text
//! without all keys as sequences is undefined, and ignored.

use super::key::upper;
use super::{Code, Key, Keypad, legacy};

/// Keys that would be ambiguous are sequences.
const DISAMBIGUATE: u8 = 1;
/// Repeats and releases are reported too.
const EVENT_TYPES: u8 = 2;
/// The shifted key is reported too.
const ALTERNATE_KEYS: u8 = 4;
/// All keys are sequences.
const ALL_KEYS: u8 = 8;
/// With the text they type.
const ASSOCIATED_TEXT: u8 = 16;

/// The number of F13, where the function keys that have no older sequence begin.
const F13: u32 = 57_376;
/// The number of the keypad's 0.
const KEYPAD_0: u32 = 57_399;

/// The bytes of a press, or none when the flags leave the key as it ever was.
pub(super) fn encode(key: Key, flags: u8) -> Option<Vec<u8>> {
    match number(key.code) {
        Some(number) => is_sequence(key, flags).then(|| numbered(key, number, flags)),
        None => (flags & (DISAMBIGUATE | EVENT_TYPES | ALL_KEYS) != 0).then(|| function(key)),
    }
}

/// Whether a key that has bytes of its own is sent as a sequence instead.
fn is_sequence(key: Key, flags: u8) -> bool {
    if flags & ALL_KEYS != 0 {
        return true;
    }
    let is_told = match key.code {
        _ if key.text().is_some() => false,
        // A shell must stay usable after a program that did not clean up: reset and Enter can be typed.
        Code::Enter | Code::Tab | Code::Backspace => !key.modifiers.is_empty(),
        Code::Function(_) => return flags & (DISAMBIGUATE | EVENT_TYPES) != 0,
        _ => true,
    };
    is_told && flags & DISAMBIGUATE != 0
}

/// The number of a key that is sent as `CSI number u`; none for those that keep their letter or number.
fn number(code: Code) -> Option<u32> {
    Some(match code {
        Code::Char(c) => u32::from(c),
        Code::Enter => 13,
        Code::Escape => 27,
        Code::Tab => 9,
        Code::Backspace => 127,
        Code::Function(number @ 13..=24) => F13 + u32::from(number - 13),
        Code::Keypad(keypad) => {
            KEYPAD_0
                + match keypad {
                    Keypad::Digit(digit) => u32::from(digit.min(9)),
                    Keypad::Decimal => 10,
                    Keypad::Divide => 11,
                    Keypad::Multiply => 12,
                    Keypad::Minus => 13,
                    Keypad::Plus => 14,
                    Keypad::Enter => 15,
                }
        }
        _ => return None,
    })
}

/// `CSI number:shifted ; modifiers ; text u`, without what has nothing to tell.
fn numbered(key: Key, number: u32, flags: u8) -> Vec<u8> {
    let mut sequence = format!("\x1b[{number}");
    if let Some(shifted) = shifted(key).filter(|_| flags & ALTERNATE_KEYS != 0) {
        sequence += &format!(":{}", u32::from(shifted));
    }
    let text = key.text().filter(|_| flags & ASSOCIATED_TEXT != 0);
    match key.modifiers.parameter() {
        1 if text.is_none() => {}
        1 => sequence += ";",
        parameter => sequence += &format!(";{parameter}"),
    }
    if let Some(text) = text {
        sequence += &format!(";{}", u32::from(text));
    }
    sequence.push('u');
    sequence.into_bytes()
}

fn shifted(key: Key) -> Option<char> {
    match key.code {
        Code::Char(c) if key.modifiers.shift => upper(c),
        _ => None,
    }
}

/// The older form, always with CSI. F3 has a number since its letter is that of a cursor position report.
fn function(key: Key) -> Vec<u8> {
    let form = match key.code {
        Code::Function(3) => Some(legacy::Form::Number(13)),
        code => legacy::form(code),
    };
    form.map_or_else(Vec::new, |form| legacy::sequence(form, "\x1b[", key.modifiers))
}

#[cfg(test)]
mod tests {
    use super::super::{KeyModes, encode};
    use super::*;

    fn check(kitty: u8, cases: &[(&str, &str)]) {
        // The older modes do not apply to a key that the protocol encodes.
        let modes = KeyModes { kitty, application_cursor: true, ..KeyModes::default() };
        for (name, expected) in cases {
            let key = Key::parse(name).expect(name);
            let bytes = encode(&key, &modes);
            assert_eq!(String::from_utf8_lossy(&bytes), *expected, "{name} with flags {kitty}");
        }
    }

    const FUNCTION_KEYS: [(&str, &str); 14] = [
        ("Up", "\x1b[A"),
        ("Home", "\x1b[H"),
        ("Ctrl-Left", "\x1b[1;5D"),
        ("Delete", "\x1b[3~"),
        ("Shift-PageUp", "\x1b[5;2~"),
        ("F1", "\x1b[P"),
        ("F3", "\x1b[13~"),
        ("Ctrl-F3", "\x1b[13;5~"),
        ("F4", "\x1b[S"),
        ("F5", "\x1b[15~"),
        ("F12", "\x1b[24~"),
        ("F13", "\x1b[57376u"),
        ("Shift-F13", "\x1b[57376;2u"),
        ("F24", "\x1b[57387u"),
    ];

    #[test]
    fn function_keys_have_one_form_in_every_mode() {
        for flags in [1, 2, 3, 5, 8, 31] {
            check(flags, &FUNCTION_KEYS);
        }
    }

    #[test]
    fn flags_that_tell_no_key_leave_all_as_it_was() {
        let cases = [("Up", "\x1bOA"), ("F1", "\x1bOP"), ("Esc", "\x1b"), ("Ctrl-C", "\x03"), ("A", "A")];
        for flags in [0, 4, 16, 20] {
            check(flags, &cases);
        }
    }

    #[test]
    fn disambiguation_leaves_text_and_the_three_keys_of_a_shell() {
        let cases = [
            ("a", "a"),
            ("A", "A"),
            ("é", "é"),
            ("Space", " "),
            ("Shift-Space", " "),
            ("KP5", "5"),
            ("KPPlus", "+"),
            ("Enter", "\r"),
            ("Tab", "\t"),
            ("Backspace", "\x7f"),
        ];
        for flags in [1, 3, 5, 17] {
            check(flags, &cases);
        }
    }

    #[test]
    fn disambiguation_tells_chords_and_escape() {
        let cases = [
            ("Esc", "\x1b[27u"),
            ("Alt-Esc", "\x1b[27;3u"),
            ("Ctrl-C", "\x1b[99;5u"),
            ("Ctrl-Shift-C", "\x1b[99;6u"),
            ("Alt-x", "\x1b[120;3u"),
            ("Alt-X", "\x1b[120;4u"),
            ("Ctrl-Alt-x", "\x1b[120;7u"),
            ("Alt-é", "\x1b[233;3u"),
            ("Ctrl-Space", "\x1b[32;5u"),
            ("Ctrl-[", "\x1b[91;5u"),
            ("Ctrl-;", "\x1b[59;5u"),
            ("Shift-Enter", "\x1b[13;2u"),
            ("Shift-Tab", "\x1b[9;2u"),
            ("Ctrl-Backspace", "\x1b[127;5u"),
            ("KPEnter", "\x1b[57414u"),
            ("Ctrl-KP5", "\x1b[57404;5u"),
            ("Alt-KPPlus", "\x1b[57413;3u"),
        ];
        for flags in [1, 3, 17] {
            check(flags, &cases);
        }
    }

    #[test]
    fn event_types_alone_disambiguate_nothing() {
        check(2, &[("Esc", "\x1b"), ("Ctrl-C", "\x03"), ("Shift-Tab", "\x1b[Z"), ("Alt-x", "\x1bx"), ("a", "a")]);
    }

    #[test]
    fn the_shifted_letter_is_told_on_demand() {
        check(5, &[("Alt-X", "\x1b[120:88;4u"), ("Ctrl-Shift-c", "\x1b[99:67;6u"), ("Ctrl-C", "\x1b[99;5u")]);
        check(13, &[("A", "\x1b[97:65;2u"), ("Shift-1", "\x1b[49;2u"), ("Shift-Enter", "\x1b[13;2u")]);
    }

    #[test]
    fn all_keys_are_sequences_on_demand() {
        let cases = [
            ("a", "\x1b[97u"),
            ("A", "\x1b[97;2u"),
            ("!", "\x1b[33u"),
            ("é", "\x1b[233u"),
            ("Space", "\x1b[32u"),
            ("Enter", "\x1b[13u"),
            ("Tab", "\x1b[9u"),
            ("BTab", "\x1b[9;2u"),
            ("Backspace", "\x1b[127u"),
            ("Esc", "\x1b[27u"),
            ("Ctrl-C", "\x1b[99;5u"),
            ("KP0", "\x1b[57399u"),
            ("KPDecimal", "\x1b[57409u"),
            ("KPDivide", "\x1b[57410u"),
            ("KPMultiply", "\x1b[57411u"),
            ("KPMinus", "\x1b[57412u"),
            ("KPPlus", "\x1b[57413u"),
        ];
        for flags in [8, 9, 11] {
            check(flags, &cases);
        }
    }

    #[test]
    fn sequences_carry_the_text_on_demand() {
        let cases = [
            ("a", "\x1b[97;;97u"),
            ("A", "\x1b[97;2;65u"),
            ("漢", "\x1b[28450;;28450u"),
            ("Space", "\x1b[32;;32u"),
            ("KP1", "\x1b[57400;;49u"),
            ("Enter", "\x1b[13u"),
            ("KPEnter", "\x1b[57414u"),
            ("Ctrl-C", "\x1b[99;5u"),
            ("Alt-x", "\x1b[120;3u"),
        ];
        for flags in [24, 25, 27] {
            check(flags, &cases);
        }
    }
}
