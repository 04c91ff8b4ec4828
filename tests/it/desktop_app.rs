//! The desktop app that other tests use is like the real one, with its faults: what was observed there holds here.

use serde_json::{Value, json};

use crate::server::http;
use crate::support::desktop::{APP_MODES, AppMode, Desktop};

/// A read of a terminal's buffer.
fn buffer(app: &Desktop, id: &str, mut options: Value) -> Value {
    options["session_id"] = json!(id);
    app.ask("/pty/buffer", &options)
}

fn lines(app: &Desktop, id: &str, options: Value) -> Value {
    buffer(app, id, options)["lines"].clone()
}

/// Asks for the tail until it shows something.
fn shows(app: &Desktop, id: &str, text: &str) -> Value {
    // Only a failure asks so often: each answer takes about a millisecond.
    for _ in 0..50_000 {
        let answer = buffer(app, id, json!({ "max_lines": 100 }));
        if answer["text"].as_str().is_some_and(|shown| shown.contains(text)) {
            return answer;
        }
    }
    panic!("{text:?} is not shown");
}

fn bash(app: &Desktop) -> String {
    let id = app.create(&json!({ "args": ["--norc"], "env": { "PS1": "$ " }, "cols": 80, "rows": 24 }));
    shows(app, &id, "$");
    id
}

#[test]
fn reads_of_the_buffer_are_those_of_the_app() {
    let app = Desktop::start(AppMode::Embedded);
    let twelve: String = (1..=12).map(|number| format!("line{number}\r\n")).collect();
    for (rows, bytes, options, expected) in [
        (5, format!("{twelve}$ "), json!({ "max_lines": 3 }), json!(["line10", "line11", "line12", "$"])),
        (5, format!("{twelve}$ "), json!({ "mode": "viewport" }), json!(["line9", "line10", "line11", "line12", "$"])),
        (5, "a".repeat(50), json!({}), json!(["a".repeat(50)])),
        (5, "a".repeat(50), json!({ "merge_wrapped": false }), json!(["a".repeat(20), "a".repeat(20), "a".repeat(10)])),
        (5, "界".repeat(14), json!({}), json!(["界".repeat(14)])),
        (5, "界".repeat(14), json!({ "merge_wrapped": false }), json!(["界".repeat(10), "界".repeat(4)])),
        (3, "b".repeat(70), json!({ "mode": "viewport" }), json!([format!("...{}", "b".repeat(50))])),
        (3, "b".repeat(70), json!({ "max_lines": 1 }), json!(["b".repeat(30)])),
        (5, "a\r\nb\r\nc\x1b[H".to_owned(), json!({}), json!(["a"])),
        (5, "10%\r20%\r30%\r\n\x1b[31mred\x1b[0m\r\n".to_owned(), json!({}), json!(["30%", "red", ""])),
        (5, "é 🚀 👩‍👩‍👧".to_owned(), json!({}), json!(["é 🚀 👩‍👩‍👧"])),
    ] {
        let id = app.fed(20, rows, &bytes);
        assert_eq!(lines(&app, &id, options.clone()), expected, "{options} {bytes:?}");
    }
}

#[test]
fn a_marker_stays_where_it_is_until_it_is_gone() {
    let app = Desktop::start(AppMode::Embedded);
    let id = app.create(&json!({ "shell": null, "cols": 20, "rows": 5, "scrollback": 50 }));
    app.feed(&id, "one\r\n$ ");
    let first = buffer(&app, &id, json!({ "mode": "delta" }));
    assert_eq!((&first["text"], &first["lines"], &first["markerLine"]), (&json!(""), &json!([]), &json!(1)));
    let since = |max_lines| json!({ "mode": "delta", "marker_id": first["markerId"], "max_lines": max_lines });
    app.feed(&id, "echo hi\r\nhi\r\n$ ");
    assert_eq!(lines(&app, &id, since(40)), json!(["hi", "$"]), "what is typed on the marker's row is not shown");
    app.feed(&id, "more\r\nm\r\n$ ");
    let again = buffer(&app, &id, since(1));
    assert_eq!(again["lines"], json!(["hi", "$ more", "m", "$"]), "it is not advanced, nor are lines counted");
    assert_eq!((&again["markerId"], &again["cursorLine"]), (&first["markerId"], &Value::Null));
    app.feed(&id, "\x1b[?1049hother");
    let other = buffer(&app, &id, since(40));
    assert_eq!((&other["bufferType"], &other["markerId"]), (&json!("alternate"), &Value::Null));
    app.feed(&id, "\x1b[?1049l");
    assert_eq!(buffer(&app, &id, since(40))["markerId"], first["markerId"]);
    app.resize(&id, 10, 5);
    assert_eq!(buffer(&app, &id, since(40))["markerId"], first["markerId"]);
    app.feed(&id, "x\r\n".repeat(80));
    let gone = buffer(&app, &id, since(2));
    assert_eq!((&gone["lines"], &gone["markerId"]), (&json!(["x", "x", ""]), &Value::Null));
    assert!(gone["cursorLine"].is_number(), "{gone}");
}

