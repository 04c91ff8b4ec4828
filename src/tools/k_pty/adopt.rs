//! `adopt`: becomes the owner of a session.

use serde::Serialize;

use super::owner::{AGENT_ID, CLAUDE_SESSION, LABEL, OWNER_AGENT_ID, OWNER_ROLE, OWNER_SESSION_ID, owner};
use super::{SESSION_ID, session_id};
use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::model::{Owner, SessionRecord};
use crate::registry::OwnerChange;
use crate::tools::Tools;
use crate::tools::handler::{Content, Handler, Outcome, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Effect, Param};

pub(in crate::tools) static ACTION: Action = Action {
    name: "adopt",
    aliases: &[],
    summary: "Become the owner of a session",
    notes: "From another owner only with force.",
    example: r#"{"action":"adopt","session_id":"pty_0123abcd","owner_agent_id":"worker-1"}"#,
    params: &[
        SESSION_ID,
        OWNER_AGENT_ID.required(),
        AGENT_ID,
        OWNER_SESSION_ID,
        OWNER_ROLE.param,
        LABEL,
        CLAUDE_SESSION,
        FORCE,
    ],
    effect: Effect::Change,
    on_page: false,
    forwarded: false,
    shows_screen: false,
    begin: begin::<Adopt>,
};

pub(super) const FORCE: Param = Param::flag("force", false, "also another owner's");

struct Adopt {
    session: SessionId,
    owner: Owner,
    force: bool,
}

/// The session as it is after a change of its owner.
#[derive(Serialize)]
pub(super) struct OwnerReply {
    pub(super) session: SessionRecord,
}

impl Handler for Adopt {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let session = session_id(params)?;
        let owner = owner(params, &tools.redactor)?;
        if owner.agent_id.is_none() {
            return Err(Error::MissingParam(OWNER_AGENT_ID.name));
        }
        Ok(Self { session, owner, force: params.flag(&FORCE)? })
    }

    async fn run(self, tools: &Tools) -> Outcome {
        let change = OwnerChange::Adopt { owner: self.owner, force: self.force };
        Content::of(&OwnerReply { session: tools.shown(tools.registry.change_owner(&self.session, &change)?) })
    }
}
