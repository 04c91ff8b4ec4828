//! What a terminal shows, without secrets: text as a [`Page`], cells as a [`MaskedScreen`] or [`MaskedRows`].
//!
//! Joins the emulator, which knows nothing of secrets, with the redactor, which knows nothing of screens. Secrets are
//! looked for in whole logical lines, and before anything is cut. What is made here cannot be made elsewhere, and
//! replies, pictures, frames and recordings take nothing else:
//!
//! ```
//! #[derive(serde::Serialize)]
//! struct NewReply {
//!     text: kpty_guard::Masked,
//! }
//!
//! fn reply(session: &kpty::terminal::local::Session) -> NewReply {
//!     NewReply { text: session.read(&kpty_emulator::Request::default()).text }
//! }
//! ```
//!
//! A reply with plain text of a session does not compile, nor one with its cells:
//!
//! ```compile_fail,E0308
//! #[derive(serde::Serialize)]
//! struct NewReply {
//!     text: String,
//! }
//!
//! fn reply(session: &kpty::terminal::local::Session) -> NewReply {
//!     NewReply { text: session.read(&kpty_emulator::Request::default()).text }
//! }
//! ```
//!
//! ```compile_fail,E0277
//! fn reply(session: &kpty::terminal::local::Session) -> serde_json::Value {
//!     serde_json::json!({ "screen": session.screen() })
//! }
//! ```
//!
//! ```compile_fail,E0308
//! fn picture(session: &kpty::terminal::local::Session) -> kpty::picture::Subject {
//!     kpty::picture::Subject::screen(session.screen())
//! }
//! ```

mod cells;
mod page;

pub use cells::{MaskedRow, MaskedRows, MaskedScreen, rows, screen};
pub use page::{Page, lines_of, of_sheet, read};
