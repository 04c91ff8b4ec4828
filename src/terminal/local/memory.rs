//! What sessions hold in memory, and what all of them together may.
//!
//! Counted is an estimate by the emulator (history, cells, strings) plus the raw ring, not the size of the process: it is
//! known per session, goes down at once when something is let go, and no other user of the allocator blurs it. What the
//! process itself needs, about 20 MB, comes on top. Who has to give something up is decided by the registry.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use kpty_emulator::{Emulator, Memory, Size};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::Session;

/// Bytes of output after which a session is counted again.
pub(super) const COUNT_EVERY: usize = 64 << 10;
/// What a session takes besides its terminal: tasks, command log, tables.
const OVERHEAD: usize = 64 << 10;
/// How long freed pages are kept before they are given back: that holds up whoever allocates.
const RELEASE_AFTER: Duration = Duration::from_secs(1);
/// How many times as long while there is output.
const MOST_DELAYS: usize = 4;

/// Bytes that all sessions together may hold.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    used: AtomicUsize,
    exceeded: Notify,
}

impl Budget {
    /// A budget of so many bytes, none of them used.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0), exceeded: Notify::new() })
    }

    /// Bytes that may be held.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes that are held.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Waits until more is held than may be.
    pub async fn exceeded(&self) {
        self.exceeded.notified().await;
    }

    fn count(&self, before: usize, now: usize) {
        let used = match now >= before {
            true => self.used.fetch_add(now - before, Ordering::Relaxed) + (now - before),
            false => self.used.fetch_sub(before - now, Ordering::Relaxed) - (before - now),
        };
        if used > self.limit && now > before {
            self.exceeded.notify_one();
        }
    }
}

/// What one session holds of a budget; given back with the session.
#[derive(Debug)]
pub(super) struct Share {
    budget: Arc<Budget>,
    counted: AtomicUsize,
}

impl Share {
    fn set(&self, now: usize) {
        self.budget.count(self.counted.swap(now, Ordering::Relaxed), now);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// What a new session of this size takes.
pub fn new_session_bytes(size: Size) -> usize {
    OVERHEAD + Emulator::memory_of_size(size)
}

impl super::Shared {
    /// Counts the session again, if it has a share of a budget.
    pub(super) fn count_memory(&self) {
        if let Some(share) = self.share.get() {
            let bytes = {
                let terminal = self.lock();
                OVERHEAD + terminal.ring.len() + terminal.emulator.memory().total
            };
            share.set(bytes);
        }
    }
}

impl Session {
    /// Counts the session against a budget from now on.
    pub fn count_against(&self, budget: &Arc<Budget>) {
        self.shared.share.get_or_init(|| Share { budget: Arc::clone(budget), counted: AtomicUsize::new(0) });
        self.shared.count_memory();
    }

    /// What its terminal holds.
    pub fn memory(&self) -> Memory {
        self.shared.lock().emulator.memory()
    }

    /// Turns the rows above its screen into finished lines.
    pub fn drain_cells(&self) {
        self.shared.lock().emulator.shrink();
        self.shared.count_memory();
    }

    /// Shortens its history to about this many bytes; the oldest lines go.
    pub fn shorten_history(&self, max_bytes: usize) {
        self.shared.lock().emulator.shorten_history(max_bytes);
        self.shared.count_memory();
    }
}

/// Times that sessions had much output.
static OUTPUTS: AtomicUsize = AtomicUsize::new(0);

/// Gives pages back in a moment, once for all who ask until then; while output floods in, a few moments later. Another size
/// moves every row to other memory, several megabytes of it for an ordinary window and a hundred for the largest, and what
/// is left behind is spread over the heap.
pub fn release_soon() {
    static IS_DUE: AtomicBool = AtomicBool::new(false);
    struct Over;
    impl Drop for Over {
        fn drop(&mut self) {
            IS_DUE.store(false, Ordering::Relaxed);
        }
    }
    let Ok(runtime) = Handle::try_current() else { return };
    if !IS_DUE.swap(true, Ordering::Relaxed) {
        // Also when the runtime ends before it.
        let over = Over;
        runtime.spawn(async move {
            for _ in 0..MOST_DELAYS {
                let outputs = OUTPUTS.load(Ordering::Relaxed);
                tokio::time::sleep(RELEASE_AFTER).await;
                if OUTPUTS.load(Ordering::Relaxed) == outputs {
                    break;
                }
            }
            drop(over);
            drop(tokio::task::spawn_blocking(release_unused_memory).await);
        });
    }
}

/// The same after much output: lines and links that came and went leave holes, too.
pub(super) fn release_after_output() {
    OUTPUTS.fetch_add(1, Ordering::Relaxed);
    release_soon();
}

/// Has the allocator give pages back that nobody uses: it keeps them for later otherwise, and what was freed would still
/// count as used to the system. Takes milliseconds: not for a thread that serves others.
fn release_unused_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    c::malloc_trim(0);
}

/// Has the allocator ask the system for large blocks one by one, and give back what is free at the end of a heap: where
/// a long output was put together it would keep tens of megabytes per thread, which no later call gives back.
pub fn keep_little_unused_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        c::mallopt(c::M_MMAP_THRESHOLD, LARGE_BLOCK);
        c::mallopt(c::M_TRIM_THRESHOLD, 2 * LARGE_BLOCK);
        c::mallopt(c::M_ARENA_MAX, MOST_HEAPS);
    }
}

/// Bytes of an allocation that is the system's.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BLOCK: i32 = 1 << 20;

/// Heaps of the allocator. It would make one per thread otherwise, up to eight for each core, and what a session frees on one
/// thread is of no use to those of another.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MOST_HEAPS: i32 = 2;

/// The C library's own calls; nothing safe offers them.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "both take numbers only, and may be called at any time")]
mod c {
    pub(super) const M_TRIM_THRESHOLD: i32 = -1;
    pub(super) const M_MMAP_THRESHOLD: i32 = -3;
    pub(super) const M_ARENA_MAX: i32 = -8;

    unsafe extern "C" {
        pub(super) safe fn malloc_trim(pad: usize) -> i32;
        pub(super) safe fn mallopt(param: i32, value: i32) -> i32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_budget_is_the_sum_of_its_shares() {
        let budget = Budget::new(100);
        let share = || Share { budget: Arc::clone(&budget), counted: AtomicUsize::new(0) };
        let (one, other) = (share(), share());
        one.set(60);
        other.set(40);
        one.set(50);
        assert_eq!(budget.used(), 90);
        other.set(70);
        budget.exceeded().await;
        drop(other);
        assert_eq!(budget.used(), 50);
    }
}
