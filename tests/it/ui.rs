//! Login of the page and its WebSocket on the wire. `scripts/ui` tests the page itself in a browser.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::server::Server;

pub(crate) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Timeout that only a failure reaches.
const DEADLINE: Duration = Duration::from_secs(60);

/// A new link; only its path.
fn link(server: &Server) -> String {
    let run = server.kpty(&["open", "--print"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    run.stdout.trim().strip_prefix(&server.url()).expect("a link to this server").to_owned()
}

/// The cookie of a new login.
fn login(server: &Server) -> String {
    let opened = server.get(&link(server));
    assert_eq!((opened.status, opened.header("location")), (303, Some("/ui")));
    let cookie = opened.header("set-cookie").expect("a cookie").to_owned();
    assert!(cookie.contains("; HttpOnly") && cookie.contains("; SameSite=Strict"), "{cookie}");
    cookie.split(';').next().expect("a pair").to_owned()
}

#[test]
fn a_link_opens_once() {
    let server = Server::start();
    assert_eq!(server.get("/ui").status, 401);
    let link = link(&server);
    assert_eq!(server.get(&link).status, 303);
    let again = server.get(&link);
    assert_eq!(again.status, 401);
    assert!(again.body.contains("kpty open") && again.header("set-cookie").is_none());
    let wrong = format!("/ui?code={}", "0".repeat(32));
    assert_eq!(server.get(&wrong).status, 401);
}

#[test]
fn the_page_is_closed_to_others_and_has_careful_headers() {
    let server = Server::start();
    let cookie = login(&server);
    let page = server.http("GET", "/ui", &[("Cookie", &cookie)], b"");
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").expect("a policy");
    for part in ["default-src 'none'", "frame-ancestors 'none'", "script-src 'self'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    for word in ["http://", "https://", "style=", "onclick"] {
        assert!(!page.body.contains(word), "the page needs nothing from elsewhere: {word}");
    }
    for (headers, expected) in [
        (vec![("Cookie", cookie.as_str()), ("Origin", "http://evil.example")], 403),
        (vec![("Cookie", cookie.as_str()), ("Sec-Fetch-Site", "cross-site")], 403),
        (vec![("Cookie", cookie.as_str()), ("Host", "evil.example")], 403),
    ] {
        assert_eq!(server.http("GET", "/ui", &headers, b"").status, expected, "{headers:?}");
    }
}

#[test]
fn a_login_works_where_a_token_is_needed_and_makes_no_links() {
    let folder = crate::support::Folder::new();
    let token = folder.file("token", "0123456789abcdef0123456789abcdef\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    }
    let path = token.to_str().expect("UTF-8");
    // Under a name that is not this machine's, only the token and the login count.
    let server = Server::start_with(&[], &["--allow-remote", "--token-file", path]);
    let foreign = ("Host", "box.example:1");
    let link = server.kpty(&["open", "--print", "--token-file", path]).stdout;
    let link = link.trim().strip_prefix(&server.url()).expect("a link").to_owned();
    assert_eq!(server.http("GET", "/ui/app.js", &[foreign], b"").status, 401);
    let opened = server.http("GET", &link, &[foreign], b"");
    assert_eq!(opened.status, 303, "{}", opened.body);
    let cookie = opened.header("set-cookie").expect("a cookie").split(';').next().expect("a pair").to_owned();
    let logged_in = [foreign, ("Cookie", cookie.as_str())];
    assert_eq!(server.http("GET", "/ui", &logged_in, b"").status, 200);
    assert_eq!(server.http("GET", "/ui/app.js", &logged_in, b"").status, 200);
    let json = [foreign, ("Cookie", cookie.as_str()), ("Content-Type", "application/json")];
    assert_eq!(server.http("POST", "/ui/link", &json, b"{}").status, 401);
    assert_eq!(server.http("POST", "/mcp", &json, b"{}").status, 401, "a login is for the page alone");
}

pub(crate) async fn open(server: &Server, headers: &[(&'static str, &str)]) -> Result<Socket, u16> {
    let mut request = format!("ws://127.0.0.1:{}/ws/live", server.port).into_client_request().expect("a request");
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().expect("a value"));
    }
    match connect_async(request).await {
        Ok((socket, _)) => Ok(socket),
        Err(tokio_tungstenite::tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn only_the_own_page_opens_the_socket() {
    let server = Server::start();
    let cookie = login(&server);
    let own = server.url();
    for (headers, expected) in [
        (vec![("origin", own.as_str()), ("cookie", cookie.as_str())], Ok(())),
        (vec![("origin", own.as_str())], Err(403)),
        (vec![("origin", "http://localhost:1"), ("cookie", cookie.as_str())], Err(403)),
        (vec![("origin", "http://evil.example"), ("cookie", cookie.as_str())], Err(403)),
        (vec![], Ok(())),
    ] {
        assert_eq!(open(&server, &headers).await.map(drop), expected, "{headers:?}");
    }
}

pub(crate) async fn say(socket: &mut Socket, message: Value) {
    socket.send(Message::text(message.to_string())).await.expect("the server reads");
}

/// The next message of a kind.
pub(crate) async fn next(socket: &mut Socket, kind: &str) -> Value {
    loop {
        let message = tokio::time::timeout(DEADLINE, socket.next()).await.expect("a message in time");
        let message = message.expect("a message").expect("a good one");
        let Message::Text(text) = message else { continue };
        let value: Value = serde_json::from_str(&text).expect("JSON");
        if value["t"] == kind {
            return value;
        }
    }
}

#[tokio::test]
async fn who_draws_nothing_gets_no_third_frame_and_then_the_newest() {
    let server = Server::start();
    let (id, _) = server.create();
    let mut socket = open(&server, &[]).await.expect("a socket");
    say(&mut socket, json!({ "t": "watch", "large": id })).await;
    let mut last = next(&mut socket, "frames").await["s"].as_u64().expect("a number");
    assert_eq!(last, 1);
    // A thousand lines, and nothing is acknowledged: at most one more comes, whatever happens.
    server.done("talk", json!({ "session_id": id, "command": "seq 1000" }));
    server.done("talk", json!({ "session_id": id, "command": "clear; echo the-end-$((40+2))" }));
    let mut text = String::new();
    say(&mut socket, json!({ "t": "call", "n": 7, "args": { "action": "list" } })).await;
    loop {
        let message = tokio::time::timeout(DEADLINE, socket.next()).await.expect("in time").expect("a message");
        let Message::Text(sent) = message.expect("a good one") else { continue };
        let value: Value = serde_json::from_str(&sent).expect("JSON");
        match value["t"].as_str() {
            // It may be the newest already: then no other comes.
            Some("frames") => (last, text) = (value["s"].as_u64().expect("a number"), value["frames"].to_string()),
            Some("reply") => break,
            _ => {}
        }
    }
    assert!(last <= 2, "{last} frames without one drawn");
    say(&mut socket, json!({ "t": "ack", "s": last })).await;
    while !text.contains("the-end-42") {
        let frames = next(&mut socket, "frames").await;
        text = frames["frames"].to_string();
        assert!(!text.contains("\"500\""), "what was long ago is skipped");
        say(&mut socket, json!({ "t": "ack", "s": frames["s"] })).await;
    }
}

#[tokio::test]
async fn a_flood_comes_as_thirty_frames_a_second_at_most() {
    let server = Server::start();
    let (id, _) = server.create();
    let mut socket = open(&server, &[]).await.expect("a socket");
    say(&mut socket, json!({ "t": "watch", "large": id })).await;
    server.done("send_line", json!({ "session_id": id, "data": "i=0; while :; do i=$((i+1)); echo $i; done" }));
    // The first frames may come in a hurry: the clock starts with one of them.
    let mut frames = next(&mut socket, "frames").await;
    let began = std::time::Instant::now();
    let mut count = 0;
    while began.elapsed() < Duration::from_secs(3) {
        say(&mut socket, json!({ "t": "ack", "s": frames["s"] })).await;
        frames = next(&mut socket, "frames").await;
        count += 1;
    }
    let rate = f64::from(count) / began.elapsed().as_secs_f64();
    assert!(rate <= 30.5, "{rate} frames a second");
    assert!(count > 1, "{count} frames in 3 s");
}

#[tokio::test]
async fn secrets_are_masked_in_frames_and_history() {
    let server = Server::start();
    let (id, _) = server.create();
    let token = ["gh", "p_", &"a1B2".repeat(9)].concat();
    let (half, rest) = token.split_at(6);
    let script = format!("clear; a={half}; echo ${{a}}{rest}; seq 60; echo ${{a}}{rest}; echo over-$((1+1))");
    server.done("send_keys", json!({ "session_id": id, "text": script, "keys": "Enter" }));
    server.done("wait", json!({ "session_id": id, "text": "over-2", "timeout_ms": 60_000 }));
    let mut socket = open(&server, &[]).await.expect("a socket");
    say(&mut socket, json!({ "t": "watch", "large": id })).await;
    let frames = next(&mut socket, "frames").await.to_string();
    assert!(frames.contains("[REDACTED") && !frames.contains(&token), "{frames}");
    say(&mut socket, json!({ "t": "history", "n": 1, "id": id, "from": 0, "until": 1000 })).await;
    let history = next(&mut socket, "reply").await.to_string();
    assert!(history.contains("[REDACTED") && history.contains("\"20\"") && !history.contains(&token), "{history}");
}

#[tokio::test]
async fn what_is_no_business_of_a_page_is_refused() {
    let server = Server::start();
    let mut socket = open(&server, &[]).await.expect("a socket");
    for action in ["talk", "write", "adopt", ""] {
        say(&mut socket, json!({ "t": "call", "n": 1, "args": { "action": action } })).await;
        assert_eq!(next(&mut socket, "reply").await["body"]["ok"], false, "{action}");
    }
    say(&mut socket, json!({ "t": "nonsense" })).await;
    socket.send(Message::text("{")).await.expect("the server reads");
    say(&mut socket, json!({ "t": "call", "n": 2, "args": { "action": "list" } })).await;
    assert_eq!(next(&mut socket, "reply").await["body"]["ok"], true, "nonsense breaks nothing");
}

/// Sessions that do not want to end keep a call busy for a while.
#[tokio::test]
async fn sixteen_calls_are_worked_on_and_there_is_room_again_after() {
    const CALLS: usize = 20;
    let server = Server::start();
    let line = "trap '' HUP TERM; echo ready; while :; do sleep 1000 & wait; done";
    let ids: Vec<Value> = (0..CALLS)
        .map(|_| {
            let id = server.done("create", json!({ "shell": "/bin/sh", "args": ["-c", line] }))["session_id"].clone();
            server.done("wait", json!({ "session_id": id, "text": "ready" }));
            id
        })
        .collect();
    let mut socket = open(&server, &[]).await.expect("a socket");
    for (n, id) in ids.iter().enumerate() {
        say(&mut socket, json!({ "t": "call", "n": n, "args": { "action": "kill", "session_id": id } })).await;
    }
    let mut refused = 0;
    for _ in 0..CALLS {
        refused += usize::from(next(&mut socket, "reply").await["body"]["ok"] == false);
    }
    assert_eq!(refused, CALLS - 16);
    for n in 0..40 {
        say(&mut socket, json!({ "t": "call", "n": n, "args": { "action": "list" } })).await;
        assert_eq!(next(&mut socket, "reply").await["body"]["ok"], true, "{n}");
    }
}

#[tokio::test]
async fn screens_that_are_switched_off_are_not_shown_here_either() {
    let server = Server::start_with(&[("KURORYUU_TERM_BUFFER_ACCESS", "off")], &[]);
    let (id, _) = server.create();
    let mut socket = open(&server, &[]).await.expect("a socket");
    assert_eq!(next(&mut socket, "hello").await["screens"], false);
    say(&mut socket, json!({ "t": "watch", "large": id })).await;
    say(&mut socket, json!({ "t": "history", "n": 1, "id": id, "from": 0, "until": 10 })).await;
    let message = tokio::time::timeout(DEADLINE, async {
        loop {
            let Some(Ok(Message::Text(text))) = socket.next().await else { continue };
            let value: Value = serde_json::from_str(&text).expect("JSON");
            assert_ne!(value["t"], "frames");
            if value["t"] == "reply" {
                return value;
            }
        }
    });
    assert_eq!(message.await.expect("an answer")["body"]["ok"], false);
}
