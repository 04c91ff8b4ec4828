//! HTTP routes through which desktops and other services register sessions and leaders. Response shapes follow the
//! existing clients: an error in the content is 200 with `ok: false` and `error`, an error in the request 4xx with
//! `detail`.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::body::{JsonResult, Refusal, json_bytes};
use super::desktop_auth::{DESKTOP_SECRET, DesktopAuth, ReplaceOutcome};
use super::mcp;
use super::query::{echo, echo_word, query_value};
use super::traffic_http::caller;
use crate::error::Error;
use crate::ids::SessionId;
use crate::model::{Owner, Role, SessionRecord, Source};
use crate::registry::{ListedSession, OwnerChange, RegisterOutcome, Registration, Registry, UnregisterOutcome};
use crate::tools::{Caller, Reply, Tools};
use kpty_guard::Redactor;

#[derive(Clone)]
struct PtyRoutes {
    registry: Registry,
    auth: Arc<DesktopAuth>,
    tools: Tools,
}

/// Session id in the path.
type IdInPath = Result<Path<String>, PathRejection>;

/// Routes of this module.
pub(super) fn routes(tools: &Tools) -> Router {
    let auth = Arc::new(DesktopAuth::new(tools.config().internal_secret.clone()));
    Router::new()
        .route("/tools", get(tool_list))
        .route("/_x9k_desktop_auth", post(desktop_auth))
        .route("/_x9k_register_leader", post(register_leader))
        .route("/_x9k_deregister_leader", post(deregister_leader))
        .route("/_x9k_registered_leaders", get(registered_leaders))
        .route("/v1/pty/register", post(register))
        .route("/v1/pty/unregister/{id}", delete(unregister))
        .route("/v1/pty/sessions", get(sessions))
        .route("/v1/pty/sessions/{id}", get(session))
        .route("/v1/pty/reset", delete(reset))
        .route("/v1/pty/heartbeat", post(heartbeat))
        .route("/v1/pty/heartbeat/{id}", post(heartbeat_of))
        .route("/v1/pty/update-ownership", post(update_ownership))
        .method_not_allowed_fallback(async || refuse(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed"))
        .with_state(PtyRoutes { registry: tools.registry().clone(), auth, tools: tools.clone() })
}

fn refuse(status: StatusCode, why: &str) -> Refusal {
    (status, Json(json!({ "detail": why })))
}

/// Rejects a request without a required part.
fn missing(place: &str, name: &str) -> Refusal {
    let fault = json!({ "type": "missing", "loc": [place, name], "msg": "Field required", "input": null });
    (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({ "detail": [fault] })))
}

/// Reports an error in the content.
fn fault(error: impl Into<String>) -> Json<Value> {
    // The message may repeat client input.
    let error: String = error.into();
    Json(json!({ "ok": false, "error": Redactor::default().redact(&error) }))
}

fn not_found(pty: &PtyRoutes, id: &str) -> String {
    format!("Session not found: {}", echo(id, pty.tools.redactor()))
}

fn in_path(id: IdInPath) -> Result<String, Refusal> {
    id.map(|Path(id)| id).map_err(|_| refuse(StatusCode::BAD_REQUEST, "the session id in the path cannot be read"))
}

impl PtyRoutes {
    fn desktop_only(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        match self.auth.is_desktop(headers) {
            true => Ok(()),
            false => Err(refuse(StatusCode::FORBIDDEN, "Desktop authentication required")),
        }
    }

    /// Records a route's effect in the traffic log, like an action.
    fn record(&self, action: &str, caller: &Caller, began: Instant, mut given: Map<String, Value>, answer: &Value) {
        given.insert("action".to_owned(), json!(action));
        let body = answer.as_object().cloned().unwrap_or_default();
        self.tools.record(&given, caller, began, &Reply::of_route(body, self.tools.redactor()));
    }
}

async fn tool_list(State(pty): State<PtyRoutes>) -> Json<Value> {
    Json(json!({ "tools": mcp::tool_definitions(pty.tools.config().tools) }))
}

async fn desktop_auth(State(pty): State<PtyRoutes>, request: Request) -> JsonResult {
    let (parts, _) = request.into_parts();
    let Some(secret) = parts.headers.get(&DESKTOP_SECRET) else {
        return Err(missing("header", DESKTOP_SECRET.as_str()));
    };
    match pty.auth.replace(secret.as_bytes(), &parts) {
        ReplaceOutcome::Taken => Ok(Json(json!({ "ok": true, "message": "Desktop secret registered" }))),
        ReplaceOutcome::Malformed => Err(refuse(StatusCode::BAD_REQUEST, "Invalid secret format")),
        ReplaceOutcome::Refused => Err(refuse(StatusCode::FORBIDDEN, "Desktop authentication required")),
    }
}

async fn register_leader(State(pty): State<PtyRoutes>, uri: Uri, headers: HeaderMap) -> JsonResult {
    pty.desktop_only(&headers)?;
    let agent_id = agent_in(&uri)?;
    Ok(match pty.registry.register_leader(&agent_id) {
        Ok(()) => Json(json!({ "ok": true, "agent_id": agent_id, "message": "Leader registered" })),
        Err(error) => fault(error.to_string()),
    })
}

async fn deregister_leader(State(pty): State<PtyRoutes>, uri: Uri, headers: HeaderMap) -> JsonResult {
    pty.desktop_only(&headers)?;
    let agent_id = agent_in(&uri)?;
    pty.registry.deregister_leader(&agent_id);
    Ok(Json(json!({ "ok": true, "agent_id": agent_id, "message": "Leader deregistered" })))
}

fn agent_in(uri: &Uri) -> Result<String, Refusal> {
    query_value(uri, "agent_id").filter(|agent| !agent.is_empty()).ok_or_else(|| missing("query", "agent_id"))
}

async fn registered_leaders(State(pty): State<PtyRoutes>) -> Json<Value> {
    let leaders = pty.registry.registered_leaders();
    Json(json!({ "ok": true, "count": leaders.len(), "leaders": leaders }))
}

/// Reads an object from the body; invalid JSON is an error in the content, as clients expect.
async fn object(request: Request) -> Result<Result<Map<String, Value>, Json<Value>>, Refusal> {
    let bytes = json_bytes(request).await?;
    Ok(serde_json::from_slice(&bytes).map_err(|_| fault("Invalid JSON body")))
}

async fn register(State(pty): State<PtyRoutes>, request: Request) -> JsonResult {
    pty.desktop_only(request.headers())?;
    let (caller, began) = (caller(request.headers()), Instant::now());
    let body = match object(request).await? {
        Ok(body) => body,
        Err(fault) => return Ok(fault),
    };
    let answer = register_from(&pty, &body).unwrap_or_else(fault);
    pty.record("register", &caller, began, body, &answer);
    Ok(answer)
}

fn register_from(pty: &PtyRoutes, body: &Map<String, Value>) -> Result<Json<Value>, String> {
    let registry = &pty.registry;
    let session_id = text(body, "session_id")?.ok_or("session_id is required")?;
    let source = text(body, "source")?.unwrap_or_else(|| Source::Desktop.as_str().to_owned());
    let source =
        Source::from_name(&source).ok_or_else(|| format!("Invalid source: {source}. Must be 'local' or 'desktop'"))?;
    let desktop_url = text(body, "desktop_url")?;
    if source == Source::Desktop && desktop_url.is_none() {
        return Err("desktop_url is required for source='desktop'".to_owned());
    }
    let owner = owner(body, pty.tools.redactor()).map_err(|problem| match problem {
        BadOwner::Role(role) => format!("Invalid owner_role: {role}. Must be 'leader' or 'worker'"),
        BadOwner::Other(problem) => problem,
    })?;
    let (cli_type, pid) = (text(body, "cli_type")?, pid(body)?);
    if source == Source::Local {
        update_local(pty, &session_id, owner)?;
        return Ok(Json(json!({ "ok": true, "updated": true })));
    }
    let desktop_url = desktop_url.unwrap_or_default();
    let given = Registration { session_id, cli_type, pid, desktop_url, owner };
    match registry.register_desktop(given).map_err(|error| error.to_string())? {
        RegisterOutcome::Created => Ok(Json(json!({ "ok": true, "created": true }))),
        RegisterOutcome::Updated { .. } => Ok(Json(json!({ "ok": true, "updated": true }))),
    }
}

/// Updates the owner of a local session. Only `create` makes one.
fn update_local(pty: &PtyRoutes, session_id: &str, owner: Owner) -> Result<(), String> {
    let registry = &pty.registry;
    let id = SessionId::named(session_id);
    let is_local = registry.listed(&id).is_ok_and(|listed| listed.record.source == Source::Local);
    if !is_local {
        return Err(format!("{}. source='local' is for a session that this server runs", not_found(pty, session_id)));
    }
    registry.change_owner(&id, &OwnerChange::Update(owner)).map(drop).map_err(|error| error.to_string())
}

async fn unregister(State(pty): State<PtyRoutes>, uri: Uri, headers: HeaderMap, id: IdInPath) -> JsonResult {
    pty.desktop_only(&headers)?;
    let id = in_path(id)?;
    let force = query_value(&uri, "force").is_some_and(|word| ["true", "1", "yes"].contains(&word.as_str()));
    let began = Instant::now();
    let answer = match pty.registry.unregister(&SessionId::named(&id), force) {
        UnregisterOutcome::Done => Json(json!({ "ok": true })),
        UnregisterOutcome::Unknown => fault(not_found(&pty, &id)),
        UnregisterOutcome::IsLocal => fault(format!("{id} is a local session: use action 'kill' to end it")),
        UnregisterOutcome::LeaderProtected => Json(json!({
            "ok": false,
            "error": "LEADER_PROTECTED",
            "message": "Leader session cannot be unregistered programmatically",
        })),
    };
    let given = Map::from_iter([("session_id".to_owned(), json!(id)), ("force".to_owned(), json!(force))]);
    pty.record("unregister", &caller(&headers), began, given, &answer);
    Ok(answer)
}

/// A session in a reply.
#[derive(Serialize)]
struct SessionReply {
    #[serde(flatten)]
    record: SessionRecord,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stale: bool,
}

impl From<ListedSession> for SessionReply {
    fn from(listed: ListedSession) -> Self {
        Self { record: listed.record, stale: listed.is_stale }
    }
}

async fn sessions(State(pty): State<PtyRoutes>, uri: Uri) -> Json<Value> {
    let all: Vec<SessionReply> = pty.registry.listing().into_iter().map(SessionReply::from).collect();
    let of = |source| all.iter().filter(|shown| shown.record.source == source).count();
    let Some(filter) = query_value(&uri, "source").filter(|source| !source.is_empty()) else {
        let by_source = json!({ "local": of(Source::Local), "desktop": of(Source::Desktop) });
        return Json(json!({ "sessions": all, "count": all.len(), "by_source": by_source }));
    };
    let kept: Vec<_> = all.iter().filter(|shown| shown.record.source.as_str() == filter).collect();
    let filter = echo_word(&filter);
    Json(json!({ "sessions": kept, "count": kept.len(), "source_filter": filter }))
}

async fn session(State(pty): State<PtyRoutes>, id: IdInPath) -> JsonResult {
    let id = in_path(id)?;
    Ok(match pty.registry.listed(&SessionId::named(&id)) {
        Ok(listed) => Json(json!({ "ok": true, "session": SessionReply::from(listed) })),
        Err(_) => fault(not_found(&pty, &id)),
    })
}

async fn reset(State(pty): State<PtyRoutes>, headers: HeaderMap) -> JsonResult {
    pty.desktop_only(&headers)?;
    let began = Instant::now();
    let answer = Json(json!({ "ok": true, "cleared_count": pty.registry.reset() }));
    pty.record("reset", &caller(&headers), began, Map::new(), &answer);
    Ok(answer)
}

async fn heartbeat_of(State(pty): State<PtyRoutes>, id: IdInPath) -> JsonResult {
    Ok(beat(&pty, &in_path(id)?))
}

async fn heartbeat(State(pty): State<PtyRoutes>, request: Request) -> JsonResult {
    Ok(match object(request).await? {
        Err(fault) => fault,
        Ok(body) => match text(&body, "session_id") {
            Ok(Some(id)) => beat(&pty, &id),
            Ok(None) => fault("session_id is required"),
            Err(problem) => fault(problem),
        },
    })
}

fn beat(pty: &PtyRoutes, id: &str) -> Json<Value> {
    match pty.registry.heartbeat(&SessionId::named(id)) {
        true => Json(json!({ "ok": true })),
        false => fault(not_found(pty, id)),
    }
}

async fn update_ownership(State(pty): State<PtyRoutes>, request: Request) -> JsonResult {
    let headers = request.headers();
    if !pty.auth.is_desktop(headers) && !pty.auth.is_internal(headers) {
        return Err(refuse(StatusCode::FORBIDDEN, "Desktop or internal service authentication required"));
    }
    let (caller, began) = (caller(headers), Instant::now());
    let body = match object(request).await? {
        Ok(body) => body,
        Err(fault) => return Ok(fault),
    };
    let answer = update_owner(&pty, &body).unwrap_or_else(fault);
    pty.record("update_ownership", &caller, began, body, &answer);
    Ok(answer)
}

fn update_owner(pty: &PtyRoutes, body: &Map<String, Value>) -> Result<Json<Value>, String> {
    let registry = &pty.registry;
    let id = text(body, "session_id")?.ok_or("session_id is required")?;
    let owner = owner(body, pty.tools.redactor()).map_err(|problem| match problem {
        BadOwner::Role(role) => format!("Invalid owner_role: {role}"),
        BadOwner::Other(problem) => problem,
    })?;
    match registry.change_owner(&SessionId::named(&id), &OwnerChange::Update(owner)) {
        Ok(record) => Ok(Json(json!({ "ok": true, "session": record }))),
        Err(Error::SessionNotFound(_) | Error::Exited(_)) => {
            Ok(Json(json!({ "ok": false, "error": not_found(pty, &id), "error_code": "NOT_FOUND" })))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Why an owner is invalid.
enum BadOwner {
    /// Unknown role; each route has its own message.
    Role(String),
    Other(String),
}

impl From<String> for BadOwner {
    fn from(problem: String) -> Self {
        Self::Other(problem)
    }
}

/// Reads the owner of a body, completely before any of it is used. A label is shown everywhere, so it is redacted
/// first.
fn owner(body: &Map<String, Value>, redactor: &Redactor) -> Result<Owner, BadOwner> {
    let role = match text(body, "owner_role")? {
        None => None,
        Some(role) => Some(Role::from_name(&role).ok_or(BadOwner::Role(role))?),
    };
    Ok(Owner {
        agent_id: text(body, "owner_agent_id")?,
        session_id: text(body, "owner_session_id")?,
        role,
        label: text(body, "label")?.map(|label| redactor.redact(&label).into_owned()),
        claude_code_session_id: text(body, "claude_code_session_id")?,
    })
}

/// Reads a string; null and the empty string count as absent.
fn text(body: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        Some(_) => Err(format!("{name} must be a string")),
    }
}

/// Reads a process id; 0 if absent.
fn pid(body: &Map<String, Value>) -> Result<u32, String> {
    match body.get("pid") {
        None | Some(Value::Null) => Ok(0),
        Some(value) => {
            let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
            number.ok_or_else(|| "pid must be the number of a process".to_owned())
        }
    }
}
