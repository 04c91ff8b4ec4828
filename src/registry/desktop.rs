//! Sessions of desktop apps: what a desktop registered about them and their last heartbeat. This module makes no
//! requests.
//!
//! The caller passes the current time, so tests control the age of an entry.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use super::fields::{check_owner, check_session_id, check_text};
use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::model::{Owner, Role, SessionRecord, Source, iso_time, time_from_iso};

/// Maximum number of desktop sessions.
pub const MAX_DESKTOP_SESSIONS: usize = 10_000;
/// An entry without a heartbeat for this long is stale. A desktop sends one every 5 s.
pub const STALE_AFTER: Duration = Duration::from_secs(30);
/// An entry without a heartbeat for this long is evicted.
pub const EVICT_AFTER: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Minimum interval between heartbeats that cause a write to disk. A saved heartbeat only serves [`EVICT_AFTER`], which
/// is in days, so saving every one of them is not worth the writes.
const HEARTBEAT_SAVE_INTERVAL: Duration = Duration::from_secs(60);

/// Data that a desktop sends about one of its sessions.
#[derive(Clone, Debug, Default)]
pub struct Registration {
    /// Session id, chosen by the desktop.
    pub session_id: String,
    /// Kind of program that runs in the session; `None` means `shell`.
    pub cli_type: Option<String>,
    /// Process id of the child; 0 when the desktop does not send it.
    pub pid: u32,
    /// Base URL of the desktop's bridge.
    pub desktop_url: String,
    /// Owner of the session.
    pub owner: Owner,
}

/// Outcome of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterOutcome {
    /// The session is new.
    Created,
    /// The session was registered before.
    Updated {
        /// The owner or one of its fields changed.
        owner_changed: bool,
    },
}

/// Outcome of a request to unregister a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnregisterOutcome {
    /// The session is removed.
    Done,
    /// No session has this id.
    Unknown,
    /// The session is local to this server; clients kill local sessions instead.
    IsLocal,
    /// The session belongs to a leader and the request does not set `force`.
    LeaderProtected,
}

/// A session as it appears in listings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSession {
    /// Public record of the session.
    pub record: SessionRecord,
    /// True for a desktop session whose last heartbeat is older than [`STALE_AFTER`].
    pub is_stale: bool,
}

/// Table of desktop sessions.
#[derive(Debug, Default)]
pub(super) struct DesktopTable {
    entries: HashMap<SessionId, DesktopEntry>,
    /// Number of entries created so far; gives each entry its position in listings.
    created: u64,
}

#[derive(Debug)]
struct DesktopEntry {
    order: u64,
    cli_type: String,
    pid: u32,
    desktop_url: String,
    created_at: SystemTime,
    heartbeat: SystemTime,
    /// Last heartbeat that caused a write to disk.
    heartbeat_saved: SystemTime,
    owner: Owner,
}

/// Returns the time since `then`; zero when the clock was set back.
fn age(now: SystemTime, then: SystemTime) -> Duration {
    now.duration_since(then).unwrap_or_default()
}

impl DesktopEntry {
    fn listed(&self, id: &SessionId, now: SystemTime) -> ListedSession {
        let owner = &self.owner;
        let record = SessionRecord {
            session_id: id.to_string(),
            source: Source::Desktop,
            desktop_url: Some(self.desktop_url.clone()),
            cli_type: self.cli_type.clone(),
            pid: self.pid,
            created_at: iso_time(self.created_at),
            last_heartbeat: iso_time(self.heartbeat),
            owner_agent_id: owner.agent_id.clone(),
            owner_session_id: owner.session_id.clone(),
            owner_role: owner.role,
            label: owner.label.clone(),
            claude_code_session_id: owner.claude_code_session_id.clone(),
        };
        ListedSession { record, is_stale: age(now, self.heartbeat) >= STALE_AFTER }
    }
}

impl DesktopTable {
    /// Adds or updates an entry. The caller has validated the URL. An error leaves the table unchanged.
    pub(super) fn register(&mut self, given: &Registration, now: SystemTime) -> Result<RegisterOutcome> {
        check_session_id(&given.session_id)?;
        check_owner(&given.owner)?;
        let cli_type = given.cli_type.as_deref().unwrap_or("shell");
        check_text("cli_type", cli_type)?;
        let id = SessionId::named(&given.session_id);
        if let Some(entry) = self.entries.get_mut(&id) {
            let before = entry.owner.clone();
            entry.owner.update(&given.owner);
            entry.desktop_url.clone_from(&given.desktop_url);
            if given.pid != 0 {
                entry.pid = given.pid;
            }
            (entry.heartbeat, entry.heartbeat_saved) = (now, now);
            return Ok(RegisterOutcome::Updated { owner_changed: entry.owner != before });
        }
        self.insert(id, |order| DesktopEntry {
            order,
            cli_type: cli_type.to_owned(),
            pid: given.pid,
            desktop_url: given.desktop_url.clone(),
            created_at: now,
            heartbeat: now,
            heartbeat_saved: now,
            owner: given.owner.clone(),
        })?;
        Ok(RegisterOutcome::Created)
    }

