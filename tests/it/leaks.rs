//! No surface shows a secret: a table of surfaces, a table of secrets, and one claim for each pair.
//!
//! A redacting server shows two sessions that have printed every secret: a local one, and one of a second server that
//! redacts nothing and acts as its desktop. `redaction.rs` covers single ways to split a secret; this module covers
//! every place where text leaves the server.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use kpty_guard::Redactor;
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

use crate::server::Server;
use crate::support::Folder;
use crate::traffic::gateway;
use crate::ui;

/// A run of this many characters of a secret counts as a leak.
const LEAK_CHARS: usize = 12;
/// Timeout that only a failure reaches.
const PATIENCE_MS: u64 = 60_000;

/// The secrets, assembled at run time so that none appears in the repository.
struct Secrets {
    seed: String,
    wrapped: String,
    coloured: String,
    in_pieces: String,
    key_lines: Vec<String>,
    /// Of the server's variable.
    internal: String,
    /// Of a variable of the session.
    variable: String,
    password: String,
    /// Of the start-up files of the session; known once it runs.
    integration: String,
}

impl Secrets {
    fn new() -> Self {
        // Each from another place of one sequence that does not come back to itself.
        let letters = |from: u32, length: u32| -> String {
            let mixed = |at: u32| (at.wrapping_mul(2_654_435_761) >> 7 ^ at).wrapping_mul(2_246_822_519) >> 11;
            let letter = |at: u32| char::from(b"q7Xk2Zm9Tw4Rb8Lc5Vn1Hj6Gd3Fs0PyEaUuK"[mixed(at) as usize % 36]);
            (from * 100..from * 100 + length).map(letter).collect()
        };
        let key_line = |line: u32| format!("{}/{}", letters(20 + line, 31), letters(80 + line, 32));
        Self {
            seed: ["sk-", "ant-api03-", &letters(1, 90), "AA"].concat(),
            wrapped: ["gh", "p_", &letters(3, 36)].concat(),
            coloured: ["glp", "at-", &letters(5, 20)].concat(),
            in_pieces: ["np", "m_", &letters(7, 36)].concat(),
            key_lines: (0..40).map(key_line).collect(),
            internal: ["int-", &letters(9, 28)].concat(),
            variable: ["var.", &letters(11, 24)].concat(),
            password: ["correct", "-Horse7-", "battery", "Staple"].concat(),
            integration: String::new(),
        }
    }

    /// Those that can be typed on a line and are known for what they are.
    fn typed(&self) -> [&str; 6] {
        [&self.seed, &self.wrapped, &self.coloured, &self.in_pieces, &self.internal, &self.variable]
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        let others =
            [self.password.as_str(), self.integration.as_str()].into_iter().filter(|secret| !secret.is_empty());
        self.typed().into_iter().chain(others).chain(self.key_lines.iter().map(String::as_str))
    }

    /// A program that shows them all, each cut in its own way.
    fn script(&self, folder: &Folder) -> String {
        let half = |text: &str| (text[..text.len() / 2].to_owned(), text[text.len() / 2..].to_owned());
        let (coloured, rest) = half(&self.coloured);
        let (piece, other_piece) = half(&self.in_pieces);
        let frame = |word: &str| ["-----", word, " RSA PRIVATE", " KEY-----"].concat();
        let first = format!(
            "seed {}\n{} {}\n{coloured}\x1b[1;31m{rest}\x1b[0m\ninternal {}\nvariable {}\n{piece}",
            self.seed,
            "x".repeat(70),
            self.wrapped,
            self.internal,
            self.variable,
        );
        let second = format!(
            "{other_piece}\n\x1b]0;{}\x07{}\n{}\n{}\n",
            self.wrapped,
            frame("BEGIN"),
            self.key_lines.join("\n"),
            frame("END"),
        );
        let (first, second) = (folder.file("first", first), folder.file("second", second));
        let script = format!("cat '{}'; sleep 0.2; cat '{}'; echo over-$((1+1))\n", first.display(), second.display());
        folder.file("show", script).display().to_string()
    }
}

