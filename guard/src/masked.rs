//! The type of text without secrets. What leaves a server is built from it.
//!
//! There is no way from a plain `String` to [`Masked`] but a redactor. Cutting, joining and trimming keep the type, so
//! text is masked whole and cut afterwards; there is no way to cut it first:
//!
//! ```
//! use kpty_guard::{Masked, Redactor};
//!
//! let token = ["ghp_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
//! let shown: Masked = Redactor::default().mask(format!("token {token}"));
//! assert!(!shown.contains("0123456789"));
//! let head = shown.as_masked().head(5);
//! assert_eq!(Masked::concat(&[&head, &" of ", &40_usize, &" characters"]).to_string(), "token of 40 characters");
//! ```
//!
//! A plain text does not become one by itself:
//!
//! ```compile_fail,E0277
//! let output = String::from("what a program printed");
//! let shown: kpty_guard::Masked = output.into();
//! ```
//!
//! Nor does one that lives shorter than the program pass for words of the program:
//!
//! ```compile_fail,E0597
//! let output = String::from("what a program printed");
//! let shown = kpty_guard::Masked::concat(&[&output.as_str()]);
//! ```

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, Range};

use serde::{Serialize, Serializer};

/// Text without secrets.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Masked(String);

/// A part of a [`Masked`].
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MaskedStr<'a>(&'a str);

/// What masked text can be put together from: itself, words of the program, numbers.
pub trait Piece: sealed::Sealed {
    /// Adds it to a text.
    fn push_to(&self, text: &mut String);
}

mod sealed {
    pub trait Sealed {}
}

impl Masked {
    /// Only for what a redactor returns.
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }

    /// Words of the program itself.
    pub fn literal(text: &'static str) -> Self {
        Self(text.to_owned())
    }

    /// Text that was masked in a way that types do not show, such as a page that an emulator read through a
    /// [`crate::PageRedactor`] as its filter. A test lists the few files that may call this.
    pub fn vouched(text: String) -> Self {
        Self(text)
    }

    /// Puts pieces together.
    pub fn concat(pieces: &[&dyn Piece]) -> Self {
        let mut text = String::new();
        pieces.iter().for_each(|piece| piece.push_to(&mut text));
        Self(text)
    }

    /// Puts parts together with words of the program between them.
    pub fn join<'a>(parts: impl IntoIterator<Item = MaskedStr<'a>>, between: &'static str) -> Self {
        let mut text = String::new();
        for (index, part) in parts.into_iter().enumerate() {
            if index > 0 {
                text.push_str(between);
            }
            text.push_str(part.0);
        }
        Self(text)
    }

    /// All of it.
    pub fn as_masked(&self) -> MaskedStr<'_> {
        MaskedStr(&self.0)
    }

    /// A stretch of it, in bytes.
    pub fn part(&self, range: Range<usize>) -> MaskedStr<'_> {
        MaskedStr(&self.0[range])
    }

    /// The text, for as long as it is there.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, for whoever keeps or shows it as text.
    pub fn into_string(self) -> String {
        self.0
    }

    /// Takes blanks and line ends away from the end.
    pub fn trim_end(mut self) -> Self {
        self.0.truncate(self.0.trim_end().len());
        self
    }

    /// Keeps so many characters of the beginning.
    pub fn keep_head(&mut self, chars: usize) {
        // A character has at least one byte, so a shorter text needs no count.
        if self.0.len() > chars
            && let Some((at, _)) = self.0.char_indices().nth(chars)
        {
            self.0.truncate(at);
        }
    }

    /// Keeps so many characters of the end.
    pub fn keep_tail(&mut self, chars: usize) {
        let from = self.0.len() - self.as_masked().tail(chars).len();
        self.0.drain(..from);
    }

    /// Keeps the first bytes, up to a character.
    pub fn truncate(&mut self, bytes: usize) {
        self.0.truncate(bytes);
    }

    /// Keeps at most so many bytes of the end, whole characters only.
    pub fn keep_tail_bytes(&mut self, bytes: usize) {
        let from = self.0.ceil_char_boundary(self.0.len().saturating_sub(bytes));
        self.0.drain(..from);
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Puts words of the program before it.
    pub fn prepend(&mut self, words: &'static str) {
        self.0.insert_str(0, words);
    }

    /// Puts another text wherever one stands.
    pub fn replace(&self, text: &str, with: &Self) -> Self {
        Self(self.0.replace(text, &with.0))
    }
}

impl<'a> MaskedStr<'a> {
    /// See [`Masked::vouched`].
    pub fn vouched(text: &'a str) -> Self {
        Self(text)
    }

    /// Words of the program itself.
    pub const fn literal(text: &'static str) -> MaskedStr<'static> {
        MaskedStr(text)
    }

    /// The text, for as long as it is there.
    pub fn as_str(self) -> &'a str {
        self.0
    }

    /// A copy of its own.
    pub fn to_masked(self) -> Masked {
        Masked(self.0.to_owned())
    }

    /// A stretch of it, in bytes.
    pub fn part(self, range: Range<usize>) -> Self {
        Self(&self.0[range])
    }

    /// The first characters.
    pub fn head(self, chars: usize) -> Self {
        Self(&self.0[..char_at(self.0, chars)])
    }

    /// The last characters.
    pub fn tail(self, chars: usize) -> Self {
        if self.0.len() <= chars {
            return self;
        }
        let mut starts = self.0.char_indices().rev();
        let from = match chars {
            0 => self.0.len(),
            _ => starts.nth(chars - 1).map_or(0, |(at, _)| at),
        };
        Self(&self.0[from..])
    }

