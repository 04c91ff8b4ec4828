//! Parses one message of a plain client, and supplies what it omits.
//!
//! Knows what JSON-RPC requires and what plain clients omit; sends nothing.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value, json};

/// Protocol version assumed for a plain client that names none.
const OLDEST_VERSION: &str = "2024-11-05";
/// Key that identifies a message of the stateless protocol.
pub(super) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// A protocol error with the id it answers.
#[derive(Debug, PartialEq)]
pub(super) struct Fault {
    pub(super) id: Value,
    pub(super) code: i32,
    pub(super) message: String,
}

impl Fault {
    fn request(id: Value, problem: &str) -> Self {
        Self { id, code: -32600, message: format!("Invalid Request: {problem}") }
    }

    fn params(id: Value, problem: &str) -> Self {
        Self { id, code: -32602, message: format!("Invalid params: {problem}") }
    }
}

/// A parsed message.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    /// A request; complete as the protocol requires.
    Request(RequestMessage),
    /// A notification, or a response to a request that the server never sends.
    OneWay,
}

/// A request.
#[derive(Debug, PartialEq)]
pub(super) struct RequestMessage {
    /// A string or an integer.
    pub(super) id: Value,
    pub(super) method: String,
    /// Parameters; empty if omitted.
    pub(super) params: Map<String, Value>,
    others: Map<String, Value>,
}

impl RequestMessage {
    /// Returns whether the message uses the protocol without sessions.
    pub(super) fn is_stateless(&self) -> bool {
        self.params.get("_meta").and_then(|meta| meta.get(VERSION_KEY)).is_some()
    }

    /// Serializes the message for the library.
    pub(super) fn into_json(self) -> Value {
        let mut message = self.others;
        message.insert("jsonrpc".to_owned(), "2.0".into());
        message.insert("id".to_owned(), self.id);
        message.insert("method".to_owned(), self.method.into());
        if !self.params.is_empty() {
            message.insert("params".to_owned(), self.params.into());
        }
        Value::Object(message)
    }
}

/// Fields of a message. Parsing into a map would cost more than the whole reading.
#[derive(Default)]
struct Fields {
    jsonrpc: Option<Value>,
    id: Option<Value>,
    method: Option<Value>,
    params: Option<Value>,
    others: Map<String, Value>,
}

/// Name of a field.
enum Name {
    Jsonrpc,
    Id,
    Method,
    Params,
    Other(String),
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl Visitor<'_> for Names {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Name, E> {
                Ok(match name {
                    "jsonrpc" => Name::Jsonrpc,
                    "id" => Name::Id,
                    "method" => Name::Method,
                    "params" => Name::Params,
                    other => Name::Other(other.to_owned()),
                })
            }
        }
        deserializer.deserialize_str(Names)
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AllFields;
        impl<'de> Visitor<'de> for AllFields {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Fields::default();
                while let Some(name) = map.next_key()? {
                    let value = Some(map.next_value()?);
                    match name {
                        Name::Jsonrpc => fields.jsonrpc = value,
                        Name::Id => fields.id = value,
                        Name::Method => fields.method = value,
                        Name::Params => fields.params = value,
                        Name::Other(name) => fields.others.extend(value.map(|value| (name, value))),
                    }
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(AllFields)
    }
}

impl Fields {
    fn read(bytes: &[u8]) -> Result<Self, Fault> {
        let parse_error = |_| Fault { id: Value::Null, code: -32700, message: "Parse error: invalid JSON".to_owned() };
        if bytes.trim_ascii_start().first() == Some(&b'{') {
            return serde_json::from_slice(bytes).map_err(parse_error);
        }
        Err(match serde_json::from_slice(bytes).map_err(parse_error)? {
            Value::Array(_) => Fault::request(Value::Null, "batches are not supported"),
            _ => Fault::request(Value::Null, "a message is an object"),
        })
    }
}

pub(super) fn read_message(bytes: &[u8]) -> Result<Message, Fault> {
    let Fields { jsonrpc, id, method, params, others } = Fields::read(bytes)?;
    let id = id.filter(|id| id.is_string() || id.is_i64());
    if jsonrpc.as_ref().and_then(Value::as_str) != Some("2.0") {
        return Err(Fault::request(id.unwrap_or_default(), "missing jsonrpc 2.0"));
    }
    let method = match method {
        Some(Value::String(method)) => method,
        None if others.contains_key("result") || others.contains_key("error") => return Ok(Message::OneWay),
        _ => return Err(Fault::request(id.unwrap_or_default(), "missing method")),
    };
    if method.starts_with("notifications/") {
        return Ok(Message::OneWay);
    }
    let Some(id) = id else {
        return Err(Fault::request(Value::Null, "a request needs an id, a string or a whole number"));
    };
    let mut params = match params {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(Fault::params(id, "an object is expected")),
    };
    match method.as_str() {
        "initialize" => params = introduction(&params),
        "tools/call" => check_call(&id, &mut params)?,
        _ => {}
    }
    drop_progress_token(&mut params);
    Ok(Message::Request(RequestMessage { id, method, params, others }))
}

