//! What `alacritty_terminal` gets wrong and we put right: a case a defect, and the cases around it.

use crate::support::{bare_rows, fed, rows};

/// What, size, bytes, the rows that must be seen.
type Case = (&'static str, (u16, u16), &'static str, &'static [&'static str]);

const DEFECTS: &[Case] = &[
    ("ED 1 on the second row clears the first", (10, 3), "one\r\ntwo\r\nthree\x1b[2;2H\x1b[1J", &["", "  o", "three"]),
    ("DCH past the end keeps what is left of the cursor", (10, 1), "abcdefgh\x1b[1;5H\x1b[99P", &["abcd"]),
    ("mode 47 has a screen of its own", (10, 2), "main\x1b[?47halt", &["    alt"]),
    ("mode 47 gives the main screen back", (10, 2), "main\x1b[?47halt\x1b[?47l!", &["main   !"]),
    ("mode 1047 has a screen of its own", (10, 2), "main\x1b[?1047h\x1b[Halt", &["alt"]),
    ("mode 1047 gives the main screen back", (10, 2), "main\x1b[?1047halt\x1b[?1047l", &["main"]),
    ("mode 1048 saves and restores the cursor", (10, 2), "ab\x1b[?1048h\x1b[2;5Hx\x1b[?1048lc", &["abc", "    x"]),
    ("ESC k sets a title", (20, 1), "a\x1bktitle\x1b\\b", &["ab"]),
    ("DECSED erases below", (4, 2), "ab\r\ncd\x1b[1;2H\x1b[?J", &["a"]),
    ("DECSED erases above", (4, 2), "ab\r\ncd\x1b[2;1H\x1b[?1J", &["", " d"]),
    ("DECSED erases all", (4, 2), "ab\r\ncd\x1b[?2J", &[]),
    ("DECSEL erases right", (4, 1), "abcd\x1b[1;3H\x1b[?K", &["ab"]),
    ("DECSEL erases left", (4, 1), "abcd\x1b[1;3H\x1b[?1K", &["   d"]),
    ("DECSEL erases the line", (4, 2), "abcd\r\nef\x1b[1;3H\x1b[?2K", &["", "ef"]),
    ("DECSCA protects from DECSED", (4, 1), "A\x1b[1\"qB\x1b[\"qC\x1b[G\x1b[?J", &[" B"]),
    ("SL shifts the region left", (6, 2), "abcdef\r\nghijkl\x1b[2 @", &["cdef", "ijkl"]),
    ("SR shifts the region right", (6, 2), "abcdef\r\nghijkl\x1b[2 A", &["  abcd", "  ghij"]),
    ("DECIC inserts columns", (6, 2), "abcdef\r\nghijkl\x1b[1;3H\x1b[2'}", &["ab  cd", "gh  ij"]),
    ("DECDC deletes columns", (6, 2), "abcdef\r\nghijkl\x1b[1;3H\x1b[2'~", &["abef", "ghkl"]),
    ("a tab with a wrap pending neither wraps nor moves", (10, 2), "0123456789\t\tx", &["0123456789", "x"]),
    ("a tab back without a stop goes to the first column", (20, 1), "\x1b[3gabcd\x1b[Zx", &["xbcd"]),
    ("ED with a wrap pending erases nothing in the row", (4, 2), "abcd\x1b[J", &["abcd"]),
    ("REP after any sequence does nothing", (8, 1), "ab\x1b[1m\x1b[3b\x1b7\x1b[b", &["ab"]),
    ("DECALN goes home and resets the margins", (3, 3), "\x1b[2;3r\x1b[3;3H\x1b#8x\x1b[9By", &["xEE", "EEE", "EyE"]),
    ("DECRC without DECSC goes home and keeps origin mode", (4, 4), "\x1b[2;4r\x1b[?6h\x1b[2;2H\x1b8x", &["", "x"]),
    ("LF in new-line mode goes to the first column", (4, 3), "\x1b[20habcd\nx", &["abcd", "x"]),
    ("IND drops a pending wrap", (4, 3), "abcd\x1bDx", &["abcd", "   x"]),
    ("RI drops a pending wrap", (4, 3), "\r\nabcd\x1bMx", &["   x", "abcd"]),
    ("VT drops a pending wrap", (4, 3), "abcd\x0bx", &["abcd", "   x"]),
    ("FF drops a pending wrap", (4, 3), "abcd\x0cx", &["abcd", "   x"]),
    ("ICH drops a pending wrap", (4, 2), "abcd\x1b[@x", &["abcx"]),
    ("IL goes to the first column", (4, 2), "ab\x1b[Lx", &["x", "ab"]),
    ("DL goes to the first column", (4, 2), "ab\r\ncd\x1b[1;2H\x1b[Mx", &["xd"]),
    ("CUU stops at the top margin", (4, 4), "\x1b[2;4r\x1b[4;1H\x1b[9Ax", &["", "x"]),
    ("CUD stops at the bottom margin", (4, 4), "\x1b[1;2r\x1b[1;1H\x1b[9Bx", &["", "x"]),
    ("CPL stops at the top margin", (4, 4), "\x1b[2;4r\x1b[4;3H\x1b[9Fx", &["", "x"]),
    ("CHA stays in its row in origin mode", (4, 4), "\x1b[2;4r\x1b[?6h\x1b[2;1H\x1b[3Gx", &["", "", "  x"]),
    ("leaving origin mode goes home", (4, 4), "\x1b[2;4r\x1b[?6h\x1b[?6lx", &["x"]),
    ("DECRC restores origin mode", (4, 4), "\x1b[2;4r\x1b[?6h\x1b7\x1b[?6l\x1b8\x1b[1;1Hx", &["", "x"]),
    ("DECRC restores no pending wrap", (4, 2), "abcd\x1b7\x1b8x", &["abcx"]),
    ("erasing half of a wide character clears all of it", (6, 1), "日本\x1b[1;2H\x1b[X", &["  本"]),
    ("deleting half of a wide character clears the rest", (6, 1), "日本\x1b[1;2H\x1b[P", &[" 本"]),
    ("inserting pushes half of a wide character over the edge", (4, 1), "ab日\x1b[1;1H\x1b[@", &[" ab"]),
    ("REP after a control does nothing", (8, 2), "ab\r\x1b[3bc", &["cb"]),
    ("REP after a cursor move does nothing", (8, 1), "ab\x1b[1;5H\x1b[3b", &["ab"]),
    (
        "a mark at the start of a wrapped row goes to the character before it",
        (2, 2),
        "abc\r\u{301}",
        &["ab\u{301}", "c"],
    ),
    ("mode 45 counts a pending wrap as a column", (4, 2), "\x1b[?45habcd\x08x", &["abcx"]),
    ("mode 45 goes back over a soft wrap with CUB", (4, 2), "\x1b[?45habcdef\x1b[4Dx", &["abxd", "ef"]),
    ("mode 1045 goes back to any row", (4, 2), "\x1b[?1045hab\r\n\x08x", &["ab x"]),
    (
        "mode 1045 goes from the top margin to the bottom one",
        (4, 4),
        "\x1b[?1045h\x1b[2;3r\x1b[2H\x08x",
        &["", "", "   x"],
    ),
    ("mode 41 wraps before a tab", (10, 2), "\x1b[?41h0123456789\tx", &["0123456789", "        x"]),
    ("mode 47 keeps what was drawn", (6, 2), "m\x1b[?47hab\x1b[?47l\x1b[?47hc", &[" abc"]),
    ("mode 1047 clears on the way back", (6, 2), "\x1b[?47hab\x1b[?1047l\x1b[?47hc", &["  c"]),
    ("SPA guards from ED", (4, 1), "a\x1bVb\x1bWc\x1b[2J", &[" b"]),
    ("SPA guards from EL", (4, 1), "a\x1bVb\x1bWc\x1b[2K", &[" b"]),
    ("SPA guards from ECH", (4, 1), "a\x1bVb\x1bWc\x1b[H\x1b[9X", &[" b"]),
    ("SPA does not guard from DECSED", (4, 1), "a\x1bVb\x1bWc\x1b[?2J", &[]),
    ("mode 45 goes back over a soft wrap", (4, 2), "\x1b[?45habcdef\x08\x08\x08x", &["abcx", "ef"]),
    (
        "the gap before a wide character does not move with the cells",
        (6, 2),
        "abcde日\x1b[H\x1b[PX\x1b[1;6HY",
        &["Xcde Y", "日"],
    ),
    ("SL moves no gap", (3, 2), "ab日\x1b[ @\x1b[1;3Hx", &["b x"]),
];

