//! What a server says of a command that another one runs for it: what that one knows itself, and no byte where nobody
//! reads a command.

use serde_json::{Value, json};

use super::Pair;

/// Only a failure waits this long.
const PATIENCE_MS: u64 = 45_000;

impl Pair {
    /// A call through the proxy that must fail; its answer.
    fn fails(&self, id: &str, command: &str, timeout_ms: u64, code: &str) -> Value {
        let asked = json!({ "session_id": id, "command": command, "timeout_ms": timeout_ms });
        let (answer, is_error) = self.main.call("talk", asked);
        assert!(is_error && answer["error_code"] == code, "{command}: {answer}");
        answer
    }

    /// What the screen shows where the session lives.
    fn screen(&self, id: &str) -> String {
        let shown = self.side.done("term_read", json!({ "session_id": id, "mode": "viewport" }));
        shown["text"].as_str().expect("text").to_owned()
    }

    fn waits(&self, id: &str, mut until: Value, ended_by: &str) -> Value {
        (until["session_id"], until["timeout_ms"]) = (json!(id), json!(PATIENCE_MS));
        let waited = self.main.done("wait", until);
        assert_eq!(waited["ended_by"], ended_by, "{waited}");
        waited
    }
}

#[test]
fn an_answer_has_all_that_the_other_server_knows() {
    let pair = Pair::start();
    let id = pair.session(json!({ "cols": 80, "rows": 24 }));
    assert_eq!(pair.side.get("/health").json()["takes_actions"], true);
    let asked = json!({ "session_id": id, "command": "cd /usr && printf 'a\\033[1mb\\033[0m\\n'; (exit 9)" });
    let answer = pair.main.done("talk", asked);
    for (name, expected) in [
        ("output", json!("ab")),
        ("exit_code", json!(9)),
        ("cwd", json!("/usr")),
        ("completed_by", json!("integration")),
        ("command_id", json!("cmd_1")),
        ("truncated", json!(false)),
    ] {
        assert_eq!(answer[name], expected, "{name}: {answer}");
    }
    assert!(answer["raw_output"].as_str().is_some_and(|raw| raw.contains("\u{1b}[1m")), "raw bytes: {answer}");
    let own = pair.side.done("commands", json!({ "session_id": id }));
    assert_eq!(own["commands"][0]["lines"], answer["lines"], "lines have the same numbers in both");
    let given = json!({ "session_id": id, "command": "true", "sentinel": "__MINE_1__" });
    assert_eq!(pair.main.done("talk", given)["sentinel"], "__MINE_1__");
}

#[test]
fn a_long_output_is_cut_in_the_answer_and_kept_whole() {
    let pair = Pair::start();
    let id = pair.session(json!({}));
    let asked = json!({ "session_id": id, "command": "seq 45000 | paste -sd ' ' | fold -w 100", "max_chars": 1_000 });
    let answer = pair.main.done("talk", asked);
    let omitted = answer["omitted_chars"].as_u64().expect("a count");
    assert!(omitted > 200_000 && answer["truncated"] == true, "{answer}");
    let line = json!({ "session_id": id, "command_id": answer["command_id"], "from_line": 1_300, "until_line": 1_301 });
    let here = pair.main.done("commands", line);
    let own = json!({ "session_id": id, "command_id": "cmd_1", "from_line": 1_300, "until_line": 1_301 });
    let there = pair.side.done("commands", own);
    assert!(!here["output"].as_str().expect("text").is_empty());
    assert_eq!((&here["output"], &here["total_lines"]), (&there["output"], &there["total_lines"]));
}

#[test]
fn an_unfinished_command_is_taken_back() {
    let pair = Pair::start();
    let id = pair.session(json!({}));
    for command in ["echo 'open", "if true; then", "cat <<X\nnever closed"] {
        let answer = pair.fails(&id, command, 20_000, "PTY_INCOMPLETE_COMMAND");
        let details = &answer["details"];
        assert_eq!((&details["cancelled"], &details["session_id"]), (&json!(true), &json!(id)), "{answer}");
        assert_eq!(pair.talk(&id, "echo well"), (json!("well"), json!(0)), "after {command}");
    }
    let commands = pair.main.done("commands", json!({ "session_id": id }));
    let all = commands["commands"].as_array().expect("commands");
    assert!(all.len() == 6 && all.iter().all(|command| command["running"] == false), "{commands}");
}

