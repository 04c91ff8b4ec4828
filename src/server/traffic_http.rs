//! Routes of the traffic log, in the shapes of the gateway's panel. Invalid requests get 4xx with `detail`.
//!
//! Queries run on blocking threads and always include everything that happened before the request.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::{get, post};
use axum::{Json, Router};
use kpty_guard::{Masked, Redactor};
use serde_json::{Map, Value, json};

use super::body::{JsonResult, Refusal, json_bytes};
use super::mcp::AGENT_HEADER;
use super::mcp::name_in;
use super::query::{echo, echo_word, query_value};
use super::traffic_ws::{self, Listeners};
use crate::model::{iso_time_millis, millis_from_iso};
use crate::tools::Tools;
use crate::traffic::query::{Filter, MAX_PAGE, SessionSummary, Stats, breakdown};
use crate::traffic::{Draft, Event, GivenText, SizedText, Store, new_id};

/// Default page size.
const PAGE: u64 = 50;
/// Maximum page size of the routes with a smaller limit.
const SMALL_PAGE: u64 = 200;

/// Event fields with a column; others are stored as extra fields.
const KNOWN: [&str; 22] = [
    "action",
    "session_id",
    "agent_id",
    "owner_session_id",
    "command",
    "command_size",
    "response",
    "response_size",
    "response_truncated",
    "duration",
    "success",
    "error_code",
    "error_message",
    "blocked",
    "blocked_pattern",
    "timeout_ms",
    "timed_out",
    "label",
    "cli_type",
    "session_source",
    "evidence_id",
    "exit_code",
];

/// State of the routes.
#[derive(Clone)]
pub(super) struct TrafficRoutes {
    pub(super) tools: Tools,
    pub(super) listeners: Arc<Listeners>,
}

type IdInPath = Result<Path<String>, PathRejection>;

/// Routes of this module, and the WebSocket.
pub(super) fn routes(tools: &Tools) -> Router {
    Router::new()
        .route("/v1/pty-traffic/emit", post(emit))
        .route("/v1/pty-traffic/events", get(events))
        .route("/v1/pty-traffic/events/{id}", get(event))
        .route("/v1/pty-traffic/sessions", get(sessions))
        .route("/v1/pty-traffic/sessions/{id}", get(session))
        .route("/v1/pty-traffic/stats", get(stats))
        .route("/v1/pty-traffic/blocked", get(blocked))
        .route("/v1/pty-traffic/health", get(health))
        .route("/v1/pty-traffic/storage/cleanup", post(clean_up))
        .route("/ws/pty-traffic", get(traffic_ws::listen))
        .with_state(TrafficRoutes { tools: tools.clone(), listeners: Arc::default() })
}

fn refuse(status: StatusCode, why: &str) -> Refusal {
    (status, Json(json!({ "detail": why })))
}

/// Rejects an invalid query value.
fn unprocessable(name: &str, problem: &str, input: &str) -> Refusal {
    let input = echo_word(input);
    let fault = json!({ "type": "value_error", "loc": ["query", name], "msg": problem, "input": input });
    (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({ "detail": [fault] })))
}

impl TrafficRoutes {
    /// Runs a query on a blocking thread.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Store) -> Result<T, String> + Send + 'static,
    ) -> Result<T, Refusal> {
        let traffic = self.tools.traffic().clone();
        let asked = tokio::task::spawn_blocking(move || {
            traffic.record().ok_or_else(|| "nothing is recorded".to_owned()).and_then(|store| question(&store))
        });
        let unavailable = |problem: String| refuse(StatusCode::SERVICE_UNAVAILABLE, &problem);
        asked.await.map_err(|error| unavailable(error.to_string()))?.map_err(unavailable)
    }
}

/// Reads a number within a range from the query.
fn number(uri: &Uri, name: &str, default: u64, least: u64, most: u64) -> Result<u64, Refusal> {
    let Some(text) = query_value(uri, name) else { return Ok(default) };
    match text.trim().parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(unprocessable(name, &format!("a whole number from {least} to {most} is expected"), &text)),
    }
}

fn flag(uri: &Uri, name: &str) -> Result<bool, Refusal> {
    let Some(text) = query_value(uri, name) else { return Ok(false) };
    match text.trim().to_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" | "" => Ok(false),
        _ => Err(unprocessable(name, "true or false is expected", &text)),
    }
}

/// Reads a time from the query; an unreadable one is the client's error.
fn moment(uri: &Uri, name: &str) -> Result<Option<i64>, Refusal> {
    let Some(text) = query_value(uri, name).filter(|text| !text.is_empty()) else { return Ok(None) };
    let problem = || format!("{name} must be an ISO-8601 moment such as 2026-01-31T12:00:00Z");
    millis_from_iso(&text).map(Some).ok_or_else(|| refuse(StatusCode::BAD_REQUEST, &problem()))
}

