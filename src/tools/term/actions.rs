//! Calling actions of `k_pty` on behalf of a caller.

use kpty_guard::{Masked, Redactor};
use serde_json::{Map, Value};

use super::errors;
use crate::error::Error;
use crate::runtime::{DetachOnDrop, defer};
use crate::tools::audit::{Done, Shown};
use crate::tools::envelope::failed;
use crate::tools::handler::{Content, Outcome, TextReply};
use crate::tools::k_pty::screen::Screen;
use crate::tools::{Action, Caller, DEFAULT_TOOL, Tools};

/// The fields of a reply.
pub(super) type Fields = Map<String, Value>;

/// What an action came to, or the fields of its error.
pub(super) type Called<T> = Result<T, Failed>;

/// The fields of the reply of an action that failed.
#[derive(Debug)]
pub(super) struct Failed(pub(super) Fields);

impl Failed {
    /// Its code.
    pub(super) fn code(&self) -> &str {
        self.0.get("error_code").and_then(Value::as_str).unwrap_or_default()
    }

    /// A fact about it.
    pub(super) fn detail(&self, name: &str) -> &Value {
        self.0.get("details").and_then(|details| details.get(name)).unwrap_or(&Value::Null)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self(failed(&error, &Redactor::default()))
    }
}

/// The tools, and who calls.
#[derive(Clone)]
pub(super) struct Actions {
    pub(super) tools: Tools,
    pub(super) caller: Caller,
}

impl Actions {
    pub(super) fn new(tools: &Tools, caller: &Caller) -> Self {
        Self { tools: tools.clone(), caller: caller.clone() }
    }

    /// Calls an action.
    pub(super) async fn call(&self, arguments: Value) -> Called<Fields> {
        let done = self.perform(arguments).await?;
        let fields = done.reply.body.clone();
        defer(move || done.record());
        Ok(fields)
    }

    /// Calls an action that returns a screen.
    pub(super) async fn screen(&self, arguments: Value) -> Called<Screen> {
        let mut done = self.perform(arguments).await?;
        // The record has what was asked for; a copy of what was shown is not worth its time.
        let shown = std::mem::replace(&mut done.shown, Shown::Nothing);
        defer(move || done.record());
        match shown {
            Shown::Screen(screen) => Ok(*screen),
            Shown::Nothing | Shown::Text(_) => Err(Failed(Fields::new())),
        }
    }

    /// A caller that goes away ends what may end with it; what types or changes something is finished.
    async fn perform(&self, arguments: Value) -> Called<Done> {
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            _ => Fields::new(),
        };
        let name = arguments.get("action").and_then(Value::as_str).unwrap_or_default();
        let ends_with_caller = DEFAULT_TOOL.action(name).is_some_and(Action::ends_with_caller);
        let Self { tools, caller } = self.clone();
        let performing = async move { tools.perform(DEFAULT_TOOL, arguments, caller).await };
        let done = if ends_with_caller { performing.await } else { DetachOnDrop::new(performing).await };
        if !done.reply.is_error {
            return Ok(done);
        }
        let failed = Failed(done.reply.body.clone());
        defer(move || done.record());
        Err(failed)
    }
}

/// The reply of an action of these tools.
pub(super) fn outcome(called: Called<TextReply>) -> Outcome {
    Ok(Content::Text(called.unwrap_or_else(|failed| TextReply { is_error: true, ..shown(errors::text(&failed.0)) })))
}

/// A reply in text. All that it has of sessions and of what callers gave was in replies that are masked.
pub(super) fn shown(text: String) -> TextReply {
    TextReply { text: Masked::vouched(text), image: None, is_error: false }
}

/// Adds to the arguments of a call.
pub(super) fn add(arguments: &mut Value, more: Value) {
    if let (Value::Object(arguments), Value::Object(more)) = (arguments, more) {
        arguments.extend(more);
    }
}

/// A text of a reply.
pub(super) fn text<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A number of a reply.
pub(super) fn number(fields: &Fields, name: &str) -> u64 {
    fields.get(name).and_then(Value::as_u64).unwrap_or_default()
}
