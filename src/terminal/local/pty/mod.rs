//! A program on a pseudo-terminal: what a driver needs from the system, and nothing else knows the platform.
//!
//! Unix: one non-blocking descriptor per session and an event when the child ends. Windows: a reader and a writer
//! thread behind the same calls.

#[cfg(target_os = "linux")]
mod pipes;
mod process;
mod readers;
#[cfg(unix)]
mod unix;
mod waiting;
#[cfg(windows)]
mod windows;

use std::ffi::OsString;
use std::path::PathBuf;

use kpty_emulator::Size;

#[cfg(target_os = "linux")]
pub use pipes::{Passing, child_with, passing, terminate};
pub use process::{
    Incarnation, Piped, ProcessTable, Program, arguments, behind_relay, directory, group_members, is_copy_of, piped,
    program_of, reader_beside, reads_file, session_members, started,
};
pub use readers::{Front, front, reader_from_outside};
#[cfg(unix)]
pub use unix::{Child, Control, Pty, Started, open_files_limit, raise_open_files_limit, start};
pub use waiting::{Waiting, call_depth, waits_for};
#[cfg(windows)]
pub use windows::{Child, Control, Pty, Started, open_files_limit, raise_open_files_limit, start};

/// What to start, and how.
#[derive(Clone, Debug)]
pub struct SpawnSpec {
    /// The program, as a path or as a name to be found on the path.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Where it starts.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// The window.
    pub size: Size,
}

/// Who has the terminal, and in which mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreground {
    /// The process group that has it.
    pub group: u32,
    /// Its leader, or another member where the leader is gone.
    pub program: Option<Program>,
    /// The system edits the line and hands it over whole: nobody has the terminal in raw mode.
    pub canonical: bool,
}

/// How the system treats a line that is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineModes {
    /// It edits the line and hands it over whole.
    pub canonical: bool,
    /// It shows what is typed.
    pub echo: bool,
    /// It makes a line feed of the Enter key.
    pub enter: bool,
    /// It drops the Enter key.
    pub drops_enter: bool,
    /// It makes small letters of capitals.
    pub lowers: bool,
    /// Printable characters that do something instead of being handed over.
    pub active: Vec<u8>,
    /// The character that takes the meaning of the next.
    pub quote: Option<u8>,
}

impl LineModes {
    /// What has to be typed for this text to arrive as it is; none where it cannot.
    pub fn literally(&self, bytes: Vec<u8>) -> Option<Vec<u8>> {
        if self.lowers && bytes.iter().any(u8::is_ascii_uppercase) {
            return None;
        }
        if !bytes.iter().any(|byte| self.active.contains(byte)) {
            return Some(bytes);
        }
        let quote = self.quote?;
        let quoted = |byte: u8| self.active.contains(&byte).then_some(quote).into_iter().chain([byte]);
        Some(bytes.into_iter().flat_map(quoted).collect())
    }
}

/// What to tell the processes of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The terminal is gone.
    HangUp,
    /// Please end.
    Terminate,
    /// End.
    Kill,
}
