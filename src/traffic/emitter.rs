//! The way into the record: a bounded queue, and one thread that empties it.
//!
//! Whoever emits takes a short lock and goes on. The thread gathers for a moment, so that a hundred actions cost one
//! transaction; whoever reads the record first has it written up to now, with all that is promised. Actions stand in the
//! record in the order in which they were over, or promised, however late they are handed over. Before [`Emitter::start`]
//! and after [`Emitter::finish`] nothing is recorded.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{broadcast, watch};

use super::emit::{Gateway, Told};
use super::{Draft, Event, Retention, Store};

/// Drafts that may wait. An action has some hundred bytes; see also [`MAX_WAITING_BYTES`].
const MAX_WAITING: usize = 4_096;
/// Bytes that may wait.
const MAX_WAITING_BYTES: usize = 32 << 20;
/// How long the first of many waits for the others.
const GATHERING: Duration = Duration::from_millis(40);
/// So many are written at once without waiting for more.
const BATCH: usize = 512;
/// Events that a listener may lag behind before it misses some.
const MAX_LAG: usize = 1_024;
/// How often what is too old is forgotten.
const CLEANUP_EVERY: Duration = Duration::from_secs(600);
/// How soon it is tried whether the disk is well again, when it was not.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// How long a flush is waited for.
const FLUSH_PATIENCE: Duration = Duration::from_secs(3);

/// Adds lines, each with its end, to the own log of a session.
pub type Journal = Box<dyn Fn(&str, &[u8]) -> io::Result<()> + Send>;

/// What is recorded where.
pub struct Recording {
    /// The folder of the database; in memory without one.
    pub folder: Option<PathBuf>,
    /// How much is kept.
    pub retention: Retention,
    /// The sessions' own logs.
    pub journal: Option<Journal>,
    /// The address of a gateway that is told, too.
    pub gateway: Option<String>,
    /// Our own address: a gateway there is nobody else.
    pub own_address: Option<SocketAddr>,
}

/// How the recording goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Actions that are in the database.
    pub recorded: u64,
    /// Actions that came too fast.
    pub dropped: u64,
    /// Entries that could not be written, to the database or to a session's log.
    pub failed: u64,
    /// Events that the gateway took.
    pub gateway_sent: u64,
    /// Events that it did not.
    pub gateway_dropped: u64,
    /// Why entries cannot be written, as long as that is so.
    pub trouble: Option<String>,
}

/// A handle to the record; clones are the same.
#[derive(Clone)]
pub struct Emitter {
    shared: Arc<Shared>,
}

