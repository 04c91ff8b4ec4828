//! The guard and the line editors of real shells: whatever keys put a forbidden command on the line, it is not run.
//!
//! The forbidden command is `mark_it`, a script of the test's own that makes one file in a temporary folder: harmless,
//! and seen when it runs.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use kpty::config::Config;
use kpty::error::ErrorCode;
use kpty_guard::{Policy, UserRules};
use serde_json::{Value, json};

use super::{Rig, Shell};
use crate::support::Folder;

/// Names of keys, and text in `{}`.
type Keys = &'static [&'static str];

const RULE: &str = "[[rule]]\nid = 'no-mark'\ncommand = 'mark_it'\nwhy = 'makes a mark'\n";

/// A rig whose policy forbids `mark_it`, and the folder with that script.
struct Ground {
    rig: Rig,
    folder: Folder,
}

impl Ground {
    fn new() -> Self {
        let folder = Folder::new();
        let script = format!("#!/bin/sh\n: > '{}'\n", folder.path().join("ran").display());
        for name in ["mark_it", "zebra_fine"] {
            let text = if name == "mark_it" { script.as_str() } else { "#!/bin/sh\necho zebra-'fine'\n" };
            let path = folder.file(name, text);
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("a file of ours");
        }
        // What fish remembers from another day.
        let history = folder.path().join(".local/share/fish");
        std::fs::create_dir_all(&history).expect("a folder of ours");
        let lines = "- cmd: mark_it\n  when: 1700000000\n- cmd: zebra_fine; mark_it\n  when: 1700000001\n\
                     - cmd: zebra_fine\n  when: 1700000002\n";
        std::fs::write(history.join("fish_history"), lines).expect("a file of ours");
        let policy = Policy::new(UserRules::parse(RULE).expect("a good rule"));
        Self { rig: Rig::with(Config { policy, ..Config::default() }), folder }
    }

    fn mark(&self) -> PathBuf {
        self.folder.path().join("ran")
    }

    async fn shell(&self, shell: &str) -> Shell<'_> {
        let folder = self.folder.path().display().to_string();
        let env = json!({ "HOME": folder, "PATH": format!("{folder}:/usr/local/bin:/usr/bin:/bin") });
        let shell = self.rig.create(json!({ "shell": shell, "cwd": folder, "env": env })).await;
        shell.talk("true").await;
        shell
    }

    /// True when the mark was made; it is gone afterwards.
    fn ran(&self) -> bool {
        std::fs::remove_file(self.mark()).is_ok()
    }
}

/// A key by its name, or text in braces.
fn part(key: &str) -> Value {
    match key.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        Some(text) => json!({ "text": text }),
        None => json!(key),
    }
}

