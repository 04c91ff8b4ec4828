//! The per-session turn lock, and commands that end after their caller's timeout.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kpty::config::Config;
use kpty::error::ErrorCode;
use serde_json::{Value, json};

use crate::tools::{Rig, Shell};

/// A shell to be typed at: name and whether it marks what it does.
const SHELLS: [(&str, &str); 3] = [("/bin/bash", "auto"), ("/bin/bash", "off"), ("/bin/sh", "off")];

async fn shell<'a>(rig: &'a Rig, (shell, integration): (&str, &str)) -> Shell<'a> {
    let made = rig.create(json!({ "shell": shell, "integration": integration })).await;
    made.wait(json!({ "prompt": true }), "prompt").await;
    made
}

/// Waits until a command is listed as running.
async fn running(shell: &Shell<'_>, line: &str) -> String {
    loop {
        let commands = shell.call("commands", json!({})).await;
        let found = commands["commands"].as_array().into_iter().flatten().find(|command| command["line"] == line);
        if let Some(id) = found.and_then(|command| command["id"].as_str()) {
            return id.to_owned();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_talk_waits_its_turn() {
    for kind in SHELLS {
        let rig = Arc::new(Rig::with(Config::default()));
        let shell = shell(&rig, kind).await;
        let first = "echo begun; read -r line; echo \"got $line\"";
        let arguments = shell.arguments("talk", json!({ "command": first, "timeout_ms": 60_000 }));
        let task = tokio::spawn({
            let rig = Arc::clone(&rig);
            async move { rig.call(arguments).await }
        });
        let id = running(&shell, first).await;
        shell.wait(json!({ "regex": "^begun" }), "text").await;
        let busy = shell.fails("talk", json!({ "command": "echo no", "timeout_ms": 100 }), ErrorCode::PtyBusy).await;
        assert_eq!((&busy["details"]["command_id"], &busy["details"]["running_command"]), (&json!(id), &json!(first)));
        assert!(busy["details"]["age_ms"].as_u64() >= Some(100), "{busy}");
        let waiting = shell.arguments("talk", json!({ "command": "echo second", "timeout_ms": 60_000 }));
        let second = tokio::spawn({
            let rig = Arc::clone(&rig);
            async move { rig.call(waiting).await }
        });
        shell.call("send_line", json!({ "data": "word" })).await;
        let told = task.await.expect("no panic");
        let output = told["output"].as_str().expect("text");
        assert!(output.starts_with("begun\n") && output.ends_with("got word"), "{kind:?} {told}");
        assert_eq!(second.await.expect("no panic")["output"], "second", "{kind:?}");
        assert_eq!(rig.tools.shutdown().await, []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_talk_that_nobody_waits_for_leaves_the_session_usable() {
    for kind in SHELLS {
        let rig = Arc::new(Rig::with(Config::default()));
        let shell = shell(&rig, kind).await;
        let line = "echo begun; read -r line; echo \"got $line\"; (exit 9)";
        let arguments = shell.arguments("talk", json!({ "command": line, "timeout_ms": 60_000 }));
        let task = tokio::spawn({
            let rig = Arc::clone(&rig);
            async move { rig.call(arguments).await }
        });
        let id = running(&shell, line).await;
        shell.wait(json!({ "regex": "^begun" }), "text").await;
        task.abort();
        assert!(task.await.is_err_and(|error| error.is_cancelled()));
        shell.call("send_line", json!({ "data": "later" })).await;
        let ended = shell.wait(json!({ "command_id": id }), "command").await;
        assert_eq!((&ended["command"]["exit_code"], &ended["command"]["running"]), (&json!(9), &json!(false)));
        assert!(ended["command"]["output"].as_str().is_some_and(|text| text.ends_with("got later")), "{ended}");
        assert_eq!(shell.talk("echo next").await["output"], "next", "{kind:?}");
        assert_eq!(rig.tools.shutdown().await, []);
    }
}

/// Runs a command after abandoned ones have ended.
async fn talk_when_free(shell: &Shell<'_>, talk: Value) -> Value {
    loop {
        let reply = shell.reply("talk", talk.clone()).await;
        if !reply.is(ErrorCode::PtyBusy) {
            return Value::Object(reply.body);
        }
        let id = reply.body["details"]["command_id"].clone();
        shell.wait(json!({ "command_id": id }), "command").await;
    }
}

/// A talk that is dropped at any moment must not spoil the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_talk_that_is_dropped_at_any_moment_spoils_nothing() {
    for kind in SHELLS {
        let rig = Arc::new(Rig::with(Config::default()));
        let shell = shell(&rig, kind).await;
        for round in 0..40_u64 {
            let arguments = shell.arguments("talk", json!({ "command": format!("echo dropped{round}; (exit 5)") }));
            let task = tokio::spawn({
                let rig = Arc::clone(&rig);
                async move { rig.reply(arguments).await }
            });
            // The moment is the case, nothing waits for it.
            tokio::time::sleep(Duration::from_micros(round * 150)).await;
            task.abort();
            let _ = task.await;
            let told = talk_when_free(
                &shell,
                json!({ "command": format!("echo kept{round}; (exit 6)"), "timeout_ms": 45_000 }),
            )
            .await;
            let expected = (json!(format!("kept{round}")), json!(6));
            let log = shell.call("commands", json!({})).await;
            assert_eq!((told["output"].clone(), told["exit_code"].clone()), expected, "{kind:?} {round} {log:#}");
        }
        assert_eq!(rig.tools.shutdown().await, []);
    }
}

/// The caller leaves before the shell asks for the rest: the command is taken back all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unfinished_command_of_a_caller_who_left_swallows_nothing() {
    let kinds = [("/usr/bin/fish", "auto"), ("/bin/bash", "auto"), ("/usr/bin/zsh", "auto"), ("/bin/bash", "off")];
    for kind in kinds {
        let rig = Arc::new(Rig::with(Config::default()));
        let shell = shell(&rig, kind).await;
        for round in 0..12_u64 {
            let unfinished = if round % 2 == 0 { "echo 'open" } else { "echo a |" };
            let arguments = shell.arguments("talk", json!({ "command": unfinished }));
            let task = tokio::spawn({
                let rig = Arc::clone(&rig);
                async move { rig.reply(arguments).await }
            });
            // The moment is the case, nothing waits for it.
            tokio::time::sleep(Duration::from_millis(round)).await;
            task.abort();
            let _ = task.await;
            let kept = json!({ "command": format!("echo kept{round}; sh -c 'exit 6'"), "timeout_ms": 45_000 });
            let began = Instant::now();
            let told = talk_when_free(&shell, kept).await;
            let expected = (&json!(format!("kept{round}")), &json!(6));
            assert_eq!((&told["output"], &told["exit_code"]), expected, "{kind:?} {round} {told}");
            assert!(began.elapsed() < Duration::from_secs(10), "{kind:?} {round} {:?}", began.elapsed());
        }
        assert_eq!(rig.tools.shutdown().await, []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_end_is_told_by_its_id() {
    for kind in SHELLS {
        let rig = Rig::with(Config::default());
        let shell = shell(&rig, kind).await;
        for (round, timeout) in [0, 1, 200].into_iter().enumerate() {
            let line = format!("echo begun{round}; read -r line; echo \"got $line\"; (exit 4)");
            let talk = json!({ "command": line, "timeout_ms": timeout });
            let late = shell.fails("talk", talk, ErrorCode::PtyTimeout).await;
            let id = late["details"]["command_id"].as_str().expect("an id").to_owned();
            let busy = shell.fails("talk", json!({ "command": "echo no", "timeout_ms": 0 }), ErrorCode::PtyBusy).await;
            assert_eq!(busy["details"]["command_id"], json!(id), "{busy}");
            shell.wait(json!({ "regex": format!("^begun{round}") }), "text").await;
            shell.call("send_line", json!({ "data": "word" })).await;
            let ended = shell.wait(json!({ "command_id": id }), "command").await;
            assert_eq!(ended["command"]["exit_code"], 4, "{kind:?} {ended}");
            let output = ended["command"]["output"].as_str().expect("text");
            let is_whole = output.starts_with(&format!("begun{round}\n")) && output.ends_with("\ngot word");
            assert!(is_whole, "{kind:?} {output:?}");
            let told = shell.talk(&format!("echo after{round}")).await;
            assert_eq!((&told["output"], &told["exit_code"]), (&json!(format!("after{round}")), &json!(0)));
        }
        rig.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_can_be_interrupted_when_its_time_is_over() {
    for kind in SHELLS {
        let rig = Rig::with(Config::default());
        let shell = shell(&rig, kind).await;
        let began = Instant::now();
        let talk = json!({ "command": "echo begun; sleep 1000", "timeout_ms": 300, "on_timeout": "interrupt" });
        let late = shell.fails("talk", talk, ErrorCode::PtyTimeout).await;
        assert!(began.elapsed() < Duration::from_secs(30), "{kind:?}");
        assert_eq!(late["details"]["interrupted"], true, "{late}");
        assert!(late["details"]["partial_output"].as_str().is_some_and(|text| text.starts_with("begun")), "{late}");
        let id = late["details"]["command_id"].clone();
        let ended = shell.wait(json!({ "command_id": id }), "command").await;
        // A shell that is typed at drops the rest of the line with the sentinel, and is asked for the code.
        assert_eq!(ended["command"]["exit_code"], 130, "{kind:?} {ended}");
        assert_eq!(shell.talk("echo next").await["output"], "next", "{kind:?}");
        rig.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_time_at_all_starts_the_command_all_the_same() {
    for kind in SHELLS {
        let rig = Rig::with(Config::default());
        let shell = shell(&rig, kind).await;
        for round in 0..20 {
            let talk = json!({ "command": format!("echo out{round}; (exit {round})"), "timeout_ms": 0 });
            let Value::Object(late) = talk_when_free(&shell, talk).await else { panic!("an object") };
            // It may have ended before the first poll.
            let id = late.get("command_id").unwrap_or_else(|| &late["details"]["command_id"]).clone();
            let ended = shell.wait(json!({ "command_id": id }), "command").await;
            let ran = &ended["command"];
            let expected = (&json!(format!("out{round}")), &json!(round));
            assert_eq!((&ran["output"], &ran["exit_code"]), expected, "{kind:?}");
        }
        rig.end().await;
    }
}
