//! Remembers the private keys that a stream of output showed.
//!
//! A key goes over many lines, and only its first says what it is. Whoever reads a screen from which that line is gone
//! cannot know; so the lines are learned while they pass.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::blocks::{Block, Line};
use super::plain;

/// Bytes before a piece that are looked at again, for headings that were cut.
const LOOKED_BACK: usize = 96;
/// Longest line of a key, in bytes.
const LONGEST_LINE: usize = 8 << 10;
/// Shorter lines are not learned: they would hide ordinary words.
const SHORTEST_LINE: usize = 12;
/// What the first lines of private keys have. To prepare a search takes longer than to look through a short piece.
static HEADINGS: LazyLock<[Finder<'static>; 3]> =
    LazyLock::new(|| ["PRIVATE KEY", "Private-Lines: ", "OpenVPN Static key V"].map(Finder::new));

/// Follows a stream of output.
#[derive(Debug, Default)]
pub struct KeyWatch {
    /// The end of what came before.
    tail: Vec<u8>,
    block: Option<Block>,
    /// The beginning of a line inside a block.
    line: Vec<u8>,
}

impl KeyWatch {
    /// Takes the next piece and returns the lines of private keys that ended in it.
    pub fn feed(&mut self, piece: &[u8]) -> Vec<String> {
        let mut learned = Vec::new();
        let mut rest = piece;
        while !rest.is_empty() {
            rest = match self.block {
                Some(_) => self.follow(rest, &mut learned),
                None => self.seek(rest),
            };
        }
        learned
    }

    /// Looks for a heading. Returns what comes after its line, or nothing.
    fn seek<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        let before = self.tail.len();
        let near = &piece[..piece.len().min(LOOKED_BACK)];
        let mut border = std::mem::take(&mut self.tail);
        border.extend_from_slice(near);
        let at_border = heading(&border).map(|found| found.end.saturating_sub(before));
        let beyond = (piece.len() > near.len()).then_some(piece);
        let found = at_border.or_else(|| beyond.and_then(heading).map(|found| found.end));
        match found {
            Some(end) => {
                self.block = Some(Block::default());
                // The rest of the heading's own line is none of the key.
                self.line = vec![b'-'; 1];
                &piece[end.min(piece.len())..]
            }
            None => {
                let keep = border.len().min(LOOKED_BACK).min(before + near.len());
                self.tail = match piece.len() >= LOOKED_BACK {
                    true => piece[piece.len() - LOOKED_BACK..].to_vec(),
                    false => border[border.len() - keep..].to_vec(),
                };
                &[]
            }
        }
    }

    /// Reads the next line of a block. Returns what comes after it.
    fn follow<'a>(&mut self, piece: &'a [u8], learned: &mut Vec<String>) -> &'a [u8] {
        let Some(newline) = memchr::memchr(b'\n', piece) else {
            self.line.extend_from_slice(piece);
            if self.line.len() > LONGEST_LINE {
                self.leave();
            }
            return &[];
        };
        self.line.extend_from_slice(&piece[..newline]);
        let line = std::mem::take(&mut self.line);
        let is_heading = line.first() == Some(&b'-') && heading_rest(&line);
        if let Some(block) = &mut self.block
            && !is_heading
        {
            let plain = plain::plain(line.trim_ascii_end()).bytes;
            match block.feed(&plain) {
                Line::Hidden(range) => learned.extend(text(&plain, range)),
                Line::Passed => {}
                Line::Over => self.leave(),
            }
        }
        &piece[newline + 1..]
    }

    fn leave(&mut self) {
        (self.block, self.line, self.tail) = (None, Vec::new(), Vec::new());
    }
}

/// What is left of a heading's line: dashes, a number, nothing.
fn heading_rest(line: &[u8]) -> bool {
    let rest = line.strip_prefix(b"-").unwrap_or(line).trim_ascii();
    let rest = rest.strip_prefix(b"BLOCK").unwrap_or(rest);
    rest.iter().all(|byte| *byte == b'-' || byte.is_ascii_digit() || *byte < 0x20)
}

/// The line of a key, if it is long enough to differ from words.
fn text(line: &[u8], range: Range<usize>) -> Option<String> {
    let text = std::str::from_utf8(&line[range]).ok()?;
    (text.len() >= SHORTEST_LINE).then(|| text.to_owned())
}

fn heading(text: &[u8]) -> Option<Range<usize>> {
    HEADINGS.iter().find_map(|heading| {
        let at = heading.find(text)?;
        let heading = heading.needle();
        let before = &text[at.saturating_sub(60)..at];
        let is_begin = memchr::memmem::rfind(before, b"BEGIN ").is_some() || heading.starts_with(b"Private-");
        is_begin.then(|| at..at + heading.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_key_are_learned_however_they_come() {
        let (first, second) = ("Ab1/".repeat(16), "c2D+".repeat(8));
        let text = format!(
            "$ cat k\r\n-----BEGIN \x1b[1mEC PRIVATE KEY-----\r\n{first}\r\n{}\x1b[0m{}\r\n-----END EC PRIVATE KEY-----\r\n$ ls\r\n",
            &second[..9],
            &second[9..]
        );
        for size in [1, 2, 3, 7, 64, 1_000] {
            let mut watch = KeyWatch::default();
            let learned: Vec<_> = text.as_bytes().chunks(size).flat_map(|piece| watch.feed(piece)).collect();
            assert_eq!(learned, [first.clone(), second.clone()], "{size}");
            assert_eq!(watch.block, None);
        }
    }

    #[test]
    fn certificates_and_prose_are_not_learned() {
        let body = "Ab1/".repeat(16);
        for text in [
            format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n"),
            format!("the PRIVATE KEY\n{body}\n"),
            "BEGIN of the PRIVATE KEY story\nonce upon a time\n".to_owned(),
        ] {
            assert_eq!(KeyWatch::default().feed(text.as_bytes()), Vec::<String>::new(), "{text}");
        }
    }
}
