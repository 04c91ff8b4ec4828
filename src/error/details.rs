//! What an error knows beside its message.

use std::fmt;
use std::time::Duration;

use super::ErrorCode;
use crate::ids::{CommandId, SessionId};
use crate::model::{ExitInfo, SessionQuery, SessionRecord};
use kpty_guard::Masked;

/// The program of a session ended, with what it had said until then.
#[derive(Clone, Debug)]
pub struct Exited {
    /// Which session.
    pub session: SessionId,
    /// How.
    pub exit: ExitInfo,
    /// The command that was running.
    pub command: Option<CommandId>,
    /// Its output.
    pub partial_output: Option<Masked>,
}

/// How a bridge failed one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DesktopTrouble {
    /// It did not answer in time.
    Timeout,
    /// It answered that it cannot.
    Refused,
    /// Its answer is longer than the limit.
    TooLong,
    /// It could not be reached: no request was sent.
    Unreachable,
    /// It closed the connection before the end of its answer.
    HungUp,
    /// Its answer is not JSON, or not what was asked for.
    NotJson,
}

/// A call to a bridge that failed.
#[derive(Clone, Debug)]
pub struct DesktopFault {
    /// The path of the request.
    pub asked: &'static str,
    /// The desktop's URL.
    pub url: String,
    /// How it failed.
    pub trouble: DesktopTrouble,
    /// What the bridge or the system said.
    pub problem: String,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// The command that was typed before and is still running.
    pub command: Option<CommandId>,
}

impl DesktopTrouble {
    /// The code that callers compare.
    pub(super) fn code(self) -> ErrorCode {
        match self {
            Self::Timeout => ErrorCode::PtyDesktopTimeout,
            Self::Refused | Self::TooLong => ErrorCode::PtyDesktopError,
            Self::Unreachable | Self::HungUp => ErrorCode::PtyDesktopRequestError,
            Self::NotJson => ErrorCode::PtyDesktopJsonError,
        }
    }
}

impl fmt::Display for DesktopFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, url, problem, .. } = self;
        match self.trouble {
            DesktopTrouble::Timeout => write!(f, "The desktop at {url} did not answer {asked} in time"),
            DesktopTrouble::Refused => write!(f, "The desktop at {url} refused {asked}: {problem}"),
            DesktopTrouble::TooLong => write!(f, "The answer of the desktop at {url} to {asked} {problem}"),
            DesktopTrouble::Unreachable => {
                write!(f, "The desktop at {url} could not be reached for {asked}: {problem}")
            }
            DesktopTrouble::HungUp => write!(f, "The desktop at {url} closed the connection during {asked}: {problem}"),
            DesktopTrouble::NotJson => {
                write!(f, "The desktop at {url} answered {asked} with something else than the expected JSON: {problem}")
            }
        }?;
        match self.command {
            Some(id) => write!(f, ". The command was typed: wait for its end with command_id {id}"),
            None => Ok(()),
        }
    }
}

/// A text that the guard refused, and why.
#[derive(Clone, Debug)]
pub struct Blocked {
    /// The rule's name.
    pub rule: String,
    /// The kind of damage.
    pub category: String,
    /// What the command would do.
    pub reason: String,
    /// What to do instead.
    pub instead: String,
    /// The words that matched the rule, after expansion.
    pub words: String,
    /// The beginning of the text.
    pub preview: String,
    /// What was held back.
    pub held: Held,
}

/// What the guard held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Held {
    /// All that was to be typed.
    #[default]
    Text,
    /// Only Enter: the line was typed, and stands there.
    Enter,
    /// The start of a program.
    Start,
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Command blocked by safety filter: it {} (rule {}).", self.reason, self.rule)?;
        if !self.instead.is_empty() {
            write!(f, " Instead: {}.", self.instead)?;
        }
        f.write_str(" The filter is a guard rail against mistakes, no protection against intent; ")?;
        f.write_str(match self.held {
            Held::Text => "not a byte was typed",
            Held::Enter => "Enter was not sent, and the line still stands there: Ctrl-C takes it back",
            Held::Start => "nothing was started",
        })
    }
}

/// Several sessions where one was meant.
#[derive(Clone, Debug)]
pub struct Ambiguous {
    /// The criteria.
    pub query: SessionQuery,
    /// Some of the sessions that match.
    pub matches: Vec<SessionRecord>,
    /// How many match.
    pub count: usize,
}

/// The terminal cannot accept input.
#[derive(Clone, Debug)]
pub struct Busy {
    /// Which session.
    pub session: SessionId,
    /// The reason, as a sentence without its full stop.
    pub reason: Masked,
    /// The program in the foreground.
    pub foreground: Option<Masked>,
    /// The command that is running.
    pub command: Option<(CommandId, Masked)>,
    /// For how long.
    pub age: Option<Duration>,
}

/// A command that the shell found unfinished. It was cancelled.
#[derive(Clone, Debug)]
pub struct Incomplete {
    /// Which session.
    pub session: SessionId,
    /// The command's number.
    pub command: CommandId,
    /// What its finished parts printed, if any ran.
    pub partial_output: Masked,
}

/// A command that has not ended yet.
#[derive(Clone, Debug)]
pub struct TimedOut {
    /// Which session.
    pub session: SessionId,
    /// Its number, to wait for it later.
    pub command: CommandId,
    /// What was typed.
    pub line: Masked,
    /// How long it was waited for.
    pub waited: Duration,
    /// Its output so far.
    pub partial_output: Masked,
    /// The screen at the timeout.
    pub screen: Masked,
    /// The program in the foreground.
    pub foreground: Option<Masked>,
    /// A full-screen program uses the alternate screen.
    pub alternate_screen: bool,
    /// It was interrupted, as the caller asked for.
    pub interrupted: bool,
    /// It asks for something: the time is not over.
    pub asks: Option<&'static str>,
}

impl Busy {
    /// The whole message.
    pub fn message(&self) -> Masked {
        Masked::concat(&[&self.reason, &". Not a byte was typed"])
    }
}

impl fmt::Display for Exited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.exit {
            ExitInfo::Code(code) => write!(f, "The session's program exited with code {code}"),
            ExitInfo::Signal(signal) => write!(f, "The session's program was ended by signal {signal}"),
            ExitInfo::Unknown => f.write_str("The session's program has ended"),
        }
    }
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(asks) = self.asks {
            let id = self.command;
            return write!(
                f,
                "The program asks ({asks}): answer with send_line or send_keys, then wait with command_id {id}"
            );
        }
        let ms = self.waited.as_millis();
        let after = if self.interrupted { "It was interrupted with Ctrl-C" } else { "It is still running" };
        write!(
            f,
            "Command timed out after {ms}ms. {after}: wait for its end with command_id {}, answer its question with \
             send_line or send_keys, or interrupt it with send_keys Ctrl-C",
            self.command
        )
    }
}
