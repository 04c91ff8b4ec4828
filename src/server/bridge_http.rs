//! Routes of a desktop app's bridge for this server's sessions: another kpty or any other bridge client can use them
//! like those of a desktop. Response shapes follow the existing clients, with additions that a desktop app does not
//! have: `sentinel_found`, `exit_code`, numbered lines, shell readiness, and `/pty/command`, which reports an earlier
//! command. Unlike an app's bridge, it rejects web pages.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::routing::{get, post};
use axum::{Json, Router};
use kpty_guard::Masked;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

use super::body::{JsonResult, Refusal, json_bytes};
use super::query::{echo, echo_word, query_value};
use crate::config::ScreenAccess;
use crate::error::{Error, Result as OurResult};
use crate::model::{ExitInfo, Role};
use crate::terminal::local::Session;
use crate::tools::{
    BufferMode, BufferRequest, Caller, CommandRequest, DEFAULT_TOOL, MAX_BUFFER_CHARS, MAX_BUFFER_LINES, PIECE_LINES,
    Reply, Tools, WhichCommand,
};

/// Number of ports tried for a bridge, from the requested one upwards.
const PORTS_TRIED: u16 = 50;
/// Default number of lines.
const BUFFER_LINES: u64 = 40;
/// Maximum wait of `read`, as in a desktop app.
const LONGEST_READ_MS: u64 = 5_000;
/// Maximum characters of a command's output, the same as for `talk`.
const TALK_CHARS: usize = 200_000;
/// Maximum wait for the end of a command in one request.
const LONGEST_WAIT_MS: u64 = 30_000;
/// Number of characters in which desktop apps compare names.
const SHORT_NAME: usize = 16;

/// Binds the requested port, or the next free one.
pub(super) async fn listen(host: IpAddr, wanted: u16) -> OurResult<TcpListener> {
    let last = wanted.saturating_add(PORTS_TRIED - 1);
    let mut problem = None;
    for port in wanted..=last {
        match TcpListener::bind(SocketAddr::new(host, port)).await {
            Ok(listener) => return Ok(listener),
            Err(cause) if cause.kind() == ErrorKind::AddrInUse => problem = Some(cause),
            Err(cause) => {
                problem = Some(cause);
                break;
            }
        }
    }
    let cause = problem.map(|cause| cause.to_string()).unwrap_or_default();
    Err(Error::Server(format!(
        "cannot listen on a port from {wanted} to {last} for the bridge: {cause}; KPTY_BRIDGE_PORT (KURORYUU_PTY_BRIDGE_PORT) chooses \
         another one"
    )))
}

/// Routes of this module.
pub(super) fn routes(tools: &Tools) -> Router {
    Router::new()
        .route("/pty/action", post(action))
        .route("/pty/talk", post(talk))
        .route("/pty/command", post(command))
        .route("/pty/write", post(write))
        .route("/pty/read", post(read))
        .route("/pty/buffer", post(buffer))
        .route("/pty/list", get(list))
        .route("/pty/is-leader", get(is_leader))
        .method_not_allowed_fallback(not_found)
        .with_state(tools.clone())
}

/// Unknown route.
pub(super) async fn not_found() -> Refusal {
    refuse(StatusCode::NOT_FOUND, "Not found")
}

fn refuse(status: StatusCode, error: impl Into<String>) -> Refusal {
    (status, Json(json!({ "ok": false, "error": error.into() })))
}

/// Body of a request.
struct BridgeRequest(Map<String, Value>);

impl BridgeRequest {
    async fn read(request: Request) -> Result<Self, Refusal> {
        let bytes = json_bytes(request).await?;
        let object = serde_json::from_slice(&bytes);
        object.map(Self).map_err(|_| refuse(StatusCode::BAD_REQUEST, "Error: Invalid JSON body"))
    }

    /// Returns a string field that is required and not empty.
    fn required(&self, name: &str) -> Result<&str, Refusal> {
        match self.0.get(name) {
            Some(Value::String(text)) if !text.is_empty() => Ok(text),
            Some(Value::String(_) | Value::Null) | None => {
                Err(refuse(StatusCode::BAD_REQUEST, format!("{name} is required")))
            }
            Some(_) => Err(refuse(StatusCode::BAD_REQUEST, format!("{name} must be a string"))),
        }
    }

