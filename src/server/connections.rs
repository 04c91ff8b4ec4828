//! Connections: one task each, from the accepted socket to the last answer. Nothing gets past the policy that it does not
//! let in; what is answered then is the business of the router, or of the protocol's own path. How many there may be is
//! decided by [`Crowd`], how slow they may be by [`Watch`]. A connection that waits for a head holds at most
//! [`MAX_HEAD_BYTES`] of it and the two buffers of hyper.

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
use super::crowd::{Crowd, Limits, Place};
use super::pace::{Counted, Pace, Verdict, Watch};
use super::peer::{Peer, PeerListener};
use super::rare::Rare;
use crate::runtime::RepollOnWake;

/// An answer on its way.
pub(super) type Answering<'a> = Pin<Box<dyn Future<Output = Response> + Send + 'a>>;

/// Answers all requests for one path.
pub(super) trait Answers: Send + Sync + 'static {
    /// Always comes to an answer.
    fn answer(&self, request: Request<Body>) -> Answering<'_>;
}

/// Who answers what is let in.
pub(super) struct App {
    router: TowerToHyperService<Router>,
    /// The path that nearly all requests are for: the way through the router takes longer than many of its answers.
    direct: Option<(String, Arc<dyn Answers>)>,
}

impl App {
    /// A router, and the protocol at a path of its own.
    pub(super) fn new(router: Router, path: &str, gate: Arc<dyn Answers>) -> Self {
        Self { direct: Some((path.to_owned(), gate)), ..router.into() }
    }

    fn answer(&self, request: Request<Body>) -> Answering<'_> {
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

/// The longest head of a request, with what is read ahead of it. Longer ones are answered with 431.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// Answers on one listener until it is told to stop, and then to the requests that are there already.
pub(super) async fn serve(
    listener: TcpListener,
    policy: Arc<Policy>,
    app: App,
    crowd: Arc<Crowd>,
    stop: CancellationToken,
) {
    let mut listener = PeerListener::new(listener);
    let app = Arc::new(app);
    let open = TaskTracker::new();
    let refusals = Rare::default();
    while let Some((stream, peer, address)) = stop.run_until_cancelled(listener.accept()).await {
        let Some(place) = crowd.enter(peer, address) else {
            if let Some(others) = refusals.count() {
                tracing::warn!(?peer, others, "a connection is refused: there are too many");
            }
            continue;
        };
        let (policy, app) = (Arc::clone(&policy), Arc::clone(&app));
        let rules = Arc::new(Rules { peer, place, pace: Arc::default(), policy, app });
        // Whoever sends a body has hyper wake its own task several times a request.
        open.spawn(RepollOnWake::new(converse(stream, rules, crowd.limits, stop.clone())));
    }
    drop(listener);
    open.close();
    open.wait().await;
}

/// Answers on one connection until one side has enough.
async fn converse(stream: TcpStream, rules: Arc<Rules>, limits: Limits, stop: CancellationToken) {
    let stream = TokioIo::new(Counted::new(stream, Arc::clone(&rules.pace)));
    let desk = Desk(Arc::clone(&rules));
    // Most answers are small: to copy head and body together costs less than to hand over two pieces.
    let mut builder = http1::Builder::new();
    let connection = builder.writev(false).max_buf_size(MAX_HEAD_BYTES).serve_connection(stream, desk).with_upgrades();
    let mut connection = pin!(connection);
    let mut watch = Watch::new(&limits);
    let watched = poll_fn(|context| {
        loop {
            if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                return Poll::Ready(ended);
            }
            match watch.look(&rules.pace, &limits, rules.place.is_unknown(), context) {
                Verdict::Stays => return Poll::Pending,
                Verdict::Closes => connection.as_mut().graceful_shutdown(),
                Verdict::Ends => return Poll::Ready(Ok(())),
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
        tracing::trace!("a connection broke: {error}");
    }
}

/// Where the requests of one connection arrive.
struct Desk(Arc<Rules>);

/// How they are answered. Counted per connection: a count that all connections share goes from core to core with every
/// request.
struct Rules {
    peer: Peer,
    place: Place,
    pace: Arc<Pace>,
    policy: Arc<Policy>,
    app: Arc<App>,
}

impl Service<Request<Incoming>> for Desk {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let mut request = request.map(Body::new);
        let rules = Arc::clone(&self.0);
        let is_long = rules.pace.begin() > MAX_HEAD_BYTES as u64 && head_bytes(&request) > MAX_HEAD_BYTES;
        request.extensions_mut().insert(ConnectInfo(rules.peer));
        // A request is passed on from hand to hand: room for it once, not in each of them.
        Box::pin(async move {
            let admitted = match is_long {
                // The parser lets a head pass that was complete when it looked.
                true => Err(too_long().into_response()),
                false => access::admit(&rules.policy, &mut request).await,
            };
            let response = match admitted {
                Ok(admitted) => {
                    if admitted == Admitted::Known && rules.place.is_unknown() {
                        rules.place.make_known();
                    }
                    rules.app.answer(request).await
                }
                Err(refusal) => refusal,
            };
            rules.pace.end();
            Ok(response)
        })
    }
}

/// About as long as the head of a request was when it came.
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

    const HEAD: Duration = Duration::from_millis(300);
    /// Only a failure reaches it.
    const DEADLINE: Duration = Duration::from_secs(60);

    /// A server with short patience; its port.
    async fn start(idle: Duration) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let host = Ipv4Addr::LOCALHOST.into();
        let policy = Policy::new(host, vec![port], Reach::Loopback, &[], Login::Off).expect("a policy");
        let slow = get(async || {
            tokio::time::sleep(4 * HEAD).await;
            "slow"
        });
        let router = Router::new().route("/quick", get(async || "quick")).route("/slow", slow);
        let crowd = Crowd::new(Limits { head: HEAD, idle, ..Limits::new() });
        tokio::spawn(serve(listener, Arc::new(policy), router.into(), crowd, CancellationToken::new()));
        port
    }

    async fn connect(port: u16) -> TcpStream {
        TcpStream::connect(("127.0.0.1", port)).await.expect("it listens")
    }

    fn head(port: u16, path: &str) -> String {
        format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")
    }

    /// All that comes until the end, and how long that took.
    async fn rest(stream: &mut TcpStream) -> (String, Duration) {
        let (mut text, began) = (Vec::new(), Instant::now());
        // A reset is an end too.
        let _ = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut text)).await.expect("an end");
        (String::from_utf8(text).expect("UTF-8"), began.elapsed())
    }

    /// Reads the answer to one request.
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
            // It may be answered before all of it is read.
            let _ = stream.write_all(request.as_bytes()).await;
            let (text, _) = rest(&mut stream).await;
            assert!(text.is_empty() || text.starts_with(&format!("HTTP/1.1 {status}")), "{length}: {text}");
            assert!(status == "431" || !text.is_empty(), "{length}");
        }
    }
}
