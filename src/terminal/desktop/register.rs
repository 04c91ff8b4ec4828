//! Telling another kpty of this server's sessions, as a desktop app tells a core of its terminals: the secret first, then
//! each session as it comes and goes, and every few seconds that it lives.
//!
//! One task and one request at a time, each with a limit, so that another server that hangs delays nothing here. What
//! the other side was sent is not assumed to be known there for ever: it may restart, with or without what it knew, or
//! take another desktop's secret; then everything is sent again.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::error::{self, Error};
use crate::model::SessionRecord;

/// How often the other side hears that sessions live; it takes one for stale after 30 s.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How long one request may take. The other side is near.
const REQUEST_LIMIT: Duration = Duration::from_secs(2);
/// How long it may take to say goodbye.
const GOODBYE_LIMIT: Duration = Duration::from_secs(1);
/// Bytes of an answer that are read.
const MAX_ANSWER: usize = 64 << 10;
/// The header with the desktop's secret.
const SECRET_HEADER: &str = "x-kuroryuu-desktop-secret";

/// Where sessions are registered, and with what.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    /// The other kpty.
    pub url: String,
    /// Where it reaches this one.
    pub own_url: String,
}

/// Tells another kpty of sessions for as long as it is there.
pub struct Registrar {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Registrar {
    /// Begins. `records` gives the live sessions of this server, and `changed` moves when that may be another answer.
    pub fn start<F>(elsewhere: Elsewhere, changed: watch::Receiver<u64>, records: F) -> error::Result<Self>
    where
        F: Fn() -> Vec<SessionRecord> + Send + Sync + 'static,
    {
        // Neither a proxy nor a redirect may carry a secret elsewhere.
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(REQUEST_LIMIT)
            .build()
            .map_err(|error| Error::Server(format!("cannot register elsewhere: {error}")))?;
        let secret = [Uuid::new_v4(), Uuid::new_v4()].map(|half| half.simple().to_string()).concat();
        let (sent, refused) = (HashMap::new(), HashSet::new());
        let task = RegistrationTask { http, elsewhere, secret, sent, refused, is_known: false, is_silent: false };
        let stop = CancellationToken::new();
        let task = tokio::spawn(task.run(changed, records, stop.clone()));
        Ok(Self { stop, task })
    }

