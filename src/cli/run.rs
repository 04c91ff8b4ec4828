//! `kpty run`: a program in a terminal of its own, in one go and without a server.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use kpty_emulator::{Mode, Request, Size};
use serde_json::{Value, json};

use super::duration::{self, millis};
use super::{EXIT_NOT_STARTED, EXIT_OTHER, EXIT_TIMEOUT, Failure, Outcome, print, progress, serve};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::masked::Page;
use crate::model::{ExitInfo, Owner};
use crate::recording::fixture::trimmed;
use crate::terminal::local::{Integration, NewSession, Session};
use crate::terminal::wait::{Ending, WaitRequest};

/// Without --timeout: a year.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);
/// The status of a program that was interrupted, as shells show it.
const INTERRUPTED: u8 = 130;

#[derive(Args)]
#[command(after_help = "\
The output is printed when the program has ended, as a person would have seen it, without colours or cursor movements.
The program gets no input. History beyond 10,000 lines is dropped, with a note on standard error.

Exit code: the program's own; 128 and the signal's number when a signal ended it; 124 after --timeout; 127 when it could
not be started; 2 for other failures.

Examples:
  kpty run -- ls --color=always                  the names, without colours
  kpty run --cols 60 --timeout 10s -- top -n 1   what a full-screen program showed
  kpty run --json -- sh -c 'echo hi; exit 3'     output, exit code and duration as JSON")]
pub(super) struct RunArguments {
    /// Width of the terminal
    #[arg(long, value_name = "C")]
    cols: Option<u16>,

    /// Height of the terminal
    #[arg(long, value_name = "R")]
    rows: Option<u16>,

    /// Directory to start in
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Time after which the program is ended, such as 30s, 500ms or 2m
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,

    /// Print one line of JSON
    #[arg(long)]
    json: bool,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    command: Vec<String>,
}

/// How the program came to its end.
#[derive(Clone, Copy)]
enum End {
    Exit(ExitInfo),
    Timeout,
    /// Whoever ran `kpty` had enough.
    Interrupt,
}

impl End {
    fn exit_code(self) -> u8 {
        match self {
            Self::Exit(exit) => exit.status().map_or(EXIT_OTHER, |status| status as u8),
            Self::Timeout => EXIT_TIMEOUT,
            Self::Interrupt => INTERRUPTED,
        }
    }
}

pub(super) fn run(arguments: &RunArguments) -> std::result::Result<Outcome, Failure> {
    let RunArguments { command, cols, rows, cwd, .. } = arguments;
    let new = new_session(command, (*cols, *rows), cwd.as_deref())?;
    let runtime = super::threaded_runtime()?;
    let timeout = arguments.timeout.unwrap_or(FOREVER);
    let began = Instant::now();
    let running = progress::while_waiting("running", watch(new, timeout));
    let outcome = runtime.block_on(running);
    runtime.shutdown_background();
    let (end, answer) = match outcome {
        Ok(ended) => ended,
        Err(error @ Error::Spawn { .. }) => {
            print::problem(&error.to_string());
            return Ok(Outcome::Code(EXIT_NOT_STARTED));
        }
        Err(error) => return Err(error.into()),
    };
    if arguments.json {
        print::line(&as_json(end, &answer, began.elapsed()).to_string())?;
    } else {
        trimmed(answer.lines()).iter().try_for_each(|line| print::line(line))?;
        report(end, &answer, timeout);
    }
    Ok(Outcome::Code(end.exit_code()))
}

/// A program in a terminal of its own; of a size that is not given, the settings'.
pub(super) fn new_session(
    command: &[String],
    (cols, rows): (Option<u16>, Option<u16>),
    cwd: Option<&Path>,
) -> Result<NewSession> {
    let config = Config::from_env()?;
    let [program, args @ ..] = command else {
        return Err(Error::Usage("name a program to run".to_owned()));
    };
    let redactor = kpty_guard::Redactor::switched(config.redact);
    crate::tools::check_program(&config.policy, &redactor, program, args, &[])?;
    let cwd = match cwd {
        Some(cwd) => std::path::absolute(cwd).map_err(|cause| Error::file("find", cwd, cause))?,
        None => std::env::current_dir().map_err(|cause| Error::file("find", ".".as_ref(), cause))?,
    };
    Ok(NewSession {
        shell: program.clone(),
        args: args.to_vec(),
        cwd,
        size: Size::new(cols.unwrap_or(config.size.cols()), rows.unwrap_or(config.size.rows()))?,
        env: Vec::new(),
        pager: false,
        owner: Owner::default(),
        integration: Integration::Off,
        inherited: config.inherited,
        ring_bytes: config.ring_bytes,
        secrets: crate::model::Secrets::default(),
        redactor,
    })
}

async fn watch(new: NewSession, timeout: Duration) -> Result<(End, Page)> {
    let interrupted = serve::stop_signal().map_err(|cause| Error::Server(format!("no signals: {cause}")))?;
    let session = Session::spawn(new).await?;
    let request = WaitRequest { exit: true, timeout, ..WaitRequest::default() };
    let end = tokio::select! {
        waited = session.wait(&request) => match waited?.ending {
            Ending::Exit(exit) => End::Exit(exit),
            _ => End::Timeout,
        },
        () = interrupted => End::Interrupt,
    };
    // What it showed last, before its death changes the screen.
    let answer = session.read(&Request::new(Mode::Full));
    if let Err(error) = session.kill().await {
        print::problem(&error.to_string());
    }
    Ok((end, answer))
}

fn report(end: End, answer: &Page, timeout: Duration) {
    if answer.oldest_line > 0 {
        print::problem(&format!("the first {} lines are no longer there", answer.oldest_line));
    }
    match end {
        End::Timeout => print::problem(&format!("ended after {timeout:?}, as --timeout says")),
        End::Exit(ExitInfo::Signal(signal)) => print::problem(&format!("the program was ended by signal {signal}")),
        End::Exit(ExitInfo::Unknown) => print::problem("the program ended, and nobody can tell how"),
        End::Exit(ExitInfo::Code(_)) | End::Interrupt => {}
    }
}

fn as_json(end: End, answer: &Page, elapsed: Duration) -> Value {
    let (exit_code, signal) = match end {
        End::Exit(exit @ ExitInfo::Signal(signal)) => (exit.status(), Some(signal)),
        End::Exit(exit) => (exit.status(), None),
        End::Timeout | End::Interrupt => (None, None),
    };
    json!({
        "ok": matches!(end, End::Exit(_)),
        "output": trimmed(answer.lines()).join("\n"),
        "exit_code": exit_code,
        "signal": signal,
        "timed_out": matches!(end, End::Timeout),
        "duration_ms": millis(elapsed),
        "dropped_lines": answer.oldest_line,
    })
}