    fn insert(&mut self, id: SessionId, entry: impl FnOnce(u64) -> DesktopEntry) -> Result<()> {
        if self.entries.len() >= MAX_DESKTOP_SESSIONS {
            return Err(Error::LimitReached { limit: MAX_DESKTOP_SESSIONS });
        }
        self.created += 1;
        self.entries.insert(id, entry(self.created));
        Ok(())
    }

    /// Restores a saved entry. Returns false when the record is invalid, expired or already present.
    pub(super) fn restore(&mut self, record: &SessionRecord, desktop_url: String, now: SystemTime) -> bool {
        let owner = Owner {
            agent_id: record.owner_agent_id.clone(),
            session_id: record.owner_session_id.clone(),
            role: record.owner_role,
            label: record.label.clone(),
            claude_code_session_id: record.claude_code_session_id.clone(),
        };
        let id = SessionId::named(&record.session_id);
        let is_good = check_session_id(&record.session_id).and_then(|()| check_owner(&owner)).is_ok()
            && check_text("cli_type", &record.cli_type).is_ok();
        // A time in the future is clamped to now; an unreadable time counts as now.
        let moment = |text: &str| time_from_iso(text).unwrap_or(now).min(now);
        let (created_at, heartbeat) = (moment(&record.created_at), moment(&record.last_heartbeat));
        if !is_good || self.entries.contains_key(&id) || age(now, heartbeat) >= EVICT_AFTER {
            return false;
        }
        let (cli_type, pid) = (record.cli_type.clone(), record.pid);
        let entry = |order| DesktopEntry {
            order,
            cli_type,
            pid,
            desktop_url,
            created_at,
            heartbeat,
            heartbeat_saved: heartbeat,
            owner,
        };
        self.insert(id, entry).is_ok()
    }

    /// Records a heartbeat. Returns whether it is due for saving; `None` for an unknown session.
    pub(super) fn heartbeat(&mut self, id: &SessionId, now: SystemTime) -> Option<bool> {
        let entry = self.entries.get_mut(id)?;
        entry.heartbeat = now;
        let is_due = age(now, entry.heartbeat_saved) >= HEARTBEAT_SAVE_INTERVAL;
        if is_due {
            entry.heartbeat_saved = now;
        }
        Some(is_due)
    }

    /// Removes an entry.
    pub(super) fn unregister(&mut self, id: &SessionId, force: bool) -> UnregisterOutcome {
        match self.entries.get(id) {
            None => UnregisterOutcome::Unknown,
            Some(entry) if entry.owner.role == Some(Role::Leader) && !force => UnregisterOutcome::LeaderProtected,
            Some(_) => {
                self.entries.remove(id);
                UnregisterOutcome::Done
            }
        }
    }

    /// Removes entries without a heartbeat for [`EVICT_AFTER`]. Returns their ids.
    pub(super) fn evict_expired(&mut self, now: SystemTime) -> Vec<SessionId> {
        let is_old = |entry: &DesktopEntry| age(now, entry.heartbeat) >= EVICT_AFTER;
        let old: Vec<_> = self.entries.iter().filter(|(_, entry)| is_old(entry)).map(|(id, _)| id.clone()).collect();
        old.iter().for_each(|id| drop(self.entries.remove(id)));
        old
    }

    /// Removes all entries. Returns their number.
    pub(super) fn clear(&mut self) -> usize {
        let count = self.entries.len();
        self.entries.clear();
        count
    }

    /// Returns the owner of an entry.
    pub(super) fn owner_mut(&mut self, id: &SessionId) -> Option<&mut Owner> {
        self.entries.get_mut(id).map(|entry| &mut entry.owner)
    }

    /// Returns one entry.
    pub(super) fn get(&self, id: &SessionId, now: SystemTime) -> Option<ListedSession> {
        let entry = self.entries.get(id).filter(|entry| age(now, entry.heartbeat) < EVICT_AFTER)?;
        Some(entry.listed(id, now))
    }

