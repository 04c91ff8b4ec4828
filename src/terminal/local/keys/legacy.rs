//! Keys as xterm sends them when nobody asked for more.
//!
//! What has no sequence of its own sends what the key sends without the modifier that makes the difference:
//! `Ctrl-;` types `;`, and `Ctrl-Enter` is Enter.

use super::key::upper;
use super::{Code, Key, KeyModes, Keypad, Modifiers};

/// Encoding of a key that types nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `CSI letter`, or `SS3 letter`; `CSI 1 ; modifiers letter`.
    Letter(u8),
    /// `CSI number ~`; `CSI number ; modifiers ~`.
    Number(u8),
}

pub(super) fn encode(key: Key, modes: &KeyModes) -> Vec<u8> {
    let modifiers = key.modifiers;
    match key.code {
        Code::Char(c) => with_alt(modifiers, &character(c, modifiers)),
        Code::Enter => with_alt(modifiers, enter(modes)),
        Code::Escape => with_alt(modifiers, b"\x1b"),
        Code::Tab if modifiers.shift => with_alt(modifiers, b"\x1b[Z"),
        Code::Tab => with_alt(modifiers, b"\t"),
        Code::Backspace if modifiers.ctrl => with_alt(modifiers, b"\x08"),
        Code::Backspace => with_alt(modifiers, b"\x7f"),
        Code::Keypad(keypad) => self::keypad(keypad, modifiers, modes),
        code => form(code).map_or_else(Vec::new, |form| sequence(form, introducer(code, modes), modifiers)),
    }
}

/// The form of a key that types nothing; none for the others.
pub(super) fn form(code: Code) -> Option<Form> {
    Some(match code {
        Code::Up => Form::Letter(b'A'),
        Code::Down => Form::Letter(b'B'),
        Code::Right => Form::Letter(b'C'),
        Code::Left => Form::Letter(b'D'),
        Code::End => Form::Letter(b'F'),
        Code::Home => Form::Letter(b'H'),
        Code::Insert => Form::Number(2),
        Code::Delete => Form::Number(3),
        Code::PageUp => Form::Number(5),
        Code::PageDown => Form::Number(6),
        Code::Function(number) => function(number)?,
        _ => return None,
    })
}

/// The numbers have gaps where the VT220's keyboard had them.
fn function(number: u8) -> Option<Form> {
    Some(match number {
        1..=4 => Form::Letter(b'P' + number - 1),
        5 => Form::Number(15),
        6..=10 => Form::Number(number + 11),
        11..=14 => Form::Number(number + 12),
        15..=16 => Form::Number(number + 13),
        17..=20 => Form::Number(number + 14),
        21..=24 => Form::Number(number + 21),
        _ => return None,
    })
}

/// What begins the sequence of a letter key without modifiers.
fn introducer(code: Code, modes: &KeyModes) -> &'static str {
    match code {
        Code::Function(_) => "\x1bO",
        _ if modes.application_cursor => "\x1bO",
        _ => "\x1b[",
    }
}

/// The bytes of a form; `introducer` is for letters without modifiers.
pub(super) fn sequence(form: Form, introducer: &str, modifiers: Modifiers) -> Vec<u8> {
    let parameter = modifiers.parameter();
    let text = match form {
        Form::Letter(letter) if modifiers.is_empty() => format!("{introducer}{}", char::from(letter)),
        Form::Letter(letter) => format!("\x1b[1;{parameter}{}", char::from(letter)),
        Form::Number(number) if modifiers.is_empty() => format!("\x1b[{number}~"),
        Form::Number(number) => format!("\x1b[{number};{parameter}~"),
    };
    text.into_bytes()
}

fn with_alt(modifiers: Modifiers, bytes: &[u8]) -> Vec<u8> {
    let escape: &[u8] = if modifiers.alt { b"\x1b" } else { b"" };
    [escape, bytes].concat()
}

fn enter(modes: &KeyModes) -> &'static [u8] {
    if modes.newline { b"\r\n" } else { b"\r" }
}

