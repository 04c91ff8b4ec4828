//! A bridge that misbehaves harms the one call that met it.

use std::time::{Duration, Instant};

use kpty::error::ErrorCode;
use kpty::model::Owner;
use serde_json::{Value, json};

use super::fake::{Fake, Manner, screen};
use super::register;
use crate::tools::Rig;

const TIMEOUT: ErrorCode = ErrorCode::PtyDesktopTimeout;
const REFUSED: ErrorCode = ErrorCode::PtyDesktopError;
const UNREACHABLE: ErrorCode = ErrorCode::PtyDesktopRequestError;
const NOT_JSON: ErrorCode = ErrorCode::PtyDesktopJsonError;

/// A server that knows two terminals of a bridge; the bridge is good to one of them.
fn rig() -> (Rig, Fake) {
    let (rig, fake) = (Rig::new(), Fake::start());
    for id in ["good", "bad"] {
        register(&rig, id, &fake.url(), Owner::default());
    }
    (rig, fake)
}

fn term_read(id: &str) -> Value {
    json!({ "action": "term_read", "session_id": id })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_bad_answer_has_its_code_and_the_next_call_is_well() {
    let (rig, fake) = rig();
    let elsewhere = Fake::start();
    for (manner, code) in [
        (Manner::Status(500, "{\"ok\":false,\"error\":\"Buffer read timeout (5s)\"}"), REFUSED),
        (Manner::Status(500, "<html>"), REFUSED),
        (Manner::Status(404, "{\"ok\":false,\"error\":\"Session not found: bad\"}"), REFUSED),
        (Manner::Status(204, ""), NOT_JSON),
        (Manner::Status(200, "<html>not JSON</html>"), NOT_JSON),
        (Manner::Status(200, "[1, 2]"), NOT_JSON),
        (Manner::Status(200, "\"text\""), NOT_JSON),
        (Manner::Status(200, "{\"ok\":true}"), NOT_JSON),
        (Manner::Status(200, "{\"ok\":true,\"lines\":[null,7]}"), NOT_JSON),
        (Manner::Status(200, "\u{1}\u{2}\u{3}"), NOT_JSON),
        (Manner::Answer(json!({ "ok": true, "lines": [], "viewportY": 3 })), NOT_JSON),
        (Manner::Answer(json!({ "ok": false, "error": "No browser window available" })), REFUSED),
        (Manner::Endless, REFUSED),
        (Manner::Lie(100 << 20), REFUSED),
        (Manner::Lie(usize::MAX >> 1), REFUSED),
        (Manner::Cut, UNREACHABLE),
        (Manner::HangUp, UNREACHABLE),
        (Manner::Redirect(elsewhere.url()), REFUSED),
    ] {
        fake.answers("/pty/buffer", "bad", manner.clone());
        let body = rig.fails(term_read("bad"), code).await;
        assert_eq!((&body["details"]["asked"], &body["details"]["source"]), (&json!("/pty/buffer"), &json!("desktop")));
        assert!(body["message"].as_str().is_some_and(|message| message.len() < 600), "{manner:?}: {body}");
        assert_eq!(rig.call(term_read("good")).await["lines"], json!(["$"]), "{manner:?}");
    }
    // Three answers that never end: of each no more was taken than the limit, and what was on its way.
    assert!(fake.taken() < 3 * (24 << 20), "{} bytes were taken", fake.taken());
    assert_eq!(elsewhere.connections(), 0, "nobody was sent elsewhere");
    fake.answers("/pty/buffer", "bad", Manner::Answer(screen(&["well", "$"])));
    assert_eq!(rig.call(term_read("bad")).await["lines"], json!(["well", "$"]));
    // History with long lines: as much is asked for as can be had.
    fake.answers("/pty/buffer", "bad", Manner::OnlyShort(3_000, screen(&["well", "$"])));
    let full = json!({ "action": "term_read", "session_id": "bad", "mode": "full" });
    assert_eq!(rig.call(full).await["lines"], json!(["well", "$"]));
    let disabled = Manner::Status(403, "{\"ok\":false,\"error\":\"off\",\"error_code\":\"TERM_READ_DISABLED\"}");
    fake.answers("/pty/buffer", "bad", disabled);
    rig.fails(term_read("bad"), ErrorCode::TermReadDisabled).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bridge_that_hangs_keeps_only_its_own_callers_waiting() {
    let (rig, fake) = rig();
    let shell = rig.create(json!({})).await;
    for path in ["/pty/buffer", "/pty/write", "/pty/read"] {
        fake.answers(path, "bad", Manner::Hang);
    }
    let began = Instant::now();
    let others = async {
        for _ in 0..20 {
            rig.call(term_read("good")).await;
            rig.call(json!({ "action": "send_line", "session_id": "good", "data": "x", "enter_delay_ms": 0 })).await;
            assert_eq!(shell.call("talk", json!({ "command": "echo hi" })).await["output"], "hi");
        }
        began.elapsed()
    };
    let line = json!({ "action": "send_line", "session_id": "bad", "data": "x" });
    let read = json!({ "action": "read", "session_id": "bad", "timeout_ms": 100 });
    let (looked, typed, collected, others) =
        tokio::join!(rig.fails(term_read("bad"), TIMEOUT), rig.fails(line, TIMEOUT), rig.fails(read, TIMEOUT), others,);
    for body in [looked, typed, collected] {
        assert_eq!(body["details"]["source"], "desktop", "{body}");
    }
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(10) && took < Duration::from_secs(30), "{took:?}");
    assert!(others < took, "the others were done before: {others:?}");
    fake.answers("/pty/buffer", "bad", Manner::Answer(screen(&["$"])));
    assert_eq!(rig.call(term_read("bad")).await["lines"], json!(["$"]));
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_there_is_said_at_once() {
    let rig = Rig::new();
    register(&rig, "gone", "http://127.0.0.1:9", Owner::default());
    for action in ["term_read", "talk", "read", "send_line", "send_keys", "search", "wait"] {
        let call = json!({ "action": action, "session_id": "gone", "command": "true", "data": "x", "text": "x" });
        rig.fails(call, UNREACHABLE).await;
    }
    let commands = rig.call(json!({ "action": "commands", "session_id": "gone" })).await;
    assert_eq!(commands["count"], 0, "what was not typed is no command");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_was_typed_is_named_when_the_bridge_fails_afterwards() {
    let (rig, fake) = rig();
    let talk = |id: &str, ms: u64| json!({ "action": "talk", "session_id": id, "command": "x", "timeout_ms": ms });
    // A look that is well after the typing may be followed by the question whether the session lives: it does.
    let list = json!([{ "session_id": "bad" }]);
    fake.answers("/pty/list", "", Manner::Answer(json!({ "ok": true, "sessions": list })));
    // The first look is well, and every one after the typing is not.
    let busy = tokio::join!(rig.reply(talk("bad", 20_000)), async {
        while fake.calls("/pty/write") == 0 {
            tokio::task::yield_now().await;
        }
        fake.answers("/pty/buffer", "bad", Manner::Status(500, "{}"));
    });
    let body = Value::Object(busy.0.body);
    assert_eq!((&body["error_code"], &body["details"]["command_id"]), (&json!(REFUSED.as_str()), &json!("cmd_1")));
    // It is still the one that runs.
    fake.answers("/pty/buffer", "bad", Manner::Answer(screen(&["$ x"])));
    let body = rig.fails(talk("bad", 300), ErrorCode::PtyBusy).await;
    assert_eq!(body["details"]["command_id"], "cmd_1");
    // A bridge that refuses to type has typed nothing.
    fake.answers("/pty/write", "good", Manner::Status(500, "{\"ok\":false,\"error\":\"Write failed\"}"));
    rig.fails(talk("good", 2_000), REFUSED).await;
    let commands = rig.call(json!({ "action": "commands", "session_id": "good" })).await;
    assert_eq!(commands["count"], 0);
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_used_again() {
    let (rig, fake) = rig();
    for _ in 0..50 {
        rig.call(term_read("good")).await;
    }
    assert!(fake.calls("/pty/buffer") >= 50);
    assert!(fake.connections() < 5, "{} connections", fake.connections());
    rig.end().await;
}

/// A bridge that takes every question and never answers: what the caller was promised holds all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_outlasts_its_timeout_by_more_than_half_a_second() {
    let (rig, fake) = rig();
    for path in ["/pty/buffer", "/pty/write", "/pty/read", "/pty/talk", "/pty/command"] {
        fake.answers(path, "bad", Manner::Hang);
    }
    for path in ["/health", "/pty/list"] {
        fake.answers(path, "", Manner::Hang);
    }
    let given = Duration::from_millis(1_000);
    let timed = |mut call: Value| {
        call["session_id"] = json!("bad");
        call["timeout_ms"] = json!(given.as_millis() as u64);
        let rig = &rig;
        async move {
            let began = Instant::now();
            let body = rig.fails(call.clone(), TIMEOUT).await;
            let took = began.elapsed();
            assert!(took < given + Duration::from_millis(500), "{call} took {took:?}: {body}");
        }
    };
    for call in [
        json!({ "action": "talk", "command": "true" }),
        json!({ "action": "talk", "command": "true", "on_timeout": "interrupt" }),
        json!({ "action": "wait", "text": "x" }),
        json!({ "action": "wait", "exit": true }),
        json!({ "action": "wait", "prompt": true }),
        json!({ "action": "read" }),
        json!({ "action": "read", "mode": "viewport" }),
    ] {
        timed(call).await;
    }
    // Several at once do not wait for one another's looks.
    let wait = || timed(json!({ "action": "wait", "text": "x" }));
    tokio::join!(wait(), wait(), wait(), wait());
    rig.end().await;
}
