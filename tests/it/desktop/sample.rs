//! The cases of `talk` in the terminals of a desktop app, in both of its modes: what is right here is right there.

use std::sync::Arc;

use kpty::model::{SessionRecord, Source, iso_time};
use kpty::terminal::desktop::Bridges;
use serde_json::{Value, json};

use crate::support::Folder;
use crate::support::desktop::{APP_MODES, AppMode, Desktop};
use crate::talk::{hard_cases, play_steps, sample_cases};

/// Cases that only rendered text cannot get right, and why.
const NOT_TO_BE_SEEN: [(&str, &str); 15] = [
    ("bash-draws-above-its-start", "what is drawn above the echo cannot be told from what stood there"),
    ("bash-left-in-origin", "the next echo is drawn over the screen's first row"),
    ("bash-left-in-scroll-region", "rows that scroll in a part of the screen cannot be followed"),
    ("bash-left-in-alternate-and-long", "lines that leave the alternate screen are kept by nobody"),
    ("bash-answer-nobody-reads", "the desktop's own terminal answers, and nobody is told"),
    ("bash-echo-off", "without an echo nothing shows where the output begins"),
    ("bash-exit-says-goodbye", "a terminal that has ended is not shown any more"),
    ("bash-exec-ends-it", "a terminal that has ended is not shown any more"),
    ("bash-nested", "nobody tells that the program in front is a shell"),
    ("bash-nested-sh", "nobody tells that the program in front is a shell"),
    ("bash-nested-sh-interrupted", "nobody tells that the program in front is a shell"),
    ("bash-nested-without-pastes-interrupted", "nobody tells that the program in front is a shell"),
    ("bash-replaced", "nobody tells that the program in front is a shell"),
    ("bash-pager", "the environment is the desktop's"),
    (
        "bash-one-row",
        "the line editor scrolls its line sideways in a window of one row, so the echo is never seen whole",
    ),
];

fn record(app: &Desktop, id: &str) -> SessionRecord {
    let now = iso_time(std::time::SystemTime::now());
    SessionRecord {
        session_id: id.to_owned(),
        source: Source::Desktop,
        desktop_url: Some(app.url()),
        cli_type: "shell".to_owned(),
        pid: 0,
        created_at: now.clone(),
        last_heartbeat: now,
        owner_agent_id: None,
        owner_session_id: None,
        owner_role: None,
        label: None,
        claude_code_session_id: None,
    }
}

/// Plays the bash cases of a text, a few at a time.
async fn play_all(text: &str, mode: AppMode) {
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a case is JSON")).collect();
    let name = |case: &Value| case["name"].as_str().unwrap_or_default().to_owned();
    let is_for_bash = |case: &Value| case["shell"].as_str().is_some_and(|shell| shell.ends_with("/bash"));
    let is_seen = |case: &Value| NOT_TO_BE_SEEN.iter().all(|(unseen, _)| *unseen != name(case));
    let cases: Vec<_> = cases.into_iter().filter(|case| is_for_bash(case) && is_seen(case)).collect();
    assert!(!cases.is_empty(), "no cases");
    let (app, bridges, home) = (Arc::new(Desktop::start(mode)), Bridges::default(), Arc::new(Folder::new()));
    let mut failures = Vec::new();
    for group in cases.chunks(4) {
        let mut running = tokio::task::JoinSet::new();
        for case in group.iter().cloned() {
            let (app, bridges, home) = (Arc::clone(&app), bridges.clone(), Arc::clone(&home));
            let name = name(&case);
            running.spawn(async move {
                let options = json!({
                    "shell": "/bin/bash", "cols": case["cols"], "rows": case["rows"],
                    "cwd": home.path(), "env": { "HOME": home.path() },
                });
                let id = app.create(&options);
                let desktop = bridges.session(&record(&app, &id));
                play_steps(&desktop, &case).await.err().map(|why| format!("{name}: {why}"))
            });
        }
        failures.extend(running.join_all().await.into_iter().flatten());
    }
    let (bad, all) = (failures.len(), cases.len());
    assert!(failures.is_empty(), "{mode:?}: {bad} of {all} wrong\n{}", failures.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bash_cases_of_the_sample_are_right_in_both_modes() {
    let Some(cases) = sample_cases() else { return };
    for mode in APP_MODES {
        play_all(&cases, mode).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_hard_cases_of_bash_are_right_as_far_as_they_can_be_seen() {
    for mode in APP_MODES {
        play_all(&hard_cases(), mode).await;
    }
}
