//! `talk`, also called `run`: runs a command and returns its output, its status and how its end is known.

use std::time::Duration;

use serde::Serialize;

use crate::config::LONGEST_TALK;
use crate::error::{Error, Result};
use crate::terminal::local::input;
use crate::terminal::sentinel::check_token;
use crate::terminal::talk::{OnTimeout, TalkRequest};
use crate::tools::params::Params;
use crate::tools::{Target, Tools};

pub(in crate::tools) const PARAMS: &[&str] =
    &["session_id", "command", "sentinel", "timeout_ms", "max_chars", "escapes", "raw", "on_timeout"];

/// Characters of output in an answer.
pub(in crate::tools) const MAX_CHARS: usize = 60_000;
/// The most that can be asked for.
pub(in crate::tools) const MAX_CHARS_CAP: usize = 200_000;

const ON_TIMEOUT: [(&str, OnTimeout); 2] = [("leave", OnTimeout::Leave), ("interrupt", OnTimeout::Interrupt)];

pub(in crate::tools) struct Request {
    session: Target,
    talk: TalkRequest,
    /// Screens may be shown.
    shows_screen: bool,
}

#[derive(Serialize)]
pub(in crate::tools) struct Answer {
    output: String,
    exit_code: Option<i32>,
    duration_ms: u64,
    cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logical_cwd: Option<String>,
    command_id: String,
    completed_by: &'static str,
    sentinel: String,
    raw_output: String,
    truncated: bool,
    omitted_chars: usize,
    omitted_lines: usize,
    evicted_lines: u64,
    /// Numbers of its lines in the session's text: the first, and the one after the last.
    lines: [u64; 2],
}

impl Request {
    pub(in crate::tools) fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let given = params.text("command")?.filter(|command| !command.trim().is_empty());
        let session = tools.target(params)?;
        let given = given.ok_or(Error::MissingParam("command"))?;
        let command = if params.flag("escapes", false)? { input::unescape(given) } else { given.to_owned() };
        tools.typist.check(&command)?;
        let sentinel = params.text("sentinel")?.map(str::to_owned);
        sentinel.as_deref().map_or(Ok(()), check_token).map_err(|problem| Error::invalid("sentinel", problem))?;
        let talk = TalkRequest {
            command,
            sentinel,
            timeout: params.millis("timeout_ms", tools.config.talk_timeout, LONGEST_TALK)?,
            max_chars: params.count("max_chars", MAX_CHARS, MAX_CHARS_CAP)?,
            on_timeout: params.choice("on_timeout", &ON_TIMEOUT)?.unwrap_or_default(),
            all_raw: params.flag("raw", false)?,
        };
        Ok(Self { session, talk, shows_screen: tools.may_read_screens().is_ok() })
    }

    pub(in crate::tools) async fn run(self, tools: &Tools) -> Result<Answer> {
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
        Ok(Answer {
            output: output.text,
            exit_code: answer.exit_code,
            duration_ms: millis(answer.duration),
            cwd: answer.cwd.map(|cwd| cwd.display().to_string()),
            logical_cwd: answer.logical_cwd.map(|cwd| cwd.display().to_string()),
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
pub(in crate::tools) fn millis(duration: Duration) -> u64 {
    duration.as_millis() as u64
}
