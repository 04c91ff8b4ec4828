//! `kpty serve --register-with`: one server's sessions are registered with another, regardless of restarts of either.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::Server;
use crate::support::{Folder, command, finished};

/// Timeout that only a failure reaches; a heartbeat comes every 5 s.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that registers its sessions with another one.
fn registering_with(url: &str) -> Server {
    Server::start_with(&[], &["--register-with", url])
}

/// A server on a given port.
fn start_on_port(port: u16) -> Server {
    let state = Folder::new();
    let mut command = command(["serve", "--port", &port.to_string(), "--state-dir"]);
    command.arg(state.path().join("state")).env("HOME", state.path()).env("KURORYUU_PROJECT_ROOT", state.path());
    Server::launch(command, state)
}

/// Returns the desktop sessions that a server lists.
fn known(server: &Server) -> Vec<Value> {
    let answer = server.get("/v1/pty/sessions?source=desktop").json();
    answer["sessions"].as_array().expect("sessions").clone()
}

/// Waits until a server lists the expected sessions. Each poll takes about a millisecond.
fn until(server: &Server, what: &str, is_right: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let began = Instant::now();
    loop {
        let sessions = known(server);
        if is_right(&sessions) {
            return sessions;
        }
        assert!(began.elapsed() < PATIENCE, "{what}: {sessions:?}");
    }
}

/// Returns a free port.
fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}

#[test]
fn sessions_are_told_as_they_come_change_and_go() {
    let main = Server::start();
    let side = registering_with(&main.url());
    let answer = side.done("create", json!({ "label": "build", "agent_id": "worker-1" }));
    let (id, pid) = (answer["session_id"].clone(), answer["pid"].clone());
    let told = until(&main, "a new session", |sessions| sessions.len() == 1).remove(0);
    for (name, expected) in [
        ("session_id", &id),
        ("source", &json!("desktop")),
        ("desktop_url", &json!(side.url())),
        ("pid", &pid),
        ("cli_type", &json!("shell")),
        ("label", &json!("build")),
        ("owner_agent_id", &json!("worker-1")),
    ] {
        assert_eq!(told[name], *expected, "{name}: {told}");
    }
    side.done("adopt", json!({ "session_id": id, "agent_id": "lead-1", "owner_role": "leader", "force": true }));
    until(&main, "another owner", |sessions| sessions.iter().any(|session| session["owner_agent_id"] == "lead-1"));
    let found = main.done("resolve", json!({ "agent_id": "lead-1" }));
    assert_eq!(found["session_id"], id);
    side.done("disown", json!({ "session_id": id }));
    until(&main, "no owner", |sessions| sessions.iter().any(|session| session["owner_agent_id"].is_null()));
    let (second, _) = side.create();
    until(&main, "a second session", |sessions| sessions.len() == 2);
    side.done("kill", json!({ "session_id": id }));
    let left = until(&main, "a session that ended", |sessions| sessions.len() == 1);
    assert_eq!(left[0]["session_id"], json!(second));
}

#[test]
fn a_server_that_ends_takes_its_sessions_back() {
    let main = Server::start();
    let mut side = registering_with(&main.url());
    let (id, _) = side.create();
    // Only the server that owns a leader's session can unregister it.
    side.done("adopt", json!({ "session_id": id, "agent_id": "lead-1", "owner_role": "leader" }));
    until(&main, "a leader", |sessions| sessions.iter().any(|session| session["owner_role"] == "leader"));
    side.signal("TERM");
    assert_eq!(side.end().code(), Some(0));
    assert_eq!(known(&main), Vec::<Value>::new());
}

#[test]
fn sessions_are_heard_of_again_and_again() {
    let main = Server::start();
    let side = registering_with(&main.url());
    side.create();
    let first = until(&main, "a session", |sessions| sessions.len() == 1)[0]["last_heartbeat"].clone();
    until(&main, "a heartbeat", |sessions| sessions[0]["last_heartbeat"] != first);
}

#[test]
fn another_desktops_secret_or_a_reset_locks_nobody_out() {
    let main = Server::start();
    let side = registering_with(&main.url());
    let (first, _) = side.create();
    until(&main, "a session", |sessions| sessions.len() == 1);
    let secret = "cd".repeat(32);
    let header = ("X-Kuroryuu-Desktop-Secret", secret.as_str());
    assert_eq!(main.http("POST", "/_x9k_desktop_auth", &[header], b"").status, 200);
    let (second, _) = side.create();
    until(&main, "a session under a secret that was replaced", |sessions| sessions.len() == 2);
    assert_eq!(main.http("POST", "/_x9k_desktop_auth", &[header], b"").status, 200);
    assert_eq!(main.http("DELETE", "/v1/pty/reset", &[header], b"").status, 200);
    let again = until(&main, "sessions after a reset", |sessions| sessions.len() == 2);
    let mut ids: Vec<_> = again.iter().map(|session| session["session_id"].clone()).collect();
    let mut expected = vec![json!(first), json!(second)];
    ids.sort_by_key(Value::to_string);
    expected.sort_by_key(Value::to_string);
    assert_eq!(ids, expected);
}

#[test]
fn a_restart_of_the_other_side_is_survived() {
    let port = free_port();
    // The other server is not running; this does not disturb the first one.
    let side = registering_with(&format!("http://127.0.0.1:{port}"));
    let (id, _) = side.create();
    assert_eq!(side.done("talk", json!({ "session_id": id, "command": "echo here" }))["output"], "here");
    for what in ["the first start", "a restart without what it knew"] {
        let mut main = start_on_port(port);
        let told = until(&main, what, |sessions| sessions.len() == 1);
        assert_eq!(told[0]["session_id"], json!(id), "{what}");
        main.signal("TERM");
        assert_eq!(main.end().code(), Some(0));
    }
    let main = start_on_port(port);
    side.done("kill", json!({ "session_id": id }));
    let (second, _) = side.create();
    let told = until(&main, "other sessions after another restart", |sessions| sessions.len() == 1);
    assert_eq!(told[0]["session_id"], json!(second));
}

#[test]
fn another_side_that_hangs_delays_nothing() {
    // A listener that accepts connections and never replies.
    let silent = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    let mut side = registering_with(&url);
    let (id, _) = side.create();
    assert_eq!(side.done("talk", json!({ "session_id": id, "command": "echo here" }))["output"], "here");
    let began = Instant::now();
    side.signal("TERM");
    assert_eq!(side.end().code(), Some(0));
    // Below 5 s, the maximum for a server's shutdown; an unbounded wait would take longer.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn only_a_server_where_a_bridge_may_be_is_told_anything() {
    let folder = Folder::new();
    let state = folder.path().join("state");
    let own = free_port().to_string();
    let own_url = format!("http://localhost:{own}");
    for (url, why) in [
        ("http://10.0.0.1:8100", "--allow-bridge"),
        ("https://127.0.0.1:8100", "http://"),
        ("http://user@127.0.0.1:8100", "user name"),
        ("nonsense", "http://"),
        (own_url.as_str(), "this server itself"),
    ] {
        let mut serve = command(["serve", "--port", &own, "--register-with", url, "--state-dir"]);
        let run = finished(serve.arg(&state).output().expect("kpty starts"));
        assert_eq!(run.code, 2, "{url}: {}", run.stderr);
        assert!(run.stderr.contains(why), "{url}: {}", run.stderr);
    }
}
