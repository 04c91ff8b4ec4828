//! Folder of a server's recordings, and the table of running ones.
//!
//! Only plain names become file names. Nothing is written outside the folder, overwritten or removed; a full folder
//! accepts no further recordings.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::{Recorder, Status};
use crate::error::{Error, Result};
use crate::ids::SessionId;

/// Maximum number of recordings and fixtures in the folder.
pub const MAX_FILES: usize = 500;
/// Maximum number of concurrent recordings; each has a thread.
pub const MAX_RUNNING: usize = 32;
/// Maximum length of a name.
const MAX_NAME: usize = 64;

/// Recordings of one server.
#[derive(Default)]
pub struct RecordingFolder {
    folder: OnceLock<PathBuf>,
    /// Latest recording of each session.
    recorders: Mutex<HashMap<SessionId, Recorder>>,
}

impl RecordingFolder {
    /// Sets the folder; only the first call has an effect.
    pub fn open(&self, folder: PathBuf) {
        // A second call would be a programming error without consequences.
        let _ = self.folder.set(folder);
    }

    fn recorders(&self) -> MutexGuard<'_, HashMap<SessionId, Recorder>> {
        self.recorders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Validates a name and returns the path of a new file.
    pub fn new_path(&self, name: &str, ending: &str) -> Result<PathBuf> {
        if !is_plain(name) {
            let problem =
                format!("must have 1 to {MAX_NAME} letters, digits, dots, hyphens or underscores, no dot first");
            return Err(Error::invalid("name", problem));
        }
        let Some(folder) = self.folder.get() else {
            let message = "there is no folder for recordings: they need a server with a state folder (kpty serve)";
            return Err(Error::Server(message.to_owned()));
        };
        make_folder(folder).map_err(|cause| Error::file("use", folder, cause))?;
        let count = fs::read_dir(folder).map_err(|cause| Error::file("list", folder, cause))?.count();
        if count >= MAX_FILES {
            let folder = folder.display();
            return Err(Error::Server(format!("{folder} has {count} recordings, which is the limit: remove some")));
        }
        let path = folder.join(format!("{name}{ending}"));
        match fs::symlink_metadata(&path) {
            Ok(_) => Err(Error::invalid("name", format!("{} already exists", path.display()))),
            Err(_) => Ok(path),
        }
    }

    /// Rejects a new recording at the limit of running ones.
    pub fn check_running_limit(&self) -> Result<()> {
        let running = self.recorders().values().filter(|recorder| recorder.status().ended.is_none()).count();
        match running < MAX_RUNNING {
            true => Ok(()),
            false => Err(Error::Server(format!("{running} recordings are running, which is the limit: stop one"))),
        }
    }

    /// Stores a running recording. Evicts ended ones when there are too many.
    pub fn keep(&self, session: SessionId, recorder: Recorder) {
        let mut recorders = self.recorders();
        if recorders.len() >= 4 * MAX_RUNNING {
            recorders.retain(|_, recorder| recorder.status().ended.is_none());
        }
        recorders.insert(session, recorder);
    }

    /// Returns the state of a session's latest recording.
    pub fn status(&self, session: &SessionId) -> Option<Status> {
        self.recorders().get(session).map(Recorder::status)
    }

    /// Removes and returns the recording of a session, so that the caller can stop it.
    pub fn take(&self, session: &SessionId) -> Option<Recorder> {
        self.recorders().remove(session)
    }

    /// Ends all recordings and waits for their files.
    pub fn finish(&self) {
        let recorders = std::mem::take(&mut *self.recorders());
        recorders.values().for_each(Recorder::stop);
        for (_, recorder) in recorders {
            recorder.join();
        }
    }
}

fn is_plain(name: &str) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_safe) && !name.starts_with('.')
}

/// Creates a folder with access for its owner only; rejects a link to a folder.
pub fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    match fs::symlink_metadata(path)?.is_dir() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::NotADirectory, "it is not a folder")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let recordings = RecordingFolder::default();
        assert!(recordings.new_path("a", ".cast").is_err(), "there is no folder yet");
        recordings.open(folder.path().join("recordings"));
        for name in ["a", "build-7", "x_1.2"] {
            let path = recordings.new_path(name, ".cast").expect(name);
            assert_eq!(path.parent(), Some(folder.path().join("recordings").as_path()));
        }
        for name in ["", ".", "..", "../x", "/x", "a/b", "a\\b", "a\0", ".hidden", "ä", &"x".repeat(65)] {
            assert!(recordings.new_path(name, ".cast").is_err(), "{name:?}");
        }
        fs::write(folder.path().join("recordings/taken.cast"), "").expect("a file");
        assert!(recordings.new_path("taken", ".cast").is_err());
    }
}
