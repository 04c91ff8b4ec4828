//! The command line against a running server, and `kpty run` without one: what is printed, and the exit codes.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::server::Server;
use crate::support::{Folder, Run, command, finished, kpty};

/// What a run printed and how it ended; nothing may be said on standard error.
fn quietly(run: &Run) -> (i32, &str) {
    assert_eq!(run.stderr, "");
    (run.code, run.stdout.as_str())
}

fn json_of(run: &Run) -> Value {
    assert_eq!(run.stdout.lines().count(), 1, "{}", run.stdout);
    serde_json::from_str(&run.stdout).expect("JSON")
}

#[test]
fn sessions_are_made_listed_and_ended() {
    let server = Server::start();
    let folder = Folder::new();
    let made = server.kpty(&["create"]);
    let id = made.stdout.trim_end().to_owned();
    assert_eq!(quietly(&made), (0, format!("{id}\n").as_str()));
    assert!(id.starts_with("pty_") && id.len() == 12, "{id}");
    let cwd = folder.path().to_str().expect("UTF-8");
    let options = ["create", "--label", "second", "--cwd", cwd, "--cols", "70", "--rows", "9", "--env", "WORD=a=b"];
    let made = server.kpty(&[&options[..], &["--", "bash", "-c", "echo $WORD; exec cat"]].concat());
    assert_eq!(made.code, 0, "{}", made.stderr);
    let list = server.kpty(&["list"]);
    let rows: Vec<Vec<&str>> = list.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["ID", "STATE", "SIZE", "LABEL", "PROGRAM", "DIRECTORY"]);
    assert_eq!(rows[1][..5], [id.as_str(), "alive", "120x30", "-", "/bin/bash"]);
    assert_eq!(rows[2][1..], ["alive", "70x9", "second", "bash", cwd]);
    assert_eq!(server.kpty(&["wait", "second", "--text", "a=b"]).code, 0);
    assert_eq!(quietly(&server.kpty(&["resize", "second", "60", "8"])), (0, ""));
    assert_eq!(json_of(&server.kpty(&["list", "--json"]))["sessions"][1]["cols"], 60);
    assert_eq!(quietly(&server.kpty(&["kill", "second"])), (0, ""));
    // By the beginning of its id, with and without the prefix.
    assert_eq!(quietly(&server.kpty(&["kill", &id[4..8]])), (0, ""));
    let list = json_of(&server.kpty(&["list", "--json"]));
    assert!(list["sessions"].as_array().expect("a list").iter().all(|session| session["is_alive"] == false), "{list}");
}

