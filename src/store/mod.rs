//! What outlives the server: the files of the state folder, in the names and schemas that older tools know.
//!
//! [`Store`] owns the folder and writes what it is given; [`Saver`] decides when. A disk that is full or read-only costs
//! what would have been saved, never a session. Files that cannot be understood are set aside, never written over.
//! Nothing here knows a wire.

mod children;
mod files;
mod journal;
mod lock;
mod saver;
mod session_files;
mod snapshot;
mod source;
mod token;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use children::Orphan;
pub use saver::Saver;
pub use source::Source;
pub use token::{TOKEN_FILE, Token};

use crate::error::{Error, Result};
use crate::model::SessionRecord;
use children::Child;
use files::Durability;
use journal::Event;
use lock::{Lock, Taken};
use session_files::Saved;

const REGISTRY: &str = "_registry.json";
const EVENTS: &str = "_registry_events.jsonl";
const CHILDREN: &str = "_children.json";
const SESSIONS: &str = "sessions";
/// The longest name of a session that becomes the name of a folder.
const MAX_ID: usize = 64;

/// A state folder that is ours alone.
pub struct Store {
    folder: PathBuf,
    /// None while the disk does not let us have one.
    lock: Mutex<Option<Lock>>,
}

/// What a server finds that another one left.
#[derive(Debug, Default)]
pub struct Restored {
    /// The desktop's sessions. Those of a server end with it.
    pub records: Vec<SessionRecord>,
    /// Shells of a server that was killed, which live on.
    pub orphans: Vec<Orphan>,
}

impl Store {
    /// Takes the folder and reads what is there. A disk that cannot be written is no reason not to start; another
    /// server, another owner, or something that is no folder is.
    pub fn open(folder: &Path) -> Result<(Self, Restored)> {
        let store = Self { folder: folder.to_owned(), lock: Mutex::default() };
        match store.claim() {
            Ok(_) => {}
            Err(Claim::Taken(message)) => return Err(Error::Server(message)),
            Err(Claim::Disk(cause)) if is_about_the_disk(&cause) => {
                tracing::warn!("the state folder {} cannot be used: {cause}", folder.display());
            }
            Err(Claim::Disk(cause)) => return Err(Error::file("use the state folder", folder, cause)),
        }
        files::remove_unfinished(folder);
        let (mut records, is_whole) = snapshot::read_registry(&folder.join(REGISTRY));
        if !is_whole && let Err(cause) = store.save_registry(&records) {
            tracing::warn!("what is left of the registry cannot be saved: {cause}");
        }
        records.retain(|record| record.source == crate::model::Source::Desktop);
        let orphans = children::read(&folder.join(CHILDREN));
        Ok((store, Restored { records, orphans }))
    }

