//! What a child gets, and what it must never see.

use std::fs;
use std::path::{Path, PathBuf};

use kpty::config::Config;
use kpty::terminal::local::pty::raise_open_files_limit;
use serde_json::{Value, json};

use super::eventually;
use crate::support::Folder;
use crate::tools::{Rig, Shell};

const SERVER_SECRETS: [(&str, &str); 2] =
    [("KURORYUU_INTERNAL_SECRET", "inner-secret-value"), ("KPTY_TOKEN", "token-secret-value")];

/// Actions of a server with secrets in its environment, and a home of its own.
fn rig(home: &Folder) -> Rig {
    let mut inherited: Vec<_> = std::env::vars_os().filter(|(name, _)| name == "PATH").collect();
    inherited.push(("HOME".into(), home.path().into()));
    inherited.extend([("PAGER", "less"), ("GIT_PAGER", "delta")].map(|(name, value)| (name.into(), value.into())));
    inherited.extend(SERVER_SECRETS.map(|(name, value)| (name.into(), value.into())));
    Rig::with(Config { inherited, project_root: home.path().to_owned(), ..Config::default() })
}

fn pid(list: &Value, shell: &Shell<'_>) -> u64 {
    let sessions = list["sessions"].as_array().expect("a list");
    let listed = sessions.iter().find(|session| session["session_id"] == shell.id).expect("it is listed");
    listed["pid"].as_u64().expect("a pid")
}

fn text_of(pid: u64, name: &str) -> String {
    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/{name}")).expect("the process runs")).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_has_three_descriptors_and_the_right_variables() {
    raise_open_files_limit();
    let home = Folder::new();
    let rig = rig(&home);
    let mut shells = Vec::new();
    for number in 0..50 {
        let shell = ["/bin/bash", "/bin/sh", "/bin/bash"][number % 3];
        let integration = ["auto", "auto", "off"][number % 3];
        shells.push(rig.create(json!({ "shell": shell, "integration": integration })).await);
    }
    let list = rig.call(json!({ "action": "list" })).await;
    for shell in &shells {
        // The fourth is the folder that ls itself reads.
        assert_eq!(shell.talk("ls /proc/self/fd").await["output"].as_str().map(words), Some(vec!["0", "1", "2", "3"]));
        let folder = PathBuf::from(format!("/proc/{}/fd", pid(&list, shell)));
        let targets: Vec<_> =
            fs::read_dir(folder).expect("the shell runs").flatten().map(|entry| entry.path()).collect();
        for target in targets {
            // A shell keeps a copy of its terminal for itself. One that it has just closed is gone.
            let Ok(link) = fs::read_link(&target) else { continue };
            // So does one whose hooks are just running with their output sent away.
            let is_terminal = link.starts_with("/dev/pts") || link == Path::new("/dev/tty");
            let is_terminal = is_terminal || link == Path::new("/dev/null");
            assert!(is_terminal, "{} is {}", target.display(), link.display());
        }
        let told = shell.talk("echo $TERM $COLORTERM $PAGER $GIT_PAGER $MANPAGER $SYSTEMD_PAGER").await;
        assert_eq!(told["output"], "xterm-256color truecolor cat cat cat cat");
    }
    let paged = rig.create(json!({ "pager": true })).await;
    let told = paged.talk("echo $PAGER $GIT_PAGER ${MANPAGER-none}").await;
    assert_eq!(told["output"], "less delta none");
    rig.end().await;
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// How a shell shows its secret backwards, so that it is not masked, and everything it knows.
struct Revealing {
    shell: &'static str,
    backwards: &'static str,
    everything: &'static [&'static str],
}

