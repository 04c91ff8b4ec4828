//! kpty: the terminal that AI agents can trust.
//!
//! Data flows one way. [`recording`] reads captured streams, [`replay`] plays them through the emulator,
//! [`fixture`] compares the result with expectations, [`cli`] is the thin skin on top.

pub mod cli;
pub mod error;
pub mod fixture;
pub mod recording;
pub mod replay;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
