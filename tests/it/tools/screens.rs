//! What is on a screen, was on it, or comes onto it: reading, searching, waiting, and what commands printed.

use kpty::config::{Config, ScreenAccess};
use kpty::error::ErrorCode;
use serde_json::json;

use super::{Rig, merge};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_screen_is_read_by_lines_that_keep_their_numbers() {
    let rig = Rig::new();
    let shell = rig.create(json!({ "env": { "PS1": "$ " }, "args": ["--norc"] })).await;
    shell.talk("seq 1 300").await;
    let marker = shell.call("term_read", json!({ "mode": "delta", "max_lines": 0 })).await;
    assert_eq!((&marker["text"], &marker["lines"]), (&json!(""), &json!([])));
    assert_eq!(marker["marker_line"], marker["cursor_line"]);
    shell.talk("echo fresh").await;
    shell.wait(json!({ "prompt": true }), "prompt").await;
    let delta = shell.call("term_read", json!({ "mode": "delta", "marker_id": marker["marker_id"] })).await;
    let lines = delta["lines"].as_array().expect("lines");
    assert!(lines.contains(&json!("fresh")) && !lines.contains(&json!("300")), "{delta}");
    assert_eq!((&delta["marker_disposed"], &delta["missed_lines"]), (&json!(false), &json!(0)));
    let viewport = shell.call("term_read", json!({ "mode": "viewport", "max_lines": 2, "merge_wrapped": false })).await;
    assert_eq!(viewport["lines"].as_array().map(Vec::len), Some(24));
    assert_eq!((&viewport["viewport_y"], &viewport["rows"]), (&viewport["first_line"], &json!(24)));
    let tail = shell.call("term_read", json!({ "max_lines": 3 })).await;
    assert_eq!(tail["viewport_y"], viewport["viewport_y"]);
    assert_eq!((tail["lines"].as_array().map(Vec::len), &tail["buffer_type"]), (Some(3), &json!("normal")));
    let found = shell.call("search", json!({ "pattern": "^10[0-9]$", "context": 1, "max_matches": 3 })).await;
    assert_eq!((&found["total"], &found["truncated"]), (&json!(10), &json!(true)));
    assert_eq!(found["matches"][2]["text"], "109");
    assert_eq!(found["matches"][2]["before"], json!(["108"]));
    let line = found["matches"][2]["line"].as_u64().expect("a number");
    let older =
        shell.call("search", json!({ "pattern": "^10[0-9]$", "until_line": found["next"]["until_line"] })).await;
    assert_eq!((&older["total"], &older["matches"][6]["text"]), (&json!(7), &json!("106")));
    let range = json!({ "from_line": line, "until_line": line + 100, "max_lines": 2 });
    let range = shell.call("term_read", range).await;
    assert_eq!((&range["lines"], &range["continue_from"]), (&json!(["109", "110"]), &json!(line + 2)));
    assert_eq!((&range["truncated"], &range["dropped_lines"]), (&json!(true), &json!(98)));
    let any_case = shell.call("search", json!({ "text": "FRESH", "ignore_case": true })).await;
    assert!(any_case["total"].as_u64() > Some(0), "{any_case}");
    let big = shell.call("search", json!({ "pattern": ".", "max_matches": 500, "context": 5 })).await;
    assert!(big.to_string().len() < 12_000 && big["truncated"] == true, "{}", big.to_string().len());
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn screens_are_closed_where_that_is_set() {
    let rig = Rig::with(Config { screen_access: ScreenAccess::Off, ..Config::default() });
    let shell = rig.create(json!({})).await;
    let body = shell.fails("term_read", json!({}), ErrorCode::TermReadDisabled).await;
    assert_eq!(body["details"]["current_mode"], "off");
    shell.fails("search", json!({ "text": "x" }), ErrorCode::TermReadDisabled).await;
    shell.fails("read", json!({ "mode": "viewport" }), ErrorCode::TermReadDisabled).await;
    shell.call("read", json!({})).await;
    shell.wait(json!({ "prompt": true }), "prompt").await;
    shell.call("send_line", json!({ "data": "echo hid''den; read x" })).await;
    let waited = shell.wait(json!({ "text": "hidden" }), "text").await;
    for shown in ["tail", "line_text", "matched_text"] {
        assert_eq!(waited.get(shown), None, "{waited}");
    }
    shell.call("send_keys", json!({ "keys": "Enter" })).await;
    shell.wait(json!({ "prompt": true }), "prompt").await;
    let late = json!({ "command": "clear; echo pri''nted; read x", "timeout_ms": 300 });
    let late = shell.fails("talk", late, ErrorCode::PtyTimeout).await;
    assert_eq!(late["details"]["screen"].as_str().unwrap_or_default(), "", "{late}");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raw_output_is_waited_for_and_kept() {
    let rig = Rig::new();
    let shell = rig.create(json!({ "shell": "/bin/sh", "args": ["-c", "read x; printf 'h\\303\\251'; read y"] })).await;
    let none = shell.call("read", json!({ "timeout_ms": 0 })).await;
    assert_eq!((&none["output"], &none["bytes_read"], &none["session_alive"]), (&json!(""), &json!(0), &json!(true)));
    shell.call("send_line", json!({ "data": "" })).await;
    shell.wait(json!({ "text": "hé" }), "text").await;
    for _ in 0..2 {
        let some = shell.call("read", json!({ "max_bytes": 2 })).await;
        assert_eq!((&some["output"], &some["bytes_read"]), (&json!("é"), &json!(2)));
    }
    let seen = shell.call("read", json!({ "mode": "tail" })).await;
    assert!(seen["output"].as_str().expect("text").ends_with("hé"), "{seen}");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_ends_by_the_first_of_several_things() {
    let rig = Rig::new();
    let shell = rig.create(json!({})).await;
    shell.wait(json!({ "prompt": true, "text": "never to be seen" }), "prompt").await;
    shell.wait(json!({ "quiet_ms": 1 }), "quiet").await;
    let late = shell.call("wait", json!({ "text": "never to be seen", "timeout_ms": 0 })).await;
    assert_eq!((&late["ended_by"], &late["timed_out"]), (&json!("timeout"), &json!(true)));
    shell.call("send_line", json!({ "data": "echo wai''ted; read x; clear" })).await;
    let seen = shell.wait(json!({ "text": "waited" }), "text").await;
    assert_eq!((&seen["matched_text"], &seen["line_text"]), (&json!("waited"), &json!("waited")));
    let again = json!({ "text": "waited", "marker_id": seen["marker_id"], "timeout_ms": 50 });
    assert_eq!(shell.call("wait", again).await["ended_by"], "timeout");
    shell.call("send_keys", json!({ "keys": "Enter" })).await;
    shell.wait(json!({ "text": "waited", "gone": true }), "gone").await;
    shell.wait(json!({ "gone_regex": "wait.d" }), "gone").await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_are_remembered_with_their_output() {
    let rig = Rig::new();
    let shell = rig.create(json!({})).await;
    for command in ["seq 1 100", "false", "cd /; true"] {
        shell.talk(command).await;
    }
    let list = shell.call("commands", json!({ "limit": 2 })).await;
    assert_eq!((&list["count"], &list["total"]), (&json!(2), &json!(3)));
    let first = &list["commands"][0];
    assert_eq!((&first["id"], &first["line"], &first["exit_code"]), (&json!("cmd_2"), &json!("false"), &json!(1)));
    assert_eq!((&first["running"], &first["completed_by"]), (&json!(false), &json!("integration")));
    for (more, output) in [
        (json!({ "head": 2 }), "1\n2"),
        (json!({ "tail": 1 }), "100"),
        (json!({ "head": 1, "tail": 1 }), "1\n100"),
        (json!({ "from_line": 9, "until_line": 11 }), "10\n11"),
        (json!({ "regex": "^.0$", "head": 3 }), "10\n20\n30"),
    ] {
        let mut arguments = json!({ "command_id": "cmd_1" });
        merge(&mut arguments, more);
        let one = shell.call("commands", arguments).await;
        assert_eq!((&one["output"], &one["total_lines"]), (&json!(output), &json!(100)), "{one}");
        assert_eq!((&one["evicted_lines"], &one["command"]["line"]), (&json!(0), &json!("seq 1 100")));
    }
    let cut = shell.call("commands", json!({ "command_id": 1, "max_chars": 10 })).await;
    assert_eq!((&cut["truncated"], &cut["omitted_chars"]), (&json!(true), &json!(291 - 10)));
    rig.end().await;
}

/// What takes several bytes in JSON counts as much: text of other scripts, quotes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_nobody_sized_stay_below_8_kb() {
    const MOST: usize = 8 << 10;
    let rig = Rig::new();
    let shell = rig.create(json!({})).await;
    for text in ["plain", "日本語の行です", r#""quoted\""#, "🎉🎉🎉"] {
        let command = format!("for i in $(seq 40); do printf '%0200d%s\\n' $i '{}'; done", text.repeat(20));
        let id = shell.talk(&command).await["command_id"].clone();
        for (action, more) in [
            ("commands", json!({ "command_id": id })),
            ("commands", json!({ "command_id": id, "regex": "[02468]" })),
            ("commands", json!({})),
            ("wait", json!({ "command_id": id })),
            ("wait", json!({ "command_id": id, "regex": ".*" })),
            ("search", json!({ "text": text })),
            ("search", json!({ "text": text, "context": 20 })),
        ] {
            let answer = shell.call(action, more.clone()).await.to_string();
            assert!((300..=MOST).contains(&answer.len()), "{text} {action} {more}: {} bytes", answer.len());
        }
        let asked = shell.call("commands", json!({ "command_id": id, "max_chars": 100_000 })).await;
        assert_eq!((&asked["omitted_chars"], &asked["truncated"]), (&json!(0), &json!(false)));
        let some = shell.call("commands", json!({ "command_id": id, "max_chars": 3_000 })).await;
        let whole = asked["output"].as_str().expect("text").chars().count();
        assert_eq!(some["omitted_chars"], json!(whole - 3_000));
    }
    rig.end().await;
}

/// What the next call is said to be gives exactly the lines that were left out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_left_out_can_be_asked_for() {
    let rig = Rig::new();
    let shell = rig.create(json!({})).await;
    let id = shell.talk("seq -f '行 %05g' 1 2000").await["command_id"].clone();
    let cut = shell.call("commands", json!({ "command_id": id })).await;
    let next = &cut["next"];
    let (from, until) = (next["from_line"].as_u64().expect("a line"), next["until_line"].as_u64().expect("a line"));
    let text = cut["output"].as_str().expect("text");
    let shown = text.lines().filter(|line| line.starts_with("行 ") && line.chars().count() == 7).count() as u64;
    assert!(shown > 100 && until - from >= 2_000 - shown, "{shown} lines, and from {from} until {until}");
    let rest = json!({ "command_id": id, "from_line": from, "until_line": until, "max_chars": 100_000 });
    let rest = shell.call("commands", rest).await;
    let (first, last) = (format!("行 {:05}", from + 1), format!("行 {until:05}"));
    let lines: Vec<_> = rest["output"].as_str().expect("text").lines().collect();
    assert_eq!((lines.first(), lines.last()), (Some(&first.as_str()), Some(&last.as_str())));
    rig.end().await;
}
