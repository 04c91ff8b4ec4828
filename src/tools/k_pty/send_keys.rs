//! `send_keys`: keys by name, text, pastes and the mouse, as the program in the terminal expects them. No Enter is
//! added.

use std::time::Duration;

use kpty_emulator::{Modes, Screen, Size, Width};
use serde::Serialize;
use serde_json::{Map, Value};

use super::talk::ESCAPES;
use super::typing::{ENTER_DELAY, enter_delay};
use super::{SESSION_ID, Target};
use crate::error::{Error, Result};
use crate::terminal::Terminal;
use crate::terminal::local::input;
use crate::terminal::local::keys::mouse::{self, Button, MouseEvent, MouseKind};
use crate::terminal::local::keys::{self, Code, Key, KeyModes, Modifiers};
use crate::tools::Tools;
use crate::tools::handler::{Content, Handler, Outcome, begin};
use crate::tools::params::{Params, number, wrong_type};
use crate::tools::spec::{Action, Effect, Param, Recorded};

pub(in crate::tools) static ACTION: Action = Action {
    name: "send_keys",
    aliases: &[],
    summary: "Keys and text without Enter",
    notes: "keys: \"Ctrl-C\", \"Down Down Enter\", or a list with {\"text\":…} and {\"paste\":…} parts. mouse: {action: \
            click|press|release|scroll_up|scroll_down, row, col (from 0) or text, button?}. Sent in this order: text, \
            paste, keys, mouse.",
    example: r#"{"action":"send_keys","session_id":"pty_0123abcd","keys":"Down Enter"}"#,
    params: &[SESSION_ID, TEXT, PASTE, KEYS, MOUSE, ESCAPES, ENTER_DELAY],
    effect: Effect::Type,
    on_page: true,
    forwarded: false,
    shows_screen: false,
    begin: begin::<SendKeys>,
};

const TEXT: Param = Param::text("text", "text to type").recorded(Recorded::Typed);
const PASTE: Param = Param::text("paste", "text to paste").recorded(Recorded::Typed);
const KEYS: Param =
    Param::any("keys", "names such as \"Ctrl-C Enter\", or a list of names, {\"text\":…} and {\"paste\":…}")
        .recorded(Recorded::Keys);
const MOUSE: Param =
    Param::object("mouse", "{action, row, col, button, text}; rows and columns from 0").recorded(Recorded::Gesture);

/// The flag of the kitty keyboard protocol with which also text comes as sequences.
const KITTY_ALL_KEYS: u8 = 8;

struct SendKeys {
    session: Target,
    parts: Vec<Part>,
    enter_delay: Option<Duration>,
}

#[derive(Serialize)]
struct SendKeysReply {
    bytes_written: usize,
    /// False where the keyboard modes of the program are unknown: keys were sent in their usual form.
    #[serde(skip_serializing_if = "Option::is_none")]
    modes_known: Option<bool>,
    /// The parts, in the order in which they were sent.
    sent: Vec<String>,
}

/// One thing to send.
#[derive(Debug, PartialEq)]
enum Part {
    Key { name: String, key: Key },
    Text(String),
    Paste(String),
    Mouse(MouseAction),
}

#[derive(Debug, PartialEq)]
struct MouseAction {
    kind: Kind,
    button: Button,
    at: At,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Click,
    Press,
    Release,
    ScrollUp,
    ScrollDown,
}

const KINDS: [(&str, Kind); 5] = [
    ("click", Kind::Click),
    ("press", Kind::Press),
    ("release", Kind::Release),
    ("scroll_up", Kind::ScrollUp),
    ("scroll_down", Kind::ScrollDown),
];
const BUTTONS: [(&str, Button); 3] = [("left", Button::Left), ("middle", Button::Middle), ("right", Button::Right)];

/// Where the mouse is.
#[derive(Debug, PartialEq)]
enum At {
    /// A cell, both counted from 0.
    Cell { row: u64, col: u64 },
    /// Where this text is, in this row if there are several.
    Text { text: String, row: Option<u64> },
}

