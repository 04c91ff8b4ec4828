//! Time to render a full screen of 120x40 cells with text, many colours and boxes in every cell.
//!
//! `cargo bench --bench picture`. The limit is 10 ms for the SVG.

#![allow(clippy::print_stdout, reason = "a benchmark says what it measured")]

use std::time::{Duration, Instant};

use kpty::picture::{self, Look, Subject};
use kpty_emulator::{Emulator, Settings, Size};

const ROUNDS: usize = 50;

fn main() {
    let size = Size::new(120, 40).unwrap_or_default();
    let mut emulator = Emulator::new(Settings { size, ..Settings::default() });
    for row in 1..=40 {
        let mut line = format!("\x1b[{row};1H");
        for word in 0..15 {
            line += &format!("\x1b[0;{};3{};4{}m│w{word:02}─é日", word % 5, word % 8, (word + row) % 8);
        }
        emulator.feed(Duration::ZERO, line.as_bytes());
    }
    let subject = Subject::recorded(emulator.screen());
    measure("svg", || picture::svg(&subject, Look::default()).map(String::into_bytes));
    measure("png", || picture::png(&subject, Look::default()));
}

fn measure(name: &str, draw: impl Fn() -> kpty::error::Result<Vec<u8>>) {
    let mut times = Vec::new();
    let mut bytes = 0;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        bytes = draw().map_or(0, |picture| picture.len());
        times.push(begun.elapsed());
    }
    times.sort();
    println!("{name} of 120x40: median {:?}, longest {:?}, {bytes} bytes", times[ROUNDS / 2], times[ROUNDS - 1]);
}
