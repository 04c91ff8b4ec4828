//! The traffic log of the built program: what is recorded, what is shown of it, and fixed defects of its model.

mod evidence;
mod killed;
mod socket;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::Server;

const JSON_TYPE: (&str, &str) = ("Content-Type", "application/json");
/// Timeout that only a failure reaches.
const DEADLINE: Duration = Duration::from_secs(60);

/// Something token-shaped, put together here so that none stands in the repository.
fn token() -> String {
    ["gh", "p_", &"a1B2".repeat(9)].concat()
}

fn get(server: &Server, path: &str) -> Value {
    let response = server.get(&format!("/v1/pty-traffic/{path}"));
    assert_eq!(response.status, 200, "{path}: {}", response.body);
    response.json()
}

fn status(server: &Server, path: &str) -> u16 {
    server.get(&format!("/v1/pty-traffic/{path}")).status
}

fn emit(server: &Server, event: &Value) -> (u16, Value) {
    let body = event.to_string();
    let response = server.http("POST", "/v1/pty-traffic/emit", &[JSON_TYPE], body.as_bytes());
    (response.status, response.json())
}

/// The only event of an action, in one session.
fn only(server: &Server, action: &str, session: &str) -> Value {
    let found = get(server, &format!("events?action={action}&session_id={session}"));
    assert_eq!(found["total"], 1, "{action}: {found}");
    found["events"][0].clone()
}

/// An action with headers of the caller's own.
fn call_as(server: &Server, headers: &[(&str, &str)], arguments: Value) -> Value {
    let params = json!({ "name": "k_pty", "arguments": arguments });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let mut all = vec![JSON_TYPE];
    all.extend(headers);
    let answer = server.http("POST", "/mcp", &all, body.as_bytes()).json();
    serde_json::from_str(answer["result"]["content"][0]["text"].as_str().expect("text")).expect("JSON")
}

#[test]
fn every_action_is_recorded_with_what_came_of_it() {
    let server = Server::start();
    let (id, _) = server.create();
    let arguments = [
        ("talk", json!({ "command": "echo hello; exit_code() { return 3; }; exit_code", "as_agent": "worker 1" })),
        ("send_line", json!({ "data": "echo typed" })),
        ("send_keys", json!({ "keys": "Enter" })),
        ("wait", json!({ "text": "never there", "timeout_ms": 10 })),
        ("read", json!({})),
        ("term_read", json!({ "mode": "tail" })),
        ("search", json!({ "pattern": "hello" })),
        ("commands", json!({})),
        ("resize", json!({ "cols": 90, "rows": 20 })),
        ("adopt", json!({ "owner_agent_id": "a7", "owner_session_id": "s7", "label": "the build" })),
        ("evidence", json!({})),
        ("write", json!({ "data": "x" })),
        ("no_such_action", json!({})),
        ("kill", json!({})),
    ];
    for (action, mut arguments) in arguments.clone() {
        arguments["session_id"] = json!(id);
        drop(server.call(action, arguments));
    }
    server.done("list", json!({}));
    server.done("help", json!({}));
    for (action, _) in &arguments {
        let event = only(&server, action, &id);
        let is_failure = ["write", "no_such_action"].contains(action);
        assert_eq!(event["success"], !is_failure, "{event}");
        assert_eq!((&event["session_source"], &event["cli_type"]), (&json!("local"), &json!("shell")), "{event}");
        assert!(event["duration"].as_f64().is_some_and(|duration| duration > 0.0), "{event}");
        assert!(event["timestamp"].as_str().is_some_and(|at| at.ends_with("+00:00")), "{event}");
    }
    let talk = only(&server, "talk", &id);
    assert_eq!(
        (&talk["agent_id"], &talk["exit_code"], &talk["response"]),
        (&json!("worker 1"), &json!(3), &json!("hello"))
    );
    assert_eq!(
        (&talk["response_size"], &talk["timeout_ms"], &talk["command_id"]),
        (&json!(5), &json!(30_000), &json!("cmd_1"))
    );
    assert_eq!(only(&server, "write", &id)["error_code"], "DEPRECATED");
    let kill = only(&server, "kill", &id);
    assert_eq!((&kill["label"], &kill["owner_session_id"]), (&json!("the build"), &json!("s7")));
    for action in ["list", "help"] {
        assert_eq!(get(&server, &format!("events?action={action}"))["total"], 1, "{action}");
    }
    assert!(only(&server, "evidence", &id)["evidence_id"].as_str().is_some_and(|id| id.starts_with("ev_2")));
    // The session's own log has the same entries.
    let log = server.state.read(&format!("state/sessions/{id}/events.jsonl"));
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let done: Vec<&str> =
        lines.iter().filter(|line| line["event"] == "action").filter_map(|line| line["action"].as_str()).collect();
    for (action, _) in &arguments {
        assert_eq!(done.iter().filter(|done| *done == action).count(), 1, "{action}: {done:?}");
    }
    let talk = lines.iter().find(|line| line["action"] == "talk").expect("the talk");
    assert_eq!((&talk["agent"], &talk["result"]), (&json!("worker 1"), &json!("exit code 3, 5 characters")));
    // An unknown session has no folder.
    server.call("read", json!({ "session_id": "pty_ffffffff" }));
    assert_eq!(get(&server, "events?session_id=pty_ffffffff")["events"][0]["error_code"], "PTY_SESSION_NOT_FOUND");
    assert!(!server.state.path().join("state/sessions/pty_ffffffff").exists());
}

