//! Faults of the programs in sessions: shells that die, hang, stop, are replaced, or never start.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::live::amount;
use crate::live::kill::zombies_of;
use crate::server::Server;

fn talk(server: &Server, id: &str, command: &str, timeout_ms: u64) -> Value {
    server.call("talk", json!({ "session_id": id, "command": command, "timeout_ms": timeout_ms })).0
}

/// The session can be ended, and soon.
fn assert_killable(server: &Server, id: &str) {
    let began = Instant::now();
    let killed = server.done("kill", json!({ "session_id": id }));
    assert_eq!(killed["was_dead"], false, "{killed}");
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[test]
fn a_shell_that_dies_in_the_middle_says_so_at_once() {
    let server = Server::start();
    let (id, pid) = server.create();
    talk(&server, &id, "true", 30_000);
    let (answer, took) = std::thread::scope(|scope| {
        let asked = scope.spawn(|| {
            let answer = talk(&server, &id, "echo a part; sleep 1000", 60_000);
            (answer, Instant::now())
        });
        server.done("wait", json!({ "session_id": id, "regex": "^a part", "timeout_ms": 30_000 }));
        let killed = Instant::now();
        let status = std::process::Command::new("kill").args(["-s", "KILL", &pid.to_string()]).status();
        assert!(status.expect("kill runs").success());
        let (answer, answered) = asked.join().expect("an answer");
        (answer, answered - killed)
    });
    assert_eq!(answer["error_code"], "PTY_PROCESS_EXITED", "{answer}");
    assert!(answer["details"]["partial_output"].as_str().is_some_and(|text| text.contains("a part")), "{answer}");
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn a_shell_that_is_replaced_stopped_or_deaf_is_a_timeout_and_can_be_killed() {
    let server = Server::start();
    for command in [
        "echo a part; exec sleep 1000",
        "echo a part; kill -STOP $$",
        "echo a part; trap '' HUP TERM INT; while :; do sleep 1000; done",
    ] {
        let (id, _) = server.create();
        let answer = talk(&server, &id, command, 3_000);
        assert_eq!(answer["error_code"], "PTY_TIMEOUT", "{command}: {answer}");
        assert!(answer["details"]["partial_output"].as_str().is_some_and(|text| text.contains("a part")), "{answer}");
        let later = talk(&server, &id, "echo later", 500);
        assert!(later["error_code"].is_string(), "{command}: {later}");
        assert_killable(&server, &id);
    }
}

#[test]
fn whatever_is_done_during_a_talk_is_answered_and_a_kill_ends_it() {
    let server = Server::start();
    let (id, _) = server.create();
    talk(&server, &id, "true", 30_000);
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| {
            let answer = talk(&server, &id, "echo begun; sleep 1000", 60_000);
            (answer, Instant::now())
        });
        server.done("wait", json!({ "session_id": id, "regex": "^begun", "timeout_ms": 30_000 }));
        for (action, more) in
            [("read", json!({})), ("term_read", json!({})), ("resize", json!({ "cols": 90, "rows": 20 }))]
        {
            let mut arguments = more;
            arguments["session_id"] = json!(id);
            server.done(action, arguments);
        }
        let killed = Instant::now();
        server.done("kill", json!({ "session_id": id }));
        let (answer, answered) = asked.join().expect("an answer");
        assert!(
            ["PTY_PROCESS_EXITED", "PTY_SESSION_NOT_FOUND"].contains(&answer["error_code"].as_str().unwrap_or("")),
            "{answer}"
        );
        assert!(answered - killed < Duration::from_secs(4), "{:?}", answered - killed);
    });
}

#[test]
fn thousands_of_short_children_leave_no_zombie() {
    let server = Server::start();
    let (id, pid) = server.create();
    let command = format!("for n in {{1..{}}}; do /bin/true & /bin/true; done; wait; echo over", amount(250, 5_000));
    assert_eq!(talk(&server, &id, &command, 300_000)["exit_code"], 0);
    assert_eq!((zombies_of(server.pid()), zombies_of(pid)), (0, 0));
}

#[test]
fn a_shell_that_does_not_start_leaves_no_session() {
    let server = Server::start();
    let folder = server.state.path();
    let plain = folder.join("plain");
    fs::write(&plain, "no program").expect("a writable folder");
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o600)).expect("our file");
    for shell in ["/no/such/shell", plain.to_str().expect("UTF-8"), "/tmp", "no-such-program"] {
        let (answer, is_error) = server.call("create", json!({ "shell": shell }));
        assert!(is_error && answer["error_code"].is_string(), "{shell}: {answer}");
    }
    assert_eq!(server.done("list", json!({}))["sessions"], json!([]));
    // One that ends at once, and one that says much before its prompt.
    let ended = server.done("create", json!({ "shell": "/bin/true" }));
    let answer = talk(&server, ended["session_id"].as_str().expect("an id"), "echo hi", 5_000);
    assert_eq!(answer["error_code"], "PTY_PROCESS_EXITED", "{answer}");
    fs::write(folder.join(".bashrc"), "head -c 1000000 /dev/zero | tr '\\0' 'x'\n").expect("a writable folder");
    let (id, _) = server.create();
    assert_eq!(talk(&server, &id, "echo hi", 60_000)["output"], "hi");
}

#[test]
fn a_folder_that_is_gone_and_an_odd_locale_spoil_nothing() {
    let server = Server::start();
    let folder = server.state.path().join("gone");
    fs::create_dir(&folder).expect("a writable folder");
    let made = server.done("create", json!({ "cwd": folder }));
    let id = made["session_id"].as_str().expect("an id");
    talk(&server, id, "true", 30_000);
    fs::remove_dir(&folder).expect("our folder");
    assert_eq!(talk(&server, id, "echo works", 30_000)["output"], "works");
    for env in [json!({ "LC_ALL": "C" }), json!({ "LC_ALL": "no_SUCH.locale" }), json!({ "TERM": "" })] {
        let made = server.done("create", json!({ "env": env }));
        let id = made["session_id"].as_str().expect("an id");
        let answer = talk(&server, id, "printf 'caf\\303\\251 \\346\\227\\245\\n'", 30_000);
        assert_eq!(answer["output"], "café 日", "{env}: {answer}");
    }
}
