//! `kill`: ends a session and everything in it. Its output stays readable for a while.

use serde::Serialize;

use super::SESSION_ID;
use crate::error::{Error, Result};
use crate::model::Role;
use crate::terminal::local::Session;
use crate::tools::Tools;
use crate::tools::envelope::ExitFields;
use crate::tools::handler::{Content, Handler, Outcome, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Effect, Param};

pub(in crate::tools) static ACTION: Action = Action {
    name: "kill",
    aliases: &[],
    summary: "End a session and all in it",
    notes: "A leader's session only with force.",
    example: r#"{"action":"kill","session_id":"pty_0123abcd"}"#,
    params: &[SESSION_ID, FORCE],
    effect: Effect::Change,
    on_page: true,
    forwarded: false,
    shows_screen: false,
    begin: begin::<Kill>,
};

const FORCE: Param = Param::flag("force", false, "also a leader's session");

struct Kill {
    session: Session,
}

#[derive(Serialize)]
struct KillReply {
    message: String,
    #[serde(flatten)]
    exit: ExitFields,
    was_dead: bool,
    /// Processes that were ended besides the session's own program.
    others: usize,
    /// Processes that left the session before, and live on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    survivors_elsewhere: Vec<u32>,
}

impl Handler for Kill {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let session = match tools.session(params) {
            Err(Error::DesktopOnly(id)) => return Err(Error::DesktopKillDisabled(id)),
            other => other?,
        };
        let force = params.flag(&FORCE)?;
        let is_protected = session.with_owner(|owner| owner.role) == Some(Role::Leader) && session.exit().is_none();
        match is_protected && !force {
            true => Err(Error::LeaderProtected(session.id().clone())),
            false => Ok(Self { session }),
        }
    }

    async fn run(self, tools: &Tools) -> Outcome {
        let report = tools.registry.kill(&self.session).await?;
        let id = self.session.id();
        let mut message = match report.was_dead {
            true => format!("Session {id} had ended already"),
            false => format!("Session {id} terminated"),
        };
        if !report.strayed.is_empty() {
            message.push_str(". Processes that it had started in sessions of their own live on");
        }
        Content::of(&KillReply {
            message,
            exit: report.exit.into(),
            was_dead: report.was_dead,
            others: report.others,
            survivors_elsewhere: report.strayed,
        })
    }
}
