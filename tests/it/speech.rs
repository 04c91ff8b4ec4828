//! Output of `kpty` on a terminal, compared with its output in a script.

use serde_json::json;

use crate::server::Server;
use crate::support::{refused, shown};

/// What `kpty` with these arguments writes to a terminal, byte for byte.
fn at_a_terminal(server: &Server, arguments: &[&str], env: serde_json::Value) -> String {
    let created = server.done(
        "create",
        json!({ "shell": env!("CARGO_BIN_EXE_kpty"), "args": arguments, "env": env, "cols": 100, "rows": 10 }),
    );
    let id = created["session_id"].clone();
    let ended = server.done("wait", json!({ "session_id": id, "exit": true, "timeout_ms": 30_000 }));
    assert_eq!(ended["ended_by"], "exit", "{ended}");
    let read = server.done("read", json!({ "session_id": id, "max_bytes": 100_000 }));
    read["output"].as_str().expect("text").to_owned()
}

#[test]
fn colours_are_for_terminals() {
    let server = Server::start();
    let url = server.url();
    let list = ["list", "--url", &url];
    let nobody = ["read", "nobody", "--url", &url];
    assert!(at_a_terminal(&server, &list, json!({})).starts_with("\x1b[1mID "));
    assert!(at_a_terminal(&server, &nobody, json!({})).starts_with("\x1b[31mkpty:\x1b[0m no session"));
    for plain in [&list[..], &nobody] {
        let said = at_a_terminal(&server, plain, json!({ "NO_COLOR": "1" }));
        assert!(!said.contains('\x1b'), "{said:?}");
    }
    assert!(shown(list).starts_with("ID "));
}

#[test]
fn a_person_who_waits_is_told_so_and_a_script_is_not() {
    let server = Server::start();
    let (id, _) = server.create();
    let (url, command) = (server.url(), "sleep 2; echo done");
    let talk = ["talk", &id, command, "--url", &url];
    let said = at_a_terminal(&server, &talk, json!({}));
    let (progress, answer) = said.rsplit_once("\r\x1b[K").unwrap_or_else(|| panic!("{said:?}"));
    assert!(progress.contains("waiting for the end of the command") && progress.contains(": 1 s"), "{progress:?}");
    assert_eq!(answer.trim_end(), "done", "nothing of it stays");
    assert_eq!(shown(talk), "done\n");
}

#[test]
fn shells_can_complete_the_arguments() {
    for (shell, sign) in
        [("bash", "complete -F"), ("zsh", "#compdef kpty"), ("fish", "complete -c kpty"), ("powershell", "Register-")]
    {
        let script = shown(["completions", shell]);
        assert!(script.contains(sign) && script.contains("term") | script.contains("talk"), "{shell}");
    }
    assert!(refused(["completions", "csh"]).contains("csh"));
}

/// The help of every command shows how to use it.
#[test]
fn every_command_shows_an_example() {
    let help = shown(["--help"]);
    let commands = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let commands: Vec<_> = commands
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.len() > 15, "{help}");
    for command in commands {
        let text = shown([command, "--help"]);
        assert!(text.contains("\nExamples:\n") || text.contains("\nExample:\n"), "{command} has no example:\n{text}");
    }
}
