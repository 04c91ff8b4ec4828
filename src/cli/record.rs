//! `kpty record`: a program in this terminal, and an asciicast of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use kpty_emulator::Size;

use super::run::new_session;
use super::{EXIT_NOT_STARTED, EXIT_OTHER, Failure, Outcome, print, serve, tty};
use crate::error::{Error, Result};
use crate::model::ExitInfo;
use crate::recording::{DEFAULT_MAX_BYTES, End, Options, Recorder, Status};
use crate::terminal::local::{NewSession, Session, knowing_environment};

#[derive(Args)]
#[command(after_help = "\
In a terminal, keys go to the program and its output is shown; otherwise it gets no input and only the file is written.
The file is private (mode 0600) and never overwritten; secrets are masked unless --raw is given. Play it with `asciinema play FILE`, or look at its end with `kpty replay FILE`.

Exit code: the program's own; 128 and the signal's number when a signal ended it; 127 when it could not be started; 2
for other failures.

Examples:
  kpty record -- bash                          a shell, into kpty-PID.cast
  kpty record -o demo.cast -- htop
  kpty record -o build.cast --cols 100 -- make")]
pub(super) struct RecordArguments {
    /// File to write; kpty-PID.cast in this directory by default
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Width of the terminal; that of this terminal by default
    #[arg(long, value_name = "C")]
    cols: Option<u16>,

    /// Height of the terminal; that of this terminal by default
    #[arg(long, value_name = "R")]
    rows: Option<u16>,

    /// Directory to start in
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Also record what is typed, including passwords that do not look like secrets
    #[arg(long)]
    input: bool,

    /// Do not mask secrets
    #[arg(long)]
    raw: bool,

    /// Size in bytes at which the recording ends; the program continues
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_BYTES)]
    max_bytes: u64,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    command: Vec<String>,
}

pub(super) fn run(arguments: &RecordArguments) -> std::result::Result<Outcome, Failure> {
    let is_watched = tty::is_watched();
    let own = tty::size().filter(|_| is_watched);
    let cols = arguments.cols.or(own.map(Size::cols));
    let rows = arguments.rows.or(own.map(Size::rows));
    let new = new_session(&arguments.command, (cols, rows), arguments.cwd.as_deref())?;
    let path = arguments.output.clone();
    let path = path.unwrap_or_else(|| PathBuf::from(format!("kpty-{}.cast", std::process::id())));
    let options = Options {
        path: path.clone(),
        redactor: (!arguments.raw).then(|| Arc::new(knowing_environment(&new))),
        input: arguments.input,
        max_bytes: arguments.max_bytes,
        title: Some(arguments.command.join(" ")),
    };
    let follows = is_watched && arguments.cols.is_none() && arguments.rows.is_none();
    let runtime = super::threaded_runtime()?;
    let outcome = runtime.block_on(record(new, options, is_watched, follows));
    runtime.shutdown_background();
    match outcome {
        Ok((exit, status)) => {
            report(&status);
            Ok(Outcome::Code(exit.status().map_or(EXIT_OTHER, |status| status as u8)))
        }
        Err(error @ Error::Spawn { .. }) => {
            print::problem(&error.to_string());
            // It has nothing but a header.
            let _ = std::fs::remove_file(&path);
            Ok(Outcome::Code(EXIT_NOT_STARTED))
        }
        Err(error) => Err(error.into()),
    }
}

async fn record(new: NewSession, options: Options, is_watched: bool, follows: bool) -> Result<(ExitInfo, Status)> {
    let interrupted = serve::stop_signal().map_err(|cause| Error::Server(format!("no signals: {cause}")))?;
    let echo = is_watched.then(|| -> crate::recording::Echo {
        Box::new(|bytes| {
            // Nobody is left to see it: the recording goes on.
            let _ = print::bytes(bytes);
        })
    });
    let (recorder, tap) = Recorder::start_with(options, new.size, echo)?;
    let session = Session::spawn_recorded(new, tap).await?;
    let raw_mode = is_watched.then(tty::RawMode::enter).transpose().ok().flatten();
    let exit = tokio::select! {
        exit = session.ended() => exit,
        never = serve_keys(&session, is_watched, follows) => match never {},
        () = interrupted => {
            if let Err(error) = session.kill().await {
                print::problem(&error.to_string());
            }
            session.ended().await
        }
    };
    let written = tokio::task::spawn_blocking(move || recorder.join()).await;
    drop(raw_mode);
    let status = written.map_err(|error| Error::Server(format!("the recording failed: {error}")))?;
    Ok((exit, status))
}

/// Passes keys and sizes on. Never ends by itself.
async fn serve_keys(session: &Session, is_watched: bool, follows: bool) -> std::convert::Infallible {
    if !is_watched {
        return std::future::pending().await;
    }
    let mut input = tty::input();
    let mut sizes = Resizes::new();
    loop {
        tokio::select! {
            bytes = input.recv() => match bytes {
                // A program that ended meanwhile takes nothing.
                Some(bytes) => drop(session.write(&bytes).await),
                None => std::future::pending::<()>().await,
            },
            () = sizes.next(), if follows => {
                if let Some(size) = tty::size() {
                    drop(session.resize(size));
                }
            }
        }
    }
}

/// Tells when this terminal changes its size.
#[cfg(unix)]
struct Resizes(Option<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Resizes {
    fn new() -> Self {
        Self(tokio::signal::unix::signal(tokio::signal::unix::SignalKind::window_change()).ok())
    }

    async fn next(&mut self) {
        match &mut self.0 {
            Some(signal) => drop(signal.recv().await),
            None => std::future::pending().await,
        }
    }
}

#[cfg(not(unix))]
struct Resizes;

#[cfg(not(unix))]
impl Resizes {
    fn new() -> Self {
        Self
    }

    async fn next(&mut self) {
        std::future::pending().await
    }
}

fn report(status: &Status) {
    let path: &Path = &status.path;
    let what = match &status.ended {
        Some(End::TooLarge) => "which has reached its size limit; the program continued",
        Some(End::TooFast) => "until output came faster than it could be written",
        Some(End::Disk(problem)) => problem,
        _ => return print::problem(&format!("recorded {} ({} bytes)", path.display(), status.bytes)),
    };
    print::problem(&format!("recorded {} ({} bytes), {what}", path.display(), status.bytes));
}
