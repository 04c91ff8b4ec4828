//! `kpty evidence`: what was run and what came of it, as one JSON to attach to a message.

use clap::Args;
use serde_json::{Value, json};

use super::client::Connection;
use super::remote::{EXIT_CODES, Remote};
use super::{EXIT_DONE, Failure, Outcome, print};
use crate::error::Error;

#[derive(Args)]
#[command(after_help = format!("\
Secrets are masked. The caller of a command is what it claimed to be; it is not verified.

{EXIT_CODES}

Examples:
  kpty evidence build                       the last command, its output and the screen
  kpty evidence build cmd_3 cmd_4 --intervention stuck_worker_recovery --did 'sent Y' --result 'goes on'"))]
pub(super) struct EvidenceArguments {
    /// Id, beginning of the id, or label
    session: String,

    /// Commands to include; the last one by default
    #[arg(value_name = "ID")]
    commands: Vec<String>,

    /// Type of the intervention
    #[arg(long, value_name = "TYPE")]
    intervention: Option<String>,

    /// Action that was taken
    #[arg(long, value_name = "TEXT")]
    did: Option<String>,

    /// Result of the action
    #[arg(long, value_name = "TEXT")]
    result: Option<String>,

    /// Leave out the screen
    #[arg(long)]
    no_screen: bool,

    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn evidence(arguments: EvidenceArguments) -> Result<Outcome, Failure> {
    let remote = Remote::new(&arguments.connection)?;
    let session = remote.resolve(&arguments.session).await?;
    let (one, several) = match arguments.commands.as_slice() {
        [one] => (Some(one), None),
        [] => (None, None),
        several => (None, Some(several)),
    };
    let parameters = json!({
        "session_id": session,
        "command_id": one,
        "command_ids": several,
        "intervention_type": arguments.intervention,
        "action_taken": arguments.did,
        "result": arguments.result,
        "screen": !arguments.no_screen,
    });
    let answer = remote.client.call("evidence", parameters).await?;
    remote.finish(
        &answer,
        |_| EXIT_DONE,
        |answer| {
            let mut pack = answer.body.clone();
            pack.remove("ok");
            let text = serde_json::to_string_pretty(&Value::Object(pack));
            Ok(print::line(&text.map_err(|error| Error::Server(error.to_string()))?)?)
        },
    )
}
