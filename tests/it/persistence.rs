//! The state folder under failures: killed servers, planted links, damaged files, failing disks.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use kpty::model::iso_time;
use serde_json::{Value, json};

use crate::live::amount;
use crate::server::Server;
use crate::support::{Folder, finished};

/// Timeout that only a failure reaches.
const DEADLINE: Duration = Duration::from_secs(30);

/// Polls until the condition holds.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::yield_now();
    }
}

fn json_in(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}: {text:?}", path.display()))
}

/// A registry with this many desktop sessions.
fn registry(count: usize) -> String {
    let sessions: Vec<_> = (0..count)
        .map(|n| {
            json!({
                "session_id": format!("desk-{n}"), "source": "desktop", "desktop_url": "http://127.0.0.1:9", "pid": n,
                "cli_type": "shell", "created_at": "2026-01-01T00:00:00+00:00", "label": format!("label {n}"),
                "last_heartbeat": iso_time(SystemTime::now()), "owner_agent_id": null, "owner_session_id": null,
                "owner_role": null, "claude_code_session_id": null,
            })
        })
        .collect();
    json!({ "schema": "pty_registry_v1", "saved_at": "", "sessions": sessions, "count": count }).to_string()
}

/// A state folder with these files, accessible to its owner only.
fn state_with(parent: &Folder, files: &[(&str, &str)]) -> std::path::PathBuf {
    let state = parent.path().join("kept");
    fs::create_dir(&state).expect("a folder");
    for (name, content) in files {
        fs::write(state.join(name), content).expect("a file");
    }
    state
}

fn desktop_sessions(state: &Path) -> usize {
    let registry = json_in(&state.join("_registry.json"));
    assert_eq!(registry["schema"], "pty_registry_v1");
    let sessions = registry["sessions"].as_array().expect("sessions");
    assert_eq!(registry["count"], sessions.len());
    sessions.iter().filter(|session| session["source"] == "desktop").count()
}

/// Reads and validates every file of a state folder.
fn assert_readable(folder: &Path) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(!name.contains(".bad-"), "{name} was set aside");
        match () {
            () if path.is_dir() => assert_readable(&path),
            // A temporary file; the next server removes it.
            () if name.starts_with(".kpty-unfinished-") => {}
            () if name.ends_with(".json") => drop(json_in(&path)),
            () if name.ends_with(".jsonl") => {
                let text = fs::read_to_string(&path).expect("UTF-8");
                for line in text.lines() {
                    serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{name}: {error}: {line:?}"));
                }
            }
            () => {}
        }
    }
}

#[test]
fn a_server_that_ends_saves_what_its_sessions_were() {
    let parent = Folder::new();
    let state = parent.path().join("kept");
    let mut server = Server::start_on(&state);
    let (id, pid) = server.create();
    // In two parts, so that only the output contains the whole text.
    let secret = format!("ghp_{}", "a1".repeat(18));
    let command = format!("echo remember; echo ghp_{{}}{}", "a1".repeat(18)).replace("{}", "''");
    let answer = server.done("talk", json!({ "session_id": id, "command": command }));
    assert_eq!(answer["exit_code"], 0);
    eventually("the child is noted", || {
        fs::read_to_string(state.join("_children.json")).is_ok_and(|text| text.contains(&format!("\"pid\":{pid},")))
    });
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
    let folder = state.join("sessions").join(&id);
    let metadata = json_in(&folder.join("metadata.json"));
    assert_eq!((&metadata["schema"], &metadata["session_id"]), (&json!("pty_session_v1"), &json!(id)));
    assert_eq!((&metadata["is_alive"], &metadata["cols"], &metadata["rows"]), (&json!(false), &json!(120), &json!(30)));
    let buffer = fs::read_to_string(folder.join("buffer.txt")).expect("the buffer");
    assert!(buffer.contains("remember") && !buffer.contains(&secret), "{buffer}");
    let registry = json_in(&state.join("_registry.json"));
    assert_eq!((&registry["schema"], &registry["sessions"]), (&json!("pty_registry_v1"), &json!([])));
    let events = fs::read_to_string(state.join("_registry_events.jsonl")).expect("events");
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let [created, killed] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((&created["event"], &created["session_id"]), (&json!("session_created"), &json!(id)));
    assert_eq!((&created["source"], &created["pid"]), (&json!("local"), &json!(pid)));
    assert_eq!((&killed["event"], &killed["reason"]), (&json!("session_killed"), &json!("shutdown")));
    assert_eq!(json_in(&state.join("_children.json"))["children"], json!([]));
    assert_readable(&state);
    #[cfg(unix)]
    assert_private(&state);
}

