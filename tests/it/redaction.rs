//! Secrets on every surface where text leaves a session: none of them shows one, however the output was cut.
//!
//! Own cases are built here; `KPTY_CORPORA` adds those of the corpora, which are no part of the project.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use base64::Engine as _;
use kpty::error::ErrorCode;
use kpty_guard::Redactor;
use serde_json::{Value, json};

use crate::server::Server;
use crate::support::{Folder, command};
use crate::tools::{Rig, Shell};

/// So many characters of a secret in a row are a leak.
const LEAK_CHARS: usize = 12;

#[derive(Clone)]
struct Case {
    id: String,
    text: String,
    hide: Vec<String>,
    keep: Vec<String>,
    size: (u64, u64),
    chunks: Vec<usize>,
    is_terminal: bool,
}

fn case(id: &str, text: String, hide: &[&str], keep: &[&str]) -> Case {
    let owned = |texts: &[&str]| texts.iter().map(|text| text.to_string()).collect();
    Case {
        id: id.into(),
        text,
        hide: owned(hide),
        keep: owned(keep),
        size: (80, 24),
        chunks: vec![],
        is_terminal: true,
    }
}

/// Something token-shaped, put together here so that none stands in the repository.
fn token(prefix: &str, length: usize) -> String {
    [prefix, &"q7Xk2Zm9Tw4Rb8".repeat(length)[..length]].concat()
}

fn own_cases() -> Vec<Case> {
    let github = token("ghp_", 36);
    let lines: Vec<String> = (0..8u8)
        .map(|line| format!("{}{}", char::from(b'A' + line), "z3F/q9Lk".repeat(8)).split_at(64).0.to_owned())
        .collect();
    let block =
        format!("-----BEGIN RSA PRIVATE KEY-----\r\n{}\r\n-----END RSA PRIVATE KEY-----\r\n", lines.join("\r\n"));
    let key: Vec<&str> = lines.iter().map(String::as_str).collect();
    let (head, tail) = github.split_at(17);
    vec![
        Case { size: (24, 10), ..case("wraps", format!("tok {github} ok\r\n"), &[&github], &["tok", "ok"]) },
        Case { size: (10, 10), ..case("wraps often", format!("{github}\r\n"), &[&github], &[]) },
        case("colours", format!("{head}\x1b[1m{tail}\x1b[0m\r\n"), &[&github], &[]),
        case("erased", format!("{github}\r\x1b[2Kclean\r\n"), &[&github], &["clean"]),
        Case { chunks: vec![7, 20], ..case("in pieces", format!("{github}\r\n"), &[&github], &[]) },
        case("alternate screen", format!("\x1b[?1049h\x1b[H{github}"), &[&github], &[]),
        case("key block", format!("$ cat k\r\n{block}$ done\r\n"), &key, &["$ cat k", "$ done"]),
        Case { size: (80, 6), ..case("key block scrolls", block.clone(), &key, &[]) },
        Case {
            size: (80, 5),
            ..case("key block on the alternate screen", format!("\x1b[?1049h\x1b[H{block}"), &key, &[])
        },
        Case { size: (30, 8), ..case("key block wraps", block, &key, &[]) },
        case("title", format!("\x1b]0;{github}\x07shown\r\n"), &[&github], &["shown"]),
        case(
            "assignment",
            format!("DB_PASSWORD={}\r\nDB_HOST=db\r\n", token("", 20)),
            &[&token("", 20)],
            &["DB_HOST=db"],
        ),
    ]
}

#[expect(clippy::disallowed_methods, reason = "a setting of the tests, not of the program")]
fn corpora() -> Option<PathBuf> {
    std::env::var_os("KPTY_CORPORA").map(PathBuf::from)
}

