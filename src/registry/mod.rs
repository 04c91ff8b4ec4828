//! The table of sessions: who is there, how many may be, and how long the dead stay readable.
//!
//! One small task per session sleeps until the session ends, and then until it may be forgotten; nothing polls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::{AbortHandle, JoinSet};

use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::session::{KillReport, NewSession, Session};

/// Sessions that are killed at the same time when all of them go: each looks through the process table.
const KILLS_AT_ONCE: usize = 32;
/// How long the end of all sessions may take.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(20);

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

/// A handle to the table; clones are the same table.
#[derive(Clone)]
pub struct Registry {
    shared: Arc<Shared>,
}

struct Shared {
    bounds: Bounds,
    table: Mutex<Table>,
    spawns: Semaphore,
    kills: Semaphore,
    /// Moves when a session comes, ends or is forgotten.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Table {
    entries: HashMap<SessionId, Entry>,
    /// Live sessions, and those that are being made.
    taken: usize,
    /// Sessions made so far, to list them in that order.
    made: u64,
    closed: bool,
}

struct Entry {
    session: Session,
    order: u64,
    is_alive: bool,
    /// Waits for its end, and for the end of its remembrance.
    undertaker: AbortHandle,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn on_change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn on_death(&self, id: &SessionId) {
        let mut table = self.lock();
        self.on_change();
        if let Some(entry) = table.entries.get_mut(id)
            && entry.is_alive
        {
            entry.is_alive = false;
            table.taken -= 1;
        }
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
        let spawns = Semaphore::new(bounds.spawns_at_once);
        let kills = Semaphore::new(KILLS_AT_ONCE);
        Self {
            shared: Arc::new(Shared { bounds, table: Mutex::default(), spawns, kills, changes: watch::Sender::new(0) }),
        }
    }

    /// Makes a session. Goes on when the caller is gone: a program that was started must be somebody's.
    pub async fn create(&self, new: NewSession) -> Result<Session> {
        let reservation = self.reserve()?;
        let registry = self.clone();
        let made = tokio::spawn(async move {
            let _turn = registry.shared.spawns.acquire().await;
            let session = Session::spawn(new).await?;
            registry.insert(reservation, session).await
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

    async fn insert(&self, mut reservation: Reservation, session: Session) -> Result<Session> {
        let is_in = {
            let mut table = self.shared.lock();
            if !table.closed {
                table.made += 1;
                let undertaker = tokio::spawn(bury(Arc::downgrade(&self.shared), session.clone())).abort_handle();
                let entry = Entry { session: session.clone(), order: table.made, is_alive: true, undertaker };
                table.entries.insert(session.id().clone(), entry);
                reservation.is_used = true;
            }
            !table.closed
        };
        if is_in {
            self.shared.on_change();
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

    /// Moves when a session comes, ends or is forgotten.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
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
            entry.undertaker.abort();
            table.taken -= usize::from(entry.is_alive);
        }
        self.shared.on_change();
    }

    /// Kills all sessions, and takes no more. Returns those that would not die in time.
    pub async fn shutdown(&self) -> Vec<SessionId> {
        self.shared.lock().closed = true;
        let mut kills = JoinSet::new();
        for session in self.list() {
            let shared = Arc::clone(&self.shared);
            kills.spawn(async move {
                let _turn = shared.kills.acquire().await;
                session.kill().await
            });
        }
        let all = async { while kills.join_next().await.is_some() {} };
        // Who is left is told below.
        let _ = tokio::time::timeout(SHUTDOWN_PATIENCE, all).await;
        self.list().iter().filter(|session| session.exit().is_none()).map(|session| session.id().clone()).collect()
    }
}

/// Waits until a session has ended and has been dead long enough.
async fn bury(shared: Weak<Shared>, session: Session) {
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
        shared.on_change();
    }
}
