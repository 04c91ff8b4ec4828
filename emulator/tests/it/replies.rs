//! What the terminal answers: constants and numbers, in order, within the budget.

use std::time::Duration;

use crate::support::{fed, feed, terminal};

#[test]
fn every_query_is_answered() {
    for (query, answer) in [
        ("\x1b[c", "\x1b[?62;22c"),
        ("\x1b[0c", "\x1b[?62;22c"),
        ("\x1bZ", "\x1b[?62c"),
        ("\x1b[>c", "\x1b[>1;277;0c"),
        ("\x1b[=c", "\x1bP!|00000000\x1b\\"),
        ("\x1b[>q", concat!("\x1bP>|kpty ", env!("CARGO_PKG_VERSION"), "\x1b\\")),
        ("\x1b[5n", "\x1b[0n"),
        ("\x1b[3;7H\x1b[6n", "\x1b[3;7R"),
        ("\x1b[3;7H\x1b[?6n", "\x1b[?3;7R"),
        ("\x1b[2;5r\x1b[?6h\x1b[2;3H\x1b[6n", "\x1b[2;3R"),
        ("\x1b[?996n", "\x1b[?997;1n"),
        ("\x1b[14t", "\x1b[4;384;640t"),
        ("\x1b[16t", "\x1b[6;16;8t"),
        ("\x1b[18t", "\x1b[8;24;80t"),
        ("\x1b[19t", "\x1b[9;24;80t"),
        ("\x1b[?u", "\x1b[?0u"),
        ("\x1b[>5u\x1b[?u", "\x1b[?5u"),
        ("\x1b[>5u\x1b[=2;2u\x1b[?u", "\x1b[?7u"),
        ("\x1b[>5u\x1b[<u\x1b[?u", "\x1b[?0u"),
        ("\x1b[?2026$p", "\x1b[?2026;2$y"),
        ("\x1b[?2004$p", "\x1b[?2004;2$y"),
        ("\x1b[?2004h\x1b[?2004$p", "\x1b[?2004;1$y"),
        ("\x1b[?7$p", "\x1b[?7;1$y"),
        ("\x1b[?1049h\x1b[?1049$p", "\x1b[?1049;1$y"),
        ("\x1b[?9999$p", "\x1b[?9999;0$y"),
        ("\x1b[4$p", "\x1b[4;2$y"),
        ("\x1b[4h\x1b[4$p", "\x1b[4;1$y"),
        ("\x1b[1$p", "\x1b[1;4$y"),
        ("\x1b[?66$p", "\x1b[?66;2$y"),
        ("\x1b[?66h\x1b[?66$p", "\x1b[?66;1$y"),
        ("\x1b=\x1b[?66$p", "\x1b[?66;1$y"),
        ("\x1b=\x1b[?66l\x1b[?66$p", "\x1b[?66;2$y"),
        ("\x1b[?1045h\x1b[?1045$p", "\x1b[?1045;1$y"),
        ("\x1b[?41h\x1b[?41$p", "\x1b[?41;1$y"),
        ("\x1b]10;?\x07", "\x1b]10;rgb:e5e5/e5e5/e5e5\x07"),
        ("\x1b]11;?\x1b\\", "\x1b]11;rgb:0000/0000/0000\x1b\\"),
        ("\x1b]4;1;?\x07", "\x1b]4;1;rgb:cdcd/0000/0000\x07"),
        ("\x1b]4;1;#102030\x07\x1b]4;1;?\x07", "\x1b]4;1;rgb:1010/2020/3030\x07"),
        ("\x1b]4;1;#102030\x07\x1b]104;1\x07\x1b]4;1;?\x07", "\x1b]4;1;rgb:cdcd/0000/0000\x07"),
        ("\x1b]11;rgb:ff/ff/ff\x07\x1b]11;?\x07", "\x1b]11;rgb:ffff/ffff/ffff\x07"),
        ("\x1bP$qm\x1b\\", "\x1bP1$r0m\x1b\\"),
        ("\x1b[1;4:3;31;104m\x1bP$qm\x1b\\", "\x1bP1$r0;1;4:3;31;104m\x1b\\"),
        ("\x1b[38;5;99;48;2;1;2;3;58:5:9m\x1bP$qm\x1b\\", "\x1bP1$r0;38:5:99;48:2::1:2:3;58:5:9m\x1b\\"),
        ("\x1bP$q q\x1b\\", "\x1bP1$r2 q\x1b\\"),
        ("\x1b[5 q\x1bP$q q\x1b\\", "\x1bP1$r5 q\x1b\\"),
        ("\x1bP$qr\x1b\\", "\x1bP1$r1;24r\x1b\\"),
        ("\x1b[3;7r\x1bP$qr\x1b\\", "\x1bP1$r3;7r\x1b\\"),
        ("\x1b[1\"q\x1bP$q\"q\x1b\\", "\x1bP1$r1\"q\x1b\\"),
        ("\x1bP$qz\x1b\\", "\x1bP0$r\x1b\\"),
        ("\x1bP$q\x1b\\", "\x1bP0$r\x1b\\"),
        ("\x1bP$qmmmmmmmmmmmmmmm\x1b\\", "\x1bP0$r\x1b\\"),
        ("\x1bP+q436f\x1b\\", "\x1bP0+r\x1b\\"),
    ] {
        let mut emulator = terminal(80, 24);
        let got = feed(&mut emulator, query);
        assert_eq!(String::from_utf8_lossy(&got), answer, "{query:?}");
    }
}

