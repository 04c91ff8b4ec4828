//! Making a session: the child's environment, the start-up files of its shell, the driver.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use kpty_emulator::Size;
use tempfile::TempDir;
use tokio::sync::{Notify, watch};

use super::driver;
use super::evidence::{MarkedShell, Phase};
use super::integration::{self, IntegratedShell, Launch};
use super::record::Tapped;
use super::state::TerminalState;
use super::{Session, Shared};
use crate::error::{Error, Result};
use crate::ids::{SessionId, random_hex};
use crate::model::{Owner, Secrets};
use crate::recording::Tap;
use crate::terminal::local::pty::{self, Pty, SpawnSpec};
use kpty_guard::Redactor;

/// How long the start-up files stay when the shell never shows a prompt.
const FILES_STAY: Duration = Duration::from_secs(60);

/// What a child must not inherit: it describes the terminal or the service that the server runs in.
const NOT_INHERITED: [&str; 16] = [
    "COLUMNS",
    "LINES",
    "TERMCAP",
    "TMUX",
    "TMUX_PANE",
    "STY",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "VTE_VERSION",
    "WINDOWID",
    "NOTIFY_SOCKET",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
];

/// Pagers wait for keys that nobody presses.
const PAGERS: [&str; 4] = ["PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER"];

/// Whether the shell is given start-up files that mark what it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Integration {
    /// Where the shell is known.
    #[default]
    Auto,
    /// Never.
    Off,
}

/// What a session is to be.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// The program.
    pub shell: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Where it starts.
    pub cwd: PathBuf,
    /// The window.
    pub size: Size,
    /// Variables besides the server's.
    pub env: Vec<(String, String)>,
    /// Leave pagers as they are.
    pub pager: bool,
    /// Whose it is.
    pub owner: Owner,
    /// Start-up files or not.
    pub integration: Integration,
    /// The environment of the server.
    pub inherited: Vec<(OsString, OsString)>,
    /// Bytes of raw output to keep.
    pub ring_bytes: usize,
    /// Who answers questions for secrets.
    pub secrets: Secrets,
    /// Redacts what is shown, values of the environment included.
    pub redactor: Redactor,
}

impl Session {
    /// Starts the program and its driver.
    pub async fn spawn(new: NewSession) -> Result<Self> {
        Self::spawn_with(new, None).await
    }

    /// The same, with a recording from the first byte on.
    pub async fn spawn_recorded(new: NewSession, tap: Tap) -> Result<Self> {
        Self::spawn_with(new, Some(tap)).await
    }

    async fn spawn_with(new: NewSession, tap: Option<Tap>) -> Result<Self> {
        let env = environment(&new);
        let problem = |problem: String| Error::Spawn { shell: new.shell.clone(), cwd: new.cwd.clone(), problem };
        let prepared = prepare(&new, &env).map_err(|error| problem(format!("no start-up files: {error}")))?;
        let (secret, launch, folder) = match prepared {
            Some(Prepared { secret, launch, folder }) => (Some(secret), Some(launch), Some(folder)),
            None => (None, None, None),
        };
        let mut spec =
            SpawnSpec { program: new.shell.clone(), args: new.args.clone(), cwd: new.cwd.clone(), env, size: new.size };
        if let Some(Launch { args, env, .. }) = launch {
            spec.args = args;
            spec.env.retain(|(name, _)| !env.iter().any(|(ours, _)| name == ours.as_str()));
            spec.env.extend(env.into_iter().map(|(name, value)| (name.into(), value.into())));
        }
        let spawned_args = spec.args.clone();
        let started = tokio::task::spawn_blocking(move || pty::start(&spec)).await;
        let started = started.map_err(|error| problem(error.to_string()))?.map_err(problem)?;
        let (pty, child) = Pty::new(started).map_err(|error| problem(error.to_string()))?;
        let redactor = knowing_environment(&new).with_literals(secret.clone());
        let program = IntegratedShell::from_program(&new.shell);
        let shell =
            program.zip(secret).map(|(program, secret)| MarkedShell::new(program, spawned_args.clone(), secret));
        let mut terminal = TerminalState::new(new.size, new.ring_bytes, shell, redactor);
        terminal.tapped = tap.map(Tapped::new);
        let shared = Arc::new(Shared {
            id: SessionId::random(),
            shell: new.shell,
            spawned_args,
            cwd: new.cwd,
            owner: Mutex::new(new.owner),
            created_at: SystemTime::now(),
            secrets: new.secrets,
            terminal: Mutex::new(terminal),
            outbox: Mutex::default(),
            left_over: Notify::new(),
            has_in_hand: AtomicBool::new(false),
            progress: watch::Sender::new(0),
            news: watch::Sender::new(0),
            closing: Notify::new(),
            control: pty.control(),
            typing: Arc::default(),
            turn: tokio::sync::Mutex::default(),
            input: Arc::default(),
            ended: Mutex::new(None),
            typed_hidden: Mutex::new(None),
            is_being_killed: AtomicBool::new(false),
            left_behind: watch::Sender::new(None),
            share: OnceLock::new(),
        });
        tokio::spawn(driver::drive(pty, child, Arc::clone(&shared)));
        if let Some(folder) = folder {
            tokio::spawn(remove_after_first_prompt(folder, Arc::clone(&shared)));
        }
        Ok(Self { shared, is_person: false })
    }
}

