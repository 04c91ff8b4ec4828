//! Serves any handler of the MCP library behind the gate, the session store and the access checks of the program. The
//! conformance suite needs it: the suite asks for tools by name, so the tools of the program cannot pass it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use rmcp::ServerHandler;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use super::plain::{AnswersPlainCalls, Plain, PlainResult};
use super::{Gate, SESSIONS_FOLDER};
use crate::error::{self, Error};
use crate::server::Reach;
use crate::server::access::{Login, Policy};
use crate::server::connection_limits::{ConnectionLimiter, ConnectionLimits};
use crate::server::connections::{self, App};

/// A server for a handler that listens but does not answer yet.
pub struct Host<H> {
    handler: H,
    listener: TcpListener,
    address: SocketAddr,
}

impl<H: ServerHandler + AnswersPlainCalls + Clone + Sync> Host<H> {
    /// Takes a free port.
    pub async fn bind(handler: H) -> error::Result<Self> {
        let refused = |cause: std::io::Error| Error::Server(format!("cannot listen: {cause}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Self { handler, listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until the process ends; client sessions are kept in the folder.
    pub async fn run(self, state: &Path) -> error::Result<()> {
        let gate = Arc::new(Gate::new(self.handler, Some(state.join(SESSIONS_FOLDER))));
        let policy = Policy::new(self.address.ip(), vec![self.address.port()], Reach::Loopback, &[], Login::On(None))?;
        let app = App::new(Router::new(), "/mcp", gate);
        let limiter = ConnectionLimiter::new(ConnectionLimits::new());
        connections::serve(self.listener, Arc::new(policy), app, limiter, CancellationToken::new()).await;
        Ok(())
    }
}
