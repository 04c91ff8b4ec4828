//! Ownership and resolution of sessions of both sources.

use std::time::{Duration, SystemTime};

use kpty::config::{Config, Identity};
use kpty::error::ErrorCode;
use kpty::ids::SessionId;
use kpty::model::{Owner, Role, Source, iso_time};
use kpty::registry::{Registration, UnregisterOutcome};
use serde_json::{Value, json};

use crate::support::Folder;
use crate::tools::Rig;

/// Timeout that only a failure reaches.
const PATIENCE: Duration = Duration::from_secs(45);

/// A desktop session with an agent and a label.
fn register(rig: &Rig, id: &str, agent: &str, label: &str) {
    let owner = Owner { agent_id: Some(agent.to_owned()), label: Some(label.to_owned()), ..Owner::default() };
    let (session_id, desktop_url) = (id.to_owned(), "http://127.0.0.1:9".to_owned());
    let given = Registration { session_id, desktop_url, owner, ..Registration::default() };
    rig.tools.registry().register_desktop(given).expect("a good entry");
}

/// The fields of the wire, in the order of their names.
const FIELDS: [&str; 12] = [
    "claude_code_session_id",
    "cli_type",
    "created_at",
    "desktop_url",
    "label",
    "last_heartbeat",
    "owner_agent_id",
    "owner_role",
    "owner_session_id",
    "pid",
    "session_id",
    "source",
];

