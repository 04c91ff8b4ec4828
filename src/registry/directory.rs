//! Uniform view of local and desktop sessions: records, ownership and change notification.
//!
//! The table lock is never held while a session's own state is read.

use std::collections::BTreeSet;
use std::time::SystemTime;

use serde_json::json;
use tokio::sync::watch;

use super::desktop::{ListedSession, RegisterOutcome, Registration, UnregisterOutcome};
use super::events::RegistryEvent;
use super::{OwnerChange, Registry, Table, bridge_url, check_owner};
use crate::error::{Error, Exited, Result};
use crate::ids::SessionId;
use crate::model::{Owner, SessionRecord, Source, iso_time};
use crate::terminal::local::Session;

/// Where a session lives.
#[derive(Clone)]
pub enum Located {
    /// On this server.
    Local(Session),
    /// In a desktop app.
    Desktop(Box<SessionRecord>),
}

impl Registry {
    /// Returns a channel that advances with every change worth saving; [`Registry::take_events`] returns the events.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    /// Takes the events since the last call, at most the newest [`super::MAX_EVENTS`].
    pub fn take_events(&self) -> Vec<RegistryEvent> {
        self.shared.lock().events.take()
    }

    /// Returns all live sessions: local ones first, each kind oldest first.
    pub fn records(&self) -> Vec<SessionRecord> {
        self.listing().into_iter().map(|listed| listed.record).collect()
    }

    /// Like [`Registry::records`], with the fields that are not saved.
    pub fn listing(&self) -> Vec<ListedSession> {
        let local = self.live().into_iter().map(|(_, record)| ListedSession { record, is_stale: false });
        let mut all: Vec<_> = local.collect();
        all.extend(self.desktop_sessions());
        all
    }

    /// Returns the sessions of desktop apps, oldest first, after evicting expired ones.
    pub fn desktop_sessions(&self) -> Vec<ListedSession> {
        let now = self.shared.now();
        let mut table = self.shared.lock();
        let has_forgotten = self.evict_expired(&mut table, now);
        let all = table.desktop.all(now);
        drop(table);
        if has_forgotten {
            self.shared.announce_change();
        }
        all
    }

    /// Evicts expired desktop sessions. Returns whether there were any.
    fn evict_expired(&self, table: &mut Table, now: SystemTime) -> bool {
        let forgotten = table.desktop.evict_expired(now);
        for id in &forgotten {
            self.shared.note(table, "session_killed", id.as_str(), json!({ "reason": "stale" }));
        }
        !forgotten.is_empty()
    }

    /// Returns the live local sessions, oldest first.
    pub(super) fn live(&self) -> Vec<(Session, SessionRecord)> {
        let mut found: Vec<_> = {
            let table = self.shared.lock();
            let live = table.entries.values().filter(|entry| entry.is_alive);
            live.map(|entry| (entry.order, entry.session.clone(), entry.cli_type.clone())).collect()
        };
        found.sort_by_key(|(order, ..)| *order);
        // The table may still mark a session as alive that ended a moment ago.
        found.retain(|(_, session, _)| session.exit().is_none());
        found.into_iter().map(|(_, session, cli_type)| (session.clone(), local_record(&session, cli_type))).collect()
    }

    /// Returns the kind of program that runs in a local session.
    pub fn cli_type(&self, id: &SessionId) -> Option<String> {
        self.shared.lock().entries.get(id).map(|entry| entry.cli_type.clone())
    }

    /// Finds a session by id; includes dead local sessions until they are reaped.
    pub fn locate(&self, id: &SessionId) -> Result<Located> {
        if let Ok(session) = self.get(id) {
            return Ok(Located::Local(session));
        }
        let listed = self.shared.lock().desktop.get(id, self.shared.now());
        listed.map(|listed| Located::Desktop(Box::new(listed.record))).ok_or_else(|| Error::SessionNotFound(id.clone()))
    }

    /// Returns the listing entry of a live session.
    pub fn listed(&self, id: &SessionId) -> Result<ListedSession> {
        if let Ok(session) = self.get(id) {
            let record = self.live_record(&session)?;
            return Ok(ListedSession { record, is_stale: false });
        }
        let listed = self.shared.lock().desktop.get(id, self.shared.now());
        listed.ok_or_else(|| Error::SessionNotFound(id.clone()))
    }

