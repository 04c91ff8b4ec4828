//! What a tool and its actions are: the one description from which schemas, help, completion, documentation, the record
//! and the dispatcher are derived.
//!
//! An action's file declares a constant [`Action`]; its tool lists it. Nothing about an action is stated anywhere else.

use std::time::Duration;

use super::handler::Begin;
use crate::config::Config;

/// A tool: a name under which clients find a list of actions.
pub struct Tool {
    /// The name on the wire.
    pub name: &'static str,
    /// A short name for people.
    pub title: &'static str,
    /// What a model reads before its first call; below 1,024 bytes.
    pub description: &'static str,
    /// Hints for clients.
    pub annotations: Annotations,
    /// How a call names the action that it means.
    pub selector: Selector,
    /// How its actions reply.
    pub format: Format,
    /// The read-only twin, where there is one: the same tool limited to the actions that change nothing.
    pub view: Option<View>,
    /// The actions, in the order in which they are listed.
    pub actions: &'static [&'static Action],
}

/// How a call names the action that it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector {
    /// By this parameter.
    Param(&'static str),
    /// The tool has one action.
    Only,
}

/// How the actions of a tool reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Fields, as JSON.
    Json,
    /// Plain text. Such actions combine those of other tools, which mask what they show and are recorded.
    Text,
}

/// The read-only twin of a tool.
pub struct View {
    /// The name on the wire.
    pub name: &'static str,
    /// A short name for people.
    pub title: &'static str,
    /// What a model reads before its first call.
    pub description: &'static str,
}

/// Hints for clients that decide whether to ask their user before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotations {
    /// Nothing changes.
    pub read_only: bool,
    /// What changes may be lost.
    pub destructive: bool,
    /// A second call with the same arguments changes nothing more.
    pub idempotent: bool,
    /// It reaches beyond this server.
    pub open_world: bool,
}

impl Annotations {
    /// Those of a tool that only reads and waits.
    pub const READ_ONLY: Self = Self { read_only: true, destructive: false, idempotent: true, open_world: false };
    /// Those of a tool that can do anything.
    pub const UNLIMITED: Self = Self { read_only: false, destructive: true, idempotent: false, open_world: true };
}

/// What an action does to the world. Decides who may call it, how it is recorded and what ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Returns what there is.
    Read,
    /// Returns when something has happened.
    Wait,
    /// Types into a program.
    Type,
    /// Starts, ends or changes something.
    Change,
}

impl Effect {
    /// The effect in lower case, as documentation shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Wait => "wait",
            Self::Type => "type",
            Self::Change => "change",
        }
    }
}

/// One action of a tool.
pub struct Action {
    /// The name on the wire.
    pub name: &'static str,
    /// Other names that mean the same.
    pub aliases: &'static [&'static str],
    /// What it does, in one line without a full stop.
    pub summary: &'static str,
    /// What else a caller has to know; may be empty.
    pub notes: &'static str,
    /// The arguments of a typical call, as JSON.
    pub example: &'static str,
    /// The parameters that it reads.
    pub params: &'static [Param],
    /// What it does to the world.
    pub effect: Effect,
    /// People may use it from the live page.
    pub on_page: bool,
    /// It is forwarded whole to another kpty that runs the session.
    pub forwarded: bool,
    /// Its reply shows what is on a screen.
    pub shows_screen: bool,
    /// Reads the parameters and starts the action.
    pub(super) begin: Begin,
}

impl Action {
    /// The name and the aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// True when the name or an alias is `name`.
    pub fn is_named(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// It neither types nor changes anything, so the read-only twin offers it.
    pub fn only_looks(&self) -> bool {
        matches!(self.effect, Effect::Read | Effect::Wait)
    }

    /// It may last as long as its timeout.
    pub fn waits(&self) -> bool {
        self.timeout().is_some()
    }

    /// A caller that goes away ends it. Other actions are finished, so that no change is left half done.
    pub fn ends_with_caller(&self) -> bool {
        self.only_looks() || self.waits()
    }

    /// The parameter that bounds how long it waits.
    pub fn timeout(&self) -> Option<&'static Param> {
        self.params.iter().find(|param| matches!(param.kind, Kind::Timeout | Kind::TimeoutSeconds))
    }
}

/// The kind of value that a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A string.
    Text,
    /// A whole number that is not negative.
    Integer,
    /// A number of milliseconds.
    Millis,
    /// A number of milliseconds that the action waits at most.
    Timeout,
    /// A number of seconds, with or without a fraction.
    Seconds,
    /// A number of seconds that the action waits at most.
    TimeoutSeconds,
    /// True or false.
    Flag,
    /// A list of strings.
    List,
    /// An object.
    Object,
    /// Several of these; the documentation says which.
    Any,
}

impl Kind {
    /// The type in a JSON schema; `None` where several are possible.
    pub fn json_type(self) -> Option<&'static str> {
        match self {
            Self::Text => Some("string"),
            Self::Integer | Self::Millis | Self::Timeout => Some("integer"),
            Self::Seconds | Self::TimeoutSeconds => Some("number"),
            Self::Flag => Some("boolean"),
            Self::List => Some("array"),
            Self::Object => Some("object"),
            Self::Any => None,
        }
    }
}

/// A number that is a constant or comes from the settings.
#[derive(Clone, Copy)]
pub enum Number {
    /// A constant.
    Fixed(u64),
    /// What the settings say.
    Setting(fn(&Config) -> u64),
}

impl Number {
    /// The number under these settings.
    pub fn value(self, config: &Config) -> u64 {
        match self {
            Self::Fixed(number) => number,
            Self::Setting(of) => of(config),
        }
    }
}

