//! The shapes of a bridge's answers: both styles of names, fields that are null, missing or of another kind.

use kpty_emulator::{Buffer, MAX_COLS, MAX_ROWS};
use serde_json::{Map, Value};

/// The problem of an answer that belongs to somebody else's question.
pub(super) const ANOTHER_QUESTION: &str = "it is the answer to another question";

/// What is asked about the text of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// So many rows down to the cursor's.
    Tail(usize),
    /// The rows in the window.
    Viewport,
}

impl Question {
    pub(super) fn mode(self) -> &'static str {
        match self {
            Self::Tail(_) => "tail",
            Self::Viewport => "viewport",
        }
    }

    /// A bridge reads no limit as its own.
    pub(super) fn max_lines(self) -> usize {
        match self {
            Self::Tail(rows) => rows.max(1),
            Self::Viewport => usize::from(MAX_ROWS),
        }
    }
}

/// What a terminal shows: logical lines, of which the first may be the end of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) lines: Vec<String>,
    /// The row of the cursor for a tail, of the window's top for a viewport; counted from the oldest row that is kept.
    pub(super) row: Option<u64>,
    pub(super) rows: u16,
    pub(super) cols: u16,
    pub(super) buffer: Buffer,
    /// The number of the first line, from a bridge that counts them.
    pub(super) number: Option<u64>,
    /// A shell reads, from a bridge that knows.
    pub(super) at_prompt: Option<bool>,
}

/// A terminal that a bridge lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Terminal {
    /// Its name, and the one that the desktop has for itself.
    pub(super) names: [String; 2],
    /// Its program runs, as far as the bridge tells.
    pub(super) is_alive: bool,
}

impl Terminal {
    /// Desktops shorten their ids to 16 characters without hyphens.
    pub(super) fn is_named(&self, session: &str) -> bool {
        self.names.iter().any(|name| !name.is_empty() && (name == session || short_id(name) == short_id(session)))
    }
}

/// An id as desktops compare it.
pub(super) fn short_id(id: &str) -> String {
    id.chars().filter(|&c| c != '-').take(16).collect()
}

/// A field under either of its names; null is nothing.
pub(super) fn field<'a>(object: &'a Map<String, Value>, snake: &str, camel: &str) -> Option<&'a Value> {
    [snake, camel].iter().find_map(|name| object.get(*name).filter(|value| !value.is_null()))
}

/// Larger numbers are none of JavaScript's.
const LARGEST: u64 = 1 << 53;

/// A whole number that is not negative, however it is written.
pub(super) fn count(value: Option<&Value>) -> Option<u64> {
    let value = value?;
    let number = value.as_u64().or_else(|| value.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64));
    number.filter(|&number| number < LARGEST)
}

/// Reads what a terminal shows. A bridge may mix up the answers to two questions that come at the same time, so what
/// does not fit the question is refused.
pub(super) fn look(answer: &Map<String, Value>, question: Question) -> Result<Look, String> {
    let lines = match answer.get("lines") {
        Some(Value::Array(lines)) => {
            let text = |line: &Value| line.as_str().map(plain);
            lines.iter().map(text).collect::<Option<Vec<_>>>().ok_or("its lines are not text")?
        }
        _ => {
            let text = answer.get("text").and_then(Value::as_str).ok_or("it has neither lines nor text")?;
            text.split('\n').map(plain).collect()
        }
    };
    let cursor_row = count(field(answer, "cursor_line", "cursorLine"));
    let top_row = count(field(answer, "viewport_y", "viewportY"));
    let row = match (question, cursor_row, top_row) {
        (Question::Tail(_), None, Some(_)) => return Err(ANOTHER_QUESTION.to_owned()),
        (Question::Viewport, Some(_), None) => return Err(ANOTHER_QUESTION.to_owned()),
        (Question::Tail(_), row, _) | (Question::Viewport, _, row) => row,
    };
    let buffer = match field(answer, "buffer_type", "bufferType").and_then(Value::as_str) {
        Some(name) if name.starts_with("alt") => Buffer::Alternate,
        _ => Buffer::Main,
    };
    let side = |name: &str, most: u16, usual: u16| {
        count(answer.get(name)).filter(|&count| count > 0).map_or(usual, |count| count.min(u64::from(most)) as u16)
    };
    let numbers = field(answer, "line_numbers", "lineNumbers").and_then(Value::as_array);
    let number = count(numbers.filter(|numbers| numbers.len() == lines.len()).and_then(|numbers| numbers.first()));
    let (rows, cols) = (side("rows", MAX_ROWS, 30), side("cols", MAX_COLS, 120));
    let at_prompt = field(answer, "at_prompt", "atPrompt").and_then(Value::as_bool);
    Ok(Look { lines, row, rows, cols, buffer, number, at_prompt })
}

