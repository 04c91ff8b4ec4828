//! `POST /mcp`: one JSON-RPC message in, one answer out.
//!
//! Only this file knows that a tool that failed is a *result* flagged as an error, while a message that makes no sense
//! is a protocol error. `initialize` is not insisted on.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::body::json_bytes;
use super::{VERSION, schema};
use crate::ids::random_hex;
use crate::tools::{Caller, Reply, Tools};

/// The name in `serverInfo`.
pub(super) const SERVER_NAME: &str = "kpty";

/// The versions of the protocol whose `tools/*` we speak, the newest last.
const PROTOCOL_VERSIONS: [&str; 3] = ["2024-11-05", "2025-03-26", "2025-06-18"];

const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");
/// The longest id of a caller's session that is echoed.
const MAX_SESSION_ID: usize = 200;

/// Actions that only wait once they have begun: when the caller goes away, so does the wait.
const WAITING_ACTIONS: [&str; 4] = ["talk", "run", "wait", "read"];

/// A protocol error.
#[derive(Debug, PartialEq)]
struct Fault {
    code: i32,
    message: String,
}

impl Fault {
    fn parse() -> Self {
        Self { code: -32700, message: "Parse error: invalid JSON".to_owned() }
    }

    fn request(problem: &str) -> Self {
        Self { code: -32600, message: format!("Invalid Request: {problem}") }
    }

    fn method(name: &str) -> Self {
        Self { code: -32601, message: format!("Method not found: {name}") }
    }

    fn params(message: String) -> Self {
        Self { code: -32602, message }
    }

    fn internal() -> Self {
        Self { code: -32603, message: "Internal error; the server's log has the cause".to_owned() }
    }
}

/// What a message turned out to be.
#[derive(Debug, PartialEq)]
enum Message {
    /// Somebody waits for the answer.
    Request { id: Value, method: String, params: Map<String, Value> },
    /// Nobody waits: a notification, or an answer to something we never ask.
    OneWay,
}

/// Answers one POST.
pub(super) async fn handle(State(tools): State<Tools>, request: Request) -> Response {
    let session = session_header(request.headers());
    let mut response = match json_bytes(request).await {
        Ok(bytes) => answer(&tools, &bytes).await,
        Err(refusal) => refusal.into_response(),
    };
    if let Some(session) = session {
        response.headers_mut().insert(SESSION_HEADER, session);
    }
    response
}

/// The caller's own session id, or a new one. We keep nothing under it.
fn session_header(headers: &HeaderMap) -> Option<HeaderValue> {
    let given = headers.get(SESSION_HEADER).filter(|id| !id.is_empty() && id.len() <= MAX_SESSION_ID).cloned();
    given.or_else(|| HeaderValue::from_str(&format!("session_{}", random_hex())).ok())
}

async fn answer(tools: &Tools, bytes: &[u8]) -> Response {
    let (id, outcome) = match read_message(bytes) {
        Ok(Message::OneWay) => return StatusCode::ACCEPTED.into_response(),
        Ok(Message::Request { id, method, params }) => (id, dispatch(tools, &method, params).await),
        Err((id, fault)) => (id, Err(fault)),
    };
    let body = match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(Fault { code, message }) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
        }
    };
    Json(body).into_response()
}

/// Reads a message. A fault comes with the id it answers, null where there is none.
fn read_message(bytes: &[u8]) -> Result<Message, (Value, Fault)> {
    let value: Value = serde_json::from_slice(bytes).map_err(|_| (Value::Null, Fault::parse()))?;
    let mut message = match value {
        Value::Object(message) => message,
        Value::Array(_) => return Err((Value::Null, Fault::request("batches are not supported"))),
        _ => return Err((Value::Null, Fault::request("a message is an object"))),
    };
    let id = message.remove("id");
    let known_id = id.clone().filter(|id| id.is_string() || id.is_number());
    let fault = |problem: &str| Err((known_id.clone().unwrap_or_default(), Fault::request(problem)));
    if message.get("jsonrpc") != Some(&json!("2.0")) {
        return fault("missing jsonrpc 2.0");
    }
    let method = match message.remove("method") {
        Some(Value::String(method)) => method,
        None if message.contains_key("result") || message.contains_key("error") => return Ok(Message::OneWay),
        _ => return fault("missing method"),
    };
    if method.starts_with("notifications/") {
        return Ok(Message::OneWay);
    }
    let Some(id) = known_id.clone() else { return fault("a request needs an id, a string or a number") };
    let params = match message.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err((id, Fault::params("Invalid params: an object is expected".to_owned()))),
    };
    Ok(Message::Request { id, method, params })
}

