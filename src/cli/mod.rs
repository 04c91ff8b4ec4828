//! The command line: raw arguments, then meaning, then an exit code.
//!
//! Exit codes are a contract with scripts; the help of each command and `docs/src/cli.md` list them.

#[cfg(unix)]
mod attach;
mod call;
mod client;
mod completions;
mod doctor;
mod duration;
mod evidence;
mod guard;
mod guard_redact;
mod input;
mod look;
mod mcp;
mod mcp_config;
mod open;
mod print;
mod progress;
mod record;
mod reference;
mod remote;
mod replay;
mod run;
mod screenshot;
mod serve;
mod sessions;
mod status;
mod talk;
mod tty;

use std::future::Future;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio::runtime::{Builder, Runtime};

use crate::error::Error;

/// Done.
const EXIT_DONE: u8 = 0;
/// Nothing found, a wait timed out, or a check found differences.
const EXIT_NOTHING: u8 = 1;
/// The request could not be carried out.
const EXIT_OTHER: u8 = 2;
/// No such session.
const EXIT_NOT_FOUND: u8 = 3;
/// The session is busy.
const EXIT_BUSY: u8 = 4;
/// The session's program has ended.
const EXIT_EXITED: u8 = 5;
/// Timeout; the same code as of `timeout`.
const EXIT_TIMEOUT: u8 = 124;
/// The program of `run` could not be started; the same code as of shells.
const EXIT_NOT_STARTED: u8 = 127;

/// A headless terminal server for AI agents.
#[derive(Parser)]
#[command(name = "kpty", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server.
    Serve(serve::ServeArguments),
    /// Serve MCP on standard input and output, with or without a running server.
    Mcp(mcp::McpArguments),
    /// Run a program on a terminal of its own and print its output; needs no server.
    Run(run::RunArguments),
    /// Run a program in this terminal and record it as an asciicast; needs no server.
    Record(record::RecordArguments),
    /// List the sessions of a server.
    List(sessions::ListArguments),
    /// Start a session and print its id.
    Create(sessions::CreateArguments),
    /// Run a command in a session, wait for its end and print its output.
    Talk(talk::TalkArguments),
    /// Print the screen or history of a session.
    Read(look::ReadArguments),
    /// Type a line and press Enter.
    Send(input::SendArguments),
    /// Press keys.
    Keys(input::KeysArguments),
    /// Wait for a text, quiet, the prompt, or the end of a command or program.
    Wait(talk::WaitArguments),
    /// Call any action by its name and parameters, as agents do; prints the reply as JSON.
    Call(call::CallArguments),
    /// Draw the screen of a session as PNG or SVG.
    Screenshot(screenshot::ScreenshotArguments),
    /// Search history and screen for a regular expression.
    Search(look::SearchArguments),
    /// List the commands of a session, or print the output of one.
    Commands(look::CommandsArguments),
    /// Print commands and their results as one JSON object, to attach to a message.
    Evidence(evidence::EvidenceArguments),
    /// Change the size of a session's terminal.
    Resize(sessions::ResizeArguments),
    /// End a session and all its processes.
    Kill(sessions::KillArguments),
    /// Show and use a session full-screen in this terminal.
    #[cfg(unix)]
    Attach(attach::AttachArguments),
    /// Type a secret that a session asks for, without showing it.
    #[cfg(unix)]
    Answer(attach::AnswerArguments),
    /// Open the page in a browser.
    Open(open::OpenArguments),
    /// Show whether a server is running, and where.
    Status(status::StatusArguments),
    /// End a running server and its sessions.
    Stop(status::StopArguments),
    /// Check commands against the policy and mask secrets; needs no server.
    Guard(guard::GuardArguments),
    /// Check whether this machine has what kpty needs.
    Doctor(doctor::DoctorArguments),
    /// Print the settings for an MCP client.
    McpConfig(mcp_config::McpConfigArguments),
    /// Print the completion script of a shell.
    Completions(completions::CompletionsArguments),
    /// Print the screen after a captured stream, or check a folder of fixtures.
    Replay(replay::ReplayArguments),
    /// Print a generated page of the reference.
    #[command(hide = true)]
    Reference(reference::ReferenceArguments),
    /// Write man pages into a folder.
    #[command(hide = true)]
    Man(reference::ManArguments),
}

/// How a command ended.
enum Outcome {
    Done,
    Differences,
    Code(u8),
}

/// Why a command could not be carried out.
enum Failure {
    Error(Error),
    /// The reason has been printed.
    Code(u8),
    /// Standard output was closed; nothing is wrong with the request.
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
            // A full disk, for example: a partial output must not look like a complete one.
            _ => Self::Error(Error::Output(error)),
        }
    }
}

/// Runs the program.
pub fn run() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    match carry_out(command) {
        Ok(Outcome::Done) | Err(Failure::OutputClosed) => ExitCode::SUCCESS,
        Ok(Outcome::Differences) => ExitCode::from(EXIT_NOTHING),
        Ok(Outcome::Code(code)) | Err(Failure::Code(code)) => ExitCode::from(code),
        Err(Failure::Error(error)) => {
            print::problem(&error.to_string());
            ExitCode::from(EXIT_OTHER)
        }
    }
}

fn carry_out(command: Command) -> Result<Outcome, Failure> {
    match command {
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Serve(arguments) => serve::run(arguments),
        Command::Mcp(arguments) => mcp::run(arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Record(arguments) => record::run(&arguments),
        Command::List(arguments) => ask(sessions::list(arguments)),
        Command::Create(arguments) => ask(sessions::create(arguments)),
        Command::Talk(arguments) => ask(talk::talk(arguments)),
        Command::Read(arguments) => ask(look::read(arguments)),
        Command::Screenshot(arguments) => ask(screenshot::screenshot(arguments)),
        Command::Send(arguments) => ask(input::send(arguments)),
        Command::Keys(arguments) => ask(input::keys(arguments)),
        Command::Wait(arguments) => ask(talk::wait(arguments)),
        Command::Call(arguments) => ask(call::call(arguments)),
        Command::Search(arguments) => ask(look::search(arguments)),
        Command::Commands(arguments) => ask(look::commands(arguments)),
        Command::Evidence(arguments) => ask(evidence::evidence(arguments)),
        Command::Resize(arguments) => ask(sessions::resize(arguments)),
        Command::Kill(arguments) => ask(sessions::kill(arguments)),
        #[cfg(unix)]
        Command::Attach(arguments) => ask(attach::attach(arguments)),
        #[cfg(unix)]
        Command::Answer(arguments) => ask(attach::answer(arguments)),
        Command::Open(arguments) => ask(open::open(arguments)),
        Command::Status(arguments) => ask(status::status(arguments)),
        Command::Stop(arguments) => ask(status::stop(arguments)),
        Command::Guard(arguments) => guard::run(&arguments),
        Command::Doctor(arguments) => ask(doctor::doctor(arguments)),
        Command::McpConfig(arguments) => mcp_config::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Reference(arguments) => reference::reference(&arguments),
        Command::Man(arguments) => reference::man(&arguments),
    }
}

/// One call of a server needs no threads.
fn ask(question: impl Future<Output = Result<Outcome, Failure>>) -> Result<Outcome, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(no_runtime)?;
    runtime.block_on(question)
}

/// The runtime that drives sessions.
fn threaded_runtime() -> Result<Runtime, Error> {
    crate::runtime::runtime().map_err(no_runtime)
}

fn no_runtime(cause: std::io::Error) -> Error {
    Error::NotAvailable(format!("no threads: {cause}"))
}
