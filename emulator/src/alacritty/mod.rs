//! The primary engine: `alacritty_terminal`'s grid and `Term`, with our parser in front and our corrections
//! around it.
//!
//! The only module that names `alacritty_terminal`. `machine` holds the state, `csi`, `osc` and `sgr` give
//! sequences their meaning, `setting` reports settings, `print`, `cluster`, `edit`, `margins`, `rectangle`, `saved` and `resize` do the work where `Term` is slow or
//! wrong, `work` bounds what all of them
//! may cost, `drain` moves finished lines into the history, `cells` reads cells.

mod cells;
mod cluster;
mod csi;
mod drain;
mod edit;
mod machine;
mod margins;
mod modes;
mod occupancy;
mod osc;
mod print;
mod rectangle;
mod resize;
mod saved;
mod setting;
mod sgr;
mod work;

use std::time::Duration;

use alacritty_terminal::grid::{Dimensions, Row as GridRow};
use alacritty_terminal::index::Line;
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::Cell as GridCell;
use alacritty_terminal::vte::ansi::CursorShape as EngineCursorShape;

use self::drain::row_at;
use self::machine::Machine;
use crate::engine::{Engine, Limits};
use crate::history::History;
use crate::parser::Parser;
use crate::reply::Replies;
use crate::screen::{Buffer, Cell, Cursor, CursorShape, Modes, Mouse, Row, Screen};
use crate::size::Size;
use crate::sync::{Held, Hold};

/// The engine.
pub(crate) struct Alacritty {
    parser: Parser,
    machine: Machine,
    /// The synchronized update that is open.
    held: Option<Held>,
    /// The update that is being shown.
    shown: Shown,
    /// What came behind it.
    behind: Vec<u8>,
}

/// Bytes of an update, and how many of them are on the screen.
#[derive(Debug, Default)]
struct Shown {
    bytes: Vec<u8>,
    at: usize,
}

/// What a combining mark takes at most, with the memory that a cell needs for its first one.
const MARK_BYTES: usize = 176;
/// Bytes of an update times rows of the screen that are shown in one go; the rest with the next bytes that come, or with a
/// tick. Some sequences of few bytes touch every row.
const SHOWN_AT_ONCE: usize = 256 << 10;

impl Alacritty {
    pub(crate) fn new(size: Size, limits: Limits) -> Self {
        Self {
            parser: Parser::default(),
            machine: Machine::new(size, limits),
            held: None,
            shown: Shown::default(),
            behind: Vec::new(),
        }
    }

    fn show_if_due(&mut self, now: Duration) {
        if self.held.as_ref().is_some_and(|held| now > held.deadline()) {
            self.show_held();
        }
    }

    /// The update that is open is to be shown, as far as it came.
    fn show_held(&mut self) {
        if let Some(held) = self.held.take() {
            // Bytes behind an update that is still being shown are not looked at, so no other can be complete.
            self.shown = Shown { bytes: held.into_bytes(), at: 0 };
        }
    }

    /// Goes on with an update that is to be shown, by so many bytes at most. Returns how many there were.
    fn show(&mut self, most: usize) -> usize {
        let Shown { bytes, at } = &mut self.shown;
        let end = bytes.len().min(at.saturating_add(most));
        let piece = &bytes[*at..end];
        self.machine.showing_sync = true;
        self.machine.work.show_held(true);
        self.parser.advance(&mut self.machine, piece);
        self.machine.showing_sync = false;
        self.machine.work.show_held(false);
        let count = piece.len();
        *at = end;
        if end == bytes.len() {
            self.shown = Shown::default();
        }
        count
    }

    fn is_showing(&self) -> bool {
        !self.shown.bytes.is_empty()
    }

    /// Takes bytes behind those that wait: all of them, and of an update that becomes complete with them as much as is shown
    /// in one go.
    fn take(&mut self, now: Duration, bytes: &[u8]) {
        let most = SHOWN_AT_ONCE / self.machine.rows() + bytes.len();
        if self.behind.is_empty() {
            self.take_up_to(most, now, bytes);
        } else {
            let mut waiting = std::mem::take(&mut self.behind);
            waiting.extend_from_slice(bytes);
            self.take_up_to(most, now, &waiting);
        }
    }

    fn take_up_to(&mut self, most: usize, now: Duration, bytes: &[u8]) {
        let (mut left, mut rest) = (most, bytes);
        loop {
            if self.is_showing() {
                left -= self.show(left);
            }
            if rest.is_empty() {
                return;
            }
            if left == 0 || self.is_showing() {
                self.behind = rest.to_vec();
                return;
            }
            let piece = &rest[..rest.len().min(left)];
            let taken = match &mut self.held {
                None => self.parser.advance(&mut self.machine, piece),
                Some(held) => match held.offer(piece) {
                    Hold::Open => piece.len(),
                    Hold::Complete(taken) => {
                        self.show_held();
                        taken
                    }
                },
            };
            left -= taken;
            rest = &rest[taken..];
            if std::mem::take(&mut self.machine.sync_begun) {
                self.held = Some(Held::new(now));
            }
        }
    }

