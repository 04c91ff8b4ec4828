//! Live screens: one WebSocket for everything that a page or an attached terminal shows.
//!
//! A client names the sessions it shows and receives their screens, then changed rows, in at most 30 messages per
//! second regardless of the sessions' output. The only state queued per client is that a session changed: a slow client
//! gets fewer, newer frames, and no session waits for a client. Input of clients goes through the tools. Desktop
//! screens are polled while a client watches.

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

/// Path of the socket.
pub(crate) const PATH: &str = "/ws/live";
/// Maximum number of concurrent clients.
const MAX_CLIENTS: usize = 64;
/// Maximum size of a client's message; the longest one is a paste.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// State shared by all clients.
#[derive(Clone)]
pub(super) struct Live {
    tools: Tools,
    places: Arc<Semaphore>,
}

/// Route of live screens.
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
        let why = "too many clients are connected; close a page";
        return refusal(StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    };
    let name = if request.uri().query() == Some("as=attach") { "attach" } else { "web" };
    let upgrade = upgrade.max_message_size(MAX_MESSAGE_BYTES).max_frame_size(MAX_MESSAGE_BYTES);
    upgrade.on_upgrade(async move |socket| {
        connection::run(socket, live.tools, name).await;
        drop(place);
    })
}