const REVEALING: [Revealing; 3] = [
    Revealing {
        shell: "/bin/bash",
        backwards: r"declare -f __kpty_wrap | sed -n 's/.*k=\([0-9a-f]*\).*/\1/p' | head -n 1 | rev",
        everything: &[
            "set",
            "declare -p",
            "declare -f",
            "echo \"$PS1 $PS0 $PS2\"; printf '%s\\n' \"${PROMPT_COMMAND[@]}\"",
        ],
    },
    Revealing {
        shell: "/usr/bin/zsh",
        backwards: r"functions __kpty_end | sed -n 's/.*\([0-9a-f]\{32\}\).*/\1/p' | head -n 1 | rev",
        everything: &["set", "typeset -p", "functions", "echo \"$PS1 $PS2\""],
    },
    Revealing {
        shell: "/usr/bin/fish",
        backwards: r"functions __kpty_end | sed -n 's/.*k=\([0-9a-f]*\).*/\1/p' | head -n 1 | rev",
        everything: &["set", "functions __kpty_end __kpty_begin fish_prompt", "set -S"],
    },
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_reaches_a_child_or_an_answer() {
    for revealing in REVEALING {
        let home = Folder::new();
        let rig = rig(&home);
        let shell = rig.create(json!({ "shell": revealing.shell })).await;
        let list = rig.call(json!({ "action": "list" })).await;
        let own = pid(&list, &shell);
        let secret: String =
            shell.talk(revealing.backwards).await["output"].as_str().expect("text").chars().rev().collect();
        assert!(secret.len() == 32 && secret.bytes().all(|byte| byte.is_ascii_hexdigit()), "{secret:?}");
        let secrets = [secret.as_str(), SERVER_SECRETS[0].1, SERVER_SECRETS[1].1];
        let is_clean = |what: &str, text: &str| {
            let found = secrets.iter().find(|secret| text.contains(**secret));
            assert_eq!(found, None, "{}: {what} has a secret", revealing.shell);
        };
        for what in ["environ", "cmdline"] {
            is_clean(what, &text_of(own, what));
        }
        let child = shell.talk("sh -c 'echo $$ >new; mv new child; exec sleep 1000' &\nenv").await;
        is_clean("env", &child.to_string());
        eventually("the child", || home.path().join("child").exists()).await;
        let pid = home.read("child").trim().parse().expect("a pid");
        for what in ["environ", "cmdline"] {
            is_clean(what, &text_of(pid, what));
        }
        for command in revealing.everything {
            let arguments = json!({ "command": command, "raw": true, "max_chars": 200_000, "timeout_ms": 45_000 });
            is_clean(command, &shell.call("talk", arguments).await.to_string());
            is_clean("read", &shell.call("read", json!({ "max_bytes": 102_400 })).await.to_string());
            for mode in ["viewport", "tail", "full", "delta"] {
                let read = json!({ "mode": mode, "max_lines": 200, "max_chars": 50_000 });
                is_clean(mode, &shell.call("term_read", read).await.to_string());
            }
            let narrow = json!({ "mode": "full", "merge_wrapped": false, "max_lines": 200, "max_chars": 50_000 });
            is_clean("rows", &shell.call("term_read", narrow).await.to_string());
            let found = shell.call("search", json!({ "pattern": "k=[0-9a-f]{4}" })).await;
            is_clean("search", &found.to_string());
            let commands = shell.call("commands", json!({ "command_id": 3, "max_chars": 200_000 })).await;
            is_clean("commands", &commands.to_string());
        }
        let folder = startup_folder(&text_of(own, "cmdline"), &text_of(own, "environ"));
        eventually("the end of the start-up folder", || !folder.exists()).await;
        rig.end().await;
    }
}

/// The folder that the shell was started with.
fn startup_folder(cmdline: &str, environ: &str) -> PathBuf {
    let all = format!("{cmdline}\0{environ}");
    let temporary = std::env::temp_dir();
    let prefix = format!("{}/kpty-", temporary.display());
    let at = all.find(&prefix).unwrap_or_else(|| panic!("no folder in {all:?}"));
    let name = all[at + prefix.len()..].split(['/', '\0', '\'']).next().expect("a name");
    PathBuf::from(format!("{prefix}{name}"))
}

/// The directory is the kernel's, without symbolic links; a shell that keeps the name it went by says that beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_knows_where_its_command_went() {
    let home = Folder::new();
    let rig = rig(&home);
    for folder in ["one", "two", "two/three"] {
        fs::create_dir(home.path().join(folder)).expect("a folder");
    }
    std::os::unix::fs::symlink(home.path().join("two"), home.path().join("link")).expect("a link");
    fs::create_dir_all(home.path().join(".local/share/fish/generated_completions")).expect("a folder");
    for shell in ["/bin/bash", "/usr/bin/zsh", "/usr/bin/fish", "/bin/sh"] {
        let tells_names = shell != "/bin/sh";
        let shell = rig.create(json!({ "shell": shell })).await;
        for _ in 0..10 {
            for (step, place) in
                [("one", "one"), ("../two", "two"), ("three", "two/three"), ("../../link", "link"), ("..", "")]
            {
                let told = shell.talk(&format!("cd {step}")).await;
                let path =
                    |place: &str| home.path().join(place).to_str().expect("UTF-8").trim_end_matches('/').to_owned();
                let physical = if place == "link" { "two" } else { place };
                assert_eq!(told["cwd"], path(physical), "{step}");
                let logical = (tells_names && place == "link").then(|| path(place));
                assert_eq!(told["logical_cwd"].as_str(), logical.as_deref(), "{step}");
            }
        }
    }
    rig.end().await;
}
