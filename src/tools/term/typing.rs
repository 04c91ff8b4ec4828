//! `term_type`: types into the program that runs, and tells what came of it.

use std::time::Duration;

use kpty_emulator::{MarkerId, Mode, Request};
use serde_json::{Value, json};

use super::actions::{Actions, Called, Fields, add, outcome, shown};
use super::fresh::{fresh, see, seen};
use super::header::{Header, seconds};
use super::run::name_new;
use super::session::{Chosen, Missing, choose};
use super::{SESSION, condition, selected};
use crate::config::LONGEST_TALK;
use crate::error::{Error, Result};
use crate::terminal::Terminal;
use crate::terminal::attention::AttentionState;
use crate::terminal::search::Pattern;
use crate::terminal::wait::WaitRequest;
use crate::tools::Tools;
use crate::tools::handler::{Handler, Outcome, TextReply, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Effect, Param, Recorded};

pub(super) static ACTION: Action = Action {
    name: "term_type",
    aliases: &[],
    summary: "Type into the program that runs",
    notes: "Commands are for term_run.",
    example: r#"{"line":"yes","until":"Done"}"#,
    params: &[LINE, TEXT, KEYS, PASTE, MOUSE, UNTIL, SESSION, TIMEOUT],
    effect: Effect::Type,
    on_page: false,
    forwarded: false,
    shows_screen: false,
    begin: begin::<Type>,
};

const LINE: Param = Param::text("line", "text, then Enter").recorded(Recorded::Typed);
const TEXT: Param = Param::text("text", "text without Enter").recorded(Recorded::Typed);
const KEYS: Param = Param::text("keys", "Ctrl-C, Down Enter, Escape ':wq' Enter").recorded(Recorded::Keys);
const PASTE: Param = Param::text("paste", "text to paste").recorded(Recorded::Typed);
const MOUSE: Param =
    Param::object("mouse", "{\"text\":\"OK\"} clicks it; or row, col, button").recorded(Recorded::Gesture);
pub(super) const UNTIL: Param = Param::text("until", "wait for this new text, or /regex/");
const TIMEOUT: Param =
    Param::timeout_seconds("timeout_s", "of until").or(10).cap(45).cap_time_with_progress(LONGEST_TALK);

/// How long a program may take to show anything of what was typed.
const ECHO_TIMEOUT: Duration = Duration::from_millis(150);
/// A program that was quiet for so long has drawn what it had to draw.
const QUIET: Duration = Duration::from_millis(40);
/// How long a program that goes on drawing, or a command, is watched before the reply says how far it is.
const SETTLE_TIMEOUT: Duration = Duration::from_millis(1_500);
/// A program that works and prints nothing for so long is not about to end or to ask.
const BUSY_QUIET: Duration = Duration::from_millis(400);

struct Type {
    actions: Actions,
    typed: Typed,
    session: Option<String>,
    until: Option<String>,
    timeout: Duration,
}

/// What is typed.
enum Typed {
    /// Text and Enter.
    Line(String),
    /// The parameters of `send_keys`.
    Keys(Fields),
}

impl Handler for Type {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let line = params.any_text(&LINE)?.map(str::to_owned);
        let mut keys = Fields::new();
        for param in [&TEXT, &KEYS, &PASTE, &MOUSE] {
            keys.extend(params.value(param).map(|value| (param.name.to_owned(), value.clone())));
        }
        let typed = match (line, keys.is_empty()) {
            (Some(line), true) => Typed::Line(line),
            (None, false) => Typed::Keys(keys),
            (Some(_), false) => {
                return Err(Error::invalid(LINE.name, "types Enter too; give it alone, or text and keys"));
            }
            (None, true) => return Err(Error::MissingParam("one of line, text, keys, paste or mouse")),
        };
        Ok(Self {
            actions: Actions::new(tools, params.caller()),
            typed,
            session: params.text(&SESSION)?.map(str::to_owned),
            until: params.text(&UNTIL)?.map(str::to_owned),
            timeout: params.seconds(&TIMEOUT)?.unwrap_or_default(),
        })
    }

    async fn run(self, _: &Tools) -> Outcome {
        outcome(self.go().await)
    }
}

