//! What the tests share.

use std::time::Duration;

use kpty_emulator::{Emulator, Limits, Mode, Request, Settings, Size};

pub(crate) fn size(cols: u16, rows: u16) -> Size {
    Size::new(cols, rows).unwrap()
}

pub(crate) fn terminal(cols: u16, rows: u16) -> Emulator {
    limited(cols, rows, Limits::default())
}

pub(crate) fn limited(cols: u16, rows: u16, limits: Limits) -> Emulator {
    Emulator::new(Settings { size: size(cols, rows), limits, ..Settings::default() })
}

/// Feeds at time zero; returns the bytes of the replies.
pub(crate) fn feed(emulator: &mut Emulator, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    emulator.feed(Duration::ZERO, bytes.as_ref()).bytes
}

pub(crate) fn fed(cols: u16, rows: u16, bytes: impl AsRef<[u8]>) -> Emulator {
    let mut emulator = terminal(cols, rows);
    feed(&mut emulator, bytes);
    emulator
}

/// The lines of a read.
pub(crate) fn lines(emulator: &mut Emulator, request: &Request) -> Vec<String> {
    emulator.read(request, None).lines().map(str::to_owned).collect()
}

/// The visible rows, without the blank ones at the end.
pub(crate) fn rows(emulator: &mut Emulator) -> Vec<String> {
    let request = Request { merge_wrapped: false, ..Request::new(Mode::Viewport) };
    let mut rows = lines(emulator, &request);
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}

/// Everything, by number.
pub(crate) fn full(emulator: &mut Emulator) -> Vec<(u64, String)> {
    let answer = emulator.read(&Request::new(Mode::Full), None);
    answer.line_numbers.iter().copied().zip(answer.lines().map(str::to_owned)).collect()
}

/// `count` lines of the form `line N`.
pub(crate) fn numbered(range: std::ops::Range<usize>) -> String {
    range.map(|number| format!("line {number}\r\n")).collect()
}
