//! The plain HTTP routes of a real server: what desktops and other services may register and change.

use serde_json::{Value, json};

use crate::server::{Response, Server};

const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const DESKTOP: (&str, &str) = ("X-Kuroryuu-Desktop-Secret", SECRET);
const INTERNAL: (&str, &str) = ("X-Kuroryuu-Internal-Secret", "between-services");
const JSON: (&str, &str) = ("Content-Type", "application/json");
const BRIDGE: &str = "http://127.0.0.1:8201";

/// A server that knows the desktop's secret.
fn server() -> Server {
    let server = Server::start_with(&[("KURORYUU_INTERNAL_SECRET", INTERNAL.1)], &[]);
    let answer = server.http("POST", "/_x9k_desktop_auth", &[DESKTOP], b"");
    assert_eq!((answer.status, answer.json()), (200, json!({ "ok": true, "message": "Desktop secret registered" })));
    server
}

/// Sends a request of the desktop; the status must be 200.
fn desktop(server: &Server, method: &str, path: &str, body: &Value) -> Value {
    let bytes = if body.is_null() { String::new() } else { body.to_string() };
    let answer = server.http(method, path, &[DESKTOP, JSON], bytes.as_bytes());
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    answer.json()
}

fn register(server: &Server, body: Value) -> Value {
    desktop(server, "POST", "/v1/pty/register", &body)
}