/// The cases of the corpora; none where there are none.
#[expect(clippy::print_stderr, reason = "what was not tried is worth knowing")]
fn corpus_cases() -> Vec<Case> {
    let Some(folder) = corpora() else {
        eprintln!("KPTY_CORPORA is not set: the secrets of the corpora were NOT tried");
        return Vec::new();
    };
    let sample = fs::read_to_string(folder.join("secrets.sample.jsonl.b64")).expect("the sample");
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let decoded = sample.split_whitespace().map(|line| base64::prelude::BASE64_STANDARD.decode(line).expect("base64"));
    let cases = decoded.map(|bytes| serde_json::from_slice::<Value>(&bytes).expect("an object"));
    let scored = cases.filter(|case| case["disputed"] != true);
    scored
        .map(|case| Case {
            id: case["id"].as_str().unwrap_or_default().to_owned(),
            text: case["text"].as_str().expect("a text").to_owned(),
            hide: texts(&case["must_hide"]),
            keep: texts(&case["must_keep"]),
            size: (case["cols"].as_u64().unwrap_or(200), case["rows"].as_u64().unwrap_or(24)),
            chunks: case["chunks"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_u64)
                .map(|at| at as usize)
                .collect(),
            is_terminal: case["mode"] == "terminal",
        })
        .collect()
}

/// What is left of a text without escape sequences and line breaks.
fn flat(text: &str) -> String {
    let mut flat = String::new();
    let mut rest = text.chars().peekable();
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

/// The secrets of which something is left.
fn leaks<'a>(case: &'a Case, text: &str) -> Vec<&'a str> {
    let text = flat(text);
    let is_left = |secret: &str| {
        let chars: Vec<char> = secret.chars().collect();
        chars.windows(LEAK_CHARS.min(chars.len())).any(|run| text.contains(&run.iter().collect::<String>()))
    };
    case.hide.iter().map(String::as_str).filter(|secret| is_left(secret)).collect()
}

/// A prompt could not follow it.
fn leaves_screen(case: &Case) -> bool {
    case.text.contains("\x1b[7;1H") || case.text.contains("1049h")
}

/// All texts of an answer, one after the other.
fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone() + "\n",
        Value::Array(values) => values.iter().map(texts).collect(),
        Value::Object(fields) => fields.values().map(texts).collect(),
        _ => String::new(),
    }
}

#[test]
fn texts_of_the_corpora_are_hidden_and_kept() {
    let redactor = Redactor::default();
    for case in corpus_cases().iter().filter(|case| !case.is_terminal) {
        let shown = redactor.redact(&case.text);
        assert_eq!(leaks(case, &shown), Vec::<&str>::new(), "{}: {shown}", case.id);
        for kept in &case.keep {
            assert!(shown.contains(kept.as_str()), "{}: {kept:?} is gone from {shown:?}", case.id);
        }
        assert!(!case.hide.is_empty() || shown == case.text, "{}: {shown:?}", case.id);
        assert_eq!(redactor.redact(&shown), shown, "{}", case.id);
    }
}

/// A session that has shown the case's text.
async fn played<'a>(rig: &'a Rig, folder: &Folder, case: &Case) -> Shell<'a> {
    let mut script = String::new();
    let mut from = 0;
    for (piece, &until) in case.chunks.iter().chain([&case.text.len()]).enumerate() {
        let file = folder.file(&format!("piece{piece}"), &case.text.as_bytes()[from..until]);
        script += &format!("cat '{}'; sleep 0.1; ", file.display());
        from = until;
    }
    let script = folder.file(
        "play",
        format!(
            "stty raw -echo; {script} printf '\\033]133;A\\007'; touch '{}'; exec sleep 600",
            folder.path().join("played").display()
        ),
    );
    let create = json!({
        "shell": "/bin/sh", "args": [script.to_str()], "cols": case.size.0, "rows": case.size.1, "integration": "off",
    });
    let shell = rig.create(create).await;
    while !folder.path().join("played").exists() {
        shell.call("wait", json!({ "quiet_ms": 30, "timeout_ms": 1_000 })).await;
    }
    shell.call("wait", json!({ "quiet_ms": 100, "timeout_ms": 5_000 })).await;
    shell
}

