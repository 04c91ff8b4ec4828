//! The HTTP server: listens, checks access, and passes JSON to the tools. Only this module uses axum.
//!
//! It serves agents on the same machine. Invariants: only this machine reaches it unless the operator chose otherwise;
//! neither a web page in a local browser nor another user of the machine can use it; a client that disconnects cancels
//! its wait but never the command it started.

mod access;
mod agents_http;
mod body;
mod bridge_http;
mod browser;
mod connection_limits;
mod connection_timeouts;
mod connections;
mod desktop_auth;
pub(crate) mod live;
mod log_limit;
mod mcp;
mod openapi;
mod peer;
mod pty_http;
mod query;
#[cfg(target_os = "linux")]
mod sock_diag;
mod state_dir;
mod traffic_http;
mod traffic_ws;
mod ui;

use std::future::Future;
use std::iter;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result};
use crate::model::Source;
use crate::store::{Restored, Saver, Store, Token};
use crate::terminal::desktop::register::{Elsewhere, Registrar};
use crate::terminal::peer::HEALTH_FIELD;
use crate::tools::{Offer, Tools};
use crate::traffic::{Journal, Retention, TrafficOptions};
use access::{Login, Policy};
use browser::FIRST_LINK_LIFE;
use connection_limits::{ConnectionLimiter, ConnectionLimits};
use connections::App;
use mcp::Folders;
#[cfg(feature = "conformance")]
pub use mcp::hosting;
pub use mcp::{
    AGENT_HEADER, Block, CLIENT_HEADER, Engine, MCP_SESSION_HEADER, Resource, SHOWS_PROGRESS_HEADER, ToolAnswer,
    ToolCall, serve_stdio,
};
use peer::Peer;
pub use peer::{ListenerOwner, listening};
use state_dir::Announcement;

/// Version in replies and files.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How long the disk is given when the server stops. With the 3.1 s that the end of all sessions may take, and the last
/// answers, a server is gone within 5 s.
const SAVE_TIMEOUT: Duration = Duration::from_millis(1_500);
/// How long the last answers are given to reach their readers.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(300);

/// Folder below the project root where agents leave notices for one another.
const PENDING_FOLDER: &str = "WORKING/pending_tasks";

/// Listening address and access settings.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Address to listen on.
    pub host: IpAddr,
    /// Port to listen on; 0 selects a free one.
    pub port: u16,
    /// Port of the bridge listener, or the first free one after it.
    pub bridge_port: Option<u16>,
    /// Another kpty to register this server's sessions with.
    pub register_with: Option<String>,
    /// Who can reach the server.
    pub reach: Reach,
    /// Which callers are authorized.
    pub callers: Callers,
    /// File with the token that authorizes other users.
    pub token_file: Option<PathBuf>,
    /// Origins of web pages that may send requests besides local pages.
    pub allow_origins: Vec<String>,
    /// State folder; created when missing.
    pub state_dir: Option<PathBuf>,
}

/// Who can reach the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Programs on this machine.
    #[default]
    Loopback,
    /// Every host on the network that has the token; such a client can run any command.
    Network,
}

/// Which callers are authorized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Callers {
    /// The server's own user, as the kernel reports it, and clients with the token.
    #[default]
    Known,
    /// Every local client.
    Anybody,
}

/// A bound server that does not serve requests yet.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    bridge: Option<Bridge>,
    elsewhere: Option<Elsewhere>,
    policy: Arc<Policy>,
    token_file: Option<PathBuf>,
    store: Option<(Store, Restored)>,
    announcement: Option<Announcement>,
    state_dir: Option<PathBuf>,
}

