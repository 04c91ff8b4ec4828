//! Command policy, redaction of secrets, and tracking of the line under edit.
//!
//! Pure functions of text: no I/O, no clock, no session. The policy protects against mistakes, not against intent,
//! because a shell has too many ways to spell a command. A caller that converts escapes before typing passes the text as
//! it will be typed. Text without secrets has a type of its own, [`Masked`].

mod masked;
pub mod pending;
pub mod policy;
mod redact;
mod secret;

pub use self::masked::{Masked, MaskedStr, Piece};
pub use self::policy::{Policy, Refusal, UserRules, is_complete};
pub use self::redact::{KeyWatch, LineRedactor, PageRedactor, RedactStream, Redactor};
pub use self::secret::is_same;

/// The beginning of a text, at most so many bytes, cut between words: a redactor does not recognise half a secret.
pub fn whole_words(text: &str, longest: usize) -> &str {
    if text.len() <= longest {
        return text;
    }
    let head = &text[..text.floor_char_boundary(longest)];
    &head[..head.rfind(char::is_whitespace).unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    pub(crate) mod cpu_time;
}
