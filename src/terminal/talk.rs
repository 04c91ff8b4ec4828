//! What `talk` is asked and what it answers, for every kind of terminal.

use std::time::Duration;

use super::commands::Evidence;
use super::output::Output;
use crate::ids::CommandId;
use kpty_guard::Masked;

/// What to do when the time is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnTimeout {
    /// Let the command go on.
    #[default]
    Leave,
    /// Send Ctrl-C.
    Interrupt,
}

/// A command to run.
#[derive(Clone, Debug)]
pub struct TalkRequest {
    /// What to type.
    pub command: String,
    /// The text that ends the output where no better evidence can be had; one is made up when not given.
    pub sentinel: Option<String>,
    /// How long to wait for its end.
    pub timeout: Duration,
    /// Characters of output in the answer.
    pub max_chars: usize,
    /// What to do when the time is over.
    pub on_timeout: OnTimeout,
    /// All raw output that is kept, not only its end.
    pub all_raw: bool,
    /// Return also when the program asks for input or takes the screen.
    pub until_asks: bool,
}

/// A command that ended.
#[derive(Clone, Debug)]
pub struct TalkResult {
    /// Its number.
    pub command: CommandId,
    /// What it printed, rendered.
    pub output: Output,
    /// Exit status, where the shell reported one.
    pub exit_code: Option<i32>,
    /// How long it ran.
    pub duration: Duration,
    /// The directory of the shell that ran it, without symbolic links; unknown of a shell on another machine.
    pub cwd: Option<Masked>,
    /// The name by which the shell itself knows that directory, where it is another one.
    pub logical_cwd: Option<Masked>,
    /// Evidence of its end.
    pub completed_by: Evidence,
    /// The text that would have ended, or ended, the output.
    pub sentinel: Masked,
    /// What it printed, as bytes.
    pub raw_output: Masked,
}