    fn live_record(&self, session: &Session) -> Result<SessionRecord> {
        alive(session)?;
        let cli_type = self.cli_type(session.id()).ok_or_else(|| Error::SessionNotFound(session.id().clone()))?;
        Ok(local_record(session, cli_type))
    }

    /// Registers a session of a desktop. Rejects the id of a local session.
    pub fn register_desktop(&self, mut given: Registration) -> Result<RegisterOutcome> {
        let url = bridge_url::check(&given.desktop_url, &self.shared.options.allow_bridge);
        given.desktop_url = url.map_err(|problem| Error::invalid("desktop_url", problem))?;
        let (now, id) = (self.shared.now(), SessionId::named(&given.session_id));
        let mut table = self.shared.lock();
        if table.entries.contains_key(&id) {
            return Err(Error::invalid("session_id", format!("{id} is a local session of this server")));
        }
        // Evicts first: a session that reuses an expired entry's id is a new session.
        self.evict_expired(&mut table, now);
        let registered = table.desktop.register(&given, now)?;
        match registered {
            RegisterOutcome::Created => {
                let cli_type = given.cli_type.as_deref().unwrap_or("shell");
                let owner = &given.owner.agent_id;
                let details =
                    json!({ "source": "desktop", "cli_type": cli_type, "pid": given.pid, "owner_agent_id": owner });
                self.shared.note(&mut table, "session_created", id.as_str(), details);
            }
            RegisterOutcome::Updated { owner_changed: true } => self.note_owner(&mut table, &id, None),
            RegisterOutcome::Updated { owner_changed: false } => {}
        }
        drop(table);
        self.shared.announce_change();
        Ok(registered)
    }

    /// Records an ownership event. Without an explicit owner it uses the one in the table of desktop sessions.
    fn note_owner(&self, table: &mut Table, id: &SessionId, owner: Option<&Owner>) {
        let found = table.desktop.owner_mut(id).map(|owner| owner.agent_id.clone());
        let agent_id = owner.map_or_else(|| found.flatten(), |owner| owner.agent_id.clone());
        self.shared.note(table, "ownership_updated", id.as_str(), json!({ "owner_agent_id": agent_id }));
    }

    /// Records a heartbeat; a local session needs none. Returns false for an unknown session.
    pub fn heartbeat(&self, id: &SessionId) -> bool {
        let now = self.shared.now();
        let mut table = self.shared.lock();
        if table.entries.get(id).is_some_and(|entry| entry.is_alive) {
            return true;
        }
        let heard = table.desktop.heartbeat(id, now);
        drop(table);
        if heard == Some(true) {
            self.shared.announce_change();
        }
        heard.is_some()
    }

    /// Removes a desktop session.
    pub fn unregister(&self, id: &SessionId, force: bool) -> UnregisterOutcome {
        let mut table = self.shared.lock();
        if table.entries.contains_key(id) {
            return UnregisterOutcome::IsLocal;
        }
        let outcome = table.desktop.unregister(id, force);
        if outcome == UnregisterOutcome::Done {
            self.shared.note(&mut table, "session_killed", id.as_str(), json!({ "reason": "unregister" }));
            drop(table);
            self.shared.announce_change();
        }
        outcome
    }

    /// Removes all desktop sessions and all owners; kills nothing. Returns the number of sessions affected.
    pub fn reset(&self) -> usize {
        let count = self.shared.lock().desktop.clear();
        for session in self.list() {
            session.with_owner(|owner| *owner = Owner::default());
        }
        self.shared.note(&mut self.shared.lock(), "registry_reset", "", json!({ "cleared_count": count }));
        self.shared.announce_change();
        count
    }

    /// Restores saved desktop sessions and skips records that are invalid, expired or not of a desktop. Returns how
    /// many it restored.
    pub fn restore(&self, records: Vec<SessionRecord>) -> usize {
        let now = self.shared.now();
        let mut table = self.shared.lock();
        let mut count = 0;
        for record in records.iter().filter(|record| record.source == Source::Desktop) {
            let url = record.desktop_url.as_deref().unwrap_or_default();
            let url = match bridge_url::check(url, &self.shared.options.allow_bridge) {
                Ok(url) => url,
                Err(problem) => {
                    tracing::warn!(
                        "desktop session {} is not restored: bridge URL rejected: {problem}",
                        record.session_id
                    );
                    continue;
                }
            };
            let is_ours = table.entries.contains_key(&SessionId::named(&record.session_id));
            count += usize::from(!is_ours && table.desktop.restore(record, url, now));
        }
        drop(table);
        self.shared.announce_change();
        count
    }

