//! Records the shells of a server, so that the next server finds those that outlived it.
//!
//! A process is identified by its pid and start time, because pids are reused. A shell ends with its terminal when the
//! server is killed, unless it ignores SIGHUP.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{files, snapshot};
use crate::terminal::local::pty::{self, Control, Signal};

const SCHEMA: &str = "kpty_children_v1";
const MAX_BYTES: u64 = 4 << 20;
/// Signals in order, and the timeout of each.
const STEPS: [(Signal, Duration); 3] = [
    (Signal::HangUp, Duration::from_millis(400)),
    (Signal::Terminate, Duration::from_millis(600)),
    (Signal::Kill, Duration::from_secs(2)),
];

/// A running shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChildRecord {
    session_id: String,
    pid: u32,
    /// Start time as the kernel counts it, relative to boot.
    started: u64,
}

impl ChildRecord {
    /// Creates the record of a session's shell; `None` when the system does not report its start time.
    pub(super) fn new(session_id: &str, pid: u32) -> Option<Self> {
        Some(Self { session_id: session_id.to_owned(), pid, started: pty::started(pid)? })
    }
}

/// A shell whose server has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan(pub(super) ChildRecord);

#[derive(Serialize, Deserialize)]
struct ChildrenFile {
    schema: String,
    /// Boot that the start times are relative to.
    boot_id: String,
    children: Vec<ChildRecord>,
}

/// Serializes the file.
pub(super) fn file(children: &[ChildRecord]) -> io::Result<Vec<u8>> {
    let file = ChildrenFile { schema: SCHEMA.to_owned(), boot_id: boot_id(), children: children.to_vec() };
    let mut bytes = serde_json::to_vec(&file)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Reads the file and returns the shells that are still alive. Quarantines an invalid file.
pub(super) fn read(path: &Path) -> Vec<Orphan> {
    let read = match files::read(path, MAX_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => Err(error.to_string()),
        Ok(bytes) => serde_json::from_slice::<ChildrenFile>(&bytes).map_err(|error| error.to_string()),
    };
    let problem = match read {
        Ok(found) if found.schema == SCHEMA && found.boot_id == boot_id() => {
            let (alive, gone): (Vec<_>, _) = found.children.into_iter().partition(is_alive);
            gone.iter().for_each(report_members);
            return alive.into_iter().map(Orphan).collect();
        }
        // The system has rebooted, so no process of that server exists.
        Ok(found) if found.schema == SCHEMA => return Vec::new(),
        Ok(_) => format!("its schema is not {SCHEMA}"),
        Err(problem) => problem,
    };
    snapshot::quarantine_and_log(path, &problem);
    Vec::new()
}

fn is_alive(child: &ChildRecord) -> bool {
    child.pid > 1 && pty::started(child.pid) == Some(child.started)
}

/// Logs processes that a dead shell may have left in its session. The kernel does not reuse the session's number while
/// one of them lives, but nothing proves that the dead shell was ours, so they are not killed.
fn report_members(child: &ChildRecord) {
    let left = if child.pid > 1 { pty::session_members(child.pid) } else { Vec::new() };
    if !left.is_empty() {
        tracing::warn!("processes {left:?} may be leftovers of {}, whose server was killed", child.session_id);
    }
}

/// Ends shells that outlived their server, and every process in their terminals.
pub(super) async fn end_orphans(orphans: Vec<Orphan>) {
    let mut ends = tokio::task::JoinSet::new();
    for orphan in orphans {
        ends.spawn(end(orphan));
    }
    while ends.join_next().await.is_some() {}
}

async fn end(Orphan(child): Orphan) {
    let id = &child.session_id;
    tracing::warn!("ending the shell of {id}, process {}: it outlived its server", child.pid);
    let mut known: Vec<(u32, u64)> = vec![(child.pid, child.started)];
    for (signal, timeout) in STEPS {
        if is_alive(&child) {
            let members = pty::session_members(child.pid).into_iter().filter(|&pid| pid != child.pid);
            let members = members.filter_map(|pid| Some((pid, pty::started(pid)?)));
            known = members.chain([(child.pid, child.started)]).collect();
        }
        known.retain(|&(pid, started)| pty::started(pid) == Some(started));
        known.iter().for_each(|&(pid, _)| Control::signal_process(pid, signal));
        let ended = async {
            for &(pid, _) in &known {
                Control::process_ended(pid).await;
            }
        };
        // Processes that survive get the next signal.
        let _ = tokio::time::timeout(timeout, ended).await;
    }
    known.retain(|&(pid, started)| pty::started(pid) == Some(started));
    if !known.is_empty() {
        tracing::error!("processes of {id} survived every signal: {known:?}");
    }
}

/// Returns the boot id of the system; empty where there is none.
fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[tokio::test]
    async fn a_process_is_ended_only_when_it_is_the_same() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("_children.json");
        let mut process = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat");
        let child = ChildRecord::new("pty_1", process.id()).expect("a child");
        let another = ChildRecord { started: child.started + 1, ..child.clone() };
        let init = ChildRecord { pid: 1, started: pty::started(1).unwrap_or_default(), ..child.clone() };
        std::fs::write(&path, file(&[child.clone(), another, init]).expect("a file")).expect("a file");
        let found = read(&path);
        assert_eq!(found, [Orphan(child)]);
        let text = std::fs::read_to_string(&path).expect("the file").replace(&boot_id(), "another");
        std::fs::write(&path, text).expect("a file");
        assert_eq!(read(&path), []);
        assert!(path.exists());
        end_orphans(found).await;
        assert!(!process.wait().expect("its end").success());
        std::fs::write(&path, "{").expect("a file");
        assert_eq!(read(&path), []);
        assert!(!path.exists());
    }
}
