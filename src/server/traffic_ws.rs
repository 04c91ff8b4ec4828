//! WebSocket with live events. A listener that does not read is disconnected; it never delays others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::body::refusal;
use super::query::echo_word;
use super::traffic_http::TrafficRoutes;
use crate::model::iso_time_millis;
use crate::traffic::Event;
use crate::traffic::query::SubscriptionFilter;

/// Maximum number of concurrent listeners.
const MAX_LISTENERS: usize = 64;
/// Maximum size of a listener's message, in bytes.
const MAX_MESSAGE: usize = 64 << 10;
/// Maximum number of names in one list of a filter.
const MAX_NAMES: usize = 200;
/// Interval of keep-alive pings.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// Disconnects a listener after this time without a message.
const PONG_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout for sending one message.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// Number of listeners.
#[derive(Debug, Default)]
pub(super) struct Listeners(AtomicUsize);

/// Permit of one listener, released on drop.
struct ListenerPermit(Arc<Listeners>);

impl Listeners {
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn take(self: &Arc<Self>) -> Option<ListenerPermit> {
        let one_more = |count| (count < MAX_LISTENERS).then_some(count + 1);
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        taken.is_ok().then(|| ListenerPermit(Arc::clone(self)))
    }
}

impl Drop for ListenerPermit {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Accepts a listener. Access was checked before, as for every route.
pub(super) async fn listen(State(traffic): State<TrafficRoutes>, upgrade: WebSocketUpgrade) -> Response {
    let Some(place) = traffic.listeners.take() else {
        return refusal(StatusCode::SERVICE_UNAVAILABLE, "there are too many listeners").into_response();
    };
    let upgrade = upgrade.max_message_size(MAX_MESSAGE).max_frame_size(MAX_MESSAGE);
    upgrade.on_upgrade(move |socket| async move {
        Listener::new(socket).serve(&traffic).await;
        drop(place);
    })
}

/// One listener.
struct Listener {
    socket: WebSocket,
    parse_filter: SubscriptionFilter,
    is_paused: bool,
    /// Number of matching events while paused.
    missed: u64,
}

/// The connection has ended.
struct Disconnected;

fn now() -> String {
    iso_time_millis(SystemTime::now())
}

impl Listener {
    fn new(socket: WebSocket) -> Self {
        Self { socket, parse_filter: SubscriptionFilter::default(), is_paused: false, missed: 0 }
    }

    async fn serve(mut self, traffic: &TrafficRoutes) {
        let emitter = traffic.tools.traffic();
        let (mut events, mut over) = (emitter.subscribe(), emitter.closed());
        let mut pings = interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heard = Instant::now();
        let hello = json!({
            "type": "connected", "timestamp": now(), "message": "PTY traffic WebSocket connected",
            "ping_interval": PING_INTERVAL.as_secs(), "pong_timeout": PONG_TIMEOUT.as_secs(),
        });
        let mut state = self.send(hello).await;
        while state.is_ok() && !*over.borrow_and_update() {
            state = tokio::select! {
                message = self.socket.recv() => {
                    heard = Instant::now();
                    self.on_message(message).await
                }
                event = events.recv() => self.on_event(event).await,
                _ = pings.tick() => match heard.elapsed() > PONG_TIMEOUT {
                    true => Err(Disconnected),
                    false => self.send(json!({ "type": "ping", "timestamp": now() })).await,
                },
                _ = over.changed() => Ok(()),
            };
        }
        let code = if state.is_ok() { close_code::AWAY } else { close_code::POLICY };
        let farewell = Message::Close(Some(CloseFrame { code, reason: "".into() }));
        // The listener may have disconnected.
        let _ = timeout(SEND_TIMEOUT, self.socket.send(farewell)).await;
    }

    async fn send(&mut self, message: Value) -> Result<(), Disconnected> {
        let sent = timeout(SEND_TIMEOUT, self.socket.send(Message::Text(message.to_string().into()))).await;
        sent.map_err(|_| Disconnected)?.map_err(|_| Disconnected)
    }

