//! One PTY, its child, and everything it said: [`Session`] is the cheap handle that tools hold.
//!
//! A driver task feeds the terminal; whoever waits is woken by two channels: `progress` moves with every piece of
//! output, `news` only when a command began or ended, a prompt came, or the child went.

mod attend;
mod attention;
mod depth;
mod dialect;
#[cfg(target_os = "linux")]
mod drain;
mod driver;
mod dropped;
mod enter;
mod evidence;
mod facts;
mod foreground;
mod foreign;
mod hidden;
pub mod input;
pub mod integration;
pub mod keys;
mod kill;
mod marks;
mod memory;
mod outbox;
mod output;
mod proposal;
pub mod pty;
mod reached;
mod readiness;
mod record;
mod rendered;
mod ring;
mod secrets;
mod sentinel_evidence;
mod spawn;
mod state;
mod talk;
mod terminal;
mod typed_form;
mod view;
mod wait;
mod write;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use kpty_emulator::{Modes, Request, Size};
use tokio::sync::{Notify, watch};

pub use kill::{KillReport, kill_all, kill_now};
pub use memory::{Budget, keep_little_unused_memory, new_session_bytes, release_soon};
pub use record::WholeOutput;
pub use spawn::{Integration, NewSession, knowing_environment};
pub use view::Moment;

use crate::error::{Error, Exited, Result};
use crate::ids::{CommandId, SessionId};
use crate::masked::Page;
use crate::model::{ExitInfo, Owner, Secrets};
use crate::terminal::local::pty::{Control, Foreground, Incarnation};
use crate::terminal::{Command, InputTurn, Output};
use kpty_guard::{Masked, Redactor};
use outbox::Outbox;
use state::TerminalState;
use write::Writer;

/// A handle to a session; clones are the same session.
#[derive(Clone)]
pub struct Session {
    shared: Arc<Shared>,
    /// Whoever holds it is a person, who may type secrets.
    is_person: bool,
}

/// What handle and driver share.
struct Shared {
    id: SessionId,
    shell: String,
    /// The arguments that the child was started with.
    spawned_args: Vec<String>,
    cwd: PathBuf,
    owner: Mutex<Owner>,
    created_at: SystemTime,
    secrets: Secrets,
    terminal: Mutex<TerminalState>,
    outbox: Mutex<Outbox>,
    /// Wakes the driver for what is left in the outbox.
    left_over: Notify,
    /// The driver has read output that is not yet in the terminal's state.
    has_in_hand: AtomicBool,
    progress: watch::Sender<u64>,
    news: watch::Sender<u64>,
    /// Tells the driver to close the terminal.
    closing: Notify,
    control: Control,
    /// Held by whoever types until the text is in the terminal; before the other locks.
    typing: Arc<tokio::sync::Mutex<()>>,
    /// Held by the `talk` that may type: where the system said the shell was when the last one ended.
    turn: tokio::sync::Mutex<Option<PathBuf>>,
    /// Held by whoever types, from the question whether that is allowed to the last byte. Taken after `turn`, and before the
    /// short locks.
    input: Arc<InputTurn>,
    /// When the child was found dead.
    ended: Mutex<Option<Instant>>,
    /// When something was last typed that the terminal did not show.
    typed_hidden: Mutex<Option<Instant>>,
    /// Somebody ends it.
    is_being_killed: AtomicBool,
    /// What a child that ended by itself left behind, once that is known.
    left_behind: watch::Sender<Option<Vec<Incarnation>>>,
    /// What it holds of the server's memory.
    share: OnceLock<memory::Share>,
}

impl Shared {
    /// The lock is short and never held across an await; what a panic left behind is still the newest there is.
    fn lock(&self) -> MutexGuard<'_, TerminalState> {
        self.terminal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, news: bool) {
        self.progress.send_modify(|count| *count += 1);
        if news {
            self.news.send_modify(|count| *count += 1);
        }
    }
}

/// State of a session at one moment, secrets masked. What its owner is called is what callers said.
#[derive(Clone, Debug)]
pub struct Info {
    /// Its name.
    pub id: SessionId,
    /// The program.
    pub shell: Masked,
    /// Where it is, or was started.
    pub cwd: Masked,
    /// The window.
    pub size: Size,
    /// When it was created.
    pub created_at: SystemTime,
    /// When it last said something.
    pub last_activity: SystemTime,
    /// How it ended, if it has.
    pub exit: Option<ExitInfo>,
    /// Raw bytes kept.
    pub buffer_size: usize,
    /// The child.
    pub pid: u32,
    /// Whose it is.
    pub owner: Owner,
    /// The command that is running.
    pub running: Option<(CommandId, Masked)>,
}

