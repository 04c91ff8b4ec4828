//! Asking a running server: one `tools/call` over HTTP.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Map, Value, json};

use crate::config;
use crate::error::{Error, Result};
use crate::server::{AGENT_HEADER, ListenerOwner, listening};
use crate::store::{TOKEN_FILE, Token};
use crate::tools::DEFAULT_TOOL;

/// How long a connection may take. The server is on this machine.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a link is valid.
const LINK_TIMEOUT: Duration = Duration::from_secs(150);
/// How much longer than asked for the server may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Args)]
pub(super) struct Connection {
    /// URL of the server
    #[arg(long, value_name = "URL", env = config::URL_VARIABLE, default_value_t = config::default_url())]
    url: String,

    /// File with the server's token; not needed for a server on this machine that created its own token
    #[arg(long, value_name = "FILE", env = "KPTY_TOKEN_FILE")]
    token_file: Option<PathBuf>,

    /// User id of the server, if it runs as another user; without it the token is sent only to your own user's server
    #[arg(long, value_name = "UID", env = "KPTY_SERVER_USER")]
    server_user: Option<u32>,

    /// Print the reply as one line of JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// A server that can be asked.
pub(super) struct Client {
    http: reqwest::Client,
    url: String,
    /// Where it speaks MCP.
    path: String,
    token: Option<Token>,
    /// The token was found, not named: it is left out where it is not meant.
    is_found: bool,
    /// The user that the server runs as, where it is another than ours.
    server_user: Option<u32>,
    /// Who asks, for the record.
    agent: Option<HeaderValue>,
}

/// What a link is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkFor {
    /// It is shown, so it has a code.
    Person,
    /// It is opened at once; no code where the server knows our browser.
    Browser,
}

/// What the server answered.
pub(super) struct Answer {
    pub(super) body: Map<String, Value>,
    /// A picture that came with it.
    pub(super) picture: Option<Vec<u8>>,
}

impl Answer {
    /// The action was carried out.
    pub(super) fn is_ok(&self) -> bool {
        self.body.get("ok").and_then(Value::as_bool).unwrap_or(false)
    }

    /// The code of a failure.
    pub(super) fn error_code(&self) -> &str {
        self.text("error_code")
    }

    /// A field that is text; empty where it is something else.
    pub(super) fn text(&self, name: &str) -> &str {
        text(&self.body, name)
    }

    /// A field that is a number.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.body.get(name).and_then(Value::as_i64)
    }

    /// A field that is true.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.body.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    /// The objects of a field that is a list.
    pub(super) fn objects(&self, name: &str) -> Vec<&Map<String, Value>> {
        let list = self.body.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_object).collect()
    }

    /// What a failure says beside its message.
    pub(super) fn details(&self) -> Option<&Map<String, Value>> {
        self.body.get("details").and_then(Value::as_object)
    }
}

/// A field that is text; empty where it is something else.
pub(super) fn text<'a>(object: &'a Map<String, Value>, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

impl Client {
    pub(super) fn new(connection: &Connection) -> Result<Self> {
        let user = config::user_name().unwrap_or_else(user_number);
        let agent = HeaderValue::from_bytes(format!("cli:{user}").as_bytes()).ok();
        let client = Self::at(&connection.url, connection.token_file.as_deref())?;
        Ok(Self { agent, server_user: connection.server_user, ..client })
    }

    /// A server by its address, and the file of its token.
    pub(super) fn at(url: &str, token_file: Option<&Path>) -> Result<Self> {
        let (url, path) = split(url);
        // A proxy for the outside world has no business with a server on this machine.
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .build()
            .map_err(|error| Error::Server(error.to_string()))?;
        let token = match token_file {
            Some(file) => Some(Token::read(file)?),
            None => found_token(&url),
        };
        Ok(Self { http, url, path, token, is_found: token_file.is_none(), server_user: None, agent: None })
    }

    /// The user that the server runs as.
    pub(super) fn with_server_user(self, server_user: Option<u32>) -> Self {
        Self { server_user, ..self }
    }

