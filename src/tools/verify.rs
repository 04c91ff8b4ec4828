//! Desktop sessions that came back with a restart: those that their desktop no longer has are forgotten.

use std::collections::HashMap;

use tokio::task::JoinSet;

use super::Tools;
use crate::ids::SessionId;

/// Desktops that are asked at the same time.
const AT_ONCE: usize = 16;

impl Tools {
    /// Asks every desktop for the sessions that it is said to have. A desktop that cannot be asked keeps its sessions,
    /// which grow stale; a leader's session is never forgotten.
    pub async fn verify_desktops(&self) {
        let mut by_desktop: HashMap<String, Vec<String>> = HashMap::new();
        for listed in self.registry.desktop_sessions() {
            let url = listed.record.desktop_url.unwrap_or_default();
            by_desktop.entry(url).or_default().push(listed.record.session_id);
        }
        let mut asked = JoinSet::new();
        for (url, sessions) in by_desktop {
            if asked.len() >= AT_ONCE {
                asked.join_next().await;
            }
            let (bridges, registry) = (self.bridges.clone(), self.registry.clone());
            asked.spawn(async move {
                let Some(there) = bridges.still_there(&url, &sessions).await else { return };
                for (session, is_there) in sessions.iter().zip(there) {
                    let id = SessionId::named(session);
                    match is_there {
                        true => drop(registry.heartbeat(&id)),
                        false => drop(registry.unregister(&id, false)),
                    }
                }
            });
        }
        while asked.join_next().await.is_some() {}
    }
}
