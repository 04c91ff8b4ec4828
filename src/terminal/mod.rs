//! Terminals: what every kind shares, and the kinds.
//!
//! The root holds the interface ([`Terminal`], [`Readable`]), its requests and results, and the rules that are the same
//! for every kind: the command log, the forms of a sentinel, the conditions of a wait, search, the limit of an output.
//! [`local`] runs a program on a PTY of this machine; [`desktop`] reaches a terminal of a desktop app through its HTTP
//! bridge; [`peer`] forwards actions to another kpty. The kinds use this root and never one another.

pub mod attention;
pub mod commands;
pub mod deadline;
pub mod desktop;
mod executable;
mod interface;
pub mod local;
mod output;
pub mod peer;
mod prompt_line;
pub mod search;
mod secret_question;
pub mod sentinel;
pub mod talk;
pub mod wait;

pub use attention::{Attention, AttentionState};
pub use commands::{Command, Evidence};
pub use executable::executable_name;
pub use interface::{InputTurn, Readable, Terminal, View};
pub use output::{Output, joined_with_note};
pub use prompt_line::{Rendered, line_readings};
