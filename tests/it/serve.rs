//! `kpty serve` as clients see it: HTTP, JSON-RPC, signals.

use std::collections::BTreeSet;
use std::io::Read as _;

use serde_json::{Value, json};

use crate::server::Server;
use crate::support::{command, finished, refused};

#[test]
fn health_and_info_are_there_for_anybody() {
    let server = Server::start();
    let health = server.get("/health");
    assert_eq!(health.status, 200);
    let expected = json!({
        "ok": true, "status": "healthy", "version": env!("CARGO_PKG_VERSION"), "pid": server.pid(), "sessions": 0,
        "service": "pty-bridge", "port": server.port, "mode": "embedded", "daemonConnected": false, "exact_talk": true,
        "takes_actions": true,
        "audit": { "recorded": 0, "dropped": 0, "failed": 0, "gateway_sent": 0, "gateway_dropped": 0 },
    });
    assert_eq!(health.json(), expected);
    server.create();
    assert_eq!(server.get("/health").json()["sessions"], 1);
    let info = server.get("/").json();
    assert_eq!((&info["name"], &info["mcp_endpoint"]), (&json!("kpty"), &json!("/mcp")));
    assert_eq!(server.get("/nothing").status, 404);
    assert_eq!(info["tools"], json!(["k_pty", "k_pty_view"]));
    // A stream is there for those who can read one.
    assert_eq!(server.get("/mcp").status, 406);
    assert_eq!(server.http("PUT", "/mcp", &[], b"").status, 405);
}

