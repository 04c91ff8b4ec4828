//! Session table: lookup, limits and the retention of dead sessions.
//!
//! This file holds local sessions. `desktop` holds those of desktop apps and `directory` the uniform view of both. One
//! reaper task per session sleeps until the session ends and then until its retention expires; nothing polls.

pub mod bridge_url;
mod desktop;
mod directory;
mod events;
mod fields;
mod leaders;
mod memory_budget;
mod ownership;
mod resolve;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use tokio::task::AbortHandle;

pub use desktop::{
    EVICT_AFTER, ListedSession, MAX_DESKTOP_SESSIONS, RegisterOutcome, Registration, STALE_AFTER, UnregisterOutcome,
};
pub use directory::Located;
pub use events::{MAX_EVENTS, RegistryEvent};
pub use fields::{MAX_TEXT, check_owner, check_text, is_session_id};
pub use ownership::OwnerChange;

use desktop::DesktopTable;
use events::Events;
use leaders::Leaders;

use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::terminal::local::{Budget, KillReport, NewSession, Session, kill_all, kill_now};

/// Sessions that were killed and stay readable; the oldest of more are forgotten.
pub const MOST_KILLED: usize = 32;
/// Sessions that ended by themselves and stay readable.
const MOST_ENDED: usize = 256;
/// Upper bound for ending all sessions at shutdown; the steps of one kill take at most 3 s.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(3_100);

/// Limits of a registry.
#[derive(Clone, Copy, Debug)]
pub struct RegistryLimits {
    /// Maximum number of live sessions.
    pub max_sessions: usize,
    /// Maximum number of programs that start concurrently.
    pub spawns_at_once: usize,
    /// Retention of a dead session.
    pub dead_retention: Duration,
}

/// Source of the current time.
pub type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Options of a registry.
#[derive(Clone)]
pub struct RegistryOptions {
    /// Hosts besides loopback that a desktop's bridge URL may name.
    pub allow_bridge: Vec<String>,
    /// Agent that the server was started for, when it is a leader.
    pub own_leader: Option<String>,
    /// Source of the current time.
    pub clock: Clock,
    /// Memory budget of all sessions together, in bytes.
    pub memory_limit: usize,
}

impl Default for RegistryOptions {
    fn default() -> Self {
        let clock = Arc::new(SystemTime::now);
        Self { allow_bridge: Vec::new(), own_leader: None, clock, memory_limit: usize::MAX }
    }
}

/// Handle to the session table; clones share one table.
#[derive(Clone)]
pub struct Registry {
    shared: Arc<RegistryInner>,
}

struct RegistryInner {
    limits: RegistryLimits,
    options: RegistryOptions,
    /// Advances with every change worth saving.
    changed: watch::Sender<u64>,
    table: Mutex<Table>,
    spawns: Semaphore,
    budget: Arc<Budget>,
    /// Set once the task that enforces the budget runs.
    budget_task: OnceLock<()>,
}

#[derive(Default)]
struct Table {
    entries: HashMap<SessionId, SessionEntry>,
    /// Number of live sessions and of sessions being created.
    reserved: usize,
    /// Number of sessions created so far; gives each its position in listings.
    created: u64,
    closed: bool,
    desktop: DesktopTable,
    leaders: Leaders,
    events: Events,
}

