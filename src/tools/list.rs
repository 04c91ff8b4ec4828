//! `list`: all sessions, the dead ones of the last minutes too.

use serde::Serialize;

use super::envelope::ExitFields;
use crate::error::{Error, Result};
use crate::model::{Role, iso_time};
use crate::registry::Registry;
use crate::session::Session;

#[derive(Serialize)]
pub(super) struct Answer {
    sessions: Vec<Listed>,
    count: usize,
    by_source: BySource,
}

#[derive(Serialize)]
struct BySource {
    local: usize,
    desktop: usize,
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
    pid: u32,
    owner_agent_id: Option<String>,
    owner_session_id: Option<String>,
    owner_role: Option<&'static str>,
    label: Option<String>,
    #[serde(flatten)]
    exit: ExitFields,
    /// The program that has the terminal.
    foreground: Option<String>,
    running_command: Option<String>,
    command_id: Option<String>,
}

/// Looks at every session; the process table is read for each, so not on a thread that others wait for.
pub(super) async fn list(registry: &Registry) -> Result<Answer> {
    let sessions = registry.list();
    let look = move || sessions.iter().map(listed).collect::<Vec<_>>();
    let sessions = tokio::task::spawn_blocking(look).await.map_err(|error| Error::NotAvailable(error.to_string()))?;
    let count = sessions.len();
    Ok(Answer { sessions, count, by_source: BySource { local: count, desktop: 0 } })
}

fn listed(session: &Session) -> Listed {
    let info = session.info();
    let foreground = session.foreground().filter(|_| info.exit.is_none());
    let redactor = session.redactor();
    let (command_id, running_command) = info.running.unzip();
    Listed {
        session_id: info.id.to_string(),
        shell: info.shell,
        cwd: info.cwd.display().to_string(),
        cols: info.size.cols(),
        rows: info.size.rows(),
        created_at: iso_time(info.created_at),
        last_activity: iso_time(info.last_activity),
        is_alive: info.exit.is_none(),
        buffer_size: info.buffer_size,
        source: "local",
        pid: info.pid,
        owner_agent_id: info.owner.agent_id,
        owner_session_id: info.owner.session_id,
        owner_role: info.owner.role.map(Role::as_str),
        label: info.owner.label,
        exit: info.exit.map(ExitFields::from).unwrap_or_default(),
        foreground: foreground.and_then(|foreground| foreground.program).map(|program| program.name),
        running_command: running_command.map(|line| redactor.redact(&line).into_owned()),
        command_id: command_id.map(|id| id.to_string()),
    }
}