/// Strips escape sequences and line breaks from a text, raw or in JSON notation.
fn flat(text: &str) -> String {
    let text = text.replace("\\u001b", "\x1b").replace("\\n", "").replace("\\r", "");
    let (mut flat, mut rest) = (String::new(), text.chars().peekable());
    while let Some(c) = rest.next() {
        match c {
            '\x1b' if rest.peek() == Some(&'[') => {
                while rest.next().is_some_and(|c| !('@'..='~').contains(&c) || c == '[') {}
            }
            '\r' | '\n' => {}
            c => flat.push(c),
        }
    }
    flat
}

/// Returns the secrets of which a run is left, each with the run.
fn leaks<'a>(secrets: &'a Secrets, text: &str) -> Vec<(&'a str, String)> {
    let text = flat(text);
    let run_left = |secret: &'a str| {
        let chars: Vec<char> = secret.chars().collect();
        let mut runs = chars.windows(LEAK_CHARS.min(chars.len())).map(|run| run.iter().collect::<String>());
        runs.find(|run| text.contains(run.as_str())).map(|run| (secret, run))
    };
    secrets.all().filter_map(run_left).collect()
}

/// Returns all texts of a reply, names included.
fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ Value::Object(_)) => texts(&inner),
            _ => text.clone() + "\n",
        },
        Value::Array(values) => values.iter().map(texts).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| format!("{name}\n{}", texts(value))).collect(),
        _ => String::new(),
    }
}

/// Output of a surface.
type Surface = (String, String);

/// A server with a session that has shown every secret.
struct Stage {
    server: Server,
    id: String,
    secrets: Secrets,
    folder: Folder,
}

impl Stage {
    fn answer(&self, action: &str, mut arguments: Value) -> Surface {
        let name = format!("{action} {arguments}");
        if arguments.get("session_id").is_none() {
            arguments["session_id"] = json!(self.id);
        }
        arguments["action"] = json!(action);
        let answer = self.server.rpc("tools/call", json!({ "name": "k_pty", "arguments": arguments }));
        (name.chars().take(160).collect(), texts(&answer))
    }

    fn http(&self, method: &str, path: &str, body: &Value) -> Surface {
        let headers = [("Content-Type", "application/json")];
        let answer = self.server.http(method, path, &headers, body.to_string().as_bytes());
        let text = serde_json::from_str(&answer.body).map_or(answer.body.clone(), |value| texts(&value));
        (format!("{method} {path}").chars().take(120).collect(), text)
    }

    fn show(&self, script: &str) {
        self.server.done("send_line", json!({ "session_id": self.id, "data": format!("bash '{script}'") }));
        let shown = json!({ "session_id": self.id, "text": "over-2", "timeout_ms": PATIENCE_MS });
        assert_eq!(self.server.done("wait", shown)["timed_out"], false);
    }
}

/// Reads a session in every possible way.
fn looks(stage: &Stage) -> Vec<Surface> {
    let mut surfaces = Vec::new();
    for max_bytes in [100_000, 2_000, 500, 60] {
        surfaces.push(stage.answer("read", json!({ "max_bytes": max_bytes, "timeout_ms": 1 })));
    }
    for merge_wrapped in [true, false] {
        for mode in ["tail", "viewport", "delta", "full"] {
            surfaces.push(
                stage.answer("term_read", json!({ "mode": mode, "merge_wrapped": merge_wrapped, "max_lines": 500 })),
            );
        }
        for (lines, chars) in [(3, 50_000), (30, 50_000), (200, 100)] {
            let arguments = json!({ "merge_wrapped": merge_wrapped, "max_lines": lines, "max_chars": chars });
            surfaces.push(stage.answer("term_read", arguments));
        }
        for from in 0..20 {
            let arguments = json!({ "from_line": from, "merge_wrapped": merge_wrapped, "max_lines": 3 });
            surfaces.push(stage.answer("term_read", arguments));
        }
    }
    for secret in stage.secrets.all() {
        let part = &secret[3..12];
        let found = stage.server.done("search", json!({ "session_id": stage.id, "text": part, "context": 3 }));
        assert_eq!(found["total"], 0, "a hidden text was found: {part} in {found}");
        surfaces.push(stage.answer("wait", json!({ "text": part, "timeout_ms": 1 })));
    }
    surfaces.push(stage.answer("search", json!({ "regex": ".", "context": 5, "max_matches": 200 })));
    surfaces.push(stage.answer("search", json!({ "regex": "(?i)seed|over", "context": 5 })));
    surfaces.push(stage.answer("wait", json!({ "text": "seed", "timeout_ms": 500 })));
    surfaces.push(stage.answer("wait", json!({ "quiet_ms": 1, "timeout_ms": 500 })));
    surfaces.push(stage.answer("commands", json!({})));
    surfaces.push(stage.answer("list", json!({})));
    surfaces.push(stage.answer("evidence", json!({})));
    for format in ["svg", "png"] {
        let (name, text) = stage.answer("screenshot", json!({ "format": format }));
        surfaces.push((name, without_tags(&text)));
        let (name, text) = stage.answer("screenshot", json!({ "format": format, "from_line": 0, "until_line": 60 }));
        surfaces.push((name, without_tags(&text)));
    }
    surfaces
}

