//! Cutting text to a size, with exact counts of what is left out.

use kpty_guard::{Masked, MaskedStr};

use super::params::Params;
use super::spec::Param;
use crate::error::Result;
use crate::terminal::joined_with_note;

/// How much of a text an answer has room for.
///
/// Whoever asks for a number of characters gets that many. Unasked an answer stays below 8 KB, because clients cut
/// longer ones, and not where it suits; there a character counts with the bytes that it takes in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    chars: usize,
    bytes: Option<usize>,
}

impl Room {
    /// The number of characters that is given, or as many bytes as the parameter declares.
    pub(super) fn read(params: &mut Params<'_>, param: &Param) -> Result<Self> {
        let given = params.number(param)?.map(|chars| chars as usize);
        let preset = params.preset(param) as usize;
        Ok(Self { chars: given.unwrap_or(preset), bytes: given.is_none().then_some(preset) })
    }

    /// What it has room for in all, in its own measure.
    pub(super) fn size(&self) -> usize {
        self.bytes.unwrap_or(self.chars)
    }

    /// What a text takes of it.
    pub(super) fn cost(&self, text: &str) -> usize {
        if self.bytes.is_some() { json_bytes(text) } else { text.chars().count() }
    }

    /// The same room after something was put into it; a little is always left.
    pub(super) fn without(self, taken: usize) -> Self {
        Self { bytes: self.bytes.map(|bytes| bytes.saturating_sub(taken).max(LEAST_BYTES)), ..self }
    }

    /// Cuts to fewer and fewer characters until the result has room. Returns it with the number of characters.
    pub(super) fn fit<T>(&self, cut: impl Fn(usize) -> T, text: impl Fn(&T) -> &str) -> (T, usize) {
        let mut chars = self.chars;
        loop {
            let result = cut(chars);
            let (taken, room) = (self.cost(text(&result)), self.size() + NOTE_BYTES);
            if taken <= room || chars == 0 {
                return (result, chars);
            }
            // What is cut next may be denser than what is there now.
            chars = (chars * room / taken).min(chars - chars.div_ceil(16));
        }
    }
}

/// What the note between head and tail may take besides.
const NOTE_BYTES: usize = 100;
/// The least that an answer has room for.
const LEAST_BYTES: usize = 500;

/// The length of a text in JSON, without its quotes.
fn json_bytes(text: &str) -> usize {
    let of = |c: char| match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        c if c < ' ' => 6,
        c => c.len_utf8(),
    };
    text.chars().map(of).sum()
}

/// A text that was cut in the middle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cut {
    /// Head and tail, with a note between them where something is missing.
    pub(super) text: Masked,
    /// Characters left out.
    pub(super) omitted_chars: usize,
    /// Lines that are missing wholly or in part.
    pub(super) omitted_lines: usize,
}

/// Keeps head and tail of a text that is too long.
pub(super) fn cut_middle(text: MaskedStr<'_>, max_chars: usize) -> Cut {
    let chars = text.chars().count();
    if chars <= max_chars {
        return Cut { text: text.to_masked(), ..Cut::default() };
    }
    let (head, tail) = (text.head(max_chars / 2), text.tail(max_chars - max_chars / 2));
    let omitted = &text[head.len()..text.len() - tail.len()];
    let (omitted_chars, omitted_lines) = (chars - max_chars, omitted.lines().count());
    Cut { text: joined_with_note(head, omitted_chars, omitted_lines, tail), omitted_chars, omitted_lines }
}

#[cfg(test)]
mod tests {
    use kpty_guard::Redactor;

    use super::*;

    #[test]
    fn a_cut_counts_what_it_leaves_out() {
        let cut = cut_middle(MaskedStr::literal("aaaa\nbbbb\ncccc\ndddd"), 8);
        assert_eq!(cut.text, "aaaa\n[... 11 characters in 3 lines omitted ...]\ndddd");
        assert_eq!((cut.omitted_chars, cut.omitted_lines), (11, 3));
        assert_eq!(cut_middle(MaskedStr::literal("日本"), 2).text, "日本");
        assert_eq!(cut_middle(MaskedStr::literal("abc"), 0).omitted_chars, 3);
    }

    #[test]
    fn a_default_room_counts_bytes_of_json() {
        for text in ["plain", "quo\"ted\\", "日本", "a\nb\tc\u{1b}\u{8}", "🎉é\u{7f}"] {
            assert_eq!(json_bytes(text), serde_json::json!(text).to_string().len() - 2, "{text:?}");
        }
        let asked = Room { chars: 1_000, bytes: None };
        let unasked = Room { chars: 1_000, bytes: Some(1_000) };
        let mixed = format!("{}{}", "a".repeat(2_000), "\"日".repeat(2_000));
        for text in ["x".repeat(5_000), "日".repeat(5_000), "\"\\".repeat(2_500), mixed] {
            let text = Redactor::off().mask(text);
            let cut = |room: Room| room.fit(|chars| cut_middle(text.as_masked(), chars), |cut| &cut.text).0;
            let (all, fitting) = (cut(asked), cut(unasked));
            assert_eq!(text.chars().count() - all.omitted_chars, 1_000);
            assert!(json_bytes(&fitting.text) <= 1_100 && json_bytes(&fitting.text) > 700, "{}", fitting.text.len());
        }
    }
}