fn filter(uri: &Uri) -> Result<Filter, Refusal> {
    let text = |name: &str| query_value(uri, name).filter(|text| !text.is_empty());
    Ok(Filter {
        session_id: text("session_id"),
        agent_id: text("agent_id"),
        action: text("action"),
        errors_only: flag(uri, "errors_only")?,
        blocked_only: flag(uri, "blocked_only")?,
        search: text("search"),
        since_ms: moment(uri, "since")?,
        until_ms: moment(uri, "until")?,
    })
}

fn rows(events: &[Event]) -> Vec<Value> {
    events.iter().map(Event::row).collect()
}

async fn events(State(traffic): State<TrafficRoutes>, uri: Uri) -> JsonResult {
    let filter = filter(&uri)?;
    let limit = number(&uri, "limit", PAGE, 1, MAX_PAGE)?;
    let offset = number(&uri, "offset", 0, 0, i64::MAX as u64)?;
    let page = traffic.ask(move |store| store.events(&filter, limit, offset)).await?;
    Ok(Json(json!({
        "events": rows(&page.events),
        "count": page.events.len(),
        "total": page.total,
        "offset": offset,
        "limit": limit,
        "has_more": page.has_more,
    })))
}

fn in_path(id: IdInPath) -> Result<String, Refusal> {
    id.map(|Path(id)| id).map_err(|_| refuse(StatusCode::BAD_REQUEST, "the id in the path cannot be read"))
}

async fn event(State(traffic): State<TrafficRoutes>, id: IdInPath) -> JsonResult {
    let id = in_path(id)?;
    let (wanted, redactor) = (id.clone(), Arc::clone(traffic.tools.redactor()));
    let found = traffic.ask(move |store| store.event(&wanted)).await?;
    let shown = echo(&id, &redactor);
    let missing = || refuse(StatusCode::NOT_FOUND, &format!("PTY event {shown} not found"));
    found.map(|event| Json(event.row())).ok_or_else(missing)
}

fn summary_fields(summary: &SessionSummary) -> Value {
    let totals = &summary.totals;
    json!({
        "session_id": summary.session_id,
        "agent_id": summary.agent_id,
        "owner_session_id": summary.owner_session_id,
        "label": summary.label,
        "cli_type": summary.cli_type,
        "event_count": totals.events,
        "error_count": totals.errors,
        "blocked_count": totals.blocked,
        "error_rate": totals.error_rate(),
        "avg_duration": summary.avg_duration,
        "total_bytes_sent": totals.sent,
        "total_bytes_received": totals.received,
        "first_event_time": iso(summary.first_ms),
        "last_event_time": iso(summary.last_ms),
        "action_breakdown": breakdown(&summary.actions),
    })
}

fn iso(millis: i64) -> String {
    iso_time_millis(std::time::UNIX_EPOCH + Duration::from_millis(millis.max(0) as u64))
}

async fn sessions(State(traffic): State<TrafficRoutes>) -> JsonResult {
    let summaries = traffic.ask(|store| store.sessions(None)).await?;
    let shown: Vec<_> = summaries.iter().map(summary_fields).collect();
    Ok(Json(json!({ "count": shown.len(), "sessions": shown })))
}

async fn session(State(traffic): State<TrafficRoutes>, uri: Uri, id: IdInPath) -> JsonResult {
    let id = in_path(id)?;
    let limit = number(&uri, "recent_limit", PAGE, 1, SMALL_PAGE)?;
    let (wanted, redactor) = (id.clone(), Arc::clone(traffic.tools.redactor()));
    let (summary, recent) = traffic
        .ask(move |store| {
            let summary = store.sessions(Some(&wanted))?.pop();
            let filter = Filter { session_id: Some(wanted), ..Filter::default() };
            Ok((summary, store.events(&filter, limit, 0)?))
        })
        .await?;
    let shown = echo(&id, &redactor);
    let summary = summary.ok_or_else(|| refuse(StatusCode::NOT_FOUND, &format!("No data for PTY session: {shown}")))?;
    Ok(Json(json!({ "summary": summary_fields(&summary), "recent_events": rows(&recent.events) })))
}

