//! The way in for HTTP: clients that speak the protocol go to one service, clients that only speak JSON to another.
//!
//! A client of the protocol names both media types in `Accept`; it gets sessions, streams and all errors as the
//! protocol has them, untouched. Anybody else is *plain*: `POST` one JSON-RPC message, get one JSON message back; no
//! handshake, no session, nothing to be kept alive. What a plain client leaves out is supplied, and its errors come as
//! JSON-RPC with status 200.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::engine::Block;
use super::live::{Live, MAX_LIVE};
use super::sessions::Sessions;
use super::{AGENT_HEADER, CLIENT_HEADER, SHOWS_PROGRESS_HEADER};
use crate::ids::passing_hex;
use crate::server::body::{MAX_BODY_BYTES, is_json, json_of, refusal};
use crate::server::connections::Answers;
use crate::traffic::clean_name;

/// The header with the id of a client session.
pub(super) const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");
/// The longest id of a client session that is echoed.
const MAX_SESSION_ID: usize = 200;
/// What a plain client is taken to speak if it does not say.
const OLDEST_VERSION: &str = "2024-11-05";
/// The key by which a message of the stateless protocol is known.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// Headers of the protocol; a plain client's do not count, because they may contradict its message.
const PROTOCOL_HEADERS: [&str; 3] = ["mcp-protocol-version", "mcp-method", "mcp-name"];
/// After so long without a word a client session is forgotten in memory, not on disk. It must be longer than any call:
/// a silent call does not count as a word, and would be cut off.
const IDLE_SESSION: Duration = Duration::from_secs(24 * 3_600);

/// The mark of a request of a plain client.
#[derive(Clone, Debug)]
pub(crate) struct Plain {
    /// The client's session.
    pub(super) session: Option<String>,
    /// See [`SHOWS_PROGRESS_HEADER`].
    pub(super) shows_progress: bool,
    /// Who it says it is.
    pub(super) agent: Option<String>,
    /// The program whose calls it passes on.
    pub(super) client: Option<String>,
}

/// What a header names, made harmless.
pub(crate) fn name_in(headers: &HeaderMap, header: &str) -> Option<String> {
    headers.get(header).and_then(|value| clean_name(&String::from_utf8_lossy(value.as_bytes())))
}

/// How a client and its session are named together.
pub(super) fn client_name(client: Option<&str>, session: Option<&str>) -> Option<String> {
    match (client, session) {
        (None, None) => None,
        (client, None) => client.and_then(clean_name),
        (client, Some(session)) => clean_name(&format!("{}:{session}", client.unwrap_or("mcp"))),
    }
}

/// Both services over one handler.
pub(crate) struct Gate<H> {
    handler: H,
    strict: StreamableHttpService<H, LocalSessionManager>,
    plain: StreamableHttpService<H, NeverSessionManager>,
    live: Arc<Live>,
    stopping: CancellationToken,
}

/// A handler that answers plain calls of tools itself. The library would make a service, a channel and two tasks for
/// each of them, which takes longer than most calls.
pub(crate) trait AnswersPlainCalls {
    /// The result of `tools/call`; nothing when the library is to answer.
    fn answer_plain(
        &self,
        params: &Map<String, Value>,
        plain: &Plain,
    ) -> impl Future<Output = Option<PlainResult>> + Send;
}

/// The result of a tool, as it stands on the wire.
#[derive(Serialize)]
pub(crate) struct PlainResult {
    pub(super) content: Vec<Block>,
    #[serde(rename = "isError")]
    pub(super) is_error: bool,
}

impl PlainResult {
    /// About how many bytes its texts take.
    fn size(&self) -> usize {
        let sizes = self.content.iter().map(|block| match block {
            Block::Text { text } => text.len(),
            Block::Image { data, .. } => data.len(),
            Block::Resource { resource } => resource.text.len(),
        });
        sizes.sum()
    }
}

/// A message with a result, as it stands on the wire.
#[derive(Serialize)]
struct PlainAnswer<'a, R> {
    jsonrpc: &'static str,
    id: &'a Value,
    result: R,
}

impl<H: ServerHandler + AnswersPlainCalls + Clone + Sync> Gate<H> {
    /// Client sessions are kept in the folder, if there is one. A folder that cannot be used costs that and no more.
    pub(super) fn new(handler: H, sessions_folder: Option<PathBuf>) -> Self {
        let sessions = sessions_folder.and_then(|folder| match Sessions::open(folder) {
            Ok(sessions) => Some(sessions),
            Err(error) => {
                tracing::warn!("client sessions will not survive a restart: {error}");
                None
            }
        });
        let stopping = CancellationToken::new();
        // Names and origins are checked for all routes before a request comes here.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_json_response(true)
            .with_max_request_body_bytes(MAX_BODY_BYTES)
            .with_cancellation_token(stopping.clone());
        let mut strict = config.clone().with_legacy_session_mode(true);
        strict.session_store = sessions.map(|sessions| Arc::new(sessions) as _);
        let plain = config.with_legacy_session_mode(false);
        let handlers = |handler: &H| {
            let handler = handler.clone();
            move || Ok(handler.clone())
        };
        let manager = Arc::new(session_manager());
        Self {
            live: Arc::new(Live::new(manager.clone(), MAX_LIVE)),
            strict: StreamableHttpService::new(handlers(&handler), manager, strict),
            plain: StreamableHttpService::new(handlers(&handler), Arc::new(NeverSessionManager::default()), plain),
            handler,
            stopping,
        }
    }

