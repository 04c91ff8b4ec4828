//! Left and right margins: what they confine, what they leave alone, and how they go.

use kpty_emulator::{Mode, Request};

use crate::support::{fed, feed, full, lines, rows, size, terminal};

/// What, bytes after `\x1b[?69h\x1b[3;6s` on a screen of eight columns and four rows, the rows that must be seen.
type Case = (&'static str, &'static str, &'static [&'static str]);

const GRID: &str = "abcdefgh\r\nijklmnop\r\nqrstuvwx\r\nyz012345";

/// On an empty screen.
const TEXT: &[Case] = &[
    ("the cursor goes home", "x", &["x"]),
    ("text wraps at the right margin to the left one", "\x1b[1;3Habcdef", &["  abcd", "  ef"]),
    ("text from left of the margins wraps at the right one", "abcdefgh", &["abcdef", "  gh"]),
    ("text right of the margins goes to the edge", "\x1b[1;7Hab", &["      ab"]),
    ("text right of the margins wraps to the left one", "\x1b[1;7Habc", &["      ab", "  c"]),
    ("without wrapping the last column is replaced", "\x1b[?7l\x1b[1;3Habcdef", &["  abcf"]),
    ("a wide character does not reach over the margin", "\x1b[1;6H日", &["", "  日"]),
    ("text beyond ASCII wraps as well", "\x1b[1;3Héééééé", &["  éééé", "  éé"]),
    ("insert mode pushes up to the right margin", "\x1b[1;7Hx\x1b[1;3Habcd\x1b[4h\x1b[1;3H__", &["  __abx"]),
    ("CR goes to the left margin", "\x1b[1;5Hx\ry", &["  y x"]),
    ("CR left of the left margin goes to the edge", "a\rx", &["x"]),
    ("CR at the left margin stays", "\x1b[1;3H\rx", &["  x"]),
    ("CR in origin mode goes to the left margin", "\x1b[?6h\x1b[2G\rx", &["  x"]),
    ("NEL goes to the left margin", "\x1b[1;5Ha\x1bEx", &["    a", "  x"]),
    ("CUB stops at the left margin", "\x1b[1;5H\x1b[9Dx", &["  x"]),
    ("CUB left of the left margin goes to the edge", "\x1b[1;2H\x1b[9Dx", &["x"]),
    ("BS stops at the left margin", "\x1b[1;3H\x08x", &["  x"]),
    ("CUF stops at the right margin", "\x1b[1;3H\x1b[9Cx", &["     x"]),
    ("CUF right of the right margin goes to the edge", "\x1b[1;7H\x1b[9Cx", &["       x"]),
    ("HPR ignores the margins", "\x1b[1;3H\x1b[9ax", &["       x"]),
    ("CUP counts from the margins in origin mode", "\x1b[2;4r\x1b[?6h\x1b[2;2Hx", &["", "", "   x"]),
    ("CUP stays within the margins in origin mode", "\x1b[?6h\x1b[1;9Hx", &["     x"]),
    ("CHA counts from the left margin in origin mode", "\x1b[?6h\x1b[2Gx", &["   x"]),
    ("origin mode goes to the left margin", "\x1b[?6hx", &["  x"]),
    ("a tab stops at the right margin", "\x1b[1;3H\tx", &["     x"]),
    ("REP wraps at the right margin", "\x1b[1;3Ha\x1b[5b", &["  aaaa", "  aa"]),
    ("mode 1045 goes back to the right margin", "\x1b[?1045h\x1b[2;3H\x08x", &["     x"]),
    ("BS with a wrap pending at the margin", "\x1b[1;3Habcd\x08x", &["  abxd"]),
    ("margins of one column are ignored", "\x1b[4;4s\x1b[1;3Habcdef", &["  abcd", "  ef"]),
    ("margins out of order are ignored", "\x1b[5;4s\x1b[1;3Habcdef", &["  abcd", "  ef"]),
    ("no parameters mean no margins", "\x1b[s\x1b[1;3Habcdef", &["  abcdef"]),
    ("the mode takes the margins with it", "\x1b[?69l\x1b[1;3Habcdef", &["  abcdef"]),
    ("without the mode CSI s saves the cursor", "\x1b[?69l\x1b[1;3H\x1b[s\x1b[4;1H\x1b[ux", &["  x"]),
    ("DECSTR resets margins and mode", "\x1b[!p\x1b[3;6s\x1b[1;3Habcdef", &["  abcdef"]),
    ("RIS resets margins and mode", "\x1bc\x1b[3;6s\x1b[1;3Habcdef", &["  abcdef"]),
];

