//! Connection handling: one task per connection, from accept to the last response. The access policy checks every
//! request before the router or the direct handler sees it. [`ConnectionLimiter`] bounds the number of connections,
//! [`TimeoutGuard`] their duration. A connection that waits for a request head uses at most [`MAX_HEAD_BYTES`] plus
//! hyper's two buffers.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::access::{self, Admitted, Policy};
use super::body::{Refusal, refusal};
use super::connection_limits::{ConnectionLimiter, ConnectionLimits, ConnectionPermit};
use super::connection_timeouts::{ConnectionActivity, CountingStream, TimeoutAction, TimeoutGuard};
use super::log_limit::LogRateLimit;
use super::peer::{Peer, PeerListener};
use crate::runtime::RepollOnWake;

/// A response being computed.
pub(super) type ResponseFuture<'a> = Pin<Box<dyn Future<Output = Response> + Send + 'a>>;

/// Handler of all requests for one path.
pub(super) trait RequestHandler: Send + Sync + 'static {
    /// Computes the response; never fails.
    fn answer(&self, request: Request<Body>) -> ResponseFuture<'_>;
}

/// Request handlers behind the access policy.
pub(super) struct App {
    router: TowerToHyperService<Router>,
    /// Path of nearly all requests, and its handler. Routing takes longer than many of its responses.
    direct: Option<(String, Arc<dyn RequestHandler>)>,
}

impl App {
    /// Combines a router with a direct handler for one path.
    pub(super) fn new(router: Router, path: &str, gate: Arc<dyn RequestHandler>) -> Self {
        Self { direct: Some((path.to_owned(), gate)), ..router.into() }
    }

    fn answer(&self, request: Request<Body>) -> ResponseFuture<'_> {
        match &self.direct {
            Some((path, gate)) if request.uri().path() == path => gate.answer(request),
            _ => {
                let answer = self.router.call(request);
                Box::pin(async { answer.await.unwrap_or_else(|never| match never {}) })
            }
        }
    }
}

impl From<Router> for App {
    fn from(router: Router) -> Self {
        Self { router: TowerToHyperService::new(router), direct: None }
    }
}

/// Maximum size of a request head, including read-ahead. A longer one gets status 431.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// Serves a listener until `stop`, then completes the requests already received.
pub(super) async fn serve(
    listener: TcpListener,
    policy: Arc<Policy>,
    app: App,
    limiter: Arc<ConnectionLimiter>,
    stop: CancellationToken,
) {
    let mut listener = PeerListener::new(listener);
    let app = Arc::new(app);
    let open = TaskTracker::new();
    let refusals = LogRateLimit::default();
    while let Some((stream, peer, address)) = stop.run_until_cancelled(listener.accept()).await {
        let Some(permit) = limiter.acquire(peer, address) else {
            if let Some(others) = refusals.record() {
                tracing::warn!(?peer, others, "connection rejected: connection limit reached");
            }
            continue;
        };
        let (policy, app) = (Arc::clone(&policy), Arc::clone(&app));
        let shared = Arc::new(ConnectionContext { peer, permit, activity: Arc::default(), policy, app });
        // Reading a body makes hyper wake its own task several times per request.
        open.spawn(RepollOnWake::new(serve_connection(stream, shared, limiter.limits, stop.clone())));
    }
    drop(listener);
    open.close();
    open.wait().await;
}

/// Serves one connection until either side closes it.
async fn serve_connection(
    stream: TcpStream,
    shared: Arc<ConnectionContext>,
    limits: ConnectionLimits,
    stop: CancellationToken,
) {
    let stream = TokioIo::new(CountingStream::new(stream, Arc::clone(&shared.activity)));
    let service = ConnectionService(Arc::clone(&shared));
    // Most responses are small: copying head and body into one buffer is cheaper than a vectored write.
    let mut builder = http1::Builder::new();
    let connection =
        builder.writev(false).max_buf_size(MAX_HEAD_BYTES).serve_connection(stream, service).with_upgrades();
    let mut connection = pin!(connection);
    let mut timeouts = TimeoutGuard::new(&limits);
    let watched = poll_fn(|context| {
        loop {
            if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                return Poll::Ready(ended);
            }
            match timeouts.poll(&shared.activity, &limits, shared.permit.is_unknown(), context) {
                TimeoutAction::Keep => return Poll::Pending,
                TimeoutAction::Shutdown => connection.as_mut().graceful_shutdown(),
                TimeoutAction::Abort => return Poll::Ready(Ok(())),
            }
        }
    });
    let ended = match stop.run_until_cancelled(watched).await {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::trace!("connection failed: {error}");
    }
}

/// The hyper service of one connection.
struct ConnectionService(Arc<ConnectionContext>);

/// Shared state of a connection's requests. Reference-counted per connection: a global count would move between cores
/// with every request.
struct ConnectionContext {
    peer: Peer,
    permit: ConnectionPermit,
    activity: Arc<ConnectionActivity>,
    policy: Arc<Policy>,
    app: Arc<App>,
}

