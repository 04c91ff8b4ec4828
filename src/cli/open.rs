//! `kpty open`: the page for people, in a browser.

use std::process::{Command, Stdio};

use clap::Args;
use serde_json::json;

use super::client::{Client, Connection};
use super::{Failure, Outcome, print};
use crate::config;

/// Programs that open an address, by what they need before it.
#[cfg(target_os = "macos")]
const OPENERS: [&[&str]; 1] = [&["open"]];
#[cfg(windows)]
const OPENERS: [&[&str]; 1] = [&["rundll32", "url.dll,FileProtocolHandler"]];
#[cfg(not(any(target_os = "macos", windows)))]
const OPENERS: [&[&str]; 2] = [&["xdg-open"], &["gio", "open"]];

#[derive(Args)]
#[command(after_help = "\
The link lets one browser in, once, within two minutes: it is as good as you are, so do not pass it on. It is printed
where no browser can be opened.

Exit codes: 0 done, 2 no server, or it refused.

Examples:
  kpty open
  kpty open --print | xclip        for a browser somewhere else on this machine")]
pub(super) struct OpenArguments {
    /// Print the link instead of opening it
    #[arg(long)]
    print: bool,

    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn open(arguments: OpenArguments) -> Result<Outcome, Failure> {
    let client = Client::new(&arguments.connection)?;
    let link = client.link().await?;
    if arguments.connection.json {
        print::line(&json!({ "ok": true, "url": link }).to_string())?;
    } else if arguments.print || !config::has_windows() || !is_opened(&link) {
        print::line(&link)?;
    }
    Ok(Outcome::Done)
}

/// Hands the link to the system. It is told at once whether somebody took it.
fn is_opened(link: &str) -> bool {
    OPENERS.iter().any(|opener| {
        let (program, before) = opener.split_first().map_or(("", &[][..]), |(program, rest)| (*program, rest));
        let quiet = Command::new(program)
            .args(before)
            .arg(link)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        quiet.is_ok_and(|status| status.success())
    })
}
