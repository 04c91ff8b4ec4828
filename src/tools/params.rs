//! Reading the parameters of a call, forgivingly where the meaning is clear.
//!
//! `null` is absent; numbers and booleans may be strings; what is above a cap is clamped and told; names that the
//! action does not know are told. What cannot be meant is an error that names the parameter.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::ids::CommandId;

/// What to do.
pub(super) const ACTION: &str = "action";
/// Who asks.
pub(super) const AS_AGENT: &str = "as_agent";

/// The parameters of one call.
pub(super) struct Params<'a> {
    given: &'a Map<String, Value>,
    known: Option<&'static [&'static str]>,
    clamped: Map<String, Value>,
}

impl<'a> Params<'a> {
    pub(super) fn new(given: &'a Map<String, Value>) -> Self {
        Self { given, known: None, clamped: Map::new() }
    }

    /// The name of the action, as it is compared.
    pub(super) fn action(&self) -> Result<String> {
        let name = match self.given.get(ACTION) {
            None | Some(Value::Null) => "",
            Some(Value::String(name)) => name.trim(),
            Some(other) => return Err(wrong_type("action", "a string", other)),
        };
        if name.is_empty() { Err(Error::MissingParam("action")) } else { Ok(name.to_lowercase()) }
    }

    /// All that was given.
    pub(super) fn arguments(&self) -> &'a Map<String, Value> {
        self.given
    }

    /// Every action may be told who asks.
    pub(super) fn check_agent(&self) -> Result<()> {
        match self.given.get(AS_AGENT) {
            None | Some(Value::Null | Value::String(_)) => Ok(()),
            Some(other) => Err(wrong_type(AS_AGENT, "a string", other)),
        }
    }

    /// Says which names the action knows.
    pub(super) fn expect(&mut self, known: &'static [&'static str]) {
        self.known = Some(known);
    }

    /// What the caller is told about the parameters, whatever comes of the call.
    pub(super) fn add_notes(self, body: &mut Map<String, Value>) {
        let known = self.known;
        let is_ignored =
            |name: &str| ![ACTION, AS_AGENT].contains(&name) && known.is_some_and(|known| !known.contains(&name));
        let ignored: Vec<_> = self.given.keys().filter(|name| is_ignored(name)).collect();
        if !ignored.is_empty() {
            body.insert("ignored_params".to_owned(), json!(ignored));
        }
        if !self.clamped.is_empty() {
            body.insert("clamped".to_owned(), Value::Object(self.clamped));
        }
    }

    /// The value, if one is given.
    pub(super) fn value(&self, name: &str) -> Option<&'a Value> {
        debug_assert!(self.known.is_some_and(|known| known.contains(&name)), "{name} is not in the list of its action");
        self.given.get(name).filter(|value| !value.is_null())
    }

    /// A string, which may be empty.
    pub(super) fn any_text(&self, name: &str) -> Result<Option<&'a str>> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(name, "a string", other)),
        }
    }

    /// A string; an empty one is absent.
    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>> {
        Ok(self.any_text(name)?.filter(|text| !text.is_empty()))
    }

    /// A string that must be there.
    pub(super) fn required(&self, name: &'static str) -> Result<&'a str> {
        self.text(name)?.ok_or(Error::MissingParam(name))
    }

    /// A number that is not negative.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>> {
        self.value(name).map(|value| number(name, value)).transpose()
    }

    /// A number of at most `cap`.
    pub(super) fn capped(&mut self, name: &str, cap: u64) -> Result<Option<u64>> {
        let Some(given) = self.number(name)? else { return Ok(None) };
        if given > cap {
            self.clamped.insert(name.to_owned(), json!({ "given": self.given.get(name), "used": cap }));
        }
        Ok(Some(given.min(cap)))
    }

    /// A count of at most `cap`.
    pub(super) fn count(&mut self, name: &str, default: usize, cap: usize) -> Result<usize> {
        Ok(self.capped(name, cap as u64)?.map_or(default, |given| given as usize))
    }

    /// A time in milliseconds of at most `cap`.
    pub(super) fn millis(&mut self, name: &str, default: Duration, cap: Duration) -> Result<Duration> {
        Ok(self.capped(name, cap.as_millis() as u64)?.map_or(default, Duration::from_millis))
    }

    /// Yes or no.
    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool> {
        let Some(value) = self.value(name) else { return Ok(default) };
        let word = match value {
            Value::Bool(flag) => return Ok(*flag),
            Value::String(word) => word.trim().to_lowercase(),
            Value::Number(number) => number.to_string(),
            other => return Err(wrong_type(name, "true or false", other)),
        };
        match word.as_str() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(wrong_type(name, "true or false", value)),
        }
    }

    /// One of several words.
    pub(super) fn choice<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<Option<T>> {
        let Some(given) = self.text(name)? else { return Ok(None) };
        let word = given.trim().to_lowercase();
        match words.iter().find(|(known, _)| *known == word) {
            Some((_, meaning)) => Ok(Some(*meaning)),
            None => {
                let known: Vec<_> = words.iter().map(|(word, _)| format!("'{word}'")).collect();
                Err(Error::invalid(name, format!("{given}. Must be {}", one_of(&known))))
            }
        }
    }

    /// A list of strings; also as JSON in a string.
    pub(super) fn strings(&self, name: &str) -> Result<Option<Vec<String>>> {
        let Some(value) = self.structured(name) else { return Ok(None) };
        let Value::Array(items) = value.as_ref() else {
            return Err(wrong_type(name, "a list of strings", &value));
        };
        let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
        texts.collect::<Option<_>>().map(Some).ok_or_else(|| Error::invalid(name, "must be a list of strings"))
    }

    /// An object; also as JSON in a string.
    pub(super) fn object(&self, name: &str) -> Result<Option<Map<String, Value>>> {
        match self.structured(name).map(Cow::into_owned) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(other) => Err(wrong_type(name, "an object", &other)),
        }
    }

    /// Some clients write a list or an object as JSON in a string.
    fn structured(&self, name: &str) -> Option<Cow<'a, Value>> {
        let value = self.value(name)?;
        let inner = value.as_str().and_then(|text| serde_json::from_str(text).ok());
        Some(inner.map_or(Cow::Borrowed(value), Cow::Owned))
    }

    /// The number of a command, as `cmd_7` or 7.
    pub(super) fn command_id(&self, name: &str) -> Result<Option<CommandId>> {
        let id = match self.value(name) {
            None => return Ok(None),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(Value::Number(number)) => number.as_u64().map(CommandId),
            Some(_) => None,
        };
        id.map(Some).ok_or_else(|| Error::invalid(name, "must be the id of a command, such as cmd_1"))
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

/// `a, b or c`.
fn one_of(words: &[String]) -> String {
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}
