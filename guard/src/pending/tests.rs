//! Keys, one by one and by the megabyte.

use std::time::Duration;

use super::*;
use crate::tests::cpu_time;

fn lines(pieces: &[&str]) -> Vec<String> {
    let mut pending = PendingLine::default();
    pieces.iter().flat_map(|piece| pending.type_bytes(piece.as_bytes())).collect()
}

#[test]
fn what_is_typed_in_pieces_is_one_line() {
    assert_eq!(lines(&["rm -rf ", "/", "\r"]), ["rm -rf /"]);
    assert_eq!(lines(&["a\rb\r", "c"]), ["a", "b"]);
    assert_eq!(lines(&["gr\u{fc}n\n"]), ["gr\u{fc}n"]);
    let mut pending = PendingLine::default();
    assert_eq!(pending.type_bytes(b"\xc3"), Vec::<String>::new());
    assert_eq!(pending.type_bytes(b"\xbc\r"), ["\u{fc}"]);
    assert_eq!(pending.type_bytes(b"\xff\xe2\x82"), Vec::<String>::new());
    assert_eq!(pending.type_bytes(b"\xac\r"), ["\u{fffd}\u{20ac}"]);
}

#[test]
fn editing_keys_edit() {
    for (typed, expected) in [
        ("rmx\u{7f} -rf /", "rm -rf /"),
        ("rmx\u{8} -rf /", "rm -rf /"),
        ("echo hi\u{15}rm -rf /", "rm -rf /"),
        ("rm -rf / tmp\u{17}", "rm -rf / "),
        ("ls\u{3}halt", "halt"),
        (" -rf /\u{1}rm", "rm -rf /"),
        ("m -rf /\u{1b}[Hr\u{1b}[F", "rm -rf /"),
        ("mr\u{14} -rf /", "rm -rf /"),
        ("mr -rf /\u{1}\u{6}\u{14}", "rm -rf /"),
        ("rxm\u{1b}[D\u{7f}", "rm"),
        ("halt\u{1}\u{b}\u{19}", "halt"),
        ("one two\u{1b}\u{7f}", "one "),
        ("one two\u{1b}b\u{1b}d", "one "),
        ("one two\u{1}\u{1b}f\u{1b}d", "one"),
        ("a\u{16}\u{3}b", "a\u{3}b"),
        ("a\u{1b}[Ab\u{1b}[1;5Cc", "abc"),
        ("\u{1b}[114u\u{1b}[109;1u", "rm"),
        ("x\u{1b}[117;5urm", "rm"),
    ] {
        assert_eq!(edited(typed), expected, "{typed:?}");
        assert_eq!(lines(&[typed, "\r"]), [expected], "{typed:?}");
    }
}

#[test]
fn keys_that_tell_nothing_make_the_line_unknown() {
    for (typed, expected) in [
        ("ls -la\u{7f}\u{1}\u{5}\u{1b}b\u{1b}[D\u{c}", false),
        ("\u{1b}[200~a\tb\u{1b}[201~", false),
        ("a\u{17}b\u{19}", false),
        ("a b\u{17}\u{17}", false),
        ("a b\u{17}\u{17}\u{19}", true),
        ("\u{19}", true),
        ("a\t", true),
        ("a\u{7}", true),
        ("mark\u{1b}[C", true),
        ("mark\u{5}", true),
        ("a\u{1c}", true),
        ("a\u{1f}", true),
        ("a\u{1d}b", true),
        ("\u{10}", true),
        ("\u{12}ls", true),
        ("\u{18}*", true),
        ("\u{1b}[A", true),
        ("\u{1b}OA", true),
        ("a\u{1b}l", true),
        ("a\u{1b}t", true),
        ("a\u{1b}5", true),
        ("a\u{1b}.", true),
        ("a\u{1b}\rb", true),
        ("a\u{f}", true),
        ("\u{1b}[A\u{3}ls", false),
        ("\u{1b}[A\rls", false),
    ] {
        let mut pending = PendingLine::default();
        pending.type_bytes(typed.as_bytes());
        assert_eq!(pending.is_unknown(), expected, "{typed:?}");
    }
}

#[test]
fn the_key_that_sends_a_line_off_is_found() {
    for (typed, start, end) in [
        ("ls\rx", 2, 3),
        ("\n", 0, 1),
        ("a\u{1b}OMb", 1, 4),
        ("a\u{1b}[13ub", 1, 6),
        ("\u{fc}\u{1b}\r", 2, 4),
        ("\u{1b}[200~a\rb\u{1b}[201~\r", 15, 16),
    ] {
        let found = PendingLine::default().type_until_enter(typed.as_bytes()).expect("a line is sent off");
        assert_eq!((found.start, found.end), (start, end), "{typed:?}");
    }
    let mut pending = PendingLine::default();
    assert_eq!(pending.type_until_enter(b"a\x1bO"), None);
    assert_eq!(pending.type_until_enter(b"Mb").map(|enter| (enter.start, enter.end)), Some((0, 1)));
}

#[test]
fn a_bracketed_paste_is_sent_off_by_enter_only() {
    assert_eq!(lines(&["\u{1b}[200~a\rb\u{1b}[201~"]), Vec::<String>::new());
    assert_eq!(lines(&["\u{1b}[200~a\rb\u{1b}[201~\r"]), ["a\nb"]);
    assert_eq!(lines(&["\u{1b}[20", "0~x\u{1b}[2", "01~\r"]), ["x"]);
}

#[test]
fn a_command_that_goes_on_is_seen_whole() {
    assert_eq!(lines(&["rm \\\r", "-rf /\r", "ls\r"]), ["rm \\", "-rf /", "rm \\\n-rf /", "ls"]);
    assert_eq!(lines(&["echo '\r", "'; halt\r"]), ["echo '", "'; halt", "echo '\n'; halt"]);
    let long = format!("echo '{}", "x\r".repeat(30_000));
    let all = lines(&[&long, "'; halt\r"]);
    assert!(all.last().is_some_and(|whole| whole.starts_with("echo 'x\n") && whole.ends_with("'; halt")));
}

#[test]
fn a_line_without_end_is_bounded_and_unknown() {
    let mut pending = PendingLine::default();
    pending.type_bytes(&vec![b'x'; LONGEST_LINE]);
    assert!(!pending.is_unknown() && pending.len() == LONGEST_LINE);
    pending.type_bytes(b"x");
    assert!(pending.is_unknown() && pending.is_long() && pending.is_empty());
    assert_eq!(pending.type_bytes(b"\r").len(), 1);
    assert!(!pending.is_unknown() && pending.is_empty());
}

/// Not a benchmark: bounds that only something that is not linear would miss.
#[test]
fn hostile_typing_ends_soon() {
    const BYTES: usize = 4 << 20;
    let many = |piece: &str| piece.repeat(BYTES / piece.len());
    let wide = format!("{}{}", "x".repeat(LONGEST_LINE / 2), many("\u{1}a\u{5}b"));
    for typed in [
        many("x"),
        many("x y\r"),
        many("\u{f}"),
        many("\u{1b}OM"),
        many("\u{1}x"),
        many("xy\u{1}\u{b}\u{19}"),
        many("a\\\r"),
        many("\u{1b}b\u{1b}d"),
        many("\u{1b}[D\u{16}x"),
        wide,
    ] {
        let took = cpu_time::of(|| drop(PendingLine::default().type_bytes(typed.as_bytes())));
        assert!(took < Duration::from_secs(4), "{:?} took {took:?}", &typed[..12]);
    }
}
