//! Which client sessions are in memory, and which of them goes when there are too many.
//!
//! A client may introduce itself again and again and never say good-bye. One that is dropped here and comes back is
//! found on disk, where there is a state folder.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager as _};

/// Client sessions in memory at most; the one that was used longest ago goes first.
pub(super) const MAX_LIVE: usize = 1_000;

/// When each session was used last.
#[derive(Debug)]
pub(super) struct Live {
    manager: Arc<LocalSessionManager>,
    max: usize,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    /// Counts uses: a clock that never says the same twice.
    clock: u64,
    last: HashMap<String, u64>,
}

impl Used {
    /// Notes a use. True if there are too many now.
    fn note(&mut self, id: &str, max: usize) -> bool {
        self.clock += 1;
        self.last.insert(id.to_owned(), self.clock);
        self.last.len() > max
    }

    /// Forgets those that are gone; takes out the oldest of what is still too many.
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

    /// A session has been used.
    pub(super) async fn note(&self, id: &str) {
        if !self.lock().note(id, self.max) {
            return;
        }
        let live: Vec<SessionId> = self.manager.sessions.read().await.keys().cloned().collect();
        let live: std::collections::HashSet<&str> = live.iter().map(|id| &**id).collect();
        let oldest = self.lock().take_oldest(|id| live.contains(id), self.max);
        for id in oldest {
            if let Err(error) = self.manager.close_session(&id.into()).await {
                tracing::debug!("a client session would not end: {error}");
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Used> {
        // Nothing can be half done in it.
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
            // Nobody runs them.
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
