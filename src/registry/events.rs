//! Queue of registry events for the saver's journal. It is bounded: without a consumer the oldest events are dropped.

use std::collections::VecDeque;
use std::time::SystemTime;

use serde_json::{Map, Value};

/// Maximum number of queued events; a new event evicts the oldest.
pub const MAX_EVENTS: usize = 1_024;

/// An event of the registry.
#[derive(Clone, Debug, PartialEq)]
pub struct RegistryEvent {
    /// Time of the event.
    pub at: SystemTime,
    /// `session_created`, `session_killed`, `ownership_updated` or `registry_reset`.
    pub event: &'static str,
    /// Session concerned; empty for `registry_reset`, which concerns all of them.
    pub session_id: String,
    /// Further fields for the journal.
    pub details: Map<String, Value>,
}

/// Events that have not been taken.
#[derive(Debug, Default)]
pub(super) struct Events {
    waiting: VecDeque<RegistryEvent>,
}

impl Events {
    pub(super) fn push(&mut self, event: RegistryEvent) {
        if self.waiting.len() == MAX_EVENTS {
            self.waiting.pop_front();
        }
        self.waiting.push_back(event);
    }

    pub(super) fn take(&mut self) -> Vec<RegistryEvent> {
        self.waiting.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_wait() {
        let mut events = Events::default();
        for number in 0..MAX_EVENTS + 3 {
            let session_id = number.to_string();
            events.push(RegistryEvent {
                at: SystemTime::now(),
                event: "session_created",
                session_id,
                details: Map::new(),
            });
        }
        let taken = events.take();
        assert_eq!((taken.len(), taken[0].session_id.as_str()), (MAX_EVENTS, "3"));
        assert!(events.take().is_empty());
    }
}
