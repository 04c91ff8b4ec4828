//! Cost of an HTTP call as ratios within one run: to a blocking read loop on a bare PTY, to an echo server with the
//! same HTTP library, and to tmux in control mode. One client is used for all, on persistent connections.

#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post;
use kpty::config::Config;
use kpty::server::{Callers, Reach, Server, ServerSettings};
use kpty::tools::Tools;
use serde_json::{Value, json};

use crate::support::{COLS, Home, ROWS, percentile, runtime, verdict};

const ROUNDS: usize = 1_000;
/// Number of consecutive calls, where calls do not start from idle.
const ROW: usize = 20;
/// Pause after which a server's background work is done. axum's echo wakes two more threads that look for work, which
/// would delay the next call.
const REST: Duration = Duration::from_millis(1);
/// Pause after which opened or closed clients cause no further work.
const SETTLED: Duration = Duration::from_millis(60);
const CONNECTIONS: usize = 16;
const CALLS: usize = 500;

fn main() {
    let runtime = runtime();
    let home = Home::new();
    let inherited = home.environment();
    let config = Config { project_root: home.path().to_owned(), inherited, ..Config::default() };
    let tools = Tools::new(config);
    let (server, echo) = runtime.block_on(async {
        let settings = ServerSettings {
            host: [127, 0, 0, 1].into(),
            port: 0,
            bridge_port: None,
            register_with: None,
            reach: Reach::Loopback,
            callers: Callers::Known,
            token_file: None,
            allow_origins: Vec::new(),
            state_dir: Some(home.path().join("state")),
        };
        let server = Server::bind(&settings).await.expect("a server");
        let address = server.address();
        tokio::spawn(server.run(tools.clone(), std::future::pending()));
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let listener_address = listener.local_addr().expect("an address");
        let echo = Router::new().route("/mcp", post(|body: String| async { body }));
        tokio::spawn(async move { axum::serve(listener, echo).await });
        (address, listener_address)
    });
    let mut client = Client::new(server);
    let created = client.call(json!({ "action": "create", "shell": "/bin/bash", "cols": COLS, "rows": ROWS }));
    let id = created["session_id"].as_str().expect("a session").to_owned();
    println!("{:<40} {:>9} {:>9}", "µs", "p50", "p99");
    talk(&mut client, &id, &home);
    viewport(&mut client, &id, echo);
    rate(server, echo);
    beside_waits(&mut client, server, &id);
    assert_eq!(runtime.block_on(tools.shutdown()), []);
}

/// One blocking connection.
struct Client {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Client {
    fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_nodelay(true).expect("a socket");
        let head = format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n");
        Self { stream: BufReader::new(stream), head }
    }

