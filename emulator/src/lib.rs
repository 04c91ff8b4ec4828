//! Bytes of a terminal in, a true screen and clean text out.
//!
//! An [`Emulator`] does no I/O, owns no clock, spawns nothing and does not fail: the caller feeds it what a
//! program wrote, with the time, writes the [`Replies`] back, and reads the screen as text ([`Emulator::read`])
//! or as cells ([`Emulator::screen`]).
//!
//! ```
//! use std::time::Duration;
//! use kpty_emulator::{Emulator, Mode, Request, Settings, Size};
//!
//! let mut emulator = Emulator::new(Settings { size: Size::new(20, 3)?, ..Settings::default() });
//! let replies = emulator.feed(Duration::ZERO, b"\x1b[1mhello\x1b[0m\r\nworld\x1b[6n");
//! assert_eq!(replies.bytes, b"\x1b[2;6R");
//! let answer = emulator.read(&Request::new(Mode::Tail), None);
//! assert_eq!(answer.lines().collect::<Vec<_>>(), ["hello", "world"]);
//! assert_eq!(answer.line_numbers, [0, 1]);
//! # Ok::<(), kpty_emulator::SizeError>(())
//! ```
//!
//! Each logical line has a number, counted from the session's first line. While the line is live its text may
//! change; once it has left the live rows, number and text are final. A reader who follows by deltas applies
//! the returned lines by number and drops what is at or past `next_line` and before `oldest_line`; it then holds
//! exactly what a full read would give.

mod alacritty;
mod choice;
mod engine;
mod evicted;
mod history;
mod keyboard;
mod layout;
mod lines;
mod link;
mod marker;
pub mod palette;
mod parser;
mod read;
mod reply;
mod screen;
mod sheet;
mod size;
mod sync;
mod title;
mod vt100;

use std::time::Duration;

pub use crate::engine::{EngineKind, Limits};
pub use crate::evicted::Evicted;
pub use crate::history::Loss;
pub use crate::marker::{AlternateSeen, MainSeen, Marker, MarkerId, Markers};
pub use crate::read::{Answer, Delta, LineFilter, Mode, Request, Which};
pub use crate::reply::Replies;
pub use crate::screen::{
    Attributes, Buffer, Cell, Color, Cursor, CursorShape, Modes, Mouse, Row, Screen, Style, Width,
};
pub use crate::sheet::{Sheet, row_ends};
pub use crate::size::{MAX_COLS, MAX_ROWS, Size, SizeError};

use crate::alacritty::Alacritty;
use crate::choice::{changed_since, choose};
use crate::engine::Engine;
use crate::lines::{LineIndex, Lines};
use crate::read::Page;
use crate::vt100::Vt100;

/// How a terminal is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Width and height at the start.
    pub size: Size,
    /// The engine.
    pub engine: EngineKind,
    /// The bounds of its memory.
    pub limits: Limits,
}

/// A finished line with its looks, for pictures of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StyledLine {
    /// The text.
    pub text: String,
    /// Stretches of the text that look alike, as byte ranges, in order and without gaps.
    pub runs: Vec<(std::ops::Range<usize>, Style)>,
    /// The line was cut for its length; the next number goes on with it.
    pub continued: bool,
}

/// Where the cursor is in the text, which outlives the rows of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the logical line.
    pub line: u64,
    /// Characters of that line before the cursor.
    pub chars: usize,
    /// The screen it is on; lines of the alternate one have numbers of their own.
    pub buffer: Buffer,
}

/// What a terminal holds, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Lines that have left the live rows.
    pub history: usize,
    /// These, the cells, and what is held for strings and updates.
    pub total: usize,
}

/// Bytes of a cell of the engine.
const CELL_BYTES: usize = 24;
/// Rows that the engine adds at a time.
const ROWS_AT_ONCE: usize = 1_000;

/// A terminal without a window.
pub struct Emulator {
    engine: Box<dyn Engine>,
    limits: Limits,
    index: LineIndex,
    alternate_index: LineIndex,
    markers: Markers,
    generation: u64,
}

