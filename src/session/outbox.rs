//! What is on its way to the child: one queue for what is typed and for what the terminal answers.
//!
//! Whoever types writes at once when nothing waits, without waking the driver; the driver writes what the child had no
//! room for.

use std::collections::VecDeque;
use std::io;

use tokio::sync::oneshot;

/// Bytes that may wait for the child before answers of the terminal are dropped. With a piece that is typed and one that
/// is next, 64 KiB wait at most.
const MAX_WAITING: usize = 32 << 10;

type Done = oneshot::Sender<io::Result<()>>;

/// What came of typing at once.
pub(super) enum Typed {
    /// The child's terminal has all of it.
    Written,
    /// The driver writes the rest.
    Begun(oneshot::Receiver<io::Result<()>>),
    /// Not a byte was written: others are first, or there is no room.
    NotNow,
}

/// Bytes in the order in which the child gets them.
#[derive(Default)]
pub(super) struct Outbox {
    waiting: VecDeque<u8>,
    /// Who waits for the bytes in `waiting` to be gone.
    done: Option<Done>,
}

impl Outbox {
    /// There is something to write.
    pub(super) fn has_work(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Somebody's input is not written yet: the next one's has to wait.
    pub(super) fn is_taken(&self) -> bool {
        self.done.is_some()
    }

    /// Types past the driver, if nothing waits.
    pub(super) fn type_now(&mut self, bytes: &[u8], write: impl FnOnce(&[u8]) -> io::Result<usize>) -> Typed {
        if self.has_work() || self.is_taken() {
            return Typed::NotNow;
        }
        match write(bytes) {
            Ok(count) if count == bytes.len() => Typed::Written,
            Ok(count @ 1..) => {
                let (done, written) = oneshot::channel();
                self.waiting.extend(&bytes[count..]);
                self.done = Some(done);
                Typed::Begun(written)
            }
            // The driver finds out whether there is no room or no reader.
            Ok(_) | Err(_) => Typed::NotNow,
        }
    }

    /// Queues what somebody types.
    pub(super) fn accept(&mut self, bytes: &[u8], done: Done) {
        self.waiting.extend(bytes);
        self.done = Some(done);
    }

    /// Queues what the terminal answers, if there is room.
    pub(super) fn answer(&mut self, replies: Vec<u8>) {
        if self.waiting.len() + replies.len() <= MAX_WAITING {
            self.waiting.extend(replies);
        }
    }

    /// Writes as much as there is room for; `result` tells whether that can be tried at all.
    pub(super) fn write(&mut self, mut result: io::Result<()>, write: impl Fn(&[u8]) -> io::Result<usize>) {
        while result.is_ok() && !self.waiting.is_empty() {
            match write(self.waiting.as_slices().0) {
                Ok(count) => drop(self.waiting.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => result = Err(error),
            }
        }
        if result.is_err() {
            self.waiting.clear();
        }
        if let Some(done) = self.done.take() {
            // Nobody is there to hear it: fine.
            let _ = done.send(result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(_: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    #[test]
    fn nobody_overtakes_what_waits() {
        let mut outbox = Outbox::default();
        assert!(matches!(outbox.type_now(b"abc", |bytes| Ok(bytes.len())), Typed::Written));
        assert!(matches!(outbox.type_now(b"abc", full), Typed::NotNow));
        assert!(!outbox.has_work());
        let Typed::Begun(mut written) = outbox.type_now(b"abcdef", |_| Ok(2)) else { panic!("some is left") };
        assert!(matches!(outbox.type_now(b"xyz", |_| panic!("others are first")), Typed::NotNow));
        outbox.answer(b"reply".to_vec());
        outbox.write(Ok(()), full);
        assert!(outbox.is_taken() && written.try_recv().is_err());
        let sent = std::cell::RefCell::new(Vec::new());
        outbox.write(Ok(()), |bytes| {
            sent.borrow_mut().push(bytes[0]);
            Ok(1)
        });
        assert_eq!(sent.into_inner(), b"cdefreply");
        assert!(matches!(written.try_recv(), Ok(Ok(()))));
        assert!(!outbox.has_work() && !outbox.is_taken());
    }

    #[test]
    fn an_error_ends_everything_that_waits() {
        let mut outbox = Outbox::default();
        let (done, mut written) = oneshot::channel();
        outbox.accept(b"abc", done);
        outbox.write(Ok(()), |_| Err(io::ErrorKind::BrokenPipe.into()));
        assert!(matches!(written.try_recv(), Ok(Err(_))));
        assert!(!outbox.has_work() && !outbox.is_taken());
    }

    #[test]
    fn answers_that_nobody_reads_are_dropped() {
        let mut outbox = Outbox::default();
        outbox.answer(vec![b'x'; MAX_WAITING]);
        outbox.answer(b"more".to_vec());
        assert_eq!(outbox.waiting.len(), MAX_WAITING);
    }
}
