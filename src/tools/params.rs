//! Reading the parameters of a call as their action declares them, forgivingly where the meaning is clear.
//!
//! `null` is absent; numbers and booleans may be strings; a value above its cap is clamped and the reply says so; names
//! that the action does not declare are listed in the reply. Any other value is an error that names the parameter.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use kpty_guard::Redactor;
use serde_json::{Map, Value, json};

use super::Caller;
use super::audit::Entry;
use super::schema::one_of;
use super::spec::{Choice, Param, Preset, Selector};
use crate::config::{Config, LONGEST_TALK};
use crate::error::{Error, Result};
use crate::ids::CommandId;
use crate::registry::Located;

/// What to do.
pub(super) const ACTION: &str = "action";
/// Who asks.
pub(super) const AS_AGENT: &str = "as_agent";

/// The parameters of one call.
pub(super) struct Params<'a> {
    given: &'a Map<String, Value>,
    caller: &'a Caller,
    config: &'a Config,
    declared: Option<&'static [Param]>,
    clamped: Map<String, Value>,
    /// The call's place in the record, if it has one.
    pub(super) entry: Option<&'a Entry>,
    /// The session that the call names, once it was looked up; `None` inside for one that nobody knows.
    pub(super) located: OnceCell<Option<Located>>,
}

impl<'a> Params<'a> {
    pub(super) fn new(given: &'a Map<String, Value>, caller: &'a Caller, config: &'a Config) -> Self {
        Self { given, caller, config, declared: None, clamped: Map::new(), entry: None, located: OnceCell::new() }
    }