impl Emulator {
    /// A blank terminal.
    pub fn new(settings: Settings) -> Self {
        let Settings { size, engine, limits } = settings;
        let engine: Box<dyn Engine> = match engine {
            EngineKind::Alacritty => Box::new(Alacritty::new(size, limits)),
            EngineKind::Vt100 => Box::new(Vt100::new(size, limits)),
        };
        Self {
            engine,
            limits,
            index: LineIndex::default(),
            alternate_index: LineIndex::default(),
            markers: Markers::new(limits.markers),
            generation: 0,
        }
    }

    /// Takes what the program wrote, cut anywhere. `now` is the caller's clock, from any fixed start; it only
    /// serves to show a synchronized update that stays open for too long.
    pub fn feed(&mut self, now: Duration, bytes: &[u8]) -> Replies {
        self.generation += u64::from(!bytes.is_empty() || self.is_due(now));
        self.engine.feed(now, bytes)
    }

    /// When [`Emulator::tick`] should be called next, if nothing is fed before.
    pub fn sync_deadline(&self) -> Option<Duration> {
        self.engine.sync_deadline()
    }

    /// Shows a synchronized update that has been open for more than 150 ms.
    pub fn tick(&mut self, now: Duration) -> Replies {
        self.generation += u64::from(self.is_due(now));
        self.engine.tick(now)
    }

    fn is_due(&self, now: Duration) -> bool {
        self.sync_deadline().is_some_and(|deadline| now > deadline)
    }

    /// Shows an open synchronized update at once. For a read that must be current.
    pub fn flush(&mut self) -> Replies {
        self.generation += u64::from(self.sync_deadline().is_some());
        self.engine.flush()
    }

    /// Width and height.
    pub fn size(&self) -> Size {
        self.engine.size()
    }

    /// Changes the size. The main screen is reflowed; lines keep their numbers and, once final, their text.
    pub fn resize(&mut self, size: Size) {
        if size == self.size() {
            return;
        }
        self.generation += 1;
        self.engine.look_at_main();
        self.engine.prepare();
        self.index.update(&*self.engine, &self.limits);
        self.markers.before_resize(&Lines::new(&*self.engine, &self.index));
        self.engine.back_to_active();
        self.engine.resize(size);
    }

    /// Counts what happened to the terminal: two equal values mean that it shows the same.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Bells rung since the start.
    pub fn bells(&self) -> u64 {
        self.engine.bells()
    }

    /// Which of the two screens is shown.
    pub fn buffer(&self) -> Buffer {
        self.engine.buffer()
    }

    /// The screen as plain values.
    pub fn screen(&self) -> Screen {
        self.engine.screen()
    }

    /// What the program asked of keyboard, mouse and paste.
    pub fn modes(&self) -> Modes {
        self.engine.modes()
    }

    /// Where the next character goes, in the text.
    pub fn place(&mut self) -> Place {
        let buffer = self.engine.buffer();
        self.bring_index_up_to_date(buffer);
        let lines = self.lines(buffer);
        let Cursor { row, col, .. } = self.engine.cursor();
        let (row, col) = (usize::from(row), usize::from(col));
        Place { line: lines.line_of_screen_row(row), chars: lines.chars_before(row, col), buffer }
    }

    /// Where a place of the shown buffer is on the screen: its row, negative above the first one, and its column. `None`
    /// for a line that is no longer live.
    pub fn position(&mut self, place: Place) -> Option<(isize, usize)> {
        let buffer = self.engine.buffer();
        self.bring_index_up_to_date(buffer);
        let lines = self.lines(buffer);
        lines.position_of(place.line, place.chars).filter(|_| buffer == place.buffer)
    }

    /// The cursor.
    pub fn cursor(&self) -> Cursor {
        self.engine.cursor()
    }

    /// Takes back what a program left behind that would spoil the text of the next one: an open string or update,
    /// character sets, margins, insert and origin mode, wrapping, attributes, the mouse. Text, cursor and the
    /// choice of screen stay.
    pub fn settle(&mut self) {
        let _ = self.flush();
        self.generation += 1;
        // CAN ends an open sequence; DECSTR; mouse off. None of it is answered.
        let _ = self.engine.feed(Duration::ZERO, b"\x18\x1b[!p\x1b[?1000l\x1b[?1002l\x1b[?1003l");
    }

