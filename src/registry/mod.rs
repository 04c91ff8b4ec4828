//! The table of sessions: who is there, how many may be, and how long the dead stay readable.
//!
//! This file holds the sessions of this server; those of desktop apps are in `desktop`, and what is told of both in
//! `directory`. One small task per session sleeps until the session ends, and then until it may be forgotten; nothing
//! polls.

pub mod bridge_url;
mod desktop;
mod directory;
mod events;
mod fields;
mod leaders;
mod ownership;
mod resolve;
mod room;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use tokio::task::AbortHandle;

pub use desktop::{FORGOTTEN_AFTER, Listed, MAX_DESKTOP_SESSIONS, Registered, Registration, STALE_AFTER, Unregistered};
pub use directory::Located;
pub use events::{MAX_EVENTS, RegistryEvent};
pub use fields::{MAX_TEXT, check_owner, check_text, is_session_id};
pub use ownership::OwnerChange;

use desktop::Desktops;
use events::Events;
use leaders::Leaders;

use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::terminal::local::{Budget, KillReport, NewSession, Session, kill_all, kill_now};

/// Sessions that were killed and stay readable; the oldest of more are forgotten.
pub const MOST_KILLED: usize = 32;
/// Sessions that ended by themselves and stay readable.
const MOST_ENDED: usize = 256;
/// How long the end of all sessions may take; the steps of a kill take 3 s at most.
const SHUTDOWN_PATIENCE: Duration = Duration::from_millis(3_100);

/// The bounds of a registry.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Live sessions at most.
    pub max_sessions: usize,
    /// Programs that are started at the same time.
    pub spawns_at_once: usize,
    /// How long a dead session stays.
    pub keep_dead: Duration,
}

/// What tells the time.
pub type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// What else a registry has to know.
#[derive(Clone)]
pub struct Setup {
    /// Hosts besides loopback where the bridge of a desktop may be.
    pub allow_bridge: Vec<String>,
    /// The agent that this server was started for, when it leads.
    pub own_leader: Option<String>,
    /// What tells the time.
    pub clock: Clock,
    /// Bytes that all sessions together may hold.
    pub memory_limit: usize,
}

impl Default for Setup {
    fn default() -> Self {
        let clock = Arc::new(SystemTime::now);
        Self { allow_bridge: Vec::new(), own_leader: None, clock, memory_limit: usize::MAX }
    }
}

/// A handle to the table; clones are the same table.
#[derive(Clone)]
pub struct Registry {
    shared: Arc<Shared>,
}

struct Shared {
    bounds: Bounds,
    setup: Setup,
    /// Moves with every change that is worth keeping.
    changed: watch::Sender<u64>,
    table: Mutex<Table>,
    spawns: Semaphore,
    budget: Arc<Budget>,
    /// Somebody keeps the sessions within the budget.
    watched: OnceLock<()>,
}

#[derive(Default)]
struct Table {
    entries: HashMap<SessionId, Entry>,
    /// Live sessions, and those that are being made.
    taken: usize,
    /// Sessions made so far, to list them in that order.
    made: u64,
    closed: bool,
    desktop: Desktops,
    leaders: Leaders,
    events: Events,
}

impl Table {
    /// Forgets the oldest of the dead beyond their number.
    fn forget_surplus_dead(&mut self) {
        for (killed, most) in [(true, MOST_KILLED), (false, MOST_ENDED)] {
            let is_one = |entry: &&Entry| !entry.is_alive && entry.is_wanted_dead == killed;
            let dead = self.entries.values().filter(is_one);
            let mut dead: Vec<_> = dead.map(|entry| (entry.session.dead_for(), entry.session.id().clone())).collect();
            let surplus = dead.len().saturating_sub(most);
            dead.sort_by_key(|(dead_for, _)| std::cmp::Reverse(*dead_for));
            for (_, id) in dead.into_iter().take(surplus) {
                if let Some(entry) = self.entries.remove(&id) {
                    // It holds the session until the end of its retention.
                    entry.reaper.abort();
                }
            }
        }
    }
}

struct Entry {
    session: Session,
    /// What kind of program it is.
    cli_type: String,
    /// Somebody asked for its end.
    is_wanted_dead: bool,
    order: u64,
    is_alive: bool,
    /// Reaps the session after its retention period.
    reaper: AbortHandle,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> SystemTime {
        (self.setup.clock)()
    }

    /// Writes down what happened. The change is told when the lock is free again: see [`Shared::tell`].
    fn note(&self, table: &mut Table, event: &'static str, session_id: &str, details: Value) {
        let details = details.as_object().cloned().unwrap_or_default();
        table.events.push(RegistryEvent { at: self.now(), event, session_id: session_id.to_owned(), details });
    }

    /// Wakes whoever keeps the table on disk.
    fn tell(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    fn on_death(&self, id: &SessionId) {
        let mut table = self.lock();
        let is_closed = table.closed;
        let Some(entry) = table.entries.get_mut(id).filter(|entry| entry.is_alive) else { return };
        entry.is_alive = false;
        let reason = match entry.is_wanted_dead {
            true => "kill",
            false if is_closed => "shutdown",
            false => "exit",
        };
        table.taken -= 1;
        self.note(&mut table, "session_killed", id.as_str(), json!({ "reason": reason }));
        table.forget_surplus_dead();
        drop(table);
        self.tell();
    }
}

/// A place in the table that is given back unless a session takes it.
struct Reservation {
    shared: Arc<Shared>,
    is_used: bool,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.is_used {
            self.shared.lock().taken -= 1;
        }
    }
}

