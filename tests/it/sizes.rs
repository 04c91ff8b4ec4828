//! Answers stay small unless more is asked for, and say how to get the rest.

use serde_json::{Value, json};

use crate::tools::{Rig, Shell};

fn assert_small(what: &str, answer: &Value) {
    let bytes = answer.to_string().len();
    assert!(bytes <= 8_192, "{what} has {bytes} bytes");
}

/// Follows `next` until nothing is left out, and puts the numbers that were seen together.
async fn read_on(shell: &Shell<'_>, mut answer: Value) -> Vec<u64> {
    let mut seen: Vec<u64> = Vec::new();
    loop {
        let text = answer["output"].as_str().expect("an output");
        seen.extend(text.lines().filter_map(|line| line.strip_prefix("line ")?.split(' ').next()?.parse::<u64>().ok()));
        let Some(next) = answer.get("next").cloned() else { return seen };
        let range = json!({
            "command_id": next["command_id"], "from_line": next["from_line"], "until_line": next["until_line"],
        });
        answer = shell.call("commands", range).await;
        assert_small("the rest", &answer);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_outputs_are_read_page_by_page() {
    let rig = Rig::with(kpty::config::Config::default());
    let shell = rig.create(json!({})).await;
    let told = shell.talk("for i in {0..999}; do echo line $i of a thousand; done").await;
    let id = &told["command_id"];
    let waited = shell.wait(json!({ "command_id": id }), "command").await;
    assert_small("wait", &waited);
    let all: Vec<u64> = (0..1_000).collect();
    for first in [shell.call("commands", json!({ "command_id": id })).await, waited["command"].clone()] {
        assert!(first["truncated"] == true && first["next"].is_object(), "{first}");
        assert_small("commands", &first);
        let mut seen = read_on(&shell, first).await;
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, all);
    }
    let odd = shell.call("commands", json!({ "command_id": id, "regex": "line [0-9]*[13579] " })).await;
    assert_small("commands with a regex", &odd);
    let numbers = odd["line_numbers"].as_array().expect("numbers");
    let shown = odd["output"].as_str().expect("an output").lines().count();
    assert!(numbers.len() == shown && shown > 100, "{shown}");
    assert_eq!(odd["omitted_lines"].as_u64().map(|omitted| omitted + shown as u64), Some(500));
    assert_eq!((&numbers[shown - 1], &odd["next"]["until_line"]), (&json!(999), &numbers[0]));
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_endless_line_does_not_fill_an_answer() {
    let rig = Rig::with(kpty::config::Config::default());
    let shell = rig.create(json!({})).await;
    let long = "x".repeat(6_000);
    for _ in 0..20 {
        shell.talk(&format!(": {long}")).await;
    }
    shell.talk("printf 'a%.0s' {1..1500}; echo NEEDLE").await;
    assert_small("commands", &shell.call("commands", json!({})).await);
    assert_small("search", &shell.call("search", json!({ "pattern": "[ax]+" })).await);
    let waited = shell.wait(json!({ "regex": "a+NEEDLE" }), "text").await;
    assert_small("wait", &waited);
    rig.end().await;
}
