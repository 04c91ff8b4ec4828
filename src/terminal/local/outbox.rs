//! What is on its way to the child: one queue for what is typed and for what the terminal answers.
//!
//! Whoever types writes at once when nothing waits, without waking the driver; the driver writes what the child had no
//! room for. A text is in the queue as a whole, so that nothing comes between its parts, and there is one at a time:
//! who may type next is decided in `write.rs`. So the queue holds one text and [`MAX_ANSWERS`] at most.

use std::collections::VecDeque;
use std::io;

use tokio::sync::oneshot;

/// Bytes of answers that may wait for the child before further ones are dropped: twice what a program gets that asks for
/// all colours of the palette at once.
const MAX_ANSWERS: usize = 16 << 10;
/// Bytes that the child has not read, behind which answers are dropped. What is answered at once may be more, but nobody
/// who reads its answers asks on and on without doing so, and a shell that finds thousands of them at its prompt takes
/// half a minute to edit them.
const MOST_UNREAD: u64 = 1 << 10;
/// Bytes that go to the system at once.
const PIECE: usize = 16 << 10;
/// Pieces written before other tasks of the thread get their turn: a child that reads fast leaves room for ever.
const PIECES: usize = 4;
/// Memory that an empty queue keeps.
const KEPT_CAPACITY: usize = 4 << 10;

/// What came of typing at once.
pub(super) enum Typed {
    /// The child's terminal has all of it.
    Written,
    /// The driver writes the rest, and tells what came of it.
    Begun(oneshot::Receiver<io::Result<()>>),
    /// The terminal is closed.
    Closed,
}

/// The part of a text that is still in the queue.
struct Text {
    /// Where it ends in the queue: answers may be before it and behind it.
    end: usize,
    len: usize,
    done: oneshot::Sender<io::Result<()>>,
}

/// Bytes in the order in which the child gets them.
#[derive(Default)]
pub(super) struct Outbox {
    waiting: VecDeque<u8>,
    text: Option<Text>,
    /// Bytes that the child's terminal has taken from the queue.
    taken: u64,
    is_closed: bool,
}

