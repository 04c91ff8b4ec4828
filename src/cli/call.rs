//! `kpty call`: any action of any tool, by its name and its parameters. Names, completion and help come from the specs.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Args};
use serde_json::{Map, Value};

use super::client::Connection;
use super::remote::{EXIT_CODES, Remote};
use super::{EXIT_DONE, Failure, Outcome, print};
use crate::config::LONGEST_TALK;
use crate::error::Error;
use crate::tools::{Action, CATALOGUE, DEFAULT_TOOL, Format, Tool};

/// The parameter that names a session.
const SESSION_ID: &str = "session_id";

#[derive(Args)]
#[command(after_help = format!("\
Prints the reply as JSON. `kpty call help` lists the actions, `kpty call help topic=talk` explains one.

{EXIT_CODES}

Examples:
  kpty call list
  kpty call create cwd=/tmp label=build
  kpty call term_read session_id=build mode=viewport
  kpty call send_keys session_id=build 'keys=[\"Down\",{{\"text\":\"y\"}}]'"))]
pub(super) struct CallArguments {
    /// The action; of another tool than k_pty as TOOL.ACTION
    #[arg(value_parser = PossibleValuesParser::new(ACTION_NAMES.iter().map(String::as_str)), hide_possible_values = true)]
    action: String,

    /// Its parameters; lists and objects as JSON
    #[arg(value_name = "NAME=VALUE", value_parser = ParameterParser, hide_possible_values = true)]
    parameters: Vec<(String, String)>,

    #[command(flatten)]
    connection: Connection,
}

/// The tools with actions. Those that reply in text combine these.
fn tools() -> impl Iterator<Item = &'static Tool> {
    CATALOGUE.iter().copied().filter(|tool| tool.format == Format::Json)
}

/// All actions, as they are named here.
static ACTION_NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let of = |tool: &'static Tool| {
        let is_default = tool.name == DEFAULT_TOOL.name;
        let name = move |name: &str| if is_default { name.to_owned() } else { format!("{}.{name}", tool.name) };
        tool.action_names().into_iter().map(name)
    };
    tools().flat_map(of).collect()
});

/// The beginnings of parameters, `name=`.
static PARAMETERS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let params = tools().flat_map(|tool| tool.actions).flat_map(|action| action.params);
    let names: BTreeSet<_> = params.map(|param| param.name).collect();
    names.into_iter().map(|name| format!("{name}=")).collect()
});

/// The tool and the action of this name.
fn named(name: &str) -> Option<(&'static Tool, &'static Action)> {
    let (tool, action) = name.split_once('.').unwrap_or((DEFAULT_TOOL.name, name));
    let tool = tools().find(|known| known.name == tool)?;
    Some((tool, tool.action(action)?))
}

/// Reads `NAME=VALUE`; offers the names for completion.
#[derive(Clone)]
struct ParameterParser;

impl TypedValueParser for ParameterParser {
    type Value = (String, String);

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Self::Value, clap::Error> {
        let text = value.to_str().and_then(|text| text.split_once('='));
        let (name, value) = text.ok_or_else(|| {
            let problem = format!("{} is not NAME=VALUE\n", value.to_string_lossy());
            clap::Error::raw(ErrorKind::InvalidValue, problem).with_cmd(command)
        })?;
        Ok((name.to_owned(), value.to_owned()))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(PARAMETERS.iter().map(|name| PossibleValue::new(name.as_str()))))
    }
}

pub(super) async fn call(arguments: CallArguments) -> Result<Outcome, Failure> {
    let remote = Remote::new(&arguments.connection)?;
    let (tool, action) =
        named(&arguments.action).ok_or_else(|| Error::Usage(format!("no action {}", arguments.action)))?;
    let mut given = Map::new();
    for (name, value) in arguments.parameters {
        let value = if name == SESSION_ID { remote.resolve(&value).await? } else { value };
        given.insert(name, Value::String(value));
    }
    let longest = if action.waits() { LONGEST_TALK } else { Duration::ZERO };
    let answer = remote.client.call_tool(tool.name, longest, action.name, Value::Object(given)).await?;
    remote.finish(
        &answer,
        |_| EXIT_DONE,
        |answer| {
            let text = serde_json::to_string_pretty(&Value::Object(answer.body.clone()));
            Ok(print::line(&text.map_err(|error| Error::Server(error.to_string()))?)?)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_and_parameter_can_be_named() {
        for name in &*ACTION_NAMES {
            assert!(named(name).is_some(), "{name}");
        }
        assert!(named("nothing").is_none() && named("k_pty.nothing").is_none() && named("none.list").is_none());
        assert!(["session_id=", "command=", "mode="].iter().all(|name| PARAMETERS.iter().any(|known| known == name)));
    }
}
