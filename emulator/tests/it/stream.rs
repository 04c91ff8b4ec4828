//! Random terminal streams that look like what programs send, and like what they should not.

use proptest::prelude::*;

/// A piece of a stream.
pub(crate) fn fragment() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => "[ -~]{1,30}".prop_map(String::into_bytes),
        6 => Just(b"\r\n".to_vec()),
        2 => "[日本語端末😀é─]{1,12}".prop_map(String::into_bytes),
        1 => "[a-c]\u{301}{1,3}".prop_map(String::into_bytes),
        1 => "[👨👩🇩🇪❤\u{200d}\u{fe0f}]{1,8}".prop_map(String::into_bytes),
        1 => "[a-z]{60,200}".prop_map(String::into_bytes),
        2 => prop::sample::select(&[b"\r" as &[u8], b"\n", b"\t", b"\x08", b"\x0b", b"\x0e", b"\x0f", b"\x07"][..])
            .prop_map(<[u8]>::to_vec),
        6 => (1..12_u16, 1..30_u16, prop::sample::select(b"ABCDEFGHIJKLMPSTXZ@`abdefgm".to_vec()))
            .prop_map(|(a, b, last)| format!("\x1b[{a};{b}{}", char::from(last)).into_bytes()),
        3 => (0..4_u16, prop::sample::select(b"JK".to_vec()), any::<bool>())
            .prop_map(|(what, last, private)| {
                format!("\x1b[{}{what}{}", if private { "?" } else { "" }, char::from(last)).into_bytes()
            }),
        3 => prop::sample::select(MODES).prop_map(|sequence| sequence.as_bytes().to_vec()),
        2 => prop::sample::select(COLOURS).prop_map(|sequence| sequence.as_bytes().to_vec()),
        1 => prop::sample::select(STRINGS).prop_map(|sequence| sequence.as_bytes().to_vec()),
    ]
}

/// Without what clears or resets the history.
pub(crate) fn gentle_fragment() -> impl Strategy<Value = Vec<u8>> {
    fragment().prop_filter("keeps the history", |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let clears = text.starts_with("\x1bc") || (text.starts_with("\x1b[3") && text.ends_with('J'));
        // An unfinished sequence could become one that clears.
        let unfinished = text.ends_with('\x1b') || text.ends_with("\x1b[");
        !clears && !unfinished
    })
}

pub(crate) fn stream() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(fragment(), 0..60).prop_map(|fragments| fragments.concat())
}

const MODES: &[&str] = &[
    "\x1b[?1049h",
    "\x1b[?1049l",
    "\x1b[?47h",
    "\x1b[?47l",
    "\x1b[?1047h",
    "\x1b[?1047l",
    "\x1b[?1048h",
    "\x1b[?1048l",
    "\x1b[?6h",
    "\x1b[?6l",
    "\x1b[?7h",
    "\x1b[?7l",
    "\x1b[?45h",
    "\x1b[?45l",
    "\x1b[?1045h",
    "\x1b[?1045l",
    "\x1b[?41h",
    "\x1b[?6;7;25;45;1049s",
    "\x1b[?6;7;25;45;1049r",
    "\x1bV",
    "\x1b[?69h",
    "\x1b[?69l",
    "\x1b[2;5s",
    "\x1b[3;9s",
    "\x1b6",
    "\x1b9",
    "\x1b[33;2;2;4;6$x",
    "\x1b[2;2;4;6$z",
    "\x1b[2;2;4;6${",
    "\x1b[1;1;3;4;1;2;3;1$v",
    "\x1b[1;2;3;4;1;7$r",
    "\x1b[1;2;3;4;7$t",
    "\x1b[2*x",
    "\x1b[?2027h",
    "\x1b[?2027l",
    "\x1bW",
    "\x1b[4h",
    "\x1b[4l",
    "\x1b[20h",
    "\x1b[20l",
    "\x1b[?3h",
    "\x1b[?25l",
    "\x1b[?25h",
    "\x1b[r",
    "\x1b[2;4r",
    "\x1b[1;3r",
    "\x1b7",
    "\x1b8",
    "\x1bD",
    "\x1bE",
    "\x1bM",
    "\x1bH",
    "\x1b(0",
    "\x1b(B",
    "\x1b)0",
    "\x1b#8",
    "\x1bc",
    "\x1b[!p",
    "\x1b[?2026h",
    "\x1b[?2026l",
    "\x1b[2 @",
    "\x1b[2 A",
    "\x1b[2'}",
    "\x1b[2'~",
    "\x1b[1\"q",
    "\x1b[0\"q",
    "\x1b[?5W",
    "\x1b[3g",
    "\x1b[s",
    "\x1b[u",
];
const COLOURS: &[&str] =
    &["\x1b[0m", "\x1b[1;31m", "\x1b[44m", "\x1b[7m", "\x1b[38;5;200m", "\x1b[48;2;1;2;3m", "\x1b[4:3;58:5:1m"];
const STRINGS: &[&str] = &[
    "\x1b]0;title\x07",
    "\x1b]8;;https://x.example/\x07",
    "\x1b]8;;\x1b\\",
    "\x1bkname\x1b\\",
    "\x1bkstray",
    "\x1b]4;1;?\x07",
    "\x1b[6n",
    "\x1b[c",
    "\x1b[?u",
    "\x1bP$qm\x1b\\",
    "\x1b_hidden\x1b\\",
    "\x1b[",
    "\x1b]2;open",
    "\x18",
    "\x1b",
];
