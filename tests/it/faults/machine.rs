//! Faults around the server: signals, a stopped process, no more terminals, processes or memory, and much to do.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::live::amount;
use crate::server::Server;
use crate::support::Folder;

/// `/health` is there within a second, and another session can be talked to within two.
fn assert_answers(server: &Server, other: &str) {
    let began = Instant::now();
    assert_eq!(server.get("/health").status, 200);
    assert!(began.elapsed() < Duration::from_secs(1), "/health: {:?}", began.elapsed());
    let began = Instant::now();
    let told = server.done("talk", json!({ "session_id": other, "command": "echo fine", "timeout_ms": 10_000 }));
    assert_eq!(told["output"], "fine");
    assert!(began.elapsed() < Duration::from_secs(2), "talk: {:?}", began.elapsed());
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The command, run behind a script that prepares something for it.
fn behind(launcher: &[&str], script: &str, command: &Command) -> Command {
    let mut words = launcher.iter().chain(&["/bin/sh", "-c"]);
    let mut wrapped = Command::new(words.next().expect("a program"));
    wrapped
        .args(words)
        .arg(format!("{script} && exec \"$@\""))
        .arg("sh")
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    wrapped
}

/// A server behind such a script.
fn server_behind(launcher: &[&str], script: &str) -> Server {
    let home = Folder::new();
    let command = Server::serve(&home.path().join("state"), home.path());
    Server::launch(behind(launcher, script, &command), home)
}

/// A control group; its processes are killed on drop.
struct Group(PathBuf);

impl Group {
    /// One of this controller with a limit; nothing where that cannot be had.
    #[expect(clippy::print_stderr, reason = "a test that is left out says so")]
    fn with(controller: &str, files: &[(&str, &str)], limit: &str) -> Option<Self> {
        let name = format!("kpty-test-{}-{controller}", std::process::id());
        // The second is the one hierarchy for all controllers.
        for parent in [format!("/sys/fs/cgroup/{controller}"), "/sys/fs/cgroup".to_owned()] {
            let folder = PathBuf::from(parent).join(&name);
            if !is_root() || fs::create_dir(&folder).is_err() {
                continue;
            }
            let group = Self(folder);
            if files.iter().filter(|(file, value)| group.set(file, &value.replace("{limit}", limit))).count() > 0 {
                return Some(group);
            }
        }
        eprintln!("left out: no control group of {controller} can be had here");
        None
    }

    fn set(&self, file: &str, value: &str) -> bool {
        self.0.join(file).exists() && fs::write(self.0.join(file), value).is_ok()
    }

    fn join(&self) -> String {
        format!("echo $$ > '{}'", self.0.join("cgroup.procs").display())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // New ones may come while they are killed.
        for _ in 0..100 {
            let pids = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
            if !pids.is_empty() {
                let _ = Command::new("kill").args(["-s", "KILL"]).args(pids.split_whitespace()).output();
            }
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_second_signal_ends_the_server_at_once() {
    let mut server = Server::start();
    let stay = "trap '' HUP TERM; while :; do sleep 1000 & wait; done";
    for _ in 0..8 {
        server.done("create", json!({ "shell": "/bin/sh", "args": ["-c", stay] }));
    }
    let began = Instant::now();
    server.signal("TERM");
    server.signal("TERM");
    server.end();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    let mut server = Server::start();
    server.signal("INT");
    assert!(server.end().success(), "an interrupt is a request to end");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long the server stands still is what the test is about")]
fn a_server_that_stood_still_goes_on() {
    let server = Server::start();
    let (id, _) = server.create();
    let (other, _) = server.create();
    for id in [&id, &other] {
        server.done("talk", json!({ "session_id": id, "command": "true" }));
    }
    let late = "for n in 1 2 3 4 5; do echo line $n; sleep 0.1; done";
    std::thread::scope(|scope| {
        let told =
            scope.spawn(|| server.call("talk", json!({ "session_id": id, "command": late, "timeout_ms": 1_000 })).0);
        let timed = scope.spawn(|| {
            server.call("talk", json!({ "session_id": other, "command": "sleep 1000", "timeout_ms": 1_000 })).0
        });
        std::thread::sleep(Duration::from_millis(300));
        server.signal("STOP");
        std::thread::sleep(Duration::from_secs(amount(3, 60) as u64));
        server.signal("CONT");
        // All of it was printed meanwhile: an end that came counts more than a time that is over.
        let told = told.join().expect("an answer");
        let is_whole = told["output"].as_str().is_some_and(|text| text.ends_with("line 5"));
        assert!(is_whole || told["error_code"] == "PTY_TIMEOUT", "{told}");
        let timed = timed.join().expect("an answer");
        assert_eq!(timed["error_code"], "PTY_TIMEOUT", "{timed}");
    });
    let read = server.done("term_read", json!({ "session_id": id, "mode": "tail", "max_lines": 20 }));
    assert!(read["text"].as_str().is_some_and(|text| (1..6).all(|n| text.contains(&format!("line {n}")))), "{read}");
    server.done("kill", json!({ "session_id": other }));
    assert_answers(&server, &id);
}

#[test]
fn fifty_floods_leave_the_server_free() {
    let server = Server::start();
    let (other, _) = server.create();
    server.done("talk", json!({ "session_id": other, "command": "true" }));
    let floods: Vec<_> =
        (0..50).map(|_| server.done("create", json!({ "shell": "/usr/bin/yes", "args": ["flood"] }))).collect();
    for _ in 0..amount(3, 30) {
        assert_answers(&server, &other);
    }
    for flood in floods {
        server.done("kill", json!({ "session_id": flood["session_id"] }));
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
fn without_a_free_terminal_a_create_says_so() {
    let mount =
        "mount -t devpts -o newinstance,ptmxmode=666,max=3 devpts /dev/pts && mount --bind /dev/pts/ptmx /dev/ptmx";
    let can = is_root()
        && Command::new("unshare").args(["-m", "/bin/sh", "-c", mount]).output().is_ok_and(|run| run.status.success());
    if !can {
        eprintln!("left out: no terminals of its own can be had here");
        return;
    }
    let server = server_behind(&["unshare", "-m"], mount);
    let ids: Vec<_> = (0..3).map(|_| server.create().0).collect();
    let (refused, is_error) = server.call("create", json!({}));
    assert!(is_error && refused["error_code"] == "PTY_SPAWN_FAILED", "{refused}");
    server.done("kill", json!({ "session_id": ids[0] }));
    let (id, _) = server.create();
    assert_answers(&server, &id);
}

#[test]
fn where_no_process_can_be_started_the_server_stays() {
    let Some(group) = Group::with("pids", &[("pids.max", "{limit}")], "150") else { return };
    let server = server_behind(&[], &group.join());
    let (other, _) = server.create();
    server.done("talk", json!({ "session_id": other, "command": "true" }));
    let bomb = server.state.path().join("bomb");
    fs::write(&bomb, "for n in 1 2 3; do /bin/sh \"$0\" & done\nwait\nsleep 1000\n").expect("a writable folder");
    let (id, _) = server.create();
    let send = format!("/bin/sh '{}'", bomb.display());
    server.done("send_line", json!({ "session_id": id, "data": send }));
    let began = Instant::now();
    let refused = loop {
        let (answer, is_error) = server.call("create", json!({ "shell": "/bin/cat" }));
        if is_error {
            break answer;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "processes can still be started");
    };
    assert_eq!(refused["error_code"], "PTY_SPAWN_FAILED", "{refused}");
    assert_eq!(server.get("/health").status, 200);
    let told = server.done("talk", json!({ "session_id": other, "command": "echo fine" }));
    assert_eq!(told["output"], "fine", "a builtin needs no process");
    assert!(group.set("pids.max", "max"), "the limit is ours");
    drop(server);
}

#[test]
fn twenty_hostile_sessions_have_room_in_little_memory() {
    let files = [
        ("memory.limit_in_bytes", "{limit}"),
        ("memory.memsw.limit_in_bytes", "{limit}"),
        ("memory.max", "{limit}"),
        ("memory.swap.max", "0"),
    ];
    let Some(group) = Group::with("memory", &files, "268435456") else { return };
    let mut server = server_behind(&[], &group.join());
    let (other, _) = server.create();
    server.done("talk", json!({ "session_id": other, "command": "true" }));
    let folder = server.state.path().to_owned();
    let streams = crate::hostile::hungry(amount(1 << 20, 16 << 20));
    for (number, bytes) in streams.iter().enumerate() {
        fs::write(folder.join(format!("stream-{number}")), bytes).expect("a writable folder");
    }
    let ids: Vec<_> = (0..20)
        .map(|number| {
            let script = format!(
                "read go; cat stream-{}; printf '\\030\\033\\\\\\033c'; echo it is over; sleep 1000",
                number % streams.len()
            );
            let size = if number % 4 == 0 { (300, 100) } else { (120, 30) };
            let arguments =
                json!({ "shell": "/bin/sh", "args": ["-c", script], "cwd": folder, "cols": size.0, "rows": size.1 });
            server.done("create", arguments)["session_id"].clone()
        })
        .collect();
    // All are there before the first fills the memory: no other is made after that.
    for id in &ids {
        server.done("send_keys", json!({ "session_id": id, "keys": "Enter" }));
    }
    for (number, id) in ids.iter().enumerate() {
        let began = Instant::now();
        while server.call("wait", json!({ "session_id": id, "text": "it is over", "timeout_ms": 45_000 })).0["ended_by"]
            != "text"
        {
            assert!(began.elapsed() < Duration::from_secs(200), "{number} is not over");
        }
        assert_answers(&server, &other);
    }
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0), "it was not killed");
}
