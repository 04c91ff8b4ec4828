//! Terminals of another kpty: whole actions are forwarded to it, and its replies are ours.
//!
//! A kpty that takes forwarded actions says so in its `/health`; any other bridge is driven as a desktop app. An action is
//! sent once. Whatever becomes of the reply, nothing is sent again: the other side may have typed.
//!
//! A kpty that masks no secrets takes no actions: its text has to be masked here before it is searched or cut.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::error::{DesktopFault, DesktopTrouble, Error, Result};

/// Where actions are forwarded to.
const ACTION_PATH: &str = "/pty/action";
/// Where a server says what it is.
const HEALTH_PATH: &str = "/health";
/// The field of `/health` with which a server says that it takes forwarded actions.
pub const HEALTH_FIELD: &str = "takes_actions";
/// The longest reply that is taken, in bytes.
const MAX_REPLY: usize = 8 << 20;
/// How long the question what a bridge is may take.
const HEALTH_LIMIT: Duration = Duration::from_secs(2);
/// What a reply may take beyond the time that its caller gave: the other side keeps that promise within 400 ms.
const GRACE: Duration = Duration::from_secs(1);
/// How long it is believed that a server takes actions; another program may answer at its address later.
const PROVEN_FOR: Duration = Duration::from_secs(5);
/// How long a bridge that takes none, or does not answer, is not asked again.
const DOUBTED_FOR: Duration = Duration::from_secs(30);
/// Addresses of which that is remembered.
const MAX_KNOWN: usize = 256;
/// Characters of the other side's own words in an error.
const SAID_CHARS: usize = 300;

/// The other servers that this one reaches.
#[derive(Debug, Default)]
pub struct Peers {
    http: reqwest::Client,
    /// Which addresses take actions, and when they said so.
    known: Mutex<HashMap<String, (Instant, bool)>>,
}

/// What a forwarded action is answered.
#[derive(Debug)]
pub enum Forwarded {
    /// The reply of the other side, a failure too.
    Reply(Map<String, Value>),
    /// It takes no actions: nothing has happened.
    NotTaken,
}

impl Peers {
    /// A client that follows no redirect and asks no proxy.
    pub fn new() -> Self {
        let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build();
        Self { http: http.unwrap_or_default(), known: Mutex::default() }
    }

    /// Whether the bridge at this address takes actions, for a caller that waits so long for the action.
    pub async fn takes_actions(&self, url: &str, timeout: Duration) -> bool {
        let holds = |is_peer: bool| if is_peer { PROVEN_FOR } else { DOUBTED_FOR };
        let known = self.lock().get(url).copied();
        if let Some((_, is_peer)) = known.filter(|(at, is_peer)| at.elapsed() < holds(*is_peer)) {
            return is_peer;
        }
        let request = self.http.get(format!("{url}{HEALTH_PATH}")).timeout(HEALTH_LIMIT.min(timeout / 2));
        let says_so =
            |health: &Map<String, Value>| health["ok"] == true && health.get(HEALTH_FIELD) == Some(&json!(true));
        let is_peer = match exchange(request).await {
            Ok((200, body)) => serde_json::from_slice(&body).is_ok_and(|health: Map<String, Value>| says_so(&health)),
            _ => false,
        };
        self.note(url, is_peer);
        is_peer
    }

    fn note(&self, url: &str, is_peer: bool) {
        let mut known = self.lock();
        if known.len() >= MAX_KNOWN {
            known.retain(|_, (at, _)| at.elapsed() < DOUBTED_FOR);
        }
        if known.len() < MAX_KNOWN {
            known.insert(url.to_owned(), (Instant::now(), is_peer));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Instant, bool)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forwards an action, with what is known of its caller, and waits for the reply at most as long as the action may
    /// take.
    pub async fn forward(
        &self,
        url: &str,
        arguments: &Map<String, Value>,
        caller: Value,
        timeout: Duration,
    ) -> Result<Forwarded> {
        let body = json!({ "arguments": arguments, "caller": caller });
        let request = self.http.post(format!("{url}{ACTION_PATH}")).json(&body).timeout(timeout.saturating_add(GRACE));
        let fault = |trouble, status, problem: String| {
            let (url, problem) = (url.to_owned(), problem.chars().take(SAID_CHARS).collect());
            Error::Desktop(Box::new(DesktopFault { asked: ACTION_PATH, url, trouble, problem, status, command: None }))
        };
        let (status, body) = exchange(request).await.map_err(|(trouble, problem)| fault(trouble, None, problem))?;
        let reply = serde_json::from_slice::<Map<String, Value>>(&body);
        match (status, reply) {
            (200, Ok(reply)) if reply.get("ok").is_some_and(Value::is_boolean) => Ok(Forwarded::Reply(reply)),
            (200, Ok(_)) => Err(fault(DesktopTrouble::NotJson, None, "it does not say `ok`".to_owned())),
            (200, Err(error)) => Err(fault(DesktopTrouble::NotJson, None, error.to_string())),
            (404 | 405 | 501, reply) if reply.as_ref().is_ok_and(|reply| reply.contains_key("error_code")) => {
                Ok(Forwarded::Reply(reply.unwrap_or_default()))
            }
            (404 | 405 | 501, _) => {
                self.note(url, false);
                Ok(Forwarded::NotTaken)
            }
            (status, reply) => {
                let said = reply.ok().and_then(|reply| Some(reply.get("error")?.as_str()?.to_owned()));
                let problem = format!("{status}: {}", said.as_deref().unwrap_or("it does not say why"));
                Err(fault(DesktopTrouble::Refused, Some(status), problem))
            }
        }
    }
}

/// Sends a request and takes an answer of limited length.
async fn exchange(request: reqwest::RequestBuilder) -> std::result::Result<(u16, Vec<u8>), (DesktopTrouble, String)> {
    let failed = |error: reqwest::Error| {
        let trouble = match () {
            () if error.is_timeout() => DesktopTrouble::Timeout,
            () if error.is_connect() || error.is_builder() => DesktopTrouble::Unreachable,
            () => DesktopTrouble::HungUp,
        };
        (trouble, error.without_url().to_string())
    };
    let mut response = request.send().await.map_err(failed)?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_REPLY {
            return Err((DesktopTrouble::TooLong, format!("is longer than {} MiB", MAX_REPLY >> 20)));
        }
    }
    Ok((response.status().as_u16(), body))
}
