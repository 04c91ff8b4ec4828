//! The command line: raw arguments, then meaning, then an exit code.
//!
//! Exit codes: 0 done, 1 a check found differences, 2 the request could not be carried out.

mod print;
mod replay;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::Error;

/// The terminal that AI agents can trust.
#[derive(Parser)]
#[command(name = "kpty", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print what the screen shows after a captured stream, or check a folder of fixtures.
    Replay(replay::ReplayArguments),
}

/// How a command ended.
enum Outcome {
    Done,
    Differences,
}

/// Why a command could not be carried out.
enum Failure {
    Error(Error),
    /// Standard output went away; nothing is wrong with the request.
    OutputClosed,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::OutputClosed,
            // A full disk, say: whoever asked must not take half an answer for a whole one.
            _ => Self::Error(Error::Output(error)),
        }
    }
}

/// Runs the program.
pub fn run() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    let outcome = match command {
        Command::Replay(arguments) => replay::run(&arguments),
    };
    match outcome {
        Ok(Outcome::Done) | Err(Failure::OutputClosed) => ExitCode::SUCCESS,
        Ok(Outcome::Differences) => ExitCode::from(1),
        Err(Failure::Error(error)) => {
            print::problem(&error.to_string());
            ExitCode::from(2)
        }
    }
}
