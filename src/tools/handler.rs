//! From a declared action to its reply: an action reads its parameters, then runs in the state that its tool needs.

use std::future::Future;
use std::pin::Pin;

use kpty_guard::Masked;
use serde::Serialize;
use serde_json::{Map, Value};

use super::Tools;
use super::envelope::Failure;
use super::k_pty::screen::Screen;
use super::params::Params;
use crate::error::{Error, Result};

/// The state that a tool's actions work on. Each tool names its own type, so that an action of one tool cannot reach
/// the state of another.
pub(super) trait Context: Sync + 'static {
    /// This tool's part of the state.
    fn of(tools: &Tools) -> &Self;
}

/// An action between its parameters and its reply.
pub(super) trait Handler: Sized + Send + 'static {
    /// What it works on.
    type Context: Context;

    /// Reads the parameters. Nothing may be changed here: a parameter that is refused leaves everything as it is.
    fn read(params: &mut Params<'_>, context: &Self::Context) -> Result<Self>;

    /// Carries the action out.
    fn run(self, context: &Self::Context) -> impl Future<Output = Outcome> + Send;
}

/// What an action returns, or why it failed.
pub(super) type Outcome = std::result::Result<Content, Failure>;

/// The fields of a reply, before the envelope.
pub(super) enum Content {
    /// Any fields.
    Fields(Map<String, Value>),
    /// A screen, which is written without becoming a map first.
    Screen(Box<Screen>),
    /// A text in place of fields, of a tool that replies in text.
    Text(TextReply),
}

/// The reply of an action in plain text.
#[derive(Debug, PartialEq, Eq)]
pub struct TextReply {
    /// The text.
    pub text: Masked,
    /// A picture, in the fields of a `screenshot`.
    pub image: Option<Map<String, Value>>,
    /// The call failed.
    pub is_error: bool,
}

impl Content {
    /// The fields of a typed reply. Nothing masks them later: text of a session comes as `Masked`, and what the caller
    /// gave is masked where it is put in.
    pub(super) fn of(reply: &impl Serialize) -> Outcome {
        match serde_json::to_value(reply) {
            Ok(Value::Object(fields)) => Ok(Self::Fields(fields)),
            Ok(_) => Err(Error::Usage("a reply is not an object".to_owned()).into()),
            Err(error) => Err(Error::Usage(format!("a reply cannot be written: {error}")).into()),
        }
    }

    /// All fields in a map.
    pub(super) fn into_fields(self) -> Map<String, Value> {
        match self {
            Self::Fields(fields) => fields,
            Self::Screen(screen) => screen.fields(),
            Self::Text(shown) => Map::from_iter([("text".to_owned(), Value::String(shown.text.into_string()))]),
        }
    }
}

impl From<Map<String, Value>> for Content {
    fn from(fields: Map<String, Value>) -> Self {
        Self::Fields(fields)
    }
}

/// An action that runs. Boxed: a call would otherwise have room for the largest of them, and most need little.
pub(super) type Running<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// Reads the parameters of an action and starts it.
pub(super) type Begin = for<'a> fn(&mut Params<'_>, &'a Tools) -> Result<Running<'a>>;

/// The [`Begin`] of a handler.
pub(super) fn begin<'a, H: Handler>(params: &mut Params<'_>, tools: &'a Tools) -> Result<Running<'a>> {
    let context = H::Context::of(tools);
    let handler = H::read(params, context)?;
    Ok(Box::pin(handler.run(context)))
}
