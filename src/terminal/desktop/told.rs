//! What a bridge says of a command that it was asked to run, or to tell of: in both styles of names, with what the codes
//! of another kpty carry. Nothing is believed to have ended of which nobody says so.

use std::time::Duration;

use serde_json::{Map, Value};

use super::wire::{count, field};
use crate::error::{Blocked, Error, Held};
use crate::ids::CommandId;
use crate::model::ExitInfo;
use crate::terminal::{Evidence, Output};

/// How bridges begin what they say when the time is over.
const TIME_OVER: &str = "Timeout after ";
/// The end of what another kpty says when it is busy.
const NOT_TYPED: &str = ". Not a byte was typed";
/// All that can tell an end.
const EVIDENCE: [Evidence; 5] =
    [Evidence::Integration, Evidence::Sentinel, Evidence::ProcessExit, Evidence::Prompt, Evidence::ShellExit];

/// What became of a command.
#[derive(Debug)]
pub(super) enum Told {
    /// It ended.
    Ended(Box<Ran>),
    /// It goes on.
    Running(Box<Ran>),
    /// It goes on, and nobody waited any longer.
    TimedOut(Box<Ran>, Scene),
    /// The shell waited for the rest of it, and it was taken back.
    Incomplete(Box<Ran>),
    /// The session's program has ended; before it was typed, where it has no number.
    Exited(Box<Ran>, ExitInfo),
    /// Nothing was typed: something else goes on.
    Busy(Box<Doing>),
    /// Nothing was typed: the guard there refused it.
    Blocked(Box<Blocked>),
    /// Nothing was typed, for this reason.
    Refused(Error),
    /// There is no such command.
    Unknown,
    /// The bridge has no such route: nothing was typed.
    NoRoute,
}

/// A command as the other side has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ran {
    /// Its number there.
    pub(super) number: Option<CommandId>,
    pub(super) output: Output,
    pub(super) status: Option<i32>,
    /// What told its end.
    pub(super) by: Option<Evidence>,
    pub(super) took: Option<Duration>,
    /// Where its shell is now.
    pub(super) cwd: Option<String>,
    /// What its shell calls that, where it is another name.
    pub(super) logical_cwd: Option<String>,
    pub(super) raw_output: Option<String>,
}

/// What was to be seen when the time was over.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scene {
    pub(super) screen: String,
    pub(super) foreground: Option<String>,
    pub(super) alternate_screen: bool,
    pub(super) interrupted: bool,
}

/// What keeps a terminal busy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Doing {
    /// In words, without the command and its number there.
    pub(super) reason: String,
    pub(super) foreground: Option<String>,
    pub(super) command: Option<(CommandId, String)>,
    pub(super) age: Option<Duration>,
}

/// Reads an answer; what cannot be understood is returned in words, and then nobody knows whether anything was typed.
pub(super) fn read(
    (status, said): (u16, &str),
    answer: &Map<String, Value>,
    refused: impl Fn() -> Error,
) -> Result<Told, String> {
    let nothing = Map::new();
    let details = answer.get("details").and_then(Value::as_object).unwrap_or(&nothing);
    let told = match text(answer, "error_code", "errorCode") {
        Some("PTY_TIMEOUT") => Told::TimedOut(partial(details), scene(details)),
        Some("PTY_INCOMPLETE_COMMAND") => Told::Incomplete(partial(details)),
        Some("PTY_PROCESS_EXITED") => Told::Exited(partial(details), exit(details)),
        Some("PTY_BUSY") => Told::Busy(Box::new(doing(details, said))),
        Some("DANGEROUS_COMMAND_BLOCKED") => Told::Blocked(Box::new(blocked(details))),
        Some("INVALID_PARAM") if status == 404 => Told::Unknown,
        Some(_) => Told::Refused(refused()),
        None if status == 404 && said == "Not found" || matches!(status, 405 | 501) => Told::NoRoute,
        None if matches!(status, 400 | 401 | 403 | 404 | 415) => Told::Refused(refused()),
        None if !(200..300).contains(&status) => return Err(said.to_owned()),
        None if flag(answer, "ok", "ok") == Some(false) && said.starts_with(TIME_OVER) => {
            Told::TimedOut(Box::new(Ran { by: None, ..ran(answer) }), Scene::default())
        }
        None if flag(answer, "ok", "ok") == Some(false) => return Err(said.to_owned()),
        None if flag(answer, "running", "running") == Some(true) => Told::Running(Box::new(ran(answer))),
        None if flag(answer, "sentinel_found", "sentinelFound") == Some(true) => {
            let ran = ran(answer);
            Told::Ended(Box::new(Ran { by: ran.by.or(Some(Evidence::Sentinel)), ..ran }))
        }
        None => return Err("it does not say whether the command has ended".to_owned()),
    };
    Ok(told)
}

