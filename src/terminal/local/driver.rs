//! The task that owns one PTY: it reads it, and writes what could not be written at once.
//!
//! It sleeps until there is output, input, room to write, a deadline of the emulator, or the child's end. At most
//! 16 KiB are taken per hold of the lock. What waits for a child that does not read is bounded in `outbox.rs`.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kpty_emulator::Size;

use super::memory::{COUNT_EVERY, release_after_output};
use super::proposal::Check;
use super::state::{Ingested, Probe, TerminalState};
use super::{Session, Shared};
use crate::model::ExitInfo;
use crate::terminal::local::pty::{self, Child, Control, Pty, Waiting};

/// Bytes taken per hold of the lock. More makes others wait longer for it, and a flood no faster.
const PIECE: usize = 16 << 10;
/// A read of fewer bytes most often took everything.
const FULL_READ: usize = 2 << 10;
/// Bytes after which other tasks of the thread get their turn.
const TURN: usize = 16 << 10;
/// How long a turn may take. Output that costs more than its length (a character repeated over the whole screen, large
/// areas copied) is taken in slices until then, and the rest after others had their turn.
const TURN_TIME: Duration = Duration::from_millis(5);
/// Bytes of a slice times cells of the window. The emulator bounds what a byte may cost, but sequences that touch every row
/// cost more in larger windows. No more than a slice is taken between two looks at the clock; it takes a few milliseconds.
const SLICE_CELLS: usize = 16 << 20;
/// The smallest slice: a few sequences.
const LEAST_SLICE: usize = 64;
/// Reads that a prompt may take.
const PROMPT_READS: usize = 16;
/// How long after the child's end its last output is waited for, when something else keeps the terminal open.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(60);
/// How long what keeps the terminal open is listened to at most: it may never stop.
const MAX_DRAIN: Duration = Duration::from_secs(1);

thread_local! {
    /// One buffer for all sessions of a thread: one each would be a good part of what an idle session costs.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; PIECE]);
}

impl Probe for Control {
    fn foreground_group(&self) -> Option<u32> {
        Self::foreground_group(self)
    }

    fn is_canonical(&self) -> bool {
        Self::is_canonical(self)
    }

    fn pid(&self) -> u32 {
        Self::pid(self)
    }

    fn waiting(&self) -> Option<Waiting> {
        pty::waits_for(Self::pid(self))
    }

    fn call_depth(&self) -> Option<u64> {
        pty::call_depth(Self::pid(self))
    }

    fn has_arguments(&self, args: &[String]) -> bool {
        pty::arguments(Self::pid(self)).is_none_or(|all| all.get(1..) == Some(args))
    }

    fn has_output(&self) -> bool {
        Self::has_output(self)
    }
}

/// What a read came to.
#[derive(PartialEq, Eq)]
enum Read {
    /// Everything that is there was taken.
    Drained,
    /// There may be more.
    More,
    /// Nobody has the other side open.
    Closed,
}

struct Driver {
    pty: Pty,
    control: Control,
    shared: Arc<Shared>,
    /// Bytes of output since the session's memory was counted.
    uncounted: usize,
    /// Output that was read and had to wait for the next turn; less than [`PIECE`].
    rest: Vec<u8>,
    /// Bytes that are taken without a look at the clock, by the size of the window.
    slice: usize,
}

/// Drives a session until its child has ended or it is closed.
pub(super) async fn drive(pty: Pty, child: Child, shared: Arc<Shared>) {
    let control = pty.control();
    let slice = slice_of(shared.lock().emulator.size());
    let mut driver = Driver { pty, control, shared, uncounted: 0, rest: Vec::new(), slice };
    let mut child = child;
    let exit = driver.run(&mut child).await;
    let Driver { pty, shared, .. } = driver;
    // The terminal is closed before anybody hears of the end: what is left of the session is hung up.
    drop(pty);
    shared.lock().on_exit(exit);
    // Whoever still types learns that the program has ended, and not only that nothing can be written.
    shared.outbox().close();
    shared.publish(true);
    // Nobody's answer waits for this; a session whose end was asked for has been looked at already.
    let noted = tokio::task::spawn_blocking(move || Session::note_left_behind(&shared)).await;
    drop(noted);
}

impl Driver {
    async fn run(&mut self, child: &mut Child) -> ExitInfo {
        let mut is_open = true;
        loop {
            let next_tick = self.shared.lock().next_tick();
            if !is_open {
                // Nobody will ever read what waits, and a terminal without its other side is always ready.
                self.write(Err(io::ErrorKind::BrokenPipe.into()));
            }
            let has_work = self.shared.outbox().has_work();
            tokio::select! {
                result = self.readable(), if is_open => match result.map(|()| self.read()) {
                    Ok(Read::More) => tokio::task::yield_now().await,
                    Ok(Read::Drained) => {}
                    Ok(Read::Closed) | Err(_) => is_open = false,
                },
                result = self.pty.writable(), if has_work => self.write(result),
                () = self.shared.closing.notified() => return self.end(child, is_open).await,
                // Somebody left something to be written.
                () = self.shared.left_over.notified() => {}
                () = sleep_until(next_tick), if next_tick.is_some() => {
                    let mut check = self.shared.lock().check_end(&self.control);
                    // A shell that reads has written its prompt, and all of that belongs to the decision.
                    if check == Check::Confirmed {
                        match self.drain() {
                            Read::More => check = Check::NotYet,
                            Read::Drained => {}
                            Read::Closed => is_open = false,
                        }
                    }
                    self.take(|terminal, _| terminal.tick(check));
                    // There may be more of a long update to be shown at once.
                    tokio::task::yield_now().await;
                }
                exit = child.exited() => {
                    self.drain_after_exit(is_open).await;
                    return exit;
                }
            }
        }
    }

