//! Calls to the HTTP service of a desktop app. The only place that knows how a bridge is reached.
//!
//! What a bridge answers is believed in nothing: it may hang, fail, talk nonsense, never stop talking or hang up. Each
//! of these ends the one call that met it. Nothing is asked twice here, since a bridge types every text it gets.

use std::time::Duration;

use http_body_util::Full;
use hyper::Request;
use reqwest::Url;
use serde_json::{Map, Value, json};

use super::line::{Failure, Lines, Raw};
use super::wire::{self, Look, Question};
use crate::error::{DesktopFault, DesktopTrouble, Error, Result};
use crate::ids::SessionId;
use crate::terminal::deadline::{self, GRACE};
use kpty_guard::Redactor;

/// The longest body that is taken, in bytes. What it says of its own length counts for nothing.
const MAX_BODY: usize = 8 << 20;
/// A look at the text.
const BUFFER_LIMIT: Duration = Duration::from_secs(10);
/// Typing.
const WRITE_LIMIT: Duration = Duration::from_secs(5);
/// Allowance for a bridge beyond the timeout it was given.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The longest that a bridge collects raw output.
const LONGEST_READ: Duration = Duration::from_secs(5);
/// Who leads, who is there, and whether anybody is.
const SHORT_LIMIT: Duration = Duration::from_secs(2);
/// Characters of a bridge's own words in an error.
const SAID_CHARS: usize = 300;

/// Speaks to bridges; one for all of them.
#[derive(Default)]
pub(super) struct Client {
    lines: Lines,
}

/// One call.
struct Call<'a> {
    url: &'a str,
    path: &'static str,
    query: Option<(&'static str, &'a str)>,
    body: Option<Value>,
    limit: Duration,
}

impl Client {
    /// What the terminal shows.
    pub(super) async fn buffer(&self, url: &str, session: &SessionId, question: Question) -> Result<Look> {
        let body = json!({
            "session_id": session.as_str(),
            "mode": question.mode(),
            "max_lines": question.max_lines(),
            "merge_wrapped": true,
            "marker_id": null,
        });
        let call = Call { url, path: "/pty/buffer", query: None, body: Some(body), limit: BUFFER_LIMIT };
        let answer = self.ask(&call).await?;
        wire::look(&answer, question).map_err(|problem| call.fault(DesktopTrouble::NotJson, problem))
    }

    /// Types text.
    pub(super) async fn write(&self, url: &str, session: &SessionId, data: &str) -> Result<()> {
        let body = json!({ "session_id": session.as_str(), "data": data });
        let call = Call { url, path: "/pty/write", query: None, body: Some(body), limit: WRITE_LIMIT };
        self.ask(&call).await.map(drop)
    }

    /// The error for a text of which it is not known whether it was typed: its caller cannot wait any longer.
    pub(super) fn late_write(&self, url: &str) -> Error {
        let call = Call { url, path: "/pty/write", query: None, body: None, limit: WRITE_LIMIT };
        call.fault(DesktopTrouble::Timeout, String::new())
    }

