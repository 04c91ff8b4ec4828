//! Names of keys and chords, as people and programs write them.
//!
//! A chord is modifiers and a key with `-` or `+` between: `Ctrl-C`, `alt+Left`, `C-M-x`, `^C`. Case does not matter
//! but for a single character.

use std::fmt;

use super::{Code, Key, Keypad, Modifiers};
use kpty_guard::Redactor;

/// Names with several letters; the first name of a key is the one that is suggested.
const NAMES: [(&str, Code); 38] = [
    ("Enter", Code::Enter),
    ("Return", Code::Enter),
    ("Esc", Code::Escape),
    ("Escape", Code::Escape),
    ("Tab", Code::Tab),
    ("Backspace", Code::Backspace),
    ("BSpace", Code::Backspace),
    ("Insert", Code::Insert),
    ("Ins", Code::Insert),
    ("Delete", Code::Delete),
    ("Del", Code::Delete),
    ("Up", Code::Up),
    ("Down", Code::Down),
    ("Left", Code::Left),
    ("Right", Code::Right),
    ("Home", Code::Home),
    ("End", Code::End),
    ("PageUp", Code::PageUp),
    ("PgUp", Code::PageUp),
    ("PageDown", Code::PageDown),
    ("PgDn", Code::PageDown),
    ("Space", Code::Char(' ')),
    ("KP0", Code::Keypad(Keypad::Digit(0))),
    ("KP1", Code::Keypad(Keypad::Digit(1))),
    ("KP2", Code::Keypad(Keypad::Digit(2))),
    ("KP3", Code::Keypad(Keypad::Digit(3))),
    ("KP4", Code::Keypad(Keypad::Digit(4))),
    ("KP5", Code::Keypad(Keypad::Digit(5))),
    ("KP6", Code::Keypad(Keypad::Digit(6))),
    ("KP7", Code::Keypad(Keypad::Digit(7))),
    ("KP8", Code::Keypad(Keypad::Digit(8))),
    ("KP9", Code::Keypad(Keypad::Digit(9))),
    ("KPDecimal", Code::Keypad(Keypad::Decimal)),
    ("KPDivide", Code::Keypad(Keypad::Divide)),
    ("KPMultiply", Code::Keypad(Keypad::Multiply)),
    ("KPMinus", Code::Keypad(Keypad::Minus)),
    ("KPPlus", Code::Keypad(Keypad::Plus)),
    ("KPEnter", Code::Keypad(Keypad::Enter)),
];
/// Shift and Tab as one name.
const BACK_TAB: &str = "BTab";
/// F1 to F24.
const FUNCTION_KEYS: std::ops::RangeInclusive<u8> = 1..=24;

const SHIFT: Modifiers = Modifiers { shift: true, alt: false, ctrl: false };
const ALT: Modifiers = Modifiers { shift: false, alt: true, ctrl: false };
const CTRL: Modifiers = Modifiers { shift: false, alt: false, ctrl: true };

/// Names of modifiers; those of one letter are tmux's.
const MODIFIERS: [(&str, Modifiers); 8] = [
    ("Ctrl", CTRL),
    ("Control", CTRL),
    ("C", CTRL),
    ("Alt", ALT),
    ("Meta", ALT),
    ("M", ALT),
    ("Shift", SHIFT),
    ("S", SHIFT),
];

/// Characters of an unknown name that its error repeats, and the longest name worth comparing.
const LONGEST_NAME_CHARS: usize = 32;
/// Suggestions in an error.
const MOST_SUGGESTIONS: usize = 3;

/// Why a name is not a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// There was no name at all.
    Empty,
    /// No key has this name.
    UnknownKey {
        /// The name, without the modifiers that were understood.
        name: String,
        /// Names like it, the likeliest first.
        closest: Vec<String>,
    },
    /// No modifier has this name.
    UnknownModifier {
        /// The name.
        name: String,
        /// Names like it, the likeliest first.
        closest: Vec<String>,
    },
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => {
                f.write_str("the name of a key is empty: use a name such as Enter, Ctrl-C, F5, or a character")
            }
            Self::UnknownKey { name, closest } if closest.is_empty() => {
                write!(f, "no key is called {name:?}: use a name such as Enter, Up, F5, KP0, or one character")
            }
            Self::UnknownKey { name, closest } => {
                write!(f, "no key is called {name:?}: did you mean {}?", closest.join(", "))
            }
            Self::UnknownModifier { name, closest } if closest.is_empty() => {
                write!(f, "no modifier is called {name:?}: use Ctrl, Alt or Shift")
            }
            Self::UnknownModifier { name, closest } => {
                write!(f, "no modifier is called {name:?}: did you mean {}?", closest.join(", "))
            }
        }
    }
}

impl std::error::Error for KeyError {}

