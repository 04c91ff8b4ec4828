//! What a session tells a recording of it.
//!
//! The marks that our start-up files make a shell print carry the session's secret and mean nothing to a player: they
//! are taken out, in every kind of recording.

use kpty_emulator::Size;

use super::Session;
use super::state::{TerminalState, without_marks};
use crate::error::{Error, Result};
use crate::model::Secrets;
use crate::recording::{Options, Recorder, Released, Tap, paint};
use kpty_guard::Redactor;

/// Bytes of a sequence without an end that are waited for; what is longer is none of our marks.
const LONGEST_OPEN: usize = 8 << 10;

/// A tap, and the beginning of a sequence that may be a mark.
pub(super) struct Tapped {
    tap: Tap,
    open: Vec<u8>,
}

impl Tapped {
    pub(super) fn new(tap: Tap) -> Self {
        Self { tap, open: Vec::new() }
    }

    fn output(&mut self, bytes: &[u8]) {
        self.open.extend_from_slice(bytes);
        let end = if self.open.len() > LONGEST_OPEN { self.open.len() } else { open_sequence(&self.open) };
        let whole: Vec<u8> = self.open.drain(..end).collect();
        self.tap.output(&without_marks(&whole));
    }
}

/// Where an operating system command begins that has no end yet; the length where there is none.
fn open_sequence(bytes: &[u8]) -> usize {
    if bytes.last() == Some(&0x1b) {
        // The end of one, perhaps, or the beginning.
        return memchr::memmem::rfind(bytes, b"\x1b]").filter(|&at| !is_ended(&bytes[at..])).unwrap_or(bytes.len() - 1);
    }
    memchr::memmem::rfind(bytes, b"\x1b]").filter(|&at| !is_ended(&bytes[at..])).unwrap_or(bytes.len())
}

fn is_ended(sequence: &[u8]) -> bool {
    sequence.contains(&0x07) || memchr::memmem::find(&sequence[1..], b"\x1b\\").is_some()
}

impl TerminalState {
    /// Call with everything that the program writes.
    pub(super) fn tell_tap(&mut self, bytes: &[u8]) {
        let Some(tapped) = &mut self.tapped else { return };
        match tapped.tap.is_ended() {
            true => self.tapped = None,
            false => tapped.output(bytes),
        }
    }

    /// The window changed.
    pub(super) fn resize_tap(&self, size: Size) {
        if let Some(tapped) = &self.tapped {
            tapped.tap.resize(size);
        }
    }

    /// The session's program ended.
    pub(super) fn close_tap(&mut self) {
        if let Some(tapped) = self.tapped.take() {
            tapped.tap.output(&without_marks(&tapped.open));
            tapped.tap.session_ended();
        }
    }
}

/// Everything that a session ever said.
pub struct WholeOutput {
    /// The bytes, without marks.
    bytes: Vec<u8>,
    /// The window they were meant for.
    pub size: Size,
}

impl WholeOutput {
    /// The bytes, redacted; without a redactor as they are, because the caller asked for that.
    pub fn release(self, redactor: Option<&Redactor>) -> Released {
        Released::output(self.bytes, redactor)
    }
}

impl Session {
    /// Begins a recording: first what the screen shows, then everything that comes. It writes a file: call it where that
    /// may take its time.
    pub fn record(&self, options: Options) -> Result<Recorder> {
        if let Some(exit) = self.exit() {
            return Err(self.exited(exit, None));
        }
        let is_masked = options.redactor.is_some();
        let path = options.path.clone();
        let size = self.shared.lock().emulator.size();
        let (recorder, tap) = Recorder::start(options, size)?;
        let mut terminal = self.shared.lock();
        if terminal.tapped.as_ref().is_some_and(|tapped| !tapped.tap.is_ended()) {
            drop(terminal);
            recorder.join();
            // It has nothing but a header.
            let _ = std::fs::remove_file(path);
            return Err(Error::invalid("op", "the session is being recorded already; stop that first"));
        }
        let now = terminal.emulator.size();
        if now != size {
            tap.resize(now);
        }
        if !terminal.ring.is_empty() {
            let painted = match is_masked {
                true => paint(terminal.masked_screen().cells()),
                false => paint(&terminal.emulator.screen()),
            };
            tap.output(&painted);
        }
        terminal.tapped = Some(Tapped::new(tap));
        if terminal.exit.is_some() {
            terminal.close_tap();
        }
        Ok(recorder)
    }

    /// Everything that was said, if all of it is kept and the window never changed.
    pub fn whole_output(&self) -> Option<WholeOutput> {
        let terminal = self.shared.lock();
        let (bytes, is_whole) = terminal.ring.slice(0, terminal.ring.end());
        (is_whole && !terminal.was_resized)
            .then(|| WholeOutput { bytes: without_marks(&bytes), size: terminal.emulator.size() })
    }

    /// Tells a recording what is typed, passwords only where nothing is to be masked.
    pub(super) fn record_input(&self, bytes: &[u8]) {
        let tap = self.shared.lock().tapped.as_ref().map(|tapped| tapped.tap.clone());
        let Some(tap) = tap.filter(Tap::wants_input) else { return };
        // A password is typed while nothing shows it.
        let may_show_secrets = !tap.is_masked() && self.secrets() == Secrets::Agent;
        if may_show_secrets || !self.hides_input() {
            tap.input(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_become_a_mark_is_waited_for() {
        for (bytes, expected) in [
            (&b"plain"[..], 5),
            (b"a\x1b]133;D", 1),
            (b"a\x1b]133;D\x07b", 10),
            (b"a\x1b]133;D\x1b\\b", 11),
            (b"a\x1b]133;D\x1b", 1),
            (b"ab\x1b", 2),
            (b"\x1b]0;t\x07\x1b]1", 6),
        ] {
            assert_eq!(open_sequence(bytes), expected, "{bytes:?}");
        }
    }
}
