//! `send_line_to_agent`: `send_line` to the one session that an agent owns. Never to several.

use serde_json::{Map, Value, json};

use super::owner::query;
use super::resolve::find;
use super::send_line::Line;
use crate::error::Result;
use crate::ids::SessionId;
use crate::model::SessionQuery;
use crate::tools::Tools;
use crate::tools::envelope::{Failure, Outcome, reply};
use crate::tools::params::Params;

pub(in crate::tools) const PARAMS: &[&str] = &[
    "data",
    "escapes",
    "enter_delay_ms",
    "agent_id",
    "owner_agent_id",
    "owner_session_id",
    "label",
    "claude_code_session_id",
    "cwd",
    "last_command",
];

pub(in crate::tools) struct Request {
    line: Line,
    query: SessionQuery,
}

impl Request {
    /// The text is looked at before anybody is looked for.
    pub(in crate::tools) fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let line = Line::read(params, tools)?;
        Ok(Self { line, query: query(params, &tools.config.project_root, &tools.redactor)? })
    }

    pub(in crate::tools) async fn run(self, tools: &Tools) -> Outcome {
        let Self { line, query } = self;
        let record = find(&tools.registry, query).await?;
        let id = SessionId::named(&record.session_id);
        let resolved = Map::from_iter([
            ("resolved_session_id".to_owned(), json!(record.session_id)),
            ("resolved_session".to_owned(), json!(record)),
        ]);
        let sent = match tools.target_named(&id) {
            Ok(session) => line.type_into(&*session, tools).await,
            Err(error) => Err(Failure::from(error)),
        };
        match sent {
            Err(failure) => Err(failure.nested("send_result", resolved)),
            Ok(sent) => {
                let mut answer = resolved;
                answer.insert("send_result".to_owned(), Value::Object(reply(Ok(sent)).body));
                Ok(answer)
            }
        }
    }
}
