//! What may be typed, and what may be shown: refuses dangerous commands and masks secrets.
//!
//! The guard reads text and says yes or no; it types nothing and knows no session. It is a net under honest
//! mistakes and no wall against malice: a shell has a thousand ways to spell the same command. Whoever converts escapes
//! before typing checks the text as it will be typed.

pub mod pending;
pub mod policy;
mod redact;
mod secret;

pub use self::policy::{Policy, Refusal, UserRules, is_complete};
pub use self::redact::{KeyWatch, LineRedactor, PageRedactor, RedactStream, Redactor};
pub use self::secret::is_same;

/// The beginning of a text, so many bytes at most, cut between words: half a secret is none to a redactor.
pub fn whole_words(text: &str, longest: usize) -> &str {
    if text.len() <= longest {
        return text;
    }
    let head = &text[..text.floor_char_boundary(longest)];
    &head[..head.rfind(char::is_whitespace).unwrap_or(0)]
}
