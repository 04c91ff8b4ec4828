//! One client: its subscriptions, pending frames, and the order of its input.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use kpty_emulator::{Which, palette};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, Semaphore, broadcast, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::desktop;
use super::view::{DesktopScreen, Origin, Scale, Sent};
use super::wire::{self, Frames, Request};
use crate::config::ScreenAccess;
use crate::ids::SessionId;
use crate::registry::Located;
use crate::tools::{Action, Caller, DEFAULT_TOOL, Effect, Tools};
use crate::traffic::Event;

/// Minimum interval between messages with frames: 30 per second.
const FRAME_INTERVAL: Duration = Duration::from_nanos(33_400_000);
/// Minimum interval between frames of a small screen.
const SMALL_INTERVAL: Duration = Duration::from_millis(200);
/// Minimum interval between session lists.
const LIST_INTERVAL: Duration = Duration::from_secs(1);
/// The same while sessions work and say nothing: each look comes after twice the time.
const LONGEST_LIST_INTERVAL: Duration = Duration::from_secs(64);
/// Maximum number of frames sent but not drawn yet.
const MAX_UNDRAWN: u64 = 2;
/// Interval at which recorded events are sent.
const EVENTS_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of events waiting to be sent.
const MAX_EVENTS: usize = 200;
/// Timeout for sending one message.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of sessions a client watches; more than a page shows at once.
const MAX_WATCHED: usize = 200;
/// Maximum number of queued calls, and of queued replies.
const MAX_WAITING: usize = 256;
/// Maximum number of concurrent calls other than typing.
const MAX_CALLS: usize = 16;
/// Maximum history lines in one reply.
const MAX_HISTORY_LINES: u64 = 500;
/// Maximum history rows in one reply.
const MAX_HISTORY_ROWS: usize = 2_000;