/// Folders have mode 0700 and files 0600, recursively.
#[cfg(unix)]
fn assert_private(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let found = fs::symlink_metadata(path).expect("it is there");
    let expected = if found.is_dir() { 0o700 } else { 0o600 };
    assert_eq!(found.permissions().mode() & 0o777, expected, "{}", path.display());
    if found.is_dir() {
        for entry in fs::read_dir(path).expect("a folder") {
            assert_private(&entry.expect("an entry").path());
        }
    }
}

#[test]
fn a_second_server_on_the_same_folder_is_refused() {
    let parent = Folder::new();
    let state = parent.path().join("kept");
    let mut first = Server::start_on(&state);
    let second = finished(Server::serve(&state, parent.path()).output().expect("kpty starts"));
    assert_eq!(second.code, 2, "{}", second.stderr);
    assert!(second.stderr.contains(&format!("process {}", first.pid())), "{}", second.stderr);
    assert_eq!(first.get("/health").status, 200);
    first.signal("KILL");
    first.end();
    assert_eq!(Server::start_on(&state).get("/health").status, 200);
}

#[test]
fn files_that_make_no_sense_are_set_aside_and_the_server_starts() {
    let whole = registry(3);
    for (name, content) in [
        ("_registry.json", ""),
        ("_registry.json", &whole[..whole.len() / 2]),
        ("_registry.json", "\u{0}\u{1}\u{2}"),
        ("_registry.json", "[]"),
        ("_registry.json", &whole.replace("registry_v1", "registry_v9")),
        ("_children.json", "{\"schema\":\"kpty_children_v1\","),
        ("_children.json", "{\"schema\":\"another\",\"boot_id\":\"\",\"children\":[]}"),
    ] {
        let parent = Folder::new();
        let state = state_with(&parent, &[(name, content)]);
        let mut server = Server::start_on(&state);
        assert!(server.said.contains("is not used"), "{}", server.said);
        assert_eq!(fs::read_to_string(state.join(format!("{name}.bad-1"))).expect("set aside"), content);
        let health = server.get("/health").json();
        assert_eq!((&health["ok"], health.get("degraded")), (&json!(true), None), "{health}");
        server.signal("TERM");
        assert_eq!(server.end().code(), Some(0));
        json_in(&state.join(name));
    }
}

#[test]
fn sessions_of_a_registry_that_make_sense_survive_those_that_do_not() {
    let parent = Folder::new();
    let hostile = registry(3).replace("desk-1", "../../desk-1");
    let state = state_with(&parent, &[("_registry.json", &hostile)]);
    let mut server = Server::start_on(&state);
    assert!(server.said.contains("1 of its sessions"), "{}", server.said);
    server.signal("TERM");
    server.end();
    assert_eq!(desktop_sessions(&state), 2);
    assert_eq!(fs::read_to_string(state.join("_registry.json.bad-1")).expect("set aside"), hostile);
}

#[test]
fn a_thousand_sessions_of_the_desktop_cost_no_second() {
    let parent = Folder::new();
    let state = state_with(&parent, &[("_registry.json", &registry(1_000))]);
    let begun = Instant::now();
    let mut server = Server::start_on(&state);
    assert_eq!(server.get("/health").status, 200);
    server.done("list", json!({}));
    let took = begun.elapsed();
    assert!(took <= Duration::from_secs(1), "{took:?}");
    server.signal("TERM");
    server.end();
    assert_eq!(desktop_sessions(&state), 1_000);
}

