//! Where the cursor is in the text, and taking back what a program left behind.

use std::time::Duration;

use kpty_emulator::{Buffer, Emulator, Mode, Mouse, Place, Request, Settings, Size};

fn terminal(bytes: &str) -> Emulator {
    let mut emulator = Emulator::new(Settings { size: Size::new(10, 4).expect("a size"), ..Settings::default() });
    let _ = emulator.feed(Duration::ZERO, bytes.as_bytes());
    emulator
}

#[test]
fn a_place_is_a_line_and_the_characters_before_it() {
    for (bytes, line, chars) in [
        ("", 0, 0),
        ("abc", 0, 3),
        ("abc\r\n", 1, 0),
        ("abc\x1b[7G", 0, 6),
        ("0123456789ab", 0, 12),
        ("0123456789", 0, 9),
        ("日本", 0, 2),
        ("日本\x1b[10G", 0, 7),
        ("abcdefghi日", 0, 10),
        ("a\r\nb\r\nc\r\nd\r\ne\r\nf", 5, 1),
        ("e\u{301}x", 0, 3),
    ] {
        let place = terminal(bytes).place();
        assert_eq!(place, Place { line, chars, buffer: Buffer::Main }, "{bytes:?}");
    }
    assert_eq!(terminal("a\r\n\x1b[?1049h\x1b[3;2H").place(), Place { line: 2, chars: 1, buffer: Buffer::Alternate });
}

#[test]
fn settling_leaves_the_text_and_makes_the_next_one_readable() {
    for left in
        ["\x1b(0", "\x0e\x1b)0", "\x1b[?7l", "\x1b[4h", "\x1b[8m", "\x1b]0;half", "\x1bPq", "\x1b[3", "\x1b[?2026h"]
    {
        let mut emulator = terminal(&format!("ab\r\n{left}"));
        emulator.settle();
        let _ = emulator.feed(Duration::ZERO, b"qx012345678");
        let answer = emulator.read(&Request::new(Mode::Full), None);
        assert_eq!(answer.text, "ab\nqx012345678", "{left:?}");
        assert!(emulator.screen().rows[1].cells[0].style.attributes.is_empty(), "{left:?}");
    }
}

#[test]
fn settling_ends_margins_and_the_mouse_and_stays_where_it_is() {
    let mut emulator = terminal("\x1b[2;3r\x1b[?1003h\x1b[4;5H");
    let before = emulator.place();
    emulator.settle();
    assert_eq!((emulator.place(), emulator.modes().mouse), (before, Mouse::Off));
    let _ = emulator.feed(Duration::ZERO, b"x\r\ny");
    assert_eq!(emulator.place().line, before.line + 1, "the whole screen scrolls");
}