/// Serves a client until it goes.
pub(super) async fn run(mut socket: WebSocket, tools: Tools, name: &'static str) {
    let mut client = LiveClient::new(tools, name);
    if send(&mut socket, client.hello()).await.is_err() {
        return;
    }
    let mut changes = client.tools.registry().changed();
    client.list_due = Some(Instant::now());
    loop {
        let due = client.next_due();
        tokio::select! {
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) => client.handle_message(&text),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            },
            Some(answer) = client.answers.recv() => {
                if let Some(text) = client.serialize(answer)
                    && send(&mut socket, text).await.is_err()
                {
                    return;
                }
            }
            () = client.moved.notified() => {}
            event = next_event(&mut client.traffic) => client.note(event),
            changed = changes.changed() => match changed {
                Ok(()) => client.list_soon(),
                Err(_) => return,
            },
            () = sleep_until(due) => {
                client.ask_for_list();
                for text in [client.frames(), client.events_message()].into_iter().flatten() {
                    if send(&mut socket, text).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

async fn send(socket: &mut WebSocket, text: String) -> Result<(), ()> {
    match tokio::time::timeout(SEND_TIMEOUT, socket.send(Message::Text(text.into()))).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(()),
    }
}

/// Waits for the next recorded event; forever without a subscription.
async fn next_event(traffic: &mut Option<broadcast::Receiver<Arc<Event>>>) -> Option<Arc<Event>> {
    let Some(events) = traffic else { return std::future::pending().await };
    match events.recv().await {
        Ok(event) => Some(event),
        Err(RecvError::Lagged(_)) => None,
        Err(RecvError::Closed) => {
            *traffic = None;
            None
        }
    }
}

/// What comes back from work beside the connection.
enum Outgoing {
    Reply { n: u64, body: Value },
    List(Map<String, Value>),
}

struct LiveClient {
    tools: Tools,
    /// Name of the client in the traffic log.
    name: &'static str,
    watched: HashMap<String, Watched>,
    /// Signals that a session changed.
    moved: Arc<Notify>,
    next_frame: Instant,
    sent: u64,
    drawn: u64,
    list_due: Option<Instant>,
    list_told: Instant,
    /// When a session that works is looked at again: a program may begin to ask without saying anything.
    list_again: Duration,
    /// Session list as last sent.
    list: Value,
    traffic: Option<broadcast::Receiver<Arc<Event>>>,
    /// Recorded events not sent yet.
    events: VecDeque<Arc<Event>>,
    events_due: Option<Instant>,
    answers: mpsc::Receiver<Outgoing>,
    answering: mpsc::Sender<Outgoing>,
    typing: mpsc::Sender<(u64, Map<String, Value>)>,
    /// Limits calls other than typing.
    calls: Arc<Semaphore>,
    /// Background tasks; aborted with the client.
    tasks: JoinSet<()>,
}

/// A session that the client shows.
struct Watched {
    scale: Scale,
    origin: Origin,
    sent: Sent,
    has_moved: Arc<AtomicBool>,
    next: Instant,
    follower: AbortHandle,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

impl LiveClient {
    fn new(tools: Tools, name: &'static str) -> Self {
        let (answering, answers) = mpsc::channel(MAX_WAITING);
        let (typing, typed) = mpsc::channel(MAX_WAITING);
        let mut tasks = JoinSet::new();
        tasks.spawn(type_in_order(tools.clone(), name, typed, answering.clone()));
        let now = Instant::now();
        Self {
            tools,
            name,
            watched: HashMap::new(),
            moved: Arc::default(),
            next_frame: now,
            sent: 0,
            drawn: 0,
            list_due: None,
            list_told: now - LIST_INTERVAL,
            list_again: LIST_INTERVAL,
            list: Value::Null,
            traffic: None,
            events: VecDeque::new(),
            events_due: None,
            answers,
            answering,
            typing,
            calls: Arc::new(Semaphore::new(MAX_CALLS)),
            tasks,
        }
    }

    fn hello(&self) -> String {
        let colors: Vec<u32> = (0..=255).map(|index| packed(palette::default_color(index))).collect();
        json!({
            "t": "hello",
            "version": env!("CARGO_PKG_VERSION"),
            "palette": colors,
            "foreground": packed(palette::FOREGROUND),
            "background": packed(palette::BACKGROUND),
            "screens": self.shows_screens(),
            "typing": typing_actions(),
        })
        .to_string()
    }

    fn shows_screens(&self) -> bool {
        self.tools.config().screen_access == ScreenAccess::On
    }

    /// Handles a message. An unknown message gets no reply: it comes from a page of another version, which must be
    /// reloaded.
    fn handle_message(&mut self, text: &str) {
        match serde_json::from_str(text) {
            Ok(Request::Watch { small, large }) => self.watch(small, large),
            Ok(Request::Ack { s }) => self.drawn = self.drawn.max(s.min(self.sent)),
            Ok(Request::Call { n, args }) => self.call(n, args),
            Ok(Request::History { n, id, from, until }) => self.history(n, &id, from, until),
            Ok(Request::Traffic) => self.traffic = Some(self.tools.traffic().subscribe()),
            Err(error) => tracing::debug!("a client says what is not understood: {error}"),
        }
    }

    fn watch(&mut self, small: Vec<String>, large: Option<String>) {
        let wanted = large.map(|id| (id, Scale::Large)).into_iter();
        let wanted = wanted.chain(small.into_iter().map(|id| (id, Scale::Small))).take(MAX_WATCHED);
        let mut before = std::mem::take(&mut self.watched);
        if !self.shows_screens() {
            return;
        }
        for (id, scale) in wanted {
            if self.watched.contains_key(&id) {
                continue;
            }
            let kept = before.remove(&id).filter(|watched| watched.scale == scale);
            let watched = match kept {
                Some(watched) => Some(watched),
                None => self.begin(&id, scale),
            };
            self.watched.extend(watched.map(|watched| (id, watched)));
        }
    }

    fn begin(&mut self, id: &str, scale: Scale) -> Option<Watched> {
        let has_moved = Arc::new(AtomicBool::new(true));
        let tell = {
            let (has_moved, moved) = (Arc::clone(&has_moved), Arc::clone(&self.moved));
            move || {
                if !has_moved.swap(true, Ordering::AcqRel) {
                    moved.notify_one();
                }
            }
        };
        let (origin, follower) = match self.tools.registry().locate(&SessionId::named(id)).ok()? {
            Located::Local(session) => {
                let mut progress = session.progress();
                let follower = self.tasks.spawn(async move {
                    while progress.changed().await.is_ok() {
                        tell();
                    }
                });
                (Origin::Local(session), follower)
            }
            Located::Desktop(_) => {
                let screen = Arc::new(Mutex::new(DesktopScreen { cols: 80, rows: 24, ..DesktopScreen::default() }));
                let follow = desktop::follow(self.tools.clone(), id.to_owned(), scale, Arc::clone(&screen), tell);
                (Origin::Desktop(screen), self.tasks.spawn(follow))
            }
        };
        Some(Watched { scale, origin, sent: Sent::default(), has_moved, next: Instant::now(), follower })
    }

    /// Returns the time of the next scheduled work.
    fn next_due(&self) -> Option<Instant> {
        let moved = self.watched.values().filter(|watched| watched.has_moved.load(Ordering::Acquire));
        let frame = moved.map(|watched| watched.next.max(self.next_frame)).min();
        let frame = frame.filter(|_| self.sent - self.drawn < MAX_UNDRAWN);
        frame.into_iter().chain(self.list_due).chain(self.events_due).min()
    }

    /// Queues a recorded event. The oldest are dropped for a slow client.
    fn note(&mut self, event: Option<Arc<Event>>) {
        let Some(event) = event else { return };
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
        self.events_due = self.events_due.or(Some(Instant::now() + EVENTS_INTERVAL));
    }

    /// Serializes the queued events as one message, without replies, which the page does not show.
    fn events_message(&mut self) -> Option<String> {
        self.events_due.filter(|due| *due <= Instant::now())?;
        self.events_due = None;
        let rows = self.events.drain(..).map(|event| {
            let mut row = event.row();
            if let Some(fields) = row.as_object_mut() {
                fields.retain(|name, _| !["command", "response"].contains(&name.as_str()));
            }
            row
        });
        Some(json!({ "t": "traffic", "events": rows.collect::<Vec<_>>() }).to_string())
    }

    /// Serializes all due frames as one message.
    fn frames(&mut self) -> Option<String> {
        // Removes finished tasks.
        while self.tasks.try_join_next().is_some() {}
        let now = Instant::now();
        if now < self.next_frame || self.sent - self.drawn >= MAX_UNDRAWN {
            return None;
        }
        let mut frames = Vec::new();
        for (id, watched) in &mut self.watched {
            if watched.next > now || !watched.has_moved.swap(false, Ordering::AcqRel) {
                continue;
            }
            if watched.scale == Scale::Small {
                watched.next = now + SMALL_INTERVAL;
            }
            frames.extend(watched.origin.frame(id, watched.scale, &mut watched.sent));
        }
        if frames.is_empty() {
            return None;
        }
        self.next_frame = now + FRAME_INTERVAL;
        self.sent += 1;
        // After output, a session may run another program.
        self.list_again = LIST_INTERVAL;
        self.list_soon();
        serde_json::to_string(&Frames { t: "frames".to_owned(), s: self.sent, frames }).ok()
    }

    fn list_soon(&mut self) {
        self.list_due = self.list_due.or(Some((self.list_told + LIST_INTERVAL).max(Instant::now())));
    }

    fn ask_for_list(&mut self) {
        let now = Instant::now();
        if self.list_due.is_none_or(|due| due > now) {
            return;
        }
        (self.list_due, self.list_told) = (None, now);
        let (tools, answering) = (self.tools.clone(), self.answering.clone());
        self.tasks.spawn(async move {
            let arguments = Map::from_iter([("action".to_owned(), json!("list"))]);
            let reply = tools.look(&arguments).await;
            // The client has disconnected if this fails.
            let _ = answering.send(Outgoing::List(reply.body)).await;
        });
    }

    /// What is sent of an answer.
    fn serialize(&mut self, answer: Outgoing) -> Option<String> {
        match answer {
            Outgoing::Reply { n, body } => Some(json!({ "t": "reply", "n": n, "body": body }).to_string()),
            Outgoing::List(mut body) => {
                let mut sessions = body.remove("sessions").unwrap_or_else(|| json!([]));
                for session in sessions.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
                    // These fields change with every byte and are not shown.
                    if let Some(attention) = session.get_mut("attention").and_then(Value::as_object_mut) {
                        attention.remove("evidence");
                    }
                    session
                        .retain(|name, _| !["last_activity", "buffer_size", "last_heartbeat"].contains(&name.as_str()));
                }
                if sessions.as_array().into_iter().flatten().any(works) {
                    self.list_due = self.list_due.or(Some(Instant::now() + self.list_again));
                    self.list_again = (2 * self.list_again).min(LONGEST_LIST_INTERVAL);
                }
                if sessions == self.list {
                    return None;
                }
                self.list = sessions;
                Some(json!({ "t": "list", "sessions": self.list }).to_string())
            }
        }
    }

    fn call(&mut self, n: u64, args: Map<String, Value>) {
        let name = args.get("action").and_then(Value::as_str).unwrap_or_default();
        let Some(action) = DEFAULT_TOOL.action(name).filter(|action| action.on_page) else {
            return self.answer(n, refused("pages do not use this action"));
        };
        if action.effect == Effect::Type {
            if self.typing.try_send((n, args)).is_err() {
                self.answer(n, refused("the session does not read as fast as you type"));
            }
            return;
        }
        let Ok(place) = Arc::clone(&self.calls).try_acquire_owned() else {
            return self.answer(n, refused("too many questions at once"));
        };
        let (tools, name, answering) = (self.tools.clone(), self.name, self.answering.clone());
        self.tasks.spawn(async move {
            let body = Value::Object(tools.call(&args, Caller { is_person: true, ..Caller::named(name) }).await.body);
            let _ = answering.send(Outgoing::Reply { n, body }).await;
            // Not before: who takes no answers asks nothing more.
            drop(place);
        });
    }

    /// Sends an immediate reply; drops it when the client's queue is full.
    fn answer(&self, n: u64, body: Value) {
        let _ = self.answering.try_send(Outgoing::Reply { n, body });
    }

    /// Sends the rows above the screen between two lines.
    fn history(&mut self, n: u64, id: &str, from: u64, until: u64) {
        if !self.shows_screens() {
            return self.answer(n, refused("reading screens is switched off"));
        }
        let Ok(Located::Local(session)) = self.tools.registry().locate(&SessionId::named(id)) else {
            return self.answer(n, refused("only sessions of this server have a history here"));
        };
        let screen = session.masked_screen();
        // While the alternate screen is active, the whole main screen is history.
        let is_behind = screen.buffer() == kpty_emulator::Buffer::Alternate;
        let top = if is_behind { u64::MAX } else { screen.lines().first().copied().unwrap_or(0) };
        let from = from.max(screen.oldest_line());
        let until = until.min(top.saturating_add(1)).min(from.saturating_add(MAX_HISTORY_LINES));
        let mut rows = session.masked_rows(from..until.max(from), Which::Main);
        if until > top {
            // The line at the upper edge may be partly visible: only its rows above the screen count.
            let visible = screen.lines().iter().filter(|line| **line == top).count();
            rows.truncate(rows.len().saturating_sub(visible));
        }
        rows.truncate(MAX_HISTORY_ROWS);
        let rows: Vec<_> = rows.iter().map(|(line, row)| json!([line, row.wrapped, wire::runs(row)])).collect();
        self.answer(
            n,
            json!({ "ok": true, "oldest": screen.oldest_line(), "from": from, "until": until, "rows": rows }),
        );
    }
}

/// Passes input to sessions in the order in which it was typed.
async fn type_in_order(
    tools: Tools,
    name: &'static str,
    mut typed: mpsc::Receiver<(u64, Map<String, Value>)>,
    answers: mpsc::Sender<Outgoing>,
) {
    while let Some((n, args)) = typed.recv().await {
        let body = Value::Object(tools.call(&args, Caller { is_person: true, ..Caller::named(name) }).await.body);
        if answers.send(Outgoing::Reply { n, body }).await.is_err() {
            return;
        }
    }
}

/// The names of the actions that type, by which the page finds them in the record.
fn typing_actions() -> Vec<&'static str> {
    let types = |action: &&&'static Action| action.effect == Effect::Type;
    DEFAULT_TOOL.actions.iter().filter(types).flat_map(|action| action.names()).collect()
}

/// What a session of the list does may change without another sign.
fn works(session: &Value) -> bool {
    session
        .get("attention")
        .is_some_and(|attention| attention["state"] == "running" || attention["state"] == "starting")
}

fn refused(why: &str) -> Value {
    json!({ "ok": false, "message": why })
}

fn packed((r, g, b): (u8, u8, u8)) -> u32 {
    u32::from_be_bytes([0, r, g, b])
}
