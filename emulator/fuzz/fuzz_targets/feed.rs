//! Feeds any bytes, whole to one terminal and in pieces to another, and holds the two against each other and their
//! reads against the promises.
//!
//! The first four bytes choose size, limits and the length of the pieces. In what follows `0xfe cols rows` resizes and
//! `0xff n` looks at the terminal in one of several ways; neither byte is part of any UTF-8 text.

#![no_main]

use std::time::Duration;

use kpty_emulator::{Answer, Emulator, Limits, Mode, Replies, Request, Settings, Size, Which};
use libfuzzer_sys::fuzz_target;

/// Bytes that may come back for each byte fed.
const ANSWER_RATIO: usize = 4;

fuzz_target!(|data: &[u8]| {
    let Some((&[cols, rows, limits, piece], stream)) = data.split_first_chunk() else { return };
    let mut pair = Pair::new(size(cols, rows), settings(limits), 1 + usize::from(piece % 16));
    let mut rest = stream;
    while let Some(at) = rest.iter().position(|&byte| byte >= 0xfe) {
        pair.feed(&rest[..at]);
        rest = match rest[at..] {
            [0xfe, cols, rows, ..] => {
                pair.both(|emulator| emulator.resize(size(cols, rows)));
                &rest[at + 3..]
            }
            [0xff, n, ..] => {
                pair.act(n);
                &rest[at + 2..]
            }
            _ => &[],
        };
    }
    pair.feed(rest);
    pair.check();
});

fn size(cols: u8, rows: u8) -> Size {
    Size::new(1 + u16::from(cols), 1 + u16::from(rows % 64)).expect("within the bounds")
}

/// Small limits, so that short inputs reach them.
fn settings(choice: u8) -> Limits {
    let of = |shift: u8, values: [usize; 4]| values[usize::from(choice >> shift & 3)];
    Limits {
        history_lines: of(0, [10_000, 0, 1, 5]),
        live_rows: of(2, [1_000, 0, 10, 50]),
        longest_line: of(4, [32_768, 1, 10, 100]),
        markers: of(6, [64, 1, 2, 4]),
        ..Limits::default()
    }
}

/// The same terminal twice.
struct Pair {
    whole: Emulator,
    pieces: Emulator,
    piece: usize,
    now: Duration,
    fed: usize,
    answered: usize,
}

impl Pair {
    fn new(size: Size, limits: Limits, piece: usize) -> Self {
        let new = || Emulator::new(Settings { size, limits, ..Settings::default() });
        Self { whole: new(), pieces: new(), piece, now: Duration::ZERO, fed: 0, answered: 0 }
    }

    fn feed(&mut self, bytes: &[u8]) {
        let whole = self.whole.feed(self.now, bytes);
        let mut pieces = Replies::default();
        for piece in bytes.chunks(self.piece) {
            pieces.append(self.pieces.feed(self.now, piece));
        }
        self.fed += bytes.len();
        self.compare_replies(whole, pieces);
    }

    fn both<T>(&mut self, mut action: impl FnMut(&mut Emulator) -> T) -> (T, T) {
        (action(&mut self.whole), action(&mut self.pieces))
    }

    fn act(&mut self, n: u8) {
        match n % 8 {
            0 => drop(self.both(Emulator::shrink)),
            1 => {
                let (whole, pieces) = self.both(Emulator::flush);
                self.compare_replies(whole, pieces);
            }
            2 | 3 => {
                self.now += Duration::from_millis(u64::from(n));
                let now = self.now;
                let (whole, pieces) = self.both(|emulator| emulator.tick(now));
                self.compare_replies(whole, pieces);
            }
            _ => self.check(),
        }
    }

    fn compare_replies(&mut self, whole: Replies, pieces: Replies) {
        assert_eq!(whole, pieces, "replies depend on the pieces");
        self.answered += whole.bytes.len();
        assert!(self.answered <= ANSWER_RATIO * self.fed, "{} bytes for {}", self.answered, self.fed);
    }

    fn check(&mut self) {
        let (whole, pieces) = self.both(|emulator| emulator.screen());
        assert_eq!(whole, pieces, "the screen depends on the pieces");
        for which in [Which::Active, Which::Main] {
            let (whole, pieces) = self.both(|emulator| read(emulator, which, Mode::Full, |_| ()));
            assert_eq!(whole, pieces, "the text depends on the pieces");
            check_reads(&mut self.whole, which, &whole);
        }
    }
}

fn read(emulator: &mut Emulator, which: Which, mode: Mode, change: impl FnOnce(&mut Request)) -> Answer {
    let mut request = Request { which, ..Request::new(mode) };
    change(&mut request);
    let answer = emulator.read(&request, None);
    let lines: Vec<&str> = answer.lines().collect();
    assert_eq!(lines.join("\n"), answer.text);
    assert_eq!(lines.len(), answer.line_numbers.len());
    assert!(answer.line_numbers.is_sorted());
    assert_eq!(answer.first_line, answer.line_numbers.first().copied().unwrap_or(answer.next_line));
    assert!(answer.oldest_line <= answer.first_line && answer.oldest_line <= answer.next_line);
    answer
}

fn check_reads(emulator: &mut Emulator, which: Which, full: &Answer) {
    assert!(full.line_numbers.iter().copied().eq(full.oldest_line..full.next_line));
    let rows = usize::from(emulator.size().rows());
    let viewport = read(emulator, which, Mode::Viewport, |request| request.merge_wrapped = false);
    assert_eq!(viewport.line_numbers.len(), rows, "a viewport has as many entries as rows");

    let tail = read(emulator, which, Mode::Tail, |request| request.max_lines = Some(rows));
    assert!(full.text.ends_with(&tail.text) && full.line_numbers.ends_with(&tail.line_numbers));
    assert_eq!(tail.line_numbers.len(), rows.min(full.line_numbers.len()));

    let short = read(emulator, which, Mode::Full, |request| request.max_chars = Some(rows));
    let (kept, all) = (short.text.chars().count(), full.text.chars().count());
    assert!(kept <= rows && full.text.ends_with(&short.text));
    assert_eq!((kept + short.dropped_chars, short.truncated), (all, all > rows));

    let mut seen = Vec::new();
    let mut filter = |line: &str| {
        seen.push(line.to_owned());
        None
    };
    let request = Request { which, ..Request::new(Mode::Full) };
    let filtered = emulator.read(&request, Some(&mut filter));
    assert!(seen.iter().map(String::as_str).eq(full.lines()), "the filter sees every line once and whole");
    assert_eq!(filtered.text, full.text, "a filter that changes nothing changes nothing");
}
