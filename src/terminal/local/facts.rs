//! Small facts about a session that are asked for often: few of them look at the system.

use std::path::Path;
use std::sync::PoisonError;
use std::time::SystemTime;

use kpty_emulator::Size;
use kpty_guard::Masked;

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

    /// The window.
    pub fn size(&self) -> Size {
        self.shared.lock().emulator.size()
    }

    /// Whether the directory that it is in is meant.
    pub fn is_in(&self, is_meant: impl FnOnce(&Path) -> bool) -> bool {
        is_meant(self.directory().as_ref().unwrap_or(&self.shared.cwd))
    }

    /// The name of the foreground process, secrets masked.
    pub fn foreground_name(&self) -> Option<Masked> {
        let program = self.foreground()?.program?;
        Some(self.redactor().mask(program.name))
    }

    /// The command that was run last, secrets masked.
    pub fn last_command(&self) -> Option<Masked> {
        let terminal = self.shared.lock();
        terminal.commands.iter().next_back().map(|command| command.line(&terminal.redactor))
    }
}
