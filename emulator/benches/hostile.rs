//! CPU per megabyte of output that is made to cost far more than its length, at several sizes of the window.
//!
//! `KPTY_BENCH_MIB` changes how much of each is fed.

#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

mod support;

use std::time::Duration;

use kpty_emulator::{Emulator, Settings, Size};

use crate::support::thread_time;

/// What a session's driver hands over at a time.
const PIECE: usize = 16 << 10;
const SIZES: [(u16, u16); 4] = [(80, 24), (120, 30), (300, 100), (500, 200)];
/// What each stream repeats.
const STREAMS: [(&str, &str); 36] = [
    ("REP, huge", "a\x1b[65535b"),
    ("REP, wide", "\u{65e5}\x1b[65535b"),
    ("REP, a row", "a\x1b[200b\r"),
    ("DECCRA, a row down", "\x1b[;;;;;2$v"),
    ("DECCRA, a column right", "\x1b[;;;;;;2$v"),
    ("DECFRA", "\x1b[65$x"),
    ("DECERA", "\x1b[$z"),
    ("DECSERA", "\x1b[${"),
    ("DECCARA", "\x1b[;;;;7$r"),
    ("DECRARA", "\x1b[;;;;7$t"),
    ("DECALN", "\x1b#8"),
    ("RIS", "\x1bc"),
    ("text, RIS", "a\x1bc"),
    ("DECALN, RIS", "\x1b#8\x1bc"),
    ("DECALN, ED 2", "\x1b#8\x1b[2J"),
    ("alternate screen, RIS", "\x1b[?47h\x1bc"),
    ("ED 2", "\x1b[2J"),
    ("text, ED 2", "a\x1b[2J"),
    ("ED 2 in two colours", "\x1b[41m\x1b[2J\x1b[42m\x1b[2J"),
    ("ED 0", "\x1b[H\x1b[J"),
    ("DECSED of protected", "\x1b[1\"qa\x1b[?2J"),
    ("alternate screen 1049", "\x1b[?1049h\x1b[?1049l"),
    ("alternate screen 47", "\x1b[?47h\x1b[?47l"),
    ("alternate screen, ED 2", "\x1b[?1049h\x1b[2J"),
    ("updates toggled", "\x1b[?2026h\x1b[?2026l"),
    ("REP in updates", "\x1b[?2026ha\x1b[65535b\x1b[?2026l"),
    ("DECCOLM", "\x1b[?3h"),
    ("SU, a screen", "\x1b[999S"),
    ("SD, a screen", "\x1b[999T"),
    ("IL and DL", "\x1b[H\x1b[L\x1b[M"),
    ("RI at the top", "\x1bM"),
    ("LF in a region", "\x1b[2;9r\x1b[9H\n"),
    ("columns: SL, SR", "\x1b[ @\x1b[ A"),
    ("DECBI", "\x1b6"),
    ("margins, LF", "\x1b[?69h\x1b[2;60s\x1b[999;9H\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"),
    ("insert mode", "\x1b[4h\raaaaaaaaaaaaaaaa"),
];

fn main() {
    #[expect(clippy::disallowed_methods, reason = "a benchmark is set by its environment")]
    let mib: f64 = std::env::var("KPTY_BENCH_MIB").ok().and_then(|v| v.parse().ok()).unwrap_or(0.5);
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    print!("{:<24}", "s/MB");
    SIZES.iter().for_each(|(cols, rows)| print!(" {:>9}", format!("{cols}x{rows}")));
    println!();
    for (name, unit) in STREAMS {
        if only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        let stream = unit.repeat((mib * 1e6) as usize / unit.len());
        print!("{name:<24}");
        for (cols, rows) in SIZES {
            let size = Size::new(cols, rows).unwrap_or_default();
            let mut emulator = Emulator::new(Settings { size, ..Settings::default() });
            // A history that is full already.
            emulator.feed(Duration::ZERO, "some line of text\r\n".repeat(12_000).as_bytes());
            let start = thread_time();
            for piece in stream.as_bytes().chunks(PIECE) {
                emulator.feed(Duration::ZERO, piece);
            }
            print!(" {:>9.3}", (thread_time() - start).as_secs_f64() / stream.len() as f64 * 1e6);
        }
        println!();
    }
}
