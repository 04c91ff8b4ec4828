//! `adopt` and `disown`: whose a session is.

use serde::Serialize;

use super::owner::{agent_id, owner};
use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::model::SessionRecord;
use crate::registry::{OwnerChange, Registry};
use crate::tools::params::Params;
use crate::tools::session_id;
use kpty_guard::Redactor;

pub(in crate::tools) const ADOPT_PARAMS: &[&str] = &[
    "session_id",
    "owner_agent_id",
    "agent_id",
    "owner_session_id",
    "owner_role",
    "label",
    "claude_code_session_id",
    "force",
];
pub(in crate::tools) const DISOWN_PARAMS: &[&str] = &["session_id", "owner_agent_id", "agent_id", "force"];

pub(in crate::tools) struct Request {
    session: SessionId,
    change: OwnerChange,
}

#[derive(Serialize)]
pub(in crate::tools) struct Answer {
    session: SessionRecord,
}

impl Request {
    pub(in crate::tools) fn adopt(params: &Params<'_>, redactor: &Redactor) -> Result<Self> {
        let session = session_id(params)?;
        let owner = owner(params, redactor)?;
        if owner.agent_id.is_none() {
            return Err(Error::MissingParam("owner_agent_id"));
        }
        Ok(Self { session, change: OwnerChange::Adopt { owner, force: params.flag("force", false)? } })
    }

    pub(in crate::tools) fn disown(params: &Params<'_>) -> Result<Self> {
        let session = session_id(params)?;
        Ok(Self { session, change: OwnerChange::Disown { by: agent_id(params)?, force: params.flag("force", false)? } })
    }

    pub(in crate::tools) fn run(self, registry: &Registry) -> Result<Answer> {
        Ok(Answer { session: registry.change_owner(&self.session, &self.change)? })
    }
}
