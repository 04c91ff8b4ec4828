//! Entry point of the traffic log: a bounded queue and one writer thread.
//!
//! Emitting takes a short lock and never blocks on the disk. The thread gathers events briefly, so that a hundred
//! actions cost one transaction; a reader first flushes everything up to now, promised entries included. Entries are
//! stored in the order in which actions completed or were promised, however late they arrive. Nothing is recorded
//! before [`Emitter::start`] or after [`Emitter::finish`].

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{broadcast, watch};

use super::gateway::{Gateway, GatewayCounters};
use super::started::{Start, StartLog};
use super::{Draft, Event, Retention, Store};

/// Maximum number of queued drafts. An action has some hundred bytes; see also [`MAX_QUEUED_BYTES`].
const MAX_QUEUED: usize = 4_096;
/// Maximum size of the queue, in bytes.
const MAX_QUEUED_BYTES: usize = 32 << 20;
/// Time that the first queued draft waits for others.
const BATCH_DELAY: Duration = Duration::from_millis(40);
/// A queue of this length is written without further delay.
const BATCH: usize = 512;
/// Number of events that a subscriber may lag behind before it loses some.
const MAX_LAG: usize = 1_024;
/// Interval at which expired events are deleted.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(600);
/// Delay before writing is retried after an error.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// Timeout of a flush.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// Appends complete lines to the log of a session.
pub type Journal = Box<dyn Fn(&str, &[u8]) -> io::Result<()> + Send>;

/// Destinations of the traffic log.
pub struct TrafficOptions {
    /// Folder of the database; `None` keeps it in memory.
    pub folder: Option<PathBuf>,
    /// Limits of what is kept.
    pub retention: Retention,
    /// Appends to the logs of sessions.
    pub journal: Option<Journal>,
    /// URL of a gateway that receives the events too.
    pub gateway: Option<String>,
    /// Address of this server; a gateway URL that leads to it is ignored.
    pub own_address: Option<SocketAddr>,
}

/// Counters of the traffic log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrafficCounts {
    /// Actions stored in the database.
    pub recorded: u64,
    /// Actions dropped because the queue was full.
    pub dropped: u64,
    /// Entries that could not be written to the database or a session log.
    pub failed: u64,
    /// Events that the gateway accepted.
    pub gateway_sent: u64,
    /// Events that the gateway did not accept.
    pub gateway_dropped: u64,
    /// Current reason why entries cannot be written.
    pub failure: Option<String>,
}

/// Handle to the traffic log; clones share it.
#[derive(Clone)]
pub struct Emitter {
    shared: Arc<EmitterInner>,
}

