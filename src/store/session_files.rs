//! The folder of one session, `pty_session_v1`: metadata, the redacted end of its output, and its events.
//!
//! A power failure may lose the newest writes; syncing thousands of small files would wear the disk for little use.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use kpty_guard::Masked;
use serde::Serialize;

use super::files::{self, Durability};
use super::journal::{self, JournalEntry};
use super::{is_safe_id, snapshot};
use crate::model::{SessionRecord, iso_time};
use crate::terminal::local::Info;

const SCHEMA: &str = "pty_session_v1";
const METADATA: &str = "metadata.json";
const BUFFER: &str = "buffer.txt";
const EVENTS: &str = "events.jsonl";
/// Retention of a session folder after its last write.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Maximum number of session folders; the oldest are removed first.
const MAX_FOLDERS: usize = 5_000;

/// State of a session as saved.
pub(super) struct SavedSession {
    pub(super) info: Info,
    /// End of the session's output, redacted.
    pub(super) buffer: Masked,
}

#[derive(Serialize)]
struct Metadata<'a> {
    schema: &'static str,
    session_id: &'a str,
    saved_at: String,
    shell: &'a Masked,
    cwd: &'a Masked,
    cols: u16,
    rows: u16,
    created_at: String,
    last_activity: String,
    is_alive: bool,
    buffer_size: usize,
}

/// Writes the files of a session.
pub(super) fn write(sessions: &Path, saved: &SavedSession) -> io::Result<()> {
    let SavedSession { info, buffer } = saved;
    let folder = folder(sessions, info.id.as_str())?;
    let metadata = Metadata {
        schema: SCHEMA,
        session_id: info.id.as_str(),
        saved_at: iso_time(SystemTime::now()),
        shell: &info.shell,
        cwd: &info.cwd,
        cols: info.size.cols(),
        rows: info.size.rows(),
        created_at: iso_time(info.created_at),
        last_activity: iso_time(info.last_activity),
        is_alive: info.exit.is_none(),
        buffer_size: info.buffer_size,
    };
    let mut bytes = serde_json::to_vec_pretty(&metadata)?;
    bytes.push(b'\n');
    files::write(&folder.join(BUFFER), buffer.as_bytes(), Durability::ProcessExit)?;
    files::write(&folder.join(METADATA), &bytes, Durability::ProcessExit)
}

/// Appends events to a session's log.
pub(super) fn append(sessions: &Path, session_id: &str, events: &[JournalEntry]) -> io::Result<()> {
    journal::append(&folder(sessions, session_id)?.join(EVENTS), events)
}

/// Appends lines that are already serialized.
pub(super) fn append_lines(sessions: &Path, session_id: &str, lines: &[u8]) -> io::Result<()> {
    journal::append_lines(&folder(sessions, session_id)?.join(EVENTS), lines)
}

/// Creates the folder of a session. Quarantines anything else at its path.
fn folder(sessions: &Path, id: &str) -> io::Result<PathBuf> {
    if !is_safe_id(id) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "its id cannot be the name of a folder"));
    }
    let folder = sessions.join(id);
    for path in [sessions, &folder] {
        if fs::symlink_metadata(path).is_ok_and(|found| !found.is_dir()) {
            snapshot::quarantine_and_log(path, "it is not a folder");
        }
        files::make_folder(path)?;
    }
    Ok(folder)
}

/// Lists session folders with their last write time.
fn folders(sessions: &Path) -> Vec<(SystemTime, PathBuf)> {
    if fs::symlink_metadata(sessions).is_ok_and(|found| !found.is_dir()) {
        return Vec::new();
    }
    let entries = fs::read_dir(sessions).into_iter().flatten().flatten();
    let is_session = |entry: &fs::DirEntry| {
        entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.file_name().to_str().is_some_and(is_safe_id)
    };
    entries.filter(is_session).map(|entry| (written(&entry.path()), entry.path())).collect()
}

/// Removes all session folders except those in `kept`.
pub(super) fn remove_others(sessions: &Path, kept: &[SessionRecord]) {
    for (_, path) in folders(sessions) {
        let is_kept = kept.iter().any(|record| path.ends_with(&record.session_id));
        if !is_kept && let Err(cause) = fs::remove_dir_all(&path) {
            tracing::warn!("the obsolete {} cannot be removed: {cause}", path.display());
        }
    }
}

/// Removes session folders that are expired or exceed the limit, and temporary files in the rest. Folders of live
/// sessions stay, regardless of age.
pub(super) fn prune(sessions: &Path, kept: &HashSet<String>) {
    let mut found = folders(sessions);
    found.retain(|(_, path)| !path.file_name().and_then(|name| name.to_str()).is_some_and(|name| kept.contains(name)));
    found.sort_by(|a, b| b.cmp(a));
    let now = SystemTime::now();
    for (rank, (written, path)) in found.into_iter().enumerate() {
        // A clock that was set back does not age a folder.
        let age = now.duration_since(written).unwrap_or(Duration::ZERO);
        if age <= RETENTION && rank < MAX_FOLDERS {
            files::remove_temp_files(&path);
        } else if let Err(cause) = fs::remove_dir_all(&path) {
            tracing::warn!("the expired {} cannot be removed: {cause}", path.display());
        }
    }
}

/// Returns when a session was last written, by file time; times inside the files are not trusted.
fn written(folder: &Path) -> SystemTime {
    let time = |path: &Path| fs::symlink_metadata(path).and_then(|found| found.modified()).ok();
    time(&folder.join(METADATA)).or_else(|| time(folder)).unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_old_sessions_are_removed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let old = SystemTime::now() - RETENTION - Duration::from_secs(60);
        for (name, file, is_old) in [
            ("pty_new", METADATA, false),
            ("pty_old", METADATA, true),
            ("pty_quiet", METADATA, true),
            ("no.session", METADATA, true),
            ("pty_bare", "other", false),
        ] {
            let path = folder.path().join(name);
            fs::create_dir(&path).expect("a folder");
            fs::write(path.join(file), "{}").expect("a file");
            if is_old {
                let file = fs::File::options().write(true).open(path.join(file)).expect("the file");
                file.set_modified(old).expect("our file");
            }
        }
        prune(folder.path(), &HashSet::from(["pty_quiet".to_owned()]));
        let mut left: Vec<_> = fs::read_dir(folder.path())
            .expect("the folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect();
        left.sort();
        assert_eq!(left, ["no.session", "pty_bare", "pty_new", "pty_quiet"]);
    }

    #[test]
    fn an_id_that_is_a_path_writes_nothing() {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let sessions = parent.path().join("a/sessions");
        for id in ["..", "../../x", "/x", ""] {
            assert!(folder(&sessions, id).is_err(), "{id:?}");
        }
        assert_eq!(fs::read_dir(parent.path()).expect("the folder").count(), 0);
    }
}