    /// Changes the owner of a live session. An error leaves it unchanged.
    pub fn change_owner(&self, id: &SessionId, change: &OwnerChange) -> Result<SessionRecord> {
        if let OwnerChange::Update(owner) | OwnerChange::Adopt { owner, .. } = change {
            check_owner(owner)?;
        }
        if let Ok(session) = self.get(id) {
            alive(&session)?;
            let (changed, owner) = session.with_owner(|owner| (change.apply(id, owner), owner.clone()));
            if changed? {
                self.note_owner(&mut self.shared.lock(), id, Some(&owner));
                self.shared.announce_change();
            }
            return self.live_record(&session);
        }
        let mut table = self.shared.lock();
        let owner = table.desktop.owner_mut(id).ok_or_else(|| Error::SessionNotFound(id.clone()))?;
        if change.apply(id, owner)? {
            self.note_owner(&mut table, id, None);
            drop(table);
            self.shared.announce_change();
        } else {
            drop(table);
        }
        Ok(self.listed(id)?.record)
    }

    /// Registers an agent as a leader.
    pub fn register_leader(&self, agent_id: &str) -> Result<()> {
        self.shared.lock().leaders.add(agent_id).map(drop)
    }

    /// Removes an agent from the leaders.
    pub fn deregister_leader(&self, agent_id: &str) {
        self.shared.lock().leaders.remove(agent_id);
    }

    /// Returns all registered leaders.
    pub fn registered_leaders(&self) -> Vec<String> {
        self.shared.lock().leaders.all()
    }

    /// Returns whether an agent is registered as a leader.
    pub fn is_registered_leader(&self, agent_id: &str) -> bool {
        self.shared.lock().leaders.contains(agent_id)
    }

    /// Returns the distinct agents that own a session.
    pub fn owners(&self) -> BTreeSet<String> {
        let local = self.list().into_iter().filter_map(|session| session.with_owner(|owner| owner.agent_id.clone()));
        let desktop = self.desktop_sessions().into_iter().filter_map(|listed| listed.record.owner_agent_id);
        local.chain(desktop).collect()
    }

    /// Returns whether an agent leads: it is registered, or the server was started for it as a leader.
    pub fn is_leader(&self, agent_id: &str) -> bool {
        self.shared.lock().leaders.contains(agent_id) || self.shared.options.own_leader.as_deref() == Some(agent_id)
    }
}

/// Builds the public record of a local session.
fn local_record(session: &Session, cli_type: String) -> SessionRecord {
    let owner = session.with_owner(|owner| owner.clone());
    SessionRecord {
        session_id: session.id().to_string(),
        source: Source::Local,
        desktop_url: None,
        cli_type,
        pid: session.pid(),
        created_at: iso_time(session.created_at()),
        last_heartbeat: iso_time(session.last_activity()),
        owner_agent_id: owner.agent_id,
        owner_session_id: owner.session_id,
        owner_role: owner.role,
        label: owner.label,
        claude_code_session_id: owner.claude_code_session_id,
    }
}

