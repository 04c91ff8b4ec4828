//! Access control of the built program: web pages, other users of the machine, malformed requests.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::server::Server;
use crate::support::{Folder, Run, command, finished};

const TOKEN: &str = "a-token-of-the-tests-0123456789";
const JSON_TYPE: (&str, &str) = ("Content-Type", "application/json");

/// Routes that exist, that may be added, and that do not exist.
const ROUTES: [(&str, &str); 28] = [
    ("GET", "/"),
    ("GET", "/health"),
    ("GET", "/tools"),
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("OPTIONS", "/mcp"),
    ("POST", "/_x9k_desktop_auth"),
    ("POST", "/v1/pty/register"),
    ("DELETE", "/v1/pty/reset"),
    ("GET", "/v1/pty/sessions"),
    ("POST", "/pty/talk"),
    ("POST", "/pty/write"),
    ("POST", "/pty/read"),
    ("POST", "/pty/buffer"),
    ("GET", "/pty/list"),
    ("GET", "/pty/is-leader?session_id=x"),
    ("POST", "/v1/pty-traffic/emit"),
    ("GET", "/v1/pty-traffic/events"),
    ("GET", "/v1/pty-traffic/events/x"),
    ("GET", "/v1/pty-traffic/sessions"),
    ("GET", "/v1/pty-traffic/stats"),
    ("GET", "/v1/pty-traffic/blocked"),
    ("GET", "/v1/pty-traffic/health"),
    ("POST", "/v1/pty-traffic/storage/cleanup"),
    ("GET", "/ws/pty-traffic"),
    ("POST", "/v1/agents/register"),
    ("GET", "/v1/agents/leader"),
    ("POST", "/nothing/of/the/kind"),
];

/// A file with the token, accessible to its owner only.
fn token_file(folder: &Folder, mode: u32) -> String {
    let path = folder.file("token", TOKEN);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("our file");
    }
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn no_route_is_open_to_web_pages() {
    let server = Server::start_with(&[], &["--allow-origin", "http://desk.example:5173"]);
    let own = format!("localhost:{}", server.port);
    let other_port = format!("localhost:{}", server.port ^ 1);
    let rebound = format!("evil.example:{}", server.port);
    let bracketed = format!("[::1].evil.example:{}", server.port);
    let with_user = format!("user@localhost:{}", server.port);
    let refused = [
        vec![("Host", rebound.as_str())],
        vec![("Host", other_port.as_str())],
        vec![("Host", with_user.as_str())],
        vec![("Host", "")],
        vec![("Host", own.as_str()), ("Host", rebound.as_str())],
        vec![("Origin", "https://evil.example")],
        vec![("Origin", "null")],
        vec![("Host", bracketed.as_str())],
        vec![("Origin", "http://[::1].evil.example")],
        vec![("Origin", "http://localhost.evil.example")],
        vec![("Origin", "http://localhost:3000"), ("Origin", "https://evil.example")],
        vec![("Sec-Fetch-Site", "cross-site")],
        vec![("Sec-Fetch-Site", "same-site")],
        vec![("Origin", "http://localhost:3000"), ("Sec-Fetch-Site", "same-site")],
    ];
    for (method, path) in ROUTES {
        for headers in &refused {
            let response = server.http(method, path, headers, b"");
            assert_eq!(response.status, 403, "{method} {path} {headers:?}");
            assert!(response.json()["detail"].is_string(), "{}", response.body);
            assert_eq!(response.header("access-control-allow-origin"), None, "{method} {path}");
        }
        for kind in ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", ""] {
            let response = server.http(method, path, &[("Content-Type", kind)], b"action=create");
            assert_eq!(response.status, 415, "{method} {path} {kind:?}");
        }
        assert_eq!(server.http(method, path, &[], b"{}").status, 415, "{method} {path}");
        let allowed = [("Origin", "http://desk.example:5173"), ("Sec-Fetch-Site", "cross-site")];
        for headers in [&[][..], &allowed, &[("Origin", "http://localhost:3000")], &[("Sec-Fetch-Site", "none")]] {
            let response = server.http(method, path, headers, b"");
            // Some routes require a secret of their own after access is granted.
            let is_in =
                ![401, 403].contains(&response.status) || response.body.contains("Desktop authentication required");
            assert!(is_in, "{method} {path} {headers:?}: {} {}", response.status, response.body);
            assert_eq!(response.header("access-control-allow-origin"), None, "{method} {path}");
        }
    }
    assert_eq!(server.done("list", json!({}))["sessions"], json!([]));
}