fn stats_fields(store: &Store, stats: &Stats) -> Map<String, Value> {
    let totals = &stats.totals;
    let retention = store.retention();
    let fields = json!({
        "event_count": totals.events,
        "session_count": stats.sessions,
        "error_count": totals.errors,
        "blocked_count": totals.blocked,
        "oldest_event": stats.oldest_ms.map(iso),
        "newest_event": stats.newest_ms.map(iso),
        "total_bytes_sent": totals.sent,
        "total_bytes_received": totals.received,
        "action_breakdown": breakdown(&stats.actions),
        "agent_breakdown": breakdown(&stats.agents),
        "db_path": db_path(store),
        "max_events": retention.rows,
        "retention_hours": retention.age.as_secs() / 3_600,
    });
    fields.as_object().cloned().unwrap_or_default()
}

/// Returns the location of the database, for display.
fn db_path(store: &Store) -> String {
    store.path().map_or_else(|| ":memory:".to_owned(), |path| path.display().to_string())
}

async fn stats(State(traffic): State<TrafficRoutes>) -> JsonResult {
    let fields = traffic.ask(|store| Ok(stats_fields(store, &store.stats()?))).await?;
    Ok(Json(Value::Object(fields)))
}

async fn blocked(State(traffic): State<TrafficRoutes>, uri: Uri) -> JsonResult {
    let limit = number(&uri, "limit", PAGE, 1, SMALL_PAGE)?;
    let filter = Filter { blocked_only: true, ..Filter::default() };
    let page = traffic.ask(move |store| store.events(&filter, limit, 0)).await?;
    Ok(Json(json!({ "count": page.events.len(), "events": rows(&page.events) })))
}

async fn health(State(traffic): State<TrafficRoutes>) -> Json<Value> {
    let storage = traffic.ask(|store| {
        let stats = store.stats()?;
        Ok(json!({
            "event_count": stats.totals.events,
            "session_count": stats.sessions,
            "error_count": stats.totals.errors,
            "blocked_count": stats.totals.blocked,
            "db_path": db_path(store),
        }))
    });
    let storage = storage.await;
    let counts = traffic.tools.traffic().counts();
    let listeners = traffic.listeners.count();
    let is_well = storage.is_ok() && counts.failure.is_none();
    Json(json!({
        "status": if is_well { "ok" } else { "degraded" },
        "monitoring": traffic.tools.traffic().is_on(),
        "websocket_clients": listeners,
        "ping_loop_running": listeners > 0,
        "storage": storage.unwrap_or(Value::Null),
        "recorded": counts.recorded,
        "dropped": counts.dropped,
        "failed": counts.failed,
        "reason": counts.failure,
    }))
}

async fn clean_up(State(traffic): State<TrafficRoutes>) -> JsonResult {
    let mut fields = traffic
        .ask(|store| {
            store.clean_up()?;
            Ok(stats_fields(store, &store.stats()?))
        })
        .await?;
    fields.insert("status".to_owned(), json!("ok"));
    fields.insert("message".to_owned(), json!("Cleanup completed"));
    Ok(Json(Value::Object(fields)))
}

/// Stores an event of another server or tool.
async fn emit(State(traffic): State<TrafficRoutes>, request: Request) -> JsonResult {
    let agent = name_in(request.headers(), AGENT_HEADER);
    let bytes = json_bytes(request).await?;
    let body: Map<String, Value> = serde_json::from_slice(&bytes).map_err(|_| {
        let fault = json!({ "type": "dict_type", "loc": ["body"], "msg": "Input should be an object", "input": null });
        (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({ "detail": [fault] })))
    })?;
    let redactor = traffic.tools.redactor();
    let (mut event, command) = event_from(&body, redactor)
        .map_err(|problem| refuse(StatusCode::BAD_REQUEST, &format!("Invalid event data: {problem}")))?;
    event.agent_id = event.agent_id.or(agent);
    event.id = new_id(event.at);
    let id = event.id.clone();
    let draft = Draft { is_for_gateway: false, command, ..Draft::new(event, Arc::clone(redactor)) };
    match traffic.tools.traffic().emit(draft) {
        true => Ok(Json(json!({ "ok": true, "id": id, "message": "Event stored and broadcast" }))),
        false => Err(refuse(StatusCode::INTERNAL_SERVER_ERROR, "Failed to store event")),
    }
}