/// A rendered line has no control characters; one that comes with some is none of a terminal's.
fn plain(line: &str) -> String {
    let line = line.trim_end();
    match line.contains(|c: char| c.is_control()) {
        true => line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect(),
        false => line.to_owned(),
    }
}

/// Reads a list of terminals.
pub(super) fn terminals(answer: &Map<String, Value>) -> Option<Vec<Terminal>> {
    let sessions = answer.get("sessions")?.as_array()?.iter().filter_map(Value::as_object);
    let terminal = |session: &Map<String, Value>| {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let names =
            [text(field(session, "session_id", "sessionId")), text(field(session, "internal_id", "internalId"))];
        let is_alive = ["alive", "is_alive", "isAlive"].iter().find_map(|name| session.get(*name)?.as_bool());
        Terminal { names, is_alive: is_alive.unwrap_or(true) }
    };
    Some(sessions.map(terminal).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn both_styles_of_names_are_read() {
        for answer in [
            json!({ "lines": ["a", "b  "], "cursorLine": 7, "rows": 3, "cols": 20, "bufferType": "alternate" }),
            json!({ "text": "a\nb", "cursor_line": 7.0, "rows": 3, "cols": 20, "buffer_type": "alternate" }),
            json!({ "text": "x", "lines": ["a", "b"], "cursor_line": 7, "cursorLine": 7, "viewportY": null,
                    "viewport_y": 3, "rows": 3, "cols": 20, "bufferType": "alt", "buffer_type": "alternate" }),
        ] {
            let look = look(&object(answer.clone()), Question::Tail(5)).expect("a good answer");
            assert_eq!(look.lines, ["a", "b"], "{answer}");
            let rest = (look.row, look.rows, look.cols, look.buffer);
            assert_eq!(rest, (Some(7), 3, 20, Buffer::Alternate), "{answer}");
        }
        let bare = look(&object(json!({ "text": "", "viewportY": 4 })), Question::Viewport).expect("little is enough");
        assert_eq!((bare.row, bare.rows, bare.cols, bare.buffer), (Some(4), 30, 120, Buffer::Main));
    }

    #[test]
    fn what_does_not_fit_the_question_is_refused() {
        for (answer, question) in [
            (json!({}), Question::Viewport),
            (json!({ "lines": [1] }), Question::Viewport),
            (json!({ "lines": [], "viewportY": 3 }), Question::Tail(3)),
            (json!({ "lines": [], "cursorLine": 3 }), Question::Viewport),
        ] {
            assert!(look(&object(answer.clone()), question).is_err(), "{answer}");
        }
    }

    #[test]
    fn lines_have_no_control_characters() {
        let answer = object(json!({ "lines": ["a\u{1b}[31mb", "tab\t"] }));
        assert_eq!(look(&answer, Question::Tail(1)).expect("text").lines, ["a [31mb", "tab"]);
    }

    #[test]
    fn terminals_are_found_by_their_long_and_short_names() {
        let answer = object(json!({ "sessions": [
            { "session_id": "9ccd99b1bdd8710e", "internal_id": "9ccd99b1-bdd8-710e-aaaa-bbbbbbbbbbbb" },
            { "sessionId": "dead", "alive": false }, "nonsense",
        ] }));
        let terminals = terminals(&answer).expect("a list");
        assert_eq!(terminals.len(), 2);
        for name in ["9ccd99b1bdd8710e", "9ccd99b1-bdd8-710e-aaaa-bbbbbbbbbbbb"] {
            assert!(terminals[0].is_named(name) && terminals[0].is_alive, "{name}");
        }
        assert!(terminals[1].is_named("dead") && !terminals[1].is_alive);
        assert!(!terminals[1].is_named("") && !terminals[0].is_named("9ccd99b1"));
    }
}