fn alive(session: &Session) -> Result<()> {
    let Some(exit) = session.exit() else { return Ok(()) };
    let session = session.id().clone();
    Err(Error::Exited(Box::new(Exited { session, exit, command: None, partial_output: None })))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::registry::{EVICT_AFTER, RegistryLimits, RegistryOptions};

    /// Creates a registry and a settable clock, in seconds.
    fn registry() -> (Registry, Arc<AtomicU64>) {
        let seconds = Arc::new(AtomicU64::new(1_800_000_000));
        let hand = Arc::clone(&seconds);
        let clock = Arc::new(move || UNIX_EPOCH + Duration::from_secs(hand.load(Ordering::Relaxed)));
        let limits = RegistryLimits { max_sessions: 1, spawns_at_once: 1, dead_retention: Duration::ZERO };
        let options = RegistryOptions { clock, own_leader: Some("me".to_owned()), ..RegistryOptions::default() };
        (Registry::with(limits, options), seconds)
    }

    fn register(registry: &Registry, id: &str, agent: &str) {
        let owner = Owner { agent_id: Some(agent.to_owned()), ..Owner::default() };
        let (session_id, desktop_url) = (id.to_owned(), "http://127.0.0.1:8201".to_owned());
        let given = Registration { session_id, desktop_url, owner, ..Registration::default() };
        registry.register_desktop(given).expect("a good entry");
    }

    fn events(registry: &Registry) -> Vec<(&'static str, String)> {
        registry.take_events().into_iter().map(|event| (event.event, event.session_id)).collect()
    }

    #[test]
    fn silence_is_told_at_thirty_seconds_and_forgotten_after_a_week() {
        let (registry, clock) = registry();
        register(&registry, "d", "a");
        let id = SessionId::named("d");
        let is_stale = || registry.listed(&id).expect("it is there").is_stale;
        clock.fetch_add(29, Ordering::Relaxed);
        assert!(!is_stale());
        clock.fetch_add(1, Ordering::Relaxed);
        assert!(is_stale());
        assert!(registry.heartbeat(&id) && !is_stale());
        let mut changed = registry.changed();
        changed.mark_unchanged();
        clock.fetch_add(EVICT_AFTER.as_secs(), Ordering::Relaxed);
        assert!(registry.listed(&id).is_err());
        assert_eq!(registry.records(), []);
        assert!(changed.has_changed().expect("the table lives"));
        assert!(!registry.heartbeat(&id), "a heartbeat does not restore an entry");
        let expected = [("session_created", "d".to_owned()), ("session_killed", "d".to_owned())];
        assert_eq!(events(&registry), expected);
    }

    #[test]
    fn every_change_is_told_and_nothing_else() {
        let (registry, clock) = registry();
        let mut changed = registry.changed();
        let mut is_told = || {
            let has_change = changed.has_changed().expect("the table lives");
            changed.mark_unchanged();
            has_change
        };
        register(&registry, "d", "a");
        assert!(is_told());
        register(&registry, "d", "a");
        assert!(is_told(), "an update is written down too");
        registry.heartbeat(&SessionId::named("d"));
        assert!(!is_told());
        clock.fetch_add(60, Ordering::Relaxed);
        registry.heartbeat(&SessionId::named("d"));
        assert!(is_told());
        let owner = Owner { agent_id: Some("b".to_owned()), ..Owner::default() };
        let change = OwnerChange::Adopt { owner, force: false };
        registry.change_owner(&SessionId::named("d"), &change).expect_err("another agent owns it");
        assert!(!is_told());
        let record = registry.change_owner(&SessionId::named("d"), &OwnerChange::Clear).expect("a known session");
        assert_eq!(record.owner_agent_id, None);
        assert!(is_told());
        registry.change_owner(&SessionId::named("d"), &change).expect("it is free");
        assert_eq!(registry.unregister(&SessionId::named("x"), true), UnregisterOutcome::Unknown);
        assert_eq!(registry.reset(), 1);
        assert!(is_told() && registry.records().is_empty());
        let names: Vec<_> = events(&registry).into_iter().map(|(event, _)| event).collect();
        assert_eq!(names, ["session_created", "ownership_updated", "ownership_updated", "registry_reset"]);
    }

    #[test]
    fn what_was_written_down_comes_back_once_and_only_if_it_is_good() {
        let (registry, _) = registry();
        register(&registry, "d", "a");
        let good = registry.records().remove(0);
        let local = SessionRecord { session_id: "l".to_owned(), source: Source::Local, ..good.clone() };
        let elsewhere = "http://10.0.0.1:80".to_owned();
        let far = SessionRecord { session_id: "f".to_owned(), desktop_url: Some(elsewhere), ..good.clone() };
        let none = SessionRecord { session_id: "n".to_owned(), desktop_url: None, ..good.clone() };
        registry.reset();
        assert_eq!(registry.restore(vec![good.clone(), good.clone(), local, far, none]), 1);
        assert_eq!(registry.records(), [good]);
    }

    #[test]
    fn who_leads_is_registered_or_this_servers_own() {
        let (registry, _) = registry();
        registry.register_leader("a").expect("a short name");
        registry.register_leader(&"a".repeat(300)).expect_err("too long a name");
        assert_eq!(registry.registered_leaders(), ["a"]);
        for (agent, expected) in [("a", true), ("me", true), ("b", false), ("", false)] {
            assert_eq!(registry.is_leader(agent), expected, "{agent}");
        }
        registry.deregister_leader("a");
        registry.deregister_leader("a");
        assert!(!registry.is_leader("a"));
    }
}
