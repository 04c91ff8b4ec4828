//! `kpty attach` in a real terminal: tmux shows what a person would see, and types what a person would type.
//!
//! Each test has a tmux of its own, on a socket of its own; the attached program runs under `sh`, which says when it has
//! ended.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::server::Server;
use crate::support::Folder;

/// Only a failure reaches it.
const DEADLINE: Duration = Duration::from_secs(60);

/// A tmux with one pane of 80 by 24.
pub(crate) struct Tmux {
    folder: Folder,
}

impl Tmux {
    /// Starts a shell with a plain prompt.
    pub(crate) fn start(server: &Server) -> Self {
        let tmux = Self { folder: Folder::new() };
        let path = env!("CARGO_BIN_EXE_kpty");
        let shell = format!("env PS1='outer$ ' KPTY={path} KURORYUU_MCP_URL={} sh", server.url());
        tmux.run(&["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", &shell]);
        tmux.sees("outer$");
        tmux
    }

    fn run(&self, arguments: &[&str]) -> String {
        let socket = self.folder.path().join("socket");
        let output = Command::new("tmux").arg("-S").arg(socket).args(arguments).env_remove("TMUX").output();
        let output = output.expect("tmux runs");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("tmux writes UTF-8")
    }

    /// The visible rows, without what is blank at the end.
    pub(crate) fn screen(&self) -> String {
        let rows = self.run(&["capture-pane", "-p"]);
        rows.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    pub(crate) fn keys(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    /// Waits until the screen is as wanted.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(began.elapsed() < DEADLINE, "{what}:\n{screen}");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    pub(crate) fn sees(&self, text: &str) {
        self.until(text, |screen| screen.contains(text));
    }

    /// Attaches, and waits for the notice to come and go.
    pub(crate) fn attach(&self, arguments: &str) {
        self.keys(&[&format!("$KPTY attach {arguments}; echo code=$?"), "Enter"]);
        self.sees("detaches");
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let socket = self.folder.path().join("socket");
        // It may have ended with its shell.
        let _ = Command::new("tmux").arg("-S").arg(socket).arg("kill-server").output();
    }
}

/// A session of a plain shell, as large as the pane, with something on its screen.
fn session(server: &Server) -> String {
    let answer =
        server.done("create", json!({ "shell": "/bin/sh", "env": { "PS1": "inner$ " }, "cols": 80, "rows": 24 }));
    let id = answer["session_id"].as_str().expect("an id").to_owned();
    server.done("wait", json!({ "session_id": id, "text": "inner$", "timeout_ms": 60_000 }));
    let colours = "printf '\\033[1;31mred\\033[0m 日本 \\033[7minverse\\033[0m é\\n'; echo below";
    server.done("send_keys", json!({ "session_id": id, "text": colours, "keys": "Enter" }));
    server.done("wait", json!({ "session_id": id, "regex": "^below$", "timeout_ms": 60_000 }));
    id
}

/// What agents read of the screen.
fn viewport(server: &Server, id: &str) -> String {
    let read = json!({ "session_id": id, "mode": "viewport", "merge_wrapped": false });
    server.done("term_read", read)["text"].as_str().expect("text").trim_end().to_owned()
}

#[test]
fn the_screen_is_the_true_one_and_keys_reach_the_session() {
    let server = Server::start();
    let id = session(&server);
    let tmux = Tmux::start(&server);
    tmux.attach(&id);
    let is_same = |screen: &str| screen == viewport(&server, &id);
    tmux.until("the same as term_read", is_same);
    let colours = tmux.run(&["capture-pane", "-p", "-e"]);
    assert!(colours.contains("\u{1b}[1m\u{1b}[31mred") || colours.contains("\u{1b}[1;31mred"), "{colours:?}");
    tmux.keys(&["echo $((6*7))", "Enter"]);
    server.done("wait", json!({ "session_id": id, "regex": "^42$", "timeout_ms": 60_000 }));
    tmux.until("the same again", |screen| screen.contains("\n42\n") && is_same(screen));
    // A program that asks for other keys gets them: the arrows of application mode.
    let script = "stty raw -echo; printf '\\033[?1h'; head -c 3 | od -An -tx1; stty sane; printf '\\033[?1l'";
    server.done("send_keys", json!({ "session_id": id, "text": script, "keys": "Enter" }));
    server.done("wait", json!({ "session_id": id, "quiet_ms": 300, "timeout_ms": 60_000 }));
    tmux.keys(&["Up"]);
    server.done("wait", json!({ "session_id": id, "text": "1b 4f 41", "timeout_ms": 60_000 }));
}

#[test]
fn detaching_leaves_the_terminal_as_it_was() {
    let server = Server::start();
    let id = session(&server);
    let tmux = Tmux::start(&server);
    tmux.keys(&["clear; before=$(stty -g)", "Enter"]);
    tmux.attach(&id);
    tmux.sees("below");
    tmux.keys(&["C-\\"]);
    tmux.sees("code=0");
    let screen = tmux.screen();
    assert!(screen.contains("detached from") && !screen.contains("below"), "{screen}");
    tmux.keys(&["[ \"$before\" = \"$(stty -g)\" ] && echo same-modes", "Enter"]);
    tmux.until("the modes", |screen| screen.lines().any(|line| line == "same-modes"));
    let modes = tmux.run(&["display-message", "-p", "#{alternate_on}#{mouse_any_flag}#{cursor_flag}#{wrap_flag}"]);
    assert_eq!(modes.trim(), "0011", "alternate screen, mouse, cursor, wrap");
    // The session goes on.
    server.done("send_line", json!({ "session_id": id, "data": "echo still-$((1+1))" }));
    server.done("wait", json!({ "session_id": id, "text": "still-2", "timeout_ms": 60_000 }));
}

#[test]
fn two_see_what_each_types() {
    let server = Server::start();
    let id = session(&server);
    let (one, two) = (Tmux::start(&server), Tmux::start(&server));
    one.attach(&id);
    two.attach(&format!("{id} --detach ctrl-]"));
    one.keys(&["echo from-one", "Enter"]);
    two.until("what the first typed", |screen| screen.contains("\nfrom-one"));
    two.keys(&["echo from-two", "Enter"]);
    one.until("what the second typed", |screen| screen.contains("\nfrom-two"));
    two.keys(&["C-]"]);
    two.sees("code=0");
    one.keys(&["echo alone", "Enter"]);
    one.until("it goes on", |screen| screen.contains("\nalone"));
}

#[test]
fn the_end_of_the_program_is_told() {
    let server = Server::start();
    let id = session(&server);
    let tmux = Tmux::start(&server);
    tmux.attach(&id);
    tmux.keys(&["exit 7", "Enter"]);
    tmux.sees("code=7");
    assert!(tmux.screen().contains("ended with code 7"));
    tmux.keys(&["clear", "Enter"]);
    tmux.until("a clear screen", |screen| !screen.contains("code=7"));
    tmux.keys(&[&format!("$KPTY attach {id}; echo code=$?"), "Enter"]);
    tmux.sees("code=5");
    tmux.keys(&["$KPTY attach pty_00000000; echo code=$?", "Enter"]);
    tmux.sees("code=3");
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let server = Server::start();
    let id = session(&server);
    let tmux = Tmux::start(&server);
    tmux.keys(&["before=$(stty -g)", "Enter"]);
    tmux.attach(&id);
    let pid = tmux.run(&["display-message", "-p", "#{pane_pid}"]);
    let killed = Command::new("pkill").args(["-TERM", "-P", pid.trim(), "kpty"]).status().expect("pkill runs");
    assert!(killed.success());
    tmux.sees("code=143");
    tmux.keys(&["[ \"$before\" = \"$(stty -g)\" ] && echo same-modes", "Enter"]);
    tmux.until("the modes", |screen| screen.lines().any(|line| line == "same-modes"));
}

#[test]
fn the_session_follows_the_size_only_when_asked() {
    let server = Server::start();
    let id = session(&server);
    let tmux = Tmux::start(&server);
    tmux.attach(&format!("{id} --resize"));
    tmux.run(&["resize-window", "-x", "70", "-y", "20"]);
    let size = || {
        let read = server.done("term_read", json!({ "session_id": id, "mode": "viewport" }));
        (read["cols"].as_u64(), read["rows"].as_u64())
    };
    tmux.until("the size", |_| size() == (Some(70), Some(20)));
    tmux.keys(&["C-\\"]);
    tmux.sees("code=0");
    tmux.attach(&id);
    tmux.run(&["resize-window", "-x", "50", "-y", "10"]);
    tmux.keys(&["echo narrow", "Enter"]);
    tmux.until("the part with the cursor", |screen| screen.contains("\nnarrow"));
    assert_eq!(size(), (Some(70), Some(20)));
}

#[test]
fn what_is_typed_passes_the_guard() {
    let server = Server::start();
    let id = session(&server);
    let tmux = Tmux::start(&server);
    tmux.attach(&id);
    // A paste is one piece, as for everybody else.
    tmux.run(&["set-buffer", "rm -rf /"]);
    tmux.run(&["paste-buffer", "-p"]);
    tmux.until("the refusal", |screen| screen.to_lowercase().contains("blocked"));
    assert!(!viewport(&server, &id).contains("rm -rf"));
}

#[test]
fn without_a_terminal_it_says_so() {
    let server = Server::start();
    let (id, _) = server.create();
    let mut command = Command::new("setsid");
    command.args(["--wait", env!("CARGO_BIN_EXE_kpty"), "attach", &id]).env("KURORYUU_MCP_URL", server.url());
    let output = command.output().expect("setsid runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("needs a terminal"), "{said}");
}
