//! A desktop app for one test: real terminals behind the bridge that such an app has, in Node (`tests/desktop`).
//!
//! `scripts/desktop` installs what it needs; without that its tests fail and say so.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::repository;
use crate::server::{Response, http};

/// The two ways in which the app runs its terminals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AppMode {
    /// In itself.
    Embedded,
    /// In a daemon beside it: the app's default.
    Daemon,
}

/// Both.
pub(crate) const APP_MODES: [AppMode; 2] = [AppMode::Embedded, AppMode::Daemon];

/// A running app; its terminals end with it, and it ends when dropped, or with this process.
pub(crate) struct Desktop {
    child: Child,
    pub(crate) port: u16,
}

/// Where the libraries of the app are.
fn modules() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a folder of cargo's");
    let folder = target.join("desktop");
    assert!(
        folder.join("installed").is_file(),
        "the desktop app for tests is not installed in {}: run scripts/desktop",
        folder.display()
    );
    folder
}

impl Desktop {
    pub(crate) fn start(mode: AppMode) -> Self {
        Self::start_with(mode, &[])
    }

    /// Starts it with variables besides, and waits until it says where it listens.
    pub(crate) fn start_with(mode: AppMode, env: &[(&str, &str)]) -> Self {
        let mode = match mode {
            AppMode::Embedded => "embedded",
            AppMode::Daemon => "daemon",
        };
        let mut command = Command::new("node");
        command.arg(repository().join("tests/desktop/desktop.mjs")).arg("--modules").arg(modules());
        command.args(["--mode", mode]).envs(env.iter().copied()).current_dir(repository());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("node starts: it comes with npm");
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        output.read_line(&mut line).expect("the app says where it listens");
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("the app says {line:?}"));
        Self { child, port: said["port"].as_u64().expect("a port") as u16 }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A request as the core makes it.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Response {
        http(self.port, "POST", path, &[("Content-Type", "application/json")], body.to_string().as_bytes())
    }

    /// A request that must be answered with 200.
    pub(crate) fn ask(&self, path: &str, body: &Value) -> Value {
        let answer = self.post(path, body);
        assert_eq!(answer.status, 200, "{path} {body}: {}", answer.body);
        answer.json()
    }

    /// The same without a body.
    pub(crate) fn get(&self, path: &str) -> Value {
        let answer = http(self.port, "GET", path, &[], b"");
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()
    }

    /// Makes a terminal: `shell`, `args`, `cwd`, `cols`, `rows`, `env`, `scrollback`, `session_id`. Returns its id.
    pub(crate) fn create(&self, options: &Value) -> String {
        self.ask("/test/create", options)["session_id"].as_str().expect("an id").to_owned()
    }

    /// Makes a terminal without a program, and shows bytes in it.
    pub(crate) fn fed(&self, cols: u16, rows: u16, bytes: impl AsRef<[u8]>) -> String {
        let id = self.create(&json!({ "shell": null, "cols": cols, "rows": rows }));
        self.feed(&id, bytes);
        id
    }

    /// Shows bytes in a terminal, to the end.
    pub(crate) fn feed(&self, id: &str, bytes: impl AsRef<[u8]>) {
        self.ask("/test/feed", &json!({ "session_id": id, "base64": STANDARD.encode(bytes) }));
    }

    pub(crate) fn resize(&self, id: &str, cols: u16, rows: u16) {
        self.ask("/test/resize", &json!({ "session_id": id, "cols": cols, "rows": rows }));
    }

    /// Ends a terminal.
    pub(crate) fn remove(&self, id: &str) {
        self.ask("/test/remove", &json!({ "session_id": id }));
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Desktop {
    /// The end of its input is the app's end; its terminals go with it.
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
