//! Telling a gateway: fire and forget. Nobody waits for it, and what it does not take in time is dropped and counted.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;

/// Events that may wait for the gateway.
const MAX_WAITING: usize = 1_000;
/// How long it may take for one.
const PATIENCE: Duration = Duration::from_secs(2);
/// Where it takes them.
const PATH: &str = "/v1/pty-traffic/emit";

/// What became of the events that a gateway was to be told.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) sent: AtomicU64,
    pub(super) dropped: AtomicU64,
}

/// The way to a gateway.
pub(super) struct Gateway {
    waiting: mpsc::Sender<Value>,
    told: Arc<Told>,
}

impl Gateway {
    /// Begins to tell it, unless it is this very server. Needs a runtime.
    pub(super) fn start(url: &str, own: Option<SocketAddr>, told: Arc<Told>) -> Option<Self> {
        let parsed = reqwest::Url::parse(url);
        let parsed =
            parsed.inspect_err(|error| tracing::warn!("the gateway will not be told of traffic: {error}")).ok()?;
        if own.is_some_and(|own| is_own(&parsed, own)) {
            return None;
        }
        // A proxy for the outside world has no business here, and where a redirect leads nobody has checked.
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(PATIENCE)
            .build()
            .inspect_err(|error| tracing::warn!("the gateway will not be told of traffic: {error}"))
            .ok()?;
        let (waiting, events) = mpsc::channel(MAX_WAITING);
        let target = format!("{}{PATH}", url.trim_end_matches('/'));
        tokio::spawn(tell(client, target, events, Arc::clone(&told)));
        Some(Self { waiting, told })
    }

    /// Has it told, if there is room.
    pub(super) fn tell(&self, event: Value) {
        if self.waiting.try_send(event).is_err() {
            self.told.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn tell(client: reqwest::Client, target: String, mut events: mpsc::Receiver<Value>, told: Arc<Told>) {
    let mut course = Course::default();
    while let Some(event) = events.recv().await {
        let answer = client.post(&target).json(&event).send().await;
        let is_taken = answer.as_ref().is_ok_and(|answer| answer.status().is_success());
        let count = if is_taken { &told.sent } else { &told.dropped };
        count.fetch_add(1, Ordering::Relaxed);
        match course.turn(is_taken) {
            Some(Turn::Fails) => tracing::warn!("the gateway does not take events: {}", reason(&answer)),
            Some(Turn::Recovers) => tracing::warn!("the gateway takes events again"),
            None => {}
        }
    }
}

/// How it goes with a gateway: each change is told once, whatever was dropped for other reasons meanwhile.
#[derive(Default)]
struct Course {
    is_failing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Fails,
    Recovers,
}

impl Course {
    fn turn(&mut self, is_taken: bool) -> Option<Turn> {
        let was_failing = std::mem::replace(&mut self.is_failing, !is_taken);
        match (was_failing, is_taken) {
            (false, false) => Some(Turn::Fails),
            (true, true) => Some(Turn::Recovers),
            _ => None,
        }
    }
}

fn reason(answer: &Result<reqwest::Response, reqwest::Error>) -> String {
    match answer {
        Ok(answer) => format!("it answers {}", answer.status()),
        Err(error) if error.is_timeout() => "it does not answer in time".to_owned(),
        Err(error) if error.is_connect() => "nobody listens there".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// The address leads back to us.
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
    fn each_change_is_told_once() {
        let mut course = Course::default();
        let turns = [true, false, false, true, true, false].map(|is_taken| course.turn(is_taken));
        assert_eq!(turns, [None, Some(Turn::Fails), None, Some(Turn::Recovers), None, Some(Turn::Fails)]);
    }

    /// Events that found no room are dropped too; that must not keep the reason from being told.
    #[tokio::test]
    async fn a_gateway_that_is_gone_is_told_after_events_found_no_room() {
        let told = Arc::new(Told { dropped: AtomicU64::new(7), ..Told::default() });
        let gateway = Gateway::start("http://127.0.0.1:9", None, Arc::clone(&told)).expect("a gateway");
        gateway.tell(Value::Null);
        let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
        while told.dropped.load(Ordering::Relaxed) < 8 {
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
