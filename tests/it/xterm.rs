//! The same bytes give the same lines here and in xterm.js, as a desktop app would show them.
//!
//! `KPTY_CORPORA` names the folder of the corpora, which are no part of the project; unset, the test says so and does
//! nothing. What differs is listed in `xterm-differences.txt` with its reason; a listed view that does not differ
//! fails the test too.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kpty::recording::replay::Player;
use kpty::recording::{Action, Recording};
use kpty_emulator::{EngineKind, Mode, Request, Size};
use serde::Deserialize;
use serde_json::json;

use crate::support::desktop::{AppMode, Desktop};

const DIFFERENCES: &str = include_str!("xterm-differences.txt");

/// An entry of a corpus' manifest.
#[derive(Deserialize)]
struct Case {
    name: String,
    cols: u16,
    rows: u16,
    r#in: String,
}

/// A row of xterm.js.
#[derive(Deserialize)]
struct Row {
    text: String,
    continues: bool,
}

/// What a terminal shows: the rows of its screen, and all its lines with wrapped rows joined.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    screen: Vec<String>,
    full: Vec<String>,
}

#[expect(clippy::disallowed_methods, reason = "a setting of the tests, not of the program")]
fn corpora() -> Option<PathBuf> {
    std::env::var_os("KPTY_CORPORA").map(PathBuf::from)
}

#[test]
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "how much was compared is worth knowing")]
fn the_consensus_corpora_look_the_same_in_xterm_js() {
    let Some(folder) = corpora() else {
        eprintln!("KPTY_CORPORA is not set: our engine was NOT compared with xterm.js");
        return;
    };
    let entries = DIFFERENCES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut known: BTreeMap<_, _> =
        entries.map(|line| line.split_once(' ').expect("a view and a reason why it differs")).collect();
    let app = Desktop::start(AppMode::Embedded);
    let (mut views, mut wrong) = (0, Vec::new());
    let mut corpora: Vec<PathBuf> = fs::read_dir(&folder).expect("a folder").flatten().map(|e| e.path()).collect();
    corpora.sort();
    for corpus in corpora {
        let corpus_name = corpus.file_name().unwrap_or_default().to_string_lossy();
        if !corpus_name.starts_with("consensus-") {
            continue;
        }
        let manifest = fs::read(corpus.join("manifest.json")).expect("a manifest");
        let cases: Vec<Case> = serde_json::from_slice(&manifest).expect("a list of cases");
        for case in cases {
            let (ours, theirs) = play(&app, &corpus, &case);
            for (view, ours, theirs) in [("", &ours.screen, &theirs.screen), (":full", &ours.full, &theirs.full)] {
                let id = format!("{corpus_name}/{}{view}", case.name);
                views += 1;
                match (known.remove(id.as_str()), ours == theirs) {
                    (None, false) => wrong.push(format!("{id} differs: {}", difference(ours, theirs))),
                    (Some(_), true) => wrong.push(format!("{id} is listed but does not differ")),
                    _ => {}
                }
            }
        }
    }
    println!("{views} views compared with xterm.js");
    assert!(views > 0, "{} holds no consensus corpus", folder.display());
    wrong.extend(known.keys().map(|id| format!("{id} is listed but there is no such view")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Shows a case to both: what stands on either's screen in the end.
fn play(app: &Desktop, corpus: &Path, case: &Case) -> (Shown, Shown) {
    let recording = Recording::load(&corpus.join(&case.r#in)).expect("a recording");
    let size = Size::new(case.cols, case.rows).expect("a size");
    let mut player = Player::new(&recording, EngineKind::default(), Some(size));
    player.play_to_end();
    let mut read = |mode, merge_wrapped| {
        let request = Request { merge_wrapped, ..Request::new(mode) };
        trimmed(player.emulator().read(&request, None).lines())
    };
    let ours = Shown { screen: read(Mode::Viewport, false), full: read(Mode::Full, true) };
    let id = app.create(&json!({ "shell": null, "cols": case.cols, "rows": case.rows }));
    // What comes between two resizes may come at once.
    let mut bytes = Vec::new();
    for event in &recording.events {
        match &event.action {
            Action::Output(more) => bytes.extend_from_slice(more),
            Action::Resize(size) => {
                app.feed(&id, std::mem::take(&mut bytes));
                app.resize(&id, size.cols(), size.rows());
            }
        }
    }
    app.feed(&id, bytes);
    let answer = app.ask("/test/rows", &json!({ "session_id": id }));
    app.remove(&id);
    let rows: Vec<Row> = serde_json::from_value(answer["rows"].clone()).expect("rows");
    let top = answer["top"].as_u64().expect("a row") as usize;
    let mut full: Vec<String> = Vec::new();
    for row in &rows {
        match full.last_mut() {
            Some(line) if row.continues => line.push_str(&row.text),
            _ => full.push(row.text.clone()),
        }
    }
    let screen = trimmed(rows[top..].iter().map(|row| row.text.as_str()));
    (ours, Shown { screen, full: trimmed(full.iter().map(String::as_str)) })
}

/// The first line that differs.
fn difference(ours: &[String], theirs: &[String]) -> String {
    let longest = ours.len().max(theirs.len());
    let at = (0..longest).find(|&at| ours.get(at) != theirs.get(at)).unwrap_or(longest);
    format!("line {at}: ours {:?}, xterm.js {:?}", ours.get(at), theirs.get(at))
}

/// Without trailing blanks and trailing empty lines.
fn trimmed<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut lines: Vec<String> = lines.map(|line| line.trim_end_matches(' ').to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}
