//! Captured terminal streams: bytes with a size, or an asciicast with times and resizes.
//!
//! Owns reading them from disk and writing them there; refuses to interpret their bytes, which is the emulator's part.

mod cast;
pub mod fixture;
mod mask;
mod paint;
mod recorder;
pub mod replay;
mod shelf;
mod writer;

use std::fs;
use std::path::Path;
use std::time::Duration;

use kpty_emulator::Size;

pub use paint::paint;
pub use recorder::{DEFAULT_MAX_BYTES, Echo, End, MAX_BYTES_CAP, Options, Recorder, Status, Tap};
pub use shelf::{MAX_FILES, MAX_RUNNING, Shelf, make_folder};

use crate::error::{Error, Result};

/// What a terminal received, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The size at the start; `None` for plain bytes, which do not say.
    pub size: Option<Size>,
    /// In the order of their times.
    pub events: Vec<Event>,
    /// The events carry real times.
    pub timed: bool,
}

/// One thing that happened to the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Since the start.
    pub at: Duration,
    /// What.
    pub action: Action,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The program wrote bytes.
    Output(Vec<u8>),
    /// The window changed its size.
    Resize(Size),
}

impl Recording {
    /// Reads a file: an asciicast when its name ends in `.cast`, plain bytes otherwise.
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

    /// Plain bytes, all at once.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        let events = vec![Event { at: Duration::ZERO, action: Action::Output(bytes) }];
        Self { size: None, events, timed: false }
    }
}
