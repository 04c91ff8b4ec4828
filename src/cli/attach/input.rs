//! What a person's terminal sends, as keys by their names.
//!
//! The session's program may want other sequences than the person's terminal sends, so bytes are not passed through:
//! they are read here as keys, text, pastes and clicks, and the server writes them as the program expects them. What is
//! not known goes on as text. Everything here is a function of the bytes; whoever reads them decides how long the rest
//! of a sequence may take.

use serde_json::{Value, json};

/// Ends a bracketed paste.
const PASTE_END: &[u8] = b"\x1b[201~";
/// Longest sequence that is waited for; one that is longer is none.
const LONGEST_SEQUENCE: usize = 64;
/// Bytes of a paste that are sent in one piece.
const PASTE_PIECE: usize = 256 << 10;

/// What came of some bytes.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Typed {
    /// As `send_keys` takes them.
    pub(super) keys: Vec<Value>,
    /// The key to detach with was among them; what came after it is dropped.
    pub(super) detach: bool,
}

/// Reads the bytes of a terminal.
#[derive(Debug)]
pub(super) struct Reader {
    detach: u8,
    pending: Vec<u8>,
    /// Text of a paste that has not ended.
    paste: Option<Vec<u8>>,
    /// The first row of the session that is shown; clicks count from there.
    pub(super) first_row: u16,
}

/// What the front of the pending bytes is.
enum Token {
    Key(Value),
    /// Nothing that is passed on.
    Nothing,
    PasteBegins,
    /// The rest has not come yet.
    Incomplete,
}

impl Reader {
    /// A reader that detaches at this control character.
    pub(super) fn new(detach: u8) -> Self {
        Self { detach, pending: Vec::new(), paste: None, first_row: 0 }
    }

    /// Something began that may go on.
    pub(super) fn is_waiting(&self) -> bool {
        !self.pending.is_empty() && self.paste.is_none()
    }

    /// Takes bytes as they came.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Typed {
        self.pending.extend_from_slice(bytes);
        self.take(false)
    }

    /// Nothing more came: what waits is what it is.
    pub(super) fn flush(&mut self) -> Typed {
        self.take(true)
    }

    fn take(&mut self, is_all: bool) -> Typed {
        let mut typed = Typed::default();
        let mut text: Vec<u8> = Vec::new();
        loop {
            if self.paste.is_some() {
                if !self.read_paste(&mut typed.keys) {
                    break;
                }
                continue;
            }
            let Some(&first) = self.pending.first() else { break };
            if first == self.detach {
                self.pending.clear();
                typed.detach = true;
                break;
            }
            if first >= 0x20 && first != 0x7f {
                let length = char_length(&self.pending);
                if length > self.pending.len() && !is_all {
                    break;
                }
                text.extend(self.pending.drain(..length.min(self.pending.len())));
                continue;
            }
            let (token, length) = self.token(first, is_all);
            if matches!(token, Token::Incomplete) {
                break;
            }
            push_text(&mut text, &mut typed.keys);
            self.pending.drain(..length);
            match token {
                Token::Key(key) => typed.keys.push(key),
                Token::PasteBegins => self.paste = Some(Vec::new()),
                Token::Nothing | Token::Incomplete => {}
            }
        }
        push_text(&mut text, &mut typed.keys);
        typed
    }

    /// Reads on in a paste; false when all there is has been read.
    fn read_paste(&mut self, keys: &mut Vec<Value>) -> bool {
        let Some(paste) = &mut self.paste else { return false };
        match memchr::memmem::find(&self.pending, PASTE_END) {
            Some(at) => {
                paste.extend(self.pending.drain(..at));
                self.pending.drain(..PASTE_END.len());
                let text = String::from_utf8_lossy(paste).into_owned();
                self.paste = None;
                if !text.is_empty() {
                    keys.push(json!({ "paste": text }));
                }
                true
            }
            None => {
                // The end marker may have come in part.
                let safe = self.pending.len().saturating_sub(PASTE_END.len() - 1);
                paste.extend(self.pending.drain(..safe));
                if paste.len() >= PASTE_PIECE {
                    let whole = paste.len() - incomplete_tail(paste);
                    let rest = paste.split_off(whole);
                    let text = String::from_utf8_lossy(&std::mem::replace(paste, rest)).into_owned();
                    keys.push(json!({ "paste": text }));
                }
                false
            }
        }
    }

    /// The control character or sequence at the front, and its length.
    fn token(&self, first: u8, is_all: bool) -> (Token, usize) {
        if first != 0x1b {
            return (Token::Key(json!(control_name(first))), 1);
        }
        let rest = &self.pending[1..];
        match rest.first() {
            None if is_all => (Token::Key(json!("Esc")), 1),
            None => (Token::Incomplete, 0),
            Some(b'[') => self.sequence(is_all),
            Some(b'O') => match rest.get(1) {
                None if is_all => (Token::Key(json!("Alt-O")), 2),
                None => (Token::Incomplete, 0),
                Some(&last) => match letter_key(last) {
                    Some(name) => (Token::Key(json!(name)), 3),
                    None => (Token::Key(json!({ "text": text_of(&self.pending[..3]) })), 3),
                },
            },
            Some(0x1b) => (Token::Key(json!("Esc")), 1),
            Some(&byte) if byte < 0x20 || byte == 0x7f => (Token::Key(json!(format!("Alt-{}", control_name(byte)))), 2),
            Some(_) => {
                let length = char_length(rest);
                if length > rest.len() && !is_all {
                    return (Token::Incomplete, 0);
                }
                let length = length.min(rest.len());
                let name = match text_of(&rest[..length]).as_str() {
                    " " => "Alt-Space".to_owned(),
                    c => format!("Alt-{c}"),
                };
                (Token::Key(json!(name)), 1 + length)
            }
        }
    }

    /// A sequence that begins with `ESC [`.
    fn sequence(&self, is_all: bool) -> (Token, usize) {
        let body = &self.pending[2..];
        let Some(end) = body.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
            return match is_all || body.len() > LONGEST_SEQUENCE {
                true => (Token::Key(json!("Alt-[")), 2),
                false => (Token::Incomplete, 0),
            };
        };
        let (params, last, length) = (text_of(&body[..end]), body[end], end + 3);
        let token = match (params.as_str(), last) {
            ("200", b'~') => Token::PasteBegins,
            ("201", b'~') | ("", b'I' | b'O') => Token::Nothing,
            _ if params.starts_with('<') => self.click(&params[1..], last == b'M').map_or(Token::Nothing, Token::Key),
            ("", b'Z') => Token::Key(json!("Shift-Tab")),
            _ => match named(&params, last) {
                Some(name) => Token::Key(json!(name)),
                None => Token::Key(json!({ "text": text_of(&self.pending[..length]) })),
            },
        };
        (token, length)
    }

    /// A click of the mouse; motion is not passed on.
    fn click(&self, params: &str, is_press: bool) -> Option<Value> {
        let mut numbers = params.split(';').map(|number| number.parse::<u16>().ok());
        let (code, col, row) = (numbers.next()??, numbers.next()??, numbers.next()??);
        if code & 32 != 0 {
            return None;
        }
        let action = match (code & 64 != 0, code & 1, is_press) {
            (true, 0, _) => "scroll_up",
            (true, ..) => "scroll_down",
            (false, _, true) => "press",
            (false, _, false) => "release",
        };
        let button = ["left", "middle", "right"].get(usize::from(code & 3)).copied().unwrap_or("left");
        let (row, col) = (row.checked_sub(1)? + self.first_row, col.checked_sub(1)?);
        Some(json!({ "mouse": { "action": action, "button": button, "row": row, "col": col } }))
    }
}

