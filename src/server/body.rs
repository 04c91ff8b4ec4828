//! Bodies of requests and refusals: JSON only, not too much of it, and not too slowly.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};

/// The largest body that is read. The longest thing anybody sends is a script to be typed.
pub(super) const MAX_BODY_BYTES: usize = 4 << 20;
/// How much of a body that is too large is read and thrown away, so that its sender comes to reading the answer.
const MAX_DISCARDED_BYTES: usize = 16 << 20;

/// How long a body may take to come. Callers have it ready.
const BODY_PATIENCE: Duration = Duration::from_secs(30);

/// Turns in which a body that is there already is read.
const FEW_TURNS: usize = 2;

/// An answer that says no, outside of JSON-RPC.
pub(super) type Refusal = (StatusCode, Json<Value>);

/// Result of a route that replies with JSON.
pub(super) type JsonResult = Result<Json<Value>, Refusal>;

/// Says no, and why.
pub(super) fn refusal(status: StatusCode, why: &str) -> Refusal {
    (status, Json(json!({ "ok": false, "error": why, "detail": why })))
}

/// Why a request is refused for what its head says of its body, if it is. No body at all is always right.
pub(super) fn objection(request: &Request) -> Option<Refusal> {
    if !request.body().is_end_stream() && !is_json(request.headers()) {
        return Some(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json"));
    }
    // Of a smaller one that is too large all the same, the sender is heard out first.
    let is_hopeless = request.body().size_hint().lower() > MAX_DISCARDED_BYTES as u64;
    is_hopeless.then(too_large)
}

fn too_large() -> Refusal {
    refusal(StatusCode::PAYLOAD_TOO_LARGE, &format!("the body is larger than {MAX_BODY_BYTES} bytes"))
}

/// Waits for the whole of a body, so that whoever answers finds it complete.
pub(super) async fn complete(body: &mut Body) -> Result<(), Refusal> {
    if !body.is_end_stream() {
        *body = Body::from(whole(body).await?);
    }
    Ok(())
}

async fn whole(body: &mut Body) -> Result<Vec<u8>, Refusal> {
    let mut collecting = pin!(collect(body));
    let collected = match soon(collecting.as_mut()).await {
        Some(collected) => collected,
        None => tokio::time::timeout(BODY_PATIENCE, collecting)
            .await
            .map_err(|_| refusal(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"))?,
    };
    let (bytes, total) =
        collected.map_err(|_| refusal(StatusCode::BAD_REQUEST, "the body of the request ended early"))?;
    if total <= MAX_BODY_BYTES { Ok(bytes) } else { Err(too_large()) }
}

/// What comes of something within a few turns. A body mostly comes with its head, and an alarm for it, set and taken back,
/// would cost as much as the reading.
async fn soon<F: Future>(mut work: Pin<&mut F>) -> Option<F::Output> {
    let mut turns = 0;
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if turns == FEW_TURNS => Poll::Ready(None),
        Poll::Pending => {
            turns += 1;
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await
}

/// The body of a request. That it is JSON was checked with its head, before any route got it: see [`objection`].
pub(super) async fn json_bytes(request: Request) -> Result<Vec<u8>, Refusal> {
    bytes_of(request.into_body()).await
}

/// The same for a request whose head is still needed.
pub(super) async fn bytes_of(mut body: Body) -> Result<Vec<u8>, Refusal> {
    let collected = collect(&mut body).await;
    let (bytes, _) = collected.map_err(|_| refusal(StatusCode::BAD_REQUEST, "the body of the request ended early"))?;
    Ok(bytes)
}

/// A page of a foreign site may send plain text and forms without being asked; JSON it may not.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()) else { return false };
    let media_type = value.split(';').next().unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case("application/json")
}

/// What is kept of a body, and how long it was as far as it was read.
async fn collect(body: &mut Body) -> Result<(Vec<u8>, usize), axum::Error> {
    let (mut kept, mut total) = (Vec::new(), 0);
    // Where the length was told, the end is known without asking for more.
    while !body.is_end_stream() {
        let Some(data) = next_data(body).await? else { break };
        total += data.len();
        if total <= MAX_BODY_BYTES {
            kept.extend_from_slice(&data);
        } else {
            kept = Vec::new();
        }
        if total > MAX_DISCARDED_BYTES {
            break;
        }
    }
    Ok((kept, total))
}

async fn next_data(body: &mut Body) -> Result<Option<Bytes>, axum::Error> {
    loop {
        match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await {
            None => return Ok(None),
            Some(frame) => {
                // Trailers are of no interest.
                if let Ok(data) = frame?.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_is_json() {
        for (value, expected) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("text/plain", false),
            ("application/x-www-form-urlencoded", false),
            ("application/json-seq", false),
            ("text/plain; application/json", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, value.parse().expect("a header value"));
            assert_eq!(is_json(&headers), expected, "{value:?}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
