//! A bridge that says it knows the end of a command is asked for it; whatever comes of that, the command is handed over
//! once.

use std::time::Duration;

use kpty::error::ErrorCode;
use kpty::model::Owner;
use serde_json::{Value, json};

use super::fake::{Fake, Manner, screen};
use super::register;
use crate::tools::Rig;

/// A server that knows a terminal of a bridge that says this of itself.
fn rig(health: Value) -> (Rig, Fake) {
    let (rig, fake) = (Rig::new(), Fake::start());
    register(&rig, "x", &fake.url(), Owner::default());
    fake.answers("/health", "", Manner::Answer(health));
    fake.answers("/pty/list", "", Manner::Answer(json!({ "ok": true, "sessions": [{ "session_id": "x" }] })));
    (rig, fake)
}

fn exact() -> (Rig, Fake) {
    rig(json!({ "ok": true, "service": "pty-bridge", "exact_talk": true }))
}

fn talk(timeout_ms: u64) -> Value {
    json!({ "action": "talk", "session_id": "x", "command": "make it", "timeout_ms": timeout_ms })
}

/// How often the command was handed over, in whichever way.
fn handed_over(fake: &Fake) -> (usize, usize) {
    (fake.calls("/pty/talk"), fake.calls("/pty/write"))
}

async fn count(rig: &Rig) -> Value {
    rig.call(json!({ "action": "commands", "session_id": "x" })).await["count"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_bridge_that_says_so_is_asked() {
    for health in [
        json!({ "ok": true, "service": "pty-bridge", "mode": "embedded", "daemonConnected": false }),
        json!({ "ok": true, "service": "pty-bridge", "mode": "daemon", "daemonConnected": true }),
        json!({ "ok": true, "exact_talk": "yes" }),
        json!({ "ok": false, "exact_talk": true }),
    ] {
        let (rig, fake) = rig(health.clone());
        rig.fails(talk(300), ErrorCode::PtyTimeout).await;
        assert_eq!(handed_over(&fake), (0, 1), "{health}");
        rig.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ends_are_understood_in_both_styles() {
    let (rig, fake) = exact();
    for (answer, code, by) in [
        (json!({ "ok": true, "output": "made", "sentinel_found": true }), Value::Null, "sentinel"),
        (json!({ "ok": true, "output": "made", "sentinelFound": true, "exitCode": 3 }), json!(3), "sentinel"),
        (
            json!({
                "ok": true, "output": "made", "sentinel_found": true, "exit_code": 3, "command_id": "cmd_70",
                "completed_by": "integration", "duration_ms": 12, "raw_output": "made\r\n", "lines": [4, 5],
            }),
            json!(3),
            "integration",
        ),
    ] {
        fake.answers("/pty/talk", "x", Manner::Answer(answer.clone()));
        let said = rig.call(talk(20_000)).await;
        let told = (&said["output"], &said["exit_code"], &said["completed_by"]);
        assert_eq!(told, (&json!("made"), &code, &json!(by)), "{answer}");
    }
    assert_eq!((handed_over(&fake), fake.calls("/health")), ((3, 0), 1), "its word holds for a while");
    // The words of an app for a command that is late. It cannot be asked for the end.
    let late = json!({ "ok": false, "output": "half", "error": "Timeout after 300ms", "sentinel": "__S__" });
    fake.answers("/pty/talk", "x", Manner::Answer(late));
    let body = rig.fails(talk(300), ErrorCode::PtyTimeout).await;
    assert_eq!(body["details"]["partial_output"], "half", "{body}");
    fake.answers("/pty/command", "x", Manner::Status(404, "{\"ok\":false,\"error\":\"Not found\"}"));
    let id = &body["details"]["command_id"];
    let wait = json!({ "action": "wait", "session_id": "x", "command_id": id, "timeout_ms": 20_000 });
    let waited = rig.call(wait).await;
    let ran = &waited["command"];
    assert_eq!((&waited["ended_by"], &ran["completed_by"]), (&json!("command"), &json!("prompt")), "{waited}");
    assert_eq!((&ran["exit_code"], &ran["truncated"]), (&Value::Null, &json!(true)), "{waited}");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_bad_answer_has_its_code_and_nothing_is_typed_twice() {
    const REFUSED: ErrorCode = ErrorCode::PtyDesktopError;
    const HUNG_UP: ErrorCode = ErrorCode::PtyDesktopRequestError;
    const NOT_JSON: ErrorCode = ErrorCode::PtyDesktopJsonError;
    for (manner, code) in [
        (Manner::Status(500, "{\"ok\":false,\"error\":\"Write failed\"}"), REFUSED),
        (Manner::Status(500, "<html>"), REFUSED),
        (Manner::Status(200, "<html>"), NOT_JSON),
        (Manner::Status(200, "[]"), NOT_JSON),
        (Manner::Status(200, "{}"), NOT_JSON),
        // What the two modes of an app answer.
        (Manner::Answer(json!({ "ok": true, "output": "", "sentinel": "__S__", "raw_output": "" })), NOT_JSON),
        (Manner::Answer(json!({ "ok": true, "output": "", "sentinel_found": false, "mode": "daemon" })), NOT_JSON),
        (Manner::Endless, REFUSED),
        (Manner::Lie(100 << 20), REFUSED),
        (Manner::Cut, HUNG_UP),
        (Manner::HangUp, HUNG_UP),
        (Manner::Hang, ErrorCode::PtyDesktopTimeout),
    ] {
        let (rig, fake) = exact();
        fake.answers("/pty/talk", "x", manner.clone());
        let body = rig.fails(talk(300), code).await;
        let details = &body["details"];
        assert_eq!((&details["asked"], &details["command_id"]), (&json!("/pty/talk"), &json!("cmd_1")), "{manner:?}");
        assert_eq!((handed_over(&fake), fake.calls("/pty/command")), ((1, 0), 1), "{manner:?}");
        assert!(fake.taken() < 64 << 20, "{manner:?}");
        // From now on its word does not count, and the first command is over when a prompt stands.
        rig.fails(talk(600), ErrorCode::PtyTimeout).await;
        assert_eq!(handed_over(&fake), (1, 1), "{manner:?}");
        let commands = rig.call(json!({ "action": "commands", "session_id": "x" })).await;
        let first = &commands["commands"][0];
        assert_eq!((&first["running"], &first["exit_code"]), (&json!(false), &Value::Null), "{manner:?}: {commands}");
        rig.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_was_lost_is_asked_for() {
    let (rig, fake) = exact();
    let ended = json!({
        "ok": true, "output": "made", "exit_code": 3, "sentinel_found": true, "running": false, "command_id": "cmd_9",
        "completed_by": "integration",
    });
    for manner in [Manner::Cut, Manner::Status(500, "{}"), Manner::Endless] {
        fake.answers("/pty/talk", "x", manner.clone());
        fake.answers("/pty/command", "x", Manner::Answer(ended.clone()));
        let said = rig.call(talk(20_000)).await;
        assert_eq!((&said["output"], &said["exit_code"]), (&json!("made"), &json!(3)), "{manner:?}");
    }
    assert_eq!((handed_over(&fake), count(&rig).await), ((3, 0), json!(3)));
    // It goes on: its end is waited for as long as was asked, and later.
    let running =
        json!({ "ok": true, "output": "ma", "running": true, "sentinel_found": false, "command_id": "cmd_9" });
    fake.answers("/pty/command", "x", Manner::Answer(running));
    let body = rig.fails(talk(300), ErrorCode::PtyTimeout).await;
    assert_eq!(body["details"]["partial_output"], "ma", "{body}");
    fake.answers("/pty/command", "x", Manner::Answer(ended));
    let id = &body["details"]["command_id"];
    let wait = json!({ "action": "wait", "session_id": "x", "command_id": id, "timeout_ms": 20_000 });
    let waited = rig.call(wait).await;
    assert_eq!((&waited["ended_by"], &waited["command"]["exit_code"]), (&json!("command"), &json!(3)), "{waited}");
    // It was never typed: nothing is left of it.
    let unknown = "{\"ok\":false,\"error\":\"Command not found\",\"error_code\":\"INVALID_PARAM\"}";
    fake.answers("/pty/command", "x", Manner::Status(404, unknown));
    let body = rig.fails(talk(300), ErrorCode::PtyDesktopError).await;
    assert_eq!((&body["details"]["command_id"], count(&rig).await), (&Value::Null, json!(4)), "{body}");
    assert_eq!(fake.calls("/pty/write"), 0);
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bridge_without_the_route_is_typed_at_instead() {
    for manner in [
        Manner::Status(404, "{\"ok\":false,\"error\":\"Not found\"}"),
        Manner::Status(405, ""),
        Manner::Status(501, "{}"),
    ] {
        let (rig, fake) = exact();
        fake.answers("/pty/talk", "x", manner.clone());
        rig.fails(talk(300), ErrorCode::PtyTimeout).await;
        assert_eq!((handed_over(&fake), count(&rig).await), ((1, 1), json!(1)), "{manner:?}");
        rig.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_health_that_hangs_costs_a_moment_and_not_the_command() {
    let (rig, fake) = exact();
    fake.answers("/health", "", Manner::Hang);
    let began = std::time::Instant::now();
    rig.fails(talk(300), ErrorCode::PtyTimeout).await;
    rig.fails(json!({ "action": "talk", "session_id": "x", "command": "y", "timeout_ms": 100 }), ErrorCode::PtyBusy)
        .await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!((handed_over(&fake), fake.calls("/health")), ((0, 1), 1));
    rig.end().await;
}

/// What bridges say when they type is not taken for what they do not say.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_whose_answer_was_cut_may_have_been_typed() {
    let (rig, fake) = rig(json!({ "ok": true }));
    fake.answers("/pty/write", "x", Manner::Cut);
    let body = rig.fails(talk(300), ErrorCode::PtyDesktopRequestError).await;
    assert_eq!(body["details"]["command_id"], "cmd_1", "{body}");
    fake.answers("/pty/buffer", "x", Manner::Answer(screen(&["$ make it"])));
    rig.fails(talk(300), ErrorCode::PtyBusy).await;
    assert_eq!(fake.calls("/pty/write"), 1);
    rig.end().await;
}