/// Under a foreign host name the own user is not authorized, so any user can test the token.
#[test]
fn who_is_not_known_needs_the_token() {
    let folder = Folder::new();
    let file = token_file(&folder, 0o600);
    let server = Server::start_with(&[], &["--allow-remote", "--token-file", &file]);
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let right = format!("Bearer {TOKEN}");
    let (shorter, longer) = (&right[..right.len() - 1], format!("{right}x"));
    let host = ("Host", "box.example");
    for (sent, expected) in [
        (Some(right.as_str()), 200),
        (Some(shorter), 401),
        (Some(longer.as_str()), 401),
        (Some("Bearer"), 401),
        (Some(TOKEN), 401),
        (None, 401),
    ] {
        let mut headers = vec![JSON_TYPE, host];
        headers.extend(sent.map(|sent| ("Authorization", sent)));
        let response = server.http("POST", "/mcp", &headers, ping);
        assert_eq!(response.status, expected, "{sent:?}");
        if expected == 401 {
            assert!(response.json()["detail"].is_string(), "{}", response.body);
            assert_eq!(response.header("www-authenticate"), Some("Bearer"));
            for (method, path) in ROUTES {
                let expected = if (method, path) == ("GET", "/health") { 200 } else { 401 };
                assert_eq!(server.http(method, path, &headers[1..], b"").status, expected, "{method} {path}");
            }
        }
    }
}

#[test]
fn bodies_are_judged_by_their_heads() {
    let server = Server::start();
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a deadline");
    // The body is never sent, so a server that waits for it does not answer.
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        server.port,
        17 << 20
    );
    stream.write_all(head.as_bytes()).expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("larger than"), "{answer}");
    // A smaller body is read first, so that its sender reads the response.
    let large = vec![b' '; (4 << 20) + 1];
    assert_eq!(server.http("POST", "/mcp", &[JSON_TYPE], &large).status, 413);
    let nowhere = server.get("/nothing/of/the/kind");
    assert_eq!((nowhere.status, &nowhere.json()["detail"]), (404, &json!("Not Found")));
    let empty = server.http("POST", "/v1/pty-traffic/storage/cleanup", &[], b"");
    assert_eq!(empty.status, 200, "{}", empty.body);
    assert_eq!(server.get("/health").status, 200);
}

#[test]
fn an_unknown_caller_is_answered_before_its_body_is_read() {
    let folder = Folder::new();
    let file = token_file(&folder, 0o600);
    let server = Server::start_with(&[], &["--allow-remote", "--token-file", &file]);
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a deadline");
    let head =
        "POST /mcp HTTP/1.1\r\nHost: box.example\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("the server reads");
    let mut status = [0; 12];
    stream.read_exact(&mut status).expect("an answer, without the body");
    assert_eq!(&status, b"HTTP/1.1 401");
}

#[test]
#[cfg(unix)]
fn a_token_file_that_is_no_secret_stops_the_start() {
    let folder = Folder::new();
    let serve = |file: &str, rest: &[&str]| {
        let state = folder.path().join("state");
        let mut command = command(["serve", "--port", "0", "--token-file", file, "--state-dir"]);
        let run: Run = finished(command.arg(state).args(rest).output().expect("kpty starts"));
        assert_eq!(run.code, 2, "{}", run.stderr);
        run.stderr
    };
    assert!(serve(&token_file(&folder, 0o644), &[]).contains("chmod 600"));
    let missing = folder.path().join("missing");
    assert!(serve(missing.to_str().expect("UTF-8"), &[]).contains("missing"));
    let good = token_file(&folder, 0o600);
    assert!(serve(&good, &["--host", "0.0.0.0"]).contains("--allow-remote"));
    assert!(serve(&good, &["--host", "0.0.0.0", "--allow-remote", "--no-auth"]).contains("--no-auth"));
    assert!(serve(&good, &["--allow-origin", "null"]).contains("not an origin"));
    let run = finished(command(["serve", "--port", "0", "--allow-remote"]).output().expect("kpty starts"));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("--token-file"), "{}", run.stderr);
}

