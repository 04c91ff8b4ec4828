//! Small facts about a session that are asked for often: none of them looks at the system.

use std::sync::PoisonError;
use std::time::SystemTime;

use super::Session;
use crate::model::Owner;

impl Session {
    /// Looks at its owner, or changes it.
    pub fn with_owner<T>(&self, change: impl FnOnce(&mut Owner) -> T) -> T {
        change(&mut self.shared.owner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// When it was created.
    pub fn created_at(&self) -> SystemTime {
        self.shared.created_at
    }

    /// When it last said something.
    pub fn last_activity(&self) -> SystemTime {
        self.shared.lock().last_activity
    }

    /// The command that was run last, secrets masked.
    pub fn last_command(&self) -> Option<String> {
        let terminal = self.shared.lock();
        let line = terminal.commands.iter().next_back().map(|command| command.line.clone())?;
        Some(terminal.redactor.redact(&line).into_owned())
    }
}
