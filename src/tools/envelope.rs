//! The shape of every answer: `ok`, and on failure the code, the message and typed details.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::error::{Busy, Error, ErrorCode, Exited, TimedOut};
use crate::ids::{CommandId, SessionId};
use crate::model::{ExitInfo, SessionQuery, SessionRecord};
use kpty_guard::{Masked, MaskedStr, Redactor};

/// What a call comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The answer: always with `ok`.
    pub body: Map<String, Value>,
    /// `ok` is false.
    pub is_error: bool,
}

impl From<Error> for Reply {
    /// What a call comes to that was refused before it became an action.
    fn from(error: Error) -> Self {
        reply(Err(error.into()), Arc::default)
    }
}

/// An error, and what the answer has besides.
pub(super) struct Failure {
    error: Error,
    besides: Map<String, Value>,
}

impl Failure {
    pub(super) fn with(error: Error, besides: Map<String, Value>) -> Self {
        Self { error, besides }
    }

    /// The same failure inside a larger one: as a whole under `name`, its own fields no longer beside the error.
    pub(super) fn nested(self, name: &str, mut besides: Map<String, Value>, redactor: &Redactor) -> Self {
        let mut inner = failed(&self.error, redactor);
        inner.extend(self.besides);
        besides.insert(name.to_owned(), Value::Object(inner));
        Self { error: self.error, besides }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, besides: Map::new() }
    }
}

/// How a program ended, as fields of an answer.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct ExitFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
}

impl From<ExitInfo> for ExitFields {
    fn from(exit: ExitInfo) -> Self {
        match exit {
            ExitInfo::Code(code) => Self { exit_code: Some(code), signal: None },
            ExitInfo::Signal(signal) => Self { exit_code: None, signal: Some(signal) },
            ExitInfo::Unknown => Self::default(),
        }
    }
}

/// Puts an outcome into the shape that callers know. The fields are built from masked text; an error repeats what callers
/// gave, which the redactor masks.
pub(super) fn reply(outcome: Result<Map<String, Value>, Failure>, redactor: impl FnOnce() -> Arc<Redactor>) -> Reply {
    match outcome {
        Ok(mut body) => {
            body.entry("ok").or_insert(Value::Bool(true));
            Reply { body, is_error: false }
        }
        Err(failure) => {
            let mut body = failed(&failure.error, &redactor());
            body.extend(failure.besides);
            Reply { body, is_error: true }
        }
    }
}

/// Takes secrets out of all of a reply that came from elsewhere.
pub(super) fn mask_foreign(body: &mut Map<String, Value>, redactor: &Redactor) {
    body.values_mut().for_each(|value| mask_value(value, redactor));
}