    /// Takes what is there and as much as a prompt may be; behind it there may be a flood.
    fn drain(&mut self) -> Read {
        (0..PROMPT_READS).map(|_| self.read()).find(|read| *read != Read::More).unwrap_or(Read::More)
    }

    /// Waits until there is something to take.
    async fn readable(&self) -> io::Result<()> {
        match self.rest.is_empty() {
            true => self.pty.readable().await,
            false => Ok(()),
        }
    }

    /// Closes the session: the child may be gone, or it survived every signal.
    async fn end(&mut self, child: &mut Child, is_open: bool) -> ExitInfo {
        let exit = tokio::time::timeout(DRAIN_TIMEOUT, child.exited()).await.unwrap_or(ExitInfo::Unknown);
        self.drain_after_exit(is_open).await;
        exit
    }

    /// Output can arrive after the child has ended: the system hands it over in its own time. It is complete when
    /// nobody has the terminal open; where something else does, when nothing came for a while, or too much.
    async fn drain_after_exit(&mut self, mut is_open: bool) {
        let deadline = Instant::now() + MAX_DRAIN;
        while is_open && Instant::now() < deadline {
            match tokio::time::timeout(DRAIN_TIMEOUT, self.readable()).await {
                Ok(Ok(())) => is_open = self.read() != Read::Closed,
                _ => return,
            }
            tokio::task::yield_now().await;
        }
    }

    /// Takes what is there, at most about a turn's worth. Whoever asks meanwhile learns that something is on its way.
    fn read(&mut self) -> Read {
        self.shared.has_in_hand.store(true, Ordering::SeqCst);
        let read = self.read_turn();
        self.shared.has_in_hand.store(!self.rest.is_empty(), Ordering::SeqCst);
        read
    }

    /// Takes what is there. Each read goes into the emulator before the next: the system
    /// hands over 4 KiB at a time and has the program fill the next ones meanwhile. Collected first, they would be
    /// worked on while the program stands still.
    fn read_turn(&mut self) -> Read {
        if self.uncounted >= COUNT_EVERY {
            self.uncounted = 0;
            self.shared.count_memory();
            release_after_output();
        }
        let began = Instant::now();
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            let (taken, _) = self.ingest(&rest, began);
            self.rest = rest[taken..].to_vec();
            return Read::More;
        }
        BUFFER.with_borrow_mut(|buffer| {
            let mut taken = 0;
            while taken < TURN {
                match self.pty.try_read(buffer) {
                    Ok(0) => return Read::Closed,
                    Ok(count) => {
                        taken += count;
                        self.uncounted += count;
                        let (done, news) = self.ingest(&buffer[..count], began);
                        if done < count {
                            self.rest = buffer[done..count].to_vec();
                            break;
                        }
                        // Whoever waited for it goes on before it is asked whether there is more.
                        if news && count < FULL_READ {
                            return Read::More;
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Read::Drained,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => return Read::Closed,
                }
            }
            self.pty.look_away();
            Read::More
        })
    }

    /// Takes output, at least a slice of it and as much as there is time for in this turn. Says how much that was, and
    /// whether there is news.
    fn ingest(&mut self, bytes: &[u8], began: Instant) -> (usize, bool) {
        let (mut done, mut news) = (0, false);
        while done < bytes.len() && (done == 0 || began.elapsed() < TURN_TIME) {
            let end = bytes.len().min(done + self.slice);
            news |= self.take(|terminal, control| {
                let mut ingested = terminal.ingest(&bytes[done..end], control);
                if end == bytes.len() {
                    ingested.news |= terminal.confirm_by_editor(control);
                }
                ingested
            });
            done = end;
        }
        (done, news)
    }

    /// Has the terminal take something, queues what it answers and tells whoever waits. True where there is news.
    ///
    /// The answer is queued before anybody can see what the terminal took: a `talk` that found its command ended types the
    /// next one behind the answers to the one before.
    fn take(&mut self, take: impl FnOnce(&mut TerminalState, &Control) -> Ingested) -> bool {
        let (has_replies, news) = {
            let mut terminal = self.shared.lock();
            let Ingested { replies, news } = take(&mut terminal, &self.control);
            self.slice = slice_of(terminal.emulator.size());
            let has_replies = !replies.is_empty() && self.takes_answers();
            if has_replies {
                self.shared.outbox().answer(replies);
            }
            (has_replies, news)
        };
        if has_replies {
            self.write(Ok(()));
        }
        self.shared.publish(news);
        news
    }

    /// The program has read most of the answers to what it asked before.
    fn takes_answers(&self) -> bool {
        self.shared.outbox().takes_answers(self.control.unread().unwrap_or(0))
    }

    /// Writes as much as there is room for.
    fn write(&mut self, result: io::Result<()>) {
        self.shared.outbox().write(result, |bytes| self.pty.try_write(bytes));
    }
}

fn slice_of(size: Size) -> usize {
    (SLICE_CELLS / (usize::from(size.cols()) * usize::from(size.rows()))).clamp(LEAST_SLICE, PIECE)
}

async fn sleep_until(deadline: Option<Instant>) {
    if let Some(deadline) = deadline {
        tokio::time::sleep_until(deadline.into()).await;
    }
}
