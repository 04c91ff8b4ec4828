//! The saver's view of the registry.

use tokio::sync::watch;

use crate::model::SessionRecord;
use crate::registry::{Registry, RegistryEvent};
use crate::terminal::local::Session;

/// Provider of the state to save.
pub trait SaveSource: Send + Sync + 'static {
    /// Returns the public records of all sessions.
    fn records(&self) -> Vec<SessionRecord>;
    /// Returns the local sessions.
    fn sessions(&self) -> Vec<Session>;
    /// Takes the events since the last call.
    fn take_events(&self) -> Vec<RegistryEvent>;
    /// Returns a channel that advances whenever one of the other methods may return something new.
    fn changed(&self) -> watch::Receiver<u64>;
}

impl SaveSource for Registry {
    fn records(&self) -> Vec<SessionRecord> {
        Self::records(self)
    }

    fn sessions(&self) -> Vec<Session> {
        self.list()
    }

    fn take_events(&self) -> Vec<RegistryEvent> {
        Self::take_events(self)
    }

    fn changed(&self) -> watch::Receiver<u64> {
        Self::changed(self)
    }
}
