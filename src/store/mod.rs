//! Persistence: the files of the state folder, with names and schemas that older tools read.
//!
//! [`Store`] owns the folder and writes; [`Saver`] decides when. A full or read-only disk loses saved state but never
//! affects a session. Files that cannot be parsed are quarantined, never overwritten. This layer knows no wire format.

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
pub use source::SaveSource;
pub use token::{TOKEN_FILE, Token};

use crate::error::{Error, Result};
use crate::model::SessionRecord;
use children::ChildRecord;
use files::Durability;
use journal::JournalEntry;
use lock::{FolderLock, LockOutcome};
use session_files::SavedSession;

const REGISTRY: &str = "_registry.json";
const EVENTS: &str = "_registry_events.jsonl";
const CHILDREN: &str = "_children.json";
const SESSIONS: &str = "sessions";
/// Maximum length of a session id that becomes a folder name.
const MAX_ID: usize = 64;

/// A state folder, locked by this server.
pub struct Store {
    folder: PathBuf,
    /// `None` while the disk does not allow the lock.
    lock: Mutex<Option<FolderLock>>,
}

/// State that an earlier server left.
#[derive(Debug, Default)]
pub struct Restored {
    /// Desktop sessions. Local sessions end with their server.
    pub records: Vec<SessionRecord>,
    /// Live shells of a server that was killed.
    pub orphans: Vec<Orphan>,
}

impl Store {
    /// Locks the folder and reads its state. An unwritable disk does not prevent startup; another server, another
    /// owner, or something that is not a folder does.
    pub fn open(folder: &Path) -> Result<(Self, Restored)> {
        let store = Self { folder: folder.to_owned(), lock: Mutex::default() };
        match store.claim() {
            Ok(_) => {}
            Err(ClaimError::HeldBy(message)) => return Err(Error::Server(message)),
            Err(ClaimError::Disk(cause)) if may_be_temporary(&cause) => {
                tracing::warn!("the state folder {} cannot be used: {cause}", folder.display());
            }
            Err(ClaimError::Disk(cause)) => return Err(Error::file("use the state folder", folder, cause)),
        }
        files::remove_temp_files(folder);
        let (mut records, is_whole) = snapshot::read_registry(&folder.join(REGISTRY));
        if !is_whole && let Err(cause) = store.save_registry(&records) {
            tracing::warn!("the repaired registry cannot be saved: {cause}");
        }
        records.retain(|record| record.source == crate::model::Source::Desktop);
        let orphans = children::read(&folder.join(CHILDREN));
        Ok((store, Restored { records, orphans }))
    }

    /// Creates and locks the folder if it was removed meanwhile. The returned guard serializes writers, so that an
    /// older state never overwrites a newer one.
    fn claim(&self) -> std::result::Result<MutexGuard<'_, Option<FolderLock>>, ClaimError> {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        files::make_folder(&self.folder).map_err(ClaimError::Disk)?;
        if lock.as_ref().is_some_and(|lock| lock.is_current(&self.folder)) {
            return Ok(lock);
        }
        match FolderLock::acquire(&self.folder).map_err(ClaimError::Disk)? {
            LockOutcome::Acquired(ours) => {
                *lock = Some(ours);
                Ok(lock)
            }
            LockOutcome::HeldBy(pid) => {
                let pid = pid.map_or("process unknown".to_owned(), |pid| format!("process {pid}"));
                let folder = self.folder.display();
                let message = format!("another server, {pid}, uses {folder}; stop it or give another --state-dir");
                Err(ClaimError::HeldBy(message))
            }
        }
    }

    fn ready(&self) -> io::Result<MutexGuard<'_, Option<FolderLock>>> {
        self.claim().map_err(|claim| match claim {
            ClaimError::Disk(cause) => cause,
            ClaimError::HeldBy(message) => io::Error::new(io::ErrorKind::ResourceBusy, message),
        })
    }

    fn save_registry(&self, records: &[SessionRecord]) -> io::Result<()> {
        let _ours = self.ready()?;
        files::write(&self.folder.join(REGISTRY), &snapshot::registry(records)?, Durability::PowerLoss)
    }

    /// Removes the files of sessions that are not in `kept`, and the event log.
    fn remove_others(&self, kept: &[SessionRecord]) {
        let Ok(_ours) = self.ready() else { return };
        let log = self.folder.join(EVENTS);
        for file in [log.with_extension("1.jsonl"), log] {
            // The file may not exist.
            let _ = std::fs::remove_file(file);
        }
        session_files::remove_others(&self.folder.join(SESSIONS), kept);
    }

    fn append_events(&self, events: &[JournalEntry]) -> io::Result<()> {
        let _ours = self.ready()?;
        journal::append(&self.folder.join(EVENTS), events)
    }

    /// ChildrenFile do not survive a power failure, so their file need not either.
    fn save_children(&self, children: &[ChildRecord]) -> io::Result<()> {
        let _ours = self.ready()?;
        files::write(&self.folder.join(CHILDREN), &children::file(children)?, Durability::ProcessExit)
    }

    fn save_session(&self, saved: &SavedSession) -> io::Result<()> {
        let _ours = self.ready()?;
        session_files::write(&self.folder.join(SESSIONS), saved)
    }

    fn append_session_event(&self, event: &JournalEntry) -> io::Result<()> {
        let _ours = self.ready()?;
        session_files::append(&self.folder.join(SESSIONS), &event.session_id, std::slice::from_ref(event))
    }

    /// Appends audit lines to the log of a session. A desktop session whose id is not a valid folder name has no log.
    fn append_actions(&self, session_id: &str, lines: &[u8]) -> io::Result<()> {
        if !is_safe_id(session_id) {
            return Ok(());
        }
        let _ours = self.ready()?;
        session_files::append_lines(&self.folder.join(SESSIONS), session_id, lines)
    }

    /// Removes expired folders and temporary files while no write runs. Keeps the folders of the sessions in `kept`.
    fn prune(&self, kept: &HashSet<String>) {
        if let Ok(_ours) = self.ready() {
            session_files::prune(&self.folder.join(SESSIONS), kept);
        }
    }
}

/// Why the folder cannot be used.
enum ClaimError {
    Disk(io::Error),
    HeldBy(String),
}

/// Returns whether the cause may pass and does not mean that the configured folder is wrong.
fn may_be_temporary(cause: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(cause.kind(), PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
}

/// Returns whether a session id is safe as a folder name.
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
        // The other server locks first next time.
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
