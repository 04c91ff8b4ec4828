//! The threads on which everything that waits is driven: sessions, the server, the command line's `run`; and work that
//! must not be left half done.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;
use tokio::runtime::{Builder, Handle, Runtime};

/// A session that prints without a pause keeps one thread busy, and the system lets a busy thread wait behind the
/// programs that print. A thread that rests is woken at once, so there are more of them than cores.
const MIN_THREADS: usize = 8;

/// The runtime for sessions.
pub fn runtime() -> io::Result<Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Builder::new_multi_thread().worker_threads(MIN_THREADS.max(2 * cores)).enable_all().build()
}

/// Work that goes on by itself when nobody waits for it any more. As long as somebody does, it costs no task.
pub struct Finishing<T: Send + 'static>(Option<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T: Send + 'static> Finishing<T> {
    /// Work that begins when it is waited for.
    pub fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl<T: Send + 'static> Future for Finishing<T> {
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

impl<T: Send + 'static> Drop for Finishing<T> {
    fn drop(&mut self) {
        // What panicked is not tried again, and without a runtime there is nobody who could go on.
        if let (Some(work), Ok(runtime), false) = (self.0.take(), Handle::try_current(), std::thread::panicking()) {
            runtime.spawn(work);
        }
    }
}

/// How long one alarm stands in for those that are set after it.
const ALARM_AHEAD: Duration = Duration::from_secs(1);

/// Waits for a time that is most often not reached. The runtime wakes a thread for each alarm that is due before all
/// others, only to have it sleep less long: most of what such a wait costs. So the first one in a while is accompanied
/// by one that is due earlier, and those after it are late enough to wake nobody.
pub async fn sleep_until(deadline: Instant) {
    static IS_AHEAD: AtomicBool = AtomicBool::new(false);
    struct Over;
    impl Drop for Over {
        fn drop(&mut self) {
            IS_AHEAD.store(false, Ordering::Relaxed);
        }
    }
    if deadline.saturating_duration_since(Instant::now()) > ALARM_AHEAD && !IS_AHEAD.swap(true, Ordering::Relaxed) {
        // Also when the runtime ends before it.
        let over = Over;
        tokio::spawn(async move {
            tokio::time::sleep(ALARM_AHEAD).await;
            drop(over);
        });
    }
    tokio::time::sleep_until(deadline.into()).await;
}

/// Something that is done later.
type Later = Box<dyn FnOnce()>;

thread_local! {
    /// What the task that runs on this thread has put off; none where no task does.
    static PUT_OFF: RefCell<Option<Vec<Later>>> = const { RefCell::new(None) };
}

/// Does something when the [`Unbroken`] task that runs now has come to a rest: an answer is on its way by then. At once
/// where there is no such task. A task puts off one thing per answer, and answers a few times at most before it rests.
pub fn afterwards(work: impl FnOnce() + 'static) {
    let at_once = PUT_OFF.with_borrow_mut(|put_off| match put_off {
        Some(put_off) => {
            put_off.push(Box::new(work));
            None
        }
        None => Some(work),
    });
    if let Some(work) = at_once {
        work();
    }
}

/// Does what was put off while it lived, also after a panic. Has what a task around this one has put off.
struct PutsOff(Option<Vec<Later>>);

impl PutsOff {
    fn begin() -> Self {
        Self(PUT_OFF.replace(Some(Vec::new())))
    }
}

impl Drop for PutsOff {
    fn drop(&mut self) {
        for work in PUT_OFF.replace(self.0.take()).unwrap_or_default() {
            work();
        }
    }
}

/// How often a task that wakes itself goes on before others get their turn.
const MOST_TURNS: usize = 16;

/// A task that goes on at once when it was woken while it ran.
///
/// Left to the runtime, such a task goes to the end of a queue, another thread is woken to look at that queue, and most
/// often takes the task along to a core that knows nothing of it.
pub struct Unbroken<F> {
    task: Pin<Box<F>>,
    bell: Arc<Bell>,
    waker: Waker,
}

impl<F> Unbroken<F> {
    /// A task as it is.
    pub fn new(task: F) -> Self {
        let bell = Arc::new(Bell::default());
        Self { task: Box::pin(task), waker: Waker::from(Arc::clone(&bell)), bell }
    }
}

/// What wakes an [`Unbroken`] task.
#[derive(Default)]
struct Bell {
    runs: AtomicBool,
    rang: AtomicBool,
    outer: AtomicWaker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rang.store(true, Ordering::SeqCst);
        // A task that runs looks before it rests.
        if !self.runs.load(Ordering::SeqCst) {
            self.outer.wake();
        }
    }
}

impl<F: Future> Future for Unbroken<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Self { task, bell, waker } = &mut *self;
        bell.outer.register(context.waker());
        let _puts_off = PutsOff::begin();
        for _ in 0..MOST_TURNS {
            bell.runs.store(true, Ordering::SeqCst);
            bell.rang.store(false, Ordering::SeqCst);
            let polled = task.as_mut().poll(&mut Context::from_waker(waker));
            bell.runs.store(false, Ordering::SeqCst);
            if polled.is_ready() || !bell.rang.load(Ordering::SeqCst) {
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
    async fn work_goes_on_when_nobody_waits() {
        let (begin, begun) = tokio::sync::oneshot::channel::<u8>();
        let (done, is_done) = tokio::sync::oneshot::channel();
        let mut work = Finishing::new(async move { done.send(begun.await) });
        assert!(std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut work).poll(context).is_pending())).await);
        drop(work);
        begin.send(7).expect("somebody goes on");
        assert_eq!(is_done.await, Ok(Ok(7)));
    }

    /// Wakes itself, in the way of a body that is read by the task that answers.
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
    fn a_task_that_wakes_itself_goes_on_at_once_but_not_for_ever() {
        let mut context = Context::from_waker(Waker::noop());
        for (times, turns) in [(0, 1), (3, 1), (MOST_TURNS - 1, 1), (MOST_TURNS, 2), (5 * MOST_TURNS, 6)] {
            let mut task = Unbroken::new(waking_itself(times));
            let polled = std::iter::repeat_with(|| Pin::new(&mut task).poll(&mut context));
            assert_eq!(polled.take_while(Poll::is_pending).count() + 1, turns, "{times}");
        }
    }

    #[test]
    fn what_is_put_off_is_done_when_the_task_rests() {
        let (said, hear) = std::sync::mpsc::channel();
        let say = |word: &'static str| {
            let said = said.clone();
            move || said.send(word).expect("somebody hears")
        };
        let (later, now) = (say("later"), say("now"));
        let inner = say("inner");
        let mut task = Unbroken::new(async {
            afterwards(later);
            Unbroken::new(async { afterwards(inner) }).await;
            waking_itself(2).await;
            now();
        });
        assert!(Pin::new(&mut task).poll(&mut Context::from_waker(Waker::noop())).is_ready());
        afterwards(say("no task"));
        assert_eq!(hear.try_iter().collect::<Vec<_>>(), ["inner", "now", "later", "no task"]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_wake_of_others_is_lost() {
        for _ in 0..2_000 {
            let (send, receive) = tokio::sync::oneshot::channel();
            let task = tokio::spawn(Unbroken::new(async move {
                waking_itself(2).await;
                receive.await
            }));
            send.send(7).expect("it waits");
            assert_eq!(task.await.expect("it ends"), Ok(7));
        }
    }
}
