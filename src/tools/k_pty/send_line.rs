//! `send_line`: types a line and presses Enter.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::typing::enter_delay;
use crate::error::{Error, Result};
use crate::terminal::Terminal;
use crate::terminal::local::input;
use crate::tools::envelope::{Failure, Outcome, failed};
use crate::tools::params::Params;
use crate::tools::{Target, Tools};

pub(in crate::tools) const PARAMS: &[&str] = &["session_id", "data", "escapes", "enter_delay_ms"];

pub(in crate::tools) struct Request {
    session: Target,
    line: Line,
}

/// What is typed before Enter.
pub(in crate::tools) struct Line {
    text: String,
    enter_delay: Option<Duration>,
}

impl Request {
    pub(in crate::tools) fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        // A session that nobody knows is told first.
        let session = tools.target(params)?;
        Ok(Self { session, line: Line::read(params, tools)? })
    }

    pub(in crate::tools) async fn run(self, tools: &Tools) -> Outcome {
        self.line.type_into(&*self.session, tools).await
    }
}

impl Line {
    /// Reads the text; a dangerous one is refused, with its line ends and without.
    pub(in crate::tools) fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let given = params.any_text("data")?.ok_or(Error::MissingParam("data"))?;
        let text = if params.flag("escapes", true)? { input::unescape(given) } else { given.to_owned() };
        let line = input::one_line(&text);
        tools.typist.check(&text)?;
        tools.typist.check(&line)?;
        Ok(Self { text: line, enter_delay: enter_delay(params)? })
    }

    /// Text and Enter are two writes: programs take a burst for a paste.
    pub(in crate::tools) async fn type_into(self, session: &dyn Terminal, tools: &Tools) -> Outcome {
        let Self { text: line, enter_delay } = self;
        let mut turn = tools.typist.turn(session).await;
        turn.check_line(&line)?;
        let typed = if line.is_empty() { Ok(0) } else { turn.type_bytes(line.as_bytes()).await };
        let typed = match typed {
            Ok(count) => written(count),
            Err(error) => {
                let not_sent = json!({ "ok": false, "message": "Enter was not sent: the text was not taken" });
                let besides = both(Value::Object(failed(&error)), not_sent);
                return Err(Failure::with(error, besides));
            }
        };
        if !line.is_empty() {
            turn = turn.pause_before_enter(enter_delay).await;
        }
        match turn.type_bytes(b"\r").await {
            Ok(count) => Ok(both(typed, written(count))),
            Err(error) => {
                let besides = both(typed, Value::Object(failed(&error)));
                Err(Failure::with(error, besides))
            }
        }
    }
}

fn written(count: usize) -> Value {
    json!({ "ok": true, "bytes_written": count })
}

fn both(typed: Value, enter: Value) -> Map<String, Value> {
    Map::from_iter([("typed".to_owned(), typed), ("enter".to_owned(), enter)])
}