/// Beside each defect, what was right and must stay so.
const AROUND: &[Case] = &[
    ("mode 45 stops at the start of the line", (4, 2), "\x1b[?45hab\r\ncd\x1b[9Dx", &["ab", "xd"]),
    ("mode 45 needs wrapping", (4, 2), "\x1b[?45habcdef\x1b[?7l\x1b[9Dx", &["abcd", "xf"]),
    ("mode 1049 clears on the way in", (6, 2), "\x1b[?47hab\x1b[?47l\x1b[?1049hc", &["  c"]),
    ("ED 1 on the first row clears up to the cursor", (10, 2), "abcdef\x1b[1;3H\x1b[1J", &["   def"]),
    ("DCH deletes and closes the gap", (10, 1), "abcdefgh\x1b[1;2H\x1b[3P", &["aefgh"]),
    ("ICH past the end keeps what is left of the cursor", (10, 1), "abcdefgh\x1b[1;5H\x1b[99@", &["abcd"]),
    ("mode 1049 saves and restores the cursor", (10, 2), "main\x1b[?1049h\x1b[2;5Halt\x1b[?1049l!", &["main!"]),
    ("mode 1049 keeps a pending wrap", (4, 2), "main\x1b[?1049hx\x1b[?1049l!", &["main", "!"]),
    ("a stray ESC k is ignored, its text is not", (20, 2), "a\x1bkb\r\nc", &["ab", "c"]),
    ("a stray ESC k before another sequence loses no text", (20, 1), "a\x1bkb\x1b[1mc", &["abc"]),
    ("DECSCA survives a reset of the attributes", (4, 1), "\x1b[1\"q\x1b[0mAB\x1b[?2K", &["AB"]),
    ("DECSCA does not protect from ED", (4, 1), "\x1b[1\"qAB\x1b[2K", &[]),
    (
        "SR does nothing outside the margins",
        (4, 3),
        "abcd\r\nefgh\r\nijkl\x1b[1;2r\x1b[3;1H\x1b[2 A",
        &["abcd", "efgh", "ijkl"],
    ),
    ("a tab goes to the next stop", (20, 1), "a\tb", &["a       b"]),
    ("VPR passes the margins", (4, 4), "\x1b[1;2r\x1b[9ex", &["", "", "", "x"]),
    ("REP after a move that goes nowhere repeats", (8, 1), "ab\x1b[1;3H\x1b[3b", &["abbbb"]),
    ("LF keeps a pending wrap", (4, 3), "abcd\nx", &["abcd", "", "x"]),
    ("CUU above the margin stops at the top", (4, 4), "\x1b[3;4r\x1b[2;1H\x1b[9Ax", &["x"]),
    ("CUD below the margin stops at the bottom", (4, 4), "\x1b[1;2r\x1b[3;1H\x1b[9Bx", &["", "", "", "x"]),
    ("overwriting the first half of a wide character clears the second", (6, 1), "日本\x1b[1;1Ha", &["a 本"]),
    ("overwriting the second half of a wide character clears the first", (6, 1), "日本\x1b[1;2Ha", &[" a本"]),
    ("a wide character over two halves clears both neighbours", (6, 1), "日本\x1b[1;2H中", &[" 中"]),
    ("erasing to the middle of a wide character clears all of it", (6, 1), "日本\x1b[1;3H\x1b[1K", &[]),
    ("inserting behind a wide character keeps it", (6, 1), "日本\x1b[1;2H\x1b[@", &["日 本"]),
    ("REP repeats the character before", (8, 1), "ab\x1b[3b", &["abbbb"]),
    ("REP wraps", (4, 2), "a\x1b[5b", &["aaaa", "aa"]),
    ("a mark on a wide character at the edge stays with it", (4, 1), "ab日\u{301}", &["ab日\u{301}"]),
    ("a mark on the first half of a wide character keeps it", (10, 1), "日\x1b[D\u{301}", &["日\u{301}"]),
    ("an encoded C1 control erases nothing", (10, 1), "日\x1b[D\u{80}", &["日"]),
    ("a wide character that does not fit without wrapping erases nothing", (2, 1), "\x1b[?7l日\x1b[1;2H本", &["日"]),
    ("REP of many characters goes on over many rows", (4, 3), "a\x1b[9b日\x1b[2b", &["aaaa", "aa日", "日日"]),
];

