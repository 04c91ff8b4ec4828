//! The threads on which everything that waits is driven: sessions, the server, the command line's `run`.

use std::io;

use tokio::runtime::{Builder, Runtime};

/// A session that prints without a pause keeps one thread busy, and the system lets a busy thread wait behind the
/// programs that print. A thread that rests is woken at once, so there are more of them than cores.
const MIN_THREADS: usize = 8;

/// The runtime for sessions.
pub fn runtime() -> io::Result<Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Builder::new_multi_thread().worker_threads(MIN_THREADS.max(2 * cores)).enable_all().build()
}
