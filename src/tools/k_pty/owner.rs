//! Owners in parameters: who a session is to belong to, and by which of its keys it is found.

use std::path::Path;

use crate::error::{Error, Result};
use crate::model::{Owner, Role, SessionQuery};
use crate::registry::check_owner;
use crate::tools::params::Params;
use crate::tools::spec::{Choice, Param};
use kpty_guard::Redactor;

const ROLES: [(&str, Role); 2] = [("leader", Role::Leader), ("worker", Role::Worker)];

// Parameters of an owner.
pub(super) const OWNER_AGENT_ID: Param = Param::text("owner_agent_id", "the agent that owns the session");
pub(super) const AGENT_ID: Param = Param::text("agent_id", "the same as owner_agent_id");
pub(super) const OWNER_SESSION_ID: Param = Param::text("owner_session_id", "the owner's own session");
pub(super) const OWNER_ROLE: Choice<Role> = Param::text("owner_role", "").one_of(&ROLES);
pub(super) const LABEL: Param = Param::text("label", "a name for people");
pub(super) const CLAUDE_SESSION: Param =
    Param::text("claude_code_session_id", "the Claude Code session that runs there");

/// The keys by which a session is found.
pub(super) const KEYS: [Param; 7] = [
    Param::text(AGENT_ID.name, "whose session"),
    Param::text(OWNER_AGENT_ID.name, "the same as agent_id"),
    Param::text(OWNER_SESSION_ID.name, "whose session"),
    Param::text(LABEL.name, "whose session"),
    Param::text(CLAUDE_SESSION.name, "which"),
    Param::text("cwd", "directory that the shell is in"),
    Param::text("last_command", "part of the command that was run last"),
];
const CWD: Param = KEYS[5];
const LAST_COMMAND: Param = KEYS[6];
/// Said where none of the keys is given.
const ANY_KEY: &str = "one of agent_id, owner_session_id, label, claude_code_session_id, cwd or last_command";

/// The owner that is given. A label is shown and kept everywhere, so it is masked before anybody sees it.
pub(super) fn owner(params: &Params<'_>, redactor: &Redactor) -> Result<Owner> {
    let text = |param| params.text(param).map(|text| text.map(str::to_owned));
    let owner = Owner {
        agent_id: agent_id(params)?,
        session_id: text(&OWNER_SESSION_ID)?,
        role: params.choice(&OWNER_ROLE)?,
        label: label(params, redactor)?,
        claude_code_session_id: text(&CLAUDE_SESSION)?,
    };
    check_owner(&owner)?;
    Ok(owner)
}

/// The agent that is named, by either name of the parameter.
pub(super) fn agent_id(params: &Params<'_>) -> Result<Option<String>> {
    let given = params.text(&OWNER_AGENT_ID)?.or(params.text(&AGENT_ID)?);
    Ok(given.map(str::to_owned))
}

fn label(params: &Params<'_>, redactor: &Redactor) -> Result<Option<String>> {
    Ok(params.text(&LABEL)?.map(|label| redactor.redact(label).into_owned()))
}

/// The keys that are given; a path is relative to `root`.
pub(super) fn query(params: &Params<'_>, root: &Path, redactor: &Redactor) -> Result<SessionQuery> {
    let text = |param| params.text(param).map(|text| text.map(str::to_owned));
    let cwd = params.text(&CWD)?.map(|cwd| root.join(cwd).to_string_lossy().into_owned());
    let query = SessionQuery {
        agent_id: agent_id(params)?,
        owner_session_id: text(&OWNER_SESSION_ID)?,
        label: label(params, redactor)?,
        claude_code_session_id: text(&CLAUDE_SESSION)?,
        cwd,
        last_command: text(&LAST_COMMAND)?,
    };
    if query == SessionQuery::default() { Err(Error::MissingParam(ANY_KEY)) } else { Ok(query) }
}