impl Registry {
    /// An empty table.
    pub fn new(bounds: Bounds) -> Self {
        Self::with(bounds, Setup::default())
    }

    /// An empty table that knows more.
    pub fn with(bounds: Bounds, setup: Setup) -> Self {
        let (spawns, budget) = (Semaphore::new(bounds.spawns_at_once), Budget::new(setup.memory_limit));
        let (changed, table, watched) = (watch::Sender::new(0), Mutex::default(), OnceLock::new());
        Self { shared: Arc::new(Shared { bounds, setup, changed, table, spawns, budget, watched }) }
    }

    /// Makes a session; `cli_type` says what kind of program it is. Goes on when the caller is gone: a program that was
    /// started must be somebody's.
    pub async fn create(&self, new: NewSession, cli_type: String) -> Result<Session> {
        let reservation = self.reserve()?;
        self.room_for_session(new.size)?;
        let registry = self.clone();
        let made = tokio::spawn(async move {
            let _turn = registry.shared.spawns.acquire().await;
            let session = Session::spawn(new).await?;
            session.count_against(&registry.shared.budget);
            registry.insert(reservation, session, cli_type).await
        });
        made.await.unwrap_or_else(|error| Err(Error::NotAvailable(error.to_string())))
    }

    fn reserve(&self) -> Result<Reservation> {
        let limit = self.shared.bounds.max_sessions;
        let mut table = self.shared.lock();
        if table.closed {
            return Err(Error::NotAvailable("the server is shutting down".to_owned()));
        }
        if table.taken >= limit {
            return Err(Error::LimitReached { limit });
        }
        table.taken += 1;
        Ok(Reservation { shared: Arc::clone(&self.shared), is_used: false })
    }

    async fn insert(&self, mut reservation: Reservation, session: Session, cli_type: String) -> Result<Session> {
        let owner = session.with_owner(|owner| owner.agent_id.clone());
        let details = json!({ "source": "local", "cli_type": cli_type, "pid": session.pid(), "owner_agent_id": owner });
        let is_in = {
            let mut table = self.shared.lock();
            if !table.closed {
                table.made += 1;
                let reaper = tokio::spawn(reap(Arc::downgrade(&self.shared), session.clone())).abort_handle();
                let entry = Entry {
                    session: session.clone(),
                    cli_type,
                    is_wanted_dead: false,
                    order: table.made,
                    is_alive: true,
                    reaper,
                };
                self.shared.note(&mut table, "session_created", session.id().as_str(), details);
                table.entries.insert(session.id().clone(), entry);
                reservation.is_used = true;
            }
            !table.closed
        };
        if is_in {
            self.shared.tell();
            return Ok(session);
        }
        // What would not die is in nobody's hands any more.
        let _ = session.kill().await;
        Err(Error::NotAvailable("the server is shutting down".to_owned()))
    }

    /// The session of this name.
    pub fn get(&self, id: &SessionId) -> Result<Session> {
        let table = self.shared.lock();
        let entry = table.entries.get(id).ok_or_else(|| Error::SessionNotFound(id.clone()))?;
        Ok(entry.session.clone())
    }

    /// All sessions, the oldest first.
    pub fn list(&self) -> Vec<Session> {
        let mut found: Vec<_> = {
            let table = self.shared.lock();
            table.entries.values().map(|entry| (entry.order, entry.session.clone())).collect()
        };
        found.sort_by_key(|(order, _)| *order);
        found.into_iter().map(|(_, session)| session).collect()
    }

    /// Kills a session, which stays readable. Goes on when the caller is gone.
    pub async fn kill(&self, session: &Session) -> Result<KillReport> {
        let (shared, session) = (Arc::clone(&self.shared), session.clone());
        if let Some(entry) = shared.lock().entries.get_mut(session.id()) {
            entry.is_wanted_dead = true;
        }
        let killed = tokio::spawn(async move {
            let report = session.kill().await;
            if session.exit().is_some() {
                shared.on_death(session.id());
            }
            report
        });
        killed.await.unwrap_or_else(|error| Err(Error::NotAvailable(error.to_string())))
    }

    /// Forgets a session. It is not killed.
    pub fn remove(&self, id: &SessionId) {
        let mut table = self.shared.lock();
        if let Some(entry) = table.entries.remove(id) {
            entry.reaper.abort();
            table.taken -= usize::from(entry.is_alive);
        }
        drop(table);
        self.shared.tell();
    }

    /// Kills all sessions, and takes no more. Returns those that would not die in time.
    pub async fn shutdown(&self) -> Vec<SessionId> {
        self.shared.lock().closed = true;
        let sessions = self.list();
        // A machine that is too busy for the gentle way does not get to keep them; who is left is told below.
        if tokio::time::timeout(SHUTDOWN_PATIENCE, kill_all(&sessions)).await.is_err() {
            kill_now(&sessions);
        }
        sessions.iter().filter(|session| session.exit().is_none()).map(|session| session.id().clone()).collect()
    }
}

/// Waits until a session has ended and has been dead long enough.
async fn reap(shared: Weak<Shared>, session: Session) {
    session.ended().await;
    let Some(keep_dead) = shared.upgrade().map(|shared| {
        shared.on_death(session.id());
        shared.bounds.keep_dead
    }) else {
        return;
    };
    tokio::time::sleep(keep_dead.saturating_sub(session.dead_for().unwrap_or_default())).await;
    if let Some(shared) = shared.upgrade() {
        shared.lock().entries.remove(session.id());
        // Whoever shows the list shows one less.
        shared.tell();
    }
}