fn mask_value(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(masked) = redactor.redact(text) {
                *text = masked;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| mask_value(value, redactor)),
        Value::Object(fields) => fields.values_mut().for_each(|value| mask_value(value, redactor)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A session's record as others see it: names are whatever somebody called them.
pub(super) fn shown_record(mut record: SessionRecord, redactor: &Redactor) -> SessionRecord {
    let mask = |text: &mut String| *text = redactor.mask(std::mem::take(text)).into_string();
    mask(&mut record.session_id);
    mask(&mut record.cli_type);
    let optional = [
        &mut record.desktop_url,
        &mut record.owner_agent_id,
        &mut record.owner_session_id,
        &mut record.label,
        &mut record.claude_code_session_id,
    ];
    optional.into_iter().flatten().for_each(mask);
    record
}

/// An error as an object.
pub(super) fn failed(error: &Error, redactor: &Redactor) -> Map<String, Value> {
    let message = error.message(redactor).into_string();
    let fields = [
        ("ok", Value::Bool(false)),
        ("error_code", error.code().as_str().into()),
        ("message", message.clone().into()),
        ("error", message.into()),
        ("details", details(error, redactor)),
    ];
    let mut body = Map::new();
    for (name, value) in fields {
        body.insert(name.to_owned(), value);
    }
    match error {
        Error::NoMatch(query) => body.extend([("query".to_owned(), query_fields(query, redactor))]),
        Error::Ambiguous(ambiguous) => body.extend([
            ("query".to_owned(), query_fields(&ambiguous.query, redactor)),
            ("matches".to_owned(), json!(shown_records(&ambiguous.matches, redactor))),
        ]),
        _ => {}
    }
    body
}

/// What was looked for. The newer keys are there only when they were given.
fn query_fields(query: &SessionQuery, redactor: &Redactor) -> Value {
    let given = |text: &Option<String>| text.as_deref().map(|text| redactor.mask_str(text));
    let mut fields = json!({
        "agent_id": given(&query.agent_id),
        "owner_session_id": given(&query.owner_session_id),
        "label": given(&query.label),
        "claude_code_session_id": given(&query.claude_code_session_id),
    });
    for (name, text) in [("cwd", &query.cwd), ("last_command", &query.last_command)] {
        if text.is_some() {
            fields[name] = json!(given(text));
        }
    }
    fields
}

fn shown_records(records: &[SessionRecord], redactor: &Redactor) -> Vec<SessionRecord> {
    records.iter().map(|record| shown_record(record.clone(), redactor)).collect()
}

/// The facts of an error. What a session showed is masked already; the rest is what callers gave.
fn details(error: &Error, redactor: &Redactor) -> Value {
    let given = |text: &str| redactor.mask_str(text);
    match error {
        Error::SessionNotFound(id) | Error::LeaderProtected(id) => json!({ "session_id": given(id.as_str()) }),
        Error::DesktopOnly(id) | Error::DesktopResizeDisabled(id) | Error::DesktopKillDisabled(id) => {
            json!({ "session_id": given(id.as_str()), "source": "desktop" })
        }
        Error::Desktop(fault) => json!({
            "source": "desktop",
            "desktop_url": given(&fault.url),
            "asked": fault.asked,
            "status": fault.status,
            "command_id": fault.command.map(|id| id.to_string()),
        }),
        Error::AlreadyOwned { session, owner } => json!({ "session_id": session.as_str(), "owner": given(owner) }),
        Error::Ambiguous(ambiguous) => json!({ "count": ambiguous.count }),
        Error::MissingParam(_) => json!({}),
        Error::InvalidParam { name, .. } => json!({ "param": given(name) }),
        Error::MissingAction { available } | Error::UnknownAction { available, .. } => {
            json!({ "available_actions": available })
        }
        Error::Deprecated { alternatives } => json!({
            "alternatives": alternatives,
            "reason": "text written without Enter, unchecked, was a way around the guard",
        }),
        Error::Spawn { shell, cwd, .. } => json!({ "shell": given(shell), "cwd": given(&cwd.to_string_lossy()) }),
        Error::LimitReached { limit } => json!({ "limit": limit }),
        Error::MemoryLimit { limit } => json!({ "limit_bytes": limit }),
        Error::Exited(exited) => exited_details(exited),
        Error::Write { session, .. } | Error::Resize { session, .. } => json!({ "session_id": session.as_str() }),
        Error::Kill { session, survivors } => json!({ "session_id": session.as_str(), "survivors": survivors }),
        Error::Busy(busy) => busy_details(busy),
        Error::SecretPrompt(session) => json!({
            "session_id": session.as_str(),
            "next_actions": [
                next("wait", session, json!({ "quiet_ms": 1000 }), "wait for the person's answer"),
                interrupt(session),
            ],
        }),
        Error::Incomplete(incomplete) => json!({
            "session_id": incomplete.session.as_str(),
            "command_id": incomplete.command.to_string(),
            "partial_output": incomplete.partial_output,
            "cancelled": true,
        }),
        Error::Timeout(timed_out) => timeout_details(timed_out),
        Error::Blocked(blocked) => json!({
            "rule": given(&blocked.rule),
            "category": given(&blocked.category),
            "reason": given(&blocked.reason),
            "alternative": given(&blocked.instead),
            "matched": given(&blocked.words),
            "command_preview": given(&blocked.preview),
            // Older callers know the rule by this name.
            "pattern": given(&blocked.rule),
            "note": "a guard rail against mistakes, not a wall",
        }),
        Error::TermReadDisabled => json!({ "current_mode": "off" }),
        Error::Remote { code, .. } => json!({ "remote_code": given(code) }),
        Error::File { .. }
        | Error::Recording { .. }
        | Error::Size(_)
        | Error::Output(_)
        | Error::Usage(_)
        | Error::NotAvailable(_)
        | Error::NoMatch(_)
        | Error::Server(_) => json!({}),
    }
}

fn exited_details(exited: &Exited) -> Value {
    let ExitFields { exit_code, signal } = exited.exit.into();
    json!({
        "session_id": exited.session.as_str(),
        "exit_code": exit_code,
        "signal": signal,
        "command_id": exited.command.map(|id| id.to_string()),
        "partial_output": exited.partial_output,
        "next_actions": [
            next("term_read", &exited.session, json!({ "mode": "tail" }), "read what it said last"),
            json!({ "action": "create", "why": "start another session" }),
        ],
    })
}

fn busy_details(busy: &Busy) -> Value {
    let session = &busy.session;
    let mut next_actions = Vec::new();
    if let Some((id, _)) = &busy.command {
        next_actions.push(wait_for(session, *id));
    }
    next_actions.extend([
        next("term_read", session, json!({ "mode": "viewport" }), "see what it shows"),
        next("send_keys", session, json!({ "keys": "q" }), "leave a pager; an editor or a REPL has keys of its own"),
        interrupt(session),
        json!({ "action": "create", "why": "use another session meanwhile" }),
    ]);
    json!({
        "session_id": session.as_str(),
        "foreground": busy.foreground,
        "running_command": busy.command.as_ref().map(|(_, line)| line),
        "command_id": busy.command.as_ref().map(|(id, _)| id.to_string()),
        "age_ms": busy.age.map(|age| age.as_millis() as u64),
        "next_actions": next_actions,
    })
}

fn timeout_details(timed_out: &TimedOut) -> Value {
    let session = &timed_out.session;
    let mut details = json!({
        "session_id": session.as_str(),
        "command": timed_out.line,
        "command_id": timed_out.command.to_string(),
        "timeout_ms": timed_out.waited.as_millis() as u64,
        "partial_output": timed_out.partial_output,
        "screen": timed_out.screen,
        "foreground": timed_out.foreground,
        "alternate_screen": timed_out.alternate_screen,
        "interrupted": timed_out.interrupted,
        "next_actions": [
            wait_for(session, timed_out.command),
            next("send_line", session, json!({ "data": "…" }), "answer what it asks"),
            interrupt(session),
        ],
    });
    if let Some(asks) = timed_out.asks {
        details["asks"] = json!(asks);
    }
    details
}

fn wait_for(session: &SessionId, command: CommandId) -> Value {
    next("wait", session, json!({ "command_id": command.to_string() }), "get its output and exit code when it ends")
}

fn interrupt(session: &SessionId) -> Value {
    next("send_keys", session, json!({ "keys": "Ctrl-C" }), "interrupt it")
}

/// A call that may be made next, ready to be sent.
fn next(action: &str, session: &SessionId, parameters: Value, why: &str) -> Value {
    let mut call = json!({ "action": action, "session_id": session.as_str(), "why": why });
    if let (Value::Object(call), Value::Object(parameters)) = (&mut call, parameters) {
        call.extend(parameters);
    }
    call
}

/// A text of a reply. Whoever builds a reply builds it from masked text.
pub(super) fn shown_text(value: &Value) -> Option<MaskedStr<'_>> {
    value.as_str().map(MaskedStr::vouched)
}

/// The same as a copy.
pub(super) fn text_of(value: &Value) -> Option<Masked> {
    shown_text(value).map(MaskedStr::to_masked)
}

impl Reply {
    /// What a route of its own answers, as a reply: its texts are masked here.
    pub fn of_route(mut body: Map<String, Value>, redactor: &Redactor) -> Self {
        mask_foreign(&mut body, redactor);
        let is_error = body.get("ok") == Some(&Value::Bool(false));
        Self { body, is_error }
    }

    /// A text of it.
    pub fn text(&self, name: &str) -> Option<Masked> {
        self.body.get(name).and_then(text_of)
    }

    /// A list of texts of it.
    pub fn texts(&self, name: &str) -> Vec<Masked> {
        let texts = self.body.get(name).and_then(Value::as_array).into_iter().flatten();
        texts.filter_map(text_of).collect()
    }

    /// The code of a failure.
    pub fn error_code(&self) -> Option<&str> {
        self.body.get("error_code").and_then(Value::as_str)
    }

    /// True when the failure has this code.
    pub fn is(&self, code: ErrorCode) -> bool {
        self.error_code() == Some(code.as_str())
    }
}
