//! One action, as it is recorded: a [`Draft`] while it may still have secrets, an [`Event`] when it has none.
//!
//! Owns the field names on the wire. Masking comes before cutting; sizes are those of the uncut text, in characters.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::ids::passing_bits;
use crate::model::{date_and_time, iso_time, iso_time_millis, push_digits};
use kpty_guard::Redactor;

/// Characters of a command and of an answer that are kept.
pub const TEXT_CHARS: usize = 10_000;
/// Characters of an answer that only shows what is there: what was done matters more than what was seen.
pub const LOOK_CHARS: usize = 500;
/// Characters of a text in a list.
const PREVIEW_CHARS: usize = 500;
/// Characters of an agent's name.
pub const AGENT_CHARS: usize = 128;
/// Characters of a short text: a message, a summary.
const SHORT_CHARS: usize = 1_000;
/// Bytes of fields that only their sender knows.
const EXTRA_BYTES: usize = 8 << 10;

/// A text with its true size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// What is kept of it.
    pub kept: String,
    /// Characters of the whole.
    pub size: u64,
}

impl Text {
    /// A whole text.
    pub fn new(text: impl Into<String>) -> Self {
        let kept = text.into();
        Self { size: kept.chars().count() as u64, kept }
    }

    /// More was there.
    pub fn is_cut(&self) -> bool {
        self.size > self.kept.chars().count() as u64
    }

    fn preview(&self) -> String {
        self.kept.chars().take(PREVIEW_CHARS).collect()
    }
}

/// One action. All texts are masked and cut.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its name.
    pub id: String,
    /// When it was over.
    pub at: SystemTime,
    /// On which session; empty where none was meant.
    pub session_id: String,
    /// What was done.
    pub action: String,
    /// Who did it, as far as anybody said.
    pub agent_id: Option<String>,
    /// The own session of the session's owner.
    pub owner_session_id: Option<String>,
    /// What was typed or asked for.
    pub command: Option<Text>,
    /// What was answered.
    pub response: Option<Text>,
    /// How long it took.
    pub duration: Duration,
    /// How long it might have taken.
    pub timeout_ms: Option<u64>,
    /// It took too long.
    pub timed_out: bool,
    /// It was done.
    pub success: bool,
    /// Why not, for programs.
    pub error_code: Option<String>,
    /// Why not, for people.
    pub error_message: Option<String>,
    /// The guard refused it.
    pub blocked: bool,
    /// By which rule.
    pub blocked_pattern: Option<String>,
    /// `local` or `desktop`.
    pub session_source: Option<String>,
    /// What kind of program runs there.
    pub cli_type: Option<String>,
    /// The session's name for people.
    pub label: Option<String>,
    /// What came of it, in a few words.
    pub result: Option<String>,
    /// The evidence pack that was made.
    pub evidence_id: Option<String>,
    /// The command that was run.
    pub command_id: Option<String>,
    /// How it ended.
    pub exit_code: Option<i64>,
    /// Fields that only their sender knows.
    pub extra: Map<String, Value>,
}

impl Event {
    /// An action that went well, now.
    pub fn new(action: impl Into<String>, session_id: impl Into<String>) -> Self {
        Self {
            id: String::new(),
            at: SystemTime::now(),
            session_id: session_id.into(),
            action: action.into(),
            agent_id: None,
            owner_session_id: None,
            command: None,
            response: None,
            duration: Duration::ZERO,
            timeout_ms: None,
            timed_out: false,
            success: true,
            error_code: None,
            error_message: None,
            blocked: false,
            blocked_pattern: None,
            session_source: None,
            cli_type: None,
            label: None,
            result: None,
            evidence_id: None,
            command_id: None,
            exit_code: None,
            extra: Map::new(),
        }
    }

    /// Milliseconds that it took.
    pub fn duration_ms(&self) -> f64 {
        (self.duration.as_secs_f64() * 1e6).round() / 1e3
    }