    async fn on_event(&mut self, event: Result<Arc<Event>, RecvError>) -> Result<(), Disconnected> {
        match event {
            Ok(event) if !self.parse_filter.matches(&event) => Ok(()),
            Ok(_) if self.is_paused => {
                self.missed += 1;
                Ok(())
            }
            Ok(event) => self.send(json!({ "type": "pty_event", "event": event.row() })).await,
            Err(RecvError::Lagged(missed)) if self.is_paused => {
                self.missed += missed;
                Ok(())
            }
            Err(RecvError::Lagged(missed)) => self.send(json!({ "type": "lagged", "missed": missed })).await,
            Err(RecvError::Closed) => Err(Disconnected),
        }
    }

    async fn on_message(&mut self, message: Option<Result<Message, axum::Error>>) -> Result<(), Disconnected> {
        let text = match message {
            None | Some(Err(_) | Ok(Message::Close(_))) => return Err(Disconnected),
            // The library answers protocol pings.
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => return Ok(()),
            Some(Ok(Message::Binary(_))) => return self.send_error("Invalid JSON format").await,
            Some(Ok(Message::Text(text))) => text,
        };
        let Ok(message) = serde_json::from_str::<Map<String, Value>>(&text) else {
            return self.send_error("Invalid JSON format").await;
        };
        let kind = message.get("type").and_then(Value::as_str).unwrap_or_default();
        let answer = match kind {
            "ping" => json!({ "type": "pong", "timestamp": now() }),
            "pong" => return Ok(()),
            "subscribe" => {
                let filters = message.get("filters").cloned().unwrap_or_else(|| json!({}));
                match parse_filter(&filters) {
                    Ok(parse_filter) => self.parse_filter = parse_filter,
                    Err(problem) => return self.send_error(&problem).await,
                }
                json!({ "type": "subscribed", "filters": filters, "message": "Subscription filters applied" })
            }
            "unsubscribe" => {
                self.parse_filter = SubscriptionFilter::default();
                json!({ "type": "unsubscribed", "message": "Subscription filters removed" })
            }
            "pause" => {
                self.is_paused = true;
                json!({ "type": "paused", "message": "Event stream paused" })
            }
            "resume" => {
                self.is_paused = false;
                let missed = std::mem::take(&mut self.missed);
                json!({ "type": "resumed", "message": "Event stream resumed", "missed": missed })
            }
            other => {
                let other = echo_word(other);
                return self.send_error(&format!("Unknown message type: {other}")).await;
            }
        };
        self.send(answer).await
    }

    async fn send_error(&mut self, problem: &str) -> Result<(), Disconnected> {
        self.send(json!({ "type": "error", "message": problem })).await
    }
}

/// Parses the filters of a subscription.
fn parse_filter(filters: &Value) -> Result<SubscriptionFilter, String> {
    let Value::Object(filters) = filters else { return Err("filters must be an object".to_owned()) };
    let names = |name: &str| match filters.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) if list.len() <= MAX_NAMES => {
            let texts: Option<Vec<String>> = list.iter().map(|item| item.as_str().map(str::to_owned)).collect();
            texts.ok_or_else(|| format!("{name} must be a list of strings"))
        }
        Some(_) => Err(format!("{name} must be a list of at most {MAX_NAMES} strings")),
    };
    let flag = |name: &str| match filters.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(format!("{name} must be true or false")),
    };
    Ok(SubscriptionFilter {
        actions: names("actions")?,
        agent_ids: names("agent_ids")?,
        session_ids: names("session_ids")?,
        errors_only: flag("errors_only")?,
        blocked_only: flag("blocked_only")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_so_many() {
        let listeners = Arc::new(Listeners::default());
        let places: Vec<_> = (0..MAX_LISTENERS).filter_map(|_| listeners.take()).collect();
        assert_eq!((places.len(), listeners.count()), (MAX_LISTENERS, MAX_LISTENERS));
        assert!(listeners.take().is_none());
        drop(places);
        assert_eq!(listeners.count(), 0);
    }

    #[test]
    fn filters_that_make_no_sense_are_refused() {
        for (filters, is_right) in [
            (json!({}), true),
            (json!({ "actions": ["talk"], "errors_only": true, "unknown": 7 }), true),
            (json!([]), false),
            (json!({ "actions": "talk" }), false),
            (json!({ "actions": [1] }), false),
            (json!({ "blocked_only": "yes" }), false),
        ] {
            assert_eq!(parse_filter(&filters).is_ok(), is_right, "{filters}");
        }
    }
}
