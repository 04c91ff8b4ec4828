//! One recorded action: a [`Draft`] may still contain secrets, an [`Event`] contains none.
//!
//! Owns the field names on the wire. A text is redacted before it is truncated; sizes are those of the full text, in
//! characters. What a session showed comes redacted; what callers gave is redacted here.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::ids::passing_bits;
use crate::model::{date_and_time, iso_time, iso_time_millis, push_digits};
use kpty_guard::{Masked, MaskedStr, Redactor};

/// Maximum characters kept of a command and of a reply.
pub const TEXT_CHARS: usize = 10_000;
/// Maximum characters kept of a reply that only shows state; what was done matters more than what was displayed.
pub const LOOK_CHARS: usize = 500;
/// Maximum characters of a text in a list.
const PREVIEW_CHARS: usize = 500;
/// Maximum characters of an agent's name.
pub const AGENT_CHARS: usize = 128;
/// Maximum characters of a message or summary.
const SHORT_CHARS: usize = 1_000;
/// Maximum bytes of fields that only their sender interprets.
const EXTRA_BYTES: usize = 8 << 10;

/// A possibly truncated text with its full size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SizedText {
    /// The kept part.
    pub kept: Masked,
    /// Characters of the full text.
    pub size: u64,
}

impl SizedText {
    /// Wraps a full text.
    pub fn new(kept: Masked) -> Self {
        Self { size: kept.chars().count() as u64, kept }
    }

    /// Returns whether the text was truncated.
    pub fn is_cut(&self) -> bool {
        self.size > self.kept.chars().count() as u64
    }

    fn preview(&self) -> MaskedStr<'_> {
        self.kept.as_masked().head(PREVIEW_CHARS)
    }
}

/// What a caller typed or asked for, with its full size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenText {
    /// The text, secrets and all; much longer than what is kept of it.
    pub text: String,
    /// Characters of the full text.
    pub size: u64,
}

impl GivenText {
    /// Wraps a full text.
    pub fn new(text: String) -> Self {
        Self { size: text.chars().count() as u64, text }
    }
}

/// One action. All texts are redacted and truncated.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Event id.
    pub id: String,
    /// Time of completion.
    pub at: SystemTime,
    /// Session; empty for an action without one.
    pub session_id: String,
    /// Name of the action.
    pub action: String,
    /// Agent that the caller claims to be.
    pub agent_id: Option<String>,
    /// The owner's own session id.
    pub owner_session_id: Option<String>,
    /// Input or query.
    pub command: Option<SizedText>,
    /// Reply.
    pub response: Option<SizedText>,
    /// Duration of the action.
    pub duration: Duration,
    /// Timeout that the action ran with.
    pub timeout_ms: Option<u64>,
    /// The action timed out.
    pub timed_out: bool,
    /// The action succeeded.
    pub success: bool,
    /// Error code of a failed action.
    pub error_code: Option<Masked>,
    /// Error message of a failed action.
    pub error_message: Option<Masked>,
    /// The guard blocked the action.
    pub blocked: bool,
    /// Rule that blocked it.
    pub blocked_pattern: Option<Masked>,
    /// `local` or `desktop`.
    pub session_source: Option<String>,
    /// Kind of program that runs in the session.
    pub cli_type: Option<String>,
    /// Display name of the session.
    pub label: Option<String>,
    /// Short summary of the result.
    pub result: Option<Masked>,
    /// Id of the evidence pack that the action produced.
    pub evidence_id: Option<Masked>,
    /// Id of the command that ran.
    pub command_id: Option<Masked>,
    /// Exit code of that command.
    pub exit_code: Option<i64>,
    /// Fields that only their sender interprets.
    pub extra: Map<String, Value>,
}

impl Event {
    /// Creates a successful action with the current time.
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

    /// Returns the duration in milliseconds.
    pub fn duration_ms(&self) -> f64 {
        (self.duration.as_secs_f64() * 1e6).round() / 1e3
    }

    /// Serializes the event for panels.
    pub fn row(&self) -> Value {
        let (command, response) = (self.command.as_ref(), self.response.as_ref());
        let kept = |text: Option<&SizedText>| text.map(|text| text.kept.clone());
        let size = |text: Option<&SizedText>| text.map_or(0, |text| text.size);
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
            "command_preview": command.map(SizedText::preview),
            "command_size": size(command),
            "response": kept(response),
            "response_preview": response.map(SizedText::preview),
            "response_size": size(response),
            "response_truncated": response.is_some_and(SizedText::is_cut),
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

    /// Serializes the nineteen fields that a gateway accepts.
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
            "response_truncated": response.is_some_and(SizedText::is_cut),
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

    /// Appends the event to a session log, as a line of JSON.
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
        // Strings and numbers always serialize, and writing to a vector cannot fail.
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

/// Minimum number of leading characters by which hidden input is recognized in truncated text.
const BEGINNING_CHARS: usize = 6;

/// Input that was typed while the terminal did not echo; it is replaced by a placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// The pieces that were typed; none may appear anywhere.
    pub parts: Vec<String>,
}

impl Hidden {
    /// Returns the placeholder.
    pub fn shown(&self) -> Masked {
        Masked::concat(&[&"[hidden input, ", &self.chars(), &" chars]"])
    }

    fn chars(&self) -> usize {
        self.parts.iter().map(|part| part.chars().count()).sum()
    }

