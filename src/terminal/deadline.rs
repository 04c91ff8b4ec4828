//! The deadline of an action that asks other servers. A call to a bridge has a limit of its own, and an action may need
//! several: none of them lasts beyond what the caller was promised.

use std::time::{Duration, Instant};

/// What an answer may take beyond the time that its caller gave.
pub(super) const GRACE: Duration = Duration::from_millis(400);
/// The same for a command that a bridge runs: afterwards it is still asked what became of it.
pub(super) const TALK_GRACE: Duration = Duration::from_millis(250);

tokio::task_local! {
    static DEADLINE: Instant;
}

/// Does something for a caller that waits until then; or until the deadline around it, where that is earlier.
pub async fn within<T>(deadline: Instant, work: impl Future<Output = T>) -> T {
    let deadline = DEADLINE.try_with(|around| deadline.min(*around)).unwrap_or(deadline);
    DEADLINE.scope(deadline, work).await
}

/// How long something may take that would take this long at most.
pub(super) fn limit(longest: Duration, grace: Duration) -> Duration {
    let left = DEADLINE.try_with(|deadline| (*deadline + grace).saturating_duration_since(Instant::now()));
    left.map_or(longest, |left| left.min(longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_earliest_deadline_holds() {
        let (long, none) = (Duration::from_secs(60), Duration::ZERO);
        assert_eq!(limit(long, none), long);
        let now = Instant::now();
        within(now + Duration::from_secs(9), async {
            assert!(limit(long, none) <= Duration::from_secs(9));
            assert!(limit(long, GRACE) > Duration::from_secs(8));
            within(now + long, async { assert!(limit(long, none) <= Duration::from_secs(9)) }).await;
            within(now, async { assert_eq!(limit(long, none), none) }).await;
        })
        .await;
    }
}