    /// Returns all entries, oldest first.
    pub(super) fn all(&self, now: SystemTime) -> Vec<ListedSession> {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by_key(|(_, entry)| entry.order);
        entries.into_iter().map(|(id, entry)| entry.listed(id, now)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    const START: SystemTime = UNIX_EPOCH;

    fn at(seconds: u64) -> SystemTime {
        START + Duration::from_secs(1_800_000_000 + seconds)
    }

    fn registration(id: &str) -> Registration {
        let (session_id, desktop_url) = (id.to_owned(), "http://127.0.0.1:8201".to_owned());
        Registration { session_id, desktop_url, ..Registration::default() }
    }

    #[test]
    fn an_entry_grows_stale_and_comes_back_with_a_heartbeat() {
        let mut desktops = DesktopTable::default();
        let id = SessionId::named("d1");
        assert_eq!(desktops.register(&registration("d1"), at(0)).ok(), Some(RegisterOutcome::Created));
        for (seconds, stale) in [(0, false), (29, false), (30, true), (100_000, true)] {
            let listed = desktops.get(&id, at(seconds)).expect("it is there");
            assert_eq!(listed.is_stale, stale, "after {seconds} s");
            assert_eq!(desktops.all(at(seconds)), [listed]);
        }
        assert_eq!(desktops.heartbeat(&id, at(100_000)), Some(true));
        assert_eq!(desktops.heartbeat(&id, at(100_005)), Some(false), "one in a minute is news");
        assert!(!desktops.get(&id, at(100_034)).expect("it is there").is_stale);
        assert!(desktops.get(&id, at(100_035)).expect("it is there").is_stale);
        // A clock that was set back does not age an entry.
        assert!(!desktops.get(&id, at(0)).expect("it is there").is_stale);
        assert_eq!(desktops.heartbeat(&SessionId::named("d2"), at(0)), None);
    }

    #[test]
    fn an_entry_is_forgotten_after_a_week_of_silence() {
        let mut desktops = DesktopTable::default();
        let week = EVICT_AFTER.as_secs();
        for id in ["old", "new"] {
            desktops.register(&registration(id), at(0)).expect("a good entry");
        }
        desktops.heartbeat(&SessionId::named("new"), at(10));
        assert!(desktops.evict_expired(at(week - 1)).is_empty());
        assert!(desktops.get(&SessionId::named("old"), at(week)).is_none());
        assert_eq!(desktops.evict_expired(at(week)), [SessionId::named("old")]);
        assert_eq!(desktops.all(at(week)).len(), 1);
    }

    #[test]
    fn an_update_takes_what_is_given_and_a_bad_one_nothing() {
        let mut desktops = DesktopTable::default();
        let owner = Owner { agent_id: Some("a".to_owned()), label: Some("x".to_owned()), ..Owner::default() };
        let first = Registration { pid: 7, owner, cli_type: Some("claude".to_owned()), ..registration("d") };
        desktops.register(&first, at(0)).expect("a good entry");
        let owner = Owner { label: Some("y".to_owned()), ..Owner::default() };
        let second = Registration { owner, cli_type: Some("codex".to_owned()), ..registration("d") };
        let updated = desktops.register(&second, at(5)).ok();
        assert_eq!(updated, Some(RegisterOutcome::Updated { owner_changed: true }));
        let record = desktops.get(&SessionId::named("d"), at(5)).expect("it is there").record;
        assert_eq!((record.cli_type.as_str(), record.pid), ("claude", 7));
        assert_eq!((record.owner_agent_id.as_deref(), record.label.as_deref()), (Some("a"), Some("y")));
        assert_eq!((record.created_at, record.last_heartbeat), (iso_time(at(0)), iso_time(at(5))));
        let label = Some("z".repeat(300));
        let bad = Registration { pid: 9, owner: Owner { label, ..Owner::default() }, ..registration("d") };
        desktops.register(&bad, at(6)).expect_err("too long a label");
        assert_eq!(desktops.get(&SessionId::named("d"), at(6)).expect("it is there").record.pid, 7);
    }

    #[test]
    fn there_is_a_last_place() {
        let mut desktops = DesktopTable::default();
        for number in 0..MAX_DESKTOP_SESSIONS {
            desktops.register(&registration(&number.to_string()), at(0)).expect("a free place");
        }
        let full = desktops.register(&registration("more"), at(0));
        assert!(matches!(full, Err(Error::LimitReached { limit: MAX_DESKTOP_SESSIONS })));
        desktops.register(&registration("5"), at(1)).expect("a known one has its place");
    }

    #[test]
    fn what_was_written_comes_back() {
        let mut desktops = DesktopTable::default();
        desktops.register(&registration("d"), at(0)).expect("a good entry");
        let written = desktops.all(at(0)).remove(0).record;
        let url = || "http://127.0.0.1:8201".to_owned();
        let mut restored = DesktopTable::default();
        assert!(restored.restore(&written, url(), at(3_600)));
        assert!(!restored.restore(&written, url(), at(3_600)), "it is there");
        assert_eq!(restored.all(at(3_600)), [ListedSession { record: written.clone(), is_stale: true }]);
        for (record, now) in [
            (written.clone(), at(EVICT_AFTER.as_secs())),
            (SessionRecord { session_id: "../d".to_owned(), ..written.clone() }, at(0)),
            (SessionRecord { label: Some("\u{7}".to_owned()), ..written.clone() }, at(0)),
        ] {
            assert!(!DesktopTable::default().restore(&record, url(), now), "{record:?}");
        }
        let mut later = DesktopTable::default();
        assert!(later.restore(&SessionRecord { last_heartbeat: iso_time(at(9_999)), ..written }, url(), at(10)));
        assert_eq!(later.all(at(10))[0].record.last_heartbeat, iso_time(at(10)), "nothing comes from the future");
    }
}
