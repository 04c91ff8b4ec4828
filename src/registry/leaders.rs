//! Registered leader agents. The role is informational: it is a claim without proof and grants no permission.

use std::collections::BTreeSet;

use super::fields::check_text;
use crate::error::{Error, Result};

/// Maximum number of registered leaders.
const MAX_LEADERS: usize = 1_000;

/// Set of leader agents.
#[derive(Debug, Default)]
pub(super) struct Leaders {
    registered: BTreeSet<String>,
}

impl Leaders {
    /// Adds an agent. Returns whether it is new.
    pub(super) fn add(&mut self, agent_id: &str) -> Result<bool> {
        check_text("agent_id", agent_id)?;
        if self.registered.len() >= MAX_LEADERS && !self.registered.contains(agent_id) {
            return Err(Error::invalid("agent_id", format!("there are {MAX_LEADERS} leaders already")));
        }
        Ok(self.registered.insert(agent_id.to_owned()))
    }

    pub(super) fn remove(&mut self, agent_id: &str) {
        self.registered.remove(agent_id);
    }

    pub(super) fn contains(&self, agent_id: &str) -> bool {
        self.registered.contains(agent_id)
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.registered.iter().cloned().collect()
    }
}
