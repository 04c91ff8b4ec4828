//! The meaning of control sequences.

use alacritty_terminal::index::Point;
use alacritty_terminal::term::TermMode;
use alacritty_terminal::vte::ansi::{Attr, CursorShape, CursorStyle, Handler, TabulationClearMode};

use super::cells::PROTECTED;
use super::edit::{Erase, Protection};
use super::machine::Machine;
use super::sgr;
use crate::keyboard::Apply;
use crate::parser::Sequence;
use crate::reply;

/// What a column that REP prints costs, in cells: it also moves lines into the history.
const REPEAT_COST: usize = 2;
/// Characters that REP prints at a time.
const REPEAT_RUN: usize = 256;

impl Machine {
    pub(super) fn dispatch_csi(&mut self, sequence: &Sequence, length: usize) {
        let repeatable = self.repeatable.take();
        let count = usize::from(sequence.param_or(0, 1));
        match (sequence.intermediates(), sequence.last()) {
            ([], b'm') => self.select_rendition(sequence),
            ([], b'H' | b'f') => {
                let col = usize::from(sequence.param_or(1, 1));
                self.go_to(count - 1, col - 1);
                // A move that goes nowhere is none to REP.
                self.repeatable = repeatable.filter(|(_, after)| *after == self.term.grid().cursor.point);
            }
            ([], b'A') => self.cursor_up(count),
            ([], b'B') => self.cursor_down(count),
            ([], b'e') => self.place_cursor(self.row() + count, self.col()),
            ([], b'C') => self.cursor_right(count),
            ([], b'a') => self.place_cursor(self.row(), self.col() + count),
            ([], b'D') => self.cursor_left(count),
            ([], b'E') => {
                self.cursor_down(count);
                self.carriage_return();
            }
            ([], b'F') => {
                self.cursor_up(count);
                self.carriage_return();
            }
            ([], b'G' | b'`') => self.cursor_to_col(count - 1),
            ([], b'd') => self.term.goto_line(count as i32 - 1),
            ([], b'J') => self.erase_in_display(sequence.param_or(0, 0), Erase::All),
            ([b'?'], b'J') => self.erase_in_display(sequence.param_or(0, 0), Erase::Unprotected),
            ([], b'K') => self.erase_in_line(sequence.param_or(0, 0), Erase::All),
            ([b'?'], b'K') => self.erase_in_line(sequence.param_or(0, 0), Erase::Unprotected),
            ([], b'X') => self.erase_chars(count),
            ([], b'@') => self.insert_chars(count),
            ([], b'P') => self.delete_chars(count),
            ([], b'L') => self.insert_lines(count),
            ([], b'M') => self.delete_lines(count),
            ([], b'S') => self.scroll_up(count),
            ([], b'T') => self.scroll_down(count),
            ([b' '], b'@') => self.delete_columns(self.columns.start, count),
            ([b' '], b'A') => self.insert_columns(self.columns.start, count),
            ([b'\''], b'}') => self.insert_columns(self.col(), count),
            ([b'\''], b'~') => self.delete_columns(self.col(), count),
            ([], b'b') => self.repeat(repeatable, count),
            ([], b'I') => self.tab_forward(sequence.param_or(0, 1)),
            ([], b'Z') => self.tab_backward(sequence.param_or(0, 1)),
            ([], b'g') => self.clear_tabs(sequence.param_or(0, 0)),
            ([b'?'], b'W') if sequence.param_or(0, 0) == 5 => self.reset_tab_stops(),
            ([], b'r') => self.set_margins(sequence),
            ([b'?'], b's') => sequence.params().for_each(|mode| self.save_private_mode(mode)),
            ([b'?'], b'r') => sequence.params().for_each(|mode| self.restore_private_mode(mode)),
            ([], b's') if self.margin_mode => {
                let right = sequence.param_or(1, u16::MAX);
                self.set_columns(count - 1, usize::from(right));
            }
            ([], b's') => self.save_cursor(),
            ([], b'u') => self.restore_cursor(),
            ([], b'h') => sequence.params().for_each(|mode| self.set_mode(mode)),
            ([], b'l') => sequence.params().for_each(|mode| self.unset_mode(mode)),
            ([b'?'], b'h') => sequence.params().for_each(|mode| self.set_private_mode(mode)),
            ([b'?'], b'l') => sequence.params().for_each(|mode| self.unset_private_mode(mode)),
            ([b' '], b'q') => self.set_cursor_style(sequence.param_or(0, 0)),
            ([b'"'], b'q') => self.protect(sequence.param_or(0, 0) == 1, Protection::Selective),
            ([b'$'], b'x') => self.fill_area(sequence),
            ([b'$'], b'z') => self.erase_area(sequence, Erase::All),
            ([b'$'], b'{') => self.erase_area(sequence, Erase::Unprotected),
            ([b'$'], b'v') => self.copy_area(sequence),
            ([b'$'], b'r') => self.change_area(sequence),
            ([b'$'], b't') => self.reverse_area(sequence),
            ([b'*'], b'x') => self.set_area_extent(sequence.param_or(0, 0)),
            ([b'!'], b'p') => self.soft_reset(),
            ([b'>'], b'u') => self.keyboard().push(sequence.param_or(0, 0)),
            ([b'<'], b'u') => self.keyboard().pop(count),
            ([b'='], b'u') => {
                self.keyboard().apply(sequence.param_or(0, 0), Apply::from_param(sequence.param_or(1, 1)));
            }
            ([], b't') => self.window(sequence.param_or(0, 0), length),
            _ => self.answer(sequence, length),
        }
    }