impl Key {
    /// Reads a name or a chord: `a`, `Enter`, `Ctrl-C`, `Alt++`, `C-Left`, `^C`.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let (mut modifiers, name) = split_modifiers(text);
        if name.is_empty() {
            return Err(KeyError::Empty);
        }
        if name.eq_ignore_ascii_case(BACK_TAB) {
            modifiers.shift = true;
            return Ok(Self::new(Code::Tab, modifiers));
        }
        let code = single(name).map(Code::Char).or_else(|| function_key(name)).or_else(|| named(name));
        code.map(|code| Self::new(code, modifiers)).ok_or_else(|| unknown(name))
    }
}

/// The modifiers at the front, and the rest. A single character is a key and never a separator.
fn split_modifiers(text: &str) -> (Modifiers, &str) {
    let mut modifiers = Modifiers::default();
    let mut rest = text;
    while let Some((held, after)) = leading_modifier(rest) {
        modifiers.shift |= held.shift;
        modifiers.alt |= held.alt;
        modifiers.ctrl |= held.ctrl;
        rest = after;
    }
    (modifiers, rest)
}

fn leading_modifier(text: &str) -> Option<(Modifiers, &str)> {
    let (held, after) = match text.strip_prefix('^') {
        Some(after) => (CTRL, after),
        None => {
            let (name, after) = text.split_once(['-', '+'])?;
            (MODIFIERS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?.1, after)
        }
    };
    (!after.is_empty()).then_some((held, after))
}

fn single(name: &str) -> Option<char> {
    let mut chars = name.chars();
    let first = chars.next()?;
    chars.next().is_none().then_some(first)
}

fn function_key(name: &str) -> Option<Code> {
    let digits = name.strip_prefix(['F', 'f']).filter(|digits| !digits.starts_with(['0', '+']))?;
    digits.parse().ok().filter(|number| FUNCTION_KEYS.contains(number)).map(Code::Function)
}

fn named(name: &str) -> Option<Code> {
    NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, code)| *code)
}

fn unknown(name: &str) -> KeyError {
    let modifier = name.split_once(['-', '+']).filter(|(before, after)| !before.is_empty() && !after.is_empty());
    let shown = |name: &str| Redactor::default().redact(name).chars().take(LONGEST_NAME_CHARS).collect();
    match modifier {
        Some((modifier, _)) => {
            let known = MODIFIERS.iter().map(|(name, _)| name.to_string()).filter(|name| name.len() > 1);
            KeyError::UnknownModifier { name: shown(modifier), closest: closest(modifier, known) }
        }
        None => {
            let function_keys = FUNCTION_KEYS.map(|number| format!("F{number}"));
            let known = NAMES.iter().map(|(name, _)| *name).chain([BACK_TAB]).map(str::to_owned).chain(function_keys);
            KeyError::UnknownKey { name: shown(name), closest: closest(name, known) }
        }
    }
}

/// The few known names that differ little, the likeliest first.
fn closest(name: &str, known: impl Iterator<Item = String>) -> Vec<String> {
    let wanted: Vec<char> = name.chars().map(|c| c.to_ascii_lowercase()).collect();
    if wanted.len() > LONGEST_NAME_CHARS {
        return Vec::new();
    }
    let far = (wanted.len() / 2).max(1);
    let mut near: Vec<(usize, String)> = known
        .map(|known| (difference(&wanted, &known.to_ascii_lowercase()), known))
        .filter(|(difference, _)| *difference <= far)
        .collect();
    near.sort_by_key(|(difference, _)| *difference);
    near.truncate(MOST_SUGGESTIONS);
    near.into_iter().map(|(_, known)| known).collect()
}

