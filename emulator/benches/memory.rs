//! Resident memory of a session that holds 10,000 lines of build log, as a ratio to the bare engine with 10,000 rows.
//! Each figure comes from a process of its own that holds several sessions, so that the allocator's slack counts.

#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

mod support;

use std::process::Command;
use std::time::Duration;

use kpty_emulator::{Emulator, Settings, Size};

use crate::support::workloads::bytes;
use crate::support::{Bare, COLS, ROWS};

const SESSIONS: usize = 8;
const LINES: usize = 10_000;

fn main() {
    if let Some(kind) = std::env::args().skip_while(|argument| argument != "--measure").nth(1) {
        println!("{}", measure(&kind));
        return;
    }
    let bare = child("bare");
    println!("{:<22} {:>12} {:>7}", "10,000 lines", "KiB/session", "ratio");
    for kind in ["bare", "empty-bare", "empty", "fed", "quiet"] {
        let kib = child(kind);
        println!("{kind:<22} {kib:>12.0} {:>7.3}", kib / bare);
    }
}

/// Runs this program again for one figure: memory freed by another measurement would blur it.
fn child(kind: &str) -> f64 {
    let program = std::env::current_exe().expect("the path of this program");
    let output = Command::new(program).args(["--measure", kind]).output().expect("this program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().expect("a number")
}

fn measure(kind: &str) -> f64 {
    let log = bytes("build_log", 4 << 20);
    let end = memchr::memchr_iter(b'\n', &log).nth(LINES - 1).map_or(log.len(), |at| at + 1);
    let log = &log[..end];
    let before = resident_kib();
    let after = match kind {
        "bare" => held(|| {
            let mut bare = Bare::new();
            bare.feed(log);
            bare
        }),
        "empty-bare" => held(Bare::new),
        "empty" => held(|| emulator(b"", false)),
        "fed" => held(|| emulator(log, false)),
        "quiet" => held(|| emulator(log, true)),
        other => panic!("there is no measurement {other}"),
    };
    (after - before) / SESSIONS as f64
}

/// Resident memory while several of a thing are held.
fn held<T>(make: impl Fn() -> T) -> f64 {
    let things: Vec<T> = (0..SESSIONS).map(|_| make()).collect();
    let resident = resident_kib();
    drop(things);
    resident
}

fn emulator(log: &[u8], quiet: bool) -> Emulator {
    let size = Size::new(COLS as u16, ROWS as u16).unwrap_or_default();
    let mut emulator = Emulator::new(Settings { size, ..Settings::default() });
    for piece in log.chunks(4 << 10) {
        emulator.feed(Duration::ZERO, piece);
    }
    if quiet {
        emulator.shrink();
    }
    emulator
}

fn resident_kib() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("a Linux system");
    let pages: f64 = statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).expect("resident pages");
    pages * rustix::param::page_size() as f64 / 1024.0
}
