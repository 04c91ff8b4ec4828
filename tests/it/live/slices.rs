//! Output that costs far more than its length must not keep others from their turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kpty::terminal::local::{Integration, NewSession, Session};
use kpty::terminal::wait::WaitRequest;
use kpty_emulator::Size;

use super::PATIENCE;
use crate::talk::Bench;

/// Each of these few bytes long sequences touches every cell of the window.
const HOSTILE: [(&str, &str); 4] = [
    ("a repeated character", "a\x1b[65535b"),
    ("a repeated wide character", "\u{65e5}\x1b[65535b"),
    ("a copied area", "\x1b[1;1;90;290;1;2;2$v"),
    ("a cleared screen", "\x1b[2J"),
];
/// Far less than a turn's worth of these took before there were slices, and more than a slice takes in a build for tests.
const LONGEST_TURN: Duration = Duration::from_millis(150);

/// How long this thread has worked: what other processes do on a busy machine does not count.
fn worked() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn expensive_output_is_taken_in_slices() {
    for (what, sequence) in HOSTILE {
        let bench = Bench::new();
        bench.home.file("hostile", sequence.repeat(16_000 / sequence.len()));
        let size = Size::new(300, 100).expect("a size");
        let new = NewSession {
            args: vec!["-c".into(), "cat hostile".into()],
            ..bench.new_session("/bin/sh", size, Integration::Off)
        };
        let (is_over, longest) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        // On the only thread, which the driver has to share.
        let (over, gap) = (Arc::clone(&is_over), Arc::clone(&longest));
        let other = tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                let began = worked();
                tokio::time::sleep(Duration::from_millis(1)).await;
                gap.fetch_max((worked() - began).as_millis() as u64, Ordering::Relaxed);
            }
        });
        let session = Session::spawn(new).await.expect("the shell starts");
        let ended = WaitRequest { exit: true, timeout: PATIENCE, ..WaitRequest::default() };
        session.wait(&ended).await.expect("it waits");
        is_over.store(true, Ordering::Relaxed);
        other.await.expect("it ends");
        let longest = Duration::from_millis(longest.load(Ordering::Relaxed));
        assert!(longest < LONGEST_TURN, "{what}: others waited for {longest:?} of work");
        session.kill().await.expect("it ends");
    }
}