impl Session {
    /// Its name.
    pub fn id(&self) -> &SessionId {
        &self.shared.id
    }

    /// Its state.
    pub fn info(&self) -> Info {
        let directory = self.directory();
        let terminal = self.shared.lock();
        let redactor = &terminal.redactor;
        Info {
            id: self.shared.id.clone(),
            shell: redactor.mask_str(&self.shared.shell),
            cwd: redactor.mask_str(&directory.as_ref().unwrap_or(&self.shared.cwd).to_string_lossy()),
            size: terminal.emulator.size(),
            created_at: self.shared.created_at,
            last_activity: terminal.last_activity,
            exit: terminal.exit,
            buffer_size: terminal.ring.len(),
            pid: self.shared.control.pid(),
            owner: self.shared.owner.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            running: terminal.commands.open().next_back().map(|command| (command.id, command.line(redactor))),
        }
    }

    /// The directory of the session's own program: as the system knows it, else as the shell says.
    fn directory(&self) -> Option<PathBuf> {
        self.shared.control.directory().or_else(|| self.shared.lock().cwd.clone().map(PathBuf::from))
    }

    /// How it ended, if it has.
    pub fn exit(&self) -> Option<ExitInfo> {
        self.shared.lock().exit
    }

    /// For how long it has been dead.
    pub fn dead_for(&self) -> Option<Duration> {
        let is_dead = self.exit().is_some();
        let mut ended = self.shared.ended.lock().unwrap_or_else(PoisonError::into_inner);
        is_dead.then(|| ended.get_or_insert_with(Instant::now).elapsed())
    }

    /// Who has the terminal now.
    pub(in crate::terminal) fn foreground(&self) -> Option<Foreground> {
        self.shared.control.foreground()
    }

    /// What the program asked of keyboard, mouse and paste.
    pub fn modes(&self) -> Modes {
        self.shared.lock().emulator.modes()
    }

    /// Takes secrets out of a text.
    pub fn redactor(&self) -> Arc<Redactor> {
        Arc::clone(&self.shared.lock().redactor)
    }

    /// The error for a session whose program has ended.
    fn exited(&self, exit: ExitInfo, command: Option<(CommandId, Masked)>) -> Error {
        let (command, partial_output) = command.unzip();
        Error::Exited(Box::new(Exited { session: self.id().clone(), exit, command, partial_output }))
    }

    /// Changes the window size and notifies the program.
    pub fn resize(&self, size: Size) -> Result<()> {
        if let Some(exit) = self.exit() {
            return Err(self.exited(exit, None));
        }
        self.shared.lock().resize(size);
        self.shared.count_memory();
        memory::release_soon();
        self.shared.publish(false);
        let failed = |cause| Error::Resize { session: self.id().clone(), cause };
        self.shared.control.resize(size).map_err(failed)
    }

    /// Reads rendered text, secrets masked before anything is cut.
    pub fn read(&self, request: &Request) -> Page {
        self.shared.lock().read_masked(request)
    }

    /// The newest raw output, secrets masked; waits while there is none at all.
    pub async fn read_raw(&self, max_bytes: usize, timeout: Duration) -> Masked {
        let mut progress = self.shared.progress.subscribe();
        let some = async {
            loop {
                {
                    let terminal = self.shared.lock();
                    if !terminal.ring.is_empty() || terminal.exit.is_some() {
                        return;
                    }
                }
                if progress.changed().await.is_err() {
                    return;
                }
            }
        };
        // Nothing came: then nothing is the answer.
        let _ = tokio::time::timeout(timeout, some).await;
        let terminal = self.shared.lock();
        terminal.masked_raw(terminal.ring.tail_from(max_bytes), u64::MAX, <[u8]>::to_vec)
    }

    /// The commands that are remembered, oldest first.
    pub fn commands(&self) -> Vec<Command> {
        self.shared.lock().commands.iter().cloned().collect()
    }

    /// One command.
    pub fn command(&self, id: CommandId) -> Option<Command> {
        self.shared.lock().commands.get(id).cloned()
    }

    /// What a command printed, so far or in all.
    pub fn output_of(&self, id: CommandId, max_chars: usize) -> Option<Output> {
        self.shared.lock().output_of(id, max_chars)
    }

    /// The lines of a command that the history has.
    pub fn kept_lines_of(&self, id: CommandId) -> Option<Output> {
        self.shared.lock().kept_lines_of(id)
    }
}
