//! What is remembered of each caller: its own shell, and what it has seen of each session.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kpty_emulator::MarkerId;

use crate::ids::SessionId;
use crate::tools::{Caller, Tools};

/// Callers that are remembered; the one that has not called for longest is forgotten first.
const MAX_CALLERS: usize = 256;
/// Sessions of which it is remembered what a caller has seen.
const MAX_SEEN: usize = 64;

/// Who calls: an agent, a client with its session, or nobody in particular.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CallerName(String);

impl CallerName {
    pub(super) fn of(caller: &Caller, tools: &Tools) -> Self {
        let own = tools.config().identity.agent_id.as_deref();
        Self(caller.identity(&serde_json::Map::new(), own).unwrap_or_default())
    }
}

/// What a caller has seen of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Everything up to here.
    pub(super) marker: Option<MarkerId>,
    /// The directory that it was told last.
    pub(super) cwd: Option<String>,
}

/// What is remembered of one caller.
#[derive(Debug, Default)]
struct Known {
    shell: Option<SessionId>,
    /// Sessions, the one that was looked at last at the end.
    seen: Vec<(SessionId, Seen)>,
    /// Larger is later.
    called: u64,
}

/// All callers.
#[derive(Debug, Default)]
pub(in crate::tools) struct Callers {
    known: Mutex<Table>,
    /// Held while the own shell of a caller is started, so that two calls do not start two.
    pub(super) starting: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Table {
    callers: HashMap<CallerName, Known>,
    calls: u64,
}

impl Callers {
    /// The own shell of a caller, if it has one.
    pub(super) fn shell(&self, name: &CallerName) -> Option<SessionId> {
        self.with(name, |known| known.shell.clone())
    }

    /// Gives a caller a shell of its own.
    pub(super) fn set_shell(&self, name: &CallerName, shell: SessionId) {
        self.with(name, |known| known.shell = Some(shell));
    }

    /// What a caller has seen of a session.
    pub(super) fn seen(&self, name: &CallerName, session: &SessionId) -> Seen {
        let find = |known: &mut Known| known.seen.iter().find(|(id, _)| id == session).map(|(_, seen)| seen.clone());
        self.with(name, find).unwrap_or_default()
    }

    /// Changes what a caller has seen of a session.
    pub(super) fn update(&self, name: &CallerName, session: &SessionId, change: impl FnOnce(&mut Seen)) {
        self.with(name, |known| {
            let at = known.seen.iter().position(|(id, _)| id == session);
            let (id, mut seen) = at.map_or_else(|| (session.clone(), Seen::default()), |at| known.seen.remove(at));
            change(&mut seen);
            known.seen.push((id, seen));
            if known.seen.len() > MAX_SEEN {
                known.seen.remove(0);
            }
        });
    }

    fn with<T>(&self, name: &CallerName, work: impl FnOnce(&mut Known) -> T) -> T {
        let mut table: MutexGuard<'_, Table> = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        table.calls += 1;
        let calls = table.calls;
        if !table.callers.contains_key(name) && table.callers.len() >= MAX_CALLERS {
            let oldest = table.callers.iter().min_by_key(|(_, known)| known.called).map(|(name, _)| name.clone());
            oldest.map(|oldest| table.callers.remove(&oldest));
        }
        let known = table.callers.entry(name.clone()).or_default();
        known.called = calls;
        work(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded() {
        let callers = Callers::default();
        let name = |number: usize| CallerName(number.to_string());
        let session = |number: usize| SessionId::named(&format!("pty_{number}"));
        for number in 0..=MAX_CALLERS {
            callers.set_shell(&name(number), session(number));
        }
        assert_eq!(callers.shell(&name(0)), None);
        assert_eq!(callers.shell(&name(MAX_CALLERS)), Some(session(MAX_CALLERS)));
        for number in 0..=MAX_SEEN {
            callers.update(&name(1), &session(number), |seen| seen.cwd = Some(number.to_string()));
        }
        assert_eq!(callers.seen(&name(1), &session(0)), Seen::default());
        assert_eq!(callers.seen(&name(1), &session(1)).cwd.as_deref(), Some("1"));
    }
}
