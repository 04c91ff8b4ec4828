//! Running commands in real shells: cases as data, with start-up files and without.
//!
//! A case is a line of JSON: `name`, `shell`, `cols`, `rows` and `steps`. A step is a `command` with what must come of it
//! (`exact` lines, `exit_code`, `contains`, `lacks`, or an `error_code` with `partial` output; `any` accepts all;
//! `timeout_ms`, `max_ms` and `sentinel` as they say; `min_ms` is the least that it ran, `cwd` where its shell is then, and
//! `screen_lacks` is not to be seen afterwards), a line to `send`, keys to `type`, a `prompt` to wait for, or a pause
//! (`sleep`). A case may have a home of its own with files (`home`), `args`, `env`, and be about one way `only` (`auto`,
//! `off`). `@HOME@` is the home.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use kpty::error::Error;
use kpty::model::Owner;
use kpty::terminal::Terminal;
use kpty::terminal::local::{Integration, NewSession, Session, input};
use kpty::terminal::talk::{OnTimeout, TalkRequest, TalkResult};
use kpty::terminal::wait::{Ending, WaitRequest};
use kpty_emulator::{Mode, Request, Size};
use kpty_guard::Masked;
use kpty_guard::is_complete;
use serde_json::Value;

use crate::support::{Folder, repository};

/// What a session of these tests has around it: a home of its own, so that no start-up file of the developer runs.
pub(crate) struct Bench {
    pub(crate) home: Folder,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let home = Folder::new();
        // Without it, fish reads all manual pages when it is started for the first time, for minutes.
        let completions = home.path().join(".local/share/fish/generated_completions");
        std::fs::create_dir_all(completions).expect("a folder");
        Self { home }
    }

    pub(crate) fn new_session(&self, shell: &str, size: Size, integration: Integration) -> NewSession {
        let path = self.home.path().to_owned();
        let mut inherited: Vec<_> = std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "LANG").collect();
        inherited.push(("HOME".into(), path.clone().into()));
        NewSession {
            shell: shell.into(),
            args: Vec::new(),
            cwd: path,
            size,
            env: Vec::new(),
            pager: false,
            owner: Owner::default(),
            integration,
            inherited,
            ring_bytes: 102_400,
            secrets: kpty::model::Secrets::default(),
            redactor: kpty_guard::Redactor::default(),
        }
    }
}

pub(crate) fn request(command: &str) -> TalkRequest {
    TalkRequest {
        until_asks: false,
        command: command.into(),
        sentinel: None,
        timeout: Duration::from_secs(30),
        max_chars: 60_000,
        on_timeout: OnTimeout::Leave,
        all_raw: false,
    }
}

/// Lines without trailing blanks, and without blank ones at the end.
pub(crate) fn lines_of(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.split('\n').map(str::trim_end).collect();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
}

/// Why a step of a case is wrong.
fn judge(step: &Value, result: &Result<TalkResult, Error>, took: Duration) -> Result<(), String> {
    let text = |name: &str| step[name].as_str();
    if let Some(most) = step["max_ms"].as_u64().filter(|&most| took > Duration::from_millis(most)) {
        return Err(format!("took {took:?}, more than {most} ms"));
    }
    if let Some(code) = text("error_code") {
        let Err(error) = result else { return Err(format!("no error {code}: {result:?}")) };
        let partial = match error {
            Error::Timeout(timed_out) => timed_out.partial_output.clone(),
            Error::Exited(exited) => exited.partial_output.clone().unwrap_or_default(),
            _ => Masked::default(),
        };
        let has_partial = text("partial").is_none_or(|wanted| partial.contains(wanted));
        return match error.code().as_str() == code && has_partial {
            true => Ok(()),
            false => Err(format!("{error:?}")),
        };
    }
    if let (Some(least), Ok(answer)) = (step["min_ms"].as_u64(), result)
        && answer.duration < Duration::from_millis(least)
    {
        return Err(format!("ran {:?}, less than {least} ms", answer.duration));
    }
    if let (Some(wanted), Ok(answer)) = (text("cwd"), result)
        && answer.cwd.as_deref() != Some(wanted)
    {
        return Err(format!("in {:?}, not in {wanted}", answer.cwd));
    }
    let wanted_status = step["exit_code"].as_i64();
    if step["any"] == true && wanted_status.is_none() {
        return Ok(());
    }
    let answer = result.as_ref().map_err(|error| format!("{error:?}"))?;
    let output = &answer.output.text;
    if wanted_status.is_some() && answer.exit_code.map(i64::from) != wanted_status {
        return Err(format!("status {:?}, output {output:?}", answer.exit_code));
    }
    if let Some(exact) = step["exact"].as_array() {
        let exact: Vec<_> = exact.iter().filter_map(Value::as_str).map(str::trim_end).collect();
        let lines = lines_of(output);
        if lines != exact {
            let at = lines.iter().zip(&exact).take_while(|(a, b)| a == b).count();
            return Err(format!("line {at} of {}: {:?}, got {} lines", exact.len(), lines.get(at), lines.len()));
        }
    }
    if let Some(wanted) =
        text("contains").filter(|wanted| !format!("\n{}", lines_of(output).join("\n")).contains(wanted))
    {
        return Err(format!("no {wanted:?} in {output:?}"));
    }
    match text("lacks").filter(|unwanted| output.contains(unwanted)) {
        Some(unwanted) => Err(format!("{unwanted:?} in {output:?}")),
        None => Ok(()),
    }
}

