//! What can go wrong, in the words of the person who asked, and the stable code of each.
//!
//! How an error looks on a wire is the business of who speaks that wire.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kpty_emulator::SizeError;

use crate::ids::{CommandId, SessionId};
use crate::model::{ExitInfo, SessionQuery, SessionRecord};

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong; the message says what happened and what to try.
#[derive(Debug)]
pub enum Error {
    /// A file or folder could not be read or written.
    File {
        /// What was attempted: "read", "write", "list".
        doing: &'static str,
        /// Which one.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A recording is not what its name promises.
    Recording {
        /// Which one.
        path: PathBuf,
        /// The line, from 1, where one can be named.
        line: Option<usize>,
        /// What is wrong there.
        problem: String,
    },
    /// A terminal size outside the bounds.
    Size(SizeError),
    /// The answer could not be written.
    Output(io::Error),
    /// Options that do not go together.
    Usage(String),
    /// Nobody knows this session.
    SessionNotFound(SessionId),
    /// A parameter that is needed was not given.
    MissingParam(&'static str),
    /// A parameter has a value that cannot be meant.
    InvalidParam {
        /// Which one.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A call names no action.
    MissingAction {
        /// The actions that there are.
        available: Vec<&'static str>,
    },
    /// No such action.
    UnknownAction {
        /// What was asked for.
        name: String,
        /// The actions that there are.
        available: Vec<&'static str>,
    },
    /// An action that is no longer offered.
    Deprecated {
        /// What to use instead.
        alternatives: &'static [&'static str],
    },
    /// The program could not be started.
    Spawn {
        /// The program.
        shell: String,
        /// Where.
        cwd: PathBuf,
        /// Why not.
        problem: String,
    },
    /// There are as many sessions as there may be.
    LimitReached {
        /// How many that is.
        limit: usize,
    },
    /// The sessions hold as much memory as they may.
    MemoryLimit {
        /// How many bytes that is.
        limit: usize,
    },
    /// The session's program has ended.
    Exited(Box<Exited>),
    /// The program of the session did not take its input.
    Write {
        /// Which session.
        session: SessionId,
        /// Why not.
        problem: String,
    },
    /// The window could not be resized.
    Resize {
        /// Which session.
        session: SessionId,
        /// Why not.
        problem: String,
    },
    /// Some process of the session would not die.
    Kill {
        /// Which session.
        session: SessionId,
        /// Who is left.
        survivors: Vec<u32>,
    },
    /// Nothing may be typed now.
    Busy(Box<Busy>),
    /// The shell waits for the rest of the command.
    Incomplete(Box<Incomplete>),
    /// The deadline passed.
    Timeout(Box<TimedOut>),
    /// The guard refused the text.
    Blocked(Box<Blocked>),
    /// Reading screens is switched off.
    TermReadDisabled,
    /// Local sessions cannot be had here.
    NotAvailable(String),
    /// A leader's session is not killed by accident.
    LeaderProtected(SessionId),
    /// No session has what is looked for.
    NoMatch(Box<SessionQuery>),
    /// Several sessions have it: none of them is chosen.
    Ambiguous(Box<Ambiguous>),
    /// The session belongs to somebody else.
    AlreadyOwned {
        /// Which session.
        session: SessionId,
        /// Who has it.
        owner: String,
    },
    /// What is asked for needs a terminal of this server, and this one is a desktop app's.
    DesktopOnly(SessionId),
    /// The bridge of a desktop did not do what it was asked for.
    Desktop(Box<DesktopFault>),
    /// The window of a desktop session is the desktop's.
    DesktopResizeDisabled(SessionId),
    /// The end of a desktop session is the desktop's business.
    DesktopKillDisabled(SessionId),
    /// The server could not be reached, or did not speak as expected.
    Server(String),
    /// What a server answered; its own code and message.
    Remote {
        /// The code on the wire.
        code: String,
        /// What it says.
        message: String,
    },
}

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
    pub partial_output: Option<String>,
}

/// How a bridge failed one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DesktopTrouble {
    /// It did not answer in time.
    Timeout,
    /// It answered that it cannot.
    Refused,
    /// It answered with more than is taken.
    TooLong,
    /// It could not be reached: nothing was asked.
    Unreachable,
    /// It went away before the end of its answer.
    HungUp,
    /// Its answer is not JSON, or not what was asked for.
    NotJson,
}

/// A call to a bridge that came to nothing.
#[derive(Clone, Debug)]
pub struct DesktopFault {
    /// What was asked: the path.
    pub asked: &'static str,
    /// Where: the desktop's URL.
    pub url: String,
    /// In which way it failed.
    pub trouble: DesktopTrouble,
    /// What the bridge or the system said.
    pub problem: String,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// The command that was typed before and goes on.
    pub command: Option<CommandId>,
}

