//! How a connection gets on: who sends the head of a request too slowly, or nothing at all, is let go.
//!
//! Costs nothing per request but a few stores that no other core looks at: the alarm of a connection is set when it comes
//! and when half a head is there, and otherwise only looked at when it is due. Benchmark: `benches/http.rs`.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::crowd::Limits;

/// What has happened on a connection. One task writes and reads it.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Bytes that came.
    read: AtomicU64,
    /// Bytes that had come when the last request was answered.
    read_by_then: AtomicU64,
    begun: AtomicU32,
    ended: AtomicU32,
}

impl Pace {
    /// The head of a request is complete. Returns how many bytes came since the last one was answered.
    pub(super) fn begin(&self) -> u64 {
        self.begun.store(self.begun.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.read.load(Ordering::Relaxed).saturating_sub(self.read_by_then.load(Ordering::Relaxed))
    }

    /// It is answered.
    pub(super) fn end(&self) {
        self.ended.store(self.ended.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.read_by_then.store(self.read.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    fn begun(&self) -> u32 {
        self.begun.load(Ordering::Relaxed)
    }

    fn is_answering(&self) -> bool {
        self.begun() != self.ended.load(Ordering::Relaxed)
    }

    /// Nothing was ever asked, or something has come that is no whole head.
    fn awaits_head(&self) -> bool {
        let has_part = self.read.load(Ordering::Relaxed) > self.read_by_then.load(Ordering::Relaxed);
        !self.is_answering() && (has_part || self.begun() == 0)
    }
}

/// A stream that tells how much has come.
pub(super) struct Counted<S> {
    stream: S,
    pace: Arc<Pace>,
}

impl<S> Counted<S> {
    /// Tells it to this pace.
    pub(super) fn new(stream: S, pace: Arc<Pace>) -> Self {
        Self { stream, pace }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, into);
        let more = (into.filled().len() - before) as u64;
        if more > 0 {
            let read = &self.pace.read;
            read.store(read.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
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

/// What is to become of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may go on.
    Stays,
    /// It was idle for too long: it ends when nothing is under way on it.
    Closes,
    /// Its next request does not come: it ends now.
    Ends,
}

/// What the alarm is set for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Alarm {
    Head,
    Idle,
    /// It has done its work.
    Off,
}

/// Watches over one connection.
pub(super) struct Watch {
    alarm: Pin<Box<Sleep>>,
    purpose: Alarm,
    /// Requests that had begun when the alarm was set.
    begun: u32,
    is_set: bool,
}

impl Watch {
    /// From now on.
    pub(super) fn new(limits: &Limits) -> Self {
        Self { alarm: Box::pin(tokio::time::sleep(limits.head)), purpose: Alarm::Head, begun: 0, is_set: false }
    }

    /// Looks at a connection that has come to a rest, and sees to it that its task is woken when it is to be looked at
    /// again. Who is not known has no more patience to hope for when idle than with a head.
    pub(super) fn look(
        &mut self,
        pace: &Pace,
        limits: &Limits,
        is_unknown: bool,
        context: &mut Context<'_>,
    ) -> Verdict {
        if self.purpose == Alarm::Off {
            return Verdict::Stays;
        }
        let begun = pace.begun();
        let awaits_head = pace.awaits_head();
        if awaits_head && (self.purpose != Alarm::Head || self.begun != begun) {
            self.set(Alarm::Head, limits, is_unknown, begun);
        }
        loop {
            // A task that was told by this waker once need not be told to tell it again.
            if self.is_set && !self.alarm.is_elapsed() {
                return Verdict::Stays;
            }
            self.is_set = true;
            if self.alarm.as_mut().poll(context).is_pending() {
                return Verdict::Stays;
            }
            if pace.is_answering() || self.begun != begun || (self.purpose == Alarm::Head && !awaits_head) {
                self.set(Alarm::Idle, limits, is_unknown, begun);
            } else if awaits_head || is_unknown {
                return Verdict::Ends;
            } else {
                self.purpose = Alarm::Off;
                return Verdict::Closes;
            }
        }
    }

    fn set(&mut self, purpose: Alarm, limits: &Limits, is_unknown: bool, begun: u32) {
        let patience = if purpose == Alarm::Head || is_unknown { limits.head } else { limits.idle };
        self.alarm.as_mut().reset(Instant::now() + patience);
        (self.purpose, self.begun, self.is_set) = (purpose, begun, false);
    }
}
