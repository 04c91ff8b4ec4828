//! `kpty open`: the page for people, in a browser.
//!
//! Arguments and environments of programs can be read by every user of the machine, so no code is ever among them. Where
//! the kernel tells the server whose browser comes, the address has no code at all; elsewhere the browser is given a file
//! that only its user can read, which leads to the link and is removed when the link has been used.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use serde_json::json;

use tempfile::TempDir;

use super::client::{Client, Connection, LinkFor};
use super::serve::end_signal;
use super::{Failure, Outcome, print};
use crate::config;
use crate::error::Error;

/// Programs that open an address, by what they need before it.
#[cfg(target_os = "macos")]
const OPENERS: [&[&str]; 1] = [&["open"]];
#[cfg(windows)]
const OPENERS: [&[&str]; 1] = [&["rundll32", "url.dll,FileProtocolHandler"]];
#[cfg(not(any(target_os = "macos", windows)))]
const OPENERS: [&[&str]; 2] = [&["xdg-open"], &["gio", "open"]];

#[derive(Args)]
#[command(after_help = "\
The link logs in one browser, once, within two minutes. Whoever has it can act as you: do not pass it on. It is printed
if no browser can be opened.

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
    let is_json = arguments.connection.json;
    if is_json || arguments.print || !config::has_windows() || !is_shown(&client).await? {
        let link = client.link(LinkFor::Person).await?;
        print::line(&if is_json { json!({ "ok": true, "url": link }).to_string() } else { link })?;
    }
    Ok(Outcome::Done)
}

/// Opens the page in a browser, if there is one.
async fn is_shown(client: &Client) -> Result<bool, Failure> {
    let link = client.link(LinkFor::Browser).await?;
    let Some((_, code)) = link.split_once("?code=") else { return Ok(is_opened(&link)) };
    // It is removed on every way out, also on a signal.
    let stop = end_signal().map_err(|cause| Error::Server(format!("cannot listen for signals: {cause}")))?;
    let (folder, file) = write_redirect(&link).map_err(Error::Output)?;
    let is_opened = match file.to_str() {
        Some(path) => is_opened(path),
        None => false,
    };
    if is_opened {
        tokio::select! {
            () = stop => {}
            // A server that cannot tell does not keep the file for long.
            _ = client.link_spent(code) => {}
        }
    }
    drop(folder);
    Ok(is_opened)
}

/// A file for our eyes only that leads a browser to the link, and the folder that is removed with it.
fn write_redirect(link: &str) -> io::Result<(TempDir, PathBuf)> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("kpty-open-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    let folder = builder.tempdir_in(config::private_folder())?;
    let path = folder.path().join("open.html");
    let page = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0;url={link}\"><title>kpty</title>\n"
    );
    write_private(&path, page.as_bytes())?;
    Ok((folder, path))
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(bytes)
}

/// Hands an address or a file to the system. Returns at once whether a program accepted it.
fn is_opened(target: &str) -> bool {
    OPENERS.iter().any(|opener| {
        let (program, before) = opener.split_first().map_or(("", &[][..]), |(program, rest)| (*program, rest));
        let quiet = Command::new(program)
            .args(before)
            .arg(target)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        quiet.is_ok_and(|status| status.success())
    })
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_file_for_a_browser_is_its_users_alone_and_goes() {
        let link = "http://127.0.0.1:8100/ui?code=0";
        let (folder, path) = write_redirect(link).expect("a file");
        let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(folder.path()), mode(&path)), (0o700, 0o600));
        assert!(std::fs::read_to_string(&path).expect("its text").contains(&format!("url={link}\"")));
        assert!(write_private(&path, b"").is_err(), "what is there is not written over");
        drop(folder);
        assert!(!path.exists());
    }
}
