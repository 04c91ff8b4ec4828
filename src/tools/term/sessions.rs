//! `term_sessions`: lists, opens and closes sessions.

use serde_json::{Map, Value, json};

use super::actions::{Actions, Called, Fields, outcome, shown, text as field};
use super::callers::CallerName;
use super::header::{Header, add_line};
use super::session::{Chosen, find, start};
use crate::error::Result;
use crate::ids::SessionId;
use crate::model::ExitInfo;
use crate::registry::Located;
use crate::terminal::attention::{AttentionState, Evidence};
use crate::tools::Tools;
use crate::tools::handler::{Handler, Outcome, TextReply, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Effect, Param, Recorded};

/// The parameter that names the action.
pub(super) const OP: &str = "op";

const BASE: Action = Action {
    name: "list",
    aliases: &[],
    summary: "All sessions: id, label, program, directory, state",
    notes: "",
    example: r#"{"op":"list"}"#,
    params: &[],
    effect: Effect::Read,
    on_page: false,
    forwarded: false,
    shows_screen: false,
    begin: begin::<List>,
};

pub(super) static LIST: Action = BASE;

pub(super) static OPEN: Action = Action {
    name: "open",
    summary: "Start a session",
    example: r#"{"op":"open","label":"build","cwd":"/srv/app"}"#,
    params: &[LABEL, CWD, SHELL, COLS, ROWS, SECRETS],
    effect: Effect::Change,
    begin: begin::<Open>,
    ..BASE
};

pub(super) static CLOSE: Action = Action {
    name: "close",
    summary: "End a session and its programs",
    example: r#"{"op":"close","session":"build"}"#,
    params: &[SESSION],
    effect: Effect::Change,
    begin: begin::<Close>,
    ..BASE
};

const LABEL: Param = Param::text("label", "a name; without one it becomes your own shell");
const CWD: Param = Param::text("cwd", "where");
const SHELL: Param = Param::text("shell", "program");
const COLS: Param = Param::integer("cols", "width");
const ROWS: Param = Param::integer("rows", "height");
const SECRETS: Param = Param::text("secrets", "agent: you may answer password prompts");
const SESSION: Param = Param::text("session", "id or label").required().recorded(Recorded::Omitted);

struct List(Actions);

impl Handler for List {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        Ok(Self(Actions::new(tools, params.caller())))
    }

    async fn run(self, _: &Tools) -> Outcome {
        let listed = self.0.call(json!({ "action": "list" })).await;
        outcome(listed.map(|reply| {
            let sessions = reply.get("sessions").and_then(Value::as_array).into_iter().flatten();
            shown(list(&sessions.filter_map(Value::as_object).collect::<Vec<_>>()))
        }))
    }
}

/// The sessions that live, a line for each. Where they share a directory it is told once.
fn list(sessions: &[&Map<String, Value>]) -> String {
    let is_alive = |session: &&&Map<String, Value>| session.get("is_alive") != Some(&Value::Bool(false));
    let living: Vec<_> = sessions.iter().filter(is_alive).collect();
    let cwd = living.first().map_or("", |session| field(session, "cwd"));
    let is_shared = living.len() > 1 && living.iter().all(|session| field(session, "cwd") == cwd);
    let mut text = if is_shared { format!("in {cwd}") } else { String::new() };
    for session in &living {
        add_line(&mut text, &line(session, !is_shared));
    }
    if living.is_empty() {
        text.push_str("no sessions");
    }
    if let ended @ 1.. = sessions.len() - living.len() {
        add_line(&mut text, &format!("[{ended} ended]"));
    }
    text
}

/// A session in a line.
fn line(session: &Map<String, Value>, shows_cwd: bool) -> String {
    let known = |name: &str| Some(field(session, name)).filter(|text| !text.is_empty());
    // A label names a session as well as its id does.
    let mut header = Header::new(known("label").unwrap_or(field(session, "session_id")));
    header.add_some(known("owner_agent_id"));
    header.add_some(known("cwd").filter(|_| shows_cwd));
    header.add_some(known("running_command").or(known("foreground")).or(known("shell")));
    let attention = session.get("attention").and_then(Value::as_object);
    header.add_some(attention.map(|attention| field(attention, "state")).filter(|state| *state != "prompt"));
    header.above("")
}

/// What a session is doing, where it is not just at its prompt.
pub(super) fn state(chosen: &Chosen) -> String {
    let Located::Local(session) = &chosen.located else { return String::new() };
    match session.exit() {
        None => {}
        Some(ExitInfo::Code(code)) => return format!("session ended: exit {code}"),
        Some(ExitInfo::Signal(signal)) => return format!("session ended: signal {signal}"),
        Some(ExitInfo::Unknown) => return "session ended".to_owned(),
    }
    let attention = session.attention();
    let foreground = attention.evidence.iter().find_map(|evidence| match evidence {
        Evidence::Foreground(name) => Some(name.as_str()),
        _ => None,
    });
    in_words(attention.state, &session.redactor().redact(foreground.unwrap_or("a program")))
}

/// What a program does, in a few words; nothing for a shell at its prompt.
pub(super) fn in_words(state: AttentionState, program: &str) -> String {
    match state {
        AttentionState::Prompt => String::new(),
        AttentionState::Starting => "the shell starts".to_owned(),
        AttentionState::Running => format!("{program} runs"),
        AttentionState::Quiet => format!("{program} runs, quiet"),
        AttentionState::InputLine => format!("{program} asks"),
        AttentionState::InputSecret => format!("{program} asks for a secret"),
        AttentionState::Pager => format!("{program} shows pages"),
        AttentionState::FullScreen => format!("{program} has the screen"),
        AttentionState::Stopped => format!("{program} is stopped"),
        AttentionState::Dead => "session ended".to_owned(),
    }
}

struct Open {
    actions: Actions,
    arguments: Fields,
}

impl Handler for Open {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let given = [LABEL, CWD, SHELL, COLS, ROWS, SECRETS].into_iter();
        let arguments =
            given.filter_map(|param| Some((param.name.to_owned(), params.value(&param)?.clone()))).collect();
        Ok(Self { actions: Actions::new(tools, params.caller()), arguments })
    }

    async fn run(self, tools: &Tools) -> Outcome {
        let Self { actions, arguments } = self;
        let is_own = !arguments.contains_key(LABEL.name);
        let started = start(&actions, arguments).await;
        if let (true, Ok(id)) = (is_own, &started) {
            tools.callers.set_shell(&CallerName::of(&actions.caller, tools), id.clone());
        }
        outcome(started.map(|id| shown(id.to_string())))
    }
}

struct Close {
    actions: Actions,
    session: SessionId,
}

impl Handler for Close {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let session = find(tools, params.required(&SESSION)?)?;
        Ok(Self { actions: Actions::new(tools, params.caller()), session })
    }

    async fn run(self, _: &Tools) -> Outcome {
        outcome(self.go().await)
    }
}

impl Close {
    async fn go(self) -> Called<TextReply> {
        self.actions.call(json!({ "action": "kill", "session_id": self.session.as_str() })).await?;
        Ok(shown(format!("closed {}", self.session)))
    }
}
