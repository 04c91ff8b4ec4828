//! What a session has said: raw ring, emulator, marks and commands, behind one lock.
//!
//! [`TerminalState::ingest`] is the whole hot path: it never waits, types or asks the system anything but through a
//! [`Probe`]. What the marks in the stream mean is decided in `evidence.rs`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use kpty_emulator::{Buffer, Emulator, Limits, Mode, Place, Request, Settings, Size, Which};

use super::dialect::Dialect;
use super::dropped::StatusQuestion;
use super::evidence::{MarkedShell, Phase};
use super::foreign::ForeignLines;
use super::marks::{Mark, Scanner};
use super::output::{self, Stretch};
use super::proposal::Check;
use super::record::Tapped;
use super::ring::Ring;
use crate::ids::CommandId;
use crate::masked::{self, MaskedRows, MaskedScreen, Page};
use crate::model::ExitInfo;
use crate::terminal::Output;
use crate::terminal::commands::{Command, CommandLog, Edge, Evidence, Point};
use crate::terminal::local::pty::Waiting;
use kpty_guard::{KeyWatch, Masked, Redactor};

/// Lines of private keys that are remembered at most.
const MOST_KEY_LINES: usize = 1_024;
/// Lines before a read that its filter sees: one may name the value on the next.
const FILTER_LEAD: u64 = 2;
/// The same once a private key was shown; the longest have about a hundred lines.
const KEY_FILTER_LEAD: u64 = 130;

/// What only the system can tell about the terminal.
pub(super) trait Probe {
    /// The process group that has the terminal.
    fn foreground_group(&self) -> Option<u32>;
    /// No program has the terminal in raw mode.
    fn is_canonical(&self) -> bool;
    /// The session's own program.
    fn pid(&self) -> u32;
    /// What that program waits for.
    fn waiting(&self) -> Option<Waiting>;
    /// How deep the calls of that program are.
    fn call_depth(&self) -> Option<u64>;
    /// It has these arguments, its name apart; true where nobody can tell.
    fn has_arguments(&self, args: &[String]) -> bool;
    /// The terminal has output that was not taken yet.
    fn has_output(&self) -> bool;
}

/// What came of a piece of output.
#[derive(Debug, Default)]
pub(super) struct Ingested {
    /// What the terminal answers.
    pub(super) replies: Vec<u8>,
    /// A command began or ended, or a prompt came.
    pub(super) news: bool,
}

/// What somebody typed without Enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TypedText {
    /// Nothing that stays.
    None,
    /// Characters.
    Text,
    /// Keys that may have moved the cursor.
    Edited,
}

/// Of how many who had the terminal it is known how they read.
const READERS: usize = 8;

/// How a shell reads, as far as it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// It asks for pastes.
    Pastes,
    /// It did not ask for bracketed pastes within the timeout; its line editor had the terminal.
    Edits,
    /// The same, and nobody edited.
    Plain,
}

/// The state of a session that its output determines.
pub(super) struct TerminalState {
    pub(super) ring: Ring,
    pub(super) emulator: Emulator,
    pub(super) commands: CommandLog,
    pub(super) shell: Option<MarkedShell>,
    /// Where the shell said it is.
    pub(super) cwd: Option<String>,
    pub(super) exit: Option<ExitInfo>,
    pub(super) last_activity: SystemTime,
    /// Offset at which output last came, for whoever waits for quiet.
    pub(super) last_output: Instant,
    /// When something was last typed, by whomever.
    pub(super) last_typed: Instant,
    /// What somebody may have left on the line.
    pub(super) typed: TypedText,
    /// Somebody typed a line since the last `talk` began.
    pub(super) has_typed_line: bool,
    /// The terminal answered something since the last `talk` began, and maybe nobody read that.
    pub(super) has_answered: bool,
    /// A shell that dropped a command is asked for its status.
    pub(super) status_question: Option<StatusQuestion>,
    /// When the window changed last.
    pub(super) resized_at: Option<Instant>,
    /// The lines that somebody typed since the last command of ours.
    pub(super) foreign: ForeignLines,
    /// The dialect of a shell on another machine.
    pub(super) dialect: Option<Dialect>,
    /// How those read who had the terminal, by process group, newest last; at most `READERS`.
    readers: Vec<(u32, Reader)>,
    /// How deep the calls of programs were that somebody typed at for the first time, by process group, newest last; at
    /// most `READERS`. Of a shell, that is most likely its prompt.
    typed_at: Vec<(u32, u64)>,
    pub(super) redactor: Arc<Redactor>,
    /// A recording of it.
    pub(super) tapped: Option<Tapped>,
    pub(super) was_resized: bool,
    /// The command of whose output the emulator notes what leaves the history.
    evicted_of: Option<CommandId>,
    keys: KeyWatch,
    /// Lines of the private keys that were shown, newest last.
    key_lines: VecDeque<String>,
    scanner: Scanner,
    epoch: Instant,
}