/// Reads a session in every way there is.
async fn surfaces(shell: &Shell<'_>, case: &Case) -> Vec<(String, String)> {
    let mut calls = Vec::new();
    for max_bytes in [100_000, 4_096, 64, 40, 30, 20] {
        calls.push(("read", json!({ "max_bytes": max_bytes, "timeout_ms": 1 })));
    }
    for mode in ["viewport", "tail"] {
        calls.push(("read", json!({ "mode": mode, "timeout_ms": 1 })));
    }
    for merge in [true, false] {
        for mode in ["tail", "viewport", "delta", "full"] {
            calls.push(("term_read", json!({ "mode": mode, "merge_wrapped": merge, "max_lines": 200 })));
        }
        for (lines, chars) in [(1, 50_000), (2, 50_000), (3, 50_000), (5, 50_000), (200, 30), (200, 100)] {
            calls.push(("term_read", json!({ "merge_wrapped": merge, "max_lines": lines, "max_chars": chars })));
        }
        for from in 0..8 {
            calls.push(("term_read", json!({ "from_line": from, "merge_wrapped": merge, "max_lines": 2 })));
        }
        calls.push(("term_read", json!({ "which": "main", "mode": "full", "merge_wrapped": merge })));
    }
    for secret in &case.hide {
        let part: String = secret.chars().skip(2).take(8).collect();
        calls.push(("search", json!({ "text": part, "context": 3 })));
        calls.push(("wait", json!({ "text": part, "timeout_ms": 1 })));
    }
    calls.push(("search", json!({ "pattern": ".", "context": 2, "max_matches": 100 })));
    calls.push(("wait", json!({ "quiet_ms": 1, "timeout_ms": 10 })));
    calls.push(("commands", json!({})));
    let mut shown = Vec::new();
    for (action, arguments) in calls {
        let body = shell.call(action, arguments.clone()).await;
        if action == "search" && arguments["text"].is_string() {
            assert_eq!(body["total"], 0, "{}: a hidden text was found: {body}", case.id);
        }
        shown.push((format!("{action} {arguments}"), texts(&body)));
    }
    shown
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_way_of_reading_shows_a_secret() {
    let mut problems = Vec::new();
    let terminal = corpus_cases().into_iter().filter(|case| case.is_terminal);
    for case in own_cases().into_iter().chain(terminal) {
        let (rig, folder) = (Rig::new(), Folder::new());
        let shell = played(&rig, &folder, &case).await;
        let moves_cursor = case.text.contains("\x1b[7;1H");
        for (surface, text) in surfaces(&shell, &case).await {
            // Bytes that were written to different places are not next to each other in the stream.
            if moves_cursor && surface.starts_with("read") && !surface.contains("mode") {
                continue;
            }
            for leak in leaks(&case, &text) {
                problems.push(format!("{}: {surface} shows {leak}: {text:?}", case.id));
            }
        }
        let whole = shell.call("term_read", json!({ "mode": "full", "max_lines": 200 })).await;
        for kept in &case.keep {
            let text = whole["text"].as_str().unwrap_or_default();
            if !flat(text).contains(&flat(kept)) {
                problems.push(format!("{}: {kept:?} is gone from {text:?}", case.id));
            }
        }
        rig.end().await;
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn talk_its_errors_and_the_list_of_commands_show_no_secret() {
    let (rig, folder) = (Rig::new(), Folder::new());
    let shell = rig.create(json!({})).await;
    let mut problems = Vec::new();
    for case in own_cases().into_iter().chain(corpus_cases()) {
        if leaves_screen(&case) {
            continue;
        }
        let file = folder.file("secret", &case.text);
        let mut bodies = vec![
            shell
                .call(
                    "talk",
                    json!({ "command": format!("cat '{}'", file.display()), "raw": true, "timeout_ms": 45_000 }),
                )
                .await,
        ];
        let id = bodies[0]["command_id"].clone();
        bodies.push(shell.call("commands", json!({ "command_id": id })).await);
        for body in bodies {
            problems.extend(leaks(&case, &texts(&body)).iter().map(|leak| format!("{}: {leak} in {body}", case.id)));
        }
    }
    let secret = token("ghp_", 36);
    let case = case("typed", String::new(), &[&secret], &[]);
    let mut bodies = vec![
        shell
            .fails(
                "talk",
                json!({ "command": format!("echo {secret}; sleep 60"), "timeout_ms": 700, "on_timeout": "interrupt" }),
                ErrorCode::PtyTimeout,
            )
            .await,
        shell.talk(&format!("export MY_TOKEN={secret}")).await,
        shell
            .fails(
                "talk",
                json!({ "command": format!("rm -rf / # {} {secret}", "x".repeat(70)) }),
                ErrorCode::DangerousCommandBlocked,
            )
            .await,
        shell.fails("wait", json!({ "regex": format!("{secret}(") }), ErrorCode::InvalidParam).await,
    ];
    bodies.push(shell.call("commands", json!({})).await);
    bodies.push(rig.call(json!({ "action": "list" })).await);
    bodies.push(shell.call("read", json!({ "max_bytes": 100_000 })).await);
    for body in bodies {
        problems.extend(leaks(&case, &texts(&body)).iter().map(|leak| format!("{leak} in {body}")));
    }
    rig.end().await;
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn nothing_that_is_kept_on_disk_has_a_secret() {
    let parent = Folder::new();
    let state = parent.path().join("kept");
    let mut server = Server::start_on(&state);
    let (id, _) = server.create();
    let cases: Vec<Case> = own_cases().into_iter().chain(corpus_cases()).filter(|case| !leaves_screen(case)).collect();
    for case in &cases {
        let file = parent.file("secret", &case.text);
        server.done("talk", json!({ "session_id": id, "command": format!("cat '{}'", file.display()) }));
    }
    server.done("send_line", json!({ "session_id": id, "data": format!("export API_TOKEN={}", token("", 24)) }));
    server.signal("TERM");
    server.end();
    let mut files = Vec::new();
    let mut folders = vec![state];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the state folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    assert!(files.iter().any(|path| path.ends_with("buffer.txt")), "{files:?}");
    for path in files {
        let text = String::from_utf8_lossy(&fs::read(&path).expect("a file")).into_owned();
        for case in &cases {
            assert_eq!(leaks(case, &text), Vec::<&str>::new(), "{}: {}", path.display(), case.id);
        }
        assert!(!text.contains(&token("", 24)), "{}", path.display());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_of_a_secret_variable_is_hidden_and_off_shows_everything() {
    let value = token("", 20);
    let shown = |redact: bool| {
        let value = value.clone();
        async move {
            let config = kpty::config::Config { redact, ..kpty::config::Config::default() };
            let rig = Rig::with(config);
            let shell = rig.create(json!({ "env": { "MY_API_TOKEN": value } })).await;
            let output = shell.talk("printenv MY_API_TOKEN").await["output"].as_str().expect("an output").to_owned();
            rig.end().await;
            output
        }
    };
    assert_eq!(shown(true).await.trim(), "[REDACTED]");
    assert_eq!(shown(false).await.trim(), value);
}

#[test]
fn the_filter_changes_secrets_and_not_a_byte_more() {
    let filtered = |input: &[u8]| {
        let mut child =
            command(["guard", "redact"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("kpty starts");
        let mut stdin = child.stdin.take().expect("its input");
        let input = input.to_vec();
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().expect("its output");
        writer.join().expect("the writer").expect("kpty reads it all");
        assert!(output.status.success());
        output.stdout
    };
    let secret = token("ghp_", 36);
    let plain = b"\xff\xfe no text\r\nline\n\x00\x1b[1mbold\x1b[0m\rover\r\n\nno end".to_vec();
    assert_eq!(filtered(&plain), plain);
    assert_eq!(filtered(b""), b"");
    let mut input = plain.clone();
    input.extend_from_slice(format!(" {secret}\r\n").as_bytes());
    let mut expected = plain;
    expected.extend_from_slice(b" [REDACTED_GITHUB_TOKEN]\r\n");
    assert_eq!(filtered(&input), expected);
    let long: Vec<u8> = (0..400_000u32).flat_map(|n| format!("{n} ").into_bytes()).collect();
    assert_eq!(filtered(&long), long);
}