impl fmt::Display for DesktopFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, url, problem, .. } = self;
        match self.trouble {
            DesktopTrouble::Timeout => write!(f, "The desktop at {url} did not answer {asked} in time"),
            DesktopTrouble::Refused => write!(f, "The desktop at {url} refused {asked}: {problem}"),
            DesktopTrouble::TooLong => write!(f, "The answer of the desktop at {url} to {asked} {problem}"),
            DesktopTrouble::Unreachable => write!(f, "The desktop at {url} could not be asked for {asked}: {problem}"),
            DesktopTrouble::HungUp => write!(f, "The desktop at {url} hung up on {asked}: {problem}"),
            DesktopTrouble::NotJson => write!(f, "The desktop at {url} answered {asked} with nonsense: {problem}"),
        }?;
        match self.command {
            Some(id) => write!(f, ". The command was typed: wait with command_id {id} for its end"),
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
    /// The words that met the rule, as a shell would see them.
    pub words: String,
    /// The beginning of the text.
    pub preview: String,
    /// What was held back.
    pub held: Held,
}

/// What a refusal holds back.
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
        f.write_str(" The filter is a guard rail against mistakes, not a wall; ")?;
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
    /// What was looked for.
    pub query: SessionQuery,
    /// Some that have it.
    pub matches: Vec<SessionRecord>,
    /// How many have it.
    pub count: usize,
}

/// Why nothing may be typed.
#[derive(Clone, Debug)]
pub struct Busy {
    /// Which session.
    pub session: SessionId,
    /// In words.
    pub reason: String,
    /// The program in the foreground.
    pub foreground: Option<String>,
    /// The command that is running.
    pub command: Option<(CommandId, String)>,
    /// For how long.
    pub age: Option<Duration>,
}

/// A command that the shell found unfinished. It was taken back.
#[derive(Clone, Debug)]
pub struct Incomplete {
    /// Which session.
    pub session: SessionId,
    /// The command's number.
    pub command: CommandId,
    /// What its finished parts printed, if any ran.
    pub partial_output: String,
}

/// A command that has not ended yet.
#[derive(Clone, Debug)]
pub struct TimedOut {
    /// Which session.
    pub session: SessionId,
    /// Its number, to wait for it later.
    pub command: CommandId,
    /// What was typed.
    pub line: String,
    /// How long it was waited for.
    pub waited: Duration,
    /// What it printed so far.
    pub partial_output: String,
    /// What the screen shows.
    pub screen: String,
    /// The program in the foreground.
    pub foreground: Option<String>,
    /// A full-screen program has the screen.
    pub alternate_screen: bool,
    /// It was interrupted, as asked.
    pub interrupted: bool,
}

/// The codes that callers compare. Codes are added, never renamed or reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each name is its text on the wire")]
pub enum ErrorCode {
    PtySessionNotFound,
    MissingParam,
    InvalidParam,
    UnknownAction,
    Deprecated,
    PtySpawnFailed,
    PtyLimitReached,
    PtyProcessExited,
    PtyWriteFailed,
    PtyReadFailed,
    PtyRunFailed,
    PtyResizeFailed,
    PtyKillFailed,
    PtyBusy,
    PtyIncompleteCommand,
    PtyTimeout,
    DangerousCommandBlocked,
    TermReadDisabled,
    PtyNotAvailable,
    LeaderProtected,
    NotFound,
    Ambiguous,
    AlreadyOwned,
    PtyDesktopTimeout,
    PtyDesktopError,
    PtyDesktopRequestError,
    PtyDesktopJsonError,
    DesktopResizeDisabled,
    DesktopKillDisabled,
    Failed,
}

impl ErrorCode {
    /// All of them.
    pub const ALL: [Self; 30] = [
        Self::PtySessionNotFound,
        Self::MissingParam,
        Self::InvalidParam,
        Self::UnknownAction,
        Self::Deprecated,
        Self::PtySpawnFailed,
        Self::PtyLimitReached,
        Self::PtyProcessExited,
        Self::PtyWriteFailed,
        Self::PtyReadFailed,
        Self::PtyRunFailed,
        Self::PtyResizeFailed,
        Self::PtyKillFailed,
        Self::PtyBusy,
        Self::PtyIncompleteCommand,
        Self::PtyTimeout,
        Self::DangerousCommandBlocked,
        Self::TermReadDisabled,
        Self::PtyNotAvailable,
        Self::LeaderProtected,
        Self::NotFound,
        Self::Ambiguous,
        Self::AlreadyOwned,
        Self::PtyDesktopTimeout,
        Self::PtyDesktopError,
        Self::PtyDesktopRequestError,
        Self::PtyDesktopJsonError,
        Self::DesktopResizeDisabled,
        Self::DesktopKillDisabled,
        Self::Failed,
    ];

