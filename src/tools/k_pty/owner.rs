//! Owners in parameters: whose a session is to be, and by what it is looked for.

use std::path::Path;

use crate::error::{Error, Result};
use crate::model::{Owner, Role, SessionQuery};
use crate::registry::check_owner;
use crate::tools::params::Params;
use kpty_guard::Redactor;

const ROLES: [(&str, Role); 2] = [("leader", Role::Leader), ("worker", Role::Worker)];
/// What is said when nothing is given to look for.
const ANY_KEY: &str = "one of agent_id, owner_session_id, label, claude_code_session_id, cwd or last_command";

/// The owner that is given. A label is shown and kept everywhere, so it is masked before anybody sees it.
pub(in crate::tools) fn owner(params: &Params<'_>, redactor: &Redactor) -> Result<Owner> {
    let text = |name| params.text(name).map(|text| text.map(str::to_owned));
    let owner = Owner {
        agent_id: agent_id(params)?,
        session_id: text("owner_session_id")?,
        role: params.choice("owner_role", &ROLES)?,
        label: label(params, redactor)?,
        claude_code_session_id: text("claude_code_session_id")?,
    };
    check_owner(&owner)?;
    Ok(owner)
}

/// The agent that is named, by either name of the parameter.
pub(in crate::tools) fn agent_id(params: &Params<'_>) -> Result<Option<String>> {
    let given = params.text("owner_agent_id")?.or(params.text("agent_id")?);
    Ok(given.map(str::to_owned))
}

fn label(params: &Params<'_>, redactor: &Redactor) -> Result<Option<String>> {
    Ok(params.text("label")?.map(|label| redactor.redact(label).into_owned()))
}

/// What is looked for; a path is relative to `root`.
pub(in crate::tools) fn query(params: &Params<'_>, root: &Path, redactor: &Redactor) -> Result<SessionQuery> {
    let text = |name| params.text(name).map(|text| text.map(str::to_owned));
    let cwd = params.text("cwd")?.map(|cwd| root.join(cwd).to_string_lossy().into_owned());
    let query = SessionQuery {
        agent_id: agent_id(params)?,
        owner_session_id: text("owner_session_id")?,
        label: label(params, redactor)?,
        claude_code_session_id: text("claude_code_session_id")?,
        cwd,
        last_command: text("last_command")?,
    };
    if query == SessionQuery::default() { Err(Error::MissingParam(ANY_KEY)) } else { Ok(query) }
}
