//! JournalEntry logs with one JSON object per line. A log is append-only and bounded: a full log replaces one older file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::SystemTime;

use serde_json::{Map, Value};

use super::{files, snapshot};
use crate::model::iso_time;
use crate::registry::RegistryEvent;

/// Maximum size of a log. A log that would exceed it is renamed over the previous one.
const MAX_BYTES: u64 = 4 << 20;

/// An event of a session.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JournalEntry {
    pub(super) session_id: String,
    line: Value,
}

impl JournalEntry {
    /// Creates an event with the current time.
    pub(super) fn now(name: &str, session_id: &str, more: Value) -> Self {
        Self::at(SystemTime::now(), name, session_id, more.as_object().cloned().unwrap_or_default())
    }

    fn at(time: SystemTime, name: &str, session_id: &str, more: Map<String, Value>) -> Self {
        let mut line = Map::new();
        line.insert("ts".to_owned(), iso_time(time).into());
        line.insert("event".to_owned(), name.into());
        line.insert("session_id".to_owned(), session_id.into());
        line.extend(more);
        Self { session_id: session_id.to_owned(), line: line.into() }
    }
}

impl From<&RegistryEvent> for JournalEntry {
    fn from(event: &RegistryEvent) -> Self {
        Self::at(event.at, event.event, &event.session_id, event.details.clone())
    }
}

/// Appends events to a log.
pub(super) fn append(path: &Path, events: &[JournalEntry]) -> io::Result<()> {
    let text: String = events.iter().map(|event| format!("{}\n", event.line)).collect();
    append_lines(path, text.as_bytes())
}

/// Appends complete lines to a log, also when its last line was truncated.
pub(super) fn append_lines(path: &Path, lines: &[u8]) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut file = open(path)?;
    let length = file.metadata()?.len();
    if length > 0 && length + lines.len() as u64 > MAX_BYTES {
        drop(file);
        fs::rename(path, path.with_extension("1.jsonl"))?;
        return open(path)?.write_all(lines);
    }
    if length > 0 && last_byte(&mut file)? != b'\n' {
        return file.write_all(&[b"\n", lines].concat());
    }
    file.write_all(lines)
}

/// Opens or creates the log. Quarantines anything at its path that is not a regular file of the current user.
fn open(path: &Path) -> io::Result<File> {
    let open = || files::open(path, OpenOptions::new().read(true).append(true).create(true));
    match open() {
        Err(error) if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) => {
            snapshot::quarantine_and_log(path, &error.to_string());
            open()
        }
        opened => opened,
    }
}

fn last_byte(file: &mut File) -> io::Result<u8> {
    let mut byte = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut byte)?;
    Ok(byte[0])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_keeps_its_time_and_what_belongs_to_it() {
        let details = json!({ "reason": "kill" }).as_object().cloned().expect("an object");
        let at = std::time::UNIX_EPOCH;
        let event = RegistryEvent { at, event: "session_killed", session_id: "a".to_owned(), details };
        let line = JournalEntry::from(&event).line;
        let expected = json!({
            "ts": "1970-01-01T00:00:00+00:00", "event": "session_killed", "session_id": "a", "reason": "kill",
        });
        assert_eq!(line, expected);
    }

    #[test]
    fn half_a_line_does_not_spoil_the_next() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("events.jsonl");
        fs::write(&path, "{\"half\":").expect("a file");
        append(&path, &[JournalEntry::now("one", "a", json!({})), JournalEntry::now("two", "a", json!({ "n": 1 }))])
            .expect("a log");
        let text = fs::read_to_string(&path).expect("the log");
        let lines: Vec<_> = text.lines().map(serde_json::from_str::<Value>).collect();
        assert!(lines.len() == 3 && lines[0].is_err() && lines[1].is_ok(), "{text}");
        assert_eq!(lines[2].as_ref().expect("JSON")["n"], 1);
    }

    #[test]
    fn a_log_is_bounded() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("events.jsonl");
        let event = JournalEntry::now("large", "a", json!({ "text": "x".repeat(1 << 20) }));
        for _ in 0..20 {
            append(&path, std::slice::from_ref(&event)).expect("a log");
        }
        let sizes = fs::read_dir(folder.path()).expect("the folder").map(|entry| entry.expect("a file").metadata());
        let sizes: Vec<u64> = sizes.map(|found| found.expect("a file").len()).collect();
        assert!(sizes.len() == 2 && sizes.iter().all(|&size| size <= MAX_BYTES), "{sizes:?}");
    }
}