async fn play(bench: &Bench, case: &Value, integration: Integration) -> Result<(), String> {
    let number = |name: &str| case[name].as_u64().unwrap_or_default() as u16;
    let size = Size::new(number("cols"), number("rows")).map_err(|error| error.to_string())?;
    let shell = case["shell"].as_str().unwrap_or_default();
    let own = case["home"].is_object().then(Bench::new);
    let bench = own.as_ref().unwrap_or(bench);
    let home = bench.home.path().to_str().expect("UTF-8");
    let case: Value = serde_json::from_str(&case.to_string().replace("@HOME@", home)).expect("JSON");
    for (name, text) in case["home"].as_object().into_iter().flatten() {
        let path = bench.home.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text.as_str().unwrap_or_default()).expect("a file");
    }
    let texts = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let new = NewSession {
        args: case["args"].as_array().into_iter().flatten().map(texts).collect(),
        env: case["env"].as_object().into_iter().flatten().map(|(name, value)| (name.clone(), texts(value))).collect(),
        ..bench.new_session(shell, size, integration)
    };
    let session = Session::spawn(new).await.map_err(|error| error.to_string())?;
    let outcome = play_steps(&session, &case).await;
    session.kill().await.map_err(|error| error.to_string())?;
    outcome
}

/// Where the steps of a case are played.
#[async_trait]
pub(crate) trait Stage: Send + Sync {
    async fn talk(&self, request: TalkRequest) -> Result<TalkResult, Error>;
    async fn write(&self, bytes: &[u8]);
    async fn wait_for_prompt(&self, timeout: Duration) -> Result<(), String>;
    /// What the viewport shows.
    async fn screen(&self) -> Result<String, String>;
}

#[async_trait]
impl<T: Terminal> Stage for T {
    async fn talk(&self, request: TalkRequest) -> Result<TalkResult, Error> {
        Terminal::talk(self, request).await
    }

    async fn write(&self, bytes: &[u8]) {
        let _ = Terminal::write(self, bytes).await;
    }

    async fn wait_for_prompt(&self, timeout: Duration) -> Result<(), String> {
        let until = WaitRequest { prompt: true, timeout, ..WaitRequest::default() };
        match Terminal::wait(self, &until).await.map(|answer| answer.ending) {
            Ok(Ending::Prompt) => Ok(()),
            ending => Err(format!("{ending:?}")),
        }
    }

    async fn screen(&self) -> Result<String, String> {
        let view = self.view(&Request::new(Mode::Viewport)).await;
        view.map(|view| view.answer.text.into_string()).map_err(|error| error.to_string())
    }
}

/// Plays the steps of a case in a terminal, whoever runs it.
pub(crate) async fn play_steps(session: &dyn Stage, case: &Value) -> Result<(), String> {
    for (index, step) in case["steps"].as_array().into_iter().flatten().enumerate() {
        if let Some(pause) = step["sleep"].as_f64() {
            // The pause is part of the case: somebody who comes back later.
            tokio::time::sleep(Duration::from_secs_f64(pause)).await;
        } else if step["prompt"] == true {
            let came = session.wait_for_prompt(Duration::from_secs(40)).await;
            came.map_err(|ending| format!("step {index}: no prompt but {ending}"))?;
        } else if let Some(keys) = step["type"].as_str() {
            session.write(keys.as_bytes()).await;
        } else if let Some(data) = step["send"].as_str().or(step["keys"].as_str()) {
            let line = input::one_line(&input::unescape(data));
            session.write(line.as_bytes()).await;
            session.write(b"\r").await;
        } else {
            let timeout = Duration::from_millis(step["timeout_ms"].as_u64().unwrap_or(20_000));
            let sentinel = step["sentinel"].as_str().map(str::to_owned);
            let request = TalkRequest { sentinel, timeout, ..request(step["command"].as_str().unwrap_or_default()) };
            let began = Instant::now();
            let result = session.talk(request).await;
            judge(step, &result, began.elapsed()).map_err(|why| format!("step {index}: {why}"))?;
            if let Some(unwanted) = step["screen_lacks"].as_array() {
                let screen = session.screen().await?;
                if let Some(shown) = unwanted.iter().filter_map(Value::as_str).find(|text| screen.contains(text)) {
                    return Err(format!("step {index}: {shown:?} on the screen {screen:?}"));
                }
            }
        }
    }
    Ok(())
}

