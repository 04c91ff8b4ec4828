//! MCP, the only module that uses its library. Input is HTTP requests or lines on standard input, output is calls of an
//! [`Engine`]; this module knows nothing about terminals.
//!
//! [`plain`] separates clients that speak the protocol from those that only speak JSON, [`adapter`] handles both,
//! [`published`] describes the tools, [`sessions`] keeps client sessions over a restart, [`live`] limits them,
//! [`pending`] delivers notices, [`stdio`] is the transport without HTTP.

mod adapter;
mod engine;
#[cfg(feature = "conformance")]
pub mod hosting;
mod json_text;
mod live;
mod message;
mod pending;
mod plain;
mod published;
mod sessions;
mod stdio;

use std::path::PathBuf;
use std::sync::Arc;

use axum::http::HeaderName;
use serde_json::{Value, json};

use crate::config::ToolSet;
pub use engine::{Block, Engine, Resource, ToolAnswer, ToolCall};
pub use stdio::serve_stdio;

use adapter::Adapter;
use plain::Gate;
pub use plain::SESSION_HEADER as MCP_SESSION_HEADER;
pub(super) use plain::name_in;
use published::Published;

/// The HTTP entry point, connected to the tools.
pub(super) type McpGate = Gate<Adapter>;

/// Name in `serverInfo`.
pub(super) const SERVER_NAME: &str = "kpty";

/// Sent by a plain client that displays progress itself; its waits are then not shortened.
pub const SHOWS_PROGRESS_HEADER: HeaderName = HeaderName::from_static("kpty-shows-progress");

/// Header with the caller's agent id: an unverified claim, recorded as such.
pub const AGENT_HEADER: HeaderName = HeaderName::from_static("x-kpty-agent");
/// Header of a forwarding program with the name of its own client.
pub const CLIENT_HEADER: HeaderName = HeaderName::from_static("x-kpty-client");

/// Folder of client sessions below the state folder.
const SESSIONS_FOLDER: &str = "mcp_sessions";

/// Maximum length of a client session id that becomes a file name.
const MAX_FILE_ID: usize = 128;

/// Folders that the module uses.
#[derive(Clone, Debug, Default)]
pub(super) struct Folders {
    /// State folder; without one, client sessions end with the server.
    pub(super) state: Option<PathBuf>,
    /// Folder of notices for client sessions; see [`pending`].
    pub(super) pending: Option<PathBuf>,
}

/// Returns the tools in the format of `tools/list`, for clients without the protocol.
pub(super) fn tool_definitions(set: ToolSet) -> Vec<Value> {
    let define =
        |tool: Published| json!({ "name": tool.name, "description": tool.description, "inputSchema": tool.schema });
    published::shown(set, true).into_iter().map(define).collect()
}

/// Creates the HTTP entry point.
pub(super) fn gate(engine: impl Engine, tools: ToolSet, folders: &Folders) -> Arc<McpGate> {
    let adapter = Adapter::new(engine, tools).with_pending(folders.pending.clone());
    Arc::new(Gate::new(adapter, folders.state.as_ref().map(|folder| folder.join(SESSIONS_FOLDER))))
}

/// Returns the file name of a client session. Ids are untrusted: only letters, digits, `-` and `_` are accepted.
fn file_name(id: &str) -> Option<String> {
    let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_name = !id.is_empty() && id.len() <= MAX_FILE_ID && id.bytes().all(is_harmless);
    is_name.then(|| format!("{id}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_ids_name_files() {
        assert_eq!(file_name("session_0a-B"), Some("session_0a-B.json".to_owned()));
        assert!(file_name(&"a".repeat(128)).is_some());
        for id in ["", ".", "..", "../x", "a/b", "a\\b", "a b", "a\0", "é", "a.json", &"a".repeat(129)] {
            assert_eq!(file_name(id), None, "{id:?}");
        }
    }
}
