//! The recordings in `fixtures/`: they show what they showed, and two engines agree about it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use kpty::recording::fixture::Fixture;
use kpty_emulator::EngineKind;

use crate::support::{replay, repository, shown};

fn recordings() -> PathBuf {
    repository().join("fixtures/recordings")
}

#[test]
fn every_recording_shows_what_is_expected() {
    let folder = recordings();
    let printed = shown(["replay".as_ref(), "--check".as_ref(), folder.as_os_str()]);
    assert!(printed.ends_with(" 0 different\n") && !printed.contains("nothing to compare with"), "{printed}");
}

/// Most full-screen programs leave nothing on the main screen, so their end says little: this looks at them while
/// they run.
#[test]
fn full_screen_programs_are_seen_while_they_run() {
    for (name, at, expected) in SCREENS {
        let file = recordings().join(format!("{name}.cast"));
        let screen = shown(replay(&file, &format!("--no-merge --at {at}")));
        for line in *expected {
            assert!(screen.lines().any(|row| row == *line), "{name} at {at} s has no row {line:?}:\n{screen}");
        }
    }
}

/// Recording, moment, rows that are on the screen then.
const SCREENS: &[(&str, &str, &[&str])] = &[
    (
        "mc",
        "4.51",
        &[
            "┌<─ ~/files ──────────────────────.[^]>┐┌<─ ~/files/sub/deep ─────────────.[^]>┐",
            "│ 名前 wit~ces.txt│     16│Jan  2  2024││                 │       │            │",
            " 1Help   2Menu   3View   4Edit   5Copy   6RenMov 7Mkdir  8Delete 9PullDn10Quit",
        ],
    ),
    (
        "nano-edit",
        "2.07",
        &[
            "  GNU nano 7.2                       notes.txt                        Modified",
            "035 meadow candle saddle meadow island garden garden island meadow saddle candl>",
        ],
    ),
    ("ncdu", "2.07", &["    4.0 KiB [ 10.0%]  名前 with spaces.txt", "   12.0 KiB [ 30.0%] /sub"]),
    ("less-paging", "3.87", &["030 heron quarry drift quarry heron amber.", "notes.txt lines 30-50/120 41%"]),
    ("less-resize", "1.76", &["     38 038 pebble island drift amber yarrow.", ":"]),
    ("vim-edit", "0.35", &["  8     print('池 and café')", "-- INSERT --"]),
    (
        "vim-edit",
        "4.25",
        &[
            "  1                                     |  1",
            "notes.txt [+]         0,0-1          All notes.txt [+]        0,0-1          All",
            "--No lines in buffer--",
        ],
    ),
    ("nvim-edit", "2.57", &[" 13     def __init__(me, birds):", "done"]),
    (
        "fzf",
        "1.81",
        &[
            "╭──────────────────────────────────────────────────────────────────────────────╮",
            "│ > 114 thicket quarry pebble quarry thicket amber heron quarry drift.         │",
        ],
    ),
    ("watch", "7.25", &["006 heron quarry drift quarry heron amber thicket quarry pebble."]),
    (
        "tmux-split",
        "1.84",
        &[
            "lla.                                    │右 right",
            "024 basket ember juniper quarry basket m├───────────────────────────────────────",
            "[0] 0:bash*                                                                right",
        ],
    ),
    ("screen-split", "1.53", &["   0 demo", "   1 demo", "0 demo  1* demo"]),
    ("w3m-page", "1.47", &["├─────┼─────┤", "[ask me              ] [*] [Go]", "Viewing <Pond>"]),
    ("whiptail", "1.77", &["                  │  [*] teal   green                        │"]),
    // The seventh frame is open at this moment: the one before is still what there is to see.
    (
        "synchronized",
        "0.67",
        &["               frame 6 row 02 ▇▇▇▇▇▇▇▇", "               frame 6 row 11 ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇"],
    ),
];

/// Recording to reason, as `fixtures/known-differences.txt` lists them.
fn known_differences() -> BTreeMap<String, String> {
    let text = fs::read_to_string(repository().join("fixtures/known-differences.txt")).expect("the list is there");
    let entries = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut known = BTreeMap::new();
    for entry in entries {
        let (name, reason) = entry.split_once(": ").expect("an entry is NAME: reason");
        assert!(!reason.trim().is_empty(), "{name} has no reason");
        assert!(known.insert(name.to_owned(), reason.to_owned()).is_none(), "{name} is listed twice");
    }
    known
}

#[test]
fn engines_differ_only_where_it_is_known() {
    let mut known = known_differences();
    let mut problems = Vec::new();
    for fixture in Fixture::load_all(&recordings()).expect("the recordings are readable") {
        let (ours, theirs) = (fixture.views(EngineKind::Alacritty), fixture.views(EngineKind::Vt100));
        // A tail is the end of the full text: it can say nothing new.
        let differ = ours.iter().zip(&theirs).any(|(a, b)| !a.0.ends_with(".tail.txt") && a.1 != b.1);
        match (differ, known.remove(&fixture.name)) {
            (true, None) => problems.push(format!("{} differs between the engines and is not listed", fixture.name)),
            (false, Some(_)) => problems.push(format!("{} is listed but does not differ any more", fixture.name)),
            _ => {}
        }
    }
    problems.extend(known.into_keys().map(|name| format!("{name} is listed but is no recording")));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