impl Table {
    /// Forgets the oldest of the dead beyond their number.
    fn forget_surplus_dead(&mut self) {
        for (killed, most) in [(true, MOST_KILLED), (false, MOST_ENDED)] {
            let is_one = |entry: &&SessionEntry| !entry.is_alive && entry.kill_requested == killed;
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

struct SessionEntry {
    session: Session,
    /// Kind of program that runs in the session.
    cli_type: String,
    /// A client asked to kill the session.
    kill_requested: bool,
    order: u64,
    is_alive: bool,
    /// Task that removes the session after its retention; see [`reap`].
    reaper: AbortHandle,
}

impl RegistryInner {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> SystemTime {
        (self.options.clock)()
    }

    /// Queues an event. The caller announces it after releasing the lock: see [`RegistryInner::announce_change`].
    fn note(&self, table: &mut Table, event: &'static str, session_id: &str, details: Value) {
        let details = details.as_object().cloned().unwrap_or_default();
        table.events.push(RegistryEvent { at: self.now(), event, session_id: session_id.to_owned(), details });
    }

    /// Wakes the saver and other subscribers of [`Registry::changed`].
    fn announce_change(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    fn on_death(&self, id: &SessionId) {
        let mut table = self.lock();
        let is_closed = table.closed;
        let Some(entry) = table.entries.get_mut(id).filter(|entry| entry.is_alive) else { return };
        entry.is_alive = false;
        let reason = match entry.kill_requested {
            true => "kill",
            false if is_closed => "shutdown",
            false => "exit",
        };
        table.reserved -= 1;
        self.note(&mut table, "session_killed", id.as_str(), json!({ "reason": reason }));
        table.forget_surplus_dead();
        drop(table);
        self.announce_change();
    }
}

/// A slot of the session limit, released on drop unless a session takes it.
struct Reservation {
    shared: Arc<RegistryInner>,
    is_taken_over: bool,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.is_taken_over {
            self.shared.lock().reserved -= 1;
        }
    }
}

impl Registry {
    /// Creates an empty table with default options.
    pub fn new(limits: RegistryLimits) -> Self {
        Self::with(limits, RegistryOptions::default())
    }

    /// Creates an empty table.
    pub fn with(limits: RegistryLimits, options: RegistryOptions) -> Self {
        let (spawns, budget) = (Semaphore::new(limits.spawns_at_once), Budget::new(options.memory_limit));
        let (changed, table, budget_task) = (watch::Sender::new(0), Mutex::default(), OnceLock::new());
        Self { shared: Arc::new(RegistryInner { limits, options, changed, table, spawns, budget, budget_task }) }
    }

    /// Creates a session; `cli_type` names the kind of program. Completes even if the caller is dropped: a started
    /// program must always have an entry in the table.
    pub async fn create(&self, new: NewSession, cli_type: String) -> Result<Session> {
        let reservation = self.reserve()?;
        self.free_memory_for_session(new.size)?;
        let registry = self.clone();
        let created = tokio::spawn(async move {
            let _turn = registry.shared.spawns.acquire().await;
            let session = Session::spawn(new).await?;
            session.count_against(&registry.shared.budget);
            registry.insert(reservation, session, cli_type).await
        });
        created.await.unwrap_or_else(|error| Err(Error::NotAvailable(error.to_string())))
    }

    fn reserve(&self) -> Result<Reservation> {
        let limit = self.shared.limits.max_sessions;
        let mut table = self.shared.lock();
        if table.closed {
            return Err(Error::NotAvailable("the server is shutting down".to_owned()));
        }
        if table.reserved >= limit {
            return Err(Error::LimitReached { limit });
        }
        table.reserved += 1;
        Ok(Reservation { shared: Arc::clone(&self.shared), is_taken_over: false })
    }

    async fn insert(&self, mut reservation: Reservation, session: Session, cli_type: String) -> Result<Session> {
        let owner = session.with_owner(|owner| owner.agent_id.clone());
        let details = json!({ "source": "local", "cli_type": cli_type, "pid": session.pid(), "owner_agent_id": owner });
        let is_in = {
            let mut table = self.shared.lock();
            if !table.closed {
                table.created += 1;
                let reaper = tokio::spawn(reap(Arc::downgrade(&self.shared), session.clone())).abort_handle();
                let entry = SessionEntry {
                    session: session.clone(),
                    cli_type,
                    kill_requested: false,
                    order: table.created,
                    is_alive: true,
                    reaper,
                };
                self.shared.note(&mut table, "session_created", session.id().as_str(), details);
                table.entries.insert(session.id().clone(), entry);
                reservation.is_taken_over = true;
            }
            !table.closed
        };
        if is_in {
            self.shared.announce_change();
            return Ok(session);
        }
        // The session is not in the table, so nothing manages it if this kill fails; the caller gets the shutdown error.
        let _ = session.kill().await;
        Err(Error::NotAvailable("the server is shutting down".to_owned()))
    }

    /// Returns the session with this id.
    pub fn get(&self, id: &SessionId) -> Result<Session> {
        let table = self.shared.lock();
        let entry = table.entries.get(id).ok_or_else(|| Error::SessionNotFound(id.clone()))?;
        Ok(entry.session.clone())
    }

    /// Returns all sessions, oldest first.
    pub fn list(&self) -> Vec<Session> {
        let mut found: Vec<_> = {
            let table = self.shared.lock();
            table.entries.values().map(|entry| (entry.order, entry.session.clone())).collect()
        };
        found.sort_by_key(|(order, _)| *order);
        found.into_iter().map(|(_, session)| session).collect()
    }

    /// Kills a session; it stays readable until it is reaped. Completes even if the caller is dropped.
    pub async fn kill(&self, session: &Session) -> Result<KillReport> {
        let (shared, session) = (Arc::clone(&self.shared), session.clone());
        if let Some(entry) = shared.lock().entries.get_mut(session.id()) {
            entry.kill_requested = true;
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

    /// Removes a session from the table without killing it.
    pub fn remove(&self, id: &SessionId) {
        let mut table = self.shared.lock();
        if let Some(entry) = table.entries.remove(id) {
            entry.reaper.abort();
            table.reserved -= usize::from(entry.is_alive);
        }
        drop(table);
        self.shared.announce_change();
    }

    /// Kills all sessions and rejects new ones. Returns the sessions that did not end in time.
    pub async fn shutdown(&self) -> Vec<SessionId> {
        self.shared.lock().closed = true;
        let sessions = self.list();
        // On an overloaded machine the gentle signals may not finish in time; then every session is killed at once. The
        // returned list names the survivors.
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, kill_all(&sessions)).await.is_err() {
            kill_now(&sessions);
        }
        sessions.iter().filter(|session| session.exit().is_none()).map(|session| session.id().clone()).collect()
    }
}

/// Waits until a session ends and its retention expires, then removes it from the table.
async fn reap(shared: Weak<RegistryInner>, session: Session) {
    session.ended().await;
    let Some(dead_retention) = shared.upgrade().map(|shared| {
        shared.on_death(session.id());
        shared.limits.dead_retention
    }) else {
        return;
    };
    tokio::time::sleep(dead_retention.saturating_sub(session.dead_for().unwrap_or_default())).await;
    if let Some(shared) = shared.upgrade() {
        shared.lock().entries.remove(session.id());
        // Live listings show one session less.
        shared.announce_change();
    }
}
