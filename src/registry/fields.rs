//! Validation of text fields that clients supply. A valid field is safe as a file name, in a journal and on a terminal.

use crate::error::{Error, Result};
use crate::model::Owner;

/// Maximum length of a session id, in bytes.
const MAX_ID: usize = 128;
/// Maximum length of any other field, in characters.
pub const MAX_TEXT: usize = 256;

/// Returns whether the text is valid as a session id. The id becomes a folder name, so it contains no separators and
/// does not begin with a dot.
pub fn is_session_id(id: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    (1..=MAX_ID).contains(&id.len()) && id.bytes().all(is_known) && !id.starts_with('.')
}

/// Rejects an invalid session id.
pub(super) fn check_session_id(id: &str) -> Result<()> {
    match is_session_id(id) {
        true => Ok(()),
        false => Err(Error::invalid(
            "session_id",
            format!("1 to {MAX_ID} letters, digits and ._:- are expected, the first of them not a dot"),
        )),
    }
}

/// Rejects text that is too long or contains control characters, which a terminal would execute.
pub fn check_text(name: &str, text: &str) -> Result<()> {
    if text.chars().nth(MAX_TEXT).is_some() {
        return Err(Error::invalid(name, format!("it is longer than {MAX_TEXT} characters")));
    }
    match text.chars().any(char::is_control) {
        true => Err(Error::invalid(name, "it has control characters")),
        false => Ok(()),
    }
}

/// Rejects an owner with invalid text in any field.
pub fn check_owner(owner: &Owner) -> Result<()> {
    let texts = [
        ("owner_agent_id", &owner.agent_id),
        ("owner_session_id", &owner.session_id),
        ("label", &owner.label),
        ("claude_code_session_id", &owner.claude_code_session_id),
    ];
    texts.iter().try_for_each(|(name, text)| text.as_deref().map_or(Ok(()), |text| check_text(name, text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_can_be_a_folder() {
        for (id, expected) in [
            ("pty_a3f87c2d", true),
            ("9ccd99b1-bdd8-710e", true),
            ("a.b:c", true),
            (&"a".repeat(MAX_ID), true),
            (&"a".repeat(MAX_ID + 1), false),
            ("", false),
            (".", false),
            ("..", false),
            (".hidden", false),
            ("../x", false),
            ("a/b", false),
            ("a\\b", false),
            ("a\0b", false),
            ("a b", false),
            ("ä", false),
        ] {
            assert_eq!(is_session_id(id), expected, "{id:?}");
        }
    }

    #[test]
    fn a_text_is_short_and_plain() {
        for (text, expected) in [
            ("Worker A, größer", true),
            (&"ä".repeat(MAX_TEXT), true),
            (&"ä".repeat(MAX_TEXT + 1), false),
            ("\u{1b}[2J", false),
            ("a\nb", false),
            ("\u{9b}2J", false),
        ] {
            let owner = Owner { label: Some(text.to_owned()), ..Owner::default() };
            assert_eq!(check_owner(&owner).is_ok(), expected, "{text:?}");
        }
    }
}
