//! Keeping all sessions within the budget for their memory: the largest histories are shortened first, and what would
//! not fit all the same is refused.

use std::sync::{Arc, Weak};

use kpty_emulator::{Emulator, Size};

use super::{Registry, Shared};
use crate::error::{Error, Result};
use crate::terminal::local::{Session, new_session_bytes, release_soon};

/// A history is never made shorter than this for others' sake; it is let go in blocks of about this size.
const LEAST_HISTORY: usize = 64 << 10;
/// Growth of a window that is not worth a question, in bytes.
const SMALL_GROWTH: usize = 1 << 20;

impl Shared {
    /// Shortens histories until so many bytes fit besides; an eighth of the budget is left free, so that this is not due
    /// again at once. False where they do not fit all the same.
    fn make_room(&self, wanted: usize) -> bool {
        let budget = &self.budget;
        if budget.used() + wanted <= budget.limit() {
            return true;
        }
        let target = (budget.limit() - budget.limit() / 8).saturating_sub(wanted);
        let surplus = budget.used().saturating_sub(target);
        let sessions: Vec<Session> = self.lock().entries.values().map(|entry| entry.session.clone()).collect();
        let histories: Vec<usize> = sessions.iter().map(|session| session.memory().history).collect();
        let most = level(&histories, surplus).max(LEAST_HISTORY);
        for (session, history) in sessions.iter().zip(histories) {
            if history > most {
                tracing::info!("the history of {} is shortened to {most} bytes: memory is short", session.id());
                session.shorten_history(most);
            }
        }
        budget.used() + wanted <= budget.limit()
    }
}

/// The size to which all that are larger have to be cut for a surplus to go.
fn level(sizes: &[usize], surplus: usize) -> usize {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum = 0;
    for (index, size) in sorted.iter().enumerate() {
        sum += size;
        let next = sorted.get(index + 1).copied().unwrap_or(0);
        let count = index + 1;
        // Cut to the next smaller, these would be enough.
        if sum - count * next >= surplus {
            return (sum - surplus) / count;
        }
    }
    0
}

impl Registry {
    /// Makes room for a new session.
    pub(super) fn room_for_session(&self, size: Size) -> Result<()> {
        self.watch_memory();
        self.room_for(new_session_bytes(size))
    }

    /// Makes room for a larger window of a session.
    pub fn room_for_window(&self, session: &Session, size: Size) -> Result<()> {
        let before = Emulator::memory_of_size(session.info().size);
        match Emulator::memory_of_size(size).saturating_sub(before) {
            ..SMALL_GROWTH => Ok(()),
            growth => self.room_for(growth),
        }
    }

    fn room_for(&self, bytes: usize) -> Result<()> {
        match self.shared.make_room(bytes) {
            true => Ok(()),
            false => Err(Error::MemoryLimit { limit: self.shared.budget.limit() }),
        }
    }

    /// Starts the task that shortens histories, once.
    fn watch_memory(&self) {
        self.shared.watched.get_or_init(|| {
            tokio::spawn(keep_within_budget(Arc::downgrade(&self.shared)));
        });
    }
}

/// Sleeps until the budget is exceeded, and makes room then.
async fn keep_within_budget(shared: Weak<Shared>) {
    let Some(budget) = shared.upgrade().map(|shared| Arc::clone(&shared.budget)) else { return };
    loop {
        budget.exceeded().await;
        let Some(shared) = shared.upgrade() else { return };
        // Takes a while with many sessions, so not on a thread that others wait for.
        drop(tokio::task::spawn_blocking(move || shared.make_room(0)).await);
        release_soon();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_cut_to_one_level() {
        for (sizes, surplus, expected) in [
            (&[100, 10, 50][..], 0, 100),
            (&[100, 10, 50], 50, 50),
            (&[100, 10, 50], 70, 40),
            (&[100, 10, 50], 130, 10),
            (&[100, 10, 50], 145, 5),
            (&[100, 10, 50], 500, 0),
            (&[], 5, 0),
        ] {
            assert_eq!(level(sizes, surplus), expected, "{sizes:?} {surplus}");
        }
    }
}
