//! The actions, called as a transport calls them, with real shells behind them.

mod keys;
mod screens;
mod tricks;

use std::ffi::OsString;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use kpty::config::Config;
use kpty::error::ErrorCode;
use kpty::tools::{Caller, DEFAULT_TOOL, Reply, Tools};
use serde_json::{Value, json};

use crate::support::{Folder, repository};

/// Only a failure waits this long.
const PATIENCE_MS: u64 = 45_000;

/// Actions, and the sessions that a test made; all are killed at its end.
pub(crate) struct Rig {
    pub(crate) tools: Tools,
    _home: Folder,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(Config::default())
    }

    /// Start-up files of whoever runs the tests may take any time, and suffer when a shell is killed in the middle of
    /// them: unless a test has a home for its shells, they get an empty one.
    pub(crate) fn with(mut config: Config) -> Self {
        let home = Folder::new();
        let own = Config::default().inherited;
        let is_own_home = |pair: &&mut (OsString, OsString)| pair.0 == "HOME" && own.contains(pair);
        if let Some((_, path)) = config.inherited.iter_mut().find(is_own_home) {
            *path = home.path().into();
        }
        Self { tools: Tools::new(config), _home: home }
    }

    pub(crate) async fn reply(&self, arguments: Value) -> Reply {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        self.tools.call(&arguments, Caller::default()).await
    }

    /// A call that must go well.
    pub(crate) async fn call(&self, arguments: Value) -> Value {
        let reply = self.reply(arguments.clone()).await;
        let body = Value::Object(reply.body);
        assert!(!reply.is_error && body["ok"] == true, "{arguments} gave {body}");
        body
    }

    /// A call that must fail in this way.
    pub(crate) async fn fails(&self, arguments: Value, code: ErrorCode) -> Value {
        let reply = self.reply(arguments.clone()).await;
        let is_expected = reply.is(code);
        let body = Value::Object(reply.body);
        assert!(reply.is_error && is_expected && body["ok"] == false, "{arguments} gave {body}");
        assert_eq!(body["message"], body["error"]);
        assert!(body["details"].is_object() && !body["message"].as_str().expect("a message").is_empty(), "{body}");
        body
    }

    pub(crate) async fn create(&self, more: Value) -> Shell<'_> {
        let mut arguments = json!({ "action": "create", "shell": "/bin/bash", "cols": 80, "rows": 24 });
        merge(&mut arguments, more);
        let id = self.call(arguments).await["session_id"].as_str().expect("an id").to_owned();
        Shell { rig: self, id }
    }

    pub(crate) async fn end(self) {
        assert_eq!(self.tools.shutdown().await, []);
    }
}

/// One session of a rig.
pub(crate) struct Shell<'a> {
    rig: &'a Rig,
    pub(crate) id: String,
}

impl Shell<'_> {
    pub(crate) fn arguments(&self, action: &str, more: Value) -> Value {
        let mut arguments = json!({ "action": action, "session_id": self.id });
        merge(&mut arguments, more);
        arguments
    }

    pub(crate) async fn reply(&self, action: &str, more: Value) -> Reply {
        self.rig.reply(self.arguments(action, more)).await
    }

    pub(crate) async fn call(&self, action: &str, more: Value) -> Value {
        self.rig.call(self.arguments(action, more)).await
    }

    pub(crate) async fn fails(&self, action: &str, more: Value, code: ErrorCode) -> Value {
        self.rig.fails(self.arguments(action, more), code).await
    }

    pub(crate) async fn talk(&self, command: &str) -> Value {
        self.call("talk", json!({ "command": command, "timeout_ms": PATIENCE_MS })).await
    }

    /// Waits for what must come.
    pub(crate) async fn wait(&self, more: Value, ended_by: &str) -> Value {
        let mut arguments = json!({ "timeout_ms": PATIENCE_MS });
        merge(&mut arguments, more);
        let body = self.call("wait", arguments).await;
        assert_eq!(body["ended_by"], ended_by, "{body}");
        body
    }
}

