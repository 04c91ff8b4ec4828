//! The same handler on standard input and output: one message a line, and nothing else on standard output.

use rmcp::serve_server;
use rmcp::service::ServerInitializeError;
use rmcp::transport::io::stdio_pipes;

use super::adapter::Adapter;
use super::engine::Engine;
use crate::error::{Error, Result};

/// Answers until standard input ends. Calls that are being carried out then have a few seconds to answer.
pub async fn serve_stdio(engine: impl Engine) -> Result<()> {
    let failed = |problem: String| Error::Server(format!("the client cannot be spoken to: {problem}"));
    let service = match serve_server(Adapter::new(engine), stdio_pipes()).await {
        Ok(service) => service,
        // A client that goes away before it introduces itself is no failure.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(failed(error.to_string())),
    };
    service.waiting().await.map_err(|error| failed(error.to_string()))?;
    Ok(())
}