    /// Sends a body and reads the response body.
    fn post(&mut self, body: &str) -> Vec<u8> {
        let request = format!("{}Content-Length: {}\r\n\r\n{body}", self.head, body.len());
        self.stream.get_mut().write_all(request.as_bytes()).expect("it reads");
        let (mut length, mut line) = (0, String::new());
        loop {
            line.clear();
            self.stream.read_line(&mut line).expect("an answer");
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("the answer");
        body
    }

    fn call(&mut self, arguments: Value) -> Value {
        let answer: Value = serde_json::from_slice(&self.post(&message(arguments))).expect("JSON");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        serde_json::from_str(text).expect("JSON")
    }
}

fn message(arguments: Value) -> String {
    let params = json!({ "name": "k_pty", "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let began = Instant::now();
    let result = work();
    (began.elapsed(), result)
}

fn show(what: &str, times: &mut [Duration]) -> f64 {
    let (p50, p99) = (percentile(times, 0.5), percentile(times, 0.99));
    println!("{what:<40} {p50:>9.0} {p99:>9.0}");
    p50
}

fn judge(what: &str, ratio: f64, goal: f64, is_met: bool) {
    println!("  {what:<50} {ratio:>8.3}   goal {goal}: {}", verdict(is_met));
}

fn talk(client: &mut Client, id: &str, home: &Home) {
    let mut bare = home.bare("/bin/bash", &["--norc"]);
    bare.ask("echo READ\"\"Y\r", "READY");
    client.call(json!({ "action": "talk", "session_id": id, "command": "echo warm" }));
    let (mut floor, mut times) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        floor.push(bare.ask(&format!("echo X{round}; echo SE\"\"NT{round}\r"), &format!("SENT{round}")));
        let question = json!({ "action": "talk", "session_id": id, "command": format!("echo X{round}") });
        let (time, answer) = timed(|| client.call(question));
        times.push(time);
        assert_eq!((&answer["output"], &answer["exit_code"]), (&json!(format!("X{round}")), &json!(0)));
    }
    bare.end();
    let floor = show("blocking read on a bare PTY", &mut floor);
    let talk = show("talk over HTTP", &mut times);
    judge("talk, to the blocking read", talk / floor, 2.5, talk / floor <= 2.5);
    judge("talk, to a poll every 50 ms", talk / 50_000.0, 0.02, talk / 50_000.0 <= 0.02);
}

/// Reads the screen, compared with an echo of the same size and with tmux: from idle, as agents call; alternating,
/// where each call pays for the background work of the one before it; and back to back, where mostly the work itself
/// remains.
fn viewport(client: &mut Client, id: &str, echo: SocketAddr) {
    let fill = json!({ "action": "talk", "session_id": id, "command": "clear; seq -f 'line %g of a full screen' 60" });
    client.call(fill);
    let question = message(json!({ "action": "term_read", "session_id": id, "mode": "viewport" }));
    let size = client.post(&question).len();
    let mut echoing = Client::new(echo);
    let same_size = "x".repeat(size);
    let mut tmux = Tmux::new();
    for (way, rest, calls) in [("from rest", REST, 1), ("by turns", Duration::ZERO, 1), ("in a row", REST, ROW)] {
        let (mut echoed, mut read, mut captured) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS / calls {
            repeat(rest, calls, &mut echoed, || drop(echoing.post(&same_size)));
            repeat(rest, calls, &mut read, || drop(client.post(&question)));
            repeat(rest, calls, &mut captured, || drop(tmux.capture()));
        }
        let echoed = show(&format!("echo of {size} bytes, {way}"), &mut echoed);
        let captured = show(&format!("tmux's capture-pane, {way}"), &mut captured);
        let read = show(&format!("viewport over HTTP, {way}"), &mut read);
        judge(&format!("viewport, to the echo, {way}"), read / echoed, 2.0, read / echoed <= 2.0);
        judge(&format!("viewport, to tmux, {way}"), read / captured, 1.5, read / captured <= 1.5);
    }
}

/// Returns the times of calls from idle.
#[expect(clippy::disallowed_methods, reason = "nothing is waited for: the rest is what is measured from")]
fn repeat(rest: Duration, calls: usize, times: &mut Vec<Duration>, mut call: impl FnMut()) {
    if !rest.is_zero() {
        std::thread::sleep(rest);
    }
    times.extend((0..calls).map(|_| timed(&mut call).0));
}

/// Calls per second on several connections: the protocol's no-op, and the cheapest action, which is checked, redacted
/// and recorded like any other.
fn rate(server: SocketAddr, echo: SocketAddr) {
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let action = message(json!({ "action": "resize", "session_id": "pty_none", "cols": 80, "rows": 24 }));
    let mut ratios = [Vec::new(), Vec::new()];
    for _ in 0..5 {
        for (question, ratios) in [&ping, &action].into_iter().zip(&mut ratios) {
            let echoed = per_second(echo, question);
            ratios.push(per_second(server, question) / echoed);
        }
    }
    for (what, ratios) in ["trivial calls (ping), to the echo", "the least action, to the echo"].into_iter().zip(ratios)
    {
        let (ratio, _) = support::median(&ratios);
        judge(what, ratio, 0.5, ratio >= 0.5);
    }
}

fn per_second(address: SocketAddr, body: &str) -> f64 {
    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| Client::new(address)).collect();
    clients.iter_mut().for_each(|client| drop(client.post(body)));
    let (time, ()) = timed(|| {
        std::thread::scope(|scope| {
            for client in &mut clients {
                scope.spawn(|| (0..CALLS).for_each(|_| drop(client.post(body))));
            }
        });
    });
    (CONNECTIONS * CALLS) as f64 / time.as_secs_f64()
}

/// Measures the same call alone and with concurrent calls.
fn beside_waits(client: &mut Client, server: SocketAddr, id: &str) {
    let question = message(json!({ "action": "term_read", "session_id": id, "mode": "viewport" }));
    let wait = message(json!({ "action": "wait", "session_id": id, "text": "never", "timeout_ms": 30_000 }));
    let begin_to_wait = |_| {
        let mut waiting = Client::new(server);
        let request = format!("{}Content-Length: {}\r\n\r\n{wait}", waiting.head, wait.len());
        waiting.stream.get_mut().write_all(request.as_bytes()).expect("it reads");
        waiting
    };
    for count in [1, CONNECTIONS] {
        let (mut alone, mut beside) = (Vec::new(), Vec::new());
        // Alternates, because machine speed varies from second to second.
        for _ in 0..ROUNDS / ROW {
            repeat(SETTLED, ROW, &mut alone, || drop(client.post(&question)));
            let waiting: Vec<_> = (0..count).map(begin_to_wait).collect();
            repeat(SETTLED, ROW, &mut beside, || drop(client.post(&question)));
            drop(waiting);
        }
        let ratio = percentile(&mut beside, 0.5) / percentile(&mut alone, 0.5);
        judge(&format!("viewport, to alone, beside who wait: {count}"), ratio, 1.1, ratio <= 1.1);
    }
}

/// tmux on a private socket, used through its control mode.
struct Tmux {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    socket: String,
}

impl Tmux {
    fn new() -> Self {
        let socket = format!("kpty-bench-{}", std::process::id());
        let mut command = Command::new("tmux");
        command.args(["-L", &socket, "-f", "/dev/null", "-C", "new-session", "-x", "120", "-y", "30"]);
        command.arg("seq -f 'line %g of a full screen' 60; sleep 1000");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("tmux");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut tmux = Self { child, input, output, socket };
        // The screen is drawn asynchronously.
        while !tmux.capture().contains("line 60 ") {}
        tmux
    }

    fn capture(&mut self) -> String {
        self.input.write_all(b"capture-pane -p\n").expect("tmux reads");
        let (mut text, mut line) = (String::new(), String::new());
        loop {
            line.clear();
            let read = self.output.read_line(&mut line).expect("tmux answers");
            assert!(read > 0, "tmux is gone");
            // The reply to the session's own start also has an end marker, and no text.
            if line.starts_with("%end") && !text.is_empty() {
                return text;
            }
            if !line.starts_with('%') {
                text.push_str(&line);
            }
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-L", &self.socket, "kill-server"]).status();
        let _ = self.child.wait();
    }
}
