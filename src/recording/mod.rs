//! Terminal recordings: plain bytes with a size, or an asciicast with times and resizes.
//!
//! Owns reading and writing the files; the emulator interprets the bytes.

mod cast;
pub mod fixture;
mod folder;
mod mask;
mod paint;
mod recorder;
pub mod replay;
mod writer;

use std::fs;
use std::path::Path;
use std::time::Duration;

use kpty_emulator::Size;

pub use folder::{MAX_FILES, MAX_RUNNING, RecordingFolder, make_folder};
pub use mask::Released;
pub use paint::paint;
pub use recorder::{DEFAULT_MAX_BYTES, Echo, End, MAX_BYTES_CAP, Options, Recorder, Status, Tap};

use crate::error::{Error, Result};

/// Timed input of a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// Initial size; `None` for plain bytes, which do not contain one.
    pub size: Option<Size>,
    /// Events in time order.
    pub events: Vec<Event>,
    /// The events carry real times.
    pub timed: bool,
}

/// One event of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time since the start.
    pub at: Duration,
    /// Kind and data.
    pub action: Action,
}

/// Kind of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Output of the program.
    Output(Vec<u8>),
    /// New window size.
    Resize(Size),
}

impl Recording {
    /// Reads a file: an asciicast if its extension is `.cast`, plain bytes otherwise.
    pub fn load(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).map_err(|cause| Error::file("read", path, cause))?;
        if path.extension().is_some_and(|extension| extension == "cast") {
            cast::parse(&bytes).map_err(|problem| Error::Recording {
                path: path.to_owned(),
                line: problem.line,
                problem: problem.what,
            })
        } else {
            Ok(Self::from_bytes(bytes))
        }
    }

    /// Creates a recording of plain bytes at time zero.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        let events = vec![Event { at: Duration::ZERO, action: Action::Output(bytes) }];
        Self { size: None, events, timed: false }
    }
}
