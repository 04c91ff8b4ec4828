//! `list`: all sessions, the dead ones of the last minutes and those of desktop apps too.

use std::collections::HashSet;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::model::{Role, SessionRecord, iso_time};
use crate::registry::Registry;
use crate::terminal::local::Session;
use crate::tools::Tools;
use crate::tools::envelope::ExitFields;

#[derive(Serialize)]
pub(in crate::tools) struct Answer {
    sessions: Vec<Entry>,
    count: usize,
    by_source: BySource,
}

#[derive(Serialize)]
struct BySource {
    local: usize,
    desktop: usize,
}

/// A session of either source.
#[derive(Serialize)]
#[serde(untagged)]
enum Entry {
    Local(Box<Listed>),
    Desktop(Box<Desktop>),
}

#[derive(Serialize)]
struct Desktop {
    #[serde(flatten)]
    record: SessionRecord,
    is_leader: bool,
    /// Its desktop has not been heard of for a while.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stale: bool,
}

#[derive(Serialize)]
struct Listed {
    session_id: String,
    shell: String,
    cwd: String,
    cols: u16,
    rows: u16,
    created_at: String,
    last_activity: String,
    is_alive: bool,
    buffer_size: usize,
    source: &'static str,
    cli_type: String,
    pid: u32,
    owner_agent_id: Option<String>,
    owner_session_id: Option<String>,
    owner_role: Option<&'static str>,
    label: Option<String>,
    claude_code_session_id: Option<String>,
    /// Its owner leads.
    is_leader: bool,
    #[serde(flatten)]
    exit: ExitFields,
    /// The program that has the terminal.
    foreground: Option<String>,
    running_command: Option<String>,
    command_id: Option<String>,
}

/// Looks at every session; the process table is read for each, so not on a thread that others wait for.
pub(in crate::tools) async fn list(tools: &Tools) -> Result<Answer> {
    let registry = &tools.registry;
    let table = registry.clone();
    let leading = tools.leading().await;
    let leaders = leading.clone();
    let look = move || table.list().iter().map(|session| listed(&table, session, &leaders)).collect::<Vec<_>>();
    let local = tokio::task::spawn_blocking(look).await.map_err(|error| Error::NotAvailable(error.to_string()))?;
    let desktop = registry.desktop_sessions();
    let by_source = BySource { local: local.len(), desktop: desktop.len() };
    let mut sessions: Vec<_> = local.into_iter().map(|listed| Entry::Local(Box::new(listed))).collect();
    for found in desktop {
        let is_leader = leads(&leading, found.record.owner_agent_id.as_ref());
        sessions.push(Entry::Desktop(Box::new(Desktop { record: found.record, is_leader, stale: found.is_stale })));
    }
    Ok(Answer { count: sessions.len(), sessions, by_source })
}

fn leads(leading: &HashSet<String>, agent_id: Option<&String>) -> bool {
    agent_id.is_some_and(|agent_id| leading.contains(agent_id))
}

fn listed(registry: &Registry, session: &Session, leading: &HashSet<String>) -> Listed {
    let info = session.info();
    let foreground = session.foreground().filter(|_| info.exit.is_none());
    let redactor = session.redactor();
    let (command_id, running_command) = info.running.unzip();
    Listed {
        session_id: info.id.to_string(),
        shell: info.shell,
        cwd: redactor.redact(&info.cwd.display().to_string()).into_owned(),
        cols: info.size.cols(),
        rows: info.size.rows(),
        created_at: iso_time(info.created_at),
        last_activity: iso_time(info.last_activity),
        is_alive: info.exit.is_none(),
        buffer_size: info.buffer_size,
        source: "local",
        cli_type: registry.cli_type(&info.id).unwrap_or_default(),
        pid: info.pid,
        is_leader: leads(leading, info.owner.agent_id.as_ref()),
        owner_agent_id: info.owner.agent_id,
        owner_session_id: info.owner.session_id,
        owner_role: info.owner.role.map(Role::as_str),
        label: info.owner.label.map(|label| redactor.redact(&label).into_owned()),
        claude_code_session_id: info.owner.claude_code_session_id,
        exit: info.exit.map(ExitFields::from).unwrap_or_default(),
        foreground: foreground.and_then(|foreground| foreground.program).map(|program| program.name),
        running_command: running_command.map(|line| redactor.redact(&line).into_owned()),
        command_id: command_id.map(|id| id.to_string()),
    }
}
