//! File in the state folder with the address of the running server.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// File name in the state folder.
const NOTE: &str = "server.json";

/// Content of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    port: u16,
    pid: u32,
    version: String,
    /// Port of the bridge, if the server has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bridge_port: Option<u16>,
}

/// The file of a running server, removed on drop.
#[derive(Debug)]
pub(super) struct Announcement {
    path: PathBuf,
}

impl Announcement {
    /// Writes the file atomically.
    pub(super) fn write(folder: &Path, port: u16, bridge_port: Option<u16>, version: &str) -> Result<Self> {
        let path = folder.join(NOTE);
        let note = Note { port, pid: std::process::id(), version: version.to_owned(), bridge_port };
        let failed = |cause: std::io::Error| Error::file("write", &path, cause);
        let mut file = NamedTempFile::new_in(folder).map_err(failed)?;
        serde_json::to_writer(&mut file, &note).map_err(|error| failed(error.into()))?;
        file.write_all(b"\n").map_err(failed)?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        Ok(Self { path })
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // Another server may have taken over the folder; then the file is not ours.
        let note = fs::read(&self.path).ok().and_then(|bytes| serde_json::from_slice::<Note>(&bytes).ok());
        if note.is_some_and(|note| note.pid == std::process::id()) {
            // A leftover file is harmless: its process is gone.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_there_while_its_server_is() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let folder = folder.path();
        let announcement = Announcement::write(folder, 8100, None, "1.2.3").expect("a note");
        let text = fs::read_to_string(folder.join(NOTE)).expect("the note");
        assert_eq!(text, format!("{{\"port\":8100,\"pid\":{},\"version\":\"1.2.3\"}}\n", std::process::id()));
        drop(announcement);
        assert!(!folder.join(NOTE).exists());
    }

    #[test]
    fn the_note_of_another_server_stays() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let announcement = Announcement::write(folder.path(), 8100, Some(8201), "1").expect("a note");
        fs::write(folder.path().join(NOTE), r#"{"port":1,"pid":1,"version":"1"}"#).expect("a note");
        drop(announcement);
        assert!(folder.path().join(NOTE).exists());
    }
}
