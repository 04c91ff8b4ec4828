//! Local and desktop sessions as equals: what is told of them, to whom they belong, and what changed.
//!
//! The lock of the table is never held while a session is looked at.

use std::collections::BTreeSet;
use std::time::SystemTime;

use serde_json::json;
use tokio::sync::watch;

use super::desktop::{Listed, Registered, Registration, Unregistered};
use super::events::RegistryEvent;
use super::{OwnerChange, Registry, Table, bridge_url, check_owner};
use crate::error::{Error, Exited, Result};
use crate::ids::SessionId;
use crate::model::{Owner, SessionRecord, Source, iso_time};
use crate::terminal::local::Session;

/// Where a session was found.
#[derive(Clone)]
pub enum Located {
    /// It is one of this server.
    Local(Session),
    /// It is one of a desktop app.
    Desktop(Box<SessionRecord>),
}

impl Registry {
    /// Moves with every change that is worth keeping; [`Registry::take_events`] has what happened.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    /// What happened since it was asked for the last time; the newest [`super::MAX_EVENTS`] of it.
    pub fn take_events(&self) -> Vec<RegistryEvent> {
        self.shared.lock().events.take()
    }

    /// All live sessions, those of this server first, each kind the oldest first.
    pub fn records(&self) -> Vec<SessionRecord> {
        self.listing().into_iter().map(|listed| listed.record).collect()
    }

    /// The same as [`Registry::records`], with what is not kept.
    pub fn listing(&self) -> Vec<Listed> {
        let local = self.live().into_iter().map(|(_, record)| Listed { record, is_stale: false });
        let mut all: Vec<_> = local.collect();
        all.extend(self.desktop_sessions());
        all
    }

    /// The sessions of desktop apps, the oldest first. Those that were silent for a week are forgotten here.
    pub fn desktop_sessions(&self) -> Vec<Listed> {
        let now = self.shared.now();
        let mut table = self.shared.lock();
        let has_forgotten = self.forget_old(&mut table, now);
        let all = table.desktop.all(now);
        drop(table);
        if has_forgotten {
            self.shared.tell();
        }
        all
    }

    /// Forgets desktop sessions that were silent for a week. Returns whether there were any.
    fn forget_old(&self, table: &mut Table, now: SystemTime) -> bool {
        let forgotten = table.desktop.forget_old(now);
        for id in &forgotten {
            self.shared.note(table, "session_killed", id.as_str(), json!({ "reason": "stale" }));
        }
        !forgotten.is_empty()
    }

    /// The live sessions of this server, the oldest first.
    pub(super) fn live(&self) -> Vec<(Session, SessionRecord)> {
        let mut found: Vec<_> = {
            let table = self.shared.lock();
            let live = table.entries.values().filter(|entry| entry.is_alive);
            live.map(|entry| (entry.order, entry.session.clone(), entry.cli_type.clone())).collect()
        };
        found.sort_by_key(|(order, ..)| *order);
        // One that ended a moment ago may still be marked as alive.
        found.retain(|(_, session, _)| session.exit().is_none());
        found.into_iter().map(|(_, session, cli_type)| (session.clone(), local_record(&session, cli_type))).collect()
    }

    /// What kind of program a session of this server is.
    pub fn cli_type(&self, id: &SessionId) -> Option<String> {
        self.shared.lock().entries.get(id).map(|entry| entry.cli_type.clone())
    }

    /// The session of this name, also a dead one of this server.
    pub fn locate(&self, id: &SessionId) -> Result<Located> {
        if let Ok(session) = self.get(id) {
            return Ok(Located::Local(session));
        }
        let listed = self.shared.lock().desktop.get(id, self.shared.now());
        listed.map(|listed| Located::Desktop(Box::new(listed.record))).ok_or_else(|| Error::SessionNotFound(id.clone()))
    }

    /// A live session, as it is told to others.
    pub fn listed(&self, id: &SessionId) -> Result<Listed> {
        if let Ok(session) = self.get(id) {
            let record = self.live_record(&session)?;
            return Ok(Listed { record, is_stale: false });
        }
        let listed = self.shared.lock().desktop.get(id, self.shared.now());
        listed.ok_or_else(|| Error::SessionNotFound(id.clone()))
    }

