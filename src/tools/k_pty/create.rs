//! `create`: starts a session.

use std::path::{Path, PathBuf};

use kpty_emulator::{MAX_COLS, MAX_ROWS, Size};
use serde::Serialize;
use serde_json::Value;

use super::owner::{AGENT_ID, CLAUDE_SESSION, LABEL, OWNER_AGENT_ID, OWNER_ROLE, OWNER_SESSION_ID, owner};
use crate::error::{Error, Result};
use crate::model::Secrets;
use crate::registry::check_text;
use crate::terminal::local::{Integration, NewSession};
use crate::tools::Tools;
use crate::tools::handler::{Content, Handler, Outcome, begin};
use crate::tools::params::{Params, wrong_type};
use crate::tools::spec::{Action, Choice, Effect, Param, Preset, Recorded};
use kpty_guard::{Masked, Redactor};

pub(in crate::tools) static ACTION: Action = Action {
    name: "create",
    aliases: &[],
    summary: "Start a session",
    notes: "Returns session_id.",
    example: r#"{"action":"create","cwd":"/tmp","label":"build"}"#,
    params: &[
        SHELL,
        ARGS,
        CWD,
        COLS,
        ROWS,
        ENV,
        LABEL,
        OWNER_AGENT_ID,
        AGENT_ID,
        OWNER_SESSION_ID,
        OWNER_ROLE.param,
        CLAUDE_SESSION,
        CLI_TYPE,
        INTEGRATION.param,
        PAGER,
        SECRETS.param,
    ],
    effect: Effect::Change,
    on_page: true,
    forwarded: false,
    shows_screen: false,
    begin: begin::<Create>,
};

const SECRETS_OF: [(&str, Secrets); 2] = [("agent", Secrets::Agent), ("person", Secrets::Person)];
const INTEGRATIONS: [(&str, Integration); 2] = [("auto", Integration::Auto), ("off", Integration::Off)];

const SHELL: Param = Param::text("shell", "the program; the server's default shell if not given");
const ARGS: Param = Param::list("args", "arguments of the program");
const CWD: Param = Param::text("cwd", "directory to start in; must exist");
pub(in crate::tools) const COLS: Param =
    Param::integer("cols", "columns").or_setting(|config| config.size.cols() as u64).cap(MAX_COLS as u64);
pub(in crate::tools) const ROWS: Param =
    Param::integer("rows", "rows").or_setting(|config| config.size.rows() as u64).cap(MAX_ROWS as u64);
const ENV: Param = Param::object("env", "variables to set").recorded(Recorded::Omitted);
const CLI_TYPE: Param = Param { preset: Preset::Word("shell"), ..Param::text("cli_type", "kind of program") };
const INTEGRATION: Choice<Integration> =
    Param::text("integration", "auto, or off to leave the shell as it is").one_of(&INTEGRATIONS).or("auto");
const SECRETS: Choice<Secrets> =
    Param::text("secrets", "who answers hidden prompts: agent, or only a person").one_of(&SECRETS_OF).or("agent");
const PAGER: Param = Param::flag("pager", false, "true leaves PAGER and the like as they are");

struct Create {
    new: NewSession,
    cli_type: String,
}

#[derive(Serialize)]
struct CreateReply {
    session_id: String,
    shell: Masked,
    cwd: Masked,
    cols: u16,
    rows: u16,
    pid: u32,
    /// Whether the shell marks its prompts and commands.
    integration: &'static str,
}

impl Handler for Create {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let (config, redactor) = (&tools.config, &tools.redactor);
        let shell = params.text(&SHELL)?.unwrap_or(&config.shell).to_owned();
        let cwd = folder(params.text(&CWD)?, &config.project_root, &shell)?;
        let cli_type = params.word(&CLI_TYPE)?;
        check_text(CLI_TYPE.name, cli_type)?;
        let env = environment(params)?;
        // The label may repeat what only this session knows.
        let knowing = redactor.with_variables(env.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let new = NewSession {
            args: params.strings(&ARGS)?.unwrap_or_default(),
            size: size(params)?,
            env,
            pager: params.flag(&PAGER)?,
            owner: owner(params, &knowing)?,
            integration: params.chosen(&INTEGRATION)?,
            inherited: config.inherited.clone(),
            ring_bytes: config.ring_bytes,
            secrets: params.chosen(&SECRETS)?,
            redactor: Redactor::clone(redactor),
            shell,
            cwd,
        };
        tools.typist.check_program(&new.shell, &new.args, &new.env)?;
        Ok(Self { new, cli_type: cli_type.to_owned() })
    }

    async fn run(self, tools: &Tools) -> Outcome {
        let Self { new, cli_type } = self;
        let (shell, cwd, size) = (new.shell.clone(), new.cwd.display().to_string(), new.size);
        let session = tools.registry.create(new, cli_type).await?;
        let redactor = session.redactor();
        Content::of(&CreateReply {
            session_id: session.id().to_string(),
            shell: redactor.mask(shell),
            cwd: redactor.mask(cwd),
            cols: size.cols(),
            rows: size.rows(),
            pid: session.pid(),
            integration: if session.is_integrated() { "on" } else { "off" },
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

/// Callers that have no wish send zero.
fn size(params: &mut Params<'_>) -> Result<Size> {
    let mut length = |param| -> Result<u16> {
        let given = params.number(param)?.filter(|&length| length > 0);
        Ok(given.unwrap_or_else(|| params.preset(param)) as u16)
    };
    Ok(Size::new(length(&COLS)?, length(&ROWS)?)?)
}

fn environment(params: &Params<'_>) -> Result<Vec<(String, String)>> {
    let mut env = Vec::new();
    for (name, value) in params.object(&ENV)?.unwrap_or_default() {
        let value = match value {
            Value::Null => continue,
            Value::String(value) => value,
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            other => return Err(wrong_type(&format!("env.{name}"), "a string", &other)),
        };
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(Error::invalid(ENV.name, format!("{name:?} cannot be a variable with this value")));
        }
        env.push((name, value));
    }
    Ok(env)
}
