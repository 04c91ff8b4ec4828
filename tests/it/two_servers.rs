//! Two real servers, of which one drives the sessions of the other: what it says of them is what they say themselves.

mod exact;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kpty::error::{Busy, Error, Exited, Incomplete, TimedOut};
use kpty::ids::{CommandId, SessionId};
use kpty::model::ExitInfo;
use kpty::terminal::talk::{TalkRequest, TalkResult};
use kpty::terminal::{Evidence, Output};
use kpty_guard::{Masked, Redactor};
use serde_json::{Value, json};

use crate::server::Server;
use crate::talk::{Stage, hard_cases, play_steps, sample_cases};

/// A server, and another one that has told it of its sessions.
struct Pair {
    main: Server,
    side: Server,
}

impl Pair {
    fn start() -> Self {
        let main = Server::start();
        let side = Server::start_with(&[], &["--register-with", &main.url()]);
        Self { main, side }
    }

    /// A session of the one server that the other one knows.
    fn session(&self, options: Value) -> String {
        let answer = self.side.done("create", options);
        let id = answer["session_id"].as_str().expect("an id").to_owned();
        // It is told at once, but not before `create` answers; only a failure asks so often.
        let path = format!("/v1/pty/sessions/{id}");
        assert!((0..50_000).any(|_| self.main.get(&path).json()["ok"] == true), "{id} is not told");
        id
    }

    /// A command through the proxy.
    fn talk(&self, id: &str, command: &str) -> (Value, Value) {
        let answer = self.main.done("talk", json!({ "session_id": id, "command": command, "timeout_ms": 60_000 }));
        (answer["output"].clone(), answer["exit_code"].clone())
    }
}

#[test]
fn a_command_in_another_servers_session_has_its_output_and_its_code() {
    let pair = Pair::start();
    let id = pair.session(json!({ "cols": 80, "rows": 24 }));
    let long = "A".repeat(300);
    for (command, output, code) in [
        ("echo hi".to_owned(), "hi".to_owned(), 0),
        ("false".to_owned(), String::new(), 1),
        ("sh -c 'exit 17'".to_owned(), String::new(), 17),
        ("printf 'no newline'".to_owned(), "no newline".to_owned(), 0),
        ("wc -l <<X\na\nb\nX".to_owned(), "2".to_owned(), 0),
        (format!("echo {long} # comment"), long.clone(), 0),
        ("for n in 1 2 3\ndo echo $n; done".to_owned(), "1\n2\n3".to_owned(), 0),
        ("echo 'héllo 世界'".to_owned(), "héllo 世界".to_owned(), 0),
        ("cd / && pwd".to_owned(), "/".to_owned(), 0),
        ("pwd".to_owned(), "/".to_owned(), 0),
    ] {
        assert_eq!(pair.talk(&id, &command), (json!(output), json!(code)), "{command}");
    }
    let (output, code) = pair.talk(&id, "seq 3000");
    let expected: Vec<String> = (1..=3_000).map(|number| number.to_string()).collect();
    assert_eq!((output.as_str(), code), (Some(expected.join("\n").as_str()), json!(0)));
    // Whoever looks at the session where it lives sees what was done from elsewhere.
    assert_eq!(pair.side.done("talk", json!({ "session_id": id, "command": "pwd" }))["output"], "/");
}

/// A session of the one server, driven by actions of the other one.
struct Elsewhere {
    pair: Arc<Pair>,
    id: String,
}

impl Elsewhere {
    /// Calls an action of the server that does not run the session.
    async fn call(&self, action: &'static str, mut arguments: Value) -> (Value, bool) {
        arguments["session_id"] = json!(self.id);
        let pair = Arc::clone(&self.pair);
        let called = tokio::task::spawn_blocking(move || pair.main.call(action, arguments));
        called.await.expect("the call comes back")
    }
}

