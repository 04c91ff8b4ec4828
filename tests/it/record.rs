//! Recordings of real sessions: content, access, replay, and what ends them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kpty::error::ErrorCode;
use kpty::picture::{self, Look, Subject};
use kpty::recording::Recording;
use kpty::recording::replay::Player;
use kpty_emulator::{EngineKind, Mode, Request};
use serde_json::{Value, json};

use crate::server::Server;
use crate::support::{Folder, kpty, refused, shown};
use crate::tools::Rig;

/// Timeout that only a failure reaches.
const PATIENCE: Duration = Duration::from_secs(45);

/// Actions with a folder for recordings.
fn rig(folder: &Folder) -> Rig {
    let rig = Rig::new();
    rig.tools.recordings().open(folder.path().join("recordings"));
    rig
}

fn file_of(answer: &Value) -> PathBuf {
    PathBuf::from(answer["file"].as_str().unwrap_or_else(|| panic!("no file in {answer}")))
}

/// The picture of the last screen of a recording: text, colours and cursor.
fn last_picture(path: &Path) -> String {
    let recording = Recording::load(path).expect("a good cast");
    let mut player = Player::new(&recording, EngineKind::Alacritty, None);
    player.play_to_end();
    picture::svg(&Subject::recorded(player.emulator().screen()), Look::default()).expect("a picture")
}

