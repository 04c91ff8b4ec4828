//! What is to be saved, as the saver sees it.

use tokio::sync::watch;

use crate::model::SessionRecord;
use crate::registry::{Registry, RegistryEvent};
use crate::terminal::local::Session;

/// Whoever knows the sessions.
pub trait Source: Send + Sync + 'static {
    /// All sessions as the registry tells them.
    fn records(&self) -> Vec<SessionRecord>;
    /// The sessions of this server.
    fn sessions(&self) -> Vec<Session>;
    /// What happened since this was asked for the last time.
    fn take_events(&self) -> Vec<RegistryEvent>;
    /// Moves whenever the answer of one of the others may be another.
    fn changed(&self) -> watch::Receiver<u64>;
}

impl Source for Registry {
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
