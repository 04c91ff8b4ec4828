//! The tools in few words, `term_*`, on the built program: what agents are told, and what they are not.

use serde_json::{Value, json};

use crate::server::Server;

/// A client with a session of its own.
struct Agent<'a> {
    server: &'a Server,
    session: &'a str,
}

impl Agent<'_> {
    /// The text of a reply, and whether it is a failure.
    fn reply(&self, tool: &str, arguments: Value) -> (String, bool) {
        let params = json!({ "name": tool, "arguments": arguments });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let headers = [("Content-Type", "application/json"), ("Mcp-Session-Id", self.session)];
        let answer = self.server.http("POST", "/mcp", &headers, message.to_string().as_bytes()).json();
        let result = &answer["result"];
        let text =
            result["content"].as_array().and_then(|blocks| blocks.last()).and_then(|block| block["text"].as_str());
        (text.unwrap_or_else(|| panic!("no text: {answer}")).to_owned(), result["isError"] == true)
    }

    fn done(&self, tool: &str, arguments: Value) -> String {
        let (text, is_error) = self.reply(tool, arguments);
        assert!(!is_error, "{text}");
        text
    }

    fn refused(&self, tool: &str, arguments: Value) -> String {
        let (text, is_error) = self.reply(tool, arguments);
        assert!(is_error, "{text}");
        text
    }

    fn run(&self, command: &str) -> String {
        self.done("term_run", json!({ "command": command }))
    }
}

#[test]
fn a_command_is_a_line_of_facts_and_its_output() {
    let server = Server::start();
    let agent = Agent { server: &server, session: "one" };
    let first = agent.run("echo hello");
    assert!(first.starts_with("exit 0\nhello\n[new shell pty_"), "{first}");
    assert_eq!(agent.run("cd /; (exit 3)"), "exit 3 · cmd_2 · /");
    assert_eq!(agent.run("printf 'a\\n\\nb'"), "exit 0\na\n\nb");
    // Each caller has a shell of its own.
    let other = Agent { server: &server, session: "two" };
    assert!(other.run("pwd").contains("[new shell pty_"));
    assert_eq!(server.done("list", json!({}))["count"], 2);
    // Shells that ended are replaced.
    let (ended, _) = agent.reply("term_run", json!({ "command": "exit" }));
    assert!(ended.contains("ended"), "{ended}");
    assert!(agent.run("echo again").starts_with("exit 0\nagain\n[new shell"), "a new shell");
}

#[test]
fn a_long_output_is_cut_to_what_matters() {
    let server = Server::start();
    let agent = Agent { server: &server, session: "one" };
    let script = "for i in $(seq 2000); do echo \"test number $i passed\"; [ $i = 777 ] && echo 'FAILED test_sum: 3 != 4'; done; false";
    let shown = agent.run(script);
    assert!(shown.starts_with("exit 1 · cmd_1\n") || shown.starts_with("exit 1 · "), "{shown}");
    assert!(shown.contains("777: FAILED test_sum: 3 != 4"), "{shown}");
    assert!(shown.contains("test number 2000 passed") && shown.chars().count() < 3_000, "{shown}");
    let rest = agent.done("term_look", json!({ "command": "cmd_1", "from_line": 775, "max_lines": 3 }));
    assert!(rest.starts_with("exit 1\ntest number 776 passed\ntest number 777 passed\nFAILED test_sum"), "{rest}");
    let found = agent.done("term_look", json!({ "command": "cmd_1", "grep": "FAIL" }));
    assert_eq!(found, "exit 1\n777: FAILED test_sum: 3 != 4");
    assert!(agent.done("term_look", json!({ "grep": "^FAILED" })).ends_with(": FAILED test_sum: 3 != 4"));
}

#[test]
fn a_command_that_asks_returns_at_once_and_is_answered() {
    let server = Server::start();
    let agent = Agent { server: &server, session: "one" };
    let asked = agent.run("read -p 'name? ' name; echo \"<$name>\"; sleep 0.3; echo end");
    assert!(asked.starts_with("bash asks · cmd_1\nname?"), "{asked}");
    let answered = agent.done("term_type", json!({ "line": "Bob", "until": "end" }));
    assert!(answered.contains("<Bob>") && answered.contains("end"), "{answered}");
    let typed = agent.done("term_type", json!({ "line": "cat" }));
    assert!(typed.starts_with("cat asks\n"), "{typed}");
    let busy = agent.refused("term_run", json!({ "command": "ls" }));
    assert!(busy.starts_with("PTY_BUSY: cat runs; nothing was typed\n"), "{busy}");
    // The echo of what was typed is not what is waited for.
    let seen = agent.done("term_type", json!({ "line": "xyz", "until": "/^xyz/" }));
    assert!(seen.matches("xyz").count() == 2, "{seen}");
    agent.done("term_type", json!({ "keys": "Ctrl-D" }));
    assert_eq!(agent.run("echo on"), "exit 0\non");
}

