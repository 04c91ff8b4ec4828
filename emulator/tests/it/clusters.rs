//! Grapheme clusters (mode 2027): one cell for what a reader takes for one character.

use kpty_emulator::Width;

use crate::support::{fed, feed, rows, terminal};

const FAMILY: &str = "👨\u{200d}👩\u{200d}👧";

#[test]
fn a_cluster_takes_the_columns_of_one_character() {
    for (text, columns) in [
        (FAMILY, 2),
        ("🇩🇪", 2),
        ("🇩🇪🇫🇷", 4),
        ("👍🏽", 2),
        ("❤\u{fe0f}", 2),
        ("❤", 1),
        ("e\u{301}", 1),
        ("日本", 4),
        ("1\u{fe0f}\u{20e3}", 2),
        ("한", 2),
    ] {
        let mut emulator = terminal(20, 2);
        let replies = feed(&mut emulator, format!("\x1b[?2027h{text}\x1b[6n"));
        assert_eq!(String::from_utf8_lossy(&replies), format!("\x1b[1;{}R", columns + 1), "{text:?}");
        feed(&mut emulator, "x");
        assert_eq!(rows(&mut emulator), [format!("{text}x")], "{text:?}");
        assert_eq!(emulator.place().chars, text.chars().count() + 1, "{text:?}");
    }
}

#[test]
fn any_chunking_gives_the_same_cluster() {
    let text = format!("\x1b[?2027ha{FAMILY}🇩🇪b");
    let mut whole = fed(20, 2, &text);
    let mut pieces = terminal(20, 2);
    text.bytes().for_each(|byte| drop(feed(&mut pieces, [byte])));
    assert_eq!(pieces.screen(), whole.screen());
    assert_eq!(rows(&mut whole), [format!("a{FAMILY}🇩🇪b")]);
}

#[test]
fn without_the_mode_every_code_point_has_its_own_width() {
    let mut emulator = terminal(20, 2);
    assert_eq!(feed(&mut emulator, format!("{FAMILY}\x1b[6n")), b"\x1b[1;7R");
    assert_eq!(feed(&mut emulator, format!("\r\x1b[?2027h{FAMILY}\x1b[6n\x1b[?2027$p")), b"\x1b[1;3R\x1b[?2027;1$y");
    assert_eq!(feed(&mut emulator, format!("\r\x1b[?2027l{FAMILY}\x1b[6n\x1b[?2027$p")), b"\x1b[1;7R\x1b[?2027;2$y");
    assert_eq!(feed(&mut emulator, "\x1b[?2027h\x1bc\x1b[?2027$p"), b"\x1b[?2027;2$y");
    assert_eq!(feed(&mut emulator, "\x1b[?2027h\x1b[!p\x1b[?2027$p"), b"\x1b[?2027;2$y");
}

#[test]
fn a_cluster_that_grows_at_the_edge_moves_to_the_next_row() {
    let mut emulator = fed(4, 2, "\x1b[?2027habc🇩🇪x");
    assert_eq!(rows(&mut emulator), ["abc", "🇩🇪x"]);
    assert!(emulator.screen().rows[0].wrapped);
    let mut emulator = fed(4, 2, "\x1b[?2027h\x1b[?7labc🇩🇪");
    assert_eq!(rows(&mut emulator), ["abc🇩🇪"], "without wrapping it stays narrow");
    let mut emulator = fed(4, 2, "\x1b[?2027hab🇩🇪x");
    assert_eq!(rows(&mut emulator), ["ab🇩🇪", "x"]);
    let mut emulator = fed(1, 3, "\x1b[?2027h🇩🇪❤\u{fe0f}x");
    assert_eq!(rows(&mut emulator).len(), 3);
}

#[test]
fn a_cluster_that_grows_overwrites_whole_characters() {
    let mut emulator = fed(8, 1, "a日本\x1b[?2027h\r❤\u{fe0f}");
    assert_eq!(rows(&mut emulator), ["❤\u{fe0f} 本"]);
    let screen = emulator.screen();
    let widths: Vec<Width> = screen.rows[0].cells[..3].iter().map(|cell| cell.width).collect();
    assert_eq!(widths, [Width::Double, Width::Spacer, Width::Single]);
    let mut emulator = fed(8, 1, "abc\x1b[?2027h\x1b[4h\r❤\u{fe0f}");
    assert_eq!(rows(&mut emulator), ["❤\u{fe0f}abc"]);
}

#[test]
fn a_move_of_the_cursor_ends_the_cluster() {
    let mut emulator = fed(8, 1, "\x1b[?2027h🇩\x1b[1;4H🇪");
    assert_eq!(rows(&mut emulator), ["🇩  🇪"]);
}

#[test]
fn a_cluster_is_bounded() {
    let emulator = fed(8, 1, format!("\x1b[?2027h👨{}", "\u{200d}👩".repeat(1_000)));
    let cells = &emulator.screen().rows[0].cells;
    assert_eq!(cells[0].marks.len(), 16);
}