fn merge(into: &mut Value, more: Value) {
    let (Value::Object(into), Value::Object(more)) = (into, more) else { panic!("both are objects") };
    into.extend(more);
}

#[test]
fn the_codes_are_those_of_the_fixture() {
    let listed = fs::read_to_string(repository().join("fixtures/wire/error-codes.txt")).expect("the fixture");
    assert_eq!(listed.lines().collect::<Vec<_>>(), ErrorCode::ALL.iter().map(|code| code.as_str()).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parameters_that_cannot_be_meant_are_named() {
    let rig = Rig::new();
    let shell = rig.create(json!({})).await;
    let missing = ErrorCode::MissingParam;
    let invalid = ErrorCode::InvalidParam;
    for (action, more, code, message) in [
        ("talk", json!({}), missing, "command is required"),
        ("talk", json!({ "command": "" }), missing, "command is required"),
        ("talk", json!({ "command": " \n\t" }), missing, "command is required"),
        ("talk", json!({ "command": null }), missing, "command is required"),
        ("talk", json!({ "command": 5 }), invalid, "command"),
        ("talk", json!({ "command": "true", "timeout_ms": -1 }), invalid, "timeout_ms"),
        ("talk", json!({ "command": "true", "timeout_ms": "-1" }), invalid, "timeout_ms"),
        ("talk", json!({ "command": "true", "timeout_ms": "soon" }), invalid, "timeout_ms"),
        ("talk", json!({ "command": "true", "timeout_ms": 1.5 }), invalid, "timeout_ms"),
        ("talk", json!({ "command": "true", "timeout_ms": true }), invalid, "timeout_ms"),
        ("talk", json!({ "command": "true", "timeout_ms": [] }), invalid, "timeout_ms"),
        ("talk", json!({ "command": "true", "raw": "perhaps" }), invalid, "raw"),
        ("talk", json!({ "command": "true", "raw": 2 }), invalid, "raw"),
        ("talk", json!({ "command": "true", "on_timeout": "panic" }), invalid, "'leave' or 'interrupt'"),
        ("talk", json!({ "command": "true", "sentinel": "a b c d" }), invalid, "sentinel"),
        ("talk", json!({ "command": "true", "sentinel": "abc" }), invalid, "sentinel"),
        ("send_line", json!({}), missing, "data is required"),
        ("resize", json!({}), missing, "cols and rows are required"),
        ("resize", json!({ "cols": 0, "rows": 10 }), missing, "cols and rows are required"),
        ("resize", json!({ "cols": -3, "rows": 10 }), invalid, "cols"),
        ("term_read", json!({ "mode": "sideways" }), invalid, "Invalid mode: sideways. Must be 'tail', 'viewport'"),
        ("term_read", json!({ "mode": "range" }), missing, "from_line"),
        ("term_read", json!({ "mode": "delta", "marker_id": 0 }), invalid, "marker_id"),
        ("wait", json!({}), missing, "one of text"),
        ("wait", json!({ "marker_id": 1 }), missing, "one of text"),
        ("wait", json!({ "prompt": false }), missing, "one of text"),
        ("wait", json!({ "regex": "(" }), invalid, "regex"),
        ("wait", json!({ "text": "a", "regex": "b" }), invalid, "not both"),
        ("wait", json!({ "command_id": "cmd_99" }), invalid, "command_id"),
        ("wait", json!({ "command_id": "last" }), invalid, "command_id"),
        ("search", json!({}), missing, "pattern or text"),
        ("search", json!({ "pattern": "[" }), invalid, "pattern"),
        ("commands", json!({ "command_id": 99 }), invalid, "command_id"),
        ("send_keys", json!({}), missing, "one of keys"),
        ("send_keys", json!({ "keys": "Entr" }), invalid, "Enter"),
        ("send_keys", json!({ "keys": [1] }), invalid, "keys"),
        ("send_keys", json!({ "keys": [{ "txt": "a" }] }), invalid, "keys"),
        ("send_keys", json!({ "mouse": { "row": 1 } }), invalid, "row and col"),
        ("send_keys", json!({ "mouse": { "row": 1, "col": 999 } }), invalid, "off the screen"),
        ("send_keys", json!({ "mouse": { "row": 1, "col": 1 } }), invalid, "has not asked for the mouse"),
        ("send_keys", json!({ "mouse": { "text": "no such text" } }), invalid, "not on the screen"),
        ("send_keys", json!({ "mouse": { "row": 1, "col": 1, "action": "hug" } }), invalid, "mouse.action"),
    ] {
        let body = shell.fails(action, more.clone(), code).await;
        assert!(body["message"].as_str().expect("a message").contains(message), "{action} {more}: {body}");
    }
    for (more, message) in [
        (json!({ "args": "-l" }), "args"),
        (json!({ "env": [1] }), "env"),
        (json!({ "env": { "A=B": "x" } }), "env"),
        (json!({ "env": { "A": [] } }), "env.A"),
        (json!({ "owner_role": "king" }), "'leader' or 'worker'"),
        (json!({ "integration": "maybe" }), "integration"),
    ] {
        let mut arguments = json!({ "action": "create" });
        merge(&mut arguments, more);
        let body = rig.fails(arguments, invalid).await;
        assert!(body["message"].as_str().expect("a message").contains(message), "{body}");
    }
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn caps_and_unknown_names_are_told() {
    let rig = Rig::new();
    let created = rig.call(json!({ "action": " CREATE ", "cols": "99999", "rows": 10.0, "colour": "red" })).await;
    assert_eq!(created["clamped"], json!({ "cols": { "given": "99999", "used": 2000 } }));
    assert_eq!((&created["cols"], &created["rows"]), (&json!(2000), &json!(10)));
    assert_eq!(created["ignored_params"], json!(["colour"]));
    let shell = Shell { rig: &rig, id: created["session_id"].as_str().expect("an id").to_owned() };
    let read =
        shell.call("term_read", json!({ "max_lines": 1e30, "max_chars": 60_000, "merge_wrapped": "false" })).await;
    assert_eq!(read["clamped"]["max_lines"]["used"], 200);
    assert_eq!(read["clamped"]["max_chars"], json!({ "given": 60_000, "used": 50_000 }));
    let refused = shell.fails("wait", json!({ "timeout_ms": 90_000, "x": 1 }), ErrorCode::MissingParam).await;
    assert_eq!(refused["ignored_params"], json!(["x"]));
    assert_eq!(refused["clamped"]["timeout_ms"]["used"], 45_000);
    let Value::Object(long) = shell.arguments("wait", json!({ "prompt": true, "timeout_ms": 90_000 })) else {
        panic!()
    };
    let patient = rig.tools.call(&long, Caller { can_show_progress: true, ..Caller::default() }).await;
    assert_eq!((patient.body.get("clamped"), &patient.body["ended_by"]), (None, &json!("prompt")));
    let resized = shell.call("resize", json!({ "cols": "40", "rows": 5_000 })).await;
    assert_eq!((&resized["cols"], &resized["rows"]), (&json!(40), &json!(1000)));
    assert_eq!(shell.talk("stty size").await["output"], "1000 40");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_nobody_knows_is_not_found_by_any_action() {
    let rig = Rig::new();
    let without_id = ["help", "list", "create", "write", "resolve", "send_line_to_agent"];
    for action in DEFAULT_TOOL.action_names().into_iter().filter(|name| !without_id.contains(name)) {
        rig.fails(json!({ "action": action }), ErrorCode::MissingParam).await;
        let arguments = json!({
            "action": action, "session_id": "pty_00000000", "command": "true", "data": "x", "text": "x", "cols": 1, "rows": 1,
            "owner_agent_id": "a",
        });
        let body = rig.fails(arguments, ErrorCode::PtySessionNotFound).await;
        assert_eq!(body["details"]["session_id"], "pty_00000000");
    }
    rig.fails(json!({}), ErrorCode::MissingParam).await;
    rig.fails(json!({ "action": 3 }), ErrorCode::InvalidParam).await;
    let body = rig.fails(json!({ "action": "spawn_cli" }), ErrorCode::UnknownAction).await;
    assert_eq!(body["details"]["available_actions"], json!(DEFAULT_TOOL.action_names()));
    let body = rig.fails(json!({ "action": "write", "data": "x" }), ErrorCode::Deprecated).await;
    assert!(body["details"]["alternatives"].is_array() && body["details"]["reason"].is_string(), "{body}");
    let help = rig.call(json!({ "action": "help" })).await;
    assert_eq!((&help["data"]["leader_only"], &help["error"]), (&json!(false), &Value::Null));
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_created_as_asked_and_listed() {
    let rig = Rig::new();
    let folder = Folder::new();
    let cwd = folder.path().to_str().expect("UTF-8");
    let shell = rig
        .create(json!({
            "cwd": cwd, "env": { "KIND": "of magic", "N": 7 }, "label": "builder", "agent_id": "a1",
            "owner_session_id": "s1", "owner_role": "worker", "args": ["--noprofile"],
        }))
        .await;
    let told = shell.talk("echo $KIND $N $TERM $PAGER; pwd").await;
    assert_eq!(told["output"], format!("of magic 7 xterm-256color cat\n{cwd}"));
    let list = rig.call(json!({ "action": "list" })).await;
    assert_eq!((&list["count"], &list["by_source"]), (&json!(1), &json!({ "local": 1, "desktop": 0 })));
    let listed = &list["sessions"][0];
    for (name, value) in [
        ("session_id", json!(shell.id)),
        ("source", json!("local")),
        ("is_alive", json!(true)),
        ("label", json!("builder")),
        ("owner_agent_id", json!("a1")),
        ("owner_session_id", json!("s1")),
        ("owner_role", json!("worker")),
        ("cwd", json!(cwd)),
        ("cols", json!(80)),
        ("foreground", json!("bash")),
        ("running_command", Value::Null),
    ] {
        assert_eq!(listed[name], value, "{name} of {listed}");
    }
    assert!(listed.get("exit_code").is_none() && listed["buffer_size"].as_u64() > Some(0));
    for (more, message) in [
        (json!({ "cwd": "no/such/folder" }), "Working directory does not exist: no/such/folder"),
        (json!({ "shell": "/no/such/shell" }), ""),
        (json!({ "shell": "no-such-shell" }), ""),
    ] {
        let mut arguments = json!({ "action": "create" });
        merge(&mut arguments, more);
        let body = rig.fails(arguments, ErrorCode::PtySpawnFailed).await;
        assert!(body["message"].as_str().expect("a message").contains(message), "{body}");
        assert!(body["details"]["cwd"].is_string() && body["details"]["shell"].is_string());
    }
    assert_eq!(rig.call(json!({ "action": "list" })).await["count"], 1);
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn talk_tells_output_status_and_how_it_knows() {
    let rig = Rig::new();
    for integration in ["auto", "off"] {
        let shell = rig.create(json!({ "integration": integration })).await;
        let told = shell.call("run", json!({ "command": "echo hi; false", "sentinel": "__MY_END__" })).await;
        let known_by = if integration == "auto" { "integration" } else { "sentinel" };
        assert_eq!((&told["output"], &told["exit_code"]), (&json!("hi"), &json!(1)));
        assert_eq!((&told["completed_by"], &told["sentinel"]), (&json!(known_by), &json!("__MY_END__")));
        assert_eq!((&told["command_id"], &told["truncated"]), (&json!("cmd_1"), &json!(false)));
        assert!(told["duration_ms"].is_u64() && told["lines"].is_array() && told["raw_output"].is_string());
        let cut = shell.call("talk", json!({ "command": "seq 1 400", "max_chars": 100 })).await;
        assert_eq!((&cut["truncated"], &cut["omitted_chars"]), (&json!(true), &json!(1491 - 100)), "{cut}");
        let escaped = shell.call("talk", json!({ "command": "printf '%s' \\x41", "escapes": true })).await;
        assert_eq!(escaped["output"], "A");
    }
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_outlasts_its_time_is_waited_for_later() {
    let rig = Rig::new();
    let shell = rig.create(json!({})).await;
    let slow = json!({ "command": "echo begun; read -r line; echo got $line; (exit 4)", "timeout_ms": 300 });
    shell.talk("true").await;
    let late = shell.fails("talk", slow, ErrorCode::PtyTimeout).await;
    let details = &late["details"];
    for name in ["session_id", "command", "command_id", "partial_output", "screen", "next_actions", "foreground"] {
        assert!(!details[name].is_null(), "{name} of {details}");
    }
    assert_eq!((&details["interrupted"], &details["alternate_screen"]), (&json!(false), &json!(false)));
    assert_eq!(details["partial_output"], "begun");
    let busy = shell.fails("talk", json!({ "command": "true", "timeout_ms": 100 }), ErrorCode::PtyBusy).await;
    assert_eq!(busy["details"]["command_id"], details["command_id"]);
    assert!(busy["details"]["age_ms"].is_u64() && busy["details"]["next_actions"].is_array());
    let running = shell.call("commands", json!({ "command_id": details["command_id"] })).await;
    assert_eq!((&running["command"]["running"], &running["output"]), (&json!(true), &json!("begun")));
    let sent = shell.call("send_line", json!({ "data": "it" })).await;
    assert_eq!(sent["typed"], json!({ "ok": true, "bytes_written": 2 }));
    assert_eq!(sent["enter"], json!({ "ok": true, "bytes_written": 1 }));
    let ended = shell.wait(json!({ "command_id": details["command_id"] }), "command").await;
    assert_eq!((&ended["command"]["exit_code"], &ended["command"]["running"]), (&json!(4), &json!(false)));
    assert!(ended["command"]["output"].as_str().expect("text").ends_with("got it"), "{ended}");
    let stopped = json!({ "command": "sleep 600", "timeout_ms": 300, "on_timeout": "interrupt" });
    let stopped = shell.fails("talk", stopped, ErrorCode::PtyTimeout).await;
    assert_eq!(stopped["details"]["interrupted"], true);
    assert_eq!(shell.talk("echo free").await["output"], "free");
    shell.fails("talk", json!({ "command": "echo 'open" }), ErrorCode::PtyIncompleteCommand).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_session_is_told_and_it_stays_readable() {
    let rig = Rig::new();
    let shell = rig.create(json!({})).await;
    shell.talk("echo last words").await;
    let gone = shell.fails("talk", json!({ "command": "echo bye; exit 7" }), ErrorCode::PtyProcessExited).await;
    assert_eq!(gone["details"]["exit_code"], 7, "{gone}");
    assert!(gone["details"]["partial_output"].as_str().expect("text").contains("bye"), "{gone}");
    assert_eq!(shell.wait(json!({ "exit": true }), "exit").await["exit_code"], 7);
    let sent = shell.fails("send_line", json!({ "data": "x" }), ErrorCode::PtyProcessExited).await;
    assert_eq!((&sent["typed"]["ok"], &sent["enter"]["ok"]), (&json!(false), &json!(false)));
    shell.fails("resize", json!({ "cols": 10, "rows": 10 }), ErrorCode::PtyProcessExited).await;
    shell.fails("send_keys", json!({ "keys": "Enter" }), ErrorCode::PtyProcessExited).await;
    assert!(shell.call("term_read", json!({})).await["text"].as_str().expect("text").contains("last words"));
    assert_eq!(shell.call("read", json!({})).await["session_alive"], false);
    let killed = shell.call("kill", json!({})).await;
    assert_eq!((&killed["was_dead"], &killed["exit_code"]), (&json!(true), &json!(7)));
    let list = rig.call(json!({ "action": "list" })).await;
    assert_eq!((&list["sessions"][0]["is_alive"], &list["sessions"][0]["exit_code"]), (&json!(false), &json!(7)));
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_is_not_killed_by_accident() {
    let rig = Rig::new();
    let shell = rig.create(json!({ "owner_role": "leader" })).await;
    shell.talk("true").await;
    shell.fails("kill", json!({}), ErrorCode::LeaderProtected).await;
    let killed = shell.call("kill", json!({ "force": "true" })).await;
    assert_eq!(killed["message"], format!("Session {} terminated", shell.id));
    assert!(killed.get("exit_code").is_some() || killed.get("signal").is_some(), "{killed}");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limit_counts_the_living_and_the_dead_go_in_time() {
    let rig = Rig::with(Config { max_sessions: 2, dead_retention: Duration::ZERO, ..Config::default() });
    let many = (0..6).map(|_| {
        let tools = rig.tools.clone();
        tokio::spawn(async move {
            let arguments = json!({ "action": "create", "shell": "/bin/sh" });
            let reply = tools.call(arguments.as_object().expect("an object"), Caller::default()).await;
            assert!(!reply.is_error || reply.is(ErrorCode::PtyLimitReached), "{:?}", reply.body);
            !reply.is_error
        })
    });
    let mut made = 0;
    for created in many.collect::<Vec<_>>() {
        made += usize::from(created.await.expect("no panic"));
    }
    assert_eq!(made, 2);
    let body = rig.fails(json!({ "action": "create" }), ErrorCode::PtyLimitReached).await;
    assert_eq!(body["details"]["limit"], 2);
    let list = rig.call(json!({ "action": "list" })).await;
    let first = &list["sessions"][0]["session_id"];
    rig.call(json!({ "action": "kill", "session_id": first })).await;
    rig.create(json!({ "shell": "/bin/sh" })).await;
    let forgotten = async {
        let arguments = json!({ "action": "read", "session_id": first });
        while !rig.reply(arguments.clone()).await.is(ErrorCode::PtySessionNotFound) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_millis(PATIENCE_MS), forgotten).await.expect("the dead go in time");
    rig.tools.shutdown().await;
    rig.fails(json!({ "action": "create" }), ErrorCode::PtyNotAvailable).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dangerous_text_is_refused_in_every_disguise() {
    let rig = Rig::new();
    let shell = rig.create(json!({})).await;
    shell.talk("true").await;
    shell.wait(json!({ "prompt": true }), "prompt").await;
    let before = shell.call("term_read", json!({})).await["text"].clone();
    for (action, more) in [
        ("talk", json!({ "command": "rm -rf /" })),
        ("talk", json!({ "command": r"rm -rf \x2f", "escapes": true })),
        ("send_line", json!({ "data": "rm -rf ~" })),
        ("send_line", json!({ "data": r"rm -rf \x2f" })),
        ("send_line", json!({ "data": "ha\nlt", "escapes": false })),
        ("send_keys", json!({ "text": "rm -rf /" })),
        ("send_keys", json!({ "paste": "rm -rf /" })),
        ("send_keys", json!({ "keys": [{ "text": "rm -rf" }, "Space", "/"] })),
        ("send_keys", json!({ "keys": "h a l t" })),
    ] {
        let body = shell.fails(action, more, ErrorCode::DangerousCommandBlocked).await;
        let details = &body["details"];
        for name in ["rule", "category", "reason", "alternative", "pattern", "command_preview"] {
            assert!(details[name].as_str().is_some_and(|text| !text.is_empty()), "{name}: {body}");
        }
        assert!(body["message"].as_str().is_some_and(|message| message.contains("guard rail")), "{body}");
    }
    assert_eq!(shell.call("term_read", json!({})).await["text"], before);
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_many_sessions_are_not_mixed_up() {
    let rig = Arc::new(Rig::new());
    let tasks: Vec<_> = (0..8)
        .map(|number| {
            let rig = Arc::clone(&rig);
            tokio::spawn(async move {
                let shell = rig.create(json!({})).await;
                shell.wait(json!({ "prompt": true }), "prompt").await;
                for round in 0..5 {
                    let told = shell.talk(&format!("echo {number}.{round}")).await;
                    assert_eq!(told["output"], format!("{number}.{round}"));
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("every answer is its own");
    }
    rig.tools.shutdown().await;
}