#[test]
fn a_timeout_and_a_blocked_command_are_what_they_are() {
    let server = Server::start();
    let (id, _) = server.create();
    let (late, is_error) =
        server.call("talk", json!({ "session_id": id, "command": "echo part; sleep 30", "timeout_ms": 1_500 }));
    assert!(is_error && late["error_code"] == "PTY_TIMEOUT", "{late}");
    let event = only(&server, "talk", &id);
    assert_eq!(
        (&event["timed_out"], &event["success"], &event["timeout_ms"]),
        (&json!(true), &json!(false), &json!(1_500))
    );
    assert_eq!((&event["error_code"], &event["response"]), (&json!("PTY_TIMEOUT"), &json!("part")));
    // The one through another's session is recorded too.
    server.done("adopt", json!({ "session_id": id, "owner_agent_id": "a1" }));
    for (action, arguments) in [
        ("send_line", json!({ "session_id": id, "data": "rm -rf /" })),
        ("send_line_to_agent", json!({ "agent_id": "a1", "data": "rm -rf /" })),
    ] {
        let (answer, is_error) = server.call(action, arguments);
        assert!(is_error && answer["error_code"] == "DANGEROUS_COMMAND_BLOCKED", "{answer}");
    }
    let blocked = get(&server, "blocked");
    assert_eq!(blocked["count"], 2, "{blocked}");
    for event in blocked["events"].as_array().expect("events") {
        assert_eq!((&event["blocked"], &event["success"]), (&json!(true), &json!(false)), "{event}");
        assert!(event["blocked_pattern"].as_str().is_some_and(|rule| !rule.is_empty()), "{event}");
    }
    assert_eq!(get(&server, "events?blocked_only=true")["total"], 2);
    assert_eq!(get(&server, "events?errors_only=true")["total"], 3);
    assert_eq!(get(&server, "stats")["blocked_count"], 2);
}