    fn select_rendition(&mut self, sequence: &Sequence) {
        sgr::each_attribute(sequence, |attribute| {
            let resets = attribute == Attr::Reset;
            if matches!(attribute, Attr::UnderlineColor(Some(_))) {
                self.note_mark();
            }
            self.term.terminal_attribute(attribute);
            if resets && self.protecting {
                self.cursor().template.flags.insert(PROTECTED);
            }
        });
    }

    fn erase_in_display(&mut self, what: u16, kind: Erase) {
        match what {
            0 => self.erase_below(kind),
            1 => self.erase_above(kind),
            2 => self.erase_screen(kind),
            3 if kind == Erase::All => self.clear_scrollback(),
            _ => (),
        }
    }

    fn erase_in_line(&mut self, what: u16, kind: Erase) {
        match what {
            0 => self.erase_line_right(kind),
            1 => self.erase_line_left(kind),
            2 => self.erase_line(kind),
            _ => (),
        }
    }

    /// REP: the character must come directly before; `Term` repeats whatever was printed last. More than fills the screen
    /// is not repeated, and no more than the budget allows: eight bytes could ask for 65,535 characters again and again.
    fn repeat(&mut self, repeatable: Option<(char, Point)>, count: usize) {
        if let Some((c, _)) = repeatable {
            let columns = if c.is_ascii() { 1 } else { 2 };
            let most = self.cols() * self.rows() / columns;
            let mut left = self.work.take_up_to(count.min(most.max(1)), REPEAT_COST * columns);
            while left > 0 {
                let now = left.min(REPEAT_RUN);
                match u8::try_from(c).ok().filter(u8::is_ascii) {
                    Some(byte) => self.print_ascii(&[byte; REPEAT_RUN][..now]),
                    None => self.print_text(&[c; REPEAT_RUN][..now]),
                }
                left -= now;
            }
            self.repeatable = None;
        }
    }

    fn clear_tabs(&mut self, which: u16) {
        match which {
            0 => self.term.clear_tabs(TabulationClearMode::Current),
            3 => self.term.clear_tabs(TabulationClearMode::All),
            _ => (),
        }
    }

    /// DECSTBM: margins that make no region are ignored; otherwise the cursor goes home.
    fn set_margins(&mut self, sequence: &Sequence) {
        let rows = self.rows();
        let top = usize::from(sequence.param_or(0, 1)) - 1;
        let bottom = match sequence.param_or(1, 0) {
            0 => rows,
            bottom => usize::from(bottom).min(rows),
        };
        if top + 1 < bottom || (rows == 1 && top == 0) {
            self.set_region(top, bottom);
            self.go_to(0, 0);
        }
    }

    fn set_cursor_style(&mut self, style: u16) {
        let shape = match style {
            0 => None,
            1 | 2 => Some(CursorShape::Block),
            3 | 4 => Some(CursorShape::Underline),
            5 | 6 => Some(CursorShape::Beam),
            _ => return,
        };
        self.term.set_cursor_style(shape.map(|shape| CursorStyle { shape, blinking: style % 2 == 1 }));
    }

    /// Window operations: the title stack, and questions about the size. A title is never reported.
    fn window(&mut self, operation: u16, length: usize) {
        let (rows, cols) = (self.rows(), self.cols());
        let (height, width) = reply::CELL_PIXELS;
        self.answers.asked(length);
        let answer = match operation {
            11 => "\x1b[1t".to_owned(),
            14 => format!("\x1b[4;{};{}t", rows * height, cols * width),
            16 => format!("\x1b[6;{height};{width}t"),
            18 => format!("\x1b[8;{rows};{cols}t"),
            19 => format!("\x1b[9;{rows};{cols}t"),
            22 => return self.titles.push(),
            23 => return self.titles.pop(),
            _ => return,
        };
        self.answers.give(answer.as_bytes());
    }

    /// Sequences that only ask.
    fn answer(&mut self, sequence: &Sequence, length: usize) {
        let first = sequence.param_or(0, 0);
        self.answers.asked(length);
        match (sequence.intermediates(), sequence.last(), first) {
            ([], b'c', 0) => self.answers.give(reply::PRIMARY_ATTRIBUTES),
            ([b'>'], b'c', 0) => self.answers.give(reply::SECONDARY_ATTRIBUTES),
            ([b'='], b'c', 0) => self.answers.give(reply::TERTIARY_ATTRIBUTES),
            ([b'>'], b'q', 0) => self.answers.give(reply::version(env!("CARGO_PKG_VERSION")).as_bytes()),
            ([], b'n', 5) => self.answers.give(reply::STATUS_OK),
            ([], b'n', 6) => self.report_cursor(""),
            ([b'?'], b'n', 6) => self.report_cursor("?"),
            ([b'?'], b'n', 996) => self.answers.give(reply::SCHEME_DARK),
            ([b'?'], b'u', _) => {
                let flags = self.keyboard().flags();
                self.answers.give(format!("\x1b[?{flags}u").as_bytes());
            }
            ([b'$'], b'p', mode) => {
                let state = self.mode_state(mode);
                self.answers.give(format!("\x1b[{mode};{state}$y").as_bytes());
            }
            ([b'?', b'$'], b'p', mode) => {
                let state = self.private_mode_state(mode);
                self.answers.give(format!("\x1b[?{mode};{state}$y").as_bytes());
            }
            _ => (),
        }
    }

    /// DSR 6: in origin mode the position counts from the margins.
    fn report_cursor(&mut self, private: &str) {
        let origin = self.has_mode(TermMode::ORIGIN);
        let (top, left) = if origin { (self.region.start, self.columns.start) } else { (0, 0) };
        let (row, col) = (self.row().saturating_sub(top) + 1, self.col().saturating_sub(left) + 1);
        self.answers.give(format!("\x1b[{private}{row};{col}R").as_bytes());
    }
}
