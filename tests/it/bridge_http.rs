//! A real server as the bridge of a desktop app: the shapes that clients of such bridges know, and what is added.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::{Response, Server, http};

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn post(server: &Server, path: &str, body: &Value) -> Response {
    server.http("POST", path, &[JSON], body.to_string().as_bytes())
}

/// A request that must be answered with 200.
fn ask(server: &Server, path: &str, body: Value) -> Value {
    let answer = post(server, path, &body);
    assert_eq!(answer.status, 200, "{path} {body}: {}", answer.body);
    answer.json()
}

/// The names of an answer's fields.
fn names(answer: &Value) -> Vec<&str> {
    answer.as_object().expect("an object").keys().map(String::as_str).collect()
}

/// Waits, and reads the tail.
fn once(server: &Server, id: &str, mut until: Value) -> Value {
    (until["session_id"], until["timeout_ms"]) = (json!(id), json!(45_000));
    let waited = server.done("wait", until);
    assert_eq!(waited["timed_out"], false, "{waited}");
    ask(server, "/pty/buffer", json!({ "session_id": id }))
}

#[test]
fn talk_is_right_and_says_that_it_knows_the_end() {
    let server = Server::start();
    let (id, _) = server.create();
    let asked =
        json!({ "session_id": id, "command": "echo hi; (exit 3)", "sentinel": "__S_1__", "timeout_ms": 60_000 });
    let answer = ask(&server, "/pty/talk", asked);
    for (name, expected) in [
        ("ok", json!(true)),
        ("output", json!("hi")),
        ("sentinel", json!("__S_1__")),
        ("sentinel_found", json!(true)),
        ("exit_code", json!(3)),
    ] {
        assert_eq!(answer[name], expected, "{name}: {answer}");
    }
    assert!(answer["raw_output"].is_string(), "{answer}");
    let slow =
        ask(&server, "/pty/talk", json!({ "session_id": id, "command": "echo begun; cat", "timeout_ms": 2_000 }));
    for (name, expected) in [
        ("ok", json!(false)),
        ("error", json!("Timeout after 2000ms")),
        ("output", json!("begun")),
        ("sentinel_found", json!(false)),
        ("error_code", json!("PTY_TIMEOUT")),
    ] {
        assert_eq!(slow[name], expected, "{name}: {slow}");
    }
    assert!(slow.get("sentinel").is_some() && slow["raw_output"].is_string(), "{slow}");
    let busy = post(&server, "/pty/talk", &json!({ "session_id": id, "command": "echo x" }));
    assert_eq!((busy.status, busy.json()["error_code"].clone()), (409, json!("PTY_BUSY")));
    assert_eq!(busy.json()["sentinel_found"], false);
}

#[test]
fn a_command_is_told_of_by_its_number_and_by_its_sentinel() {
    let server = Server::start();
    let (id, _) = server.create();
    let slow = json!({ "session_id": id, "command": "echo begun; read x; (exit 6)", "sentinel": "__S_2__",
        "timeout_ms": 500 });
    let late = ask(&server, "/pty/talk", slow);
    let number = late["details"]["command_id"].clone();
    for by in [json!({ "command_id": number }), json!({ "sentinel": "__S_2__" })] {
        let mut asked = by;
        asked["session_id"] = json!(id);
        let told = ask(&server, "/pty/command", asked);
        for (name, expected) in [
            ("ok", json!(true)),
            ("command_id", number.clone()),
            ("running", json!(true)),
            ("sentinel_found", json!(false)),
            ("output", json!("begun")),
            ("exit_code", Value::Null),
        ] {
            assert_eq!(told[name], expected, "{name}: {told}");
        }
    }
    ask(&server, "/pty/write", json!({ "session_id": id, "data": "x\r" }));
    let ended = ask(&server, "/pty/command", json!({ "session_id": id, "command_id": number, "timeout_ms": 30_000 }));
    let told = (&ended["running"], &ended["sentinel_found"], &ended["exit_code"], &ended["completed_by"]);
    assert_eq!(told, (&json!(false), &json!(true), &json!(6), &json!("integration")), "{ended}");
    for (body, status, error) in [
        (json!({ "session_id": id }), 400, "command_id or sentinel is required"),
        (json!({ "session_id": id, "command_id": "cmd_99" }), 404, "Command not found: cmd_99"),
        (json!({ "session_id": id, "command_id": "nonsense" }), 404, "Command not found: nonsense"),
        (json!({ "session_id": id, "sentinel": "__S_3__" }), 404, "Command not found: __S_3__"),
        (json!({ "session_id": "x", "command_id": "cmd_1" }), 404, "Session not found: x"),
    ] {
        let answer = post(&server, "/pty/command", &body);
        assert_eq!((answer.status, answer.json()["error"].clone()), (status, json!(error)), "{body}");
    }
}

