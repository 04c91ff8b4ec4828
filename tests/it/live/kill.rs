//! The end of sessions: no process remains, and the output stays readable.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kpty::config::Config;
use kpty::error::ErrorCode;
use kpty::registry::MOST_KILLED;
use serde_json::json;

use super::{amount, eventually};
use crate::server::Server;
use crate::tools::Rig;

/// What is running when a session is killed.
const LEFT_RUNNING: [&str; 10] = [
    "true",
    "sleep 1000 &",
    "sleep 1000 & sleep 1001 & sleep 1002 &",
    "(trap '' HUP TERM; while :; do sleep 1; done) &",
    "nohup sleep 1000 >/dev/null 2>&1 &",
    "(sleep 1000 &)",
    "sh -c 'sleep 1000 & sleep 1001 & wait' &",
    "trap '' HUP TERM INT",
    "(trap '' HUP; exec sleep 1000) & disown",
    "stty raw -echo; sleep 1000 | cat &",
];

/// Processes with this variable in their environment: all that ever came from a session that has it.
fn processes_with(mark: &str) -> Vec<String> {
    let has_mark = |folder: &Path| {
        let environment = fs::read(folder.join("environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes())
    };
    let folders = fs::read_dir("/proc").expect("a process table").flatten().map(|entry| entry.path());
    let found = folders.filter(|folder| has_mark(folder));
    found.map(|folder| fs::read_to_string(folder.join("cmdline")).unwrap_or_default().replace('\0', " ")).collect()
}

/// Children that have ended and were not waited for.
pub(crate) fn zombies_of(parent: u32) -> usize {
    let folders = fs::read_dir("/proc").expect("a process table").flatten().map(|entry| entry.path());
    let stats = folders.filter_map(|folder| fs::read_to_string(folder.join("stat")).ok());
    let is_zombie = |stat: &String| {
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        fields.next() == Some("Z") && fields.next() == Some(&parent.to_string())
    };
    stats.filter(is_zombie).count()
}

fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).expect("the process runs").count()
}

fn cycle(server: &Server, mark: &str, number: usize) {
    let (name, value) = mark.split_once('=').expect("a variable");
    let shell = if number.is_multiple_of(3) { "/bin/sh" } else { "/bin/bash" };
    let made = server.done("create", json!({ "shell": shell, "env": { name: value } }));
    let (id, pid) = (&made["session_id"], &made["pid"]);
    let command = LEFT_RUNNING[number % LEFT_RUNNING.len()];
    // Not every shell knows every word; what counts is what is left.
    if !number.is_multiple_of(4) {
        server.done("talk", json!({ "session_id": id, "command": command, "timeout_ms": 45_000 }));
    }
    if number.is_multiple_of(5) {
        let talk = json!({ "session_id": id, "command": "exec sleep 1000", "timeout_ms": 0 });
        server.call("talk", talk);
    }
    let killed = server.done("kill", json!({ "session_id": id }));
    assert!(killed.get("exit_code").is_some() || killed.get("signal").is_some(), "{number} {command}: {killed}");
    assert_eq!(killed["was_dead"], false, "{number} {command}: {killed}");
    let folder = format!("/proc/{pid}/environ");
    assert!(fs::read(folder).unwrap_or_default().is_empty(), "{number} {command}: {pid} lives");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_killed_sessions() {
    let server = Server::start();
    let mark = format!("KPTY_TEST_MARK=kill-{}", server.pid());
    cycle(&server, &mark, 1);
    let before = descriptors(server.pid());
    let cycles = amount(100, 1_000);
    let next = AtomicUsize::new(0);
    tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= cycles {
                            break;
                        }
                        cycle(&server, &mark, number);
                    }
                });
            }
        });
    });
    assert_eq!(processes_with(&mark), Vec::<String>::new());
    assert_eq!(zombies_of(server.pid()), 0);
    // Connections of the last calls may still be closing.
    eventually("the number of descriptors", || descriptors(server.pid()) <= before).await;
    let list = server.done("list", json!({}));
    let dead = list["sessions"].as_array().expect("a list");
    assert!(
        dead.len() == (cycles + 1).min(MOST_KILLED) && dead.iter().all(|session| session["is_alive"] == false),
        "{list}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_sessions_that_end_by_themselves() {
    let server = Server::start();
    // What types, and a query, open the log's files before descriptors are counted.
    let (first, _) = server.create();
    server.done("talk", json!({ "session_id": first, "command": "true" }));
    assert_eq!(server.get("/v1/pty-traffic/stats").json()["event_count"], 2);
    server.done("kill", json!({ "session_id": first }));
    let before = descriptors(server.pid());
    let mark = format!("KPTY_TEST_MARK=ended-{}", server.pid());
    let (name, value) = mark.split_once('=').expect("a variable");
    for number in 0..30 {
        let made = server.done("create", json!({ "env": { name: value } }));
        let command = format!("sleep 1000 & echo bye; exit {number}");
        let (ended, _) = server.call("talk", json!({ "session_id": made["session_id"], "command": command }));
        assert_eq!(ended["error_code"], "PTY_PROCESS_EXITED", "{ended}");
        assert_eq!(ended["details"]["exit_code"], number, "{ended}");
        assert!(ended["details"]["partial_output"].as_str().is_some_and(|text| text.contains("bye")), "{ended}");
    }
    eventually("the end of what they left", || processes_with(&mark).is_empty()).await;
    assert_eq!(zombies_of(server.pid()), 0);
    eventually("the number of descriptors", || descriptors(server.pid()) <= before).await;
}