struct EmitterInner {
    is_on: AtomicBool,
    queue: Mutex<Queue>,
    /// Wakes the writer thread.
    wake: Condvar,
    /// Wakes callers that wait for a flush.
    written: Condvar,
    live: broadcast::Sender<Arc<Event>>,
    /// Becomes true when no further events follow.
    closed: watch::Sender<bool>,
    recorded: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
    gateway_counters: Arc<GatewayCounters>,
    failure: Mutex<Option<String>>,
    store: Mutex<Option<Arc<Store>>>,
    /// Notes of actions that type; absent without a folder.
    starts: OnceLock<StartLog>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Queue {
    /// Drafts with their sequence numbers, unsorted.
    waiting: Vec<(u64, Draft)>,
    bytes: usize,
    /// The writer waits for a first draft.
    is_idle: bool,
    /// A reader waits for a flush.
    flush_requested: bool,
    is_ending: bool,
    pushed: u64,
    done: u64,
    /// Sequence numbers of entries that are still to be emitted, one per call that is being answered.
    promised: Vec<u64>,
    /// Last assigned sequence number.
    last_number: u64,
    /// Number of readers that wait for promised entries.
    readers_waiting: usize,
    /// The writer waits for promised entries.
    awaits_promise: bool,
}

impl Queue {
    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Takes the drafts that precede every promised entry, in order. The rest stays.
    fn take_ready(&mut self) -> Vec<(u64, Draft)> {
        let held_at = self.promised.iter().min().copied().filter(|_| !self.is_ending).unwrap_or(u64::MAX);
        self.waiting.sort_unstable_by_key(|(number, _)| *number);
        let ready = self.waiting.partition_point(|(number, _)| *number < held_at);
        let held = self.waiting.split_off(ready);
        self.bytes = held.iter().map(|(_, draft)| draft.bytes()).sum();
        std::mem::replace(&mut self.waiting, held)
    }
}

/// Reserves the place of a completed action in the log. The action is emitted before this value is dropped.
pub struct Promise {
    shared: Arc<EmitterInner>,
    number: u64,
}

impl Drop for Promise {
    fn drop(&mut self) {
        let mut queue = lock(&self.shared.queue);
        queue.promised.retain(|number| *number != self.number);
        if queue.readers_waiting > 0 {
            self.shared.written.notify_all();
        }
        if std::mem::take(&mut queue.awaits_promise) {
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
    /// Creates an emitter that does not record yet.
    pub fn new() -> Self {
        Self {
            shared: Arc::new(EmitterInner {
                is_on: AtomicBool::new(false),
                queue: Mutex::default(),
                wake: Condvar::new(),
                written: Condvar::new(),
                live: broadcast::Sender::new(MAX_LAG),
                closed: watch::Sender::new(false),
                recorded: AtomicU64::new(0),
                dropped: AtomicU64::new(0),
                failed: AtomicU64::new(0),
                gateway_counters: Arc::default(),
                failure: Mutex::default(),
                store: Mutex::default(),
                starts: OnceLock::new(),
                thread: Mutex::default(),
            }),
        }
    }

    /// Starts recording; a second call has no effect. A gateway requires a runtime.
    pub fn start(&self, recording: TrafficOptions) {
        let shared = &self.shared;
        if shared.is_on.swap(true, Ordering::AcqRel) {
            return;
        }
        let TrafficOptions { folder, retention, journal, gateway, own_address } = recording;
        let store = Arc::new(Store::new(folder.as_deref(), retention));
        let (starts, left) = folder.as_deref().map(StartLog::open).unzip();
        *lock(&shared.store) = Some(Arc::clone(&store));
        let gateway = gateway.and_then(|url| Gateway::start(&url, own_address, Arc::clone(&shared.gateway_counters)));
        let writer = Writer { shared: Arc::clone(shared), store, journal, gateway };
        match std::thread::Builder::new().name("kpty-traffic".into()).spawn(move || writer.run()) {
            Ok(thread) => {
                *lock(&shared.thread) = Some(thread);
                self.take_up(starts, left.unwrap_or_default());
            }
            Err(cause) => {
                shared.is_on.store(false, Ordering::Release);
                *lock(&shared.failure) = Some("actions are not recorded: no thread".to_owned());
                tracing::warn!("actions are not recorded: {cause}");
            }
        }
    }

    /// Records what an earlier server had begun and did not end, and notes starts from now on.
    fn take_up(&self, starts: Option<StartLog>, left: Vec<Start>) {
        let Some(starts) = starts else { return };
        let starts = self.shared.starts.get_or_init(|| starts);
        for start in left {
            // It stays in the file until it is stored.
            let number = starts.begin(start.clone());
            self.emit(start.into_draft(number));
        }
    }

    /// Notes an action that is about to type, on disk: one that a killed server does not end is recorded by the next.
    /// Returns the number for its draft.
    pub fn begin(&self, start: impl FnOnce() -> Start) -> Option<u64> {
        let starts = self.shared.starts.get()?;
        let number = starts.begin(start());
        if number.is_none() {
            self.shared.failed.fetch_add(1, Ordering::Relaxed);
        }
        number
    }

    /// Returns whether anything is recorded.
    pub fn is_on(&self) -> bool {
        self.shared.is_on.load(Ordering::Acquire)
    }

    /// Queues an action without blocking. Returns false when it was dropped, which is counted.
    pub fn emit(&self, draft: Draft) -> bool {
        self.emit_as(None, draft)
    }

    /// Queues a promised action, in its reserved place.
    pub fn keep(&self, promise: &Promise, draft: Draft) -> bool {
        self.emit_as(Some(promise.number), draft)
    }

    fn emit_as(&self, number: Option<u64>, draft: Draft) -> bool {
        if !self.is_on() {
            return false;
        }
        let bytes = draft.bytes();
        let mut queue = lock(&self.shared.queue);
        if queue.waiting.len() >= MAX_QUEUED || queue.bytes + bytes > MAX_QUEUED_BYTES || queue.is_ending {
            drop(queue);
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
            self.shared.end_starts(draft.started.into_iter().collect(), draft.hidden.is_some());
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

    /// Reserves the next place in the log for an action that completes now and is emitted shortly.
    pub fn promise(&self) -> Promise {
        let mut queue = lock(&self.shared.queue);
        let number = queue.next_number();
        queue.promised.push(number);
        Promise { shared: Arc::clone(&self.shared), number }
    }

    /// Subscribes to new events, redacted and in order. A slow subscriber loses events and receives their number.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Event>> {
        self.shared.live.subscribe()
    }

    /// Returns a channel that becomes true when no further events follow.
    pub fn closed(&self) -> watch::Receiver<bool> {
        self.shared.closed.subscribe()
    }

    /// Flushes and returns the database; `None` before recording starts. Blocks briefly.
    pub fn record(&self) -> Option<Arc<Store>> {
        let store = lock(&self.shared.store).clone()?;
        self.flush();
        Some(store)
    }

    /// Waits until every action completed so far is written or has failed.
    fn flush(&self) {
        let deadline = Instant::now() + FLUSH_TIMEOUT;
        let wait = |queue| {
            let left = deadline.saturating_duration_since(Instant::now());
            self.shared.written.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0
        };
        let mut queue = lock(&self.shared.queue);
        let last = queue.last_number;
        queue.readers_waiting += 1;
        while queue.promised.iter().any(|number| *number <= last) && Instant::now() < deadline {
            queue = wait(queue);
        }
        queue.readers_waiting -= 1;
        let target = queue.pushed;
        while queue.done < target && self.is_on() {
            queue.flush_requested = true;
            self.shared.wake.notify_one();
            if Instant::now() >= deadline {
                return;
            }
            queue = wait(queue);
        }
    }

    /// Returns the counters.
    pub fn counts(&self) -> TrafficCounts {
        let shared = &self.shared;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        TrafficCounts {
            recorded: read(&shared.recorded),
            dropped: read(&shared.dropped),
            failed: read(&shared.failed),
            gateway_sent: read(&shared.gateway_counters.sent),
            gateway_dropped: read(&shared.gateway_counters.dropped),
            failure: lock(&shared.failure).clone(),
        }
    }

    /// Ends all subscriptions; later events are only recorded.
    pub fn close_subscriptions(&self) {
        self.shared.closed.send_replace(true);
    }

    /// Writes the queued entries and stops. Blocks until done.
    pub fn finish(&self) {
        self.close_subscriptions();
        lock(&self.shared.queue).is_ending = true;
        self.shared.wake.notify_one();
        let thread = lock(&self.shared.thread).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that records actions panicked");
        }
        self.shared.is_on.store(false, Ordering::Release);
    }
}

impl EmitterInner {
    fn end_starts(&self, numbers: Vec<u64>, is_hidden: bool) {
        if let Some(starts) = self.starts.get().filter(|_| !numbers.is_empty()) {
            starts.end(numbers, is_hidden);
        }
    }
}

/// A poisoned lock still holds the newest state.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lines to append to the log of one session.
#[derive(Default)]
struct Log {
    session: String,
    lines: Vec<u8>,
    count: u64,
}

/// The writer thread.
struct Writer {
    shared: Arc<EmitterInner>,
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
                    *lock(&self.shared.failure) = None;
                }
                next_cleanup = Instant::now() + CLEANUP_INTERVAL;
            }
            if lock(&self.shared.failure).is_some() {
                next_cleanup = next_cleanup.min(Instant::now() + RETRY_DELAY);
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

    /// Takes the next batch: shortly after its first draft, or at once when a reader waits for it.
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
        let full = Instant::now() + BATCH_DELAY;
        while !queue.waiting.is_empty()
            && queue.waiting.len() < BATCH
            && !queue.flush_requested
            && !queue.is_ending
            && Instant::now() < full
        {
            queue = wait(queue, full);
        }
        let mut ready = queue.take_ready();
        if ready.is_empty() && !queue.waiting.is_empty() {
            queue.awaits_promise = true;
            queue = wait(queue, Instant::now() + BATCH_DELAY);
            queue.awaits_promise = false;
            ready = queue.take_ready();
        }
        queue.flush_requested = false;
        (ready, queue.is_ending)
    }

