//! The async runtime and task wrappers: futures that complete after their caller is dropped, deferred work, and
//! repolling without the scheduler.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;
use tokio::runtime::{Builder, Handle, Runtime};

/// Minimum number of worker threads. A session with continuous output keeps one thread busy, and the kernel schedules a
/// busy thread behind the programs that write. An idle thread is scheduled at once, so there are more threads than
/// cores.
const MIN_THREADS: usize = 8;

/// Builds the runtime.
pub fn runtime() -> io::Result<Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Builder::new_multi_thread().worker_threads(MIN_THREADS.max(2 * cores)).enable_all().build()
}

/// A future that moves to a task of its own when it is dropped before completion. It costs no task while it is awaited.
pub struct DetachOnDrop<T: Send + 'static>(Option<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T: Send + 'static> DetachOnDrop<T> {
    /// Wraps a future. It starts when it is polled first.
    pub fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl<T: Send + 'static> Future for DetachOnDrop<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(work) = &mut self.0 else { return Poll::Pending };
        let polled = work.as_mut().poll(context);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for DetachOnDrop<T> {
    fn drop(&mut self) {
        // A future that panicked is not polled again; without a runtime it cannot continue.
        if let (Some(work), Ok(runtime), false) = (self.0.take(), Handle::try_current(), std::thread::panicking()) {
            runtime.spawn(work);
        }
    }
}

/// Lead time of the shared early timer in [`sleep_until`].
const EARLY_TIMER: Duration = Duration::from_secs(1);

/// Sleeps until a deadline that is rarely reached. The runtime wakes a thread for each timer that becomes the earliest
/// one, only to shorten its sleep; that wake-up dominates the cost of such a wait. The first call in a while therefore
/// registers an additional early timer, and later calls are never the earliest.
pub async fn sleep_until(deadline: Instant) {
    static IS_ARMED: AtomicBool = AtomicBool::new(false);
    struct Disarm;
    impl Drop for Disarm {
        fn drop(&mut self) {
            IS_ARMED.store(false, Ordering::Relaxed);
        }
    }
    if deadline.saturating_duration_since(Instant::now()) > EARLY_TIMER && !IS_ARMED.swap(true, Ordering::Relaxed) {
        // The guard also resets the flag when the runtime shuts down first.
        let disarm = Disarm;
        tokio::spawn(async move {
            tokio::time::sleep(EARLY_TIMER).await;
            drop(disarm);
        });
    }
    tokio::time::sleep_until(deadline.into()).await;
}

/// Deferred work.
type DeferredWork = Box<dyn FnOnce()>;

thread_local! {
    /// Work deferred by the task that is_polled on this thread; `None` outside such a task.
    static DEFERRED: RefCell<Option<Vec<DeferredWork>>> = const { RefCell::new(None) };
}

/// Runs `work` when the current [`RepollOnWake`] task yields; a reply is on its way by then. Runs it at once outside such a
/// task. The queue stays short: a task defers one item per reply and replies a few times at most before it yields.
pub fn defer(work: impl FnOnce() + 'static) {
    let at_once = DEFERRED.with_borrow_mut(|deferred| match deferred {
        Some(deferred) => {
            deferred.push(Box::new(work));
            None
        }
        None => Some(work),
    });
    if let Some(work) = at_once {
        work();
    }
}

/// Runs the work deferred during its lifetime, also after a panic. Holds the queue of an enclosing task meanwhile.
struct DeferGuard(Option<Vec<DeferredWork>>);

impl DeferGuard {
    fn begin() -> Self {
        Self(DEFERRED.replace(Some(Vec::new())))
    }
}

impl Drop for DeferGuard {
    fn drop(&mut self) {
        for work in DEFERRED.replace(self.0.take()).unwrap_or_default() {
            work();
        }
    }
}

/// Maximum number of consecutive polls before other tasks get their turn.
const MAX_POLLS: usize = 16;

/// A future that is polled again at once when it was woken during its poll.
///
/// The runtime would put such a task at the end of a queue and wake another thread for that queue, which often moves
/// the task to a core with a cold cache.
pub struct RepollOnWake<F> {
    task: Pin<Box<F>>,
    state: Arc<RepollWaker>,
    waker: Waker,
}

impl<F> RepollOnWake<F> {
    /// Wraps a future.
    pub fn new(task: F) -> Self {
        let state = Arc::new(RepollWaker::default());
        Self { task: Box::pin(task), waker: Waker::from(Arc::clone(&state)), state }
    }
}

/// Waker of an [`RepollOnWake`] future.
#[derive(Default)]
struct RepollWaker {
    is_polled: AtomicBool,
    is_woken: AtomicBool,
    outer: AtomicWaker,
}

impl Wake for RepollWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        // A running future checks the flag before it yields.
        if !self.is_polled.load(Ordering::SeqCst) {
            self.outer.wake();
        }
    }
}

