//! The errors of this crate: their messages and the stable code of each.
//!
//! A message says what happened and what to try. Where the system caused an error, `source()` gives its error, which the
//! message repeats because most callers see one line. How an error looks on a wire, and which HTTP status it has, is
//! decided by the adapter of that wire.

mod code;
mod details;

use std::io;
use std::path::{Path, PathBuf};

use kpty_emulator::SizeError;

pub use self::code::ErrorCode;
pub use self::details::{Ambiguous, Blocked, Busy, DesktopFault, DesktopTrouble, Exited, Held, Incomplete, TimedOut};
use crate::ids::SessionId;
use crate::model::SessionQuery;
use kpty_guard::{Masked, Redactor};

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read or written.
    #[error("cannot {doing} {}: {cause}", path.display())]
    File {
        /// What was attempted: "read", "write", "list".
        doing: &'static str,
        /// Which one.
        path: PathBuf,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// A recording cannot be read as one.
    #[error("{}: {problem}", place(path, *line))]
    Recording {
        /// Which one.
        path: PathBuf,
        /// The line, from 1, where one can be named.
        line: Option<usize>,
        /// What is wrong there.
        problem: String,
    },
    /// A terminal size outside the bounds.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// Standard output could not be written.
    #[error("cannot write to standard output: {0}")]
    Output(#[source] io::Error),
    /// Options that do not go together.
    #[error("{0}")]
    Usage(String),
    /// There is no such session.
    #[error("Session not found: {0}. Use action 'list' to see the sessions there are")]
    SessionNotFound(SessionId),
    /// A required parameter is missing.
    #[error("{}", missing(.0))]
    MissingParam(&'static str),
    /// A parameter has an invalid value.
    #[error("Invalid {name}: {problem}")]
    InvalidParam {
        /// Which one.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A call names no action.
    #[error("action is required. Use action='help' for available actions.")]
    MissingAction {
        /// The actions of the tool.
        available: Vec<&'static str>,
    },
    /// No such action.
    #[error("Unknown action: {name}. Use action='help' for available actions.")]
    UnknownAction {
        /// What was asked for.
        name: String,
        /// The actions of the tool.
        available: Vec<&'static str>,
    },
    /// A deprecated action.
    #[error("This action is deprecated. Use {}", alternatives.join(" or "))]
    Deprecated {
        /// What to use instead.
        alternatives: &'static [&'static str],
    },
    /// The program could not be started.
    #[error("{problem}")]
    Spawn {
        /// The program.
        shell: String,
        /// Where.
        cwd: PathBuf,
        /// Why not.
        problem: String,
    },
    /// The limit of sessions is reached.
    #[error("There are {limit} sessions, which is the limit. Kill one that is no longer needed")]
    LimitReached {
        /// The limit.
        limit: usize,
    },
    /// The memory limit of all sessions is reached.
    #[error("The sessions hold {} MB, which is the limit. Kill one that is no longer needed", limit >> 20)]
    MemoryLimit {
        /// The limit in bytes.
        limit: usize,
    },
    /// The session's program has ended.
    #[error("{0}")]
    Exited(Box<Exited>),
    /// Input could not be written to the session's program.
    #[error("The program did not take the input: {problem}")]
    Write {
        /// Which session.
        session: SessionId,
        /// Why not.
        problem: String,
    },
    /// The window could not be resized.
    #[error("The terminal could not be resized: {cause}")]
    Resize {
        /// Which session.
        session: SessionId,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// Some process of the session survived the kill.
    #[error("Some processes did not end: {survivors:?}. Look at them with ps, or end them by their ids")]
    Kill {
        /// Which session.
        session: SessionId,
        /// The processes that are left.
        survivors: Vec<u32>,
    },
    /// The terminal cannot accept input now.
    #[error("{}", .0.message())]
    Busy(Box<Busy>),
    /// The program asks for a secret, and those are left to people here.
    #[error(
        "The program asks for a secret, which only a person may type here. Nothing was typed. Ask the user to run `kpty \
         answer {0}` or to type it on the page; Ctrl-C cancels the question"
    )]
    SecretPrompt(SessionId),
    /// The shell waits for the rest of the command.
    #[error(
        "The shell waits for the rest of this command (an open quote, bracket, here-document or trailing backslash). \
         It was cancelled with Ctrl-C; send the whole command"
    )]
    Incomplete(Box<Incomplete>),
    /// The command did not end before the deadline.
    #[error("{0}")]
    Timeout(Box<TimedOut>),
    /// The guard refused the text.
    #[error("{0}")]
    Blocked(Box<Blocked>),
    /// Reading screens is switched off by a setting.
    #[error(
        "Reading the terminal is switched off by KPTY_TERM_BUFFER_ACCESS=off (KURORYUU_TERM_BUFFER_ACCESS); whoever runs \
         the server can switch it on"
    )]
    TermReadDisabled,
    /// This server has no local sessions.
    #[error("Local sessions are not available: {0}")]
    NotAvailable(String),
    /// A leader's session is killed only with `force`.
    #[error("This is a leader's session. To kill it anyway, give force: true")]
    LeaderProtected(SessionId),
    /// No session matches the criteria.
    #[error("No PTY found for: {0}")]
    NoMatch(Box<SessionQuery>),
    /// Several sessions match the criteria.
    #[error("Multiple PTYs match query ({} found). Use more specific criteria.", .0.count)]
    Ambiguous(Box<Ambiguous>),
    /// The session belongs to somebody else.
    #[error("The session belongs to {owner}. To take it anyway, give force: true")]
    AlreadyOwned {
        /// Which session.
        session: SessionId,
        /// The owner.
        owner: String,
    },
    /// The action needs a session of this server, and this terminal belongs to a desktop app.
    #[error("{0} is a terminal of a desktop app; this needs a session of this server")]
    DesktopOnly(SessionId),
    /// A call to the bridge of a desktop failed.
    #[error("{0}")]
    Desktop(Box<DesktopFault>),
    /// The size of a desktop terminal is set in the desktop app.
    #[error("{0} is a terminal of a desktop app: its window is resized there")]
    DesktopResizeDisabled(SessionId),
    /// A desktop terminal is closed in the desktop app.
    #[error("{0} is a terminal of a desktop app: it is closed there, or its shell is ended with `exit`")]
    DesktopKillDisabled(SessionId),
    /// The server could not be reached, or did not speak as expected.
    #[error("{0}")]
    Server(String),
    /// An error that another server answered.
    #[error("{message}")]
    Remote {
        /// The code on the wire.
        code: String,
        /// Its message.
        message: String,
    },
}

