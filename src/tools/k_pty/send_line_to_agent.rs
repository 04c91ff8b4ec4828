//! `send_line_to_agent`: `send_line` to the one session that an agent owns. Never to several.

use serde_json::{Map, Value, json};

use super::owner::{KEYS, query};
use super::resolve::find;
use super::send_line::{DATA, ESCAPES, Line};
use super::typing::ENTER_DELAY;
use crate::error::Result;
use crate::ids::SessionId;
use crate::model::SessionQuery;
use crate::tools::Tools;
use crate::tools::envelope::{Failure, reply, shown_record};
use crate::tools::handler::{Content, Handler, Outcome, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Effect};

pub(in crate::tools) static ACTION: Action = Action {
    name: "send_line_to_agent",
    aliases: &[],
    summary: "Type a line into the one session that resolve finds",
    notes: "Never into several.",
    example: r#"{"action":"send_line_to_agent","agent_id":"worker-1","data":"make test"}"#,
    params: &[DATA, ESCAPES, ENTER_DELAY, KEYS[0], KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]],
    effect: Effect::Type,
    on_page: false,
    forwarded: false,
    shows_screen: false,
    begin: begin::<SendLineToAgent>,
};

struct SendLineToAgent {
    line: Line,
    query: SessionQuery,
}

impl Handler for SendLineToAgent {
    type Context = Tools;

    /// A refused line is reported before an unknown session.
    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let line = Line::read(params, tools)?;
        Ok(Self { line, query: query(params, &tools.config.project_root, &tools.redactor)? })
    }

    async fn run(self, tools: &Tools) -> Outcome {
        let Self { line, query } = self;
        let record = find(&tools.registry, query).await?;
        let id = SessionId::named(&record.session_id);
        let redactor = tools.redactor_of(tools.locate(&id).ok().as_ref());
        let record = shown_record(record, &redactor);
        let resolved = Map::from_iter([
            ("resolved_session_id".to_owned(), json!(record.session_id)),
            ("resolved_session".to_owned(), json!(record)),
        ]);
        let sent = match tools.locate(&id) {
            Ok(located) => line.type_into(&*tools.target_of(located), tools).await,
            Err(error) => Err(Failure::from(error)),
        };
        match sent {
            Err(failure) => Err(failure.nested("send_result", resolved, &redactor)),
            Ok(sent) => {
                let mut answer = resolved;
                answer.insert("send_result".to_owned(), Value::Object(reply(Ok(sent.into_fields()), || redactor).body));
                Ok(Content::Fields(answer))
            }
        }
    }
}
