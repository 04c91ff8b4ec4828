//! Output that costs far more than its length must not keep others from their turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kpty::terminal::local::{Integration, NewSession, Session};
use kpty::terminal::wait::WaitRequest;
use kpty_emulator::Size;

use super::PATIENCE;
use crate::talk::Bench;

/// Each of these few bytes long sequences asks for work in every cell of the window.
const HOSTILE: [(&str, &str); 8] = [
    ("a repeated character", "a\x1b[65535b"),
    ("a repeated wide character", "\u{65e5}\x1b[65535b"),
    ("a copied area", "\x1b[;;;;;2$v"),
    ("a filled area", "\x1b[65$x"),
    ("a cleared screen", "a\x1b[2J"),
    ("a reset terminal", "\x1b#8\x1bc"),
    ("two colours", "\x1b[41m\x1b[2J\x1b[42m\x1b[2J"),
    ("two screens", "\x1b[?47h\x1b[?47l"),
];
/// Others may have to wait for this much work of a session.
const LONGEST_TURN: Duration = Duration::from_millis(20);

/// How long this thread has worked: what other processes do on a busy machine does not count.
fn worked() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// The most work between two turns of another task on the only thread while a session takes this output.
async fn longest_turn(output: String, size: Size) -> Duration {
    let bench = Bench::new();
    bench.home.file("hostile", output);
    let new = NewSession {
        args: vec!["-c".into(), "cat hostile".into()],
        ..bench.new_session("/bin/sh", size, Integration::Off)
    };
    let (is_over, longest) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let session = Session::spawn(new).await.expect("the shell starts");
    let (over, gap) = (Arc::clone(&is_over), Arc::clone(&longest));
    let other = tokio::spawn(async move {
        while !over.load(Ordering::Relaxed) {
            let began = worked();
            tokio::task::yield_now().await;
            gap.fetch_max((worked() - began).as_micros() as u64, Ordering::Relaxed);
        }
    });
    let ended = WaitRequest { exit: true, timeout: PATIENCE, ..WaitRequest::default() };
    session.wait(&ended).await.expect("it waits");
    is_over.store(true, Ordering::Relaxed);
    other.await.expect("it ends");
    session.kill().await.expect("it ends");
    Duration::from_micros(longest.load(Ordering::Relaxed))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn expensive_output_is_taken_in_slices() {
    for (cols, rows) in [(120, 30), (500, 200)] {
        let size = Size::new(cols, rows).expect("a size");
        for (what, sequence) in HOSTILE {
            let stream = sequence.repeat(16_000 / sequence.len());
            let update = format!("\x1b[?2026h{}\x1b[?2026l", sequence.repeat(60_000 / sequence.len()));
            for (held, output) in [("", stream), (", held in an update", update)] {
                // What else the machine does slows a thread down too: one of three turns out right.
                let mut turns = Vec::new();
                while turns.len() < 3 && turns.iter().all(|turn| *turn >= LONGEST_TURN) {
                    turns.push(longest_turn(output.clone(), size).await);
                }
                assert!(turns.iter().any(|turn| *turn < LONGEST_TURN), "{cols}x{rows}, {what}{held}: {turns:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_new_size_takes_no_longer_than_a_turn() {
    let bench = Bench::new();
    let session = super::session(&bench, "/bin/bash", Integration::Auto).await;
    super::ask(
        &session,
        "for n in {1..3000}; do echo \"$n a line of some length that wraps in a narrow window\"; done",
    )
    .await;
    for (cols, rows) in [(500, 200), (20, 10), (500, 200), (120, 30)] {
        let size = Size::new(cols, rows).expect("a size");
        let back = session.info().size;
        let mut took = Vec::new();
        while took.len() < 3 && took.iter().all(|time| *time >= LONGEST_TURN) {
            session.resize(back).expect("it is resized");
            let began = worked();
            session.resize(size).expect("it is resized");
            took.push(worked() - began);
        }
        assert!(took.iter().any(|time| *time < LONGEST_TURN), "{cols}x{rows}: {took:?}");
    }
    session.kill().await.expect("it ends");
}