    /// Returns a number field; 0 and other types count as absent, as in JavaScript.
    fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Value::as_u64).filter(|&number| number > 0)
    }

    /// Returns the session of the request.
    fn session(&self, tools: &Tools) -> Result<Session, Refusal> {
        let id = self.required("session_id")?;
        tools.own_session(id).map_err(|_| {
            let error = format!("Session not found: {}", echo(id, tools.redactor()));
            let body = json!({ "ok": false, "error": error, "error_code": "PTY_SESSION_NOT_FOUND" });
            (StatusCode::NOT_FOUND, Json(body))
        })
    }
}

/// Converts the reply of a failed action to an error response with a matching status.
fn failed(reply: Reply) -> Refusal {
    let status = match reply.error_code().unwrap_or_default() {
        "PTY_SESSION_NOT_FOUND" => StatusCode::NOT_FOUND,
        "DANGEROUS_COMMAND_BLOCKED" | "TERM_READ_DISABLED" => StatusCode::FORBIDDEN,
        "MISSING_PARAM" | "INVALID_PARAM" => StatusCode::BAD_REQUEST,
        "PTY_BUSY" | "PTY_SECRET_PROMPT" | "PTY_INCOMPLETE_COMMAND" => StatusCode::CONFLICT,
        "PTY_PROCESS_EXITED" => StatusCode::GONE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, Json(Value::Object(reply.body)))
}

/// Converts the reply of an action to a response.
fn respond(reply: Reply) -> JsonResult {
    match reply.is_error {
        true => Err(failed(reply)),
        false => Ok(Json(Value::Object(reply.body))),
    }
}

/// Runs an action that another kpty forwards on a local session and returns its reply unchanged. Sessions that this
/// server reaches elsewhere are excluded, so two servers that register with each other cannot forward in a cycle.
async fn action(State(tools): State<Tools>, request: Request) -> JsonResult {
    let mut asked = BridgeRequest::read(request).await?;
    let about = asked.0.remove("caller").unwrap_or_default();
    let Some(Value::Object(arguments)) = asked.0.remove("arguments") else {
        return Err(refuse(StatusCode::BAD_REQUEST, "arguments is required"));
    };
    let asked = BridgeRequest(arguments);
    let name = asked.required("action")?;
    if !DEFAULT_TOOL.action(name).is_some_and(|action| action.forwarded) {
        return Err(refuse(StatusCode::BAD_REQUEST, format!("{} is not forwarded", echo_word(name))));
    }
    asked.session(&tools)?;
    let agent = about["agent"].as_str().map(str::to_owned);
    let can_show_progress = about["shows_progress"] == true;
    let reply = tools.call(&asked.0, Caller { agent, can_show_progress, ..caller() }).await;
    Ok(Json(Value::Object(reply.body)))
}

async fn talk(State(tools): State<Tools>, request: Request) -> JsonResult {
    let asked = BridgeRequest::read(request).await?;
    let (id, command) = (asked.required("session_id")?, asked.required("command")?);
    asked.session(&tools)?;
    let mut call = json!({ "action": "talk", "session_id": id, "command": command, "max_chars": TALK_CHARS });
    for name in ["sentinel", "timeout_ms", "on_timeout", "raw"] {
        let given = asked.0.get(name).filter(|value| **value != json!("") && **value != json!(0));
        call[name] = given.cloned().unwrap_or_default();
    }
    let reply = called(&tools, &call).await;
    let mut body = reply.body.clone();
    body.insert("sentinel_found".to_owned(), json!(!reply.is_error));
    if reply.error_code() == Some("PTY_TIMEOUT") {
        // Clients expect a timeout as a normal response.
        let details = &reply.body["details"];
        let error = format!("Timeout after {}ms", details["timeout_ms"]);
        for (name, value) in [
            ("error", json!(error)),
            ("output", details["partial_output"].clone()),
            ("raw_output", details["partial_output"].clone()),
            ("sentinel", asked.0.get("sentinel").cloned().unwrap_or_default()),
        ] {
            body.insert(name.to_owned(), value);
        }
        return Ok(Json(Value::Object(body)));
    }
    respond(Reply { body, ..reply })
}