#[test]
fn callers_are_named_by_the_best_that_is_said() {
    let server = Server::start_with(&[("KURORYUU_AGENT_ID", "house agent")], &[]);
    let (id, _) = server.create();
    let agent = |action: &str| only(&server, action, &id)["agent_id"].clone();
    call_as(
        &server,
        &[("X-Kpty-Agent", " leader ")],
        json!({ "action": "read", "session_id": id, "as_agent": "other" }),
    );
    assert_eq!(agent("read"), "leader");
    call_as(&server, &[], json!({ "action": "commands", "session_id": id, "as_agent": "worker" }));
    assert_eq!(agent("commands"), "worker");
    call_as(&server, &[("Mcp-Session-Id", "session_7")], json!({ "action": "term_read", "session_id": id }));
    assert_eq!(agent("term_read"), "mcp:session_7");
    server.done("search", json!({ "session_id": id, "pattern": "x" }));
    assert_eq!(agent("search"), "house agent");
    let mut resize = server.command(&["resize", &id, "80", "24"]);
    assert!(resize.env("USER", "somebody").env_remove("LOGNAME").status().expect("kpty runs").success());
    assert_eq!(agent("resize"), "cli:somebody");
    let answer = call_as(&server, &[], json!({ "action": "kill", "session_id": id, "as_agent": 7 }));
    assert_eq!((&answer["error_code"], &answer["details"]["param"]), (&json!("INVALID_PARAM"), &json!("as_agent")));
    let long = "x".repeat(1_000);
    call_as(&server, &[("X-Kpty-Agent", &long)], json!({ "action": "resolve", "label": "nobody" }));
    let found = get(&server, "events?action=resolve")["events"][0]["agent_id"].clone();
    assert_eq!(found.as_str().map(str::len), Some(128));
}

#[test]
fn secrets_are_nowhere_in_the_record() {
    let server = Server::start();
    let (id, _) = server.create();
    let token = token();
    let filler = "x".repeat(9_990);
    server.done("talk", json!({ "session_id": id, "command": format!("echo {filler}{token}"), "as_agent": token }));
    server.call("talk", json!({ "session_id": id, "command": "", "sentinel": token }));
    server.call(&token, json!({ "session_id": token, "label": token }));
    emit(&server, &json!({ "action": "a", "session_id": "s", "command": token, "note": token, "label": token }));
    let shown = server.get("/v1/pty-traffic/events?limit=500").body;
    assert!(shown.contains("REDACTED") && !shown.contains("a1B2a1B2"), "{}", shown.len());
    let talk = get(&server, &format!("events?action=talk&session_id={id}&search=x"))["events"][0].clone();
    assert_eq!(talk["command"].as_str().map(|command| command.chars().count()), Some(10_000));
    assert_eq!(talk["command_size"], 9_990 + 5 + 40);
    assert_eq!(
        (&talk["response_truncated"], talk["command_preview"].as_str().map(str::len)),
        (&json!(true), Some(500))
    );
    drop(server);
}

#[test]
fn no_file_of_the_server_has_a_secret_or_hidden_input() {
    let server = Server::start();
    let (id, _) = server.create();
    let password = format!("Tr0ub4dor{}", "&3");
    server.done(
        "send_line",
        json!({ "session_id": id, "data": "read -s -p 'Give: ' SECRET_PIECE; echo got ${#SECRET_PIECE}" }),
    );
    server.done("wait", json!({ "session_id": id, "text": "Give: ", "regex": null, "timeout_ms": 30_000 }));
    wait_for_echo_off(&server, &id);
    server.done("send_line", json!({ "session_id": id, "data": password }));
    server.done("wait", json!({ "session_id": id, "text": "got 11", "timeout_ms": 30_000 }));
    server.done("talk", json!({ "session_id": id, "command": "echo visible" }));
    let typed = get(&server, &format!("events?action=send_line&session_id={id}"));
    assert_eq!(typed["events"][0]["command"], "[hidden input, 11 chars]", "{typed}");
    assert!(typed["events"][1]["command"].as_str().is_some_and(|command| command.starts_with("read -s")), "{typed}");
    assert_eq!(only(&server, "talk", &id)["command"], "echo visible");
    let history = server.done("commands", json!({ "session_id": id })).to_string();
    assert!(!history.contains(&password), "{history}");
    let state = server.state.path().join("state");
    assert_eq!(files_with(&state, password.as_bytes()), Vec::<String>::new());
    assert!(!files_with(&state, b"[hidden input, 11 chars]").is_empty());
}