/// On a screen full of text.
const EDIT: &[Case] = &[
    ("LF at the bottom scrolls the columns", "\x1b[4;3H\n", &["abklmngh", "ijstuvop", "qr0123wx", "yz    45"]),
    ("LF at the bottom outside scrolls nothing", "\x1b[4;1H\n", &["abcdefgh", "ijklmnop", "qrstuvwx", "yz012345"]),
    ("RI at the top scrolls the columns", "\x1b[1;3H\x1bM", &["ab    gh", "ijcdefop", "qrklmnwx", "yzstuv45"]),
    ("RI at the top outside scrolls nothing", "\x1b[1;8H\x1bM", &["abcdefgh", "ijklmnop", "qrstuvwx", "yz012345"]),
    ("SU scrolls the columns", "\x1b[2S", &["abstuvgh", "ij0123op", "qr    wx", "yz    45"]),
    ("SD scrolls the columns", "\x1b[9T", &["ab    gh", "ij    op", "qr    wx", "yz    45"]),
    ("SU in a region", "\x1b[2;3r\x1b[S", &["abcdefgh", "ijstuvop", "qr    wx", "yz012345"]),
    ("IL moves the columns", "\x1b[2;4H\x1b[LX", &["abcdefgh", "ijX   op", "qrklmnwx", "yzstuv45"]),
    ("IL outside does nothing", "\x1b[2;1H\x1b[L", &["abcdefgh", "ijklmnop", "qrstuvwx", "yz012345"]),
    ("DL moves the columns", "\x1b[2;4H\x1b[MX", &["abcdefgh", "ijXtuvop", "qr0123wx", "yz    45"]),
    ("DL outside does nothing", "\x1b[2;7H\x1b[M", &["abcdefgh", "ijklmnop", "qrstuvwx", "yz012345"]),
    ("ICH pushes up to the right margin", "\x1b[1;4H\x1b[2@", &["abc  dgh", "ijklmnop", "qrstuvwx", "yz012345"]),
    ("ICH outside does nothing", "\x1b[1;7H\x1b[2@", &["abcdefgh", "ijklmnop", "qrstuvwx", "yz012345"]),
    ("DCH pulls from the right margin", "\x1b[1;4H\x1b[2P", &["abcf  gh", "ijklmnop", "qrstuvwx", "yz012345"]),
    ("DCH past the margin", "\x1b[1;4H\x1b[99P", &["abc   gh", "ijklmnop", "qrstuvwx", "yz012345"]),
    ("DCH outside does nothing", "\x1b[1;2H\x1b[P", &["abcdefgh", "ijklmnop", "qrstuvwx", "yz012345"]),
    ("ECH ignores the margins", "\x1b[1;2H\x1b[6X", &["a      h", "ijklmnop", "qrstuvwx", "yz012345"]),
    ("EL ignores the margins", "\x1b[1;4H\x1b[K", &["abc", "ijklmnop", "qrstuvwx", "yz012345"]),
    (
        "DECIC inserts up to the right margin",
        "\x1b[2;3r\x1b[2;4H\x1b['}",
        &["abcdefgh", "ijk lmop", "qrs tuwx", "yz012345"],
    ),
    ("DECIC outside does nothing", "\x1b[2;1H\x1b['}", &["abcdefgh", "ijklmnop", "qrstuvwx", "yz012345"]),
    (
        "DECDC deletes up to the right margin",
        "\x1b[2;3r\x1b[2;4H\x1b['~",
        &["abcdefgh", "ijkmn op", "qrsuv wx", "yz012345"],
    ),
    ("DECBI moves left", "\x1b[2;4H\x1b6X", &["abcdefgh", "ijXlmnop", "qrstuvwx", "yz012345"]),
    ("DECBI scrolls at the left margin", "\x1b[2;3r\x1b[2;3H\x1b6", &["abcdefgh", "ij klmop", "qr stuwx", "yz012345"]),
    ("DECBI moves left of the margin", "\x1b[2;2H\x1b6X", &["abcdefgh", "Xjklmnop", "qrstuvwx", "yz012345"]),
    ("DECFI moves right", "\x1b[2;4H\x1b9X", &["abcdefgh", "ijklXnop", "qrstuvwx", "yz012345"]),
    ("DECFI scrolls at the right margin", "\x1b[2;3r\x1b[2;6H\x1b9", &["abcdefgh", "ijlmn op", "qrtuv wx", "yz012345"]),
    ("DECFI stays at the edge", "\x1b[2;8H\x1b9X", &["abcdefgh", "ijklmnoX", "qrstuvwx", "yz012345"]),
    ("SL moves the columns", "\x1b[2;4H\x1b[ @", &["abdef gh", "ijlmn op", "qrtuv wx", "yz123 45"]),
    ("SR moves the columns", "\x1b[2;4H\x1b[ A", &["ab cdegh", "ij klmop", "qr stuwx", "yz 01245"]),
    ("DECALN resets the margins", "\x1b#8\x1b[1;3Habcdef", &["EEabcdef", "EEEEEEEE", "EEEEEEEE", "EEEEEEEE"]),
];

