//! Terminals: what every kind shares, and the kinds.
//!
//! [`local`] runs a program on a PTY of this machine; [`desktop`] reaches a terminal of a desktop app through its HTTP
//! bridge. The kinds use this module's root and never one another.

pub mod desktop;
pub mod local;
