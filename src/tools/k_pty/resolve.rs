//! `resolve`: from an owner, a label, a folder or a command to exactly one session.

use serde::Serialize;

use super::owner::{KEYS, query};
use crate::error::{Error, Result};
use crate::model::{SessionQuery, SessionRecord};
use crate::registry::Registry;
use crate::tools::Tools;
use crate::tools::handler::{Content, Handler, Outcome, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Effect};

pub(in crate::tools) static ACTION: Action = Action {
    name: "resolve",
    aliases: &[],
    summary: "Find your session again, by any of its keys",
    notes: "One live session, or NOT_FOUND, or AMBIGUOUS with matches.",
    example: r#"{"action":"resolve","agent_id":"worker-1"}"#,
    params: &KEYS,
    effect: Effect::Read,
    on_page: false,
    forwarded: false,
    shows_screen: false,
    begin: begin::<Resolve>,
};

struct Resolve {
    query: SessionQuery,
}

#[derive(Serialize)]
struct ResolveReply {
    session_id: String,
    session: SessionRecord,
}

impl Handler for Resolve {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        Ok(Self { query: query(params, &tools.config.project_root, &tools.redactor)? })
    }

    async fn run(self, tools: &Tools) -> Outcome {
        let session = find(&tools.registry, self.query).await?;
        let session = tools.shown(session);
        Content::of(&ResolveReply { session_id: session.session_id.clone(), session })
    }
}

/// The one session that matches. Reads the folders of processes, which blocks its thread.
pub(super) async fn find(registry: &Registry, query: SessionQuery) -> Result<SessionRecord> {
    let registry = registry.clone();
    let found = tokio::task::spawn_blocking(move || registry.resolve(&query)).await;
    found.map_err(|error| Error::NotAvailable(error.to_string()))?
}