/// Waits until the terminal's echo is off, as `stty` in another process reports it.
fn wait_for_echo_off(server: &Server, id: &str) {
    let pid = server.done("list", json!({}))["sessions"]
        .as_array()
        .and_then(|sessions| sessions.iter().find(|session| session["session_id"] == id)?["pid"].as_u64())
        .expect("a pid");
    let terminal = std::fs::read_link(format!("/proc/{pid}/fd/0")).expect("a terminal");
    let deadline = Instant::now() + DEADLINE;
    loop {
        let shown = std::process::Command::new("stty").arg("-a").arg("-F").arg(&terminal).output().expect("stty runs");
        if String::from_utf8_lossy(&shown.stdout).split_whitespace().any(|word| word == "-echo") {
            return;
        }
        assert!(Instant::now() < deadline, "the echo stays on");
    }
}

/// The files below a folder that have some bytes in them.
pub(crate) fn files_with(folder: &std::path::Path, needle: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files_with(&path, needle));
        } else if std::fs::read(&path).is_ok_and(|bytes| memchr::memmem::find(&bytes, needle).is_some()) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// Real programs that ask for a secret: that input is hidden, and input at prompts is not.
#[test]
fn what_real_programs_ask_secretly_is_hidden() {
    let server = Server::start();
    let getpass = "python3 -c 'import getpass; print(len(getpass.getpass(\"Ask: \")))'";
    // Reads key by key, as a database's client does.
    let raw = "python3 -c 'import tty,os; tty.setraw(0); os.write(1, b\"Password: \"); \
               n=len(b\"\".join(iter(lambda: os.read(0,1), b\"\\r\"))); os.system(\"stty sane\"); print(n)'";
    for (shell, command, question) in [
        ("/bin/bash", "read -s -p 'Ask: ' X; echo ${#X}", "Ask: "),
        ("/bin/bash", getpass, "Ask: "),
        ("/bin/bash", "stty -echo; printf 'Ask: '; read -r X; stty echo; echo ${#X}", "Ask: "),
        ("/bin/sh", "stty -echo; printf 'Ask: '; read -r X; stty echo; echo ${#X}", "Ask: "),
        ("zsh", "read -s 'X?Ask: '; echo ${#X}", "Ask: "),
        ("/bin/bash", raw, "Password: "),
        ("/bin/bash", "bash -c 'read -s -n 11 -p \"PIN: \" X; echo ${#X}'", "PIN: "),
        ("fish", "read -s -P 'Password: ' X; echo (string length $X)", "Password: "),
    ] {
        let id = server.done("create", json!({ "shell": shell }))["session_id"].as_str().expect("an id").to_owned();
        server.done("talk", json!({ "session_id": id, "command": "echo ready" }));
        let marker = server.done("term_read", json!({ "session_id": id, "max_lines": 0 }))["marker_id"].clone();
        server.done("send_line", json!({ "session_id": id, "data": command, "escapes": false }));
        // The question at the end of a line, behind a prompt that was late at most. In the command it has a quote before it,
        // and fish draws the command word by word.
        let regex = format!("(^| ){} ?$", question.trim());
        let asked = json!({ "session_id": id, "regex": regex, "marker_id": marker, "timeout_ms": 30_000 });
        assert_eq!(server.done("wait", asked)["timed_out"], false, "{shell}: {command}");
        wait_for_echo_off(&server, &id);
        server.done("send_line", json!({ "session_id": id, "data": "open sesame" }));
        let told = server.done("wait", json!({ "session_id": id, "regex": "\\b11$", "timeout_ms": 30_000 }));
        assert_eq!(told["timed_out"], false, "{shell}: {command}: {told}");
        server.done("send_line", json!({ "session_id": id, "data": "echo afterwards" }));
        let typed = get(&server, &format!("events?action=send_line&session_id={id}"));
        let commands: Vec<&str> =
            typed["events"].as_array().expect("events").iter().filter_map(|event| event["command"].as_str()).collect();
        assert_eq!(commands, ["echo afterwards", "[hidden input, 11 chars]", command], "{shell}");
        server.done("kill", json!({ "session_id": id }));
    }
}

