//! kpty: the terminal that AI agents can trust.
//!
//! Live: [`pty`] runs programs, [`session`] is one of them with all it said, [`bridge`] is one of a desktop app,
//! [`registry`] holds them all, [`tools`] are the actions of agents on them; [`server`] and [`cli`] are thin skins on top. Recorded: [`recording`] reads captured
//! streams, [`replay`] plays them through the emulator, [`fixture`] compares the result with expectations.

pub mod cli;
pub mod config;
pub mod error;
pub mod fixture;
pub mod ids;
pub mod model;
pub mod picture;
pub mod recording;
pub mod registry;
pub mod replay;
pub mod runtime;
pub mod server;
pub mod store;
pub mod terminal;
pub mod tools;
pub mod traffic;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