    /// All that was given.
    pub(super) fn arguments(&self) -> &'a Map<String, Value> {
        self.given
    }

    /// Who calls.
    pub(super) fn caller(&self) -> &'a Caller {
        self.caller
    }

    /// Every action takes the name of who asks.
    pub(super) fn check_agent(&self) -> Result<()> {
        match self.given.get(AS_AGENT) {
            None | Some(Value::Null | Value::String(_)) => Ok(()),
            Some(other) => Err(wrong_type(AS_AGENT, "a string", other)),
        }
    }

    /// Sets the parameters that the action declares.
    pub(super) fn expect(&mut self, declared: &'static [Param]) {
        self.declared = Some(declared);
    }

    /// Leaves the notes to another server that got the parameters as they are.
    pub(super) fn leave_notes(&mut self) {
        self.declared = None;
    }

    /// Adds to a reply, successful or not, what was ignored and what was clamped.
    pub(super) fn add_notes(
        self,
        selector: Selector,
        body: &mut Map<String, Value>,
        redactor: impl FnOnce() -> Arc<Redactor>,
    ) {
        let is_declared =
            |name: &str| self.declared.is_none_or(|declared| declared.iter().any(|param| param.name == name));
        let selects = |name: &str| matches!(selector, Selector::Param(param) if param == name);
        let is_ignored = |name: &str| name != AS_AGENT && !selects(name) && !is_declared(name);
        let ignored: Vec<_> = self.given.keys().filter(|name| is_ignored(name)).collect();
        if !ignored.is_empty() {
            let redactor = redactor();
            let ignored: Vec<_> = ignored.into_iter().map(|name| redactor.mask_str(name)).collect();
            body.insert("ignored_params".to_owned(), json!(ignored));
        }
        if !self.clamped.is_empty() {
            body.insert("clamped".to_owned(), Value::Object(self.clamped));
        }
    }

    /// The value, if one is given.
    pub(super) fn value(&self, param: &Param) -> Option<&'a Value> {
        let is_declared = |declared: &[Param]| declared.iter().any(|known| known.name == param.name);
        debug_assert!(self.declared.is_some_and(is_declared), "{} is not declared by its action", param.name);
        self.given.get(param.name).filter(|value| !value.is_null())
    }

    /// A string, which may be empty.
    pub(super) fn any_text(&self, param: &Param) -> Result<Option<&'a str>> {
        match self.value(param) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(param.name, "a string", other)),
        }
    }

    /// A string; an empty one is absent.
    pub(super) fn text(&self, param: &Param) -> Result<Option<&'a str>> {
        Ok(self.any_text(param)?.filter(|text| !text.is_empty()))
    }

    /// A string that must be there.
    pub(super) fn required(&self, param: &Param) -> Result<&'a str> {
        self.text(param)?.ok_or(Error::MissingParam(param.name))
    }

    /// A string; the declared one where none is given.
    pub(super) fn word(&self, param: &Param) -> Result<&'a str> {
        let preset = match param.preset {
            Preset::Word(word) => word,
            _ => "",
        };
        Ok(self.text(param)?.unwrap_or(preset))
    }

    /// A number that was given, clamped to the cap.
    pub(super) fn number(&mut self, param: &Param) -> Result<Option<u64>> {
        let Some(given) = self.value(param).map(|value| number(param.name, value)).transpose()? else {
            return Ok(None);
        };
        let cap = self.cap(param);
        if given > cap {
            self.clamped.insert(param.name.to_owned(), json!({ "given": self.given.get(param.name), "used": cap }));
        }
        Ok(Some(given.min(cap)))
    }

    /// A count; the declared one where none is given.
    pub(super) fn count(&mut self, param: &Param) -> Result<usize> {
        let preset = self.preset(param);
        Ok(self.number(param)?.unwrap_or(preset) as usize)
    }

    /// A time that was given.
    pub(super) fn given_time(&mut self, param: &Param) -> Result<Option<Duration>> {
        Ok(self.number(param)?.map(Duration::from_millis))
    }

    /// A time; the declared one where none is given.
    pub(super) fn time(&mut self, param: &Param) -> Result<Duration> {
        let preset = self.preset(param);
        Ok(self.given_time(param)?.unwrap_or(Duration::from_millis(preset)))
    }

    fn cap(&self, param: &Param) -> u64 {
        let with_progress = param.cap_with_progress.filter(|_| self.caller.can_show_progress);
        with_progress.or(param.cap).map_or(u64::MAX, |cap| cap.value(self.config))
    }

    /// A time in seconds; the declared one where none is given.
    pub(super) fn seconds(&mut self, param: &Param) -> Result<Option<Duration>> {
        let given = match self.value(param) {
            None => None,
            Some(value) => Some(fraction(param.name, value)?),
        };
        let preset = match param.preset {
            Preset::Number(number) => Some(number.value(self.config) as f64),
            _ => None,
        };
        let Some(seconds) = given.or(preset) else { return Ok(None) };
        let cap = self.cap(param);
        if seconds > cap as f64 {
            self.clamped.insert(param.name.to_owned(), json!({ "given": self.given.get(param.name), "used": cap }));
        }
        Ok(Some(Duration::from_secs_f64(seconds.min(cap as f64).min(LONGEST_TALK.as_secs_f64()))))
    }

    /// The declared number where none is given.
    pub(super) fn preset(&self, param: &Param) -> u64 {
        match param.preset {
            Preset::Number(number) => number.value(self.config),
            _ => 0,
        }
    }

    /// True or false; as declared where it is not given.
    pub(super) fn flag(&self, param: &Param) -> Result<bool> {
        let Some(value) = self.value(param) else { return Ok(matches!(param.preset, Preset::Flag(true))) };
        let word = match value {
            Value::Bool(flag) => return Ok(*flag),
            Value::String(word) => word.trim().to_lowercase(),
            Value::Number(number) => number.to_string(),
            other => return Err(wrong_type(param.name, "true or false", other)),
        };
        match word.as_str() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(wrong_type(param.name, "true or false", value)),
        }
    }

    /// What one of several words means; the declared word where none is given, if there is one.
    pub(super) fn choice<T: Copy>(&self, choice: &Choice<T>) -> Result<Option<T>> {
        let meaning = |word: &str| choice.words.iter().find(|(known, _)| *known == word).map(|(_, meaning)| *meaning);
        let name = choice.param.name;
        let Some(given) = self.text(&choice.param)? else {
            return Ok(match choice.param.preset {
                Preset::Word(word) => meaning(word),
                _ => None,
            });
        };
        meaning(&given.trim().to_lowercase()).map(Some).ok_or_else(|| {
            let known: Vec<_> = choice.words.iter().map(|(word, _)| format!("'{word}'")).collect();
            Error::invalid(name, format!("{given}. Must be {}", one_of(&known)))
        })
    }

    /// The same for a choice that is required or has a declared word.
    pub(super) fn chosen<T: Copy>(&self, choice: &Choice<T>) -> Result<T> {
        self.choice(choice)?.ok_or(Error::MissingParam(choice.param.name))
    }

    /// A list of strings; also as JSON in a string.
    pub(super) fn strings(&self, param: &Param) -> Result<Option<Vec<String>>> {
        let name = param.name;
        let Some(value) = self.structured(param) else { return Ok(None) };
        let Value::Array(items) = value.as_ref() else {
            return Err(wrong_type(name, "a list of strings", &value));
        };
        let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
        texts.collect::<Option<_>>().map(Some).ok_or_else(|| Error::invalid(name, "must be a list of strings"))
    }

    /// An object; also as JSON in a string.
    pub(super) fn object(&self, param: &Param) -> Result<Option<Map<String, Value>>> {
        match self.structured(param).map(Cow::into_owned) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(other) => Err(wrong_type(param.name, "an object", &other)),
        }
    }

    /// Some clients write a list or an object as JSON in a string.
    fn structured(&self, param: &Param) -> Option<Cow<'a, Value>> {
        let value = self.value(param)?;
        let inner = value.as_str().and_then(|text| serde_json::from_str(text).ok());
        Some(inner.map_or(Cow::Borrowed(value), Cow::Owned))
    }

    /// The number of a command, as `cmd_7` or 7.
    pub(super) fn command_id(&self, param: &Param) -> Result<Option<CommandId>> {
        let id = match self.value(param) {
            None => return Ok(None),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(Value::Number(number)) => number.as_u64().map(CommandId),
            Some(_) => None,
        };
        id.map(Some).ok_or_else(|| Error::invalid(param.name, "must be the id of a command, such as cmd_1"))
    }
}

/// A number that is not negative, also as a string or as a whole fraction.
pub(super) fn number(name: &str, value: &Value) -> Result<u64> {
    let refused = || wrong_type(name, "a whole number", value);
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.trim().to_owned(),
        _ => return Err(refused()),
    };
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let Ok(number) = text.parse::<f64>() else { return Err(refused()) };
    if number < 0.0 {
        return Err(Error::invalid(name, format!("must not be negative, and is {text}")));
    }
    // What is too large for the type is above every cap too.
    if number.is_finite() && number.fract() == 0.0 { Ok(number as u64) } else { Err(refused()) }
}

/// A number that is not negative, with or without a fraction, also as a string.
fn fraction(name: &str, value: &Value) -> Result<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number
        .filter(|number| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| wrong_type(name, "a number of seconds", value))
}

/// The error for a value that is of another kind.
pub(super) fn wrong_type(name: &str, wanted: &str, value: &Value) -> Error {
    let found = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        // Half a secret would be none to a redactor.
        Value::String(text) if text.len() > 40 => format!("a text of {} characters", text.chars().count()),
        Value::String(text) => format!("{text:?}"),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    Error::invalid(name, format!("must be {wanted}, and is {found}"))
}
