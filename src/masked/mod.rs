//! What a terminal shows, without secrets: text as a [`Page`], cells as a [`MaskedScreen`] or [`MaskedRows`].
//!
//! Joins the emulator, which knows nothing of secrets, with the redactor, which knows nothing of screens. Secrets are
//! looked for in whole logical lines, and before anything is cut. What is made here cannot be made elsewhere, and
//! replies, pictures, frames and recordings take nothing else.

mod cells;
mod page;

pub use cells::{MaskedRow, MaskedRows, MaskedScreen, rows, screen};
pub use page::{Page, lines_of, of_sheet, read};
