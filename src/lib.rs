//! kpty: a headless terminal server for AI agents.
//!
//! [`terminal`] holds the terminals of every kind, [`registry`] the table of sessions, and [`tools`] the actions on them;
//! [`server`] and [`cli`] are thin adapters over the actions. [`store`], [`traffic`] and [`recording`] take what is kept.
//! `ARCHITECTURE.md` shows the layers; the test `layers` enforces them.

pub mod cli;
pub mod config;
pub mod error;
pub mod ids;
pub mod masked;
pub mod model;
pub mod picture;
pub mod recording;
pub mod registry;
pub mod runtime;
pub mod server;
pub mod store;
pub mod terminal;
pub mod tools;
pub mod traffic;
