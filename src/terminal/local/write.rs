//! Typing into a session: one text after the other, each whole or with an error that says how much of it was taken.
//!
//! Whoever types has the turn to type until the child's terminal has all of the text, so that no other text comes
//! between its parts. The turn passes on in the order in which it was asked for. A caller that goes away leaves
//! nothing half typed: what was begun goes on without it.

use std::io;
use std::pin::pin;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedMutexGuard, oneshot};

use super::Session;
use super::outbox::Typed;
use super::pty::{self, Waiting};
use crate::error::{Error, Result};
use crate::runtime::DetachOnDrop;

/// How long a child that takes nothing at all is waited for.
const STANDSTILL: Duration = Duration::from_secs(5);
/// How long one call may take, its turn included, while the child goes on reading.
const LONGEST_WRITE: Duration = Duration::from_secs(30);

/// Who types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    /// `talk` itself, which knows what it does.
    Talk,
    /// Anybody else.
    Other,
}

impl Session {
    /// Types bytes. Comes back when the child's terminal has them all.
    pub async fn write(&self, bytes: &[u8]) -> Result<usize> {
        self.check_typed(bytes)?;
        self.write_as(Writer::Other, bytes, None).await
    }

    /// The same, at the latest until a deadline.
    pub(super) async fn write_as(&self, writer: Writer, bytes: &[u8], until: Option<Instant>) -> Result<usize> {
        if let Some(exit) = self.exit() {
            return Err(self.exited(exit, None));
        }
        let longest = Instant::now() + LONGEST_WRITE;
        let deadline = until.map_or(longest, |until| until.min(longest));
        let typing = &self.shared.typing;
        let turn = match typing.clone().try_lock_owned() {
            Ok(turn) => turn,
            Err(_) => match self.while_it_reads(typing.clone().lock_owned(), deadline).await {
                Some(turn) => turn,
                None => return Err(self.not_written("it does not read its input, and other texts are first".into())),
            },
        };
        self.note_typed(writer, bytes);
        let typed = self.shared.outbox().type_text(bytes, |bytes| self.shared.control.try_write(bytes));
        match typed {
            Typed::Written => {}
            Typed::Begun(written) => {
                self.shared.left_over.notify_one();
                let (session, len) = (self.clone(), bytes.len());
                DetachOnDrop::new(async move { session.finish(turn, written, len, deadline).await }).await?;
            }
            Typed::Closed => return Err(self.not_written("the session has ended".into())),
        }
        Ok(bytes.len())
    }

    /// Waits until the driver has written what was begun, and takes back what the child does not take in time: input
    /// that comes later would surprise.
    async fn finish(
        &self,
        turn: OwnedMutexGuard<()>,
        mut written: oneshot::Receiver<io::Result<()>>,
        len: usize,
        deadline: Instant,
    ) -> Result<()> {
        let in_time = self.while_it_reads(&mut written, deadline).await;
        let outcome = match in_time {
            Some(outcome) => outcome.ok(),
            None => {
                let left = self.shared.outbox().take_back();
                if left > 0 {
                    let taken = len - left;
                    let problem = format!("it does not read its input: {taken} of {len} bytes were typed");
                    return Err(self.not_written(problem));
                }
                // It came through at the last moment.
                written.try_recv().ok()
            }
        };
        drop(turn);
        match outcome {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(self.not_written(error.to_string())),
            None => Err(self.not_written("the session has ended".into())),
        }
    }

    /// Waits for something as long as the child goes on taking what is typed, until the deadline.
    async fn while_it_reads<T>(&self, work: impl Future<Output = T>, deadline: Instant) -> Option<T> {
        let mut work = pin!(work);
        loop {
            let taken = self.shared.outbox().taken();
            let until = deadline.min(Instant::now() + STANDSTILL);
            match tokio::time::timeout_at(until.into(), work.as_mut()).await {
                Ok(done) => return Some(done),
                Err(_) if Instant::now() < deadline && self.shared.outbox().taken() > taken => {}
                Err(_) => return None,
            }
        }
    }

    /// Notes what is about to be typed, for whoever has to know: recordings, and what a command may have been.
    fn note_typed(&self, writer: Writer, bytes: &[u8]) {
        self.shared.lock().last_typed = Instant::now();
        self.note_hidden(writer);
        self.record_input(bytes);
        if writer == Writer::Other {
            let control = &self.shared.control;
            let group = control.foreground_group();
            self.note_depth(group);
            let may_wait = control.is_canonical() || group == Some(control.pid());
            // A password is no command, and is not kept.
            let group = group.filter(|_| !self.hides_input());
            self.shared.lock().on_typed(bytes, may_wait, group);
        }
    }

    /// A shell that was not typed at before reads its prompt, most likely; a question is read at another depth.
    fn note_depth(&self, group: Option<u32>) {
        let Some(group) = group.filter(|&group| self.shared.lock().first_typed_at(group).is_none()) else { return };
        if !matches!(pty::waits_for(group), None | Some(Waiting::Nothing))
            && let Some(depth) = pty::call_depth(group)
        {
            self.shared.lock().note_typed_at(group, depth);
        }
    }

    /// The error for a text that was not taken; where the program has ended, that is why.
    fn not_written(&self, problem: String) -> Error {
        match self.exit() {
            Some(exit) => self.exited(exit, None),
            None => Error::Write { session: self.id().clone(), problem },
        }
    }
}