/// The text of an SVG.
fn without_tags(text: &str) -> String {
    let mut shown = String::new();
    for piece in text.split('<') {
        shown.push_str(piece.split_once('>').map_or(piece, |(_, after)| after));
    }
    shown
}

/// Output of `talk` and of its failures.
fn talks(stage: &Stage, script: &str) -> Vec<Surface> {
    let run = format!("bash '{script}'");
    let mut surfaces = vec![
        stage.answer("talk", json!({ "command": run, "raw": true, "timeout_ms": PATIENCE_MS })),
        stage.answer("talk", json!({ "command": run, "max_chars": 300, "timeout_ms": PATIENCE_MS })),
        stage.answer(
            "talk",
            json!({ "command": format!("{run}; sleep 60"), "timeout_ms": 3_000, "on_timeout": "interrupt" }),
        ),
    ];
    let commands = stage.server.done("commands", json!({ "session_id": stage.id, "limit": 3 }));
    for command in commands["commands"].as_array().expect("commands") {
        let id = &command["id"];
        surfaces.push(stage.answer("commands", json!({ "command_id": id, "head": 3, "tail": 5 })));
        surfaces.push(stage.answer("commands", json!({ "command_id": id, "regex": "[0-9]" })));
        surfaces.push(stage.answer("commands", json!({ "command_id": id, "from_line": 12, "until_line": 20 })));
        surfaces.push(stage.answer("evidence", json!({ "command_id": id })));
    }
    surfaces
}