#[test]
fn every_defect_is_put_right() {
    for (what, (cols, rows_count), bytes, expected) in DEFECTS.iter().chain(AROUND) {
        let mut emulator = fed(*cols, *rows_count, bytes);
        assert_eq!(rows(&mut emulator), *expected, "{what}: {bytes:?}");
    }
}

#[test]
fn every_defect_is_one_of_the_bare_engine() {
    for (what, (cols, rows_count), bytes, expected) in DEFECTS {
        assert_ne!(bare_rows(*cols, *rows_count, bytes), *expected, "{what}: mended upstream? {bytes:?}");
    }
}

#[test]
fn clearing_a_blank_screen_adds_no_line() {
    let mut emulator = fed(10, 3, "\x1b[2J\x1b[2J\x1b[Hfirst");
    assert_eq!(crate::support::full(&mut emulator), [(0, "first".to_owned())]);
}

#[test]
fn clearing_a_screen_moves_its_text_into_the_history() {
    let mut emulator = fed(10, 3, "one\r\ntwo\x1b[2J\x1b[Hthree");
    let texts: Vec<String> = crate::support::full(&mut emulator).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["one", "two", "three"]);
}

#[test]
fn an_emptied_row_no_longer_continues_the_one_above() {
    let mut emulator = fed(4, 3, "abcdef\x1b[2;1H\x1b[2Knew");
    let texts: Vec<String> = crate::support::full(&mut emulator).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["abcd", "new"]);
}

