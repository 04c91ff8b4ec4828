//! What the rest of the crate needs from a terminal engine, and the choice between the two.
//!
//! An engine has *live rows*: the rows above the screen that it still holds, then the screen. Rows count from
//! the oldest live one. Logical lines that left the live rows are in the engine's [`History`].

use std::time::Duration;

use crate::history::History;
use crate::reply::Replies;
use crate::screen::{Buffer, Cursor, Modes, Row, Screen};
use crate::size::Size;

/// Which engine turns bytes into a screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineKind {
    /// `alacritty_terminal` with our corrections: the one to use.
    #[default]
    Alacritty,
    /// `vt100`: the second opinion. It answers no queries, does not reflow, and knows fewer sequences.
    Vt100,
}

/// The bounds of one terminal's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Logical lines kept after they left the live rows.
    pub history_lines: usize,
    /// Bytes that their text and looks may take; the oldest go first, about 64 KiB at a time.
    pub history_bytes: usize,
    /// Rows above the screen that stay as cells, so that a larger window can show them again.
    pub live_rows: usize,
    /// Characters of the longest logical line. A longer one is cut into lines that are marked as continued,
    /// at the end of a row, and never takes more than half of the live rows.
    pub longest_line: usize,
    /// Markers kept; the oldest goes first.
    pub markers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            history_lines: 10_000,
            history_bytes: 32 << 20,
            // The engine allocates rows a thousand at a time: fewer would save nothing, more would double it.
            live_rows: 1_000,
            longest_line: 32_768,
            markers: 256,
        }
    }
}

impl Limits {
    /// Rows after which a soft-wrapped line is cut.
    pub(crate) fn rows_of_longest_line(&self, size: Size) -> usize {
        (self.longest_line / usize::from(size.cols())).clamp(1, (self.live_rows / 2).max(1))
    }
}

/// A terminal without I/O.
pub(crate) trait Engine: Send {
    /// Takes output of the program. `now` is the caller's clock.
    fn feed(&mut self, now: Duration, bytes: &[u8]) -> Replies;
    /// Shows a synchronized update that has been open for too long.
    fn tick(&mut self, now: Duration) -> Replies;
    /// Shows an open synchronized update at once.
    fn flush(&mut self) -> Replies;
    /// When [`Engine::tick`] is due.
    fn sync_deadline(&self) -> Option<Duration>;

    fn size(&self) -> Size;
    fn resize(&mut self, size: Size);
    fn buffer(&self) -> Buffer;
    fn screen(&self) -> Screen;
    fn cursor(&self) -> Cursor;
    fn modes(&self) -> Modes;
    /// Bells rung so far.
    fn bells(&self) -> u64;

    /// Lines that left the live rows.
    fn history(&self) -> &History;
    fn history_mut(&mut self) -> &mut History;
    /// Changes when rows above the screen may have changed: resize, clear, reset.
    fn epoch(&self) -> u64;
    /// Rows that moved from the live rows into the history in this epoch.
    fn drained_rows(&self) -> u64;

    /// Called before rows are read.
    fn prepare(&mut self) {}
    /// Rows above the screen and the screen; on the alternate screen the screen alone.
    fn live_rows(&self) -> usize;
    /// The row's text goes on in the next row.
    fn row_is_wrapped(&self, row: usize) -> bool;
    fn row_has_text(&self, row: usize) -> bool;
    /// Appends the text of a row, without trailing blanks unless the row goes on.
    fn push_row(&self, row: usize, out: &mut String);

    /// The cells of a row.
    fn row_cells(&self, row: usize) -> Row;

    /// Puts the alternate screen aside, so that the calls above speak of the main one behind it.
    fn look_at_main(&mut self);
    /// Ends [`Engine::look_at_main`].
    fn back_to_active(&mut self);

    /// Gives up what is only kept for speed or for a larger window.
    fn shrink(&mut self);
    /// Bytes of memory held beside the cells.
    fn heap_bytes(&self) -> usize;
}
