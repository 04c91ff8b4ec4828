//! The session that a call means: by its id, the beginning of its id, or its label; without any, the caller's own shell.

use serde_json::{Value, json};

use super::actions::{Actions, Called, Fields, text};
use super::callers::CallerName;
use crate::error::Error;
use crate::ids::SessionId;
use crate::registry::Located;
use crate::terminal::Terminal;
use crate::tools::Tools;

/// The least of an id that names a session.
const LEAST_PREFIX: usize = 4;
/// How every id begins.
const ID_PREFIX: &str = "pty_";

/// The session of a call.
pub(super) struct Chosen {
    pub(super) id: SessionId,
    pub(super) located: Located,
    /// It was started by this call.
    pub(super) is_new: bool,
}

impl Chosen {
    /// Its terminal.
    pub(super) fn terminal(&self, tools: &Tools) -> std::sync::Arc<dyn Terminal> {
        tools.target_of(self.located.clone())
    }
}

/// Whether a caller without a shell gets one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// It does.
    Start,
    /// It does not: the call only looks.
    Refuse,
}

/// The session that is named, or the caller's own shell.
pub(super) async fn choose(actions: &Actions, given: Option<&str>, missing: Missing) -> Called<Chosen> {
    let tools = &actions.tools;
    if let Some(given) = given {
        let id = find(tools, given)?;
        return Ok(Chosen { located: tools.locate(&id)?, id, is_new: false });
    }
    let name = CallerName::of(&actions.caller, tools);
    if let Some(own) = living(tools, &name) {
        return Ok(own);
    }
    if missing == Missing::Refuse {
        return Err(Error::invalid(
            "session",
            "you have no shell yet: term_run starts one, term_sessions lists others",
        )
        .into());
    }
    let _starting = tools.callers.starting.lock().await;
    // Another call of this caller may have started it meanwhile.
    if let Some(own) = living(tools, &name) {
        return Ok(own);
    }
    let id = start(actions, Fields::new()).await?;
    tools.callers.set_shell(&name, id.clone());
    Ok(Chosen { located: tools.locate(&id)?, id, is_new: true })
}

/// Starts a session for the caller. What its programs ask for and do not show is left to people unless told otherwise.
pub(super) async fn start(actions: &Actions, mut arguments: Fields) -> Called<SessionId> {
    arguments.insert("action".to_owned(), json!("create"));
    arguments.entry("secrets").or_insert_with(|| json!("person"));
    arguments.extend(actions.caller.agent.as_ref().map(|agent| ("owner_agent_id".to_owned(), json!(agent))));
    let created = actions.call(Value::Object(arguments)).await?;
    let id = SessionId::named(text(&created, "session_id"));
    let cwd = text(&created, "cwd").to_owned();
    let name = CallerName::of(&actions.caller, &actions.tools);
    actions.tools.callers.update(&name, &id, |seen| seen.cwd = Some(cwd));
    Ok(id)
}

/// The caller's own shell, while its program runs.
fn living(tools: &Tools, name: &CallerName) -> Option<Chosen> {
    let id = tools.callers.shell(name)?;
    let located = tools.locate(&id).ok()?;
    let is_alive = match &located {
        Located::Local(session) => session.exit().is_none(),
        Located::Desktop(_) => true,
    };
    is_alive.then_some(Chosen { id, located, is_new: false })
}

/// The id of the one session that has this id, begins so, or has this label.
pub(super) fn find(tools: &Tools, given: &str) -> crate::error::Result<SessionId> {
    let given = given.trim();
    let exact = SessionId::named(given);
    if tools.registry().locate(&exact).is_ok() {
        return Ok(exact);
    }
    let local = tools.registry().list().into_iter().map(|session| {
        let label = session.with_owner(|owner| owner.label.clone());
        (session.id().clone(), label, session.exit().is_none())
    });
    let desktop = tools.registry().desktop_sessions().into_iter().map(|listed| {
        let record = listed.record;
        (SessionId::named(&record.session_id), record.label, true)
    });
    let all: Vec<_> = local.chain(desktop).collect();
    let starts = |id: &SessionId| {
        let (id, given) = (id.as_str(), given.strip_prefix(ID_PREFIX).unwrap_or(given));
        given.len() >= LEAST_PREFIX && id.strip_prefix(ID_PREFIX).unwrap_or(id).starts_with(given)
    };
    let labelled: Vec<_> = all.iter().filter(|(_, label, _)| label.as_deref() == Some(given)).collect();
    // A label may have been used before, in a session that has ended.
    let living: Vec<_> = labelled.iter().copied().filter(|(_, _, is_alive)| *is_alive).collect();
    let by_id: Vec<_> = all.iter().filter(|(id, ..)| starts(id)).collect();
    for found in [living, labelled, by_id] {
        match found.as_slice() {
            [] => {}
            [(id, ..)] => return Ok(id.clone()),
            several => {
                let ids: Vec<_> = several.iter().map(|(id, ..)| id.as_str()).take(5).collect();
                return Err(Error::invalid("session", format!("{given:?} may be any of {}", ids.join(", "))));
            }
        }
    }
    Err(Error::SessionNotFound(exact))
}