/// A shell is killed while it starts a program; a dead session leaves no process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_starts_late_or_outlives_its_shell_is_ended_too() {
    let server = Server::start();
    let mark = format!("KPTY_TEST_MARK=late-{}", server.pid());
    let (name, value) = mark.split_once('=').expect("a variable");
    for _ in 0..amount(12, 100) {
        let made = server.done("create", json!({ "env": { name: value } }));
        let id = &made["session_id"];
        server.done("talk", json!({ "session_id": id, "command": "true" }));
        server.done("send_line", json!({ "session_id": id, "data": "(trap '' HUP; sleep 1000) &" }));
        server.done("kill", json!({ "session_id": id }));
    }
    assert_eq!(processes_with(&mark), Vec::<String>::new());
    let made = server.done("create", json!({ "env": { name: value } }));
    let id = &made["session_id"];
    let (ended, _) = server.call(
        "talk",
        json!({ "session_id": id, "command": "(trap '' HUP; exec sleep 1000) & disown; sleep 0.2; exit 4" }),
    );
    assert_eq!(ended["details"]["exit_code"], 4, "{ended}");
    assert_eq!(
        processes_with(&mark).len(),
        1,
        "it ignores that its terminal is gone, and nobody has asked for its end"
    );
    let killed = server.done("kill", json!({ "session_id": id }));
    assert_eq!((&killed["was_dead"], &killed["others"]), (&json!(true), &json!(1)), "{killed}");
    assert_eq!(processes_with(&mark), Vec::<String>::new());
}

/// A program that prints endlessly keeps the terminal open; the end of the shell is reported all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_that_outlives_its_shell_does_not_keep_it_alive() {
    let rig = Rig::new();
    let shell = rig.create(json!({})).await;
    let command = json!({ "command": "(trap '' HUP; exec yes) & exit 5", "timeout_ms": 20_000 });
    let ended = shell.fails("talk", command, ErrorCode::PtyProcessExited).await;
    assert_eq!(ended["details"]["exit_code"], 5, "{ended}");
    shell.call("kill", json!({})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_session_stays_readable_for_its_time() {
    let rig = Rig::with(Config { dead_retention: Duration::from_millis(2_500), ..Config::default() });
    let exited = rig.create(json!({})).await;
    let killed = rig.create(json!({})).await;
    exited.talk("echo the last words").await;
    killed.talk("echo the last words").await;
    exited.fails("talk", json!({ "command": "exit 7" }), ErrorCode::PtyProcessExited).await;
    let report = killed.call("kill", json!({})).await;
    assert_eq!(report["signal"], 1, "{report}");
    let list = rig.call(json!({ "action": "list" })).await;
    for (shell, name, value) in [(&exited, "exit_code", 7), (&killed, "signal", 1)] {
        let sessions = list["sessions"].as_array().expect("a list");
        let listed = sessions.iter().find(|session| session["session_id"] == shell.id).expect("it is listed");
        assert_eq!((&listed["is_alive"], &listed[name]), (&json!(false), &json!(value)), "{listed}");
        let screen = shell.call("term_read", json!({ "mode": "viewport" })).await;
        assert!(screen["text"].as_str().is_some_and(|text| text.contains("the last words")), "{screen}");
        let raw = shell.call("read", json!({})).await;
        assert!(raw["output"].as_str().is_some_and(|text| text.contains("the last words")), "{raw}");
        assert_eq!(raw["session_alive"], false);
        shell.fails("talk", json!({ "command": "echo" }), ErrorCode::PtyProcessExited).await;
        shell.fails("send_line", json!({ "data": "x" }), ErrorCode::PtyProcessExited).await;
        shell.fails("resize", json!({ "cols": 10, "rows": 10 }), ErrorCode::PtyProcessExited).await;
    }
    eventually("the end of the dead", || rig.tools.registry().list().is_empty()).await;
    exited.fails("read", json!({}), ErrorCode::PtySessionNotFound).await;
    rig.end().await;
}

/// Daemons have left the session and are not killed; the reply to `kill` names them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_left_the_session_are_named() {
    let rig = Rig::with(Config::default());
    for (command, count) in
        [("sh -c 'setsid sleep 1000 & wait' & sleep 1000 &", 1), ("setsid sleep 1000 &", 1), ("true", 0)]
    {
        let shell = rig.create(json!({})).await;
        shell.talk(command).await;
        // It leaves in its own time.
        let pid =
            shell.call("list", json!({})).await["sessions"].as_array().expect("a list").last().expect("one")["pid"]
                .as_u64()
                .expect("a pid") as u32;
        eventually("the process", || kpty::terminal::local::pty::ProcessTable::read().strayed(pid).len() == count)
            .await;
        let killed = shell.call("kill", json!({})).await;
        let strayed: Vec<u64> =
            killed["survivors_elsewhere"].as_array().into_iter().flatten().filter_map(|pid| pid.as_u64()).collect();
        assert_eq!(strayed.len(), count, "{command}: {killed}");
        for pid in strayed {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).expect("it lives");
            assert_eq!(name.trim(), "sleep", "{command}");
            kpty::terminal::local::pty::Control::signal_process(pid as u32, kpty::terminal::local::pty::Signal::Kill);
        }
    }
    rig.end().await;
}
