//! Secrets out of a stream of output, without holding it up for long.
//!
//! A secret is found where its line is whole. A program that draws writes no line ends, and a prompt waits without one,
//! so what has been quiet for a while is let go, all but a word at its end that may go on. A word that is typed letter
//! by letter is seen late for that, and a secret that a program itself breaks by moving the cursor is not found.

use std::sync::Arc;

use kpty_guard::{LineRedactor, Redactor};

/// Bytes that are held at most.
const MOST_HELD: usize = 64 << 10;
/// Bytes of a word at the end that are held on, at most.
const LONGEST_WORD: usize = 8 << 10;
/// Bytes of a line that were let go and are looked at again with what follows them: they may name it.
const MOST_SHOWN: usize = 4 << 10;

/// Masks one direction of a session.
pub(super) struct Mask {
    /// None lets everything through.
    lines: Option<LineRedactor>,
    held: Vec<u8>,
    /// The beginning of the line that was let go already.
    shown: Vec<u8>,
}

impl Mask {
    pub(super) fn new(redactor: Option<Arc<Redactor>>) -> Self {
        Self { lines: redactor.map(|redactor| redactor.lines()), held: Vec::new(), shown: Vec::new() }
    }

    /// Something is held that [`Mask::quiet`] lets go.
    pub(super) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Takes a piece; returns the whole lines of all so far.
    pub(super) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        if self.lines.is_none() {
            return piece.to_vec();
        }
        self.held.extend_from_slice(piece);
        let end = memchr::memrchr(b'\n', &self.held).map_or(0, |at| at + 1);
        let end = if self.held.len() - end > MOST_HELD { self.word_start() } else { end };
        self.release(end)
    }

    /// Nothing came for a while: all but an open word can go.
    pub(super) fn quiet(&mut self) -> Vec<u8> {
        self.release(self.word_start())
    }

    /// Nothing comes any more.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        self.release(self.held.len())
    }

    /// Where the word begins that the held bytes end in.
    fn word_start(&self) -> usize {
        let goes_on = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+/=.~%:".contains(&byte);
        let (mut start, mut at) = (None, 0);
        while at < self.held.len() {
            // Colours do not end a word.
            let colour = colour(&self.held[at..]);
            if colour == 0 && !goes_on(self.held[at]) {
                start = None;
            } else if start.is_none() {
                start = Some(at);
            }
            at += colour.max(1);
        }
        start.filter(|start| self.held.len() - start <= LONGEST_WORD).unwrap_or(self.held.len())
    }

    fn release(&mut self, end: usize) -> Vec<u8> {
        let Some(lines) = &mut self.lines else { return Vec::new() };
        let released: Vec<u8> = self.held.drain(..end).collect();
        let mut shown = Vec::with_capacity(released.len());
        for piece in released.split_inclusive(|&byte| byte == b'\n') {
            let (from, is_whole) = (self.shown.len(), piece.ends_with(b"\n"));
            self.shown.extend_from_slice(piece);
            shown.extend(lines.redact_rest(&self.shown, from, is_whole));
            let surplus = if is_whole { self.shown.len() } else { self.shown.len().saturating_sub(MOST_SHOWN) };
            self.shown.drain(..surplus);
        }
        shown
    }
}

/// The length of the colour that the bytes begin with, or of what may become one; 0 where there is none.
fn colour(bytes: &[u8]) -> usize {
    let inside = match bytes {
        [0x1b] => return 1,
        [0x1b, b'[', inside @ ..] => inside,
        _ => return 0,
    };
    let length = inside.iter().take_while(|byte| byte.is_ascii_digit() || b";:".contains(byte)).count();
    match inside.get(length) {
        None | Some(b'm') => (length + 3).min(bytes.len()),
        Some(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask() -> Mask {
        Mask::new(Some(Arc::new(Redactor::new(["geheimnis-123".to_owned()]))))
    }

    #[test]
    fn a_secret_in_pieces_is_found() {
        let mut mask = mask();
        let mut shown = Vec::new();
        for piece in ["a geh", "eim", "nis-1", "23 b\r\nnext geheim"] {
            shown.extend(mask.push(piece.as_bytes()));
            shown.extend(mask.quiet());
        }
        assert!(mask.is_holding());
        shown.extend(mask.push(b"nis-123"));
        shown.extend(mask.finish());
        assert_eq!(String::from_utf8_lossy(&shown), "a [REDACTED] b\r\nnext [REDACTED]");
    }

    #[test]
    fn a_colour_or_a_pause_inside_a_secret_hides_nothing_from_the_mask() {
        let value = ["q7Xk2Zm9", "Tw4Rb8c1"].concat();
        for pieces in [
            ["a geheim", "\x1b[1", ";31mnis", "\x1b[0m-123 b\r\n"].map(str::to_owned),
            ["password: ".to_owned(), value[..9].to_owned(), value[9..].to_owned(), " b\r\n".to_owned()],
        ] {
            let mut mask = mask();
            let mut shown = Vec::new();
            for piece in &pieces {
                shown.extend(mask.push(piece.as_bytes()));
                shown.extend(mask.quiet());
            }
            shown.extend(mask.finish());
            let shown = String::from_utf8_lossy(&shown).into_owned();
            assert!(shown.contains("[REDACTED") && shown.ends_with(" b\r\n"), "{shown:?}");
            assert!(!shown.contains("geheim") && !shown.contains(&value[..9]), "{shown:?}");
        }
    }

    #[test]
    fn a_prompt_and_a_drawing_are_let_go_when_it_is_quiet() {
        let mut mask = mask();
        assert_eq!(mask.push(b"$ "), b"");
        assert_eq!(mask.quiet(), b"$ ");
        mask.push(b"\x1b[2;3H|");
        assert_eq!(mask.quiet(), b"\x1b[2;3H|");
        assert!(!mask.is_holding());
    }

    #[test]
    fn what_is_held_has_a_bound_and_bytes_stay_bytes() {
        let mut mask = mask();
        let flood = [&b"x "[..]; 100_000].concat();
        let mut shown = mask.push(&flood);
        assert!(mask.held.len() <= MOST_HELD);
        shown.extend(mask.push(b"\xff\xfe"));
        shown.extend(mask.finish());
        assert_eq!(shown, [&flood[..], b"\xff\xfe"].concat());
        let mut open = Mask::new(None);
        assert_eq!(open.push(b"geheimnis-123"), b"geheimnis-123");
        assert!(!open.is_holding());
    }
}
