//! `kpty status` and `kpty stop`: whether a server runs, and its end.

use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value};

use super::client::{CONNECT_TIMEOUT, Client, Connection, text};
use super::{EXIT_NOTHING, Failure, Outcome, print};
use crate::error::Error;
use crate::terminal::executable_name;
use crate::terminal::local::pty::{Control, Signal};

/// How long a server may take to end: it gives its sessions and its last answers 5 s.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Args)]
#[command(after_help = "\
Exit codes: 0 a server is running, 1 no server answers, 2 another program answers.

Example:
  kpty status || kpty serve &")]
pub(super) struct StatusArguments {
    #[command(flatten)]
    connection: Connection,
}

#[derive(Args)]
#[command(after_help = "\
Sends SIGTERM: the server ends its sessions, saves its state and exits.

Exit codes: 0 the server has ended, 1 no server answers, 2 it could not be ended.

Example:
  kpty stop --url http://127.0.0.1:8123")]
pub(super) struct StopArguments {
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn status(arguments: StatusArguments) -> Result<Outcome, Failure> {
    let client = Client::new(&arguments.connection)?;
    let Some(health) = client.health(CONNECT_TIMEOUT).await? else { return Ok(nobody(&client)) };
    if arguments.connection.json {
        print::line(&Value::Object(health).to_string())?;
        return Ok(Outcome::Done);
    }
    let number = |name: &str| health.get(name).and_then(Value::as_u64).unwrap_or(0);
    print::line(&format!(
        "kpty {} at {}, pid {}, {} live sessions, {}",
        print::tame(text(&health, "version")),
        client.url(),
        number("pid"),
        number("sessions"),
        print::tame(text(&health, "status")),
    ))?;
    Ok(Outcome::Done)
}

pub(super) async fn stop(arguments: StopArguments) -> Result<Outcome, Failure> {
    let client = Client::new(&arguments.connection)?;
    let Some(health) = client.health(CONNECT_TIMEOUT).await? else { return Ok(nobody(&client)) };
    let pid = own_program(&health).ok_or_else(|| {
        let message =
            format!("what answers at {} is not a kpty server of this machine: nothing was ended", client.url());
        Failure::from(Error::Server(message))
    })?;
    Control::signal_process(pid, Signal::Terminate);
    if tokio::time::timeout(STOP_TIMEOUT, Control::process_ended(pid)).await.is_err() {
        let message = format!("process {pid} has not ended within {} s", STOP_TIMEOUT.as_secs());
        return Err(Error::Server(message).into());
    }
    match arguments.connection.json {
        true => print::line(&serde_json::json!({ "ok": true, "pid": pid }).to_string())?,
        false => print::line(&format!("the server at {} (pid {pid}) has ended", client.url()))?,
    }
    Ok(Outcome::Done)
}

/// The process that an answer names, if it runs the same program: anybody can answer on a port.
fn own_program(health: &Map<String, Value>) -> Option<u32> {
    let pid = health.get("pid").and_then(Value::as_u64).and_then(|pid| u32::try_from(pid).ok())?;
    let own = executable_name(std::process::id())?;
    (executable_name(pid)? == own).then_some(pid)
}

fn nobody(client: &Client) -> Outcome {
    print::problem(&format!("no kpty server at {}", client.url()));
    Outcome::Code(EXIT_NOTHING)
}