    /// Removes the hidden input from a text. One or two characters are not searched for, since every text contains
    /// them. If the text ends in the beginning of the input, it was truncated there, and that beginning is removed.
    fn taken_out_of(&self, text: &Masked) -> Masked {
        let mut text = text.clone();
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

/// An action that may still contain secrets, before it is written.
pub struct Draft {
    /// Texts are complete, or at least much longer than what is kept.
    pub event: Event,
    /// What the caller typed or asked for.
    pub command: Option<GivenText>,
    /// Redacts what callers gave.
    pub redactor: Arc<Redactor>,
    /// Input typed without echo.
    pub hidden: Option<Hidden>,
    /// Maximum characters kept of the reply.
    pub response_chars: usize,
    /// The session log receives the event; false when there never was such a session.
    pub is_for_journal: bool,
    /// The action ran on this server, so the gateway receives it.
    pub is_for_gateway: bool,
    /// Number of the note of its start.
    pub started: Option<u64>,
}

impl Draft {
    /// Creates the draft of an action of this server without hidden input.
    pub fn new(event: Event, redactor: Arc<Redactor>) -> Self {
        Self {
            event,
            command: None,
            redactor,
            hidden: None,
            response_chars: TEXT_CHARS,
            is_for_journal: false,
            is_for_gateway: true,
            started: None,
        }
    }

    /// Estimates the memory of a queued draft.
    pub(super) fn bytes(&self) -> usize {
        let command = self.command.as_ref().map_or(0, |command| command.text.len());
        1_000 + command + self.event.response.as_ref().map_or(0, |response| response.kept.len())
    }

    /// Redacts what callers gave, then truncates.
    pub(super) fn finish(self) -> Event {
        let Self { mut event, command, redactor, hidden, response_chars, .. } = self;
        if event.id.is_empty() {
            event.id = new_id(event.at);
        }
        let hide = |text: &mut Masked| {
            if let Some(hidden) = &hidden {
                *text = hidden.taken_out_of(text);
            }
        };
        event.command = match &hidden {
            Some(hidden) => Some(SizedText { size: hidden.chars() as u64, kept: hidden.shown() }),
            None => {
                let given = command.map(|GivenText { text, size }| SizedText { kept: redactor.mask(text), size });
                given.or(event.command.take())
            }
        };
        if let Some(command) = &mut event.command {
            command.kept.keep_head(TEXT_CHARS);
        }
        let response = event.response.as_mut().map(|response| (&mut response.kept, response_chars));
        let shown = [
            (&mut event.error_message, SHORT_CHARS),
            (&mut event.result, SHORT_CHARS),
            (&mut event.blocked_pattern, SHORT_CHARS),
            (&mut event.error_code, AGENT_CHARS),
            (&mut event.evidence_id, AGENT_CHARS),
            (&mut event.command_id, AGENT_CHARS),
        ];
        let shown = shown.into_iter().filter_map(|(text, chars)| Some((text.as_mut()?, chars)));
        for (text, chars) in response.into_iter().chain(shown) {
            hide(text);
            text.keep_head(chars);
        }
        let short = [
            (&mut event.label, SHORT_CHARS),
            (&mut event.agent_id, AGENT_CHARS),
            (&mut event.owner_session_id, SHORT_CHARS),
            (&mut event.session_source, AGENT_CHARS),
            (&mut event.cli_type, AGENT_CHARS),
        ];
        let names = [(&mut event.action, AGENT_CHARS), (&mut event.session_id, AGENT_CHARS)];
        let texts = short.into_iter().filter_map(|(text, chars)| Some((text.as_mut()?, chars)));
        for (text, chars) in texts.chain(names) {
            let mut masked = redactor.mask(std::mem::take(text));
            hide(&mut masked);
            masked.keep_head(chars);
            *text = masked.into_string();
        }
        if !event.extra.is_empty() {
            event.extra = masked_extra(&redactor, &event.extra);
        }
        event
    }
}

/// Redacts a sender's own fields as text and keeps them only if they are within the limit and still valid JSON.
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

/// Creates an event id: `pty_`, date, time and eight hex digits.
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

/// Sanitizes a claimed name: no control characters, limited length; `None` when nothing is left.
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
        let command = Some(GivenText::new(format!("{} {token}", "x".repeat(TEXT_CHARS - 11))));
        event.response =
            Some(SizedText::new(Redactor::default().mask(format!("{} {token}", "y".repeat(TEXT_CHARS - 11)))));
        event.extra = Map::from_iter([("note".to_owned(), json!(token))]);
        let event = Draft { command, ..Draft::new(event, Arc::default()) }.finish();
        let row = event.row().to_string();
        assert!(!row.contains("a1B2"), "{}", &row[row.len() - 400..]);
        let command = event.command.expect("a command");
        assert_eq!((command.kept.chars().count(), command.size), (TEXT_CHARS, TEXT_CHARS as u64 - 10 + 40));
        assert!(command.is_cut() && event.response.is_some_and(|response| response.is_cut()));
    }

    #[test]
    fn what_callers_gave_is_masked() {
        let token = token();
        let mut event = Event::new(format!("talk {token}"), format!("pty_1 {token}"));
        let command = Some(GivenText::new(format!("echo {token}")));
        for text in [&mut event.agent_id, &mut event.owner_session_id, &mut event.label, &mut event.cli_type] {
            *text = Some(format!("a {token}"));
        }
        event.error_message = Some(Redactor::off().mask("m".repeat(2 * SHORT_CHARS)));
        let draft = Draft { command, ..Draft::new(event, Arc::default()) };
        let event = draft.finish();
        assert!(!event.row().to_string().contains("a1B2"), "{}", event.row());
        assert_eq!(event.error_message.map(|message| message.len()), Some(SHORT_CHARS), "all of it is cut");
    }

    #[test]
    fn hidden_input_is_nowhere() {
        let mut event = Event::new("send_line", "pty_1");
        event.response = Some(SizedText::new(Masked::literal("you typed hunter2 é")));
        event.error_message = Some(Masked::literal("cannot type \"hunter2 é\""));
        let draft = Draft {
            command: Some(GivenText::new("hunter2 é".to_owned())),
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