fn push_text(text: &mut Vec<u8>, keys: &mut Vec<Value>) {
    if !text.is_empty() {
        keys.push(json!({ "text": text_of(text) }));
        text.clear();
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// How many bytes the character at the front takes, as its first byte says.
fn char_length(bytes: &[u8]) -> usize {
    match bytes.first() {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf7) => 4,
        _ => 1,
    }
}

/// Bytes at the end that are a character in part.
fn incomplete_tail(bytes: &[u8]) -> usize {
    let start = bytes.iter().rev().take(4).position(|byte| byte & 0xc0 != 0x80).map_or(0, |back| back + 1);
    match char_length(&bytes[bytes.len() - start..]) > start {
        true => start,
        false => 0,
    }
}

/// The key of a control character.
fn control_name(byte: u8) -> String {
    match byte {
        b'\r' => "Enter".to_owned(),
        b'\t' => "Tab".to_owned(),
        0x7f => "Backspace".to_owned(),
        0 => "Ctrl-Space".to_owned(),
        0x1b => "Esc".to_owned(),
        1..=26 => format!("Ctrl-{}", char::from(byte + 0x60)),
        _ => format!("Ctrl-{}", char::from(byte + 0x40)),
    }
}

/// Keys whose sequences end with a letter of their own.
fn letter_key(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'A' => "Up",
        b'B' => "Down",
        b'C' => "Right",
        b'D' => "Left",
        b'H' => "Home",
        b'F' => "End",
        b'P' => "F1",
        b'Q' => "F2",
        b'R' => "F3",
        b'S' => "F4",
        b'M' => "KPEnter",
        _ => return None,
    })
}

/// Keys whose sequences end with `~`, by their number.
fn numbered_key(number: u16) -> Option<String> {
    let name = match number {
        1 | 7 => "Home",
        2 => "Insert",
        3 => "Delete",
        4 | 8 => "End",
        5 => "PageUp",
        6 => "PageDown",
        11..=15 => return Some(format!("F{}", number - 10)),
        17..=21 => return Some(format!("F{}", number - 11)),
        23 | 24 => return Some(format!("F{}", number - 12)),
        _ => return None,
    };
    Some(name.to_owned())
}

