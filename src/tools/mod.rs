//! The actions: a typed request in, a typed answer out, and no transport anywhere.
//!
//! [`Tools::call`] takes the arguments of a call as a JSON object and always comes back with a [`Reply`]. Each action
//! has its own file with what it reads from the parameters, what it does, and the shape of its answer.

mod audit;
mod bridge;
mod envelope;
mod forward;
mod k_pty;
mod leaders;
mod params;
mod schema;
mod text;
mod verify;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

pub use audit::Done;
pub use bridge::{
    BufferAnswer, BufferMode, BufferRequest, CommandAnswer, CommandRequest, MAX_BUFFER_CHARS, MAX_BUFFER_LINES,
    PIECE_LINES, WhichCommand,
};
pub use envelope::Reply;
pub use forward::FORWARDED_ACTIONS;
pub use k_pty::screen::{Field, Screen, lines_of};
pub use k_pty::typing::check_program;
pub use schema::{input_schema, input_schema_for};

use crate::config::{Config, ScreenAccess};
use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::model::Role;
use crate::recording::Shelf;
use crate::registry::{Located, Registry, RegistryLimits, RegistryOptions};
use crate::terminal::Terminal;
use crate::terminal::desktop::Bridges;
use crate::terminal::local::Session;
use crate::terminal::peer::Peers;
use crate::traffic::Emitter;
use audit::Entry;
use envelope::{Failure, fields};
use k_pty::typing::Typist;
use k_pty::*;
use kpty_guard::Redactor;
use params::Params;

/// The names of all actions.
pub const ACTIONS: [&str; 22] = [
    "help",
    "list",
    "create",
    "send_line",
    "send_keys",
    "talk",
    "run",
    "wait",
    "read",
    "term_read",
    "screenshot",
    "search",
    "commands",
    "evidence",
    "record",
    "resize",
    "kill",
    "resolve",
    "send_line_to_agent",
    "adopt",
    "disown",
    "write",
];

/// What can be looked at without a record of it.
const LOOKS: [&str; 2] = ["list", "term_read"];

/// How long the ends of recordings are waited for when the sessions have ended.
const RECORDING_PATIENCE: Duration = Duration::from_millis(400);

/// What to use instead of `write`.
const INSTEAD_OF_WRITE: [&str; 3] = [
    "send_line: types a line and presses Enter",
    "talk: runs a command and returns its output and exit code",
    "send_keys: keys and text without Enter",
];

/// What is known of who calls. Names are claims; nobody has proven them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// It is shown that a call goes on, so that it does not give up on a long wait.
    pub can_show_progress: bool,
    /// Who it says it is.
    pub agent: Option<String>,
    /// The program that it calls through, and that program's session.
    pub client: Option<String>,
}

/// A session that an action works on: one of this server, or a desktop's.
type Target = Arc<dyn Terminal>;

/// The actions with all that they need; clones are the same.
#[derive(Clone)]
pub struct Tools(Arc<Parts>);

/// What actions need. One count for all of it: a call clones its tools.
pub struct Parts {
    config: Config,
    registry: Registry,
    bridges: Bridges,
    peers: Peers,
    traffic: Emitter,
    typist: Typist,
    shelf: Arc<Shelf>,
    /// For what belongs to no session.
    redactor: Arc<Redactor>,
}

/// What an action that went well found.
enum Found {
    Fields(Map<String, Value>),
    Screen(Box<Screen>),
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
        let (traffic, shelf) = (Emitter::new(), Arc::default());
        Self(Arc::new(Parts { config, registry, bridges, peers: Peers::new(), traffic, typist, shelf, redactor }))
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
    pub fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    /// Masks what belongs to no session.
    pub fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// Kills all sessions. Returns those that would not die in time.
    pub async fn shutdown(&self) -> Vec<SessionId> {
        let left = self.registry.shutdown().await;
        let shelf = Arc::clone(&self.shelf);
        let written = tokio::task::spawn_blocking(move || shelf.finish());
        if tokio::time::timeout(RECORDING_PATIENCE, written).await.is_err() {
            tracing::warn!("the disk is too slow: the end of a recording was not written");
        }
        left
    }

