//! Rectangular areas: filled, erased, copied, and given other attributes.

use kpty_emulator::Attributes;

use crate::support::{fed, rows};

const GRID: &str = "abcdef\r\nghijkl\r\nmnopqr\r\nstuvwx";

#[test]
fn areas_are_filled_erased_and_copied() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("DECFRA fills", "\x1b[33;2;2;3;4$x", &["abcdef", "g!!!kl", "m!!!qr", "stuvwx"]),
        ("DECFRA without corners fills the screen", "\x1b[33$x", &["!!!!!!", "!!!!!!", "!!!!!!", "!!!!!!"]),
        ("DECFRA is cut at the edge", "\x1b[33;4;6;99;99$x", &["abcdef", "ghijkl", "mnopqr", "stuvw!"]),
        ("DECFRA with corners out of order", "\x1b[33;3;3;2;2$x", &["abcdef", "ghijkl", "mnopqr", "stuvwx"]),
        ("DECFRA off the screen", "\x1b[33;9;9$x", &["abcdef", "ghijkl", "mnopqr", "stuvwx"]),
        ("DECFRA with a control", "\x1b[7;2;2;3;4$x", &["abcdef", "ghijkl", "mnopqr", "stuvwx"]),
        ("DECFRA without a character", "\x1b[$x", &["abcdef", "ghijkl", "mnopqr", "stuvwx"]),
        ("DECERA erases", "\x1b[2;2;3;4$z", &["abcdef", "g   kl", "m   qr", "stuvwx"]),
        ("DECERA without corners erases the screen", "\x1b[$z", &[]),
        ("DECSERA erases", "\x1b[2;2;3;4${", &["abcdef", "g   kl", "m   qr", "stuvwx"]),
        (
            "DECSERA spares protected cells",
            "\x1b[2;2H\x1b[1\"qX\x1b[2;2;3;4${",
            &["abcdef", "gX  kl", "m   qr", "stuvwx"],
        ),
        (
            "DECERA erases protected cells",
            "\x1b[2;2H\x1b[1\"qX\x1b[2;2;3;4$z",
            &["abcdef", "g   kl", "m   qr", "stuvwx"],
        ),
        ("DECCRA copies", "\x1b[1;1;2;2;1;3;4;1$v", &["abcdef", "ghijkl", "mnoabr", "stughx"]),
        ("DECCRA over itself, down", "\x1b[1;1;3;3;1;2;2;1$v", &["abcdef", "gabckl", "mghiqr", "smnowx"]),
        ("DECCRA over itself, up", "\x1b[2;2;4;4;1;1;1;1$v", &["hijdef", "nopjkl", "tuvpqr", "stuvwx"]),
        ("DECCRA without a target copies to the top", "\x1b[2;2;3;3$v", &["hicdef", "noijkl", "mnopqr", "stuvwx"]),
        ("DECCRA is cut at the edge", "\x1b[1;1;2;2;1;4;6;1$v", &["abcdef", "ghijkl", "mnopqr", "stuvwa"]),
        ("DECCRA off the screen", "\x1b[1;1;2;2;1;9;9;1$v", &["abcdef", "ghijkl", "mnopqr", "stuvwx"]),
        ("an area in origin mode", "\x1b[2;3r\x1b[?6h\x1b[33;1;1;9;2$x", &["abcdef", "!!ijkl", "!!opqr", "stuvwx"]),
        (
            "an area in origin mode with margins",
            "\x1b[?69h\x1b[2;5s\x1b[2;4r\x1b[?6h\x1b[33;1;1;2;9$x",
            &["abcdef", "g!!!!l", "m!!!!r", "stuvwx"],
        ),
        ("margins do not confine an area", "\x1b[2;3r\x1b[33;1;1;4;2$x", &["!!cdef", "!!ijkl", "!!opqr", "!!uvwx"]),
        ("the cursor stays", "\x1b[2;2H\x1b[33;1;1;2;1$xX", &["!bcdef", "!Xijkl", "mnopqr", "stuvwx"]),
    ];
    for (what, bytes, expected) in cases {
        let mut emulator = fed(6, 4, format!("{GRID}{bytes}"));
        assert_eq!(rows(&mut emulator), *expected, "{what}: {bytes:?}");
    }
}

#[test]
fn wide_characters_on_the_border_of_an_area_are_cleared_whole() {
    for (bytes, expected) in [
        ("\x1b[33;1;2;1;3$x", vec![" !! c", "abcde"]),
        ("\x1b[1;2;1;3$z", vec!["    c", "abcde"]),
        ("\x1b[1;2;1;4;1;2;1;1$v", vec!["日本c", " 本de"]),
    ] {
        let mut emulator = fed(5, 2, format!("日本c\r\nabcde{bytes}"));
        assert_eq!(rows(&mut emulator), expected, "{bytes:?}");
    }
}

#[test]
fn attributes_change_in_streams_or_in_rectangles() {
    let marked = |bytes: &str, attribute: Attributes| -> Vec<String> {
        let screen = fed(4, 3, format!("abcd\r\nefgh\r\nijkl{bytes}")).screen();
        let row = |row: &kpty_emulator::Row| {
            row.cells.iter().map(|cell| if cell.style.attributes.contains(attribute) { '#' } else { '.' }).collect()
        };
        screen.rows.iter().map(row).collect()
    };
    assert_eq!(marked("\x1b[1;3;3;2;1$r", Attributes::BOLD), ["..##", "####", "##.."]);
    assert_eq!(marked("\x1b[2*x\x1b[1;2;2;3;1$r", Attributes::BOLD), [".##.", ".##.", "...."]);
    assert_eq!(marked("\x1b[2*x\x1b[1;2;2;3;7$t", Attributes::INVERSE), [".##.", ".##.", "...."]);
    assert_eq!(marked("\x1b[2*x\x1b[1;1;3;4;7$t\x1b[1;2;2;3;7$t", Attributes::INVERSE), ["#..#", "#..#", "####"]);
    assert_eq!(marked("\x1b[2*x\x1b[1;1;3;4;4$r\x1b[2;1;2;4;0$r", Attributes::UNDERLINE), ["####", "....", "####"]);
}