/// Tests with a second user of this machine; skipped with a message where the process cannot switch users.
#[cfg(target_os = "linux")]
pub(crate) mod other_user {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, Stdio};

    use super::*;

    pub(crate) const NOBODY: u32 = 65_534;

    #[expect(clippy::print_stderr, reason = "a test that is left out says so")]
    pub(crate) fn can_be_had() -> bool {
        let is_root = rustix::process::geteuid().is_root();
        if !is_root {
            eprintln!("left out: only root can become a second user");
        }
        is_root
    }

    /// Sends bytes as another user. Returns the response; `None` if the connection closes at once.
    fn send(port: u16, request: &str, after: &str) -> String {
        let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; printf %s \"$1\" >&3; {after}");
        let output = Command::new("bash")
            .args(["-c", &script, "bash", request])
            .uid(NOBODY)
            .gid(NOBODY)
            .current_dir("/")
            .output();
        String::from_utf8(output.expect("bash runs").stdout).expect("UTF-8")
    }

    /// Returns the response to another user.
    pub(crate) fn get(server: &Server, path: &str) -> String {
        get_with(server, path, "")
    }

    /// Like the function above, with additional header lines.
    pub(crate) fn get_with(server: &Server, path: &str, more: &str) -> String {
        let port = server.port;
        let head = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{more}\r\n");
        send(port, &head, "cat <&3")
    }

    /// Starts a server that admits the token, and returns the program and the token for another user.
    pub(crate) fn with_token(folder: &Folder) -> Server {
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("our folder");
        let server = Server::start_with(&[], &["--token-file", &token_file(folder, 0o600)]);
        // Copied by another program: a concurrent test would inherit our open file descriptor, and the kernel does not
        // execute a file that is open for writing.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_kpty")).arg(folder.path().join("kpty")).status();
        assert!(copied.expect("cp runs").success());
        let theirs = folder.file("theirs", TOKEN);
        std::fs::set_permissions(&theirs, std::fs::Permissions::from_mode(0o600)).expect("our file");
        std::os::unix::fs::chown(&theirs, Some(NOBODY), Some(NOBODY)).expect("root may");
        server
    }

    /// Runs a command as the other user, with its own home.
    pub(crate) fn run_with_token(folder: &Folder, home: &Folder, command: Command) -> Run {
        std::os::unix::fs::chown(home.path(), Some(NOBODY), Some(NOBODY)).expect("root may");
        let mut theirs = Command::new(folder.path().join("kpty"));
        theirs.args(command.get_args()).current_dir("/").env("KPTY_TOKEN_FILE", folder.path().join("theirs"));
        theirs.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        finished(theirs.env("HOME", home.path()).uid(NOBODY).gid(NOBODY).output().expect("kpty starts"))
    }

    /// A request that creates a session whose program creates a file.
    fn creating(server: &Server, file: &Path, extra: &str) -> String {
        let arguments =
            json!({ "action": "create", "shell": "/bin/sh", "args": ["-c", "echo > \"$0\"; exec cat", file] });
        let params = json!({ "name": "k_pty", "arguments": arguments });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
        format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nConnection: close\r\n\
             {extra}Content-Length: {}\r\n\r\n{body}",
            server.port,
            body.len()
        )
    }

    /// Creates an own session after the request under test and waits until its work is done.
    fn work_of_our_own(server: &Server) {
        let (id, _) = server.create();
        server.done("talk", json!({ "session_id": id, "command": "echo done" }));
        server.done("kill", json!({ "session_id": id }));
    }

    fn sessions(server: &Server) -> usize {
        server.done("list", json!({}))["sessions"].as_array().expect("a list").len()
    }

    #[test]
    fn nothing_runs_for_another_user() {
        if !can_be_had() {
            return;
        }
        let server = Server::start();
        let file = server.state.path().join("made-by-another");
        let answer = send(server.port, &creating(&server, &file, ""), "cat <&3");
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
        assert!(answer.contains("\"detail\""), "{answer}");
        let health = format!("GET /health HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n", server.port);
        assert!(send(server.port, &health, "cat <&3").starts_with("HTTP/1.1 200"));
        let info = health.replace("/health", "/");
        assert!(send(server.port, &info, "cat <&3").starts_with("HTTP/1.1 401"));
        assert_eq!(sessions(&server), 0);
        work_of_our_own(&server);
        assert!(!file.exists());
    }

    /// The kernel reports user 0 for a socket that no process holds. While the server is stopped, the other user can
    /// send a request and close before the server checks it.
    #[test]
    fn nothing_runs_for_another_user_that_closes_at_once() {
        if !can_be_had() {
            return;
        }
        let server = Server::start();
        let file = server.state.path().join("made-by-another");
        // With the beginning of another request behind it, the first is processed before the end is seen.
        let blind = format!("{}GET / HTTP/1.1\r\n", creating(&server, &file, ""));
        server.signal("STOP");
        for _ in 0..20 {
            send(server.port, &blind, "exec 3>&-");
        }
        server.signal("CONT");
        for _ in 0..20 {
            send(server.port, &blind, "exec 3>&-");
        }
        work_of_our_own(&server);
        assert_eq!(sessions(&server), 1);
        assert!(!file.exists());
    }

    #[test]
    fn another_user_with_the_token_is_let_in() {
        if !can_be_had() {
            return;
        }
        let folder = Folder::new();
        let token = token_file(&folder, 0o600);
        let server = Server::start_with(&[], &["--token-file", &token]);
        let file = server.state.path().join("made-by-another");
        for wrong in ["", "Authorization: Bearer wrong-token-0123456789\r\n"] {
            let answer = send(server.port, &creating(&server, &file, wrong), "cat <&3");
            assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
        }
        assert!(!file.exists() && sessions(&server) == 0);
        let right = format!("Authorization: Bearer {TOKEN}\r\n");
        let answer = send(server.port, &creating(&server, &file, &right), "cat <&3");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(sessions(&server), 1);
    }

    /// Runs the command line as another user; the program and the token are copied to a folder that user can read.
    #[test]
    fn the_command_line_of_another_user_sends_the_token() {
        if !can_be_had() {
            return;
        }
        let folder = Folder::new();
        let server = with_token(&folder);
        let (program, theirs) = (folder.path().join("kpty"), folder.path().join("theirs"));
        let list = |token: Option<&Path>| {
            let mut command = Command::new(&program);
            command.args(["list", "--url", &server.url()]).current_dir("/").env_remove("HOME");
            if let Some(token) = token {
                command.env("KPTY_TOKEN_FILE", token);
            }
            finished(command.uid(NOBODY).gid(NOBODY).output().expect("kpty starts"))
        };
        let run = list(None);
        assert_eq!(run.code, 2);
        assert!(run.stderr.contains("401"), "{}", run.stderr);
        let run = list(Some(&theirs));
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    }

    /// A listener on the port receives requests, but the token only if it is the own user or a named one.
    #[test]
    fn the_token_is_not_sent_to_another_user_who_listens() {
        if !can_be_had() {
            return;
        }
        let folder = Folder::new();
        std::fs::create_dir_all(folder.path().join(".local/state/kpty")).expect("a folder");
        let token = token_file(&folder, 0o600);
        let found = folder.path().join(".local/state/kpty/token");
        std::fs::copy(&token, &found).expect("a copy");
        // Replies with an invalid response and prints the request.
        let script = "import os, socket, sys\nos.setgid(65534); os.setuid(65534)\ns = socket.socket(); \
                      s.bind(('127.0.0.1', 0)); s.listen(); print(s.getsockname()[1], flush=True)\n\
                      for _ in range(3):\n c = s.accept()[0]; print(repr(c.recv(65536)), flush=True); c.close()\n";
        let mut python = Command::new("python3");
        python.args(["-c", script]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = Listener(python.spawn().expect("python3"));
        let mut said = BufReader::new(child.0.stdout.take().expect("a pipe"));
        let mut port = String::new();
        said.read_line(&mut port).expect("a port");
        let url = format!("http://127.0.0.1:{}", port.trim());
        let kpty = |arguments: &[&str]| {
            let mut command = command(arguments.iter().chain(&["--url", &url]));
            finished(
                command.env("HOME", folder.path()).env_remove("KURORYUU_PROJECT_ROOT").output().expect("kpty starts"),
            )
        };
        let run = kpty(&["list", "--token-file", &token]);
        assert_eq!(run.code, 2);
        assert!(run.stderr.contains("--server-user 65534"), "{}", run.stderr);
        let mut asked = |arguments: &[&str]| {
            let run = kpty(arguments);
            assert_eq!(run.code, 2, "{}", run.stderr);
            let mut line = String::new();
            said.read_line(&mut line).expect("a request");
            line
        };
        // A socket that was found is skipped.
        let request = asked(&["list"]);
        assert!(request.contains("POST /mcp") && !request.contains(TOKEN), "{request}");
        let request = asked(&["list", "--token-file", &token, "--server-user", "65534"]);
        assert!(request.contains(TOKEN), "{request}");
    }

    /// A process that is killed on drop.
    struct Listener(Child);

    impl Drop for Listener {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn without_checks_everybody_on_the_machine_is_let_in() {
        if !can_be_had() {
            return;
        }
        let server = Server::start_with(&[], &["--no-auth"]);
        let file = server.state.path().join("made-by-another");
        assert!(send(server.port, &creating(&server, &file, ""), "cat <&3").starts_with("HTTP/1.1 200"));
    }
}

/// Pseudo-random numbers, the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }

    /// Applies one to four mutations.
    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len());
            match self.below(6) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, self.below(256) as u8),
                3 => bytes.truncate(at.max(1)),
                4 => {
                    let end = (at + 1 + self.below(40)).min(bytes.len());
                    let piece = bytes[at..end].to_vec();
                    bytes.splice(at..at, piece);
                }
                _ => {
                    let words: [&[u8]; 6] = [b"\r\n", b"\0", b"{", b"99999999999999999999", b"\xff\xfe", b": "];
                    bytes.splice(at..at, words[self.below(words.len())].iter().copied());
                }
            }
        }
    }
}

