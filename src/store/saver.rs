//! When what is saved: a moment after it changed, once for many changes, and only what changed.
//!
//! One task follows the registry, and one each session; none of them polls. All disk work is done on threads that may
//! block. What could not be saved is tried again; meanwhile [`Saver::trouble`] says why.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::json;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use super::children::{Child, Orphan, end_orphans};
use super::journal::Event;
use super::session_files::Saved;
use super::{Source, Store};
use crate::ids::SessionId;
use crate::model::{ExitInfo, SessionRecord};
use crate::registry::{MAX_EVENTS, RegistryEvent};
use crate::terminal::local::{Info, Session};

/// How long changes of the registry are gathered.
const REGISTRY_PAUSE: Duration = Duration::from_secs(1);
/// How long the output of a session is gathered.
const BUFFER_PAUSE: Duration = Duration::from_secs(5);
/// When what failed is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(2);
/// How often the folders of sessions are pruned, and after how many new sessions.
const PRUNE_PAUSE: Duration = Duration::from_secs(3_600);
const PRUNE_AFTER: usize = 100;
/// The event after which nothing older is kept.
const RESET: &str = "registry_reset";
/// How often the last state of a session that has ended is tried.
const LAST_TRIES: usize = 3;
/// The end of the output that is kept, as older tools keep it.
const BUFFER_BYTES: usize = 102_400;
/// Sessions whose output is held for saving at the same time: one is written, one is made ready.
const SAVES_AT_ONCE: usize = 2;

/// Saves in the background; clones are the same saver.
#[derive(Clone)]
pub struct Saver {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<Store>,
    source: Arc<dyn Source>,
    saves: Semaphore,
    /// There are so many new sessions that old ones have to go.
    many_are_new: Notify,
    state: Mutex<State>,
    /// The tasks; they end with the saver's work.
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct State {
    /// The registry as it was last saved.
    records: Option<Vec<SessionRecord>>,
    /// What happened and could not be written down yet.
    events: Vec<RegistryEvent>,
    children: Option<Vec<Child>>,
    /// Shells of an earlier server that are being ended; they stay noted until they are.
    orphans: Vec<Child>,
    /// What was last saved of each session that is followed.
    sessions: HashMap<SessionId, Stamp>,
    /// What could not be saved, and why.
    failing: HashMap<Target, String>,
    /// How often saving failed.
    failures: u64,
    /// New sessions since folders were last told to be pruned.
    unpruned: usize,
}

/// What a session looked like; the same means that there is nothing to save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    last_activity: SystemTime,
    buffer_size: usize,
    cols: u16,
    rows: u16,
    exit: Option<ExitInfo>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Target {
    Registry,
    Children,
    Session(SessionId),
}

impl Saver {
    /// Begins to save what this source tells, and ends what an earlier server left.
    pub fn start(store: Store, source: Arc<dyn Source>, orphans: Vec<Orphan>) -> Self {
        let shared = Arc::new(Shared {
            store: Arc::new(store),
            source,
            saves: Semaphore::new(SAVES_AT_ONCE),
            many_are_new: Notify::new(),
            state: Mutex::new(State {
                orphans: orphans.iter().map(|orphan| orphan.0.clone()).collect(),
                ..State::default()
            }),
            tasks: Mutex::default(),
        });
        shared.tasks().spawn(prune_now_and_then(Arc::clone(&shared)));
        shared.tasks().spawn(follow_registry(Arc::clone(&shared)));
        if !orphans.is_empty() {
            shared.tasks().spawn(clear_orphans(Arc::clone(&shared), orphans));
        }
        Self { shared }
    }

    /// Why something could not be saved, as long as that is so.
    pub fn trouble(&self) -> Option<String> {
        self.shared.state().failing.values().next().cloned()
    }

    /// How often saving has failed so far.
    pub fn failures(&self) -> u64 {
        self.shared.state().failures
    }