async fn dispatch(tools: &Tools, method: &str, params: Map<String, Value>) -> Result<Value, Fault> {
    match method {
        "initialize" => Ok(initialize(&params)),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({ "tools": [schema::tool()] })),
        "tools/call" => call_tool(tools, params).await,
        _ => Err(Fault::method(method)),
    }
}

fn initialize(params: &Map<String, Value>) -> Value {
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    let newest = PROTOCOL_VERSIONS[PROTOCOL_VERSIONS.len() - 1];
    let version = PROTOCOL_VERSIONS.into_iter().find(|&version| asked == Some(version)).unwrap_or(newest);
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": { "listChanged": false } },
        "serverInfo": { "name": SERVER_NAME, "version": VERSION },
    })
}

async fn call_tool(tools: &Tools, mut params: Map<String, Value>) -> Result<Value, Fault> {
    match params.get("name") {
        Some(Value::String(name)) if name == schema::TOOL => {}
        Some(Value::String(name)) if !name.is_empty() => return Err(Fault::params(format!("Unknown tool: {name}"))),
        _ => return Err(Fault::params("Invalid params: missing tool name".to_owned())),
    }
    let arguments = match params.remove("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(Fault::params("Invalid params: arguments is an object".to_owned())),
    };
    let Reply { body, is_error } = call(tools, arguments).await?;
    let text = Value::Object(body).to_string();
    Ok(json!({ "content": [{ "type": "text", "text": text }], "isError": is_error }))
}

/// Carries out an action. A caller that goes away drops this future: a wait ends with it, but what changes something
/// is not left half done.
async fn call(tools: &Tools, arguments: Map<String, Value>) -> Result<Reply, Fault> {
    let caller = Caller::default();
    if only_waits(&arguments) {
        return Ok(tools.call(&arguments, caller).await);
    }
    let tools = tools.clone();
    let task = tokio::spawn(async move { tools.call(&arguments, caller).await });
    task.await.map_err(|error| {
        tracing::error!("an action failed: {error}");
        Fault::internal()
    })
}

fn only_waits(arguments: &Map<String, Value>) -> bool {
    let action = arguments.get("action").and_then(Value::as_str).unwrap_or_default();
    WAITING_ACTIONS.iter().any(|waiting| action.trim().eq_ignore_ascii_case(waiting))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, Ok(None)),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Ok(None)),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Ok(Some(json!(1)))),
            (r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":null}"#, Ok(Some(json!("a")))),
            ("", Err((Value::Null, -32700))),
            ("{", Err((Value::Null, -32700))),
            ("\"x\"", Err((Value::Null, -32600))),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, Err((Value::Null, -32600))),
            (r#"{"id":7,"method":"ping"}"#, Err((json!(7), -32600))),
            (r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, Err((json!(7), -32600))),
            (r#"{"jsonrpc":"2.0","id":7}"#, Err((json!(7), -32600))),
            (r#"{"jsonrpc":"2.0","id":7,"method":3}"#, Err((json!(7), -32600))),
            (r#"{"jsonrpc":"2.0","method":"ping"}"#, Err((Value::Null, -32600))),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Err((Value::Null, -32600))),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, Err((Value::Null, -32600))),
            (r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#, Err((json!(7), -32602))),
        ] {
            let got = match read_message(text.as_bytes()) {
                Ok(Message::OneWay) => Ok(None),
                Ok(Message::Request { id, .. }) => Ok(Some(id)),
                Err((id, fault)) => Err((id, fault.code)),
            };
            assert_eq!(got, expected, "{text}");
        }
    }

    #[test]
    fn a_version_that_is_known_is_answered_and_another_gets_the_newest() {
        for (asked, expected) in [
            (json!("2024-11-05"), "2024-11-05"),
            (json!("2025-03-26"), "2025-03-26"),
            (json!("2025-06-18"), "2025-06-18"),
            (json!("2099-01-01"), "2025-06-18"),
            (json!(7), "2025-06-18"),
        ] {
            let params = Map::from_iter([("protocolVersion".to_owned(), asked)]);
            assert_eq!(initialize(&params)["protocolVersion"], expected);
        }
    }

    #[test]
    fn waits_are_known_however_they_are_written() {
        for (action, expected) in [("talk", true), (" RUN ", true), ("wait", true), ("kill", false), ("", false)] {
            let arguments = Map::from_iter([("action".to_owned(), json!(action))]);
            assert_eq!(only_waits(&arguments), expected, "{action:?}");
        }
    }
}
