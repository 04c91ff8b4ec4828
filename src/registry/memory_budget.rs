//! Enforces the memory budget of all sessions: truncates the largest histories first and rejects what does not fit even
//! then.

use std::sync::{Arc, Weak};

use kpty_emulator::{Emulator, Size};

use super::{Registry, RegistryInner};
use crate::error::{Error, Result};
use crate::terminal::local::{Session, new_session_bytes, release_soon};

/// A history is never truncated below this size for the budget; it is freed in blocks of about this size.
const MIN_HISTORY: usize = 64 << 10;
/// Window growth below this many bytes is not checked against the budget.
const SMALL_GROWTH: usize = 1 << 20;

impl RegistryInner {
    /// Truncates histories until `wanted` more bytes fit, and gives up rows above the screens where that is not enough. Leaves an eighth of the budget free, so that the next request
    /// does not truncate again. Returns false when the bytes still do not fit.
    fn free_memory(&self, wanted: usize) -> bool {
        let budget = &self.budget;
        if budget.used() + wanted <= budget.limit() {
            return true;
        }
        let target = (budget.limit() - budget.limit() / 8).saturating_sub(wanted);
        let surplus = budget.used().saturating_sub(target);
        let sessions: Vec<Session> = self.lock().entries.values().map(|entry| entry.session.clone()).collect();
        let histories: Vec<usize> = sessions.iter().map(|session| session.memory().history).collect();
        let most = level(&histories, surplus).max(MIN_HISTORY);
        for (session, history) in sessions.iter().zip(histories) {
            if history > most {
                tracing::info!("memory budget exceeded: truncating the history of {} to {most} bytes", session.id());
                session.shorten_history(most);
            }
        }
        // Rows above the screens are cells, which take many times what they take as finished lines.
        if budget.used() > target {
            sessions.iter().for_each(Session::drain_cells);
            // What they became counts as history.
            sessions
                .iter()
                .filter(|session| session.memory().history > most)
                .for_each(|session| session.shorten_history(most));
        }
        budget.used() + wanted <= budget.limit()
    }
}

/// Returns the size to which all larger histories must be cut to free `surplus` bytes.
fn level(sizes: &[usize], surplus: usize) -> usize {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum = 0;
    for (index, size) in sorted.iter().enumerate() {
        sum += size;
        let next = sorted.get(index + 1).copied().unwrap_or(0);
        let count = index + 1;
        // Cutting to the next smaller size frees enough.
        if sum - count * next >= surplus {
            return (sum - surplus) / count;
        }
    }
    0
}

impl Registry {
    /// Frees memory for a new session.
    pub(super) fn free_memory_for_session(&self, size: Size) -> Result<()> {
        self.start_budget_task();
        self.ensure_memory(new_session_bytes(size))
    }

    /// Frees memory for a larger window of a session.
    pub fn free_memory_for_window(&self, session: &Session, size: Size) -> Result<()> {
        let before = Emulator::memory_of_size(session.size());
        match Emulator::memory_of_size(size).saturating_sub(before) {
            ..SMALL_GROWTH => Ok(()),
            growth => self.ensure_memory(growth),
        }
    }

    fn ensure_memory(&self, bytes: usize) -> Result<()> {
        match self.shared.free_memory(bytes) {
            true => Ok(()),
            false => Err(Error::MemoryLimit { limit: self.shared.budget.limit() }),
        }
    }

    /// Starts the task that enforces the budget, once.
    fn start_budget_task(&self) {
        self.shared.budget_task.get_or_init(|| {
            tokio::spawn(keep_within_budget(Arc::downgrade(&self.shared)));
        });
    }
}

/// Waits until the budget is exceeded and then truncates histories.
async fn keep_within_budget(shared: Weak<RegistryInner>) {
    let Some(budget) = shared.upgrade().map(|shared| Arc::clone(&shared.budget)) else { return };
    loop {
        budget.exceeded().await;
        let Some(shared) = shared.upgrade() else { return };
        // Slow with many sessions, so it does not run on an async worker thread.
        drop(tokio::task::spawn_blocking(move || shared.free_memory(0)).await);
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
