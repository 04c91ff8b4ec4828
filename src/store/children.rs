//! The shells of a server, so that the next one can find those that outlived it.
//!
//! A process is known by its number and the moment it started; a number alone may be another's by now. Shells end with
//! the terminal that a killed server takes along, except those that do not care for a hang-up.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{files, snapshot};
use crate::terminal::local::pty::{self, Control, Signal};

const SCHEMA: &str = "kpty_children_v1";
const MAX_BYTES: u64 = 4 << 20;
/// What to send, in this order, and how long each is given.
const STEPS: [(Signal, Duration); 3] = [
    (Signal::HangUp, Duration::from_millis(400)),
    (Signal::Terminate, Duration::from_millis(600)),
    (Signal::Kill, Duration::from_secs(2)),
];

/// A shell that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Child {
    session_id: String,
    pid: u32,
    /// As the system counts it, from its own start.
    started: u64,
}

impl Child {
    /// The shell of a session, if the system tells when it started.
    pub(super) fn new(session_id: &str, pid: u32) -> Option<Self> {
        Some(Self { session_id: session_id.to_owned(), pid, started: pty::started(pid)? })
    }
}

/// A shell whose server is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan(pub(super) Child);

#[derive(Serialize, Deserialize)]
struct Children {
    schema: String,
    /// Which start of the system the moments are counted from.
    boot_id: String,
    children: Vec<Child>,
}

/// The file for these children.
pub(super) fn file(children: &[Child]) -> io::Result<Vec<u8>> {
    let file = Children { schema: SCHEMA.to_owned(), boot_id: boot_id(), children: children.to_vec() };
    let mut bytes = serde_json::to_vec(&file)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Those of a file that still live. A file that makes no sense is set aside.
pub(super) fn read(path: &Path) -> Vec<Orphan> {
    let read = match files::read(path, MAX_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => Err(error.to_string()),
        Ok(bytes) => serde_json::from_slice::<Children>(&bytes).map_err(|error| error.to_string()),
    };
    let problem = match read {
        Ok(found) if found.schema == SCHEMA && found.boot_id == boot_id() => {
            let (alive, gone): (Vec<_>, _) = found.children.into_iter().partition(is_alive);
            gone.iter().for_each(report_members);
            return alive.into_iter().map(Orphan).collect();
        }
        // The system has been started anew: nobody is left.
        Ok(found) if found.schema == SCHEMA => return Vec::new(),
        Ok(_) => format!("its schema is not {SCHEMA}"),
        Err(problem) => problem,
    };
    snapshot::put_aside(path, &problem);
    Vec::new()
}

fn is_alive(child: &Child) -> bool {
    child.pid > 1 && pty::started(child.pid) == Some(child.started)
}

/// What a shell started may live on without it. Its session's number is not used again while it does, but whether the
/// shell was the one that we knew cannot be told any more: so it is only named.
fn report_members(child: &Child) {
    let left = if child.pid > 1 { pty::session_members(child.pid) } else { Vec::new() };
    if !left.is_empty() {
        tracing::warn!("processes {left:?} may be left of {}, whose server was killed", child.session_id);
    }
}

/// Ends shells that outlived their server, with all that runs in their terminals.
pub(super) async fn end_orphans(orphans: Vec<Orphan>) {
    let mut ends = tokio::task::JoinSet::new();
    for orphan in orphans {
        ends.spawn(end(orphan));
    }
    while ends.join_next().await.is_some() {}
}

async fn end(Orphan(child): Orphan) {
    let id = &child.session_id;
    tracing::warn!("the shell of {id}, process {}, outlived its server and is ended", child.pid);
    let mut known: Vec<(u32, u64)> = vec![(child.pid, child.started)];
    for (signal, patience) in STEPS {
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
        // Who is left gets the next signal.
        let _ = tokio::time::timeout(patience, ended).await;
    }
    known.retain(|&(pid, started)| pty::started(pid) == Some(started));
    if !known.is_empty() {
        tracing::error!("processes of {id} would not end: {known:?}");
    }
}

/// The number of this start of the system; nothing where it has none.
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
        let child = Child::new("pty_1", process.id()).expect("a child");
        let another = Child { started: child.started + 1, ..child.clone() };
        let init = Child { pid: 1, started: pty::started(1).unwrap_or_default(), ..child.clone() };
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
