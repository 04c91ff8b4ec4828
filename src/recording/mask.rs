//! Redacts secrets in a stream of output with little delay.
//!
//! Redaction needs complete lines. A full-screen program writes no line ends and a prompt waits without one, so output
//! that has been quiet for a while is released, except for an incomplete word at its end. As a result, a word typed
//! letter by letter appears late, and a secret that a program splits by moving the cursor is not found.
//!
//! Only what is released can be written: see [`Released`].

use std::borrow::Cow;
use std::sync::Arc;

use kpty_emulator::Screen;
use kpty_guard::{LineRedactor, Redactor};

use super::paint;
use crate::masked::MaskedScreen;

/// Maximum bytes held back.
const MAX_HELD: usize = 64 << 10;
/// Maximum bytes of a trailing word that stay held back.
const MAX_WORD: usize = 8 << 10;
/// Maximum bytes of the released part of a line that are examined again with what follows; they may name the secret.
const MAX_RELEASED_CONTEXT: usize = 4 << 10;

/// Bytes of a session that may be written to a file: redacted, or as they are because the caller asked for that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Released(Vec<u8>);

impl Released {
    /// Releases the whole output of a session; without a redactor, as it is.
    pub fn output(bytes: Vec<u8>, redactor: Option<&Redactor>) -> Self {
        // Bytes that are no text stay what they are where nothing is hidden.
        let masked = redactor.and_then(|redactor| match redactor.redact(&String::from_utf8_lossy(&bytes)) {
            Cow::Owned(masked) => Some(masked.into_bytes()),
            Cow::Borrowed(_) => None,
        });
        Self(masked.unwrap_or(bytes))
    }

    /// Releases the screen of a session.
    pub fn screen(screen: &MaskedScreen) -> Self {
        Self(paint(screen.cells()))
    }

    /// Releases a screen as it is, because the caller asked for that.
    pub fn raw_screen(screen: &Screen) -> Self {
        Self(paint(screen))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Nothing was released.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds what was released later.
    pub(super) fn extend(&mut self, later: Self) {
        self.0.extend(later.0);
    }
}

/// Redacts one direction of a session.
pub(super) struct StreamRedactor {
    /// `None` passes everything through.
    lines: Option<LineRedactor>,
    held: Vec<u8>,
    /// Released part of the current line.
    released: Vec<u8>,
}

impl StreamRedactor {
    pub(super) fn new(redactor: Option<Arc<Redactor>>) -> Self {
        Self { lines: redactor.map(|redactor| redactor.lines()), held: Vec::new(), released: Vec::new() }
    }

    /// Returns whether bytes are held back that [`StreamRedactor::quiet`] would release.
    pub(super) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Adds a chunk; returns the complete lines so far.
    pub(super) fn push(&mut self, piece: &[u8]) -> Released {
        if self.lines.is_none() {
            return Released(piece.to_vec());
        }
        self.held.extend_from_slice(piece);
        let end = memchr::memrchr(b'\n', &self.held).map_or(0, |at| at + 1);
        let end = if self.held.len() - end > MAX_HELD { self.word_start() } else { end };
        self.release(end)
    }

    /// Releases everything except a trailing word, after a quiet period.
    pub(super) fn quiet(&mut self) -> Released {
        self.release(self.word_start())
    }

    /// Releases everything at the end of the stream.
    pub(super) fn finish(&mut self) -> Released {
        self.release(self.held.len())
    }

    /// Returns where the trailing word of the held bytes begins.
    fn word_start(&self) -> usize {
        let goes_on = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+/=.~%:".contains(&byte);
        let (mut start, mut at) = (None, 0);
        while at < self.held.len() {
            // Colour sequences do not end a word.
            let colour = colour(&self.held[at..]);
            if colour == 0 && !goes_on(self.held[at]) {
                start = None;
            } else if start.is_none() {
                start = Some(at);
            }
            at += colour.max(1);
        }
        start.filter(|start| self.held.len() - start <= MAX_WORD).unwrap_or(self.held.len())
    }

    fn release(&mut self, end: usize) -> Released {
        let Some(lines) = &mut self.lines else { return Released::default() };
        let raw: Vec<u8> = self.held.drain(..end).collect();
        let mut released = Vec::with_capacity(raw.len());
        for piece in raw.split_inclusive(|&byte| byte == b'\n') {
            let (from, is_whole) = (self.released.len(), piece.ends_with(b"\n"));
            self.released.extend_from_slice(piece);
            released.extend(lines.redact_rest(&self.released, from, is_whole));
            let surplus =
                if is_whole { self.released.len() } else { self.released.len().saturating_sub(MAX_RELEASED_CONTEXT) };
            self.released.drain(..surplus);
        }
        Released(released)
    }
}

/// Returns the length of a colour sequence at the start, complete or not; 0 if there is none.
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

    fn mask() -> StreamRedactor {
        StreamRedactor::new(Some(Arc::new(Redactor::new(["geheimnis-123".to_owned()]))))
    }

    #[test]
    fn a_secret_in_pieces_is_found() {
        let mut mask = mask();
        let mut released = Released::default();
        for piece in ["a geh", "eim", "nis-1", "23 b\r\nnext geheim"] {
            released.extend(mask.push(piece.as_bytes()));
            released.extend(mask.quiet());
        }
        assert!(mask.is_holding());
        released.extend(mask.push(b"nis-123"));
        released.extend(mask.finish());
        assert_eq!(String::from_utf8_lossy(released.as_bytes()), "a [REDACTED] b\r\nnext [REDACTED]");
    }

    #[test]
    fn a_colour_or_a_pause_inside_a_secret_hides_nothing_from_the_mask() {
        let value = ["q7Xk2Zm9", "Tw4Rb8c1"].concat();
        for pieces in [
            ["a geheim", "\x1b[1", ";31mnis", "\x1b[0m-123 b\r\n"].map(str::to_owned),
            ["password: ".to_owned(), value[..9].to_owned(), value[9..].to_owned(), " b\r\n".to_owned()],
        ] {
            let mut mask = mask();
            let mut released = Released::default();
            for piece in &pieces {
                released.extend(mask.push(piece.as_bytes()));
                released.extend(mask.quiet());
            }
            released.extend(mask.finish());
            let released = String::from_utf8_lossy(released.as_bytes()).into_owned();
            assert!(released.contains("[REDACTED") && released.ends_with(" b\r\n"), "{released:?}");
            assert!(!released.contains("geheim") && !released.contains(&value[..9]), "{released:?}");
        }
    }

    #[test]
    fn a_prompt_and_a_drawing_are_let_go_when_it_is_quiet() {
        let mut mask = mask();
        assert_eq!(mask.push(b"$ ").as_bytes(), b"");
        assert_eq!(mask.quiet().as_bytes(), b"$ ");
        mask.push(b"\x1b[2;3H|");
        assert_eq!(mask.quiet().as_bytes(), b"\x1b[2;3H|");
        assert!(!mask.is_holding());
    }

    #[test]
    fn what_is_held_has_a_bound_and_bytes_stay_bytes() {
        let mut mask = mask();
        let flood = [&b"x "[..]; 100_000].concat();
        let mut released = mask.push(&flood);
        assert!(mask.held.len() <= MAX_HELD);
        released.extend(mask.push(b"\xff\xfe"));
        released.extend(mask.finish());
        assert_eq!(released.as_bytes(), [&flood[..], b"\xff\xfe"].concat());
        let mut open = StreamRedactor::new(None);
        assert_eq!(open.push(b"geheimnis-123").as_bytes(), b"geheimnis-123");
        assert!(!open.is_holding());
    }
}
