//! `kpty mcp-config`: what to put into a client's settings.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::{Failure, Outcome, print};
use crate::config;

/// How long a client should let a call take: a `talk` may wait for its command.
const CALL_TIMEOUT_S: u32 = 600;

#[derive(Args)]
#[command(after_help = "\
Without --stdio the client connects to a running server (`kpty serve`). With --stdio it starts `kpty mcp`, which uses that
server if there is one.

Examples:
  kpty mcp-config claude            for .mcp.json in a project
  kpty mcp-config codex --stdio     for ~/.codex/config.toml")]
pub(super) struct McpConfigArguments {
    /// MCP client
    client: McpClient,

    /// Let the client start `kpty mcp` as a child process instead of connecting to a server
    #[arg(long)]
    stdio: bool,

    /// URL of the server, with the path of MCP if that is not /mcp
    #[arg(long, value_name = "URL", env = config::URL_VARIABLE, default_value_t = config::default_url())]
    url: String,

    /// Variable that holds the token of a server that requires one
    #[arg(long, value_name = "NAME", conflicts_with = "stdio")]
    token_variable: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum McpClient {
    Claude,
    Codex,
    Cursor,
    Vscode,
    Gemini,
    Opencode,
}

pub(super) fn run(arguments: &McpConfigArguments) -> Result<Outcome, Failure> {
    print::text(&snippet(arguments))?;
    Ok(Outcome::Done)
}

fn snippet(arguments: &McpConfigArguments) -> String {
    if matches!(arguments.client, McpClient::Codex) {
        return codex(arguments);
    }
    let (key, entry) = match arguments.client {
        McpClient::Vscode => ("servers", entry(arguments)),
        McpClient::Opencode => ("mcp", entry(arguments)),
        _ => ("mcpServers", entry(arguments)),
    };
    format!("{:#}", json!({ key: { "kpty": entry } }))
}

/// One server in a client's own words.
fn entry(arguments: &McpConfigArguments) -> Value {
    let client = arguments.client;
    if arguments.stdio {
        return match client {
            McpClient::Opencode => json!({ "type": "local", "command": ["kpty", "mcp"], "enabled": true }),
            McpClient::Claude | McpClient::Vscode => json!({ "type": "stdio", "command": "kpty", "args": ["mcp"] }),
            _ => json!({ "command": "kpty", "args": ["mcp"] }),
        };
    }
    let url = endpoint(&arguments.url);
    let mut entry = match client {
        McpClient::Claude => json!({ "type": "http", "url": url, "timeout": CALL_TIMEOUT_S * 1_000 }),
        McpClient::Vscode => json!({ "type": "http", "url": url }),
        // There `url` means another transport.
        McpClient::Gemini => json!({ "httpUrl": url, "timeout": CALL_TIMEOUT_S * 1_000 }),
        McpClient::Opencode => json!({ "type": "remote", "url": url, "enabled": true }),
        McpClient::Cursor | McpClient::Codex => json!({ "url": url }),
    };
    if let Some(name) = &arguments.token_variable {
        // Each client has its own way to name a variable.
        let reference = match client {
            McpClient::Cursor | McpClient::Vscode => format!("${{env:{name}}}"),
            McpClient::Opencode => format!("{{env:{name}}}"),
            _ => format!("${{{name}}}"),
        };
        entry["headers"] = json!({ "Authorization": format!("Bearer {reference}") });
    }
    entry
}

/// Where the server speaks MCP: as given, or at the usual path.
fn endpoint(url: &str) -> String {
    let url = url.trim_end_matches('/');
    let has_path = url.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
    if has_path { url.to_owned() } else { format!("{url}/mcp") }
}

fn codex(arguments: &McpConfigArguments) -> String {
    // A string of JSON is one of TOML as well.
    let quoted = |text: &str| Value::from(text).to_string();
    let mut lines = vec!["[mcp_servers.kpty]".to_owned()];
    if arguments.stdio {
        lines.extend(["command = \"kpty\"".to_owned(), "args = [\"mcp\"]".to_owned()]);
    } else {
        lines.push(format!("url = {}", quoted(&endpoint(&arguments.url))));
        if let Some(name) = &arguments.token_variable {
            lines.push(format!("bearer_token_env_var = {}", quoted(name)));
        }
    }
    lines.push(format!("tool_timeout_sec = {CALL_TIMEOUT_S}"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(client: McpClient, stdio: bool, token: Option<&str>) -> String {
        let url = "http://127.0.0.1:8100".to_owned();
        snippet(&McpConfigArguments { client, stdio, url, token_variable: token.map(str::to_owned) })
    }

    #[test]
    fn each_client_gets_its_own_words() {
        for (client, stdio, path, expected) in [
            (McpClient::Claude, false, "/mcpServers/kpty/type", "http"),
            (McpClient::Claude, true, "/mcpServers/kpty/command", "kpty"),
            (McpClient::Cursor, false, "/mcpServers/kpty/url", "http://127.0.0.1:8100/mcp"),
            (McpClient::Cursor, true, "/mcpServers/kpty/args/0", "mcp"),
            (McpClient::Vscode, false, "/servers/kpty/type", "http"),
            (McpClient::Vscode, true, "/servers/kpty/type", "stdio"),
            (McpClient::Gemini, false, "/mcpServers/kpty/httpUrl", "http://127.0.0.1:8100/mcp"),
            (McpClient::Opencode, false, "/mcp/kpty/type", "remote"),
            (McpClient::Opencode, true, "/mcp/kpty/command/1", "mcp"),
        ] {
            let text = of(client, stdio, None);
            let value: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(value.pointer(path), Some(&json!(expected)), "{text}");
            assert!(!text.contains("Authorization"));
        }
        assert_eq!(
            of(McpClient::Codex, false, Some("KPTY_TOKEN")),
            "[mcp_servers.kpty]\nurl = \"http://127.0.0.1:8100/mcp\"\nbearer_token_env_var = \"KPTY_TOKEN\"\n\
             tool_timeout_sec = 600"
        );
    }

    #[test]
    fn an_address_gets_the_usual_path_unless_it_has_one() {
        for (url, expected) in [
            ("http://127.0.0.1:9999", "http://127.0.0.1:9999/mcp"),
            ("http://127.0.0.1:9999/", "http://127.0.0.1:9999/mcp"),
            ("http://127.0.0.1:9999/other", "http://127.0.0.1:9999/other"),
        ] {
            assert_eq!(endpoint(url), expected);
        }
    }

    #[test]
    fn a_token_is_named_and_never_written_down() {
        for (client, expected) in [
            (McpClient::Claude, "Bearer ${KPTY_TOKEN}"),
            (McpClient::Gemini, "Bearer ${KPTY_TOKEN}"),
            (McpClient::Cursor, "Bearer ${env:KPTY_TOKEN}"),
            (McpClient::Vscode, "Bearer ${env:KPTY_TOKEN}"),
            (McpClient::Opencode, "Bearer {env:KPTY_TOKEN}"),
        ] {
            assert!(of(client, false, Some("KPTY_TOKEN")).contains(expected));
        }
    }
}
