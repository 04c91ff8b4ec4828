//! The HTTP skin: it listens, checks who asks, and hands JSON to the tools. Nothing outside this folder knows axum.
//!
//! A server for agents on the same machine. It must hold: nothing but this machine reaches it unless the person who
//! started it said so, neither a web page in a local browser nor another user of the machine can use it, and a caller
//! that goes away takes its wait along but never the command it started.

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
mod pace;
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
use crate::traffic::{Journal, Recording, Retention};
use access::{Login, Policy};
use browser::FIRST_LINK_LIFE;
use connection_limits::{ConnectionLimiter, ConnectionLimits};
use connections::App;
use crowd::{ConnectionLimiter, Limits};
use mcp::Folders;
#[cfg(feature = "conformance")]
pub use mcp::hosting;
pub use mcp::{
    AGENT_HEADER, Block, CLIENT_HEADER, Engine, Resource, SHOWS_PROGRESS_HEADER, ToolAnswer, ToolCall, serve_stdio,
};
use peer::Peer;
pub use peer::{ListenerOwner, listening};
use state_dir::Announcement;

/// The version that answers and files carry.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How long the disk is given when the server stops. With the 3.1 s that the end of all sessions may take, and the last
/// answers, a server is gone within 5 s.
const SAVE_TIMEOUT: Duration = Duration::from_millis(1_500);
/// How long the last answers are given to reach their readers.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(300);

/// Where agents of the same project leave notices for one another, below its root.
const PENDING_FOLDER: &str = "WORKING/pending_tasks";

/// Where and for whom to listen.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The address to listen on.
    pub host: IpAddr,
    /// The port; 0 takes a free one.
    pub port: u16,
    /// A port, or the next one that is free, where the server is the bridge of its sessions besides.
    pub bridge_port: Option<u16>,
    /// Another kpty that is told of this server's sessions.
    pub register_with: Option<String>,
    /// Who may reach the server.
    pub reach: Reach,
    /// Whether a caller has to show that it may ask.
    pub callers: Callers,
    /// A file with the token that lets in who is not our own user.
    pub token_file: Option<PathBuf>,
    /// Web pages, by their origin, that may ask although they are not of this machine.
    pub allow_origins: Vec<String>,
    /// A folder for what outlives the server; created when missing.
    pub state_dir: Option<PathBuf>,
}

/// Who may reach the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Programs on this machine.
    #[default]
    Loopback,
    /// Whoever the network lets through and has the token: they can run anything.
    Network,
}

/// Whether a caller has to show that it may ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Callers {
    /// Our own user, as the system tells, or who has the token.
    #[default]
    Known,
    /// Everybody on this machine.
    Anybody,
}

/// A server that listens but does not answer yet.
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
    /// Takes the port, then the state folder, and says in it where the server is.
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
            written.inspect_err(|error| tracing::warn!("nobody is told where the server is: {error}")).ok()
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it is a bridge besides.
    pub fn bridge_address(&self) -> Option<SocketAddr> {
        self.bridge.as_ref().map(|bridge| bridge.address)
    }

    /// Where a program of this machine reaches it; where it listens on all addresses, as the machine itself.
    pub fn url(&self) -> String {
        let host = match self.address.ip() {
            ip if !ip.is_unspecified() => self.address.to_string(),
            _ => format!("127.0.0.1:{}", self.address.port()),
        };
        format!("http://{host}")
    }

    /// A link that opens the page for people in one browser of our own user, within ten minutes. It is a secret: for a
    /// terminal, not for a log.
    pub fn first_link(&self) -> String {
        let code = self.policy.browsers().new_code(FIRST_LINK_LIFE, Peer::Own, Instant::now());
        format!("{}/ui?code={code}", self.url())
    }

    /// Reads again what may have changed since the start: the token. One that cannot be used leaves the old one.
    pub fn reloader(&self) -> impl Fn() + Send + 'static {
        let (policy, file) = (Arc::clone(&self.policy), self.token_file.clone());
        move || match file.as_deref().map(Token::read) {
            Some(Ok(token)) => {
                policy.replace_token(token);
                tracing::info!("the token was read again");
            }
            Some(Err(error)) => tracing::warn!("the token stays as it was: {error}"),
            None => tracing::info!("a hang-up is ignored"),
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
        let gate = mcp::gate(tools.clone(), &Folders { state: state_dir, pending: Some(pending) });
        let health = Health { tools: tools.clone(), saver: saver.clone(), port: address.port() };
        let app = App::new(router(&tools, health.clone(), &policy), &tools.config().mcp_path, gate.clone());
        let stopping = CancellationToken::new();
        let crowd = ConnectionLimiter::new(Limits::new());
        let serving = connections::serve(listener, Arc::clone(&policy), app, Arc::clone(&crowd), stopping.clone());
        let mut serving = tokio::spawn(serving);
        let bridging = bridge.map(|Bridge { listener, address }| {
            let app = bridge_router(&tools, Health { port: address.port(), ..health });
            tokio::spawn(connections::serve(listener, policy, app.into(), limiter, stopping.clone()))
        });
        let registrar = elsewhere.map(|elsewhere| start_registering(&tools, elsewhere)).transpose()?;
        tokio::select! {
            () = stop => {}
            ended = &mut serving => {
                tracing::error!("the listener ended by itself: {ended:?}");
            }
        }
        stopping.cancel();
        // Sessions that end now are no news for others any more.
        let goodbye = async {
            if let Some(registrar) = registrar {
                registrar.finish().await;
            }
        };
        let (left, ()) = tokio::join!(tools.shutdown(), goodbye);
        if !left.is_empty() {
            tracing::warn!("these sessions would not end: {left:?}");
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
            // One that panicked has nothing left to write.
            drop(recorded.await);
        })
        .await;
        drop(announcement);
        Ok(())
    }
}