#[test]
fn a_client_can_introduce_itself_and_see_the_tools() {
    let server = Server::start();
    for (asked, answered) in [("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")]
    {
        let answer = server.rpc("initialize", json!({ "protocolVersion": asked, "capabilities": {} }));
        assert_eq!(answer["result"]["protocolVersion"], answered);
        assert_eq!(answer["result"]["serverInfo"]["name"], "kpty");
        assert!(answer["result"]["capabilities"]["tools"].is_object());
    }
    assert_eq!(server.rpc("ping", json!({}))["result"], json!({}));
    let list = server.rpc("tools/list", json!({}));
    let [tool, view] = list["result"]["tools"].as_array().expect("a list").as_slice() else { panic!("{list}") };
    assert_eq!((&tool["name"], &view["name"]), (&json!("k_pty"), &json!("k_pty_view")));
    assert_eq!(
        (&tool["annotations"]["readOnlyHint"], &view["annotations"]["readOnlyHint"]),
        (&json!(false), &json!(true))
    );
    assert!(tool["description"].as_str().is_some_and(|text| text.len() < 1024));
    let schema = &tool["inputSchema"];
    assert_eq!((&schema["type"], &schema["required"]), (&json!("object"), &json!(["action"])));
    let actions: BTreeSet<&str> =
        schema["properties"]["action"]["enum"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
    let expected = "help list create send_line read talk run term_read screenshot record resize kill write send_keys wait search commands \
                    resolve send_line_to_agent adopt disown evidence";
    assert_eq!(actions, expected.split(' ').collect());
    for (name, property) in schema["properties"].as_object().expect("properties") {
        assert!(property["description"].is_string(), "{name}: {property}");
    }
}

#[test]
fn a_command_comes_back_with_its_output_and_its_code() {
    let server = Server::start();
    let (id, _) = server.create();
    let answer = server.done("talk", json!({ "session_id": id, "command": "echo hi" }));
    assert_eq!((&answer["output"], &answer["exit_code"]), (&json!("hi"), &json!(0)));
    let (answer, is_error) = server.call("talk", json!({ "session_id": "pty_none", "command": "echo hi" }));
    assert!(is_error);
    assert_eq!((&answer["ok"], &answer["error_code"]), (&json!(false), &json!("PTY_SESSION_NOT_FOUND")));
    let (answer, is_error) = server.call("nonsense", json!({}));
    assert!(is_error);
    assert_eq!(answer["error_code"], "UNKNOWN_ACTION");
}

#[test]
fn messages_that_make_no_sense_are_protocol_errors() {
    let server = Server::start();
    for (body, id, code) in [
        ("{", json!(null), -32700),
        ("", json!(null), -32700),
        ("7", json!(null), -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, json!(null), -32600),
        (r#"{"id":1,"method":"ping"}"#, json!(1), -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, json!(1), -32600),
        (r#"{"jsonrpc":"2.0","method":"tools/list"}"#, json!(null), -32600),
        (r#"{"jsonrpc":"2.0","id":"a","method":"resources/list"}"#, json!("a"), -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, json!(1), -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"k_other"}}"#, json!(1), -32602),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"k_pty","arguments":[]}}"#,
            json!(1),
            -32602,
        ),
    ] {
        let response = server.post(body);
        assert_eq!(response.status, 200, "{body}");
        let answer = response.json();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{body}: {answer}");
        assert!(answer["error"]["message"].is_string() && answer.get("result").is_none(), "{answer}");
    }
}

#[test]
fn notifications_get_no_answer_and_sessions_keep_their_id() {
    let server = Server::start();
    let accepted = server.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!((accepted.status, accepted.body.as_str()), (202, ""));
    let made = accepted.header("mcp-session-id").expect("an id").to_owned();
    assert!(made.starts_with("session_") && made.len() == 40, "{made}");
    let headers = [("Content-Type", "application/json; charset=utf-8"), ("Mcp-Session-Id", "mine-7")];
    let ping = server.http("POST", "/mcp", &headers, br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    assert_eq!((ping.status, ping.header("mcp-session-id")), (200, Some("mine-7")));
}

#[test]
fn web_pages_and_other_names_are_refused() {
    let server = Server::start();
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let own = |name: &str| format!("{name}:{}", server.port);
    let (own_ip, own_name, own_six) = (own("127.0.0.1"), own("localhost"), own("[::1]"));
    let foreign = own("evil.example");
    for (host, origin, status) in [
        (own_ip.as_str(), None, 200),
        (own_name.as_str(), None, 200),
        (own_six.as_str(), None, 200),
        (own_name.as_str(), Some("http://localhost:3000"), 200),
        (foreign.as_str(), None, 403),
        ("localhost", None, 403),
        ("", None, 403),
        (own_name.as_str(), Some("https://evil.example"), 403),
        (own_name.as_str(), Some("null"), 403),
    ] {
        let mut headers = vec![("Content-Type", "application/json"), ("Host", host)];
        headers.extend(origin.map(|origin| ("Origin", origin)));
        assert_eq!(server.http("POST", "/mcp", &headers, ping).status, status, "{host:?} {origin:?}");
        assert_eq!(server.http("GET", "/health", &headers, b"").status, status, "{host:?} {origin:?}");
    }
}

#[test]
fn only_json_of_a_sensible_size_is_read() {
    let server = Server::start();
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for content_type in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx"] {
        assert_eq!(server.http("POST", "/mcp", &[("Content-Type", content_type)], ping).status, 415, "{content_type}");
    }
    assert_eq!(server.http("POST", "/mcp", &[], ping).status, 415);
    let large = "x".repeat(5 << 20);
    assert_eq!(server.post(&large).status, 413);
    let fits = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}", "x".repeat((4 << 20) - 100));
    assert_eq!(server.post(&fits).json()["error"]["code"], -32601);
    assert_eq!(server.get("/health").status, 200);
}

#[test]
fn a_caller_that_goes_away_leaves_its_command_running() {
    let server = Server::start();
    let (id, _) = server.create();
    let talk = json!({ "session_id": id, "action": "talk", "command": "echo begun; read -r word; echo got $word" });
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "k_pty", "arguments": talk },
    });
    let json_type = [("Content-Type", "application/json")];
    let connection = server.ask("POST", "/mcp", &json_type, message.to_string().as_bytes());
    server.done("wait", json!({ "session_id": id, "regex": "^begun$" }));
    drop(connection);
    server.done("send_line", json!({ "session_id": id, "data": "it" }));
    server.done("wait", json!({ "session_id": id, "command_id": "cmd_1" }));
    let answer = server.done("commands", json!({ "session_id": id, "command_id": "cmd_1" }));
    assert!(answer["output"].as_str().is_some_and(|output| output.ends_with("got it")), "{answer}");
    let answer = server.done("talk", json!({ "session_id": id, "command": "echo next" }));
    assert_eq!(answer["output"], "next");
}

#[test]
fn others_are_answered_while_one_waits() {
    let server = Server::start();
    let (id, _) = server.create();
    let wait = json!({ "action": "wait", "session_id": id, "text": "the end", "timeout_ms": 40_000 });
    let message =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "k_pty", "arguments": wait } });
    let json_type = [("Content-Type", "application/json")];
    let mut waiting = server.ask("POST", "/mcp", &json_type, message.to_string().as_bytes());
    assert_eq!(server.get("/health").status, 200);
    // In two parts, so that the echo of the command is not yet the text.
    server.done("talk", json!({ "session_id": id, "command": "echo 'the' end" }));
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).expect("an answer");
    assert!(answer.contains("the end"), "{answer}");
}

#[test]
fn the_state_folder_says_where_the_server_is() {
    let mut server = Server::start();
    let note: Value = serde_json::from_str(&server.state.read("state/server.json")).expect("JSON");
    assert_eq!(note, json!({ "port": server.port, "pid": server.pid(), "version": env!("CARGO_PKG_VERSION") }));
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
    assert!(!server.state.path().join("state/server.json").exists());
}

