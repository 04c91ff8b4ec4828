//! A bridge that says that it takes actions gets them whole; whatever becomes of the reply, nothing is sent twice.

use std::time::{Duration, Instant};

use kpty::config::{Config, ScreenAccess};
use kpty::error::ErrorCode;
use kpty::model::Owner;
use serde_json::{Value, json};

use super::fake::{Fake, Manner, screen};
use super::register;
use crate::tools::Rig;

/// A server that knows a terminal of a bridge that says this of itself.
fn rig_with(config: Config, health: Value) -> (Rig, Fake) {
    let (rig, fake) = (Rig::with(config), Fake::start());
    register(&rig, "x", &fake.url(), Owner::default());
    fake.answers("/health", "", Manner::Answer(health));
    fake.answers("/pty/list", "", Manner::Answer(json!({ "ok": true, "sessions": [{ "session_id": "x" }] })));
    (rig, fake)
}

fn rig(health: Value) -> (Rig, Fake) {
    rig_with(Config::default(), health)
}

fn peer() -> (Rig, Fake) {
    rig(json!({ "ok": true, "service": "pty-bridge", "takes_actions": true }))
}

fn talk(timeout_ms: u64) -> Value {
    json!({ "action": "talk", "session_id": "x", "command": "make it", "timeout_ms": timeout_ms })
}