    /// The text on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PtySessionNotFound => "PTY_SESSION_NOT_FOUND",
            Self::MissingParam => "MISSING_PARAM",
            Self::InvalidParam => "INVALID_PARAM",
            Self::UnknownAction => "UNKNOWN_ACTION",
            Self::Deprecated => "DEPRECATED",
            Self::PtySpawnFailed => "PTY_SPAWN_FAILED",
            Self::PtyLimitReached => "PTY_LIMIT_REACHED",
            Self::PtyProcessExited => "PTY_PROCESS_EXITED",
            Self::PtyWriteFailed => "PTY_WRITE_FAILED",
            Self::PtyReadFailed => "PTY_READ_FAILED",
            Self::PtyRunFailed => "PTY_RUN_FAILED",
            Self::PtyResizeFailed => "PTY_RESIZE_FAILED",
            Self::PtyKillFailed => "PTY_KILL_FAILED",
            Self::PtyBusy => "PTY_BUSY",
            Self::PtyIncompleteCommand => "PTY_INCOMPLETE_COMMAND",
            Self::PtyTimeout => "PTY_TIMEOUT",
            Self::DangerousCommandBlocked => "DANGEROUS_COMMAND_BLOCKED",
            Self::TermReadDisabled => "TERM_READ_DISABLED",
            Self::PtyNotAvailable => "PTY_NOT_AVAILABLE",
            Self::LeaderProtected => "LEADER_PROTECTED",
            Self::NotFound => "NOT_FOUND",
            Self::Ambiguous => "AMBIGUOUS",
            Self::AlreadyOwned => "ALREADY_OWNED",
            Self::PtyDesktopTimeout => "PTY_DESKTOP_TIMEOUT",
            Self::PtyDesktopError => "PTY_DESKTOP_ERROR",
            Self::PtyDesktopRequestError => "PTY_DESKTOP_REQUEST_ERROR",
            Self::PtyDesktopJsonError => "PTY_DESKTOP_JSON_ERROR",
            Self::DesktopResizeDisabled => "DESKTOP_RESIZE_DISABLED",
            Self::DesktopKillDisabled => "DESKTOP_KILL_DISABLED",
            Self::Failed => "FAILED",
        }
    }
}

impl Error {
    /// A failed file operation.
    pub fn file(doing: &'static str, path: &Path, cause: io::Error) -> Self {
        Self::File { doing, path: path.to_owned(), cause }
    }

    /// A parameter with a value that cannot be meant.
    pub fn invalid(name: &str, problem: impl Into<String>) -> Self {
        Self::InvalidParam { name: name.to_owned(), problem: problem.into() }
    }

