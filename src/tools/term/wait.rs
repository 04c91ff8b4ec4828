//! `term_wait`: waits for something to happen, and tells what is new.

use std::time::Duration;

use serde_json::{Value, json};

use super::actions::{Actions, Called, Failed, add, outcome, shown, text as field};
use super::digest::{Lines, digest};
use super::fresh::{fresh, see, seen};
use super::header::{Header, seconds};
use super::outcome::{READ_CHARS, ended};
use super::session::{Chosen, Missing, choose};
use super::typing::UNTIL;
use super::{SESSION, condition, sessions};
use crate::config::LONGEST_TALK;
use crate::error::{Error, Result};
use crate::tools::Tools;
use crate::tools::handler::{Handler, Outcome, TextReply, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Effect, Param};

pub(super) static ACTION: Action = Action {
    name: "term_wait",
    aliases: &[],
    summary: "Wait for something to happen",
    notes: "Text counts from your last call on.",
    example: r#"{"command":"cmd_7"}"#,
    params: &[UNTIL, QUIET, PROMPT, ASKS, EXIT, COMMAND, SESSION, TIMEOUT],
    effect: Effect::Wait,
    on_page: false,
    forwarded: false,
    shows_screen: false,
    begin: begin::<Wait>,
};

const QUIET: Param = Param::seconds("quiet_s", "no output for so long").cap(3_600);
const PROMPT: Param = Param::flag("prompt", false, "shell prompt");
const ASKS: Param = Param::flag("asks", false, "a program asks for input");
const EXIT: Param = Param::flag("exit", false, "end of the session");
const COMMAND: Param = Param::text("command", "end of this command");
const TIMEOUT: Param = Param::timeout_seconds("timeout_s", "").or(45).cap(45).cap_time_with_progress(LONGEST_TALK);

struct Wait {
    actions: Actions,
    session: Option<String>,
    conditions: Value,
    command: Option<String>,
    timeout: Duration,
}

impl Handler for Wait {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let mut conditions = json!({});
        if let Some(until) = params.text(&UNTIL)? {
            condition::add(until, &mut conditions);
        }
        if let Some(quiet) = params.seconds(&QUIET)? {
            conditions["quiet_ms"] = json!(quiet.as_millis() as u64);
        }
        for param in [&PROMPT, &ASKS, &EXIT] {
            if params.flag(param)? {
                conditions[param.name] = json!(true);
            }
        }
        let command = params.command_id(&COMMAND)?.map(|id| id.to_string());
        Ok(Self {
            actions: Actions::new(tools, params.caller()),
            session: params.text(&SESSION)?.map(str::to_owned),
            conditions,
            command,
            timeout: params.seconds(&TIMEOUT)?.unwrap_or_default(),
        })
    }

    async fn run(self, _: &Tools) -> Outcome {
        outcome(self.go().await)
    }
}

impl Wait {
    async fn go(mut self) -> Called<TextReply> {
        let chosen = choose(&self.actions, self.session.as_deref(), Missing::Refuse).await?;
        if self.command.is_none() && self.conditions.as_object().is_none_or(|given| given.is_empty()) {
            self.command = Some(self.running(&chosen)?);
            self.conditions["asks"] = json!(true);
        }
        let marker = seen(&self.actions, &chosen).marker;
        let mut arguments = json!({
            "action": "wait", "session_id": chosen.id.as_str(), "command_id": self.command,
            "timeout_ms": self.timeout.as_millis() as u64, "max_chars": READ_CHARS,
            "marker_id": marker.map(kpty_emulator::MarkerId::get),
        });
        add(&mut arguments, self.conditions.clone());
        let waited = self.actions.call(arguments).await?;
        let ending = field(&waited, "ended_by");
        let command = waited.get("command").and_then(Value::as_object);
        if let (Some(id), Some(reply), "command") = (&self.command, command, ending) {
            let text = ended(&self.actions, &chosen, reply, id, None).await?;
            see(&self.actions, &chosen).await?;
            return Ok(shown(text));
        }
        let mut header = Header::default();
        match ending {
            "timeout" => header.add(&format!("not yet after {}", seconds(self.timeout))),
            // The state says it.
            "exit" | "asks" => {}
            other => header.add(other),
        }
        header.add(&sessions::state(&chosen));
        let fresh = fresh(&self.actions, &chosen, None).await?;
        let text = header.above(&digest(&Lines::of(&fresh, 0), None).text);
        Ok(shown(text))
    }

    /// The command that runs: what is waited for where nothing is said.
    fn running(&self, chosen: &Chosen) -> Called<String> {
        let commands = chosen.terminal(&self.actions.tools).commands();
        let running = commands.last().filter(|command| command.end.is_none());
        running.map(|command| command.id.to_string()).ok_or_else(|| {
            Failed::from(Error::MissingParam("no command runs: one of until, quiet_s, prompt, exit or command"))
        })
    }
}
