//! The attention state of real programs: what asks is told from what works, case by case.
//!
//! A case is a line of JSON: `name`, the `shell` with `args` and `integration`, files of its `home`, variables (`env`), the
//! programs that it `needs`, what to `do` and the state to `expect`. A step is a line to send, `keys`, a text to be seen
//! (`until`), or a state that has to come to rest (`settle`). `busy` means `running` or `quiet`. A case is right when the
//! state comes and stays; one that is busy may not be called anything else at any look.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kpty::terminal::attention::AttentionState;
use kpty::terminal::local::{Integration, NewSession, Session};
use kpty::terminal::wait::{Ending, WaitRequest};
use kpty_emulator::{Mode, Request, Size};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::support::repository;
use crate::talk::Bench;

/// Sessions at a time.
const AT_A_TIME: usize = 16;
/// How long a state may take to come on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(60);
/// How long a state has to stay.
const STAY: Duration = Duration::from_millis(700);
/// How long something is watched that must never be said to ask.
const WATCH: Duration = Duration::from_millis(2_500);

/// A wait for a question ends when there is one, also after silence, and not before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_ends_a_wait() {
    let bench = Bench::new();
    let size = Size::new(80, 24).expect("a size");
    let session = Session::spawn(bench.new_session("bash", size, Integration::Auto)).await.expect("it starts");
    reach(&session, |state| state == AttentionState::Prompt).await;
    let wait = |timeout| WaitRequest { asks: true, timeout, ..WaitRequest::default() };
    for (line, timeout, expected) in [
        ("sleep 1; read -p 'Name? ' n", PATIENCE, Ending::Asks(AttentionState::InputLine)),
        ("me", STAY, Ending::Deadline),
        ("sleep 1; read -s n", PATIENCE, Ending::Asks(AttentionState::InputSecret)),
        ("me", STAY, Ending::Deadline),
        ("yes 'Password: ' | head -c 100000000", STAY, Ending::Deadline),
    ] {
        session.write(format!("{line}\r").as_bytes()).await.expect("it is typed");
        leave_prompt(&session).await;
        // An answer takes a moment to be read.
        reach(&session, |state| !matches!(state, AttentionState::InputLine | AttentionState::InputSecret)).await;
        let waited = session.wait(&wait(timeout)).await.expect("it waits");
        assert_eq!(waited.ending, expected, "{line}");
    }
    session.kill().await.expect("it ends");
}

struct Verdict {
    name: String,
    expected: String,
    seen: &'static str,
    evidence: String,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_asks_is_told_from_what_works() {
    let text = std::fs::read_to_string(repository().join("fixtures/attention.jsonl")).expect("the cases");
    let only = variable("KPTY_ATTENTION");
    let cases = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
    let cases = cases.filter(|case| only.as_ref().is_none_or(|only| string(case, "name").contains(only)));
    let turns = Arc::new(Semaphore::new(AT_A_TIME));
    let (mut tasks, mut skipped) = (Vec::new(), Vec::new());
    for case in cases {
        match missing(&case) {
            Some(program) => skipped.push(format!("{} ({program})", string(&case, "name"))),
            None => {
                let turns = Arc::clone(&turns);
                tasks.push(tokio::spawn(async move {
                    let _turn = turns.acquire().await.expect("a turn");
                    run(&case).await
                }));
            }
        }
    }
    let mut verdicts = Vec::new();
    for task in tasks {
        verdicts.push(task.await.expect("no panic"));
    }
    report(&verdicts, &skipped);
    if only.is_none() {
        assert!(verdicts.len() >= 150, "{} cases could be run; missing: {skipped:?}", verdicts.len());
    }
    check(&verdicts, "input_secret", 0.99, 0.97);
    check(&verdicts, "input_line", 0.95, 0.95);
    let wrong = verdicts.iter().filter(|verdict| verdict.expected == "busy" && verdict.seen.starts_with("input"));
    assert_eq!(wrong.map(|verdict| &verdict.name).collect::<Vec<_>>(), Vec::<&String>::new());
}

/// A variable of the caller: the folders of programs, and a part of the names of the cases to run.
fn variable(name: &str) -> Option<String> {
    let (_, value) = std::env::vars_os().find(|(other, _)| other == name)?;
    value.into_string().ok()
}

fn string<'a>(case: &'a Value, name: &str) -> &'a str {
    case[name].as_str().unwrap_or_default()
}

/// A program that the case needs and that is not installed.
fn missing(case: &Value) -> Option<String> {
    let needed = case["needs"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let folders: Vec<_> = variable("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let is_there = |name: &str| match name {
        // Who may become somebody else without being asked.
        "root" => std::fs::metadata("/proc/self").is_ok_and(|own| {
            use std::os::unix::fs::MetadataExt;
            own.uid() == 0
        }),
        name => folders.iter().any(|folder: &std::path::PathBuf| folder.join(name).is_file()),
    };
    needed.map(str::to_owned).find(|name| !is_there(name))
}

async fn run(case: &Value) -> Verdict {
    let bench = Bench::new();
    for (name, content) in case["home"].as_object().into_iter().flatten() {
        bench.home.file(name, content.as_str().expect("a text"));
    }
    let session = Session::spawn(new_session(case, &bench)).await.expect("it starts");
    let expected = string(case, "expect").to_owned();
    let mut failed = None;
    let mut last_line = String::new();
    if case["do"].as_array().is_some_and(|steps| !steps.is_empty()) {
        reach(&session, |state| state == AttentionState::Prompt).await;
    }
    for step in case["do"].as_array().into_iter().flatten() {
        if let Some(line) = step.as_str() {
            last_line = line.to_owned();
            session.write(format!("{line}\r").as_bytes()).await.expect("it is typed");
            leave_prompt(&session).await;
        } else if let Some(keys) = step["keys"].as_str() {
            session.write(keys.as_bytes()).await.expect("it is typed");
        } else if let Some(text) = step["until"].as_str() {
            failed = failed.or(see(&session, text, &last_line).await.err());
        } else {
            rest(&session).await;
        }
    }
    if let Some(text) = case["until"].as_str() {
        failed = failed.or(see(&session, text, &last_line).await.err());
    }
    let seen = match expected.as_str() {
        "busy" => watch(&session).await,
        expected => settle(&session, expected).await,
    };
    let evidence = session.attention().evidence.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let evidence = match failed {
        Some(failed) => format!("{failed}; {evidence}"),
        None => evidence,
    };
    let killed = session.kill().await.expect("it ends");
    // Servers that it has started live on.
    for pid in killed.strayed {
        let _ = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).output();
    }
    Verdict { name: string(case, "name").to_owned(), expected, seen, evidence }
}