/// Types a trick in one call, key by key as a page does, or with a pause before Enter.
async fn play(shell: &Shell<'_>, keys: Keys, how: How) {
    match how {
        How::OneCall => {
            let all: Vec<Value> = keys.iter().map(|key| part(key)).collect();
            shell.reply("send_keys", json!({ "keys": all })).await;
        }
        How::KeyByKey => {
            for key in keys {
                let calls: Vec<Value> = match part(key) {
                    Value::Object(text) => {
                        let text = text["text"].as_str().expect("text").to_owned();
                        text.chars().map(|c| json!({ "text": c.to_string() })).collect()
                    }
                    name => vec![json!({ "keys": [name] })],
                };
                for call in calls {
                    shell.reply("send_keys", call).await;
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum How {
    OneCall,
    KeyByKey,
}

/// Plays each trick in both ways; the names of those that made the mark.
async fn played(program: &str, tricks: &[(&str, &str, Keys)]) -> Vec<String> {
    let ground = Ground::new();
    let mut ran = Vec::new();
    for (name, before, keys) in tricks {
        for how in [How::KeyByKey, How::OneCall] {
            let shell = ground.shell(program).await;
            if !before.is_empty() {
                shell.talk(before).await;
            }
            play(&shell, keys, how).await;
            // What was refused still stands on the line; `talk` takes it back, and ends after whatever ran.
            shell.talk("true").await;
            if ground.ran() {
                ran.push(format!("{name} ({how:?})"));
            }
            shell.call("kill", json!({})).await;
        }
    }
    ground.rig.end().await;
    ran
}

/// What puts `mark_it` on the line of bash, by something that keys alone do not tell.
const BASH: &[(&str, &str, Keys)] = &[
    ("history, up", "history -s mark_it", &["Up", "Enter"]),
    ("history, Ctrl-P", "history -s mark_it", &["Ctrl-P", "Enter"]),
    ("history, its beginning", "history -c; history -s mark_it; history -s true", &["Alt-<", "Enter"]),
    ("history, search", "history -s mark_it", &["Ctrl-R", "{ark}", "Enter"]),
    ("history, search and edit", "history -s mark_it", &["Ctrl-R", "{ark}", "End", "Enter"]),
    ("history, next line", "history -s true; history -s mark_it", &["Up", "Up", "Ctrl-O", "Enter"]),
    ("last argument", "history -s 'echo mark_it'", &["Alt-.", "Enter"]),
    ("completion", "", &["{mark_}", "Tab", "Enter"]),
    ("glob", "", &["{mark_?t}", "Ctrl-X", "*", "Enter"]),
    ("abort", "", &["{m}", "{a}", "{r}", "{k}", "{_}", "{i}", "{t}", "Ctrl-G", "Enter"]),
    ("quit", "", &["{m}", "{a}", "{r}", "{k}", "{_}", "{i}", "{t}", "Ctrl-\\", "Enter"]),
    ("undo", "", &["{echo mark_it}", "Ctrl-W", "Ctrl-A", "Alt-D", "Ctrl-_", "Ctrl-_", "Ctrl-A", "Alt-D", "Enter"]),
    (
        "repeated kills",
        "",
        &["{echo mark_it}", "Alt-Backspace", "Alt-Backspace", "Ctrl-U", "Ctrl-Y", "Ctrl-A", "Alt-D", "Enter"],
    ),
    ("lower case", "", &["{MARK_IT}", "Ctrl-A", "Alt-L", "Alt-L", "Enter"]),
    ("transposed words", "", &["{it_mark}", "Alt-T", "Enter"]),
    ("argument of a key", "", &["{mark_ittt}", "Alt-2", "Backspace", "Enter"]),
    ("character search", "", &["{Xmark_it}", "Ctrl-A", "Ctrl-]", "{m}", "Ctrl-U", "Enter"]),
    ("vi mode", "set -o vi", &["{mark_itx}", "Escape", "{x}", "Enter"]),
    ("vi mode by a key", "", &["{mark_itx}", "Alt-Enter", "Escape", "{x}", "Enter"]),
    ("macro", r#"bind '"\C-xq": "mark_it"'"#, &["Ctrl-X", "{q}", "Enter"]),
    ("letter bound to text", r#"bind '"Q": "mark_it"'"#, &["{Q}", "Enter"]),
];

/// What is drawn late, on a machine with more work than cores: these once brought the command past the guard now and then.
const LATE_IN_BASH: &[(&str, &str, Keys)] = &[
    (
        "kills to yank",
        "",
        &["{: mark_it}", "Alt-Backspace", "Alt-Backspace", "Backspace", "Backspace", "Ctrl-Y", "Enter"],
    ),
    ("typed ahead", "history -s mark_it", &["{sleep 0.7}", "Enter", "Up", "Up", "Enter"]),
];
const LATE_IN_FISH: &[(&str, &str, Keys)] = &[
    ("suggestion", "", &["{mark}", "Right", "Enter"]),
    ("suggestion by its key", "", &["{mark}", "Ctrl-F", "Enter"]),
    ("a word of a suggestion", "", &["{mark}", "Alt-Right", "Enter"]),
];

/// Work for a processor while tests run beside it.
struct Load(Vec<std::process::Child>);

impl Load {
    /// So many processes for each processor.
    fn new(for_each: usize) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let spin = || std::process::Command::new("/bin/sh").args(["-c", "while :; do :; done"]).spawn();
        Self((0..for_each * processors).map(|_| spin().expect("a shell")).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Nothing else ends it.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_brings_a_forbidden_command_past_the_guard_of_an_overloaded_machine() {
    let _load = Load::new(2);
    for _ in 0..crate::live::amount(1, 40) {
        assert_eq!(played("/bin/bash", LATE_IN_BASH).await, Vec::<String>::new());
        assert_eq!(played("fish", LATE_IN_FISH).await, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_of_bash_brings_a_forbidden_command_past_the_guard() {
    assert!(BASH.len() >= 18);
    assert_eq!(played("/bin/bash", BASH).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_of_zsh_brings_a_forbidden_command_past_the_guard() {
    let tricks: &[(&str, &str, Keys)] = &[
        ("history, up", "print -s mark_it", &["Up", "Enter"]),
        ("history, search", "print -s mark_it", &["Ctrl-R", "{ark}", "Enter"]),
        ("last argument", "print -s 'echo mark_it'", &["Alt-.", "Enter"]),
        ("completion", "", &["{mark_}", "Tab", "Enter"]),
        ("undo", "", &["{m}", "{a}", "{r}", "{k}", "{_}", "{i}", "{t}", "Ctrl-W", "Ctrl-_", "Enter"]),
        ("vi mode", "bindkey -v", &["{mark_itx}", "Escape", "{x}", "Enter"]),
    ];
    assert_eq!(played("zsh", tricks).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_of_fish_brings_a_forbidden_command_past_the_guard() {
    let tricks: &[(&str, &str, Keys)] = &[
        ("history, up", "", &["{mark_}", "Up", "Enter"]),
        ("completion", "", &["{mark_}", "Tab", "Enter"]),
        ("last argument", "true mark_it", &["Alt-.", "Enter"]),
        ("undo", "", &["{m}", "{a}", "{r}", "{k}", "{_}", "{i}", "{t}", "Ctrl-U", "Ctrl-Z", "Enter"]),
    ];
    assert_eq!(played("fish", tricks).await, Vec::<String>::new());
}

/// A line longer than what was once kept of it: its beginning counts, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_line_hides_nothing() {
    let ground = Ground::new();
    let shell = ground.shell("/bin/bash").await;
    for c in "mark_it".chars() {
        shell.call("send_keys", json!({ "text": c.to_string() })).await;
    }
    shell.reply("send_keys", json!({ "text": " ".repeat(70_000) })).await;
    shell.reply("send_keys", json!({ "keys": "Enter" })).await;
    shell.talk("true").await;
    assert!(!ground.ran());
    ground.rig.end().await;
}

/// One types the first half of a forbidden command, another one its second half and Enter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_writers_do_not_bring_a_line_past_the_guard() {
    let ground = Ground::new();
    let shell = ground.shell("/bin/bash").await;
    let rounds: [(&str, Value, &str, Value); 4] = [
        ("send_keys", json!({ "text": "mark" }), "send_keys", json!({ "text": "_it", "keys": "Enter" })),
        ("send_keys", json!({ "text": "mark" }), "send_line", json!({ "data": "_it" })),
        ("send_keys", json!({ "text": "mark" }), "talk", json!({ "command": "_it", "timeout_ms": 5_000 })),
        ("send_line", json!({ "data": "mark", "enter_delay_ms": 60 }), "send_keys", json!({ "text": "_it" })),
    ];
    let mut ran = Vec::new();
    for round in 0..40 {
        let (first, half, second, rest) = &rounds[round % rounds.len()];
        let (one, other) = (shell.reply(first, half.clone()), shell.reply(second, rest.clone()));
        if round % 8 < 4 {
            tokio::join!(one, other)
        } else {
            tokio::join!(other, one)
        };
        shell.talk("true").await;
        if ground.ran() {
            ran.push(round);
        }
    }
    assert_eq!(ran, Vec::<usize>::new());
    ground.rig.end().await;
}

/// The same keys with a command that is allowed: it runs, every time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_keys_run_what_is_allowed() {
    let ground = Ground::new();
    let tricks: &[(&str, &str, Keys)] = &[
        ("/bin/bash", "history -s zebra_fine", &["Up", "Enter"]),
        ("/bin/bash", "history -s zebra_fine", &["Ctrl-R", "{ebra}", "Enter"]),
        ("/bin/bash", "", &["{zebra_}", "Tab", "Enter"]),
        ("/bin/bash", "", &["{zebra_?ine}", "Ctrl-X", "*", "Enter"]),
        ("/bin/bash", "", &["{zebra_fine}", "Ctrl-G", "Enter"]),
        ("/bin/bash", "", &["{fine_zebra}", "Alt-T", "Enter"]),
        ("/bin/bash", "set -o vi", &["{zebra_finex}", "Escape", "{x}", "Enter"]),
        ("/bin/bash", "", &["{sleep 0.7}", "Enter", "{zebra_fi}", "{ne}", "Enter"]),
        ("/bin/sh", "", &["{zebra_fi}", "{ne}", "Enter"]),
        ("zsh", "print -s zebra_fine", &["Up", "Enter"]),
        ("zsh", "", &["{zebra_}", "Tab", "Enter"]),
        // What it suggests behind the cursor is not run.
        ("fish", "", &["{zebra_fine}", "Enter"]),
    ];
    for (program, before, keys) in tricks {
        for how in [How::KeyByKey, How::OneCall] {
            let shell = ground.shell(program).await;
            if !before.is_empty() {
                shell.talk(before).await;
            }
            play_all(&shell, keys, how).await;
            shell.wait(json!({ "text": "zebra-fine" }), "text").await;
            shell.call("kill", json!({})).await;
        }
    }
    assert!(!ground.ran());
    ground.rig.end().await;
}

/// Programs that are no shells get every key as before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_get_every_key() {
    let ground = Ground::new();
    let programs: &[(&str, &str, Keys, &str)] = &[
        (
            "python3 -q",
            ">>>",
            &["{print('o' + 'ne')}", "Enter", "Up", "Enter", "Up", "Down", "{print('t' + 'wo')}", "Enter"],
            "^two",
        ),
        ("cat", "cat", &["Up", "{ line}", "Tab", "Enter", "{las}", "{t}", "Enter"], "^last"),
        ("read -r -s X; echo got-$X", "read", &["{pass}", "Tab", "{word}", "Ctrl-G", "Enter"], "got-pass"),
        ("sh -c 'sleep 0.3; read -r X; echo got-$X'", "sleep", &["{a}", "Tab", "{b}", "Enter"], "^got-a"),
        ("bash --norc", "bash-", &["{zebra_fin}", "{ex}", "Backspace", "Enter"], "zebra-fine"),
        ("bash --norc", "bash-", &["{zebra_}", "Tab", "Enter"], "zebra-fine"),
        ("seq 500 | less", ":", &["{/42}", "Enter", "Down", "Enter", "{G}"], "^500"),
    ];
    for (command, ready, keys, expected) in programs {
        for how in [How::KeyByKey, How::OneCall] {
            let shell = ground.shell("/bin/bash").await;
            let marker = shell.call("term_read", json!({ "max_lines": 0 })).await["marker_id"].clone();
            shell.call("send_line", json!({ "data": command, "escapes": false })).await;
            shell.wait(json!({ "text": ready, "marker_id": marker }), "text").await;
            play_all(&shell, keys, how).await;
            shell.wait(json!({ "regex": expected }), "text").await;
            shell.call("kill", json!({})).await;
        }
    }
    ground.rig.end().await;
}

/// Like `play`, where nothing may be refused.
async fn play_all(shell: &Shell<'_>, keys: Keys, how: How) {
    match how {
        How::OneCall => {
            let all: Vec<Value> = keys.iter().map(|key| part(key)).collect();
            shell.call("send_keys", json!({ "keys": all })).await;
        }
        How::KeyByKey => {
            for key in keys {
                shell.call("send_keys", json!({ "keys": [part(key)] })).await;
            }
        }
    }
}

/// A program that is started runs as surely as a line that is typed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn starting_a_program_is_judged_like_a_line() {
    let ground = Ground::new();
    let path = json!(format!("{}:/usr/bin:/bin", ground.folder.path().display()));
    for more in [
        json!({ "shell": "/bin/sh", "args": ["-c", "mark_it"] }),
        json!({ "shell": "/bin/bash", "args": ["-lc", "cd / && exec mark_it"] }),
        json!({ "shell": ground.folder.path().join("mark_it") }),
        json!({ "shell": "/usr/bin/env", "args": ["X=1", "mark_it"] }),
        json!({ "shell": "/bin/bash", "env": { "PROMPT_COMMAND": "mark_it", "PATH": path } }),
        json!({ "shell": "/bin/bash", "args": ["-c", "true"], "env": { "BASH_ENV": "$(mark_it)", "PATH": path } }),
        json!({ "shell": "/bin/sh", "env": { "ENV": "`mark_it`", "PATH": path } }),
        json!({ "shell": "/bin/bash", "env": { "PS1": "$(mark_it)$ ", "PATH": path } }),
        json!({ "shell": "/bin/bash", "env": { "PS0": "$(mark_it)", "PATH": path } }),
    ] {
        let mut arguments = json!({ "action": "create" });
        super::merge(&mut arguments, more);
        let body = ground.rig.fails(arguments, ErrorCode::DangerousCommandBlocked).await;
        assert!(body["message"].as_str().is_some_and(|text| text.contains("nothing was started")), "{body}");
    }
    for more in [
        json!({ "shell": "/bin/sh", "args": ["-c", "echo mark_it"] }),
        json!({ "shell": "/bin/echo", "args": ["$(mark_it)"] }),
        json!({ "shell": "/bin/bash", "env": { "PS1": "mark_it $ ", "PROMPT_COMMAND": "history -a", "NOTE": "mark_it" } }),
    ] {
        ground.rig.create(more).await;
    }
    assert!(!ground.ran());
    ground.rig.end().await;
}

/// The pending line once cost seconds for each megabyte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_megabytes_are_typed_in_no_time() {
    let ground = Ground::new();
    let script = "stty raw -echo; printf ready; exec cat > /dev/null";
    let shell = ground.rig.create(json!({ "shell": "/bin/sh", "args": ["-c", script] })).await;
    shell.wait(json!({ "text": "ready" }), "text").await;
    let text = "x".repeat(4 << 20);
    let began = std::time::Instant::now();
    let sent = shell.call("send_keys", json!({ "text": text })).await;
    let took = began.elapsed();
    assert_eq!(sent["bytes_written"], 4 << 20);
    // Nearly all of it is the system's: it takes the text in pieces of 4 KB.
    assert!(took < std::time::Duration::from_secs(4), "{took:?}");
    ground.rig.end().await;
}
