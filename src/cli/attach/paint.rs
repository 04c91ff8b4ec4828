//! Frames of a session as what a person's terminal obeys. Keeps what the terminal shows; writes nothing itself.
//!
//! The session's screen stands in the upper left corner. What does not fit is cut at the right, and above so that the
//! cursor is always seen.

use std::fmt::Write as _;

use kpty_emulator::Attributes;

use crate::server::live::wire::{DEFAULT_COLOR, Frame, RGB, Run, WIDE, WireCursor};

/// Enters the alternate screen, does not wrap, takes pastes as such.
pub(super) const ENTER: &str = "\x1b[?1049h\x1b[?7l\x1b[?2004h\x1b[2J";
/// Takes back everything that may have been switched on.
pub(super) const LEAVE: &str =
    "\x1b[?2026l\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?2004l\x1b[0m\x1b[?7h\x1b[0 q\x1b[?25h\x1b[?1049l";

/// A person's terminal, as far as we wrote to it.
#[derive(Debug, Default)]
pub(super) struct Painter {
    cols: u16,
    height: u16,
    rows: Vec<Vec<Run>>,
    cursor: WireCursor,
    mouse: u8,
    /// The first row of the session that is shown.
    first: u16,
    /// Stands in the last row.
    notice: Option<String>,
}

impl Painter {
    /// A terminal of this size.
    pub(super) fn new(cols: u16, rows: u16) -> Self {
        Self { cols: cols.max(1), height: rows.max(1), ..Self::default() }
    }

    /// The first row of the session that is shown.
    pub(super) fn first_row(&self) -> u16 {
        self.first
    }

    /// Takes a frame. Returns what to write.
    pub(super) fn take(&mut self, frame: &Frame) -> String {
        if frame.full {
            self.rows = vec![Vec::new(); usize::from(frame.rows)];
        }
        let mut changed = Vec::new();
        for (index, runs) in &frame.changed {
            if let Some(row) = self.rows.get_mut(usize::from(*index)) {
                row.clone_from(runs);
                changed.push(*index);
            }
        }
        self.cursor = frame.cursor;
        let mut out = String::from("\x1b[?2026h\x1b[?25l");
        if self.mouse != frame.mouse {
            self.mouse = frame.mouse;
            // Motion is not passed on, so clicks are all that is asked for.
            out.push_str(if frame.mouse > 0 { "\x1b[?1000h\x1b[?1006h" } else { "\x1b[?1006l\x1b[?1000l" });
        }
        let first = self.wanted_first();
        if frame.full || first != self.first {
            self.first = first;
            self.paint_all(&mut out);
        } else {
            changed.into_iter().for_each(|index| self.paint_row(index, &mut out));
        }
        self.finish(&mut out);
        out
    }

    /// The terminal has another size. Returns what to write.
    pub(super) fn resize(&mut self, cols: u16, rows: u16) -> String {
        (self.cols, self.height) = (cols.max(1), rows.max(1));
        self.first = self.wanted_first();
        let mut out = String::from("\x1b[?2026h\x1b[?25l\x1b[0m\x1b[2J");
        self.paint_all(&mut out);
        self.finish(&mut out);
        out
    }

    /// Says something in the last row, or takes it away again. Returns what to write.
    pub(super) fn notice(&mut self, text: Option<String>) -> String {
        let had = self.notice.take();
        self.notice = text;
        let mut out = String::from("\x1b[?2026h\x1b[?25l");
        if had.is_some() && self.notice.is_none() {
            match usize::from(self.first) + usize::from(self.height) <= self.rows.len() {
                true => self.paint_row(self.first + self.height - 1, &mut out),
                false => drop(write!(out, "\x1b[{};1H\x1b[0m\x1b[K", self.height)),
            }
        }
        self.finish(&mut out);
        out
    }

    fn wanted_first(&self) -> u16 {
        let most = (self.rows.len() as u16).saturating_sub(self.height);
        (self.cursor.row + 1).saturating_sub(self.height).min(most)
    }

    fn paint_all(&self, out: &mut String) {
        for line in 0..self.height {
            match usize::from(self.first + line) < self.rows.len() {
                true => self.paint_row(self.first + line, out),
                false => drop(write!(out, "\x1b[{};1H\x1b[0m\x1b[K", line + 1)),
            }
        }
    }

    fn paint_row(&self, index: u16, out: &mut String) {
        let Some(line) = index.checked_sub(self.first).filter(|line| *line < self.height) else { return };
        let _ = write!(out, "\x1b[{};1H\x1b[0m", line + 1);
        let mut room = usize::from(self.cols);
        let mut look = (DEFAULT_COLOR, DEFAULT_COLOR, 0);
        for Run(text, fg, bg, bits) in &self.rows[usize::from(index)] {
            let width = if bits & WIDE != 0 { 2 } else { text.chars().count() };
            if look != (*fg, *bg, bits & !WIDE) {
                look = (*fg, *bg, bits & !WIDE);
                push_look(look, out);
            }
            if width > room {
                if bits & WIDE == 0 {
                    out.extend(text.chars().take(room));
                }
                room = 0;
                break;
            }
            out.push_str(text);
            room -= width;
        }
        // At the right edge there is nothing left to clear, and clearing would take the last character away.
        out.push_str(if room > 0 { "\x1b[0m\x1b[K" } else { "\x1b[0m" });
    }