/// A second listener, for clients that look for a bridge at its own port.
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

/// Where the other kpty reaches this one. One that is told of its own sessions would be told nothing new.
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

/// Tells another kpty of this server's own sessions from now on.
fn start_registering(tools: &Tools, elsewhere: Elsewhere) -> Result<Registrar> {
    let registry = tools.registry().clone();
    let own = move || registry.records().into_iter().filter(|record| record.source == Source::Local).collect();
    Registrar::start(elsewhere, tools.registry().changed(), own)
}

/// Takes over what an earlier server left, and saves from now on.
fn start_saving(tools: &Tools, store: Store, restored: Restored) -> Saver {
    if tools.registry().restore(restored.records) > 0 {
        // Nobody's first answer waits for desktops.
        let tools = tools.clone();
        tokio::spawn(async move { tools.verify_desktops().await });
    }
    Saver::start(store, Arc::new(tools.registry().clone()), restored.orphans)
}

/// Records what is done from now on.
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

/// A disk that does not answer must not keep the server from ending.
async fn saved(saving: impl Future<Output = ()>) {
    if tokio::time::timeout(SAVE_TIMEOUT, saving).await.is_err() {
        tracing::warn!("the disk is too slow: not everything was saved");
    }
}

/// An address that others can reach has to be asked for, and needs a token.
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

/// How callers show that they may ask. Where the system does not tell their user, there is always a token.
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

/// Everything but the protocol.
fn router(tools: &Tools, health: Health, policy: &Policy) -> Router {
    Router::new()
        .route("/", get(info).with_state(tools.clone()))
        .route("/health", get(Health::tell).with_state(health))
        .merge(pty_http::routes(tools))
        .merge(bridge_http::routes(tools))
        .merge(ui::routes(Arc::clone(policy.browsers())))
        .merge(live::routes(tools))
        .merge(traffic_http::routes(tools))
        .merge(agents_http::routes(tools))
        .merge(openapi::routes())
        .fallback(not_found)
}

/// What a bridge has, and nothing else.
fn bridge_router(tools: &Tools, health: Health) -> Router {
    let tell = get(Health::tell).with_state(health);
    Router::new()
        .route("/", tell.clone())
        .route("/health", tell)
        .merge(bridge_http::routes(tools))
        .fallback(bridge_http::not_found)
}

/// In the words of a core and of a bridge.
async fn not_found() -> (StatusCode, Json<Value>) {
    (StatusCode::NOT_FOUND, Json(json!({ "detail": "Not Found", "ok": false, "error": "Not found" })))
}

async fn info(State(tools): State<Tools>) -> Json<Value> {
    let names: Vec<_> = Offer::all().map(Offer::name).collect();
    Json(json!({
        "name": mcp::SERVER_NAME,
        "version": VERSION,
        "status": "ok",
        "mcp_endpoint": tools.config().mcp_path,
        "tools_count": names.len(),
        "tools": names,
    }))
}

/// How the server is, in the words of a core and of a bridge.
#[derive(Clone)]
struct Health {
    tools: Tools,
    saver: Option<Saver>,
    /// Where it is asked.
    port: u16,
}

impl Health {
    async fn tell(State(Self { tools, saver, port }): State<Self>) -> Json<Value> {
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