fn new_session(case: &Value, bench: &Bench) -> NewSession {
    let shell = case["shell"].as_str().unwrap_or("bash");
    let integration = if case["integration"] == "off" { Integration::Off } else { Integration::Auto };
    let mut new = bench.new_session(shell, Size::new(80, 24).expect("a size"), integration);
    new.args =
        case["args"].as_array().into_iter().flatten().filter_map(|arg| arg.as_str().map(str::to_owned)).collect();
    let env = case["env"].as_object().into_iter().flatten();
    new.env = env.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned())).collect();
    new.pager = case["env"].is_object();
    new
}

/// Looks until the state is as wanted, or patience is over. Returns the last one.
async fn reach(session: &Session, is_wanted: impl Fn(AttentionState) -> bool) -> AttentionState {
    let began = Instant::now();
    loop {
        let state = session.attention().state;
        if is_wanted(state) || began.elapsed() > PATIENCE {
            return state;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// A line that was sent is run.
async fn leave_prompt(session: &Session) {
    let began = Instant::now();
    while session.attention().state == AttentionState::Prompt && began.elapsed() < STAY {
        tokio::time::sleep(LOOK / 4).await;
    }
}

/// Nothing is printed any more, and what is done is done.
async fn rest(session: &Session) {
    let began = Instant::now();
    let mut last = None;
    let mut since = Instant::now();
    while since.elapsed() < STAY && began.elapsed() < PATIENCE {
        let state = session.attention().state;
        if last != Some(state) {
            (last, since) = (Some(state), Instant::now());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits for a text on the screen, in another line than the one that was typed last.
async fn see(session: &Session, text: &str, typed: &str) -> Result<(), String> {
    let began = Instant::now();
    loop {
        let shown = session.read(&Request::new(Mode::Viewport));
        let is_it = |line: &str| line.contains(text.trim_end()) && (typed.is_empty() || !line.contains(typed));
        if shown.lines().any(is_it) {
            return Ok(());
        }
        if session.exit().is_some() || began.elapsed() > PATIENCE {
            return Err(format!("{text:?} was not shown: {:?}", shown.text.trim_end()));
        }
        tokio::time::sleep(LOOK / 2).await;
    }
}

/// The state, once it is as expected and stays so; else the one that it has instead.
async fn settle(session: &Session, expected: &str) -> &'static str {
    let seen = reach(session, |state| state.as_str() == expected).await;
    let began = Instant::now();
    while seen.as_str() == expected && began.elapsed() < STAY {
        let now = session.attention().state;
        if now != seen {
            return now.as_str();
        }
        tokio::time::sleep(LOOK).await;
    }
    seen.as_str()
}

/// Looks all the time; the first state that is not a busy one, else `busy`.
async fn watch(session: &Session) -> &'static str {
    let began = Instant::now();
    while began.elapsed() < WATCH {
        let state = session.attention().state;
        if !matches!(state, AttentionState::Running | AttentionState::Quiet) {
            return state.as_str();
        }
        tokio::time::sleep(LOOK).await;
    }
    "busy"
}

/// Recall and precision of one state.
#[expect(clippy::print_stderr, reason = "the figures are what the test is for")]
fn check(verdicts: &[Verdict], state: &str, least_recall: f64, least_precision: f64) {
    let count = |is_it: &dyn Fn(&Verdict) -> bool| verdicts.iter().filter(|verdict| is_it(verdict)).count() as f64;
    let right = count(&|verdict| verdict.expected == state && verdict.seen == state);
    let recall = right / count(&|verdict| verdict.expected == state).max(1.0);
    let precision = right / count(&|verdict| verdict.seen == state).max(1.0);
    eprintln!("{state}: recall {recall:.3}, precision {precision:.3}");
    let is_there = right > 0.0;
    assert!(!is_there || (recall >= least_recall && precision >= least_precision), "{state} is not told apart");
}

/// Prints what was taken for what, and each case that is wrong.
#[expect(clippy::print_stderr, reason = "the table is what the test is for")]
fn report(verdicts: &[Verdict], skipped: &[String]) {
    let mut table: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for verdict in verdicts {
        *table.entry(&verdict.expected).or_default().entry(verdict.seen).or_default() += 1;
    }
    eprintln!("{} cases, {} not run: {}", verdicts.len(), skipped.len(), skipped.join(", "));
    for (expected, seen) in table {
        let seen: Vec<_> = seen.iter().map(|(state, count)| format!("{count} {state}")).collect();
        eprintln!("{expected:>12}: {}", seen.join(", "));
    }
    for wrong in verdicts.iter().filter(|verdict| verdict.expected != verdict.seen) {
        eprintln!("wrong: {}: {} instead of {} [{}]", wrong.name, wrong.seen, wrong.expected, wrong.evidence);
    }
}
