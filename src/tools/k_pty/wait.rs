//! `wait`: waits until something happens in a session, or until the timeout.

use std::time::Duration;

use kpty_emulator::MarkerId;
use kpty_guard::Masked;
use serde::Serialize;

use super::commands::{CommandOutput, IGNORE_CASE, MAX_CHARS};
use super::talk::millis;
use super::term_read::known_marker;
use super::{SESSION_ID, Target};
use crate::config::LONGEST_TALK;
use crate::error::{Error, Result};
use crate::terminal::Attention;
use crate::terminal::search::Pattern;
use crate::terminal::wait::{Ending, WaitRequest};
use crate::tools::Tools;
use crate::tools::envelope::ExitFields;
use crate::tools::handler::{Content, Handler, Outcome, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Effect, Param};
use crate::tools::text::Room;

pub(in crate::tools) static ACTION: Action = Action {
    name: "wait",
    aliases: &[],
    summary: "Wait for the first of: text or regex appears, gone_text or gone_regex disappears, quiet_ms of silence, \
              prompt, asks, command_id ends, exit",
    notes: "ended_by says which. Text that is on the screen already counts, also the echo of what you typed: use a \
            marker_id or a regex that only the answer matches.",
    example: r#"{"action":"wait","session_id":"pty_0123abcd","command_id":"cmd_1"}"#,
    params: &[
        SESSION_ID,
        TEXT,
        REGEX,
        IGNORE_CASE,
        GONE,
        GONE_TEXT,
        GONE_REGEX,
        QUIET,
        PROMPT,
        ASKS,
        COMMAND_ID,
        EXIT,
        MARKER_ID,
        TIMEOUT,
        MAX_CHARS,
    ],
    effect: Effect::Wait,
    on_page: false,
    forwarded: true,
    shows_screen: false,
    begin: begin::<Wait>,
};

/// Clients give up on a call that shows no progress for a minute.
const LONGEST_SILENT_WAIT: Duration = Duration::from_secs(45);

const TEXT: Param = Param::text("text", "text to look for");
const REGEX: Param = Param::text("regex", "expression to appear");
const GONE: Param = Param::flag("gone", false, "until text or regex is gone instead");
const GONE_TEXT: Param = Param::text("gone_text", "until this text is gone from the screen");
const GONE_REGEX: Param = Param::text("gone_regex", "until nothing on the screen matches");
const QUIET: Param = Param::millis("quiet_ms", "until nothing was printed for so long")
    .cap_time(LONGEST_SILENT_WAIT)
    .cap_time_with_progress(LONGEST_TALK);
const PROMPT: Param = Param::flag("prompt", false, "until the shell's prompt is back");
const ASKS: Param = Param::flag("asks", false, "until a program asks for input; attention says for what");
const COMMAND_ID: Param = Param::text("command_id", "until this command ends");
const EXIT: Param = Param::flag("exit", false, "until the session's program ends");
const MARKER_ID: Param = Param::integer("marker_id", super::MARKER_DOC);
const TIMEOUT: Param = Param::timeout("timeout_ms", super::TIMEOUT_DOC)
    .or_time(Duration::from_secs(30))
    .cap_time(LONGEST_SILENT_WAIT)
    .cap_time_with_progress(LONGEST_TALK);

/// Characters of a line in an answer; of a longer one the part that matched is shown.
const LINE_CHARS: usize = 500;
/// Characters of the screen's end in an answer.
const TAIL_CHARS: usize = 1_000;

struct Wait {
    session: Target,
    wait: WaitRequest,
    room: Room,
    /// Screens may be shown.
    shows_screen: bool,
}

#[derive(Serialize)]
struct WaitReply {
    ended_by: &'static str,
    timed_out: bool,
    waited_ms: u64,
    /// Number of the line that appeared.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line_text: Option<Masked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matched_text: Option<Masked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<CommandOutput>,
    /// What the program asks for, where that was waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    attention: Option<Attention>,
    #[serde(flatten)]
    exit: ExitFields,
    #[serde(skip_serializing_if = "Option::is_none")]
    tail: Option<Masked>,
    /// To wait for what comes after this.
    marker_id: Option<u64>,
    /// The given marker has expired: only what was printed during the wait counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    marker_disposed: Option<bool>,
    session_alive: bool,
}