#[test]
fn what_is_new_is_told_once() {
    let server = Server::start();
    let agent = Agent { server: &server, session: "one" };
    let running = agent.done("term_run", json!({ "command": "echo begun; sleep 1; echo done", "timeout_s": 0.3 }));
    assert_eq!(
        running,
        "runs on after 300 ms · cmd_1\nbegun\n[term_wait {\"command\":\"cmd_1\"}]\n".trim_end().to_owned()
            + &running[running.find("\n[new shell").expect("a new shell")..]
    );
    assert!(agent.done("term_look", json!({})).contains("nothing new"));
    let ended = agent.done("term_wait", json!({}));
    assert!(ended.starts_with("exit 0 · ") && ended.ends_with(" s\nbegun\ndone"), "{ended}");
    assert_eq!(agent.done("term_look", json!({})), "nothing new");
}

#[test]
fn sessions_are_found_by_label_and_by_the_beginning_of_their_id() {
    let server = Server::start();
    let agent = Agent { server: &server, session: "one" };
    assert_eq!(agent.done("term_sessions", json!({ "op": "list" })), "no sessions");
    let id = agent.done("term_sessions", json!({ "op": "open", "label": "build", "cwd": "/" }));
    for name in ["build", &id, &id[..8]] {
        let ran = agent.done("term_run", json!({ "command": "echo $PWD", "session": name }));
        assert!(ran.ends_with("\n/"), "{ran}");
    }
    assert!(agent.done("term_sessions", json!({ "op": "list" })).starts_with("build · / · bash"));
    let missing = agent.refused("term_look", json!({ "session": "nothing" }));
    assert_eq!(missing, "PTY_SESSION_NOT_FOUND: no such session\nterm_sessions {\"op\":\"list\"}");
    let ignored = agent.done("term_sessions", json!({ "op": "close", "session": "build", "force": true }));
    assert_eq!(ignored, format!("closed {id}\n[not a parameter: force]"));
    assert!(agent.refused("term_look", json!({})).starts_with("INVALID_PARAM: Invalid session: you have no shell yet"));
    assert!(agent.refused("term_run", json!({})).starts_with("MISSING_PARAM: "));
    assert!(agent.refused("term_run", json!({ "command": "rm -rf /" })).starts_with("DANGEROUS_COMMAND_BLOCKED: "));
}

#[test]
fn plain_clients_see_the_tools_that_they_know() {
    let server = Server::start();
    let listed = |server: &Server| -> Vec<String> {
        let tools = server.rpc("tools/list", json!({}));
        tools["result"]["tools"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|tool| Some(tool["name"].as_str()?.to_owned()))
            .collect()
    };
    assert_eq!(listed(&server), ["k_pty", "k_pty_view"]);
    let server = Server::start_with(&[("KPTY_TOOLS", "all")], &[]);
    assert_eq!(listed(&server).len(), 7);
    assert_eq!(server.get("/").json()["tools_count"], 7);
}

#[test]
fn what_is_not_shown_is_left_to_people_unless_told_otherwise() {
    let server = Server::start();
    let agent = Agent { server: &server, session: "one" };
    let ask = "read -s -p 'Password: ' word; echo \"got ${#word}\"";
    assert!(agent.run(ask).starts_with("bash asks for a secret · cmd_1\nPassword:"));
    let refused = agent.refused("term_type", json!({ "line": "abc" }));
    assert!(refused.starts_with("PTY_SECRET_PROMPT: ") && refused.contains("kpty answer"), "{refused}");
    agent.done("term_type", json!({ "keys": "Ctrl-C" }));
    // A session without a label becomes the caller's own.
    let id = agent.done("term_sessions", json!({ "op": "open", "secrets": "agent" }));
    assert!(agent.run(ask).starts_with("bash asks for a secret"));
    let answered = agent.done("term_type", json!({ "line": "abc", "until": "got" }));
    assert!(answered.contains("got 3") && !answered.contains("abc"), "{answered}");
    assert_eq!(server.done("commands", json!({ "session_id": id }))["count"], 1);
}