fn character(c: char, modifiers: Modifiers) -> Vec<u8> {
    if modifiers.ctrl
        && let Some(control) = control(c)
    {
        return vec![control];
    }
    let typed = if modifiers.shift { upper(c).unwrap_or(c) } else { c };
    typed.to_string().into_bytes()
}

/// The control character of a key, by the table that terminals share since the VT220.
fn control(c: char) -> Option<u8> {
    Some(match c {
        'a'..='z' => c as u8 - b'a' + 1,
        ' ' | '@' | '2' => 0x00,
        '[' | '3' => 0x1b,
        '\\' | '4' => 0x1c,
        ']' | '5' => 0x1d,
        '^' | '~' | '6' => 0x1e,
        '_' | '/' | '7' => 0x1f,
        '?' | '8' => 0x7f,
        _ => return None,
    })
}

/// Sequences only without modifiers: with them a keypad key is the key that types the same.
fn keypad(key: Keypad, modifiers: Modifiers, modes: &KeyModes) -> Vec<u8> {
    if modes.application_keypad && modifiers.is_empty() {
        return vec![b'\x1b', b'O', application(key)];
    }
    match key.text() {
        Some(c) => with_alt(modifiers, &character(c, modifiers)),
        None => with_alt(modifiers, enter(modes)),
    }
}

fn application(key: Keypad) -> u8 {
    match key {
        Keypad::Digit(digit) => b'p' + digit.min(9),
        Keypad::Decimal => b'n',
        Keypad::Divide => b'o',
        Keypad::Multiply => b'j',
        Keypad::Minus => b'm',
        Keypad::Plus => b'k',
        Keypad::Enter => b'M',
    }
}

#[cfg(test)]
mod tests {
    use super::super::encode;
    use super::*;

    fn check(modes: KeyModes, cases: &[(&str, &str)]) {
        for (name, expected) in cases {
            let key = Key::parse(name).expect(name);
            let bytes = encode(&key, &modes);
            assert_eq!(String::from_utf8_lossy(&bytes), *expected, "{name} in {modes:?}");
        }
    }

    #[test]
    fn characters_are_typed() {
        let cases = [
            ("a", "a"),
            ("A", "A"),
            ("Shift-a", "A"),
            ("é", "é"),
            ("Shift-é", "É"),
            ("漢", "漢"),
            ("!", "!"),
            ("Shift-1", "1"),
            ("Space", " "),
            ("Shift-Space", " "),
            ("Alt-x", "\x1bx"),
            ("Alt-X", "\x1bX"),
            ("Alt-é", "\x1bé"),
            ("Alt-Space", "\x1b "),
        ];
        check(KeyModes::default(), &cases);
    }

    #[test]
    fn ctrl_makes_control_characters() {
        let cases = [
            ("Ctrl-C", "\x03"),
            ("Ctrl-a", "\x01"),
            ("Ctrl-Z", "\x1a"),
            ("Ctrl-Shift-C", "\x03"),
            ("Ctrl-Alt-c", "\x1b\x03"),
            ("Ctrl-Space", "\0"),
            ("Ctrl-@", "\0"),
            ("Ctrl-[", "\x1b"),
            ("Ctrl-\\", "\x1c"),
            ("Ctrl-]", "\x1d"),
            ("Ctrl-^", "\x1e"),
            ("Ctrl-_", "\x1f"),
            ("Ctrl-/", "\x1f"),
            ("Ctrl-?", "\x7f"),
            ("Ctrl-6", "\x1e"),
            ("Ctrl-;", ";"),
            ("Ctrl--", "-"),
            ("Ctrl-é", "é"),
            ("\x03", "\x03"),
        ];
        check(KeyModes::default(), &cases);
    }

