//! `wait`: until something happens in a session, or the time is over.

use std::time::Duration;

use kpty_emulator::MarkerId;
use serde::Serialize;

use super::commands::{MAX_CHARS, Ran};
use super::talk::{MAX_CHARS_CAP, millis};
use super::term_read::known_marker;
use crate::config::LONGEST_TALK;
use crate::error::{Error, Result};
use crate::terminal::search::Pattern;
use crate::terminal::wait::{Ending, WaitRequest};
use crate::tools::envelope::ExitFields;
use crate::tools::params::Params;
use crate::tools::text::{Room, clip_around, end_of};
use crate::tools::{Caller, Target, Tools};

pub(in crate::tools) const PARAMS: &[&str] = &[
    "session_id",
    "text",
    "regex",
    "ignore_case",
    "gone",
    "gone_text",
    "gone_regex",
    "quiet_ms",
    "prompt",
    "command_id",
    "exit",
    "marker_id",
    "timeout_ms",
    "max_chars",
];

const TIMEOUT: Duration = Duration::from_secs(30);
/// Clients give up on a call that says nothing for a minute.
pub(in crate::tools) const LONGEST_SILENT_WAIT: Duration = Duration::from_secs(45);
/// Characters of a line in an answer; of a longer one the part that matched is shown.
const LINE_CHARS: usize = 500;
/// Characters of the screen's end in an answer.
const TAIL_CHARS: usize = 1_000;

pub(in crate::tools) struct Request {
    session: Target,
    wait: WaitRequest,
    room: Room,
    /// Screens may be shown.
    shows_screen: bool,
}

#[derive(Serialize)]
pub(in crate::tools) struct Answer {
    ended_by: &'static str,
    timed_out: bool,
    waited_ms: u64,
    /// Number of the line that appeared.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matched_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Ran>,
    #[serde(flatten)]
    exit: ExitFields,
    #[serde(skip_serializing_if = "Option::is_none")]
    tail: Option<String>,
    /// To wait for what comes after this.
    marker_id: Option<u64>,
    /// The marker that was given is not known any more: only what came during the wait counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    marker_disposed: Option<bool>,
    session_alive: bool,
}

impl Request {
    pub(in crate::tools) fn read(params: &mut Params<'_>, tools: &Tools, caller: &Caller) -> Result<Self> {
        let session = tools.target(params)?;
        let ignore_case = params.flag("ignore_case", false)?;
        let named = pattern(params, ("text", "regex"), ignore_case)?;
        let gone = pattern(params, ("gone_text", "gone_regex"), ignore_case)?;
        let (appears, disappears) = match params.flag("gone", false)? {
            true if gone.is_some() && named.is_some() => {
                return Err(Error::invalid("gone", "give one text that goes: text with gone, or gone_text"));
            }
            true => (None, gone.or(named)),
            false => (named, gone),
        };
        let command = params.command_id("command_id")?;
        if let Some(id) = command
            && session.command(id).is_none()
        {
            return Err(Error::invalid("command_id", format!("{id} is no command of this session, or is forgotten")));
        }
        let longest = if caller.can_show_progress { LONGEST_TALK } else { LONGEST_SILENT_WAIT };
        let timeout = params.millis("timeout_ms", TIMEOUT, longest)?;
        let quiet = params.capped("quiet_ms", millis(longest))?.map(Duration::from_millis);
        let since = params.number("marker_id")?.map(known_marker).transpose()?;
        let (prompt, exit) = (params.flag("prompt", false)?, params.flag("exit", false)?);
        let wait = WaitRequest { appears, disappears, quiet, prompt, command, exit, since, timeout };
        let has_condition = wait.appears.is_some() || wait.disappears.is_some() || quiet.is_some() || command.is_some();
        if !has_condition && !prompt && !exit {
            return Err(Error::MissingParam(
                "one of text, regex, gone_text, gone_regex, quiet_ms, prompt, command_id or exit",
            ));
        }
        let shows_screen = tools.may_read_screens().is_ok();
        Ok(Self { session, wait, room: Room::read(params, MAX_CHARS, MAX_CHARS_CAP)?, shows_screen })
    }

    pub(in crate::tools) async fn run(self) -> Result<Answer> {
        let Self { session, wait, room, shows_screen } = self;
        let waited = session.wait(&wait).await?;
        let mut answer = Answer {
            ended_by: name(&waited.ending),
            timed_out: waited.ending == Ending::Deadline,
            waited_ms: millis(waited.waited),
            line: None,
            line_text: None,
            matched_text: None,
            command: None,
            exit: session.exit().map(ExitFields::from).unwrap_or_default(),
            tail: shows_screen.then(|| end_of(waited.tail, TAIL_CHARS)),
            marker_id: waited.marker.map(MarkerId::get),
            marker_disposed: wait.since.map(|_| waited.marker_disposed),
            session_alive: session.exit().is_none(),
        };
        if let Ending::Appeared { line, text } = waited.ending {
            let found = wait.appears.as_ref().and_then(|pattern| pattern.find(&text));
            if shows_screen {
                answer.matched_text = found.map(|(start, end)| clip_around(&text[start..end], (0, 0), LINE_CHARS));
                answer.line_text = Some(clip_around(&text, found.unwrap_or_default(), LINE_CHARS));
            }
            answer.line = Some(line);
        }
        // Also when something else ended the wait: what the command has printed so far is what was waited for.
        let shown = [&answer.tail, &answer.line_text, &answer.matched_text].into_iter().flatten();
        let room = room.without(shown.map(|text| room.cost(text)).sum());
        answer.command = wait.command.and_then(|id| Ran::of(&*session, id, room));
        Ok(answer)
    }
}

/// A pattern from one of two parameters: a text, or an expression.
pub(in crate::tools) fn pattern(
    params: &Params<'_>,
    names: (&str, &str),
    ignore_case: bool,
) -> Result<Option<Pattern>> {
    let built = match (params.text(names.0)?, params.text(names.1)?) {
        (None, None) => return Ok(None),
        (Some(text), None) if ignore_case => Pattern::literal_in_any_case(text),
        (Some(text), None) => Pattern::literal(text),
        (None, Some(expression)) => Pattern::regex(expression, ignore_case),
        (Some(_), Some(_)) => {
            return Err(Error::invalid(names.1, format!("give {} or {}, not both", names.0, names.1)));
        }
    };
    let given = if params.text(names.0)?.is_some() { names.0 } else { names.1 };
    built.map(Some).map_err(|error| match error {
        Error::InvalidParam { problem, .. } => Error::invalid(given, problem),
        other => other,
    })
}

fn name(ending: &Ending) -> &'static str {
    match ending {
        Ending::Appeared { .. } => "text",
        Ending::Disappeared => "gone",
        Ending::Quiet => "quiet",
        Ending::Prompt => "prompt",
        Ending::Command(_) => "command",
        Ending::Exit(_) => "exit",
        Ending::Deadline => "timeout",
    }
}
