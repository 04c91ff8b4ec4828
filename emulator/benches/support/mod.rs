//! What the benchmarks share: the workloads, a clock that neighbours do not disturb, a table.

#![allow(dead_code, reason = "each benchmark uses its part")]
#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

pub(crate) mod workloads;

use std::time::Duration;

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::term::{Config, Term};
use alacritty_terminal::vte::ansi::Processor;

/// The geometry of all measurements.
pub(crate) const COLS: usize = 120;
pub(crate) const ROWS: usize = 30;
/// Rows of history of the engine we compare with.
pub(crate) const BARE_HISTORY: usize = 10_000;

/// CPU time of this thread, so that other processes cost nothing but cache.
pub(crate) fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The engine as it comes, fed as its documentation says.
pub(crate) struct Bare {
    pub(crate) term: Term<VoidListener>,
    processor: Processor,
}

struct Geometry;

impl Dimensions for Geometry {
    fn total_lines(&self) -> usize {
        ROWS
    }

    fn screen_lines(&self) -> usize {
        ROWS
    }

    fn columns(&self) -> usize {
        COLS
    }
}

impl Bare {
    pub(crate) fn new() -> Self {
        let config = Config { scrolling_history: BARE_HISTORY, ..Config::default() };
        Self { term: Term::new(config, &Geometry, VoidListener), processor: Processor::new() }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.processor.advance(&mut self.term, bytes);
    }
}

/// A plain byte ring of one mebibyte, as every session keeps beside its emulator.
pub(crate) struct Ring {
    bytes: Vec<u8>,
    at: usize,
}

impl Ring {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; 1 << 20], at: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let head = bytes.len().min(self.bytes.len() - self.at);
        self.bytes[self.at..self.at + head].copy_from_slice(&bytes[..head]);
        self.bytes[..bytes.len() - head].copy_from_slice(&bytes[head..]);
        self.at = (self.at + bytes.len()) % self.bytes.len();
    }
}