struct Shared {
    is_on: AtomicBool,
    queue: Mutex<Queue>,
    /// Wakes the thread.
    wake: Condvar,
    /// Wakes whoever waits for a flush.
    written: Condvar,
    live: broadcast::Sender<Arc<Event>>,
    /// True when nothing more will come.
    over: watch::Sender<bool>,
    recorded: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
    told: Arc<Told>,
    trouble: Mutex<Option<String>>,
    store: Mutex<Option<Arc<Store>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Queue {
    /// With their numbers in the record, not in order.
    waiting: Vec<(u64, Draft)>,
    bytes: usize,
    /// The thread waits for the first of many.
    is_idle: bool,
    /// Somebody waits for what was pushed.
    is_wanted: bool,
    is_ending: bool,
    pushed: u64,
    done: u64,
    /// Numbers of what is still to be handed over: one for each call that is just being answered.
    promised: Vec<u64>,
    /// The last number that was given.
    last_number: u64,
    /// How many readers wait for promises.
    awaiting: usize,
    /// The thread waits for promises.
    is_held: bool,
}

impl Queue {
    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// What can be written, in order: all that is before the first that is only promised. The rest stays.
    fn take_ready(&mut self) -> Vec<(u64, Draft)> {
        let held_at = self.promised.iter().min().copied().filter(|_| !self.is_ending).unwrap_or(u64::MAX);
        self.waiting.sort_unstable_by_key(|(number, _)| *number);
        let ready = self.waiting.partition_point(|(number, _)| *number < held_at);
        let held = self.waiting.split_off(ready);
        self.bytes = held.iter().map(|(_, draft)| draft.bytes()).sum();
        std::mem::replace(&mut self.waiting, held)
    }
}

/// An action is over, and will be handed over before this is dropped.
pub struct Promise {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Promise {
    fn drop(&mut self) {
        let mut queue = lock(&self.shared.queue);
        queue.promised.retain(|number| *number != self.number);
        if queue.awaiting > 0 {
            self.shared.written.notify_all();
        }
        if std::mem::take(&mut queue.is_held) {
            self.shared.wake.notify_one();
        }
    }
}

impl Default for Emitter {
    fn default() -> Self {
        Self::new()
    }
}

impl Emitter {
    /// One that records nothing yet.
    pub fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                is_on: AtomicBool::new(false),
                queue: Mutex::default(),
                wake: Condvar::new(),
                written: Condvar::new(),
                live: broadcast::Sender::new(MAX_LAG),
                over: watch::Sender::new(false),
                recorded: AtomicU64::new(0),
                dropped: AtomicU64::new(0),
                failed: AtomicU64::new(0),
                told: Arc::default(),
                trouble: Mutex::default(),
                store: Mutex::default(),
                thread: Mutex::default(),
            }),
        }
    }

    /// Begins to record. Needs a runtime when there is a gateway. A second time does nothing.
    pub fn start(&self, recording: Recording) {
        let shared = &self.shared;
        if shared.is_on.swap(true, Ordering::AcqRel) {
            return;
        }
        let Recording { folder, retention, journal, gateway, own_address } = recording;
        let store = Arc::new(Store::new(folder.as_deref(), retention));
        *lock(&shared.store) = Some(Arc::clone(&store));
        let gateway = gateway.and_then(|url| Gateway::start(&url, own_address, Arc::clone(&shared.told)));
        let writer = Writer { shared: Arc::clone(shared), store, journal, gateway };
        match std::thread::Builder::new().name("kpty-traffic".into()).spawn(move || writer.run()) {
            Ok(thread) => *lock(&shared.thread) = Some(thread),
            Err(cause) => {
                shared.is_on.store(false, Ordering::Release);
                *lock(&shared.trouble) = Some("actions are not recorded: no thread".to_owned());
                tracing::warn!("actions are not recorded: {cause}");
            }
        }
    }

    /// Anything is recorded at all.
    pub fn is_on(&self) -> bool {
        self.shared.is_on.load(Ordering::Acquire)
    }

    /// Hands an action over. Never waits; what does not fit is dropped and counted. True when it was taken.
    pub fn emit(&self, draft: Draft) -> bool {
        self.emit_as(None, draft)
    }

    /// The same for an action that was promised, in its place.
    pub fn keep(&self, promise: &Promise, draft: Draft) -> bool {
        self.emit_as(Some(promise.number), draft)
    }

    fn emit_as(&self, number: Option<u64>, draft: Draft) -> bool {
        if !self.is_on() {
            return false;
        }
        let bytes = draft.bytes();
        let mut queue = lock(&self.shared.queue);
        if queue.waiting.len() >= MAX_WAITING || queue.bytes + bytes > MAX_WAITING_BYTES || queue.is_ending {
            drop(queue);
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        let number = number.unwrap_or_else(|| queue.next_number());
        queue.waiting.push((number, draft));
        queue.bytes += bytes;
        queue.pushed += 1;
        let wakes = std::mem::take(&mut queue.is_idle) || queue.waiting.len() == BATCH;
        drop(queue);
        if wakes {
            self.shared.wake.notify_one();
        }
        true
    }

    /// Says that an action is over, which will be handed over in a moment.
    pub fn promise(&self) -> Promise {
        let mut queue = lock(&self.shared.queue);
        let number = queue.next_number();
        queue.promised.push(number);
        Promise { shared: Arc::clone(&self.shared), number }
    }

    /// Events from now on, masked, in their order. Who reads too slowly misses some and is told how many.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Event>> {
        self.shared.live.subscribe()
    }

    /// Turns true when nothing more will come: listeners should go.
    pub fn over(&self) -> watch::Receiver<bool> {
        self.shared.over.subscribe()
    }

    /// The record, written up to now; none before anything is recorded. Blocks for a moment.
    pub fn record(&self) -> Option<Arc<Store>> {
        let store = lock(&self.shared.store).clone()?;
        self.flush();
        Some(store)
    }

    /// Waits until everything that is over by now is written, or cannot be.
    fn flush(&self) {
        let deadline = Instant::now() + FLUSH_PATIENCE;
        let wait = |queue| {
            let left = deadline.saturating_duration_since(Instant::now());
            self.shared.written.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0
        };
        let mut queue = lock(&self.shared.queue);
        let last = queue.last_number;
        queue.awaiting += 1;
        while queue.promised.iter().any(|number| *number <= last) && Instant::now() < deadline {
            queue = wait(queue);
        }
        queue.awaiting -= 1;
        let target = queue.pushed;
        while queue.done < target && self.is_on() {
            queue.is_wanted = true;
            self.shared.wake.notify_one();
            if Instant::now() >= deadline {
                return;
            }
            queue = wait(queue);
        }
    }

    /// How it goes.
    pub fn counts(&self) -> Counts {
        let shared = &self.shared;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts {
            recorded: read(&shared.recorded),
            dropped: read(&shared.dropped),
            failed: read(&shared.failed),
            gateway_sent: read(&shared.told.sent),
            gateway_dropped: read(&shared.told.dropped),
            trouble: lock(&shared.trouble).clone(),
        }
    }

    /// Tells listeners to go: what still comes is only recorded.
    pub fn hang_up(&self) {
        self.shared.over.send_replace(true);
    }

    /// Writes what waits, and ends. Blocks until that is done.
    pub fn finish(&self) {
        self.hang_up();
        lock(&self.shared.queue).is_ending = true;
        self.shared.wake.notify_one();
        let thread = lock(&self.shared.thread).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that records actions panicked");
        }
        self.shared.is_on.store(false, Ordering::Release);
    }
}

