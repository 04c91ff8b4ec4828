//! A line on standard error that says what is waited for, for a person who looks on. Scripts never see it: it is written
//! to a terminal alone, and taken away before the answer comes.

use std::future::Future;
use std::time::{Duration, Instant};

use tokio::time::MissedTickBehavior;

use super::print::Passing;

/// Nobody wonders about less.
const TIMEOUT: Duration = Duration::from_secs(1);
/// How often the line is written again.
const EVERY: Duration = Duration::from_secs(1);

/// Waits for an answer, and says so where a person is waiting too.
pub(super) async fn while_waiting<T>(what: &str, answer: impl Future<Output = T>) -> T {
    let Some(mut line) = Passing::new() else { return answer.await };
    let began = Instant::now();
    let mut ticks = tokio::time::interval_at((began + TIMEOUT).into(), EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tokio::pin!(answer);
    loop {
        tokio::select! {
            answer = &mut answer => return answer,
            _ = ticks.tick() => line.write(&format!("{what}: {} s", began.elapsed().as_secs())),
        }
    }
}
