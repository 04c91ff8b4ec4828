//! The tools, prompts and resources that the official conformance suite asks for by name.
#![expect(deprecated, reason = "the suite tests what older versions of the protocol have")]

use std::time::Duration;

use kpty::server::hosting::AnswersPlainCalls;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    CreateMessageRequestParams, ElicitRequestParams, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
    Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
    LoggingMessageNotificationParam, PaginatedRequestParams, ProgressNotificationParam, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ServerCapabilities, ServerConfig, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::rounds::{self, Given, Round};

/// A single red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
/// An empty sound.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
/// Pause between two messages of the slow tools.
const PAUSE: Duration = Duration::from_millis(50);

/// The handler of the fixtures.
#[derive(Clone)]
pub(crate) struct Fixtures;

impl AnswersPlainCalls for Fixtures {}

/// A value of the protocol, written as it looks on the wire.
pub(crate) fn wire<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// Parses a complete result in wire format. Its type is omitted for clients of older versions.
fn result<T: DeserializeOwned>(mut value: Value) -> Result<T, ErrorData> {
    value["resultType"] = json!("complete");
    wire(value)
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn image() -> Value {
    json!({ "type": "image", "data": PNG, "mimeType": "image/png" })
}

fn resource(uri: &str, kind: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": kind, "text": text } })
}

fn tools() -> Value {
    let plain = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_tool_with_logging",
        "test_error_handling",
        "test_tool_with_progress",
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
        "test_reconnection",
        "test_logging_tool",
        "test_missing_capability",
    ];
    let mut tools: Vec<_> = plain
        .into_iter()
        .chain(rounds::TOOLS)
        .map(|name| json!({ "name": name, "description": name, "inputSchema": { "type": "object" } }))
        .collect();
    for (name, argument) in [("test_sampling", "prompt"), ("test_elicitation", "message")] {
        let schema =
            json!({ "type": "object", "properties": { argument: { "type": "string" } }, "required": [argument] });
        tools.push(json!({ "name": name, "description": name, "inputSchema": schema }));
    }
    tools.push(json!({
        "name": "json_schema_2020_12_tool",
        "description": "Tool with JSON Schema 2020-12 features",
        "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {
                "address": {
                    "type": "object",
                    "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
                },
            },
            "properties": { "name": { "type": "string" }, "address": { "$ref": "#/$defs/address" } },
            "additionalProperties": false,
        },
    }));
    json!({ "tools": tools })
}

/// Request of an elicitation tool.
fn question(tool: &str, message: &str) -> Value {
    let options = json!([{ "const": "value1", "title": "First" }, { "const": "value2", "title": "Second" }]);
    let words = json!(["option1", "option2", "option3"]);
    let (properties, required) = match tool {
        "test_elicitation_sep1034_defaults" => (
            json!({
                "name": { "type": "string", "default": "John Doe" },
                "age": { "type": "integer", "default": 30 },
                "score": { "type": "number", "default": 95.5 },
                "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
                "verified": { "type": "boolean", "default": true },
            }),
            json!([]),
        ),
        "test_elicitation_sep1330_enums" => (
            json!({
                "untitledSingle": { "type": "string", "enum": words },
                "titledSingle": { "type": "string", "oneOf": options },
                "legacyEnum": {
                    "type": "string",
                    "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"],
                },
                "untitledMulti": { "type": "array", "items": { "type": "string", "enum": words } },
                "titledMulti": { "type": "array", "items": { "anyOf": options } },
            }),
            json!([]),
        ),
        _ => (
            json!({
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" },
            }),
            json!(["username", "email"]),
        ),
    };
    json!({
        "mode": "form",
        "message": message,
        "requestedSchema": { "type": "object", "properties": properties, "required": required },
    })
}

/// Reply of a tool that sends the client no request.
fn content(tool: &str) -> Option<Value> {
    Some(match tool {
        "test_simple_text" => json!([text("This is a simple text response for testing.")]),
        "test_image_content" => json!([image()]),
        "test_audio_content" => json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }]),
        "test_embedded_resource" => {
            json!([resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")])
        }
        "test_multiple_content_types" => json!([
            text("Multiple content types test:"),
            image(),
            resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ]),
        "test_reconnection" => json!([text("Nobody had to come back.")]),
        "json_schema_2020_12_tool" => json!([text("Called.")]),
        _ => return None,
    })
}

async fn log(context: &RequestContext<RoleServer>, words: &str) {
    let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(words));
    // The suite detects a missing message.
    let _ = context.peer.notify_logging_message(message).await;
}

/// Capabilities of the client.
fn capabilities(context: &RequestContext<RoleServer>) -> Result<Value, ErrorData> {
    serde_json::to_value(context.client_capabilities()).map_err(failed)
}