/// What has been written so far.
fn eventually(path: &Path, needle: &str) -> String {
    let begun = Instant::now();
    loop {
        let text = fs::read_to_string(path).unwrap_or_default();
        if text.contains(needle) {
            return text;
        }
        assert!(begun.elapsed() < PATIENCE, "{needle:?} is not in {text}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_plays_as_the_session_was() {
    let folder = Folder::new();
    let rig = rig(&folder);
    let shell = rig.create(json!({ "cols": 60, "rows": 12, "env": { "PS1": "ready> " } })).await;
    // What is on the screen already is where the recording begins.
    shell.call("talk", json!({ "command": "printf '\\033[1;32mbefore\\033[0m %s\\n' $(seq 40)" })).await;
    let started = shell.call("record", json!({ "op": "start", "name": "demo" })).await;
    assert_eq!((&started["recording"], &started["redacted"]), (&json!(true), &json!(true)));
    let again = shell.fails("record", json!({ "op": "start" }), ErrorCode::InvalidParam).await;
    assert!(again["message"].as_str().is_some_and(|message| message.contains("already")));
    shell.call("talk", json!({ "command": "seq 5; printf '\\033[41m%s\\033[0m\\n' 日本語 é" })).await;
    shell.call("resize", json!({ "cols": 50, "rows": 10 })).await;
    let drawn =
        "printf '\\033[?1049h\\033[3;5H\\033[44mdrawn\\033[0m\\033[?25l'; read -r _; printf '\\033[?1049l\\033[?25h'";
    shell.call("send_line", json!({ "data": drawn, "escapes": false })).await;
    shell.call("wait", json!({ "regex": "^ +drawn$", "timeout_ms": 45_000 })).await;
    let full_screen = shell.call("screenshot", json!({ "format": "svg" })).await;
    let file = file_of(&started);
    eventually(&file, "drawn\\u001b[0m");
    shell.call("send_line", json!({ "data": "" })).await;
    shell.call("wait", json!({ "prompt": true, "timeout_ms": 45_000 })).await;
    shell.call("talk", json!({ "command": "echo over" })).await;
    // The prompt is drawn after the answer.
    shell.call("wait", json!({ "quiet_ms": 300, "timeout_ms": 45_000 })).await;
    let live = shell.call("screenshot", json!({ "format": "svg" })).await;
    let stopped = shell.call("record", json!({ "op": "stop" })).await;
    assert_eq!((&stopped["recording"], &stopped["ended_by"]), (&json!(false), &json!("stopped")));
    assert_eq!(last_picture(&file), live["image"]["text"].as_str().expect("an SVG"));
    let text = fs::read_to_string(&file).expect("a file");
    assert_eq!(stopped["bytes"], text.len());
    assert!(text.contains("\"r\", \"50x10\"") && !text.contains("\"i\","), "{text}");
    // No mark of the shell's integration, with its secret or without.
    assert!(!text.contains("]133;"), "{text}");
    // In the middle it shows what was there in the middle.
    let recording = Recording::load(&file).expect("a good cast");
    let shows = |at: Duration| {
        let mut player = Player::new(&recording, EngineKind::Alacritty, None);
        player.play_until(at);
        picture::svg(&Subject::recorded(player.emulator().screen()), Look::default()).expect("a picture")
    };
    let full_screen = full_screen["image"]["text"].as_str().expect("an SVG");
    assert!(recording.events.iter().any(|event| shows(event.at) == full_screen), "the full screen was never shown");
    shell.fails("record", json!({ "op": "stop" }), ErrorCode::InvalidParam).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn times_are_those_of_the_session() {
    let folder = Folder::new();
    let rig = rig(&folder);
    let program = ["-c", "read -r _; echo first; sleep 1; echo second; exec cat"];
    let shell = rig.create(json!({ "shell": "/bin/sh", "args": program })).await;
    let file = file_of(&shell.call("record", json!({ "op": "start" })).await);
    shell.call("send_line", json!({ "data": "" })).await;
    eventually(&file, "second");
    shell.call("record", json!({ "op": "stop" })).await;
    let recording = Recording::load(&file).expect("a good cast");
    let at = |needle: &str| {
        let has = |event: &&kpty::recording::Event| match &event.action {
            kpty::recording::Action::Output(bytes) => String::from_utf8_lossy(bytes).contains(needle),
            kpty::recording::Action::Resize(_) => false,
        };
        recording.events.iter().find(has).unwrap_or_else(|| panic!("{needle} is missing")).at
    };
    let between = at("second") - at("first");
    assert!(between >= Duration::from_millis(900), "{between:?}");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_and_input_are_there_only_when_asked_for() {
    let folder = Folder::new();
    let rig = rig(&folder);
    let token = ["ghp", "_", &"a1B2".repeat(9)].concat();
    for (raw, input) in [(false, false), (false, true), (true, true)] {
        let shell = rig.create(json!({ "shell": "/bin/cat" })).await;
        let started = shell.call("record", json!({ "op": "start", "raw": raw, "input": input })).await;
        shell.call("send_line", json!({ "data": format!("my {token} is") })).await;
        shell.call("send_line", json!({ "data": "the end" })).await;
        eventually(&file_of(&started), "the end\\r\\n");
        shell.call("record", json!({ "op": "stop" })).await;
        let text = fs::read_to_string(file_of(&started)).expect("a file");
        assert_eq!(text.contains(&token), raw, "{text}");
        assert_eq!(text.contains("[REDACTED_GITHUB_TOKEN]"), !raw, "{text}");
        assert_eq!(text.contains("\"i\","), input, "{text}");
    }
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_ends_with_its_session_and_stays_in_its_folder() {
    let folder = Folder::new();
    let rig = rig(&folder);
    let program = ["-c", "echo ready; read -r _; echo last words"];
    let shell = rig.create(json!({ "shell": "/bin/sh", "args": program })).await;
    let started = shell.call("record", json!({ "op": "start" })).await;
    shell.call("send_line", json!({ "data": "" })).await;
    shell.call("wait", json!({ "exit": true, "timeout_ms": 45_000 })).await;
    let text = eventually(&file_of(&started), "last words");
    assert!(text.ends_with("]\n"), "{text}");
    let begun = Instant::now();
    while shell.call("record", json!({ "op": "status" })).await["recording"] == true {
        assert!(begun.elapsed() < PATIENCE, "it goes on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(shell.call("record", json!({ "op": "status" })).await["ended_by"], "session_ended");
    assert_eq!(file_of(&started).parent(), Some(folder.path().join("recordings").as_path()));
    let other = rig.create(json!({ "shell": "/bin/cat" })).await;
    assert_eq!(other.call("record", json!({ "op": "status" })).await["recording"], false);
    for name in ["../x", "/tmp/x", "a/b", ".x", ""] {
        let reply = other.reply("record", json!({ "op": "start", "name": name })).await;
        assert_eq!(reply.is_error, !name.is_empty(), "{name:?}: {reply:?}");
    }
    other.fails("record", json!({ "op": "dance" }), ErrorCode::InvalidParam).await;
    other.fails("record", json!({}), ErrorCode::MissingParam).await;
    // The end of the server ends what still goes on.
    let status = other.call("record", json!({ "op": "status" })).await;
    rig.end().await;
    Recording::load(&file_of(&status)).expect("a good cast");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_folder_nothing_is_recorded() {
    let rig = Rig::new();
    let shell = rig.create(json!({ "shell": "/bin/cat" })).await;
    shell.fails("record", json!({ "op": "start" }), ErrorCode::Failed).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_becomes_a_fixture_in_one_call() {
    let folder = Folder::new();
    let rig = rig(&folder);
    let shell = rig.create(json!({ "cols": 40, "rows": 8 })).await;
    shell.call("talk", json!({ "command": "printf '\\033[31mred\\033[0m %s\\n' $(seq 30)" })).await;
    // The prompt comes a moment after the command's end.
    shell.call("wait", json!({ "quiet_ms": 500, "timeout_ms": 45_000 })).await;
    let saved = shell.call("record", json!({ "op": "save_fixture", "name": "whole" })).await;
    assert_eq!((&saved["source"], &saved["same_as_live"]), (&json!("output"), &json!(true)), "{saved}");
    let check = |saved: &Value| {
        let run = kpty(["replay", "--check", saved["file"].as_str().expect("a folder")]);
        assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
        assert!(run.stdout.contains("1 recordings, 2 expectations: 2 as expected"), "{}", run.stdout);
    };
    check(&saved);
    let full = fs::read_to_string(file_of(&saved).join("whole.full.txt")).expect("an expectation");
    assert!(full.contains("red 1\nred 2\n") && full.contains("red 30\n"), "{full}");
    // A window that changed cannot be told from the bytes alone: then it is the screen, or what was recorded.
    shell.call("resize", json!({ "cols": 50, "rows": 9 })).await;
    shell.call("wait", json!({ "quiet_ms": 500, "timeout_ms": 45_000 })).await;
    let saved = shell.call("record", json!({ "op": "save_fixture", "name": "screen" })).await;
    assert_eq!((&saved["source"], &saved["same_as_live"]), (&json!("screen"), &json!(true)), "{saved}");
    assert!(saved["note"].as_str().is_some_and(|note| note.contains("no longer kept")));
    check(&saved);
    shell.call("record", json!({ "op": "start", "name": "running" })).await;
    shell.call("talk", json!({ "command": "echo while it runs" })).await;
    let running = folder.path().join("recordings/running.cast");
    eventually(&running, "while it runs");
    let saved = shell.call("record", json!({ "op": "save_fixture", "name": "recorded" })).await;
    assert_eq!(saved["source"], "recording", "{saved}");
    check(&saved);
    shell.fails("record", json!({ "op": "save_fixture", "name": "whole" }), ErrorCode::InvalidParam).await;
    rig.end().await;
}

#[test]
fn a_killed_server_leaves_what_can_be_read() {
    let mut server = Server::start();
    let (id, _) = server.create();
    let answer = server.done("record", json!({ "session_id": id, "op": "start" }));
    server.done("talk", json!({ "session_id": id, "command": "echo kept anyway" }));
    let file = file_of(&answer);
    eventually(&file, "kept anyway\\r\\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().expect("a folder"))), (0o600, 0o700));
    }
    server.signal("KILL");
    server.end();
    let text = shown(["replay", file.to_str().expect("UTF-8")]);
    assert!(text.contains("kept anyway"), "{text}");
}

/// The player that the format comes from.
#[test]
fn asciinema_plays_what_was_recorded() {
    let folder = Folder::new();
    let cast = folder.path().join("x.cast");
    let cast = cast.to_str().expect("UTF-8");
    let program = "printf '\\033[32mgreen\\033[0m é日本\\n'; exit 7";
    let run = kpty(["record", "-o", cast, "--cols", "50", "--rows", "9", "--", "sh", "-c", program]);
    assert_eq!((run.code, run.stdout.as_str()), (7, ""), "{}", run.stderr);
    assert!(run.stderr.contains("recorded"), "{}", run.stderr);
    // It wants a terminal, also where it only prints.
    for how in [&["cat"][..], &["play", "-i", "0.1"]] {
        let program = [&["run", "--cols", "50", "--", "env", "LC_ALL=C.UTF-8", "asciinema"], how, &[cast]].concat();
        let played = kpty(program);
        assert_eq!((played.code, played.stdout.as_str()), (0, "green é日本\n"), "{how:?}: {}", played.stderr);
    }
    assert_eq!(shown(["replay", cast]), "green é日本\n");
    // Never over what is there.
    assert!(refused(["record", "-o", cast, "--", "true"]).contains("exists"));
    let missing = folder.path().join("y.cast");
    let run = kpty(["record", "-o", missing.to_str().expect("UTF-8"), "--", "no-such-program-anywhere"]);
    assert_eq!((run.code, missing.exists()), (127, false), "{}", run.stderr);
}

/// In a terminal, keys go to the program, what it prints is seen, and both are as without us.
#[tokio::test(flavor = "multi_thread")]
async fn record_in_a_terminal_passes_keys_and_output() {
    let folder = Folder::new();
    let cast = folder.path().join("x.cast");
    let rig = Rig::new();
    let arguments =
        ["record", "-o", cast.to_str().expect("UTF-8"), "--", "sh", "-c", "read -r x; echo got $x; read -r y"];
    let program = env!("CARGO_BIN_EXE_kpty");
    let shell = rig.create(json!({ "shell": program, "args": arguments, "cols": 70, "rows": 9 })).await;
    eventually(&cast, "\"version\":2");
    shell.call("send_line", json!({ "data": "hello" })).await;
    let seen = shell.call("wait", json!({ "text": "got hello", "timeout_ms": 45_000 })).await;
    assert_eq!(seen["ended_by"], "text");
    shell.call("resize", json!({ "cols": 64, "rows": 8 })).await;
    eventually(&cast, "\"r\", \"64x8\"");
    shell.call("send_line", json!({ "data": "" })).await;
    shell.call("wait", json!({ "exit": true, "timeout_ms": 45_000 })).await;
    let recording = Recording::load(&cast).expect("a good cast");
    let mut player = Player::new(&recording, EngineKind::Alacritty, None);
    player.play_to_end();
    let text = player.emulator().read(&Request::new(Mode::Full), None).text;
    assert_eq!(text.lines().collect::<Vec<_>>(), ["hello", "got hello"]);
    rig.end().await;
}
