//! The time that this thread has computed: tests of bounds on time must not depend on what else the machine does.

use std::time::Duration;

/// Calls the function and gives the time that the processor spent on it; elsewhere than on Unix, the time that passed.
pub(crate) fn of(run: impl FnOnce()) -> Duration {
    #[cfg(unix)]
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
    };
    #[cfg(not(unix))]
    let now = {
        let began = std::time::Instant::now();
        move || began.elapsed()
    };
    let began = now();
    run();
    now().saturating_sub(began)
}