impl Server {
    /// Binds the port, locks the state folder, and writes the server's address into it.
    pub async fn bind(settings: &ServerSettings) -> Result<Self> {
        let ServerSettings { host, port, reach, .. } = *settings;
        check_reach(settings)?;
        let wanted = SocketAddr::new(host, port);
        let refused = |cause: std::io::Error| {
            let advice = "--host and --port, or KPTY_HOST and KPTY_PORT (KURORYUU_MCP_HOST, KURORYUU_MCP_PORT), choose another address";
            Error::Server(format!("cannot listen on {wanted}: {cause}; {advice}"))
        };
        let listener = TcpListener::bind(wanted).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let elsewhere = settings.register_with.as_deref().map(|url| elsewhere(url, address)).transpose()?;
        let bridge = match settings.bridge_port {
            Some(wanted) => Some(Bridge::bind(host, wanted).await?),
            None => None,
        };
        let bridge_port = bridge.as_ref().map(|bridge| bridge.address.port());
        let folder = settings.state_dir.as_deref();
        let store = folder.map(Store::open).transpose()?;
        let login = login(settings, folder)?;
        let policy = Policy::new(
            host,
            iter::once(address.port()).chain(bridge_port).collect(),
            reach,
            &settings.allow_origins,
            login,
        )?;
        let announce = |folder: &Path| {
            let written = Announcement::write(folder, address.port(), bridge_port, VERSION);
            written.inspect_err(|error| tracing::warn!("cannot write the server's address: {error}")).ok()
        };
        let announcement = folder.and_then(announce);
        Ok(Self {
            listener,
            address,
            bridge,
            elsewhere,
            policy: Arc::new(policy),
            token_file: settings.token_file.clone(),
            store,
            announcement,
            state_dir: settings.state_dir.clone(),
        })
    }

    /// Returns the listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of the bridge listener.
    pub fn bridge_address(&self) -> Option<SocketAddr> {
        self.bridge.as_ref().map(|bridge| bridge.address)
    }

    /// Returns the URL for local programs; the loopback address if the server listens on all addresses.
    pub fn url(&self) -> String {
        let host = match self.address.ip() {
            ip if !ip.is_unspecified() => self.address.to_string(),
            _ => format!("127.0.0.1:{}", self.address.port()),
        };
        format!("http://{host}")
    }

    /// Creates a link that logs in one browser of the server's own user within ten minutes. It is a secret: print it on
    /// a terminal, never in a log.
    pub fn first_link(&self) -> String {
        let code = self.policy.browsers().new_code(FIRST_LINK_LIFE, Peer::Own, Instant::now());
        format!("{}/ui?code={code}", self.url())
    }

    /// Returns a function that reloads the token. An unusable token file keeps the old token.
    pub fn reloader(&self) -> impl Fn() + Send + 'static {
        let (policy, file) = (Arc::clone(&self.policy), self.token_file.clone());
        move || match file.as_deref().map(Token::read) {
            Some(Ok(token)) => {
                policy.replace_token(token);
                tracing::info!("token reloaded");
            }
            Some(Err(error)) => tracing::warn!("keeping the old token: {error}"),
            None => tracing::info!("SIGHUP ignored: no token file"),
        }
    }

    /// RequestHandler until `stop` comes; then ends all sessions and returns.
    pub async fn run(self, tools: Tools, stop: impl Future<Output = ()>) -> Result<()> {
        let Self { listener, address, bridge, elsewhere, policy, store, announcement, state_dir, .. } = self;
        let saver = store.map(|(store, restored)| start_saving(&tools, store, restored));
        if let Some(folder) = &state_dir {
            tools.recordings().open(folder.join("recordings"));
        }
        start_recording(&tools, state_dir.clone(), saver.as_ref(), address);
        let pending = tools.config().project_root.join(PENDING_FOLDER);
        let gate =
            mcp::gate(tools.clone(), tools.config().tools, &Folders { state: state_dir, pending: Some(pending) });
        let health = Health { tools: tools.clone(), saver: saver.clone(), port: address.port() };
        let app = App::new(router(&tools, health.clone(), &policy), &tools.config().mcp_path, gate.clone());
        let stopping = CancellationToken::new();
        let limiter = ConnectionLimiter::new(ConnectionLimits::new());
        let serving = connections::serve(listener, Arc::clone(&policy), app, Arc::clone(&limiter), stopping.clone());
        let mut serving = tokio::spawn(serving);
        let bridging = bridge.map(|Bridge { listener, address }| {
            let app = bridge_router(&tools, Health { port: address.port(), ..health });
            tokio::spawn(connections::serve(listener, policy, app.into(), limiter, stopping.clone()))
        });
        let registrar = elsewhere.map(|elsewhere| start_registering(&tools, elsewhere)).transpose()?;
        tokio::select! {
            () = stop => {}
            ended = &mut serving => {
                tracing::error!("the listener failed: {ended:?}");
            }
        }
        stopping.cancel();
        // Clients of the other kpty need not see sessions end during shutdown.
        let unregister = async {
            if let Some(registrar) = registrar {
                registrar.finish().await;
            }
        };
        let (left, ()) = tokio::join!(tools.shutdown(), unregister);
        if !left.is_empty() {
            tracing::warn!("sessions that did not end: {left:?}");
        }
        gate.stop();
        tools.traffic().close_subscriptions();
        if !serving.is_finished() && tokio::time::timeout(RESPONSE_TIMEOUT, &mut serving).await.is_err() {
            serving.abort();
        }
        if let Some(bridging) = bridging {
            bridging.abort();
        }
        let traffic = tools.traffic().clone();
        let recorded = tokio::task::spawn_blocking(move || traffic.finish());
        saved(async {
            if let Some(saver) = &saver {
                saver.finish().await;
            }
            // After a panic the thread has nothing left to write.
            drop(recorded.await);
        })
        .await;
        drop(announcement);
        Ok(())
    }
}