#[test]
fn margins_confine_text_and_moves() {
    for (what, bytes, expected) in TEXT {
        let mut emulator = fed(8, 4, format!("\x1b[?69h\x1b[3;6s{bytes}"));
        assert_eq!(rows(&mut emulator), *expected, "{what}: {bytes:?}");
    }
}

#[test]
fn margins_confine_scrolling_and_editing() {
    for (what, bytes, expected) in EDIT {
        let mut emulator = fed(8, 4, format!("{GRID}\x1b[?69h\x1b[3;6s{bytes}"));
        assert_eq!(rows(&mut emulator), *expected, "{what}: {bytes:?}");
        assert_eq!(emulator.rows_before_screen(), 0, "{what}: parts of rows do not go into the history");
    }
}

#[test]
fn margins_are_reported() {
    for (bytes, answer) in [
        ("\x1b[?69$p", "\x1b[?69;2$y"),
        ("\x1b[?69h\x1b[?69$p", "\x1b[?69;1$y"),
        ("\x1bP$qs\x1b\\", "\x1bP1$r1;80s\x1b\\"),
        ("\x1b[?69h\x1b[3;40s\x1bP$qs\x1b\\", "\x1bP1$r3;40s\x1b\\"),
        ("\x1b[?69h\x1b[3;40s\x1b[?6h\x1b[2;5H\x1b[6n", "\x1b[2;5R"),
        ("\x1b[?69h\x1b[3;40s\x1b[2;5H\x1b[6n", "\x1b[2;5R"),
    ] {
        assert_eq!(String::from_utf8_lossy(&feed(&mut terminal(80, 24), bytes)), answer, "{bytes:?}");
    }
}

#[test]
fn a_wrap_at_a_margin_joins_no_lines() {
    let mut emulator = fed(8, 4, "\x1b[?69h\x1b[3;6s\x1b[1;3Habcdef");
    assert_eq!(lines(&mut emulator, &Request::new(Mode::Full)), ["  abcd", "  ef"]);
}

#[test]
fn scrolling_between_margins_ends_the_wraps_of_the_rows() {
    let mut emulator = fed(4, 3, "abcdef\x1b[?69h\x1b[1;2s\x1b[3;1H\n");
    let texts: Vec<String> = full(&mut emulator).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["efcd"]);
}

#[test]
fn wide_characters_on_a_margin_are_cleared_whole() {
    let mut emulator = fed(8, 2, "a日本語b\r\na日本語b\x1b[?69h\x1b[3;5s\x1b[2;3H\n");
    assert_eq!(rows(&mut emulator), ["a  本語b", "a    語b"]);
}

#[test]
fn a_resize_resets_the_margins() {
    let mut emulator = fed(8, 4, "\x1b[?69h\x1b[3;6s");
    emulator.resize(size(4, 4));
    feed(&mut emulator, "\x1b[Habcdef");
    assert_eq!(rows(&mut emulator), ["abcd", "ef"]);
}