/// Letters to insert, remove or change; one where the wanted name is only the start of the known.
fn difference(wanted: &[char], known: &str) -> usize {
    if known.chars().take(wanted.len()).eq(wanted.iter().copied()) {
        return 1;
    }
    let mut row: Vec<usize> = (0..=wanted.len()).collect();
    for (above, letter) in known.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (index, wanted) in wanted.iter().enumerate() {
            let changed = diagonal + usize::from(*wanted != letter);
            diagonal = row[index + 1];
            row[index + 1] = changed.min(diagonal + 1).min(row[index] + 1);
        }
    }
    row[wanted.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, code: Code, modifiers: Modifiers) {
        assert_eq!(Key::parse(text), Ok(Key::new(code, modifiers)), "{text}");
    }

    const NONE: Modifiers = Modifiers { shift: false, alt: false, ctrl: false };
    const CTRL_SHIFT: Modifiers = Modifiers { shift: true, alt: false, ctrl: true };
    const CTRL_ALT: Modifiers = Modifiers { shift: false, alt: true, ctrl: true };

    #[test]
    fn every_name_is_a_key_in_any_case() {
        for (name, code) in NAMES {
            for text in [name.to_owned(), name.to_lowercase(), name.to_uppercase()] {
                check(&text, code, NONE);
                check(&format!("ctrl-{text}"), code, CTRL);
            }
        }
        for number in 1..=24 {
            check(&format!("F{number}"), Code::Function(number), NONE);
            check(&format!("f{number}"), Code::Function(number), NONE);
        }
        check("BTab", Code::Tab, SHIFT);
        check("C-btab", Code::Tab, CTRL_SHIFT);
    }

    #[test]
    fn a_single_character_is_itself() {
        for c in ['a', 'Z', 'é', '漢', '-', '+', '^', ' ', '0', 'C', 'F', '"'] {
            check(&c.to_string(), Code::Char(c), NONE);
        }
    }

    #[test]
    fn chords_are_modifiers_and_a_key() {
        for (text, code, modifiers) in [
            ("Ctrl-C", Code::Char('c'), CTRL),
            ("Ctrl+C", Code::Char('c'), CTRL),
            ("control-c", Code::Char('c'), CTRL),
            ("C-c", Code::Char('c'), CTRL),
            ("c-C", Code::Char('c'), CTRL),
            ("^C", Code::Char('c'), CTRL),
            ("^[", Code::Char('['), CTRL),
            ("^^", Code::Char('^'), CTRL),
            ("^Left", Code::Left, CTRL),
            ("M-^x", Code::Char('x'), CTRL_ALT),
            ("Alt-x", Code::Char('x'), ALT),
            ("M-x", Code::Char('x'), ALT),
            ("meta+x", Code::Char('x'), ALT),
            ("Alt-X", Code::Char('X'), ALT),
            ("Shift-Tab", Code::Tab, SHIFT),
            ("S-Tab", Code::Tab, SHIFT),
            ("Ctrl-Shift-Left", Code::Left, CTRL_SHIFT),
            ("Shift+Ctrl-Left", Code::Left, CTRL_SHIFT),
            ("C-M-S-F5", Code::Function(5), Modifiers { shift: true, alt: true, ctrl: true }),
            ("Ctrl--", Code::Char('-'), CTRL),
            ("Ctrl-+", Code::Char('+'), CTRL),
            ("Alt-+", Code::Char('+'), ALT),
            ("Alt++", Code::Char('+'), ALT),
            ("Ctrl-Alt--", Code::Char('-'), CTRL_ALT),
            ("Ctrl- ", Code::Char(' '), CTRL),
            ("Ctrl-Ctrl-a", Code::Char('a'), CTRL),
        ] {
            check(text, code, modifiers);
        }
    }

    #[test]
    fn an_unknown_name_is_told_with_names_like_it() {
        for (text, unknown, suggestions) in [
            ("Entr", "Entr", &["Enter"][..]),
            ("ctrl-pagup", "pagup", &["PageUp"]),
            ("Page", "Page", &["PageUp", "PageDown"]),
            ("Retrun", "Retrun", &["Return"]),
            ("F25", "F25", &["F2"]),
            ("F0", "F0", &["F1"]),
            ("KPAdd", "KPAdd", &[]),
            ("Supercalifragilistic", "Supercalifragilistic", &[]),
            ("Ctrl-", "Ctrl-", &[]),
            ("ab", "ab", &[]),
        ] {
            let Err(KeyError::UnknownKey { name, closest }) = Key::parse(text) else { panic!("{text} is a key") };
            assert_eq!(name, unknown);
            assert!(closest.len() <= MOST_SUGGESTIONS);
            assert!(
                closest.iter().map(String::as_str).take(suggestions.len()).eq(suggestions.iter().copied()),
                "{text}: {closest:?}"
            );
        }
    }

    #[test]
    fn an_unknown_modifier_is_told_as_one() {
        for (text, name, closest) in [("Ctl-C", "Ctl", vec!["Ctrl"]), ("Alt-Cmd-x", "Cmd", vec![])] {
            let closest = closest.into_iter().map(str::to_owned).collect();
            assert_eq!(Key::parse(text), Err(KeyError::UnknownModifier { name: name.to_owned(), closest }));
        }
    }

    #[test]
    fn errors_say_what_to_write_instead() {
        for (text, expected) in [
            ("", "the name of a key is empty: use a name such as Enter, Ctrl-C, F5, or a character"),
            ("Entr", "no key is called \"Entr\": did you mean Enter"),
            ("qqqqq", "no key is called \"qqqqq\": use a name such as Enter, Up, F5, KP0, or one character"),
            ("Ctl-c", "no modifier is called \"Ctl\": did you mean Ctrl?"),
            ("Qqq-c", "no modifier is called \"Qqq\": use Ctrl, Alt or Shift"),
        ] {
            let message = Key::parse(text).expect_err(text).to_string();
            assert!(message.starts_with(expected), "{message}");
        }
        let endless = "x".repeat(1_000_000);
        assert!(Key::parse(&endless).expect_err("no name").to_string().len() < 200);
    }
}
