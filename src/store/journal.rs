//! Logs of events, one JSON object per line: appended to, and bounded by a second file that takes the older half.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::SystemTime;

use serde_json::{Value, json};

use super::{files, snapshot};
use crate::model::{SessionRecord, iso_time};

/// A log that would become larger is moved away, over the one that was moved away before.
const MAX_BYTES: u64 = 4 << 20;

/// Something that happened to a session.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    pub(super) session_id: String,
    line: Value,
}

impl Event {
    /// An event that happened now.
    pub(super) fn now(name: &str, session_id: &str, more: Value) -> Self {
        let mut line = json!({ "ts": iso_time(SystemTime::now()), "event": name, "session_id": session_id });
        if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
            line.extend(more);
        }
        Self { session_id: session_id.to_owned(), line }
    }
}

/// What happened between two states of the registry.
pub(super) fn between(before: &[SessionRecord], after: &[SessionRecord]) -> Vec<Event> {
    let index = |records: &[SessionRecord]| -> HashMap<String, SessionRecord> {
        records.iter().map(|record| (record.session_id.clone(), record.clone())).collect()
    };
    let (old, new) = (index(before), index(after));
    let gone = before.iter().filter(|record| !new.contains_key(&record.session_id));
    let gone = gone.map(|record| Event::now("session_killed", &record.session_id, json!({ "reason": "unregister" })));
    let changes = after.iter().filter_map(|record| {
        let owner = &record.owner_agent_id;
        match old.get(&record.session_id) {
            None => {
                let more = json!({
                    "source": record.source, "cli_type": record.cli_type, "pid": record.pid, "owner_agent_id": owner,
                });
                Some(Event::now("session_created", &record.session_id, more))
            }
            Some(before) if !has_same_owner(before, record) => {
                Some(Event::now("ownership_updated", &record.session_id, json!({ "owner_agent_id": owner })))
            }
            Some(_) => None,
        }
    });
    gone.chain(changes).collect()
}

fn has_same_owner(a: &SessionRecord, b: &SessionRecord) -> bool {
    let owner = |record: &SessionRecord| {
        let SessionRecord { owner_agent_id, owner_session_id, owner_role, label, .. } = record.clone();
        (owner_agent_id, owner_session_id, owner_role, label)
    };
    owner(a) == owner(b)
}

/// Adds events to a log, on lines of their own even when the last one was cut short.
pub(super) fn append(path: &Path, events: &[Event]) -> io::Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let mut text: String = events.iter().map(|event| format!("{}\n", event.line)).collect();
    let mut file = open(path)?;
    let length = file.metadata()?.len();
    if length > 0 && length + text.len() as u64 > MAX_BYTES {
        drop(file);
        fs::rename(path, path.with_extension("1.jsonl"))?;
        file = open(path)?;
    } else if length > 0 && last_byte(&mut file)? != b'\n' {
        text.insert(0, '\n');
    }
    file.write_all(text.as_bytes())
}

/// The log, made when missing; what is no file of ours gives way.
fn open(path: &Path) -> io::Result<File> {
    let open = || files::open(path, OpenOptions::new().read(true).append(true).create(true));
    match open() {
        Err(error) if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) => {
            snapshot::put_aside(path, &error.to_string());
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
    use super::*;
    use crate::model::Source;

    fn record(id: &str, owner: Option<&str>) -> SessionRecord {
        SessionRecord {
            session_id: id.to_owned(),
            source: Source::Local,
            desktop_url: None,
            cli_type: "shell".to_owned(),
            pid: 7,
            created_at: String::new(),
            last_heartbeat: String::new(),
            owner_agent_id: owner.map(str::to_owned),
            owner_session_id: None,
            owner_role: None,
            label: None,
            claude_code_session_id: None,
        }
    }

    #[test]
    fn events_are_the_difference_of_two_states() {
        let before = [record("a", None), record("b", None), record("c", None)];
        let after = [record("b", Some("x")), record("c", None), record("d", Some("y"))];
        let told: Vec<_> = between(&before, &after)
            .into_iter()
            .map(|event| (event.line["event"].as_str().expect("a name").to_owned(), event.session_id))
            .collect();
        let expected = [("session_killed", "a"), ("ownership_updated", "b"), ("session_created", "d")];
        assert_eq!(told, expected.map(|(event, id)| (event.to_owned(), id.to_owned())));
        assert_eq!(between(&after, &after), []);
    }

    #[test]
    fn half_a_line_does_not_spoil_the_next() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("events.jsonl");
        fs::write(&path, "{\"half\":").expect("a file");
        append(&path, &[Event::now("one", "a", json!({})), Event::now("two", "a", json!({ "n": 1 }))]).expect("a log");
        let text = fs::read_to_string(&path).expect("the log");
        let lines: Vec<_> = text.lines().map(serde_json::from_str::<Value>).collect();
        assert!(lines.len() == 3 && lines[0].is_err() && lines[1].is_ok(), "{text}");
        assert_eq!(lines[2].as_ref().expect("JSON")["n"], 1);
    }

    #[test]
    fn a_log_is_bounded() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("events.jsonl");
        let event = Event::now("large", "a", json!({ "text": "x".repeat(1 << 20) }));
        for _ in 0..20 {
            append(&path, std::slice::from_ref(&event)).expect("a log");
        }
        let sizes = fs::read_dir(folder.path()).expect("the folder").map(|entry| entry.expect("a file").metadata());
        let sizes: Vec<u64> = sizes.map(|found| found.expect("a file").len()).collect();
        assert!(sizes.len() == 2 && sizes.iter().all(|&size| size <= MAX_BYTES), "{sizes:?}");
    }
}