impl Handler for SendKeys {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let session = tools.target(params)?;
        let escapes = params.flag(&ESCAPES)?;
        let plain = |text: &str| if escapes { input::unescape(text) } else { text.to_owned() };
        let mut parts = Vec::new();
        parts.extend(params.text(&TEXT)?.map(|text| Part::Text(plain(text))));
        parts.extend(params.text(&PASTE)?.map(|text| Part::Paste(plain(text))));
        if let Some(value) = params.value(&KEYS) {
            parts.extend(keys_of(value)?);
        }
        if let Some(object) = params.object(&MOUSE)? {
            parts.push(Part::Mouse(MouseAction::read(&object)?));
        }
        if parts.is_empty() {
            return Err(Error::MissingParam("one of keys, text, paste or mouse"));
        }
        Ok(Self { session, parts, enter_delay: enter_delay(params)? })
    }

    async fn run(self, tools: &Tools) -> Outcome {
        let Self { session, parts, enter_delay } = self;
        let known = session.modes();
        let modes = known.unwrap_or_default();
        let mut pieces = Vec::with_capacity(parts.len());
        for part in &parts {
            pieces.push(part.encode(&*session, &modes)?);
        }
        // Parts that together spell a dangerous command are as dangerous as one.
        let is_typed = |(part, _): &(&Part, _)| !matches!(part, Part::Mouse(_));
        let typed: Vec<u8> =
            parts.iter().zip(&pieces).filter(is_typed).flat_map(|(_, (bytes, _))| bytes.clone()).collect();
        let mut turn = tools.typist.turn(&*session).await;
        turn.check_bytes(&typed)?;
        let mut bytes_written = 0;
        let mut bytes = Vec::new();
        for (index, (piece, _)) in pieces.iter().enumerate() {
            let ends_text = index > 0 && parts[index - 1].is_text() && !parts[index].is_text();
            if ends_text {
                bytes_written += turn.type_bytes(&std::mem::take(&mut bytes)).await?;
                turn = turn.pause_before_enter(enter_delay).await;
            }
            bytes.extend_from_slice(piece);
        }
        if !bytes.is_empty() {
            bytes_written += turn.type_bytes(&bytes).await?;
        }
        let modes_known = known.is_none().then_some(false);
        let sent = pieces.into_iter().map(|(_, name)| name).collect();
        Content::of(&SendKeysReply { bytes_written, modes_known, sent })
    }
}

impl Part {
    fn is_text(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Paste(_))
    }

    /// The bytes, and what to call them in the answer.
    fn encode(&self, session: &dyn Terminal, modes: &Modes) -> Result<(Vec<u8>, String)> {
        Ok(match self {
            Self::Key { name, key } => (keys::encode(key, &KeyModes::from(modes)), name.clone()),
            Self::Text(text) => (typed(text, modes), format!("text ({} characters)", text.chars().count())),
            Self::Paste(text) => {
                let how = if modes.bracketed_paste { "bracketed" } else { "as typed" };
                let name = format!("paste ({} characters, {how})", text.chars().count());
                (input::paste(text, modes.bracketed_paste), name)
            }
            Self::Mouse(action) => action.encode(session, modes)?,
        })
    }
}

/// Text as a keyboard sends it.
fn typed(text: &str, modes: &Modes) -> Vec<u8> {
    let text = text.replace("\r\n", "\r").replace('\n', "\r");
    if modes.kitty_keyboard & KITTY_ALL_KEYS == 0 {
        return text.into_bytes();
    }
    let key_modes = KeyModes::from(modes);
    text.chars().flat_map(|c| keys::encode(&Key::new(Code::Char(c), Modifiers::default()), &key_modes)).collect()
}

