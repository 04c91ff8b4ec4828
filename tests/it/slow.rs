//! Slow and numerous clients: their cost is bounded, and the server's own user is served.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::access::other_user::{NOBODY, can_be_had};
use crate::server::Server;

const HEADS: usize = 500;
const MOST_KB: u64 = 8 << 10;

/// Resident memory of a process, in KB.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process that is there");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("its memory");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

/// Another user with many incomplete request heads; it ends with its standard input.
struct Crowd(Child);

impl Crowd {
    fn gather(port: u16, filler: usize) -> Self {
        let script = format!(
            "trap '' PIPE; ulimit -n 2048; pad=$(printf 'x%.0s' $(seq {filler})); for i in $(seq {HEADS}); do \
             exec {{fd}}<>/dev/tcp/127.0.0.1/{port} && printf 'GET /health HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\nA: %s' $pad >&$fd; \
             done 2>/dev/null; echo all; cat"
        );
        let mut command = Command::new("bash");
        command.args(["-c", &script]).uid(NOBODY).gid(NOBODY).current_dir("/");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("bash runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        assert_eq!(line, "all\n");
        Self(child)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the slowest of several own requests, each on a new connection.
fn slowest(server: &Server) -> Duration {
    let one = |_| {
        let began = Instant::now();
        assert_eq!(server.get("/health").status, 200);
        server.done("list", json!({}));
        began.elapsed() / 2
    };
    (0..20).map(one).max().expect("some")
}

#[test]
fn five_hundred_half_heads_of_another_user_cost_little_and_delay_nobody() {
    if !can_be_had() {
        return;
    }
    for filler in [1, 8_000, 60_000] {
        let server = Server::start();
        slowest(&server);
        let before = resident(server.pid());
        let crowd = Crowd::gather(server.port, filler);
        let took = slowest(&server);
        let more = resident(server.pid()).saturating_sub(before);
        assert!(more < MOST_KB, "{more} KB for heads of {filler} bytes");
        assert!(took < Duration::from_millis(100), "{took:?} beside heads of {filler} bytes");
        let files = std::fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("its descriptors").count();
        assert!(files < 100, "{files} descriptors");
        let (id, _) = server.create();
        assert_eq!(server.done("talk", json!({ "session_id": id, "command": "echo hi" }))["output"], "hi");
        drop(crowd);
    }
}

/// Open paths need no body, and the server buffers none for an unauthorized client.
#[test]
fn an_unknown_caller_sends_no_body() {
    if !can_be_had() {
        return;
    }
    let server = Server::start();
    let head = "Content-Type: application/json\r\nContent-Length: 4000000\r\n";
    let answer = crate::access::other_user::get_with(&server, "/health", head);
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

/// With all descriptors in use, the own user can still connect.
#[test]
fn there_are_descriptors_left_for_the_owner() {
    let folder = crate::support::Folder::new();
    let state = folder.path().join("state");
    let mut command = Command::new("bash");
    command.args(["-c", "ulimit -n 64; exec \"$0\" serve --port 0 --state-dir \"$1\"", env!("CARGO_BIN_EXE_kpty")]);
    command.arg(&state).env("HOME", folder.path()).env("KURORYUU_PTY_SHELL", "/bin/bash");
    let server = Server::launch(command, folder);
    let mut refused = None;
    for _ in 0..64 {
        let (answer, is_error) = server.call("create", json!({ "shell": "/bin/cat" }));
        if is_error {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("there are not so many descriptors");
    assert!(refused["error_code"].is_string(), "{refused}");
    for _ in 0..20 {
        let began = Instant::now();
        assert_eq!(server.get("/health").status, 200);
        server.done("list", json!({}));
        assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    }
}

/// Idle connections do not delay others.
#[test]
fn idle_connections_of_our_own_do_no_harm() {
    let server = Server::start();
    let idle: Vec<_> = (0..200)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("the server listens");
            let head = format!("GET /health HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", server.port);
            stream.write_all(head.as_bytes()).expect("the server reads");
            assert!(stream.read(&mut [0; 1024]).expect("an answer") > 0);
            stream
        })
        .collect();
    assert!(slowest(&server) < Duration::from_millis(100));
    drop(idle);
}
