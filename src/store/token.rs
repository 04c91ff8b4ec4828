//! The access token for clients that the server cannot identify by user id. It is read from a file, never from
//! arguments, which other users can see.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::path::Path;

use super::files::{self, Durability};
use crate::error::{Error, Result};
use crate::ids::random_hex;

/// Name of the generated token file in the state folder.
pub const TOKEN_FILE: &str = "token";
/// Minimum length; a shorter token can be guessed.
const MIN_BYTES: usize = 16;
/// Maximum length; a longer file is not a token.
const MAX_BYTES: usize = 1_024;

/// A shared secret.
#[derive(Clone)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// Reads a token from a file that only the current user can read.
    pub fn read(path: &Path) -> Result<Self> {
        read(path).map_err(|cause| Error::file("use the token of", path, cause))
    }

    /// Reads the token of a state folder and generates it if there is none.
    pub fn read_or_make(folder: &Path) -> Result<Self> {
        let path = folder.join(TOKEN_FILE);
        match read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let token = format!("{}{}", random_hex(), random_hex());
                let written = files::write(&path, format!("{token}\n").as_bytes(), Durability::PowerLoss);
                written.map_err(|cause| Error::file("write", &path, cause))?;
                Ok(Self(token))
            }
            found => found.map_err(|cause| Error::file("use the token of", &path, cause)),
        }
    }

    /// Returns the token text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in constant time for guesses of the same length.
    pub fn matches(&self, guess: &[u8]) -> bool {
        kpty_guard::is_same(self.0.as_bytes(), guess)
    }
}

fn read(path: &Path) -> io::Result<Token> {
    let file = files::open(path, OpenOptions::new().read(true))?;
    let wrong = |problem: &str| Err(io::Error::new(io::ErrorKind::InvalidData, problem.to_owned()));
    if !files::is_private(&file.metadata()?) {
        return wrong("others may read or write it; take that away with chmod 600");
    }
    let mut text = String::new();
    file.take(MAX_BYTES as u64 + 2).read_to_string(&mut text)?;
    let token = text.trim();
    match token.len() {
        MIN_BYTES..=MAX_BYTES if token.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(Token(token.to_owned())),
        _ => wrong("a token is one word of 16 to 1024 characters of ASCII"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_compared_whole() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let made = Token::read_or_make(folder.path()).expect("a new token");
        let again = Token::read_or_make(folder.path()).expect("the same token");
        assert_eq!((made.as_str(), made.as_str().len()), (again.as_str(), 64));
        assert!(made.matches(again.as_str().as_bytes()));
        for guess in ["", &made.as_str()[..63], &format!("{}0", made.as_str()), &"0".repeat(64)] {
            assert!(!made.matches(guess.as_bytes()), "{guess}");
        }
        assert!(!format!("{made:?}").contains(made.as_str()));
    }

    #[test]
    #[cfg(unix)]
    fn a_file_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("it");
        for (content, mode, complaint) in [
            ("0123456789abcdef\n", 0o600, None),
            ("0123456789abcdef", 0o400, None),
            ("0123456789abcdef\n", 0o640, Some("chmod 600")),
            ("0123456789abcdef\n", 0o606, Some("chmod 600")),
            ("short\n", 0o600, Some("16 to 1024")),
            ("0123456789 abcdef\n", 0o600, Some("one word")),
        ] {
            std::fs::write(&path, content).expect("a file");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("our file");
            let read = Token::read(&path);
            match complaint {
                None => assert_eq!(read.expect("a token").as_str(), "0123456789abcdef"),
                Some(complaint) => {
                    let message = read.expect_err("no token").to_string();
                    assert!(message.contains(complaint), "{message}");
                }
            }
            std::fs::remove_file(&path).expect("our file");
        }
        std::os::unix::fs::symlink("elsewhere", &path).expect("a link");
        assert!(Token::read(&path).is_err());
    }
}