fn text<'a>(answer: &'a Map<String, Value>, snake: &str, camel: &str) -> Option<&'a str> {
    field(answer, snake, camel).and_then(Value::as_str)
}

fn flag(answer: &Map<String, Value>, snake: &str, camel: &str) -> Option<bool> {
    field(answer, snake, camel).and_then(Value::as_bool)
}

fn number(answer: &Map<String, Value>) -> Option<CommandId> {
    text(answer, "command_id", "commandId")?.parse().ok()
}

fn whole(answer: &Map<String, Value>, snake: &str, camel: &str) -> Option<i32> {
    field(answer, snake, camel).and_then(Value::as_i64).and_then(|number| i32::try_from(number).ok())
}

fn millis(answer: &Map<String, Value>, snake: &str, camel: &str) -> Option<Duration> {
    count(field(answer, snake, camel)).map(Duration::from_millis)
}

/// A command with its whole output.
fn ran(answer: &Map<String, Value>) -> Ran {
    let size = |snake: &str, camel: &str| count(field(answer, snake, camel)).unwrap_or(0);
    let lines = answer.get("lines").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let line = |index: usize| count(lines.get(index)).unwrap_or(0);
    let by = text(answer, "completed_by", "completedBy");
    Ran {
        number: number(answer),
        output: Output {
            text: text(answer, "output", "output").unwrap_or_default().to_owned(),
            truncated: flag(answer, "truncated", "truncated").unwrap_or(false),
            omitted_chars: size("omitted_chars", "omittedChars") as usize,
            omitted_lines: size("omitted_lines", "omittedLines") as usize,
            evicted_lines: size("evicted_lines", "evictedLines"),
            missing_before: 0,
            lines: (line(0), line(1).max(line(0))),
        },
        status: whole(answer, "exit_code", "exitCode"),
        by: by.and_then(|by| EVIDENCE.into_iter().find(|evidence| evidence.as_str() == by)),
        took: millis(answer, "duration_ms", "durationMs"),
        cwd: text(answer, "cwd", "cwd").map(str::to_owned),
        logical_cwd: text(answer, "logical_cwd", "logical_cwd").map(str::to_owned),
        raw_output: text(answer, "raw_output", "rawOutput").map(str::to_owned),
    }
}

/// A command with what it had printed when something went wrong.
fn partial(details: &Map<String, Value>) -> Box<Ran> {
    let printed = text(details, "partial_output", "partialOutput").unwrap_or_default().to_owned();
    let output = Output { text: printed, ..Output::default() };
    Box::new(Ran { number: number(details), output, ..Ran::default() })
}

fn scene(details: &Map<String, Value>) -> Scene {
    Scene {
        screen: text(details, "screen", "screen").unwrap_or_default().to_owned(),
        foreground: text(details, "foreground", "foreground").map(str::to_owned),
        alternate_screen: flag(details, "alternate_screen", "alternateScreen").unwrap_or(false),
        interrupted: flag(details, "interrupted", "interrupted").unwrap_or(false),
    }
}

fn exit(details: &Map<String, Value>) -> ExitInfo {
    let code = whole(details, "exit_code", "exitCode").map(ExitInfo::Code);
    code.or_else(|| whole(details, "signal", "signal").map(ExitInfo::Signal)).unwrap_or(ExitInfo::Unknown)
}

fn doing(details: &Map<String, Value>, said: &str) -> Doing {
    let line = text(details, "running_command", "runningCommand").unwrap_or_default();
    let command = number(details).map(|id| (id, line.to_owned()));
    let said = said.strip_suffix(NOT_TYPED).unwrap_or(said);
    // The number is the other side's, and would be taken for one of ours.
    let numbered = command.as_ref().and_then(|(id, _)| said.find(&format!(": {id} `")));
    Doing {
        reason: said[..numbered.unwrap_or(said.len())].to_owned(),
        foreground: text(details, "foreground", "foreground").map(str::to_owned),
        command,
        age: millis(details, "age_ms", "ageMs"),
    }
}

