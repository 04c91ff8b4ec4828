//! How long the guard takes to judge a line: ordinary ones, and the worst that we could think of, at several lengths.
//!
//! `cargo bench --bench guard`. The bound is 1 ms for 1 KB, and growth with the length.

#![allow(clippy::print_stdout, reason = "a benchmark says what it measured")]

use std::time::{Duration, Instant};

use kpty::guard::Policy;

const ROUNDS: usize = 30;

fn main() {
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
