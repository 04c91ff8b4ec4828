//! `kpty talk` and `wait`: run a command to its end, or wait for one.

use std::io::Read as _;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use super::client::{Answer, Connection, text};
use super::duration::{self, millis};
use super::remote::{EXIT_CODES, Remote};
use super::{EXIT_DONE, EXIT_NOTHING, EXIT_OTHER, Failure, Outcome, print, progress};
use crate::error::Error;

/// Assumed timeout of the server when none is given; its settings may differ, so this only bounds our wait.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Characters of the output that is waited for; a person can scroll.
const OUTPUT_CHARS: usize = 60_000;
/// A wait is done in parts: the server ends one that says nothing for longer than 45 s.
const LONGEST_PART: Duration = Duration::from_secs(40);

#[derive(Args)]
#[command(after_help = "\
Prints what the command printed.

Exit code: the command's own. Otherwise 124 on timeout (the command continues: `kpty wait SESSION --command ID`), 2 for
wrong usage or another failure, 3 no such session, 4 the session is busy, 5 its program has ended; then standard error
has a line with the reason.

Examples:
  kpty talk build 'make -j2' --timeout 10m
  kpty talk pty_0123abcd 'cd /tmp && ls'
  kpty talk build - < script.sh                  the command is read from standard input")]
pub(super) struct TalkArguments {
    /// Id, beginning of the id, or label
    session: String,

    /// The command; - reads it from standard input
    #[arg(allow_hyphen_values = true)]
    command: String,

    /// Timeout such as 500ms, 10s or 2m; 30s by default, at most 1h
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,

    /// Send Ctrl-C on timeout
    #[arg(long)]
    interrupt: bool,

    #[command(flatten)]
    connection: Connection,
}

#[derive(Args)]
#[command(after_help = format!("\
The first condition that holds ends the wait. Prints the condition, then the last lines of the session.

{EXIT_CODES}

Examples:
  kpty wait web --text 'Listening on' --timeout 20s
  kpty wait build --command cmd_3                     a command that talk did not see the end of
  kpty wait editor --quiet 500ms"))]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub(super) struct WaitArguments {
    /// Id, beginning of the id, or label
    session: String,

    /// Wait until this text appears
    #[arg(long, value_name = "TEXT", group = "what")]
    text: Option<String>,

    /// Wait until a line matches this regular expression
    #[arg(long, value_name = "REGEX", group = "what", conflicts_with = "text")]
    regex: Option<String>,

    /// Wait until --text or --regex is no longer on the screen
    #[arg(long)]
    gone: bool,

    /// Wait until there was no output for this long
    #[arg(long, value_name = "TIME", value_parser = duration::parse, group = "what")]
    quiet: Option<Duration>,

    /// Wait until a shell is at its prompt
    #[arg(long, group = "what")]
    prompt: bool,

    /// Wait until the session's program ends
    #[arg(long, group = "what")]
    exit: bool,

    /// Wait until this command ends
    #[arg(long, value_name = "ID", group = "what")]
    command: Option<String>,

    /// Consider only what changed after this marker of an earlier reply
    #[arg(long, value_name = "ID")]
    marker: Option<u64>,

    /// Timeout such as 500ms, 10s or 2m; 30s by default
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,

    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn talk(arguments: TalkArguments) -> Result<Outcome, Failure> {
    let remote = Remote::new(&arguments.connection)?;
    let command = match arguments.command.as_str() {
        "-" => standard_input()?,
        command => command.to_owned(),
    };
    let session = remote.resolve(&arguments.session).await?;
    let parameters = json!({
        "session_id": session,
        "command": command,
        "timeout_ms": arguments.timeout.map(millis),
        "on_timeout": arguments.interrupt.then_some("interrupt"),
    });
    let patience = arguments.timeout.unwrap_or(DEFAULT_TIMEOUT);
    let asked = remote.client.call_for(patience, "talk", parameters);
    let answer =
        progress::while_waiting("waiting for the end of the command (it continues after Ctrl-C)", asked).await?;
    remote.finish(&answer, own_code, |answer| {
        print::text(answer.text("output"))?;
        if answer.flag("truncated") {
            print::problem("the middle of the output is omitted; `kpty commands SESSION ID` prints more of it");
        }
        if answer.number("exit_code").is_none() {
            print::problem("the command ended, but its exit code is unknown");
        }
        Ok(())
    })
}

/// The command's own exit code.
fn own_code(answer: &Answer) -> u8 {
    let code = answer.number("exit_code");
    code.map_or(EXIT_OTHER, |code| u8::try_from(code).unwrap_or(u8::MAX))
}

fn standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    let problem = |cause| Error::Usage(format!("cannot read a command from standard input: {cause}"));
    std::io::stdin().read_to_string(&mut text).map_err(problem)?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

pub(super) async fn wait(arguments: WaitArguments) -> Result<Outcome, Failure> {
    let remote = Remote::new(&arguments.connection)?;
    let session = remote.resolve(&arguments.session).await?;
    let parameters = json!({
        "session_id": session,
        "text": arguments.text,
        "regex": arguments.regex,
        "gone": arguments.gone.then_some(true),
        "quiet_ms": arguments.quiet.map(millis),
        "prompt": arguments.prompt.then_some(true),
        "exit": arguments.exit.then_some(true),
        "max_chars": arguments.command.is_some().then_some(OUTPUT_CHARS),
        "command_id": arguments.command,
        "marker_id": arguments.marker,
    });
    let asked = in_parts(&remote, parameters, arguments.timeout.unwrap_or(DEFAULT_TIMEOUT));
    let answer = progress::while_waiting("waiting", asked).await?;
    let code = |answer: &Answer| if answer.flag("timed_out") { EXIT_NOTHING } else { EXIT_DONE };
    remote.finish(&answer, code, show_ending)
}

/// Waits, in parts that a server grants.
async fn in_parts(remote: &Remote, mut parameters: Value, timeout: Duration) -> Result<Answer, Failure> {
    let began = Instant::now();
    loop {
        let part = timeout.saturating_sub(began.elapsed()).min(LONGEST_PART);
        parameters["timeout_ms"] = json!(millis(part));
        let mut answer = remote.client.call_for(part, "wait", parameters.clone()).await?;
        let is_over = !answer.flag("timed_out") || began.elapsed() >= timeout;
        if is_over {
            if answer.is_ok() {
                answer.body.insert("waited_ms".to_owned(), json!(millis(began.elapsed())));
            }
            return Ok(answer);
        }
        // What came between two parts is not missed.
        parameters["marker_id"] = answer.body.remove("marker_id").unwrap_or_default();
    }
}

/// What ended the wait, and then the output of the command that was waited for, or the last lines of the session.
fn show_ending(answer: &Answer) -> Result<(), Failure> {
    let ending = format!("{} after {} ms", answer.text("ended_by"), answer.number("waited_ms").unwrap_or(0));
    let command = answer.body.get("command").and_then(Value::as_object);
    let Some(command) = command.filter(|_| !answer.flag("timed_out")) else {
        print::line(&ending)?;
        return Ok(print::text(answer.text("tail"))?);
    };
    match command.get("exit_code").and_then(Value::as_i64) {
        Some(code) => print::line(&format!("{ending}, exit code {code}"))?,
        None => print::line(&ending)?,
    }
    Ok(print::text(text(command, "output"))?)
}
