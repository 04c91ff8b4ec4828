//! The one place where actions are recorded, whichever transport they came through, and whether they failed or not.
//!
//! An [`Entry`] is begun before an action and is [`Done`] with its reply. One that is dropped half-way is recorded as such:
//! its caller went away. Nothing here waits or fails; the record masks and writes. What is recorded of an argument is
//! declared by its parameter.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Map, Value};

use super::envelope::{Reply, shown_text, text_of};
use super::handler::TextReply;
use super::k_pty::screen::Screen;
use super::params::{ACTION, AS_AGENT, number};
use super::spec::{Action, Effect, Format, Preset, Recorded, Tool};
use super::{Caller, DEFAULT_TOOL, Tools};
use crate::error::ErrorCode;
use crate::ids::SessionId;
use crate::registry::Located;
use crate::terminal::desktop::Desktop;
use crate::terminal::local::Session;
use crate::terminal::local::keys::Key;
use crate::traffic::{Draft, Event, GivenText, Hidden, LOOK_CHARS, Promise, SizedText, Start, TEXT_CHARS, clean_name};
use kpty_guard::{Masked, MaskedStr, Redactor, whole_words};

/// Bytes of a text that go to the record, where it is masked and cut to much less.
const MAX_BYTES: usize = 128 << 10;
/// Bytes of what is typed in the note of its start.
const START_BYTES: usize = 2_000;
/// Bytes of one parameter in a list of them.
const PARAM_BYTES: usize = 200;

impl Caller {
    /// A caller that says who it is.
    pub fn named(agent: &str) -> Self {
        Self { agent: clean_name(agent), ..Self::default() }
    }

    /// Who it is as far as anybody said: it itself, the call, its client, or whom the server was started for.
    pub(super) fn identity(&self, arguments: &Map<String, Value>, own: Option<&str>) -> Option<String> {
        let argument = || arguments.get("as_agent").and_then(Value::as_str).and_then(clean_name);
        self.agent.clone().or_else(argument).or_else(|| self.client.clone()).or_else(|| own.and_then(clean_name))
    }
}

impl Tools {
    /// Records something that was done to a session by other means than [`Tools::call`]: a route of its own.
    pub fn record(&self, arguments: &Map<String, Value>, caller: &Caller, began: Instant, reply: &Reply) {
        self.record_started(arguments, caller, began, reply, None);
    }

    /// The same for something whose start was noted.
    pub(super) fn record_started(
        &self,
        arguments: &Map<String, Value>,
        caller: &Caller,
        began: Instant,
        reply: &Reply,
        started: Option<u64>,
    ) {
        if self.traffic.is_on() {
            let located = self.session_of(arguments, Some(reply));
            let call = Call { tools: self, tool: DEFAULT_TOOL, arguments, caller, began, located };
            self.traffic.emit(Draft { started, ..call.draft(Some(reply), None) });
        }
    }
}

/// What is about to be typed.
pub(super) struct Typing<'a> {
    pub(super) action: &'a str,
    pub(super) arguments: &'a Map<String, Value>,
    pub(super) text: Option<Cow<'a, str>>,
}

/// An action that has begun.
pub(super) struct Entry {
    tools: Tools,
    tool: &'static Tool,
    pub(super) arguments: Map<String, Value>,
    pub(super) caller: Caller,
    began: Instant,
    /// When it was over, how long it took, and its session.
    over: Option<(SystemTime, Duration, Option<Located>)>,
    /// Number of the note of its start.
    started: OnceLock<u64>,
    is_open: bool,
}

impl Entry {
    pub(super) fn begin(tools: &Tools, tool: &'static Tool, arguments: Map<String, Value>, caller: Caller) -> Self {
        let (tools, is_open) = (tools.clone(), tools.traffic.is_on() && tool.format == Format::Json);
        Self { tools, tool, arguments, caller, began: Instant::now(), over: None, started: OnceLock::new(), is_open }
    }

    /// Notes an action that is about to type.
    pub(super) fn note_start(&self, action: &Action, located: Option<&Located>) {
        if self.is_open && action.effect == Effect::Type {
            let arguments = &self.arguments;
            let text = command_text(self.tool, Some(action), arguments).map(Cow::Owned);
            let typing = Typing { action: action.name, arguments, text };
            let noted = self.tools.note_start(typing, &self.caller, located);
            noted.map(|number| self.started.set(number));
        }
    }

    /// It is over: a reply that has been masked, and what belongs into it or is shown in its place.
    pub(super) fn over(mut self, reply: Reply, shown: Shown, located: Option<Located>) -> Done {
        self.over = Some((SystemTime::now(), self.began.elapsed(), located));
        let promise = self.is_open.then(|| self.tools.traffic.promise());
        Done { reply, shown, entry: self, promise }
    }