    /// Makes sure that there is a folder, and that it is ours: somebody may have removed it. One at a time writes while
    /// what this returns lives, so that the older of two states is never written last.
    fn claim(&self) -> std::result::Result<MutexGuard<'_, Option<Lock>>, Claim> {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        files::make_folder(&self.folder).map_err(Claim::Disk)?;
        if lock.as_ref().is_some_and(|lock| lock.is_still(&self.folder)) {
            return Ok(lock);
        }
        match Lock::take(&self.folder).map_err(Claim::Disk)? {
            Taken::Ours(ours) => {
                *lock = Some(ours);
                Ok(lock)
            }
            Taken::Others(pid) => {
                let pid = pid.map_or("whose process is not known".to_owned(), |pid| format!("process {pid}"));
                let folder = self.folder.display();
                let message = format!("another server, {pid}, uses {folder}; stop it or give another --state-dir");
                Err(Claim::Taken(message))
            }
        }
    }

    fn ready(&self) -> io::Result<MutexGuard<'_, Option<Lock>>> {
        self.claim().map_err(|claim| match claim {
            Claim::Disk(cause) => cause,
            Claim::Taken(message) => io::Error::new(io::ErrorKind::ResourceBusy, message),
        })
    }

    fn save_registry(&self, records: &[SessionRecord]) -> io::Result<()> {
        let _ours = self.ready()?;
        files::write(&self.folder.join(REGISTRY), &snapshot::registry(records)?, Durability::Power)
    }

    /// Removes what is kept of sessions that are not among these, and the log of what happened to them.
    fn forget(&self, kept: &[SessionRecord]) {
        let Ok(_ours) = self.ready() else { return };
        let log = self.folder.join(EVENTS);
        for file in [log.with_extension("1.jsonl"), log] {
            // One that is not there need not be removed.
            let _ = std::fs::remove_file(file);
        }
        session_files::remove_others(&self.folder.join(SESSIONS), kept);
    }

    fn append_events(&self, events: &[Event]) -> io::Result<()> {
        let _ours = self.ready()?;
        journal::append(&self.folder.join(EVENTS), events)
    }

    /// After a power cut there are no children, so nothing is lost then.
    fn save_children(&self, children: &[Child]) -> io::Result<()> {
        let _ours = self.ready()?;
        files::write(&self.folder.join(CHILDREN), &children::file(children)?, Durability::Process)
    }

    fn save_session(&self, saved: &Saved) -> io::Result<()> {
        let _ours = self.ready()?;
        session_files::write(&self.folder.join(SESSIONS), saved)
    }

    fn append_session_event(&self, event: &Event) -> io::Result<()> {
        let _ours = self.ready()?;
        session_files::append(&self.folder.join(SESSIONS), &event.session_id, std::slice::from_ref(event))
    }

    /// Adds what was done to a session to its log. A desktop may name its sessions as no folder can be named; those have
    /// no log.
    fn append_actions(&self, session_id: &str, lines: &[u8]) -> io::Result<()> {
        if !is_safe_id(session_id) {
            return Ok(());
        }
        let _ours = self.ready()?;
        session_files::append_lines(&self.folder.join(SESSIONS), session_id, lines)
    }

    /// Removes what is too old to be asked for, and what was never finished; nothing is being written meanwhile. The
    /// folders of these sessions stay.
    fn prune(&self, kept: &HashSet<String>) {
        if let Ok(_ours) = self.ready() {
            session_files::prune(&self.folder.join(SESSIONS), kept);
        }
    }
}

/// Why the folder is not ours.
enum Claim {
    Disk(io::Error),
    Taken(String),
}

/// It may be over in a while, and is nobody's mistake in naming the folder.
fn is_about_the_disk(cause: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(cause.kind(), PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
}

/// A name of a session that may become the name of a folder.
fn is_safe_id(id: &str) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=MAX_ID).contains(&id.len()) && id.bytes().all(is_safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_become_paths() {
        for id in ["pty_0123abcd", "desk-7", "A", &"x".repeat(64)] {
            assert!(is_safe_id(id), "{id}");
        }
        for id in ["", ".", "..", "../x", "/x", "a/b", "a\\b", "a\0", "a.b", "ä", "C:", &"x".repeat(65)] {
            assert!(!is_safe_id(id), "{id:?}");
        }
    }

    #[test]
    fn a_folder_is_taken_once_and_free_again_after() {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let folder = parent.path().join("state");
        let (store, restored) = Store::open(&folder).expect("a new folder");
        assert!(restored.records.is_empty() && restored.orphans.is_empty());
        let message = Store::open(&folder).map(drop).expect_err("it is taken").to_string();
        assert!(message.contains(&format!("process {}", std::process::id())), "{message}");
        drop(store);
        Store::open(&folder).expect("it is free");
    }

    #[test]
    fn a_folder_that_was_removed_is_made_again() {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let folder = parent.path().join("state");
        let (store, _) = Store::open(&folder).expect("a new folder");
        std::fs::remove_dir_all(&folder).expect("our folder");
        store.save_registry(&[]).expect("a new folder again");
        assert!(folder.join(REGISTRY).is_file());
        assert!(Store::open(&folder).is_err(), "the new folder is locked too");
        // Somebody else is faster the next time.
        std::fs::remove_dir_all(&folder).expect("our folder");
        let _other = Store::open(&folder).expect("a new folder");
        let error = store.save_registry(&[]).expect_err("it is not ours any more");
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
    }

    #[test]
    fn a_file_is_no_folder() {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let file = parent.path().join("file");
        std::fs::write(&file, "").expect("a file");
        for path in [file.clone(), file.join("below")] {
            assert!(Store::open(&path).is_err(), "{path:?}");
        }
    }
}
