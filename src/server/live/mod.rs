//! Live screens for people: one WebSocket for all that a page or an attached terminal shows.
//!
//! A client says which sessions it shows and gets their screens, then the rows that change: at most 30 messages a
//! second, whatever the sessions do. Nothing is queued for a client but the fact that a session moved: whoever draws
//! slowly gets fewer, newer frames, and no session ever waits for a client. What clients type goes through the tools
//! like everything else. Text of desktops has to be asked for, so it is, while somebody looks.

mod connection;
mod desktop;
mod origin;
mod view;
pub(crate) mod wire;

use std::sync::Arc;

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::Semaphore;

use super::access::Visitor;
use super::body::refusal;
use crate::tools::Tools;

/// Where the socket is.
pub(crate) const PATH: &str = "/ws/live";
/// Clients at the same time.
const MAX_CLIENTS: usize = 64;
/// The longest message of a client: the longest thing anybody sends is a paste.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// What all clients share.
#[derive(Clone)]
pub(super) struct Live {
    tools: Tools,
    places: Arc<Semaphore>,
}

/// The route of live screens.
pub(super) fn routes(tools: &Tools) -> Router {
    let live = Live { tools: tools.clone(), places: Arc::new(Semaphore::new(MAX_CLIENTS)) };
    Router::new().route(PATH, get(open).with_state(live))
}

async fn open(
    State(live): State<Live>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
    request: Request,
) -> Response {
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    let visitor = request.extensions().get::<Visitor>().copied().unwrap_or_default();
    if let Some(why) = origin::objection(request.headers(), visitor) {
        return refusal(StatusCode::FORBIDDEN, why).into_response();
    }
    let Ok(place) = Arc::clone(&live.places).try_acquire_owned() else {
        let why = "too many clients look at the same time; close a page";
        return refusal(StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    };
    let name = if request.uri().query() == Some("as=attach") { "attach" } else { "web" };
    let upgrade = upgrade.max_message_size(MAX_MESSAGE_BYTES).max_frame_size(MAX_MESSAGE_BYTES);
    upgrade.on_upgrade(async move |socket| {
        connection::run(socket, live.tools, name).await;
        drop(place);
    })
}
