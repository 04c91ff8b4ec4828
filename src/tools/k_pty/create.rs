//! `create`: a new session.

use std::path::{Path, PathBuf};

use kpty_emulator::{MAX_COLS, MAX_ROWS, Size};
use serde::Serialize;
use serde_json::Value;

use super::owner::owner;
use crate::error::{Error, Result};
use crate::registry::{Registry, check_text};
use crate::terminal::local::{Integration, NewSession};
use crate::tools::Tools;
use crate::tools::params::{Params, wrong_type};
use kpty_guard::Redactor;

pub(in crate::tools) const PARAMS: &[&str] = &[
    "shell",
    "args",
    "cwd",
    "cols",
    "rows",
    "env",
    "label",
    "owner_agent_id",
    "agent_id",
    "owner_session_id",
    "owner_role",
    "claude_code_session_id",
    "cli_type",
    "integration",
    "pager",
];

const INTEGRATIONS: [(&str, Integration); 2] = [("auto", Integration::Auto), ("off", Integration::Off)];
/// The kind of program that a session is where nobody says.
const CLI_TYPE: &str = "shell";

pub(in crate::tools) struct Request {
    new: NewSession,
    cli_type: String,
}

#[derive(Serialize)]
pub(in crate::tools) struct Answer {
    session_id: String,
    shell: String,
    cwd: String,
    cols: u16,
    rows: u16,
    pid: u32,
    /// The shell marks what it does.
    integration: &'static str,
}

impl Request {
    pub(in crate::tools) fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let (config, redactor) = (&tools.config, &tools.redactor);
        let shell = params.text("shell")?.unwrap_or(&config.shell).to_owned();
        let cwd = folder(params.text("cwd")?, &config.project_root, &shell)?;
        let cli_type = params.text("cli_type")?.unwrap_or(CLI_TYPE);
        check_text("cli_type", cli_type)?;
        let env = environment(params)?;
        // The label may repeat what only this session knows.
        let knowing = redactor.with_variables(env.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let new = NewSession {
            args: params.strings("args")?.unwrap_or_default(),
            size: size(params, config.size)?,
            env,
            pager: params.flag("pager", false)?,
            owner: owner(params, &knowing)?,
            integration: params.choice("integration", &INTEGRATIONS)?.unwrap_or_default(),
            inherited: config.inherited.clone(),
            ring_bytes: config.ring_bytes,
            redactor: Redactor::clone(redactor),
            shell,
            cwd,
        };
        tools.typist.check_program(&new.shell, &new.args, &new.env)?;
        Ok(Self { new, cli_type: cli_type.to_owned() })
    }

    pub(in crate::tools) async fn run(self, registry: &Registry) -> Result<Answer> {
        let Self { new, cli_type } = self;
        let (shell, cwd, size) = (new.shell.clone(), new.cwd.display().to_string(), new.size);
        let session = registry.create(new, cli_type).await?;
        let integration = if session.is_integrated() { "on" } else { "off" };
        let session_id = session.id().to_string();
        Ok(Answer {
            session_id,
            shell,
            cwd,
            cols: size.cols(),
            rows: size.rows(),
            pid: session.info().pid,
            integration,
        })
    }
}

/// Where to start: as given, from the project's folder on; it must be there.
fn folder(given: Option<&str>, root: &Path, shell: &str) -> Result<PathBuf> {
    let wanted = given.map_or_else(|| root.to_owned(), |given| root.join(given));
    let cwd = std::path::absolute(&wanted).unwrap_or(wanted);
    if cwd.is_dir() {
        return Ok(cwd);
    }
    let what = if cwd.exists() { "Working directory is not a directory" } else { "Working directory does not exist" };
    let problem = format!("{what}: {}", given.map_or_else(|| cwd.display().to_string(), str::to_owned));
    Err(Error::Spawn { shell: shell.to_owned(), cwd, problem })
}

/// Zero is what callers send who do not care.
fn size(params: &mut Params<'_>, default: Size) -> Result<Size> {
    let cols = params.capped("cols", u64::from(MAX_COLS))?.filter(|&cols| cols > 0);
    let rows = params.capped("rows", u64::from(MAX_ROWS))?.filter(|&rows| rows > 0);
    let size =
        Size::new(cols.map_or(default.cols(), |cols| cols as u16), rows.map_or(default.rows(), |rows| rows as u16));
    Ok(size?)
}

fn environment(params: &Params<'_>) -> Result<Vec<(String, String)>> {
    let mut env = Vec::new();
    for (name, value) in params.object("env")?.unwrap_or_default() {
        let value = match value {
            Value::Null => continue,
            Value::String(value) => value,
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            other => return Err(wrong_type(&format!("env.{name}"), "a string", &other)),
        };
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(Error::invalid("env", format!("{name:?} cannot be a variable with this value")));
        }
        env.push((name, value));
    }
    Ok(env)
}
