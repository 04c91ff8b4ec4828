//! `list`: all sessions, including those that ended in the last minutes and those of desktop apps.

use std::collections::HashSet;

use kpty_guard::Masked;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::model::{Role, SessionRecord, iso_time};
use crate::registry::Registry;
use crate::terminal::Attention;
use crate::terminal::local::Session;
use crate::tools::Tools;
use crate::tools::envelope::{ExitFields, shown_record};
use crate::tools::handler::{Content, Handler, Outcome, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Effect};

pub(in crate::tools) static ACTION: Action = Action {
    name: "list",
    aliases: &[],
    summary: "All sessions",
    notes: "Dead ones stay listed for a while with is_alive:false and their exit_code or signal.",
    example: r#"{"action":"list"}"#,
    params: &[],
    effect: Effect::Read,
    on_page: true,
    forwarded: false,
    shows_screen: false,
    begin: begin::<List>,
};

struct List;

impl Handler for List {
    type Context = Tools;

    fn read(_: &mut Params<'_>, _: &Tools) -> Result<Self> {
        Ok(Self)
    }

    async fn run(self, tools: &Tools) -> Outcome {
        Content::of(&list(tools).await?)
    }
}

#[derive(Serialize)]
struct ListReply {
    sessions: Vec<ListEntry>,
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
enum ListEntry {
    Local(Box<LocalEntry>),
    Desktop(Box<DesktopEntry>),
}

#[derive(Serialize)]
struct DesktopEntry {
    #[serde(flatten)]
    record: SessionRecord,
    is_leader: bool,
    /// Its desktop sent no heartbeat for a while.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stale: bool,
}

#[derive(Serialize)]
struct LocalEntry {
    session_id: String,
    shell: Masked,
    cwd: Masked,
    cols: u16,
    rows: u16,
    created_at: String,
    last_activity: String,
    is_alive: bool,
    buffer_size: usize,
    source: &'static str,
    cli_type: Masked,
    pid: u32,
    owner_agent_id: Option<Masked>,
    owner_session_id: Option<Masked>,
    owner_role: Option<&'static str>,
    label: Option<Masked>,
    claude_code_session_id: Option<Masked>,
    /// Its owner leads.
    is_leader: bool,
    #[serde(flatten)]
    exit: ExitFields,
    /// The foreground process.
    foreground: Option<Masked>,
    running_command: Option<Masked>,
    command_id: Option<String>,
    /// What its program does, and whether it waits for input.
    attention: Attention,
}

/// Reads the state of every session. The process table is read for each, which blocks its thread.
async fn list(tools: &Tools) -> Result<ListReply> {
    let registry = &tools.registry;
    let table = registry.clone();
    let leading = tools.leading().await;
    let leaders = leading.clone();
    let look = move || table.list().iter().map(|session| listed(&table, session, &leaders)).collect::<Vec<_>>();
    let local = tokio::task::spawn_blocking(look).await.map_err(|error| Error::NotAvailable(error.to_string()))?;
    let desktop = registry.desktop_sessions();
    let by_source = BySource { local: local.len(), desktop: desktop.len() };
    let mut sessions: Vec<_> = local.into_iter().map(|listed| ListEntry::Local(Box::new(listed))).collect();
    for found in desktop {
        let is_leader = leads(&leading, found.record.owner_agent_id.as_ref());
        sessions.push(ListEntry::Desktop(Box::new(DesktopEntry {
            record: shown_record(found.record, &tools.redactor),
            is_leader,
            stale: found.is_stale,
        })));
    }
    Ok(ListReply { count: sessions.len(), sessions, by_source })
}

fn leads(leading: &HashSet<String>, agent_id: Option<&String>) -> bool {
    agent_id.is_some_and(|agent_id| leading.contains(agent_id))
}

fn listed(registry: &Registry, session: &Session, leading: &HashSet<String>) -> LocalEntry {
    let info = session.info();
    let redactor = session.redactor();
    let given = |text: Option<String>| text.map(|text| redactor.mask(text));
    let (command_id, running_command) = info.running.unzip();
    LocalEntry {
        session_id: info.id.to_string(),
        shell: info.shell,
        cwd: info.cwd,
        cols: info.size.cols(),
        rows: info.size.rows(),
        created_at: iso_time(info.created_at),
        last_activity: iso_time(info.last_activity),
        is_alive: info.exit.is_none(),
        buffer_size: info.buffer_size,
        source: "local",
        cli_type: given(registry.cli_type(&info.id)).unwrap_or_default(),
        pid: info.pid,
        is_leader: leads(leading, info.owner.agent_id.as_ref()),
        owner_agent_id: given(info.owner.agent_id),
        owner_session_id: given(info.owner.session_id),
        owner_role: info.owner.role.map(Role::as_str),
        label: given(info.owner.label),
        claude_code_session_id: given(info.owner.claude_code_session_id),
        exit: info.exit.map(ExitFields::from).unwrap_or_default(),
        foreground: if info.exit.is_none() { session.foreground_name() } else { None },
        running_command,
        command_id: command_id.map(|id| id.to_string()),
        attention: session.attention(),
    }
}
