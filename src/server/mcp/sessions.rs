//! Client sessions on disk: the client's `initialize` parameters, so that a session continues after a server restart. A
//! client session holds no terminals.
//!
//! One file per session, accessible to its owner only and written atomically. Ids are validated before they become
//! paths. At most [`MAX_ENTRIES`] are kept, each for [`RETENTION`] after its last use.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use rmcp::transport::streamable_http_server::session::{SessionState, SessionStore, SessionStoreError};
use tempfile::NamedTempFile;

use super::file_name;

/// Maximum number of sessions; the oldest are removed first.
const MAX_ENTRIES: usize = 1_000;
/// Retention of an unused session.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Maximum size of a file. Clients send a few hundred bytes.
const MAX_FILE_BYTES: u64 = 256 << 10;

/// Files of client sessions.
#[derive(Clone, Debug)]
pub(super) struct Sessions {
    folder: PathBuf,
}

impl Sessions {
    /// Opens or creates the folder and removes expired files.
    pub(super) fn open(folder: PathBuf) -> io::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&folder)?;
        prune(&folder, SystemTime::now());
        Ok(Self { folder })
    }

    fn path(&self, id: &str) -> Option<PathBuf> {
        Some(self.folder.join(file_name(id)?))
    }
}

#[async_trait]
impl SessionStore for Sessions {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        let Some(path) = self.path(id) else { return Ok(None) };
        Ok(tokio::task::spawn_blocking(move || load(&path, SystemTime::now())).await?)
    }

    async fn store(&self, id: &str, state: &SessionState) -> Result<(), SessionStoreError> {
        let Some(path) = self.path(id) else { return Err("not an id of a session".into()) };
        let (text, folder) = (serde_json::to_vec(state)?, self.folder.clone());
        tokio::task::spawn_blocking(move || {
            prune(&folder, SystemTime::now());
            store(&folder, &path, &text)
        })
        .await??;
        Ok(())
    }

    async fn delete(&self, id: &str) -> Result<(), SessionStoreError> {
        let Some(path) = self.path(id) else { return Ok(()) };
        match tokio::task::spawn_blocking(move || fs::remove_file(path)).await? {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// Loads a session. A file that is expired, too large, a link or malformed counts as absent: the client initializes
/// again.
fn load(path: &Path, now: SystemTime) -> Option<SessionState> {
    let metadata = fs::symlink_metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES || is_old(&metadata, now) {
        return None;
    }
    let state = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    // Renews the session. A failure only makes it expire earlier.
    let _ = fs::File::options().append(true).open(path).and_then(|file| file.set_modified(now));
    Some(state)
}

/// Writes a file atomically. Temporary files are accessible to the owner only.
fn store(folder: &Path, path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text)?;
    file.persist(path)?;
    Ok(())
}

/// Removes expired sessions, and the oldest so that there is room for one more.
fn prune(folder: &Path, now: SystemTime) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut kept = Vec::new();
    for entry in entries.flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        if is_old(&metadata, now) {
            // A file that remains is found again next time.
            let _ = fs::remove_file(entry.path());
        } else {
            kept.push((metadata.modified().unwrap_or(now), entry.path()));
        }
    }
    kept.sort();
    let too_many = (kept.len() + 1).saturating_sub(MAX_ENTRIES);
    for (_, path) in kept.into_iter().take(too_many) {
        let _ = fs::remove_file(path);
    }
}

fn is_old(metadata: &fs::Metadata, now: SystemTime) -> bool {
    let age = metadata.modified().ok().and_then(|then| now.duration_since(then).ok());
    age.is_some_and(|age| age > RETENTION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn state() -> SessionState {
        serde_json::from_value(json!({
            "initialize_params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            },
        }))
        .expect("a state")
    }

    #[tokio::test]
    async fn a_session_is_found_by_its_id_until_it_is_ended() {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let folder = parent.path().join("a/b");
        let sessions = Sessions::open(folder.clone()).expect("a folder");
        sessions.store("0a-1b", &state()).await.expect("room");
        let again = Sessions::open(folder.clone()).expect("the same folder");
        let found = again.load("0a-1b").await.expect("a readable folder").expect("the session");
        assert_eq!(found.initialize_params.client_info.name, "test");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
            assert_eq!((mode(&folder), mode(&folder.join("0a-1b.json"))), (0o700, 0o600));
        }
        again.delete("0a-1b").await.expect("it goes");
        again.delete("0a-1b").await.expect("it is gone");
        assert!(sessions.load("0a-1b").await.expect("a readable folder").is_none());
    }

    #[tokio::test]
    async fn ids_from_outside_reach_no_other_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let sessions = Sessions::open(folder.path().join("in")).expect("a folder");
        let text = serde_json::to_vec(&state()).expect("JSON");
        fs::write(folder.path().join("out.json"), &text).expect("a file");
        fs::write(folder.path().join("in/broken.json"), "{").expect("a file");
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path().join("out.json"), folder.path().join("in/link.json")).expect("a link");
        for id in ["../out", "..", "", "a/b", "link", "broken"] {
            assert!(sessions.load(id).await.expect("no failure").is_none(), "{id}");
        }
        assert!(sessions.store("../out", &state()).await.is_err());
        sessions.delete("../out").await.expect("nothing happens");
        assert!(folder.path().join("out.json").exists());
    }

    #[tokio::test]
    async fn old_sessions_and_too_many_of_them_go() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let now = SystemTime::now();
        let age = |name: &str, seconds: u64| {
            let file = fs::File::create(folder.path().join(name)).expect("a file");
            file.set_modified(now - Duration::from_secs(seconds)).expect("a time");
        };
        age("old.json", RETENTION.as_secs() + 60);
        for number in 0..MAX_ENTRIES {
            age(&format!("{number}.json"), 60 + number as u64);
        }
        let sessions = Sessions::open(folder.path().to_owned()).expect("the folder");
        assert!(!folder.path().join("old.json").exists());
        let oldest = folder.path().join(format!("{}.json", MAX_ENTRIES - 1));
        assert!(!oldest.exists() && folder.path().join("0.json").exists());
        sessions.store("new", &state()).await.expect("room");
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), MAX_ENTRIES);
    }
}
