//! Programs that ask the terminal, and programs that do not listen.

use std::fs;
use std::time::{Duration, Instant};

use kpty::config::Config;
use kpty::error::ErrorCode;
use serde_json::json;

use crate::server::Server;
use crate::tools::Rig;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_asks_is_answered_in_order() {
    let rig = Rig::with(Config::default());
    let shell = rig.create(json!({})).await;
    shell.talk("stty -echo -icanon").await;
    for round in 0..20 {
        let began = Instant::now();
        let told = shell
            .talk("stty -echo -icanon; printf 'abc\\033[6n'; IFS='[;' read -rs -d R _ row col; stty sane; printf '\\n%s' \"$col\"")
            .await;
        assert_eq!(told["output"], "abc\n4", "{round}");
        assert!(began.elapsed() < Duration::from_secs(10), "{round}: {:?}", began.elapsed());
    }
    let ask = "stty -echo -icanon; printf '\\033[6n\\033[5n\\033[c\\033[6n'; IFS= read -rs -d c all; read -rs -d R last; \
               stty sane; printf '%s\\n' \"$all\" | tr '\\033' E | sed 's/[0-9]*;1R/POS/'; \
               printf '%s' \"$last\" | tr '\\033' E | sed 's/[0-9]*;1$/POS/'";
    for _ in 0..20 {
        let told = shell.talk(ask).await;
        let output = told["output"].as_str().expect("text");
        assert!(output.starts_with("E[POSE[0nE[?") && output.ends_with("\nE[POS"), "{output:?}");
    }
    rig.end().await;
}

/// What nobody read arrives at the prompt, where the shell edits it key by key.
#[test]
fn thousands_of_questions_leave_the_shell_free_for_the_next_talk() {
    let server = Server::start();
    let (id, _) = server.create();
    let ask =
        "stty raw -echo; yes \"$(printf '\\033[c\\033[>c\\033[=c\\033[>q')\" | tr -d '\\n' | head -c 100000; stty sane";
    for round in 0..3 {
        let asked = server.done("talk", json!({ "session_id": id, "command": ask, "timeout_ms": 45_000 }));
        assert_eq!(asked["exit_code"], 0, "{round}: {asked}");
        let began = Instant::now();
        let told = server.done("talk", json!({ "session_id": id, "command": "echo fine", "timeout_ms": 20_000 }));
        assert_eq!(told["output"], "fine", "{round}: {:?}", began.elapsed());
    }
}

pub(crate) fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a size");
    line.split_whitespace().nth(1).and_then(|size| size.parse().ok()).expect("a number")
}

#[test]
fn a_program_that_asks_and_never_reads_blocks_nothing() {
    for terminal in ["stty raw -echo", "stty sane"] {
        let server = Server::start();
        let (id, _) = server.create();
        let (other, _) = server.create();
        server.done("talk", json!({ "session_id": other, "command": "true" }));
        let before = resident_kib(server.pid());
        // 4 MB of questions; the answers are more than any queue takes.
        let flood = "yes \"$(printf '\\033[6n\\033[c\\033[5n')\" | head -c 4000000; printf '\\r\\nFLOOD%s\\r\\n' OVER";
        let command = format!("{terminal}; {flood}; exec sleep 1000");
        let (late, _) = server.call("talk", json!({ "session_id": id, "command": command, "timeout_ms": 0 }));
        assert_eq!(late["error_code"], "PTY_TIMEOUT", "{late}");
        let over = server.done("wait", json!({ "session_id": id, "text": "FLOODOVER", "timeout_ms": 45_000 }));
        assert_eq!(over["ended_by"], "text", "{terminal}: {over}");
        let grown = resident_kib(server.pid()).saturating_sub(before);
        assert!(grown < 48 << 10, "{terminal}: {grown} KiB more");
        let told = server.done("talk", json!({ "session_id": other, "command": "echo fine" }));
        assert_eq!(told["output"], "fine");
        let killed = server.done("kill", json!({ "session_id": id }));
        assert_eq!(killed["was_dead"], false);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn input_that_nobody_reads_fails_in_time() {
    let rig = Rig::with(Config::default());
    let shell = rig.create(json!({})).await;
    shell.wait(json!({ "prompt": true }), "prompt").await;
    let deaf = json!({ "command": "stty raw -echo; echo dea''f; exec sleep 1000", "timeout_ms": 0 });
    shell.fails("talk", deaf, ErrorCode::PtyTimeout).await;
    shell.wait(json!({ "text": "deaf" }), "text").await;
    for _ in 0..2 {
        let began = Instant::now();
        let failed = shell.fails("send_line", json!({ "data": "x".repeat(200_000) }), ErrorCode::PtyWriteFailed).await;
        assert_eq!((&failed["typed"]["ok"], &failed["enter"]["ok"]), (&json!(false), &json!(false)), "{failed}");
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }
    let read = shell.call("term_read", json!({})).await;
    assert!(read["text"].as_str().is_some_and(|text| text.contains("deaf")), "{read}");
    assert_eq!(shell.call("kill", json!({})).await["was_dead"], false);
    rig.end().await;
}