/// Reports an earlier `talk` command and waits for its end as long as requested. Finds it by its id, or by its sentinel
/// if the client never received the id.
async fn command(State(tools): State<Tools>, request: Request) -> JsonResult {
    let asked = BridgeRequest::read(request).await?;
    let session = asked.session(&tools)?;
    let text = |name: &str| asked.0.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (name, which) = match (text("command_id"), text("sentinel")) {
        (Some(id), _) => (id, id.parse().map(WhichCommand::Numbered).ok()),
        (None, Some(token)) => (token, Some(WhichCommand::Named(token.to_owned()))),
        (None, None) => return Err(refuse(StatusCode::BAD_REQUEST, "command_id or sentinel is required")),
    };
    let unknown = || {
        let error = format!("Command not found: {}", echo(name, tools.redactor()));
        let body = json!({ "ok": false, "error": error, "error_code": "INVALID_PARAM" });
        (StatusCode::NOT_FOUND, Json(body))
    };
    let timeout = Duration::from_millis(asked.number("timeout_ms").unwrap_or(0).min(LONGEST_WAIT_MS));
    let max_chars = asked.number("max_chars").map_or(MAX_BUFFER_CHARS, |most| most as usize).min(MAX_BUFFER_CHARS);
    let request = CommandRequest { which: which.ok_or_else(unknown)?, timeout, max_chars };
    let result = tools.bridge_command(&session, &request).await.map_err(|error| failed(error.into()))?;
    let result = result.ok_or_else(unknown)?;
    let (end, output) = (result.command.end.as_ref(), result.output);
    Ok(Json(json!({
        "ok": true,
        "command_id": result.command.id.to_string(),
        "command": result.command.line(&session.redactor()),
        "running": end.is_none(),
        "sentinel_found": end.is_some(),
        "completed_by": end.map(|end| end.by.as_str()),
        "exit_code": end.and_then(|end| end.status),
        "duration_ms": result.command.age().as_millis() as u64,
        "output": output.text,
        "truncated": output.truncated,
        "omitted_chars": output.omitted_chars,
        "omitted_lines": output.omitted_lines,
        "evicted_lines": output.evicted_lines,
        "lines": [output.lines.0, output.lines.1],
        "session_alive": result.exit.is_none(),
        "signal": match result.exit {
            Some(ExitInfo::Signal(signal)) => Some(signal),
            _ => None,
        },
    })))
}

/// Bridge clients do not identify themselves.
fn caller() -> Caller {
    Caller { client: Some("bridge".to_owned()), ..Caller::default() }
}

async fn called(tools: &Tools, call: &Value) -> Reply {
    match call {
        Value::Object(arguments) => tools.call(arguments, caller()).await,
        _ => tools.call(&Map::new(), caller()).await,
    }
}

async fn write(State(tools): State<Tools>, request: Request) -> JsonResult {
    let asked = BridgeRequest::read(request).await?;
    asked.required("session_id")?;
    let data = asked.required("data")?;
    let session = asked.session(&tools)?;
    respond(tools.bridge_write(&session, data, &caller()).await)
}

/// Returns the kept raw output; waits only while there is none.
async fn read(State(tools): State<Tools>, request: Request) -> JsonResult {
    let asked = BridgeRequest::read(request).await?;
    asked.session(&tools)?;
    let timeout = asked.number("timeout_ms").unwrap_or(LONGEST_READ_MS).min(LONGEST_READ_MS);
    let (id, all) = (asked.required("session_id")?, tools.config().ring_bytes);
    let call = json!({ "action": "read", "session_id": id, "max_bytes": all, "timeout_ms": timeout });
    respond(called(&tools, &call).await)
}

