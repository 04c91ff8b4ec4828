//! `talk`, also called `run`: runs a command and returns its output, its status and how its end is known.

use std::time::Duration;

use kpty_guard::Masked;
use serde::Serialize;

use super::{SESSION_ID, Target};
use crate::config::LONGEST_TALK;
use crate::error::{Error, Result};
use crate::terminal::local::input;
use crate::terminal::sentinel::check_token;
use crate::terminal::talk::{OnTimeout, TalkRequest};
use crate::tools::Tools;
use crate::tools::handler::{Content, Handler, Outcome, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Choice, Effect, Param, Recorded};

pub(in crate::tools) static ACTION: Action = Action {
    name: "talk",
    aliases: &["run"],
    summary: "Run a command and get its output and exit_code",
    notes: "On PTY_TIMEOUT the command goes on: wait with its command_id. PTY_BUSY means that nothing was typed.",
    example: r#"{"action":"talk","session_id":"pty_0123abcd","command":"make test"}"#,
    params: &[SESSION_ID, COMMAND, SENTINEL, TIMEOUT, MAX_CHARS, ESCAPES, RAW, ON_TIMEOUT.param, UNTIL_ASKS],
    effect: Effect::Type,
    on_page: false,
    forwarded: true,
    shows_screen: false,
    begin: begin::<Talk>,
};

const ON_TIMEOUTS: [(&str, OnTimeout); 2] = [("leave", OnTimeout::Leave), ("interrupt", OnTimeout::Interrupt)];

const COMMAND: Param = Param::text("command", "the command, newlines and all").required().recorded(Recorded::Typed);
const SENTINEL: Param = Param::text("sentinel", "the text that marks the end where nothing better is known");
const TIMEOUT: Param = Param::timeout("timeout_ms", super::TIMEOUT_DOC)
    .or_setting(|config| millis(config.talk_timeout))
    .cap_time(LONGEST_TALK);
const MAX_CHARS: Param = Param::integer("max_chars", super::MAX_CHARS_DOC).or(60_000).cap(MAX_CHARS_CAP);
pub(super) const ESCAPES: Param = Param::flag("escapes", false, "convert \\n \\r \\t \\xHH");
const RAW: Param = Param::flag("raw", false, "all raw output that is kept, not only its end");
const ON_TIMEOUT: Choice<OnTimeout> =
    Param::text("on_timeout", "leave, or interrupt to send Ctrl-C").one_of(&ON_TIMEOUTS).or("leave");
const UNTIL_ASKS: Param = Param::flag("until_asks", false, "also return when it asks");
/// Characters of the output of a command that can be asked for.
pub(super) const MAX_CHARS_CAP: u64 = 200_000;

struct Talk {
    session: Target,
    talk: TalkRequest,
    /// Screens may be shown.
    shows_screen: bool,
}

#[derive(Serialize)]
struct TalkReply {
    output: Masked,
    exit_code: Option<i32>,
    duration_ms: u64,
    cwd: Option<Masked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logical_cwd: Option<Masked>,
    command_id: String,
    completed_by: &'static str,
    sentinel: Masked,
    raw_output: Masked,
    truncated: bool,
    omitted_chars: usize,
    omitted_lines: usize,
    evicted_lines: u64,
    /// Numbers of its lines in the history: the first, and the one after the last.
    lines: [u64; 2],
}

impl Handler for Talk {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let given = params.text(&COMMAND)?.filter(|command| !command.trim().is_empty());
        let session = tools.target(params)?;
        let given = given.ok_or(Error::MissingParam(COMMAND.name))?;
        let command = if params.flag(&ESCAPES)? { input::unescape(given) } else { given.to_owned() };
        tools.typist.check(&command)?;
        let sentinel = params.text(&SENTINEL)?.map(str::to_owned);
        sentinel.as_deref().map_or(Ok(()), check_token).map_err(|problem| Error::invalid(SENTINEL.name, problem))?;
        let talk = TalkRequest {
            command,
            sentinel,
            timeout: params.time(&TIMEOUT)?,
            max_chars: params.count(&MAX_CHARS)?,
            on_timeout: params.chosen(&ON_TIMEOUT)?,
            all_raw: params.flag(&RAW)?,
            until_asks: params.flag(&UNTIL_ASKS)?,
        };
        Ok(Self { session, talk, shows_screen: tools.may_read_screens().is_ok() })
    }

    async fn run(self, tools: &Tools) -> Outcome {
        if !self.session.takes_line_back() {
            tools.typist.turn(&*self.session).await.check_line(&self.talk.command)?;
        }
        let answer = self.session.talk(self.talk).await.map_err(|error| match error {
            Error::Timeout(mut timed_out) if !self.shows_screen => {
                timed_out.screen.clear();
                Error::Timeout(timed_out)
            }
            error => error,
        })?;
        let output = answer.output;
        Content::of(&TalkReply {
            output: output.text,
            exit_code: answer.exit_code,
            duration_ms: millis(answer.duration),
            cwd: answer.cwd,
            logical_cwd: answer.logical_cwd,
            command_id: answer.command.to_string(),
            completed_by: answer.completed_by.as_str(),
            sentinel: answer.sentinel,
            raw_output: answer.raw_output,
            truncated: output.truncated,
            omitted_chars: output.omitted_chars,
            omitted_lines: output.omitted_lines,
            evicted_lines: output.evicted_lines,
            lines: [output.lines.0, output.lines.1],
        })
    }
}

/// Whole milliseconds, as answers have them.
pub(in crate::tools) const fn millis(duration: Duration) -> u64 {
    duration.as_millis() as u64
}
