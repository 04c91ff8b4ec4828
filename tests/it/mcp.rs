//! MCP on the built program: plain clients byte by byte, clients of each era of the protocol, and standard input.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{Response, Server};
use crate::support::{Folder, command};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const BOTH: (&str, &str) = ("Accept", "application/json, text/event-stream");
const MODERN: &str = "2026-07-28";

/// The messages of a reply that came as a stream of events, in chunks.
fn events(response: &Response) -> Vec<Value> {
    assert_eq!(response.header("content-type"), Some("text/event-stream"), "{}", response.body);
    let mut rest = response.body.as_bytes();
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.expect("the size of a chunk");
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[(end + 4 + size).min(rest.len())..];
    }
    let text = String::from_utf8(body).expect("UTF-8");
    let data = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
    data.filter(|data| !data.is_empty()).map(|data| serde_json::from_str(data).expect("JSON")).collect()
}

/// The action's own answer: the last block.
fn answer(message: &Value) -> Value {
    let blocks = message["result"]["content"].as_array().unwrap_or_else(|| panic!("no content: {message}"));
    let text = blocks.last().and_then(|block| block["text"].as_str());
    serde_json::from_str(text.expect("a text")).expect("JSON")
}

fn call(tool: &str, arguments: Value, token: Option<&str>) -> Value {
    let mut params = json!({ "name": tool, "arguments": arguments });
    if let Some(token) = token {
        params["_meta"] = json!({ "progressToken": token });
    }
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params })
}

/// A client of the protocol with sessions.
struct Legacy {
    session: String,
}

impl Legacy {
    fn connect(server: &Server, version: &str) -> Self {
        let params = json!({
            "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
        });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let response = server.http("POST", "/mcp", &[JSON, BOTH], message.to_string().as_bytes());
        assert_eq!(response.status, 200, "{}", response.body);
        let session = response.header("mcp-session-id").expect("a session").to_owned();
        let [reply] = events(&response).try_into().expect("one message");
        assert_eq!(reply["result"]["protocolVersion"], version);
        assert!(reply["result"]["instructions"].as_str().is_some_and(|text| text.chars().count() <= 2_000));
        let client = Self { session };
        let accepted = client.post(server, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        assert_eq!((accepted.status, accepted.body.as_str()), (202, ""));
        client
    }

    fn post(&self, server: &Server, message: &Value) -> Response {
        let headers = [JSON, BOTH, ("Mcp-Session-Id", self.session.as_str())];
        server.http("POST", "/mcp", &headers, message.to_string().as_bytes())
    }

    /// The last message of a reply.
    fn ask(&self, server: &Server, message: &Value) -> Value {
        let response = self.post(server, message);
        assert_eq!(response.status, 200, "{}", response.body);
        events(&response).pop().expect("a message")
    }
}

/// A request of the protocol without sessions.
fn modern(server: &Server, method: &str, mut params: Value, name: Option<&str>) -> Response {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "test", "version": "1" });
    let message = json!({ "jsonrpc": "2.0", "id": "m", "method": method, "params": params });
    let mut headers = vec![JSON, BOTH, ("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)];
    headers.extend(name.map(|name| ("Mcp-Name", name)));
    server.http("POST", "/mcp", &headers, message.to_string().as_bytes())
}

#[test]
fn plain_clients_get_plain_json_byte_by_byte() {
    let server = Server::start();
    let list = r#"{"by_source":{"desktop":0,"local":0},"count":0,"ok":true,"sessions":[]}"#;
    let text = Value::from(list).to_string();
    let listed = format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":false}}"#);
    let result = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
    let error = |id: &str, code: i32, message: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}"}}}}"#)
    };
    let parse_error =
        json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32700, "message": "Parse error: invalid JSON" } });
    let batch = json!({
        "jsonrpc": "2.0", "id": null,
        "error": { "code": -32600, "message": "Invalid Request: batches are not supported" },
    });
    for (body, expected) in [
        // Nothing has been said before: no handshake is needed.
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"k_pty","arguments":{"action":"list"}}}"#,
            result(&listed),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call",
                "params":{"name":"k_pty_view","arguments":{"action":"list"},"_meta":{"progressToken":7}}}"#,
            result(&listed),
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, result("{}")),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":null}"#,
            r#"{"jsonrpc":"2.0","id":"a","result":{}}"#.to_owned(),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"k_other"}}"#,
            error("1", -32602, "Unknown tool: k_other"),
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#, error("1", -32601, "Method not found: no/such")),
        (r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list"}"#, error("1", -32601, "Method not found: prompts/list")),
        ("{", parse_error.to_string()),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, batch.to_string()),
    ] {
        for accept in [None, Some("*/*"), Some("application/json")] {
            let mut headers = vec![JSON];
            headers.extend(accept.map(|accept| ("Accept", accept)));
            let response = server.http("POST", "/mcp", &headers, body.as_bytes());
            assert_eq!((response.status, response.body.as_str()), (200, expected.as_str()), "{body} {accept:?}");
            assert_eq!(response.header("content-type"), Some("application/json"), "{body} {accept:?}");
            assert!(response.header("mcp-session-id").is_some());
        }
    }
}