    /// The code that callers compare.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::SessionNotFound(_) => ErrorCode::PtySessionNotFound,
            Self::MissingParam(_) | Self::MissingAction { .. } => ErrorCode::MissingParam,
            Self::InvalidParam { .. } | Self::Size(_) | Self::Usage(_) => ErrorCode::InvalidParam,
            Self::UnknownAction { .. } => ErrorCode::UnknownAction,
            Self::Deprecated { .. } => ErrorCode::Deprecated,
            Self::Spawn { .. } => ErrorCode::PtySpawnFailed,
            Self::LimitReached { .. } | Self::MemoryLimit { .. } => ErrorCode::PtyLimitReached,
            Self::Exited(_) => ErrorCode::PtyProcessExited,
            Self::Write { .. } => ErrorCode::PtyWriteFailed,
            Self::Resize { .. } => ErrorCode::PtyResizeFailed,
            Self::Kill { .. } => ErrorCode::PtyKillFailed,
            Self::Busy(_) => ErrorCode::PtyBusy,
            Self::Incomplete(_) => ErrorCode::PtyIncompleteCommand,
            Self::Timeout(_) => ErrorCode::PtyTimeout,
            Self::Blocked(_) => ErrorCode::DangerousCommandBlocked,
            Self::TermReadDisabled => ErrorCode::TermReadDisabled,
            Self::NotAvailable(_) | Self::DesktopOnly(_) => ErrorCode::PtyNotAvailable,
            Self::Desktop(fault) => match fault.trouble {
                DesktopTrouble::Timeout => ErrorCode::PtyDesktopTimeout,
                DesktopTrouble::Refused | DesktopTrouble::TooLong => ErrorCode::PtyDesktopError,
                DesktopTrouble::Unreachable | DesktopTrouble::HungUp => ErrorCode::PtyDesktopRequestError,
                DesktopTrouble::NotJson => ErrorCode::PtyDesktopJsonError,
            },
            Self::DesktopResizeDisabled(_) => ErrorCode::DesktopResizeDisabled,
            Self::DesktopKillDisabled(_) => ErrorCode::DesktopKillDisabled,
            Self::LeaderProtected(_) => ErrorCode::LeaderProtected,
            Self::NoMatch(_) => ErrorCode::NotFound,
            Self::Ambiguous(_) => ErrorCode::Ambiguous,
            Self::AlreadyOwned { .. } => ErrorCode::AlreadyOwned,
            Self::File { .. } | Self::Recording { .. } | Self::Output(_) | Self::Server(_) | Self::Remote { .. } => {
                ErrorCode::Failed
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { doing, path, cause } => write!(f, "cannot {doing} {}: {cause}", path.display()),
            Self::Recording { path, line: Some(line), problem } => {
                write!(f, "{}, line {line}: {problem}", path.display())
            }
            Self::Recording { path, line: None, problem } => write!(f, "{}: {problem}", path.display()),
            Self::Size(error) => error.fmt(f),
            Self::Output(cause) => write!(f, "cannot write to standard output: {cause}"),
            Self::Usage(message) | Self::Server(message) | Self::Remote { message, .. } => f.write_str(message),
            Self::SessionNotFound(id) => {
                write!(f, "Session not found: {id}. Use action 'list' to see the sessions there are")
            }
            Self::MissingAction { .. } => f.write_str("action is required. Use action='help' for available actions."),
            Self::MissingParam(names) if names.contains(" and ") => write!(f, "{names} are required"),
            Self::MissingParam(name) => write!(f, "{name} is required"),
            Self::InvalidParam { name, problem } => write!(f, "Invalid {name}: {problem}"),
            Self::UnknownAction { name, .. } => {
                write!(f, "Unknown action: {name}. Use action='help' for available actions.")
            }
            Self::Deprecated { alternatives } => {
                write!(f, "This action is deprecated. Use {}", alternatives.join(" or "))
            }
            Self::Spawn { problem, .. } => f.write_str(problem),
            Self::LimitReached { limit } => {
                write!(f, "There are {limit} sessions, which is the limit. Kill one that is no longer needed")
            }
            Self::MemoryLimit { limit } => {
                let limit = limit >> 20;
                write!(f, "The sessions hold {limit} MB, which is the limit. Kill one that is no longer needed")
            }
            Self::Exited(exited) => write!(f, "{exited}"),
            Self::Write { problem, .. } => write!(f, "The program did not take the input: {problem}"),
            Self::Resize { problem, .. } => write!(f, "The terminal could not be resized: {problem}"),
            Self::Kill { survivors, .. } => write!(f, "Some processes would not end: {survivors:?}"),
            Self::Busy(busy) => write!(f, "{}. Not a byte was typed", busy.reason),
            Self::Incomplete(_) => f.write_str(
                "The shell waits for the rest of this command (an open quote, bracket, here-document or trailing \
                 backslash). It was cancelled with Ctrl-C; send the whole command",
            ),
            Self::Timeout(timed_out) => write!(f, "{timed_out}"),
            Self::Blocked(blocked) => write!(f, "{blocked}"),
            Self::TermReadDisabled => f.write_str(
                "Reading the terminal is switched off by KURORYUU_TERM_BUFFER_ACCESS=off; whoever runs the server \
                 can switch it on",
            ),
            Self::NotAvailable(problem) => write!(f, "Local sessions are not available: {problem}"),
            Self::LeaderProtected(_) => {
                f.write_str("This is a leader's session. To kill it all the same, give force: true")
            }
            Self::NoMatch(query) => write!(f, "No PTY found for: {query}"),
            Self::Ambiguous(ambiguous) => {
                write!(f, "Multiple PTYs match query ({} found). Use more specific criteria.", ambiguous.count)
            }
            Self::AlreadyOwned { owner, .. } => {
                write!(f, "The session belongs to {owner}. To take it all the same, give force: true")
            }
            Self::DesktopOnly(id) => {
                write!(f, "{id} is a terminal of a desktop app; this needs a session of this server")
            }
            Self::Desktop(fault) => write!(f, "{fault}"),
            Self::DesktopResizeDisabled(id) => {
                write!(f, "{id} is a terminal of a desktop app: its window is resized there")
            }
            Self::DesktopKillDisabled(id) => {
                write!(f, "{id} is a terminal of a desktop app: it is closed there, or its shell is ended with `exit`")
            }
        }
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
        let ms = self.waited.as_millis();
        let after = if self.interrupted { "It was interrupted with Ctrl-C" } else { "It goes on" };
        write!(
            f,
            "Command timed out after {ms}ms. {after}: wait with command_id {} for its end, answer what it asks with \
             send_line or send_keys, or interrupt it with send_keys Ctrl-C",
            self.command
        )
    }
}

impl std::error::Error for Error {}

impl From<SizeError> for Error {
    fn from(error: SizeError) -> Self {
        Self::Size(error)
    }
}
