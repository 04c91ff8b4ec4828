//! Which terminals a desktop still has, for the sessions that a restart brought back.

use std::time::Duration;

use super::Bridges;

/// How long a desktop may take for all of it.
const LIMIT: Duration = Duration::from_secs(2);

impl Bridges {
    /// Of these sessions, which the desktop still has; `None` when it cannot be asked.
    pub async fn still_there(&self, url: &str, sessions: &[String]) -> Option<Vec<bool>> {
        let asked = async {
            self.client.health(url).await.ok()?;
            self.client.list(url).await.ok()
        };
        let terminals = tokio::time::timeout(LIMIT, asked).await.ok()??;
        let is_there = |session: &String| terminals.iter().any(|there| there.is_named(session) && there.is_alive);
        Some(sessions.iter().map(is_there).collect())
    }
}
