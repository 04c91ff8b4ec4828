//! The page for people at `/ui`: its files, which are part of the program, and the door for browsers.
//!
//! A browser gets in by a link with a code that opens once; it is exchanged for a cookie, and the page is asked for again
//! without the code, which is then in no history and no referrer. Our own user's browser needs no code: `kpty open` says
//! that it will come, and the kernel tells whose it is, so that no secret goes through the arguments of a program. Without
//! a login there is only a page that says how to get one. What the page does goes over the WebSocket in `live`.

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
const DOOR: &str = include_str!("ui/door.html");
/// Leads on to the page. A browser that came from elsewhere would send no strict cookie after a redirect; from a page of
/// ours it does.
const ARRIVED: &str = "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url=/ui\">\
    <title>kpty</title>";
const STYLE: &str = include_str!("ui/page.css");
/// The scripts of the page, by their names.
const SCRIPTS: [(&str, &str); 5] = [
    ("app.js", include_str!("ui/app.js")),
    ("draw.js", include_str!("ui/draw.js")),
    ("keys.js", include_str!("ui/keys.js")),
    ("large.js", include_str!("ui/large.js")),
    ("traffic.js", include_str!("ui/traffic.js")),
];

/// Nothing but our own files, our own socket, and no frame around the page.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

/// The routes of the page.
pub(super) fn routes(browsers: Arc<Browsers>) -> Router {
    Router::new()
        .route("/ui", get(page))
        .route("/ui/{file}", get(file))
        .route("/ui/open", get(open))
        .route("/ui/link", post(link))
        .route("/ui/link/spent", post(spent))
        .with_state(browsers)
        .layer(middleware::from_fn(careful))
}

/// Headers that keep a browser from being too helpful.
async fn careful(request: Request, next: Next) -> Response {
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
    // Only who opens the link uses it up, not who asks whether it is there.
    let query = uri.query().filter(|_| request.method() == Method::GET);
    let code = query.and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("code=")));
    match code.map(|code| browsers.redeem(code, peer(&request), Instant::now())) {
        Some(Some(cookie)) => arrived(&request, cookie),
        // Who is logged in and opens an old link again is where they wanted to be.
        Some(None) if visitor.is_logged_in => (StatusCode::SEE_OTHER, [(header::LOCATION, "/ui")]).into_response(),
        Some(None) => (StatusCode::UNAUTHORIZED, html(DOOR)).into_response(),
        None if visitor.is_logged_in => html(PAGE).into_response(),
        None => (StatusCode::UNAUTHORIZED, html(DOOR)).into_response(),
    }
}

/// Gives a browser its login and leads it to the page.
fn arrived(request: &Request, cookie: String) -> Response {
    let sites = request.headers().get(SEC_FETCH_SITE);
    match sites.is_none_or(|site| site == "none" || site == "same-origin") {
        true => {
            let headers = [(header::SET_COOKIE, cookie), (header::LOCATION, "/ui".to_owned())];
            (StatusCode::SEE_OTHER, headers).into_response()
        }
        false => ([(header::SET_COOKIE, cookie)], html(ARRIVED)).into_response(),
    }
}

/// Our own user's browser, if it was announced.
async fn open(State(browsers): State<Arc<Browsers>>, request: Request) -> Response {
    let is_person = request.method() == Method::GET;
    match is_person.then(|| browsers.welcome(peer(&request), Instant::now())).flatten() {
        Some(cookie) => arrived(&request, cookie),
        None if visitor(&request).is_logged_in => (StatusCode::SEE_OTHER, [(header::LOCATION, "/ui")]).into_response(),
        None => (StatusCode::UNAUTHORIZED, html(DOOR)).into_response(),
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

/// A new link, for a program of our own user or one that has the token. With `"browser": true`, a path without a code
/// where the kernel will tell that the browser is our own user's.
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

/// Answers when a code has been used or is too old: whoever keeps it in a file takes the file away then.
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
