//! How long a read takes, and a bare rendering of the same rows beside it.

#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

mod support;

use std::time::Duration;

use kpty_emulator::{Emulator, Mode, Request, Settings, Size};

use crate::support::workloads::bytes;
use crate::support::{COLS, ROWS, median, thread_time};

const ROUNDS: usize = 2_000;

fn main() {
    println!("{:<14} {:<22} {:>9}", "screen", "read", "p50 µs");
    for name in ["build_log", "dense_ascii", "unicode_mix", "sgr_heavy"] {
        let size = Size::new(COLS as u16, ROWS as u16).unwrap_or_default();
        let mut emulator = Emulator::new(Settings { size, ..Settings::default() });
        emulator.feed(Duration::ZERO, &bytes(name, 2 << 20));
        let capped = |mode, max_lines| Request { max_lines, ..Request::new(mode) };
        let rows = Request { merge_wrapped: false, ..Request::new(Mode::Viewport) };
        for (what, request) in [
            ("viewport 120x30", Request::new(Mode::Viewport)),
            ("viewport, rows", rows),
            ("tail 40", capped(Mode::Tail, Some(40))),
            ("tail 200", capped(Mode::Tail, Some(200))),
            ("full", Request::new(Mode::Full)),
        ] {
            let rounds = if what == "full" { 50 } else { ROUNDS };
            let times = (0..rounds).map(|_| {
                let start = thread_time();
                std::hint::black_box(emulator.read(&request, None));
                (thread_time() - start).as_secs_f64() * 1e6
            });
            println!("{name:<14} {what:<22} {:>9.1}", median(times.collect()));
        }
        let mut since = None;
        let times = (0..ROUNDS).map(|_| {
            emulator.feed(Duration::ZERO, b"one more line\r\n");
            let start = thread_time();
            since = emulator.read(&Request::new(Mode::Delta { since }), None).delta.map(|delta| delta.marker);
            (thread_time() - start).as_secs_f64() * 1e6
        });
        println!("{name:<14} {:<22} {:>9.1}", "delta of one line", median(times.collect()));
    }
}
