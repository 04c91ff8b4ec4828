//! A running `kpty serve` for one test, and raw HTTP requests with explicit headers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Folder, Run, command, finished};

/// Timeout that only a failure reaches.
const DEADLINE: Duration = Duration::from_secs(60);

/// What is kept of what it says.
const MOST_KEPT: usize = 8 << 20;

/// A server on a free port; it is killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    pub(crate) state: Folder,
    /// What it said before it listened.
    pub(crate) said: String,
    /// What it says after that, when it has ended.
    later: Option<JoinHandle<Vec<u8>>>,
    all: String,
}

/// An answer over HTTP.
pub(crate) struct Response {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Response {
    /// A header by its lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        fields.filter(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }
}

/// Opens a connection to a port of this machine and sends a request on it; the answer is still to be read.
fn ask(port: u16, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        head.push_str(&format!("Host: 127.0.0.1:{port}\r\n"));
    }
    stream.write_all(head.as_bytes()).expect("the server reads");
    stream.write_all(b"\r\n").expect("the server reads");
    stream.write_all(body).expect("the server reads");
    stream
}

/// One request to a port of this machine, and its answer.
pub(crate) fn http(port: u16, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
    let mut text = String::new();
    ask(port, method, path, headers, body).read_to_string(&mut text).expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no HTTP: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Response { status: status.expect("a status"), head: head.to_owned(), body: body.to_owned() }
}

impl Server {
    /// Starts it and waits until it says where it listens.
    pub(crate) fn start() -> Self {
        Self::start_with(&[], &[])
    }

    /// Starts it with variables and arguments besides.
    pub(crate) fn start_with(env: &[(&str, &str)], arguments: &[&str]) -> Self {
        Self::start_in(Folder::new(), env, arguments)
    }

    /// Ends it as it is ended by a person, and starts it again on the same state folder.
    pub(crate) fn restart(mut self) -> Self {
        self.signal("TERM");
        assert_eq!(self.end().code(), Some(0));
        let state = std::mem::replace(&mut self.state, Folder::new());
        Self::start_in(state, &[], &[])
    }

    fn start_in(state: Folder, env: &[(&str, &str)], arguments: &[&str]) -> Self {
        let folder = state.path().join("state");
        let mut command = Self::serve(&folder, state.path());
        command.args(arguments).envs(env.iter().copied());
        Self::launch(command, state)
    }

    /// Starts it on a state folder that outlives it.
    pub(crate) fn start_on(folder: &Path) -> Self {
        let home = Folder::new();
        Self::launch(Self::serve(folder, home.path()), home)
    }

    /// The command for a server on a free port.
    pub(crate) fn serve(folder: &Path, home: &Path) -> Command {
        let mut command = command(["serve", "--port", "0", "--state-dir"]);
        command.arg(folder).env("HOME", home);
        command.env("KURORYUU_PTY_SHELL", "/bin/bash").env("KURORYUU_PROJECT_ROOT", home);
        command
    }

    /// Starts a server and waits until it says where it listens.
    pub(crate) fn launch(mut command: Command, state: Folder) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("kpty starts");
        let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut said = String::new();
        let port = loop {
            let mut line = String::new();
            let length = errors.read_line(&mut line).expect("the server says where it listens");
            assert_ne!(length, 0, "the server says: {said:?}");
            let port = line.trim().strip_prefix("kpty: listening on http://").and_then(|rest| rest.split(',').next());
            if let Some(port) = port.and_then(|rest| rest.rsplit(':').next()).and_then(|port| port.parse().ok()) {
                break port;
            }
            // Warnings may come first.
            said.push_str(&line);
        };
        // Whatever comes later must not block the server.
        let later = std::thread::spawn(move || {
            let (mut kept, mut piece) = (Vec::new(), [0; 8_192]);
            while let Ok(length @ 1..) = errors.read(&mut piece) {
                let room = MOST_KEPT.saturating_sub(kept.len()).min(length);
                kept.extend_from_slice(&piece[..room]);
            }
            kept
        });
        Self { child, port, state, said, later: Some(later), all: String::new() }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.pid().to_string()]).status();
        assert!(status.expect("kill runs").success());
    }

    /// Waits for its end.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let status = self.child.wait().expect("the server is our child");
        if let Some(later) = self.later.take() {
            self.all = String::from_utf8_lossy(&later.join().expect("a reader")).into_owned();
        }
        status
    }

    /// What a server said after it listened that has ended.
    pub(crate) fn said_in_all(&self) -> &str {
        &self.all
    }

    /// Opens a connection and sends a request on it; the answer is still to be read.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        ask(self.port, method, path, headers, body)
    }

    /// One request and its answer.
    pub(crate) fn http(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        http(self.port, method, path, headers, body)
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.http("GET", path, &[], b"")
    }

    /// A body to `/mcp`.
    pub(crate) fn post(&self, body: &str) -> Response {
        self.http("POST", "/mcp", &[("Content-Type", "application/json")], body.as_bytes())
    }

    /// A JSON-RPC request; the whole answer.
    pub(crate) fn rpc(&self, method: &str, params: Value) -> Value {
        let response = self.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string());
        assert_eq!(response.status, 200, "{}", response.body);
        response.json()
    }

    /// An action; its own answer and the flag.
    pub(crate) fn call(&self, action: &str, mut arguments: Value) -> (Value, bool) {
        arguments["action"] = json!(action);
        let answer = self.rpc("tools/call", json!({ "name": "k_pty", "arguments": arguments }));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer}"));
        (serde_json::from_str(text).expect("JSON"), result["isError"].as_bool().expect("a flag"))
    }

    /// An action that must succeed.
    pub(crate) fn done(&self, action: &str, arguments: Value) -> Value {
        let (answer, is_error) = self.call(action, arguments);
        assert!(!is_error && answer["ok"] == true, "{action}: {answer}");
        answer
    }

    /// A new session of bash; its id and pid.
    pub(crate) fn create(&self) -> (String, u32) {
        let answer = self.done("create", json!({}));
        let id = answer["session_id"].as_str().expect("an id").to_owned();
        (id, answer["pid"].as_u64().expect("a pid") as u32)
    }

    /// Runs the command line against this server.
    pub(crate) fn kpty(&self, arguments: &[&str]) -> Run {
        finished(self.command(arguments).output().expect("kpty starts"))
    }

    /// The command line against this server, not yet started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(arguments);
        command.env("KURORYUU_MCP_URL", self.url());
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended already cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