fn names(object: &Value) -> Vec<&str> {
    let mut names: Vec<_> = object.as_object().expect("an object").keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_created_session_is_found_by_every_key() {
    let rig = Rig::new();
    let (here, elsewhere) = (Folder::new(), Folder::new());
    let shell = rig
        .create(json!({
            "owner_agent_id": "a1", "owner_session_id": "s1", "owner_role": "worker", "label": "builder",
            "claude_code_session_id": "c1", "cli_type": "claude", "cwd": here.path(),
        }))
        .await;
    let other = rig.create(json!({ "agent_id": "a2", "label": "tester", "cwd": elsewhere.path() })).await;
    shell.talk("echo needle; true").await;
    other.talk("echo hay").await;
    for key in [
        json!({ "agent_id": "a1" }),
        json!({ "owner_agent_id": "a1" }),
        json!({ "owner_session_id": "s1" }),
        json!({ "label": "builder" }),
        json!({ "claude_code_session_id": "c1" }),
        json!({ "cwd": here.path() }),
        json!({ "last_command": "echo need" }),
        json!({ "agent_id": "a1", "label": "builder", "cwd": here.path(), "last_command": "needle" }),
        json!({ "agent_id": "a1", "label": "no such label" }),
    ] {
        let mut arguments = key.clone();
        arguments["action"] = json!("resolve");
        let found = rig.call(arguments).await;
        assert_eq!(names(&found), ["ok", "session", "session_id"], "{found}");
        assert_eq!((&found["session_id"], &found["session"]["session_id"]), (&json!(shell.id), &json!(shell.id)));
    }
    let session = rig.call(json!({ "action": "resolve", "agent_id": "a1" })).await["session"].clone();
    assert_eq!(names(&session), FIELDS);
    for (name, value) in [
        ("source", json!("local")),
        ("desktop_url", Value::Null),
        ("cli_type", json!("claude")),
        ("owner_agent_id", json!("a1")),
        ("owner_session_id", json!("s1")),
        ("owner_role", json!("worker")),
        ("label", json!("builder")),
        ("claude_code_session_id", json!("c1")),
    ] {
        assert_eq!(session[name], value, "{name}");
    }
    let pid = shell.talk("echo $$").await["output"].as_str().and_then(|pid| pid.parse::<u32>().ok());
    assert_eq!(session["pid"].as_u64(), pid.map(u64::from));
    assert_eq!(rig.call(json!({ "action": "resolve", "agent_id": "a2" })).await["session"]["cli_type"], "shell");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_session_and_several_are_errors_that_name_the_query() {
    let rig = Rig::new();
    let first = rig.create(json!({ "agent_id": "a", "label": "one" })).await;
    register(&rig, "desk-1", "a", "two");
    let keyless = rig.fails(json!({ "action": "resolve", "agent_id": "" }), ErrorCode::MissingParam).await;
    assert!(keyless["message"].as_str().expect("a message").contains("one of agent_id"), "{keyless}");
    let none = rig.fails(json!({ "action": "resolve", "agent_id": "x", "label": "y" }), ErrorCode::NotFound).await;
    let said = "No PTY found for: agent_id=x, owner_session_id=None, label=y, claude_code_session_id=None";
    assert_eq!(none["error"], said);
    let query = json!({ "agent_id": "x", "owner_session_id": null, "label": "y", "claude_code_session_id": null });
    assert_eq!((&none["query"], none.get("matches")), (&query, None));
    for key in [json!({ "agent_id": "a" }), json!({ "label": "one", "agent_id": "a" })] {
        for action in ["resolve", "send_line_to_agent"] {
            let mut arguments = key.clone();
            arguments["action"] = json!(action);
            if action == "send_line_to_agent" {
                arguments["data"] = json!("echo to all");
            }
            let body = rig.fails(arguments, ErrorCode::Ambiguous).await;
            assert_eq!(body["error"], "Multiple PTYs match query (2 found). Use more specific criteria.");
            let matches = body["matches"].as_array().expect("matches");
            let ids: Vec<_> = matches.iter().filter_map(|session| session["session_id"].as_str()).collect();
            assert_eq!((ids.len(), ids.contains(&"desk-1"), ids.contains(&first.id.as_str())), (2, true, true));
            assert!(body["query"]["agent_id"] == "a" && names(&matches[0]) == FIELDS, "{body}");
        }
    }
    assert!(!first.talk("true").await["raw_output"].as_str().expect("text").contains("echo to all"));
    assert_eq!(rig.call(json!({ "action": "resolve", "label": "two" })).await["session"]["source"], "desktop");
    // The dead do not count.
    first.call("kill", json!({})).await;
    let left = rig.call(json!({ "action": "resolve", "agent_id": "a" })).await;
    assert_eq!((&left["session_id"], &left["session"]["source"]), (&json!("desk-1"), &json!("desktop")));
    rig.fails(json!({ "action": "resolve", "label": "one" }), ErrorCode::NotFound).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_goes_to_the_agent_and_to_nobody_else() {
    let rig = Rig::new();
    let shell = rig.create(json!({ "agent_id": "worker-1" })).await;
    let other = rig.create(json!({ "agent_id": "worker-2" })).await;
    for shell in [&shell, &other] {
        shell.wait(json!({ "prompt": true }), "prompt").await;
    }
    let send = |more: Value| {
        let mut arguments = json!({ "action": "send_line_to_agent" });
        arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        arguments
    };
    let sent = rig.call(send(json!({ "agent_id": "worker-1", "data": "echo ar''rived" }))).await;
    assert_eq!(names(&sent), ["ok", "resolved_session", "resolved_session_id", "send_result"]);
    assert_eq!(sent["resolved_session_id"], json!(shell.id));
    let expected = json!({
        "ok": true, "typed": { "ok": true, "bytes_written": 14 }, "enter": { "ok": true, "bytes_written": 1 },
    });
    assert_eq!(sent["send_result"], expected);
    shell.wait(json!({ "text": "arrived" }), "text").await;
    assert!(!other.call("term_read", json!({})).await["text"].as_str().expect("text").contains("rived"));
    // The text is validated before the search.
    for (more, code) in [
        (json!({ "agent_id": "worker-1" }), ErrorCode::MissingParam),
        (json!({ "data": "rm -rf /" }), ErrorCode::DangerousCommandBlocked),
        (json!({ "data": r"rm -rf \x2f", "agent_id": "nobody" }), ErrorCode::DangerousCommandBlocked),
        (json!({ "data": "x" }), ErrorCode::MissingParam),
        (json!({ "data": "x", "agent_id": "nobody" }), ErrorCode::NotFound),
    ] {
        rig.fails(send(more), code).await;
    }
    register(&rig, "desk-1", "far", "Desk");
    let unreachable = ErrorCode::PtyDesktopRequestError;
    let body = rig.fails(send(json!({ "data": "x", "agent_id": "far" })), unreachable).await;
    assert_eq!(body["send_result"]["error_code"], unreachable.as_str());
    assert_eq!((&body["resolved_session_id"], &body["send_result"]["ok"]), (&json!("desk-1"), &json!(false)));
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_changes_hands_and_only_force_takes_it_away() {
    let rig = Rig::new();
    let shell = rig.create(json!({ "label": "builder" })).await;
    register(&rig, "desk-1", "d", "Desk");
    rig.call(json!({ "action": "disown", "session_id": "desk-1" })).await;
    for id in [shell.id.as_str(), "desk-1"] {
        let call = |action: &str, more: Value| {
            let mut arguments = json!({ "action": action, "session_id": id });
            arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            arguments
        };
        rig.fails(call("adopt", json!({})), ErrorCode::MissingParam).await;
        rig.fails(call("adopt", json!({ "agent_id": "a", "owner_role": "king" })), ErrorCode::InvalidParam).await;
        let long = "l".repeat(257);
        rig.fails(call("adopt", json!({ "agent_id": "a", "label": long })), ErrorCode::InvalidParam).await;
        rig.fails(call("adopt", json!({ "agent_id": "a", "label": "\u{1b}c" })), ErrorCode::InvalidParam).await;
        let more =
            json!({ "owner_agent_id": "a", "owner_session_id": "s", "claude_code_session_id": format!("c-{id}") });
        let adopted = rig.call(call("adopt", more)).await;
        assert_eq!(names(&adopted), ["ok", "session"]);
        assert_eq!((&adopted["session"]["owner_agent_id"], names(&adopted["session"])), (&json!("a"), FIELDS.to_vec()));
        let found = rig.call(json!({ "action": "resolve", "claude_code_session_id": format!("c-{id}") })).await;
        assert_eq!(found["session_id"], id);
        let refused = rig.fails(call("adopt", json!({ "agent_id": "b" })), ErrorCode::AlreadyOwned).await;
        assert_eq!(refused["details"], json!({ "session_id": id, "owner": "a" }));
        rig.fails(call("disown", json!({ "agent_id": "b" })), ErrorCode::AlreadyOwned).await;
        let taken = rig.call(call("adopt", json!({ "agent_id": "b", "force": true, "owner_role": "leader" }))).await;
        let session = &taken["session"];
        assert_eq!((&session["owner_agent_id"], &session["owner_role"]), (&json!("b"), &json!("leader")));
        assert_eq!((&session["owner_session_id"], &session["claude_code_session_id"]), (&Value::Null, &Value::Null));
        let free = rig.call(call("disown", json!({ "agent_id": "b" }))).await;
        for name in ["owner_agent_id", "owner_session_id", "owner_role", "claude_code_session_id"] {
            assert_eq!(free["session"][name], Value::Null, "{name}");
        }
        assert_eq!(free["session"]["label"], taken["session"]["label"], "the name is the session's");
    }
    shell.call("kill", json!({})).await;
    shell.fails("adopt", json!({ "agent_id": "a" }), ErrorCode::PtyProcessExited).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sources_are_listed_with_owners_and_leaders() {
    let identity = Identity { agent_id: Some("me".to_owned()), role: Some(Role::Leader), ..Identity::default() };
    let rig = Rig::with(Config { identity, ..Config::default() });
    rig.create(json!({ "agent_id": "me", "claude_code_session_id": "c", "cli_type": "codex" })).await;
    rig.create(json!({ "agent_id": "worker" })).await;
    register(&rig, "desk-1", "boss", "Desk");
    rig.tools.registry().register_leader("boss").expect("a short name");
    let list = rig.call(json!({ "action": "list" })).await;
    assert_eq!((&list["count"], &list["by_source"]), (&json!(3), &json!({ "local": 2, "desktop": 1 })));
    let sessions = list["sessions"].as_array().expect("sessions");
    let leaders: Vec<_> = sessions.iter().map(|session| session["is_leader"].clone()).collect();
    assert_eq!(leaders, [json!(true), json!(false), json!(true)]);
    assert_eq!((&sessions[0]["cli_type"], &sessions[0]["claude_code_session_id"]), (&json!("codex"), &json!("c")));
    assert!(sessions[0].get("stale").is_none() && sessions[2].get("stale").is_none(), "{list}");
    assert_eq!(
        (&sessions[2]["source"], &sessions[2]["desktop_url"]),
        (&json!("desktop"), &json!("http://127.0.0.1:9"))
    );
    // A desktop without a heartbeat for an hour.
    let mut silent = rig.tools.registry().records().pop().expect("the desktop session");
    silent.session_id = "desk-2".to_owned();
    silent.last_heartbeat = iso_time(SystemTime::now() - Duration::from_secs(3_600));
    assert_eq!(rig.tools.registry().restore(vec![silent]), 1);
    let list = rig.call(json!({ "action": "list" })).await;
    assert_eq!((&list["sessions"][3]["session_id"], &list["sessions"][3]["stale"]), (&json!("desk-2"), &json!(true)));
    rig.tools.registry().heartbeat(&SessionId::named("desk-2"));
    assert!(rig.call(json!({ "action": "list" })).await["sessions"][3].get("stale").is_none());
    // Actions that need the desktop report that it is unreachable or that the desktop must do it.
    for (action, code) in [
        ("talk", ErrorCode::PtyDesktopRequestError),
        ("send_line", ErrorCode::PtyDesktopRequestError),
        ("send_keys", ErrorCode::PtyDesktopRequestError),
        ("wait", ErrorCode::PtyDesktopRequestError),
        ("read", ErrorCode::PtyDesktopRequestError),
        ("term_read", ErrorCode::PtyDesktopRequestError),
        ("search", ErrorCode::PtyDesktopRequestError),
        ("screenshot", ErrorCode::PtyDesktopRequestError),
        ("resize", ErrorCode::DesktopResizeDisabled),
        ("kill", ErrorCode::DesktopKillDisabled),
    ] {
        let arguments = json!({
            "action": action, "session_id": "desk-1", "command": "true", "data": "x", "text": "x", "cols": 9, "rows": 9,
        });
        let body = rig.fails(arguments, code).await;
        assert_eq!(body["details"]["source"], "desktop", "{action}");
    }
    let none = rig.call(json!({ "action": "commands", "session_id": "desk-1" })).await;
    assert_eq!(none["count"], 0, "nothing was typed");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_life_of_a_session_is_told() {
    let rig = Rig::new();
    let registry = rig.tools.registry();
    let mut changed = registry.changed();
    let shell = rig.create(json!({ "agent_id": "a" })).await;
    assert!(changed.has_changed().expect("the table lives"));
    let [record] = &registry.records()[..] else { panic!("one session is there") };
    assert_eq!((record.session_id.as_str(), record.source), (shell.id.as_str(), Source::Local));
    let refused = registry.register_desktop(Registration {
        session_id: shell.id.clone(),
        desktop_url: "http://127.0.0.1:9".to_owned(),
        ..Registration::default()
    });
    refused.expect_err("the name of a local session");
    assert_eq!(registry.unregister(&SessionId::named(&shell.id), true), UnregisterOutcome::IsLocal);
    shell.call("adopt", json!({ "agent_id": "a", "owner_role": "worker" })).await;
    changed.mark_unchanged();
    shell.call("kill", json!({})).await;
    assert!(changed.has_changed().expect("the table lives") && registry.records().is_empty());
    let mut quitter = changed.clone();
    let gone = rig.create(json!({ "shell": "/bin/sh", "args": ["-c", "exit 3"], "cli_type": "one-shot" })).await;
    let mut events = Vec::new();
    let all_told = async {
        while events.len() < 5 {
            events.extend(registry.take_events());
            if events.len() < 5 {
                quitter.changed().await.expect("the table lives");
            }
        }
    };
    tokio::time::timeout(PATIENCE, all_told).await.expect("every end is told");
    assert_eq!(registry.records(), []);
    let told: Vec<_> = events
        .iter()
        .map(|event| (event.event, event.session_id.as_str(), Value::Object(event.details.clone())))
        .collect();
    let created = |cli_type: &str, pid: &Value, owner: Value| {
        let source = "local";
        json!({ "source": source, "cli_type": cli_type, "pid": pid, "owner_agent_id": owner })
    };
    assert_eq!(
        told,
        [
            ("session_created", shell.id.as_str(), created("shell", &told[0].2["pid"], json!("a"))),
            ("ownership_updated", shell.id.as_str(), json!({ "owner_agent_id": "a" })),
            ("session_killed", shell.id.as_str(), json!({ "reason": "kill" })),
            ("session_created", gone.id.as_str(), created("one-shot", &told[3].2["pid"], Value::Null)),
            ("session_killed", gone.id.as_str(), json!({ "reason": "exit" })),
        ]
    );
    rig.end().await;
}
