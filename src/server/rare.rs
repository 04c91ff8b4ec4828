//! Things that strangers can cause as often as they like, told once in a while.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One line of the log in this time.
const PAUSE: Duration = Duration::from_secs(10);

/// Counts what is told rarely.
#[derive(Debug, Default)]
pub(super) struct Rare(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    told: Option<Instant>,
    untold: u64,
}

impl Rare {
    /// Counts one more. When it is to be told, returns how many were not told since the last time.
    pub(super) fn count(&self) -> Option<u64> {
        self.count_at(Instant::now())
    }

    fn count_at(&self, now: Instant) -> Option<u64> {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.told.is_some_and(|told| now.saturating_duration_since(told) < PAUSE) {
            counted.untold += 1;
            return None;
        }
        counted.told = Some(now);
        Some(std::mem::take(&mut counted.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_told_as_one_and_a_number() {
        let (rare, now) = (Rare::default(), Instant::now());
        assert_eq!(rare.count_at(now), Some(0));
        for _ in 0..1_000 {
            assert_eq!(rare.count_at(now + PAUSE / 2), None);
        }
        assert_eq!(rare.count_at(now + PAUSE), Some(1_000));
        assert_eq!(rare.count_at(now + 3 * PAUSE), Some(0));
    }
}
