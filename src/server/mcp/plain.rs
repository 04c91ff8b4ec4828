//! HTTP entry point: protocol clients and plain JSON clients use separate services.
//!
//! A protocol client names both media types in `Accept`; it gets sessions, streams and protocol errors unchanged. Any
//! other client is *plain*: it `POST`s one JSON-RPC message and gets one JSON message, without handshake, session or
//! keep-alive. What a plain client omits is supplied, and its errors are JSON-RPC with status 200.

use std::future::{Future, ready};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::engine::Block;
use super::json_text;
use super::live::{Live, MAX_LIVE};
use super::message::{Fault, Message, read_message};
use super::sessions::Sessions;
use super::{AGENT_HEADER, CLIENT_HEADER, SHOWS_PROGRESS_HEADER};
use crate::ids::passing_hex;
use crate::server::body::{MAX_BODY_BYTES, bytes_of};
use crate::server::connections::{RequestHandler, ResponseFuture};
use crate::traffic::clean_name;

/// Header with the client session id.
pub const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");
/// Maximum length of an echoed client session id.
const MAX_SESSION_ID: usize = 200;
/// Protocol headers; those of a plain client are ignored, because they may contradict its message.
const PROTOCOL_HEADERS: [&str; 3] = ["mcp-protocol-version", "mcp-method", "mcp-name"];
/// Idle time after which a client session is evicted from memory, not from disk. Must exceed the duration of any call:
/// a running call does not count as activity and would be cut off.
const IDLE_SESSION: Duration = Duration::from_secs(24 * 3_600);

/// Marks a request of a plain client.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "conformance"), expect(unreachable_pub, reason = "public for the conformance fixtures"))]
pub struct Plain {
    /// The client's session.
    pub(super) session: Option<String>,
    /// See [`SHOWS_PROGRESS_HEADER`].
    pub(super) shows_progress: bool,
    /// Agent id that the client claims.
    pub(super) agent: Option<String>,
    /// Program whose calls the client forwards.
    pub(super) client: Option<String>,
}

/// Returns a sanitized name from a header.
pub(crate) fn name_in(headers: &HeaderMap, header: HeaderName) -> Option<String> {
    headers.get(header).and_then(|value| clean_name(&String::from_utf8_lossy(value.as_bytes())))
}

/// Joins the names of a client and its session.
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
#[cfg_attr(not(feature = "conformance"), expect(unreachable_pub, reason = "public for the conformance fixtures"))]
pub trait AnswersPlainCalls {
    /// The handler as plain clients see it.
    fn for_plain_clients(self) -> Self
    where
        Self: Sized,
    {
        self
    }

    /// The result of `tools/call`; nothing when the library is to answer, and then nothing was taken.
    fn answer_plain(
        &self,
        params: &mut Map<String, Value>,
        plain: &Plain,
    ) -> impl Future<Output = Option<PlainResult>> + Send {
        let _ = (params, plain);
        ready(None)
    }
}

/// The result of a tool.
#[cfg_attr(not(feature = "conformance"), expect(unreachable_pub, reason = "public for the conformance fixtures"))]
pub struct PlainResult {
    pub(super) content: Vec<Block>,
    pub(super) is_error: bool,
}

impl PlainResult {
    /// Estimates the size of its texts in bytes.
    fn size(&self) -> usize {
        let sizes = self.content.iter().map(|block| match block {
            Block::Text { text } => text.len(),
            Block::Image { data, .. } => data.len(),
            Block::Resource { resource } => resource.text.len(),
        });
        sizes.sum()
    }

    /// Appends it in the wire format.
    fn push(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"content\":");
        json_text::push_all(b'[', &self.content, b']', out, Block::push);
        out.extend_from_slice(if self.is_error { b",\"isError\":true}" } else { b",\"isError\":false}" });
    }
}

