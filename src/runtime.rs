//! The threads on which everything that waits is driven: sessions, the server, the command line's `run`; and work that
//! must not be left half done.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

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
}
