//! Renders a screen as the bytes that draw it on a blank terminal of the same size. A recording of a running session
//! begins with them.
//!
//! Covers cells, colours, soft wraps, the cursor with its shape, and which of the two screens is active. Invisible
//! state is not covered: scroll margins, tab stops and the current drawing colours.
//! there: scroll margins, tab stops, the colours that the program would write in next.

use std::io::Write as _;

use kpty_emulator::{Buffer, Cell, Color, CursorShape, Row, Screen, Style, Width};

/// Returns the bytes. Writing to a vector cannot fail, so write results are ignored.
pub fn paint(screen: &Screen) -> Vec<u8> {
    let mut out = Vec::new();
    if screen.buffer == Buffer::Alternate {
        out.extend_from_slice(b"\x1b[?1049h");
    }
    out.extend_from_slice(b"\x1b[0m\x1b[H\x1b[2J");
    let mut pen = Style::default();
    let mut goes_on = false;
    for (number, row) in screen.rows.iter().enumerate() {
        let cells = content(row);
        if !goes_on && !cells.is_empty() {
            let _ = write!(out, "\x1b[{};1H", number + 1);
        }
        for cell in cells.iter().filter(|cell| cell.width != Width::Spacer) {
            if cell.style != pen {
                set_pen(&mut out, cell.style);
                pen = cell.style;
            }
            let mut utf8 = [0; 4];
            for c in std::iter::once(&cell.c).chain(&cell.marks) {
                out.extend_from_slice(c.encode_utf8(&mut utf8).as_bytes());
            }
        }
        goes_on = row.wrapped;
    }
    let cursor = screen.cursor;
    let shape = match cursor.shape {
        CursorShape::Block => 2,
        CursorShape::Underline => 4,
        CursorShape::Beam => 6,
    } - u8::from(cursor.blinking);
    let _ = write!(out, "\x1b[0m\x1b[{};{}H\x1b[{shape} q", cursor.row + 1, cursor.col + 1);
    out.extend_from_slice(if cursor.visible { b"\x1b[?25h" } else { b"\x1b[?25l" });
    out
}

/// Returns the cells up to the last visible one; all of them when the row wraps.
fn content(row: &Row) -> &[Cell] {
    let blank = Cell { c: ' ', marks: Vec::new(), width: Width::Single, style: Style::default(), link: None };
    let end = match row.wrapped {
        true => row.cells.len(),
        false => row.cells.iter().rposition(|cell| *cell != blank).map_or(0, |last| last + 1),
    };
    &row.cells[..end]
}

fn set_pen(out: &mut Vec<u8>, style: Style) {
    out.extend_from_slice(b"\x1b[0");
    for parameter in style.attributes.sgr() {
        let _ = write!(out, ";{parameter}");
    }
    for (kind, color) in [(38, Some(style.fg)), (48, Some(style.bg)), (58, style.underline_color)] {
        let _ = match color {
            None | Some(Color::Default) => Ok(()),
            Some(Color::Indexed(index)) => write!(out, ";{kind};5;{index}"),
            Some(Color::Rgb(r, g, b)) => write!(out, ";{kind};2;{r};{g};{b}"),
        };
    }
    out.push(b'm');
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kpty_emulator::{Emulator, Settings, Size};

    use super::*;

    fn shown(size: Size, bytes: &[u8]) -> Screen {
        let mut emulator = Emulator::new(Settings { size, ..Settings::default() });
        emulator.feed(Duration::ZERO, bytes);
        emulator.screen()
    }

    #[test]
    fn what_is_painted_is_the_same_screen() {
        let size = Size::new(20, 5).expect("a size");
        for bytes in [
            "",
            "plain\r\nlines",
            "a line that is longer than the window is wide\r\nnext",
            "wide at the edge: 日本日本 x",
            "\x1b[1;3;4:3;38;5;208;48;2;1;2;3;58;5;9mall\x1b[0m \x1b[7;9;2;8mmore\x1b[K",
            "e\u{301} 😀\x1b[3;7H\x1b[6 q",
            "main\x1b[?1049h\x1b[2;3Hfull\x1b[?25l",
            "\x1b[44m\x1b[2J\x1b[3;3Hx",
            "1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\x1b[1 q",
        ] {
            let before = shown(size, bytes.as_bytes());
            let after = shown(size, &paint(&before));
            assert_eq!(
                (&after.rows, after.cursor, after.buffer),
                (&before.rows, before.cursor, before.buffer),
                "{bytes:?}"
            );
        }
    }
}
