//! Evidence packs: what was run and by whom, as one JSON.

use serde_json::{Value, json};

use super::{get, token};
use crate::server::Server;

#[test]
fn evidence_is_one_json_that_tells_what_was_run_and_by_whom() {
    let server = Server::start();
    let (id, _) = server.create();
    let token = token();
    server.done("talk", json!({ "session_id": id, "command": "echo first; false", "as_agent": "worker 1" }));
    server.done("talk", json!({ "session_id": id, "command": format!("echo {token}"), "as_agent": "worker 2" }));
    let one = server.done("evidence", json!({ "session_id": id, "command_id": "cmd_1", "as_agent": "lead" }));
    for (name, expected) in [
        ("type", json!("pty_transcript")),
        ("session_id", json!(id)),
        ("command", json!("echo first; false")),
        ("output", json!("first")),
        ("exit_code", json!(1)),
        ("actor", json!("worker 1")),
        ("collected_by", json!("lead")),
        ("running", json!(false)),
    ] {
        assert_eq!(one[name], expected, "{name}: {one}");
    }
    assert!(one["screen"].as_str().is_some_and(|screen| screen.contains("first")), "{one}");
    assert!(one["timestamp"].as_str().is_some_and(|at| at.ends_with("+00:00")) && one["session"]["shell"].is_string());
    // The last one when none is named, secrets masked.
    let last = server.done("evidence", json!({ "session_id": id, "screen": false }));
    assert_eq!((&last["command_id"], &last["actor"]), (&json!("cmd_2"), &json!("worker 2")));
    assert!(last.get("screen").is_none() && !last.to_string().contains("a1B2a1B2"), "{last}");
    let pack = server.done(
        "evidence",
        json!({
            "session_id": id, "command_ids": ["cmd_1", "cmd_2"], "intervention_type": "stuck_worker_recovery",
            "action_taken": format!("sent {token}"), "result": "goes on",
            "attach": [{ "type": "screenshot", "capture_id": "cap_1", "description": token }],
        }),
    );
    assert_eq!((&pack["intervention_type"], &pack["result"]), (&json!("stuck_worker_recovery"), &json!("goes on")));
    let kinds: Vec<&str> =
        pack["evidence"].as_array().expect("evidence").iter().filter_map(|item| item["type"].as_str()).collect();
    assert_eq!(kinds, ["pty_transcript", "pty_transcript", "screenshot"]);
    assert!(!pack.to_string().contains("a1B2a1B2"), "{pack}");
    // The entry names the pack.
    let entry = get(&server, &format!("events?action=evidence&session_id={id}"))["events"][0].clone();
    assert_eq!(entry["evidence_id"], pack["evidence_id"]);
    // Looking is enough for it.
    let view = json!({ "name": "k_pty_view", "arguments": { "action": "evidence", "session_id": id } });
    assert_eq!(server.rpc("tools/call", view)["result"]["isError"], false);
    for (arguments, param) in [
        (json!({ "session_id": id, "command_id": "cmd_99" }), "command_id"),
        (json!({ "session_id": id, "command_ids": ["x"] }), "command_ids"),
        (json!({ "session_id": id, "attach": [7] }), "attach"),
    ] {
        let (answer, is_error) = server.call("evidence", arguments);
        assert!(is_error && answer["details"]["param"] == param, "{answer}");
    }
    // Nothing was run: the screen tells.
    let (fresh, _) = server.create();
    let bare = server.done("evidence", json!({ "session_id": fresh }));
    assert_eq!((&bare["type"], &bare["command"]), (&json!("pty_transcript"), &Value::Null));
    let run = server.kpty(&["evidence", &id, "cmd_1", "--result", "fine"]);
    let printed: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!((run.code, &printed["evidence"][0]["command"]), (0, &json!("echo first; false")), "{}", run.stdout);
}
