//! `kpty guard`: asks the guard on the command line, without a server and without running anything.

use std::io::{self, BufRead};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Failure, Outcome, guard_redact, print};
use crate::config::Config;
use crate::error::Error;
use kpty_guard::Refusal;
use kpty_guard::pending::edited;

/// Check commands against the policy and mask secrets.
#[derive(Args)]
#[command(after_help = "\
Examples:
  echo 'rm -rf /' | kpty guard check --json
  kubectl get secret -o yaml | kpty guard redact")]
pub(super) struct GuardArguments {
    #[command(subcommand)]
    question: Question,
}

#[derive(Subcommand)]
enum Question {
    /// Check each line of standard input against the command policy; nothing is run.
    ///
    /// A line is a command, or a JSON object with `command` and `id`.
    Check(CheckArguments),
    /// Copy standard input to standard output with secrets masked; everything else stays, byte for byte.
    Redact,
}

#[derive(Args)]
struct CheckArguments {
    /// Print a JSON object for each line.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &GuardArguments) -> Result<Outcome, Failure> {
    match &arguments.question {
        Question::Check(arguments) => check(arguments),
        Question::Redact => guard_redact::run(),
    }
}

fn check(arguments: &CheckArguments) -> Result<Outcome, Failure> {
    let policy = Config::from_env()?.policy;
    let mut input = io::stdin().lock();
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let count = input
            .read_until(b'\n', &mut bytes)
            .map_err(|cause| Error::file("read", "standard input".as_ref(), cause))?;
        if count == 0 {
            return Ok(Outcome::Done);
        }
        let line = String::from_utf8_lossy(&bytes);
        let line = line.strip_suffix('\n').unwrap_or(&line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        let (id, command) = command_of(line);
        let verdict = policy.judge(&edited(&command)).err();
        print::line(&match arguments.json {
            true => as_json(&id, verdict.as_ref()).to_string(),
            false => as_text(&command, verdict.as_ref()),
        })?;
    }
}

/// A command with its id, where the line is an object that has them.
fn command_of(line: &str) -> (Value, String) {
    let object = line.trim_start().starts_with('{').then(|| serde_json::from_str::<Value>(line).ok()).flatten();
    let found = object.and_then(|mut object| {
        let id = object["id"].take();
        Some((id, object["command"].as_str()?.to_owned()))
    });
    found.unwrap_or_else(|| (Value::Null, line.to_owned()))
}

fn as_json(id: &Value, verdict: Option<&Refusal>) -> Value {
    json!({
        "id": id,
        "blocked": verdict.is_some(),
        "rule": verdict.map(|refusal| &refusal.rule),
        "category": verdict.map(|refusal| &refusal.category),
        "reason": verdict.map(|refusal| &refusal.why),
        "alternative": verdict.map(|refusal| &refusal.instead),
    })
}

fn as_text(command: &str, verdict: Option<&Refusal>) -> String {
    let command = print::tame(command);
    match verdict {
        None => format!("pass   {command}"),
        Some(refusal) => {
            format!("block  {command}\n       {}: it {}; instead: {}", refusal.rule, refusal.why, refusal.instead)
        }
    }
}