    /// Does what the arguments ask for.
    pub async fn call(&self, arguments: &Map<String, Value>, caller: Caller) -> Reply {
        self.perform(arguments.clone(), caller).await.into_reply()
    }

    /// The same, and the caller records it: most of the work that is left can wait until the answer is on its way.
    pub async fn perform(&self, arguments: Map<String, Value>, caller: Caller) -> Done {
        let entry = Entry::begin(self, arguments, caller);
        let mut params = Params::new(&entry.arguments);
        let found = match self.peer_action(&entry.arguments) {
            Some(action) => Box::pin(self.forward(action, &mut params, &entry.caller)).await,
            None => self.dispatch(&mut params, &entry.caller).await,
        };
        let (outcome, screen) = match found {
            Ok(Found::Screen(screen)) => (Ok(Map::new()), Some(screen)),
            Ok(Found::Fields(fields)) => (Ok(fields), None),
            Err(failure) => (Err(failure), None),
        };
        let mut reply = envelope::reply(outcome);
        params.add_notes(&mut reply.body);
        self.mask(&entry.arguments, &mut reply);
        entry.over(reply, screen)
    }

    /// Takes secrets out of an answer. Output is masked where it leaves a session; but errors repeat what callers sent,
    /// and names, labels and folders are whatever somebody called them.
    fn mask(&self, arguments: &Map<String, Value>, reply: &mut Reply) {
        let given = arguments.get("session_id").or_else(|| reply.body.get("session_id"));
        let id = given.and_then(Value::as_str).map(|id| SessionId::named(id.trim()));
        let redactor = match id.and_then(|id| self.registry.get(&id).ok()) {
            Some(session) => session.redactor(),
            None => Arc::clone(&self.redactor),
        };
        envelope::mask(reply, &redactor);
    }

    /// The same, not recorded: for what a page asks by itself, again and again. Only actions that change nothing.
    pub async fn look(&self, arguments: &Map<String, Value>) -> Reply {
        let mut params = Params::new(arguments);
        let outcome = match params.action() {
            Ok(action) if LOOKS.contains(&action.as_str()) => self.dispatch(&mut params, &Caller::default()).await,
            Ok(name) => Err(Error::UnknownAction { name, available: &LOOKS }.into()),
            Err(error) => Err(error.into()),
        };
        let mut reply = envelope::reply(outcome.map(|found| match found {
            Found::Screen(screen) => screen.fields(),
            Found::Fields(fields) => fields,
        }));
        self.mask(arguments, &mut reply);
        reply
    }

