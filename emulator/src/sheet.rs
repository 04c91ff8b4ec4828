//! Text that another terminal has rendered, answered for as our own: the same caps, cuts and counts.
//!
//! Nothing is known here of where the lines come from. They have their numbers, and secrets are masked already.

use unicode_width::UnicodeWidthChar;

use crate::read::{Answer, Delta, Mode, Page, Request};
use crate::screen::{Buffer, Cursor};
use crate::size::Size;

/// Lines with their numbers, oldest first, and what there is around them.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// The lines that the read is about, each with its number.
    pub lines: Vec<(u64, String)>,
    /// Number after the last line that there is.
    pub next_line: u64,
    /// Number of the oldest line that is still kept.
    pub oldest_line: u64,
    /// Number of the line that the cursor is on.
    pub cursor_line: u64,
    /// Which screen was read.
    pub buffer: Buffer,
    /// Its size.
    pub size: Size,
    /// For a delta.
    pub delta: Option<Delta>,
}

impl Sheet {
    /// Cuts the lines as a read of this kind is cut.
    pub fn into_answer(self, request: &Request) -> Answer {
        let Self { lines, next_line, oldest_line, cursor_line, buffer, size, delta } = self;
        let mut page = Page::default();
        for (number, line) in &lines {
            let ends = if request.merge_wrapped { Vec::new() } else { row_ends(line, size.cols()) };
            page.push_split(*number, line, &ends, 0, request.merge_wrapped);
        }
        let cap_is_the_question = matches!(request.mode, Mode::Tail | Mode::Delta { since: None });
        page.cut(request, cap_is_the_question);
        let first_line = page.first_number().unwrap_or(next_line);
        page.finish(Answer {
            text: String::new(),
            line_ends: Vec::new(),
            line_numbers: Vec::new(),
            truncated: false,
            dropped_chars: 0,
            dropped_lines: 0,
            first_line,
            next_line,
            oldest_line,
            cursor_line,
            cursor: Cursor::default(),
            buffer,
            size,
            delta,
        })
    }
}

/// Where the rows of a line end, in bytes, on a screen of this width. An empty line is one row.
pub fn row_ends(line: &str, cols: u16) -> Vec<usize> {
    let cols = usize::from(cols.max(1));
    let (mut ends, mut used) = (Vec::new(), 0);
    for (at, c) in line.char_indices() {
        let width = c.width().unwrap_or(0);
        if used + width > cols && used > 0 {
            ends.push(at);
            used = 0;
        }
        used += width;
    }
    ends.push(line.len());
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(lines: &[&str]) -> Sheet {
        let numbered = lines.iter().enumerate().map(|(index, line)| (7 + index as u64, (*line).to_owned()));
        let lines: Vec<_> = numbered.collect();
        let next_line = 7 + lines.len() as u64;
        let size = Size::new(4, 3).expect("a size");
        Sheet { lines, next_line, oldest_line: 2, cursor_line: 8, buffer: Buffer::Main, size, delta: None }
    }

    #[test]
    fn foreign_lines_are_cut_like_our_own() {
        let request = Request { max_lines: Some(2), max_chars: Some(5), ..Request::new(Mode::Tail) };
        let answer = sheet(&["one", "two", "three"]).into_answer(&request);
        assert_eq!((answer.text.as_str(), answer.first_line, answer.next_line), ("three", 9, 10));
        assert_eq!((answer.dropped_chars, answer.dropped_lines, answer.truncated), (4, 1, true));
        let none = sheet(&[]).into_answer(&request);
        assert_eq!((none.lines().count(), none.first_line), (0, 7));
    }

    #[test]
    fn rows_are_separated_at_the_width_of_the_screen() {
        let request = Request { merge_wrapped: false, ..Request::new(Mode::Tail) };
        let answer = sheet(&["abcdef", "", "漢字漢"]).into_answer(&request);
        assert_eq!(answer.lines().collect::<Vec<_>>(), ["abcd", "ef", "", "漢字", "漢"]);
        assert_eq!(answer.line_numbers, [7, 7, 8, 9, 9]);
        assert_eq!(row_ends("漢字a", 3), [3, 7]);
        assert_eq!(row_ends("", 3), [0]);
    }
}