impl<H: ServerHandler + AnswersPlainCalls + Clone + Sync> Gate<H> {
    /// Keeps client sessions in the folder, if there is one. An unusable folder disables only that.
    pub(super) fn new(handler: H, sessions_folder: Option<PathBuf>) -> Self {
        let sessions = sessions_folder.and_then(|folder| match Sessions::open(folder) {
            Ok(sessions) => Some(sessions),
            Err(error) => {
                tracing::warn!("client sessions will not survive a restart: {error}");
                None
            }
        });
        let stopping = CancellationToken::new();
        // Host names and origins are checked for all routes before a request arrives here.
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
            plain: StreamableHttpService::new(
                handlers(&handler.clone().for_plain_clients()),
                Arc::new(NeverSessionManager::default()),
                plain,
            ),
            handler,
            stopping,
        }
    }

    /// Ends all streams at shutdown.
    pub(crate) fn stop(&self) {
        self.stopping.cancel();
    }

    /// Each path is boxed separately: the library's future is much larger than that of a plain call.
    fn handle(&self, mut request: Request) -> ResponseFuture<'_> {
        if request.method() != Method::POST || accepts_streams(request.headers()) {
            return Box::pin(self.handle_strict(request));
        }
        let session = session_header(request.headers());
        Box::pin(async move {
            let mut response = self.handle_plain(&mut request, session.as_ref()).await;
            if let Some(session) = session {
                response.headers_mut().insert(SESSION_HEADER, session);
            }
            response
        })
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

    async fn handle_plain(&self, request: &mut Request, session: Option<&HeaderValue>) -> Response {
        let body = std::mem::take(request.body_mut());
        let headers = request.headers();
        let bytes = match bytes_of(body).await {
            Ok(bytes) => bytes,
            Err(refusal) => return refusal.into_response(),
        };
        let mut asked = match read_message(&bytes) {
            Ok(Message::OneWay) => return StatusCode::ACCEPTED.into_response(),
            Ok(Message::Request(asked)) => asked,
            Err(Fault { id, code, message }) => {
                let error = json!({ "code": code, "message": message });
                return Json(json!({ "jsonrpc": "2.0", "id": id, "error": error })).into_response();
            }
        };
        let plain = Plain {
            // A new id cannot have a notice yet.
            session: session
                .filter(|id| headers.get(SESSION_HEADER) == Some(id))
                .and_then(|id| id.to_str().ok())
                .map(str::to_owned),
            shows_progress: headers.contains_key(SHOWS_PROGRESS_HEADER),
            agent: name_in(headers, AGENT_HEADER),
            client: name_in(headers, CLIENT_HEADER),
        };
        if !asked.is_stateless() {
            let result = match asked.method.as_str() {
                "tools/call" => self.handler.answer_plain(&mut asked.params, &plain).await,
                _ => None,
            };
            if let Some(result) = result {
                return json_response(&asked.id, result.size(), |out| result.push(out));
            }
            if asked.method == "ping" {
                return json_response(&asked.id, 0, |out| out.extend_from_slice(b"{}"));
            }
            for name in PROTOCOL_HEADERS {
                request.headers_mut().remove(name);
            }
        }
        let body = asked.into_json().to_string();
        let headers = request.headers_mut();
        for name in [header::TRANSFER_ENCODING, SESSION_HEADER] {
            headers.remove(name);
        }
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        request.extensions_mut().insert(plain);
        *request.body_mut() = Body::from(body);
        Box::pin(self.plain.handle(std::mem::take(request))).await.map(Body::new)
    }
}

impl<H: ServerHandler + AnswersPlainCalls + Clone + Sync> RequestHandler for Gate<H> {
    fn answer(&self, request: Request) -> ResponseFuture<'_> {
        self.handle(request)
    }
}

/// Builds a message with a result of about this size. Allocates at once, because growing would copy a screen several
/// times.
fn json_response(id: &Value, size: usize, push_result: impl FnOnce(&mut Vec<u8>)) -> Response {
    let mut bytes = Vec::with_capacity(size + size / 4 + 256);
    bytes.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    json_text::push(id, &mut bytes);
    bytes.extend_from_slice(b",\"result\":");
    push_result(&mut bytes);
    bytes.push(b'}');
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], bytes).into_response()
}

fn session_manager() -> LocalSessionManager {
    let mut config = SessionConfig::default();
    config.keep_alive = Some(IDLE_SESSION);
    let mut manager = LocalSessionManager::default();
    manager.session_config = config;
    manager
}

/// The protocol requires clients to accept both.
fn accepts_streams(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let accepted = accepted.collect::<Vec<_>>().join(",").to_ascii_lowercase();
    accepted.contains("application/json") && accepted.contains("text/event-stream")
}

/// Returns the caller's session id or a new one. Nothing is stored under it.
fn session_header(headers: &HeaderMap) -> Option<HeaderValue> {
    let given = headers.get(SESSION_HEADER).filter(|id| !id.is_empty() && id.len() <= MAX_SESSION_ID).cloned();
    given.or_else(|| HeaderValue::try_from(["session_", &passing_hex()].concat()).ok())
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;

    use tokio::io::AsyncWriteExt as _;

    use super::super::message::VERSION_KEY;
    use super::*;
    use crate::config::LONGEST_TALK;
    use crate::server::mcp::engine::{Engine, ToolAnswer, ToolCall};

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

    /// An engine that never replies and reports when it is called and cancelled.
    struct Endless(tokio::sync::mpsc::UnboundedSender<&'static str>);

    struct Left(tokio::sync::mpsc::UnboundedSender<&'static str>);

    impl Drop for Left {
        fn drop(&mut self) {
            let _ = self.0.send("left");
        }
    }

    impl Engine for Endless {
        fn call(&self, _: ToolCall) -> Pin<Box<dyn Future<Output = ToolAnswer> + Send + '_>> {
            Box::pin(async {
                let _left = Left(self.0.clone());
                let _ = self.0.send("asked");
                std::future::pending().await
            })
        }
    }

    /// Only an error reaches this handler.
    async fn next(events: &mut tokio::sync::mpsc::UnboundedReceiver<&'static str>) -> Option<&'static str> {
        tokio::time::timeout(Duration::from_secs(20), events.recv()).await.ok().flatten()
    }

    #[tokio::test]
    async fn a_client_that_hangs_up_ends_its_wait() {
        let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
        let gate = crate::server::mcp::gate(Endless(sender), Default::default(), &Default::default());
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