/// Plays all cases of a file.
async fn play_all(text: &str, integration: Integration) {
    play_cases(cases_of(text), Bench::new(), integration).await;
}

fn cases_of(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a case is JSON")).collect()
}

/// Cases that are played at a time: as soon as one is over, the next begins.
const AT_A_TIME: usize = 8;

/// Plays cases, a few at a time.
async fn play_cases(cases: Vec<Value>, bench: Bench, integration: Integration) {
    assert!(!cases.is_empty(), "no cases");
    let all = cases.len();
    let bench = std::sync::Arc::new(bench);
    let mut failures = Vec::new();
    let mut running = tokio::task::JoinSet::new();
    let mut waiting = cases.into_iter();
    loop {
        while running.len() < AT_A_TIME
            && let Some(case) = waiting.next()
        {
            let bench = std::sync::Arc::clone(&bench);
            running.spawn(async move {
                let name = case["name"].as_str().unwrap_or_default().to_owned();
                play(&bench, &case, integration).await.err().map(|why| format!("{name}: {why}"))
            });
        }
        let Some(played) = running.join_next().await else { break };
        failures.extend(played.expect("a case is played to its end"));
    }
    let bad = failures.len();
    assert!(failures.is_empty(), "{integration:?}: {bad} of {all} wrong\n{}", failures.join("\n"));
}

/// Cases with settings, files and programs that stand in the way.
async fn play_adverse(integration: Integration) {
    let path = repository().join("fixtures/talk/adverse.jsonl");
    let mut cases = cases_of(&std::fs::read_to_string(path).expect("the cases"));
    let other = if integration == Integration::Auto { "off" } else { "auto" };
    cases.retain(|case| case["only"] != other);
    play_cases(cases, Bench::new(), integration).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adverse_cases_are_right_with_start_up_files() {
    play_adverse(Integration::Auto).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adverse_cases_are_right_without_start_up_files() {
    play_adverse(Integration::Off).await;
}

pub(crate) fn hard_cases() -> String {
    std::fs::read_to_string(repository().join("fixtures/talk/hard.jsonl")).expect("the cases")
}

/// Cases that are not part of the project, where somebody has them.
#[expect(clippy::disallowed_methods, reason = "tests are told by the environment where the corpora are")]
pub(crate) fn sample_cases() -> Option<String> {
    let folder = std::env::var_os("KPTY_CORPORA")?;
    let path = std::path::Path::new(&folder).join("talk.sample.jsonl");
    Some(std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sample_cases_are_right_both_ways() {
    let Some(cases) = sample_cases() else { return };
    for integration in [Integration::Auto, Integration::Off] {
        play_all(&cases, integration).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hard_cases_are_right_with_start_up_files() {
    play_all(&hard_cases(), Integration::Auto).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hard_cases_are_right_without_start_up_files() {
    play_all(&hard_cases(), Integration::Off).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hard_cases_of_bash_are_right_where_it_asks_for_no_pastes() {
    for integration in [Integration::Auto, Integration::Off] {
        let mut cases = cases_of(&hard_cases());
        cases.retain(|case| case["shell"] == "/bin/bash");
        let bench = Bench::new();
        let settings = bench.home.path().join(".inputrc");
        std::fs::write(settings, "set enable-bracketed-paste off\n").expect("a file");
        play_cases(cases, bench, integration).await;
    }
}

/// What is typed behind a command must not become part of it.
#[test]
fn nothing_counts_as_complete_that_bash_wants_more_of() {
    let cases = hard_cases();
    let cases = cases.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let commands: BTreeSet<String> = cases
        .flat_map(|case| case["steps"].as_array().cloned().unwrap_or_default())
        .filter_map(|step| step["command"].as_str().map(str::to_owned))
        .filter(|command| command.len() < 200)
        .collect();
    let beginnings: BTreeSet<&str> = commands
        .iter()
        .flat_map(|command| command.char_indices().map(move |(at, _)| &command[..at]))
        .filter(|beginning| is_complete(beginning))
        .collect();
    assert!(beginnings.len() > 500, "{} beginnings are too few to tell anything", beginnings.len());
    for beginning in beginnings {
        let checked = Command::new("bash").args(["-n", "-c", beginning]).env("LC_ALL", "C").output().expect("bash");
        let said = String::from_utf8_lossy(&checked.stderr);
        let wants_more = ["unexpected end of file", "unexpected EOF", "here-document"];
        assert!(!wants_more.iter().any(|words| said.contains(words)), "{beginning:?}: {said}");
    }
}
