//! MCP over standard input and output: one message per line, and nothing else on standard output.

use rmcp::serve_server;
use rmcp::service::ServerInitializeError;
use rmcp::transport::io::stdio_pipes;

use super::adapter::Adapter;
use super::engine::Engine;
use crate::config::ToolSet;
use crate::error::{Error, Result};

/// Serves until standard input ends. Calls in progress then have a few seconds to reply.
pub async fn serve_stdio(engine: impl Engine, tools: ToolSet) -> Result<()> {
    let failed = |problem: String| Error::Server(format!("the MCP connection failed: {problem}"));
    let service = match serve_server(Adapter::new(engine, tools), stdio_pipes()).await {
        Ok(service) => service,
        // A client that disconnects before `initialize` is not an error.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(failed(error.to_string())),
    };
    service.waiting().await.map_err(|error| failed(error.to_string()))?;
    Ok(())
}
