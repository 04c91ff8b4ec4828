//! The WebSocket of the traffic log: its events, its filters, and disconnection of a listener that does not read.

use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{self, Message};

use super::{DEADLINE, emit, get};
use crate::server::Server;

/// A WebSocket to the server, and what it says.
struct Socket(tokio_tungstenite::WebSocketStream<tokio::net::TcpStream>);

impl Socket {
    async fn open(server: &Server) -> Self {
        Self::open_with(server, &[]).await.expect("a WebSocket")
    }

    async fn open_with(server: &Server, headers: &[(&'static str, &str)]) -> Result<Self, tungstenite::Error> {
        use tungstenite::client::IntoClientRequest as _;
        let url = format!("ws://127.0.0.1:{}/ws/pty-traffic", server.port);
        let mut request = url.into_client_request()?;
        for &(name, value) in headers {
            request.headers_mut().insert(name, value.parse().expect("a header value"));
        }
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", server.port)).await?;
        Ok(Self(tokio_tungstenite::client_async(request, stream).await?.0))
    }

    async fn next(&mut self) -> Option<Value> {
        loop {
            let message = tokio::time::timeout(DEADLINE, self.0.next()).await.expect("in time")?;
            match message {
                Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).expect("JSON")),
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    async fn say(&mut self, message: &str) -> Value {
        self.0.send(Message::Text(message.into())).await.expect("the server reads");
        self.next().await.expect("an answer")
    }
}

#[tokio::test]
async fn events_come_over_the_websocket_as_they_happen_and_pause_pauses() {
    let server = Server::start();
    let mut socket = Socket::open(&server).await;
    let hello = socket.next().await.expect("a greeting");
    assert_eq!(
        (&hello["type"], &hello["ping_interval"], &hello["pong_timeout"]),
        (&json!("connected"), &json!(30), &json!(60))
    );
    let send = |command: &str, agent: &str, success: bool| {
        emit(
            &server,
            &json!({ "action": "a", "session_id": "s", "command": command, "agent_id": agent, "success": success }),
        );
    };
    send("one", "x", true);
    let event = socket.next().await.expect("an event");
    assert_eq!((&event["type"], &event["event"]["command"]), (&json!("pty_event"), &json!("one")));
    assert_eq!(socket.say(r#"{"type":"ping"}"#).await["type"], "pong");
    assert_eq!(socket.say(r#"{"type":"pause"}"#).await["type"], "paused");
    send("two", "x", true);
    // Events are sent before the next reply: the pause holds them back.
    assert_eq!(get(&server, "events")["total"], 2);
    assert_eq!(socket.say(r#"{"type":"ping"}"#).await["type"], "pong");
    let resumed = socket.say(r#"{"type":"resume"}"#).await;
    assert_eq!(resumed["type"], "resumed", "{resumed}");
    send("three", "x", true);
    let next = socket.next().await.expect("an event");
    assert!(next["event"]["command"] == "three", "{next}");
    let subscribed = socket.say(r#"{"type":"subscribe","filters":{"agent_ids":["y"],"errors_only":true}}"#).await;
    assert_eq!(subscribed["type"], "subscribed");
    send("four", "x", false);
    send("five", "y", true);
    send("six", "y", false);
    assert_eq!(socket.next().await.expect("an event")["event"]["command"], "six");
    assert_eq!(socket.say(r#"{"type":"unsubscribe"}"#).await["type"], "unsubscribed");
    for nonsense in ["nonsense", "[]", r#"{"type":"dance"}"#, r#"{"type":"subscribe","filters":{"actions":7}}"#] {
        assert_eq!(socket.say(nonsense).await["type"], "error", "{nonsense}");
    }
    assert_eq!(get(&server, "health")["websocket_clients"], 1);
    drop(socket);
    let deadline = Instant::now() + DEADLINE;
    while get(&server, "health")["websocket_clients"] != 0 {
        assert!(Instant::now() < deadline, "who left is still counted");
    }
}

#[tokio::test]
async fn a_websocket_is_refused_to_those_who_may_not_ask() {
    let server = Server::start();
    let rebound = format!("evil.example:{}", server.port);
    for headers in [
        &[("origin", "https://evil.example")][..],
        &[("origin", "null")],
        &[("host", rebound.as_str())],
        &[("sec-fetch-site", "cross-site")],
    ] {
        match Socket::open_with(&server, headers).await.map(|_| ()) {
            Err(tungstenite::Error::Http(response)) => assert_eq!(response.status(), 403, "{headers:?}"),
            other => panic!("{headers:?}: {other:?}"),
        }
    }
    let own = format!("http://127.0.0.1:{}", server.port);
    Socket::open_with(&server, &[("origin", &own)]).await.expect("the own page may listen");
}

#[tokio::test]
async fn a_listener_that_does_not_read_holds_up_nobody() {
    let server = Server::start();
    let (id, _) = server.create();
    // It never reads again after the greeting.
    let mut stuck = Socket::open(&server).await;
    stuck.next().await.expect("a greeting");
    let big = "x".repeat(9_000);
    for _ in 0..600 {
        emit(&server, &json!({ "action": "a", "session_id": "s", "response": big, "command": big }));
    }
    let begun = Instant::now();
    server.done("talk", json!({ "session_id": id, "command": "echo quick" }));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(get(&server, "events?action=a")["total"], 600);
    // It is disconnected or receives the number of lost events.
    let (mut seen, mut missed) = (0, 0);
    while seen + missed < 600 {
        match stuck.next().await {
            Some(message) if message["type"] == "pty_event" && message["event"]["action"] == "a" => seen += 1,
            Some(message) if message["type"] == "lagged" => missed += message["missed"].as_u64().expect("a number"),
            Some(_) => {}
            None => break,
        }
    }
    assert!(seen > 0, "{missed}");
}