    /// Ends all streams: nobody is going to say anything more.
    pub(crate) fn stop(&self) {
        self.stopping.cancel();
    }

    async fn handle(&self, request: Request) -> Response {
        if request.method() == Method::POST && !request.body().is_end_stream() && !is_json(request.headers()) {
            return refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json")
                .into_response();
        }
        if request.method() != Method::POST || accepts_streams(request.headers()) {
            return self.handle_strict(request).await;
        }
        let session = session_header(request.headers());
        let mut response = self.handle_plain(request, session.as_ref()).await;
        if let Some(session) = session {
            response.headers_mut().insert(SESSION_HEADER, session);
        }
        response
    }

    async fn handle_strict(&self, request: Request) -> Response {
        let given = request.headers().get(SESSION_HEADER).cloned();
        let response = self.strict.handle(request).await.map(Body::new);
        let session = response.headers().get(SESSION_HEADER).cloned().or(given);
        if response.status().is_success()
            && let Some(session) = session.as_ref().and_then(|id| id.to_str().ok())
        {
            self.live.note(session).await;
        }
        response
    }

    async fn handle_plain(&self, request: Request, session: Option<&HeaderValue>) -> Response {
        let (mut parts, body) = request.into_parts();
        let headers = &parts.headers;
        let bytes = match json_of(headers, body).await {
            Ok(bytes) => bytes,
            Err(refusal) => return refusal.into_response(),
        };
        let message = match read_message(&bytes) {
            Ok(Message::OneWay) => return StatusCode::ACCEPTED.into_response(),
            Ok(Message::Request(message)) => message,
            Err(Fault { id, code, message }) => {
                let error = json!({ "code": code, "message": message });
                return Json(json!({ "jsonrpc": "2.0", "id": id, "error": error })).into_response();
            }
        };
        let plain = Plain {
            // Nobody can have left a notice for an id that was just made up.
            session: session
                .filter(|id| headers.get(SESSION_HEADER) == Some(id))
                .and_then(|id| id.to_str().ok())
                .map(str::to_owned),
            shows_progress: headers.contains_key(SHOWS_PROGRESS_HEADER),
            agent: name_in(headers, AGENT_HEADER),
            client: name_in(headers, CLIENT_HEADER),
        };
        if !is_stateless_protocol(&message) {
            let id = message.get("id").unwrap_or(&Value::Null);
            match (message.get("method").and_then(Value::as_str), message.get("params")) {
                (Some("ping"), _) => {
                    return json_response(&PlainAnswer { jsonrpc: "2.0", id, result: Map::new() }, 0);
                }
                (Some("tools/call"), Some(Value::Object(params))) => {
                    if let Some(result) = self.handler.answer_plain(params, &plain).await {
                        let size = result.size();
                        return json_response(&PlainAnswer { jsonrpc: "2.0", id, result }, size);
                    }
                }
                _ => {}
            }
            for name in PROTOCOL_HEADERS {
                parts.headers.remove(name);
            }
        }
        let body = Value::Object(message).to_string();
        for name in [header::TRANSFER_ENCODING, SESSION_HEADER] {
            parts.headers.remove(name);
        }
        let both = HeaderValue::from_static("application/json, text/event-stream");
        parts.headers.insert(header::ACCEPT, both);
        parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        parts.extensions.insert(plain);
        self.plain.handle(Request::from_parts(parts, Body::from(body))).await.map(Body::new)
    }
}

impl<H: ServerHandler + AnswersPlainCalls + Clone + Sync> Answers for Gate<H> {
    fn answer(&self, request: Request) -> Pin<Box<dyn Future<Output = Response> + Send + '_>> {
        Box::pin(self.handle(request))
    }
}

/// A message of about this size. Its room is taken at once: a screen would otherwise be copied several times while it grows.
fn json_response(message: &impl Serialize, size: usize) -> Response {
    let mut bytes = Vec::with_capacity(size + size / 4 + 256);
    match serde_json::to_writer(&mut bytes, message) {
        Ok(()) => ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], bytes).into_response(),
        Err(error) => refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()).into_response(),
    }
}

