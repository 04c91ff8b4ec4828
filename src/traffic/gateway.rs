//! Forwards events to a gateway without delivery guarantees: nothing waits for it, and events that it does not accept
//! in time are dropped and counted.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;

/// Maximum number of events queued for the gateway.
const MAX_QUEUED: usize = 1_000;
/// Timeout of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// Path of the gateway's endpoint.
const PATH: &str = "/v1/pty-traffic/emit";

/// Counts of events sent to the gateway and events dropped.
#[derive(Debug, Default)]
pub(super) struct GatewayCounters {
    pub(super) sent: AtomicU64,
    pub(super) dropped: AtomicU64,
}

/// Connection to a gateway.
pub(super) struct Gateway {
    queue: mpsc::Sender<Value>,
    counters: Arc<GatewayCounters>,
}

impl Gateway {
    /// Starts forwarding, unless the URL is this server's own. Requires a runtime.
    pub(super) fn start(url: &str, own: Option<SocketAddr>, counters: Arc<GatewayCounters>) -> Option<Self> {
        let parsed = reqwest::Url::parse(url);
        let parsed =
            parsed.inspect_err(|error| tracing::warn!("traffic is not forwarded to the gateway: {error}")).ok()?;
        if own.is_some_and(|own| is_own(&parsed, own)) {
            return None;
        }
        // Proxies apply to outside hosts only, and the target of a redirect has not been validated.
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(REQUEST_TIMEOUT)
            .build()
            .inspect_err(|error| tracing::warn!("traffic is not forwarded to the gateway: {error}"))
            .ok()?;
        let (queue, events) = mpsc::channel(MAX_QUEUED);
        let target = format!("{}{PATH}", url.trim_end_matches('/'));
        tokio::spawn(forward(client, target, events, Arc::clone(&counters)));
        Some(Self { queue, counters })
    }

    /// Queues an event; drops and counts it when the queue is full.
    pub(super) fn send(&self, event: Value) {
        if self.queue.try_send(event).is_err() {
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn forward(
    client: reqwest::Client,
    target: String,
    mut events: mpsc::Receiver<Value>,
    counters: Arc<GatewayCounters>,
) {
    let mut health = GatewayHealth::default();
    while let Some(event) = events.recv().await {
        let answer = client.post(&target).json(&event).send().await;
        let is_taken = answer.as_ref().is_ok_and(|answer| answer.status().is_success());
        let count = if is_taken { &counters.sent } else { &counters.dropped };
        count.fetch_add(1, Ordering::Relaxed);
        match health.record(is_taken) {
            Some(HealthChange::Fails) => tracing::warn!("the gateway rejects events: {}", reason(&answer)),
            Some(HealthChange::Recovers) => tracing::warn!("the gateway accepts events again"),
            None => {}
        }
    }
}

/// Health of the gateway; each change is logged once, regardless of events dropped for other reasons.
#[derive(Default)]
struct GatewayHealth {
    is_failing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HealthChange {
    Fails,
    Recovers,
}

impl GatewayHealth {
    fn record(&mut self, is_taken: bool) -> Option<HealthChange> {
        let was_failing = std::mem::replace(&mut self.is_failing, !is_taken);
        match (was_failing, is_taken) {
            (false, false) => Some(HealthChange::Fails),
            (true, true) => Some(HealthChange::Recovers),
            _ => None,
        }
    }
}

fn reason(answer: &Result<reqwest::Response, reqwest::Error>) -> String {
    match answer {
        Ok(answer) => format!("it answers {}", answer.status()),
        Err(error) if error.is_timeout() => "it timed out".to_owned(),
        Err(error) if error.is_connect() => "connection refused".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// Returns whether the URL leads back to this server.
fn is_own(url: &reqwest::Url, own: SocketAddr) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let address = host.parse::<IpAddr>().ok();
    let is_here = host.eq_ignore_ascii_case("localhost")
        || address.is_some_and(|address| address.is_loopback() || address.is_unspecified() || address == own.ip());
    is_here && url.port_or_known_default() == Some(own.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_logged_once() {
        let mut health = GatewayHealth::default();
        let changes = [true, false, false, true, true, false].map(|is_taken| health.record(is_taken));
        assert_eq!(
            changes,
            [None, Some(HealthChange::Fails), None, Some(HealthChange::Recovers), None, Some(HealthChange::Fails)]
        );
    }

    /// Events are also dropped when the queue is full; that must not suppress the log line with the reason.
    #[tokio::test]
    async fn an_unreachable_gateway_is_logged_after_the_queue_was_full() {
        let counters = Arc::new(GatewayCounters { dropped: AtomicU64::new(7), ..GatewayCounters::default() });
        let gateway = Gateway::start("http://127.0.0.1:9", None, Arc::clone(&counters)).expect("a gateway");
        gateway.send(Value::Null);
        let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
        while counters.dropped.load(Ordering::Relaxed) < 8 {
            assert!(tokio::time::Instant::now() < deadline, "it was not tried");
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn the_own_address_is_known_however_it_is_written() {
        let own = SocketAddr::from(([127, 0, 0, 1], 8100));
        for (url, expected) in [
            ("http://127.0.0.1:8100", true),
            ("http://localhost:8100/", true),
            ("http://LOCALHOST:8100", true),
            ("http://[::1]:8100", true),
            ("http://0.0.0.0:8100", true),
            ("http://127.0.0.1:8200", false),
            ("http://127.0.0.1", false),
            ("http://gateway.example:8100", false),
            ("http://10.0.0.1:8100", false),
        ] {
            let parsed = reqwest::Url::parse(url).expect("an address");
            assert_eq!(is_own(&parsed, own), expected, "{url}");
        }
        let http = SocketAddr::from(([10, 0, 0, 1], 80));
        assert!(is_own(&reqwest::Url::parse("http://10.0.0.1").expect("an address"), http));
    }
}