/// Completes the client's `initialize` parameters. They are not stored, so invalid ones do no harm.
fn introduction(given: &Map<String, Value>) -> Map<String, Value> {
    let text = |value: Option<&Value>, otherwise: &str| value.and_then(Value::as_str).unwrap_or(otherwise).to_owned();
    let client = given.get("clientInfo");
    let about = |name: &str, otherwise: &str| text(client.and_then(|client| client.get(name)), otherwise);
    let params = json!({
        "protocolVersion": text(given.get("protocolVersion"), OLDEST_VERSION),
        "capabilities": {},
        "clientInfo": { "name": about("name", "unknown"), "version": about("version", "0") },
    });
    match params {
        Value::Object(params) => params,
        _ => Map::new(),
    }
}

fn check_call(id: &Value, params: &mut Map<String, Value>) -> Result<(), Fault> {
    match params.get("name") {
        Some(Value::String(name)) if !name.is_empty() => {}
        _ => return Err(Fault::params(id.clone(), "missing tool name")),
    }
    match params.get("arguments") {
        None | Some(Value::Object(_)) => Ok(()),
        Some(Value::Null) => {
            params.remove("arguments");
            Ok(())
        }
        Some(_) => Err(Fault::params(id.clone(), "arguments is an object")),
    }
}

/// A client that reads one message cannot receive progress.
fn drop_progress_token(params: &mut Map<String, Value>) {
    match params.get_mut("_meta") {
        Some(Value::Object(meta)) => {
            meta.remove("progressToken");
        }
        _ => {
            params.remove("_meta");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, Ok(None)),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Ok(None)),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Ok(Some(json!(1)))),
            (r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":null}"#, Ok(Some(json!("a")))),
            ("", Err((Value::Null, -32700))),
            ("{", Err((Value::Null, -32700))),
            ("\"x\"", Err((Value::Null, -32600))),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, Err((Value::Null, -32600))),
            (r#"{"id":7,"method":"ping"}"#, Err((json!(7), -32600))),
            (r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, Err((json!(7), -32600))),
            (r#"{"jsonrpc":"2.0","id":7}"#, Err((json!(7), -32600))),
            (r#"{"jsonrpc":"2.0","id":7,"method":3}"#, Err((json!(7), -32600))),
            (r#"{"jsonrpc":"2.0","method":"ping"}"#, Err((Value::Null, -32600))),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Err((Value::Null, -32600))),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, Err((Value::Null, -32600))),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, Err((Value::Null, -32600))),
            (r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#, Err((json!(7), -32602))),
            (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#, Err((json!(7), -32602))),
            (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":""}}"#, Err((json!(7), -32602))),
        ] {
            let got = match read_message(text.as_bytes()) {
                Ok(Message::OneWay) => Ok(None),
                Ok(Message::Request(asked)) => Ok(Some(asked.id)),
                Err(Fault { id, code, .. }) => Err((id, code)),
            };
            assert_eq!(got, expected, "{text}");
        }
    }

    fn read(text: &str) -> Value {
        match read_message(text.as_bytes()) {
            Ok(Message::Request(asked)) => asked.into_json(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn what_is_left_out_is_supplied() {
        let message = read(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":7}}"#);
        assert_eq!(message["params"]["protocolVersion"], "2024-11-05");
        assert_eq!(message["params"]["capabilities"], json!({}));
        assert!(message["params"]["clientInfo"]["name"].is_string());
        let message = read(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call",
                "params":{"name":"k_pty","arguments":null,"_meta":{"progressToken":1,"x":2}}}"#,
        );
        assert_eq!(message["params"], json!({ "name": "k_pty", "_meta": { "x": 2 } }));
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#).get("params"), None);
        let message = read(r#" {"x":[1],"jsonrpc":"2.0","id":1,"id":"2","method":"a\u0062","params":{"y":1}} "#);
        let kept = json!({ "x": [1], "jsonrpc": "2.0", "id": "2", "method": "ab", "params": { "y": 1 } });
        assert_eq!(message, kept, "unknown fields stay, and the last of two counts");
    }
}
