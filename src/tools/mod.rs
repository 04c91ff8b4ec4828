//! The tools: a typed call in, a typed reply out, and no transport anywhere.
//!
//! [`Tools::call`] takes the arguments of a call as a JSON object and always returns a [`Reply`]. Each action declares
//! itself in one file of its tool's folder: see [`Action`]. Schemas, help, documentation, completion and the record of
//! actions are derived from that.

mod audit;
mod bridge;
mod catalogue;
mod docs;
mod envelope;
mod forward;
mod handler;
mod help;
mod k_pty;
mod leaders;
mod params;
#[cfg(test)]
mod sample;
mod schema;
mod spec;
mod term;
mod text;
mod verify;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

pub use audit::{Done, Shown};
pub use bridge::{
    BufferAnswer, BufferMode, BufferRequest, CommandAnswer, CommandRequest, MAX_BUFFER_CHARS, MAX_BUFFER_LINES,
    PIECE_LINES, WhichCommand,
};
pub use catalogue::{CATALOGUE, DEFAULT_TOOL, Offer};
pub use docs::actions_page;
pub use envelope::Reply;
pub use handler::TextReply;
pub use k_pty::screen::{Field, Screen, lines_of};
pub use k_pty::typing::check_program;
pub use spec::{
    Action, Annotations, Choice, Effect, Format, Kind, Number, Param, Preset, Recorded, Selector, Tool, View, Words,
};

use crate::config::Config;
use crate::error::Error;
use crate::ids::SessionId;
use crate::model::{Role, SessionRecord};
use crate::recording::RecordingFolder;
use crate::registry::{Located, Registry, RegistryLimits, RegistryOptions};
use crate::terminal::desktop::Bridges;
use crate::terminal::peer::Peers;
use crate::traffic::Emitter;
use audit::Entry;
use handler::{Content, Outcome};
use k_pty::typing::Typist;
use kpty_guard::Redactor;
use params::Params;

/// How long the last writes of recordings may take after the sessions have ended.
const RECORDING_TIMEOUT: Duration = Duration::from_millis(400);

/// What is known of who calls. Names are claims; nobody has proven them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// It is shown that a call goes on, so that it does not give up on a long wait.
    pub can_show_progress: bool,
    /// Who it says it is.
    pub agent: Option<String>,
    /// The program that it calls through, and that program's session.
    pub client: Option<String>,
    /// A person at a keyboard, who may type secrets: on the page, or attached.
    pub is_person: bool,
}

/// The tools with all state that their actions need; clones share it.
#[derive(Clone)]
pub struct Tools(Arc<Parts>);

/// The state of all tools. One reference count for all of it: a call clones its tools.
pub struct Parts {
    config: Config,
    registry: Registry,
    bridges: Bridges,
    peers: Peers,
    traffic: Emitter,
    typist: Typist,
    recordings: Arc<RecordingFolder>,
    callers: term::Callers,
    /// For what belongs to no session.
    redactor: Arc<Redactor>,
    /// How often a session was looked up.
    #[cfg(test)]
    lookups: std::sync::atomic::AtomicUsize,
}

