//! Identifiers as types, so that one kind cannot be used as another.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::str::FromStr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

/// Id of a session: `pty_` and eight hex digits; a desktop chooses its own form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(String);

impl SessionId {
    /// Creates a random id.
    pub fn random() -> Self {
        let mut hex = Uuid::new_v4().simple().to_string();
        hex.truncate(8);
        Self(format!("pty_{hex}"))
    }

    /// Wraps a given id, which may belong to no session.
    pub fn named(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// Returns the text on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Id of a command in its session: `cmd_` and its number, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommandId(pub u64);

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cmd_{}", self.0)
    }
}

impl FromStr for CommandId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = text.strip_prefix("cmd_").unwrap_or(text);
        digits.parse().map(Self).map_err(|_| ())
    }
}

/// Returns 122 random bits in 32 hex digits, for ids that must not be guessable.
pub fn random_hex() -> String {
    Uuid::new_v4().simple().to_string()
}

/// Returns 128 bits in hex that others cannot predict, without a system call each time: for frequent ids that grant no
/// access.
pub fn passing_hex() -> String {
    let bits = Uuid::from_u64_pair(passing_bits(), passing_bits());
    bits.simple().encode_lower(&mut Uuid::encode_buffer()).to_owned()
}

/// Like [`passing_hex`], with 64 bits as a number.
pub fn passing_bits() -> u64 {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    KEYS.hash_one(COUNT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_form_that_clients_know() {
        let id = SessionId::random();
        let hex = id.as_str().strip_prefix("pty_").expect("the prefix");
        assert!(hex.len() == 8 && hex.chars().all(|c| c.is_ascii_hexdigit()), "{id}");
        assert_eq!("cmd_7".parse(), Ok(CommandId(7)));
        assert_eq!("7".parse(), Ok(CommandId(7)));
        assert_eq!("cmd_x".parse::<CommandId>(), Err(()));
        for hex in [random_hex, passing_hex] {
            assert_eq!(hex().len(), 32);
            assert_ne!(hex(), hex());
        }
    }
}