impl Handler for Wait {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let session = tools.target(params)?;
        let ignore_case = params.flag(&IGNORE_CASE)?;
        let named = pattern(params, (&TEXT, &REGEX), ignore_case)?;
        let gone = pattern(params, (&GONE_TEXT, &GONE_REGEX), ignore_case)?;
        let (appears, disappears) = match params.flag(&GONE)? {
            true if gone.is_some() && named.is_some() => {
                return Err(Error::invalid(GONE.name, "give one text that goes: text with gone, or gone_text"));
            }
            true => (None, gone.or(named)),
            false => (named, gone),
        };
        let command = params.command_id(&COMMAND_ID)?;
        if let Some(id) = command
            && session.command(id).is_none()
        {
            return Err(Error::invalid(
                COMMAND_ID.name,
                format!("{id} is no command of this session, or is forgotten"),
            ));
        }
        let timeout = params.time(&TIMEOUT)?;
        let quiet = params.given_time(&QUIET)?;
        let since = params.number(&MARKER_ID)?.map(known_marker).transpose()?;
        let (prompt, asks, exit) = (params.flag(&PROMPT)?, params.flag(&ASKS)?, params.flag(&EXIT)?);
        let wait = WaitRequest { appears, disappears, quiet, prompt, asks, command, exit, since, timeout };
        let has_condition = wait.appears.is_some() || wait.disappears.is_some() || quiet.is_some() || command.is_some();
        if !has_condition && !prompt && !asks && !exit {
            return Err(Error::MissingParam(
                "one of text, regex, gone_text, gone_regex, quiet_ms, prompt, asks, command_id or exit",
            ));
        }
        let shows_screen = tools.may_read_screens().is_ok();
        Ok(Self { session, wait, room: Room::read(params, &MAX_CHARS)?, shows_screen })
    }

    async fn run(self, _: &Tools) -> Outcome {
        let Self { session, wait, room, shows_screen } = self;
        let waited = session.wait(&wait).await?;
        let mut answer = WaitReply {
            ended_by: name(&waited.ending),
            timed_out: waited.ending == Ending::Deadline,
            waited_ms: millis(waited.waited),
            line: None,
            line_text: None,
            matched_text: None,
            command: None,
            attention: wait.asks.then(|| session.attention()),
            exit: session.exit().map(ExitFields::from).unwrap_or_default(),
            tail: shows_screen.then(|| waited.tail.as_masked().ending(TAIL_CHARS)),
            marker_id: waited.marker.map(MarkerId::get),
            marker_disposed: wait.since.map(|_| waited.marker_disposed),
            session_alive: session.exit().is_none(),
        };
        if let Ending::Appeared { line, text } = waited.ending {
            let found = wait.appears.as_ref().and_then(|pattern| pattern.find(&text));
            if shows_screen {
                answer.matched_text = found.map(|(start, end)| text.part(start..end).clip((0, 0), LINE_CHARS));
                answer.line_text = Some(text.as_masked().clip(found.unwrap_or_default(), LINE_CHARS));
            }
            answer.line = Some(line);
        }
        // Also when something else ended the wait: what the command has printed so far is what was waited for.
        let shown = [&answer.tail, &answer.line_text, &answer.matched_text].into_iter().flatten();
        let room = room.without(shown.map(|text| room.cost(text)).sum());
        answer.command = wait.command.and_then(|id| CommandOutput::of(&*session, id, room));
        Content::of(&answer)
    }
}

/// A pattern from one of two parameters: a text, or an expression.
pub(super) fn pattern(
    params: &Params<'_>,
    (text, regex): (&Param, &Param),
    ignore_case: bool,
) -> Result<Option<Pattern>> {
    let (given, built) = match (params.text(text)?, params.text(regex)?) {
        (None, None) => return Ok(None),
        (Some(literal), None) if ignore_case => (text, Pattern::literal_in_any_case(literal)),
        (Some(literal), None) => (text, Pattern::literal(literal)),
        (None, Some(expression)) => (regex, Pattern::regex(expression, ignore_case)),
        (Some(_), Some(_)) => {
            return Err(Error::invalid(regex.name, format!("give {} or {}, not both", text.name, regex.name)));
        }
    };
    built.map(Some).map_err(|error| match error {
        Error::InvalidParam { problem, .. } => Error::invalid(given.name, problem),
        other => other,
    })
}

fn name(ending: &Ending) -> &'static str {
    match ending {
        Ending::Appeared { .. } => "text",
        Ending::Disappeared => "gone",
        Ending::Quiet => "quiet",
        Ending::Prompt => "prompt",
        Ending::Asks(_) => "asks",
        Ending::Command(_) => "command",
        Ending::Exit(_) => "exit",
        Ending::Deadline => "timeout",
    }
}
