//! The raw output of a session: the newest bytes, each with its offset from the session's first byte.
//!
//! Some bytes more than are shown stay behind them, so that a secret that begins before what is shown is known.

use std::collections::VecDeque;

/// Bytes before the oldest one shown.
const LEAD: usize = 8 << 10;

/// A bounded store of bytes that forgets the oldest.
#[derive(Debug)]
pub(super) struct Ring {
    bytes: VecDeque<u8>,
    /// Offset of the first byte that is kept.
    start: u64,
    capacity: usize,
}

impl Ring {
    /// An empty one that holds at most `capacity` bytes.
    pub(super) fn new(capacity: usize) -> Self {
        Self { bytes: VecDeque::new(), start: 0, capacity: capacity.max(1) }
    }

    /// Appends; the oldest bytes make room.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let most = self.capacity + LEAD;
        let kept = &bytes[bytes.len().saturating_sub(most)..];
        let surplus = (self.bytes.len() + kept.len()).saturating_sub(most);
        self.bytes.drain(..surplus);
        self.bytes.extend(kept);
        self.start += (surplus + bytes.len() - kept.len()) as u64;
    }

    /// Offset after the last byte: how many there were in all.
    pub(super) fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Bytes kept to be shown.
    pub(super) fn len(&self) -> usize {
        self.bytes.len().min(self.capacity)
    }

    /// Offset of the oldest byte that is shown.
    fn first(&self) -> u64 {
        self.end() - self.len() as u64
    }

    /// True when nothing was ever written.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes between two offsets, as far as they are kept. The second value tells whether all of them are.
    pub(super) fn slice(&self, from: u64, until: u64) -> (Vec<u8>, bool) {
        let is_whole = from >= self.first();
        let first = from.clamp(self.first(), self.end());
        let last = until.clamp(first, self.end());
        (self.copied(first, last), is_whole)
    }

    /// The same bytes, and those before them that tell whether they begin inside a secret: the beginning of their
    /// first line and so many whole lines before it, as far as they are kept.
    pub(super) fn slice_with_lead(&self, from: u64, until: u64, lines: usize) -> (Vec<u8>, Vec<u8>) {
        let first = from.clamp(self.first(), self.end());
        let farthest = first.saturating_sub(LEAD as u64).max(self.start);
        let before = (farthest - self.start) as usize..(first - self.start) as usize;
        let newline = self.bytes.range(before).rev().enumerate().filter(|(_, byte)| **byte == b'\n').nth(lines);
        let lead = newline.map_or(farthest, |(distance, _)| first - distance as u64);
        (self.copied(lead, first), self.copied(first, until.clamp(first, self.end())))
    }

    fn copied(&self, from: u64, until: u64) -> Vec<u8> {
        let (from, until) = ((from - self.start) as usize, (until - self.start) as usize);
        let (front, back) = self.bytes.as_slices();
        let border = front.len();
        let (in_front, in_back) = (from.min(border)..until.min(border), from.max(border)..until.max(border));
        [&front[in_front], &back[in_back.start - border..in_back.end - border]].concat()
    }

    /// Offset of the last bytes, at most `max`, beginning with a whole character.
    pub(super) fn tail_from(&self, max: usize) -> u64 {
        let mut from = self.bytes.len() - self.len().min(max);
        if from > 0 || self.start > 0 {
            // A UTF-8 character has at most three bytes after its first.
            let is_inside = |at: &usize| self.bytes.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
            from += (from..from + 3).take_while(is_inside).count();
        }
        self.start + from.min(self.bytes.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(ring: &Ring, max: usize) -> Vec<u8> {
        ring.slice(ring.tail_from(max), u64::MAX).0
    }

    #[test]
    fn offsets_go_on_while_the_oldest_bytes_go() {
        let mut ring = Ring::new(8);
        assert!(ring.is_empty());
        ring.push(b"abcdef");
        assert_eq!((ring.end(), ring.slice(0, 6)), (6, (b"abcdef".to_vec(), true)));
        ring.push(b"ghijk");
        assert_eq!((ring.end(), ring.len()), (11, 8));
        assert_eq!(ring.slice(0, 5), (b"de".to_vec(), false));
        assert_eq!(ring.slice(4, 9), (b"efghi".to_vec(), true));
        assert_eq!(ring.slice(9, 99), (b"jk".to_vec(), true));
        ring.push(b"0123456789abcdef");
        assert_eq!((ring.end(), tail(&ring, 100)), (27, b"89abcdef".to_vec()));
        assert_eq!(ring.slice(3, 2), (Vec::new(), false));
    }

    #[test]
    fn a_tail_begins_with_a_whole_character() {
        let mut ring = Ring::new(100);
        ring.push("a日本".as_bytes());
        for (max, expected) in [(7, "a日本"), (6, "日本"), (5, "本"), (4, "本"), (3, "本"), (2, ""), (0, "")] {
            assert_eq!(String::from_utf8(tail(&ring, max)).expect("whole characters"), expected, "{max}");
        }
    }

    #[test]
    fn what_is_no_longer_shown_still_leads() {
        let mut ring = Ring::new(4);
        ring.push(b"abcdef");
        assert_eq!(ring.slice_with_lead(0, 99, 0), (b"ab".to_vec(), b"cdef".to_vec()));
        assert_eq!(ring.slice_with_lead(5, 6, 0), (b"abcde".to_vec(), b"f".to_vec()));
        ring.push(&[b'x'; 3 * LEAD]);
        assert_eq!(ring.slice_with_lead(0, 99, 0).0.len(), LEAD);
    }

    #[test]
    fn a_lead_has_as_many_lines_as_are_asked_for() {
        let mut ring = Ring::new(100);
        ring.push(b"a\nbb\nccc\ndddd!");
        for (lines, expected) in
            [(0, "dddd"), (1, "ccc\ndddd"), (2, "bb\nccc\ndddd"), (3, "a\nbb\nccc\ndddd"), (9, "a\nbb\nccc\ndddd")]
        {
            let (lead, rest) = ring.slice_with_lead(13, 99, lines);
            assert_eq!(
                (String::from_utf8_lossy(&lead).as_ref(), rest.as_slice()),
                (expected, b"!".as_slice()),
                "{lines}"
            );
        }
    }
}