/// 100 rounds, or 1,000 with `KPTY_SOAK=1`: each start writes the registry, and each session its own files.
#[test]
fn a_server_that_is_killed_while_it_writes_leaves_only_whole_files() {
    const SESSIONS: usize = 300;
    let rounds = amount(100, 1_000);
    let parent = Folder::new();
    let state = state_with(&parent, &[("_registry.json", &registry(SESSIONS))]);
    let mut chance = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..rounds {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut server = Server::start_on(&state);
        assert_eq!(server.said, "", "round {round}");
        for _ in 0..chance >> 62 {
            server.create();
        }
        // A write takes milliseconds and is interrupted at a different point each time.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_micros(chance >> 32 & 0x3fff) {
            std::hint::spin_loop();
        }
        server.signal("KILL");
        server.end();
        assert_readable(&state);
        assert_eq!(desktop_sessions(&state), SESSIONS, "round {round}");
    }
    let mut server = Server::start_on(&state);
    server.signal("TERM");
    server.end();
    let names: Vec<_> =
        fs::read_dir(&state).expect("the folder").map(|entry| entry.expect("a file").file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("unfinished")), "{names:?}");
}

#[test]
#[cfg(unix)]
fn planted_links_lead_nowhere() {
    use std::os::unix::fs::symlink;
    let parent = Folder::new();
    let precious = parent.file("precious", "precious");
    let elsewhere = parent.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a folder");
    let state = state_with(&parent, &[]);
    for name in ["_registry.json", "_registry_events.jsonl", "_children.json", "_lock", "server.json"] {
        symlink(&precious, state.join(name)).expect("a link");
    }
    symlink(&elsewhere, state.join("sessions")).expect("a link");
    let mut server = Server::start_on(&state);
    let (id, _) = server.create();
    server.done("talk", json!({ "session_id": id, "command": "echo hi" }));
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
    assert_eq!(fs::read_to_string(&precious).expect("the file"), "precious");
    assert_eq!(fs::read_dir(&elsewhere).expect("the folder").count(), 0);
    for name in ["_registry.json", "_registry_events.jsonl", "_children.json", "_lock"] {
        assert!(fs::symlink_metadata(state.join(name)).expect("it is there").is_file(), "{name}");
    }
    assert!(state.join("sessions").join(&id).join("buffer.txt").is_file());
    // The folder itself may not be one either.
    let link = parent.path().join("link");
    symlink(&state, &link).expect("a link");
    let run = finished(Server::serve(&link, parent.path()).output().expect("kpty starts"));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("symbolic link"), "{}", run.stderr);
}

#[cfg(target_os = "linux")]
mod linux {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use super::*;

    const NOBODY: u32 = 65_534;

    fn is_root() -> bool {
        rustix::process::geteuid().is_root()
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("our file");
    }

    fn is_running(pid: u32) -> bool {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        state.is_some_and(|state| !"ZX".contains(state))
    }

    fn is_degraded(server: &Server) -> bool {
        let health = server.http("GET", "/health", &[], b"").json();
        assert_eq!(health["ok"], true, "{health}");
        assert_eq!(health["degraded"] == true, health["reason"].is_string(), "{health}");
        health["degraded"] == true
    }

    #[test]
    fn shells_that_outlive_a_killed_server_are_ended_by_the_next() {
        let parent = Folder::new();
        let state = parent.path().join("kept");
        let mut server = Server::start_on(&state);
        let scripts = ["trap '' HUP; echo set; exec sleep 1000", "trap '' HUP TERM; echo set; sleep 1000 & wait"];
        let pids = scripts.map(|script| {
            let made = server.done("create", json!({ "shell": "/bin/sh", "args": ["-c", script] }));
            server.done("wait", json!({ "session_id": made["session_id"], "regex": "^set" }));
            made["pid"].as_u64().expect("a pid") as u32
        });
        eventually("both are noted", || {
            let text = fs::read_to_string(state.join("_children.json")).unwrap_or_default();
            pids.iter().all(|pid| text.contains(&format!("\"pid\":{pid},")))
        });
        server.signal("KILL");
        server.end();
        // SIGHUP arrived when the server ended, before the test could wait for it.
        assert!(pids.iter().all(|&pid| is_running(pid)), "the test needs shells that stay");
        let next = Server::start_on(&state);
        eventually("they are ended", || !pids.iter().any(|&pid| is_running(pid)));
        assert_eq!(next.get("/health").status, 200);
    }