#[test]
fn answers_come_in_the_order_of_the_questions() {
    let mut emulator = terminal(80, 24);
    assert_eq!(feed(&mut emulator, "ab\x1b[6n\x1b[5ncd\x1b[6n"), b"\x1b[1;3R\x1b[0n\x1b[1;5R");
}

#[test]
fn nothing_the_output_chose_comes_back() {
    let secret = "reboot";
    for bytes in [
        format!("\x1b]2;{secret}\x07\x1b[21t\x1b[20t"),
        format!("\x1bk{secret}\x1b\\\x1b[21t"),
        format!("\x1b]2;{secret}\x07\x1b[22t\x1b[23t\x1b[21t"),
        format!("\x1bP$q{secret}\x1b\\"),
        format!("\x1bP+q{secret}\x1b\\"),
        format!("\x1b]52;c;{secret}\x07\x1b]52;c;?\x07"),
        format!("\x1b]4;{secret};?\x07\x1b]10;{secret}\x07"),
        format!("\x1b]8;;{secret}\x07\x05"),
    ] {
        let mut emulator = terminal(80, 24);
        let replies = feed(&mut emulator, &bytes);
        assert!(!String::from_utf8_lossy(&replies).contains(secret), "{bytes:?}");
    }
}

#[test]
fn excess_answers_are_dropped_and_counted() {
    let mut emulator = terminal(80, 24);
    let query = format!("\x1b]4{}\x07", ";1;?".repeat(1_000));
    let replies = emulator.feed(Duration::ZERO, query.as_bytes());
    let each = "\x1b]4;1;rgb:cdcd/0000/0000\x07".len();
    assert_eq!(replies.bytes.len() % each, 0, "only whole answers are given");
    assert_eq!(replies.bytes.len() / each + replies.dropped as usize, 1_000);
    assert!(replies.dropped > 0);
}

#[test]
fn a_question_about_several_colours_is_answered_completely() {
    let mut emulator = terminal(80, 24);
    let query: String = (0..=255).map(|index| format!(";{index};?")).collect();
    let replies = emulator.feed(Duration::ZERO, format!("\x1b]4{query}\x07").as_bytes());
    assert_eq!(replies.dropped, 0);
    assert_eq!(String::from_utf8_lossy(&replies.bytes).matches("rgb:").count(), 256);
    let answer = "\x1b]10;rgb:e5e5/e5e5/e5e5\x07\x1b]11;rgb:0000/0000/0000\x07\x1b]12;rgb:e5e5/e5e5/e5e5\x07";
    assert_eq!(String::from_utf8_lossy(&feed(&mut emulator, "\x1b]10;?;?;?\x07")), answer);
}

#[test]
fn saved_modes_are_restored() {
    for (bytes, mode, expected) in [
        ("\x1b[?7s\x1b[?7l\x1b[?7r", 7, 1),
        ("\x1b[?7l\x1b[?7s\x1b[?7h\x1b[?7r", 7, 2),
        ("\x1b[?7;2004s\x1b[?7l\x1b[?2004h\x1b[?2004;7r", 2004, 2),
        ("\x1b[?7s\x1b[?7l\x1b[?7s\x1b[?7h\x1b[?7r", 7, 2),
        ("\x1b[?7l\x1b[?7r", 7, 2),
        ("\x1b[?9999s\x1b[?9999r", 9999, 0),
        ("\x1b[?1049s\x1b[?1049h\x1b[?1049r", 1049, 2),
        ("\x1b[?7s\x1bc\x1b[?7l\x1b[?7r", 7, 2),
    ] {
        let mut emulator = terminal(20, 4);
        let got = feed(&mut emulator, format!("{bytes}\x1b[?{mode}$p"));
        assert_eq!(String::from_utf8_lossy(&got), format!("\x1b[?{mode};{expected}$y"), "{bytes:?}");
    }
}

#[test]
fn the_end_of_a_string_does_not_pay_twice() {
    for query in ["]10;?\x1b", "P$qm\x1b", "[c\x1b", "]4;1;?\x1b\\\x1b"] {
        let mut emulator = terminal(80, 24);
        let stream = format!("\x1b{}", query.repeat(100));
        let replies = emulator.feed(Duration::ZERO, stream.as_bytes());
        assert!(replies.bytes.len() <= 4 * stream.len(), "{query:?}: {} for {}", replies.bytes.len(), stream.len());
        assert!(!replies.bytes.is_empty(), "{query:?}");
    }
}

#[test]
fn a_title_is_kept_and_pushed() {
    let title = |bytes: &str| fed(20, 2, bytes).screen().title;
    assert_eq!(title("\x1b]0;one\x07").as_deref(), Some("one"));
    assert_eq!(title("\x1b]2;a;b\x1b\\").as_deref(), Some("a;b"));
    assert_eq!(title("\x1bkone\x1b\\").as_deref(), Some("one"));
    assert_eq!(title("\x1b]2;one\x07\x1b[22t\x1b]2;two\x07\x1b[23t").as_deref(), Some("one"));
    assert_eq!(title("\x1b]2;one\x07\x1bc"), None);
    assert_eq!(title("plain"), None);
}