impl Service<Request<Incoming>> for ConnectionService {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let mut request = request.map(Body::new);
        let shared = Arc::clone(&self.0);
        let is_long =
            shared.activity.request_started() > MAX_HEAD_BYTES as u64 && head_bytes(&request) > MAX_HEAD_BYTES;
        request.extensions_mut().insert(ConnectInfo(shared.peer));
        // One box for the whole chain of handlers, not one in each of them.
        Box::pin(async move {
            let admitted = match is_long {
                // The parser accepts a longer head if it was complete when it looked.
                true => Err(too_long().into_response()),
                false => access::admit(&shared.policy, &mut request).await,
            };
            let response = match admitted {
                Ok(admitted) => {
                    if admitted == Admitted::Known && shared.permit.is_unknown() {
                        shared.permit.mark_known();
                    }
                    shared.app.answer(request).await
                }
                Err(refusal) => refusal,
            };
            shared.activity.request_finished();
            Ok(response)
        })
    }
}

/// Estimates the size of the request head as received.
fn head_bytes(request: &Request<Body>) -> usize {
    let fields = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    request.uri().path_and_query().map_or(0, |target| target.as_str().len()) + fields.sum::<usize>()
}

fn too_long() -> Refusal {
    let why = format!("the head of the request is longer than {MAX_HEAD_BYTES} bytes");
    refusal(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, &why)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::{Duration, Instant};

    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::server::Reach;
    use crate::server::access::Login;

    const HEAD: Duration = Duration::from_millis(900);
    /// Only an error reaches this handler.
    const DEADLINE: Duration = Duration::from_secs(60);

    /// Starts a server with short timeouts; returns its port.
    async fn start(idle: Duration) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let host = Ipv4Addr::LOCALHOST.into();
        let policy = Policy::new(host, vec![port], Reach::Loopback, &[], Login::Off).expect("a policy");
        let slow = get(async || {
            tokio::time::sleep(2 * HEAD).await;
            "slow"
        });
        let router = Router::new().route("/quick", get(async || "quick")).route("/slow", slow);
        let limiter = ConnectionLimiter::new(ConnectionLimits { head: HEAD, idle, ..ConnectionLimits::new() });
        tokio::spawn(serve(listener, Arc::new(policy), router.into(), limiter, CancellationToken::new()));
        port
    }

    async fn connect(port: u16) -> TcpStream {
        TcpStream::connect(("127.0.0.1", port)).await.expect("it listens")
    }

    fn head(port: u16, path: &str) -> String {
        format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")
    }

    /// Returns everything received until the connection ends, and the time that took.
    async fn rest(stream: &mut TcpStream) -> (String, Duration) {
        let (mut text, began) = (Vec::new(), Instant::now());
        // A reset ends the connection too.
        let _ = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut text)).await.expect("an end");
        (String::from_utf8(text).expect("UTF-8"), began.elapsed())
    }

    /// Reads the response to one request.
    async fn answer(stream: &mut TcpStream, end: &str) {
        let mut text = Vec::new();
        while !text.ends_with(end.as_bytes()) {
            let read = tokio::time::timeout(DEADLINE, stream.read_buf(&mut text)).await.expect("in time");
            assert_ne!(read.expect("an answer"), 0, "{}", String::from_utf8_lossy(&text));
        }
    }

    #[tokio::test]
    async fn half_a_head_is_not_waited_for_however_it_trickles() {
        let port = start(DEADLINE).await;
        for part in ["", "G", "GET /quick HTTP/1.1\r\nHost: x"] {
            let mut stream = connect(port).await;
            stream.write_all(part.as_bytes()).await.expect("it reads");
            let (text, took) = rest(&mut stream).await;
            assert!(text.is_empty() && took < DEADLINE / 2, "{part:?} {text} {took:?}");
        }
        let mut stream = connect(port).await;
        let began = Instant::now();
        while stream.write_all(b"a").await.is_ok() && began.elapsed() < DEADLINE / 2 {
            tokio::time::sleep(HEAD / 6).await;
        }
        assert!((HEAD..DEADLINE / 2).contains(&began.elapsed()), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_second_head_is_not_waited_for_either() {
        let port = start(DEADLINE).await;
        let mut stream = connect(port).await;
        for _ in 0..2 {
            stream.write_all(head(port, "/quick").as_bytes()).await.expect("it reads");
            answer(&mut stream, "quick").await;
        }
        stream.write_all(b"GET /qui").await.expect("it reads");
        let (text, took) = rest(&mut stream).await;
        assert!(text.is_empty() && took < DEADLINE / 2, "{text} {took:?}");
    }

    #[tokio::test]
    async fn who_is_idle_is_let_go_and_who_is_answered_is_not() {
        let port = start(HEAD).await;
        let mut stream = connect(port).await;
        for path in ["/slow", "/quick"] {
            stream.write_all(head(port, path).as_bytes()).await.expect("it reads");
            answer(&mut stream, &path[1..]).await;
        }
        let (text, took) = rest(&mut stream).await;
        assert!(text.is_empty() && took < DEADLINE / 2, "{text} {took:?}");
    }

    #[tokio::test]
    async fn a_head_has_a_length() {
        let port = start(DEADLINE).await;
        for (length, status) in [(40 << 10, "200"), (80 << 10, "431")] {
            let mut stream = connect(port).await;
            let filler = format!("Connection: close\r\nFiller: {}\r\n\r\n", "x".repeat(length));
            let request = head(port, "/quick").replace("\r\n\r\n", &format!("\r\n{filler}"));
            // The response may arrive before the request is read completely.
            let _ = stream.write_all(request.as_bytes()).await;
            let (text, _) = rest(&mut stream).await;
            assert!(text.is_empty() || text.starts_with(&format!("HTTP/1.1 {status}")), "{length}: {text}");
            assert!(status == "431" || !text.is_empty(), "{length}");
        }
    }
}