#[test]
fn who_has_the_terminal_is_named_and_not_typed_at() {
    let pair = Pair::start();
    let id = pair.session(json!({ "cols": 80, "rows": 24 }));
    pair.talk(&id, "seq 100 > notes");
    for (program, line, shown, leave) in [
        ("cat", "echo be''gun; cat", "begun", "Ctrl-D"),
        ("python3", "python3 -q", ">>>", "Ctrl-D"),
        ("less", "less notes", "notes", "q"),
        ("vim", "vim -u NONE notes", "notes", "Escape : q ! Enter"),
    ] {
        if pair.talk(&id, &format!("command -v {program} >/dev/null")).1 != 0 {
            continue;
        }
        pair.main.done("send_line", json!({ "session_id": id, "data": line }));
        pair.waits(&id, json!({ "regex": format!("^{shown}|\"{shown}\"|^{shown}$") }), "text");
        let answer = pair.fails(&id, "echo ty''ped", 2_000, "PTY_BUSY");
        let foreground = answer["details"]["foreground"].as_str().unwrap_or_default();
        assert!(foreground.starts_with(program), "{program}: {answer}");
        assert!(
            answer["message"].as_str().is_some_and(|message| message.ends_with("Not a byte was typed")),
            "{answer}"
        );
        assert!(!pair.screen(&id).contains("ty''ped"), "{program}: {}", pair.screen(&id));
        let keys: Vec<&str> = leave.split(' ').collect();
        pair.main.done("send_keys", json!({ "session_id": id, "keys": keys }));
        pair.waits(&id, json!({ "prompt": true }), "prompt");
        assert_eq!(pair.talk(&id, "echo back"), (json!("back"), json!(0)), "after {program}");
    }
}

#[test]
fn a_shell_in_a_shell_is_talked_to() {
    let pair = Pair::start();
    let id = pair.session(json!({}));
    pair.talk(&id, "outer=1");
    for shell in ["bash --norc", "sh"] {
        pair.main.done("send_line", json!({ "session_id": id, "data": shell }));
        pair.waits(&id, json!({ "prompt": true }), "prompt");
        assert_eq!(pair.talk(&id, "echo in${outer}side; (exit 6)"), (json!("inside"), json!(6)), "{shell}");
        let left = pair.main.done("talk", json!({ "session_id": id, "command": "exit 3" }));
        assert_eq!(left["completed_by"], "shell_exit", "{left}");
        assert_eq!(pair.talk(&id, "echo in${outer}side"), (json!("in1side"), json!(0)), "after {shell}");
    }
}

#[test]
fn a_late_end_is_told_by_the_server_that_saw_it() {
    let pair = Pair::start();
    let id = pair.session(json!({}));
    let late = pair.fails(&id, "echo begun; read x; echo got $x; (exit 5)", 1_000, "PTY_TIMEOUT");
    let details = &late["details"];
    assert_eq!((&details["partial_output"], &details["timeout_ms"]), (&json!("begun"), &json!(1_000)), "{late}");
    assert!(details["foreground"].as_str().is_some_and(|name| name.ends_with("bash")), "{late}");
    assert!(details["screen"].as_str().is_some_and(|screen| screen.contains("begun")), "{late}");
    let command = details["command_id"].clone();
    let busy = pair.fails(&id, "echo no", 500, "PTY_BUSY");
    assert_eq!(busy["details"]["command_id"], command, "{busy}");
    let name = command.as_str().expect("an id");
    assert!(busy["message"].as_str().is_some_and(|message| message.contains(&format!(": {name} `"))), "{busy}");
    let asked = json!({ "session_id": id, "command_id": command, "timeout_ms": 200 });
    let waited = pair.main.done("wait", asked);
    assert_eq!((&waited["ended_by"], &waited["command"]["output"]), (&json!("timeout"), &json!("begun")), "{waited}");
    pair.main.done("send_line", json!({ "session_id": id, "data": "it" }));
    let ran = pair.waits(&id, json!({ "command_id": command }), "command")["command"].clone();
    assert_eq!((&ran["exit_code"], &ran["completed_by"]), (&json!(5), &json!("integration")), "{ran}");
    assert_eq!(ran["output"], "begun\nit\ngot it");
    // Also when nobody waits: the next look finds it.
    let late = pair.fails(&id, "sleep 1; echo after", 200, "PTY_TIMEOUT");
    pair.waits(&id, json!({ "regex": "^after$" }), "text");
    pair.waits(&id, json!({ "prompt": true }), "prompt");
    assert_eq!(pair.talk(&id, "echo next"), (json!("next"), json!(0)));
    let asked = json!({ "session_id": id, "command_id": late["details"]["command_id"] });
    let one = pair.main.done("commands", asked);
    assert_eq!((&one["output"], &one["command"]["exit_code"]), (&json!("after"), &json!(0)), "{one}");
}

