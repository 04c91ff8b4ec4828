//! Ownership changes. Ownership is a claim without proof: the rules prevent accidents, not attacks.

use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::model::Owner;

/// A change of a session's owner.
#[derive(Clone, Debug)]
pub enum OwnerChange {
    /// Replaces the given fields and keeps the rest.
    Update(Owner),
    /// Sets a new owner. Replacing another owner requires `force`.
    Adopt {
        /// The new owner.
        owner: Owner,
        /// Replaces another owner.
        force: bool,
    },
    /// Removes the owner.
    Disown {
        /// Agent that gives the session up; when set, it must be the current owner.
        by: Option<String>,
        /// Removes another owner.
        force: bool,
    },
    /// Removes the owner unconditionally.
    Clear,
}

impl OwnerChange {
    /// Applies the change. Returns whether anything changed; an error leaves the owner unchanged.
    pub(super) fn apply(&self, session: &SessionId, current: &mut Owner) -> Result<bool> {
        let before = current.clone();
        match self {
            Self::Update(given) => current.update(given),
            Self::Adopt { owner, force } => {
                let has_other = is_another(current, owner);
                if has_other && !force {
                    return Err(already_owned(session, current));
                }
                if has_other {
                    *current = unowned(current);
                }
                current.update(owner);
            }
            Self::Disown { by, force } => {
                let is_theirs = by.is_none() || current.agent_id.is_none() || by == &current.agent_id;
                if !is_theirs && !force {
                    return Err(already_owned(session, current));
                }
                *current = unowned(current);
            }
            Self::Clear => *current = unowned(current),
        }
        Ok(*current != before)
    }
}

/// Returns the owner fields without an owner. The label names the session and stays.
fn unowned(current: &mut Owner) -> Owner {
    Owner { label: current.label.take(), ..Owner::default() }
}

/// Returns whether the session has an owner other than `new`.
fn is_another(current: &Owner, new: &Owner) -> bool {
    match (&current.agent_id, &current.session_id) {
        (Some(agent), _) => new.agent_id.as_ref() != Some(agent),
        (None, Some(session)) => new.session_id.as_ref() != Some(session),
        (None, None) => false,
    }
}

fn already_owned(session: &SessionId, owner: &Owner) -> Error {
    let owner = owner.agent_id.as_ref().or(owner.session_id.as_ref());
    Error::AlreadyOwned { session: session.clone(), owner: owner.cloned().unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Role;

    fn owner(agent: &str, session: &str, label: &str) -> Owner {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Owner { agent_id: some(agent), session_id: some(session), label: some(label), ..Owner::default() }
    }

    #[test]
    fn a_session_is_adopted_without_owner_or_with_force() {
        let id = SessionId::named("s");
        for (current, new, force, expected) in [
            (owner("", "", ""), owner("a", "", ""), false, Some(owner("a", "", ""))),
            (owner("", "", "x"), owner("a", "", ""), false, Some(owner("a", "", "x"))),
            (owner("a", "1", "x"), owner("a", "2", ""), false, Some(owner("a", "2", "x"))),
            (owner("a", "1", "x"), owner("b", "", ""), false, None),
            (owner("a", "1", "x"), owner("b", "", ""), true, Some(owner("b", "", "x"))),
            (owner("a", "1", "x"), owner("b", "3", "y"), true, Some(owner("b", "3", "y"))),
            (owner("", "1", ""), owner("a", "1", ""), false, Some(owner("a", "1", ""))),
            (owner("", "1", ""), owner("a", "2", ""), false, None),
        ] {
            let mut now = current.clone();
            let changed = OwnerChange::Adopt { owner: new, force }.apply(&id, &mut now);
            assert_eq!(changed.is_ok(), expected.is_some(), "{current:?}");
            assert_eq!(now, expected.unwrap_or(current));
        }
    }

    #[test]
    fn an_owner_disowns_its_own_session() {
        let id = SessionId::named("s");
        for (by, force, expected) in
            [(None, false, true), (Some("a"), false, true), (Some("b"), false, false), (Some("b"), true, true)]
        {
            let mut now = Owner { role: Some(Role::Leader), ..owner("a", "1", "x") };
            let changed = OwnerChange::Disown { by: by.map(str::to_owned), force }.apply(&id, &mut now);
            assert_eq!(changed.is_ok(), expected, "{by:?} {force}");
            assert_eq!(now == owner("", "", "x"), expected);
        }
    }
}
