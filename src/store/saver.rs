//! Decides when state is saved: debounced after a change, and only what changed.
//!
//! One task follows the registry and one each session; none polls. Disk work runs on blocking threads. A failed save is
//! retried; [`Saver::failure`] returns the reason meanwhile.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::json;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use super::children::{ChildRecord, Orphan, end_orphans};
use super::journal::JournalEntry;
use super::session_files::SavedSession;
use super::{SaveSource, Store};
use crate::ids::SessionId;
use crate::model::{ExitInfo, SessionRecord};
use crate::registry::{MAX_EVENTS, RegistryEvent};
use crate::terminal::local::Session;

/// Debounce of registry changes.
const REGISTRY_DEBOUNCE: Duration = Duration::from_secs(1);
/// Debounce of session output.
const BUFFER_DEBOUNCE: Duration = Duration::from_secs(5);
/// Delay before a failed save is retried.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// Interval of pruning, and the number of new sessions that triggers it earlier.
const PRUNE_INTERVAL: Duration = Duration::from_secs(3_600);
const PRUNE_AFTER: usize = 100;
/// JournalEntry that makes all earlier files obsolete.
const RESET: &str = "registry_reset";
/// Number of attempts to save the final state of an ended session.
const FINAL_ATTEMPTS: usize = 3;
/// Size of the saved end of the output; older tools use the same.
const BUFFER_BYTES: usize = 102_400;
/// Number of sessions whose output is in memory for saving: one is being written, one prepared.
const CONCURRENT_SAVES: usize = 2;

/// Saves in the background; clones share one saver.
#[derive(Clone)]
pub struct Saver {
    shared: Arc<SaverInner>,
}

struct SaverInner {
    store: Arc<Store>,
    source: Arc<dyn SaveSource>,
    saves: Semaphore,
    /// Wakes the pruning task after [`PRUNE_AFTER`] new sessions.
    prune_due: Notify,
    state: Mutex<SaverState>,
    /// Background tasks; [`Saver::finish`] aborts them.
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct SaverState {
    /// Registry as last saved.
    records: Option<Vec<SessionRecord>>,
    /// Events that have not been written.
    events: Vec<RegistryEvent>,
    children: Option<Vec<ChildRecord>>,
    /// Shells of an earlier server that are being ended; they stay in the children file until then.
    orphans: Vec<ChildRecord>,
    /// Last saved stamp of each followed session.
    sessions: HashMap<SessionId, SessionStamp>,
    /// Failed saves and their reasons.
    failing: HashMap<SaveTarget, String>,
    /// Number of failed saves.
    failures: u64,
    /// New sessions since the last pruning.
    unpruned: usize,
}

/// Fingerprint of a session; an equal one means there is nothing to save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SessionStamp {
    last_activity: SystemTime,
    buffer_size: usize,
    cols: u16,
    rows: u16,
    exit: Option<ExitInfo>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum SaveTarget {
    Registry,
    Children,
    Session(SessionId),
}

impl Saver {
    /// Starts saving the state of `source` and ends the orphans of an earlier server.
    pub fn start(store: Store, source: Arc<dyn SaveSource>, orphans: Vec<Orphan>) -> Self {
        let shared = Arc::new(SaverInner {
            store: Arc::new(store),
            source,
            saves: Semaphore::new(CONCURRENT_SAVES),
            prune_due: Notify::new(),
            state: Mutex::new(SaverState {
                orphans: orphans.iter().map(|orphan| orphan.0.clone()).collect(),
                ..SaverState::default()
            }),
            tasks: Mutex::default(),
        });
        shared.tasks().spawn(prune_periodically(Arc::clone(&shared)));
        shared.tasks().spawn(follow_registry(Arc::clone(&shared)));
        if !orphans.is_empty() {
            shared.tasks().spawn(end_orphans_and_save(Arc::clone(&shared), orphans));
        }
        Self { shared }
    }

    /// Returns the reason of a failed save until a retry succeeds.
    pub fn failure(&self) -> Option<String> {
        self.shared.state().failing.values().next().cloned()
    }

    /// Returns the number of failed saves.
    pub fn failures(&self) -> u64 {
        self.shared.state().failures
    }

    /// Returns a function that appends audit lines to the session logs.
    pub fn journal(&self) -> impl Fn(&str, &[u8]) -> io::Result<()> + Send + use<> {
        let store = Arc::clone(&self.shared.store);
        move |session_id, lines| store.append_actions(session_id, lines)
    }

