//! One suite of claims over all sources: a session of this server, a terminal of a desktop app in both of its modes, and
//! a session of another kpty, whose server is a bridge too.

use std::collections::BTreeMap;

use kpty::error::ErrorCode;
use kpty::model::Owner;
use serde_json::{Value, json};

use super::register;
use crate::server::Server;
use crate::support::Folder;
use crate::support::desktop::{APP_MODES, AppMode, Desktop};
use crate::tools::Rig;

/// Only a failure waits this long.
const PATIENCE_MS: u64 = 45_000;
/// What the owner of every session is called.
const OWNER: &str = "worker";

/// Where sessions come from, and one of them.
struct Seat {
    rig: Rig,
    id: String,
    /// For failures.
    name: String,
    is_desktop: bool,
    _app: Option<Desktop>,
    _peer: Option<Server>,
    _home: Folder,
}

impl Seat {
    async fn local() -> Self {
        let (rig, home) = (Rig::new(), Folder::new());
        let more = json!({ "env": { "HOME": home.path() }, "cwd": home.path(), "owner_agent_id": OWNER });
        let id = rig.create(more).await.id.clone();
        Self { rig, id, name: "local".to_owned(), is_desktop: false, _app: None, _peer: None, _home: home }
    }

    fn desktop(mode: AppMode) -> Self {
        let (rig, home, app) = (Rig::new(), Folder::new(), Desktop::start(mode));
        let options = json!({ "cols": 80, "rows": 24, "cwd": home.path(), "env": { "HOME": home.path() } });
        let id = app.create(&options);
        register(&rig, &id, &app.url(), Owner { agent_id: Some(OWNER.to_owned()), ..Owner::default() });
        Self { rig, id, name: format!("{mode:?}"), is_desktop: true, _app: Some(app), _peer: None, _home: home }
    }

    fn peer() -> Self {
        let (rig, home, peer) = (Rig::new(), Folder::new(), Server::start());
        let more = json!({ "cols": 80, "rows": 24, "cwd": home.path(), "env": { "HOME": home.path() } });
        let id = peer.done("create", more)["session_id"].as_str().expect("an id").to_owned();
        let url = format!("http://127.0.0.1:{}", peer.port);
        register(&rig, &id, &url, Owner { agent_id: Some(OWNER.to_owned()), ..Owner::default() });
        Self { rig, id, name: "peer".to_owned(), is_desktop: true, _app: None, _peer: Some(peer), _home: home }
    }

    async fn all() -> Vec<Self> {
        let mut seats = vec![Self::local().await];
        seats.extend(APP_MODES.map(Self::desktop));
        seats.push(Self::peer());
        seats
    }

    fn arguments(&self, action: &str, more: Value) -> Value {
        let mut arguments = json!({ "action": action, "session_id": self.id });
        for (name, value) in more.as_object().into_iter().flatten() {
            arguments[name] = value.clone();
        }
        arguments
    }

    async fn call(&self, action: &str, more: Value) -> Value {
        self.rig.call(self.arguments(action, more)).await
    }

    async fn fails(&self, action: &str, more: Value, code: ErrorCode) -> Value {
        self.rig.fails(self.arguments(action, more), code).await
    }

    async fn talk(&self, command: &str) -> Value {
        self.call("talk", json!({ "command": command, "timeout_ms": PATIENCE_MS })).await
    }

