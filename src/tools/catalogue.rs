//! All tools, and the names under which clients see them.

use serde_json::{Map, Value};

use super::params::wrong_type;
use super::schema::input_schema;
use super::spec::{Action, Annotations, Format, Selector, Tool};
use super::{k_pty, term};
use crate::config::ToolSet;
use crate::error::Result;

/// All tools. A tool is one folder and one line here.
pub static CATALOGUE: &[&Tool] = &[
    &k_pty::TOOL,
    &term::RUN,
    &term::TYPE,
    &term::LOOK,
    &term::WAIT,
    &term::SESSIONS,
    #[cfg(test)]
    &super::sample::TOOL,
];

/// The tool that plain calls mean: routes and commands that were made for terminals name none.
pub static DEFAULT_TOOL: &Tool = &k_pty::TOOL;

impl Tool {
    /// The name of the action that a call means, as it is compared; `None` where it names none.
    pub fn selected(&self, arguments: &Map<String, Value>) -> Result<Option<String>> {
        let param = match self.selector {
            Selector::Param(param) => param,
            Selector::Only => return Ok(self.actions.first().map(|action| action.name.to_owned())),
        };
        let name = match arguments.get(param) {
            None | Some(Value::Null) => "",
            Some(Value::String(name)) => name.trim(),
            Some(other) => return Err(wrong_type(param, "a string", other)),
        };
        Ok(if name.is_empty() { None } else { Some(name.to_lowercase()) })
    }

    /// The action of this name, or with this alias.
    pub fn action(&self, name: &str) -> Option<&'static Action> {
        self.actions.iter().copied().find(|action| action.is_named(name))
    }

    /// All names of actions, aliases included.
    pub fn action_names(&self) -> Vec<&'static str> {
        self.actions.iter().flat_map(|action| action.names()).collect()
    }
}

/// A tool as `tools/list` shows it: whole, or its read-only twin.
#[derive(Clone, Copy)]
pub struct Offer {
    /// The tool.
    pub tool: &'static Tool,
    /// Only the actions that change nothing.
    pub is_view: bool,
}

impl Offer {
    /// All tools and their twins, in the order in which they are listed.
    pub fn all() -> impl Iterator<Item = Self> {
        CATALOGUE.iter().copied().flat_map(|tool| {
            let view = tool.view.as_ref().map(|_| Self { tool, is_view: true });
            std::iter::once(Self { tool, is_view: false }).chain(view)
        })
    }

    /// Those that a client is shown. A plain client posts JSON without speaking the protocol.
    pub fn shown(set: ToolSet, is_plain: bool) -> impl Iterator<Item = Self> {
        let is_shown = move |format| match set {
            ToolSet::Auto => (format == Format::Json) == is_plain,
            ToolSet::Term => format == Format::Text,
            ToolSet::Actions => format == Format::Json,
            ToolSet::All => true,
        };
        Self::all().filter(move |offer| is_shown(offer.tool.format))
    }

    /// The tool or twin of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|offer| offer.name() == name)
    }

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        self.pick(self.tool.name, |view| view.name)
    }

    /// A short name for people.
    pub fn title(self) -> &'static str {
        self.pick(self.tool.title, |view| view.title)
    }

    /// What a model reads before its first call.
    pub fn description(self) -> &'static str {
        self.pick(self.tool.description, |view| view.description)
    }

    /// Hints for clients.
    pub fn annotations(self) -> Annotations {
        if self.is_view { Annotations::READ_ONLY } else { self.tool.annotations }
    }

    /// The actions that may be called by this name.
    pub fn actions(self) -> impl Iterator<Item = &'static Action> {
        self.tool.actions.iter().copied().filter(move |action| !self.is_view || action.only_looks())
    }

    /// The JSON schema of the arguments.
    pub fn schema(self) -> Value {
        input_schema(self.tool.selector, &self.actions().collect::<Vec<_>>())
    }

    fn pick(self, whole: &'static str, of: impl Fn(&'static super::spec::View) -> &'static str) -> &'static str {
        self.tool.view.as_ref().filter(|_| self.is_view).map_or(whole, of)
    }
}
