//! Help texts, derived from the specs of tools and actions.

use serde_json::{Map, Value, json};

use super::spec::{Action, Number, Param, Preset, Tool};
use crate::config::Config;

/// An action in a line or two: what it does, its parameters, and what else a caller has to know. A question mark marks a
/// parameter that may be left out.
pub(super) fn line(action: &Action) -> String {
    let params: Vec<_> = action.params.iter().map(parameter).collect();
    let mut line = action.summary.to_owned();
    if !params.is_empty() {
        line.extend([": ", &params.join(", ")]);
    }
    line.push('.');
    if !action.notes.is_empty() {
        line.extend([" ", action.notes]);
    }
    line
}

/// `name`, `name?`, and what it may be where that says it all.
fn parameter(param: &Param) -> String {
    let mark = if param.required { "" } else { "?" };
    let values = match (param.choices, param.preset) {
        (Some(choices), _) => format!(" {}", choices.words().join("|")),
        (None, Preset::Flag(true)) => " true".to_owned(),
        _ => String::new(),
    };
    [param.name, mark, &values].concat()
}

impl Tool {
    /// A line or two for each action, by name.
    pub fn help(&self) -> Map<String, Value> {
        let of = |action: &&'static Action| {
            let aliases = action.aliases.iter().map(|alias| (*alias, format!("The same as {}.", action.name)));
            std::iter::once((action.name, line(action))).chain(aliases)
        };
        self.actions.iter().flat_map(of).map(|(name, line)| (name.to_owned(), json!(line))).collect()
    }
}

/// An action in full.
pub(super) fn topic(action: &Action, config: &Config) -> Map<String, Value> {
    let params: Vec<_> = action.params.iter().map(|param| Value::Object(details(param, config))).collect();
    let topic = json!({
        "action": action.name,
        "aliases": action.aliases,
        "effect": action.effect.as_str(),
        "summary": line(action),
        "parameters": params,
        "example": serde_json::from_str::<Value>(action.example).unwrap_or_default(),
    });
    topic.as_object().cloned().unwrap_or_default()
}

fn details(param: &Param, config: &Config) -> Map<String, Value> {
    let mut details = limit(param, config);
    details.insert("name".to_owned(), json!(param.name));
    details.insert("type".to_owned(), json!(param.kind.json_type()));
    details.insert("description".to_owned(), json!(param.meaning()));
    details.insert("required".to_owned(), json!(param.required));
    if let Some(choices) = param.choices {
        details.insert("choices".to_owned(), json!(choices.words()));
    }
    let preset = match param.preset {
        Preset::Flag(flag) => Some(json!(flag)),
        Preset::Word(word) => Some(json!(word)),
        Preset::None | Preset::Number(_) => None,
    };
    details.extend(preset.map(|preset| ("default".to_owned(), preset)));
    details
}

/// The numbers of a parameter under these settings: the default and the caps, as far as it has them.
pub(super) fn limit(param: &Param, config: &Config) -> Map<String, Value> {
    let preset = match param.preset {
        Preset::Number(number) => Some(number),
        _ => None,
    };
    let numbers = [("default", preset), ("cap", param.cap), ("cap_with_progress", param.cap_with_progress)];
    let value = |number: Number| json!(number.value(config));
    numbers.into_iter().filter_map(|(name, number)| Some((name.to_owned(), value(number?)))).collect()
}

/// The numbers of all parameters that have some, by action.
pub(super) fn limits(tool: &Tool, config: &Config) -> Map<String, Value> {
    let of = |action: &&'static Action| {
        let limits = action.params.iter().map(|param| (param.name.to_owned(), limit(param, config)));
        let limits: Map<_, _> =
            limits.filter(|(_, limit)| !limit.is_empty()).map(|(name, limit)| (name, Value::Object(limit))).collect();
        (!limits.is_empty()).then(|| (action.name.to_owned(), Value::Object(limits)))
    };
    tool.actions.iter().filter_map(of).collect()
}