#[test]
fn plain_clients_may_leave_things_out() {
    let server = Server::start();
    for params in
        [r#"{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}"#, "{}", "null"]
    {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#);
        let response = server.post(&body);
        assert_eq!((response.status, response.header("content-type")), (200, Some("application/json")), "{params}");
        let result = &response.json()["result"];
        assert_eq!(result["protocolVersion"], "2024-11-05", "{params}");
        assert_eq!(result["serverInfo"]["name"], "kpty");
        assert!(result["instructions"].is_string());
    }
    let tools = server.post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert_eq!(tools.json()["result"]["tools"].as_array().map(Vec::len), Some(2));
    assert_eq!(tools.body, server.post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#).body);
    for tool in tools.json()["result"]["tools"].as_array().expect("tools") {
        assert!(tool.get("outputSchema").is_none());
    }
    for arguments in [r#"{"action":"nonsense"}"#, r#"{"action":"resize","session_id":"x","cols":"wide"}"#, "{}", "null"]
    {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"k_pty","arguments":{arguments}}}}}"#
        );
        let response = server.post(&body);
        assert_eq!(response.status, 200, "{arguments}");
        let message = response.json();
        assert_eq!(message["result"]["isError"], true, "{message}");
        assert!(answer(&message)["error_code"].is_string() && message["result"].get("structuredContent").is_none());
    }
    let accepted = server.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!((accepted.status, accepted.body.as_str()), (202, ""));
    let form = server.http("POST", "/mcp", &[("Content-Type", "application/x-www-form-urlencoded")], b"a=b");
    assert_eq!(form.status, 415);
    for headers in
        [[JSON, ("Host", "evil.example")], [JSON, ("Origin", "null")], [JSON, ("Origin", "http://evil.example")]]
    {
        let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        assert_eq!(server.http("POST", "/mcp", &headers, ping).status, 403, "{headers:?}");
    }
}

#[test]
fn the_view_refuses_what_changes_something() {
    let server = Server::start();
    let (id, _) = server.create();
    for action in ["kill", "send_line", "talk", "create", "resize"] {
        let message = server
            .rpc("tools/call", json!({ "name": "k_pty_view", "arguments": { "action": action, "session_id": id } }));
        let refused = answer(&message);
        assert_eq!((&message["result"]["isError"], &refused["error_code"]), (&json!(true), &json!("INVALID_PARAM")));
        assert!(refused["message"].as_str().is_some_and(|text| text.contains("only looks")), "{refused}");
    }
    let message = server.rpc("tools/call", json!({ "name": "k_pty_view", "arguments": { "action": "list" } }));
    assert_eq!((&message["result"]["isError"], &answer(&message)["count"]), (&json!(false), &json!(1)));
}

#[test]
fn clients_with_sessions_of_every_version_are_served() {
    let server = Server::start();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = Legacy::connect(&server, version);
        let list = client.ask(&server, &json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
        assert_eq!(list["result"]["tools"][0]["name"], "term_run");
        assert_eq!(list["result"]["tools"].as_array().map(Vec::len), Some(5));
        let message = client.ask(&server, &call("k_pty", json!({ "action": "list" }), None));
        assert_eq!((&message["id"], &answer(&message)["ok"]), (&json!(7), &json!(true)));
        let message = client.ask(&server, &call("k_pty", json!({ "action": "nonsense" }), None));
        assert_eq!(message["result"]["isError"], true);
        let headers = [("Mcp-Session-Id", client.session.as_str()), BOTH];
        assert_eq!(server.http("DELETE", "/mcp", &headers, b"").status, 202);
        assert_eq!(client.post(&server, &call("k_pty", json!({ "action": "list" }), None)).status, 404);
    }
    let stranger = Legacy { session: "00000000-0000-0000-0000-000000000000".to_owned() };
    assert_eq!(stranger.post(&server, &call("k_pty", json!({ "action": "list" }), None)).status, 404);
}