    /// Raw output: what comes within this time, or all that is kept.
    pub(super) async fn read(&self, url: &str, session: &SessionId, wait: Duration) -> Result<String> {
        let wait = wait.min(LONGEST_READ);
        let body = json!({ "session_id": session.as_str(), "timeout_ms": wait.as_millis() as u64 });
        let call = Call { url, path: "/pty/read", query: None, body: Some(body), limit: wait + TIMEOUT };
        let answer = self.ask(&call).await?;
        Ok(answer.get("output").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    /// The terminals that there are.
    pub(super) async fn list(&self, url: &str) -> Result<Vec<wire::Terminal>> {
        let call = Call { url, path: "/pty/list", query: None, body: None, limit: SHORT_LIMIT };
        let answer = self.ask(&call).await?;
        wire::terminals(&answer).ok_or_else(|| call.fault(DesktopTrouble::NotJson, "it names no sessions".to_owned()))
    }

    /// Whether this terminal is the leader's; `None` where nobody leads.
    pub(super) async fn is_leader(&self, url: &str, session: &str) -> Result<Option<bool>> {
        let query = Some(("session_id", session));
        let call = Call { url, path: "/pty/is-leader", query, body: None, limit: SHORT_LIMIT };
        let answer = self.ask(&call).await?;
        Ok(wire::field(&answer, "is_leader", "isLeader").and_then(Value::as_bool))
    }

    /// How the bridge is.
    pub(super) async fn health(&self, url: &str) -> Result<Map<String, Value>> {
        // What is asked on the way to something else takes no more than half of the time that there is for that.
        let limit = SHORT_LIMIT.min(deadline::limit(2 * SHORT_LIMIT, Duration::ZERO) / 2);
        self.ask(&Call { url, path: "/health", query: None, body: None, limit }).await
    }

    /// The agent that leads, as a gateway knows it.
    pub(super) async fn gateway_leader(&self, url: &str) -> Result<Option<String>> {
        let call = Call { url, path: "/v1/agents/leader", query: None, body: None, limit: SHORT_LIMIT };
        match self.ask(&call).await {
            Ok(agent) => {
                let agent = agent.get("agent").and_then(Value::as_object).unwrap_or(&agent);
                Ok(wire::field(agent, "agent_id", "agentId").and_then(Value::as_str).map(str::to_owned))
            }
            // Nobody leads.
            Err(Error::Desktop(fault)) if fault.status == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The answer to a call that must be a success.
    async fn ask(&self, call: &Call<'_>) -> Result<Map<String, Value>> {
        let Raw { status, body } = self.exchange(call).await?;
        if !is_success(status) {
            return Err(call.refused(status, &body));
        }
        match serde_json::from_slice(&body) {
            Ok(Value::Object(answer)) if answer.get("ok") == Some(&Value::Bool(false)) => {
                Err(call.fault(DesktopTrouble::Refused, said(&answer)))
            }
            Ok(Value::Object(answer)) => Ok(answer),
            Ok(_) => Err(call.fault(DesktopTrouble::NotJson, "not an object".to_owned())),
            Err(error) => Err(call.fault(DesktopTrouble::NotJson, error.to_string())),
        }
    }

    /// Asks, and takes what comes within the time that there is.
    async fn exchange(&self, call: &Call<'_>) -> Result<Raw> {
        let asked = tokio::time::timeout(deadline::limit(call.limit, GRACE), self.send(call)).await;
        asked.unwrap_or_else(|_| Err(call.fault(DesktopTrouble::Timeout, String::new())))
    }

    async fn send(&self, call: &Call<'_>) -> Result<Raw> {
        let unreachable = |problem: String| call.fault(DesktopTrouble::Unreachable, problem);
        let mut address = Url::parse(&format!("{}{}", call.url, call.path))
            .map_err(|error| unreachable(format!("{}: {error}", call.url)))?;
        if let Some((name, value)) = call.query {
            address.query_pairs_mut().append_pair(name, value);
        }
        let (Some(host), Some(port), "http") = (address.host_str(), address.port_or_known_default(), address.scheme())
        else {
            return Err(unreachable(format!("{}: it is no http URL", call.url)));
        };
        let asked = Request::builder().uri(target(&address)).header("host", format!("{host}:{port}"));
        let asked = match &call.body {
            Some(body) => {
                let body = Full::from(body.to_string());
                asked.method("POST").header("content-type", "application/json").body(body)
            }
            None => asked.body(Full::default()),
        };
        let asked = asked.map_err(|error| unreachable(format!("{}: {error}", call.url)))?;
        let answered = self.lines.ask((host, port), asked, MAX_BODY).await;
        answered.map_err(|failure| match failure {
            Failure::Unreachable(problem) => unreachable(clip(&problem)),
            Failure::TooSlow => call.fault(DesktopTrouble::Timeout, String::new()),
            Failure::HungUp(problem) => call.fault(DesktopTrouble::HungUp, clip(&problem)),
            Failure::TooLong => call.fault(DesktopTrouble::TooLong, format!("is longer than {} MiB", MAX_BODY >> 20)),
        })
    }
}

impl Call<'_> {
    fn fault(&self, trouble: DesktopTrouble, problem: String) -> Error {
        let (asked, url) = (self.path, self.url.to_owned());
        Error::Desktop(Box::new(DesktopFault { asked, url, trouble, problem, status: None, command: None }))
    }

    /// An answer without a status of success.
    fn refused(&self, status: u16, body: &[u8]) -> Error {
        let said = match serde_json::from_slice(body) {
            Ok(Value::Object(answer)) if is_disabled(&answer) => return Error::TermReadDisabled,
            Ok(Value::Object(answer)) => said(&answer),
            _ => clip(&String::from_utf8_lossy(body)),
        };
        match self.fault(DesktopTrouble::Refused, format!("{status}: {said}")) {
            Error::Desktop(fault) => Error::Desktop(Box::new(DesktopFault { status: Some(status), ..*fault })),
            other => other,
        }
    }
}

/// What is asked for, as a bridge reads it.
fn target(address: &Url) -> String {
    match address.query() {
        Some(query) => format!("{}?{query}", address.path()),
        None => address.path().to_owned(),
    }
}

fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}

/// The bridge does not show screens.
fn is_disabled(answer: &Map<String, Value>) -> bool {
    wire::field(answer, "error_code", "errorCode").and_then(Value::as_str) == Some("TERM_READ_DISABLED")
}

/// What a bridge says of its failure.
fn said(answer: &Map<String, Value>) -> String {
    let text = ["error", "message", "detail"].iter().find_map(|name| answer.get(*name)?.as_str());
    clip(text.unwrap_or("it does not say why"))
}

fn clip(text: &str) -> String {
    Redactor::default().redact(text).chars().take(SAID_CHARS).collect()
}
