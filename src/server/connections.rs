//! Connections: one task each, from the accepted socket to the last answer. Nothing gets past the policy that it does not
//! let in; what is answered then is the business of the router, or of the protocol's own path.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use axum::response::Response;
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::access::{self, Policy};
use super::peer::{Peer, PeerListener};
use crate::runtime::Unbroken;

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

/// Answers on one listener until it is told to stop, and then to the requests that are there already.
pub(super) async fn serve(listener: TcpListener, policy: Arc<Policy>, app: App, stop: CancellationToken) {
    let mut listener = PeerListener(listener);
    let app = Arc::new(app);
    let open = TaskTracker::new();
    while let Some((stream, peer)) = stop.run_until_cancelled(listener.accept()).await {
        let desk = Desk(Arc::new(Rules { peer, policy: Arc::clone(&policy), app: Arc::clone(&app) }));
        // Whoever sends a body has hyper wake its own task several times a request.
        open.spawn(Unbroken::new(converse(stream, desk, stop.clone())));
    }
    drop(listener);
    open.close();
    open.wait().await;
}

/// Answers on one connection until one side has enough.
async fn converse(stream: TcpStream, desk: Desk, stop: CancellationToken) {
    // Most answers are small: to copy head and body together costs less than to hand over two pieces.
    let connection = http1::Builder::new().writev(false).serve_connection(TokioIo::new(stream), desk).with_upgrades();
    let mut connection = pin!(connection);
    let ended = match stop.run_until_cancelled(connection.as_mut()).await {
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
        request.extensions_mut().insert(ConnectInfo(rules.peer));
        // A request is passed on from hand to hand: room for it once, not in each of them.
        Box::pin(async move {
            match access::admit(&rules.policy, &mut request).await {
                Ok(()) => Ok(rules.app.answer(request).await),
                Err(refusal) => Ok(refusal),
            }
        })
    }
}