#[test]
fn a_background_does_not_come_back_after_a_resize() {
    let mut emulator = fed(4, 2, "\x1b[44m\x1b[2J\x1b[m");
    emulator.resize(crate::support::size(8, 2));
    crate::support::feed(&mut emulator, "\x1b[H\x1b[2M");
    let plain = |row: &kpty_emulator::Row| row.cells.iter().all(|cell| cell.style == Default::default());
    assert!(emulator.screen().rows.iter().all(plain), "{:?}", emulator.screen().rows);
}

/// Size, bytes, and the logical lines that must be read.
const WRAPS: &[Case] = &[
    ("deleted lines do not go into the history", (4, 2), "ab\r\ncd\x1b[1;1H\x1b[M", &["cd"]),
    ("deleting the row a line goes on in ends the line", (4, 3), "abcdef\r\nxyz\x1b[2;1H\x1b[M", &["abcd", "xyz"]),
    ("inserting a row ends the line above it", (4, 3), "abcdef\x1b[2;1H\x1b[LX", &["abcd", "X", "ef"]),
    ("clearing the screen ends its last line", (4, 3), "abcde\x1b[2;1H\x1b[P\x1b[2J\x1b[HNEW", &["abcd", "NEW"]),
    ("scrolling down ends the line above", (4, 4), "1\r\nabcdef\x1b[3;4r\x1b[3;1H\x1bMX", &["1", "abcd", "X", "ef"]),
    ("scrolling a region up ends the line above", (4, 4), "1\r\nabcdefghi\x1b[3;4r\x1b[S", &["1", "abcd", "i"]),
    ("scrolling a region up ends its last line", (4, 4), "1\r\nabcdef\x1b[1;2r\x1b[S", &["1", "abcd", "", "ef"]),
    ("scrolling a region down ends its last line", (4, 4), "abcdef\r\nxyz\x1b[1;2r\x1b[T", &["", "abcd", "xyz"]),
    ("a wrap at the bottom margin is kept", (4, 4), "\x1b[1;2r\x1b[2;1Habcdefghi", &["", "abcdefghi"]),
    ("a wrap below the margins is none", (4, 3), "\x1b[1;2r\x1b[3;1Habcdef", &["", "", "efcd"]),
];

#[test]
fn lines_are_joined_only_with_what_continues_them() {
    for (what, (cols, rows), bytes, expected) in WRAPS {
        let mut emulator = fed(*cols, *rows, bytes);
        let texts: Vec<String> = crate::support::full(&mut emulator).into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, *expected, "{what}: {bytes:?}");
    }
}

#[test]
fn a_pending_wrap_moves_with_the_edge() {
    for (before, size, after, expected) in [
        ("\x1b[?1049h\x1b[Habcd", (8, 2), "X", vec!["abcdX"]),
        ("abcd", (8, 2), "X", vec!["abcdX"]),
        ("\x1b[?7labcd", (8, 2), "XY", vec!["abcdXY"]),
        ("\x1b[?1049h\x1b[H\x1b[?7labcd", (8, 2), "XY", vec!["abcdXY"]),
        ("abcd", (2, 2), "X", vec!["cd", "X"]),
    ] {
        let mut emulator = fed(4, 2, before);
        emulator.resize(crate::support::size(size.0, size.1));
        crate::support::feed(&mut emulator, after);
        assert_eq!(rows(&mut emulator), expected, "{before:?} to {size:?}");
    }
}

#[test]
fn the_old_edge_of_a_wider_alternate_screen_is_forgotten() {
    let mut emulator = fed(4, 2, "\x1b[?1049h\x1b[Habc日");
    emulator.resize(crate::support::size(8, 2));
    crate::support::feed(&mut emulator, "\x1b[1;5Hx");
    assert_eq!(rows(&mut emulator), ["abc x", "日"]);
    emulator.resize(crate::support::size(4, 2));
    assert!(!emulator.screen().rows[0].wrapped, "the row ended when it was wider");
}