    async fn dispatch(&self, params: &mut Params<'_>, caller: &Caller) -> std::result::Result<Found, Failure> {
        let action = params.action()?;
        params.check_agent()?;
        let Some(known) = known_params(&action) else {
            return Err(Error::UnknownAction { name: action, available: &ACTIONS }.into());
        };
        params.expect(known);
        // Each in a box of its own: a call would else have room for the largest of them, and most need little.
        let fields = match action.as_str() {
            "term_read" => {
                let screen = Box::pin(term_read::Request::read(params, self)?.run()).await?;
                return Ok(Found::Screen(Box::new(screen)));
            }
            "help" => Ok(help::help(&self.config)),
            "list" => fields(&Box::pin(list::list(self)).await?),
            "create" => fields(&Box::pin(create::Request::read(params, self)?.run(&self.registry)).await?),
            "send_line" => Box::pin(send_line::Request::read(params, self)?.run(self)).await,
            "send_keys" => fields(&Box::pin(send_keys::Request::read(params, self)?.run(self)).await?),
            "talk" | "run" => fields(&Box::pin(talk::Request::read(params, self)?.run(self)).await?),
            "wait" => fields(&Box::pin(wait::Request::read(params, self, caller)?.run()).await?),
            "read" => fields(&Box::pin(read::Request::read(params, self)?.run()).await?),
            "screenshot" => fields(&Box::pin(screenshot::Request::read(params, self)?.run()).await?),
            "search" => fields(&Box::pin(search::Request::read(params, self)?.run()).await?),
            "commands" => Box::pin(commands::Request::read(params, self)?.run()).await,
            "evidence" => Box::pin(evidence::Request::read(params, self, caller)?.run()).await,
            "record" => fields(&Box::pin(record::Request::read(params, self)?.run()).await?),
            "resize" => fields(&resize::Request::read(params, self)?.run(self)?),
            "kill" => fields(&Box::pin(kill::Request::read(params, self)?.run(&self.registry)).await?),
            "resolve" => fields(&Box::pin(resolve::Request::read(params, self)?.run(&self.registry)).await?),
            "send_line_to_agent" => Box::pin(send_line_to_agent::Request::read(params, self)?.run(self)).await,
            "adopt" => fields(&adopt::Request::adopt(params, &self.redactor)?.run(&self.registry)?),
            "disown" => fields(&adopt::Request::disown(params)?.run(&self.registry)?),
            _ => Err(Error::Deprecated { alternatives: &INSTEAD_OF_WRITE }.into()),
        };
        fields.map(Found::Fields)
    }

    /// The session that is asked for, whoever runs it.
    fn target(&self, params: &Params<'_>) -> Result<Target> {
        self.target_named(&session_id(params)?)
    }

    /// The session of this name, whoever runs it.
    fn target_named(&self, id: &SessionId) -> Result<Target> {
        Ok(match self.registry.locate(id)? {
            Located::Local(session) => Arc::new(session),
            Located::Desktop(record) => Arc::new(self.bridges.session(&record)),
        })
    }

    /// The session that is asked for, where it has to be one of this server.
    fn session(&self, params: &Params<'_>) -> Result<Session> {
        let id = session_id(params)?;
        match self.registry.locate(&id)? {
            Located::Local(session) => Ok(session),
            Located::Desktop(_) => Err(Error::DesktopOnly(id)),
        }
    }

    /// Refuses to show screens where that is switched off.
    fn may_read_screens(&self) -> Result<()> {
        match self.config.screen_access {
            ScreenAccess::On => Ok(()),
            ScreenAccess::Off => Err(Error::TermReadDisabled),
        }
    }
}

/// The name of the session that is asked for.
fn session_id(params: &Params<'_>) -> Result<SessionId> {
    Ok(SessionId::named(params.required("session_id")?.trim()))
}

/// The parameters of an action; `None` for one that there is not.
fn known_params(action: &str) -> Option<&'static [&'static str]> {
    Some(match action {
        "help" | "list" => &[],
        "create" => create::PARAMS,
        "send_line" => send_line::PARAMS,
        "send_keys" => send_keys::PARAMS,
        "talk" | "run" => talk::PARAMS,
        "wait" => wait::PARAMS,
        "read" => read::PARAMS,
        "term_read" => term_read::PARAMS,
        "screenshot" => screenshot::PARAMS,
        "search" => search::PARAMS,
        "commands" => commands::PARAMS,
        "evidence" => evidence::PARAMS,
        "record" => record::PARAMS,
        "resize" => resize::PARAMS,
        "kill" => kill::PARAMS,
        "resolve" => resolve::PARAMS,
        "send_line_to_agent" => send_line_to_agent::PARAMS,
        "adopt" => adopt::ADOPT_PARAMS,
        "disown" => adopt::DISOWN_PARAMS,
        "write" => &["session_id", "data"],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_has_its_parameters_and_every_parameter_its_schema() {
        let schema = input_schema();
        for action in ACTIONS {
            for name in known_params(action).expect(action) {
                assert!(schema["properties"].get(name).is_some(), "{action}: {name}");
            }
        }
        assert_eq!(schema["properties"]["action"]["enum"], serde_json::json!(ACTIONS));
    }
}
