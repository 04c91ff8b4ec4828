//! `term_run`: runs a command.

use std::time::Duration;

use serde_json::{Value, json};

use super::SESSION;
use super::actions::{Actions, Called, Failed, outcome, shown};
use super::digest::{Lines, digest, without_repetition};
use super::fresh::see;
use super::header::{Header, add_line, seconds};
use super::outcome::{READ_CHARS, ended};
use super::session::{Chosen, Missing, choose};
use super::sessions::in_words;
use crate::error::Result;
use crate::terminal::attention::AttentionState;
use crate::tools::Tools;
use crate::tools::handler::{Handler, Outcome, TextReply, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Effect, Param, Recorded};

pub(super) static ACTION: Action = Action {
    name: "term_run",
    aliases: &[],
    summary: "Run a command",
    notes: "One that lasts longer than timeout_s goes on: term_wait with its id.",
    example: r#"{"command":"make test"}"#,
    params: &[COMMAND, SESSION, TIMEOUT, MAX_CHARS],
    effect: Effect::Type,
    on_page: false,
    forwarded: false,
    shows_screen: false,
    begin: begin::<Run>,
};

const COMMAND: Param = Param::text("command", "shell command, newlines and all").required().recorded(Recorded::Typed);
const TIMEOUT: Param = Param::timeout_seconds("timeout_s", "then it goes on").or(45).cap(3_600);
pub(super) const MAX_CHARS: Param = Param::integer("max_chars", "output to show").cap(READ_CHARS);

struct Run {
    actions: Actions,
    command: String,
    session: Option<String>,
    timeout: Duration,
    max_chars: Option<usize>,
}

impl Handler for Run {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        Ok(Self {
            actions: Actions::new(tools, params.caller()),
            command: params.required(&COMMAND)?.to_owned(),
            session: params.text(&SESSION)?.map(str::to_owned),
            timeout: params.seconds(&TIMEOUT)?.unwrap_or_default(),
            max_chars: params.number(&MAX_CHARS)?.map(|chars| chars as usize),
        })
    }

    async fn run(self, _: &Tools) -> Outcome {
        outcome(self.go().await)
    }
}

impl Run {
    async fn go(self) -> Called<TextReply> {
        let chosen = choose(&self.actions, self.session.as_deref(), Missing::Start).await?;
        let talked = self
            .actions
            .call(json!({
                "action": "talk", "session_id": chosen.id.as_str(), "command": self.command,
                "timeout_ms": self.timeout.as_millis() as u64, "max_chars": READ_CHARS, "until_asks": true,
            }))
            .await;
        let mut text = match talked {
            Ok(reply) => {
                let command = super::actions::text(&reply, "command_id").to_owned();
                ended(&self.actions, &chosen, &reply, &command, self.max_chars).await?
            }
            Err(failed) => self.goes_on(&failed).ok_or(failed)?,
        };
        see(&self.actions, &chosen).await?;
        name_new(&chosen, &mut text);
        Ok(shown(text))
    }

    /// A command that did not end in time, or asks for something.
    fn goes_on(&self, failed: &Failed) -> Option<String> {
        let command = failed.detail("command_id").as_str()?;
        let asks = failed.detail("asks").as_str();
        if failed.code() != "PTY_TIMEOUT" && asks.is_none() {
            return None;
        }
        let is_full_screen = failed.detail("alternate_screen") == &Value::Bool(true);
        let program = failed.detail("foreground").as_str().unwrap_or_default();
        let mut header = Header::new(match asks.and_then(|asks| asks.parse().ok()) {
            Some(state) => in_words(state, program),
            None if is_full_screen => in_words(AttentionState::FullScreen, program),
            None => format!("runs on after {}", seconds(self.timeout)),
        });
        header.add(command);
        let shown = if is_full_screen { failed.detail("screen") } else { failed.detail("partial_output") };
        let shown = without_repetition(shown.as_str().unwrap_or_default().trim_end());
        let mut text = header.above(&digest(&Lines::of(&shown, 0), self.max_chars).text);
        if !is_full_screen && asks.is_none() {
            add_line(&mut text, &format!("[term_wait {{\"command\":\"{command}\"}}]"));
        }
        Some(text)
    }
}

/// Says which session was started for the call.
pub(super) fn name_new(chosen: &Chosen, text: &mut String) {
    if chosen.is_new {
        add_line(text, &format!("[new shell {}]", chosen.id));
    }
}