#[test]
fn clients_without_sessions_are_served() {
    let server = Server::start();
    let response = modern(&server, "server/discover", json!({}), None);
    assert_eq!(
        (response.status, response.header("content-type")),
        (200, Some("application/json")),
        "{}",
        response.body
    );
    let result = &response.json()["result"];
    let versions = result["supportedVersions"].as_array().expect("versions");
    assert!(versions.contains(&json!(MODERN)) && versions.contains(&json!("2024-11-05")), "{result}");
    assert!(result["instructions"].as_str().is_some_and(|text| text.chars().count() <= 2_000));
    let response = modern(&server, "tools/list", json!({}), None);
    let result = &response.json()["result"];
    assert_eq!((&result["resultType"], &result["tools"][0]["name"]), (&json!("complete"), &json!("term_run")));
    let params = json!({ "name": "k_pty", "arguments": { "action": "list" } });
    let response = modern(&server, "tools/call", params.clone(), Some("k_pty"));
    assert_eq!((response.status, answer(&response.json())["ok"].clone()), (200, json!(true)));
    assert_eq!(response.header("mcp-session-id"), None);
    // Headers that contradict the message, and methods that there are not.
    let response = modern(&server, "tools/call", params, Some("k_other"));
    assert_eq!((response.status, &response.json()["error"]["code"]), (400, &json!(-32020)));
    let response = modern(&server, "prompts/list", json!({}), None);
    assert_eq!((response.status, &response.json()["error"]["code"]), (404, &json!(-32601)));
}

#[test]
fn a_client_session_survives_a_restart() {
    let server = Server::start();
    let client = Legacy::connect(&server, "2025-06-18");
    let ended = Legacy::connect(&server, "2025-06-18");
    let headers = [("Mcp-Session-Id", ended.session.as_str()), BOTH];
    assert_eq!(server.http("DELETE", "/mcp", &headers, b"").status, 202);
    let server = server.restart();
    let message = client.ask(&server, &call("k_pty", json!({ "action": "list" }), None));
    assert_eq!(answer(&message)["ok"], true);
    assert_eq!(ended.post(&server, &call("k_pty", json!({ "action": "list" }), None)).status, 404);
}

#[test]
fn a_notice_comes_before_the_answer_and_once() {
    let server = Server::start();
    let folder = server.state.path().join("WORKING/pending_tasks");
    std::fs::create_dir_all(&folder).expect("a folder");
    let client = Legacy::connect(&server, "2025-06-18");
    let task = json!({ "task_id": "T1", "title": "Look", "message_id": "m1", "created_at": "2026-01-01T00:00:00" });
    for session in ["mine-7", client.session.as_str()] {
        std::fs::write(folder.join(format!("{session}.json")), task.to_string()).expect("a file");
    }
    let list = call("k_pty", json!({ "action": "list" }), None);
    let plain = || {
        let headers = [JSON, ("Mcp-Session-Id", "mine-7")];
        server.http("POST", "/mcp", &headers, list.to_string().as_bytes()).json()
    };
    for message in [plain(), client.ask(&server, &list)] {
        let [notice, _] = message["result"]["content"].as_array().expect("blocks").as_slice() else {
            panic!("{message}")
        };
        assert!(notice["text"].as_str().is_some_and(|text| text.contains("T1")), "{notice}");
        assert_eq!(answer(&message)["ok"], true);
    }
    assert_eq!(plain()["result"]["content"].as_array().map(Vec::len), Some(1));
    assert_eq!(std::fs::read_dir(folder).expect("the folder").count(), 0);
}

