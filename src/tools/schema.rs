//! The JSON schema of a tool's arguments: flat, because some clients refuse references and alternatives.
//!
//! A parameter of several actions is one property. Its description names the actions where they give it different
//! meanings, or where only one or two have it.

use serde_json::{Map, Value, json};

use super::params::AS_AGENT;
use super::spec::{Action, Kind, Param, Selector};

/// Fewer actions than this are named in front of what a parameter means.
const COMMON: usize = 3;

/// The schema of some actions of one tool.
pub(super) fn input_schema(selector: Selector, actions: &[&Action]) -> Value {
    match selector {
        Selector::Param(name) => schema_of_several(name, actions),
        Selector::Only => schema_of_one(actions.iter().flat_map(|action| action.params)),
    }
}

fn schema_of_one<'a>(params: impl Iterator<Item = &'a Param>) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for param in params {
        properties.insert(param.name.to_owned(), property(param.kind, &param.meaning()));
        required.extend(param.required.then_some(param.name));
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

fn schema_of_several(selector: &str, actions: &[&Action]) -> Value {
    let mut properties = Map::new();
    for param in actions.iter().flat_map(|action| action.params) {
        if !properties.contains_key(param.name) {
            properties.insert(param.name.to_owned(), property(param.kind, &description(actions, param.name)));
        }
    }
    let names: Vec<_> = actions.iter().flat_map(|action| action.names()).collect();
    let mut action = property(Kind::Text, "what to do; 'help' tells more");
    action["enum"] = json!(names);
    properties.insert(selector.to_owned(), action);
    properties.insert(AS_AGENT.to_owned(), property(Kind::Text, "all actions: who asks, for the record"));
    json!({ "type": "object", "properties": properties, "required": [selector] })
}

fn property(kind: Kind, description: &str) -> Value {
    let mut property = json!({ "description": description });
    if let Some(name) = kind.json_type() {
        property["type"] = json!(name);
    }
    match kind {
        Kind::List => property["items"] = json!({ "type": "string" }),
        Kind::Integer | Kind::Millis | Kind::Timeout => property["minimum"] = json!(0),
        _ => {}
    }
    property
}

/// What the parameter means in each action that has it.
fn description(actions: &[&Action], name: &str) -> String {
    let mut meanings: Vec<(String, Vec<&str>)> = Vec::new();
    for action in actions {
        let Some(param) = action.params.iter().find(|param| param.name == name) else { continue };
        let meaning = param.meaning();
        match meanings.iter_mut().find(|(known, _)| *known == meaning) {
            Some((_, among)) => among.push(action.name),
            None => meanings.push((meaning, vec![action.name])),
        }
    }
    if let [(meaning, among)] = meanings.as_slice()
        && among.len() >= COMMON
    {
        return meaning.clone();
    }
    let parts: Vec<_> = meanings.iter().map(|(meaning, among)| format!("{}: {meaning}", among.join(", "))).collect();
    parts.join("; ")
}

impl Param {
    /// What it means: its documentation, or the words that it may be where those say enough.
    pub fn meaning(&self) -> String {
        match self.choices {
            Some(choices) if self.doc.is_empty() => one_of(&choices.words()),
            _ => self.doc.to_owned(),
        }
    }
}

/// `a, b or c`.
pub(super) fn one_of(words: &[impl AsRef<str>]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}
