//! The OpenAPI document of the plain HTTP routes, served as it is written. `tests/it/docs/openapi.rs` compares it with the
//! routes and with real answers.

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;

/// Written by hand: a route and its description change together.
const DOCUMENT: &str = include_str!("openapi.json");

/// The route of the document.
pub(super) fn routes() -> Router {
    Router::new().route("/openapi.json", get(document))
}

async fn document() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT)
}
