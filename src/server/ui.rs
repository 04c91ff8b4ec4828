//! The page for users at `/ui`: its embedded files, and the login of browsers.
//!
//! A link with a single-use code is exchanged for a cookie, and the page is then requested without the code, so the
//! code is in no history and no referrer. A browser of the server's own user needs no code: `kpty open` announces it
//! and the kernel identifies its user, so no secret appears in a program's arguments. Without a login there is only a
//! page that explains how to get one. The page communicates over the WebSocket in `live`.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::access::{SEC_FETCH_SITE, Visitor, peer};
use super::body::{Refusal, json_bytes, refusal};
use super::browser::{Browsers, LINK_LIFE};
use super::peer::Peer;

const PAGE: &str = include_str!("ui/page.html");
const LOGIN_PAGE: &str = include_str!("ui/login.html");
/// Redirects to the page. After an HTTP redirect from another site, a browser does not send a strict cookie; after this
/// page it does.
const REDIRECT_PAGE: &str = "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url=/ui\">\
    <title>kpty</title>";
const STYLE: &str = include_str!("ui/page.css");
/// Scripts of the page, by name.
const SCRIPTS: [(&str, &str); 5] = [
    ("app.js", include_str!("ui/app.js")),
    ("draw.js", include_str!("ui/draw.js")),
    ("keys.js", include_str!("ui/keys.js")),
    ("large.js", include_str!("ui/large.js")),
    ("traffic.js", include_str!("ui/traffic.js")),
];

/// Only own files and the own WebSocket; no embedding in frames.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

/// Routes of the page.
pub(super) fn routes(browsers: Arc<Browsers>) -> Router {
    Router::new()
        .route("/ui", get(page))
        .route("/ui/{file}", get(file))
        .route("/ui/open", get(open))
        .route("/ui/link", post(link))
        .route("/ui/link/spent", post(spent))
        .with_state(browsers)
        .layer(middleware::from_fn(add_security_headers))
}

/// Adds headers that restrict what the page loads, who frames it, and what browsers cache or reveal.
async fn add_security_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn page(State(browsers): State<Arc<Browsers>>, uri: Uri, request: Request) -> Response {
    let visitor = visitor(&request);
    // A `HEAD` request does not use the link up.
    let query = uri.query().filter(|_| request.method() == Method::GET);
    let code = query.and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("code=")));
    match code.map(|code| browsers.redeem(code, peer(&request), Instant::now())) {
        Some(Some(cookie)) => redirect_with_login(&request, cookie),
        // A logged-in browser that reopens an old link only needs the page.
        Some(None) if visitor.is_logged_in => (StatusCode::SEE_OTHER, [(header::LOCATION, "/ui")]).into_response(),
        Some(None) => (StatusCode::UNAUTHORIZED, html(LOGIN_PAGE)).into_response(),
        None if visitor.is_logged_in => html(PAGE).into_response(),
        None => (StatusCode::UNAUTHORIZED, html(LOGIN_PAGE)).into_response(),
    }
}

/// Sets the login cookie and redirects to the page.
fn redirect_with_login(request: &Request, cookie: String) -> Response {
    let sites = request.headers().get(SEC_FETCH_SITE);
    match sites.is_none_or(|site| site == "none" || site == "same-origin") {
        true => {
            let headers = [(header::SET_COOKIE, cookie), (header::LOCATION, "/ui".to_owned())];
            (StatusCode::SEE_OTHER, headers).into_response()
        }
        false => ([(header::SET_COOKIE, cookie)], html(REDIRECT_PAGE)).into_response(),
    }
}

/// Logs in an announced browser of the server's own user.
async fn open(State(browsers): State<Arc<Browsers>>, request: Request) -> Response {
    let is_person = request.method() == Method::GET;
    match is_person.then(|| browsers.redeem_announcement(peer(&request), Instant::now())).flatten() {
        Some(cookie) => redirect_with_login(&request, cookie),
        None if visitor(&request).is_logged_in => (StatusCode::SEE_OTHER, [(header::LOCATION, "/ui")]).into_response(),
        None => (StatusCode::UNAUTHORIZED, html(LOGIN_PAGE)).into_response(),
    }
}

async fn file(uri: Uri) -> Response {
    let name = uri.path().rsplit('/').next().unwrap_or_default();
    let script = SCRIPTS.iter().find(|(script, _)| *script == name);
    match (name, script) {
        ("page.css", _) => ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE).into_response(),
        (_, Some((_, text))) => ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], *text).into_response(),
        _ => refusal(StatusCode::NOT_FOUND, "the page has no such file").into_response(),
    }
}

fn html(text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], text)
}

/// Creates a link, for a program of the server's own user or with the token. With `"browser": true`, returns a path
/// without a code where the kernel can identify the browser's user.
async fn link(State(browsers): State<Arc<Browsers>>, request: Request) -> Result<Json<Value>, Refusal> {
    known_only(&request)?;
    let maker = peer(&request);
    let asked: Value = serde_json::from_slice(&json_bytes(request).await?).unwrap_or_default();
    let path = match maker == Peer::Own && asked["browser"] == true {
        true => {
            browsers.announce(Instant::now());
            "/ui/open".to_owned()
        }
        false => format!("/ui?code={}", browsers.new_code(LINK_LIFE, maker, Instant::now())),
    };
    Ok(Json(json!({ "ok": true, "path": path, "expires_in_s": LINK_LIFE.as_secs() })))
}

/// Replies when a code is used or expired; a caller that keeps it in a file then removes the file.
async fn spent(State(browsers): State<Arc<Browsers>>, request: Request) -> Result<Json<Value>, Refusal> {
    known_only(&request)?;
    let asked: Value = serde_json::from_slice(&json_bytes(request).await?).unwrap_or_default();
    browsers.spent(asked["code"].as_str().unwrap_or_default()).await;
    Ok(Json(json!({ "ok": true })))
}

fn known_only(request: &Request) -> Result<(), Refusal> {
    match visitor(request).is_known {
        true => Ok(()),
        false => Err(refusal(StatusCode::FORBIDDEN, "a login makes no links; `kpty open` does")),
    }
}

fn visitor(request: &Request) -> Visitor {
    request.extensions().get::<Visitor>().copied().unwrap_or_default()
}
