//! Fixtures that need client input before they can reply: the 2026-07-28 protocol requests it in the result.

use rmcp::ErrorData;
use rmcp::model::{InputRequiredResult, InputResponses};
use serde_json::{Map, Value, json};

use crate::fixtures::{failed, wire};

/// What comes of one round.
pub(crate) enum Round {
    /// The client has to answer first.
    Asks(InputRequiredResult),
    /// Text of the final result.
    Done(String),
}

/// The tools of this file.
pub(crate) const TOOLS: [&str; 9] = [
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
    "test_streaming_elicitation",
];

/// The prompt of this file.
pub(crate) const PROMPT: &str = "test_input_required_result_prompt";

/// What the client brought along.
pub(crate) struct Given<'a> {
    pub(crate) responses: Option<&'a InputResponses>,
    pub(crate) state: Option<&'a str>,
    /// What it said that it can do.
    pub(crate) capabilities: &'a Value,
}

/// A form with one field.
fn form(message: &str, field: &str, kind: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { field: { "type": kind } }, "required": [field] });
    json!({ "method": "elicitation/create", "params": { "message": message, "requestedSchema": schema } })
}

fn sampling(words: &str, max_tokens: u32) -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": words } });
    json!({ "method": "sampling/createMessage", "params": { "messages": [message], "maxTokens": max_tokens } })
}

fn roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}

/// Input requests per round, and the state that must come back with the input.
fn steps(name: &str, capabilities: &Value) -> Vec<(Value, Option<&'static str>)> {
    let step = match name {
        "test_input_required_result_sampling" => {
            (json!({ "capital_question": sampling("What is the capital of France?", 100) }), None)
        }
        "test_input_required_result_list_roots" => (json!({ "client_roots": roots() }), None),
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            (json!({ "confirm": form("Please confirm", "ok", "boolean") }), Some("confirming"))
        }
        "test_input_required_result_multiple_inputs" => (
            json!({
                "user_name": form("What is your name?", "name", "string"),
                "greeting": sampling("Generate a greeting", 50),
                "client_roots": roots(),
            }),
            Some("greeting"),
        ),
        "test_input_required_result_multi_round" => {
            return vec![
                (json!({ "step1": form("Step 1: What is your name?", "name", "string") }), Some("step1")),
                (json!({ "step2": form("Step 2: What is your favorite color?", "color", "string") }), Some("step2")),
            ];
        }
        "test_input_required_result_capabilities" => {
            let all = [
                ("sampling", "capital_question", sampling("What is the capital of France?", 100)),
                ("elicitation", "user_name", form("What is your name?", "name", "string")),
                ("roots", "client_roots", roots()),
            ];
            let can = all.into_iter().filter(|(capability, ..)| capabilities.get(capability).is_some());
            (can.map(|(_, key, request)| (key.to_owned(), request)).collect::<Value>(), None)
        }
        PROMPT => (json!({ "user_context": form("What context should the prompt use?", "context", "string") }), None),
        _ => (json!({ "user_name": form("What is your name?", "name", "string") }), None),
    };
    vec![step]
}

/// RequestHandler a call of a fixture of this file.
pub(crate) fn round(name: &str, given: &Given<'_>) -> Result<Round, ErrorData> {
    let mut steps = steps(name, given.capabilities);
    let at = match given.state {
        None => 0,
        // A state that differs from the sent one was modified in transit.
        Some(state) => steps
            .iter()
            .position(|(_, sent)| *sent == Some(state))
            .ok_or_else(|| ErrorData::invalid_params("the request's state is not the one that was sent", None))?,
    };
    let (questions, state) = &steps[at];
    let mut keys = questions.as_object().into_iter().flat_map(Map::keys);
    let is_answered =
        *state == given.state && given.responses.is_some_and(|responses| keys.all(|key| responses.contains_key(key)));
    let next = at + usize::from(is_answered);
    if next == steps.len() {
        let said = serde_json::to_string(&given.responses).map_err(failed)?;
        return Ok(Round::Done(format!("state-ok: {said}")));
    }
    let (questions, state) = steps.swap_remove(next);
    wire(json!({ "resultType": "input_required", "inputRequests": questions, "requestState": state })).map(Round::Asks)
}
