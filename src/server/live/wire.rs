//! Messages of the live-screen WebSocket: each is one JSON object with its kind in `t`.
//!
//! Only the page and `kpty attach` use it; the format is not a stable interface. A screen is sent completely first,
//! then as changed rows. A row is a list of runs: text, colour, background, attributes.

use std::ops::Range;

use kpty_emulator::{Attributes, Cell, Color, Cursor, CursorShape, Modes, Mouse, Width};
use kpty_guard::Masked;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::masked::MaskedRow;

/// Attribute bit of a run with one character of two columns; the lower bits are [`Attributes`].
pub(crate) const WIDE: u16 = 1 << 15;
/// The terminal's default colour.
pub(crate) const DEFAULT_COLOR: i64 = -1;
/// Added to RGB values to distinguish them from palette indexes.
pub(crate) const RGB: i64 = 1 << 24;

/// A message of a client.
#[derive(Debug, Deserialize)]
#[serde(tag = "t", rename_all = "lowercase")]
pub(crate) enum Request {
    /// The sessions shown small, and the one shown large.
    Watch {
        #[serde(default)]
        small: Vec<String>,
        #[serde(default)]
        large: Option<String>,
    },
    /// The frames of this number have been drawn.
    Ack { s: u64 },
    /// Calls an action.
    Call { n: u64, args: Map<String, Value> },
    /// Requests rows above the screen.
    History { n: u64, id: String, from: u64, until: u64 },
    /// Subscribes to the traffic log.
    Traffic,
}

/// A frame as the server makes it; a client reads texts.
pub(crate) type ShownFrame = Frame<Masked>;
/// A run as the server makes it.
pub(crate) type ShownRun = Run<Masked>;

/// Screens or their changes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub(crate) struct Frames<T = String> {
    pub(crate) t: String,
    /// Sequence number to acknowledge.
    pub(crate) s: u64,
    pub(crate) frames: Vec<Frame<T>>,
}

/// One screen or its changes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub(crate) struct Frame<T = String> {
    pub(crate) id: String,
    pub(crate) cols: u16,
    pub(crate) rows: u16,
    /// Contains all rows; otherwise rows not in it are unchanged.
    pub(crate) full: bool,
    pub(crate) cursor: WireCursor,
    /// The alternate screen is active.
    pub(crate) alt: bool,
    pub(crate) title: Option<T>,
    /// Line number of each row, only for the large screen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) lines: Vec<u64>,
    /// Oldest line still in the history.
    pub(crate) oldest: u64,
    /// 0 no mouse, 1 clicks, 2 drags, 3 all motion.
    pub(crate) mouse: u8,
    /// Bracketed paste is enabled.
    pub(crate) paste: bool,
    /// Changed rows with their runs.
    pub(crate) changed: Vec<(u16, Vec<Run<T>>)>,
    /// How the program ended, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exit: Option<Exit>,
    /// Why there is no screen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<T>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Exit {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

/// The cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct WireCursor {
    pub(crate) col: u16,
    pub(crate) row: u16,
    pub(crate) visible: bool,
    /// 0 block, 1 underline, 2 beam.
    pub(crate) shape: u8,
    pub(crate) blinking: bool,
}

/// Text with uniform style: text, colour, background, attributes and [`WIDE`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Run<T = String>(pub(crate) T, pub(crate) i64, pub(crate) i64, pub(crate) u16);

impl From<Cursor> for WireCursor {
    fn from(cursor: Cursor) -> Self {
        let shape = match cursor.shape {
            CursorShape::Block => 0,
            CursorShape::Underline => 1,
            CursorShape::Beam => 2,
        };
        Self { col: cursor.col, row: cursor.row, visible: cursor.visible, shape, blinking: cursor.blinking }
    }
}

/// Encodes the mouse mode.
pub(crate) fn mouse(modes: &Modes) -> u8 {
    match modes.mouse {
        Mouse::Off => 0,
        Mouse::Click => 1,
        Mouse::Drag => 2,
        Mouse::Motion => 3,
    }
}

fn color(color: Color) -> i64 {
    match color {
        Color::Default => DEFAULT_COLOR,
        Color::Indexed(index) => i64::from(index),
        Color::Rgb(r, g, b) => RGB + i64::from(u32::from_be_bytes([0, r, g, b])),
    }
}

