//! MCP: the only home of its library. What comes in here are HTTP requests or lines on standard input, what goes out
//! are calls of an [`Engine`]; nothing here knows what a terminal is.
//!
//! [`plain`] tells clients that speak the protocol from those that only speak JSON, [`adapter`] is the handler of both,
//! [`published`] is what they are told of the tools, [`sessions`] keeps client sessions over a restart, [`live`]
//! bounds them, [`pending`] brings notices, [`stdio`] is the same without HTTP.

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

pub use engine::{Block, Engine, Resource, ToolAnswer, ToolCall};
pub use stdio::serve_stdio;

use adapter::Adapter;
use plain::Gate;
pub(super) use plain::name_in;
use published::Published;

/// The way in for HTTP, to the tools.
pub(super) type McpGate = Gate<Adapter>;

/// The name in `serverInfo`.
pub(super) const SERVER_NAME: &str = "kpty";

/// A plain client sends it when whoever it works for is shown that a call goes on; its waits are then not cut short.
pub const SHOWS_PROGRESS_HEADER: HeaderName = HeaderName::from_static("kpty-shows-progress");

/// The header in which a caller says who it is. It is a claim, and recorded as one.
pub const AGENT_HEADER: HeaderName = HeaderName::from_static("x-kpty-agent");
/// The header in which a program that passes calls on says whose they are.
pub const CLIENT_HEADER: HeaderName = HeaderName::from_static("x-kpty-client");

/// The folder for client sessions, below the state folder.
const SESSIONS_FOLDER: &str = "mcp_sessions";

/// The longest id of a client session that becomes the name of a file.
const MAX_FILE_ID: usize = 128;

/// Where files are.
#[derive(Clone, Debug, Default)]
pub(super) struct Folders {
    /// The server's own; without one, client sessions end with the server.
    pub(super) state: Option<PathBuf>,
    /// Where others leave notices for a client session; see [`pending`].
    pub(super) pending: Option<PathBuf>,
}

/// The tools in the words of `tools/list`, for those who ask without the protocol.
pub(super) fn tool_definitions() -> Vec<Value> {
    let define =
        |tool: Published| json!({ "name": tool.name, "description": tool.description, "inputSchema": tool.schema });
    published::tools().into_iter().map(define).collect()
}

/// Opens the way in.
pub(super) fn gate(engine: impl Engine, folders: &Folders) -> Arc<McpGate> {
    let adapter = Adapter::new(engine).with_pending(folders.pending.clone());
    Arc::new(Gate::new(adapter, folders.state.as_ref().map(|folder| folder.join(SESSIONS_FOLDER))))
}

/// The name of the file of a client session. An id comes from outside: only letters, digits, `-` and `_` name a file.
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
