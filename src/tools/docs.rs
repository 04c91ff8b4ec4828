//! `docs/src/actions.md`, derived from the specs of tools and actions.

use std::fmt::Write as _;

use serde_json::Value;

use super::catalogue::CATALOGUE;
use super::help::limit;
use super::spec::{Action, Param, Preset, Tool};
use crate::config::Config;

/// The reference of all tools and actions, in Markdown. Numbers are those of the default settings.
pub fn actions_page() -> String {
    let mut page = "\
# Actions

<!-- Generated from src/tools. Renew it with: KPTY_BLESS=1 cargo nextest run -p kpty --test it actions:: -->

Every call is a JSON object with `action` and the parameters below. Numbers and booleans may be strings; a number above
its maximum is clamped, and the reply says so in `clamped`; parameters that an action does not know are listed in
`ignored_params`. Every action also takes `as_agent`: who asks, for the record. Replies have `ok`; a failure has
`error_code`, `message` and `details`.

The effect of an action is `read` (returns what there is), `wait` (returns when something has happened), `type` (types
into a program) or `change`. A read-only twin of a tool offers only `read` and `wait`.

The tools `term_*` are for agents: they take no `action`, reply in plain text, and combine actions of `k_pty`.
"
    .to_owned();
    for tool in CATALOGUE {
        add_tool(&mut page, tool);
    }
    page
}

fn add_tool(page: &mut String, tool: &Tool) {
    // Writing to a string cannot fail.
    let _ = writeln!(page, "\n## {}\n\n{}", tool.name, tool.description);
    if let Some(view) = &tool.view {
        let _ = writeln!(page, "\nRead-only twin: `{}`.", view.name);
    }
    let _ = writeln!(page, "\n| Action | Effect | What it does |\n| --- | --- | --- |");
    for action in tool.actions {
        let names: Vec<_> = action.names().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(page, "| {} | {} | {} |", names.join(", "), action.effect.as_str(), cell(action.summary));
    }
    for action in tool.actions {
        add_action(page, action);
    }
}

fn add_action(page: &mut String, action: &Action) {
    let _ = writeln!(page, "\n### {}\n\n{}.", action.name, action.summary);
    if !action.notes.is_empty() {
        let _ = writeln!(page, "\n{}", action.notes);
    }
    if !action.params.is_empty() {
        let _ = writeln!(page, "\n| Parameter | Type | Default | Maximum | Meaning |\n| --- | --- | --- | --- | --- |");
    }
    for param in action.params {
        add_parameter(page, param);
    }
    let _ = writeln!(page, "\n```json\n{}\n```", action.example);
}

fn add_parameter(page: &mut String, param: &Param) {
    let limit = limit(param, &Config::default());
    let number = |name: &str| limit.get(name).map(Value::to_string);
    let preset = match param.preset {
        _ if param.required => "required".to_owned(),
        Preset::Flag(flag) => flag.to_string(),
        Preset::Word(word) => format!("`{word}`"),
        Preset::Number(_) | Preset::None => number("default").unwrap_or_default(),
    };
    let maximum = match (number("cap"), number("cap_with_progress")) {
        (Some(cap), Some(longer)) => format!("{cap}; {longer} with progress"),
        (cap, longer) => cap.or(longer).unwrap_or_default(),
    };
    let kind = match param.choices {
        Some(choices) => choices.words().iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        None => param.kind.json_type().unwrap_or("any").to_owned(),
    };
    let (name, meaning) = (param.name, cell(param.doc));
    let _ = writeln!(page, "| `{name}` | {kind} | {preset} | {maximum} | {meaning} |");
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