    fn plain_row(&self, source: &GridRow<GridCell>) -> Row {
        let cells = source[..].iter().map(|cell| Cell {
            c: cell.c,
            marks: cell.zerowidth().unwrap_or_default().to_vec(),
            width: cells::width(cell),
            style: cells::style(cell),
            link: self.machine.links.uri(cells::link(cell)),
        });
        Row { cells: cells.collect(), wrapped: cells::is_wrapped(source) }
    }
}

impl Engine for Alacritty {
    fn feed(&mut self, now: Duration, bytes: &[u8]) -> Replies {
        self.show_if_due(now);
        self.take(now, bytes);
        self.machine.answers.take()
    }

    fn tick(&mut self, now: Duration) -> Replies {
        self.show_if_due(now);
        self.take(now, &[]);
        self.machine.answers.take()
    }

    fn flush(&mut self) -> Replies {
        // What waits behind an update may open another, which is shown too.
        while self.is_showing() || !self.behind.is_empty() || self.held.is_some() {
            self.show_held();
            let behind = std::mem::take(&mut self.behind);
            self.take_up_to(usize::MAX, Duration::MAX, &behind);
        }
        self.machine.answers.take()
    }

    fn sync_deadline(&self) -> Option<Duration> {
        match self.is_showing() || !self.behind.is_empty() {
            true => Some(Duration::ZERO),
            false => self.held.as_ref().map(Held::deadline),
        }
    }

    fn size(&self) -> Size {
        self.machine.size()
    }

    fn resize(&mut self, size: Size) {
        if size != self.size() {
            self.machine.resize(size);
        }
    }

    fn buffer(&self) -> Buffer {
        self.machine.buffer()
    }

    fn screen(&self) -> Screen {
        Screen {
            size: self.size(),
            rows: (0..self.machine.rows())
                .map(|row| self.plain_row(&self.machine.term.grid()[Line(row as i32)]))
                .collect(),
            cursor: self.cursor(),
            modes: self.modes(),
            title: self.machine.titles.current().map(str::to_owned),
            buffer: self.buffer(),
        }
    }

    fn cursor(&self) -> Cursor {
        let term = &self.machine.term;
        let style = term.cursor_style();
        Cursor {
            col: self.machine.col() as u16,
            row: self.machine.row() as u16,
            visible: term.mode().contains(TermMode::SHOW_CURSOR),
            shape: match style.shape {
                EngineCursorShape::Underline => CursorShape::Underline,
                EngineCursorShape::Beam => CursorShape::Beam,
                _ => CursorShape::Block,
            },
            blinking: style.blinking,
        }
    }

    fn modes(&self) -> Modes {
        let mode = self.machine.term.mode();
        let buffer = self.machine.buffer() as usize;
        Modes {
            application_cursor: mode.contains(TermMode::APP_CURSOR),
            application_keypad: mode.contains(TermMode::APP_KEYPAD),
            bracketed_paste: mode.contains(TermMode::BRACKETED_PASTE),
            focus_events: mode.contains(TermMode::FOCUS_IN_OUT),
            mouse: if mode.contains(TermMode::MOUSE_MOTION) {
                Mouse::Motion
            } else if mode.contains(TermMode::MOUSE_DRAG) {
                Mouse::Drag
            } else if mode.contains(TermMode::MOUSE_REPORT_CLICK) {
                Mouse::Click
            } else {
                Mouse::Off
            },
            sgr_mouse: mode.contains(TermMode::SGR_MOUSE),
            newline: mode.contains(TermMode::LINE_FEED_NEW_LINE),
            wrap: mode.contains(TermMode::LINE_WRAP),
            kitty_keyboard: self.machine.keyboards[buffer].flags(),
            synchronized: self.held.is_some(),
        }
    }

    fn bells(&self) -> u64 {
        self.machine.bells
    }

    fn history(&self) -> &History {
        &self.machine.history
    }

    fn history_mut(&mut self) -> &mut History {
        &mut self.machine.history
    }

    fn epoch(&self) -> u64 {
        self.machine.epoch
    }

    fn drained_rows(&self) -> u64 {
        self.machine.drained_rows
    }

    fn live_rows(&self) -> usize {
        self.machine.term.grid().total_lines()
    }

    fn row_is_wrapped(&self, row: usize) -> bool {
        cells::is_wrapped(row_at(self.machine.term.grid(), row))
    }

    fn row_has_text(&self, row: usize) -> bool {
        cells::has_text(row_at(self.machine.term.grid(), row))
    }

    fn push_row(&self, row: usize, out: &mut String) {
        cells::push_text(row_at(self.machine.term.grid(), row), self.machine.written(row), out);
    }

    fn row_cells(&self, row: usize) -> Row {
        self.plain_row(row_at(self.machine.term.grid(), row))
    }

    fn look_at_main(&mut self) {
        self.machine.look_at_main();
    }

    fn back_to_active(&mut self) {
        self.machine.back_to_active();
    }

    fn shrink(&mut self) {
        self.machine.drain_everything();
    }

    fn heap_bytes(&self) -> usize {
        let updates =
            self.held.as_ref().map_or(0, Held::heap_bytes) + self.shown.bytes.capacity() + self.behind.capacity();
        let cells = self.machine.links.heap_bytes() + self.machine.marks * MARK_BYTES;
        self.parser.heap_bytes() + self.machine.history.heap_bytes() + updates + cells
    }
}