fn session_manager() -> LocalSessionManager {
    let mut config = SessionConfig::default();
    config.keep_alive = Some(IDLE_SESSION);
    let mut manager = LocalSessionManager::default();
    manager.session_config = config;
    manager
}

/// The protocol demands that its clients can read both.
fn accepts_streams(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let accepted = accepted.collect::<Vec<_>>().join(",").to_ascii_lowercase();
    accepted.contains("application/json") && accepted.contains("text/event-stream")
}

/// The caller's own session id, or a new one. Nothing is kept under it.
fn session_header(headers: &HeaderMap) -> Option<HeaderValue> {
    let given = headers.get(SESSION_HEADER).filter(|id| !id.is_empty() && id.len() <= MAX_SESSION_ID).cloned();
    given.or_else(|| HeaderValue::from_str(&format!("session_{}", passing_hex())).ok())
}

/// A protocol error, and the id it answers.
#[derive(Debug, PartialEq)]
struct Fault {
    id: Value,
    code: i32,
    message: String,
}

impl Fault {
    fn request(id: Value, problem: &str) -> Self {
        Self { id, code: -32600, message: format!("Invalid Request: {problem}") }
    }

    fn params(id: Value, problem: &str) -> Self {
        Self { id, code: -32602, message: format!("Invalid params: {problem}") }
    }
}

/// What a message turned out to be.
#[derive(Debug, PartialEq)]
enum Message {
    /// Somebody waits for the answer. All is there that the protocol wants.
    Request(Map<String, Value>),
    /// Nobody waits: a notification, or an answer to something we never ask.
    OneWay,
}

fn read_message(bytes: &[u8]) -> Result<Message, Fault> {
    let parse_error = || Fault { id: Value::Null, code: -32700, message: "Parse error: invalid JSON".to_owned() };
    let mut message = match serde_json::from_slice(bytes).map_err(|_| parse_error())? {
        Value::Object(message) => message,
        Value::Array(_) => return Err(Fault::request(Value::Null, "batches are not supported")),
        _ => return Err(Fault::request(Value::Null, "a message is an object")),
    };
    let known_id = message.get("id").filter(|id| id.is_string() || id.is_i64()).cloned();
    let id = known_id.clone().unwrap_or_default();
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(Fault::request(id, "missing jsonrpc 2.0"));
    }
    let method = match message.get("method") {
        Some(Value::String(method)) => method.clone(),
        None if message.contains_key("result") || message.contains_key("error") => return Ok(Message::OneWay),
        _ => return Err(Fault::request(id, "missing method")),
    };
    if method.starts_with("notifications/") {
        return Ok(Message::OneWay);
    }
    if known_id.is_none() {
        return Err(Fault::request(Value::Null, "a request needs an id, a string or a whole number"));
    }
    let mut params = match message.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(Fault::params(id, "an object is expected")),
    };
    match method.as_str() {
        "initialize" => params = introduction(&params),
        "tools/call" => check_call(&id, &mut params)?,
        _ => {}
    }
    drop_progress_token(&mut params);
    if !params.is_empty() {
        message.insert("params".to_owned(), Value::Object(params));
    }
    Ok(Message::Request(message))
}

/// What a client says of itself, with what it left out. It is not kept, so what is wrong in it does no harm.
fn introduction(given: &Map<String, Value>) -> Map<String, Value> {
    let text = |value: Option<&Value>, otherwise: &str| value.and_then(Value::as_str).unwrap_or(otherwise).to_owned();
    let client = given.get("clientInfo");
    let about = |name: &str, otherwise: &str| text(client.and_then(|client| client.get(name)), otherwise);
    let params = json!({
        "protocolVersion": text(given.get("protocolVersion"), OLDEST_VERSION),
        "capabilities": {},
        "clientInfo": { "name": about("name", "unknown"), "version": about("version", "0") },
    });
    match params {
        Value::Object(params) => params,
        _ => Map::new(),
    }
}

fn check_call(id: &Value, params: &mut Map<String, Value>) -> Result<(), Fault> {
    match params.get("name") {
        Some(Value::String(name)) if !name.is_empty() => {}
        _ => return Err(Fault::params(id.clone(), "missing tool name")),
    }
    match params.get("arguments") {
        None | Some(Value::Object(_)) => Ok(()),
        Some(Value::Null) => {
            params.remove("arguments");
            Ok(())
        }
        Some(_) => Err(Fault::params(id.clone(), "arguments is an object")),
    }
}

/// A client that reads one message must not be promised more.
fn drop_progress_token(params: &mut Map<String, Value>) {
    match params.get_mut("_meta") {
        Some(Value::Object(meta)) => {
            meta.remove("progressToken");
        }
        _ => {
            params.remove("_meta");
        }
    }
}