pub(crate) fn failed(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let capabilities = json!({
            "tools": {}, "prompts": {}, "resources": { "subscribe": true }, "logging": {}, "completions": {},
        });
        let capabilities: ServerCapabilities = serde_json::from_value(capabilities).unwrap_or_default();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("kpty-fixtures", "1"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        result(tools())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let argument = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let name = request.name.as_ref();
        if rounds::TOOLS.contains(&name) {
            let given = Given {
                responses: request.input_responses.as_ref(),
                state: request.request_state.as_deref(),
                capabilities: &capabilities(&context)?,
            };
            return match rounds::round(name, &given)? {
                Round::Asks(questions) => Ok(questions.into()),
                Round::Done(words) => {
                    Ok(result::<CallToolResult>(json!({ "content": [text(&words)], "isError": false }))?.into())
                }
            };
        }
        let content = match (content(name), name) {
            (Some(content), _) => content,
            (None, "test_tool_with_logging") => {
                for words in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                    log(&context, words).await;
                    tokio::time::sleep(PAUSE).await;
                }
                json!([text("Logged.")])
            }
            (None, "test_logging_tool") => {
                if context.meta.log_level().is_some() {
                    log(&context, "Asked for.").await;
                }
                json!([text("Logged if asked to.")])
            }
            (None, "test_missing_capability") => {
                if capabilities(&context)?.get("sampling").is_none() {
                    let required = wire(json!({ "sampling": {} }))?;
                    return Err(ErrorData::missing_required_client_capability(required));
                }
                json!([text("It can.")])
            }
            (None, "test_tool_with_progress") => {
                for progress in [0.0, 50.0, 100.0] {
                    if let Some(token) = context.meta.get_progress_token() {
                        let notification = ProgressNotificationParam::new(token, progress).with_total(100.0);
                        context.peer.notify_progress(notification).await.map_err(failed)?;
                    }
                    tokio::time::sleep(PAUSE).await;
                }
                json!([text("Progressed.")])
            }
            (None, "test_error_handling") => {
                let words = "This tool intentionally returns an error for testing";
                return Ok(result::<CallToolResult>(json!({ "content": [text(words)], "isError": true }))?.into());
            }
            (None, "test_sampling") => {
                let params: CreateMessageRequestParams = wire(json!({
                    "messages": [{ "role": "user", "content": text(argument("prompt")) }],
                    "maxTokens": 100,
                }))?;
                let answer = context.peer.create_message(params).await.map_err(failed)?;
                let answer = serde_json::to_value(answer).map_err(failed)?;
                json!([text(&format!("LLM response: {}", answer["content"]["text"].as_str().unwrap_or_default()))])
            }
            (None, "test_elicitation" | "test_elicitation_sep1034_defaults" | "test_elicitation_sep1330_enums") => {
                let params: ElicitRequestParams = wire(question(name, argument("message")))?;
                let answer = context.peer.create_elicitation(params).await.map_err(failed)?;
                let answer = serde_json::to_value(answer).map_err(failed)?;
                let (action, content) = (answer["action"].as_str().unwrap_or_default(), &answer["content"]);
                json!([text(&format!("Elicitation completed: action={action}, content={content}"))])
            }
            _ => return Err(ErrorData::invalid_params(format!("Unknown tool: {name}"), None)),
        };
        Ok(result::<CallToolResult>(json!({ "content": content, "isError": false }))?.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources =
            [("static-text", "text/plain"), ("static-binary", "image/png"), ("watched-resource", "text/plain")];
        let resources = resources.map(|(name, kind)| {
            json!({ "uri": format!("test://{name}"), "name": name, "description": name, "mimeType": kind })
        });
        result(json!({ "resources": resources }))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        result(json!({
            "resourceTemplates": [{
                "uriTemplate": "test://template/{id}/data", "name": "template", "description": "by id",
                "mimeType": "application/json",
            }],
        }))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let mut content = match (uri, id) {
            ("test://static-text", _) => {
                json!({ "mimeType": "text/plain", "text": "This is the content of the static text resource." })
            }
            ("test://watched-resource", _) => json!({ "mimeType": "text/plain", "text": "Watched." }),
            ("test://static-binary", _) => json!({ "mimeType": "image/png", "blob": PNG }),
            (_, Some(id)) => {
                let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
                json!({ "mimeType": "application/json", "text": data.to_string() })
            }
            _ => return Err(ErrorData::resource_not_found(format!("no resource {uri}"), None)),
        };
        content["uri"] = json!(uri);
        Ok(result::<ReadResourceResult>(json!({ "contents": [content] }))?.into())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let argument = |name: &str| json!({ "name": name, "description": name, "required": true });
        let prompt = |name: &str, arguments: &[&str]| {
            let arguments: Vec<_> = arguments.iter().map(|name| argument(name)).collect();
            json!({ "name": name, "description": name, "arguments": arguments })
        };
        result(json!({
            "prompts": [
                prompt("test_simple_prompt", &[]),
                prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
                prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
                prompt("test_prompt_with_image", &[]),
                prompt(rounds::PROMPT, &[]),
            ],
        }))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name == rounds::PROMPT {
            let given = Given {
                responses: request.input_responses.as_ref(),
                state: request.request_state.as_deref(),
                capabilities: &Value::Null,
            };
            return match rounds::round(&request.name, &given)? {
                Round::Asks(questions) => Ok(questions.into()),
                Round::Done(words) => {
                    let message = json!({ "role": "user", "content": text(&words) });
                    Ok(result::<GetPromptResult>(json!({ "messages": [message] }))?.into())
                }
            };
        }
        let arguments = serde_json::to_value(&request.arguments).map_err(failed)?;
        let argument = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
        let contents = match request.name.as_str() {
            "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
            "test_prompt_with_arguments" => {
                let words = format!("Prompt with arguments: arg1='{}', arg2='{}'", argument("arg1"), argument("arg2"));
                vec![text(&words)]
            }
            "test_prompt_with_embedded_resource" => vec![
                resource(&argument("resourceUri"), "text/plain", "Embedded resource content for testing."),
                text("Please process the embedded resource above."),
            ],
            "test_prompt_with_image" => vec![image(), text("Please analyze the image above.")],
            name => return Err(ErrorData::invalid_params(format!("no prompt {name}"), None)),
        };
        let messages: Vec<_> =
            contents.into_iter().map(|content| json!({ "role": "user", "content": content })).collect();
        Ok(result::<GetPromptResult>(json!({ "messages": messages }))?.into())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        result(json!({ "completion": { "values": ["paris", "park"], "total": 2, "hasMore": false } }))
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }
}