/// Calls that repeat or store their input.
fn repeats(stage: &Stage) -> Vec<Surface> {
    let mut surfaces = Vec::new();
    for secret in stage.secrets.typed() {
        for blanks in [0, 10, 60, 75, 90, 180] {
            let command = format!("rm -rf / {} {secret}", "x".repeat(blanks));
            surfaces.push(stage.answer("talk", json!({ "command": command })));
            surfaces.push(stage.answer("send_line", json!({ "data": command })));
            let value = format!("{} {secret}", "y".repeat(blanks));
            surfaces.push(stage.answer("term_read", json!({ "max_lines": value })));
            surfaces.push(stage.answer("talk", json!({ "command": "true", "on_timeout": value })));
            surfaces.push(stage.answer("search", json!({ "regex": format!("({value}") })));
            surfaces.push(stage.answer("wait", json!({ "text": value, "timeout_ms": 1 })));
            let told = json!({
                "intervention_type": value, "action_taken": value, "result": value, "as_agent": secret,
                "attach": [{ "type": "note", "text": value, "api_token": secret }],
            });
            surfaces.push(stage.answer("evidence", told));
        }
        surfaces
            .push(stage.answer("talk", json!({ "command": format!("sleep 30; echo {secret}"), "timeout_ms": 300 })));
        surfaces.push(stage.answer("talk", json!({ "command": "echo busy" })));
        surfaces.push(stage.answer("list", json!({})));
        surfaces.push(stage.answer("send_keys", json!({ "keys": "Ctrl-C" })));
        stage.server.done("wait", json!({ "session_id": stage.id, "prompt": true, "timeout_ms": PATIENCE_MS }));
        surfaces.push(stage.answer(secret, json!({})));
        surfaces.push(stage.answer("send_keys", json!({ "keys": [secret] })));
        surfaces.push(stage.answer("term_read", json!({ "mode": secret })));
        surfaces.push(stage.answer("record", json!({ "op": "start", "name": secret })));
        surfaces.push(stage.answer("list", json!({ "as_agent": secret })));
        let folder = stage.folder.path().join(secret);
        fs::create_dir_all(&folder).expect("a folder");
        surfaces.push(stage.answer("create", json!({ "cwd": folder.join("no") })));
        let named = json!({ "label": secret, "cwd": folder, "env": { "GIVEN_TOKEN": secret } });
        let made = stage.server.done("create", named);
        surfaces.push(("create".to_owned(), texts(&made)));
        surfaces.push(stage.answer("talk", json!({ "session_id": made["session_id"], "command": "pwd; env" })));
        surfaces.push(stage.answer("list", json!({})));
        surfaces.push(stage.answer("evidence", json!({ "session_id": made["session_id"] })));
        surfaces.push(stage.http("GET", "/v1/pty/sessions", &Value::Null));
        surfaces.push(stage.http("GET", "/pty/list", &Value::Null));
        surfaces.push(stage.answer("resolve", json!({ "session_id": made["session_id"], "label": secret })));
        surfaces.push(stage.answer("kill", json!({ "session_id": made["session_id"] })));
        if secret == stage.secrets.variable {
            // Only its session knows it; what follows is about none.
            continue;
        }
        surfaces.push(stage.answer("term_read", json!({ "session_id": secret })));
        let unlisted = stage.server.call("list", json!({ secret: 1 })).0;
        surfaces.push(("a parameter that is not known".to_owned(), texts(&unlisted["ignored_params"])));
        surfaces.push(stage.answer("create", json!({ "env": { "GIVEN_TOKEN": [secret] } })));
        surfaces.push(stage.answer("create", json!({ "env": secret })));
        surfaces.push(stage.answer("resolve", json!({ "label": secret })));
        surfaces.push(stage.answer("resolve", json!({ "label": format!("{secret} x") })));
        let bad = json!({ "session_id": secret, "source": secret, "owner_role": secret, "desktop_url": secret });
        surfaces.push(stage.http("POST", "/v1/pty/register", &bad));
        surfaces.push(stage.http("POST", "/pty/buffer", &json!({ "session_id": stage.id, "mode": secret })));
        surfaces.push(stage.http("POST", "/pty/buffer", &json!({ "session_id": secret })));
        let event = json!({
            "action": secret, "session_id": "elsewhere", "command": secret, "response": secret, "note": secret,
        });
        surfaces.push(stage.http("POST", "/v1/pty-traffic/emit", &event));
        for path in ["events/", "sessions/", "events?since=", "events?limit=", "events?action="] {
            surfaces.push(stage.http("GET", &format!("/v1/pty-traffic/{path}{secret}"), &Value::Null));
        }
    }
    surfaces
}

/// The bridge routes of this server.
fn bridge(stage: &Stage, script: &str) -> Vec<Surface> {
    let mut surfaces = Vec::new();
    for merge_wrapped in [true, false] {
        for mode in ["tail", "viewport", "delta"] {
            for marker_id in [json!(null), json!(1), json!(15)] {
                let body = json!({
                    "session_id": stage.id, "mode": mode, "merge_wrapped": merge_wrapped, "max_lines": 500,
                    "marker_id": marker_id,
                });
                surfaces.push(stage.http("POST", "/pty/buffer", &body));
            }
        }
    }
    let read = format!("/pty/read?session_id={}&timeout_ms=1", stage.id);
    surfaces.push(stage.http("GET", &read, &Value::Null));
    surfaces.push(stage.http("POST", "/pty/read", &json!({ "session_id": stage.id, "timeout_ms": 1 })));
    let talk = json!({ "session_id": stage.id, "command": format!("bash '{script}'"), "timeout_ms": PATIENCE_MS });
    surfaces.push(stage.http("POST", "/pty/talk", &talk));
    let blocked = format!("rm -rf / {} {}\r", "x".repeat(75), stage.secrets.variable);
    surfaces.push(stage.http("POST", "/pty/write", &json!({ "session_id": stage.id, "data": blocked })));
    surfaces.push(stage.http("GET", "/pty/list", &Value::Null));
    surfaces
}