#[async_trait]
impl Stage for Elsewhere {
    async fn talk(&self, request: TalkRequest) -> Result<TalkResult, Error> {
        let TalkRequest { command, sentinel, timeout, max_chars, .. } = request;
        let arguments = json!({
            "command": command, "sentinel": sentinel, "timeout_ms": timeout.as_millis() as u64, "max_chars": max_chars,
        });
        let (reply, is_error) = self.call("talk", arguments).await;
        let (details, session) = (&reply["details"], SessionId::named(&self.id));
        let masked = |text: &str| Redactor::off().mask_str(text);
        let text = |value: &Value| masked(value.as_str().unwrap_or_default());
        let number = |value: &Value| value.as_str().and_then(|id| id.parse().ok()).unwrap_or(CommandId(0));
        match reply["error_code"].as_str().filter(|_| is_error) {
            Some("PTY_TIMEOUT") => Err(Error::Timeout(Box::new(TimedOut {
                session,
                command: number(&details["command_id"]),
                line: masked(&command),
                waited: timeout,
                partial_output: text(&details["partial_output"]),
                screen: text(&details["screen"]),
                foreground: details["foreground"].as_str().map(masked),
                alternate_screen: details["alternate_screen"] == true,
                interrupted: details["interrupted"] == true,
                asks: None,
            }))),
            Some("PTY_PROCESS_EXITED") => {
                let partial_output = details["partial_output"].as_str().map(masked);
                Err(Error::Exited(Box::new(Exited { session, exit: ExitInfo::Unknown, command: None, partial_output })))
            }
            Some("PTY_BUSY") => {
                let message = reply["message"].as_str().unwrap_or_default();
                let (reason, foreground) = (masked(message.trim_end_matches(". Not a byte was typed")), None);
                Err(Error::Busy(Box::new(Busy { session, reason, foreground, command: None, age: None })))
            }
            Some("PTY_INCOMPLETE_COMMAND") => {
                let (command, partial_output) = (number(&details["command_id"]), Masked::default());
                Err(Error::Incomplete(Box::new(Incomplete { session, command, partial_output })))
            }
            Some(code) => Err(Error::Server(format!("{code}: {reply}"))),
            None => Ok(TalkResult {
                command: number(&reply["command_id"]),
                output: Output { text: text(&reply["output"]), ..Output::default() },
                exit_code: reply["exit_code"].as_i64().map(|code| code as i32),
                duration: Duration::from_millis(reply["duration_ms"].as_u64().unwrap_or_default()),
                cwd: reply["cwd"].as_str().map(masked),
                logical_cwd: reply["logical_cwd"].as_str().map(masked),
                completed_by: Evidence::Integration,
                sentinel: text(&reply["sentinel"]),
                raw_output: text(&reply["raw_output"]),
            }),
        }
    }

    /// Typed where the session lives: how keys get there from elsewhere is another subject.
    async fn write(&self, bytes: &[u8]) {
        let body = json!({ "session_id": self.id, "data": String::from_utf8_lossy(bytes) }).to_string();
        let pair = Arc::clone(&self.pair);
        let typed = tokio::task::spawn_blocking(move || {
            pair.side.http("POST", "/pty/write", &[("content-type", "application/json")], body.as_bytes()).status
        });
        typed.await.expect("the call comes back");
    }

    async fn wait_for_prompt(&self, timeout: Duration) -> Result<(), String> {
        let until = json!({ "prompt": true, "timeout_ms": timeout.as_millis() as u64 });
        let (reply, _) = self.call("wait", until).await;
        if reply["ended_by"] == "prompt" { Ok(()) } else { Err(reply.to_string()) }
    }

    async fn screen(&self) -> Result<String, String> {
        let (reply, is_error) = self.call("term_read", json!({ "mode": "viewport" })).await;
        if is_error { Err(reply.to_string()) } else { Ok(reply["text"].as_str().unwrap_or_default().to_owned()) }
    }
}

/// Plays the bash cases of a text in sessions of a server that is driven through another one, a few at a time.
async fn play_all(text: &str) {
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a case is JSON")).collect();
    let is_for_bash = |case: &Value| case["shell"].as_str().is_some_and(|shell| shell.ends_with("/bash"));
    let cases: Vec<_> = cases.into_iter().filter(is_for_bash).collect();
    assert!(!cases.is_empty(), "no cases");
    let pair = Arc::new(Pair::start());
    let mut wrong = Vec::new();
    for group in cases.chunks(4) {
        let mut running = tokio::task::JoinSet::new();
        for case in group.iter().cloned() {
            let id = pair.session(json!({ "shell": "/bin/bash", "cols": case["cols"], "rows": case["rows"] }));
            let session = Elsewhere { pair: Arc::clone(&pair), id };
            let played =
                async move { play_steps(&session, &case).await.err().map(|why| format!("{}: {why}", case["name"])) };
            running.spawn(played);
        }
        wrong.extend(running.join_all().await.into_iter().flatten());
    }
    assert!(wrong.is_empty(), "{} of {} wrong\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bash_cases_of_the_sample_are_right_in_another_servers_sessions() {
    let Some(cases) = sample_cases() else { return };
    play_all(&cases).await;
}

/// All of them: the other server knows the end, and says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_hard_cases_of_bash_are_right_in_another_servers_sessions() {
    play_all(&hard_cases()).await;
}

#[test]
fn both_servers_show_the_same_text() {
    let pair = Pair::start();
    let id = pair.session(json!({ "cols": 40, "rows": 10 }));
    let script =
        "PS1='$ '; clear; seq 30; printf 'w%.0s' $(seq 100); echo; printf '\\033[31mred\\033[0m\\n'; echo 日本";
    pair.side.done("talk", json!({ "session_id": id, "command": script }));
    pair.side.done("wait", json!({ "session_id": id, "prompt": true }));
    for (mode, max_lines) in [("tail", 8), ("tail", 200), ("viewport", 40)] {
        let asked = json!({ "session_id": id, "mode": mode, "max_lines": max_lines });
        let (here, there) = (pair.side.done("term_read", asked.clone()), pair.main.done("term_read", asked));
        let lines = |answer: &Value| answer["lines"].as_array().expect("lines").clone();
        let (here, there) = (lines(&here), lines(&there));
        let least = here.len().min(there.len()).min(max_lines);
        assert!(least >= 8, "{mode}: {here:?} {there:?}");
        assert_eq!(here[here.len() - least..], there[there.len() - least..], "{mode}");
    }
    let found = pair.main.done("search", json!({ "session_id": id, "pattern": "^r.d$" }));
    assert_eq!(found["matches"].as_array().map(Vec::len), Some(1), "{found}");
}

