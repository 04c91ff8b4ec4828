//! Sessions in which nothing happens cost nothing.

use std::fs;
use std::time::Duration;

use serde_json::json;

use crate::server::Server;

/// What all threads of a process have computed, as the scheduler counts it.
fn cpu_time(pid: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the process runs");
    let nanoseconds = tasks.flatten().filter_map(|task| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

#[tokio::test]
async fn idle_sessions_use_no_cpu() {
    let server = Server::start();
    let sessions: Vec<_> = (0..100).map(|_| server.create().0).collect();
    for id in &sessions {
        let arguments = json!({ "session_id": id, "prompt": true, "timeout_ms": 45_000 });
        assert_eq!(server.done("wait", arguments)["ended_by"], "prompt");
    }
    // Threads that served the calls go to sleep: what counts is a time in which nothing is asked.
    let mut least = Duration::MAX;
    for _ in 0..3 {
        let before = cpu_time(server.pid());
        tokio::time::sleep(Duration::from_secs(2)).await;
        least = least.min(cpu_time(server.pid()) - before);
        if least <= Duration::from_millis(30) {
            break;
        }
    }
    assert!(least <= Duration::from_millis(30), "{least:?} in 2 s");
}