impl TerminalState {
    pub(super) fn new(size: Size, ring_bytes: usize, shell: Option<MarkedShell>, redactor: Redactor) -> Self {
        let now = Instant::now();
        Self {
            ring: Ring::new(ring_bytes),
            emulator: Emulator::new(Settings { size, limits: Limits::default(), ..Settings::default() }),
            commands: CommandLog::default(),
            shell,
            cwd: None,
            exit: None,
            last_activity: SystemTime::now(),
            last_output: now,
            last_typed: now,
            typed: TypedText::None,
            has_typed_line: false,
            has_answered: false,
            status_question: None,
            resized_at: None,
            foreign: ForeignLines::default(),
            dialect: None,
            readers: Vec::new(),
            typed_at: Vec::new(),
            redactor: Arc::new(redactor),
            tapped: None,
            was_resized: false,
            evicted_of: None,
            keys: KeyWatch::default(),
            key_lines: VecDeque::new(),
            scanner: Scanner::default(),
            epoch: now,
        }
    }

    /// How a process group reads, where that was seen.
    pub(super) fn reader(&self, group: u32) -> Option<Reader> {
        self.readers.iter().find(|(other, _)| *other == group).map(|&(_, reader)| reader)
    }

    pub(super) fn note_reader(&mut self, group: u32, reader: Reader) {
        self.readers.retain(|&(other, _)| other != group);
        if self.readers.len() == READERS {
            self.readers.remove(0);
        }
        self.readers.push((group, reader));
    }

    /// How deep the calls of a program were when it was typed at for the first time.
    pub(super) fn first_typed_at(&self, group: u32) -> Option<u64> {
        self.typed_at.iter().find(|(other, _)| *other == group).map(|&(_, depth)| depth)
    }

    pub(super) fn note_typed_at(&mut self, group: u32, depth: u64) {
        if self.typed_at.len() == READERS {
            self.typed_at.remove(0);
        }
        self.typed_at.push((group, depth));
    }

    /// Takes output of the program.
    pub(super) fn ingest(&mut self, bytes: &[u8], probe: &dyn Probe) -> Ingested {
        let mut ingested = Ingested::default();
        let mut rest = bytes;
        while let Some((end, mark)) = self.scanner.next(rest) {
            self.feed(&rest[..end], &mut ingested);
            rest = &rest[end..];
            self.on_mark(mark, probe, &mut ingested);
        }
        self.feed(rest, &mut ingested);
        self.look_for_sentinels(&mut ingested);
        self.last_activity = SystemTime::now();
        self.last_output = Instant::now();
        ingested
    }

    /// Whoever asked may not read the answer. Then it stands on the shell's next line, and is taken back like anything
    /// else that stands there.
    fn note_replies(&mut self, replies: &[u8]) {
        if replies.is_empty() {
            return;
        }
        // At the prompt a line editor may have asked, or a program in the background.
        let is_at_prompt = self.shell.as_ref().is_some_and(|shell| shell.phase == Phase::Prompt);
        self.has_answered |= !is_at_prompt;
        if self.typed == TypedText::None {
            self.typed = TypedText::Text;
        }
    }

    pub(super) fn feed(&mut self, bytes: &[u8], ingested: &mut Ingested) {
        if bytes.is_empty() {
            return;
        }
        self.tell_tap(bytes);
        self.ring.push(bytes);
        self.learn(bytes);
        let replies = self.emulator.feed(self.epoch.elapsed(), bytes).bytes;
        self.note_replies(&replies);
        ingested.replies.extend(replies);
    }

    /// Remembers private keys: a read may see their lines without the one that says what they are.
    fn learn(&mut self, bytes: &[u8]) {
        let lines = self.keys.feed(bytes);
        if lines.is_empty() {
            return;
        }
        self.key_lines.extend(lines);
        let surplus = self.key_lines.len().saturating_sub(MOST_KEY_LINES);
        self.key_lines.drain(..surplus);
        self.redactor = Arc::new(self.redactor.with_key_lines(self.key_lines.iter().cloned()));
    }

    /// When [`TerminalState::tick`] is due.
    pub(super) fn next_tick(&self) -> Option<Instant> {
        let sync = self.emulator.sync_deadline().map(|deadline| self.epoch + deadline);
        sync.into_iter().chain(self.next_check()).min()
    }

