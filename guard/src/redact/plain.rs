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
    /// Stretches that were taken over as they stood: where each begins here, and where it began there.
    runs: Vec<(usize, usize)>,
    /// Where strings of the terminal stand: titles, links and the like, without their frames.
    pub(super) strings: Vec<Range<usize>>,
    /// Where a sequence begins that has not ended.
    pub(super) open: Option<usize>,
}

/// Bytes that are looked at in one step, so that the compiler does it with few instructions.
const AT_ONCE: usize = 32;

const fn is_control(byte: u8) -> bool {
    byte < 0x20 && byte != b'\n' && byte != b'\t' || byte == 0x7f
}

/// The same as a table, for bytes one by one.
static CONTROLS: [bool; 256] = {
    let mut controls = [false; 256];
    let mut byte = 0;
    while byte < controls.len() {
        controls[byte] = is_control(byte as u8);
        byte += 1;
    }
    controls
};

/// True when the bytes have something to take out.
pub(super) fn has_controls(bytes: &[u8]) -> bool {
    until_control(bytes) < bytes.len()
}

/// Bytes before the first that is to be taken out, or to be looked at.
fn until_control(bytes: &[u8]) -> usize {
    let has_one = |piece: &[u8]| piece.iter().fold(false, |has_one, byte| has_one | is_control(*byte));
    let pieces = bytes.chunks_exact(AT_ONCE);
    let clean = AT_ONCE * pieces.take_while(|piece| !has_one(piece)).count();
    clean + bytes[clean..].iter().position(|byte| CONTROLS[usize::from(*byte)]).unwrap_or(bytes.len() - clean)
}

/// Takes the sequences out.
pub(super) fn plain(raw: &[u8]) -> Plain {
    let mut plain = Plain { bytes: Vec::with_capacity(raw.len()), ..Plain::default() };
    let mut at = 0;
    while at < raw.len() {
        let clean = until_control(&raw[at..]);
        plain.take(raw, at..at + clean);
        at += clean;
        match raw.get(at) {
            Some(0x1b) => match sequence(raw, at, &mut plain) {
                Some(end) => at = end,
                None => {
                    plain.open = Some(at);
                    return plain;
                }
            },
            // How line editors step over the right edge: a space on the next line, taken back.
            Some(b'\r') if clean > 0 && raw[at - 1] == b' ' && raw.get(at + 1).is_some_and(u8::is_ascii_graphic) => {
                plain.bytes.pop();
                at += 1;
            }
            Some(b'\r') if raw.get(at + 1) != Some(&b'\n') => {
                plain.push(b'\n', at);
                at += 1;
            }
            Some(_) => at += 1,
            None => {}
        }
    }
    plain
}

impl Plain {
    fn take(&mut self, raw: &[u8], range: Range<usize>) {
        if !range.is_empty() {
            self.runs.push((self.bytes.len(), range.start));
            self.bytes.extend_from_slice(&raw[range]);
        }
    }

    fn push(&mut self, byte: u8, at: usize) {
        self.runs.push((self.bytes.len(), at));
        self.bytes.push(byte);
    }

    /// Where the bytes of a stretch stood, piece by piece.
    pub(super) fn places(&self, range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let first = self.runs.partition_point(|(start, _)| *start <= range.start).saturating_sub(1);
        let runs = self.runs[first..].iter().take_while(move |(start, _)| *start < range.end);
        let next = self.runs[first..].iter().skip(1).map(|(start, _)| *start).chain([self.bytes.len()]);
        runs.zip(next).map(move |((start, stood), next)| {
            let (from, to) = (range.start.max(*start), range.end.min(next));
            stood + (from - start)..stood + (to.max(from) - start)
        })
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
            (" \ra", "a"),
            ("a \r\r b\x7fc", "a \n\n bc"),
            ("\x1b[ \rb", "\nb"),
        ] {
            let plain = plain(raw.as_bytes());
            assert_eq!(String::from_utf8_lossy(&plain.bytes), expected, "{raw:?}");
            for at in 0..plain.bytes.len() {
                let stood: Vec<_> = plain.places(at..at + 1).filter(|place| !place.is_empty()).collect();
                assert!(matches!(&stood[..], [one] if one.len() == 1), "{raw:?} {at} {stood:?}");
            }
        }
        assert_eq!(plain(b"x\x1b[3").open, Some(1));
        assert_eq!(plain(b"x\x1b]0;abc\x07").strings.first(), Some(&(3..8)));
    }
}
