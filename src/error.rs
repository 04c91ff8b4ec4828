//! What can go wrong, in the words of the person who asked.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use kpty_emulator::SizeError;

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
}

impl Error {
    /// A failed file operation.
    pub fn file(doing: &'static str, path: &Path, cause: io::Error) -> Self {
        Self::File { doing, path: path.to_owned(), cause }
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
            Self::Usage(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}

impl From<SizeError> for Error {
    fn from(error: SizeError) -> Self {
        Self::Size(error)
    }
}
