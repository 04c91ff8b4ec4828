//! What is to be saved, as the saver sees it.

use tokio::sync::watch;

use crate::model::{SessionRecord, Source as Place, iso_time};
use crate::registry::Registry;
use crate::session::Session;

/// Whoever knows the sessions.
pub trait Source: Send + Sync + 'static {
    /// All sessions as the registry tells them.
    fn records(&self) -> Vec<SessionRecord>;
    /// The sessions of this server.
    fn sessions(&self) -> Vec<Session>;
    /// Moves whenever the answer of one of the others may be another.
    fn changed(&self) -> watch::Receiver<u64>;
}

/// A registry of local sessions, beside desktop sessions of an earlier server, which are kept as they were.
pub struct LocalSource {
    registry: Registry,
    restored: Vec<SessionRecord>,
}

impl LocalSource {
    /// The sessions of a registry, and these.
    pub fn new(registry: Registry, restored: Vec<SessionRecord>) -> Self {
        Self { registry, restored }
    }
}

impl Source for LocalSource {
    fn records(&self) -> Vec<SessionRecord> {
        let own = self.registry.list();
        self.restored.iter().cloned().chain(own.iter().map(record)).collect()
    }

    fn sessions(&self) -> Vec<Session> {
        self.registry.list()
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.registry.changed()
    }
}

fn record(session: &Session) -> SessionRecord {
    let info = session.info();
    SessionRecord {
        session_id: info.id.to_string(),
        source: Place::Local,
        desktop_url: None,
        cli_type: "shell".to_owned(),
        pid: info.pid,
        created_at: iso_time(info.created_at),
        last_heartbeat: iso_time(info.last_activity),
        owner_agent_id: info.owner.agent_id,
        owner_session_id: info.owner.session_id,
        owner_role: info.owner.role,
        label: info.owner.label,
        claude_code_session_id: None,
    }
}