    /// Root can write everywhere, so the server runs as another user with a copy of the program.
    #[test]
    fn a_folder_that_cannot_be_written_stops_nothing() {
        let parent = Folder::new();
        mode(parent.path(), 0o755);
        let state = state_with(&parent, &[("_registry.json", &registry(2))]);
        let mut command = Server::serve(&state, parent.path());
        if is_root() {
            let program = parent.path().join("kpty");
            fs::copy(command.get_program(), &program).expect("a copy");
            let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
            command = Command::new(program);
            command.args(arguments).env("HOME", parent.path()).uid(NOBODY).gid(NOBODY).current_dir("/");
            [state.clone(), state.join("_registry.json")].iter().for_each(|path| {
                chown(path, Some(NOBODY), Some(NOBODY)).expect("root may");
            });
        }
        mode(&state, 0o500);
        let server = Server::launch(command, Folder::new());
        assert!(server.said.contains("cannot be used"), "{}", server.said);
        eventually("the trouble is told", || is_degraded(&server));
        mode(&state, 0o700);
        eventually("it is over", || !is_degraded(&server));
        assert_eq!(desktop_sessions(&state), 2);
    }

    /// A small file system, unmounted on drop.
    struct Disk<'a>(&'a Path);

    impl<'a> Disk<'a> {
        fn mount(path: &'a Path) -> Option<Self> {
            let options = ["-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs"];
            let mounted = Command::new("mount").args(options).arg(path).output();
            mounted.is_ok_and(|output| output.status.success()).then_some(Self(path))
        }
    }

    impl Drop for Disk<'_> {
        fn drop(&mut self) {
            // Lazily, because a server may still have files open.
            let _ = Command::new("umount").arg("-l").arg(self.0).status();
        }
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a test that is left out says so")]
    fn a_full_disk_stops_nothing_and_is_forgotten_when_there_is_room() {
        let parent = Folder::new();
        let state = state_with(&parent, &[]);
        let Some(_disk) = is_root().then(|| Disk::mount(&state)).flatten() else {
            eprintln!("left out: no file system can be mounted here");
            return;
        };
        let server = Server::start_on(&state);
        eventually("a first state", || state.join("_registry.json").is_file());
        let before = json_in(&state.join("_registry.json"));
        // Fills the disk completely.
        let filler = state.join("filler");
        assert!(fs::write(&filler, vec![b'x'; 2 << 20]).is_err(), "the disk is full");
        let (id, _) = server.create();
        let answer = server.done("talk", json!({ "session_id": id, "command": "echo works" }));
        assert_eq!(answer["output"], "works");
        eventually("the trouble is told", || is_degraded(&server));
        assert_eq!(json_in(&state.join("_registry.json")), before);
        let answer = server.done("talk", json!({ "session_id": id, "command": "echo still works" }));
        assert_eq!(answer["output"], "still works");
        fs::remove_file(filler).expect("our file");
        eventually("it is over", || !is_degraded(&server));
        eventually("the session is saved", || {
            let registry = fs::read_to_string(state.join("_registry.json")).unwrap_or_default();
            registry.contains(&id) && state.join("sessions").join(&id).join("buffer.txt").is_file()
        });
    }
}

/// A long-running server removes old files.
#[test]
fn old_sessions_are_removed_while_the_server_runs() {
    let server = Server::start();
    let old = server.state.path().join("state/sessions/pty_of_long_ago");
    // The first pruning is complete when a later session exists.
    server.create();
    std::fs::create_dir_all(&old).expect("a folder");
    let file = std::fs::File::create(old.join("metadata.json")).expect("a file");
    let age = std::time::Duration::from_secs(8 * 24 * 3_600);
    file.set_modified(std::time::SystemTime::now() - age).expect("our file");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    for _ in 0..110 {
        server.done("create", json!({ "shell": "/bin/true" }));
    }
    while old.exists() {
        assert!(std::time::Instant::now() < deadline, "it is still there");
        server.done("create", json!({ "shell": "/bin/true" }));
    }
}