/// A second listener, for clients that expect a bridge at its own port.
struct Bridge {
    listener: TcpListener,
    address: SocketAddr,
}

impl Bridge {
    async fn bind(host: IpAddr, wanted: u16) -> Result<Self> {
        let listener = bridge_http::listen(host, wanted).await?;
        let address = listener.local_addr().map_err(|cause| Error::Server(format!("the bridge's port: {cause}")))?;
        Ok(Self { listener, address })
    }
}

/// Validates the URL of the other kpty. Registering with this server itself would have no effect.
fn elsewhere(url: &str, own: SocketAddr) -> Result<Elsewhere> {
    let host = match own.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    let own_url = format!("http://{}", SocketAddr::new(host, own.port()));
    let is_own_port = url.rsplit(':').next() == Some(own.port().to_string().as_str());
    let is_this_machine = ["http://localhost:", "http://127.", "http://[::1]:"].iter().any(|own| url.starts_with(own));
    if url == own_url || (is_own_port && is_this_machine && host.is_loopback()) {
        return Err(Error::Usage(format!("--register-with {url} is this server itself")));
    }
    Ok(Elsewhere { url: url.to_owned(), own_url })
}

/// Starts registering this server's sessions with another kpty.
fn start_registering(tools: &Tools, elsewhere: Elsewhere) -> Result<Registrar> {
    let registry = tools.registry().clone();
    let own = move || registry.records().into_iter().filter(|record| record.source == Source::Local).collect();
    Registrar::start(elsewhere, tools.registry().changed(), own)
}

/// Restores the state of an earlier server, and starts saving.
fn start_saving(tools: &Tools, store: Store, restored: Restored) -> Saver {
    if tools.registry().restore(restored.records) > 0 {
        // Desktops are verified in the background, so that the first reply does not wait for them.
        let tools = tools.clone();
        tokio::spawn(async move { tools.verify_desktops().await });
    }
    Saver::start(store, Arc::new(tools.registry().clone()), restored.orphans)
}

/// Starts the traffic log.
fn start_recording(tools: &Tools, folder: Option<PathBuf>, saver: Option<&Saver>, address: SocketAddr) {
    let config = tools.config();
    tools.traffic().start(TrafficOptions {
        folder,
        retention: Retention { age: config.traffic_age, rows: config.traffic_rows },
        journal: saver.map(|saver| Box::new(saver.journal()) as Journal),
        gateway: config.gateway_url.clone(),
        own_address: Some(address),
    });
}

/// Bounds the time that an unresponsive disk delays the shutdown.
async fn saved(saving: impl Future<Output = ()>) {
    if tokio::time::timeout(SAVE_TIMEOUT, saving).await.is_err() {
        tracing::warn!("the disk is too slow: not everything was saved");
    }
}

