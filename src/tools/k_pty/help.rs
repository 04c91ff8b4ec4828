//! `help`: all actions in a page, or one of them in full.

use serde_json::{Map, Value, json};

use super::create::{COLS, ROWS};
use super::term_read::MODE;
use crate::config::{Config, SETTINGS};
use crate::error::{Error, Result};
use crate::terminal::commands::MAX_COMMANDS;
use crate::tools::Tools;
use crate::tools::handler::{Handler, Outcome, begin};
use crate::tools::help::{limit, limits, topic};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Effect, Param};

pub(in crate::tools) static ACTION: Action = Action {
    name: "help",
    aliases: &[],
    summary: "This page; with topic one action in full",
    notes: "",
    example: r#"{"action":"help","topic":"talk"}"#,
    params: &[TOPIC],
    effect: Effect::Read,
    on_page: false,
    forwarded: false,
    shows_screen: false,
    begin: begin::<Help>,
};

const TOPIC: Param = Param::text("topic", "an action");

struct Help {
    topic: Option<&'static Action>,
}

impl Handler for Help {
    type Context = Tools;

    fn read(params: &mut Params<'_>, _: &Tools) -> Result<Self> {
        let Some(name) = params.text(&TOPIC)? else { return Ok(Self { topic: None }) };
        match super::TOOL.action(&name.trim().to_lowercase()) {
            Some(action) => Ok(Self { topic: Some(action) }),
            None => Err(Error::invalid(TOPIC.name, format!("must be an action, such as talk, and is {name:?}"))),
        }
    }

    async fn run(self, tools: &Tools) -> Outcome {
        let data = match self.topic {
            Some(action) => Value::Object(topic(action, &tools.config)),
            None => page(&tools.config),
        };
        Ok(Map::from_iter([("data".to_owned(), data), ("error".to_owned(), Value::Null)]).into())
    }
}

fn page(config: &Config) -> Value {
    json!({
        "tool": super::TOOL.name,
        "description": "Terminal sessions: run commands and get their output and exit code, drive interactive \
                        programs, read their screen as text.",
        "actions": super::TOOL.help(),
        "leader_only": false,
        // Older callers ask whether there are terminals at all by this name.
        "pywinpty_available": true,
        "sentinel_pattern": "__KR_DONE_<8 hex>__",
        "line_endings": "Enter is a carriage return; a newline inside a talk command stays one",
        "targeted_routing": {
            "description": "Sessions carry their owner; any key finds the one session that has it, never several",
            "primary_key": "agent_id",
            "secondary_keys": ["owner_session_id", "label", "claude_code_session_id", "cwd", "last_command"],
            "workflow": "create or adopt with owner_agent_id, then resolve or send_line_to_agent with agent_id",
        },
        "term_buffer_access": {
            "description": "Whether term_read, search and rendered read may show the screen",
            "config_env": "KURORYUU_TERM_BUFFER_ACCESS",
            "modes": { "off": "Disabled", "on": "All agents (default)" },
            "current_mode": config.screen_access.as_str(),
            "read_modes": MODE.param.choices.map(|choices| choices.words()),
        },
        "parameters": "Numbers and booleans may be strings. Above a cap: clamped, see 'clamped'. Unknown names: see \
                       'ignored_params'. timeout_ms 0: do not wait. as_agent? in any action: who asks, for the record.",
        "limits": server_limits(config),
        "settings": SETTINGS.iter().map(|setting| format!("{}={}", setting.name, setting.default)).collect::<Vec<_>>(),
    })
}

/// The limits of the actions, and those of the server.
fn server_limits(config: &Config) -> Map<String, Value> {
    let mut all = limits(&super::TOOL, config);
    let server = json!({
        "sessions": config.max_sessions,
        "dead_sessions_kept_s": config.dead_retention.as_secs(),
        "shell": config.shell,
        "cols": limit(&COLS, config),
        "rows": limit(&ROWS, config),
        "raw_bytes_kept": config.ring_bytes,
        "commands_kept": MAX_COMMANDS,
    });
    all.extend(server.as_object().cloned().unwrap_or_default());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_action_and_stays_a_page() {
        let page = page(&Config::default());
        let text = page.to_string();
        assert!(text.len() <= 8 << 10, "{} bytes", text.len());
        for action in super::super::TOOL.action_names() {
            assert!(page["actions"].get(action).is_some(), "{action}");
        }
    }
}
