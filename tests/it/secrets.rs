//! Secrets that are left to people: agents are refused, a person answers, and nothing keeps what was typed.

use serde_json::{Value, json};

use crate::attach::Tmux;
use crate::server::Server;
use crate::traffic::files_with;

/// Timeout that only a failure reaches.
const PATIENCE_MS: u64 = 60_000;
/// Asks, and says how long the answer was.
const QUESTION: &str = "read -s -p 'Vault password: ' X; echo got ${#X}";

/// A session that leaves secrets to somebody.
fn create(server: &Server, secrets: &str) -> String {
    let answer = server.done("create", json!({ "secrets": secrets }));
    answer["session_id"].as_str().expect("an id").to_owned()
}

/// Waits until the program asks; what for.
fn asks(server: &Server, id: &str) -> Value {
    let asked = server.done("wait", json!({ "session_id": id, "asks": true, "timeout_ms": PATIENCE_MS }));
    assert_eq!(asked["ended_by"], "asks", "{asked}");
    asked["attention"]["state"].clone()
}

fn ask(server: &Server, id: &str) {
    server.done("wait", json!({ "session_id": id, "prompt": true, "timeout_ms": PATIENCE_MS }));
    server.done("send_line", json!({ "session_id": id, "data": QUESTION }));
    assert_eq!(asks(server, id), "input_secret");
}

fn told(server: &Server, id: &str, text: &str) {
    let waited = server.done("wait", json!({ "session_id": id, "text": text, "timeout_ms": PATIENCE_MS }));
    assert_eq!(waited["timed_out"], false, "{waited}");
}

#[test]
fn agents_are_refused_where_secrets_are_left_to_people() {
    let server = Server::start();
    let id = create(&server, "person");
    ask(&server, &id);
    for (action, arguments) in [
        ("send_line", json!({ "data": "guess" })),
        ("send_line", json!({ "data": "" })),
        ("send_keys", json!({ "text": "guess", "keys": "Enter" })),
        ("send_keys", json!({ "paste": "guess" })),
        ("talk", json!({ "command": "guess" })),
    ] {
        let mut arguments = arguments;
        arguments["session_id"] = json!(id);
        let (answer, is_error) = server.call(action, arguments);
        assert!(is_error && answer["error_code"] == "PTY_SECRET_PROMPT", "{action}: {answer}");
        assert!(answer["message"].as_str().is_some_and(|message| message.contains(&format!("kpty answer {id}"))));
    }
    let write = json!({ "session_id": id, "data": "guess\r" }).to_string();
    let written = server.http("POST", "/pty/write", &[("Content-Type", "application/json")], write.as_bytes());
    assert_eq!((written.status, &written.json()["error_code"]), (409, &json!("PTY_SECRET_PROMPT")));
    assert_eq!(server.kpty(&["send", &id, "guess"]).code, 4);
    assert_eq!(asks(&server, &id), "input_secret", "nothing was typed");
    // A question may be given up, and other questions are anybody's.
    server.done("send_keys", json!({ "session_id": id, "keys": "Ctrl-C" }));
    server.done("wait", json!({ "session_id": id, "prompt": true, "timeout_ms": PATIENCE_MS }));
    server.done("send_line", json!({ "session_id": id, "data": "read -p 'Name? ' N; echo hello $N" }));
    assert_eq!(asks(&server, &id), "input_line");
    server.done("send_line", json!({ "session_id": id, "data": "me" }));
    told(&server, &id, "hello me");
}

#[test]
fn sessions_of_agents_are_as_before() {
    let server = Server::start();
    let (id, _) = server.create();
    ask(&server, &id);
    server.done("send_line", json!({ "session_id": id, "data": "guess" }));
    told(&server, &id, "got 5");
    let (answer, _) = server.call("create", json!({ "secrets": "nobody" }));
    assert_eq!(answer["error_code"], "INVALID_PARAM");
}

#[test]
fn a_person_answers_and_nothing_keeps_it() {
    let server = Server::start();
    let id = create(&server, "person");
    let secret = ["Tr0ub4", "dor&3-", "plant", "ed"].concat();
    let got = format!("got {}", secret.len());
    // A recording that would keep everything keeps no secret of a person.
    server.done("record", json!({ "session_id": id, "op": "start", "raw": true, "input": true }));
    let tmux = Tmux::start(&server);

    ask(&server, &id);
    tmux.keys(&[&format!("$KPTY answer {id}; echo code=$?"), "Enter"]);
    tmux.sees("Vault password:");
    tmux.keys(&["-l", &format!("{secret}x")]);
    tmux.keys(&["BSpace", "Enter"]);
    tmux.sees("code=0");
    told(&server, &id, &got);
    assert!(!tmux.screen().contains(&secret), "{}", tmux.screen());

    // Nothing is asked, and nothing is typed.
    tmux.keys(&[&format!("clear; $KPTY answer {id}; echo code=$?"), "Enter"]);
    tmux.sees("code=1");
    ask(&server, &id);
    tmux.keys(&[&format!("clear; $KPTY answer {id}; echo given-up=$?"), "Enter"]);
    tmux.sees("Vault password:");
    tmux.keys(&["C-c"]);
    tmux.sees("given-up=1");
    assert_eq!(asks(&server, &id), "input_secret");

    // Attached, key by key.
    tmux.keys(&["clear", "Enter"]);
    tmux.attach(&id);
    tmux.keys(&["-l", &secret]);
    tmux.keys(&["Enter"]);
    tmux.until("the second answer", |screen| screen.contains(&got) && !screen.contains(&secret));
    server.done("wait", json!({ "session_id": id, "prompt": true, "timeout_ms": PATIENCE_MS }));
    server.done("send_line", json!({ "session_id": id, "data": "exit" }));
    tmux.sees("code=");

    let shown = [
        server.done("term_read", json!({ "session_id": id, "mode": "full" })),
        server.done("read", json!({ "session_id": id, "max_bytes": 100_000 })),
        server.done("commands", json!({ "session_id": id })),
        server.get("/v1/pty-traffic/events?limit=500").json(),
    ];
    assert!(shown.iter().all(|answer| !answer.to_string().contains(&secret)), "{shown:?}");
    let mut server = server;
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
    assert!(!server.said_in_all().contains(&secret), "the log");
    let state = server.state.path();
    assert_eq!(files_with(state, secret.as_bytes()), Vec::<String>::new());
    assert_eq!(files_with(state, &secret.as_bytes()[..12]), Vec::<String>::new());
    assert!(!files_with(state, b"Vault password").is_empty(), "the recording");
}
