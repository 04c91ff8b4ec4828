//! `disown`: leaves a session without an owner.

use super::adopt::{FORCE, OwnerReply};
use super::owner::{AGENT_ID, OWNER_AGENT_ID, agent_id};
use super::{SESSION_ID, session_id};
use crate::error::Result;
use crate::ids::SessionId;
use crate::registry::OwnerChange;
use crate::tools::Tools;
use crate::tools::handler::{Content, Handler, Outcome, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Effect};

pub(in crate::tools) static ACTION: Action = Action {
    name: "disown",
    aliases: &[],
    summary: "Leave a session without an owner",
    notes: "Refused if it is another's, unless force.",
    example: r#"{"action":"disown","session_id":"pty_0123abcd","owner_agent_id":"worker-1"}"#,
    params: &[SESSION_ID, OWNER_AGENT_ID, AGENT_ID, FORCE],
    effect: Effect::Change,
    on_page: false,
    forwarded: false,
    shows_screen: false,
    begin: begin::<Disown>,
};

struct Disown {
    session: SessionId,
    by: Option<String>,
    force: bool,
}

impl Handler for Disown {
    type Context = Tools;

    fn read(params: &mut Params<'_>, _: &Tools) -> Result<Self> {
        Ok(Self { session: session_id(params)?, by: agent_id(params)?, force: params.flag(&FORCE)? })
    }

    async fn run(self, tools: &Tools) -> Outcome {
        let change = OwnerChange::Disown { by: self.by, force: self.force };
        Content::of(&OwnerReply { session: tools.shown(tools.registry.change_owner(&self.session, &change)?) })
    }
}