    /// What stands between line feeds.
    pub fn split_lines(self) -> impl Iterator<Item = Self> {
        self.0.split('\n').map(Self)
    }

    /// The end of the text, with a sign where something is missing.
    pub fn ending(self, chars: usize) -> Masked {
        let kept = self.tail(chars);
        if kept.len() == self.len() { self.to_masked() } else { Masked::concat(&[&"…", &kept]) }
    }

    /// The part of a long line around a stretch of it, in bytes.
    pub fn clip(self, (start, end): (usize, usize), max_chars: usize) -> Masked {
        let line = self.0;
        if line.chars().count() <= max_chars {
            return self.to_masked();
        }
        let around = max_chars.saturating_sub(line[start..end].chars().count()) / 2;
        let from = line[..start].char_indices().rev().take(around).last().map_or(start, |(at, _)| at);
        let until = from + char_at(&line[from..], max_chars);
        let (before, after) = (if from > 0 { "…" } else { "" }, if until < line.len() { "…" } else { "" });
        Masked::concat(&[&before, &self.part(from..until), &after])
    }
}

/// Where a character begins, counted from 0; the end of the text for one behind it.
fn char_at(text: &str, index: usize) -> usize {
    text.char_indices().nth(index).map_or(text.len(), |(at, _)| at)
}

impl Deref for Masked {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Deref for MaskedStr<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.0
    }
}

macro_rules! shown_as_text {
    ($($name:ty),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&**self, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                **self == *other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                **self == **other
            }
        }

        impl sealed::Sealed for $name {}

        impl Piece for $name {
            fn push_to(&self, text: &mut String) {
                text.push_str(self);
            }
        }
    )*};
}

shown_as_text!(Masked, MaskedStr<'_>);

impl sealed::Sealed for &'static str {}

impl Piece for &'static str {
    fn push_to(&self, text: &mut String) {
        text.push_str(self);
    }
}

macro_rules! number_pieces {
    ($($name:ty),*) => {$(
        impl sealed::Sealed for $name {}

        impl Piece for $name {
            fn push_to(&self, text: &mut String) {
                text.push_str(&self.to_string());
            }
        }
    )*};
}

number_pieces!(usize, u64, u128, i64);

impl crate::Redactor {
    /// The text without secrets: one line or many, with escape sequences or without. A text without any is not copied.
    pub fn mask(&self, text: String) -> Masked {
        match self.redact(&text) {
            Cow::Owned(masked) => Masked::new(masked),
            Cow::Borrowed(_) => Masked::new(text),
        }
    }

    /// The same for a text of somebody else.
    pub fn mask_str(&self, text: &str) -> Masked {
        Masked::new(self.redact(text).into_owned())
    }

    /// The end of some output from an offset on. What stands before it is looked at too, so that a token that begins
    /// before the window is hidden in it.
    pub fn mask_window(&self, bytes: &[u8], from: usize) -> Masked {
        Masked::new(self.redact_window(bytes, from))
    }
}

impl crate::LineRedactor {
    /// The next line without secrets.
    pub fn mask(&mut self, line: &str) -> Masked {
        Masked::new(self.redact(line).unwrap_or_else(|| line.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Redactor;

    fn masked(text: &str) -> Masked {
        Redactor::off().mask_str(text)
    }

    #[test]
    fn a_text_without_secrets_is_not_copied() {
        let text = "nothing to hide".to_owned();
        let place = text.as_ptr();
        assert_eq!(Redactor::default().mask(text).as_ptr(), place);
    }

    #[test]
    fn cuts_are_at_characters() {
        for (text, chars, head, tail) in
            [("", 3, "", ""), ("abc", 3, "abc", "abc"), ("日本語の", 3, "日本語", "本語の"), ("ab", 0, "", "")]
        {
            let (mut first, mut last) = (masked(text), masked(text));
            first.keep_head(chars);
            last.keep_tail(chars);
            assert_eq!((&*first, &*last), (head, tail), "{text}");
            assert_eq!(masked(text).as_masked().head(chars), head, "{text}");
        }
        let mut text = masked("a日本");
        text.keep_tail_bytes(4);
        assert_eq!(text, "本");
    }

    #[test]
    fn an_end_keeps_what_is_newest() {
        for (text, expected) in [("", ""), ("abc", "abc"), ("abcd", "…bcd"), ("日本語の", "…本語の")] {
            assert_eq!(masked(text).as_masked().ending(3), expected);
        }
    }

    #[test]
    fn a_clip_shows_the_match() {
        for (line, at, chars, expected) in [
            ("short", (0, 2), 10, "short"),
            ("aaaaaaaaaaXbbbbbbbbbb", (10, 11), 5, "…aaXbb…"),
            ("Xbbbbbbbbbb", (0, 1), 5, "Xbbbb…"),
            ("日本日本日本X", (18, 19), 3, "…本X"),
            ("aaaaaaaaaa", (0, 10), 4, "aaaa…"),
        ] {
            assert_eq!(masked(line).as_masked().clip(at, chars), expected, "{line}");
        }
    }

    #[test]
    fn parts_are_joined_with_our_own_words() {
        let text = masked("one\ntwo\n");
        assert_eq!(text.as_masked().split_lines().collect::<Vec<_>>(), ["one", "two", ""]);
        assert_eq!(Masked::join(text.as_masked().split_lines(), ", "), "one, two, ");
        assert_eq!(text.trim_end(), "one\ntwo");
    }
}