    /// What lets us in where our user does not, to be sent at once. Anybody can listen on a port that is free, so it is
    /// kept back from whoever listens as another user.
    pub(super) async fn token(&self) -> Result<Option<&str>> {
        let Some(token) = self.token.as_ref().map(Token::as_str) else { return Ok(None) };
        let addresses = self.loopback_addresses().await;
        let mut is_awaited = addresses.is_empty();
        for address in addresses {
            match listening(address) {
                ListenerOwner::Own | ListenerOwner::Unknown => is_awaited = true,
                ListenerOwner::User(user) if self.server_user == Some(user) => is_awaited = true,
                // Who comes between this look and the connection gets nothing.
                ListenerOwner::NotListening => {}
                ListenerOwner::User(_) if self.is_found => return Ok(None),
                ListenerOwner::User(user) => {
                    return Err(Error::Server(format!(
                        "the server at {} runs as user {user}, not as you; the token was not sent. \
                         --server-user {user} allows it",
                        self.url
                    )));
                }
            }
        }
        Ok(is_awaited.then_some(token))
    }

    /// Where on this machine the server's name leads.
    async fn loopback_addresses(&self) -> Vec<SocketAddr> {
        let Ok(url) = reqwest::Url::parse(&self.url) else { return Vec::new() };
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else { return Vec::new() };
        let found = tokio::net::lookup_host((host.trim_matches(['[', ']']), port)).await;
        found.into_iter().flatten().filter(|address| address.ip().to_canonical().is_loopback()).collect()
    }

    /// Where the server is.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// How the server is; nothing when nobody listens there.
    pub(super) async fn health(&self, patience: Duration) -> Result<Option<Map<String, Value>>> {
        let request = self.http.get(format!("{}/health", self.url)).timeout(patience);
        let response = match request.send().await {
            Err(error) if error.is_connect() => return Ok(None),
            other => other.map_err(|error| self.problem(&error))?,
        };
        match response.json().await.map_err(|error| self.problem(&error))? {
            Value::Object(health) if health.contains_key("version") => Ok(Some(health)),
            _ => Err(Error::Server(format!("{} is not a kpty server", self.url))),
        }
    }

    /// A link that lets one browser in.
    pub(super) async fn link(&self, purpose: LinkFor) -> Result<String> {
        let asked = json!({ "browser": purpose == LinkFor::Browser });
        let response = self.post_page("/ui/link", &asked, ANSWER_TIMEOUT).await?;
        let status = response.status();
        let body: Value = response.json().await.map_err(|error| self.problem(&error))?;
        match body.get("path").and_then(Value::as_str) {
            Some(path) => Ok(format!("{}{path}", self.url)),
            None => {
                let said = body.get("error").and_then(Value::as_str).unwrap_or("it does not serve the page");
                Err(Error::Server(format!("{} refused the request ({status}): {said}", self.url)))
            }
        }
    }

    /// Waits until a link has been used or is too old.
    pub(super) async fn link_spent(&self, code: &str) -> Result<()> {
        self.post_page("/ui/link/spent", &json!({ "code": code }), LINK_TIMEOUT).await.map(drop)
    }