    /// Writes what is done to sessions into their own logs.
    pub fn journal(&self) -> impl Fn(&str, &[u8]) -> io::Result<()> + Send + use<> {
        let store = Arc::clone(&self.shared.store);
        move |session_id, lines| store.append_actions(session_id, lines)
    }

    /// Saves everything that has changed, now.
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

    /// Saves everything for the last time; nothing is saved after it.
    pub async fn finish(&self) {
        let mut tasks = std::mem::take(&mut *self.shared.tasks());
        tasks.abort_all();
        while tasks.join_next().await.is_some() {}
        self.save_all().await;
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What happened and is in no file yet; the newest of it when that is too much.
    fn untold(&self) -> Vec<RegistryEvent> {
        let mut events = std::mem::take(&mut self.state().events);
        events.extend(self.source.take_events());
        let excess = events.len().saturating_sub(MAX_EVENTS);
        events.drain(..excess);
        events
    }

    /// Does disk work where it may block, and remembers how it went. True when it went well.
    async fn write(
        self: &Arc<Self>,
        target: Target,
        work: impl FnOnce(&Store) -> io::Result<()> + Send + 'static,
    ) -> bool {
        let store = Arc::clone(&self.store);
        let done = tokio::task::spawn_blocking(move || work(&store)).await;
        let done = done.unwrap_or_else(|error| Err(io::Error::other(error)));
        let mut state = self.state();
        match done {
            Ok(()) => {
                if state.failing.remove(&target).is_some() && state.failing.is_empty() {
                    tracing::warn!("the state is saved again");
                }
                true
            }
            Err(cause) => {
                if state.failing.is_empty() {
                    tracing::warn!("the state cannot be saved: {cause}. Sessions go on; it is tried again");
                }
                state.failures += 1;
                // Whoever asks for health need not be told paths.
                state.failing.insert(target, format!("the state cannot be saved: {}", cause.kind()));
                false
            }
        }
    }
}

async fn clear_orphans(shared: Arc<Shared>, orphans: Vec<Orphan>) {
    end_orphans(orphans).await;
    shared.state().orphans.clear();
    save_children(&shared).await;
}

/// Removes what is too old or too much: at the start, every hour, and after many new sessions.
async fn prune_now_and_then(shared: Arc<Shared>) {
    loop {
        let kept = shared.source.sessions().iter().map(|session| session.id().as_str().to_owned()).collect();
        let store = Arc::clone(&shared.store);
        // One that panicked is tried again the next time.
        let _ = tokio::task::spawn_blocking(move || store.prune(&kept)).await;
        // Whatever comes first.
        let _ = tokio::time::timeout(PRUNE_PAUSE, shared.many_are_new.notified()).await;
    }
}

/// Saves the registry after each change, and sees to it that each session is followed.
async fn follow_registry(shared: Arc<Shared>) {
    let mut changed = shared.source.changed();
    let mut pause = Duration::ZERO;
    loop {
        // The first change of many sets the time; children are noted at once, or they could not be found again.
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
        let is_saved = save_registry(&shared).await && !shared.state().failing.contains_key(&Target::Children);
        pause = REGISTRY_PAUSE;
        let rest = if is_saved { Duration::MAX } else { RETRY_PAUSE };
        if let Ok(Err(_)) = tokio::time::timeout(rest, changed.changed()).await {
            return;
        }
    }
}

fn follow_sessions(shared: &Arc<Shared>) {
    let sessions = shared.source.sessions();
    let ids: HashSet<_> = sessions.iter().map(|session| session.id().clone()).collect();
    let mut tasks = shared.tasks();
    // Those that are over leave the set, which would grow for ever.
    while tasks.try_join_next().is_some() {}
    let mut state = shared.state();
    state.sessions.retain(|id, _| ids.contains(id));
    for session in sessions {
        if !state.sessions.contains_key(session.id()) {
            // Not yet saved at all.
            let nothing = Stamp { last_activity: SystemTime::UNIX_EPOCH, buffer_size: 0, cols: 0, rows: 0, exit: None };
            state.sessions.insert(session.id().clone(), nothing);
            state.unpruned += 1;
            tasks.spawn(follow_session(Arc::clone(shared), session));
        }
    }
    if state.unpruned >= PRUNE_AFTER {
        state.unpruned = 0;
        shared.many_are_new.notify_one();
    }
}

/// Saves a session a while after it said something, until it has ended.
async fn follow_session(shared: Arc<Shared>, session: Session) {
    let mut progress = session.progress();
    let mut tries_left = LAST_TRIES;
    // That it is there is told as soon as the registry tells it.
    let mut pause = REGISTRY_PAUSE;
    append_event(&shared, Event::now("session_created", session.id().as_str(), json!({}))).await;
    while tries_left > 0 {
        sleep(std::mem::replace(&mut pause, BUFFER_PAUSE)).await;
        progress.borrow_and_update();
        let exit = session.exit();
        match (save_session(&shared, &session).await, exit) {
            (true, Some(exit)) => {
                let more = json!({ "exit_code": exit.status() });
                append_event(&shared, Event::now("session_ended", session.id().as_str(), more)).await;
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
    // What failed for it is nobody's trouble any more.
    shared.state().failing.remove(&Target::Session(session.id().clone()));
}

async fn append_event(shared: &Arc<Shared>, event: Event) {
    let target = Target::Session(SessionId::named(&event.session_id));
    shared.write(target, move |store| store.append_session_event(&event)).await;
}

async fn save_registry(shared: &Arc<Shared>) -> bool {
    let records = shared.source.records();
    let events = shared.untold();
    if events.is_empty()
        && shared.state().records.as_ref() == Some(&records)
        && !shared.state().failing.contains_key(&Target::Registry)
    {
        return true;
    }
    let (after, told) = (records.clone(), events.clone());
    let is_saved = shared.write(Target::Registry, move |store| {
        if told.iter().any(|event| event.event == RESET) {
            store.forget(&after);
        }
        store.save_registry(&after)?;
        store.append_events(&told.iter().map(Event::from).collect::<Vec<_>>())
    });
    let is_saved = is_saved.await;
    let mut state = shared.state();
    match is_saved {
        true => state.records = Some(records),
        false => state.events = events,
    }
    is_saved
}

async fn save_children(shared: &Arc<Shared>) {
    let known = shared.state().children.clone();
    let alive = shared.source.sessions().into_iter().filter(|session| session.exit().is_none());
    let mut children = shared.state().orphans.clone();
    children.extend(alive.filter_map(|session| Child::new(session.id().as_str(), session.pid())));
    if known.as_ref() == Some(&children) {
        return;
    }
    let written = children.clone();
    if shared.write(Target::Children, move |store| store.save_children(&written)).await {
        shared.state().children = Some(children);
    }
}

async fn save_session(shared: &Arc<Shared>, session: &Session) -> bool {
    // The semaphore is never closed.
    let _turn = shared.saves.acquire().await;
    let info = session.info();
    let (cols, rows) = (info.size.cols(), info.size.rows());
    let stamp = Stamp { last_activity: info.last_activity, buffer_size: info.buffer_size, cols, rows, exit: info.exit };
    if shared.state().sessions.get(session.id()) == Some(&stamp) {
        return true;
    }
    let buffer = session.read_raw(BUFFER_BYTES, Duration::ZERO).await;
    let redactor = session.redactor();
    let info = Info {
        cwd: redactor.redact(&info.cwd.to_string_lossy()).into_owned().into(),
        shell: redactor.redact(&info.shell).into_owned(),
        ..info
    };
    let target = Target::Session(session.id().clone());
    let is_saved = shared.write(target, move |store| store.save_session(&Saved { info, buffer })).await;
    if is_saved && let Some(saved) = shared.state().sessions.get_mut(session.id()) {
        *saved = stamp;
    }
    is_saved
}