    fn write(&self, drafts: Vec<(u64, Draft)>) {
        let mut events = Vec::with_capacity(drafts.len());
        let mut logs: Vec<Log> = Vec::new();
        let starts: Vec<u64> = drafts.iter().filter_map(|(_, draft)| draft.started).collect();
        let is_hidden = drafts.iter().any(|(_, draft)| draft.started.is_some() && draft.hidden.is_some());
        for (_, draft) in drafts {
            let (is_for_journal, is_for_gateway) = (draft.is_for_journal, draft.is_for_gateway);
            let event = draft.finish();
            if let Some(gateway) = self.gateway.as_ref().filter(|_| is_for_gateway) {
                gateway.send(event.for_gateway());
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
        // Also of an entry that is lost: it is counted.
        self.shared.end_starts(starts, is_hidden);
        let mut result = self.note(stored, events.len() as u64);
        for Log { session, lines, count } in &logs {
            let Some(journal) = &self.journal else { break };
            let written = journal(session, lines);
            let written = written.map_err(|cause| format!("a session's log cannot be written: {}", cause.kind()));
            result = self.note(written, *count) && result;
        }
        if result {
            *lock(&self.shared.failure) = None;
        }
        if self.shared.live.receiver_count() > 0 {
            for event in events {
                // There may be no subscribers.
                let _ = self.shared.live.send(Arc::new(event));
            }
        }
    }

    /// TrafficCounts lost entries and logs the reason once. Returns whether nothing was lost.
    fn note(&self, outcome: Result<(), String>, entries: u64) -> bool {
        let Err(problem) = outcome else { return true };
        self.shared.failed.fetch_add(entries, Ordering::Relaxed);
        let mut failure = lock(&self.shared.failure);
        if failure.is_none() {
            tracing::warn!("{problem}. Actions are not affected; lost entries are counted");
        }
        *failure = Some(problem);
        false
    }
}