/// The name of a key by the parameters and the last byte of its sequence: `1;5` and `C` is Ctrl-Right.
fn named(params: &str, last: u8) -> Option<String> {
    let mut numbers = params.split(';').map(|number| number.parse::<u16>());
    let first = numbers.next().and_then(Result::ok);
    let held = match numbers.next() {
        None => 0,
        Some(number) => number.ok()?.checked_sub(1)?,
    };
    let name = match last {
        b'~' => numbered_key(first?)?,
        _ if params.is_empty() || first == Some(1) => letter_key(last).filter(|_| last != b'M')?.to_owned(),
        _ => return None,
    };
    let modifiers = [(4, "Ctrl-"), (2, "Alt-"), (1, "Shift-")];
    let held: String = modifiers.iter().filter(|(bit, _)| held & bit != 0).map(|(_, name)| *name).collect();
    Some(held + &name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::local::keys::Key;

    const DETACH: u8 = 0x1c;

    /// Reads bytes in one piece and byte by byte, which must give the same but for where text is cut.
    fn read(bytes: &[u8]) -> Vec<Value> {
        let mut whole = Reader::new(DETACH);
        let mut keys = whole.read(bytes).keys;
        keys.extend(whole.flush().keys);
        let mut single = Reader::new(DETACH);
        let mut pieces: Vec<Value> = bytes.chunks(1).flat_map(|byte| single.read(byte).keys).collect();
        pieces.extend(single.flush().keys);
        assert_eq!(joined(&pieces), joined(&keys), "{bytes:?}");
        keys
    }

    fn joined(keys: &[Value]) -> String {
        keys.iter()
            .map(|key| key.get("text").and_then(Value::as_str).map_or_else(|| key.to_string(), str::to_owned))
            .collect()
    }

    #[test]
    fn sequences_are_keys() {
        for (bytes, name) in [
            (&b"\r"[..], "Enter"),
            (b"\x03", "Ctrl-c"),
            (b"\x1d", "Ctrl-]"),
            (b"\x00", "Ctrl-Space"),
            (b"\x7f", "Backspace"),
            (b"\x1b[A", "Up"),
            (b"\x1bOB", "Down"),
            (b"\x1b[1;5C", "Ctrl-Right"),
            (b"\x1b[3~", "Delete"),
            (b"\x1b[5;3~", "Alt-PageUp"),
            (b"\x1b[24~", "F12"),
            (b"\x1b[15~", "F5"),
            (b"\x1bOP", "F1"),
            (b"\x1b[Z", "Shift-Tab"),
            (b"\x1bx", "Alt-x"),
            ("\x1bé".as_bytes(), "Alt-é"),
            (b"\x1b", "Esc"),
        ] {
            assert_eq!(read(bytes), [json!(name)], "{bytes:?}");
            assert!(Key::parse(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn text_stays_together_and_in_order() {
        assert_eq!(read("ls é\r".as_bytes()), [json!({ "text": "ls é" }), json!("Enter")]);
        assert_eq!(read(b"a\x1b[Db"), [json!({ "text": "a" }), json!("Left"), json!({ "text": "b" })]);
        assert_eq!(read(b"\x1b\x1b[A"), [json!("Esc"), json!("Up")]);
        assert_eq!(read(b"\x1b[?1;2c"), [json!({ "text": "\x1b[?1;2c" })], "what is not known");
    }

    #[test]
    fn a_paste_is_a_paste_and_has_no_keys_in_it() {
        let detach_inside = b"\x1b[200~a\x1cb\r\x1b[A\x1b[201~x";
        assert_eq!(read(detach_inside), [json!({ "paste": "a\u{1c}b\r\u{1b}[A" }), json!({ "text": "x" })]);
        assert!(!Reader::new(DETACH).read(detach_inside).detach);
    }

    #[test]
    fn clicks_count_from_the_first_row_that_is_shown() {
        let mut reader = Reader::new(DETACH);
        reader.first_row = 10;
        let keys = reader.read(b"\x1b[<0;5;3M\x1b[<0;5;3m\x1b[<35;6;3M\x1b[<65;1;1M").keys;
        let click = |action: &str, row: u16, col: u16, button: &str| json!({ "mouse": { "action": action, "button": button, "row": row, "col": col } });
        let expected =
            [click("press", 12, 4, "left"), click("release", 12, 4, "left"), click("scroll_down", 10, 0, "middle")];
        assert_eq!(keys, expected);
    }

    #[test]
    fn the_key_to_detach_ends_it() {
        let typed = Reader::new(DETACH).read(b"ab\x1ccd");
        assert_eq!(typed, Typed { keys: vec![json!({ "text": "ab" })], detach: true });
    }

    #[test]
    fn a_long_paste_comes_in_pieces_of_whole_characters() {
        let mut reader = Reader::new(DETACH);
        let text = "é".repeat(PASTE_PIECE);
        let mut keys = reader.read(b"\x1b[200~").keys;
        for piece in text.as_bytes().chunks(4_095) {
            keys.extend(reader.read(piece).keys);
        }
        keys.extend(reader.read(PASTE_END).keys);
        let pasted: String = keys.iter().filter_map(|key| key["paste"].as_str()).collect();
        assert!(pasted == text && keys.len() > 1, "{} pieces", keys.len());
    }
}