/// The values of secret variables, the server's and the session's, are masked wherever they show.
pub fn knowing_environment(new: &NewSession) -> Redactor {
    let inherited = new.inherited.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
    let given = new.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    new.redactor.with_variables(inherited.chain(given))
}

/// The environment of the child: the server's without its secrets, and what describes this terminal.
fn environment(new: &NewSession) -> Vec<(OsString, OsString)> {
    let is_ours = |name: &str| name.starts_with("KURORYUU_") || name.starts_with("KPTY_");
    let is_secret = |name: &str| is_ours(name) && (name.contains("SECRET") || name.contains("TOKEN"));
    let mut env: Vec<(OsString, OsString)> = new
        .inherited
        .iter()
        .filter(|(name, _)| name.to_str().is_none_or(|name| !NOT_INHERITED.contains(&name) && !is_secret(name)))
        .cloned()
        .collect();
    let mut set = |name: &str, value: &str| {
        env.retain(|(other, _)| other != name);
        env.push((name.into(), value.into()));
    };
    set("TERM", "xterm-256color");
    set("COLORTERM", "truecolor");
    if !new.pager {
        PAGERS.iter().for_each(|name| set(name, "cat"));
    }
    new.env.iter().for_each(|(name, value)| set(name, value));
    env
}

struct Prepared {
    secret: String,
    launch: Launch,
    folder: TempDir,
}

/// Writes the start-up files of a shell that can be given some.
fn prepare(new: &NewSession, env: &[(OsString, OsString)]) -> io::Result<Option<Prepared>> {
    let shell = match new.integration {
        Integration::Auto => IntegratedShell::from_program(&new.shell),
        Integration::Off => None,
    };
    let Some(shell) = shell else { return Ok(None) };
    // Only its owner can look into it.
    let folder = tempfile::Builder::new().prefix("kpty-").tempdir()?;
    let secret = random_hex();
    let inherited = |name: &str| {
        let (_, value) = env.iter().find(|(other, _)| other == name)?;
        value.to_str().map(str::to_owned)
    };
    let Some(launch) = integration::prepare(shell, &secret, folder.path(), &new.args, &inherited) else {
        return Ok(None);
    };
    for (name, content) in &launch.files {
        write_private(&folder.path().join(name), content)?;
    }
    Ok(Some(Prepared { secret, launch, folder }))
}

fn write_private(path: &Path, content: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(content.as_bytes())
}

/// The files hold the session's secret; the shell has read them when it shows its first prompt.
async fn remove_after_first_prompt(folder: TempDir, shared: Arc<Shared>) {
    let mut news = shared.news.subscribe();
    let shown = async {
        loop {
            {
                let terminal = shared.lock();
                let is_starting = terminal.shell.as_ref().is_some_and(|shell| shell.phase == Phase::Starting);
                if !is_starting || terminal.exit.is_some() {
                    return;
                }
            }
            if news.changed().await.is_err() {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(FILES_STAY, shown).await;
    drop(folder);
}