fn get(server: &Server, path: &str) -> Value {
    let answer = server.get(path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    answer.json()
}

fn detail(answer: &Response) -> Value {
    let body = answer.json();
    assert!(body.get("detail").is_some(), "{body}");
    body["detail"].clone()
}

/// Times differ between runs: they are validated and removed.
fn timeless(mut session: Value) -> Value {
    for name in ["created_at", "last_heartbeat"] {
        let time = session[name].as_str().expect("a time");
        assert!(time.len() == 25 && time.ends_with("+00:00"), "{time}");
        session.as_object_mut().expect("an object").remove(name);
    }
    session
}

#[test]
fn the_tools_are_listed_for_plain_clients() {
    let server = Server::start();
    let tools = get(&server, "/tools?client_type=any");
    let info = get(&server, "/");
    let names: Vec<_> = tools["tools"].as_array().expect("tools").iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(json!(names), info["tools"]);
    assert!(tools["tools"][0]["inputSchema"]["properties"]["action"]["enum"].is_array());
    assert_eq!(info["tools_count"], json!(names.len()));
    let health = get(&server, "/health");
    assert_eq!((&health["ok"], &health["status"]), (&json!(true), &json!("healthy")));
}

#[test]
fn a_desktop_registers_updates_and_unregisters_a_session() {
    let server = server();
    let body = json!({
        "session_id": "9ccd99b1-bdd8-710e", "cli_type": "claude", "pid": 12345, "desktop_url": "http://127.0.0.1:8201/",
        "owner_agent_id": "worker_1", "owner_session_id": "s1", "owner_role": "worker", "label": "Worker A",
        "claude_code_session_id": "c1",
    });
    assert_eq!(register(&server, body), json!({ "ok": true, "created": true }));
    let mut expected = json!({
        "session_id": "9ccd99b1-bdd8-710e", "source": "desktop", "desktop_url": BRIDGE, "cli_type": "claude",
        "pid": 12345, "owner_agent_id": "worker_1", "owner_session_id": "s1", "owner_role": "worker",
        "label": "Worker A", "claude_code_session_id": "c1",
    });
    let one = get(&server, "/v1/pty/sessions/9ccd99b1-bdd8-710e");
    assert_eq!((&one["ok"], timeless(one["session"].clone())), (&json!(true), expected.clone()));
    let update = json!({
        "session_id": "9ccd99b1-bdd8-710e", "desktop_url": "http://localhost:8202", "label": "Worker B",
        "cli_type": "other", "owner_role": null,
    });
    assert_eq!(register(&server, update), json!({ "ok": true, "updated": true }));
    (expected["desktop_url"], expected["label"]) = (json!("http://localhost:8202"), json!("Worker B"));
    let all = get(&server, "/v1/pty/sessions");
    assert_eq!((&all["count"], &all["by_source"]), (&json!(1), &json!({ "local": 0, "desktop": 1 })));
    assert_eq!((timeless(all["sessions"][0].clone()), all.get("ok")), (expected, None));
    let path = "/v1/pty/unregister/9ccd99b1-bdd8-710e";
    assert_eq!(desktop(&server, "DELETE", path, &Value::Null), json!({ "ok": true }));
    let gone = json!({ "ok": false, "error": "Session not found: 9ccd99b1-bdd8-710e" });
    assert_eq!(desktop(&server, "DELETE", path, &Value::Null), gone);
    assert_eq!(get(&server, "/v1/pty/sessions/9ccd99b1-bdd8-710e"), gone);
    assert_eq!(get(&server, "/v1/pty/sessions/a%20b"), json!({ "ok": false, "error": "Session not found: a b" }));
}

#[test]
fn local_and_desktop_sessions_stand_side_by_side() {
    let server = server();
    let (id, pid) = server.create();
    register(&server, json!({ "session_id": "desk-1", "desktop_url": BRIDGE }));
    let all = get(&server, "/v1/pty/sessions");
    assert_eq!((&all["count"], &all["by_source"]), (&json!(2), &json!({ "local": 1, "desktop": 1 })));
    let local = json!({
        "session_id": id, "source": "local", "desktop_url": null, "cli_type": "shell", "pid": pid,
        "owner_agent_id": null, "owner_session_id": null, "owner_role": null, "label": null,
        "claude_code_session_id": null,
    });
    assert_eq!(timeless(all["sessions"][0].clone()), local);
    for (source, expected) in [("local", &id as &str), ("desktop", "desk-1")] {
        let some = get(&server, &format!("/v1/pty/sessions?source={source}"));
        assert_eq!((&some["count"], &some["source_filter"]), (&json!(1), &json!(source)));
        assert_eq!((&some["sessions"][0]["session_id"], some.get("by_source")), (&json!(expected), None));
    }
    let none = json!({ "sessions": [], "count": 0, "source_filter": "cloud" });
    assert_eq!(get(&server, "/v1/pty/sessions?source=cloud"), none);
    let list = server.done("list", json!({}));
    assert_eq!(list["by_source"], json!({ "local": 1, "desktop": 1 }));
    let (answer, is_error) = server.call("kill", json!({ "session_id": "desk-1" }));
    assert_eq!((is_error, &answer["error_code"]), (true, &json!("DESKTOP_KILL_DISABLED")));
    // Routes cannot create, replace or unregister a local session.
    let stolen = register(&server, json!({ "session_id": id, "desktop_url": BRIDGE }));
    let said = format!("Invalid session_id: {id} is a local session of this server");
    assert_eq!(stolen, json!({ "ok": false, "error": said }));
    let made = register(&server, json!({ "session_id": "ghost", "source": "local" }));
    let said = "Session not found: ghost. source='local' is for a session that this server runs";
    assert_eq!(made, json!({ "ok": false, "error": said }));
    assert_eq!(register(&server, json!({ "session_id": "desk-1", "source": "local" }))["ok"], false);
    let told = register(&server, json!({ "session_id": id, "source": "local", "pid": 1, "owner_agent_id": "a" }));
    assert_eq!(told, json!({ "ok": true, "updated": true }));
    let session = get(&server, &format!("/v1/pty/sessions/{id}"))["session"].clone();
    assert_eq!((&session["owner_agent_id"], &session["pid"]), (&json!("a"), &json!(pid)));
    for force in ["", "?force=true"] {
        let refused = desktop(&server, "DELETE", &format!("/v1/pty/unregister/{id}{force}"), &Value::Null);
        let said = format!("{id} is a local session: use action 'kill' to end it");
        assert_eq!(refused, json!({ "ok": false, "error": said }));
    }
    assert_eq!(server.done("talk", json!({ "session_id": id, "command": "echo hi" }))["output"], "hi");
}

#[test]
fn faults_in_the_content_are_told_and_change_nothing() {
    let server = server();
    let with = |name: &str, value: Value| {
        let mut body = json!({ "session_id": "d", "desktop_url": BRIDGE });
        body[name] = value;
        body
    };
    for (body, error) in [
        (json!({}), "session_id is required"),
        (with("session_id", json!("")), "session_id is required"),
        (with("session_id", json!(5)), "session_id must be a string"),
        (with("source", json!("cloud")), "Invalid source: cloud. Must be 'local' or 'desktop'"),
        (with("desktop_url", Value::Null), "desktop_url is required for source='desktop'"),
        (with("owner_role", json!("king")), "Invalid owner_role: king. Must be 'leader' or 'worker'"),
        (with("pid", json!(-1)), "pid must be the number of a process"),
        (with("pid", json!("1")), "pid must be the number of a process"),
        (with("label", json!(["x"])), "label must be a string"),
        (with("label", json!("x".repeat(257))), "Invalid label: it is longer than 256 characters"),
        (with("cli_type", json!("\u{1b}[2J")), "Invalid cli_type: it has control characters"),
    ] {
        assert_eq!(register(&server, body.clone()), json!({ "ok": false, "error": error }), "{body}");
    }
    for id in ["../../etc", "/etc", "..", ".d", "a\0b", "a b", "ä", &"a".repeat(129)] {
        let error = register(&server, with("session_id", json!(id)))["error"].clone();
        assert!(error.as_str().is_some_and(|error| error.starts_with("Invalid session_id")), "{id:?}: {error}");
    }
    for path in ["/v1/pty/register", "/v1/pty/heartbeat", "/v1/pty/update-ownership"] {
        for body in ["{", "[]", "7", ""] {
            let answer = server.http("POST", path, &[DESKTOP, JSON], body.as_bytes());
            let expected = json!({ "ok": false, "error": "Invalid JSON body" });
            assert_eq!((answer.status, answer.json()), (200, expected), "{path} {body}");
        }
        let form = server.http("POST", path, &[DESKTOP, ("Content-Type", "text/plain")], b"{}");
        assert_eq!(form.status, 415);
        detail(&form);
    }
    assert_eq!(get(&server, "/v1/pty/sessions")["count"], 0);
}

#[test]
fn a_bridge_is_on_this_machine_or_on_a_host_that_was_allowed() {
    let server = server();
    for url in [
        "http://169.254.169.254/latest/meta-data/",
        "http://169.254.169.254:80",
        "http://[::ffff:169.254.169.254]:80",
        "http://[fd00:ec2::254]:80",
        "http://user:password@127.0.0.1:8201",
        "http://127.0.0.1:8201@evil.example",
        "http://evil.example\\@127.0.0.1:8201",
        "https://127.0.0.1:8201",
        "file:///etc/passwd",
        "gopher://127.0.0.1:8201",
        "http://[::ffff:127.0.0.1]:8201",
        "http://[::]:8201",
        "http://[::1",
        "http://0.0.0.0:8201",
        "http://2130706433:8201",
        "http://0x7f.0.0.1:8201",
        "http://127.0.0.1.evil.example:8201",
        "http://10.0.0.1:8201",
        "http://desk.example:8201",
        "http://127.0.0.1:8201/redirect?to=http://evil.example",
        "http://127.0.0.1:0",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:8201\r\nHost: evil.example",
    ] {
        let answer = register(&server, json!({ "session_id": "d", "desktop_url": url }));
        let error = answer["error"].as_str().unwrap_or_else(|| panic!("{url:?} was taken: {answer}"));
        assert!(error.starts_with("Invalid desktop_url: "), "{url:?}: {error}");
    }
    assert_eq!(get(&server, "/v1/pty/sessions")["count"], 0);
    for (number, url) in ["http://localhost:8201", "http://127.0.0.2", "http://[::1]:8201"].iter().enumerate() {
        let answer = register(&server, json!({ "session_id": format!("d{number}"), "desktop_url": url }));
        assert_eq!(answer, json!({ "ok": true, "created": true }), "{url}");
    }
    // An update is validated like a registration.
    let moved = register(&server, json!({ "session_id": "d0", "desktop_url": "http://10.0.0.1:8201" }));
    assert_eq!(moved["ok"], false);
    assert_eq!(get(&server, "/v1/pty/sessions/d0")["session"]["desktop_url"], "http://localhost:8201");
    let allowing = Server::start_with(&[], &["--allow-bridge", "desk.example"]);
    allowing.http("POST", "/_x9k_desktop_auth", &[DESKTOP], b"");
    for (url, expected) in [("http://Desk.example:8201", true), ("http://other.example:8201", false)] {
        assert_eq!(register(&allowing, json!({ "session_id": "d", "desktop_url": url }))["ok"], expected, "{url}");
    }
}

#[test]
fn what_changes_something_needs_a_secret() {
    let server = server();
    register(&server, json!({ "session_id": "d", "desktop_url": BRIDGE }));
    let wrong = "f".repeat(64);
    let body = json!({ "session_id": "d", "desktop_url": BRIDGE, "label": "changed" }).to_string();
    for (method, path) in [
        ("POST", "/_x9k_register_leader?agent_id=a"),
        ("POST", "/_x9k_deregister_leader?agent_id=a"),
        ("POST", "/v1/pty/register"),
        ("DELETE", "/v1/pty/unregister/d"),
        ("DELETE", "/v1/pty/unregister/d?force=true"),
        ("DELETE", "/v1/pty/reset"),
        ("POST", "/v1/pty/update-ownership"),
    ] {
        let required = match path {
            "/v1/pty/update-ownership" => "Desktop or internal service authentication required",
            _ => "Desktop authentication required",
        };
        let strangers: [&[(&str, &str)]; 6] = [
            &[],
            &[(DESKTOP.0, "")],
            &[(DESKTOP.0, &wrong)],
            &[(DESKTOP.0, &SECRET[..63])],
            &[DESKTOP, DESKTOP],
            &[(INTERNAL.0, "between-service")],
        ];
        for headers in strangers {
            let mut headers = headers.to_vec();
            headers.push(JSON);
            let answer = server.http(method, path, &headers, body.as_bytes());
            assert_eq!((answer.status, answer.json()), (403, json!({ "detail": required })), "{path} {headers:?}");
        }
    }
    // The secret of services grants one permission only.
    assert_eq!(server.http("DELETE", "/v1/pty/reset", &[INTERNAL], b"").status, 403);
    let session = get(&server, "/v1/pty/sessions/d")["session"].clone();
    assert_eq!(session["label"], Value::Null);
    // Without a configured secret a server accepts no services.
    let bare = Server::start_with(&[("KURORYUU_INTERNAL_SECRET", "")], &[]);
    let answer = bare.http("POST", "/v1/pty/update-ownership", &[(INTERNAL.0, ""), JSON], body.as_bytes());
    assert_eq!(answer.status, 403);
}

#[test]
fn a_secret_is_hex_and_its_capitals_do_not_matter() {
    let server = Server::start();
    let refused = server.http("POST", "/_x9k_desktop_auth", &[], b"");
    assert_eq!(refused.status, 422);
    assert_eq!(detail(&refused)[0]["loc"], json!(["header", "x-kuroryuu-desktop-secret"]));
    for bad in ["", "abc", &SECRET[1..], &"g".repeat(64), &format!("{SECRET}0")] {
        let answer = server.http("POST", "/_x9k_desktop_auth", &[(DESKTOP.0, bad)], b"");
        assert_eq!((answer.status, answer.json()), (400, json!({ "detail": "Invalid secret format" })), "{bad}");
    }
    let reset = |secret: &str| server.http("DELETE", "/v1/pty/reset", &[(DESKTOP.0, secret)], b"").status;
    assert_eq!(reset(SECRET), 403, "no desktop has come yet");
    let upper = SECRET.to_uppercase();
    assert_eq!(server.http("POST", "/_x9k_desktop_auth", &[(DESKTOP.0, &upper)], b"").status, 200);
    assert_eq!((reset(&upper), reset(SECRET)), (200, 200));
    let newer = "e".repeat(64);
    assert_eq!(server.http("POST", "/_x9k_desktop_auth", &[(DESKTOP.0, &newer)], b"").status, 200);
    assert_eq!((reset(SECRET), reset(&newer)), (403, 200), "a desktop that was started anew has a new secret");
}

#[test]
fn leaders_come_and_go() {
    let server = server();
    let post = |path: &str| server.http("POST", path, &[DESKTOP], b"");
    let expected = json!({ "ok": true, "agent_id": "boss 1", "message": "Leader registered" });
    for _ in 0..2 {
        assert_eq!(post("/_x9k_register_leader?agent_id=boss%201").json(), expected);
    }
    let leaders = json!({ "ok": true, "leaders": ["boss 1"], "count": 1 });
    assert_eq!(get(&server, "/_x9k_registered_leaders"), leaders);
    server.done("create", json!({ "agent_id": "boss 1" }));
    assert_eq!(server.done("list", json!({}))["sessions"][0]["is_leader"], true);
    for path in ["/_x9k_register_leader", "/_x9k_register_leader?agent_id=", "/_x9k_deregister_leader?agent=x"] {
        let answer = post(path);
        assert_eq!(answer.status, 422, "{path}");
        assert_eq!(detail(&answer)[0]["loc"], json!(["query", "agent_id"]));
    }
    let long = post(&format!("/_x9k_register_leader?agent_id={}", "a".repeat(257)));
    assert_eq!((long.status, &long.json()["ok"]), (200, &json!(false)));
    let expected = json!({ "ok": true, "agent_id": "boss 1", "message": "Leader deregistered" });
    for _ in 0..2 {
        assert_eq!(post("/_x9k_deregister_leader?agent_id=boss+1").json(), expected);
    }
    assert_eq!(get(&server, "/_x9k_registered_leaders"), json!({ "ok": true, "leaders": [], "count": 0 }));
    assert_eq!(server.done("list", json!({}))["sessions"][0]["is_leader"], false);
    let wrong_method = server.get("/_x9k_register_leader");
    assert_eq!((wrong_method.status, detail(&wrong_method)), (405, json!("Method Not Allowed")));
}

#[test]
fn a_leaders_session_goes_only_with_force() {
    let server = server();
    register(&server, json!({ "session_id": "d", "desktop_url": BRIDGE, "owner_role": "leader" }));
    let protected = json!({
        "ok": false, "error": "LEADER_PROTECTED", "message": "Leader session cannot be unregistered programmatically",
    });
    for path in ["/v1/pty/unregister/d", "/v1/pty/unregister/d?force=false", "/v1/pty/unregister/d?force="] {
        assert_eq!(desktop(&server, "DELETE", path, &Value::Null), protected, "{path}");
    }
    let gone = desktop(&server, "DELETE", "/v1/pty/unregister/d?force=true", &Value::Null);
    assert_eq!((gone, &get(&server, "/v1/pty/sessions")["count"]), (json!({ "ok": true }), &json!(0)));
}

#[test]
fn heartbeats_need_no_secret_and_make_nothing() {
    let server = server();
    let (id, _) = server.create();
    register(&server, json!({ "session_id": "d", "desktop_url": BRIDGE, "label": "x" }));
    let before = timeless(get(&server, "/v1/pty/sessions/d")["session"].clone());
    let beat = |body: Value| server.http("POST", "/v1/pty/heartbeat", &[JSON], body.to_string().as_bytes()).json();
    for known in ["d", &id] {
        assert_eq!(beat(json!({ "session_id": known, "label": "y", "pid": 9 })), json!({ "ok": true }));
        let answer = server.http("POST", &format!("/v1/pty/heartbeat/{known}"), &[], b"");
        assert_eq!((answer.status, answer.json()), (200, json!({ "ok": true })));
    }
    assert_eq!(timeless(get(&server, "/v1/pty/sessions/d")["session"].clone()), before);
    let unknown = json!({ "ok": false, "error": "Session not found: nobody" });
    assert_eq!(beat(json!({ "session_id": "nobody" })), unknown);
    assert_eq!(server.http("POST", "/v1/pty/heartbeat/nobody", &[], b"").json(), unknown);
    assert_eq!(beat(json!({})), json!({ "ok": false, "error": "session_id is required" }));
    assert_eq!(get(&server, "/v1/pty/sessions")["count"], 2);
}

#[test]
fn owners_are_changed_whole_or_not_at_all() {
    let server = server();
    let (id, pid) = server.create();
    register(&server, json!({ "session_id": "d", "desktop_url": BRIDGE, "owner_agent_id": "old", "label": "kept" }));
    let update = |by: (&str, &str), body: Value| {
        let answer = server.http("POST", "/v1/pty/update-ownership", &[by, JSON], body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()
    };
    let body = json!({
        "session_id": "d", "owner_agent_id": "new", "owner_session_id": "s", "owner_role": "worker",
        "claude_code_session_id": "c",
    });
    let expected = json!({
        "session_id": "d", "source": "desktop", "desktop_url": BRIDGE, "cli_type": "shell", "pid": 0,
        "owner_agent_id": "new", "owner_session_id": "s", "owner_role": "worker", "label": "kept",
        "claude_code_session_id": "c",
    });
    let answer = update(INTERNAL, body);
    assert_eq!((&answer["ok"], timeless(answer["session"].clone())), (&json!(true), expected.clone()));
    let bad = json!({ "session_id": "d", "owner_agent_id": "evil", "owner_role": "king", "label": "evil" });
    assert_eq!(update(DESKTOP, bad), json!({ "ok": false, "error": "Invalid owner_role: king" }));
    let long = json!({ "session_id": "d", "owner_agent_id": "evil", "label": "l".repeat(257) });
    assert_eq!(update(DESKTOP, long)["ok"], false);
    assert_eq!(timeless(get(&server, "/v1/pty/sessions/d")["session"].clone()), expected);
    let nobody = json!({ "ok": false, "error": "Session not found: nobody", "error_code": "NOT_FOUND" });
    assert_eq!(update(DESKTOP, json!({ "session_id": "nobody" })), nobody);
    assert_eq!(update(DESKTOP, json!({})), json!({ "ok": false, "error": "session_id is required" }));
    let local = update(DESKTOP, json!({ "session_id": id, "owner_agent_id": "mine" }));
    assert_eq!((&local["session"]["owner_agent_id"], &local["session"]["pid"]), (&json!("mine"), &json!(pid)));
    let found = server.done("resolve", json!({ "claude_code_session_id": "c" }));
    assert_eq!(found["session_id"], "d");
    assert_eq!(server.done("resolve", json!({ "agent_id": "mine" }))["session_id"], json!(id));
}

#[test]
fn a_reset_forgets_desktops_and_owners_and_kills_nothing() {
    let server = server();
    let made = server.done("create", json!({ "agent_id": "a", "owner_role": "leader", "label": "x" }));
    let id = made["session_id"].as_str().expect("an id");
    for name in ["d1", "d2"] {
        register(&server, json!({ "session_id": name, "desktop_url": BRIDGE, "owner_role": "leader" }));
    }
    let cleared = desktop(&server, "DELETE", "/v1/pty/reset", &Value::Null);
    assert_eq!(cleared, json!({ "ok": true, "cleared_count": 2 }));
    let all = get(&server, "/v1/pty/sessions");
    let [session] = all["sessions"].as_array().expect("sessions").as_slice() else { panic!("{all}") };
    assert_eq!((&session["owner_agent_id"], &session["owner_role"]), (&Value::Null, &Value::Null));
    assert_eq!(server.done("talk", json!({ "session_id": id, "command": "echo alive" }))["output"], "alive");
}

#[test]
fn the_command_line_lists_desktop_sessions() {
    let server = server();
    register(&server, json!({ "session_id": "desk-1", "desktop_url": BRIDGE, "cli_type": "claude", "label": "Desk" }));
    let run = server.kpty(&["list"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let row = run.stdout.lines().nth(1).expect("a row after the header");
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["desk-1", "alive", "-", "Desk", "claude", BRIDGE]);
}