    async fn wait(&self, mut more: Value, ended_by: &str) -> Value {
        more["timeout_ms"] = json!(PATIENCE_MS);
        let answer = self.call("wait", more).await;
        assert_eq!(answer["ended_by"], ended_by, "{}: {answer}", self.name);
        answer
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_has_its_own_output_and_status() {
    for seat in Seat::all().await {
        for (command, output, status) in [
            ("echo hi", "hi", 0),
            ("(exit 7)", "", 7),
            ("printf 'no newline'", "no newline", 0),
            ("printf 'a\\n\\n'", "a\n", 0),
            ("cat <<X\none\ntwo\nX", "one\ntwo", 0),
            ("for i in 1 2\ndo echo $i\ndone", "1\n2", 0),
            ("echo 'it'\\''s' # said so", "it's", 0),
            ("echo __KR_DONE_00000000__:0:0", "__KR_DONE_00000000__:0:0", 0),
            ("printf '\\033[1mbold\\033[0m 漢字\\n'", "bold 漢字", 0),
            ("seq 400 | tail -n 3", "398\n399\n400", 0),
        ] {
            let answer = seat.talk(command).await;
            let got = (answer["output"].as_str().unwrap_or_default(), &answer["exit_code"]);
            assert_eq!(got, (output, &json!(status)), "{}: {command:?} gave {answer}", seat.name);
        }
        let long = format!("echo {} | wc -c", "x".repeat(6_000));
        assert_eq!(seat.talk(&long).await["output"].as_str().map(str::trim), Some("6001"), "{}", seat.name);
        let expected: Vec<_> = (1..=700).map(|number| number.to_string()).collect();
        assert_eq!(seat.talk("seq 700").await["output"], json!(expected.join("\n")), "{}", seat.name);
        seat.rig.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_is_too_slow_goes_on_and_its_end_is_not_lost() {
    for seat in Seat::all().await {
        let slow = json!({ "command": "echo begun; read x; echo got $x; (exit 5)", "timeout_ms": 700 });
        let body = seat.fails("talk", slow, ErrorCode::PtyTimeout).await;
        let id = body["details"]["command_id"].clone();
        assert_eq!(body["details"]["partial_output"], "begun", "{}: {body}", seat.name);
        let body = seat.fails("talk", json!({ "command": "echo no", "timeout_ms": 300 }), ErrorCode::PtyBusy).await;
        assert_eq!(body["details"]["command_id"], id, "{}: {body}", seat.name);
        seat.call("send_line", json!({ "data": "it" })).await;
        let answer = seat.wait(json!({ "command_id": id }), "command").await;
        let ran = &answer["command"];
        assert_eq!((&ran["exit_code"], &ran["running"]), (&json!(5), &json!(false)), "{}: {answer}", seat.name);
        assert!(ran["output"].as_str().is_some_and(|output| output.ends_with("got it")), "{}: {answer}", seat.name);
        assert_eq!(seat.talk("echo next").await["output"], "next", "{}", seat.name);
        let commands = seat.call("commands", json!({})).await;
        let lines: Vec<_> = commands["commands"].as_array().expect("commands").iter().map(|c| &c["line"]).collect();
        assert_eq!(lines.last(), Some(&&json!("echo next")), "{}: {commands}", seat.name);
        let one = seat.call("commands", json!({ "command_id": id, "tail": 1 })).await;
        assert_eq!((&one["output"], &one["command"]["exit_code"]), (&json!("got it"), &json!(5)), "{}", seat.name);
        seat.rig.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_command_gives_the_terminal_back() {
    for seat in Seat::all().await {
        let slow = json!({ "command": "sleep 60", "timeout_ms": 500 });
        let body = seat.fails("talk", slow, ErrorCode::PtyTimeout).await;
        let sent = seat.call("send_keys", json!({ "keys": "Ctrl-C" })).await;
        assert_eq!(sent["sent"], json!(["Ctrl-C"]));
        assert_eq!(sent.get("modes_known"), seat.is_desktop.then_some(&json!(false)), "{}", seat.name);
        seat.wait(json!({ "command_id": body["details"]["command_id"] }), "command").await;
        assert_eq!(seat.talk("echo back").await["output"], "back", "{}", seat.name);
        seat.rig.end().await;
    }
}

/// Whoever looks while it grows sees nothing but pieces of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_of_many_windows_is_whole_however_slowly_it_comes() {
    for seat in Seat::all().await {
        let piece = "head -c 8000 /dev/zero | tr '\\0' x; sleep 0.3";
        let answer = seat.talk(&format!("for n in 1 2 3 4; do {piece}; done; echo; echo after")).await;
        let expected = format!("{}\nafter", "x".repeat(32_000));
        assert!(answer["output"] == expected && answer["exit_code"] == 0, "{}: {answer}", seat.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deltas_lose_and_double_nothing() {
    for seat in Seat::all().await {
        seat.talk("true").await;
        let mut held = BTreeMap::new();
        let mut marker = Value::Null;
        for (round, count) in [0, 1, 3, 30, 0, 150, 7].into_iter().enumerate() {
            let from = round * 1_000;
            seat.talk(&format!("seq {from} {}; printf 'tail {round}\\n'", from + count)).await;
            // The prompt comes after the end.
            seat.wait(json!({ "quiet_ms": 300 }), "quiet").await;
            let delta = seat.call("term_read", json!({ "mode": "delta", "marker_id": marker, "max_lines": 200 })).await;
            assert_eq!(delta["marker_disposed"], false, "{}: {delta}", seat.name);
            assert_ne!(delta["marker_id"], marker, "{}", seat.name);
            assert!(!delta["lines"].as_array().expect("lines").is_empty(), "{}: the first has content too", seat.name);
            apply(&mut held, &delta);
            marker = delta["marker_id"].clone();
        }
        let full = seat.call("term_read", json!({ "mode": "tail", "max_lines": 200, "max_chars": 50_000 })).await;
        let mut expected = BTreeMap::new();
        apply(&mut expected, &full);
        for (number, line) in &expected {
            assert_eq!(held.get(number), Some(line), "{}: line {number}", seat.name);
        }
        let seen: Vec<_> = held.values().filter(|line| line.parse::<u32>().is_ok()).collect();
        let mut sorted: Vec<_> = seen.iter().map(|line| line.parse::<u32>().expect("a number")).collect();
        assert_eq!(sorted.len(), 1 + 2 + 4 + 31 + 1 + 151 + 8, "{}: every line once", seat.name);
        sorted.dedup();
        assert!(sorted.len() == seen.len() && sorted.is_sorted(), "{}: in order", seat.name);
        let nothing = seat.call("term_read", json!({ "mode": "delta", "marker_id": marker })).await;
        assert_eq!(nothing["lines"], json!([]), "{}: {nothing}", seat.name);
        let lost = seat.call("term_read", json!({ "mode": "delta", "marker_id": 999_999_999_999_999_u64 })).await;
        assert_eq!((&lost["marker_disposed"], &lost["missed_lines"]), (&json!(true), &Value::Null), "{}", seat.name);
        assert!(lost.get("missed_lines").is_some(), "{}: said, not left out", seat.name);
        seat.rig.end().await;
    }
}

/// Applies the lines of an answer by their numbers.
fn apply(held: &mut BTreeMap<u64, String>, answer: &Value) {
    let next = answer["next_line"].as_u64().expect("a number");
    held.retain(|number, _| *number < next);
    let numbers = answer["line_numbers"].as_array().expect("numbers").iter().filter_map(Value::as_u64);
    let lines = answer["lines"].as_array().expect("lines").iter().filter_map(Value::as_str);
    held.extend(numbers.zip(lines.map(str::to_owned)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_are_capped_cut_and_masked_alike() {
    // In halves, so that no token stands in the repository.
    let secret = ["ghp", "_", &"a1B2".repeat(9)].concat();
    for seat in Seat::all().await {
        seat.talk("seq 60").await;
        let tail = seat.call("term_read", json!({ "max_lines": 5 })).await;
        assert_eq!(tail["lines"].as_array().map(Vec::len), Some(5), "{}: {tail}", seat.name);
        assert_eq!((&tail["rows"], &tail["cols"]), (&json!(24), &json!(80)), "{}", seat.name);
        assert_eq!(tail["buffer_type"], "normal", "{}", seat.name);
        let cut = seat.call("term_read", json!({ "max_lines": 50, "max_chars": 20 })).await;
        assert_eq!((&cut["truncated"], cut["text"].as_str().map(str::len)), (&json!(true), Some(20)), "{}", seat.name);
        let viewport = seat.call("term_read", json!({ "mode": "viewport" })).await;
        assert!(viewport["text"].as_str().is_some_and(|text| text.contains("59\n60")), "{}: {viewport}", seat.name);
        let cut = seat.call("talk", json!({ "command": "seq 500", "max_chars": 100 })).await;
        assert_eq!((&cut["truncated"], &cut["exit_code"]), (&json!(true), &json!(0)), "{}", seat.name);
        assert!(cut["omitted_chars"].as_u64().is_some_and(|omitted| omitted > 1_000), "{}: {cut}", seat.name);
        let said = seat.talk(&format!("echo {secret}")).await;
        assert_eq!(said["output"], "[REDACTED_GITHUB_TOKEN]", "{}", seat.name);
        let all = seat.call("term_read", json!({ "mode": "full", "max_lines": 200 })).await;
        let search = seat.call("search", json!({ "pattern": "REDACTED" })).await;
        assert!(search["total"].as_u64() >= Some(1), "{}: {search}", seat.name);
        for answer in [all, search, seat.call("commands", json!({})).await] {
            assert!(!answer.to_string().contains(&secret), "{}: {answer}", seat.name);
        }
        let wrapped = seat.talk(&format!("echo {}", "w".repeat(100))).await;
        assert_eq!(wrapped["output"].as_str().map(str::len), Some(100), "{}", seat.name);
        let rows = seat.call("term_read", json!({ "max_lines": 8, "merge_wrapped": false })).await;
        assert!(rows["lines"].as_array().is_some_and(|rows| rows.contains(&json!("w".repeat(80)))), "{}", seat.name);
        seat.rig.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_and_searching_are_alike() {
    for seat in Seat::all().await {
        seat.talk("echo first; echo second").await;
        seat.wait(json!({ "prompt": true }), "prompt").await;
        let found = seat.call("search", json!({ "pattern": "^sec(ond)$", "context": 1 })).await;
        let (line, before) = (&found["matches"][0], &found["matches"][0]["before"]);
        assert_eq!((&line["text"], before), (&json!("second"), &json!(["first"])), "{}: {found}", seat.name);
        let marker = seat.call("term_read", json!({ "mode": "delta" })).await["marker_id"].clone();
        seat.call("send_line", json!({ "data": "sleep 0.3; echo ar''rived; sleep 0.3; echo done" })).await;
        let answer = seat.wait(json!({ "text": "arrived", "marker_id": marker }), "text").await;
        assert_eq!(
            (&answer["line_text"], &answer["session_alive"]),
            (&json!("arrived"), &json!(true)),
            "{}",
            seat.name
        );
        seat.wait(json!({ "regex": "^do+ne$" }), "text").await;
        let quiet = seat.wait(json!({ "quiet_ms": 400 }), "quiet").await;
        assert!(quiet["waited_ms"].as_u64() >= Some(400), "{}: {quiet}", seat.name);
        let vain = seat.call("wait", json!({ "text": "never", "timeout_ms": 300 })).await;
        assert_eq!((&vain["ended_by"], &vain["timed_out"]), (&json!("timeout"), &json!(true)), "{}", seat.name);
        seat.call("send_line", json!({ "data": "sleep 0.3; clear" })).await;
        seat.wait(json!({ "gone_text": "second" }), "gone").await;
        seat.rig.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_reach_the_agent_that_owns_the_terminal() {
    for seat in Seat::all().await {
        seat.talk("true").await;
        let line = json!({ "action": "send_line_to_agent", "agent_id": OWNER, "data": "echo for''you" });
        let sent = seat.rig.call(line).await;
        assert_eq!((&sent["resolved_session_id"], &sent["send_result"]["ok"]), (&json!(seat.id), &json!(true)));
        seat.wait(json!({ "text": "foryou" }), "text").await;
        let list = seat.rig.call(json!({ "action": "list" })).await;
        let source = if seat.is_desktop { "desktop" } else { "local" };
        assert_eq!((&list["sessions"][0]["source"], &list["by_source"][source]), (&json!(source), &json!(1)));
        if seat.is_desktop {
            seat.fails("resize", json!({ "cols": 9, "rows": 9 }), ErrorCode::DesktopResizeDisabled).await;
            seat.fails("kill", json!({}), ErrorCode::DesktopKillDisabled).await;
            let click = json!({ "mouse": { "row": 1, "col": 1 } });
            seat.fails("send_keys", click, ErrorCode::InvalidParam).await;
        }
        seat.rig.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_screen_program_hides_the_text_and_gives_it_back() {
    for seat in Seat::all().await {
        seat.talk("echo before").await;
        let marker = seat.call("term_read", json!({ "mode": "delta" })).await["marker_id"].clone();
        let more = "printf '\\033[?1049h\\033[2;5Hfull %s' screen; read x; printf '\\033[?1049l'; echo af''ter";
        seat.call("send_line", json!({ "data": more, "escapes": false })).await;
        seat.wait(json!({ "text": "full screen" }), "text").await;
        let shown = seat.call("term_read", json!({ "mode": "viewport" })).await;
        assert_eq!((&shown["buffer_type"], &shown["lines"][1]), (&json!("alternate"), &json!("    full screen")));
        let main = seat.call("term_read", json!({ "mode": "tail", "which": "main" })).await;
        assert!(main["text"].as_str().is_some_and(|text| text.contains("before")), "{}: {main}", seat.name);
        seat.call("send_line", json!({ "data": "" })).await;
        seat.wait(json!({ "regex": "^after$" }), "text").await;
        let delta = seat.call("term_read", json!({ "mode": "delta", "marker_id": marker })).await;
        assert_eq!((&delta["buffer_type"], &delta["marker_disposed"]), (&json!("normal"), &json!(false)));
        assert!(
            delta["lines"].as_array().is_some_and(|lines| lines.contains(&json!("after"))),
            "{}: {delta}",
            seat.name
        );
        seat.rig.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_the_program_is_told() {
    for seat in Seat::all().await {
        seat.talk("true").await;
        let body = seat.fails("talk", json!({ "command": "exit 4" }), ErrorCode::PtyProcessExited).await;
        assert_eq!(body["details"]["session_id"], json!(seat.id), "{}", seat.name);
        let answer = seat.call("wait", json!({ "exit": true, "timeout_ms": PATIENCE_MS })).await;
        assert_eq!((&answer["ended_by"], &answer["session_alive"]), (&json!("exit"), &json!(false)), "{}", seat.name);
        seat.rig.end().await;
    }
}

/// A desktop app tells only text; its picture says so. It is not recorded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_picture_shows_the_text() {
    for seat in Seat::all().await {
        seat.talk("printf 'drawn %s\\n' here").await;
        for range in [json!({ "format": "svg" }), json!({ "format": "svg", "from_line": 0 })] {
            let answer = seat.call("screenshot", range).await;
            let svg = answer["image"]["text"].as_str().unwrap_or_default();
            assert!(svg.contains(">drawn here</text>"), "{}: {answer}", seat.name);
            assert_eq!(answer.get("note").is_some(), seat.is_desktop, "{}: {answer}", seat.name);
        }
        if seat.is_desktop {
            seat.fails("record", json!({ "op": "start" }), ErrorCode::PtyNotAvailable).await;
        }
        seat.rig.end().await;
    }
}
