//! Rate limit for log lines that any client can cause.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum interval between two log lines.
const INTERVAL: Duration = Duration::from_secs(10);

/// Decides when an event is logged.
#[derive(Debug, Default)]
pub(super) struct LogRateLimit(Mutex<LogState>);

#[derive(Debug, Default)]
struct LogState {
    logged_at: Option<Instant>,
    suppressed: u64,
}

impl LogRateLimit {
    /// Records an event. Returns the number of suppressed events when it should be logged, `None` otherwise.
    pub(super) fn record(&self) -> Option<u64> {
        self.record_at(Instant::now())
    }

    fn record_at(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.logged_at.is_some_and(|logged_at| now.saturating_duration_since(logged_at) < INTERVAL) {
            state.suppressed += 1;
            return None;
        }
        state.logged_at = Some(now);
        Some(std::mem::take(&mut state.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_events_are_logged_as_one_line_with_a_count() {
        let (limit, now) = (LogRateLimit::default(), Instant::now());
        assert_eq!(limit.record_at(now), Some(0));
        for _ in 0..1_000 {
            assert_eq!(limit.record_at(now + INTERVAL / 2), None);
        }
        assert_eq!(limit.record_at(now + INTERVAL), Some(1_000));
        assert_eq!(limit.record_at(now + 3 * INTERVAL), Some(0));
    }
}
