//! `kpty doctor`: whether this machine has what kpty needs, each thing with a word of advice.

use std::process::{Command, Stdio};

use clap::Args;
use serde_json::{Value, json};

use super::client::{CONNECT_TIMEOUT, Client, Connection, text};
use super::{EXIT_NOTHING, Failure, Outcome, print};
use crate::config::Config;
use crate::model;
use crate::terminal::local::pty;
use crate::terminal::local::{Integration, NewSession, Session};
use crate::terminal::talk::{OnTimeout, TalkRequest};

/// A session that is asked for nothing but `echo` answers within this.
const TALK_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

#[derive(Args)]
#[command(after_help = "\
Exit codes: 0 everything needed is present, 1 something is missing or invalid.

Example:
  kpty doctor --json | jq '.[] | select(.state == \"bad\")'")]
pub(super) struct DoctorArguments {
    #[command(flatten)]
    connection: Connection,
}

/// How a thing is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Good,
    /// kpty works without it.
    Note,
    Bad,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Note => "note",
            Self::Bad => "bad",
        }
    }
}

/// One thing that was looked at.
struct Finding {
    what: &'static str,
    state: State,
    text: String,
}

pub(super) async fn doctor(arguments: DoctorArguments) -> Result<Outcome, Failure> {
    let mut findings = Vec::new();
    let mut found = |what, state, text: String| findings.push(Finding { what, state, text });
    pty::raise_open_files_limit();
    match Config::from_env() {
        Err(error) => found("settings", State::Bad, error.to_string()),
        Ok(config) => {
            found("settings", State::Good, "all values are valid".to_owned());
            let (state, text) = terminal(&config).await;
            found("terminal", state, text);
        }
    }
    for (shell, advice) in SHELLS {
        let (state, text) = shell_state(shell, advice);
        found(shell, state, text);
    }
    let (state, text) = descriptors();
    found("open files", state, text);
    let (state, text) = server(&arguments.connection).await?;
    found("server", state, text);
    show(&findings, arguments.connection.json)?;
    let is_bad = findings.iter().any(|finding| finding.state == State::Bad);
    Ok(if is_bad { Outcome::Code(EXIT_NOTHING) } else { Outcome::Done })
}

fn show(findings: &[Finding], as_json: bool) -> Result<(), Failure> {
    if as_json {
        let all: Vec<Value> = findings
            .iter()
            .map(|finding| json!({ "what": finding.what, "state": finding.state.as_str(), "text": finding.text }))
            .collect();
        return Ok(print::line(&Value::Array(all).to_string())?);
    }
    let row = |finding: &Finding| {
        vec![finding.state.as_str().to_owned(), finding.what.to_owned(), print::tame(&finding.text)]
    };
    Ok(print::table(&[], &findings.iter().map(row).collect::<Vec<_>>())?)
}

/// A real session, and a real command in it.
async fn terminal(config: &Config) -> (State, String) {
    let new = NewSession {
        shell: config.shell.clone(),
        args: Vec::new(),
        cwd: config.project_root.clone(),
        size: config.size,
        env: Vec::new(),
        pager: false,
        owner: model::Owner::default(),
        integration: Integration::Auto,
        inherited: config.inherited.clone(),
        ring_bytes: config.ring_bytes,
        secrets: crate::model::Secrets::default(),
        redactor: kpty_guard::Redactor::default(),
    };
    let session = match Session::spawn(new).await {
        Ok(session) => session,
        Err(error) => return (State::Bad, format!("no session could be started: {error}")),
    };
    let request = TalkRequest {
        until_asks: false,
        command: "echo kpty-works".to_owned(),
        sentinel: None,
        timeout: TALK_TIMEOUT,
        max_chars: 1_000,
        on_timeout: OnTimeout::Leave,
        all_raw: false,
    };
    let answer = session.talk(request).await;
    // The session existed for one command; the next run reports a process that survived.
    let _ = session.kill().await;
    match answer {
        Ok(answer) if answer.output.text == "kpty-works" => {
            (State::Good, format!("{} answers, by {}", config.shell, answer.completed_by.as_str()))
        }
        Ok(answer) => (State::Bad, format!("{} answered {:?} instead of kpty-works", config.shell, answer.output.text)),
        Err(error) => (State::Bad, format!("{} does not answer: {error}", config.shell)),
    }
}

/// Shells that can be given marks, and what it means to be without.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "sessions need another shell: set KPTY_SHELL"),
    ("zsh", "only needed for sessions with zsh"),
    ("fish", "only needed for sessions with fish"),
];

fn shell_state(name: &str, advice: &str) -> (State, String) {
    let output = Command::new(name).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let Ok(output) = output else { return (State::Note, format!("not installed; {advice}")) };
    let version = String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned();
    if name == "bash" && is_before_5_1(&version) {
        return (State::Note, format!("{version}: before 5.1 the end of a command is found by a printed line"));
    }
    (State::Good, version)
}

fn is_before_5_1(version: &str) -> bool {
    let number = version.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let mut parts = number.unwrap_or("0").split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) < (5, 1)
}

/// Each session takes two descriptors.
fn descriptors() -> (State, String) {
    let Some(limit) = pty::open_files_limit() else { return (State::Note, "the limit is unknown".to_owned()) };
    let sessions = limit.saturating_sub(100) / 2;
    let state = if sessions < 100 { State::Note } else { State::Good };
    (state, format!("{limit} allowed: enough for {sessions} sessions"))
}

async fn server(connection: &Connection) -> Result<(State, String), Failure> {
    let client = Client::new(connection)?;
    Ok(match client.health(CONNECT_TIMEOUT).await {
        Ok(Some(health)) => {
            let version = text(&health, "version");
            let degraded = text(&health, "reason");
            match degraded.is_empty() {
                true => (State::Good, format!("kpty {version} answers at {}", client.url())),
                false => (State::Bad, format!("kpty {version} at {} cannot save: {degraded}", client.url())),
            }
        }
        Ok(None) => (State::Note, format!("no server at {}; `kpty serve` starts one", client.url())),
        Err(error) => (State::Bad, error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_versions_of_bash_are_told_from_new_ones() {
        for (version, expected) in [
            ("GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)", false),
            ("GNU bash, version 5.1.0(1)-release", false),
            ("GNU bash, version 5.0.17(1)-release", true),
            ("GNU bash, version 3.2.57(1)-release", true),
            ("", true),
        ] {
            assert_eq!(is_before_5_1(version), expected, "{version}");
        }
    }
}