#[test]
fn two_thousand_broken_requests_do_no_harm() {
    const THREADS: usize = 20;
    const REQUESTS_EACH: usize = 100;
    let server = Server::start();
    let port = server.port;
    let post = |body: &str| {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let call = |arguments: &str| {
        let params = format!(r#"{{"name":"k_pty","arguments":{arguments}}}"#);
        post(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#))
    };
    let seeds = [
        format!("GET /health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nAuthorization: Bearer x\r\n\r\n"),
        post(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#),
        post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#),
        call(r#"{"action":"list"}"#),
        call(r#"{"action":"talk","session_id":"pty_00000000","command":"echo","timeout_ms":50}"#),
        call(r#"{"action":"term_read","session_id":"pty_00000000","mode":"tail","max_lines":10}"#),
        call(r#"{"action":"create","cwd":"/no/such/folder","cols":80,"rows":24,"env":{"A":"b"}}"#),
    ];
    let answered: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|worker| {
                let seeds = &seeds;
                scope.spawn(move || {
                    let mut chance = Chance(0x5eed_0000 + worker as u64);
                    (0..REQUESTS_EACH)
                        .filter(|_| {
                            let mut bytes = seeds[chance.below(seeds.len())].clone().into_bytes();
                            chance.mutate(&mut bytes);
                            is_answered_without_harm(port, &bytes)
                        })
                        .count()
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("no harm")).sum()
    });
    // Some requests wait for a rest that never arrives; most are complete enough for a response.
    assert!(answered > THREADS * REQUESTS_EACH / 2, "{answered}");
    work(&server);
}

/// Sends a request and reads the response. A truncated request may get none.
fn is_answered_without_harm(port: u16, bytes: &[u8]) -> bool {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_millis(300))).expect("a deadline");
    // A server that has read enough may close early.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    let said = String::from_utf8_lossy(bytes);
    assert!(!text.starts_with("HTTP/1.1 5") && !text.contains("-32603"), "{said:?}: {text}");
    assert!(!text.contains("panicked"), "{said:?}: {text}");
    text.starts_with("HTTP/1.1 ")
}

fn work(server: &Server) {
    let (id, _) = server.create();
    assert_eq!(server.done("talk", json!({ "session_id": id, "command": "echo still here" }))["output"], "still here");
}
