//! Server life cycle on the command line: status, doctor, stop.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::server::Server;
use crate::support::{command, finished, kpty, refused, shown};

#[test]
fn a_server_can_be_asked_for_and_ended() {
    let mut server = Server::start();
    let (id, _) = server.create();
    let url = server.url();
    let status = shown(["status", "--url", &url]);
    assert_eq!(
        status,
        format!("kpty {} at {url}, pid {}, 1 live sessions, healthy\n", env!("CARGO_PKG_VERSION"), server.pid())
    );
    let health: Value = serde_json::from_str(&shown(["status", "--json", "--url", &url])).expect("JSON");
    assert_eq!(health["pid"], server.pid());
    let shell = server.done("list", serde_json::json!({}))["sessions"][0]["pid"].as_u64().expect("a pid");
    assert!(id.starts_with("pty_"));
    let stopped = std::thread::scope(|scope| {
        // The parent must reap the process before it counts as ended.
        let stop = scope.spawn(|| kpty(["stop", "--url", &url]));
        assert!(server.end().success());
        stop.join().expect("kpty ends")
    });
    assert_eq!((stopped.code, stopped.stderr.as_str()), (0, ""));
    assert!(stopped.stdout.contains("has ended"), "{}", stopped.stdout);
    assert!(!std::path::Path::new(&format!("/proc/{shell}")).exists(), "its shells are gone with it");
    for command in ["status", "stop"] {
        let run = kpty([command, "--url", &url]);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{command}: {}", run.stderr);
    }
}

/// Sessions that flood, sessions that ignore signals, and waiting clients do not delay the shutdown.
#[test]
fn a_busy_server_is_gone_five_seconds_after_it_was_asked() {
    let mut server = Server::start();
    let stay = "trap '' HUP TERM; while :; do sleep 1000 & wait; done";
    let pids: Vec<_> = (0..40)
        .map(|number| {
            let line = if number % 8 == 0 { "yes" } else { stay };
            let arguments = serde_json::json!({ "shell": "/bin/sh", "args": ["-c", line] });
            server.done("create", arguments)["pid"].as_u64().expect("a pid")
        })
        .collect();
    let (id, _) = server.create();
    let wait = serde_json::json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "k_pty", "arguments": { "action": "wait", "session_id": id, "exit": true } },
    });
    let json = [("Content-Type", "application/json")];
    let _waiting: Vec<_> = (0..8).map(|_| server.ask("POST", "/mcp", &json, wait.to_string().as_bytes())).collect();
    let asked = Instant::now();
    server.signal("TERM");
    assert!(server.end().success());
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    let registry = server.state.path().join("state/_registry.json");
    assert!(registry.exists(), "its state is saved");
    for pid in pids {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(") Z "), "left behind: {stat}");
    }
}

#[test]
fn a_port_that_is_taken_is_named_with_the_setting_for_another() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port().to_string();
    let folder = crate::support::Folder::new();
    let state = folder.path().join("state");
    let message = refused(["serve", "--port", &port, "--state-dir", state.to_str().expect("UTF-8")]);
    assert!(message.contains(&format!("127.0.0.1:{port}")) && message.contains("KURORYUU_MCP_PORT"), "{message}");
}

/// Any program that listens on a port can answer and name any process.
#[test]
fn nothing_is_ended_on_the_word_of_a_stranger() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let mut sleeper = Sleeper(Command::new("sleep").arg("1000").spawn().expect("sleep"));
    let body = format!(r#"{{"ok":true,"version":"1","pid":{}}}"#, sleeper.0.id());
    let stranger = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a caller");
        assert!(stream.read(&mut [0; 1024]).expect("a request") > 0);
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).expect("the caller reads");
    });
    assert!(refused(["stop", "--url", &url]).contains("nothing was ended"));
    stranger.join().expect("the stranger");
    assert!(sleeper.0.try_wait().expect("our child").is_none());
}

/// A process that is killed on drop.
struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_doctor_looks_at_everything_and_a_bad_setting_is_named() {
    let url = "http://127.0.0.1:9";
    let run = finished(command(["doctor", "--url", url]).output().expect("kpty starts"));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{}", run.stdout);
    for what in ["settings", "terminal", "bash", "zsh", "fish", "open files", "server"] {
        assert!(run.stdout.lines().any(|line| line.contains(what)), "{what}: {}", run.stdout);
    }
    assert!(run.stdout.contains("/bin/bash answers, by integration"), "{}", run.stdout);
    let mut bad = command(["doctor", "--json", "--url", url]);
    bad.env("KURORYUU_PTY_COLS", "wide");
    let run = finished(bad.output().expect("kpty starts"));
    assert_eq!(run.code, 1);
    let findings: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!((&findings[0]["what"], &findings[0]["state"]), (&"settings".into(), &"bad".into()), "{findings}");
    assert!(findings[0]["text"].as_str().is_some_and(|text| text.contains("KURORYUU_PTY_COLS")));
}

#[test]
fn settings_of_clients_are_printed() {
    let printed = shown(["mcp-config", "claude"]);
    let value: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(value["mcpServers"]["kpty"]["url"], "http://127.0.0.1:8100/mcp");
    assert!(shown(["mcp-config", "codex", "--stdio"]).contains("args = [\"mcp\"]"));
    assert!(refused(["mcp-config", "emacs"]).contains("emacs"));
}