/// `"Ctrl-C Enter"`, or a list of names and of `{"text": …}` and `{"paste": …}`; the list also as JSON in a string.
fn keys_of(value: &Value) -> Result<Vec<Part>> {
    match value {
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Array(items)) => keys_of(&Value::Array(items)),
            _ => names(text),
        },
        Value::Array(items) => {
            let mut parts = Vec::new();
            for item in items {
                match item {
                    Value::String(text) => parts.extend(names(text)?),
                    Value::Object(object) => parts.push(part_of(object)?),
                    other => {
                        return Err(wrong_type(KEYS.name, "names of keys, {\"text\": …} or {\"paste\": …}", other));
                    }
                }
            }
            Ok(parts)
        }
        other => Err(wrong_type(KEYS.name, "a string of names or a list", other)),
    }
}

fn names(text: &str) -> Result<Vec<Part>> {
    // A blank alone is the key of that name.
    let names = if text.trim().is_empty() { vec![text] } else { words(text) };
    let part = |name: &str| match (quoted(name), Key::parse(name)) {
        (Some(text), _) => Ok(Part::Text(text.to_owned())),
        (None, Ok(key)) => Ok(Part::Key { name: name.to_owned(), key }),
        (None, Err(error)) => Err(Error::invalid(KEYS.name, format!("{error} (to type text, use the parameter text)"))),
    };
    names.into_iter().map(part).collect()
}

/// The words of a list of keys; a text in quotes is one.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_end = |after: &str| after.is_empty() || after.starts_with(char::is_whitespace);
        let closing = matches!(first, '"' | '\'').then(|| {
            let closes = |&(at, c): &(usize, char)| at > 1 && c == first && is_end(&rest[at + 1..]);
            rest.char_indices().find(closes).map(|(at, _)| at + 1)
        });
        let end = closing.flatten().or_else(|| rest.find(char::is_whitespace)).unwrap_or(rest.len());
        words.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    words
}

/// The text in quotes.
fn quoted(word: &str) -> Option<&str> {
    let inner = |quote| word.strip_prefix(quote)?.strip_suffix(quote).filter(|inner: &&str| !inner.is_empty());
    inner('"').or_else(|| inner('\''))
}

fn part_of(object: &Map<String, Value>) -> Result<Part> {
    let only = object.iter().next().filter(|_| object.len() == 1);
    match only {
        Some((name, Value::String(text))) if name == "text" => Ok(Part::Text(text.clone())),
        Some((name, Value::String(text))) if name == "paste" => Ok(Part::Paste(text.clone())),
        Some((name, Value::Object(mouse))) if name == "mouse" => Ok(Part::Mouse(MouseAction::read(mouse)?)),
        _ => Err(Error::invalid(KEYS.name, "an object must be {\"text\": …}, {\"paste\": …} or {\"mouse\": {…}}")),
    }
}

impl MouseAction {
    fn read(object: &Map<String, Value>) -> Result<Self> {
        const KNOWN: [&str; 5] = ["action", "row", "col", "button", "text"];
        if let Some(name) = object.keys().find(|name| !KNOWN.contains(&name.as_str())) {
            return Err(Error::invalid(MOUSE.name, format!("{name} is not one of {}", KNOWN.join(", "))));
        }
        let place = |name: &str| {
            let value = object.get(name).filter(|value| !value.is_null());
            value.map(|value| number(&format!("mouse.{name}"), value)).transpose()
        };
        let at = match (object.get("text"), place("row")?, place("col")?) {
            (Some(Value::String(text)), row, None) if !text.is_empty() => At::Text { text: text.clone(), row },
            (None, Some(row), Some(col)) => At::Cell { row, col },
            _ => return Err(Error::invalid(MOUSE.name, "needs row and col, counted from 0, or a visible text")),
        };
        let kind = word(object, "action", &KINDS)?.unwrap_or(Kind::Click);
        let button = word(object, "button", &BUTTONS)?.unwrap_or_default();
        Ok(Self { kind, button, at })
    }