#[test]
fn a_session_whose_program_has_ended_says_so() {
    let server = Server::start();
    let (id, _) = server.create();
    let ended = post(&server, "/pty/talk", &json!({ "session_id": id, "command": "exit 4" }));
    assert_eq!((ended.status, ended.json()["error_code"].clone()), (410, json!("PTY_PROCESS_EXITED")));
    assert_eq!(ended.json()["details"]["exit_code"], 4);
    assert_eq!(ask(&server, "/pty/buffer", json!({ "session_id": id }))["session_alive"], false);
    let list = server.get("/pty/list").json();
    assert_eq!((&list["count"], &list["sessions"]), (&json!(0), &json!([])), "who is not listed is gone");
}

#[test]
fn text_and_enter_are_typed_as_they_are() {
    let server = Server::start();
    let (id, _) = server.create();
    let typed = ask(&server, "/pty/write", json!({ "session_id": id, "data": "echo ty''ped ä" }));
    assert_eq!(typed, json!({ "ok": true, "bytes_written": 15 }));
    ask(&server, "/pty/write", json!({ "session_id": id, "data": "\r" }));
    once(&server, &id, json!({ "text": "typed ä" }));
    let read = ask(&server, "/pty/read", json!({ "session_id": id, "timeout_ms": 100 }));
    let output = read["output"].as_str().expect("text");
    assert!(output.contains("typed ä") && output.contains('\u{1b}'), "raw output: {output:?}");
    assert_eq!(read["bytes_read"], json!(output.len()));
    assert_eq!(read["session_alive"], true);
}

#[test]
fn the_buffer_has_both_styles_of_names_and_the_fields_of_its_mode() {
    let server = Server::start();
    let (id, _) = server.create();
    ask(&server, "/pty/talk", json!({ "session_id": id, "command": "PS1='$ '; seq 50" }));
    let tail = once(&server, &id, json!({ "prompt": true }));
    let fields = [
        "access_mode",
        "at_prompt",
        "bufferType",
        "buffer_type",
        "cols",
        "cursorLine",
        "cursor_line",
        "line_numbers",
        "lines",
        "markerDisposed",
        "markerId",
        "markerLine",
        "marker_disposed",
        "marker_id",
        "marker_line",
        "ok",
        "rows",
        "session_alive",
        "text",
        "truncated",
        "viewportY",
        "viewport_y",
    ];
    let mut found = names(&tail);
    found.sort_unstable();
    assert_eq!(found, fields);
    let lines = tail["lines"].as_array().expect("lines");
    assert_eq!((lines.len(), &lines[40], &lines[39]), (41, &json!("$"), &json!("50")), "40 lines and the cursor's");
    assert_eq!(tail["line_numbers"][40], tail["cursorLine"], "where nothing is wrapped, rows are lines");
    assert_eq!((&tail["bufferType"], &tail["access_mode"]), (&json!("normal"), &json!("on")));
    assert_eq!((&tail["viewportY"], &tail["markerId"]), (&Value::Null, &Value::Null));
    assert_eq!((&tail["rows"], &tail["cols"]), (&json!(30), &json!(120)));
    let all = ask(&server, "/pty/buffer", json!({ "session_id": id, "max_lines": 5_000 }));
    assert!(all["lines"].as_array().is_some_and(|all| all.len() > 50), "more than an action gives");
    let view = ask(&server, "/pty/buffer", json!({ "session_id": id, "mode": "viewport", "max_lines": 2 }));
    assert_eq!(view["lines"].as_array().map(Vec::len), Some(30));
    assert!(view["viewportY"].is_number() && view["cursorLine"].is_null(), "{view}");
    let first = ask(&server, "/pty/buffer", json!({ "session_id": id, "mode": "delta" }));
    assert_eq!((&first["text"], &first["lines"], &first["markerLine"]), (&json!(""), &json!([]), &tail["cursorLine"]));
    ask(&server, "/pty/talk", json!({ "session_id": id, "command": "echo more" }));
    let delta = json!({ "session_id": id, "mode": "delta", "marker_id": first["markerId"] });
    once(&server, &id, json!({ "prompt": true }));
    let since = ask(&server, "/pty/buffer", delta);
    assert_eq!((&since["lines"], &since["markerId"]), (&json!(["more", "$"]), &first["markerId"]));
}