impl<F: Future> Future for RepollOnWake<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Self { task, state, waker } = &mut *self;
        state.outer.register(context.waker());
        let _deferred = DeferGuard::begin();
        for _ in 0..MAX_POLLS {
            state.is_polled.store(true, Ordering::SeqCst);
            state.is_woken.store(false, Ordering::SeqCst);
            let polled = task.as_mut().poll(&mut Context::from_waker(waker));
            state.is_polled.store(false, Ordering::SeqCst);
            if polled.is_ready() || !state.is_woken.load(Ordering::SeqCst) {
                return polled;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_completes_after_its_caller_is_dropped() {
        let (begin, begun) = tokio::sync::oneshot::channel::<u8>();
        let (done, is_done) = tokio::sync::oneshot::channel();
        let mut work = DetachOnDrop::new(async move { done.send(begun.await) });
        assert!(std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut work).poll(context).is_pending())).await);
        drop(work);
        begin.send(7).expect("the work still runs");
        assert_eq!(is_done.await, Ok(Ok(7)));
    }

    /// Wakes itself, like a body that the replying task reads.
    fn waking_itself(times: usize) -> impl Future<Output = usize> {
        let mut polls = 0;
        std::future::poll_fn(move |context| {
            polls += 1;
            if polls > times {
                return Poll::Ready(polls);
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
    }

    #[test]
    fn a_task_that_wakes_itself_is_repolled_a_bounded_number_of_times() {
        let mut context = Context::from_waker(Waker::noop());
        for (times, turns) in [(0, 1), (3, 1), (MAX_POLLS - 1, 1), (MAX_POLLS, 2), (5 * MAX_POLLS, 6)] {
            let mut task = RepollOnWake::new(waking_itself(times));
            let polled = std::iter::repeat_with(|| Pin::new(&mut task).poll(&mut context));
            assert_eq!(polled.take_while(Poll::is_pending).count() + 1, turns, "{times}");
        }
    }

    #[test]
    fn deferred_work_runs_when_the_task_yields() {
        let (said, hear) = std::sync::mpsc::channel();
        let say = |word: &'static str| {
            let said = said.clone();
            move || said.send(word).expect("the receiver lives")
        };
        let (later, now) = (say("later"), say("now"));
        let inner = say("inner");
        let mut task = RepollOnWake::new(async {
            defer(later);
            RepollOnWake::new(async { defer(inner) }).await;
            waking_itself(2).await;
            now();
        });
        assert!(Pin::new(&mut task).poll(&mut Context::from_waker(Waker::noop())).is_ready());
        defer(say("no task"));
        assert_eq!(hear.try_iter().collect::<Vec<_>>(), ["inner", "now", "later", "no task"]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_wake_of_others_is_lost() {
        for _ in 0..2_000 {
            let (send, receive) = tokio::sync::oneshot::channel();
            let task = tokio::spawn(RepollOnWake::new(async move {
                waking_itself(2).await;
                receive.await
            }));
            send.send(7).expect("it waits");
            assert_eq!(task.await.expect("it ends"), Ok(7));
        }
    }
}
