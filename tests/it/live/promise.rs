//! `timeout_ms` is a promise: no answer comes later than half a second after it, whatever the session does.

use std::time::{Duration, Instant};

use kpty::config::Config;
use serde_json::{Value, json};

use crate::tools::{Rig, Shell};

/// Has something done that cannot be done in time.
async fn in_time(shell: &Shell<'_>, action: &str, mut call: Value, timeout_ms: u64) {
    call["timeout_ms"] = json!(timeout_ms);
    let began = Instant::now();
    let body = Value::Object(shell.reply(action, call.clone()).await.body);
    let (took, most) = (began.elapsed(), Duration::from_millis(timeout_ms + 500));
    assert!(took < most, "{action} {call} took {took:?}: {body}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_cannot_be_interrupted_is_left_in_time() {
    let rig = Rig::with(Config::default());
    let shell = rig.create(json!({})).await;
    shell.talk("true").await;
    let deaf = json!({ "command": "(trap '' INT; sleep 1000)", "on_timeout": "interrupt" });
    in_time(&shell, "talk", deaf, 700).await;
    in_time(&shell, "talk", json!({ "command": "true" }), 700).await;
    for until in [json!({ "text": "never" }), json!({ "exit": true }), json!({ "prompt": true })] {
        in_time(&shell, "wait", until, 300).await;
    }
    in_time(&shell, "read", json!({}), 300).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_that_takes_long_to_start_is_not_waited_for_longer() {
    let rig = Rig::with(Config::default());
    let home = crate::support::Folder::new();
    home.file(".bashrc", "sleep 30\n");
    let shell = rig.create(json!({ "shell": "/bin/bash", "env": { "HOME": home.path().to_str() } })).await;
    in_time(&shell, "talk", json!({ "command": "true" }), 700).await;
    rig.end().await;
}
