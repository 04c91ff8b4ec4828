//! `kpty serve`: the server, from its first line to a clean end.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{Failure, Outcome, print};
use crate::config::{self, Config};
use crate::error::Error;
use crate::registry::bridge_url;
use crate::server::{Callers, Reach, Server, ServerSettings};
use crate::terminal::local;
use crate::terminal::local::pty;
use crate::tools::Tools;

/// How a server exits that was asked to end twice: as if the signal had ended it.
const ENDED_AT_ONCE: i32 = 128 + 15;
/// How long threads that are still busy are waited for at the end.
const LAST_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Args)]
#[command(after_help = "\
Whoever can call the server can run commands as you. It listens on loopback, accepts only your own user (on Linux;
elsewhere callers with the token of the state folder) and refuses web pages of other sites. SIGTERM and Ctrl-C end the
server and its sessions; SIGHUP makes it read --token-file again. RUST_LOG sets what is logged to standard error.

Examples:
  kpty serve                                   MCP at http://127.0.0.1:8100/mcp
  kpty serve --port 0 --state-dir ~/.kpty      a free port; ~/.kpty/server.json says which")]
pub(super) struct ServeArguments {
    /// Port to listen on; 0 takes a free one. Default: KPTY_PORT, else 8100
    #[arg(long, value_name = "P")]
    port: Option<u16>,

    /// Address to listen on. Default: KPTY_HOST, else 127.0.0.1
    #[arg(long, value_name = "ADDRESS")]
    host: Option<IpAddr>,

    /// State folder, created when missing; server.json in it has port, pid and version. Default: ai/checkpoints/pty below
    /// KPTY_PROJECT_ROOT if that is set, else ~/.local/state/kpty
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,

    /// Allow an address that other machines can reach: whoever has the token can then run commands here
    #[arg(long, requires = "token_file")]
    allow_remote: bool,

    /// Allow desktop bridges on this host in addition to loopback; may be repeated
    #[arg(long, value_name = "HOST")]
    allow_bridge: Vec<String>,

    /// Register this server's sessions with another kpty, where they are listed, resolved and used, too
    #[arg(long, value_name = "URL")]
    register_with: Option<String>,

    /// File with a token (mode 0600) that admits other users: Authorization: Bearer TOKEN
    #[arg(long, value_name = "FILE", env = "KPTY_TOKEN_FILE")]
    token_file: Option<PathBuf>,

    /// Accept every user of this machine, without a token
    #[arg(long)]
    no_auth: bool,

    /// Accept web pages of this origin, such as http://localhost:5173; may be repeated
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
}

pub(super) fn run(arguments: ServeArguments) -> Result<Outcome, Failure> {
    print::log_problems();
    pty::raise_open_files_limit();
    local::keep_little_unused_memory();
    if let Some(host) = arguments.allow_bridge.iter().find(|host| !bridge_url::is_host(host)) {
        let problem = format!("--allow-bridge {host:?} is not a host: a name or an address, without a port");
        return Err(Error::Usage(problem).into());
    }
    let config = Config { allow_bridge: arguments.allow_bridge, ..Config::from_env()? };
    let settings = ServerSettings {
        host: arguments.host.unwrap_or(config.host),
        port: arguments.port.unwrap_or(config.port),
        bridge_port: config.bridge_port,
        register_with: arguments.register_with.map(|url| checked(&url, &config.allow_bridge)).transpose()?,
        reach: if arguments.allow_remote { Reach::Network } else { Reach::Loopback },
        callers: if arguments.no_auth { Callers::Anybody } else { Callers::Known },
        token_file: arguments.token_file,
        allow_origins: arguments.allow_origin,
        state_dir: arguments.state_dir.or_else(config::default_state_dir),
    };
    let runtime = super::threaded_runtime()?;
    let served = runtime.block_on(serve(config, &settings));
    runtime.shutdown_timeout(LAST_TIMEOUT);
    served?;
    Ok(Outcome::Done)
}

/// Another kpty is called with a secret, so it may be only where a bridge may be.
fn checked(url: &str, allowed: &[String]) -> Result<String, Error> {
    bridge_url::check(url, allowed).map_err(|problem| Error::Usage(format!("--register-with {url}: {problem}")))
}

async fn serve(config: Config, settings: &ServerSettings) -> Result<(), Error> {
    // From here on a signal ends the server cleanly, however early it comes.
    let deaf = |cause: io::Error| Error::Server(format!("cannot listen for signals: {cause}"));
    let stop = stop_signal().map_err(deaf)?;
    let hang_ups = hang_ups().map_err(deaf)?;
    let server = Server::bind(settings).await?;
    print::problem(&format!("listening on http://{}, MCP at {}", server.address(), config.mcp_path));
    if let Some(bridge) = server.bridge_address() {
        print::problem(&format!("bridge on http://{bridge}"));
    }
    // The link is as good as we are: a log keeps it for others to read.
    print::problem(&match print::is_watched() {
        true => format!("for people, once and within ten minutes: {} (`kpty open` makes more)", server.first_link()),
        false => format!("for people: `kpty open --url {}`", server.url()),
    });
    let reload = server.reloader();
    tokio::spawn(hang_ups(Box::new(reload)));
    let stop = async {
        stop.await;
        end_at_once_when_asked_again();
    };
    server.run(Tools::new(config), stop).await
}

/// Does something at each hang-up: a terminal that is closed, or somebody who wants the settings read again. Neither ends
/// the server. It is handled and not ignored, because programs of sessions would inherit that.
#[cfg(unix)]
fn hang_ups() -> io::Result<impl FnOnce(Box<dyn Fn() + Send>) -> HangUps> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hang_up = signal(SignalKind::hangup())?;
    Ok(move |work: Box<dyn Fn() + Send>| -> HangUps {
        Box::pin(async move {
            while hang_up.recv().await.is_some() {
                work();
            }
        })
    })
}

/// There is no such signal.
#[cfg(windows)]
fn hang_ups() -> io::Result<impl FnOnce(Box<dyn Fn() + Send>) -> HangUps> {
    Ok(|_| -> HangUps { Box::pin(std::future::ready(())) })
}

/// Waits for hang-ups.
type HangUps = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// Comes when a program is asked to end that ends with its terminal.
#[cfg(unix)]
pub(super) fn end_signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (stop, mut hang_up) = (stop_signal()?, signal(SignalKind::hangup())?);
    Ok(async move {
        tokio::select! {
            () = stop => {}
            _ = hang_up.recv() => {}
        }
    })
}

/// Comes when a program is asked to end that ends with its terminal.
#[cfg(windows)]
pub(super) fn end_signal() -> io::Result<impl Future<Output = ()>> {
    stop_signal()
}

/// Whoever asks again while the server ends does not want to wait for its sessions; the system hangs them up.
fn end_at_once_when_asked_again() {
    tokio::spawn(async {
        if let Ok(again) = stop_signal() {
            again.await;
            std::process::exit(ENDED_AT_ONCE);
        }
    });
}

/// Comes when the server is asked to end.
#[cfg(unix)]
pub(super) fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Comes when the server is asked to end.
#[cfg(windows)]
pub(super) fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        let _ = interrupt.recv().await;
    })
}
