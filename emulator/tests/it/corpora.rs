//! The conformance corpora: streams that nobody in this project wrote, with the screen they must give.
//!
//! They are not part of the project. `KPTY_CORPORA` names the folder; unset, the test says so and does nothing. Set,
//! a missing folder fails. What still fails is listed in `known-failures.txt` with its reason, and a case that is listed
//! but passes fails the test too.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kpty_emulator::{Emulator, Mode, Request, Settings};
use serde::Deserialize;

use crate::support::{cast_events, play_event, size};

const KNOWN_FAILURES: &str = include_str!("known-failures.txt");

/// An entry of a corpus' manifest.
#[derive(Deserialize)]
struct Case {
    name: String,
    cols: u16,
    rows: u16,
    r#in: String,
    expect: String,
    joined: Option<String>,
    full: Option<String>,
    only_rows: Option<Vec<usize>>,
    #[serde(default)]
    skipped_upstream: bool,
}

/// `corpus/name` or `corpus/name:joined`, with the reason.
fn known_failures() -> BTreeMap<&'static str, &'static str> {
    let lines = KNOWN_FAILURES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').expect("a case and a reason")).collect()
}

#[test]
fn the_corpora_give_the_expected_screens() {
    let Some(folder) = std::env::var_os("KPTY_CORPORA").map(PathBuf::from) else {
        eprintln!("KPTY_CORPORA is not set: the conformance corpora were NOT run");
        return;
    };
    let mut known = known_failures();
    let mut wrong = Vec::new();
    let (mut upstream, mut upstream_passed, mut views) = (0, 0, 0);
    let mut corpora: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    corpora.sort();
    for corpus in corpora.iter().filter(|path| path.join("manifest.json").is_file()) {
        let corpus_name = corpus.file_name().unwrap().to_string_lossy();
        let cases: Vec<Case> = serde_json::from_slice(&fs::read(corpus.join("manifest.json")).unwrap()).unwrap();
        for case in cases.iter().filter(|case| !case.skipped_upstream) {
            for (view, passed) in run(corpus, case) {
                let id = format!("{corpus_name}/{}{view}", case.name);
                views += 1;
                if view.is_empty() && !corpus_name.starts_with("consensus-") {
                    upstream += 1;
                    upstream_passed += usize::from(passed);
                }
                match known.remove(id.as_str()) {
                    None if !passed => wrong.push(format!("{id} fails and is not listed")),
                    Some(_) if passed => wrong.push(format!("{id} is listed but passes")),
                    _ => (),
                }
            }
        }
    }
    assert!(views > 0, "{} holds no corpus", folder.display());
    println!("{views} views; upstream screens: {upstream_passed} of {upstream}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(upstream_passed * 100 >= upstream * 98, "{upstream_passed} of {upstream} upstream screens");
}

/// Each view of a case that has an expectation, and whether it is met.
fn run(corpus: &Path, case: &Case) -> Vec<(&'static str, bool)> {
    let mut emulator = play(corpus, case);
    let mut read = |mode, merge_wrapped| {
        let request = Request { merge_wrapped, ..Request::new(mode) };
        trimmed(emulator.read(&request, None).lines())
    };
    let expected = |file: &String| trimmed(fs::read_to_string(corpus.join(file)).unwrap().lines());
    let rows = read(Mode::Viewport, false);
    let wanted = expected(&case.expect);
    let passed = match &case.only_rows {
        Some(only) => only
            .iter()
            .all(|&row| rows.get(row).map_or("", String::as_str) == wanted.get(row).map_or("", String::as_str)),
        None => rows == wanted,
    };
    let mut views = vec![("", passed)];
    if let Some(joined) = &case.joined {
        views.push((":joined", read(Mode::Viewport, true) == expected(joined)));
    }
    if let Some(full) = &case.full {
        views.push((":full", read(Mode::Full, true) == expected(full)));
    }
    views
}

fn play(corpus: &Path, case: &Case) -> Emulator {
    let bytes = fs::read(corpus.join(&case.r#in)).unwrap();
    let mut emulator = Emulator::new(Settings { size: size(case.cols, case.rows), ..Settings::default() });
    if case.r#in.ends_with(".cast") {
        for event in cast_events(std::str::from_utf8(&bytes).unwrap()) {
            play_event(&mut emulator, &event);
        }
    } else {
        emulator.feed(Duration::ZERO, &bytes);
    }
    emulator.flush();
    emulator
}

fn trimmed<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut lines: Vec<String> = lines.map(|line| line.trim_end_matches([' ', '\t', '\r']).to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}