    fn live_record(&self, session: &Session) -> Result<SessionRecord> {
        alive(session)?;
        let cli_type = self.cli_type(session.id()).ok_or_else(|| Error::SessionNotFound(session.id().clone()))?;
        Ok(local_record(session, cli_type))
    }

    /// A desktop tells of a session. The name of a session of this server is refused.
    pub fn register_desktop(&self, mut given: Registration) -> Result<Registered> {
        let url = bridge_url::check(&given.desktop_url, &self.shared.setup.allow_bridge);
        given.desktop_url = url.map_err(|problem| Error::invalid("desktop_url", problem))?;
        let (now, id) = (self.shared.now(), SessionId::named(&given.session_id));
        let mut table = self.shared.lock();
        if table.entries.contains_key(&id) {
            return Err(Error::invalid("session_id", format!("{id} is a local session of this server")));
        }
        // An entry that has been silent for a week is another session of the same name.
        self.forget_old(&mut table, now);
        let registered = table.desktop.register(&given, now)?;
        match registered {
            Registered::Created => {
                let cli_type = given.cli_type.as_deref().unwrap_or("shell");
                let owner = &given.owner.agent_id;
                let details =
                    json!({ "source": "desktop", "cli_type": cli_type, "pid": given.pid, "owner_agent_id": owner });
                self.shared.note(&mut table, "session_created", id.as_str(), details);
            }
            Registered::Updated { owner_changed: true } => self.note_owner(&mut table, &id, None),
            Registered::Updated { owner_changed: false } => {}
        }
        drop(table);
        self.shared.tell();
        Ok(registered)
    }

    /// Notes whose a session is now: as told, else as the table of desktop sessions has it.
    fn note_owner(&self, table: &mut Table, id: &SessionId, owner: Option<&Owner>) {
        let found = table.desktop.owner_mut(id).map(|owner| owner.agent_id.clone());
        let agent_id = owner.map_or_else(|| found.flatten(), |owner| owner.agent_id.clone());
        self.shared.note(table, "ownership_updated", id.as_str(), json!({ "owner_agent_id": agent_id }));
    }

    /// A session lives. One of this server needs nobody to say so. False when nobody knows it.
    pub fn heartbeat(&self, id: &SessionId) -> bool {
        let now = self.shared.now();
        let mut table = self.shared.lock();
        if table.entries.get(id).is_some_and(|entry| entry.is_alive) {
            return true;
        }
        let heard = table.desktop.heartbeat(id, now);
        drop(table);
        if heard == Some(true) {
            self.shared.tell();
        }
        heard.is_some()
    }

    /// Forgets a desktop session.
    pub fn unregister(&self, id: &SessionId, force: bool) -> Unregistered {
        let mut table = self.shared.lock();
        if table.entries.contains_key(id) {
            return Unregistered::IsLocal;
        }
        let outcome = table.desktop.unregister(id, force);
        if outcome == Unregistered::Done {
            self.shared.note(&mut table, "session_killed", id.as_str(), json!({ "reason": "unregister" }));
            drop(table);
            self.shared.tell();
        }
        outcome
    }

    /// Forgets all desktop sessions and all owners. Nothing is killed. Returns how many sessions are forgotten.
    pub fn reset(&self) -> usize {
        let count = self.shared.lock().desktop.clear();
        for session in self.list() {
            session.with_owner(|owner| *owner = Owner::default());
        }
        self.shared.note(&mut self.shared.lock(), "registry_reset", "", json!({ "cleared_count": count }));
        self.shared.tell();
        count
    }

    /// Takes desktop sessions back as they were written down. What is bad, too old or not a desktop's is left out.
    /// Returns how many came back.
    pub fn restore(&self, records: Vec<SessionRecord>) -> usize {
        let now = self.shared.now();
        let mut table = self.shared.lock();
        let mut count = 0;
        for record in records.iter().filter(|record| record.source == Source::Desktop) {
            let url = record.desktop_url.as_deref().unwrap_or_default();
            let url = match bridge_url::check(url, &self.shared.setup.allow_bridge) {
                Ok(url) => url,
                Err(problem) => {
                    tracing::warn!("{} is not taken back, its bridge may not be called: {problem}", record.session_id);
                    continue;
                }
            };
            let is_ours = table.entries.contains_key(&SessionId::named(&record.session_id));
            count += usize::from(!is_ours && table.desktop.restore(record, url, now));
        }
        drop(table);
        self.shared.tell();
        count
    }