/// Messages of the page's socket.
async fn page(stage: &Stage) -> Vec<Surface> {
    let mut socket = ui::open(&stage.server, &[]).await.expect("a socket");
    let mut surfaces = Vec::new();
    ui::say(&mut socket, json!({ "t": "watch", "large": stage.id })).await;
    surfaces.push(("frames".to_owned(), texts(&ui::next(&mut socket, "frames").await)));
    ui::say(&mut socket, json!({ "t": "history", "n": 1, "id": stage.id, "from": 0, "until": 1_000 })).await;
    surfaces.push(("history".to_owned(), texts(&ui::next(&mut socket, "reply").await)));
    for args in [
        json!({ "action": "search", "session_id": stage.id, "regex": ".", "context": 3 }),
        json!({ "action": "list" }),
        json!({ "action": "term_read", "session_id": stage.id, "mode": "full" }),
        json!({ "action": stage.secrets.seed }),
    ] {
        ui::say(&mut socket, json!({ "t": "call", "n": 2, "args": args })).await;
        surfaces
            .push((format!("page {args}").chars().take(60).collect(), texts(&ui::next(&mut socket, "reply").await)));
    }
    surfaces
}

/// Replies of the traffic log.
fn record(stage: &Stage) -> Vec<Surface> {
    let paths = ["events?limit=500", "sessions", "blocked", "stats", "health"];
    paths.map(|path| stage.http("GET", &format!("/v1/pty-traffic/{path}"), &Value::Null)).into()
}

/// Events that a subscriber receives until the server stops.
async fn listen(port: u16) -> String {
    let url = format!("ws://127.0.0.1:{port}/ws/pty-traffic");
    let (mut socket, _) = connect_async(url).await.expect("a WebSocket");
    let mut heard = String::new();
    while let Some(Ok(message)) = socket.next().await {
        if let Message::Text(text) = message {
            heard.push_str(&texts(&serde_json::from_str(&text).expect("JSON")));
        }
    }
    heard
}

/// Types a password without echo: as a line, as keys, and with a mistake.
fn type_password(stage: &Stage) -> Vec<Surface> {
    let Stage { server, id, secrets, .. } = stage;
    let mut surfaces = Vec::new();
    let pid = server.done("list", json!({}))["sessions"]
        .as_array()
        .and_then(|sessions| sessions.iter().find(|session| session["session_id"] == *id)?["pid"].as_u64())
        .expect("a pid");
    let terminal = fs::read_link(format!("/proc/{pid}/fd/0")).expect("a terminal");
    for (action, arguments) in [
        ("send_line", json!({ "data": secrets.password })),
        ("send_keys", json!({ "text": secrets.password, "keys": ["Enter"] })),
        ("send_keys", json!({ "keys": [{ "text": secrets.password }, "Enter"] })),
    ] {
        server.done(
            "send_line",
            json!({ "session_id": id, "data": "read -s -p 'Give: ' ANSWER; echo got-$((2+2)); unset ANSWER" }),
        );
        let began = Instant::now();
        loop {
            let shown = Command::new("stty").arg("-a").arg("-F").arg(&terminal).output().expect("stty runs");
            let modes = String::from_utf8_lossy(&shown.stdout).into_owned();
            // A line editor switches the echo off too, and reads key by key.
            if modes.contains("-echo ") && !modes.contains("-icanon") {
                break;
            }
            assert!(began.elapsed() < Duration::from_millis(PATIENCE_MS), "the echo stays on");
        }
        // A mistake first: no key has this name, and a dangerous line is refused.
        server.call("send_keys", json!({ "session_id": id, "keys": [secrets.password] }));
        server.call("send_line", json!({ "session_id": id, "data": format!("{} ; rm -rf /", secrets.password) }));
        surfaces.push(stage.answer("talk", json!({ "command": "echo never" })));
        surfaces.push(stage.answer(action, arguments));
        surfaces.push(stage.answer("wait", json!({ "text": "got-4", "timeout_ms": PATIENCE_MS })));
        surfaces.push(stage.answer("talk", json!({ "command": "clear" })));
    }
    surfaces
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<Surface> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).unwrap_or_default();
                files.push((path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
            }
        }
    }
    files
}

fn assert_silent(what: &str, secrets: &Secrets, surfaces: &[Surface]) {
    let mut problems = Vec::new();
    for (name, text) in surfaces {
        for (_, run) in leaks(secrets, text) {
            problems.push(format!("{name} shows {run}"));
        }
    }
    let few: Vec<&String> = problems.iter().take(60).collect();
    assert!(problems.is_empty(), "{what}: {} of {} surfaces: {few:#?}", problems.len(), surfaces.len());
}