/// Both eras hear that a long call goes on, in growing numbers; without a token, or plain, nothing but the answer.
#[test]
fn long_calls_show_progress_to_those_who_asked() {
    let server = Server::start();
    let ids: Vec<_> = (0..4).map(|_| server.create().0).collect();
    let talk = |id: &str| json!({ "action": "talk", "session_id": id, "command": "sleep 11; echo done" });
    let client = Legacy::connect(&server, "2025-11-25");
    // Two requests of one session at the same time need ids of their own.
    let mut untold = call("k_pty", talk(&ids[2]), None);
    untold["id"] = json!(8);
    let progress = |messages: &[Value]| -> Vec<f64> {
        let told = messages.iter().filter(|message| message["method"] == "notifications/progress");
        told.map(|message| {
            assert_eq!(message["params"]["progressToken"], "t");
            message["params"]["progress"].as_f64().expect("a number")
        })
        .collect()
    };
    std::thread::scope(|scope| {
        let legacy = scope.spawn(|| events(&client.post(&server, &call("k_pty", talk(&ids[0]), Some("t")))));
        let stateless = scope.spawn(|| {
            let params = json!({ "name": "k_pty", "arguments": talk(&ids[1]), "_meta": { "progressToken": "t" } });
            events(&modern(&server, "tools/call", params, Some("k_pty")))
        });
        let silent = scope.spawn(|| events(&client.post(&server, &untold)));
        let plain = scope.spawn(|| server.post(&call("k_pty", talk(&ids[3]), Some("t")).to_string()).json());
        for messages in [legacy.join().expect("a reply"), stateless.join().expect("a reply")] {
            let told = progress(&messages);
            assert!(told.len() == 2 && told[0] < told[1] && told[0] >= 5.0, "{told:?}");
            assert_eq!(answer(messages.last().expect("an answer"))["output"], "done");
        }
        let silent = silent.join().expect("a reply");
        assert_eq!((silent.len(), &answer(&silent[0])["output"]), (1, &json!("done")));
        assert_eq!(answer(&plain.join().expect("a reply"))["output"], "done");
    });
}

#[test]
fn a_wait_is_cut_short_unless_progress_is_shown() {
    let server = Server::start();
    let (id, _) = server.create();
    let wait = json!({ "action": "wait", "session_id": id, "regex": "^$|.", "timeout_ms": 100_000 });
    let clamped = |message: &Value| answer(message)["clamped"]["timeout_ms"]["used"].clone();
    let plain = server.post(&call("k_pty_view", wait.clone(), Some("t")).to_string()).json();
    assert_eq!(clamped(&plain), 45_000);
    let headers = [JSON, ("Kpty-Shows-Progress", "1")];
    let body = call("k_pty_view", wait.clone(), None).to_string();
    assert_eq!(clamped(&server.http("POST", "/mcp", &headers, body.as_bytes()).json()), Value::Null);
    let client = Legacy::connect(&server, "2025-06-18");
    assert_eq!(clamped(&client.ask(&server, &call("k_pty", wait.clone(), None))), 45_000);
    assert_eq!(clamped(&client.ask(&server, &call("k_pty", wait, Some("t")))), Value::Null);
}

#[test]
fn long_answers_are_pages_that_say_how_to_get_the_rest() {
    let server = Server::start();
    let (id, _) = server.create();
    let command = "for i in $(seq 3000); do echo \"line $i\"; done";
    server.done("talk", json!({ "session_id": id, "command": command }));
    for (action, arguments) in [
        ("wait", json!({ "session_id": id, "command_id": "cmd_1" })),
        ("commands", json!({ "session_id": id, "command_id": "cmd_1" })),
        ("search", json!({ "session_id": id, "pattern": "line", "max_matches": 500 })),
    ] {
        let answer = server.done(action, arguments);
        let size = answer.to_string().len();
        assert!(size <= 8 << 10, "{action}: {size} bytes");
        let next = answer["command"].get("next").unwrap_or(&answer["next"]);
        assert!(next["action"].is_string() && next["why"].is_string(), "{action}: {next}");
    }
    let page = json!({ "session_id": id, "command_id": "cmd_1", "from_line": 1_499, "until_line": 1_500 });
    let page = server.done("commands", page);
    assert_eq!((&page["output"], page.get("next")), (&json!("line 1500"), None));
}