async fn buffer(State(tools): State<Tools>, request: Request) -> JsonResult {
    let asked = BridgeRequest::read(request).await?;
    let access = tools.config().screen_access;
    if access == ScreenAccess::Off {
        let (status, Json(mut body)) = failed(Error::TermReadDisabled.into());
        body["access_mode"] = json!(access.as_str());
        return Err((status, Json(body)));
    }
    let session = asked.session(&tools)?;
    let mode = match asked.0.get("mode").and_then(Value::as_str).unwrap_or("tail") {
        "tail" | "" => BufferMode::Tail,
        "viewport" => BufferMode::Viewport,
        "delta" => BufferMode::Delta { since: asked.0.get("marker_id").and_then(Value::as_u64) },
        other => {
            let other = echo_word(other);
            let error = format!("Invalid mode: {other}. Must be 'tail', 'viewport', or 'delta'");
            return Err(refuse(StatusCode::BAD_REQUEST, error));
        }
    };
    let max_lines = asked.0.get("max_lines").and_then(Value::as_u64).unwrap_or(BUFFER_LINES);
    let max_lines = usize::try_from(max_lines).unwrap_or(MAX_BUFFER_LINES);
    let merge_wrapped = asked.0.get("merge_wrapped").and_then(Value::as_bool).unwrap_or(true);
    let request = BufferRequest { mode, max_lines, merge_wrapped };
    let is_long = max_lines as u64 > PIECE_LINES || matches!(mode, BufferMode::Delta { .. });
    let read = match is_long {
        // Reading takes a while, so it does not run on an async worker thread.
        true => tokio::task::spawn_blocking(move || tools.bridge_buffer(&session, &request))
            .await
            .unwrap_or_else(|error| Err(Error::NotAvailable(error.to_string()))),
        false => tools.bridge_buffer(&session, &request),
    };
    let read = read.map_err(|error| failed(error.into()))?;
    let mut body = json!({
        "ok": true,
        "text": Masked::join(read.lines.iter().map(Masked::as_masked), "\n"),
        "lines": read.lines,
        "line_numbers": read.line_numbers,
        "rows": read.size.rows(),
        "cols": read.size.cols(),
        "truncated": read.truncated,
        "session_alive": read.is_alive,
        "at_prompt": read.is_at_prompt,
        "access_mode": access.as_str(),
    });
    let marker = read.marker.unzip();
    for (snake, camel, value) in [
        ("buffer_type", "bufferType", json!(read.buffer)),
        ("cursor_line", "cursorLine", json!(read.cursor_row)),
        ("viewport_y", "viewportY", json!(read.top_row)),
        ("marker_id", "markerId", json!(marker.0)),
        ("marker_line", "markerLine", json!(marker.1)),
        ("marker_disposed", "markerDisposed", json!(read.marker_disposed)),
    ] {
        body[snake] = value.clone();
        body[camel] = value;
    }
    Ok(Json(body))
}

/// Lists live sessions; a client treats a missing session as ended.
async fn list(State(tools): State<Tools>) -> JsonResult {
    let registry = tools.registry().clone();
    // Reads each session's directory from the system, so it does not run on an async worker thread.
    let look = move || -> Vec<Value> {
        let live = registry.list().into_iter().filter(|session| session.exit().is_none());
        live.map(|session| {
            let info = session.info();
            json!({
                "session_id": info.id.as_str(), "internal_id": info.id.as_str(), "pid": info.pid,
                "cols": info.size.cols(), "rows": info.size.rows(), "cwd": info.cwd,
                "alive": true,
            })
        })
        .collect()
    };
    let sessions = tokio::task::spawn_blocking(look).await;
    let sessions = sessions.map_err(|error| refuse(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(Json(json!({ "ok": true, "count": sessions.len(), "sessions": sessions })))
}

/// Returns whether a session is a leader's; unknown when no leader is registered.
async fn is_leader(State(tools): State<Tools>, uri: Uri) -> JsonResult {
    let asked = query_value(&uri, "session_id").filter(|id| !id.is_empty());
    let asked = asked.ok_or_else(|| refuse(StatusCode::BAD_REQUEST, "session_id query param required"))?;
    let registry = tools.registry();
    let leads = |session: &Session| {
        let is_alive = session.exit().is_none();
        is_alive
            && session.with_owner(|owner| {
                let is_registered = owner.agent_id.as_deref().is_some_and(|agent| registry.is_leader(agent));
                owner.role == Some(Role::Leader) || is_registered
            })
    };
    let leaders: Vec<String> = registry.list().iter().filter(|s| leads(s)).map(|s| s.id().to_string()).collect();
    let is_asked = |leader: &&String| short_name(leader) == short_name(&asked);
    let found = leaders.iter().find(is_asked);
    let asked = echo(&asked, tools.redactor());
    Ok(Json(json!({
        "ok": true,
        "session_id": asked,
        "is_leader": (!leaders.is_empty()).then_some(found.is_some()),
        "leader_terminal_id": found.or(leaders.first()),
    })))
}

/// Returns a name in the form in which desktop apps compare it.
fn short_name(id: &str) -> String {
    id.chars().filter(|&c| c != '-').take(SHORT_NAME).collect()
}