#[test]
fn sessions_are_listed_and_leaders_known() {
    let server = Server::start();
    let (id, pid) = server.create();
    let list = server.get("/pty/list").json();
    let cwd = server.state.path().canonicalize().expect("a folder");
    let expected = json!({
        "session_id": id, "internal_id": id, "pid": pid, "cols": 120, "rows": 30,
        "cwd": cwd.display().to_string(), "alive": true,
    });
    assert_eq!(list, json!({ "ok": true, "count": 1, "sessions": [expected] }));
    let asked = |id: &str| server.get(&format!("/pty/is-leader?session_id={id}")).json();
    let nobody = json!({ "ok": true, "session_id": id, "is_leader": null, "leader_terminal_id": null });
    assert_eq!(asked(&id), nobody);
    server.done("adopt", json!({ "session_id": id, "agent_id": "chief", "owner_role": "leader" }));
    let leads = json!({ "ok": true, "session_id": id, "is_leader": true, "leader_terminal_id": id });
    assert_eq!(asked(&id), leads);
    let other = json!({ "ok": true, "session_id": "other", "is_leader": false, "leader_terminal_id": id });
    assert_eq!(asked("other"), other);
    let missing = server.get("/pty/is-leader");
    let expected = json!({ "ok": false, "error": "session_id query param required" });
    assert_eq!((missing.status, missing.json()), (400, expected));
}

#[test]
fn what_is_refused_is_told_in_the_words_of_a_bridge() {
    let server = Server::start();
    let (id, _) = server.create();
    for (path, body, status, error) in [
        ("/pty/talk", json!({}), 400, "session_id is required"),
        ("/pty/talk", json!({ "session_id": "x" }), 400, "command is required"),
        ("/pty/talk", json!({ "session_id": "x", "command": "true" }), 404, "Session not found: x"),
        ("/pty/talk", json!({ "session_id": 7, "command": "true" }), 400, "session_id must be a string"),
        ("/pty/write", json!({ "session_id": "x", "data": "" }), 400, "data is required"),
        ("/pty/write", json!({ "session_id": "x", "data": "a" }), 404, "Session not found: x"),
        ("/pty/read", json!({ "session_id": "x" }), 404, "Session not found: x"),
        ("/pty/buffer", json!({ "session_id": "x" }), 404, "Session not found: x"),
        (
            "/pty/buffer",
            json!({ "session_id": id, "mode": "all" }),
            400,
            "Invalid mode: all. Must be 'tail', 'viewport', or 'delta'",
        ),
    ] {
        let answer = post(&server, path, &body);
        let told = (answer.status, answer.json()["ok"].clone(), answer.json()["error"].clone());
        assert_eq!(told, (status, json!(false), json!(error)), "{path} {body}");
    }
    let bad = server.http("POST", "/pty/read", &[JSON], b"{");
    assert_eq!((bad.status, bad.json()), (400, json!({ "ok": false, "error": "Error: Invalid JSON body" })));
    let wrong = server.get("/pty/talk");
    assert_eq!((wrong.status, wrong.json()), (404, json!({ "ok": false, "error": "Not found" })));
}

/// The path is in halves, so that nothing here reads like an order.
#[test]
fn the_guard_the_masks_and_the_lock_on_screens_hold_here_too() {
    let server = Server::start();
    let (id, _) = server.create();
    let dangerous = ["rm -rf ", "/"].concat();
    for (path, body) in [
        ("/pty/talk", json!({ "session_id": id, "command": dangerous })),
        ("/pty/write", json!({ "session_id": id, "data": dangerous })),
    ] {
        let answer = post(&server, path, &body);
        assert_eq!((answer.status, &answer.json()["error_code"]), (403, &json!("DANGEROUS_COMMAND_BLOCKED")), "{path}");
    }
    let token = ["gh", "p_", &"a1B2".repeat(9)].concat();
    let command = format!("printf '%s%s\\n' {} {}", &token[..6], &token[6..]);
    let talk = ask(&server, "/pty/talk", json!({ "session_id": id, "command": command }));
    assert!(talk["output"].as_str().is_some_and(|output| output.contains("REDACTED")), "{talk}");
    for mode in ["tail", "viewport"] {
        let buffer = ask(&server, "/pty/buffer", json!({ "session_id": id, "mode": mode }));
        assert!(!buffer.to_string().contains(&token), "{mode}");
    }
    let closed = Server::start_with(&[("KURORYUU_TERM_BUFFER_ACCESS", "off")], &[]);
    let (id, _) = closed.create();
    let refused = post(&closed, "/pty/buffer", &json!({ "session_id": id }));
    let body = refused.json();
    let told = (refused.status, &body["error_code"], &body["access_mode"]);
    assert_eq!(told, (403, &json!("TERM_READ_DISABLED"), &json!("off")));
}

