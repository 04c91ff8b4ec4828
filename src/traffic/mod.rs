//! The traffic log: which agent ran which action on which session, and the result.
//!
//! An action passes a [`Draft`] to the [`Emitter`] and continues. A dedicated thread redacts and truncates it, writes
//! it to the database ([`Store`]), the session's log and a gateway, and notifies subscribers. Logging never delays an
//! action or makes it fail: entries that exceed the queue are dropped and counted. [`query`] has the read side.

mod emitter;
mod event;
mod gateway;
pub mod query;
mod started;
mod store;
#[cfg(test)]
mod tests;

pub use emitter::{Emitter, Journal, Promise, TrafficCounts, TrafficOptions};
pub use event::{AGENT_CHARS, Draft, Event, GivenText, Hidden, LOOK_CHARS, SizedText, TEXT_CHARS, clean_name, new_id};
pub use started::Start;
pub use store::{Retention, Store};