    /// The event as panels know it.
    pub fn row(&self) -> Value {
        let (command, response) = (self.command.as_ref(), self.response.as_ref());
        let kept = |text: Option<&Text>| text.map(|text| text.kept.clone());
        let size = |text: Option<&Text>| text.map_or(0, |text| text.size);
        let at = iso_time_millis(self.at);
        let mut row = self.extra.clone();
        let known = json!({
            "id": self.id,
            "session_id": self.session_id,
            "action": self.action,
            "agent_id": self.agent_id,
            "owner_session_id": self.owner_session_id,
            "timestamp": at,
            "command": kept(command),
            "command_preview": command.map(Text::preview),
            "command_size": size(command),
            "response": kept(response),
            "response_preview": response.map(Text::preview),
            "response_size": size(response),
            "response_truncated": response.is_some_and(Text::is_cut),
            "duration": self.duration_ms(),
            "timeout_ms": self.timeout_ms,
            "timed_out": self.timed_out,
            "success": self.success,
            "error_code": self.error_code,
            "error_message": self.error_message,
            "blocked": self.blocked,
            "blocked_pattern": self.blocked_pattern,
            "session_source": self.session_source,
            "cli_type": self.cli_type,
            "label": self.label,
            "created_at": at,
            "result_summary": self.result,
            "evidence_id": self.evidence_id,
            "command_id": self.command_id,
            "exit_code": self.exit_code,
        });
        if let Value::Object(known) = known {
            row.extend(known);
        }
        Value::Object(row)
    }

    /// The event as a gateway takes it: its nineteen fields.
    pub(super) fn for_gateway(&self) -> Value {
        let (command, response) = (self.command.as_ref(), self.response.as_ref());
        json!({
            "action": self.action,
            "session_id": self.session_id,
            "agent_id": self.agent_id,
            "owner_session_id": self.owner_session_id,
            "command": command.map(|text| &text.kept),
            "command_size": command.map_or(0, |text| text.size),
            "response": response.map(|text| &text.kept),
            "response_size": response.map_or(0, |text| text.size),
            "response_truncated": response.is_some_and(Text::is_cut),
            "duration": self.duration_ms(),
            "success": self.success,
            "error_code": self.error_code,
            "error_message": self.error_message,
            "blocked": self.blocked,
            "blocked_pattern": self.blocked_pattern,
            "timeout_ms": self.timeout_ms,
            "timed_out": self.timed_out,
            "label": self.label,
            "cli_type": self.cli_type,
        })
    }

    /// Adds the event to the session's own log, as a line of JSON.
    pub(super) fn push_line(&self, log: &mut Vec<u8>) {
        let line = LogLine {
            ts: iso_time(self.at),
            event: "action",
            session_id: &self.session_id,
            id: &self.id,
            action: &self.action,
            agent: self.agent_id.as_deref(),
            command: self.command.as_ref().map(|text| text.kept.as_str()),
            result: self.result.as_deref(),
            success: self.success,
            error_code: self.error_code.as_deref(),
            timed_out: self.timed_out,
            duration_ms: self.duration_ms(),
            blocked_rule: self.blocked_pattern.as_deref(),
            evidence_id: self.evidence_id.as_deref(),
            command_id: self.command_id.as_deref(),
        };
        // Texts and numbers can always be written, to a vector too.
        let _ = serde_json::to_writer(&mut *log, &line);
        log.push(b'\n');
    }
}

/// An event in the log of its session.
#[derive(Serialize)]
struct LogLine<'a> {
    ts: String,
    event: &'static str,
    session_id: &'a str,
    id: &'a str,
    action: &'a str,
    agent: Option<&'a str>,
    command: Option<&'a str>,
    result: Option<&'a str>,
    success: bool,
    error_code: Option<&'a str>,
    timed_out: bool,
    duration_ms: f64,
    blocked_rule: Option<&'a str>,
    evidence_id: Option<&'a str>,
    command_id: Option<&'a str>,
}

/// So many characters of hidden input are known again where the rest was cut.
const BEGINNING_CHARS: usize = 6;

/// What is said in place of what was typed while nothing was echoed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// What was typed, piece by piece; none of it must be anywhere.
    pub parts: Vec<String>,
}

impl Hidden {
    /// The words that stand for it.
    pub fn shown(&self) -> String {
        format!("[hidden input, {} chars]", self.chars())
    }

    fn chars(&self) -> usize {
        self.parts.iter().map(|part| part.chars().count()).sum()
    }

    /// A text without it. One or two characters are in every text. Where only the beginning is left of it, the text was
    /// cut, and nothing of it is kept.
    fn taken_out_of(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in self.parts.iter().map(|part| part.trim()).filter(|part| part.chars().count() > 2) {
            text = text.replace(secret, &self.shown());
            let beginning: String = secret.chars().take(BEGINNING_CHARS).collect();
            if beginning.chars().count() == BEGINNING_CHARS && text.contains(&beginning) {
                return self.shown();
            }
        }
        text
    }
}

/// An action that may still have secrets, on its way to the record.
pub struct Draft {
    /// Texts are whole, or at least much longer than what is kept.
    pub event: Event,
    /// Knows the secrets.
    pub redactor: Arc<Redactor>,
    /// What was typed while nothing was echoed.
    pub hidden: Option<Hidden>,
    /// What the event has of an answer was masked with that answer, by this redactor.
    pub is_answer_masked: bool,
    /// Characters of the answer that are kept.
    pub response_chars: usize,
    /// It belongs into the session's own log: there is, or was, such a session.
    pub is_for_journal: bool,
    /// It happened here, so that a gateway is told.
    pub is_for_gateway: bool,
}