    fn draft(&self, reply: Option<&Reply>, screen: Option<&Screen>) -> Draft {
        let located = match &self.over {
            Some((_, _, located)) => located.clone(),
            None => self.tools.session_of(&self.arguments, reply),
        };
        let Self { tools, tool, arguments, caller, began, .. } = self;
        let mut draft = Call { tools, tool, arguments, caller, began: *began, located }.draft(reply, screen);
        if let Some((at, duration, _)) = self.over {
            (draft.event.at, draft.event.duration) = (at, duration);
        }
        draft.started = self.started.get().copied();
        draft
    }
}

/// What an action shows besides the fields of its reply.
pub enum Shown {
    /// Nothing.
    Nothing,
    /// The rest of its fields.
    Screen(Box<Screen>),
    /// A text in place of fields.
    Text(TextReply),
}

impl Shown {
    fn screen(&self) -> Option<&Screen> {
        match self {
            Self::Screen(screen) => Some(screen),
            Self::Nothing | Self::Text(_) => None,
        }
    }
}

/// An action that is over, and not yet in the record. Who reads the record waits for it.
pub struct Done {
    /// What it came to, without what it shows besides.
    pub reply: Reply,
    /// What it shows besides.
    pub shown: Shown,
    entry: Entry,
    promise: Option<Promise>,
}

impl Done {
    /// Records it.
    pub fn record(mut self) {
        self.close();
    }

    /// Records it, and puts everything into the reply.
    pub(super) fn into_reply(mut self) -> Reply {
        self.close();
        match self.shown {
            Shown::Nothing => {}
            Shown::Screen(screen) => self.reply.body.extend(screen.fields()),
            Shown::Text(shown) => {
                drop(self.reply.body.insert("text".to_owned(), Value::String(shown.text.into_string())))
            }
        }
        self.reply
    }

    fn close(&mut self) {
        if let Some(promise) = self.promise.take() {
            self.entry.is_open = false;
            let draft = self.entry.draft(Some(&self.reply), self.shown.screen());
            self.entry.tools.traffic.keep(&promise, draft);
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if self.is_open {
            self.tools.traffic.emit(self.draft(None, None));
        }
    }
}

/// What the record contains of a call besides its reply.
struct Call<'a> {
    tools: &'a Tools,
    tool: &'static Tool,
    arguments: &'a Map<String, Value>,
    caller: &'a Caller,
    began: Instant,
    /// Its session.
    located: Option<Located>,
}

impl Call<'_> {
    /// The call as the record has it. Without a reply its caller went away.
    fn draft(self, reply: Option<&Reply>, screen: Option<&Screen>) -> Draft {
        let Self { tools, tool, arguments, caller, began, located } = self;
        let name = tool.selected(arguments).ok().flatten().unwrap_or_default();
        let action = tool.action(&name);
        let id = session_id(arguments, reply);
        let mut event = Event::new(name, id.unwrap_or_default());
        event.duration = began.elapsed();
        event.agent_id = caller.identity(arguments, tools.config.identity.agent_id.as_deref());
        event.owner_session_id.clone_from(&tools.config.identity.session_id);
        event.cli_type.clone_from(&tools.config.identity.cli_type);
        let whose = about_session(tools, located, &mut event);
        let is_typing = action.is_some_and(|action| action.effect == Effect::Type);
        let command = command_text(tool, action, arguments);
        let is_hidden = is_typing
            && match &whose {
                Some(Whose::Ours(session)) => {
                    session.typed_hidden_since(began)
                        || (reply.is_none_or(|reply| reply.is_error) && session.hides_input())
                }
                Some(Whose::Desktop(desktop)) => desktop.asks_for_secret(),
                None => false,
            };
        let hidden = is_hidden.then(|| Hidden { parts: typed_parts(action, arguments) });
        event.timeout_ms = timeout(tools, action, arguments);
        match reply {
            Some(reply) => about_reply(reply, screen, action, &mut event),
            None => {
                event.success = false;
                event.error_code = Some(Masked::literal("CALLER_GONE"));
                event.error_message =
                    Some(Masked::literal("the caller went away before the answer; a command that runs goes on"));
                event.result.clone_from(&event.error_message);
            }
        }
        let response_chars = if action.is_some_and(Action::only_looks) { LOOK_CHARS } else { TEXT_CHARS };
        let redactor = match whose {
            Some(Whose::Ours(session)) => session.redactor(),
            _ => Arc::clone(&tools.redactor),
        };
        let is_for_journal = event.session_source.is_some();
        let command = command.as_deref().map(given);
        Draft { command, hidden, response_chars, is_for_journal, ..Draft::new(event, redactor) }
    }
}