fn blocked(details: &Map<String, Value>) -> Blocked {
    let fact = |name: &str| text(details, name, name).unwrap_or_default().to_owned();
    Blocked {
        rule: fact("rule"),
        category: fact("category"),
        reason: fact("reason"),
        instead: fact("alternative"),
        words: fact("matched"),
        preview: fact("command_preview"),
        held: Held::default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(status: u16, answer: Value) -> Result<Told, String> {
        let answer = answer.as_object().cloned().unwrap_or_default();
        let said = answer.get("error").and_then(Value::as_str).unwrap_or_default().to_owned();
        read((status, &said), &answer, || Error::Server(said.clone()))
    }

    #[test]
    fn an_end_is_one_that_somebody_says() {
        for answer in [
            json!({ "ok": true, "output": "hi", "sentinel_found": true, "exit_code": 3, "raw_output": "hi\r\n" }),
            json!({ "ok": true, "output": "hi", "sentinelFound": true, "exitCode": 3, "rawOutput": "hi\r\n" }),
        ] {
            let Ok(Told::Ended(ran)) = told(200, answer.clone()) else { panic!("{answer}") };
            assert_eq!((ran.output.text.as_str(), ran.status, ran.by), ("hi", Some(3), Some(Evidence::Sentinel)));
            assert_eq!(ran.raw_output.as_deref(), Some("hi\r\n"));
        }
        // The two modes of an app: the one took the echo for the end, the other waited and knows nothing.
        for answer in [
            json!({ "ok": true, "output": "hi", "sentinel": "__S__", "raw_output": "hi" }),
            json!({ "ok": true, "output": "hi", "sentinel_found": false, "mode": "daemon" }),
            json!({ "ok": true, "output": "hi", "sentinel_found": "yes" }),
            json!({ "ok": false, "error": "Write failed" }),
            json!({}),
        ] {
            assert!(told(200, answer.clone()).is_err(), "{answer}");
        }
        assert!(told(500, json!({ "ok": false, "error": "Write failed" })).is_err());
    }

    #[test]
    fn what_is_late_is_told_in_both_shapes() {
        let plain = json!({ "ok": false, "output": "begun", "error": "Timeout after 5ms", "sentinel": "__S__" });
        let ours = json!({
            "ok": false, "output": "begun", "error": "Timeout after 5ms", "error_code": "PTY_TIMEOUT",
            "details": {
                "command_id": "cmd_7", "partial_output": "begun", "screen": "$ x", "foreground": "cat",
                "alternate_screen": true, "interrupted": false,
            },
        });
        for (answer, number, foreground) in [(plain, None, None), (ours, Some(CommandId(7)), Some("cat"))] {
            let Ok(Told::TimedOut(ran, scene)) = told(200, answer.clone()) else { panic!("{answer}") };
            assert_eq!((ran.output.text.as_str(), ran.number), ("begun", number), "{answer}");
            assert_eq!(scene.foreground.as_deref(), foreground, "{answer}");
        }
    }

    #[test]
    fn what_was_certainly_not_typed_is_told_apart() {
        let busy = json!({
            "error": "A command is still running: cmd_9 `sleep 9` has been running for 5 ms. Not a byte was typed",
            "error_code": "PTY_BUSY",
            "details": { "command_id": "cmd_9", "running_command": "sleep 9", "age_ms": 5, "foreground": "bash" },
        });
        let Ok(Told::Busy(doing)) = told(409, busy) else { panic!("it is busy") };
        assert_eq!(doing.reason, "A command is still running");
        assert_eq!(doing.command, Some((CommandId(9), "sleep 9".to_owned())));
        let blocked = json!({ "error_code": "DANGEROUS_COMMAND_BLOCKED", "details": { "rule": "wipe" } });
        assert!(matches!(told(403, blocked), Ok(Told::Blocked(blocked)) if blocked.rule == "wipe"));
        for (status, answer) in [
            (404, json!({ "ok": false, "error": "Session not found: x" })),
            (400, json!({ "ok": false, "error": "command is required" })),
            (500, json!({ "ok": false, "error_code": "PTY_WRITE_FAILED" })),
        ] {
            assert!(matches!(told(status, answer.clone()), Ok(Told::Refused(_))), "{answer}");
        }
        assert!(matches!(told(404, json!({ "ok": false, "error": "Not found" })), Ok(Told::NoRoute)));
        let unknown = json!({ "ok": false, "error": "Command not found: x", "error_code": "INVALID_PARAM" });
        assert!(matches!(told(404, unknown), Ok(Told::Unknown)));
    }
}
