//! Client sessions in memory, and their eviction.
//!
//! A client may initialize again and again without ever ending a session. An evicted session that is used again is
//! loaded from disk, if there is a state folder.
//! found on disk, where there is a state folder.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager as _};

/// Maximum number of client sessions in memory; the least recently used is evicted.
pub(super) const MAX_LIVE: usize = 1_000;

/// Last use of each session.
#[derive(Debug)]
pub(super) struct Live {
    manager: Arc<LocalSessionManager>,
    max: usize,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    /// Counts uses; unlike a clock, it never repeats a value.
    clock: u64,
    last: HashMap<String, u64>,
}

impl Used {
    /// Records a use. Returns whether there are too many sessions.
    fn note(&mut self, id: &str, max: usize) -> bool {
        self.clock += 1;
        self.last.insert(id.to_owned(), self.clock);
        self.last.len() > max
    }

    /// Removes ended sessions, and returns the oldest beyond the limit.
    fn take_oldest(&mut self, is_live: impl Fn(&str) -> bool, max: usize) -> Vec<String> {
        self.last.retain(|id, _| is_live(id));
        let mut by_age: Vec<_> = self.last.iter().map(|(id, &used)| (used, id.clone())).collect();
        by_age.sort_unstable();
        by_age.truncate(self.last.len().saturating_sub(max));
        by_age.into_iter().filter_map(|(_, id)| self.last.remove_entry(&id)).map(|(id, _)| id).collect()
    }
}

impl Live {
    pub(super) fn new(manager: Arc<LocalSessionManager>, max: usize) -> Self {
        Self { manager, max, used: Mutex::default() }
    }

    /// Records a use of a session, and evicts others if necessary.
    pub(super) async fn note(&self, id: &str) {
        if !self.lock().note(id, self.max) {
            return;
        }
        let live: Vec<SessionId> = self.manager.sessions.read().await.keys().cloned().collect();
        let live: std::collections::HashSet<&str> = live.iter().map(|id| &**id).collect();
        let oldest = self.lock().take_oldest(|id| live.contains(id), self.max);
        for id in oldest {
            if let Err(error) = self.manager.close_session(&id.into()).await {
                tracing::debug!("cannot close a client session: {error}");
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Used> {
        // Every state of the map is valid, even after a panic.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_session_that_was_used_longest_ago_goes() {
        let manager = Arc::new(LocalSessionManager::default());
        let live = Live::new(manager.clone(), 2);
        let mut ids = Vec::new();
        for _ in 0..2 {
            // No task runs them.
            let (id, _) = manager.create_session().await.expect("a session");
            live.note(&id).await;
            ids.push(id);
        }
        live.note(&ids[0]).await;
        live.note("gone already").await;
        assert_eq!(manager.sessions.read().await.len(), 2);
        let (id, _) = manager.create_session().await.expect("a session");
        live.note(&id).await;
        let left = manager.sessions.read().await;
        assert!(left.contains_key(&ids[0]) && left.contains_key(&id) && !left.contains_key(&ids[1]));
    }
}