impl Draft {
    /// An action of this server, not hidden.
    pub fn new(event: Event, redactor: Arc<Redactor>) -> Self {
        Self {
            event,
            redactor,
            hidden: None,
            is_answer_masked: false,
            response_chars: TEXT_CHARS,
            is_for_journal: false,
            is_for_gateway: true,
        }
    }

    /// Roughly what it costs to keep it waiting.
    pub(super) fn bytes(&self) -> usize {
        let text = |text: &Option<Text>| text.as_ref().map_or(0, |text| text.kept.len());
        1_000 + text(&self.event.command) + text(&self.event.response)
    }

    /// Masks, then cuts.
    pub(super) fn finish(self) -> Event {
        let Self { mut event, redactor, hidden, is_answer_masked, response_chars, .. } = self;
        let answer_redactor = (!is_answer_masked).then_some(&*redactor);
        let redactor = Some(&*redactor);
        if event.id.is_empty() {
            event.id = new_id(event.at);
        }
        if let Some(hidden) = &hidden {
            event.command = Some(Text { size: hidden.chars() as u64, kept: hidden.shown() });
            if let Some(response) = &mut event.response {
                response.kept = hidden.taken_out_of(&response.kept);
            }
        } else if let Some(command) = &mut event.command {
            finish(redactor, &mut command.kept, TEXT_CHARS);
        }
        if let Some(response) = &mut event.response {
            finish(answer_redactor, &mut response.kept, response_chars);
        }
        let short = [
            (&mut event.error_message, answer_redactor, SHORT_CHARS),
            (&mut event.result, answer_redactor, SHORT_CHARS),
            (&mut event.blocked_pattern, answer_redactor, SHORT_CHARS),
            (&mut event.label, redactor, SHORT_CHARS),
            (&mut event.agent_id, redactor, AGENT_CHARS),
            (&mut event.owner_session_id, redactor, SHORT_CHARS),
            (&mut event.error_code, answer_redactor, AGENT_CHARS),
            (&mut event.session_source, redactor, AGENT_CHARS),
            (&mut event.cli_type, redactor, AGENT_CHARS),
            (&mut event.evidence_id, answer_redactor, AGENT_CHARS),
            (&mut event.command_id, answer_redactor, AGENT_CHARS),
        ];
        for (text, redactor, chars) in short {
            if let Some(text) = text {
                if let Some(hidden) = &hidden {
                    *text = hidden.taken_out_of(text);
                }
                finish(redactor, text, chars);
            }
        }
        finish(redactor, &mut event.action, AGENT_CHARS);
        finish(redactor, &mut event.session_id, AGENT_CHARS);
        if let Some(redactor) = redactor.filter(|_| !event.extra.is_empty()) {
            event.extra = masked_extra(redactor, &event.extra);
        }
        event
    }
}

/// Masks a text, where that was not done, and cuts it.
fn finish(redactor: Option<&Redactor>, text: &mut String, chars: usize) {
    if let Some(std::borrow::Cow::Owned(masked)) = redactor.map(|redactor| redactor.redact(text)) {
        *text = masked;
    }
    // A character has at least one byte.
    if text.len() > chars
        && let Some((at, _)) = text.char_indices().nth(chars)
    {
        text.truncate(at);
    }
}

/// Fields of others, if they are not too large: masked as text, and kept only where that leaves them whole.
fn masked_extra(redactor: &Redactor, extra: &Map<String, Value>) -> Map<String, Value> {
    let text = json!(extra).to_string();
    if text.len() > EXTRA_BYTES {
        return Map::from_iter([("extra_omitted_bytes".to_owned(), json!(text.len()))]);
    }
    match redactor.redact(&text) {
        std::borrow::Cow::Borrowed(_) => extra.clone(),
        std::borrow::Cow::Owned(masked) => serde_json::from_str(&masked).unwrap_or_default(),
    }
}

/// A new name for something recorded at this moment: `pty_`, date, time and eight hex digits.
pub fn new_id(at: SystemTime) -> String {
    let [year, month, day, hour, minute, second] = date_and_time(at);
    let mut id = String::with_capacity("pty_00000000_000000_00000000".len());
    id.push_str("pty_");
    push_digits(&mut id, year * 10_000 + month * 100 + day, 8);
    id.push('_');
    push_digits(&mut id, hour * 10_000 + minute * 100 + second, 6);
    id.push('_');
    let bits = passing_bits();
    id.extend((0..8).map(|place| char::from(b"0123456789abcdef"[(bits >> (4 * place)) as usize & 0xf])));
    id
}