impl Tools {
    /// Notes that something is typed from now on. The text is left out where the terminal hides what is typed.
    pub(super) fn note_start(&self, typing: Typing<'_>, caller: &Caller, located: Option<&Located>) -> Option<u64> {
        self.traffic.begin(|| {
            let own = || Arc::clone(&self.redactor);
            let (source, redactor, is_hidden) = match located {
                Some(Located::Local(session)) => (Some("local"), session.redactor(), session.hides_input()),
                Some(Located::Desktop(record)) => {
                    (Some("desktop"), own(), self.bridges.session(record).asks_for_secret())
                }
                None => (None, own(), false),
            };
            let Typing { action, arguments, text } = typing;
            let text = text.filter(|_| !is_hidden);
            Start {
                at: SystemTime::now(),
                session_id: session_id(arguments, None).unwrap_or_default().to_owned(),
                action: action.to_owned(),
                agent_id: caller.identity(arguments, self.config.identity.agent_id.as_deref()),
                command: text.as_deref().map(|text| redactor.redact(whole_words(text, START_BYTES)).into_owned()),
                command_size: text.map_or(0, |text| text.chars().count() as u64),
                session_source: source.map(str::to_owned),
            }
        })
    }

    /// The session that a call names, or that its reply names: one that was found or made.
    pub(super) fn session_of(&self, arguments: &Map<String, Value>, reply: Option<&Reply>) -> Option<Located> {
        self.locate(&SessionId::named(session_id(arguments, reply)?)).ok()
    }
}

/// The session that is meant, or was found or made.
fn session_id<'a>(arguments: &'a Map<String, Value>, reply: Option<&'a Reply>) -> Option<&'a str> {
    let given = arguments.get("session_id").and_then(Value::as_str).map(str::trim).filter(|id| !id.is_empty());
    let body = reply.map(|reply| &reply.body);
    let replied = |name: &str| body.and_then(|body| body.get(name)?.as_str());
    given.or_else(|| replied("session_id")).or_else(|| replied("resolved_session_id"))
}

/// The session of an action.
enum Whose {
    Ours(Session),
    Desktop(Desktop),
}

/// Adds what is known of the session, if there is one.
fn about_session(tools: &Tools, located: Option<Located>, event: &mut Event) -> Option<Whose> {
    let (owner, label, cli_type, source, session) = match located? {
        Located::Local(session) => {
            let (owner, label) = session.with_owner(|owner| (owner.session_id.clone(), owner.label.clone()));
            (owner, label, tools.registry.cli_type(session.id()), "local", Whose::Ours(session))
        }
        Located::Desktop(record) => {
            let desktop = tools.bridges.session(&record);
            (record.owner_session_id, record.label, Some(record.cli_type), "desktop", Whose::Desktop(desktop))
        }
    };
    event.owner_session_id = owner.or(event.owner_session_id.take());
    event.label = label;
    event.cli_type = cli_type.or(event.cli_type.take());
    event.session_source = Some(source.to_owned());
    Some(session)
}

/// The texts that an action types, each by itself.
fn typed_parts(action: Option<&Action>, arguments: &Map<String, Value>) -> Vec<String> {
    let mut parts = Vec::new();
    for param in action.into_iter().flat_map(|action| action.params) {
        let Some(given) = arguments.get(param.name) else { continue };
        match (param.recorded, given) {
            (Recorded::Typed, Value::String(text)) => parts.push(text.clone()),
            (Recorded::Keys, given) => add_typed_texts(given, &mut parts),
            _ => {}
        }
    }
    parts
}

/// The texts among names of keys.
fn add_typed_texts(given: &Value, parts: &mut Vec<String>) {
    match given {
        Value::String(text) if !is_key(text) => parts.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| add_typed_texts(value, parts)),
        Value::Object(fields) => fields.values().for_each(|value| add_typed_texts(value, parts)),
        _ => {}
    }
}

/// The name of a key is no secret.
fn is_key(text: &str) -> bool {
    text.chars().nth(1).is_some() && Key::parse(text).is_ok()
}