    /// Changes the owner of a live session. After an error nothing is changed.
    pub fn change_owner(&self, id: &SessionId, change: &OwnerChange) -> Result<SessionRecord> {
        if let OwnerChange::Update(owner) | OwnerChange::Adopt { owner, .. } = change {
            check_owner(owner)?;
        }
        if let Ok(session) = self.get(id) {
            alive(&session)?;
            let (changed, owner) = session.with_owner(|owner| (change.apply(id, owner), owner.clone()));
            if changed? {
                self.note_owner(&mut self.shared.lock(), id, Some(&owner));
                self.shared.tell();
            }
            return self.live_record(&session);
        }
        let mut table = self.shared.lock();
        let owner = table.desktop.owner_mut(id).ok_or_else(|| Error::SessionNotFound(id.clone()))?;
        if change.apply(id, owner)? {
            self.note_owner(&mut table, id, None);
            drop(table);
            self.shared.tell();
        } else {
            drop(table);
        }
        Ok(self.listed(id)?.record)
    }

    /// From now on this agent leads.
    pub fn register_leader(&self, agent_id: &str) -> Result<()> {
        self.shared.lock().leaders.add(agent_id).map(drop)
    }

    /// It leads no longer.
    pub fn deregister_leader(&self, agent_id: &str) {
        self.shared.lock().leaders.remove(agent_id);
    }

    /// All that were registered.
    pub fn registered_leaders(&self) -> Vec<String> {
        self.shared.lock().leaders.all()
    }

    /// Whether an agent was registered as a leader.
    pub fn is_registered_leader(&self, agent_id: &str) -> bool {
        self.shared.lock().leaders.contains(agent_id)
    }

    /// The agents that own a session, each once.
    pub fn owners(&self) -> BTreeSet<String> {
        let local = self.list().into_iter().filter_map(|session| session.with_owner(|owner| owner.agent_id.clone()));
        let desktop = self.desktop_sessions().into_iter().filter_map(|listed| listed.record.owner_agent_id);
        local.chain(desktop).collect()
    }

    /// Whether an agent leads: it was registered, or this server was started for it as a leader.
    pub fn is_leader(&self, agent_id: &str) -> bool {
        self.shared.lock().leaders.contains(agent_id) || self.shared.setup.own_leader.as_deref() == Some(agent_id)
    }
}

/// A session of this server, as others are told of it.
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
    use crate::registry::{Bounds, FORGOTTEN_AFTER, Setup};

    /// A table, and its clock in seconds.
    fn registry() -> (Registry, Arc<AtomicU64>) {
        let seconds = Arc::new(AtomicU64::new(1_800_000_000));
        let hand = Arc::clone(&seconds);
        let clock = Arc::new(move || UNIX_EPOCH + Duration::from_secs(hand.load(Ordering::Relaxed)));
        let bounds = Bounds { max_sessions: 1, spawns_at_once: 1, keep_dead: Duration::ZERO };
        let setup = Setup { clock, own_leader: Some("me".to_owned()), ..Setup::default() };
        (Registry::with(bounds, setup), seconds)
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
        clock.fetch_add(FORGOTTEN_AFTER.as_secs(), Ordering::Relaxed);
        assert!(registry.listed(&id).is_err());
        assert_eq!(registry.records(), []);
        assert!(changed.has_changed().expect("the table lives"));
        assert!(!registry.heartbeat(&id), "a heartbeat brings nobody back");
        let expected = [("session_created", "d".to_owned()), ("session_killed", "d".to_owned())];
        assert_eq!(events(&registry), expected);
    }

    #[test]
    fn every_change_is_told_and_nothing_else() {
        let (registry, clock) = registry();
        let mut changed = registry.changed();
        let mut is_told = || {
            let told = changed.has_changed().expect("the table lives");
            changed.mark_unchanged();
            told
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
        registry.change_owner(&SessionId::named("d"), &change).expect_err("it is somebody's");
        assert!(!is_told());
        let record = registry.change_owner(&SessionId::named("d"), &OwnerChange::Clear).expect("a known session");
        assert_eq!(record.owner_agent_id, None);
        assert!(is_told());
        registry.change_owner(&SessionId::named("d"), &change).expect("it is free");
        assert_eq!(registry.unregister(&SessionId::named("x"), true), Unregistered::Unknown);
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