    fn encode(&self, session: &dyn Terminal, modes: &Modes) -> Result<(Vec<u8>, String)> {
        let Some(screen) = session.screen() else {
            let problem = "a desktop app does not tell whether its program takes the mouse; use keys";
            return Err(Error::invalid(MOUSE.name, problem));
        };
        let (row, col) = match &self.at {
            At::Cell { row, col } => cell(*row, *col, screen.size)?,
            At::Text { text, row } => place_of(&screen, text, *row)?,
        };
        let kind = match self.kind {
            Kind::Click | Kind::Press => MouseKind::Press(self.button),
            Kind::Release => MouseKind::Release(self.button),
            Kind::ScrollUp => MouseKind::ScrollUp,
            Kind::ScrollDown => MouseKind::ScrollDown,
        };
        let bytes = match self.kind {
            Kind::Click => mouse::click(self.button, col, row, Modifiers::default(), modes),
            _ => mouse::encode(MouseEvent { kind, col, row, modifiers: Modifiers::default() }, modes),
        };
        let name = KINDS.iter().find(|(_, kind)| *kind == self.kind).map_or("mouse", |(name, _)| name);
        let bytes = bytes.map_err(|refused| Error::invalid(MOUSE.name, refused.to_string()))?;
        Ok((bytes, format!("{name} at row {row}, col {col}")))
    }
}

fn word<T: Copy>(object: &Map<String, Value>, name: &str, words: &[(&str, T)]) -> Result<Option<T>> {
    let Some(value) = object.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
    let found = value.as_str().and_then(|given| words.iter().find(|(word, _)| given.eq_ignore_ascii_case(word)));
    let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    found
        .map(|(_, meaning)| Some(*meaning))
        .ok_or_else(|| wrong_type(&format!("mouse.{name}"), &format!("one of {}", known.join(", ")), value))
}

fn cell(row: u64, col: u64, size: Size) -> Result<(u16, u16)> {
    let within = |at: u64, count: u16| u16::try_from(at).ok().filter(|at| *at < count);
    match (within(row, size.rows()), within(col, size.cols())) {
        (Some(row), Some(col)) => Ok((row, col)),
        _ => {
            let (rows, cols) = (size.rows() - 1, size.cols() - 1);
            let problem = format!("row {row}, col {col} is off the screen: rows go to {rows}, columns to {cols}");
            Err(Error::invalid(MOUSE.name, problem))
        }
    }
}

/// The only place of a text on the screen.
fn place_of(screen: &Screen, text: &str, row: Option<u64>) -> Result<(u16, u16)> {
    let mut places = Vec::new();
    for (index, cells) in screen.rows.iter().enumerate() {
        if row.is_some_and(|row| row != index as u64) {
            continue;
        }
        let mut line = String::new();
        let mut starts = Vec::new();
        for (col, cell) in cells.cells.iter().enumerate().filter(|(_, cell)| cell.width != Width::Spacer) {
            starts.push((line.len(), col));
            line.push(cell.c);
            line.extend(&cell.marks);
        }
        for (at, _) in line.match_indices(text) {
            let col = starts.partition_point(|(start, _)| *start <= at).saturating_sub(1);
            places.push((index as u16, starts[col].1 as u16));
        }
    }
    match places.as_slice() {
        [place] => Ok(*place),
        [] => Err(Error::invalid(MOUSE.name, format!("{text:?} is not on the screen"))),
        several => {
            let places: Vec<_> = several.iter().map(|(row, col)| format!("row {row} col {col}")).collect();
            let problem =
                format!("{text:?} is on the screen several times: give row and col, one of {}", places.join(", "));
            Err(Error::invalid(MOUSE.name, problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_in_quotes_is_typed() {
        for (text, expected) in [
            ("Ctrl-C", &["Ctrl-C"][..]),
            (" Escape  ':wq' Enter ", &["Escape", "':wq'", "Enter"]),
            ("'say \"hi\" there' Tab", &["'say \"hi\" there'", "Tab"]),
            ("\"it's\"", &["\"it's\""]),
            ("' \" a", &["'", "\"", "a"]),
            ("'a b", &["'a", "b"]),
            ("'don't go' x", &["'don't go'", "x"]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
        assert_eq!((quoted("':wq'"), quoted("'"), quoted("''"), quoted("'a\"")), (Some(":wq"), None, None, None));
    }
}