/// What was typed or asked for.
fn command_text(tool: &Tool, action: Option<&Action>, arguments: &Map<String, Value>) -> Option<String> {
    let given = |name: &str| arguments.get(name).filter(|value| !value.is_null()).map(shown);
    if let Some(action) = action.filter(|action| action.effect == Effect::Type) {
        let is_typed = |recorded| matches!(recorded, Recorded::Typed | Recorded::Keys | Recorded::Gesture);
        let typed = action.params.iter().filter(|param| is_typed(param.recorded));
        let parts: Vec<_> = typed.filter_map(|param| given(param.name)).collect();
        return (!parts.is_empty()).then(|| parts.join(" "));
    }
    let is_omitted = |name: &str| {
        let params = || tool.actions.iter().flat_map(|action| action.params);
        let is_declared = || params().any(|param| param.name == name && param.recorded == Recorded::Omitted);
        [ACTION, AS_AGENT].contains(&name) || is_declared()
    };
    let mut list = String::with_capacity(PARAM_BYTES);
    for (name, value) in arguments.iter().filter(|(name, value)| !value.is_null() && !is_omitted(name)) {
        let gap = if list.is_empty() { "" } else { " " };
        let value = shown(value);
        [gap, name, "=", whole_words(&value, PARAM_BYTES)].iter().for_each(|part| list.push_str(part));
    }
    (!list.is_empty()).then_some(list)
}

/// A value as a person reads it.
fn shown(value: &Value) -> Cow<'_, str> {
    value.as_str().map_or_else(|| value.to_string().into(), Cow::Borrowed)
}

/// What was given with its true size, but not all of it.
fn given(text: &str) -> GivenText {
    let kept = text[..text.floor_char_boundary(MAX_BYTES)].to_owned();
    GivenText { text: kept, size: text.chars().count() as u64 }
}

/// A text of a reply with its true size, but not all of it.
fn clipped(text: MaskedStr<'_>) -> SizedText {
    let kept = text.part(0..text.floor_char_boundary(MAX_BYTES)).to_masked();
    SizedText { kept, size: text.chars().count() as u64 }
}

/// How long an action waits at most. Where no timeout is given, that of an action that types belongs to the record: its
/// command may go on after it.
fn timeout(tools: &Tools, action: Option<&Action>, arguments: &Map<String, Value>) -> Option<u64> {
    let given = arguments.get("timeout_ms").and_then(|value| number("timeout_ms", value).ok());
    let preset = || match action.filter(|action| action.effect == Effect::Type)?.timeout()?.preset {
        Preset::Number(number) => Some(number.value(&tools.config)),
        _ => None,
    };
    given.or_else(preset)
}

/// What an answer, or its details, may say about an action. Found in one pass: to look each of them up by its name takes
/// longer than all the rest of an entry.
#[derive(Default)]
struct ReplyFields<'a> {
    error_code: Option<&'a Value>,
    message: Option<&'a Value>,
    error: Option<&'a Value>,
    timed_out: Option<&'a Value>,
    output: Option<&'a Value>,
    text: Option<&'a Value>,
    tail: Option<&'a Value>,
    partial_output: Option<&'a Value>,
    exit_code: Option<&'a Value>,
    command_id: Option<&'a Value>,
    evidence_id: Option<&'a Value>,
    session_id: Option<&'a Value>,
    count: Option<&'a Value>,
    rule: Option<&'a Value>,
    rule_id: Option<&'a Value>,
    pattern: Option<&'a Value>,
    details: Option<&'a Value>,
}

impl<'a> ReplyFields<'a> {
    fn of(fields: &'a Map<String, Value>) -> Self {
        let mut found = Self::default();
        for (name, value) in fields {
            let place = match name.as_str() {
                "error_code" => &mut found.error_code,
                "message" => &mut found.message,
                "error" => &mut found.error,
                "timed_out" => &mut found.timed_out,
                "output" => &mut found.output,
                "text" => &mut found.text,
                "tail" => &mut found.tail,
                "partial_output" => &mut found.partial_output,
                "exit_code" => &mut found.exit_code,
                "command_id" => &mut found.command_id,
                "evidence_id" => &mut found.evidence_id,
                "session_id" => &mut found.session_id,
                "count" => &mut found.count,
                "rule" => &mut found.rule,
                "rule_id" => &mut found.rule_id,
                "pattern" => &mut found.pattern,
                "details" => &mut found.details,
                _ => continue,
            };
            *place = Some(value);
        }
        found
    }
}