    /// Reads text. The filter, if any, sees every line whole before anything is cut.
    pub fn read(&mut self, request: &Request, filter: Option<&mut dyn LineFilter>) -> Answer {
        let behind = request.which == Which::Main && self.buffer() == Buffer::Alternate;
        if behind {
            self.engine.look_at_main();
        }
        let answer = self.read_shown(request, filter);
        if behind {
            self.engine.back_to_active();
        }
        answer
    }

    /// A finished line with its styles; `None` for a live line and for one that is gone.
    pub fn styled_line(&self, number: u64) -> Option<StyledLine> {
        let history = self.engine.history();
        let text = history.text(number)?.to_owned();
        let runs = history.looks(number).into_iter().map(|(range, look)| (range, look.style)).collect();
        Some(StyledLine { text, runs, continued: history.is_continued(number) })
    }

    /// The number of the line that each row of the screen belongs to, top to bottom.
    pub fn screen_lines(&mut self) -> Vec<u64> {
        let buffer = self.engine.buffer();
        self.bring_index_up_to_date(buffer);
        let lines = self.lines(buffer);
        (0..usize::from(self.engine.size().rows())).map(|row| lines.line_of_screen_row(row)).collect()
    }

    /// Rows of the kept text before a line, counted from the oldest that is kept, at the present width.
    pub fn rows_before(&mut self, line: u64) -> u64 {
        let buffer = self.engine.buffer();
        self.bring_index_up_to_date(buffer);
        self.lines(buffer).rows_before(line)
    }

    /// Rows of the kept text before the first row of the screen.
    pub fn rows_before_screen(&mut self) -> u64 {
        let buffer = self.engine.buffer();
        self.bring_index_up_to_date(buffer);
        self.lines(buffer).rows_before_screen()
    }

    /// The cells of whole lines, row by row, each row with the number of its line: live lines as they are, finished
    /// ones laid out at the present width. Lines that are not there are left out.
    pub fn rows(&mut self, wanted: std::ops::Range<u64>, which: Which) -> Vec<(u64, Row)> {
        let behind = which == Which::Main && self.buffer() == Buffer::Alternate;
        if behind {
            self.engine.look_at_main();
        }
        let buffer = self.engine.buffer();
        self.bring_index_up_to_date(buffer);
        let lines = self.lines(buffer);
        let cols = usize::from(self.engine.size().cols());
        let mut rows = Vec::new();
        for number in wanted.start.max(lines.oldest())..wanted.end.min(lines.screen_end()) {
            match lines.live_rows_of(number) {
                Some(live) => rows.extend(live.map(|row| (number, self.engine.row_cells(row)))),
                None => {
                    let line = self.styled_line(number);
                    let laid_out = line.map(|line| layout::rows_of(&line.text, &line.runs, cols));
                    rows.extend(laid_out.into_iter().flatten().map(|row| (number, row)));
                }
            }
        }
        if behind {
            self.engine.back_to_active();
        }
        rows
    }

    /// Gives memory of a quiet terminal back: rows above the screen become finished lines, and a larger window
    /// shows blank rows where it would have shown them again.
    pub fn shrink(&mut self) {
        self.generation += 1;
        self.engine.shrink();
        self.index = LineIndex::default();
    }

    /// A line that was cut because it is too long: the next one goes on with it.
    pub fn is_continued(&mut self, number: u64) -> bool {
        match self.engine.buffer() {
            Buffer::Main => {
                self.bring_index_up_to_date(Buffer::Main);
                self.lines(Buffer::Main).is_continued(number)
            }
            Buffer::Alternate => self.engine.history().is_continued(number),
        }
    }

    /// Notes from now on what the limits push out of the history, from a line on: the first `max_chars` characters, and
    /// a count of the rest. Of one stretch at a time; a new one replaces the one before.
    pub fn keep_evicted(&mut self, first: u64, max_chars: usize) {
        self.engine.history_mut().keep_evicted(first, max_chars);
    }

    /// The stretch of [`Emulator::keep_evicted`] ends before a line: what goes of later ones is none of it.
    pub fn end_evicted(&mut self, line: u64) {
        self.engine.history_mut().end_evicted(line);
    }

    /// What has gone of the stretch of [`Emulator::keep_evicted`].
    pub fn evicted(&self) -> Option<&Evicted> {
        self.engine.history().evicted()
    }

