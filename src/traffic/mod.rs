//! The record of actions: who did what to which session, and what came of it.
//!
//! An action hands a [`Draft`] to the [`Emitter`] and goes on; a thread of its own masks secrets, cuts, writes to the
//! database ([`Store`]), to the session's own log and to a gateway, and tells whoever listens. Nothing here can delay
//! an action or make it fail: what does not fit is dropped and counted. Reading the record is [`query`]'s.

mod emit;
mod emitter;
mod event;
pub mod query;
mod store;
#[cfg(test)]
mod tests;

pub use emitter::{Counts, Emitter, Journal, Promise, Recording};
pub use event::{AGENT_CHARS, Draft, Event, Hidden, LOOK_CHARS, TEXT_CHARS, Text, clean_name, new_id};
pub use store::{Retention, Store};