/// What came of it.
fn about_reply(reply: &Reply, screen: Option<&Screen>, action: Option<&Action>, event: &mut Event) {
    let fields = ReplyFields::of(&reply.body);
    let details = fields.details.and_then(Value::as_object).map(ReplyFields::of).unwrap_or_default();
    event.success = !reply.is_error;
    if reply.is_error {
        event.error_code = fields.error_code.and_then(text_of);
        event.error_message = [fields.message, fields.error].into_iter().flatten().find_map(text_of);
    }
    let is_timeout = event.error_code.as_deref().is_some_and(|code| code.ends_with("_TIMEOUT"));
    event.timed_out = is_timeout || fields.timed_out.and_then(Value::as_bool).unwrap_or(false);
    event.blocked = reply.is(ErrorCode::DangerousCommandBlocked);
    if event.blocked {
        event.blocked_pattern =
            [details.rule, details.rule_id, details.pattern].into_iter().flatten().find_map(text_of);
    }
    let texts = [fields.output, fields.text, fields.tail, details.partial_output];
    let text = || texts.into_iter().flatten().find_map(shown_text).map(clipped);
    event.response = screen.map(|screen| clipped(screen.text().as_masked())).or_else(text);
    event.exit_code = fields.exit_code.or(details.exit_code).and_then(Value::as_i64);
    event.command_id = [fields.command_id, details.command_id].into_iter().flatten().find_map(text_of);
    event.evidence_id = fields.evidence_id.and_then(text_of);
    event.result = Some(summary(event, action, &fields));
}

/// What came of it, in a few words.
fn summary(event: &Event, action: Option<&Action>, fields: &ReplyFields<'_>) -> Masked {
    let message = event.error_message.clone();
    if let Some(code) = &event.error_code {
        return Masked::concat(&[code, &": ", &message.unwrap_or_default()]);
    }
    if let Some(message) = message {
        return message;
    }
    let mut parts = Vec::new();
    parts.extend(event.exit_code.map(|code| Masked::concat(&[&"exit code ", &code])));
    parts.extend(event.response.as_ref().map(|response| Masked::concat(&[&response.size, &" characters"])));
    parts.extend(fields.count.and_then(Value::as_u64).map(|count| Masked::concat(&[&count, &" found"])));
    let names_no_session = |action: &Action| !action.params.iter().any(|param| param.name == "session_id");
    if action.is_some_and(|action| action.effect == Effect::Change && names_no_session(action)) {
        parts.extend(fields.session_id.and_then(text_of).map(|id| Masked::concat(&[&"started ", &id])));
    }
    if event.timed_out {
        parts.push(Masked::literal("timed out"));
    }
    match parts.is_empty() {
        true => Masked::literal("done"),
        false => Masked::join(parts.iter().map(Masked::as_masked), ", "),
    }
}

/// The redactor for what belongs to no session: it knows the server's own secrets.
pub(super) fn own_redactor(config: &crate::config::Config) -> Arc<Redactor> {
    let secret = config.internal_secret.as_ref().map(|secret| secret.reveal().to_owned());
    let variables = config.inherited.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
    Arc::new(Redactor::switched(config.redact).with_literals(secret).with_variables(variables))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn a_caller_is_known_by_the_best_that_is_said() {
        let said = map(json!({ "as_agent": " worker\n7 " }));
        let client = Caller { client: Some("claude-code".to_owned()), ..Caller::default() };
        let named = Caller { agent: Some("lead".to_owned()), ..client.clone() };
        for (caller, arguments, expected) in [
            (&named, &said, Some("lead")),
            (&client, &said, Some("worker7")),
            (&client, &Map::new(), Some("claude-code")),
            (&Caller::default(), &Map::new(), Some("own")),
        ] {
            assert_eq!(caller.identity(arguments, Some("own")).as_deref(), expected);
        }
        assert_eq!(Caller::default().identity(&Map::new(), None), None);
    }

    #[test]
    fn what_was_asked_for_is_recorded_in_a_line() {
        for (arguments, expected) in [
            (json!({ "action": "talk", "command": "ls\nid" }), Some("ls\nid")),
            (json!({ "action": "send_line", "data": "y" }), Some("y")),
            (
                json!({ "action": "send_keys", "text": "q", "keys": ["Ctrl-C", { "text": "x" }] }),
                Some("q [\"Ctrl-C\",{\"text\":\"x\"}]"),
            ),
            (
                json!({ "action": "term_read", "session_id": "s", "mode": "tail", "max_lines": 5 }),
                Some("max_lines=5 mode=tail"),
            ),
            (json!({ "action": "create", "env": { "A": "secret" }, "shell": "sh" }), Some("shell=sh")),
            (json!({ "action": "list", "as_agent": "a" }), None),
        ] {
            let arguments = map(arguments);
            let action = arguments["action"].as_str().expect("an action");
            let action = DEFAULT_TOOL.action(action);
            assert_eq!(command_text(DEFAULT_TOOL, action, &arguments).as_deref(), expected);
        }
    }
}
