//! What carries a call out: the tools in this process, or another server. Knows no protocol.

use std::future::Future;
use std::pin::Pin;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::json_text;
use crate::error::{Error, Result};
use crate::runtime::{DetachOnDrop, defer};
use crate::tools::{Action, Caller, Offer, Reply, Shown, TextReply, Tools};

/// One call of a tool.
#[derive(Clone)]
pub struct ToolCall {
    /// The tool, or its read-only twin.
    pub offer: Offer,
    /// As the client gave them.
    pub arguments: Map<String, Value>,
    /// Who calls.
    pub caller: Caller,
}

/// A part of an answer, as it stands on the wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Block {
    /// A text.
    Text {
        /// It.
        text: String,
    },
    /// A picture that models can see.
    Image {
        /// Base64.
        data: String,
        /// Its kind.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// A file: for pictures that models cannot see.
    Resource {
        /// It.
        resource: Resource,
    },
}

/// A text file in an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// A name.
    pub uri: String,
    /// Its kind.
    #[serde(rename = "mimeType")]
    pub mime_type: String,
    /// What is in it.
    pub text: String,
}

impl Block {
    pub(super) fn text(text: String) -> Self {
        Self::Text { text }
    }

    /// Adds it as it stands on the wire.
    pub(super) fn push(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text { text } => {
                out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
                json_text::push_text(text, out);
                out.push(b'}');
            }
            // Writing to a vector cannot fail.
            rare => drop(serde_json::to_writer(out, rare)),
        }
    }

    /// Moves a picture out of an answer: as JSON inside JSON a model would read it letter by letter.
    fn take_picture(image: &mut Map<String, Value>) -> Option<Self> {
        let mime_type = image.get("mime_type")?.as_str()?.to_owned();
        let mut take = |name: &str| match image.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        if let Some(data) = take("data") {
            return Some(Self::Image { data, mime_type });
        }
        let resource = Resource { uri: "kpty://screenshot.svg".to_owned(), mime_type, text: take("text")? };
        Some(Self::Resource { resource })
    }
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolAnswer {
    /// What the client gets, the action's own answer as JSON last.
    pub blocks: Vec<Block>,
    /// It failed.
    pub is_error: bool,
}

impl ToolAnswer {
    /// What the client gets of a reply, pictures moved out of it.
    fn of(Reply { body, is_error }: &mut Reply, shown: &mut Shown) -> Self {
        let screen = match shown {
            Shown::Nothing => None,
            Shown::Screen(screen) => Some(&**screen),
            Shown::Text(TextReply { text, image, .. }) => {
                let picture = image.as_mut().and_then(Block::take_picture);
                let text = Block::text(std::mem::take(text).into_string());
                return Self { blocks: picture.into_iter().chain([text]).collect(), is_error: *is_error };
            }
        };
        let picture = body.get_mut("image").and_then(Value::as_object_mut).and_then(Block::take_picture);
        // Room for it at once: texts as they are, and a few names and numbers.
        let texts: usize = body.values().filter_map(Value::as_str).map(str::len).sum();
        let texts = texts + screen.map_or(0, |screen| 2 * screen.text().len());
        let mut json = Vec::with_capacity(texts + texts / 8 + 512);
        json_text::push_fields(body, screen, &mut json);
        // JSON is text.
        let answer = Block::text(String::from_utf8(json).unwrap_or_default());
        Self { blocks: picture.into_iter().chain([answer]).collect(), is_error: *is_error }
    }
}

impl From<Reply> for ToolAnswer {
    fn from(mut reply: Reply) -> Self {
        Self::of(&mut reply, &mut Shown::Nothing)
    }
}

/// Carries out calls.
pub trait Engine: Send + Sync + 'static {
    /// Always comes to an answer. A caller that goes away drops the future: a wait ends with it, but what changes
    /// something is not left half done.
    fn call(&self, call: ToolCall) -> Pin<Box<dyn Future<Output = ToolAnswer> + Send + '_>>;
}

impl Engine for Tools {
    fn call(&self, call: ToolCall) -> Pin<Box<dyn Future<Output = ToolAnswer> + Send + '_>> {
        Box::pin(async move {
            let ToolCall { offer, arguments, caller } = call;
            let action = action(offer, &arguments);
            if let Err(refused) = check(offer, action) {
                return Reply::from(refused).into();
            }
            if action.is_some_and(Action::ends_with_caller) {
                return answer(self, offer, arguments, caller).await;
            }
            let tools = self.clone();
            DetachOnDrop::new(async move { answer(&tools, offer, arguments, caller).await }).await
        })
    }
}

/// Carries a call out. It is recorded, and what it took is given back, when its answer is on the way.
async fn answer(tools: &Tools, offer: Offer, arguments: Map<String, Value>, caller: Caller) -> ToolAnswer {
    let mut done = tools.perform(offer.tool, arguments, caller).await;
    let answer = ToolAnswer::of(&mut done.reply, &mut done.shown);
    defer(move || done.record());
    answer
}

/// The action that is called. A name that is none is refused by the tools themselves.
fn action(offer: Offer, arguments: &Map<String, Value>) -> Option<&'static Action> {
    offer.tool.action(&offer.tool.selected(arguments).ok()??)
}

/// A read-only twin refuses actions that change something.
fn check(offer: Offer, action: Option<&Action>) -> Result<()> {
    let Some(refused) = action.filter(|action| offer.is_view && !action.only_looks()) else { return Ok(()) };
    let looking: Vec<_> = offer.actions().flat_map(|action| action.names()).collect();
    let problem = format!(
        "{} only looks: {}. For {:?} use the tool {}",
        offer.name(),
        looking.join(", "),
        refused.name,
        offer.tool.name
    );
    Err(Error::invalid("action", problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn called(tool: &str, action: Value) -> (Offer, Option<&'static Action>) {
        let offer = Offer::named(tool).expect("a tool");
        (offer, action_of(offer, action))
    }

    fn action_of(offer: Offer, name: Value) -> Option<&'static Action> {
        action(offer, &Map::from_iter([("action".to_owned(), name)]))
    }

    #[test]
    fn what_a_lost_caller_ends_is_known_however_it_is_written() {
        for (name, expected) in
            [("talk", true), (" RUN ", true), ("wait", true), ("list", true), ("kill", false), ("", false)]
        {
            let (_, action) = called("k_pty", json!(name));
            assert_eq!(action.is_some_and(Action::ends_with_caller), expected, "{name:?}");
        }
    }

    #[test]
    fn the_tool_for_looking_only_looks() {
        for (name, expected) in [
            (json!("list"), true),
            (json!(" Term_Read "), true),
            (json!("wait"), true),
            (json!("kill"), false),
            (json!("CREATE"), false),
            (json!("talk"), false),
            // Refused by the tools themselves.
            (json!("no such action"), true),
            (json!(""), true),
            (json!(7), true),
        ] {
            let (view, action) = called("k_pty_view", name.clone());
            assert_eq!(check(view, action).is_ok(), expected, "{name}");
            let (all, action) = called("k_pty", name);
            assert!(check(all, action).is_ok());
        }
        let (view, kill) = called("k_pty_view", json!("kill"));
        let message = check(view, kill).expect_err("kill changes something").to_string();
        assert!(message.contains("k_pty_view only looks") && message.contains("use the tool k_pty"), "{message}");
    }
}