#[test]
fn what_somebody_else_runs_there_can_be_waited_for() {
    let pair = Pair::start();
    let id = pair.session(json!({}));
    pair.side.done("talk", json!({ "session_id": id, "command": "true" }));
    let slow = json!({ "session_id": id, "command": "read x; echo got $x; (exit 8)", "timeout_ms": 300 });
    assert!(pair.side.call("talk", slow).1, "it goes on");
    let busy = pair.fails(&id, "echo no", 500, "PTY_BUSY");
    let command = busy["details"]["command_id"].clone();
    assert_eq!(command, "cmd_2", "numbers are those of the server that runs it: {busy}");
    assert!(busy["details"]["running_command"].as_str().is_some_and(|line| line.starts_with("read x")), "{busy}");
    pair.side.done("send_line", json!({ "session_id": id, "data": "it" }));
    let ran = pair.waits(&id, json!({ "command_id": command }), "command")["command"].clone();
    assert_eq!(ran["exit_code"], 8, "{ran}");
    assert!(ran["output"].as_str().is_some_and(|output| output.ends_with("got it")), "{ran}");
}

#[test]
fn an_interrupted_command_is_told_as_such() {
    let pair = Pair::start();
    let id = pair.session(json!({}));
    let asked =
        json!({ "session_id": id, "command": "echo begun; sleep 60", "timeout_ms": 500, "on_timeout": "interrupt" });
    let (answer, is_error) = pair.main.call("talk", asked);
    assert!(is_error && answer["error_code"] == "PTY_TIMEOUT", "{answer}");
    assert_eq!(answer["details"]["interrupted"], true, "{answer}");
    let commands = pair.main.done("commands", json!({ "session_id": id }));
    let first = &commands["commands"][0];
    assert_eq!((&first["running"], &first["exit_code"]), (&json!(false), &json!(130)), "{commands}");
    assert_eq!(pair.talk(&id, "echo back"), (json!("back"), json!(0)));
}

#[test]
fn the_end_of_the_program_is_told_with_its_code_and_its_last_words() {
    let pair = Pair::start();
    let id = pair.session(json!({}));
    let answer = pair.fails(&id, "echo bye; exit 4", 20_000, "PTY_PROCESS_EXITED");
    let details = &answer["details"];
    assert_eq!((&details["exit_code"], &details["command_id"]), (&json!(4), &json!("cmd_1")), "{answer}");
    assert!(details["partial_output"].as_str().is_some_and(|said| said.starts_with("bye")), "{answer}");
}

/// A prompt that looks like none is known for one by who runs the shell.
#[test]
fn a_prompt_is_what_the_other_server_takes_for_one() {
    let pair = Pair::start();
    let id = pair.session(json!({}));
    pair.talk(&id, "PS1='ready '");
    pair.waits(&id, json!({ "prompt": true }), "prompt");
    pair.main.done("send_line", json!({ "session_id": id, "data": "printf 'not yet$ '; read x" }));
    pair.waits(&id, json!({ "text": "not yet$" }), "text");
    let asked = json!({ "session_id": id, "prompt": true, "timeout_ms": 1_000 });
    assert_eq!(pair.main.done("wait", asked)["ended_by"], "timeout");
    pair.main.done("send_line", json!({ "session_id": id, "data": "x" }));
    pair.waits(&id, json!({ "prompt": true }), "prompt");
}