#[test]
fn a_reader_elsewhere_loses_and_doubles_no_line() {
    let pair = Pair::start();
    let id = pair.session(json!({ "cols": 80, "rows": 24 }));
    let read = |marker: &Value| {
        let asked = json!({
            "session_id": id, "mode": "delta", "marker_id": marker, "max_lines": 200, "max_chars": 50_000,
        });
        pair.main.done("term_read", asked)
    };
    // Lines of one row, of two and of four: places are counted in rows.
    for digits in [1, 100, 300] {
        let first = read(&Value::Null);
        assert!(first["marker_id"].is_number(), "{first}");
        let mut marker = first["marker_id"].clone();
        let mut seen: Vec<String> = Vec::new();
        for round in 0..5 {
            let (from, to) = (round * 40, round * 40 + 39);
            let command = format!("for n in $(seq {from} {to}); do printf 'line%s %0{digits}d\n' $n 0; done");
            pair.side.done("talk", json!({ "session_id": id, "command": command }));
            let answer = read(&marker);
            assert_eq!(answer["marker_disposed"], false, "{digits}, {round}: {answer}");
            marker = answer["marker_id"].clone();
            let lines = answer["lines"].as_array().expect("lines").iter().filter_map(Value::as_str);
            let words = lines.filter_map(|line| line.strip_prefix("line")?.split(' ').next());
            seen.extend(words.filter(|word| word.parse::<u32>().is_ok()).map(str::to_owned));
        }
        let expected: Vec<String> = (0..200).map(|number| number.to_string()).collect();
        assert_eq!(seen, expected, "{digits}");
    }
}

#[test]
fn waiting_and_keys_work_from_elsewhere() {
    let pair = Pair::start();
    let id = pair.session(json!({}));
    pair.talk(&id, "true");
    pair.main.done("send_line", json!({ "session_id": id, "data": "echo sta''rted; cat" }));
    let waited = pair.main.done("wait", json!({ "session_id": id, "text": "started", "timeout_ms": 45_000 }));
    assert_eq!((&waited["ended_by"], &waited["timed_out"]), (&json!("text"), &json!(false)), "{waited}");
    pair.main.done("send_keys", json!({ "session_id": id, "text": "typed", "keys": "Enter" }));
    // The echo and what `cat` says.
    let twice = json!({ "session_id": id, "regex": "(?m)^typed$", "timeout_ms": 45_000 });
    assert_eq!(pair.main.done("wait", twice)["timed_out"], false);
    pair.main.done("send_keys", json!({ "session_id": id, "keys": "Ctrl-C" }));
    let back = pair.side.done("wait", json!({ "session_id": id, "prompt": true, "timeout_ms": 45_000 }));
    assert_eq!(back["ended_by"], "prompt", "{back}");
    assert_eq!(pair.talk(&id, "echo again"), (json!("again"), json!(0)));
}

#[test]
fn what_may_not_be_done_elsewhere_is_refused_here() {
    let pair = Pair::start();
    let id = pair.session(json!({}));
    let dangerous = ["rm -rf ", "/"].concat();
    for action in ["talk", "send_line"] {
        let name = if action == "talk" { "command" } else { "data" };
        let (answer, is_error) = pair.main.call(action, json!({ "session_id": id, name: dangerous }));
        assert!(is_error && answer["error_code"] == "DANGEROUS_COMMAND_BLOCKED", "{answer}");
    }
    for (action, more, code) in [
        ("kill", json!({}), "DESKTOP_KILL_DISABLED"),
        ("resize", json!({ "cols": 80, "rows": 24 }), "DESKTOP_RESIZE_DISABLED"),
    ] {
        let mut arguments = more;
        arguments["session_id"] = json!(id);
        let (answer, is_error) = pair.main.call(action, arguments);
        assert!(is_error && answer["error_code"] == code, "{action}: {answer}");
    }
}

#[test]
fn a_session_that_ends_elsewhere_is_gone_here() {
    let pair = Pair::start();
    let id = pair.session(json!({}));
    let (answer, is_error) = pair.main.call("talk", json!({ "session_id": id, "command": "exit 4" }));
    assert!(is_error && answer["error_code"] == "PTY_PROCESS_EXITED", "{answer}");
    let path = format!("/v1/pty/sessions/{id}");
    assert!((0..50_000).any(|_| pair.main.get(&path).json()["ok"] == false), "it is still listed");
}