/// A client that hangs up, or says that it wants no answer, leaves its command running.
#[test]
fn hanging_up_leaves_the_command_alone() {
    let server = Server::start();
    let client = Legacy::connect(&server, "2025-06-18");
    let headers = [JSON, BOTH, ("Mcp-Session-Id", client.session.as_str())];
    for cancels in [false, true] {
        let (id, _) = server.create();
        let talk = json!({ "session_id": id, "action": "talk", "command": "echo begun; read -r word; echo got $word" });
        let body = call("k_pty", talk, None).to_string();
        let mut connection = server.ask("POST", "/mcp", &headers, body.as_bytes());
        server.done("wait", json!({ "session_id": id, "regex": "^begun$" }));
        if cancels {
            let params = json!({ "requestId": 7, "reason": "enough" });
            let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
            assert_eq!(client.post(&server, &cancel).status, 202);
            let mut rest = String::new();
            connection.read_to_string(&mut rest).expect("the stream ends, though the command does not");
        } else {
            drop(connection);
        }
        server.done("send_line", json!({ "session_id": id, "data": "it" }));
        server.done("wait", json!({ "session_id": id, "command_id": "cmd_1" }));
        let answer = server.done("commands", json!({ "session_id": id, "command_id": "cmd_1" }));
        assert!(answer["output"].as_str().is_some_and(|output| output.ends_with("got it")), "{answer}");
    }
}

/// `kpty mcp` with its two pipes.
struct Piped {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Piped {
    fn start(url: &str, folder: &Folder) -> Self {
        let mut command = command(["mcp"]);
        command.env("KURORYUU_MCP_URL", url).env("KURORYUU_PTY_SHELL", "/bin/bash");
        command.env("KURORYUU_PROJECT_ROOT", folder.path()).env("HOME", folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("kpty starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, input, output }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().expect("an open pipe"), "{message}").expect("kpty reads");
    }

    /// The next line; every line is a message.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("kpty writes");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn ask(&mut self, message: &Value) -> Value {
        self.send(message);
        self.next()
    }

    fn introduce(&mut self) {
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
        });
        let reply = self.ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }));
        assert_eq!(reply["result"]["serverInfo"]["name"], "kpty");
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    /// Closes its input and waits for its end.
    fn end(mut self) {
        drop(self.input.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("kpty ends");
        assert_eq!(rest, "");
        assert_eq!(self.child.wait().expect("our child").code(), Some(0));
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        // One that has ended already cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn without_a_server_the_sessions_live_and_end_with_the_process() {
    let folder = Folder::new();
    let mut stdio = Piped::start("http://127.0.0.1:1", &folder);
    stdio.introduce();
    let list = stdio.ask(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
    assert_eq!(list["result"]["tools"].as_array().map(Vec::len), Some(5));
    let created = answer(&stdio.ask(&call("k_pty", json!({ "action": "create" }), None)));
    let talk = json!({ "action": "talk", "session_id": created["session_id"], "command": "echo hi" });
    assert_eq!(answer(&stdio.ask(&call("k_pty", talk, None)))["output"], "hi");
    let refused =
        stdio.ask(&call("k_pty_view", json!({ "action": "kill", "session_id": created["session_id"] }), None));
    assert_eq!(refused["result"]["isError"], true);
    stdio.end();
    let pid = created["pid"].as_u64().expect("a pid");
    if cfg!(target_os = "linux") {
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
}

#[test]
fn with_a_server_the_calls_go_to_it() {
    let server = Server::start();
    let mut stdio = Piped::start(&server.url(), &server.state);
    stdio.introduce();
    let created = answer(&stdio.ask(&call("k_pty", json!({ "action": "create" }), None)));
    let id = created["session_id"].as_str().expect("an id");
    assert_eq!(server.done("list", json!({}))["count"], 1);
    let wait = json!({ "action": "wait", "session_id": id, "regex": "^$|.", "timeout_ms": 100_000 });
    assert_eq!(answer(&stdio.ask(&call("k_pty_view", wait.clone(), Some("t")))).get("clamped"), None);
    assert!(answer(&stdio.ask(&call("k_pty_view", wait, None))).get("clamped").is_some());
    // Each process of the same client has a shell of its own.
    let mut other = Piped::start(&server.url(), &server.state);
    other.introduce();
    for client in [&mut stdio, &mut other] {
        let ran = client.ask(&call("term_run", json!({ "command": "echo hi" }), None));
        let text = ran["result"]["content"][0]["text"].as_str().expect("a text").to_owned();
        assert!(text.starts_with("exit 0\nhi\n[new shell "), "{text}");
    }
    other.end();
    stdio.end();
    // It outlives the process that began it.
    assert_eq!(server.done("talk", json!({ "session_id": id, "command": "echo on" }))["output"], "on");
}

#[test]
fn a_process_that_nobody_talks_to_ends() {
    let folder = Folder::new();
    let begun = Instant::now();
    Piped::start("http://127.0.0.1:1", &folder).end();
    assert!(begun.elapsed() < Duration::from_secs(20));
}
