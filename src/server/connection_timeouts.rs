//! Connection timeouts: closes a connection whose request head arrives too slowly or that stays idle.
//!
//! Costs a few core-local stores per request: the timer is set when the connection opens and when a partial head is
//! buffered, and is otherwise only examined when it fires. Benchmark: `benches/http.rs`.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::connection_limits::ConnectionLimits;

/// Activity of a connection. Only one task reads and writes it.
#[derive(Debug, Default)]
pub(super) struct ConnectionActivity {
    /// Bytes received.
    read: AtomicU64,
    /// Bytes received when the last response was complete.
    read_by_then: AtomicU64,
    begun: AtomicU32,
    ended: AtomicU32,
}

impl ConnectionActivity {
    /// Records a complete request head. Returns the bytes received since the last response.
    pub(super) fn request_started(&self) -> u64 {
        self.begun.store(self.begun.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.read.load(Ordering::Relaxed).saturating_sub(self.read_by_then.load(Ordering::Relaxed))
    }

    /// Records a complete response.
    pub(super) fn request_finished(&self) {
        self.ended.store(self.ended.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.read_by_then.store(self.read.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    fn begun(&self) -> u32 {
        self.begun.load(Ordering::Relaxed)
    }

    fn ended(&self) -> u32 {
        self.ended.load(Ordering::Relaxed)
    }

    fn is_answering(&self) -> bool {
        self.begun() != self.ended()
    }

    /// Returns whether the first request or the rest of a partial head is awaited.
    fn awaits_head(&self) -> bool {
        let has_part = self.read.load(Ordering::Relaxed) > self.read_by_then.load(Ordering::Relaxed);
        !self.is_answering() && (has_part || self.begun() == 0)
    }
}

/// A stream that counts the received bytes.
pub(super) struct CountingStream<S> {
    stream: S,
    activity: Arc<ConnectionActivity>,
}

impl<S> CountingStream<S> {
    /// Wraps a stream.
    pub(super) fn new(stream: S, activity: Arc<ConnectionActivity>) -> Self {
        Self { stream, activity }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CountingStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, into);
        let more = (into.filled().len() - before) as u64;
        if more > 0 {
            let read = &self.activity.read;
            read.store(read.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountingStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// What to do with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeoutAction {
    /// Keep it open.
    Keep,
    /// Idle for too long: close it once no request is in progress.
    Shutdown,
    /// The request head timed out: close it now.
    Abort,
}

/// Timeout that the timer measures.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Timeout {
    Head,
    Idle,
    /// None, because the timer has fired.
    Off,
}

/// Enforces the timeouts of one connection.
pub(super) struct TimeoutGuard {
    timer: Pin<Box<Sleep>>,
    purpose: Timeout,
    /// Number of requests begun when the timer was set.
    begun: u32,
    /// Number of responses complete by then: idle time begins with the last of them.
    ended: u32,
    is_set: bool,
}

impl TimeoutGuard {
    /// Starts the first timeout.
    pub(super) fn new(limits: &ConnectionLimits) -> Self {
        Self {
            timer: Box::pin(tokio::time::sleep(limits.head)),
            purpose: Timeout::Head,
            begun: 0,
            ended: 0,
            is_set: false,
        }
    }

    /// Checks an idle connection and registers its task for the next check. An unauthorized client gets the shorter
    /// head timeout even when idle.
    pub(super) fn poll(
        &mut self,
        activity: &ConnectionActivity,
        limits: &ConnectionLimits,
        is_unknown: bool,
        context: &mut Context<'_>,
    ) -> TimeoutAction {
        if self.purpose == Timeout::Off {
            return TimeoutAction::Keep;
        }
        let begun = activity.begun();
        let awaits_head = activity.awaits_head();
        if awaits_head && (self.purpose != Timeout::Head || self.begun != begun) {
            self.set(Timeout::Head, limits, is_unknown, activity);
        }
        loop {
            // The waker is already registered, so polling the timer again is unnecessary.
            if self.is_set && !self.timer.is_elapsed() {
                return TimeoutAction::Keep;
            }
            self.is_set = true;
            if self.timer.as_mut().poll(context).is_pending() {
                return TimeoutAction::Keep;
            }
            let is_new = (self.begun, self.ended) != (begun, activity.ended());
            if activity.is_answering() || is_new || (self.purpose == Timeout::Head && !awaits_head) {
                self.set(Timeout::Idle, limits, is_unknown, activity);
            } else if awaits_head || is_unknown {
                return TimeoutAction::Abort;
            } else {
                self.purpose = Timeout::Off;
                return TimeoutAction::Shutdown;
            }
        }
    }

    fn set(&mut self, purpose: Timeout, limits: &ConnectionLimits, is_unknown: bool, activity: &ConnectionActivity) {
        let timeout = if purpose == Timeout::Head || is_unknown { limits.head } else { limits.idle };
        self.timer.as_mut().reset(Instant::now() + timeout);
        (self.purpose, self.is_set) = (purpose, false);
        (self.begun, self.ended) = (activity.begun(), activity.ended());
    }
}