/// Line editors disable the echo as well, because they draw the input themselves.
#[test]
fn what_is_shown_is_recorded_as_it_is() {
    let server = Server::start();
    for (command, question) in [("python3 -q", ">>>"), ("read -e -p 'Name: ' X", "Name:"), ("cat", "cat")] {
        let (id, _) = server.create();
        server.done("talk", json!({ "session_id": id, "command": "echo ready" }));
        let marker = server.done("term_read", json!({ "session_id": id, "max_lines": 0 }))["marker_id"].clone();
        server.done("send_line", json!({ "session_id": id, "data": command }));
        let asked = json!({ "session_id": id, "text": question, "marker_id": marker, "timeout_ms": 30_000 });
        assert_eq!(server.done("wait", asked)["timed_out"], false, "{command}");
        server.done("send_line", json!({ "session_id": id, "data": "open sesame" }));
        let typed = get(&server, &format!("events?action=send_line&session_id={id}"));
        assert_eq!(typed["events"][0]["command"], "open sesame", "{command}");
        server.done("kill", json!({ "session_id": id }));
    }
}

#[test]
fn requests_that_make_no_sense_are_the_senders_fault() {
    let server = Server::start();
    for (path, expected) in [
        ("events?since=yesterday", 400),
        ("events?until=2026-13-01", 400),
        ("events?limit=0", 422),
        ("events?limit=501", 422),
        ("events?offset=-1", 422),
        ("events/nothing", 404),
        ("sessions/nothing", 404),
        ("sessions/x?recent_limit=201", 422),
        ("blocked?limit=201", 422),
        ("nothing", 404),
        ("events?since=2020-01-01T00:00:00%2B02:00&until=2020-01-01T00:00:00+02:00", 200),
    ] {
        let response = server.get(&format!("/v1/pty-traffic/{path}"));
        assert_eq!(response.status, expected, "{path}: {}", response.body);
        assert!(
            expected < 300 || response.body.is_empty() || response.json().get("detail").is_some(),
            "{}",
            response.body
        );
    }
    for (body, expected) in [("[]", 422), ("nonsense", 422), ("{}", 400), (r#"{"action":"a"}"#, 400)] {
        let response = server.http("POST", "/v1/pty-traffic/emit", &[JSON_TYPE], body.as_bytes());
        assert_eq!(response.status, expected, "{body}");
    }
    let (code, answer) =
        emit(&server, &json!({ "action": "bash_output", "session_id": "k1", "exit_code": 3, "wave_id": "w" }));
    assert_eq!((code, &answer["ok"], &answer["message"]), (200, &json!(true), &json!("Event stored and broadcast")));
    let id = answer["id"].as_str().expect("an id");
    let event = get(&server, &format!("events/{id}"));
    assert_eq!((&event["exit_code"], &event["wave_id"]), (&json!(3), &json!("w")), "nothing is lost");
    assert_eq!(status(&server, "stats"), 200);
    let cleaned = server.http("POST", "/v1/pty-traffic/storage/cleanup", &[], b"");
    assert_eq!((cleaned.status, cleaned.json()["message"].as_str()), (200, Some("Cleanup completed")));
    let health = get(&server, "health");
    assert_eq!(
        (&health["status"], &health["monitoring"], &health["storage"]["event_count"]),
        (&json!("ok"), &json!(true), &json!(1))
    );
}

#[test]
fn pages_say_exactly_whether_there_is_more() {
    let server = Server::start();
    for number in 0..10 {
        emit(
            &server,
            &json!({ "action": "a", "session_id": "s", "command": format!("n{number}"), "duration": number }),
        );
    }
    for (query, count, has_more) in [
        ("limit=10", 10, false),
        ("limit=9", 9, true),
        ("limit=5&offset=5", 5, false),
        ("limit=5&offset=4", 5, true),
        ("offset=10", 0, false),
        ("offset=99999999", 0, false),
    ] {
        let page = get(&server, &format!("events?{query}"));
        assert_eq!(
            (&page["count"], &page["has_more"], &page["total"]),
            (&json!(count), &json!(has_more), &json!(10)),
            "{query}"
        );
    }
    let first = get(&server, "events?limit=1")["events"][0].clone();
    assert_eq!(first["command"], "n9");
    // A moment that was shown can be asked for.
    let at = first["timestamp"].as_str().expect("a moment");
    assert!(get(&server, &format!("events?since={at}"))["total"].as_u64() >= Some(1));
    let sessions = get(&server, "sessions");
    assert_eq!((&sessions["count"], &sessions["sessions"][0]["avg_duration"]), (&json!(1), &json!(4.5)));
    assert_eq!(get(&server, "sessions/s?recent_limit=3")["recent_events"].as_array().map(Vec::len), Some(3));
}

/// A gateway for the test: replies as configured, and keeps what it received.
pub(crate) fn gateway(answer: &'static str) -> (u16, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (sender, received) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let mut text = Vec::new();
                let mut piece = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut piece) {
                    text.extend_from_slice(&piece[..count]);
                    let whole = String::from_utf8_lossy(&text).into_owned();
                    let Some((head, body)) = whole.split_once("\r\n\r\n") else { continue };
                    let length = head
                        .to_lowercase()
                        .split("content-length:")
                        .nth(1)
                        .and_then(|rest| rest.lines().next()?.trim().parse::<usize>().ok());
                    if Some(body.len()) == length {
                        let _ = sender.send(whole);
                        text.clear();
                        if answer.is_empty() {
                            continue;
                        }
                        let _ = stream.write_all(answer.as_bytes());
                    }
                }
            });
        }
    });
    (port, received)
}