    /// Takes all sessions back, and ends.
    pub async fn finish(self) {
        self.stop.cancel();
        // One that panicked has nothing left to say.
        let _ = self.task.await;
    }
}

/// Why a registration failed.
enum Trouble {
    /// Nobody answers, or nothing sensible.
    Silence(String),
    /// The secret is not known there, or not any more.
    Secret,
}

struct RegistrationTask {
    http: reqwest::Client,
    elsewhere: Elsewhere,
    secret: String,
    /// The registered sessions, in the form they were sent.
    sent: HashMap<String, Map<String, Value>>,
    /// Those of them that the other side does not take.
    refused: HashSet<String>,
    /// The other side has the secret and all registrations, as far as is known.
    is_known: bool,
    /// It was said already that nobody answers.
    is_silent: bool,
}

impl RegistrationTask {
    async fn run<F>(mut self, mut changed: watch::Receiver<u64>, records: F, stop: CancellationToken)
    where
        F: Fn() -> Vec<SessionRecord> + Send + Sync + 'static,
    {
        let mut beat = tokio::time::interval(HEARTBEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let telling = async {
            loop {
                let is_beat = tokio::select! {
                    _ = beat.tick() => true,
                    news = changed.changed() => match news {
                        Ok(()) => false,
                        Err(_) => return,
                    },
                };
                // While nobody answers it is tried at each beat and not with each piece of news.
                if is_beat || self.is_known {
                    let outcome = self.tell(&records(), is_beat).await;
                    self.note(outcome);
                }
            }
        };
        tokio::select! {
            () = telling => {}
            () = stop.cancelled() => {}
        }
        // Whoever does not hear this notices by the silence that follows.
        let _ = tokio::time::timeout(GOODBYE_LIMIT, self.say_goodbye()).await;
    }

    /// Tells what is new, and at a beat also that the rest lives.
    async fn tell(&mut self, records: &[SessionRecord], is_beat: bool) -> Result<(), Trouble> {
        if !self.is_known {
            self.introduce().await?;
            self.is_known = true;
            self.tell_news(records, true).await?;
            return Ok(());
        }
        let fresh = self.tell_news(records, false).await?;
        if is_beat {
            for id in self.sent.keys().filter(|id| !fresh.contains(*id)).cloned().collect::<Vec<_>>() {
                let answer = self.ask("POST", "/v1/pty/heartbeat", Some(&json!({ "session_id": id }))).await?;
                if answer["ok"] != true {
                    self.register_again(&id).await?;
                }
            }
        }
        Ok(())
    }

    /// Brings our secret, in place of whatever is there.
    async fn introduce(&self) -> Result<(), Trouble> {
        self.ask("POST", "/_x9k_desktop_auth", None).await.map(drop)
    }

    /// Registers new and changed sessions and removes those that are gone. Returns the ones it sent.
    async fn tell_news(&mut self, records: &[SessionRecord], all: bool) -> Result<HashSet<String>, Trouble> {
        let live: HashSet<&str> = records.iter().map(|record| record.session_id.as_str()).collect();
        for id in self.sent.keys().filter(|id| !live.contains(id.as_str())).cloned().collect::<Vec<_>>() {
            self.unregister(&id).await?;
            self.sent.remove(&id);
            self.refused.remove(&id);
        }
        let mut fresh = HashSet::new();
        for record in records {
            let (id, form) = (&record.session_id, self.form(record));
            let before = self.sent.get(id);
            if !all && before == Some(&form) {
                continue;
            }
            // An update there leaves what is null as it was, so what was taken away needs a new beginning.
            if before.is_some_and(|before| before.iter().any(|(name, old)| !old.is_null() && form[name].is_null())) {
                self.unregister(id).await?;
            }
            self.register(id, form).await?;
            fresh.insert(id.clone());
        }
        Ok(fresh)
    }

    /// A session in the form that is sent.
    fn form(&self, record: &SessionRecord) -> Map<String, Value> {
        let form = json!({
            "session_id": record.session_id,
            "source": "desktop",
            "desktop_url": self.elsewhere.own_url,
            "cli_type": record.cli_type,
            "pid": record.pid,
            "owner_agent_id": record.owner_agent_id,
            "owner_session_id": record.owner_session_id,
            "owner_role": record.owner_role,
            "label": record.label,
            "claude_code_session_id": record.claude_code_session_id,
        });
        form.as_object().cloned().unwrap_or_default()
    }

    async fn register(&mut self, id: &str, form: Map<String, Value>) -> Result<(), Trouble> {
        let body = Value::Object(form.clone());
        // Noted before it is sent: what the other side may know has to be taken back one day.
        self.sent.insert(id.to_owned(), form);
        let answer = self.ask_with_secret("POST", "/v1/pty/register", Some(&body)).await?;
        if answer["ok"] == true {
            self.refused.remove(id);
        } else if self.refused.insert(id.to_owned()) {
            tracing::warn!("{} does not take session {id}: {}", self.elsewhere.url, answer["error"]);
        }
        Ok(())
    }

    /// Tells of a session again that the other side has forgotten.
    async fn register_again(&mut self, id: &str) -> Result<(), Trouble> {
        match self.sent.get(id).cloned() {
            Some(form) => self.register(id, form).await,
            None => Ok(()),
        }
    }

    /// Takes a session back, a leader's too: it is ours. One that is not there any more is taken back already.
    async fn unregister(&self, id: &str) -> Result<(), Trouble> {
        self.ask_with_secret("DELETE", &format!("/v1/pty/unregister/{id}?force=true"), None).await.map(drop)
    }

    async fn say_goodbye(&mut self) {
        if !self.is_known {
            return;
        }
        for id in std::mem::take(&mut self.sent).into_keys() {
            if self.unregister(&id).await.is_err() {
                return;
            }
        }
    }

    /// A request that needs the secret. Where it is not known any more it is brought again, once.
    async fn ask_with_secret(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Trouble> {
        match self.ask(method, path, body).await {
            Err(Trouble::Secret) => {
                self.introduce().await?;
                self.ask(method, path, body).await
            }
            answer => answer,
        }
    }

    async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Trouble> {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap_or_default();
        let request = self.http.request(method, format!("{}{path}", self.elsewhere.url));
        let request = request.header(SECRET_HEADER, &self.secret);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let silence = |error: reqwest::Error| Trouble::Silence(error.without_url().to_string());
        let mut response = request.send().await.map_err(silence)?;
        match response.status() {
            status if status.is_success() => {}
            reqwest::StatusCode::FORBIDDEN => return Err(Trouble::Secret),
            status => return Err(Trouble::Silence(format!("it answers with status {}", status.as_u16()))),
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(silence)? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MAX_ANSWER {
                return Err(Trouble::Silence("its answer is too long".to_owned()));
            }
        }
        serde_json::from_slice(&bytes).map_err(|_| Trouble::Silence("its answer is no JSON".to_owned()))
    }

    /// Says once when nobody answers, and once when somebody does again. Then everything is sent again.
    fn note(&mut self, outcome: Result<(), Trouble>) {
        let url = &self.elsewhere.url;
        match outcome {
            Ok(()) if self.is_silent => {
                self.is_silent = false;
                tracing::warn!("{url} knows of this server's sessions again");
            }
            Ok(()) => {}
            Err(trouble) => {
                self.is_known = false;
                let why = match trouble {
                    Trouble::Silence(why) => why,
                    Trouble::Secret => "it refuses our secret".to_owned(),
                };
                if !std::mem::replace(&mut self.is_silent, true) {
                    tracing::warn!("{url} does not accept this server's sessions: {why}; it is tried every 5 s");
                }
            }
        }
    }
}
