//! Emulation speed with everything on (numbers, history, markers, a byte ring), as a ratio to the bare engine with
//! 10,000 rows of history in the same run. Rounds are interleaved and timed by the thread's CPU time.
//!
//! `KPTY_BENCH_ROUNDS` and `KPTY_BENCH_MIB` change how long it takes.

#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

mod support;

use std::time::Duration;

use kpty_emulator::{Emulator, Mode, Request, Settings, Size};

use crate::support::workloads::{WORKLOADS, bytes};
use crate::support::{Bare, COLS, ROWS, Ring, median, thread_time};

/// What a session's driver hands over at a time.
const PIECE: usize = 64 << 10;

fn main() {
    #[expect(clippy::disallowed_methods, reason = "a benchmark is set by its environment")]
    let setting = |name: &str, default: usize| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let rounds = setting("KPTY_BENCH_ROUNDS", 5);
    let size = setting("KPTY_BENCH_MIB", 8) << 20;
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    println!("{:<14} {:>10} {:>10} {:>7} {:>8}", "workload", "bare MB/s", "kpty MB/s", "ratio", "spread");
    let mut ratios = Vec::new();
    for (name, _) in WORKLOADS {
        if only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        let stream = bytes(name, size);
        let mut bare = Vec::new();
        let mut ours = Vec::new();
        for _ in 0..rounds {
            bare.push(time(|| feed_bare(&stream)));
            ours.push(time(|| feed_ours(&stream)));
        }
        let spread = bare.iter().copied().fold(0.0, f64::max) / bare.iter().copied().fold(f64::MAX, f64::min) - 1.0;
        let (bare, ours) = (median(bare), median(ours));
        let speed = |seconds: f64| stream.len() as f64 / seconds / 1e6;
        println!(
            "{name:<14} {:>10.1} {:>10.1} {:>7.2} {:>7.0}%",
            speed(bare),
            speed(ours),
            bare / ours,
            spread * 100.0
        );
        ratios.push(bare / ours);
    }
    let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    println!("{:<14} {:>10} {:>10} {mean:>7.2}", "geometric mean", "", "");
}

fn time(work: impl FnOnce()) -> f64 {
    let start = thread_time();
    work();
    (thread_time() - start).as_secs_f64()
}

fn feed_bare(stream: &[u8]) {
    let mut bare = Bare::new();
    for piece in stream.chunks(PIECE) {
        bare.feed(piece);
    }
    std::hint::black_box(&bare.term);
}

fn feed_ours(stream: &[u8]) {
    let size = Size::new(COLS as u16, ROWS as u16).unwrap_or_default();
    let mut emulator = Emulator::new(Settings { size, ..Settings::default() });
    let mut ring = Ring::new();
    let mut since = None;
    for (index, piece) in stream.chunks(PIECE).enumerate() {
        ring.push(piece);
        emulator.feed(Duration::from_millis(index as u64), piece);
        // A reader follows along, so that markers are part of the work.
        if index % 16 == 0 {
            let request = Request { max_lines: Some(40), ..Request::new(Mode::Delta { since }) };
            since = emulator.read(&request, None).delta.map(|delta| delta.marker);
        }
    }
    std::hint::black_box((&emulator.generation(), &since));
}