    /// The notice and the cursor come last.
    fn finish(&self, out: &mut String) {
        if let Some(notice) = &self.notice {
            let text: String = notice.chars().take(usize::from(self.cols)).collect();
            let _ = write!(out, "\x1b[{};1H\x1b[0;7m{text}\x1b[0m\x1b[K", self.height);
        }
        let line = self.cursor.row.checked_sub(self.first).filter(|line| *line < self.height);
        let shape = 2 * (u16::from(self.cursor.shape) + 1) - u16::from(self.cursor.blinking);
        if let Some(line) = line.filter(|_| self.cursor.visible) {
            let col = self.cursor.col.min(self.cols - 1);
            let _ = write!(out, "\x1b[{};{}H\x1b[{shape} q\x1b[?25h", line + 1, col + 1);
        }
        out.push_str("\x1b[?2026l");
    }
}

/// Colours and attributes as SGR.
fn push_look((fg, bg, bits): (i64, i64, u16), out: &mut String) {
    out.push_str("\x1b[0");
    for parameter in Attributes::from_bits(bits).sgr() {
        let _ = write!(out, ";{parameter}");
    }
    for (color, base) in [(fg, 30), (bg, 40)] {
        let _ = match color {
            DEFAULT_COLOR => continue,
            0..=7 => write!(out, ";{}", base + color),
            8..=15 => write!(out, ";{}", base + 60 + color - 8),
            16..=255 => write!(out, ";{};5;{color}", base + 8),
            _ => {
                let [_, r, g, b] = ((color - RGB) as u32).to_be_bytes();
                write!(out, ";{};2;{r};{g};{b}", base + 8)
            }
        };
    }
    out.push('m');
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kpty_emulator::{Emulator, Settings, Size};

    use super::*;
    use crate::server::live::wire::read_runs;

    fn terminal(cols: u16, rows: u16) -> Emulator {
        Emulator::new(Settings { size: Size::new(cols, rows).expect("a size"), ..Settings::default() })
    }

    /// A frame with the whole screen of a terminal.
    fn frame(terminal: &mut Emulator) -> Frame {
        let screen = terminal.screen();
        Frame {
            id: "x".to_owned(),
            cols: screen.size.cols(),
            rows: screen.size.rows(),
            full: true,
            cursor: screen.cursor.into(),
            alt: false,
            title: None,
            lines: Vec::new(),
            oldest: 0,
            mouse: 0,
            paste: false,
            changed: (0..).zip(read_runs(terminal)).collect(),
            exit: None,
            problem: None,
        }
    }

    const OUTPUT: &str = "plain \x1b[1;31mred\x1b[0m \x1b[48;5;200;38;2;1;2;3mboth\x1b[0m\r\n日本 \x1b[4:3;7mx\x1b[0m\r\n\x1b[97;100mend";

    #[test]
    fn a_terminal_of_the_same_size_shows_the_same_cells() {
        let mut session = terminal(20, 5);
        let _ = session.feed(Duration::ZERO, OUTPUT.as_bytes());
        let mut outer = terminal(20, 5);
        let _ = outer.feed(Duration::ZERO, ENTER.as_bytes());
        let _ = outer.feed(Duration::ZERO, Painter::new(20, 5).take(&frame(&mut session)).as_bytes());
        assert_eq!(read_runs(&mut session), read_runs(&mut outer));
        let (session, outer) = (session.screen(), outer.screen());
        assert_eq!((outer.cursor.row, outer.cursor.col), (session.cursor.row, session.cursor.col));
    }

    #[test]
    fn a_smaller_terminal_shows_the_part_with_the_cursor() {
        let mut session = terminal(20, 6);
        let _ = session.feed(Duration::ZERO, b"1\r\n2\r\n3\r\n4\r\n5 is a long line\r\n6");
        let mut outer = terminal(8, 3);
        let mut painter = Painter::new(8, 3);
        let _ = outer.feed(Duration::ZERO, painter.take(&frame(&mut session)).as_bytes());
        let text = |outer: &mut Emulator| {
            outer
                .read(
                    &kpty_emulator::Request {
                        merge_wrapped: false,
                        ..kpty_emulator::Request::new(kpty_emulator::Mode::Viewport)
                    },
                    None,
                )
                .text
        };
        assert_eq!(text(&mut outer), "4\n5 is a l\n6");
        assert_eq!(painter.first_row(), 3);
        let _ = outer.feed(Duration::ZERO, painter.notice(Some("hello".to_owned())).as_bytes());
        assert_eq!(text(&mut outer), "4\n5 is a l\nhello");
        let _ = outer.feed(Duration::ZERO, painter.notice(None).as_bytes());
        assert_eq!(text(&mut outer), "4\n5 is a l\n6");
    }

    #[test]
    fn what_was_switched_on_is_switched_off() {
        let mut outer = terminal(20, 5);
        let _ = outer.feed(Duration::ZERO, b"before");
        let before = outer.screen();
        let mut session = terminal(20, 5);
        let _ = session.feed(Duration::ZERO, OUTPUT.as_bytes());
        let mut frame = frame(&mut session);
        frame.mouse = 3;
        let _ = outer.feed(Duration::ZERO, ENTER.as_bytes());
        let _ = outer.feed(Duration::ZERO, Painter::new(20, 5).take(&frame).as_bytes());
        assert_ne!(outer.screen().modes, before.modes);
        let _ = outer.feed(Duration::ZERO, LEAVE.as_bytes());
        assert_eq!(outer.screen(), before);
    }
}
