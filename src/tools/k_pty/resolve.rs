//! `resolve`: from an owner, a label, a folder or a command to exactly one session.

use serde::Serialize;

use super::owner::query;
use crate::error::{Error, Result};
use crate::model::{SessionQuery, SessionRecord};
use crate::registry::Registry;
use crate::tools::Tools;
use crate::tools::params::Params;

pub(in crate::tools) const PARAMS: &[&str] =
    &["agent_id", "owner_agent_id", "owner_session_id", "label", "claude_code_session_id", "cwd", "last_command"];

pub(in crate::tools) struct Request {
    query: SessionQuery,
}

#[derive(Serialize)]
pub(in crate::tools) struct Answer {
    session_id: String,
    session: SessionRecord,
}

impl Request {
    pub(in crate::tools) fn read(params: &Params<'_>, tools: &Tools) -> Result<Self> {
        Ok(Self { query: query(params, &tools.config.project_root, &tools.redactor)? })
    }

    pub(in crate::tools) async fn run(self, registry: &Registry) -> Result<Answer> {
        let session = find(registry, self.query).await?;
        Ok(Answer { session_id: session.session_id.clone(), session })
    }
}

/// The one session that is meant. Folders are looked at, so not on a thread that others wait for.
pub(in crate::tools) async fn find(registry: &Registry, query: SessionQuery) -> Result<SessionRecord> {
    let registry = registry.clone();
    let found = tokio::task::spawn_blocking(move || registry.resolve(&query)).await;
    found.map_err(|error| Error::NotAvailable(error.to_string()))?
}
