//! The MCP handler: converts protocol requests to calls of the engine.
//!
//! Only this file knows that a failed tool is a *result* flagged as an error, while an invalid request is a protocol
//! error. Results are text, with the action's JSON last, and no structured content: some clients show a model only the
//! structured part, in which a screen is hard to read.

use std::convert::Infallible;
use std::future::{Future, pending};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult, ContentBlock,
    CustomRequest, CustomResult, ErrorCode, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProgressToken,
    ResourceContents, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::engine::{Block, Engine, Resource, ToolAnswer, ToolCall};
use super::pending::Pending;
use super::plain::{AnswersPlainCalls, Plain, PlainResult, SESSION_HEADER, client_name, name_in};
use super::published::{Published, instructions, shown, tools};
use super::{AGENT_HEADER, CLIENT_HEADER, SERVER_NAME};
use crate::config::ToolSet;
use crate::server::VERSION;
use crate::tools::{Caller, Offer};

/// Interval of progress notifications. Clients time out after a minute of silence or more.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// Known methods; invalid parameters of one of them are not reported as an unknown method.
const METHODS: [&str; 5] = ["initialize", "server/discover", "ping", "tools/list", "tools/call"];

/// Handler for one client or many; clones are equivalent.
#[derive(Clone)]
pub(crate) struct Adapter {
    engine: Arc<dyn Engine>,
    /// All tools: each can be called by its name.
    tools: Arc<[Tool]>,
    /// Which of them are shown.
    set: ToolSet,
    /// Its clients are plain ones.
    is_plain: bool,
    pending: Option<Pending>,
}

/// Sender of a request.
#[derive(Default)]
struct Origin {
    /// Client session id.
    session: Option<String>,
    /// A client that reads a single JSON message, so it must not receive anything else.
    is_plain: bool,
    /// The client displays progress itself.
    shows_progress: bool,
    /// Agent id that the client claims.
    agent: Option<String>,
    /// Program whose calls the client forwards.
    client: Option<String>,
}

impl Origin {
    fn of(context: &RequestContext<RoleServer>) -> Self {
        let Some(parts) = context.extensions.get::<Parts>() else { return Self::default() };
        match parts.extensions.get::<Plain>() {
            Some(plain) => Self {
                session: plain.session.clone(),
                is_plain: true,
                shows_progress: plain.shows_progress,
                agent: plain.agent.clone(),
                client: plain.client.clone(),
            },
            None => {
                let session = parts.headers.get(SESSION_HEADER).and_then(|id| id.to_str().ok());
                let agent = name_in(&parts.headers, AGENT_HEADER);
                let client = name_in(&parts.headers, CLIENT_HEADER);
                Self { session: session.map(str::to_owned), agent, client, ..Self::default() }
            }
        }
    }
}

impl Adapter {
    pub(super) fn new(engine: impl Engine, set: ToolSet) -> Self {
        Self {
            engine: Arc::new(engine),
            tools: tools().into_iter().map(tool).collect(),
            set,
            is_plain: false,
            pending: None,
        }
    }

    /// Enables notices from this folder.
    pub(super) fn with_pending(self, folder: Option<PathBuf>) -> Self {
        Self { pending: folder.map(Pending::new), ..self }
    }

    /// The answer, with a notice before its last block if there is one for the client's session.
    async fn with_notice(&self, mut answer: ToolAnswer, session: Option<&str>) -> ToolAnswer {
        let (Some(pending), Some(session)) = (&self.pending, session) else { return answer };
        if let Some(notice) = pending.take(session).await {
            answer.blocks.insert(answer.blocks.len().saturating_sub(1), Block::text(notice));
        }
        answer
    }
}

impl AnswersPlainCalls for Adapter {
    fn for_plain_clients(self) -> Self {
        Self { is_plain: true, ..self }
    }

