//! A key as a value: what it is, what is held with it, and the character it types.

/// A key with the modifiers held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub(super) code: Code,
    pub(super) modifiers: Modifiers,
}

/// A key without modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each name says it all")]
pub enum Code {
    /// A key that types this character; a letter is in lower case.
    Char(char),
    Enter,
    Escape,
    Tab,
    Backspace,
    Insert,
    Delete,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    /// F1 to F24; there are no others, and they send nothing.
    Function(u8),
    Keypad(Keypad),
}

/// A key of the keypad, with the numbers on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each name says it all")]
pub enum Keypad {
    /// 0 to 9.
    Digit(u8),
    Decimal,
    Divide,
    Multiply,
    Minus,
    Plus,
    Enter,
}

/// The modifier keys that are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each name says it all")]
pub struct Modifiers {
    pub shift: bool,
    pub alt: bool,
    pub ctrl: bool,
}

impl Modifiers {
    /// The parameter that stands for them in a sequence; 1 for none.
    pub(super) fn parameter(self) -> u8 {
        1 + u8::from(self.shift) + 2 * u8::from(self.alt) + 4 * u8::from(self.ctrl)
    }

    pub(super) fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl Key {
    /// A key in the one form that equal keys share.
    ///
    /// A capital letter is the small one with Shift, but with Ctrl the small one alone: `Ctrl-C` is what everybody
    /// calls it. A control character is the key that types it, and a line feed is Enter.
    pub fn new(code: Code, modifiers: Modifiers) -> Self {
        match code {
            Code::Char(c) => Self::typing(c, modifiers),
            _ => Self { code, modifiers },
        }
    }

    fn typing(c: char, mut modifiers: Modifiers) -> Self {
        let code = match c {
            '\r' | '\n' => Code::Enter,
            '\t' => Code::Tab,
            '\x1b' => Code::Escape,
            '\x7f' => Code::Backspace,
            '\0'..='\x1f' => {
                modifiers.ctrl = true;
                Code::Char(if c == '\0' { ' ' } else { char::from(c as u8 | 0x40).to_ascii_lowercase() })
            }
            _ => match lower(c) {
                Some(small) => {
                    modifiers.shift |= !modifiers.ctrl;
                    Code::Char(small)
                }
                None => Code::Char(c),
            },
        };
        Self { code, modifiers }
    }

    /// The key.
    pub fn code(self) -> Code {
        self.code
    }

    /// What is held with it.
    pub fn modifiers(self) -> Modifiers {
        self.modifiers
    }

    /// The character that it types, if it types one.
    pub(super) fn text(self) -> Option<char> {
        if self.modifiers.ctrl || self.modifiers.alt {
            return None;
        }
        match self.code {
            Code::Char(c) if self.modifiers.shift => Some(upper(c).unwrap_or(c)),
            Code::Char(c) => Some(c),
            Code::Keypad(key) => key.text(),
            _ => None,
        }
    }
}

impl Keypad {
    pub(super) fn text(self) -> Option<char> {
        Some(match self {
            Self::Digit(digit) => char::from(b'0' + digit.min(9)),
            Self::Decimal => '.',
            Self::Divide => '/',
            Self::Multiply => '*',
            Self::Minus => '-',
            Self::Plus => '+',
            Self::Enter => return None,
        })
    }
}

/// The small letter of a capital that has exactly one, and is its only capital.
fn lower(c: char) -> Option<char> {
    let small = only(c.to_lowercase()).filter(|small| *small != c)?;
    (only(small.to_uppercase()) == Some(c)).then_some(small)
}

/// The capital of a small letter, the reverse of [`lower`].
pub(super) fn upper(c: char) -> Option<char> {
    only(c.to_uppercase()).filter(|capital| lower(*capital) == Some(c))
}

fn only(mut chars: impl Iterator<Item = char>) -> Option<char> {
    let first = chars.next()?;
    chars.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_have_one_form() {
        let none = Modifiers::default();
        let (shift, ctrl) = (Modifiers { shift: true, ..none }, Modifiers { ctrl: true, ..none });
        for (c, modifiers, code, expected) in [
            ('a', none, Code::Char('a'), none),
            ('A', none, Code::Char('a'), shift),
            ('A', shift, Code::Char('a'), shift),
            ('A', ctrl, Code::Char('a'), ctrl),
            ('É', none, Code::Char('é'), shift),
            // These have no small letter of their own.
            ('İ', none, Code::Char('İ'), none),
            ('\u{212a}', none, Code::Char('\u{212a}'), none),
            ('ß', none, Code::Char('ß'), none),
            ('\n', none, Code::Enter, none),
            ('\t', shift, Code::Tab, shift),
            ('\x7f', none, Code::Backspace, none),
            ('\x1b', none, Code::Escape, none),
            ('\x03', none, Code::Char('c'), ctrl),
            ('\0', none, Code::Char(' '), ctrl),
            ('\x1c', none, Code::Char('\\'), ctrl),
            ('\x1f', none, Code::Char('_'), ctrl),
        ] {
            assert_eq!(Key::new(Code::Char(c), modifiers), Key { code, modifiers: expected }, "{c:?}");
        }
    }
}