impl Deref for Tools {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Tools {
    /// Actions over an empty table of sessions.
    pub fn new(config: Config) -> Self {
        let Config { max_sessions, spawns_at_once, dead_retention, memory_limit, .. } = config;
        let identity = &config.identity;
        let is_leader = identity.is_leader || identity.role == Some(Role::Leader);
        let own_leader = identity.agent_id.clone().filter(|_| is_leader);
        let options = RegistryOptions {
            allow_bridge: config.allow_bridge.clone(),
            own_leader,
            memory_limit,
            ..RegistryOptions::default()
        };
        let registry = Registry::with(RegistryLimits { max_sessions, spawns_at_once, dead_retention }, options);
        let redactor = audit::own_redactor(&config);
        let bridges = Bridges::new(Arc::clone(&redactor));
        let typist = Typist::new(config.policy.clone(), Arc::clone(&redactor));
        let (traffic, recordings) = (Emitter::new(), Arc::default());
        Self(Arc::new(Parts {
            config,
            registry,
            bridges,
            peers: Peers::new(),
            traffic,
            typist,
            recordings,
            callers: term::Callers::default(),
            redactor,
            #[cfg(test)]
            lookups: std::sync::atomic::AtomicUsize::default(),
        }))
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The table of sessions.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The record of actions. Whoever runs the tools starts it, or leaves it off.
    pub fn traffic(&self) -> &Emitter {
        &self.traffic
    }

    /// The recordings of sessions. Whoever runs the tools says where they go.
    pub fn recordings(&self) -> &RecordingFolder {
        &self.recordings
    }

    /// Masks what belongs to no session.
    pub fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// Kills all sessions. Returns those that would not die in time.
    pub async fn shutdown(&self) -> Vec<SessionId> {
        let left = self.registry.shutdown().await;
        let recordings = Arc::clone(&self.recordings);
        let written = tokio::task::spawn_blocking(move || recordings.finish());
        if tokio::time::timeout(RECORDING_TIMEOUT, written).await.is_err() {
            tracing::warn!("the disk is too slow: the end of a recording was not written");
        }
        left
    }

    /// Carries out an action of [`DEFAULT_TOOL`].
    pub async fn call(&self, arguments: &Map<String, Value>, caller: Caller) -> Reply {
        self.perform(DEFAULT_TOOL, arguments.clone(), caller).await.into_reply()
    }

    /// Carries out an action, and leaves it to the caller to record it: most of that work can wait until the reply is on
    /// its way.
    pub async fn perform(&self, tool: &'static Tool, arguments: Map<String, Value>, caller: Caller) -> Done {
        let entry = Entry::begin(self, tool, arguments, caller);
        let mut params = Params::new(&entry.arguments, &entry.caller, &self.config);
        params.entry = Some(&entry);
        let outcome = match self.peer_action(tool, &mut params) {
            Some(action) => Box::pin(self.forward(tool, action, &mut params)).await,
            None => self.dispatch(tool, &mut params).await,
        };
        let (outcome, mut shown) = match outcome {
            Ok(Content::Screen(screen)) => (Ok(Map::new()), Shown::Screen(screen)),
            Ok(Content::Text(text)) => (Ok(Map::new()), Shown::Text(text)),
            Ok(Content::Fields(fields)) => (Ok(fields), Shown::Nothing),
            Err(failure) => (Err(failure), Shown::Nothing),
        };
        let located = params.located.take();
        // What the caller gave is masked with what its session knows.
        let redactor = || match &located {
            Some(located) => self.redactor_of(located.as_ref()),
            None => self.redactor_of(self.session_of(&entry.arguments, None).as_ref()),
        };
        let mut reply = envelope::reply(outcome, redactor);
        params.add_notes(tool.selector, &mut reply.body, redactor);
        let located = located.unwrap_or_else(|| self.session_of(&entry.arguments, Some(&reply)));
        if tool.format == Format::Text {
            shown = Shown::Text(term::finished(&mut reply, shown));
        }
        entry.over(reply, shown, located)
    }

    /// Masks what callers gave about a session; without one, with what the server knows.
    fn redactor_of(&self, located: Option<&Located>) -> Arc<Redactor> {
        match located {
            Some(Located::Local(session)) => session.redactor(),
            Some(Located::Desktop(_)) | None => Arc::clone(&self.redactor),
        }
    }

    /// A session's record as others see it.
    fn shown(&self, record: SessionRecord) -> SessionRecord {
        let located = self.registry.locate(&SessionId::named(&record.session_id)).ok();
        envelope::shown_record(record, &self.redactor_of(located.as_ref()))
    }

    /// The same for an action that only reads, and unrecorded: a page asks by itself, again and again.
    pub async fn look(&self, arguments: &Map<String, Value>) -> Reply {
        let caller = Caller::default();
        let mut params = Params::new(arguments, &caller, &self.config);
        let readable = |action: &Action| action.effect == Effect::Read;
        let outcome = self.dispatch_if(DEFAULT_TOOL, &mut params, readable).await;
        let located = params.located.take().flatten();
        envelope::reply(outcome.map(Content::into_fields), || self.redactor_of(located.as_ref()))
    }

    async fn dispatch(&self, tool: &'static Tool, params: &mut Params<'_>) -> Outcome {
        self.dispatch_if(tool, params, |_| true).await
    }

    /// Finds the action in its tool, reads its parameters and runs it.
    async fn dispatch_if(
        &self,
        tool: &'static Tool,
        params: &mut Params<'_>,
        is_allowed: impl Fn(&Action) -> bool,
    ) -> Outcome {
        let available = || tool.actions.iter().filter(|action| is_allowed(action)).flat_map(|action| action.names());
        let Some(name) = tool.selected(params.arguments())? else {
            return Err(Error::MissingAction { available: available().collect() }.into());
        };
        params.check_agent()?;
        let Some(action) = tool.action(&name).filter(|action| is_allowed(action)) else {
            return Err(Error::UnknownAction { name, available: available().collect() }.into());
        };
        params.expect(action.params);
        let running = (action.begin)(params, self)?;
        if let Some(entry) = params.entry {
            entry.note_start(action, params.located.get().and_then(Option::as_ref));
        }
        running.await
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use serde_json::json;

    use super::*;
    use crate::traffic::{Retention, TrafficOptions};

    async fn done(tools: &Tools, arguments: Value) -> Map<String, Value> {
        let arguments = arguments.as_object().cloned().expect("an object");
        let reply = tools.call(&arguments, Caller::default()).await;
        assert!(!reply.is_error, "{arguments:?}: {:?}", reply.body);
        reply.body
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_session_is_looked_up_once_and_a_line_is_judged_once() {
        let tools = Tools::new(Config::default());
        let retention = Retention { age: Duration::from_secs(60), rows: 100 };
        tools.traffic().start(TrafficOptions {
            folder: None,
            retention,
            journal: None,
            gateway: None,
            own_address: None,
        });
        let created = done(&tools, json!({ "action": "create", "shell": "/bin/cat" })).await;
        let id = &created["session_id"];
        for (arguments, judged) in [
            (json!({ "action": "send_line", "data": "one line" }), 1),
            // Judged with its line ends and without.
            (json!({ "action": "send_line", "data": "two\nlines" }), 2),
            (json!({ "action": "send_keys", "keys": "Enter" }), 1),
            (json!({ "action": "wait", "text": "one line" }), 0),
            (json!({ "action": "term_read" }), 0),
            (json!({ "action": "term_read", "from_line": 0 }), 0),
            (json!({ "action": "search", "text": "line" }), 0),
            (json!({ "action": "commands" }), 0),
            (json!({ "action": "evidence" }), 0),
            (json!({ "action": "screenshot" }), 0),
            (json!({ "action": "resize", "cols": 90, "rows": 30 }), 0),
            (json!({ "action": "kill" }), 0),
        ] {
            let mut arguments = arguments;
            arguments["session_id"] = id.clone();
            let before = (tools.lookups.load(Relaxed), tools.typist.judged.load(Relaxed));
            done(&tools, arguments.clone()).await;
            let after = (tools.lookups.load(Relaxed), tools.typist.judged.load(Relaxed));
            assert_eq!((after.0 - before.0, after.1 - before.1), (1, judged), "{arguments}");
        }
        tools.traffic().finish();
        tools.shutdown().await;
    }
}
