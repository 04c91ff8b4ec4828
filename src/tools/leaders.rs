//! Who leads, asked in the order that clients know: the desktop's own word, its bridge, this server's settings, the
//! gateway. It is shown and enforced nowhere.

use std::collections::HashSet;

use super::Tools;
use crate::model::{Role, SessionQuery};
use crate::terminal::desktop::LeaderQuestion;

impl Tools {
    /// The owners of sessions that lead.
    pub(super) async fn leading(&self) -> HashSet<String> {
        let owners = self.registry.owners();
        let mut leading = HashSet::new();
        for agent_id in owners {
            if self.is_leader(&agent_id).await {
                leading.insert(agent_id);
            }
        }
        leading
    }

    /// Whether an agent leads.
    pub async fn is_leader(&self, agent_id: &str) -> bool {
        if self.registry.is_registered_leader(agent_id) {
            return true;
        }
        let identity = &self.config.identity;
        let is_own = identity.agent_id.as_deref() == Some(agent_id);
        let terminal = identity.session_id.as_deref().filter(|_| is_own).and_then(|name| self.own_terminal(name));
        let question = LeaderQuestion {
            agent_id,
            terminal: terminal.as_deref().map(|name| (self.config.desktop_url.as_str(), name)),
            is_own_leader: is_own && (identity.is_leader || identity.role == Some(Role::Leader)),
            gateway_url: self.config.gateway_url.as_deref(),
        };
        self.bridges.is_leader(question).await
    }

    /// The terminal of the agent that this server was started for: named itself, or owned by its session, or by it.
    fn own_terminal(&self, session_id: &str) -> Option<String> {
        if session_id.starts_with("pty_") {
            return Some(session_id.to_owned());
        }
        let by_session = SessionQuery { owner_session_id: Some(session_id.to_owned()), ..SessionQuery::default() };
        let by_agent = SessionQuery { agent_id: self.config.identity.agent_id.clone(), ..SessionQuery::default() };
        let found = self.registry.resolve(&by_session).or_else(|_| self.registry.resolve(&by_agent));
        found.ok().map(|record| record.session_id)
    }
}
