//! What outlives the server: files in the state folder.

mod files;
pub mod place;
mod token;

pub use token::{TOKEN_FILE, Token};