/// A server whose standard error also goes to a file.
fn start(folder: &Folder, env: &[(&str, &str)]) -> Server {
    let serve = Server::serve(&folder.path().join("state"), folder.path());
    let mut command = Command::new("bash");
    let log = folder.path().join("log");
    command.args(["-c", &format!("exec \"$@\" 2> >(exec tee '{}' >&2)", log.display()), "bash"]);
    command.arg(serve.get_program()).args(serve.get_args());
    command.envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?)))).envs(env.iter().copied());
    Server::launch(command, Folder::new())
}

/// Start-up files define it; the shell writes its functions only to a file.
fn integration_secret(stage: &Stage) -> String {
    let file = stage.folder.path().join("functions");
    let command = format!("{{ declare -f; set; }} > '{}'", file.display());
    stage.server.done("talk", json!({ "session_id": stage.id, "command": command }));
    let text = fs::read_to_string(&file).expect("what the shell knows");
    let is_secret = |at: &usize| text[*at..].bytes().take(32).filter(u8::is_ascii_hexdigit).count() == 32;
    let at = text.match_indices("k=").map(|(at, _)| at + 2).find(is_secret).expect("the shell knows it");
    text[at..at + 32].to_owned()
}

#[test]
fn the_secrets_are_known_for_what_they_are() {
    let secrets = Secrets::new();
    let redactor = Redactor::new([secrets.internal.clone(), secrets.variable.clone()]);
    for secret in secrets.typed() {
        assert_eq!(leaks(&secrets, secret).len(), 1, "{secret} is found where it is");
        assert_eq!(leaks(&secrets, &redactor.redact(secret)), [], "{secret}");
    }
    let split = format!("\"{}\\u001b[1m{}\"", &secrets.seed[..9], &secrets.seed[9..20]);
    assert_eq!(leaks(&secrets, &split).len(), 1, "the check looks through escape sequences");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_surface_of_an_own_session_shows_a_secret() {
    let secrets = Secrets::new();
    let (folder, state) = (Folder::new(), Folder::new());
    let (port, told) = gateway("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    let gateway_url = format!("http://127.0.0.1:{port}");
    let env = [("KURORYUU_INTERNAL_SECRET", secrets.internal.as_str()), ("KURORYUU_GATEWAY_URL", &gateway_url)];
    let mut server = start(&state, &env);
    let heard = tokio::spawn(listen(server.port));
    let made = server.done("create", json!({ "env": { "MY_API_TOKEN": secrets.variable }, "cols": 80, "rows": 24 }));
    let id = made["session_id"].as_str().expect("an id").to_owned();
    let script = secrets.script(&folder);
    let mut stage = Stage { server, id, secrets, folder };
    stage.secrets.integration = integration_secret(&stage);
    stage.server.done("record", json!({ "session_id": stage.id, "op": "start", "name": "tape", "input": true }));
    let typed = type_password(&stage);
    stage.show(&script);
    let mut surfaces = looks(&stage);
    surfaces.extend(page(&stage).await);
    surfaces.extend(bridge(&stage, &script));
    surfaces.extend(talks(&stage, &script));
    surfaces.push(stage.answer("talk", json!({ "command": "declare -f; set; env", "raw": true })));
    surfaces.push(stage.answer("record", json!({ "op": "save_fixture", "name": "whole" })));
    surfaces.push(stage.answer("record", json!({ "op": "stop" })));
    let tape =
        stage.server.done("record", json!({ "session_id": stage.id, "op": "start", "name": "raw", "raw": true }));
    stage.show(&script);
    stage.server.done("resize", json!({ "session_id": stage.id, "cols": 90, "rows": 20 }));
    surfaces.push(stage.answer("record", json!({ "op": "save_fixture", "name": "after-raw" })));
    stage.server.done("record", json!({ "session_id": stage.id, "op": "stop" }));
    // It was asked for, and it is the only one.
    let raw = tape["file"].as_str().expect("a file");
    assert!(!leaks(&stage.secrets, &fs::read_to_string(raw).expect("a recording")).is_empty(), "raw is raw");
    fs::remove_file(raw).expect("a recording");
    surfaces.extend(repeats(&stage));
    surfaces.extend(record(&stage));
    assert!(surfaces.len() > 400, "{} surfaces", surfaces.len());
    // Only the caller that types a password sees its mistake reported.
    surfaces.extend(typed.into_iter().filter(|(name, _)| name.starts_with("wait") || name.starts_with("talk")));
    assert_silent("while it runs", &stage.secrets, &surfaces);
    server = stage.server;
    server.signal("TERM");
    server.end();
    let mut kept = files(&state.path().join("state"));
    for name in ["buffer.txt", "events.jsonl", "metadata.json", "traffic.db", "tape.cast", "whole.bytes"] {
        assert!(kept.iter().any(|(path, text)| path.ends_with(name) && !text.is_empty()), "{name} is kept");
    }
    kept.push(("log".to_owned(), state.read("log")));
    let told: String = told.try_iter().collect();
    assert!(told.contains("[hidden input, 28 chars]"), "the gateway is told");
    kept.push(("gateway".to_owned(), told));
    let heard = heard.await.expect("a listener");
    assert!(heard.contains("[hidden input, 28 chars]"), "listeners are told");
    kept.push(("/ws/pty-traffic".to_owned(), heard));
    assert_silent("afterwards", &stage.secrets, &kept);
    let hidden =
        kept.iter().filter(|(path, text)| path.ends_with("events.jsonl") && text.contains("[hidden input, 28 chars]"));
    assert_eq!(hidden.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_surface_of_a_desktops_session_shows_a_secret() {
    let secrets = Secrets::new();
    let (folder, state) = (Folder::new(), Folder::new());
    let mut server =
        start(&state, &[("KURORYUU_INTERNAL_SECRET", &secrets.internal), ("SOME_API_TOKEN", &secrets.variable)]);
    // The second server redacts nothing, like a desktop.
    let desktop = Server::start_with(&[("KPTY_REDACT", "off")], &["--register-with", &server.url()]);
    let made = desktop.done("create", json!({ "cols": 80, "rows": 24, "owner_agent_id": "worker" }));
    let id = made["session_id"].as_str().expect("an id").to_owned();
    let script = secrets.script(&folder);
    desktop.done("talk", json!({ "session_id": id, "command": format!("bash '{script}'") }));
    let raw = desktop.done("term_read", json!({ "session_id": id, "mode": "full", "max_lines": 500 }));
    assert!(leaks(&secrets, &texts(&raw)).len() > 40, "the desktop shows everything");
    let began = Instant::now();
    while server.call("term_read", json!({ "session_id": id, "max_lines": 1 })).1 {
        assert!(began.elapsed() < Duration::from_millis(PATIENCE_MS), "the desktop is not known");
    }
    let stage = Stage { server, id, secrets, folder };
    // The first read sees the middle of the key but not its beginning.
    let mut surfaces = vec![stage.answer("term_read", json!({ "mode": "viewport" }))];
    surfaces.extend(looks(&stage));
    surfaces.extend(page(&stage).await);
    surfaces.extend(talks(&stage, &script));
    surfaces.extend(looks(&stage));
    let (answer, _) = stage.server.call("evidence", json!({ "session_id": stage.id }));
    assert_eq!((&answer["session"]["source"], &answer["actor"]), (&json!("desktop"), &json!("worker")), "{answer}");
    assert!(answer["screen"].as_str().is_some_and(|screen| !screen.is_empty()), "{answer}");
    // A password is recognized by the prompt before it.
    desktop
        .done("send_line", json!({ "session_id": stage.id, "data": "read -s -p 'Password: ' X; echo got-$((2+2))" }));
    desktop.done("wait", json!({ "session_id": stage.id, "regex": "^Password: ?$", "timeout_ms": PATIENCE_MS }));
    surfaces.push(stage.answer("term_read", json!({ "mode": "viewport" })));
    surfaces.push(stage.answer("send_line", json!({ "data": stage.secrets.password })));
    surfaces.push(stage.answer("wait", json!({ "text": "got-4", "timeout_ms": PATIENCE_MS })));
    surfaces.extend(record(&stage));
    assert_silent("while it runs", &stage.secrets, &surfaces);
    server = stage.server;
    server.signal("TERM");
    server.end();
    let mut kept = files(&state.path().join("state"));
    kept.push(("log".to_owned(), state.read("log")));
    assert_silent("afterwards", &stage.secrets, &kept);
}
