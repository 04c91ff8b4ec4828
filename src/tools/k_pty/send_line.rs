//! `send_line`: types a line and presses Enter.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::typing::{ENTER_DELAY, enter_delay};
use super::{SESSION_ID, Target};
use crate::error::{Error, Result};
use crate::terminal::Terminal;
use crate::terminal::local::input;
use crate::tools::Tools;
use crate::tools::envelope::{Failure, failed};
use crate::tools::handler::{Handler, Outcome, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Effect, Param, Recorded};

pub(in crate::tools) static ACTION: Action = Action {
    name: "send_line",
    aliases: &[],
    summary: "Type data and press Enter",
    notes: "For prompts and programs; for commands use talk.",
    example: r#"{"action":"send_line","session_id":"pty_0123abcd","data":"yes"}"#,
    params: &[SESSION_ID, DATA, ESCAPES, ENTER_DELAY],
    effect: Effect::Type,
    on_page: false,
    forwarded: false,
    shows_screen: false,
    begin: begin::<SendLine>,
};

pub(super) const DATA: Param =
    Param::text("data", "the text; empty sends only Enter").required().recorded(Recorded::Typed);
pub(super) const ESCAPES: Param = Param::flag("escapes", true, "convert \\n \\r \\t \\xHH, unless false");

struct SendLine {
    session: Target,
    line: Line,
}

/// What is typed before Enter.
pub(super) struct Line {
    text: String,
    enter_delay: Option<Duration>,
}

impl Handler for SendLine {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        // An unknown session is reported before a refused line.
        let session = tools.target(params)?;
        Ok(Self { session, line: Line::read(params, tools)? })
    }

    async fn run(self, tools: &Tools) -> Outcome {
        self.line.type_into(&*self.session, tools).await
    }
}

impl Line {
    /// Reads the text; a dangerous one is refused, with its line ends and without.
    pub(super) fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let given = params.any_text(&DATA)?.ok_or(Error::MissingParam(DATA.name))?;
        let text = if params.flag(&ESCAPES)? { input::unescape(given) } else { given.to_owned() };
        let line = input::one_line(&text);
        tools.typist.check(&text)?;
        // Usually it has no line ends, and is the line that was judged just now.
        if line != text {
            tools.typist.check(&line)?;
        }
        Ok(Self { text: line, enter_delay: enter_delay(params)? })
    }

    /// Text and Enter are two writes: programs take a burst for a paste.
    pub(super) async fn type_into(self, session: &dyn Terminal, tools: &Tools) -> Outcome {
        let Self { text: line, enter_delay } = self;
        let mut turn = tools.typist.turn(session).await;
        turn.check_line(&line)?;
        let failed = |error: &Error| Value::Object(failed(error, &session.redactor()));
        let typed = if line.is_empty() { Ok(0) } else { turn.type_bytes(line.as_bytes()).await };
        let typed = match typed {
            Ok(count) => written(count),
            Err(error) => {
                let not_sent = json!({ "ok": false, "message": "Enter was not sent: the text was not taken" });
                let besides = both(failed(&error), not_sent);
                return Err(Failure::with(error, besides));
            }
        };
        if !line.is_empty() {
            turn = turn.pause_before_enter(enter_delay).await;
        }
        match turn.type_bytes(b"\r").await {
            Ok(count) => Ok(both(typed, written(count)).into()),
            Err(error) => {
                let besides = both(typed, failed(&error));
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