/// Rejects a public address unless it was requested explicitly and has a token.
fn check_reach(settings: &ServerSettings) -> Result<()> {
    let ServerSettings { host, reach, callers, .. } = *settings;
    let objection = match (reach, host.is_loopback()) {
        (_, true) => return Ok(()),
        (Reach::Loopback, false) => {
            "is not a loopback address: who can reach it could try to run commands here. Use --allow-remote and \
             --token-file if that is what you want"
        }
        (Reach::Network, false) if callers == Callers::Anybody => {
            "is not a loopback address: --no-auth would let everybody who can reach it run commands here"
        }
        (Reach::Network, false) if settings.token_file.is_none() => {
            "is not a loopback address: it needs --token-file, so that not everybody who can reach it runs commands here"
        }
        (Reach::Network, false) => return Ok(()),
    };
    Err(Error::Usage(format!("{host} {objection}")))
}

/// Chooses how callers are authorized. Where the system does not report their user, there is always a token.
fn login(settings: &ServerSettings, folder: Option<&Path>) -> Result<Login> {
    let token = match (settings.callers, &settings.token_file, folder) {
        (Callers::Anybody, ..) => return Ok(Login::Off),
        (Callers::Known, Some(file), _) => Some(Token::read(file)?),
        (Callers::Known, None, Some(folder)) if access::needs_token() => Some(Token::read_or_make(folder)?),
        (Callers::Known, None, None) if access::needs_token() => {
            let message = "this system does not tell who connects: give --state-dir for a token, or --token-file";
            return Err(Error::Usage(message.to_owned()));
        }
        (Callers::Known, None, _) => None,
    };
    Ok(Login::On(token.map(Mutex::new)))
}

/// All routes except MCP.
fn router(tools: &Tools, health: Health, policy: &Policy) -> Router {
    Router::new()
        .route("/", get(info).with_state(tools.clone()))
        .route("/health", get(Health::report).with_state(health))
        .merge(pty_http::routes(tools))
        .merge(bridge_http::routes(tools))
        .merge(ui::routes(Arc::clone(policy.browsers())))
        .merge(live::routes(tools))
        .merge(traffic_http::routes(tools))
        .merge(agents_http::routes(tools))
        .merge(openapi::routes())
        .fallback(not_found)
}

/// Routes of a bridge.
fn bridge_router(tools: &Tools, health: Health) -> Router {
    let tell = get(Health::report).with_state(health);
    Router::new()
        .route("/", tell.clone())
        .route("/health", tell)
        .merge(bridge_http::routes(tools))
        .fallback(bridge_http::not_found)
}

/// Combines the error formats of a core and of a bridge.
async fn not_found() -> (StatusCode, Json<Value>) {
    (StatusCode::NOT_FOUND, Json(json!({ "detail": "Not Found", "ok": false, "error": "Not found" })))
}

async fn info(State(tools): State<Tools>) -> Json<Value> {
    let names: Vec<_> = Offer::shown(tools.config().tools, true).map(Offer::name).collect();
    Json(json!({
        "name": mcp::SERVER_NAME,
        "version": VERSION,
        "status": "ok",
        "mcp_endpoint": tools.config().mcp_path,
        "tools_count": names.len(),
        "tools": names,
    }))
}

/// Health route, in the combined format of a core and of a bridge.
#[derive(Clone)]
struct Health {
    tools: Tools,
    saver: Option<Saver>,
    /// Port on which the health route is served.
    port: u16,
}

impl Health {
    async fn report(State(Self { tools, saver, port }): State<Self>) -> Json<Value> {
        let sessions = tools.registry().list();
        let alive = sessions.iter().filter(|session| session.exit().is_none()).count();
        let mut body = json!({
            "ok": true, "status": "healthy", "version": VERSION, "pid": std::process::id(), "sessions": alive,
            "service": "pty-bridge", "port": port, "mode": "embedded", "daemonConnected": false,
            "exact_talk": true, HEALTH_FIELD: tools.config().redact,
        });
        let counts = tools.traffic().counts();
        body["audit"] = json!({
            "recorded": counts.recorded,
            "dropped": counts.dropped,
            "failed": counts.failed,
            "gateway_sent": counts.gateway_sent,
            "gateway_dropped": counts.gateway_dropped,
        });
        if let Some(reason) = saver.and_then(|saver| saver.failure()).or(counts.failure) {
            body["degraded"] = json!(true);
            body["reason"] = json!(reason);
        }
        Json(body)
    }
}