/// Reads an event in its sender's notation, and what its caller gave.
fn event_from(body: &Map<String, Value>, redactor: &Redactor) -> Result<(Event, Option<GivenText>), String> {
    let text = |name: &str| match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("{name} must be a string")),
    };
    let flag = |name: &str, default: bool| match body.get(name) {
        None | Some(Value::Null) => Ok(default),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(format!("{name} must be true or false")),
    };
    let count = |name: &str| match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_u64().map(Some).ok_or_else(|| format!("{name} must be a whole number")),
    };
    let required = |name: &str| text(name)?.filter(|text| !text.is_empty()).ok_or(format!("{name} is required"));
    let masked = |name: &str| -> Result<Option<Masked>, String> { Ok(text(name)?.map(|text| redactor.mask(text))) };
    // A sender that truncated a text reports its full size.
    let sized = |name: &str, size: &str| -> Result<Option<GivenText>, String> {
        let size = count(size)?.unwrap_or(0);
        Ok(text(name)?.map(GivenText::new).map(|text| GivenText { size: text.size.max(size), ..text }))
    };
    let mut event = Event::new(required("action")?, required("session_id")?);
    event.agent_id = text("agent_id")?;
    event.owner_session_id = text("owner_session_id")?;
    let command = sized("command", "command_size")?;
    let response = sized("response", "response_size")?;
    event.response = response.map(|GivenText { text, size }| SizedText { kept: redactor.mask(text), size });
    event.duration = match body.get("duration") {
        None | Some(Value::Null) => Duration::ZERO,
        Some(value) => {
            let millis = value.as_f64().filter(|millis| (0.0..1e12).contains(millis));
            Duration::from_secs_f64(millis.ok_or("duration must be milliseconds")? / 1e3)
        }
    };
    event.timeout_ms = count("timeout_ms")?;
    event.timed_out = flag("timed_out", false)?;
    event.success = flag("success", true)?;
    event.error_code = masked("error_code")?;
    event.error_message = masked("error_message")?;
    event.blocked = flag("blocked", false)?;
    event.blocked_pattern = masked("blocked_pattern")?;
    event.session_source = text("session_source")?;
    event.cli_type = text("cli_type")?;
    event.label = text("label")?;
    event.evidence_id = masked("evidence_id")?;
    event.exit_code = body.get("exit_code").and_then(Value::as_i64);
    let others = body.iter().filter(|(name, _)| !KNOWN.contains(&name.as_str()));
    event.extra = others.map(|(name, value)| (name.clone(), value.clone())).collect();
    Ok((event, command))
}

/// Returns the caller that a request claims to be.
pub(super) fn caller(headers: &HeaderMap) -> crate::tools::Caller {
    crate::tools::Caller { agent: name_in(headers, AGENT_HEADER), ..Default::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Uri {
        format!("/v1/pty-traffic/events?{text}").parse().expect("a URI")
    }

    #[test]
    fn queries_are_read_or_refused_with_the_right_status() {
        let status = |text: &str| {
            let uri = query(text);
            let read = filter(&uri).and_then(|_| number(&uri, "limit", PAGE, 1, MAX_PAGE));
            read.map_or_else(|(status, _)| status.as_u16(), |_| 200)
        };
        for (text, expected) in [
            ("", 200),
            ("limit=500&errors_only=true&blocked_only=0&since=2026-01-01&until=2026-01-01T10:00:00+00:00", 200),
            ("since=&until=", 200),
            ("since=yesterday", 400),
            ("until=2026-02-30", 400),
            ("limit=0", 422),
            ("limit=501", 422),
            ("limit=-1", 422),
            ("limit=many", 422),
            ("errors_only=perhaps", 422),
        ] {
            assert_eq!(status(text), expected, "{text}");
        }
    }

    #[test]
    fn events_of_others_are_read_as_they_are_meant() {
        let body = json!({
            "action": "bash_output", "session_id": "s", "duration": 12.5, "success": false, "exit_code": 3, "wave_id": "w",
            "command": "abc", "command_size": 99, "timed_out": true,
        });
        let (event, command) = event_from(body.as_object().expect("an object"), &Redactor::off()).expect("an event");
        assert_eq!(event.duration, Duration::from_micros(12_500));
        assert_eq!(command.map(|text| text.size), Some(99));
        assert_eq!((event.exit_code, event.success, event.timed_out), (Some(3), false, true));
        assert_eq!(event.extra.keys().collect::<Vec<_>>(), ["wave_id"]);
        for bad in [
            json!({ "session_id": "s" }),
            json!({ "action": "a" }),
            json!({ "action": "", "session_id": "s" }),
            json!({ "action": 1, "session_id": "s" }),
            json!({ "action": "a", "session_id": "s", "duration": -1 }),
            json!({ "action": "a", "session_id": "s", "duration": 1e300 }),
            json!({ "action": "a", "session_id": "s", "success": "yes" }),
            json!({ "action": "a", "session_id": "s", "timeout_ms": "9" }),
        ] {
            assert!(event_from(bad.as_object().expect("an object"), &Redactor::off()).is_err(), "{bad}");
        }
    }
}