    /// Shows a synchronized update that stays open, and accepts an announced end if the shell reads again.
    pub(super) fn tick(&mut self, check: Check) -> Ingested {
        let replies = self.emulator.tick(self.epoch.elapsed()).bytes;
        let mut ingested = Ingested { replies, news: self.apply_check(check) };
        self.look_for_sentinels(&mut ingested);
        ingested
    }

    /// Where the output stands.
    pub(super) fn point(&mut self) -> Point {
        Point { offset: self.ring.end(), place: self.emulator.place() }
    }

    /// Where the output stands, and the line there.
    pub(super) fn edge(&mut self) -> Edge {
        let point = self.point();
        Edge { point, line: self.line(point.place.line), at: Instant::now() }
    }

    /// True when there is text at the cursor or below it.
    pub(super) fn is_over_text(&mut self) -> bool {
        let Place { line, chars, .. } = self.emulator.place();
        let next = self.emulator.read(&Request { max_lines: Some(0), ..Request::new(Mode::Tail) }, None).next_line;
        next > line + u64::from(chars > 0)
    }

    /// Reads rendered text, secrets masked before anything is cut.
    pub(super) fn read_masked(&mut self, request: &Request) -> Page {
        let request = Request { filter_lead: request.filter_lead.max(self.filter_lead()), ..*request };
        masked::read(&mut self.emulator, &request, &self.redactor)
    }

    /// The visible cells, secrets masked.
    pub(super) fn masked_screen(&mut self) -> MaskedScreen {
        let lead = self.filter_lead();
        masked::screen(&mut self.emulator, &self.redactor, lead)
    }

    /// The cells of whole lines, secrets masked.
    pub(super) fn masked_rows(&mut self, lines: std::ops::Range<u64>, which: Which) -> MaskedRows {
        let lead = self.filter_lead();
        masked::rows(&mut self.emulator, &self.redactor, lead, lines, which)
    }

    /// Lines before what is shown that say what it is.
    fn filter_lead(&self) -> u64 {
        if self.key_lines.is_empty() { FILTER_LEAD } else { KEY_FILTER_LEAD }
    }

    /// Raw output between two offsets as text, secrets masked; those that begin before it too.
    pub(super) fn masked_raw(&self, from: u64, until: u64, clean: fn(&[u8]) -> Vec<u8>) -> Masked {
        let (lead, bytes) = self.ring.slice_with_lead(from, until, self.filter_lead() as usize);
        let mut all = clean(&lead);
        let start = all.len();
        all.extend(clean(&bytes));
        self.redactor.mask_window(&all, start)
    }

    /// The text of the cursor's line, up to the cursor.
    pub(super) fn line_before_cursor(&mut self) -> String {
        let Place { line, chars, .. } = self.emulator.place();
        let text = self.line(line);
        text.chars().chain(std::iter::repeat(' ')).take(chars).collect()
    }

    pub(super) fn line(&mut self, number: u64) -> String {
        let range = Mode::Range { from: number, until: Some(number + 1) };
        self.emulator.read(&Request::new(range), None).text
    }

    /// What a command printed, so far or in all.
    pub(super) fn output_of(&mut self, id: CommandId, max_chars: usize) -> Option<Output> {
        match &self.commands.get(id)?.output {
            Some(output) => Some(output.clone()),
            None => self.kept_output_of(id, max_chars, self.notes_evicted_of(id)),
        }
    }

    /// The lines of a command that the history has.
    pub(super) fn kept_lines_of(&mut self, id: CommandId) -> Option<Output> {
        self.kept_output_of(id, usize::MAX, false)
    }

    fn kept_output_of(&mut self, id: CommandId, max_chars: usize, notes_evicted: bool) -> Option<Output> {
        let command = self.commands.get(id)?;
        let (start, is_over_text) = (command.start, self.is_redrawn(command));
        let Some(start) = start else { return Some(Output::default()) };
        let end = match &command.end {
            Some(end) => end.edge.clone(),
            None => self.edge(),
        };
        Some(self.stretch(&Stretch { start, end: &end, is_over_text, notes_evicted }, max_chars))
    }

    /// Other text may stand where a command printed: below its start, or drawn there when the window changed.
    pub(super) fn is_redrawn(&self, command: &Command) -> bool {
        command.is_over_text || self.resized_at.is_some_and(|at| at >= command.since)
    }

    /// Has the emulator note what leaves the history of a command that somebody waits for.
    pub(super) fn note_evicted(&mut self, id: CommandId, from: Point) {
        let Some(max_chars) = self.commands.get(id).and_then(|command| command.wanted) else { return };
        if from.place.buffer == Buffer::Main {
            self.emulator.keep_evicted(from.place.line, max_chars);
            self.evicted_of = Some(id);
        }
    }

    pub(super) fn notes_evicted_of(&self, id: CommandId) -> bool {
        self.evicted_of == Some(id)
    }

