//! Request bodies and error responses: JSON only, limited in size and time.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};

/// Maximum size of a body. The longest legitimate one is a script to be typed.
pub(super) const MAX_BODY_BYTES: usize = 4 << 20;
/// Bytes of an oversized body that are read and discarded, so that its sender reads the error response.
const MAX_DISCARDED_BYTES: usize = 16 << 20;

/// Timeout for receiving a body. Clients have it ready.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Number of polls in which a buffered body is read before a timer is set.
const EAGER_POLLS: usize = 2;

/// An error response outside JSON-RPC.
pub(super) type Refusal = (StatusCode, Json<Value>);

/// Result of a route that replies with JSON.
pub(super) type JsonResult = Result<Json<Value>, Refusal>;

/// Builds an error response.
pub(super) fn refusal(status: StatusCode, why: &str) -> Refusal {
    (status, Json(json!({ "ok": false, "error": why, "detail": why })))
}

/// Rejects a request by its head: wrong media type or excessive length. A request without a body is always accepted.
pub(super) fn objection(request: &Request) -> Option<Refusal> {
    if !request.body().is_end_stream() && !is_json(request.headers()) {
        return Some(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json"));
    }
    // A moderately oversized body is read first, so that its sender reads the response.
    let is_far_too_large = request.body().size_hint().lower() > MAX_DISCARDED_BYTES as u64;
    is_far_too_large.then(too_large)
}

fn too_large() -> Refusal {
    refusal(StatusCode::PAYLOAD_TOO_LARGE, &format!("the body is larger than {MAX_BODY_BYTES} bytes"))
}

/// Receives the complete body in place.
pub(super) async fn complete(body: &mut Body) -> Result<(), Refusal> {
    if !body.is_end_stream() {
        *body = Body::from(whole(body).await?);
    }
    Ok(())
}

async fn whole(body: &mut Body) -> Result<Vec<u8>, Refusal> {
    let mut collecting = pin!(collect(body));
    let collected = match poll_eagerly(collecting.as_mut()).await {
        Some(collected) => collected,
        None => tokio::time::timeout(BODY_TIMEOUT, collecting)
            .await
            .map_err(|_| refusal(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"))?,
    };
    let (bytes, total) =
        collected.map_err(|_| refusal(StatusCode::BAD_REQUEST, "the body of the request ended early"))?;
    if total <= MAX_BODY_BYTES { Ok(bytes) } else { Err(too_large()) }
}

/// Polls a future a few times without a timer. A body usually arrives with its head, and registering a timer would cost
/// as much as reading it.
async fn poll_eagerly<F: Future>(mut work: Pin<&mut F>) -> Option<F::Output> {
    let mut turns = 0;
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if turns == EAGER_POLLS => Poll::Ready(None),
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

/// Reads a body up to the limits. Returns the kept bytes and the length read.
async fn collect(body: &mut Body) -> Result<(Vec<u8>, usize), axum::Error> {
    let (mut kept, mut total) = (Vec::new(), 0);
    // With a known length, the end is detected without another read.
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
                // Trailers are ignored.
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