/// A name that somebody claims, made harmless: no control characters, not too long; nothing where nothing is left.
pub fn clean_name(name: &str) -> Option<String> {
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    let name: String = name.trim().chars().take(AGENT_CHARS).collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> String {
        ["gh", "p_", &"a1B2".repeat(9)].concat()
    }

    #[test]
    fn secrets_are_masked_before_anything_is_cut() {
        let token = token();
        let mut event = Event::new("talk", "pty_1");
        event.command = Some(Text::new(format!("{} {token}", "x".repeat(TEXT_CHARS - 11))));
        event.response = Some(Text::new(format!("{} {token}", "y".repeat(TEXT_CHARS - 11))));
        event.error_message = Some(format!("no {token}"));
        event.extra = Map::from_iter([("note".to_owned(), json!(token))]);
        let event = Draft::new(event, Arc::default()).finish();
        let row = event.row().to_string();
        assert!(!row.contains("a1B2"), "{}", &row[row.len() - 400..]);
        let command = event.command.expect("a command");
        assert_eq!((command.kept.chars().count(), command.size), (TEXT_CHARS, TEXT_CHARS as u64 - 10 + 40));
        assert!(command.is_cut() && event.response.is_some_and(|response| response.is_cut()));
    }

    #[test]
    fn what_is_not_of_the_answer_is_masked_in_any_case() {
        let token = token();
        let mut event = Event::new(format!("talk {token}"), format!("pty_1 {token}"));
        event.command = Some(Text::new(format!("echo {token}")));
        for text in [&mut event.agent_id, &mut event.owner_session_id, &mut event.label, &mut event.cli_type] {
            *text = Some(format!("a {token}"));
        }
        event.error_message = Some("m".repeat(2 * SHORT_CHARS));
        let draft = Draft { is_answer_masked: true, ..Draft::new(event, Arc::default()) };
        let event = draft.finish();
        assert!(!event.row().to_string().contains("a1B2"), "{}", event.row());
        assert_eq!(event.error_message.map(|message| message.len()), Some(SHORT_CHARS), "all of it is cut");
    }

    #[test]
    fn hidden_input_is_nowhere() {
        let mut event = Event::new("send_line", "pty_1");
        event.command = Some(Text::new("hunter2 é"));
        event.response = Some(Text::new("you typed hunter2 é"));
        event.error_message = Some("cannot type \"hunter2 é\"".to_owned());
        let draft = Draft {
            hidden: Some(Hidden { parts: vec!["hunter2 é".to_owned()] }),
            ..Draft::new(event, Arc::default())
        };
        let event = draft.finish();
        assert!(!event.row().to_string().contains("hunter"), "{}", event.row());
        assert_eq!(event.row()["command"], "[hidden input, 9 chars]");
        assert_eq!(event.row()["command_size"], 9);
    }

    #[test]
    fn names_are_made_harmless() {
        assert_eq!(clean_name(" agent\n1\u{7}\x1b[31m ").as_deref(), Some("agent1[31m"));
        assert_eq!(clean_name("\n \t"), None);
        assert_eq!(clean_name(&"é".repeat(500)).map(|name| name.chars().count()), Some(AGENT_CHARS));
    }

    #[test]
    fn ids_have_the_form_that_panels_know() {
        let id = new_id(SystemTime::UNIX_EPOCH + Duration::from_secs(951_782_399));
        assert!(id.starts_with("pty_20000228_235959_") && id.len() == 28, "{id}");
    }

    #[test]
    fn a_gateway_gets_its_nineteen_fields() {
        let fields = Event::new("talk", "s").for_gateway();
        assert_eq!(fields.as_object().map(Map::len), Some(19));
    }

    #[test]
    fn fields_of_others_are_kept_unless_they_are_too_large() {
        let mut event = Event::new("bash_output", "s");
        event.extra = Map::from_iter([("wave_id".to_owned(), json!("w1")), ("id".to_owned(), json!("mine"))]);
        let row = Draft::new(event.clone(), Arc::default()).finish().row();
        assert_eq!(row["wave_id"], "w1");
        assert_ne!(row["id"], "mine", "what we know wins");
        event.extra.insert("big".to_owned(), json!("x".repeat(EXTRA_BYTES)));
        let row = Draft::new(event, Arc::default()).finish().row();
        assert!(row.get("wave_id").is_none() && row["extra_omitted_bytes"].is_u64());
    }
}