    #[test]
    fn named_keys_send_their_characters() {
        let cases = [
            ("Enter", "\r"),
            ("Ctrl-Enter", "\r"),
            ("Alt-Enter", "\x1b\r"),
            ("Esc", "\x1b"),
            ("Alt-Esc", "\x1b\x1b"),
            ("Tab", "\t"),
            ("Shift-Tab", "\x1b[Z"),
            ("BTab", "\x1b[Z"),
            ("Alt-Tab", "\x1b\t"),
            ("Ctrl-Tab", "\t"),
            ("Backspace", "\x7f"),
            ("Shift-Backspace", "\x7f"),
            ("Ctrl-Backspace", "\x08"),
            ("Alt-Backspace", "\x1b\x7f"),
        ];
        check(KeyModes::default(), &cases);
        let newline = KeyModes { newline: true, ..KeyModes::default() };
        check(newline, &[("Enter", "\r\n"), ("KPEnter", "\r\n"), ("Ctrl-M", "\r")]);
    }

    #[test]
    fn cursor_keys_follow_their_mode_unless_modified() {
        let plain = [
            ("Up", "\x1b[A"),
            ("Down", "\x1b[B"),
            ("Right", "\x1b[C"),
            ("Left", "\x1b[D"),
            ("Home", "\x1b[H"),
            ("End", "\x1b[F"),
        ];
        let application = plain.map(|(name, bytes)| (name, bytes.replace('[', "O")));
        let modified = [
            ("Shift-Up", "\x1b[1;2A"),
            ("Alt-Down", "\x1b[1;3B"),
            ("Shift-Alt-Right", "\x1b[1;4C"),
            ("Ctrl-Left", "\x1b[1;5D"),
            ("Ctrl-Shift-Left", "\x1b[1;6D"),
            ("Ctrl-Alt-Home", "\x1b[1;7H"),
            ("Ctrl-Alt-Shift-End", "\x1b[1;8F"),
            ("Insert", "\x1b[2~"),
            ("Delete", "\x1b[3~"),
            ("Ctrl-Delete", "\x1b[3;5~"),
            ("PageUp", "\x1b[5~"),
            ("Shift-PageDown", "\x1b[6;2~"),
        ];
        let mode = KeyModes { application_cursor: true, ..KeyModes::default() };
        check(KeyModes::default(), &plain);
        check(KeyModes::default(), &modified);
        check(mode, &application.each_ref().map(|(name, bytes)| (*name, bytes.as_str())));
        check(mode, &modified);
    }

    #[test]
    fn function_keys_have_the_numbers_of_a_vt220() {
        let cases = [("F1", "\x1bOP"), ("F4", "\x1bOS"), ("Shift-F1", "\x1b[1;2P"), ("Ctrl-F3", "\x1b[1;5R")];
        check(KeyModes::default(), &cases);
        let numbers = [15, 17, 18, 19, 20, 21, 23, 24, 25, 26, 28, 29, 31, 32, 33, 34, 42, 43, 44, 45];
        for (number, key) in numbers.into_iter().zip(5..) {
            check(KeyModes::default(), &[(&format!("F{key}"), &format!("\x1b[{number}~"))]);
            check(KeyModes::default(), &[(&format!("Alt-F{key}"), &format!("\x1b[{number};3~"))]);
        }
    }

    #[test]
    fn the_keypad_follows_its_mode_unless_modified() {
        let keys = [
            ("KP0", "0", "p"),
            ("KP9", "9", "y"),
            ("KPDecimal", ".", "n"),
            ("KPDivide", "/", "o"),
            ("KPMultiply", "*", "j"),
            ("KPMinus", "-", "m"),
            ("KPPlus", "+", "k"),
            ("KPEnter", "\r", "M"),
        ];
        let mode = KeyModes { application_keypad: true, ..KeyModes::default() };
        for (name, plain, application) in keys {
            check(KeyModes::default(), &[(name, plain)]);
            check(mode, &[(name, &format!("\x1bO{application}"))]);
            check(mode, &[(&format!("Alt-{name}"), &format!("\x1b{plain}"))]);
        }
    }
}
