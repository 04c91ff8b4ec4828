//! How owners change. Owners are claims: what is refused here is refused to keep accidents away, not intruders.

use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::model::Owner;

/// A change of a session's owner.
#[derive(Clone, Debug)]
pub enum OwnerChange {
    /// What is given replaces what is there; the rest stays.
    Update(Owner),
    /// A new owner. Over another one only with force.
    Adopt {
        /// Who it is.
        owner: Owner,
        /// Also when it belongs to somebody else.
        force: bool,
    },
    /// No owner any more.
    Disown {
        /// Who lets go of it. Only that owner's session is let go, where one is named.
        by: Option<String>,
        /// Also when it belongs to somebody else.
        force: bool,
    },
    /// No owner any more, whoever it was.
    Clear,
}

impl OwnerChange {
    /// Changes the owner. Returns whether anything is different now; after an error nothing is.
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

/// The session without its owner. The label is the session's name; it stays.
fn unowned(current: &mut Owner) -> Owner {
    Owner { label: current.label.take(), ..Owner::default() }
}

/// True when the session has an owner, and it is not the new one.
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
    fn a_session_is_adopted_from_nobody_or_with_force() {
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
    fn an_owner_lets_go_of_its_own() {
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
