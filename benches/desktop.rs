//! Cost of reading a desktop's terminal through kpty, as a ratio to the bridge's own response in the same run. A
//! measurement ends with the last byte of a response, so the client's parsing is not included. The desktop is the one
//! of the tests, in Node; `scripts/desktop` installs what it needs.

#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kpty::config::Config;
use kpty::registry::Registration;
use kpty::server::{Callers, Reach, Server, ServerSettings};
use kpty::tools::{Caller, Tools};
use serde_json::{Value, json};

use crate::support::{Home, percentile, runtime, verdict};

const ROUNDS: usize = 1_000;
const WARM: usize = 100;
const GOAL: f64 = 2.0;

fn main() {
    let (runtime, home) = (runtime(), Home::new());
    let config = Config { project_root: home.path().to_owned(), ..Config::default() };
    let tools = Tools::new(config);
    let settings = ServerSettings {
        host: Ipv4Addr::LOCALHOST.into(),
        port: 0,
        bridge_port: None,
        register_with: None,
        reach: Reach::Loopback,
        callers: Callers::Known,
        token_file: None,
        allow_origins: Vec::new(),
        state_dir: Some(home.path().join("state")),
    };
    let server = runtime.block_on(Server::bind(&settings)).expect("a server");
    let port = server.address().port();
    runtime.spawn(server.run(tools.clone(), std::future::pending()));
    println!("{:<40} {:>9} {:>9}", "µs", "p50", "p99");
    for mode in ["embedded", "daemon"] {
        let mut app = App::start(mode);
        let made = app.bridge.post("/test/create", &json!({ "cols": 80, "rows": 24, "cwd": home.path() }));
        let id = made["session_id"].as_str().expect("a terminal").to_owned();
        let desktop_url = format!("http://127.0.0.1:{}", app.port);
        let given = Registration { session_id: id.clone(), desktop_url, ..Registration::default() };
        tools.registry().register_desktop(given).expect("a good entry");
        let mut kpty = Client::new(port);
        let ran = kpty.call(&json!({ "action": "talk", "session_id": id, "command": "seq 500" }));
        assert_eq!(ran["exit_code"], 0, "{ran}");
        for read in ["tail", "viewport"] {
            let direct = json!({ "session_id": id, "mode": read, "max_lines": 40, "merge_wrapped": true });
            let arguments = json!({ "action": "term_read", "session_id": id, "mode": read, "max_lines": 40 });
            let (direct, proxied) = (direct.to_string(), message(&arguments).to_string());
            let shown = kpty.call(&arguments);
            assert!(shown["text"].as_str().is_some_and(|text| text.contains("499\n500")), "{shown}");
            let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
            let (mut own, mut ours, mut bare) = (Vec::new(), Vec::new(), Vec::new());
            for round in 0..ROUNDS + WARM {
                let bridge = timed(|| app.bridge.exchange("/pty/buffer", &direct));
                let through = timed(|| kpty.exchange("/mcp", &proxied));
                let action = timed(|| runtime.block_on(tools.call(&arguments, Caller::default())));
                if round >= WARM {
                    own.push(bridge);
                    ours.push(through);
                    bare.push(action);
                }
            }
            let own = show(&format!("{mode}: {read} from the bridge itself"), &mut own);
            let ours = show(&format!("{mode}: {read} through kpty"), &mut ours);
            let bare = show(&format!("{mode}: {read} as an action"), &mut bare);
            for (what, time) in [("over HTTP", ours), ("as an action", bare), ("what kpty adds over HTTP", ours - own)]
            {
                let ratio = time / own;
                println!("  {:<50} {ratio:>8.3}   goal {GOAL}: {}", format!("{read}, {what}"), verdict(ratio <= GOAL));
            }
        }
    }
    assert_eq!(runtime.block_on(tools.shutdown()), []);
}

/// Calls the tool.
fn message(arguments: &Value) -> Value {
    let params = json!({ "name": "k_pty", "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let began = Instant::now();
    drop(work());
    began.elapsed()
}

fn show(what: &str, times: &mut [Duration]) -> f64 {
    let (p50, p99) = (percentile(times, 0.5), percentile(times, 0.99));
    println!("{what:<40} {p50:>9.0} {p99:>9.0}");
    p50
}

/// The desktop process; it ends when its standard input closes.
struct App {
    child: Child,
    port: u16,
    bridge: Client,
}

impl App {
    fn start(mode: &str) -> Self {
        let modules = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("cargo's folder").join("desktop");
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/desktop/desktop.mjs");
        let mut command = Command::new("node");
        command.arg(program).arg("--modules").arg(modules).args(["--mode", mode]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("node, and scripts/desktop was run");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("its port");
        let said: Value = serde_json::from_str(&line).expect("scripts/desktop was run");
        let port = said["port"].as_u64().expect("a port") as u16;
        Self { child, port, bridge: Client::new(port) }
    }
}

impl Drop for App {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// One blocking connection.
struct Client {
    stream: BufReader<TcpStream>,
    port: u16,
}

impl Client {
    fn new(port: u16) -> Self {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it listens");
        stream.set_nodelay(true).expect("a socket");
        Self { stream: BufReader::new(stream), port }
    }

    fn post(&mut self, path: &str, body: &Value) -> Value {
        serde_json::from_slice(&self.exchange(path, &body.to_string())).expect("JSON")
    }

    /// Sends a request and reads the whole response.
    fn exchange(&mut self, path: &str, body: &str) -> Vec<u8> {
        let port = self.port;
        let head = format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n");
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        self.stream.get_mut().write_all(request.as_bytes()).expect("it reads");
        let (mut length, mut line) = (0, String::new());
        while line != "\r\n" {
            line.clear();
            self.stream.read_line(&mut line).expect("an answer");
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer).expect("the answer");
        answer
    }

    fn call(&mut self, arguments: &Value) -> Value {
        let answer = self.post("/mcp", &message(arguments));
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        serde_json::from_str(text).expect("JSON")
    }
}
