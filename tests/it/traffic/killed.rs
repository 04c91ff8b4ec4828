//! A server that is killed in the middle of its work has recorded every command that it typed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::live::{Seeded, amount};
use crate::server::Server;
use crate::support::Folder;

const SESSIONS: usize = 4;

/// Talks in every session until the server is gone. Each command leaves its number in a file.
#[expect(clippy::disallowed_methods, reason = "the moment of the end is what the test is about")]
fn work(server: &mut Server, ran: &Path, next: &AtomicU64, kill_after: Duration) {
    let ids: Vec<_> = (0..SESSIONS).map(|_| server.create().0).collect();
    let port = server.port;
    std::thread::scope(|scope| {
        for id in &ids {
            scope.spawn(move || {
                loop {
                    let command = format!("echo {} >> '{}'", next.fetch_add(1, Ordering::Relaxed), ran.display());
                    let arguments = json!({ "action": "talk", "session_id": id, "command": command });
                    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                        "params": { "name": "k_pty", "arguments": arguments } });
                    if !is_answered(port, &call) {
                        return;
                    }
                }
            });
        }
        std::thread::sleep(kill_after);
        server.signal("KILL");
        server.end();
    });
}

/// One request; false when the server has gone.
fn is_answered(port: u16, call: &Value) -> bool {
    use std::io::{Read as _, Write as _};
    let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", port)) else { return false };
    let body = call.to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut answer = String::new();
    stream.write_all(head.as_bytes()).is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.contains("\"jsonrpc\"")
}

/// The numbers in the logs of all sessions.
fn recorded(state: &Path) -> BTreeSet<u64> {
    let folders = fs::read_dir(state.join("sessions")).expect("sessions").flatten();
    let logs = folders.filter_map(|folder| fs::read_to_string(folder.path().join("events.jsonl")).ok());
    let lines: Vec<String> = logs.flat_map(|log| log.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let events = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let number = |event: Value| event["command"].as_str()?.strip_prefix("echo ")?.split(' ').next()?.parse().ok();
    events.filter_map(number).collect()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the shells of a killed server end in their own time")]
fn a_killed_server_has_recorded_every_command_that_it_typed() {
    let parent = Folder::new();
    let (state, ran) = (parent.path().join("state"), parent.path().join("ran"));
    let (next, mut random) = (AtomicU64::new(1), Seeded::new(2));
    for round in 0..amount(3, 100) {
        let mut server = Server::start_on(&state);
        work(&mut server, &ran, &next, Duration::from_millis(100 + random.below(500)));
        let registry = fs::read_to_string(state.join("_registry.json")).unwrap_or_else(|_| "{}".to_owned());
        assert!(serde_json::from_str::<Value>(&registry).is_ok(), "{round}: {registry}");
        let _next = Server::start_on(&state);
        // A shell may have gone on for a moment.
        let began = Instant::now();
        loop {
            let text = fs::read_to_string(&ran).unwrap_or_default();
            let typed: BTreeSet<u64> = text.lines().filter_map(|line| line.parse().ok()).collect();
            let recorded = recorded(&state);
            let missing: Vec<_> = typed.difference(&recorded).collect();
            if missing.is_empty() && !typed.is_empty() {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{round}: {missing:?} of {} are missing", typed.len());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