#[test]
fn talk_gives_output_and_exit_code_of_the_command() {
    let server = Server::start();
    let (id, _) = server.create();
    assert_eq!(quietly(&server.kpty(&["talk", &id, "echo hi"])), (0, "hi\n"));
    assert_eq!(quietly(&server.kpty(&["talk", &id, "printf 'a\\nb'; (exit 77)"])), (77, "a\nb\n"));
    assert_eq!(quietly(&server.kpty(&["talk", &id, "true"])), (0, ""));
    let answer = json_of(&server.kpty(&["talk", &id, "(exit 3)", "--json"]));
    assert_eq!((&answer["ok"], &answer["exit_code"], &answer["output"]), (&json!(true), &json!(3), &json!("")));
    let mut child = server.command(&["talk", &id, "-"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kpty");
    child.stdin.take().expect("a pipe").write_all(b"for n in 1 2; do\n  echo $n\ndone\n").expect("kpty reads");
    assert_eq!(quietly(&finished(child.wait_with_output().expect("an end"))), (0, "1\n2\n"));
}

#[test]
fn each_failure_of_talk_has_its_exit_code() {
    let server = Server::start();
    let (id, _) = server.create();
    let run = server.kpty(&["talk", &id, "echo begun; read -r word; echo $word; (exit 6)", "--timeout", "500ms"]);
    assert_eq!((run.code, run.stdout.as_str()), (124, "begun\n"));
    assert!(run.stderr.starts_with("kpty: ") && run.stderr.contains("PTY_TIMEOUT"), "{}", run.stderr);
    let run = server.kpty(&["talk", &id, "echo no"]);
    assert_eq!((run.code, run.stdout.as_str()), (4, ""));
    assert!(run.stderr.contains("PTY_BUSY"), "{}", run.stderr);
    assert_eq!(quietly(&server.kpty(&["send", &id, "word"])), (0, ""));
    let run = server.kpty(&["wait", &id, "--command", "cmd_1"]);
    assert_eq!(run.code, 0);
    assert!(run.stdout.starts_with("command after ") && run.stdout.contains("exit code 6"), "{}", run.stdout);
    assert!(run.stdout.ends_with("word\n"), "{}", run.stdout);
    let run = server.kpty(&["talk", &id, "exit 9"]);
    assert_eq!(run.code, 5);
    assert!(run.stderr.contains("PTY_PROCESS_EXITED"), "{}", run.stderr);
    let answer = server.kpty(&["talk", &id, "echo", "--json"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (5, ""));
    assert_eq!(json_of(&answer)["error_code"], "PTY_PROCESS_EXITED");
    assert_eq!(server.kpty(&["talk", "pty_00000000", "echo"]).code, 3);
    assert_eq!(server.kpty(&["talk", "nobody", "echo"]).code, 3);
    assert_eq!(server.kpty(&["talk", &id]).code, 2);
    assert_eq!(server.kpty(&["talk", &id, "echo", "--timeout", "soon"]).code, 2);
}

#[test]
fn a_name_that_several_sessions_have_is_refused() {
    let server = Server::start();
    let ids: Vec<String> =
        ["first", "second"].map(|_| server.kpty(&["create", "--label", "same"]).stdout.trim_end().to_owned()).into();
    let run = server.kpty(&["talk", "same", "echo hi"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(ids.iter().all(|id| run.stderr.contains(id.as_str())), "{}", run.stderr);
    assert_eq!(server.kpty(&["kill", &ids[0]]).code, 0);
    assert_eq!(quietly(&server.kpty(&["talk", "same", "echo hi"])), (0, "hi\n"));
}

#[test]
fn what_a_session_shows_can_be_read_waited_for_and_found() {
    let server = Server::start();
    let (id, _) = server.create();
    assert_eq!(server.kpty(&["talk", &id, "seq -f 'line %g' 300"]).code, 0);
    let tail = server.kpty(&["read", &id, "--lines", "3"]);
    assert_eq!(tail.stdout.lines().take(2).collect::<Vec<_>>(), ["line 299", "line 300"]);
    let full = server.kpty(&["read", &id, "--mode", "full"]);
    assert_eq!(full.stdout.lines().filter(|line| line.starts_with("line ")).count(), 300);
    let viewport = json_of(&server.kpty(&["read", &id, "--mode", "viewport", "--json"]));
    assert_eq!((&viewport["rows"], &viewport["buffer_type"]), (&json!(30), &json!("normal")));
    let delta = server.kpty(&["read", &id, "--mode", "delta", "--lines", "0"]);
    let marker = delta.stderr.trim_end().strip_prefix("kpty: go on with --marker ").expect("a marker").to_owned();
    assert_eq!(server.kpty(&["talk", &id, "echo news"]).code, 0);
    let delta = server.kpty(&["read", &id, "--mode", "delta", "--marker", &marker]);
    assert!(delta.stdout.lines().any(|line| line == "news"), "{}", delta.stdout);
    assert!(!delta.stdout.contains("line 300"), "{}", delta.stdout);

    let found = server.kpty(&["search", &id, "^line 1[01]$", "-C", "1"]);
    let lines: Vec<&str> =
        found.stdout.lines().map(|line| line.trim_start_matches(|c: char| c.is_ascii_digit())).collect();
    assert_eq!((found.code, lines), (0, vec!["-line 9", ":line 10", ":line 11", "-line 12"]));
    let nothing = server.kpty(&["search", &id, "no such line$"]);
    assert_eq!(quietly(&nothing), (1, ""));
    assert_eq!(server.kpty(&["search", &id, "("]).code, 2);

    let run = server.kpty(&["wait", &id, "--text", "never seen", "--timeout", "100ms"]);
    assert_eq!((run.code, run.stderr.as_str()), (1, ""));
    assert!(run.stdout.starts_with("timeout after "), "{}", run.stdout);
    assert!(server.kpty(&["wait", &id, "--quiet", "50ms"]).stdout.starts_with("quiet after "));
    assert!(server.kpty(&["wait", &id, "--prompt"]).stdout.starts_with("prompt after "));
    assert_eq!(server.kpty(&["wait", &id]).code, 2);

    let commands = server.kpty(&["commands", &id]);
    assert!(commands.stdout.lines().nth(2).is_some_and(|row| row.ends_with("echo news")), "{}", commands.stdout);
    assert_eq!(quietly(&server.kpty(&["commands", &id, "cmd_2"])), (0, "news\n"));
    assert_eq!(server.kpty(&["send", &id, "exit 4"]).code, 0);
    assert!(server.kpty(&["wait", &id, "--exit"]).stdout.starts_with("exit after "));
}

#[test]
fn keys_and_texts_keep_their_order() {
    let server = Server::start();
    let made = server.kpty(&["create", "--label", "keys", "--", "cat", "-v"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    // The terminal echoes what is typed; cat repeats the line after Enter.
    let keys = ["keys", "keys", "--text", "ab", "x", "--text=-d", "Tab", "--text", "e", "Enter"];
    assert_eq!(quietly(&server.kpty(&keys)), (0, ""));
    assert_eq!(server.kpty(&["wait", "keys", "--regex", "^abx-d *\\^Ie|^abx-d +e"]).code, 0);
    let run = server.kpty(&["keys", "keys", "NoSuchKey"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("NoSuchKey"), "{}", run.stderr);
    assert_eq!(server.kpty(&["keys", "keys"]).code, 2);
    assert_eq!(server.kpty(&["keys", "keys", "Ctrl-D"]).code, 0);
    assert_eq!(server.kpty(&["wait", "keys", "--exit"]).code, 0);
    assert_eq!(server.kpty(&["keys", "keys", "Enter"]).code, 5);
}

#[test]
fn without_a_server_the_command_line_says_how_to_start_one() {
    let mut server = Server::start();
    let url = server.url();
    server.signal("KILL");
    server.end();
    let run = kpty(["list", "--url", &url]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert_eq!(run.stderr, format!("kpty: no kpty server at {url}; start one with `kpty serve`\n"));
    let run = kpty(["list", "--url", "nonsense"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("nonsense is not the address"), "{}", run.stderr);
}

#[test]
fn run_shows_what_a_program_showed_and_ends_as_it_did() {
    for (script, code, output) in [
        ("echo hi; exit 3", 3, "hi\n"),
        ("printf '\\033[31mred\\033[0m\\r\\n50%%\\r100%%'", 0, "red\n100%\n"),
        ("test -t 0 && test -t 1 && tput cols", 0, "120\n"),
        ("exit 255", 255, ""),
    ] {
        assert_eq!(quietly(&kpty(["run", "--", "sh", "-c", script])), (code, output), "{script}");
    }
    let run = kpty(["run", "--cols", "40", "--rows", "5", "--", "sh", "-c", "stty size"]);
    assert_eq!(quietly(&run), (0, "5 40\n"));
    let folder = Folder::new();
    let folder = folder.path().canonicalize().expect("a folder");
    let run = finished(command(["run", "--cwd"]).arg(&folder).arg("pwd").output().expect("kpty starts"));
    assert_eq!(quietly(&run), (0, format!("{}\n", folder.display()).as_str()));
}

#[test]
fn run_tells_a_signal_a_timeout_and_a_program_that_is_not_there() {
    let run = kpty(["run", "--", "sh", "-c", "echo before; kill -9 $$"]);
    assert_eq!((run.code, run.stdout.as_str()), (137, "before\n"));
    let run = kpty(["run", "--timeout", "300ms", "--", "sh", "-c", "echo before; exec sleep 1000"]);
    assert_eq!((run.code, run.stdout.as_str()), (124, "before\n"));
    let run = kpty(["run", "--", "no-such-program-here"]);
    assert_eq!((run.code, run.stdout.as_str()), (127, ""));
    assert!(run.stderr.contains("no-such-program-here"), "{}", run.stderr);
    assert_eq!(kpty(["run"]).code, 2);
    let answer = json_of(&kpty(["run", "--json", "--", "sh", "-c", "echo hi; exit 3"]));
    assert_eq!((&answer["output"], &answer["exit_code"]), (&json!("hi"), &json!(3)));
    assert_eq!((&answer["ok"], &answer["timed_out"]), (&json!(true), &json!(false)));
}
