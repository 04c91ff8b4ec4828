//! What sessions hold in memory: windows that were large leave nothing behind, and all sessions stay within one budget.

use std::time::{Duration, Instant};

use serde_json::json;

use super::queries::resident_kib;
use super::{PATIENCE, amount};
use crate::server::Server;

/// A session may keep this much beyond its history.
const KEPT_KIB: u64 = 8 << 10;

/// Pages go back to the system in the background: waits until the server has shrunk to this, or says how large it is.
#[expect(clippy::disallowed_methods, reason = "no event tells the size of another process")]
fn shrunk_to(server: &Server, most_kib: u64) -> Result<(), u64> {
    let began = Instant::now();
    loop {
        match resident_kib(server.pid()) {
            size if size <= most_kib => return Ok(()),
            size if began.elapsed() > Duration::from_secs(20) => return Err(size),
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn resize(server: &Server, id: &str, cols: usize, rows: usize) {
    server.done("resize", json!({ "session_id": id, "cols": cols, "rows": rows }));
}

#[test]
fn windows_that_were_large_leave_nothing_behind() {
    let server = Server::start();
    let count = 4;
    let ids: Vec<_> = (0..count).map(|_| server.create().0).collect();
    for id in &ids {
        server.done("talk", json!({ "session_id": id, "command": "seq 1500 | tail -n 1200" }));
    }
    let before = resident_kib(server.pid());
    for id in &ids {
        resize(&server, id, 2_000, 1_000);
        resize(&server, id, 120, 30);
    }
    let kept = before + count * KEPT_KIB;
    shrunk_to(&server, kept).unwrap_or_else(|size| panic!("{} KiB are kept", size - before));
    let settled = resident_kib(server.pid());
    for round in 0..amount(20, 500) {
        for id in &ids {
            resize(&server, id, 80 + round % 60, 24 + round % 20);
        }
    }
    ids.iter().for_each(|id| resize(&server, id, 120, 30));
    let most = settled.max(before) + count * (1 << 10);
    shrunk_to(&server, most).unwrap_or_else(|size| panic!("ordinary resizes add {} KiB", size - settled));
}

#[test]
fn histories_are_shortened_before_the_budget_is_exceeded() {
    let server = Server::start_with(&[("KPTY_MEMORY_LIMIT", "24M")], &[]);
    let ids: Vec<_> = (0..3).map(|_| server.create().0).collect();
    for id in &ids {
        server.done("talk", json!({ "session_id": id, "command": "true" }));
    }
    let before = resident_kib(server.pid());
    // 12 MB each; one alone would fit.
    let flood = "yes \"$(printf %01200d 7)\" | head -n 10000; echo 'fl''ood over'";
    for id in &ids {
        server.done("send_line", json!({ "session_id": id, "data": flood }));
        let over = server.done("wait", json!({ "session_id": id, "text": "flood over", "timeout_ms": 45_000 }));
        assert_eq!(over["ended_by"], "text", "{over}");
    }
    // The shell comes back to its prompt in its own time.
    for id in &ids {
        server.done("talk", json!({ "session_id": id, "command": "true", "timeout_ms": PATIENCE.as_millis() as u64 }));
    }
    let most = before + (24 << 10) + (16 << 10);
    shrunk_to(&server, most).unwrap_or_else(|size| panic!("{} KiB more", size - before));
    let (refused, _) = server.call("create", json!({ "cols": 2_000, "rows": 1_000 }));
    assert_eq!(refused["error_code"], "PTY_LIMIT_REACHED", "{refused}");
    let (refused, _) = server.call("resize", json!({ "session_id": ids[0], "cols": 2_000, "rows": 1_000 }));
    assert_eq!(refused["error_code"], "PTY_LIMIT_REACHED", "{refused}");
    let (another, _) = server.create();
    let told = server.done("talk", json!({ "session_id": another, "command": "echo fine" }));
    assert_eq!(told["output"], "fine", "what fits is served");
    let told = server.done("talk", json!({ "session_id": ids[2], "command": "echo fine" }));
    assert_eq!(told["output"], "fine");
}