#[test]
fn sessions_of_other_desktops_are_not_given() {
    let server = Server::start();
    let secret = ("X-Kuroryuu-Desktop-Secret", "ab".repeat(32));
    let secret = (secret.0, secret.1.as_str());
    assert_eq!(server.http("POST", "/_x9k_desktop_auth", &[secret], b"").status, 200);
    // A bridge that would never answer, were it asked.
    let silent = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    let body = json!({ "session_id": "desk-1", "desktop_url": url }).to_string();
    assert_eq!(server.http("POST", "/v1/pty/register", &[secret, JSON], body.as_bytes()).status, 200);
    for (path, more) in
        [("/pty/talk", json!({ "command": "true" })), ("/pty/buffer", json!({})), ("/pty/read", json!({}))]
    {
        let mut body = more;
        body["session_id"] = json!("desk-1");
        assert_eq!(post(&server, path, &body).status, 404, "{path}");
    }
    assert_eq!(server.get("/pty/list").json()["count"], 0);
}

#[test]
fn what_is_done_through_the_bridge_is_recorded() {
    let server = Server::start();
    let (id, _) = server.create();
    ask(&server, "/pty/talk", json!({ "session_id": id, "command": "true" }));
    ask(&server, "/pty/write", json!({ "session_id": id, "data": "echo x" }));
    ask(&server, "/pty/buffer", json!({ "session_id": id }));
    let recorded = || -> Vec<(Value, Value)> {
        let path = server.state.path().join(format!("state/sessions/{id}/events.jsonl"));
        let journal = std::fs::read_to_string(path).unwrap_or_default();
        let events = journal.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let of_bridge = events.filter(|event| event["agent"] == "bridge");
        of_bridge.map(|event| (event["action"].clone(), event["command"].clone())).collect()
    };
    // The record is written a moment later; only a failure looks so often.
    assert!((0..1_000_000).any(|_| recorded().len() > 1), "{:?}", recorded());
    assert_eq!(recorded(), [(json!("talk"), json!("true")), (json!("write"), json!("echo x"))], "looks are not");
}

/// A port that is free, and the listener that has it.
fn taken() -> (TcpListener, u16) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    (listener, port)
}

/// The port of the second listener, as the note in the state folder has it.
fn bridge_port(server: &Server) -> u16 {
    let note: Value = serde_json::from_str(&server.state.read("state/server.json")).expect("a note");
    note["bridge_port"].as_u64().expect("a port") as u16
}

#[test]
fn a_second_listener_counts_up_while_its_port_is_taken() {
    let (_listener, wanted) = taken();
    let server = Server::start_with(&[("KURORYUU_PTY_BRIDGE_PORT", &wanted.to_string())], &[]);
    let port = bridge_port(&server);
    assert!(port > wanted && port - wanted < 50, "{wanted} {port}");
    let health = http(port, "GET", "/health", &[], b"").json();
    assert_eq!((&health["service"], &health["port"]), (&json!("pty-bridge"), &json!(port)));
    assert_eq!(http(port, "GET", "/", &[], b"").json(), health);
    assert_eq!(server.get("/health").json()["port"], json!(server.port));
    let (id, _) = server.create();
    let body = json!({ "session_id": id, "command": "echo there" }).to_string();
    let answer = http(port, "POST", "/pty/talk", &[JSON], body.as_bytes());
    assert_eq!((answer.status, answer.json()["output"].clone()), (200, json!("there")));
    let nothing = http(port, "POST", "/mcp", &[JSON], b"{}");
    assert_eq!((nothing.status, nothing.json()), (404, json!({ "ok": false, "error": "Not found" })));
    for headers in [[("Origin", "https://evil.example")], [("Host", "evil.example")]] {
        assert_eq!(http(port, "GET", "/pty/list", &headers, b"").status, 403, "{headers:?}");
    }
    assert_eq!(http(port, "POST", "/pty/talk", &[("Content-Type", "text/plain")], b"{}").status, 415);
}

#[test]
fn the_second_listener_ends_with_the_server() {
    let (listener, wanted) = taken();
    drop(listener);
    let mut server = Server::start_with(&[("KURORYUU_PTY_BRIDGE_PORT", &wanted.to_string())], &[]);
    let port = bridge_port(&server);
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
    let address = format!("127.0.0.1:{port}").parse().expect("an address");
    std::net::TcpStream::connect_timeout(&address, Duration::from_secs(10)).expect_err("nobody listens");
}
