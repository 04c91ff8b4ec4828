//! Synchronized updates (mode 2026): the bytes of a frame are held back until the frame is whole.
//!
//! Owns the held bytes and the rule that ends the wait: the end of the update, 150 ms, or the bound. A screen
//! is therefore never frozen, whatever a program does or fails to do.

use std::time::Duration;

/// An update open for longer is shown as far as it came.
pub(crate) const SYNC_TIMEOUT: Duration = Duration::from_millis(150);
/// An update with more bytes is shown as far as it came; a frame of 200 × 60 cells in ever new colours has about this many.
pub(crate) const SYNC_LIMIT: usize = 256 << 10;
/// What every end of an update begins with.
const END_PREFIX: &[u8] = b"\x1b[?";
/// Longest rest of it that is understood: it may share the sequence with other modes.
const END_REST: usize = 64;

/// Bytes taken between two looks for the end.
const STEP: usize = 512;

/// The bytes of an open update.
#[derive(Debug)]
pub(crate) struct Held {
    bytes: Vec<u8>,
    since: Duration,
}

/// What became of bytes that were offered to an open update.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// All were taken; the update is still open.
    Open,
    /// The update is to be shown; so many of the offered bytes belong to it.
    Complete(usize),
}

impl Held {
    pub(crate) fn new(since: Duration) -> Self {
        Self { bytes: Vec::new(), since }
    }

    pub(crate) fn deadline(&self) -> Duration {
        self.since.saturating_add(SYNC_TIMEOUT)
    }

    /// Takes bytes up to the end of the update or to the bound.
    pub(crate) fn offer(&mut self, bytes: &[u8]) -> Hold {
        let begin = self.bytes.len();
        let room = bytes.len().min(SYNC_LIMIT - begin);
        // Steps, because most updates end long before what came with them does.
        for step in bytes[..room].chunks(STEP) {
            let before = self.bytes.len();
            self.bytes.extend_from_slice(step);
            if let Some(end) = find_end(&self.bytes, before.saturating_sub(END_PREFIX.len() + END_REST)) {
                self.bytes.truncate(end);
                // What was held before did not contain the end, so it lies in the new bytes.
                return Hold::Complete(end - begin);
            }
        }
        if self.bytes.len() == SYNC_LIMIT { Hold::Complete(room) } else { Hold::Open }
    }

    /// The bytes, to be shown.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

/// Where the first sequence that resets mode 2026 ends, looking at sequences that begin at `from` or later.
fn find_end(bytes: &[u8], from: usize) -> Option<usize> {
    memchr::memchr_iter(0x1b, &bytes[from..])
        .map(|at| from + at)
        .find_map(|start| end_of_update(&bytes[start..]).map(|len| start + len))
}

/// Length of the sequence at the start of `bytes` if it is `CSI ? … l` with 2026 among its parameters.
fn end_of_update(bytes: &[u8]) -> Option<usize> {
    let params = bytes.strip_prefix(END_PREFIX)?;
    let len = params.iter().take(END_REST).position(|byte| !matches!(byte, b'0'..=b'9' | b';'))?;
    let resets = params[len] == b'l' && params[..len].split(|&byte| byte == b';').any(|mode| mode == b"2026");
    resets.then_some(END_PREFIX.len() + len + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_in_every_form_and_at_every_split() {
        let long = format!("\x1b[?2026;{}l", "0".repeat(58));
        for end in ["\x1b[?2026l", "\x1b[?25;2026l", "\x1b[?2026;25l", &long] {
            let stream = format!("\x1b[?2026habc\x1b[?20261l\x1b[?2025l{end}tail");
            let whole = stream.len() - "tail".len();
            for split in 0..=whole {
                let (head, tail) = stream.as_bytes().split_at(split);
                let mut held = Held::new(Duration::ZERO);
                let result = match held.offer(head) {
                    Hold::Open => held.offer(tail),
                    complete => complete,
                };
                let expected = if split == whole { whole } else { whole - split };
                assert_eq!(result, Hold::Complete(expected), "{end:?} split at {split}");
                assert_eq!(held.into_bytes(), &stream.as_bytes()[..whole]);
            }
        }
    }

    #[test]
    fn an_update_ends_at_the_bound() {
        let mut held = Held::new(Duration::ZERO);
        assert_eq!(held.offer(&vec![b'x'; SYNC_LIMIT - 1]), Hold::Open);
        assert_eq!(held.offer(b"xyz"), Hold::Complete(1));
        assert_eq!(held.into_bytes().len(), SYNC_LIMIT);
    }
}