#[test]
fn an_own_address_of_loopback_works_with_its_own_link() {
    let server = Server::start_with(&[], &["--host", "127.0.0.2"]);
    let url = format!("http://127.0.0.2:{}", server.port);
    let run = crate::support::kpty(["open", "--print", "--url", &url]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(run.stdout.starts_with(&format!("{url}/ui?code=")), "{}", run.stdout);
    assert_eq!(crate::support::kpty(["list", "--url", &url]).code, 0);
}

/// A client can be rejected any number of times; the log has one line for many rejections.
#[test]
fn refusals_do_not_fill_the_log() {
    let mut server = Server::start();
    for _ in 0..300 {
        assert_eq!(server.http("GET", "/", &[("Host", "evil.example")], b"").status, 403);
    }
    server.signal("TERM");
    server.end();
    let lines = server.said_in_all().lines().filter(|line| line.contains("refused")).count();
    assert!((1..30).contains(&lines), "{lines} lines");
}

#[test]
fn an_address_for_others_has_to_be_asked_for() {
    let message = refused(["serve", "--port", "0", "--host", "0.0.0.0"]);
    assert!(message.contains("--allow-remote"), "{message}");
    let server = Server::start();
    let taken = server.port.to_string();
    let run = finished(command(["serve", "--port", &taken]).output().expect("kpty starts"));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("cannot listen on 127.0.0.1"), "{}", run.stderr);
}

#[cfg(target_os = "linux")]
mod ends {
    use std::os::fd::OwnedFd;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use serde_json::json;

    use crate::server::Server;

    /// Something that tells when a process has ended.
    fn watch(pid: u32) -> OwnedFd {
        let pid = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
        pidfd_open(pid, PidfdFlags::empty()).expect("a process that is there")
    }

    /// Waits for that; only a failure reaches the deadline.
    fn is_over(process: &OwnedFd) -> bool {
        let deadline = Timespec { tv_sec: 20, tv_nsec: 0 };
        poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&deadline)).expect("poll") == 1
    }

    #[test]
    fn a_server_that_is_killed_leaves_no_shell_behind() {
        let mut server = Server::start();
        let shells: Vec<_> = (0..3).map(|_| watch(server.create().1)).collect();
        server.signal("KILL");
        server.end();
        assert!(shells.iter().all(is_over));
    }

    /// A terminal that is closed ends nothing; the token is read again.
    #[test]
    fn a_hang_up_ends_nothing() {
        let folder = crate::support::Folder::new();
        let write = |token: &str| {
            use std::os::unix::fs::PermissionsExt as _;
            let path = folder.file("token", token);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("our file");
            path.to_str().expect("UTF-8").to_owned()
        };
        let [old, new] = ["old", "new"].map(|word| format!("{word}-token-of-the-tests"));
        let file = write(&old);
        let mut server = Server::start_with(&[("RUST_LOG", "info")], &["--allow-remote", "--token-file", &file]);
        let (id, pid) = server.create();
        let shell = watch(pid);
        let status = |server: &Server, token: &str| {
            let bearer = format!("Bearer {token}");
            server.http("GET", "/", &[("Host", "box.example"), ("Authorization", &bearer)], b"").status
        };
        assert_eq!((status(&server, &old), status(&server, &new)), (200, 401));
        write(&new);
        server.signal("HUP");
        let began = std::time::Instant::now();
        while status(&server, &new) != 200 {
            assert!(began.elapsed().as_secs() < 20, "the token was not read again");
        }
        assert_eq!(status(&server, &old), 401);
        // What cannot be a token changes nothing.
        write("x");
        server.signal("HUP");
        assert_eq!(server.done("talk", json!({ "session_id": id, "command": "trap -p HUP; echo on" }))["output"], "on");
        assert_eq!(status(&server, &new), 200);
        server.signal("TERM");
        assert_eq!(server.end().code(), Some(0));
        assert!(is_over(&shell));
    }

    #[test]
    fn a_server_that_is_asked_to_end_takes_everything_along() {
        for signal in ["TERM", "INT"] {
            let mut server = Server::start();
            let (id, pid) = server.create();
            // One that does not care for a hang-up.
            let command = "(trap '' HUP TERM; exec sleep 1000) & echo $!";
            let answer = server.done("talk", json!({ "session_id": id, "command": command }));
            let output = answer["output"].as_str().expect("output");
            let stubborn = output.lines().last().and_then(|line| line.trim().parse().ok()).expect("a pid");
            let processes = [watch(pid), watch(stubborn)];
            server.signal(signal);
            assert_eq!(server.end().code(), Some(0), "{signal}");
            assert!(processes.iter().all(is_over), "{signal}");
        }
    }
}

#[test]
fn mcp_is_served_at_the_path_that_is_set() {
    let server = Server::start_with(&[("KURORYUU_MCP_PATH", "/agents/mcp")], &[]);
    let info = server.get("/").json();
    assert_eq!(info["mcp_endpoint"], "/agents/mcp");
    assert_eq!(server.get("/mcp").status, 404);
    let listed = crate::support::kpty(["list", "--json", "--url", &format!("{}/agents/mcp", server.url())]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
}