    async fn post_page(&self, path: &str, body: &Value, patience: Duration) -> Result<reqwest::Response> {
        let request = self.http.post(format!("{}{path}", self.url)).timeout(patience).json(body);
        let request = match self.token().await? {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        request.send().await.map_err(|error| self.problem(&error))
    }

    /// Asks for an action that ends at once.
    pub(super) async fn call(&self, action: &str, parameters: Value) -> Result<Answer> {
        self.call_for(Duration::ZERO, action, parameters).await
    }

    /// Asks for an action that may take so long. Parameters that are null are left out.
    pub(super) async fn call_for(&self, patience: Duration, action: &str, parameters: Value) -> Result<Answer> {
        self.call_tool(DEFAULT_TOOL.name, patience, action, parameters).await
    }

    /// The same for an action of any tool.
    pub(super) async fn call_tool(
        &self,
        tool: &str,
        patience: Duration,
        action: &str,
        parameters: Value,
    ) -> Result<Answer> {
        let mut arguments = match parameters {
            Value::Object(parameters) => parameters,
            _ => Map::new(),
        };
        arguments.retain(|_, value| !value.is_null());
        arguments.insert("action".to_owned(), json!(action));
        let message = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments },
        });
        let request = self.request(&message, patience).await?;
        let response = request.send().await.map_err(|error| self.problem(&error))?;
        let status = response.status();
        let body: Value = response.json().await.map_err(|error| self.problem(&error))?;
        read_answer(&body).ok_or_else(|| {
            let said = body.pointer("/error/message").or_else(|| body.get("error")).and_then(Value::as_str);
            let said = said.unwrap_or("it is not a kpty server, or another version of one");
            Error::Server(format!("{} refused the request ({status}): {said}", self.url))
        })
    }

    async fn request(&self, message: &Value, patience: Duration) -> Result<reqwest::RequestBuilder> {
        let request =
            self.http.post(format!("{}{}", self.url, self.path)).timeout(patience + ANSWER_TIMEOUT).json(message);
        let request = match &self.agent {
            Some(agent) => request.header(AGENT_HEADER, agent),
            None => request,
        };
        Ok(match self.token().await? {
            Some(token) => request.bearer_auth(token),
            None => request,
        })
    }

    /// One message of the protocol, and whatever is answered.
    pub(super) async fn post(
        &self,
        message: &Value,
        patience: Duration,
        headers: &[(HeaderName, &str)],
    ) -> Result<Value> {
        let mut request = self.request(message, patience).await?;
        for (name, value) in headers {
            // A name that is invalid in a header is not sent.
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                request = request.header(name, value);
            }
        }
        let response = request.send().await.map_err(|error| self.problem(&error))?;
        response.json().await.map_err(|error| self.problem(&error))
    }

    fn problem(&self, error: &reqwest::Error) -> Error {
        let url = &self.url;
        let message = if error.is_connect() {
            format!("no kpty server at {url}; start one with `kpty serve`")
        } else if error.is_timeout() {
            format!("the server at {url} did not answer in time")
        } else if error.is_builder() {
            format!("{url} is not the address of a server, such as http://127.0.0.1:8100")
        } else if error.is_decode() {
            format!("{url} is not a kpty server: its answer is not JSON")
        } else {
            format!("the connection to the server at {url} was lost: {error}")
        };
        Error::Server(message)
    }
}

/// The token that a server on this machine made for itself. It is not for servers elsewhere.
fn found_token(url: &str) -> Option<Token> {
    let url = reqwest::Url::parse(url).ok()?;
    let host = url.host_str()?;
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    let is_here = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    let folder = config::default_state_dir().filter(|_| is_here)?;
    Token::read(&folder.join(TOKEN_FILE)).ok()
}

/// A user without a known name.
#[cfg(unix)]
fn user_number() -> String {
    format!("uid {}", rustix::process::geteuid().as_raw())
}

#[cfg(not(unix))]
fn user_number() -> String {
    "unknown".to_owned()
}

/// A server's address, and where it speaks MCP: the path of the address, or the usual one.
fn split(url: &str) -> (String, String) {
    let url = url.trim_end_matches('/');
    let path_at = url.find("://").and_then(|at| url[at + 3..].find('/').map(|path| at + 3 + path));
    match path_at {
        Some(at) => (url[..at].to_owned(), url[at..].to_owned()),
        None => (url.to_owned(), "/mcp".to_owned()),
    }
}

/// The action's own answer: the last text of the result.
fn read_answer(body: &Value) -> Option<Answer> {
    let content = body.pointer("/result/content")?.as_array()?;
    let text = content.iter().rev().find_map(|block| block.get("text")?.as_str())?;
    match serde_json::from_str(text) {
        Ok(Value::Object(body)) => Some(Answer { body, picture: content.iter().find_map(read_picture) }),
        _ => None,
    }
}

/// A block that is a PNG, or an SVG in a resource.
fn read_picture(block: &Value) -> Option<Vec<u8>> {
    let svg = block.pointer("/resource/text").and_then(Value::as_str).map(|svg| svg.as_bytes().to_vec());
    let png = || STANDARD.decode(block.get("data")?.as_str()?).ok();
    svg.or_else(png)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_have_a_path() {
        for (url, server, path) in [
            ("http://127.0.0.1:8100", "http://127.0.0.1:8100", "/mcp"),
            ("http://127.0.0.1:8100/", "http://127.0.0.1:8100", "/mcp"),
            ("http://127.0.0.1:8100/mcp/", "http://127.0.0.1:8100", "/mcp"),
            ("http://[::1]:1/agents/mcp", "http://[::1]:1", "/agents/mcp"),
            ("nonsense", "nonsense", "/mcp"),
        ] {
            assert_eq!(split(url), (server.to_owned(), path.to_owned()), "{url}");
        }
    }
}
