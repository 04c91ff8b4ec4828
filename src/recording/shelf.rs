//! Where a server's recordings are, and which of them go on.
//!
//! Names become file names only if they are plain; nothing is ever written outside the folder, and nothing in it is
//! written over or removed: a full shelf takes no more.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::{Recorder, Status};
use crate::error::{Error, Result};
use crate::ids::SessionId;

/// Recordings and fixtures in the folder at most.
pub const MAX_FILES: usize = 500;
/// Recordings that go on at the same time at most; each has a thread.
pub const MAX_RUNNING: usize = 32;
/// The longest name.
const MAX_NAME: usize = 64;

/// The recordings of one server.
#[derive(Default)]
pub struct Shelf {
    folder: OnceLock<PathBuf>,
    /// The newest of each session.
    recorders: Mutex<HashMap<SessionId, Recorder>>,
}

impl Shelf {
    /// Says where recordings go. The first word counts.
    pub fn open(&self, folder: PathBuf) {
        // A second folder would be a mistake of the program, and harms nobody.
        let _ = self.folder.set(folder);
    }

    fn recorders(&self) -> MutexGuard<'_, HashMap<SessionId, Recorder>> {
        self.recorders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The path of a new recording or fixture.
    pub fn place(&self, name: &str, ending: &str) -> Result<PathBuf> {
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
            let shelf = folder.display();
            return Err(Error::Server(format!("{shelf} has {count} recordings, which is the limit: remove some")));
        }
        let path = folder.join(format!("{name}{ending}"));
        match fs::symlink_metadata(&path) {
            Ok(_) => Err(Error::invalid("name", format!("{} is there already", path.display()))),
            Err(_) => Ok(path),
        }
    }

    /// Refuses one recording too many.
    pub fn check_room(&self) -> Result<()> {
        let running = self.recorders().values().filter(|recorder| recorder.status().ended.is_none()).count();
        match running < MAX_RUNNING {
            true => Ok(()),
            false => Err(Error::Server(format!("{running} recordings go on, which is the limit: stop one"))),
        }
    }

    /// Keeps a recording that goes on. Those that ended are forgotten when there are too many.
    pub fn keep(&self, session: SessionId, recorder: Recorder) {
        let mut recorders = self.recorders();
        if recorders.len() >= 4 * MAX_RUNNING {
            recorders.retain(|_, recorder| recorder.status().ended.is_none());
        }
        recorders.insert(session, recorder);
    }

    /// The newest recording of a session.
    pub fn status(&self, session: &SessionId) -> Option<Status> {
        self.recorders().get(session).map(Recorder::status)
    }

    /// Takes the recording of a session that goes on, to stop it.
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

/// A folder for its owner alone; a link to one will not do.
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
        let shelf = Shelf::default();
        assert!(shelf.place("a", ".cast").is_err(), "there is no folder yet");
        shelf.open(folder.path().join("recordings"));
        for name in ["a", "build-7", "x_1.2"] {
            let path = shelf.place(name, ".cast").expect(name);
            assert_eq!(path.parent(), Some(folder.path().join("recordings").as_path()));
        }
        for name in ["", ".", "..", "../x", "/x", "a/b", "a\\b", "a\0", ".hidden", "ä", &"x".repeat(65)] {
            assert!(shelf.place(name, ".cast").is_err(), "{name:?}");
        }
        fs::write(folder.path().join("recordings/taken.cast"), "").expect("a file");
        assert!(shelf.place("taken", ".cast").is_err());
    }
}
