//! The registry on disk, `pty_registry_v1`: what may be read from it, and how it is written.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::files;
use crate::model::{SessionRecord, iso_time};
use crate::registry::is_session_id;

const SCHEMA: &str = "pty_registry_v1";
/// The schema without its version.
const SCHEMA_NAME: &str = "pty_registry_v";
/// The largest registry that is read: room for 10,000 sessions with long fields.
const MAX_BYTES: u64 = 16 << 20;
/// Sessions that are read at most.
const MAX_SESSIONS: usize = 10_000;
/// The longest text of a session that is read.
const MAX_TEXT: usize = 4_096;

#[derive(Serialize)]
struct Registry<'a> {
    schema: &'static str,
    saved_at: String,
    sessions: &'a [SessionRecord],
    count: usize,
}

/// Entries are read one by one, so that one that makes no sense costs only itself.
#[derive(Deserialize)]
struct Found {
    schema: String,
    sessions: Vec<Value>,
}

/// The file for these sessions.
pub(super) fn registry(records: &[SessionRecord]) -> io::Result<Vec<u8>> {
    let file =
        Registry { schema: SCHEMA, saved_at: iso_time(SystemTime::now()), sessions: records, count: records.len() };
    let mut bytes = serde_json::to_vec_pretty(&file)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// What a registry file says, and whether all of it was understood. One that was not is set aside.
pub(super) fn read_registry(path: &Path) -> (Vec<SessionRecord>, bool) {
    let parsed = match files::read(path, MAX_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return (Vec::new(), true),
        Err(error) => Err(Unread { salvaged: Vec::new(), problem: error.to_string() }),
        Ok(bytes) => parse(&bytes),
    };
    let (records, problem) = match parsed {
        Ok((records, 0)) => return (records, true),
        Ok((records, bad)) => (records, format!("{bad} of its sessions make no sense")),
        Err(Unread { salvaged, problem }) => {
            let count = salvaged.len();
            (salvaged, format!("{problem}; {count} of its sessions can be read"))
        }
    };
    put_aside(path, &problem);
    (records, false)
}

/// Takes a file out of the way that cannot be understood.
pub(super) fn put_aside(path: &Path, problem: &str) {
    match files::set_aside(path) {
        Ok(aside) => tracing::warn!("{} is not used: {problem}. It is kept as {}", path.display(), aside.display()),
        Err(cause) => tracing::warn!("{} is not used: {problem}. It stays where it is: {cause}", path.display()),
    }
}

/// A file that is no registry, and the sessions that can be read from it all the same.
#[derive(Debug, PartialEq)]
struct Unread {
    salvaged: Vec<SessionRecord>,
    problem: String,
}

/// The sessions that make sense, and the number of those that do not.
fn parse(bytes: &[u8]) -> Result<(Vec<SessionRecord>, usize), Unread> {
    let found: Found = match serde_json::from_slice(bytes) {
        Ok(found) => found,
        Err(error) => {
            let problem = format!("it is not a registry: {error}");
            return Err(Unread { salvaged: salvage(bytes), problem });
        }
    };
    if found.schema != SCHEMA {
        return Err(Unread { salvaged: salvage(bytes), problem: format!("its schema is not {SCHEMA}") });
    }
    let total = found.sessions.len();
    let records = sensible(found.sessions.into_iter());
    let bad = total - records.len();
    Ok((records, bad))
}

/// The entries that make sense, each session once.
fn sensible(entries: impl Iterator<Item = Value>) -> Vec<SessionRecord> {
    let mut ids = HashSet::new();
    entries
        .take(MAX_SESSIONS)
        .filter_map(|entry| serde_json::from_value(entry).ok().filter(is_sensible))
        .filter(|record| ids.insert(record.session_id.clone()))
        .collect()
}

/// The entries of a damaged file: every object that is whole and a session. A file of another version is left alone: what
/// its entries mean is not known here.
fn salvage(bytes: &[u8]) -> Vec<SessionRecord> {
    let text = String::from_utf8_lossy(bytes);
    let is_other = text.match_indices(SCHEMA_NAME).any(|(at, _)| {
        let rest = &text[at + SCHEMA_NAME.len()..];
        let version = rest.split('"').next().unwrap_or_default();
        rest.len() > version.len() && version != "1" && version.parse::<u32>().is_ok()
    });
    if is_other {
        return Vec::new();
    }
    let mut at = 0;
    let entries = std::iter::from_fn(|| {
        loop {
            at += bytes.get(at..)?.iter().position(|&byte| byte == b'{')?;
            let mut objects = serde_json::Deserializer::from_slice(&bytes[at..]).into_iter::<Value>();
            match objects.next() {
                Some(Ok(entry)) if entry.get("session_id").is_some() => {
                    at += objects.byte_offset();
                    return Some(entry);
                }
                // What is around entries, or damaged: the next one may begin right behind its bracket.
                _ => at += 1,
            }
        }
    });
    sensible(entries)
}

fn is_sensible(record: &SessionRecord) -> bool {
    let optional = [
        &record.desktop_url,
        &record.owner_agent_id,
        &record.owner_session_id,
        &record.label,
        &record.claude_code_session_id,
    ];
    let texts = [&record.cli_type, &record.created_at, &record.last_heartbeat];
    is_session_id(&record.session_id) && optional.into_iter().flatten().chain(texts).all(|text| text.len() <= MAX_TEXT)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn session(id: &str) -> Value {
        json!({
            "session_id": id, "source": "desktop", "desktop_url": "http://127.0.0.1:8201", "cli_type": "shell", "pid": 7,
            "created_at": "2026-01-01T00:00:00+00:00", "last_heartbeat": "2026-01-01T00:00:00.5+00:00",
            "owner_agent_id": "a", "owner_session_id": null, "owner_role": "leader", "label": "ä",
        })
    }

    fn file(schema: &str, sessions: &[Value]) -> Vec<u8> {
        json!({ "schema": schema, "saved_at": "", "sessions": sessions, "count": 9 }).to_string().into_bytes()
    }

    /// The registry takes ids that cannot name a folder; a desktop session has none.
    #[test]
    fn every_id_that_can_be_registered_is_kept() {
        let (records, bad) = parse(&file(SCHEMA, &[session("window:1.terminal_2")])).expect("a registry");
        assert_eq!((records.len(), bad), (1, 0));
    }

    #[test]
    fn what_is_written_is_read() {
        let (records, bad) = parse(&file(SCHEMA, &[session("a"), session("b-2")])).expect("a registry");
        assert_eq!((records.len(), bad), (2, 0));
        let written = registry(&records).expect("a file");
        assert!(written.ends_with(b"\n  \"count\": 2\n}\n"), "{}", String::from_utf8_lossy(&written));
        assert_eq!(parse(&written), Ok((records, 0)));
    }

    #[test]
    fn an_entry_that_makes_no_sense_costs_only_itself() {
        let long = json!({ "label": "x".repeat(MAX_TEXT + 1) });
        let mut too_long = session("long");
        too_long["label"] = long["label"].clone();
        let mut wrong_type = session("wrong");
        wrong_type["pid"] = json!("seven");
        let entries = [session("a"), session("../b"), session("a"), too_long, wrong_type, json!(7), session("c")];
        let (records, bad) = parse(&file(SCHEMA, &entries)).expect("a registry");
        assert_eq!(records.iter().map(|record| record.session_id.as_str()).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(bad, 5);
    }

    /// Cut at every length, and with every byte changed: read or set aside, never a panic, never a file lost.
    #[test]
    fn a_damaged_file_is_read_as_far_as_it_makes_sense_or_set_aside() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("_registry.json");
        let whole = file(SCHEMA, &[session("a"), session("b")]);
        let cut = (0..whole.len()).map(|length| whole[..length].to_vec());
        let flipped = (0..whole.len()).map(|at| {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x11;
            bytes
        });
        for bytes in cut.chain(flipped).chain([file("pty_registry_v2", &[]), vec![b'['; 100_000]]) {
            fs::write(&path, &bytes).expect("a file");
            let (records, is_whole) = read_registry(&path);
            assert_eq!(path.exists(), is_whole);
            assert!(!is_whole || records.len() == 2, "{}", String::from_utf8_lossy(&bytes));
        }
        let aside = fs::read_dir(folder.path()).expect("the folder").count();
        assert!((2..=4).contains(&aside), "{aside}");
    }

    /// Of a file that was cut, all entries before the cut come back; one changed byte costs one entry at most.
    #[test]
    fn every_entry_that_can_be_read_comes_back() {
        let ids: Vec<String> = (0..4).map(|number| format!("s{number}")).collect();
        let entries: Vec<Value> = ids.iter().map(|id| session(id)).collect();
        for whole in [file(SCHEMA, &entries), registry(&sensible(entries.iter().cloned())).expect("a file")] {
            let text = String::from_utf8(whole.clone()).expect("UTF-8");
            let found = |bytes: &[u8]| match parse(bytes) {
                Ok((records, _)) => records.len(),
                Err(unread) => unread.salvaged.len(),
            };
            assert_eq!(found(&whole), 4);
            // Entries have no braces inside.
            let last = text.rfind('}').expect("an end");
            for length in 0..last {
                let complete = text.as_bytes()[..length].iter().filter(|&&byte| byte == b'}').count();
                assert_eq!(found(&whole[..length]), complete, "cut at {length}");
            }
            let version = text.find(SCHEMA).expect("the schema") + SCHEMA_NAME.len();
            for at in (0..whole.len()).filter(|&at| at != version) {
                for change in [0x01, 0x11, 0x80] {
                    let mut bytes = whole.clone();
                    bytes[at] ^= change;
                    assert!(found(&bytes) >= 3, "byte {at} ^ {change:x}: {}", String::from_utf8_lossy(&bytes));
                }
            }
        }
        assert_eq!(salvage(&file("pty_registry_v2", &[session("a")])), []);
    }

    #[test]
    fn a_hostile_file_is_given_up_soon() {
        let piece = br#"{"a":{"session_id":[{""#;
        let bytes: Vec<u8> = piece.iter().copied().cycle().take(1 << 20).collect();
        assert_eq!(salvage(&bytes), []);
    }
}