#[test]
fn the_apps_own_talk_takes_the_echo_for_the_end() {
    let app = Desktop::start(AppMode::Embedded);
    let id = bash(&app);
    let answer = app.ask("/pty/talk", &json!({ "session_id": id, "command": "echo hi; sleep 1", "sentinel": "__S__" }));
    assert_eq!((&answer["ok"], &answer["output"], &answer["sentinel"]), (&json!(true), &json!(""), &json!("__S__")));
    assert!(answer["raw_output"].as_str().is_some_and(|raw| raw.contains("echo hi; sleep 1; echo __S__")), "{answer}");
    assert_eq!(answer.get("sentinel_found"), None);
}

#[test]
fn the_daemon_answers_with_all_it_has() {
    let app = Desktop::start(AppMode::Daemon);
    let id = bash(&app);
    app.ask("/pty/write", &json!({ "session_id": id, "data": "echo first\r" }));
    shows(&app, &id, "\nfirst");
    let answer = app.ask("/pty/talk", &json!({ "session_id": id, "command": "echo second", "timeout_ms": 300 }));
    assert_eq!((&answer["sentinel_found"], &answer["mode"]), (&json!(false), &json!("daemon")));
    assert!(answer["output"].as_str().is_some_and(|output| output.contains("echo first")), "{answer}");
    let unknown = app.ask("/pty/read", &json!({ "session_id": "none" }));
    assert_eq!(unknown, json!({ "ok": true, "output": "", "bytes_read": 0, "mode": "daemon" }));
    let unknown = app.ask("/pty/write", &json!({ "session_id": "none", "data": "x" }));
    assert_eq!(unknown, json!({ "ok": true, "bytes_written": 1, "mode": "daemon" }));
}

#[test]
fn what_the_app_refuses_is_told_as_it_tells_it() {
    let app = Desktop::start(AppMode::Embedded);
    for (path, body, status, error) in [
        ("/pty/talk", json!({}), 400, "session_id is required"),
        ("/pty/talk", json!({ "session_id": "x" }), 400, "command is required"),
        ("/pty/write", json!({ "session_id": "x", "data": "" }), 400, "data is required"),
        ("/pty/write", json!({ "session_id": "x", "data": "a" }), 404, "Session not found: x"),
        ("/pty/read", json!({ "session_id": "x" }), 404, "Session not found: x"),
        ("/pty/buffer", json!({ "session_id": "x" }), 404, "Session not found: x"),
        ("/pty/kill", json!({ "session_id": "x" }), 404, "Not found"),
        ("/pty/list?x=1", json!({}), 404, "Not found"),
    ] {
        let answer = app.post(path, &body);
        assert_eq!((answer.status, answer.json()), (status, json!({ "ok": false, "error": error })), "{path} {body}");
    }
    let bad = http(app.port, "POST", "/pty/read", &[], b"{");
    assert_eq!((bad.status, bad.json()["error"].clone()), (500, json!("Error: Invalid JSON body")));
    let asked = http(app.port, "OPTIONS", "/pty/talk", &[("Origin", "https://evil.example")], b"");
    assert_eq!((asked.status, asked.header("access-control-allow-origin")), (204, Some("*")));
    let closed = Desktop::start_with(AppMode::Daemon, &[("KURORYUU_TERM_BUFFER_ACCESS", "off")]);
    let id = closed.fed(20, 5, "secret");
    let answer = closed.post("/pty/buffer", &json!({ "session_id": id }));
    assert_eq!((answer.status, answer.json()["error_code"].clone()), (403, json!("TERM_READ_DISABLED")));
}

#[test]
fn sessions_are_listed_in_both_modes_and_end_with_their_program() {
    for mode in APP_MODES {
        let app = Desktop::start(mode);
        let id = bash(&app);
        let list = app.get("/pty/list");
        assert_eq!((&list["count"], &list["sessions"][0]["session_id"]), (&json!(1), &json!(id)));
        let health = app.get("/health");
        assert_eq!((&health["service"], &health["sessions"]), (&json!("pty-bridge"), &json!(1)));
        assert_eq!(format!("http://127.0.0.1:{}", health["port"]), app.url());
        assert_eq!(health["daemonConnected"], json!(mode == AppMode::Daemon));
        assert_eq!(app.get(&format!("/pty/is-leader?session_id={id}"))["is_leader"], Value::Null);
        app.ask("/test/leader", &json!({ "session_id": id }));
        assert_eq!(app.get(&format!("/pty/is-leader?session_id={}-{}", &id[..4], &id[4..]))["is_leader"], true);
        app.ask("/pty/write", &json!({ "session_id": id, "data": "exit\r" }));
        let is_gone = |list: &Value| match mode {
            AppMode::Embedded => list["count"] == 0,
            AppMode::Daemon => list["sessions"][0]["alive"] == false,
        };
        // Only a failure asks so often.
        assert!((0..50_000).any(|_| is_gone(&app.get("/pty/list"))), "{mode:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_app_ends_with_its_input_and_takes_its_programs_along() {
    let app = Desktop::start(AppMode::Daemon);
    let id = bash(&app);
    let list = app.get("/pty/list");
    let (pid, app_pid) = (list["sessions"][0]["pid"].as_u64().expect("a pid"), app.pid());
    assert_eq!(list["sessions"][0]["session_id"], json!(id));
    drop(app);
    let is_running = |pid: u64| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // A dead one that nobody has waited for yet is dead.
        status.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
    };
    assert!(!is_running(u64::from(app_pid)));
    assert!((0..50_000).any(|_| !is_running(pid)), "the shell goes on");
}
