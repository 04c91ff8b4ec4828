//! `kpty guard check` as a user runs it: the corpus where it is at hand, and the forms of question and answer.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Asks about the lines of a text.
fn check(arguments: &[&str], input: &str) -> String {
    let mut asked = Command::new(env!("CARGO_BIN_EXE_kpty"))
        .args(["guard", "check"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("kpty starts");
    let mut pipe = asked.stdin.take().expect("a pipe");
    let input = input.to_owned();
    let feeder = std::thread::spawn(move || pipe.write_all(input.as_bytes()));
    let answer = asked.wait_with_output().expect("kpty ends");
    feeder.join().expect("no panic").expect("everything is read");
    assert!(answer.status.success(), "{answer:?}");
    String::from_utf8(answer.stdout).expect("UTF-8")
}

#[test]
fn every_line_gets_its_verdict() {
    let input = "{\"id\": 7, \"command\": \"sudo rm -rf /\"}\nls -la\n\n{\"id\": \"b\", \"command\": \"echo halt\"}\nls\u{15}reboot\n";
    let answer = check(&["--json"], input);
    let verdicts: Vec<Value> = answer.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let short: Vec<_> =
        verdicts.iter().map(|verdict| (&verdict["id"], &verdict["blocked"], &verdict["rule"])).collect();
    let (yes, no, none) = (Value::from(true), Value::from(false), Value::Null);
    let (root, power) = (Value::from("remove-root"), Value::from("power-off"));
    let expected =
        [(&Value::from(7), &yes, &root), (&none, &no, &none), (&Value::from("b"), &no, &none), (&none, &yes, &power)];
    assert_eq!(short, expected);
    assert!(verdicts[0]["reason"].is_string() && verdicts[1]["reason"].is_null());
    let text = check(&[], "rm -rf /\nls\n");
    assert!(text.starts_with("block  rm -rf /\n") && text.ends_with("pass   ls\n"), "{text}");
}

#[test]
#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "where the corpora are is told to tests by the environment, and that they are missing to people"
)]
fn the_corpus_is_judged_right() {
    let Some(folder) = std::env::var_os("KPTY_CORPORA").map(PathBuf::from) else {
        eprintln!("KPTY_CORPORA is not set: the policy was NOT measured");
        return;
    };
    let text = std::fs::read_to_string(folder.join("commands.sample.jsonl")).expect("the sample is readable");
    let answer = check(&["--json"], &text);
    let mut wrong = Vec::new();
    let mut count = 0;
    for (case, verdict) in text.lines().zip(answer.lines()) {
        let read = |line: &str| serde_json::from_str::<Value>(line).expect("JSON");
        let (case, verdict) = (read(case), read(verdict));
        assert_eq!(case["id"], verdict["id"]);
        count += 1;
        if case["expect"] != "either" && verdict["blocked"] != (case["expect"] == "block") {
            wrong.push(format!("{case}: {verdict}"));
        }
    }
    assert!(count > 50 && wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

/// `mark_it` does not exist; were it run, that would be an error of another kind.
#[test]
fn programs_of_the_command_line_are_judged() {
    let folder = crate::support::Folder::new();
    let rules = folder.file("rules.toml", "[[rule]]\nid = 'no-mark'\ncommand = 'mark_it'\nwhy = 'makes a mark'\n");
    let cast = folder.path().join("x.cast");
    let ask = |words: &[&str]| {
        let mut command = crate::support::command(words);
        crate::support::finished(command.env("KPTY_GUARD_RULES", &rules).output().expect("kpty starts"))
    };
    let file = cast.to_str().expect("UTF-8");
    for words in [
        &["record", "-o", file, "--", "sh", "-c", "true; mark_it"][..],
        &["record", "-o", file, "--", "mark_it"],
        &["run", "--", "sh", "-c", "mark_it"],
    ] {
        let run = ask(words);
        assert!(run.code == 2 && run.stderr.contains("no-mark"), "{words:?}: {} {}", run.code, run.stderr);
        assert!(!cast.exists());
    }
    let run = ask(&["run", "--", "echo", "mark_it"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "mark_it\n"));
}
