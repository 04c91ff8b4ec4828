//! The registry file, `pty_registry_v1`: validation when it is read, and serialization.

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
/// Schema name without the version.
const SCHEMA_NAME: &str = "pty_registry_v";
/// Maximum size of a registry file: room for 10,000 sessions with long fields.
const MAX_BYTES: u64 = 16 << 20;
/// Maximum number of sessions read.
const MAX_SESSIONS: usize = 10_000;
/// Maximum length of a text field.
const MAX_TEXT: usize = 4_096;

#[derive(Serialize)]
struct Registry<'a> {
    schema: &'static str,
    saved_at: String,
    sessions: &'a [SessionRecord],
    count: usize,
}

/// Entries stay untyped, so that one invalid entry does not lose the others.
#[derive(Deserialize)]
struct RegistryFile {
    schema: String,
    sessions: Vec<Value>,
}

/// Serializes the registry file.
pub(super) fn registry(records: &[SessionRecord]) -> io::Result<Vec<u8>> {
    let file =
        Registry { schema: SCHEMA, saved_at: iso_time(SystemTime::now()), sessions: records, count: records.len() };
    let mut bytes = serde_json::to_vec_pretty(&file)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Reads a registry file. Returns its sessions and whether all of it was valid; quarantines the file otherwise.
pub(super) fn read_registry(path: &Path) -> (Vec<SessionRecord>, bool) {
    let parsed = match files::read(path, MAX_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return (Vec::new(), true),
        Err(error) => Err(UnreadableRegistry { salvaged: Vec::new(), problem: error.to_string() }),
        Ok(bytes) => parse(&bytes),
    };
    let (records, problem) = match parsed {
        Ok((records, 0)) => return (records, true),
        Ok((records, bad)) => (records, format!("{bad} of its sessions make no sense")),
        Err(UnreadableRegistry { salvaged, problem }) => {
            let count = salvaged.len();
            (salvaged, format!("{problem}; {count} of its sessions can be read"))
        }
    };
    quarantine_and_log(path, &problem);
    (records, false)
}

/// Quarantines an invalid file and logs why.
pub(super) fn quarantine_and_log(path: &Path, problem: &str) {
    match files::quarantine(path) {
        Ok(aside) => tracing::warn!("{} is not used: {problem}. It was renamed to {}", path.display(), aside.display()),
        Err(cause) => tracing::warn!("{} is not used: {problem}. It stays where it is: {cause}", path.display()),
    }
}

/// A file that is not a registry, and the sessions recovered from it.
#[derive(Debug, PartialEq)]
struct UnreadableRegistry {
    salvaged: Vec<SessionRecord>,
    problem: String,
}

/// Returns the valid sessions and the number of invalid ones.
fn parse(bytes: &[u8]) -> Result<(Vec<SessionRecord>, usize), UnreadableRegistry> {
    let found: RegistryFile = match serde_json::from_slice(bytes) {
        Ok(found) => found,
        Err(error) => {
            let problem = format!("it is not a registry: {error}");
            return Err(UnreadableRegistry { salvaged: salvage(bytes), problem });
        }
    };
    if found.schema != SCHEMA {
        return Err(UnreadableRegistry { salvaged: salvage(bytes), problem: format!("its schema is not {SCHEMA}") });
    }
    let total = found.sessions.len();
    let records = valid_entries(found.sessions.into_iter());
    let bad = total - records.len();
    Ok((records, bad))
}

/// Returns the valid entries, each session once.
fn valid_entries(entries: impl Iterator<Item = Value>) -> Vec<SessionRecord> {
    let mut ids = HashSet::new();
    entries
        .take(MAX_SESSIONS)
        .filter_map(|entry| serde_json::from_value(entry).ok().filter(is_valid))
        .filter(|record| ids.insert(record.session_id.clone()))
        .collect()
}

/// Recovers entries from a damaged file: every complete object that is a valid session. A file of another schema
/// version is not searched, because its fields may mean something else.
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
                // Between entries or inside damage: the next object may begin right after this bracket.
                _ => at += 1,
            }
        }
    });
    valid_entries(entries)
}

fn is_valid(record: &SessionRecord) -> bool {
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

    /// The registry accepts ids that are not valid folder names; a desktop session has no folder.
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

    /// Truncates at every length and changes every byte: the file is read or quarantined, without a panic and without
    /// losing the file.
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

    /// A truncated file yields every entry before the cut; one changed byte loses one entry at most.
    #[test]
    fn every_entry_that_can_be_read_comes_back() {
        let ids: Vec<String> = (0..4).map(|number| format!("s{number}")).collect();
        let entries: Vec<Value> = ids.iter().map(|id| session(id)).collect();
        for whole in [file(SCHEMA, &entries), registry(&valid_entries(entries.iter().cloned())).expect("a file")] {
            let text = String::from_utf8(whole.clone()).expect("UTF-8");
            let found = |bytes: &[u8]| match parse(bytes) {
                Ok((records, _)) => records.len(),
                Err(unread) => unread.salvaged.len(),
            };
            assert_eq!(found(&whole), 4);
            // Entries contain no nested braces.
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
