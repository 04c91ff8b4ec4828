//! `kpty list`, `create`, `resize`, `kill`: which sessions there are.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};

use super::client::{Connection, text};
use super::remote::{EXIT_CODES, Remote};
use super::{EXIT_DONE, Failure, Outcome, print};
use crate::error::Error;

#[derive(Args)]
#[command(after_help = format!("\
{EXIT_CODES}

Examples:
  kpty list
  kpty list --json | jq -r '.sessions[].session_id'"))]
pub(super) struct ListArguments {
    #[command(flatten)]
    connection: Connection,
}

#[derive(Args)]
#[command(after_help = format!("\
Prints only the id of the new session, so that a script can keep it.

{EXIT_CODES}

Examples:
  id=$(kpty create)                                    the server's default shell
  kpty create --label build --cwd ~/src -- zsh         by this name it can be found again
  kpty create --cols 100 --rows 40 -- python3 -q       any program will do"))]
pub(super) struct CreateArguments {
    /// Program to start; the server's shell by default
    #[arg(long, value_name = "PROGRAM", conflicts_with = "command")]
    shell: Option<String>,

    /// Directory to start in; the server's own by default
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Width of the terminal
    #[arg(long, value_name = "C")]
    cols: Option<u16>,

    /// Height of the terminal
    #[arg(long, value_name = "R")]
    rows: Option<u16>,

    /// Name for people
    #[arg(long)]
    label: Option<String>,

    /// Variable of the program's environment; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,

    /// Who answers hidden prompts: agent, or only a person
    #[arg(long, value_name = "WHO", value_parser = ["agent", "person"])]
    secrets: Option<String>,

    /// Start the shell without integration
    #[arg(long)]
    no_integration: bool,

    /// The program and its arguments
    #[arg(last = true, value_name = "SHELL")]
    command: Vec<String>,

    #[command(flatten)]
    connection: Connection,
}

#[derive(Args)]
#[command(after_help = format!("\
{EXIT_CODES}

Examples:
  kpty resize editor 132 43"))]
pub(super) struct ResizeArguments {
    /// Id, beginning of the id, or label
    session: String,

    /// New width
    cols: u16,

    /// New height
    rows: u16,

    #[command(flatten)]
    connection: Connection,
}

#[derive(Args)]
#[command(after_help = format!("\
{EXIT_CODES}

Examples:
  kpty kill build
  kpty kill lead --force                    also a session that a leader owns"))]
pub(super) struct KillArguments {
    /// Id, beginning of the id, or label
    session: String,

    /// Also end a leader's session
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    connection: Connection,
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("give NAME=VALUE".to_owned()),
    }
}

pub(super) async fn list(arguments: ListArguments) -> Result<Outcome, Failure> {
    let remote = Remote::new(&arguments.connection)?;
    let answer = remote.client.call("list", json!({})).await?;
    remote.finish(
        &answer,
        |_| EXIT_DONE,
        |answer| {
            let rows: Vec<_> = answer.objects("sessions").into_iter().map(row).collect();
            Ok(print::table(&["ID", "STATE", "SIZE", "LABEL", "PROGRAM", "DIRECTORY"], &rows)?)
        },
    )
}

fn row(session: &Map<String, Value>) -> Vec<String> {
    let number = |name: &str| session.get(name).and_then(Value::as_u64).unwrap_or(0);
    let state = match session.get("is_alive") {
        Some(Value::Bool(false)) => "ended",
        _ if session.get("stale") == Some(&Value::Bool(true)) => "stale",
        _ if !text(session, "running_command").is_empty() => "busy",
        _ => "alive",
    };
    // A desktop session tells neither its window nor its program.
    let is_desktop = text(session, "source") == "desktop";
    vec![
        print::tame(text(session, "session_id")),
        state.to_owned(),
        if is_desktop { "-".to_owned() } else { format!("{}x{}", number("cols"), number("rows")) },
        match text(session, "label") {
            "" => "-".to_owned(),
            label => print::tame(label),
        },
        print::tame(text(session, if is_desktop { "cli_type" } else { "shell" })),
        print::tame(text(session, if is_desktop { "desktop_url" } else { "cwd" })),
    ]
}

pub(super) async fn create(arguments: CreateArguments) -> Result<Outcome, Failure> {
    let remote = Remote::new(&arguments.connection)?;
    let mut command = arguments.command.into_iter();
    let shell = arguments.shell.or_else(|| command.next());
    let args: Vec<String> = command.collect();
    // The server may have been started elsewhere: a relative path is relative to whoever asks.
    let absolute = |cwd: PathBuf| std::path::absolute(&cwd).map_err(|cause| Error::file("find", &cwd, cause));
    let cwd = arguments.cwd.map(absolute).transpose()?;
    let env: Map<String, Value> = arguments.env.into_iter().map(|(name, value)| (name, json!(value))).collect();
    let parameters = json!({
        "shell": shell,
        "args": (!args.is_empty()).then_some(args),
        "cwd": cwd.map(|cwd| cwd.to_string_lossy().into_owned()),
        "cols": arguments.cols,
        "rows": arguments.rows,
        "label": arguments.label,
        "env": (!env.is_empty()).then_some(env),
        "integration": arguments.no_integration.then_some("off"),
        "secrets": arguments.secrets,
    });
    let answer = remote.client.call("create", parameters).await?;
    remote.finish(&answer, |_| EXIT_DONE, |answer| Ok(print::line(answer.text("session_id"))?))
}

pub(super) async fn resize(arguments: ResizeArguments) -> Result<Outcome, Failure> {
    let remote = Remote::new(&arguments.connection)?;
    let session = remote.resolve(&arguments.session).await?;
    let parameters = json!({ "session_id": session, "cols": arguments.cols, "rows": arguments.rows });
    let answer = remote.client.call("resize", parameters).await?;
    remote.finish(&answer, |_| EXIT_DONE, |_| Ok(()))
}

pub(super) async fn kill(arguments: KillArguments) -> Result<Outcome, Failure> {
    let remote = Remote::new(&arguments.connection)?;
    let session = remote.resolve(&arguments.session).await?;
    let parameters = json!({ "session_id": session, "force": arguments.force });
    let answer = remote.client.call("kill", parameters).await?;
    remote.finish(&answer, |_| EXIT_DONE, |_| Ok(()))
}