/// What a parameter is where it is not given.
#[derive(Clone, Copy)]
pub enum Preset {
    /// Absent.
    None,
    /// A number.
    Number(Number),
    /// True or false.
    Flag(bool),
    /// One of the choices.
    Word(&'static str),
}

/// How the record of actions treats an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// Listed by name and value.
    Listed,
    /// Not listed: it has a field of its own in the record, or may be a secret.
    Omitted,
    /// The text that is typed: recorded as the command.
    Typed,
    /// Names of keys and texts that are typed: recorded as the command.
    Keys,
    /// Part of what is typed, but never a secret: recorded as the command.
    Gesture,
}

/// One parameter of an action.
#[derive(Clone, Copy)]
pub struct Param {
    /// The name on the wire.
    pub name: &'static str,
    /// The kind of value.
    pub kind: Kind,
    /// What it means, in a few words; for a choice its words may say enough.
    pub doc: &'static str,
    /// A call without it fails.
    pub required: bool,
    /// The value where none is given.
    pub preset: Preset,
    /// The largest value; a larger one is clamped, and the reply says so.
    pub cap: Option<Number>,
    /// The largest value for callers that show progress.
    pub cap_with_progress: Option<Number>,
    /// The words that it may be.
    pub choices: Option<&'static dyn Words>,
    /// How it is recorded.
    pub recorded: Recorded,
}

impl Param {
    const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self {
            name,
            kind,
            doc,
            required: false,
            preset: Preset::None,
            cap: None,
            cap_with_progress: None,
            choices: None,
            recorded: Recorded::Listed,
        }
    }

    /// A string.
    pub const fn text(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, Kind::Text, doc)
    }

    /// A whole number that is not negative.
    pub const fn integer(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, Kind::Integer, doc)
    }

    /// A number of milliseconds.
    pub const fn millis(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, Kind::Millis, doc)
    }

    /// A number of seconds.
    pub const fn seconds(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, Kind::Seconds, doc)
    }

    /// How long the action waits at most, in seconds. Its default and caps are in seconds, too.
    pub const fn timeout_seconds(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, Kind::TimeoutSeconds, doc)
    }

    /// How long the action waits at most, in milliseconds.
    pub const fn timeout(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, Kind::Timeout, doc)
    }

    /// True or false; `preset` where it is not given.
    pub const fn flag(name: &'static str, preset: bool, doc: &'static str) -> Self {
        Self { preset: Preset::Flag(preset), ..Self::new(name, Kind::Flag, doc) }
    }

    /// A list of strings.
    pub const fn list(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, Kind::List, doc)
    }

    /// An object.
    pub const fn object(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, Kind::Object, doc)
    }

    /// A value of several kinds.
    pub const fn any(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, Kind::Any, doc)
    }

    /// A call without it fails.
    pub const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// The number where none is given.
    pub const fn or(self, number: u64) -> Self {
        Self { preset: Preset::Number(Number::Fixed(number)), ..self }
    }

    /// The time where none is given.
    pub const fn or_time(self, time: Duration) -> Self {
        self.or(millis(time))
    }

    /// The number where none is given, from the settings.
    pub const fn or_setting(self, of: fn(&Config) -> u64) -> Self {
        Self { preset: Preset::Number(Number::Setting(of)), ..self }
    }

    /// The largest number.
    pub const fn cap(self, number: u64) -> Self {
        Self { cap: Some(Number::Fixed(number)), ..self }
    }

    /// The longest time.
    pub const fn cap_time(self, time: Duration) -> Self {
        self.cap(millis(time))
    }

    /// The largest number, from the settings.
    pub const fn cap_setting(self, of: fn(&Config) -> u64) -> Self {
        Self { cap: Some(Number::Setting(of)), ..self }
    }

    /// The longest time for callers that show progress.
    pub const fn cap_time_with_progress(self, time: Duration) -> Self {
        let longest =
            if matches!(self.kind, Kind::Seconds | Kind::TimeoutSeconds) { time.as_secs() } else { millis(time) };
        Self { cap_with_progress: Some(Number::Fixed(longest)), ..self }
    }

    /// How it is recorded.
    pub const fn recorded(self, recorded: Recorded) -> Self {
        Self { recorded, ..self }
    }

    /// One of several words, each with its meaning.
    pub const fn one_of<T: Sync, const N: usize>(self, words: &'static [(&'static str, T); N]) -> Choice<T> {
        Choice { param: Self { choices: Some(words), ..self }, words }
    }
}

/// A parameter that is one of several words, and what they mean.
#[derive(Clone, Copy)]
pub struct Choice<T: 'static> {
    /// The parameter.
    pub param: Param,
    pub(super) words: &'static [(&'static str, T)],
}

impl<T> Choice<T> {
    /// The word where none is given.
    pub const fn or(self, word: &'static str) -> Self {
        Self { param: Param { preset: Preset::Word(word), ..self.param }, words: self.words }
    }

    /// A call without it fails.
    pub const fn required(self) -> Self {
        Self { param: self.param.required(), words: self.words }
    }
}

const fn millis(time: Duration) -> u64 {
    time.as_millis() as u64
}

/// The words of a choice, without their meanings.
pub trait Words: Sync {
    /// All of them.
    fn words(&self) -> Vec<&'static str>;
}

impl<T: Sync, const N: usize> Words for [(&'static str, T); N] {
    fn words(&self) -> Vec<&'static str> {
        self.iter().map(|(word, _)| *word).collect()
    }
}
