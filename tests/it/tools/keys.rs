//! Keys, text, pastes and the mouse, and the programs that get them.

use serde_json::json;

use super::Rig;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_text_and_pastes_reach_the_program() {
    let rig = Rig::new();
    let shell = rig.create(json!({})).await;
    shell.wait(json!({ "prompt": true }), "prompt").await;
    shell.call("send_keys", json!({ "text": "echo rea''dy; cat -A", "keys": "Enter" })).await;
    shell.wait(json!({ "text": "ready" }), "text").await;
    let keys = json!(["Up", { "text": "t " }, { "paste": "p" }, "Ctrl-V", "Ctrl-C", "Enter"]);
    let sent = shell.call("send_keys", json!({ "keys": keys })).await;
    assert_eq!(sent["sent"].as_array().map(Vec::len), Some(6), "{sent}");
    let seen = shell.wait(json!({ "regex": r"\^\[\[At p\^C\$$" }), "text").await;
    assert!(seen["line"].is_u64() && seen["matched_text"] == "^[[At p^C$", "{seen}");
    shell.call("send_keys", json!({ "keys": "Ctrl-D" })).await;
    shell.wait(json!({ "prompt": true }), "prompt").await;
    rig.end().await;
}

/// Programs with a composer take an Enter that comes with the text for a pasted newline.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn enter_comes_apart_from_the_text_where_keys_are_read() {
    let rig = Rig::new();
    let script = "stty raw -echo; printf ready; dd bs=64 count=1 2>/dev/null | od -An -c";
    for (action, more) in
        [("send_line", json!({ "data": "hi" })), ("send_keys", json!({ "text": "hi", "keys": "Enter" }))]
    {
        let shell = rig.create(json!({ "shell": "/bin/sh", "args": ["-c", script] })).await;
        shell.wait(json!({ "text": "ready" }), "text").await;
        // The reader is gone when it has read once, so that Enter may find nobody.
        rig.reply(shell.arguments(action, more)).await;
        let seen = shell.wait(json!({ "regex": "h +i" }), "text").await;
        assert!(!seen["line_text"].as_str().expect("a line").contains("\\r"), "{seen}");
    }
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_mouse_clicks_on_what_can_be_seen() {
    let rig = Rig::new();
    let script =
        r"stty raw -echo; printf '\033[?1000h\033[?1006h\033[2J\033[3;5H世[OK]'; head -c 18 | od -An -c | tr -d ' \n'";
    let shell = rig.create(json!({ "shell": "/bin/sh", "args": ["-c", script] })).await;
    shell.wait(json!({ "text": "[OK]" }), "text").await;
    let sent = shell.call("send_keys", json!({ "mouse": { "text": "[OK]" } })).await;
    assert_eq!((&sent["sent"], &sent["bytes_written"]), (&json!(["click at row 2, col 6"]), &json!(18)));
    let ended = shell.wait(json!({ "exit": true }), "exit").await;
    assert!(ended["tail"].as_str().expect("text").contains("[<0;7;3M033[<0;7;3m"), "{ended}");
    rig.end().await;
}