    /// Bytes of memory held for history, strings and held updates, without the grid's cells.
    pub fn heap_bytes(&self) -> usize {
        self.engine.heap_bytes()
    }

    /// Bytes of the history, and of everything together: an estimate, because the engine does not tell how many rows it
    /// has in reserve. Cheap enough to ask every few hundred kilobytes of output.
    pub fn memory(&self) -> Memory {
        let history = self.engine.history().used_bytes();
        Memory { history, total: self.heap_bytes() + self.cell_bytes() }
    }

    /// What a terminal of this size takes before anything is written: two screens of cells.
    pub fn memory_of_size(size: Size) -> usize {
        2 * usize::from(size.rows()) * usize::from(size.cols()) * CELL_BYTES
    }

    /// The engine allocates the rows above the screen a thousand at a time.
    fn cell_bytes(&self) -> usize {
        let size = self.size();
        let rows = self.engine.live_rows();
        let above = rows.saturating_sub(usize::from(size.rows())).next_multiple_of(ROWS_AT_ONCE);
        Self::memory_of_size(size) + above * usize::from(size.cols()) * CELL_BYTES
    }

    /// Shortens the history to about this many bytes, the oldest lines first. They count as pushed out by the limit.
    pub fn shorten_history(&mut self, max_bytes: usize) {
        self.generation += 1;
        self.engine.history_mut().shorten(max_bytes);
    }

    /// Reads the buffer that the engine shows now.
    fn read_shown(&mut self, request: &Request, filter: Option<&mut dyn LineFilter>) -> Answer {
        let buffer = self.engine.buffer();
        self.bring_index_up_to_date(buffer);
        let lines = self.lines(buffer);
        let cursor = self.engine.cursor();
        let size = self.engine.size();
        if let Mode::Delta { since } = request.mode {
            let seen = since.and_then(|id| self.markers.get(id));
            let (choice, outcome) = changed_since(&lines, buffer, seen, &*self.engine, request.max_lines);
            let page = Page::read(&lines, &choice, request, filter);
            let mut answer = page.into_answer(&lines, cursor, buffer, size);
            let marker = self.new_marker(buffer, since);
            answer.delta = Some(Delta {
                marker,
                marker_disposed: since.is_some() && outcome.missed != Some(0),
                missed_lines: if since.is_some() { outcome.missed } else { Some(0) },
                loss: outcome.loss,
            });
            return answer;
        }
        let choice = choose(&lines, request);
        Page::read(&lines, &choice, request, filter).into_answer(&lines, cursor, buffer, size)
    }

    /// The lines of the shown buffer; its index must be up to date.
    fn lines(&self, buffer: Buffer) -> Lines<'_> {
        let index = match buffer {
            Buffer::Main => &self.index,
            Buffer::Alternate => &self.alternate_index,
        };
        Lines::new(&*self.engine, index)
    }

    /// Call before the lines of the shown buffer are looked at.
    fn bring_index_up_to_date(&mut self, buffer: Buffer) {
        self.engine.prepare();
        let index = match buffer {
            Buffer::Main => &mut self.index,
            Buffer::Alternate => {
                self.alternate_index = LineIndex::default();
                &mut self.alternate_index
            }
        };
        index.update(&*self.engine, &self.limits);
    }

    /// A marker for what has just been read. On the alternate screen it also remembers what the reader had seen of
    /// the main one, so that nothing is lost on the way back.
    fn new_marker(&mut self, buffer: Buffer, since: Option<MarkerId>) -> MarkerId {
        let marker = match buffer {
            Buffer::Main => {
                let lines = Lines::new(&*self.engine, &self.index);
                Marker { main: MainSeen::new(&lines), alternate: None }
            }
            Buffer::Alternate => {
                let lines = Lines::new(&*self.engine, &self.alternate_index);
                let known = since.and_then(|id| self.markers.get(id)).map(|marker| marker.main.clone());
                let main = known.unwrap_or_else(|| MainSeen::nothing(self.engine.history().oldest()));
                Marker { main, alternate: Some(marker::hashes(&lines, 0..lines.next())) }
            }
        };
        self.markers.add(marker, since)
    }
}

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