impl Outbox {
    /// There is something to write.
    pub(super) fn has_work(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Counts what the child's terminal took of what waited.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Types past the driver if nothing waits, and queues what is left. Whoever calls it has the turn to type.
    pub(super) fn type_text(&mut self, bytes: &[u8], write: impl FnOnce(&[u8]) -> io::Result<usize>) -> Typed {
        if self.is_closed {
            return Typed::Closed;
        }
        let count = match self.has_work() {
            true => 0,
            // The driver finds out whether there is no room or no reader.
            false => write(&bytes[..bytes.len().min(PIECE)]).unwrap_or(0),
        };
        let rest = &bytes[count..];
        if rest.is_empty() {
            return Typed::Written;
        }
        let (done, written) = oneshot::channel();
        self.waiting.extend(rest);
        self.text = Some(Text { end: self.waiting.len(), len: rest.len(), done });
        Typed::Begun(written)
    }

    /// Takes back what is left of a text, and says how many bytes that were.
    pub(super) fn take_back(&mut self) -> usize {
        let Some(Text { end, len, .. }) = self.text.take() else { return 0 };
        self.waiting.drain(end - len..end);
        self.give_back_memory();
        len
    }

    /// Whether a child that has so many bytes to read gets further answers.
    pub(super) fn takes_answers(&self, unread: u64) -> bool {
        let typed = self.text.as_ref().map_or(0, |text| text.len);
        unread + (self.waiting.len() - typed) as u64 <= MOST_UNREAD
    }

    /// Queues what the terminal answers, if there is room.
    pub(super) fn answer(&mut self, replies: Vec<u8>) {
        let typed = self.text.as_ref().map_or(0, |text| text.len);
        if self.waiting.len() - typed + replies.len() <= MAX_ANSWERS && !self.is_closed {
            self.waiting.extend(replies);
        }
    }

    /// Writes as much as there is room for, up to a turn's worth; `result` tells whether that can be tried at all.
    pub(super) fn write(&mut self, mut result: io::Result<()>, write: impl Fn(&[u8]) -> io::Result<usize>) {
        for _ in 0..PIECES {
            let piece = self.waiting.as_slices().0;
            if result.is_err() || piece.is_empty() {
                break;
            }
            match write(&piece[..piece.len().min(PIECE)]) {
                Ok(count) => self.on_taken(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => result = Err(error),
            }
        }
        if let Err(error) = result {
            self.fail(error);
        }
        self.give_back_memory();
    }

    /// Nothing is written any more.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.fail(io::ErrorKind::BrokenPipe.into());
        self.give_back_memory();
    }

    fn on_taken(&mut self, count: usize) {
        self.waiting.drain(..count);
        self.taken += count as u64;
        if let Some(text) = &mut self.text {
            text.end = text.end.saturating_sub(count);
            text.len = text.len.min(text.end);
        }
        if let Some(Text { done, .. }) = self.text.take_if(|text| text.end == 0) {
            // Nobody is there to hear it: fine.
            let _ = done.send(Ok(()));
        }
    }

    fn fail(&mut self, error: io::Error) {
        self.waiting.clear();
        if let Some(Text { done, .. }) = self.text.take() {
            let _ = done.send(Err(error));
        }
    }

    fn give_back_memory(&mut self) {
        if self.waiting.is_empty() && self.waiting.capacity() > KEPT_CAPACITY {
            self.waiting = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(_: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn begun(outbox: &mut Outbox, bytes: &[u8], count: usize) -> oneshot::Receiver<io::Result<()>> {
        match outbox.type_text(bytes, |_| Ok(count)) {
            Typed::Begun(written) => written,
            _ => panic!("some is left"),
        }
    }

    /// Has the child read one byte at a time.
    fn drain(outbox: &mut Outbox, most: usize) -> Vec<u8> {
        let sent = std::cell::RefCell::new(Vec::new());
        while outbox.has_work() && sent.borrow().len() < most {
            outbox.write(Ok(()), |bytes| {
                if sent.borrow().len() == most {
                    return full(bytes);
                }
                sent.borrow_mut().push(bytes[0]);
                Ok(1)
            });
        }
        sent.into_inner()
    }

    #[test]
    fn nobody_overtakes_what_waits() {
        let mut outbox = Outbox::default();
        assert!(matches!(outbox.type_text(b"abc", |bytes| Ok(bytes.len())), Typed::Written));
        assert!(!outbox.has_work());
        outbox.answer(b"before".to_vec());
        let mut written = begun(&mut outbox, b"abcdef", 9);
        outbox.answer(b"behind".to_vec());
        outbox.write(Ok(()), full);
        assert!(written.try_recv().is_err());
        assert_eq!(drain(&mut outbox, 11), b"beforeabcde");
        assert!(written.try_recv().is_err());
        assert_eq!(drain(&mut outbox, 1), b"f");
        assert!(matches!(written.try_recv(), Ok(Ok(()))), "what is behind a text does not delay its end");
        assert_eq!(drain(&mut outbox, 100), b"behind");
        assert_eq!(outbox.taken(), 18);
    }

    #[test]
    fn a_text_can_be_taken_back_and_answers_stay() {
        let mut outbox = Outbox::default();
        let mut written = begun(&mut outbox, b"abcdef", 1);
        outbox.answer(b"behind".to_vec());
        assert_eq!(drain(&mut outbox, 2), b"bc");
        assert_eq!(outbox.take_back(), 3);
        assert!(written.try_recv().is_err());
        assert_eq!(outbox.take_back(), 0);
        assert_eq!(drain(&mut outbox, 100), b"behind");
    }

    #[test]
    fn an_error_ends_everything_that_waits() {
        let mut outbox = Outbox::default();
        let mut written = begun(&mut outbox, b"abc", 0);
        outbox.write(Ok(()), |_| Err(io::ErrorKind::BrokenPipe.into()));
        assert!(matches!(written.try_recv(), Ok(Err(_))));
        assert!(!outbox.has_work());
        let mut written = begun(&mut outbox, b"abc", 0);
        outbox.close();
        assert!(matches!(written.try_recv(), Ok(Err(_))) && !outbox.has_work());
        assert!(matches!(outbox.type_text(b"abc", |_| panic!("it is closed")), Typed::Closed));
    }

    #[test]
    fn answers_that_nobody_reads_are_dropped_and_texts_are_not() {
        let mut outbox = Outbox::default();
        outbox.answer(vec![b'x'; MAX_ANSWERS]);
        outbox.answer(b"more".to_vec());
        assert_eq!(outbox.waiting.len(), MAX_ANSWERS);
        let _written = begun(&mut outbox, &[b'y'; 3 * MAX_ANSWERS], 0);
        assert_eq!(outbox.waiting.len(), 4 * MAX_ANSWERS);
        drain(&mut outbox, MAX_ANSWERS);
        outbox.answer(b"more".to_vec());
        assert_eq!(outbox.waiting.len(), 3 * MAX_ANSWERS + 4);
        drain(&mut outbox, usize::MAX);
        assert!(outbox.waiting.capacity() <= KEPT_CAPACITY);
    }
}