impl Type {
    async fn go(self) -> Called<TextReply> {
        let actions = &self.actions;
        let chosen = choose(actions, self.session.as_deref(), Missing::Start).await?;
        let terminal = chosen.terminal(&actions.tools);
        if seen(actions, &chosen).marker.is_none() {
            // What is new is what comes of the typing.
            see(actions, &chosen).await?;
        }
        let before = marker(&*terminal, None).await?;
        let before = self.send(&chosen, &*terminal, before).await?;
        let mut header = Header::default();
        match &self.until {
            Some(until) => {
                let mut wait = json!({
                    "action": "wait", "session_id": chosen.id.as_str(), "timeout_ms": self.timeout.as_millis() as u64,
                    "marker_id": before.map(MarkerId::get),
                });
                condition::add(until, &mut wait);
                let waited = actions.call(wait).await?;
                if waited.get("timed_out") == Some(&Value::Bool(true)) {
                    header.add(&format!("not seen in {}", seconds(self.timeout)));
                }
            }
            None => settle(&*terminal, before).await?,
        }
        header.add(&super::sessions::state(&chosen));
        if let Some(selected) = selected::selected(&chosen) {
            header.add(&format!("selected: {selected}"));
        }
        let mut text = header.above(&fresh(actions, &chosen, None).await?);
        if text.is_empty() {
            text.push_str("nothing changed");
        }
        name_new(&chosen, &mut text);
        Ok(shown(text))
    }

    /// Types. Returns the marker behind which everything comes of it: where the text that is waited for is in what is
    /// typed, the echo does not count.
    async fn send(
        &self,
        chosen: &Chosen,
        terminal: &dyn Terminal,
        before: Option<MarkerId>,
    ) -> Called<Option<MarkerId>> {
        let id = chosen.id.as_str();
        let send = |keys: Value| {
            let mut arguments = json!({ "action": "send_keys", "session_id": id });
            add(&mut arguments, keys);
            self.actions.call(arguments)
        };
        let line = match &self.typed {
            Typed::Keys(keys) => {
                send(Value::Object(keys.clone())).await?;
                return Ok(before);
            }
            Typed::Line(line) => line,
        };
        let is_several = line.contains(['\n', '\r']);
        if !is_several && !self.finds(line) {
            let line = json!({ "action": "send_line", "session_id": id, "data": line, "escapes": false });
            self.actions.call(line).await?;
            return Ok(before);
        }
        send(if is_several { json!({ "paste": line }) } else { json!({ "text": line }) }).await?;
        if self.until.is_none() {
            send(json!({ "keys": "Enter" })).await?;
            return Ok(before);
        }
        echo(terminal, before).await?;
        let before = marker(terminal, before).await?;
        send(json!({ "keys": "Enter" })).await?;
        Ok(before)
    }

    /// What is waited for is in this line.
    fn finds(&self, line: &str) -> bool {
        self.until.as_deref().is_some_and(|until| match condition::expression(until) {
            Some(expression) => Pattern::regex(expression, false).is_ok_and(|pattern| pattern.is_in(line)),
            None => line.contains(until),
        })
    }
}

/// A marker of now.
async fn marker(terminal: &dyn Terminal, since: Option<MarkerId>) -> Result<Option<MarkerId>> {
    let request = Request { max_lines: Some(0), ..Request::new(Mode::Delta { since }) };
    Ok(terminal.view(&request).await?.answer.delta.map(|delta| delta.marker))
}

/// Waits until something of what was typed is to be seen; of a password nothing is.
async fn echo(terminal: &dyn Terminal, since: Option<MarkerId>) -> Result<()> {
    let appears = Some(Pattern::regex(r"\S", false)?);
    terminal.wait(&WaitRequest { appears, since, timeout: ECHO_TIMEOUT, ..WaitRequest::default() }).await?;
    Ok(())
}

/// Waits until what was typed has had its effect: the program is quiet and waits for input, or is not about to.
async fn settle(terminal: &dyn Terminal, since: Option<MarkerId>) -> Result<()> {
    echo(terminal, since).await?;
    let quiet = |quiet| WaitRequest { quiet: Some(quiet), timeout: SETTLE_TIMEOUT, ..WaitRequest::default() };
    terminal.wait(&quiet(QUIET)).await?;
    if matches!(terminal.attention().state, AttentionState::Running | AttentionState::Starting) {
        terminal.wait(&WaitRequest { prompt: true, asks: true, ..quiet(BUSY_QUIET) }).await?;
    }
    Ok(())
}