    /// Saves all changes now.
    async fn save_all(&self) {
        let sessions = self.shared.source.sessions();
        save_registry(&self.shared).await;
        save_children(&self.shared).await;
        let mut saves = JoinSet::new();
        for session in sessions {
            let shared = Arc::clone(&self.shared);
            saves.spawn(async move { save_session(&shared, &session).await });
        }
        while saves.join_next().await.is_some() {}
    }

    /// Saves all changes a last time and stops saving.
    pub async fn finish(&self) {
        let mut tasks = std::mem::take(&mut *self.shared.tasks());
        tasks.abort_all();
        while tasks.join_next().await.is_some() {}
        self.save_all().await;
    }
}

impl SaverInner {
    fn state(&self) -> MutexGuard<'_, SaverState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the unwritten events; the newest of them when there are too many.
    fn take_unsaved_events(&self) -> Vec<RegistryEvent> {
        let mut events = std::mem::take(&mut self.state().events);
        events.extend(self.source.take_events());
        let excess = events.len().saturating_sub(MAX_EVENTS);
        events.drain(..excess);
        events
    }

    /// Runs disk work on a blocking thread and records the outcome. Returns whether it succeeded.
    async fn write(
        self: &Arc<Self>,
        target: SaveTarget,
        work: impl FnOnce(&Store) -> io::Result<()> + Send + 'static,
    ) -> bool {
        let store = Arc::clone(&self.store);
        let done = tokio::task::spawn_blocking(move || work(&store)).await;
        let done = done.unwrap_or_else(|error| Err(io::Error::other(error)));
        let mut state = self.state();
        match done {
            Ok(()) => {
                if state.failing.remove(&target).is_some() && state.failing.is_empty() {
                    tracing::warn!("saving state works again");
                }
                true
            }
            Err(cause) => {
                if state.failing.is_empty() {
                    tracing::warn!("the state cannot be saved: {cause}. Sessions are not affected; kpty retries");
                }
                state.failures += 1;
                // Health replies contain no paths.
                state.failing.insert(target, format!("the state cannot be saved: {}", cause.kind()));
                false
            }
        }
    }
}

async fn end_orphans_and_save(shared: Arc<SaverInner>, orphans: Vec<Orphan>) {
    end_orphans(orphans).await;
    shared.state().orphans.clear();
    save_children(&shared).await;
}

/// Prunes at startup, every hour, and after many new sessions.
async fn prune_periodically(shared: Arc<SaverInner>) {
    loop {
        let kept = shared.source.sessions().iter().map(|session| session.id().as_str().to_owned()).collect();
        let store = Arc::clone(&shared.store);
        // A panic is retried at the next round.
        let _ = tokio::task::spawn_blocking(move || store.prune(&kept)).await;
        // Wakes at the interval or on demand, whichever is first.
        let _ = tokio::time::timeout(PRUNE_INTERVAL, shared.prune_due.notified()).await;
    }
}

/// Saves the registry after each change and starts a task for each new session.
async fn follow_registry(shared: Arc<SaverInner>) {
    let mut changed = shared.source.changed();
    let mut pause = Duration::ZERO;
    loop {
        // The first of several changes sets the deadline. Children are saved at once: a server that is killed before
        // cannot find them again.
        let deadline = Instant::now() + pause;
        loop {
            changed.borrow_and_update();
            follow_sessions(&shared);
            save_children(&shared).await;
            match timeout_at(deadline, changed.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return,
                Err(_) => break,
            }
        }
        let is_saved = save_registry(&shared).await && !shared.state().failing.contains_key(&SaveTarget::Children);
        pause = REGISTRY_DEBOUNCE;
        let rest = if is_saved { Duration::MAX } else { RETRY_DELAY };
        if let Ok(Err(_)) = tokio::time::timeout(rest, changed.changed()).await {
            return;
        }
    }
}

fn follow_sessions(shared: &Arc<SaverInner>) {
    let sessions = shared.source.sessions();
    let ids: HashSet<_> = sessions.iter().map(|session| session.id().clone()).collect();
    let mut tasks = shared.tasks();
    // Removes finished tasks, or the set would grow without bound.
    while tasks.try_join_next().is_some() {}
    let mut state = shared.state();
    state.sessions.retain(|id, _| ids.contains(id));
    for session in sessions {
        if !state.sessions.contains_key(session.id()) {
            // Differs from every real stamp, so the first save is never skipped.
            let nothing =
                SessionStamp { last_activity: SystemTime::UNIX_EPOCH, buffer_size: 0, cols: 0, rows: 0, exit: None };
            state.sessions.insert(session.id().clone(), nothing);
            state.unpruned += 1;
            tasks.spawn(follow_session(Arc::clone(shared), session));
        }
    }
    if state.unpruned >= PRUNE_AFTER {
        state.unpruned = 0;
        shared.prune_due.notify_one();
    }
}

/// Saves a session after its output, debounced, until it has ended.
async fn follow_session(shared: Arc<SaverInner>, session: Session) {
    let mut progress = session.progress();
    let mut tries_left = FINAL_ATTEMPTS;
    // A new session is saved with the registry's debounce.
    let mut pause = REGISTRY_DEBOUNCE;
    append_event(&shared, JournalEntry::now("session_created", session.id().as_str(), json!({}))).await;
    while tries_left > 0 {
        sleep(std::mem::replace(&mut pause, BUFFER_DEBOUNCE)).await;
        progress.borrow_and_update();
        let exit = session.exit();
        match (save_session(&shared, &session).await, exit) {
            (true, Some(exit)) => {
                let more = json!({ "exit_code": exit.status() });
                append_event(&shared, JournalEntry::now("session_ended", session.id().as_str(), more)).await;
                break;
            }
            (false, Some(_)) => tries_left -= 1,
            (false, None) => {}
            (true, None) => {
                if progress.changed().await.is_err() {
                    break;
                }
            }
        }
    }
    // A failure of an ended session is no longer reported.
    shared.state().failing.remove(&SaveTarget::Session(session.id().clone()));
}

async fn append_event(shared: &Arc<SaverInner>, event: JournalEntry) {
    let target = SaveTarget::Session(SessionId::named(&event.session_id));
    shared.write(target, move |store| store.append_session_event(&event)).await;
}

async fn save_registry(shared: &Arc<SaverInner>) -> bool {
    let records = shared.source.records();
    let events = shared.take_unsaved_events();
    if events.is_empty()
        && shared.state().records.as_ref() == Some(&records)
        && !shared.state().failing.contains_key(&SaveTarget::Registry)
    {
        return true;
    }
    let (after, written) = (records.clone(), events.clone());
    let is_saved = shared.write(SaveTarget::Registry, move |store| {
        if written.iter().any(|event| event.event == RESET) {
            store.remove_others(&after);
        }
        store.save_registry(&after)?;
        store.append_events(&written.iter().map(JournalEntry::from).collect::<Vec<_>>())
    });
    let is_saved = is_saved.await;
    let mut state = shared.state();
    match is_saved {
        true => state.records = Some(records),
        false => state.events = events,
    }
    is_saved
}

async fn save_children(shared: &Arc<SaverInner>) {
    let known = shared.state().children.clone();
    let alive = shared.source.sessions().into_iter().filter(|session| session.exit().is_none());
    let mut children = shared.state().orphans.clone();
    children.extend(alive.filter_map(|session| ChildRecord::new(session.id().as_str(), session.pid())));
    if known.as_ref() == Some(&children) {
        return;
    }
    let written = children.clone();
    if shared.write(SaveTarget::Children, move |store| store.save_children(&written)).await {
        shared.state().children = Some(children);
    }
}

async fn save_session(shared: &Arc<SaverInner>, session: &Session) -> bool {
    // The semaphore is never closed.
    let _turn = shared.saves.acquire().await;
    let info = session.info();
    let (cols, rows) = (info.size.cols(), info.size.rows());
    let stamp =
        SessionStamp { last_activity: info.last_activity, buffer_size: info.buffer_size, cols, rows, exit: info.exit };
    if shared.state().sessions.get(session.id()) == Some(&stamp) {
        return true;
    }
    let buffer = session.read_raw(BUFFER_BYTES, Duration::ZERO).await;
    let target = SaveTarget::Session(session.id().clone());
    let is_saved = shared.write(target, move |store| store.save_session(&SavedSession { info, buffer })).await;
    if is_saved && let Some(saved) = shared.state().sessions.get_mut(session.id()) {
        *saved = stamp;
    }
    is_saved
}
