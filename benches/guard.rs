//! Time to classify a command line: ordinary lines and the slowest known ones, at several lengths.
//!
//! `cargo bench --bench guard`. The limit is 1 ms per KB with linear growth; a short line should take less than 20 µs.

#![allow(clippy::print_stdout, reason = "a benchmark says what it measured")]

use std::time::{Duration, Instant};

use kpty_guard::Policy;

const ROUNDS: usize = 30;
/// Calls per round for a short line.
const CALLS: u32 = 200;

fn main() {
    for line in ["echo X12", "cargo test -p kpty", "git status", "cd src && make 2>&1 | tail -5", "(cd x; ls) | wc -l"]
    {
        println!("{line}: {:?}", per_call(line));
    }
    for (name, piece) in [
        ("commands", "cd src && cargo test --all -- --nocapture | tee log.txt; "),
        ("prose", "please look at the tests and don't change the code "),
        ("substitutions", "echo $(date) \"${HOME}/x\" | grep -v foo; "),
        ("brackets", "("),
        ("open substitutions", "$("),
        ("quotes", "'\""),
        ("braces", "{a,b}"),
        ("doubling variables", "x=$x$x; "),
        ("junk", "a)b;;|&<<x\n"),
    ] {
        let times = [1, 4, 16, 64].map(|kilobytes| {
            let line = piece.repeat((kilobytes << 10) / piece.len());
            format!("{kilobytes} KB {:?}", median(&line))
        });
        println!("{name}: {}", times.join(", "));
    }
}

/// Returns the time of one call, the fastest of several rounds. Every typed line is classified.
fn per_call(line: &str) -> Duration {
    let policy = Policy::default();
    let round = |_| {
        let begun = Instant::now();
        (0..CALLS).for_each(|_| drop(std::hint::black_box(policy.judge(line))));
        begun.elapsed()
    };
    (0..ROUNDS).map(round).min().unwrap_or_default() / CALLS
}

fn median(line: &str) -> Duration {
    let policy = Policy::default();
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begun = Instant::now();
            let _ = std::hint::black_box(policy.judge(line));
            begun.elapsed()
        })
        .collect();
    times.sort();
    times[ROUNDS / 2]
}