#[test]
fn a_gateway_is_told_and_one_that_is_slow_or_absent_delays_nobody() {
    let (port, received) = gateway("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    let server = Server::start_with(&[("KURORYUU_GATEWAY_URL", &format!("http://127.0.0.1:{port}"))], &[]);
    let (id, _) = server.create();
    server.done("talk", json!({ "session_id": id, "command": "echo told", "as_agent": "a1" }));
    emit(&server, &json!({ "action": "of others", "session_id": "s" }));
    let told: Vec<String> = (0..2).map(|_| received.recv_timeout(DEADLINE).expect("an event")).collect();
    assert!(told[0].starts_with("POST /v1/pty-traffic/emit HTTP/1.1\r\n"), "{}", told[0]);
    let body: Value = serde_json::from_str(told[1].split("\r\n\r\n").nth(1).expect("a body")).expect("JSON");
    assert_eq!((&body["action"], &body["agent_id"], &body["response"]), (&json!("talk"), &json!("a1"), &json!("told")));
    assert_eq!(body.as_object().map(|fields| fields.len()), Some(19));
    server.done("list", json!({}));
    let third = received.recv_timeout(DEADLINE).expect("an event");
    assert!(third.contains("\"list\""), "events of others are not passed on: {third}");
    let (silent, _kept) = gateway("");
    let nobody = TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("an address").port();
    for port in [silent, nobody] {
        let server = Server::start_with(&[("KURORYUU_GATEWAY_URL", &format!("http://127.0.0.1:{port}"))], &[]);
        let (id, _) = server.create();
        let begun = Instant::now();
        for _ in 0..5 {
            server.done("talk", json!({ "session_id": id, "command": "true" }));
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        let deadline = Instant::now() + DEADLINE;
        while server.get("/health").json()["audit"]["gateway_dropped"].as_u64() < Some(1) {
            assert!(Instant::now() < deadline, "what was lost is not counted");
        }
        assert_eq!(get(&server, "events?action=talk")["total"], 5);
    }
}

#[test]
fn a_record_that_cannot_be_written_stops_nobody_and_is_counted() {
    let server = Server::start();
    let (id, _) = server.create();
    drop(get(&server, "events"));
    let database = server.state.path().join("state/traffic.db");
    // An object at the database's path that cannot become a database.
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", database.display()));
    }
    std::fs::create_dir(&database).expect("a folder");
    std::fs::write(database.join("x"), "").expect("a file");
    for _ in 0..3 {
        assert_eq!(server.done("talk", json!({ "session_id": id, "command": "echo on" }))["output"], "on");
    }
    let deadline = Instant::now() + DEADLINE;
    let health = loop {
        let health = server.get("/health").json();
        if health["audit"]["failed"].as_u64() >= Some(3) {
            break health;
        }
        assert!(Instant::now() < deadline, "{health}");
    };
    assert_eq!((&health["ok"], &health["degraded"]), (&json!(true), &json!(true)), "{health}");
    assert_eq!(status(&server, "events"), 503);
    std::fs::remove_dir_all(&database).expect("our folder");
    server.done("talk", json!({ "session_id": id, "command": "echo again" }));
    assert_eq!(get(&server, "events")["events"][0]["command"], "echo again");
    assert!(server.get("/health").json().get("degraded").is_none());
}

#[test]
fn the_record_outlives_the_server_and_damage() {
    let server = Server::start();
    server.create();
    let server = server.restart();
    assert_eq!(get(&server, "events?action=create")["total"], 1);
    let folder = server.state.path().join("state");
    let mut server = server;
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
    std::fs::write(folder.join("traffic.db"), "no database at all".repeat(500)).expect("our file");
    let again = Server::start_on(&folder);
    again.create();
    assert_eq!(get(&again, "events")["total"], 1);
    assert!(folder.join("traffic.db.damaged").is_file());
}

#[test]
fn a_caller_that_goes_away_is_recorded_too() {
    let server = Server::start();
    let (id, _) = server.create();
    let arguments =
        json!({ "action": "talk", "session_id": id, "command": "sleep 20; echo over", "timeout_ms": 60_000 });
    let params = json!({ "name": "k_pty", "arguments": arguments });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let stream = server.ask("POST", "/mcp", &[JSON_TYPE], body.as_bytes());
    let deadline = Instant::now() + DEADLINE;
    while server.done("commands", json!({ "session_id": id }))["count"] == 0 {
        assert!(Instant::now() < deadline, "the command was not typed");
    }
    drop(stream);
    loop {
        let found = get(&server, &format!("events?action=talk&session_id={id}"));
        if found["total"] == 1 {
            let event = &found["events"][0];
            assert_eq!((&event["error_code"], &event["success"]), (&json!("CALLER_GONE"), &json!(false)));
            assert_eq!(event["command"], "sleep 20; echo over");
            break;
        }
        assert!(Instant::now() < deadline, "it was not recorded");
    }
}

#[test]
fn agents_link_themselves_to_free_sessions_without_a_gateway() {
    let server = Server::start();
    let (id, _) = server.create();
    let post = |body: Value| {
        let response = server.http("POST", "/v1/agents/register", &[JSON_TYPE], body.to_string().as_bytes());
        (response.status, response.json())
    };
    assert_eq!(server.get("/v1/agents/leader").status, 404);
    assert_eq!(server.get("/v1/agents/leader").json()["detail"], "No leader registered");
    let (status, answer) =
        post(json!({ "model_name": "m", "role": "leader", "agent_id": "lead", "pty_session_id": id }));
    assert_eq!((status, &answer["ok"], &answer["role"]), (200, &json!(true), &json!("leader")), "{answer}");
    assert_eq!((&answer["pty_linked"], &answer["pty_error"]), (&json!(true), &Value::Null), "{answer}");
    let leader = server.get("/v1/agents/leader").json();
    assert_eq!((&leader["agent_id"], &leader["pty_session_id"]), (&json!("lead"), &json!(id)));
    assert_eq!(server.done("resolve", json!({ "agent_id": "lead" }))["session_id"], json!(id));
    let (_, second) = post(json!({ "model_name": "m", "role": "leader", "pty_session_id": id }));
    assert_eq!((&second["role"], &second["pty_linked"]), (&json!("worker"), &json!(false)), "{second}");
    assert!(second["pty_error"].is_string() && second["message"].as_str().is_some_and(|text| text.contains("lead")));
    let (_, third) = post(json!({ "model_name": "m", "pty_session_id": "pty_nobody" }));
    assert!(third["pty_linked"] == false && third["pty_error"].is_string(), "{third}");
    for bad in [
        json!({}),
        json!({ "model_name": "m", "role": "king" }),
        json!({ "model_name": 7 }),
        json!({ "model_name": "m", "capabilities": "x" }),
    ] {
        assert_eq!(post(bad.clone()).0, 422, "{bad}");
    }
    assert_eq!(get(&server, "events?action=register_agent")["total"], 3);
}