    async fn answer_plain(&self, params: &mut Map<String, Value>, plain: &Plain) -> Option<PlainResult> {
        let offer = Offer::named(params.get("name")?.as_str()?)?;
        let arguments = match params.get_mut("arguments") {
            None => Map::new(),
            Some(arguments) => std::mem::take(arguments.as_object_mut()?),
        };
        let caller = Caller {
            can_show_progress: plain.shows_progress,
            agent: plain.agent.clone(),
            client: client_name(plain.client.as_deref(), plain.session.as_deref()),
            is_person: false,
        };
        let call = ToolCall { offer, arguments, caller };
        let answer = self.engine.call(call).await;
        let ToolAnswer { blocks, is_error } = self.with_notice(answer, plain.session.as_deref()).await;
        Some(PlainResult { content: blocks, is_error })
    }
}

impl ServerHandler for Adapter {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new(SERVER_NAME, VERSION))
            .with_instructions(instructions(self.set, self.is_plain))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let shown = shown(self.set, self.is_plain);
        Ok(ListToolsResult::with_all_items(shown.into_iter().map(tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(offer) = Offer::named(&request.name) else {
            return Err(ErrorData::invalid_params(format!("Unknown tool: {}", request.name), None));
        };
        let origin = Origin::of(&context);
        let token = context.meta.get_progress_token().filter(|_| !origin.is_plain);
        let info = context.peer.peer_info();
        let named = info.as_ref().map(|info| info.client_info.name.as_str()).filter(|_| !origin.is_plain);
        let caller = Caller {
            can_show_progress: token.is_some() || origin.shows_progress,
            agent: origin.agent.clone(),
            client: client_name(origin.client.as_deref().or(named), origin.session.as_deref()),
            is_person: false,
        };
        let call = ToolCall { offer, arguments: request.arguments.unwrap_or_default(), caller };
        let answer = tokio::select! {
            answer = self.engine.call(call) => answer,
            never = send_progress(&context.peer, token) => match never {},
            // The client has disconnected or cancelled, so it does not read this.
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("cancelled by the client", None)),
        };
        let ToolAnswer { blocks, is_error } = self.with_notice(answer, origin.session.as_deref()).await;
        let content = blocks.into_iter().map(content_block).collect();
        let result = if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
        Ok(result.into())
    }

    fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListPromptsResult, ErrorData>> {
        refused("prompts/list")
    }

    fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListResourcesResult, ErrorData>> {
        refused("resources/list")
    }

    fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListResourceTemplatesResult, ErrorData>> {
        refused("resources/templates/list")
    }

    fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CompleteResult, ErrorData>> {
        refused("completion/complete")
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        match METHODS.contains(&request.method.as_str()) {
            true => Err(ErrorData::invalid_params(format!("Invalid params for {}", request.method), None)),
            false => Err(no_method(&request.method)),
        }
    }
}

fn content_block(block: Block) -> ContentBlock {
    match block {
        Block::Text { text } => ContentBlock::text(text),
        Block::Image { data, mime_type } => ContentBlock::image(data, mime_type),
        Block::Resource { resource: Resource { uri, mime_type, text } } => {
            ContentBlock::resource(ResourceContents::text(text, uri).with_mime_type(mime_type))
        }
    }
}

/// Sends progress notifications with the elapsed seconds until it is dropped.
async fn send_progress(peer: &Peer<RoleServer>, token: Option<ProgressToken>) -> Infallible {
    let Some(token) = token else { return pending().await };
    let begun = Instant::now();
    let mut ticks = interval_at(begun + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let seconds = ticks.tick().await.duration_since(begun).as_secs();
        let progress = ProgressNotificationParam::new(token.clone(), seconds as f64)
            .with_message(format!("still waiting, {seconds} s so far"));
        if let Err(error) = peer.notify_progress(progress).await {
            // The notification may fail for a client that still waits for the reply.
            tracing::debug!("cannot send progress: {error}");
        }
    }
}

fn tool(published: Published) -> Tool {
    let Published { name, title, description, schema, annotations } = published;
    let annotations = ToolAnnotations::with_title(title)
        .read_only(annotations.read_only)
        .destructive(annotations.destructive)
        .idempotent(annotations.idempotent)
        .open_world(annotations.open_world);
    Tool::new(name, description, schema).with_title(title).with_annotations(annotations)
}

fn no_method(name: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("Method not found: {name}"), None)
}

async fn refused<T>(method: &'static str) -> Result<T, ErrorData> {
    Err(no_method(method))
}