impl Error {
    /// A failed file operation.
    pub fn file(doing: &'static str, path: &Path, cause: io::Error) -> Self {
        Self::File { doing, path: path.to_owned(), cause }
    }

    /// A parameter with an invalid value.
    pub fn invalid(name: &str, problem: impl Into<String>) -> Self {
        Self::InvalidParam { name: name.to_owned(), problem: problem.into() }
    }

    /// The message for others than whoever runs the server. What a session showed is masked where the error is made;
    /// what callers gave is masked here.
    pub fn message(&self, redactor: &Redactor) -> Masked {
        match self {
            Self::Busy(busy) => busy.message(),
            other => redactor.mask(other.to_string()),
        }
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
            Self::SecretPrompt(_) => ErrorCode::PtySecretPrompt,
            Self::Incomplete(_) => ErrorCode::PtyIncompleteCommand,
            Self::Timeout(timed_out) if timed_out.asks.is_some() => ErrorCode::PtyAsks,
            Self::Timeout(_) => ErrorCode::PtyTimeout,
            Self::Blocked(_) => ErrorCode::DangerousCommandBlocked,
            Self::TermReadDisabled => ErrorCode::TermReadDisabled,
            Self::NotAvailable(_) | Self::DesktopOnly(_) => ErrorCode::PtyNotAvailable,
            Self::Desktop(fault) => fault.trouble.code(),
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

/// A file, and a line of it where one is known.
fn place(path: &Path, line: Option<usize>) -> String {
    line.map_or_else(|| path.display().to_string(), |line| format!("{}, line {line}", path.display()))
}

fn missing(names: &str) -> String {
    match names {
        names if names.contains(" and ") => format!("{names} are required"),
        name => format!("{name} is required"),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn errors_of_the_system_are_sources() {
        let cause = || io::Error::from(io::ErrorKind::PermissionDenied);
        for error in [
            Error::file("read", Path::new("x"), cause()),
            Error::Output(cause()),
            Error::Resize { session: SessionId::named("s"), cause: cause() },
        ] {
            let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
            assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::PermissionDenied), "{error}");
            assert!(error.to_string().contains("permission denied"), "{error}");
        }
        assert!(Error::Usage("x".to_owned()).source().is_none());
    }

    #[test]
    fn codes_are_capitals_of_their_names() {
        assert_eq!(ErrorCode::PtyBusy.as_str(), "PTY_BUSY");
        assert_eq!(ErrorCode::Failed.as_str(), "FAILED");
    }
}
