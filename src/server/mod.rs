//! The HTTP skin: it listens, checks who asks, and hands JSON to the tools. Nothing outside this folder knows axum.
//!
//! A server for agents on the same machine. It must hold: nothing but this machine reaches it unless the person who
//! started it said so, a web page in a local browser cannot use it, and a caller that goes away takes its wait along
//! but never the command it started.

mod access;
mod body;
mod desktop_auth;
mod mcp;
mod pty_http;
mod schema;
mod state_dir;

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use axum::extract::State;
use axum::middleware;
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::tools::Tools;
use state_dir::Announcement;

/// The version that answers and files carry.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How long sessions are given to end when the server stops. A kill takes 3 s at most.
const KILL_PATIENCE: Duration = Duration::from_secs(5);
/// How long the last answers are given to reach their readers.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);

/// Where and for whom to listen.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The address to listen on.
    pub host: IpAddr,
    /// The port; 0 takes a free one.
    pub port: u16,
    /// Who may reach the server.
    pub reach: Reach,
    /// A folder for what others may want to know; created when missing.
    pub state_dir: Option<PathBuf>,
}

/// Who may reach the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Programs on this machine.
    #[default]
    Loopback,
    /// Whoever the network lets through. There is no login: they can run anything.
    Network,
}

/// A server that listens but does not answer yet.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    reach: Reach,
    announcement: Option<Announcement>,
}

impl Server {
    /// Takes the port and says so in the state folder.
    pub async fn bind(settings: &ServerSettings) -> Result<Self> {
        let ServerSettings { host, port, reach, .. } = *settings;
        if reach == Reach::Loopback && !host.is_loopback() {
            let message = format!(
                "{host} is not a loopback address: everybody who can reach it could run commands here. Use \
                 --allow-remote if that is what you want"
            );
            return Err(Error::Usage(message));
        }
        let folder = settings.state_dir.as_deref();
        folder.map(state_dir::create).transpose()?;
        let wanted = SocketAddr::new(host, port);
        let refused = |cause: std::io::Error| Error::Server(format!("cannot listen on {wanted}: {cause}"));
        let listener = TcpListener::bind(wanted).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let announcement = folder.map(|folder| Announcement::write(folder, address.port(), VERSION)).transpose()?;
        Ok(Self { listener, address, reach, announcement })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` comes; then ends all sessions and returns.
    pub async fn run(self, tools: Tools, stop: impl Future<Output = ()>) -> Result<()> {
        let Self { listener, address, reach, announcement } = self;
        let app = router(tools.clone(), access::Policy::new(address.port(), reach));
        let listener = listener.tap_io(|stream| {
            // Answers are small and waited for. A connection without it is slower, not wrong.
            let _ = stream.set_nodelay(true);
        });
        let (stopping, stopped) = oneshot::channel::<()>();
        let graceful = axum::serve(listener, app).with_graceful_shutdown(async {
            let _ = stopped.await;
        });
        let mut serving = tokio::spawn(graceful.into_future());
        tokio::select! {
            () = stop => {}
            ended = &mut serving => {
                tracing::error!("the listener ended by itself: {ended:?}");
            }
        }
        // Nobody listens only when the listener is gone already.
        let _ = stopping.send(());
        match tokio::time::timeout(KILL_PATIENCE, tools.shutdown()).await {
            Ok(left) if left.is_empty() => {}
            Ok(left) => tracing::warn!("these sessions would not end: {left:?}"),
            Err(_) => tracing::warn!("some sessions did not end in time"),
        }
        if !serving.is_finished() && tokio::time::timeout(ANSWER_PATIENCE, &mut serving).await.is_err() {
            serving.abort();
        }
        drop(announcement);
        Ok(())
    }
}

fn router(tools: Tools, policy: access::Policy) -> Router {
    Router::new()
        .route("/", get(info))
        .route("/health", get(health))
        .route("/mcp", post(mcp::handle))
        .with_state(tools.clone())
        .merge(pty_http::routes(&tools))
        .layer(middleware::from_fn_with_state(policy, access::check))
}

async fn info() -> Json<Value> {
    Json(json!({
        "name": mcp::SERVER_NAME,
        "version": VERSION,
        "status": "ok",
        "mcp_endpoint": "/mcp",
        "tools_count": 1,
        "tools": [schema::TOOL],
    }))
}

async fn health(State(tools): State<Tools>) -> Json<Value> {
    let sessions = tools.registry().list();
    let alive = sessions.iter().filter(|session| session.exit().is_none()).count();
    Json(json!({ "ok": true, "status": "healthy", "version": VERSION, "sessions": alive }))
}