/// Encodes the runs of a row, without trailing invisible blanks.
pub(crate) fn runs(row: MaskedRow<'_>) -> Vec<ShownRun> {
    let is_nothing = |cell: &Cell| {
        let shows = Attributes::INVERSE | Attributes::UNDERLINE | Attributes::STRIKEOUT;
        let bits = cell.style.attributes.bits() & shows.bits();
        cell.c == ' ' && cell.marks.is_empty() && cell.style.bg == Color::Default && bits == 0
    };
    let length = row.cells.iter().rposition(|cell| !is_nothing(cell)).map_or(0, |last| last + 1);
    // Where the cells of each run are.
    let mut runs: Vec<Run<Range<usize>>> = Vec::new();
    let mut last_is_open = false;
    for (col, cell) in row.cells[..length].iter().enumerate() {
        let (fg, bg, bits) = (color(cell.style.fg), color(cell.style.bg), cell.style.attributes.bits());
        match cell.width {
            // The second half of a wide character; the gap before one that did not fit counts as a column, too.
            Width::Spacer if runs.last().is_some_and(|run| run.3 & WIDE != 0 && !last_is_open) => {
                last_is_open = true;
                continue;
            }
            Width::Double => {
                runs.push(Run(col..col + 1, fg, bg, bits | WIDE));
                last_is_open = false;
                continue;
            }
            _ => {}
        }
        match runs.last_mut() {
            Some(run) if last_is_open && (run.1, run.2, run.3) == (fg, bg, bits) => run.0.end = col + 1,
            _ => runs.push(Run(col..col + 1, fg, bg, bits)),
        }
        last_is_open = true;
    }
    runs.into_iter().map(|Run(cells, fg, bg, bits)| Run(row.text(cells), fg, bg, bits)).collect()
}

/// The runs of each row of a screen, as a client reads them.
#[cfg(test)]
pub(crate) fn read_runs(emulator: &mut kpty_emulator::Emulator) -> Vec<Vec<Run>> {
    let screen = crate::masked::screen(emulator, &kpty_guard::Redactor::off(), 0);
    let read = |Run(text, fg, bg, bits): ShownRun| Run(text.into_string(), fg, bg, bits);
    screen.rows().map(|row| runs(row).into_iter().map(read).collect()).collect()
}

#[cfg(test)]
mod tests {
    use kpty_emulator::{Emulator, Settings, Size};

    use super::*;

    fn first_row(output: &str) -> Vec<Run> {
        let settings = Settings { size: Size::new(10, 2).expect("a size"), ..Settings::default() };
        let mut emulator = Emulator::new(settings);
        let _ = emulator.feed(std::time::Duration::ZERO, output.as_bytes());
        read_runs(&mut emulator).remove(0)
    }

    fn run(text: &str, fg: i64, bg: i64, bits: u16) -> Run {
        Run(text.to_owned(), fg, bg, bits)
    }

    #[test]
    fn a_row_is_told_in_runs() {
        for (output, expected) in [
            ("", vec![]),
            ("plain", vec![run("plain", -1, -1, 0)]),
            (
                "a\x1b[31mb\x1b[1mc\x1b[0md",
                vec![run("a", -1, -1, 0), run("b", 1, -1, 0), run("c", 1, -1, 1), run("d", -1, -1, 0)],
            ),
            ("\x1b[48;2;1;2;3m \x1b[0m x", vec![run(" ", -1, RGB + 0x01_02_03, 0), run(" x", -1, -1, 0)]),
            ("日本x", vec![run("日", -1, -1, WIDE), run("本", -1, -1, WIDE), run("x", -1, -1, 0)]),
            ("123456789日", vec![run("123456789", -1, -1, 0)]),
            ("e\u{301}!", vec![run("e\u{301}!", -1, -1, 0)]),
        ] {
            let found = first_row(output);
            let found: Vec<_> = found
                .into_iter()
                .map(|run| {
                    Run(
                        run.0.trim_end().to_owned() + if run.0.trim_end().is_empty() { &run.0 } else { "" },
                        run.1,
                        run.2,
                        run.3,
                    )
                })
                .collect();
            assert_eq!(found, expected, "{output:?}");
        }
    }
}
