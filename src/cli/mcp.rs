//! `kpty mcp`: MCP on standard input and output, for clients that start their servers themselves.
//!
//! Where a server runs, calls go to it and sessions outlive this process. Where none runs, the sessions live in this
//! process and end with it. Standard output belongs to the protocol.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use clap::Args;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::client::Client;
use super::serve::end_signal;
use super::{Failure, Outcome, print};
use crate::config::{self, Config, LONGEST_TALK};
use crate::error::{Error, Result};
use crate::ids::passing_hex;
use crate::server::{
    AGENT_HEADER, Block, CLIENT_HEADER, Engine, MCP_SESSION_HEADER, SHOWS_PROGRESS_HEADER, ToolAnswer, ToolCall,
    serve_stdio,
};
use crate::terminal::local;
use crate::terminal::local::pty;
use crate::tools::{Caller, Offer, Reply, Tools};
use crate::traffic::{Retention, TrafficOptions};

/// How long a server may take to say that it is one.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long threads that are still busy are waited for at the end.
const LAST_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Args)]
#[command(after_help = "\
If a server answers at the URL, calls are forwarded to it, and its sessions outlive this process. Otherwise the sessions
run in this process and end with it. RUST_LOG sets what is logged to standard error.

Examples:
  claude mcp add kpty -- kpty mcp              in Claude Code
  codex mcp add kpty -- kpty mcp               in Codex")]
pub(super) struct McpArguments {
    /// URL of the server to use if it is running
    #[arg(long, value_name = "URL", env = config::URL_VARIABLE, default_value_t = config::default_url())]
    url: String,

    /// File with the server's token; not needed for a server on this machine that created its own token
    #[arg(long, value_name = "FILE", env = "KPTY_TOKEN_FILE")]
    token_file: Option<PathBuf>,

    /// User id of the server, if it runs as another user; without it the token is sent only to your own user's server
    #[arg(long, value_name = "UID", env = "KPTY_SERVER_USER")]
    server_user: Option<u32>,

    /// Do not use a server; run the sessions in this process
    #[arg(long)]
    alone: bool,
}

pub(super) fn run(arguments: McpArguments) -> std::result::Result<Outcome, Failure> {
    print::log_problems();
    pty::raise_open_files_limit();
    local::keep_little_unused_memory();
    let config = Config::from_env()?;
    let runtime = super::threaded_runtime()?;
    let served = runtime.block_on(serve(arguments, config));
    runtime.shutdown_timeout(LAST_TIMEOUT);
    served?;
    Ok(Outcome::Done)
}

async fn serve(arguments: McpArguments, config: Config) -> Result<()> {
    let stop = end_signal().map_err(|cause| Error::Server(format!("cannot listen for signals: {cause}")))?;
    let client = Client::at(&arguments.url, arguments.token_file.as_deref())?.with_server_user(arguments.server_user);
    if !arguments.alone && is_server(&client).await {
        tracing::info!("calls go to the server at {}", arguments.url);
        let remote = Remote { client, agent: config.identity.agent_id, session: passing_hex() };
        return until(stop, serve_stdio(remote, config.tools)).await;
    }
    tracing::info!("no server at {}: sessions live in this process", arguments.url);
    let tools = Tools::new(config);
    tell_gateway(&tools);
    let served = until(stop, serve_stdio(tools.clone(), tools.config().tools)).await;
    let left = tools.shutdown().await;
    if !left.is_empty() {
        tracing::warn!("these sessions would not end: {left:?}");
    }
    served
}

/// Without a server there is no folder for a record; a configured gateway still gets the events.
fn tell_gateway(tools: &Tools) {
    let config = tools.config();
    if let Some(gateway) = config.gateway_url.clone() {
        let retention = Retention { age: config.traffic_age, rows: config.traffic_rows };
        let gateway = Some(gateway);
        tools.traffic().start(TrafficOptions { folder: None, retention, journal: None, gateway, own_address: None });
    }
}

