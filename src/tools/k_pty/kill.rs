//! `kill`: ends a session and everything in it. What it said stays readable for a while.

use serde::Serialize;

use crate::error::{Error, Result};
use crate::model::Role;
use crate::registry::Registry;
use crate::terminal::local::Session;
use crate::tools::Tools;
use crate::tools::envelope::ExitFields;
use crate::tools::params::Params;

pub(in crate::tools) const PARAMS: &[&str] = &["session_id", "force"];

pub(in crate::tools) struct Request {
    session: Session,
}

#[derive(Serialize)]
pub(in crate::tools) struct Answer {
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

impl Request {
    pub(in crate::tools) fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let session = match tools.session(params) {
            Err(Error::DesktopOnly(id)) => return Err(Error::DesktopKillDisabled(id)),
            other => other?,
        };
        let force = params.flag("force", false)?;
        let is_protected = session.info().owner.role == Some(Role::Leader) && session.exit().is_none();
        match is_protected && !force {
            true => Err(Error::LeaderProtected(session.id().clone())),
            false => Ok(Self { session }),
        }
    }

    pub(in crate::tools) async fn run(self, registry: &Registry) -> Result<Answer> {
        let report = registry.kill(&self.session).await?;
        let id = self.session.id();
        let mut message = match report.was_dead {
            true => format!("Session {id} had ended already"),
            false => format!("Session {id} terminated"),
        };
        if !report.strayed.is_empty() {
            message.push_str(". Processes that it had started in sessions of their own live on");
        }
        Ok(Answer {
            message,
            exit: report.exit.into(),
            was_dead: report.was_dead,
            others: report.others,
            survivors_elsewhere: report.strayed,
        })
    }
}
