//! `resolve`: from an owner, a label, a folder or a command to exactly one session.

use serde::Serialize;

use super::Tools;
use super::owner::query;
use super::params::Params;
use crate::error::{Error, Result};
use crate::model::{SessionQuery, SessionRecord};
use crate::registry::Registry;

pub(super) const PARAMS: &[&str] =
    &["agent_id", "owner_agent_id", "owner_session_id", "label", "claude_code_session_id", "cwd", "last_command"];

pub(super) struct Request {
    query: SessionQuery,
}

#[derive(Serialize)]
pub(super) struct Answer {
    session_id: String,
    session: SessionRecord,
}

impl Request {
    pub(super) fn read(params: &Params<'_>, tools: &Tools) -> Result<Self> {
        Ok(Self { query: query(params, &tools.config.project_root, &tools.redactor)? })
    }

    pub(super) async fn run(self, registry: &Registry) -> Result<Answer> {
        let session = find(registry, self.query).await?;
        Ok(Answer { session_id: session.session_id.clone(), session })
    }
}

/// The one session that is meant. Folders are looked at, so not on a thread that others wait for.
pub(super) async fn find(registry: &Registry, query: SessionQuery) -> Result<SessionRecord> {
    let registry = registry.clone();
    let found = tokio::task::spawn_blocking(move || registry.resolve(&query)).await;
    found.map_err(|error| Error::NotAvailable(error.to_string()))?
}