    /// The output of a command is complete.
    pub(super) fn end_evicted(&mut self, id: CommandId, end: Place) {
        if self.evicted_of == Some(id) && end.buffer == Buffer::Main {
            self.emulator.end_evicted(end.line + u64::from(end.chars > 0));
        }
    }

    /// What the finished parts of an unfinished command printed.
    pub(super) fn output_before_continuation(&mut self, id: CommandId, max_chars: usize) -> Option<Output> {
        let command = self.commands.get(id)?;
        let (start, end, is_over_text) = (command.start?, command.incomplete.clone()?, command.is_over_text);
        let notes_evicted = self.notes_evicted_of(id);
        Some(self.stretch(&Stretch { start, end: &end, is_over_text, notes_evicted }, max_chars))
    }

    pub(super) fn stretch(&mut self, stretch: &Stretch<'_>, max_chars: usize) -> Output {
        let redactor = Arc::clone(&self.redactor);
        output::extract(&mut self.emulator, &self.ring, stretch, max_chars, &redactor)
    }

    /// The raw bytes of a command, as text.
    pub(super) fn raw_output_of(&self, id: CommandId) -> Masked {
        let Some(Command { start: Some(start), end, .. }) = self.commands.get(id) else { return Masked::default() };
        let until = end.as_ref().map_or(self.ring.end(), |end| end.edge.point.offset);
        self.masked_raw(start.offset, until, without_marks)
    }

    /// The session's program ended.
    pub(super) fn on_exit(&mut self, exit: ExitInfo) {
        let edge = self.edge();
        let open: Vec<_> = self.commands.open().map(|command| command.id).collect();
        for id in open {
            // Without a prompt, an end that the shell announced was its own.
            if let Some(command) = self.commands.get_mut(id) {
                command.candidate = None;
            }
            self.finish(id, exit.status(), Evidence::ProcessExit, edge.clone());
        }
        self.exit = Some(exit);
        self.close_tap();
    }

    /// Another window.
    pub(super) fn resize(&mut self, size: Size) {
        self.was_resized |= size != self.emulator.size();
        self.resized_at = Some(Instant::now());
        self.emulator.resize(size);
        self.resize_tap(size);
    }

    /// Somebody other than `talk` typed. A program in raw mode takes every key at once; otherwise what is typed may
    /// wait for the shell.
    pub(super) fn on_typed(&mut self, bytes: &[u8], may_wait: bool, group: Option<u32>) {
        self.foreign.add(bytes, group);
        if self.foreign.has_line() {
            // It may have begun or ended a shell far away.
            self.dialect = None;
        }
        let interrupts = bytes.iter().any(|byte| matches!(byte, 0x03 | 0x1a | 0x1c));
        if interrupts {
            self.commands.interrupt_open();
        }
        self.typed = match bytes.last() {
            _ if !may_wait => TypedText::None,
            // Enter, Ctrl-C, Ctrl-D, Ctrl-U, Ctrl-Z and the like leave nothing.
            Some(b'\r' | b'\n' | 0x03 | 0x04 | 0x15 | 0x1a | 0x1c) | None => TypedText::None,
            _ if self.typed == TypedText::Edited || bytes.contains(&0x1b) => TypedText::Edited,
            _ => TypedText::Text,
        };
        let enters = bytes.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0x03 | 0x04));
        self.has_typed_line |= enters;
        if let Some(shell) = &mut self.shell {
            shell.has_typed_ahead |= may_wait && enters;
            if enters && shell.phase == Phase::Prompt {
                shell.phase = Phase::Submitted;
            }
        }
    }
}

/// Takes the marks out of raw output: they are not the command's. An OSC 133 without a key is somebody else's, and stays.
pub(super) fn without_marks(bytes: &[u8]) -> Vec<u8> {
    let (mut scanner, mut kept, mut from) = (Scanner::default(), Vec::new(), 0);
    while let Some((end, mark)) = scanner.next(&bytes[from..]) {
        let stretch = &bytes[from..from + end];
        let is_ours = !matches!(mark, Mark::Paste(_));
        let start = memchr::memmem::rfind(stretch, b"\x1b]").filter(|_| is_ours);
        kept.extend_from_slice(&stretch[..start.unwrap_or(end)]);
        from += end;
    }
    kept.extend_from_slice(&bytes[from..]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_output_has_no_marks() {
        let raw = b"\x1b[?2004l\ra\x1b]133;D\x07b\x1b]7;file://k/x\x1b\\\x1b]133;D;0;k=k\x1b\\";
        assert_eq!(without_marks(raw), b"\x1b[?2004l\ra\x1b]133;D\x07b");
    }
}