/// Ends early, without complaint, when asked to.
async fn until(stop: impl Future<Output = ()>, served: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::select! {
        () = stop => Ok(()),
        served = served => served,
    }
}

/// It says that it is healthy, and it lets us see its tools.
async fn is_server(client: &Client) -> bool {
    let health = client.health(PROBE_TIMEOUT).await;
    // Others answer at this path too; only ours counts its sessions.
    let is_ours =
        |health: Map<String, Value>| health["ok"] == true && health.get("sessions").is_some_and(Value::is_u64);
    if !health.is_ok_and(|health| health.is_some_and(is_ours)) {
        return false;
    }
    let question = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let Ok(answer) = client.post(&question, PROBE_TIMEOUT, &[]).await else { return false };
    let tools = answer.pointer("/result/tools").and_then(Value::as_array);
    let has = |name: &str| tools.is_some_and(|tools| tools.iter().any(|tool| tool["name"] == name));
    let is_ours = Offer::all().any(|offer| has(offer.name()));
    if !is_ours {
        tracing::warn!("the server does not let us use its tools; sessions live in this process");
    }
    is_ours
}

/// A server elsewhere. A call that is dropped hangs up, and the server ends its wait.
struct Remote {
    client: Client,
    /// The agent that this process was started for.
    agent: Option<String>,
    /// Tells this process from another one of the same client.
    session: String,
}

impl Engine for Remote {
    fn call(&self, call: ToolCall) -> Pin<Box<dyn Future<Output = ToolAnswer> + Send + '_>> {
        Box::pin(async move {
            let ToolCall { offer, arguments, caller } = call;
            let question = json!({
                "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": offer.name(), "arguments": arguments },
            });
            let Caller { can_show_progress, agent, client, is_person: _ } = caller;
            let mut headers = Vec::new();
            headers.extend(can_show_progress.then_some((SHOWS_PROGRESS_HEADER, "1")));
            headers.extend(agent.as_deref().or(self.agent.as_deref()).map(|agent| (AGENT_HEADER, agent)));
            headers.push((MCP_SESSION_HEADER, self.session.as_str()));
            headers.extend(client.as_deref().map(|client| (CLIENT_HEADER, client)));
            let answer = self.client.post(&question, LONGEST_TALK, &headers).await;
            answer.and_then(|answer| read(&answer)).unwrap_or_else(|error| Reply::from(error).into())
        })
    }
}

/// The blocks of a result that are known.
fn read(answer: &Value) -> Result<ToolAnswer> {
    let content = answer.pointer("/result/content").and_then(Value::as_array);
    let blocks = content.map(|content| content.iter().filter_map(|block| Block::deserialize(block).ok()));
    match blocks.map(Iterator::collect::<Vec<_>>) {
        Some(blocks) if !blocks.is_empty() => {
            Ok(ToolAnswer { blocks, is_error: answer.pointer("/result/isError") == Some(&Value::Bool(true)) })
        }
        _ => {
            let said = answer.pointer("/error/message").or_else(|| answer.get("error")).and_then(Value::as_str);
            Err(Error::Server(format!("the server refused the call: {}", said.unwrap_or("it did not say why"))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_passed_on_as_it_is() {
        let image = json!({ "type": "image", "data": "eA==", "mimeType": "image/png" });
        let content = json!([image, { "type": "text", "text": "{}" }]);
        let answer = read(&json!({ "result": { "content": content, "isError": true } })).expect("an answer");
        let image = Block::Image { data: "eA==".to_owned(), mime_type: "image/png".to_owned() };
        assert_eq!(answer, ToolAnswer { blocks: vec![image, Block::Text { text: "{}".to_owned() }], is_error: true });
        for refused in [json!({}), json!({ "error": { "message": "no" } }), json!({ "ok": false, "error": "no" })] {
            assert!(read(&refused).is_err(), "{refused}");
        }
    }
}