fn is_stateless_protocol(message: &Map<String, Value>) -> bool {
    message.get("params").and_then(|params| params.get("_meta")?.get(VERSION_KEY)).is_some()
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;

    use tokio::io::AsyncWriteExt as _;

    use super::*;
    use crate::config::LONGEST_TALK;
    use crate::server::mcp::engine::{Answer, Engine, ToolCall};

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
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, Err((Value::Null, -32600))),
            (r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#, Err((json!(7), -32602))),
            (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#, Err((json!(7), -32602))),
            (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":""}}"#, Err((json!(7), -32602))),
        ] {
            let got = match read_message(text.as_bytes()) {
                Ok(Message::OneWay) => Ok(None),
                Ok(Message::Request(message)) => Ok(message.get("id").cloned()),
                Err(Fault { id, code, .. }) => Err((id, code)),
            };
            assert_eq!(got, expected, "{text}");
        }
    }

    fn read(text: &str) -> Value {
        match read_message(text.as_bytes()) {
            Ok(Message::Request(message)) => Value::Object(message),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn what_is_left_out_is_supplied() {
        let message = read(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":7}}"#);
        assert_eq!(message["params"]["protocolVersion"], "2024-11-05");
        assert_eq!(message["params"]["capabilities"], json!({}));
        assert!(message["params"]["clientInfo"]["name"].is_string());
        let message = read(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call",
                "params":{"name":"k_pty","arguments":null,"_meta":{"progressToken":1,"x":2}}}"#,
        );
        assert_eq!(message["params"], json!({ "name": "k_pty", "_meta": { "x": 2 } }));
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#).get("params"), None);
    }

    #[test]
    fn a_client_without_a_session_gets_an_id_of_its_own() {
        let given = || session_header(&HeaderMap::new()).expect("an id").to_str().expect("plain text").to_owned();
        let (first, second) = (given(), given());
        assert_ne!(first, second);
        let hex = first.strip_prefix("session_").expect("the prefix");
        assert!(hex.len() == 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()), "{first}");
    }

    #[test]
    fn only_clients_that_read_both_get_streams() {
        for (values, expected) in [
            (&["application/json, text/event-stream"][..], true),
            (&["text/event-stream;q=0.5,Application/JSON"], true),
            (&["application/json", "text/event-stream"], true),
            (&["*/*"], false),
            (&["application/json"], false),
            (&["text/event-stream"], false),
            (&[], false),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::ACCEPT, value.parse().expect("a header value"));
            }
            assert_eq!(accepts_streams(&headers), expected, "{values:?}");
        }
    }

    /// An engine that never answers, and tells when it is asked and when it is left alone again.
    struct Endless(tokio::sync::mpsc::UnboundedSender<&'static str>);

    struct Left(tokio::sync::mpsc::UnboundedSender<&'static str>);

    impl Drop for Left {
        fn drop(&mut self) {
            let _ = self.0.send("left");
        }
    }

    impl Engine for Endless {
        fn call(&self, _: ToolCall) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
            Box::pin(async {
                let _left = Left(self.0.clone());
                let _ = self.0.send("asked");
                std::future::pending().await
            })
        }
    }

    /// Only a failure reaches it.
    async fn next(events: &mut tokio::sync::mpsc::UnboundedReceiver<&'static str>) -> Option<&'static str> {
        tokio::time::timeout(Duration::from_secs(20), events.recv()).await.ok().flatten()
    }

    #[tokio::test]
    async fn a_client_that_hangs_up_ends_its_wait() {
        let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
        let gate = crate::server::mcp::gate(Endless(sender), &Default::default());
        let answer = move |request| {
            let gate = Arc::clone(&gate);
            async move { gate.handle(request).await }
        };
        let app = axum::Router::new().route("/mcp", axum::routing::any(answer));
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let serving = tokio::spawn(axum::serve(listener, app).into_future());
        let plain = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"k_pty"}}"#.to_owned();
        let meta = json!({ VERSION_KEY: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
        let params = json!({ "name": "k_pty", "_meta": meta });
        let stateless = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
        let headers = "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
                       Mcp-Method: tools/call\r\nMcp-Name: k_pty\r\n";
        for (body, headers) in [(plain, ""), (stateless, headers)] {
            let mut stream = tokio::net::TcpStream::connect(address).await.expect("the server listens");
            let head = format!(
                "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n{headers}\
                 Content-Length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(head.as_bytes()).await.expect("the server reads");
            assert_eq!(next(&mut events).await, Some("asked"));
            assert!(events.try_recv().is_err(), "left before the client hung up");
            drop(stream);
            assert_eq!(next(&mut events).await, Some("left"));
        }
        serving.abort();
    }

    #[test]
    fn a_client_session_outlives_every_call() {
        assert!(session_manager().session_config.keep_alive.is_none_or(|idle| idle > 2 * LONGEST_TALK));
    }
}