/// How often something was handed over, in whichever way.
fn handed_over(fake: &Fake) -> (usize, usize) {
    (fake.calls("/pty/action"), fake.calls("/pty/write"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_bridge_that_says_so_gets_actions() {
    for health in [
        json!({ "ok": true, "service": "pty-bridge", "mode": "embedded", "daemonConnected": false }),
        json!({ "ok": true, "exact_talk": true }),
        json!({ "ok": true, "takes_actions": "yes" }),
        json!({ "ok": false, "takes_actions": true }),
    ] {
        let (rig, fake) = rig(health.clone());
        rig.fails(talk(300), ErrorCode::PtyTimeout).await;
        assert_eq!(handed_over(&fake), (0, 1), "{health}");
        rig.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_are_passed_on_with_all_that_they_say() {
    let (rig, fake) = peer();
    let reply = json!({ "ok": true, "output": "made", "exit_code": 3, "command_id": "cmd_70", "new_field": [1, 2] });
    for action in ["talk", "run", "wait", "read", "term_read", "search", "commands"] {
        fake.answers("/pty/action", "", Manner::Answer(reply.clone()));
        let said = rig.call(json!({ "action": action, "session_id": " x ", "command": "make it" })).await;
        assert_eq!(said, reply, "{action}");
    }
    assert_eq!((handed_over(&fake), fake.calls("/health")), ((7, 0), 1), "its word holds for a while");
    let failure = json!({
        "ok": false, "error_code": "PTY_BUSY", "message": "busy", "details": { "session_id": "x" },
    });
    fake.answers("/pty/action", "", Manner::Answer(failure.clone()));
    let said = rig.fails(talk(300), ErrorCode::PtyBusy).await;
    let mut expected = failure;
    expected["error"] = json!("busy");
    assert_eq!(said, expected);
    rig.end().await;
}

/// The guard and the redactor of this server apply, and so does its lock on screens.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_forwarded_is_judged_and_what_comes_back_is_masked() {
    let (rig, fake) = peer();
    let dangerous = ["rm -rf ", "/"].concat();
    let hidden = format!("\\x72{}", &dangerous[1..]);
    for (command, escapes) in [(dangerous, false), (hidden, true)] {
        let call = json!({ "action": "talk", "session_id": "x", "command": command, "escapes": escapes });
        rig.fails(call, ErrorCode::DangerousCommandBlocked).await;
    }
    assert_eq!(handed_over(&fake), (0, 0));
    let secret = ["ghp_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
    let failure = json!({
        "ok": false, "error_code": "PTY_TIMEOUT", "message": "late", "details": { "partial_output": secret },
    });
    fake.answers("/pty/action", "", Manner::Answer(failure));
    let said = rig.fails(talk(300), ErrorCode::PtyTimeout).await;
    assert!(!said.to_string().contains(&secret[4..]), "{said}");
    rig.end().await;

    let config = Config { screen_access: ScreenAccess::Off, ..Config::default() };
    let (rig, fake) = rig_with(config, json!({ "ok": true, "takes_actions": true }));
    let late = json!({ "ok": false, "error_code": "PTY_TIMEOUT", "message": "late", "details": { "screen": "shown" } });
    fake.answers("/pty/action", "", Manner::Answer(late));
    assert_eq!(rig.fails(talk(300), ErrorCode::PtyTimeout).await["details"]["screen"], "");
    let waited =
        json!({ "ok": true, "ended_by": "text", "tail": "shown", "line_text": "shown", "matched_text": "shown" });
    fake.answers("/pty/action", "", Manner::Answer(waited));
    let said = rig.call(json!({ "action": "wait", "session_id": "x", "text": "a" })).await;
    assert_eq!(said, json!({ "ok": true, "ended_by": "text" }));
    rig.fails(json!({ "action": "term_read", "session_id": "x" }), ErrorCode::TermReadDisabled).await;
    assert_eq!(handed_over(&fake), (2, 0));
    rig.end().await;
}

/// What comes back is masked also where a reply says that it went well: the other server may mask less.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_of_a_peer_is_masked_here_too() {
    let (rig, fake) = peer();
    let secret = ["ghp_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
    let reply = json!({
        "ok": true, "output": secret, "raw_output": secret, "text": secret, "lines": [secret], "tail": secret,
        "matches": [{ "text": secret }],
    });
    fake.answers("/pty/action", "", Manner::Answer(reply));
    let said = rig.call(talk(300)).await;
    assert!(!said.to_string().contains(&secret[4..]), "{said}");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_bad_answer_has_its_code_and_nothing_is_sent_twice() {
    const REFUSED: ErrorCode = ErrorCode::PtyDesktopError;
    const HUNG_UP: ErrorCode = ErrorCode::PtyDesktopRequestError;
    const NOT_JSON: ErrorCode = ErrorCode::PtyDesktopJsonError;
    for (manner, code) in [
        (Manner::Status(500, "{\"ok\":false,\"error\":\"Write failed\"}"), REFUSED),
        (Manner::Status(500, "<html>"), REFUSED),
        (Manner::Status(403, "{}"), REFUSED),
        (Manner::Status(200, "<html>"), NOT_JSON),
        (Manner::Status(200, "[]"), NOT_JSON),
        (Manner::Status(200, "{}"), NOT_JSON),
        (Manner::Status(200, "{\"ok\":\"yes\"}"), NOT_JSON),
        (Manner::Endless, REFUSED),
        (Manner::Cut, HUNG_UP),
        (Manner::HangUp, HUNG_UP),
        (Manner::Hang, ErrorCode::PtyDesktopTimeout),
    ] {
        let (rig, fake) = peer();
        fake.answers("/pty/action", "", manner.clone());
        let began = Instant::now();
        let body = rig.fails(talk(300), code).await;
        assert!(began.elapsed() < Duration::from_secs(4), "{manner:?}: {:?}", began.elapsed());
        assert_eq!(body["details"]["asked"], "/pty/action", "{manner:?}");
        assert_eq!(handed_over(&fake), (1, 0), "{manner:?}");
        assert!(fake.taken() < 64 << 20, "{manner:?}");
        rig.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bridge_without_the_route_is_driven_as_a_desktop() {
    for manner in [
        Manner::Status(404, "{\"ok\":false,\"error\":\"Not found\"}"),
        Manner::Status(405, ""),
        Manner::Status(501, "{}"),
    ] {
        let (rig, fake) = peer();
        fake.answers("/pty/action", "", manner.clone());
        rig.fails(talk(300), ErrorCode::PtyTimeout).await;
        assert_eq!(handed_over(&fake), (1, 1), "{manner:?}");
        rig.fails(talk(300), ErrorCode::PtyBusy).await;
        assert_eq!(handed_over(&fake), (1, 1), "{manner:?}: it is not asked again");
        rig.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_health_that_hangs_costs_a_moment_and_not_the_command() {
    let (rig, fake) = peer();
    fake.answers("/health", "", Manner::Hang);
    let began = Instant::now();
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