/// What a panic left behind is still the newest there is.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is to be added to the own log of a session.
#[derive(Default)]
struct Log {
    session: String,
    lines: Vec<u8>,
    count: u64,
}

/// The thread that writes.
struct Writer {
    shared: Arc<Shared>,
    store: Arc<Store>,
    journal: Option<Journal>,
    gateway: Option<Gateway>,
}

impl Writer {
    fn run(self) {
        let mut next_cleanup = Instant::now();
        loop {
            if Instant::now() >= next_cleanup {
                let cleaned = self.store.clean_up();
                if self.note(cleaned, 0) {
                    *lock(&self.shared.trouble) = None;
                }
                next_cleanup = Instant::now() + CLEANUP_EVERY;
            }
            if lock(&self.shared.trouble).is_some() {
                next_cleanup = next_cleanup.min(Instant::now() + RETRY_AFTER);
            }
            let (drafts, is_ending) = self.next(next_cleanup);
            let count = drafts.len() as u64;
            if count > 0 {
                self.write(drafts);
            }
            let mut queue = lock(&self.shared.queue);
            queue.done += count;
            drop(queue);
            self.shared.written.notify_all();
            if is_ending && count == 0 {
                return;
            }
        }
    }

    /// What has been handed over: a moment after the first, or at once if somebody waits for it.
    fn next(&self, deadline: Instant) -> (Vec<(u64, Draft)>, bool) {
        let shared = &self.shared;
        let wait = |queue, until: Instant| {
            let left = until.saturating_duration_since(Instant::now());
            shared.wake.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0
        };
        let mut queue = lock(&shared.queue);
        while queue.waiting.is_empty() && !queue.is_ending && Instant::now() < deadline {
            queue.is_idle = true;
            queue = wait(queue, deadline);
        }
        queue.is_idle = false;
        let full = Instant::now() + GATHERING;
        while !queue.waiting.is_empty()
            && queue.waiting.len() < BATCH
            && !queue.is_wanted
            && !queue.is_ending
            && Instant::now() < full
        {
            queue = wait(queue, full);
        }
        let mut ready = queue.take_ready();
        if ready.is_empty() && !queue.waiting.is_empty() {
            queue.is_held = true;
            queue = wait(queue, Instant::now() + GATHERING);
            queue.is_held = false;
            ready = queue.take_ready();
        }
        queue.is_wanted = false;
        (ready, queue.is_ending)
    }

    fn write(&self, drafts: Vec<(u64, Draft)>) {
        let mut events = Vec::with_capacity(drafts.len());
        let mut logs: Vec<Log> = Vec::new();
        for (_, draft) in drafts {
            let (is_for_journal, is_for_gateway) = (draft.is_for_journal, draft.is_for_gateway);
            let event = draft.finish();
            if let Some(gateway) = self.gateway.as_ref().filter(|_| is_for_gateway) {
                gateway.tell(event.for_gateway());
            }
            if is_for_journal && self.journal.is_some() {
                let known = logs.iter().position(|log| log.session == event.session_id);
                let at = known.unwrap_or_else(|| {
                    logs.push(Log { session: event.session_id.clone(), ..Log::default() });
                    logs.len() - 1
                });
                event.push_line(&mut logs[at].lines);
                logs[at].count += 1;
            }
            events.push(event);
        }
        let stored = self.store.write(&events);
        if stored.is_ok() {
            self.shared.recorded.fetch_add(events.len() as u64, Ordering::Relaxed);
        }
        let mut result = self.note(stored, events.len() as u64);
        for Log { session, lines, count } in &logs {
            let Some(journal) = &self.journal else { break };
            let written = journal(session, lines);
            let written = written.map_err(|cause| format!("a session's log cannot be written: {}", cause.kind()));
            result = self.note(written, *count) && result;
        }
        if result {
            *lock(&self.shared.trouble) = None;
        }
        if self.shared.live.receiver_count() > 0 {
            for event in events {
                // Those who listened may be gone by now.
                let _ = self.shared.live.send(Arc::new(event));
            }
        }
    }

    /// Counts entries that were lost, and says why, once. True when all went well.
    fn note(&self, outcome: Result<(), String>, entries: u64) -> bool {
        let Err(problem) = outcome else { return true };
        self.shared.failed.fetch_add(entries, Ordering::Relaxed);
        let mut trouble = lock(&self.shared.trouble);
        if trouble.is_none() {
            tracing::warn!("{problem}. Actions go on; entries that are lost are counted");
        }
        *trouble = Some(problem);
        false
    }
}
