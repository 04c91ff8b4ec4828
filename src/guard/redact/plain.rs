//! Text without escape sequences, and where each of its bytes stood.
//!
//! Colours and modes join what is left and right of them; a moved cursor parts it. What strings of the terminal carry
//! (titles, links) is handed out apart, so that it is looked at too and not taken for text.

use std::ops::Range;

/// The visible bytes of a stretch of output.
#[derive(Debug, Default)]
pub(super) struct Plain {
    /// The bytes.
    pub(super) bytes: Vec<u8>,
    /// Where each stood.
    pub(super) at: Vec<usize>,
    /// Where strings of the terminal stand: titles, links and the like, without their frames.
    pub(super) strings: Vec<Range<usize>>,
    /// Where a sequence begins that has not ended.
    pub(super) open: Option<usize>,
}

/// True when the bytes have something to take out.
pub(super) fn has_controls(bytes: &[u8]) -> bool {
    bytes.iter().any(|&byte| byte < 0x20 && !matches!(byte, b'\n' | b'\t'))
}

/// Takes the sequences out.
pub(super) fn plain(raw: &[u8]) -> Plain {
    let mut plain =
        Plain { bytes: Vec::with_capacity(raw.len()), at: Vec::with_capacity(raw.len()), ..Plain::default() };
    let mut at = 0;
    while at < raw.len() {
        match raw[at] {
            0x1b => match sequence(raw, at, &mut plain) {
                Some(end) => at = end,
                None => {
                    plain.open = Some(at);
                    return plain;
                }
            },
            // How line editors step over the right edge: a space on the next line, taken back.
            b' ' if raw.get(at + 1) == Some(&b'\r') && raw.get(at + 2).is_some_and(u8::is_ascii_graphic) => at += 2,
            b'\r' if raw.get(at + 1) == Some(&b'\n') => at += 1,
            b'\r' => {
                plain.push(b'\n', at);
                at += 1;
            }
            byte if byte < 0x20 && !matches!(byte, b'\n' | b'\t') => at += 1,
            0x7f => at += 1,
            byte => {
                plain.push(byte, at);
                at += 1;
            }
        }
    }
    plain
}

impl Plain {
    fn push(&mut self, byte: u8, at: usize) {
        self.bytes.push(byte);
        self.at.push(at);
    }
}

/// Reads the sequence at a place and returns its end; `None` when it goes on after the text.
fn sequence(raw: &[u8], at: usize, plain: &mut Plain) -> Option<usize> {
    match raw.get(at + 1)? {
        b'[' => {
            let body = &raw[at + 2..];
            let length = body.iter().position(|byte| !(0x20..=0x3f).contains(byte))?;
            let last = body[length];
            // Another control character breaks it off.
            if !(0x40..=0x7e).contains(&last) {
                return Some(at + 2 + length);
            }
            if b"ABDEFGHILMSTZdefrsu`".contains(&last) {
                plain.push(b'\n', at);
            }
            Some(at + 2 + length + 1)
        }
        b']' | b'P' | b'X' | b'^' | b'_' => {
            let start = at + 2;
            let length = memchr::memchr3(0x07, 0x1b, 0x18, &raw[start..])?;
            plain.strings.push(start..start + length);
            match raw[start + length] {
                0x1b if raw.get(start + length + 1)? == &b'\\' => Some(start + length + 2),
                0x1b => Some(start + length),
                _ => Some(start + length + 1),
            }
        }
        b' '..=b'/' => {
            let body = &raw[at + 2..];
            let length = body.iter().position(|byte| !(0x20..=0x2f).contains(byte))?;
            Some(at + 2 + length + 1)
        }
        b'E' | b'D' | b'M' | b'c' | b'8' => {
            plain.push(b'\n', at);
            Some(at + 2)
        }
        0x1b => Some(at + 1),
        _ => Some(at + 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_is_kept() {
        for (raw, expected) in [
            ("plain\r\ntext", "plain\ntext"),
            ("a\x1b[1mb\x1b[0mc", "abc"),
            ("a\x1b[38;5;3mb\x1b[Kc\x1b(Bd", "abcd"),
            ("a\x1b[2;1Hb\rc", "a\nb\nc"),
            ("a\x1b]0;title\x07b\x1b]8;;x\x1b\\c", "abc"),
            ("edge \rgoes on", "edgegoes on"),
            ("a\x07\x08\x0fb", "ab"),
            ("open\x1b[3", "open"),
            ("open\x1b]0;tit", "open"),
        ] {
            let plain = plain(raw.as_bytes());
            assert_eq!(String::from_utf8_lossy(&plain.bytes), expected, "{raw:?}");
            assert_eq!(plain.bytes.len(), plain.at.len());
        }
        assert_eq!(plain(b"x\x1b[3").open, Some(1));
        assert_eq!(plain(b"x\x1b]0;abc\x07").strings.first(), Some(&(3..8)));
    }
}
