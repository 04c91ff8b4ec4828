//! Compares the traffic log with a model: ten thousand events, every filter and every page; damage; limits.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kpty_guard::Redactor;

use super::query::{Filter, Totals};
use super::*;

const DAY: Duration = Duration::from_secs(24 * 3_600);
const KEEP: Retention = Retention { age: DAY, rows: 10_000 };

fn recording(folder: Option<&Path>, retention: Retention) -> TrafficOptions {
    TrafficOptions { folder: folder.map(Path::to_owned), retention, journal: None, gateway: None, own_address: None }
}

/// Derives every field of an event from a number.
fn event(number: u64) -> Event {
    let mut event = Event::new(["talk", "read", "send_line", "create", "list"][(number % 5) as usize], "");
    event.session_id = if event.action == "list" { String::new() } else { format!("pty_{}", number % 7) };
    event.id = format!("event_{number}");
    // The current time in whole milliseconds, the precision of the database.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64;
    event.at = UNIX_EPOCH + Duration::from_millis(now - 20_000_000 + number * 1_000);
    event.agent_id = (!number.is_multiple_of(3)).then(|| format!("agent_{}", number % 4));
    event.command = Some(SizedText::new(Redactor::off().mask(format!("echo {number} 100%_Done"))));
    event.response = number.is_multiple_of(2).then(|| SizedText::new(Redactor::off().mask(format!("{number}\\x é"))));
    event.success = !number.is_multiple_of(6);
    event.blocked = number.is_multiple_of(12);
    event.label = number.is_multiple_of(10).then(|| "Build".to_owned());
    event.duration = Duration::from_micros(number * 10);
    event
}

/// The conditions in plain Rust.
fn is_asked_for(filter: &Filter, event: &Event) -> bool {
    let at = event.at.duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as i64;
    let has = |text: Option<&str>, search: &str| {
        text.is_some_and(|text| text.to_ascii_lowercase().contains(&search.to_ascii_lowercase()))
    };
    filter.session_id.as_ref().is_none_or(|id| *id == event.session_id)
        && filter.agent_id.as_ref().is_none_or(|id| Some(id) == event.agent_id.as_ref())
        && filter.action.as_ref().is_none_or(|action| *action == event.action)
        && (!filter.errors_only || !event.success)
        && (!filter.blocked_only || event.blocked)
        && filter.search.as_ref().is_none_or(|search| {
            has(event.command.as_ref().map(|text| text.kept.as_str()), search)
                || has(event.response.as_ref().map(|text| text.kept.as_str()), search)
                || has(event.label.as_deref(), search)
        })
        && filter.since_ms.is_none_or(|since| at >= since)
        && filter.until_ms.is_none_or(|until| at <= until)
}

fn filters(all: &[Event]) -> Vec<Filter> {
    let some = |text: &str| Some(text.to_owned());
    let at = |index: usize| Some(all[index].at.duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as i64);
    let none = Filter::default();
    vec![
        none.clone(),
        Filter { session_id: some("pty_3"), ..none.clone() },
        Filter { session_id: some("nobody"), ..none.clone() },
        Filter { agent_id: some("agent_1"), ..none.clone() },
        Filter { action: some("talk"), errors_only: true, ..none.clone() },
        Filter { errors_only: true, ..none.clone() },
        Filter { blocked_only: true, ..none.clone() },
        Filter { search: some("0%_d"), ..none.clone() },
        Filter { search: some("echo 12"), ..none.clone() },
        Filter { search: some("\\X é"), ..none.clone() },
        Filter { search: some("build"), ..none.clone() },
        Filter { search: some("e_h"), ..none.clone() },
        Filter { since_ms: at(4_000), ..none.clone() },
        Filter { until_ms: at(4_000), ..none.clone() },
        Filter { since_ms: at(100), until_ms: at(180), ..none.clone() },
        Filter { since_ms: at(180), until_ms: at(100), ..none.clone() },
        Filter {
            session_id: some("pty_2"),
            agent_id: some("agent_2"),
            action: some("read"),
            search: some("echo"),
            ..none
        },
    ]
}

#[test]
fn ten_thousand_events_are_found_by_every_filter_on_every_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let emitter = Emitter::new();
    emitter.start(recording(Some(folder.path()), KEEP));
    let all: Vec<Event> = (0..10_000).map(event).collect();
    for event in &all {
        // The queue is flushed when full, so nothing is dropped.
        while !emitter.emit(Draft::new(event.clone(), Arc::default())) {
            drop(emitter.record());
        }
    }
    let store = emitter.record().expect("a record");
    for filter in filters(&all) {
        let expected: Vec<&Event> = all.iter().rev().filter(|event| is_asked_for(&filter, event)).collect();
        for limit in [1, 7, 500] {
            let (mut offset, mut pages) = (0, 0);
            loop {
                let page = store.events(&filter, limit, offset).expect("a page");
                let wanted: Vec<&Event> = expected.iter().skip(offset as usize).take(limit as usize).copied().collect();
                assert!(page.events.iter().eq(wanted.iter().copied()), "{filter:?} {limit} {offset}");
                assert_eq!(page.total as usize, expected.len(), "{filter:?}");
                assert_eq!(page.has_more, expected.len() > offset as usize + wanted.len(), "{filter:?} {offset}");
                offset += limit;
                pages += 1;
                // All pages of small results, the first and the last of large ones.
                if !page.has_more {
                    break;
                }
                if limit < 500 && pages == 3 {
                    offset = (expected.len() as u64).saturating_sub(limit * 2 - 1).max(offset);
                }
            }
        }
    }
    sums_are_exact(&store, &all);
    emitter.finish();
    assert_eq!(emitter.counts().recorded, 10_000);
    assert_eq!((emitter.counts().failed, emitter.counts().failure), (0, None));
}

fn sums_are_exact(store: &Store, all: &[Event]) {
    let stats = store.stats().expect("sums");
    let size = |text: &Option<SizedText>| text.as_ref().map_or(0, |text| text.size);
    let totals = |events: &[&Event]| Totals {
        events: events.len() as u64,
        errors: events.iter().filter(|event| !event.success).count() as u64,
        blocked: events.iter().filter(|event| event.blocked).count() as u64,
        sent: events.iter().map(|event| size(&event.command)).sum(),
        received: events.iter().map(|event| size(&event.response)).sum(),
    };
    assert_eq!(stats.totals, totals(&all.iter().collect::<Vec<_>>()));
    assert_eq!((stats.sessions, stats.actions.len()), (7, 5));
    assert_eq!(stats.agents.iter().map(|(_, count)| count).sum::<u64>(), 6_666);
    let sessions = store.sessions(None).expect("sessions");
    assert_eq!(sessions.len(), 7);
    for summary in sessions {
        let own: Vec<&Event> = all.iter().filter(|event| event.session_id == summary.session_id).collect();
        assert_eq!(summary.totals, totals(&own), "{}", summary.session_id);
        let mean = own.iter().map(|event| event.duration_ms()).sum::<f64>() / own.len() as f64;
        assert!((summary.avg_duration - mean).abs() < 1e-6, "{} {mean}", summary.avg_duration);
        let newest = own.iter().rev().find_map(|event| event.agent_id.clone());
        assert_eq!(summary.agent_id, newest);
        assert_eq!(store.sessions(Some(&summary.session_id)).expect("one"), [summary]);
    }
    assert_eq!(store.event("event_77").expect("an answer"), Some(all[77].clone()));
    assert_eq!(store.event("event_").expect("an answer"), None);
}

#[test]
fn only_the_newest_are_kept_and_none_that_is_too_old() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Store::new(Some(folder.path()), Retention { age: DAY, rows: 100 });
    let events: Vec<Event> = (0..250).map(event).collect();
    for batch in events.chunks(40) {
        store.write(batch).expect("a database");
    }
    let page = store.events(&Filter::default(), 500, 0).expect("a page");
    assert_eq!((page.total, page.events[99].id.as_str()), (100, "event_150"));
    let mut old = event(1);
    old.at = SystemTime::now() - DAY - Duration::from_secs(1);
    let mut young = event(2);
    young.at = SystemTime::now() - DAY + Duration::from_secs(60);
    store.write(&[old, young]).expect("a database");
    store.clean_up().expect("a database");
    let page = store.events(&Filter::default(), 500, 0).expect("a page");
    assert_eq!((page.total, page.events[0].id.as_str()), (99, "event_2"));
}

/// Damage costs at most the file, which is kept, and never the next entry.
#[test]
fn a_damaged_file_is_set_aside_and_a_missing_one_made_again() {
    for damage in ["nonsense", "truncated", "another form", "missing", "a folder"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("traffic.db");
        let store = Store::new(Some(folder.path()), KEEP);
        store.write(&(0..100).map(event).collect::<Vec<_>>()).expect("a database");
        drop(store);
        let bytes = fs::read(&path).expect("a file");
        match damage {
            "nonsense" => fs::write(&path, "this is no database".repeat(100)).expect("our file"),
            "truncated" => fs::write(&path, &bytes[..bytes.len() / 2 + 100]).expect("our file"),
            "another form" => {
                fs::remove_file(&path).expect("our file");
                let other = newer_database(folder.path());
                fs::rename(other, &path).expect("our folder");
            }
            "a folder" => {
                fs::remove_file(&path).expect("our file");
                fs::create_dir(&path).expect("a folder");
            }
            _ => fs::remove_file(&path).expect("our file"),
        }
        let store = Store::new(Some(folder.path()), KEEP);
        let mut written = store.write(&[event(1_000)]);
        // A query detects damage inside the file, and the next entry creates a new file.
        if written.is_err() {
            written = store.write(&[event(1_000)]);
        }
        if damage == "a folder" {
            assert!(written.is_err(), "the folder is kept");
            continue;
        }
        written.unwrap_or_else(|problem| panic!("{damage}: {problem}"));
        let page = store.events(&Filter { search: Some("echo 1000".to_owned()), ..Filter::default() }, 5, 0);
        assert_eq!(page.expect(damage).total, 1, "{damage}");
        let is_aside = folder.path().join("traffic.db.damaged").exists();
        assert_eq!(is_aside, damage != "missing", "{damage}");
    }
}

/// A database with a later schema version.
fn newer_database(folder: &Path) -> std::path::PathBuf {
    let other = folder.join("other");
    fs::create_dir(&other).expect("a folder");
    let store = Store::new(Some(&other), KEEP);
    store.write(&[event(1)]).expect("a database");
    drop(store);
    let path = other.join("traffic.db");
    let mut bytes = fs::read(&path).expect("a file");
    // `user_version` is at byte 60.
    bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
    fs::write(&path, bytes).expect("our file");
    path
}

#[cfg(unix)]
#[test]
fn the_files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Store::new(Some(folder.path()), KEEP);
    store.write(&[event(1)]).expect("a database");
    let mut names = Vec::new();
    for entry in fs::read_dir(folder.path()).expect("the folder") {
        let entry = entry.expect("an entry");
        let mode = entry.metadata().expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", entry.file_name());
        names.push(entry.file_name());
    }
    assert_eq!(names.len(), 3, "{names:?}");
}

#[cfg(unix)]
#[test]
fn a_planted_link_is_not_followed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let target = folder.path().join("target");
    fs::write(&target, "precious").expect("a file");
    let state = folder.path().join("state");
    fs::create_dir(&state).expect("a folder");
    std::os::unix::fs::symlink(&target, state.join("traffic.db")).expect("a link");
    let store = Store::new(Some(&state), KEEP);
    assert!(store.write(&[event(1)]).is_err());
    assert_eq!(fs::read_to_string(&target).expect("the file"), "precious");
}

#[test]
fn a_failed_write_is_counted_and_delays_no_action() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let no_folder = folder.path().join("not there");
    let emitter = Emitter::new();
    assert!(!emitter.emit(Draft::new(event(1), Arc::default())), "nothing is recorded yet");
    emitter.start(recording(Some(&no_folder), KEEP));
    assert!(emitter.emit(Draft::new(event(1), Arc::default())));
    drop(emitter.record());
    let counts = emitter.counts();
    assert_eq!((counts.recorded, counts.failed, counts.dropped), (0, 1, 0));
    assert!(counts.failure.is_some_and(|failure| !failure.contains("not there")));
    // Writing is retried and the reported error disappears after success.
    fs::create_dir(&no_folder).expect("a folder");
    assert!(emitter.emit(Draft::new(event(2), Arc::default())));
    let store = emitter.record().expect("a record");
    assert_eq!(store.events(&Filter::default(), 5, 0).expect("a page").total, 1);
    assert_eq!((emitter.counts().recorded, emitter.counts().failure), (1, None));
    emitter.finish();
    assert!(!emitter.emit(Draft::new(event(3), Arc::default())));
}

#[test]
fn who_reads_the_record_waits_for_what_is_promised() {
    let emitter = Emitter::new();
    emitter.start(recording(None, KEEP));
    let promise = emitter.promise();
    let reader = emitter.clone();
    let (seen, sees) = std::sync::mpsc::channel();
    let reading = std::thread::spawn(move || {
        let store = reader.record().expect("a record");
        seen.send(store.events(&Filter::default(), 5, 0).expect("a page").total).expect("the test listens");
    });
    assert!(emitter.emit(Draft::new(event(1), Arc::default())));
    assert!(sees.recv_timeout(Duration::from_millis(100)).is_err(), "it did not wait");
    assert!(emitter.emit(Draft::new(event(2), Arc::default())));
    drop(promise);
    assert_eq!(sees.recv_timeout(Duration::from_secs(60)).expect("it goes on"), 2);
    reading.join().expect("a thread");
}

#[test]
fn what_is_promised_keeps_its_place() {
    let emitter = Emitter::new();
    emitter.start(recording(None, KEEP));
    for round in 0..20 {
        let (first, second) = (emitter.promise(), emitter.promise());
        assert!(emitter.emit(Draft::new(event(10 * round + 3), Arc::default())));
        assert!(emitter.keep(&second, Draft::new(event(10 * round + 2), Arc::default())));
        drop(second);
        assert!(emitter.keep(&first, Draft::new(event(10 * round + 1), Arc::default())));
        drop(first);
        // A promise that is dropped without an entry does not block the writer.
        drop(emitter.promise());
        let page = emitter.record().expect("a record").events(&Filter::default(), 3, 0).expect("a page");
        let expected: Vec<_> = [3, 2, 1].map(|number| event(10 * round + number).id).into();
        assert_eq!(page.events.into_iter().map(|event| event.id).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn too_much_at_once_is_dropped_and_counted() {
    let emitter = Emitter::new();
    let (entered, inside) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let journal: Journal = Box::new(move |_, _| {
        entered.send(()).map_err(std::io::Error::other)?;
        // Held until the test has filled the queue; then the other end is closed and nothing waits.
        let _ = released.recv();
        Ok(())
    });
    emitter.start(TrafficOptions { journal: Some(journal), ..recording(None, KEEP) });
    let draft = || Draft { is_for_journal: true, ..Draft::new(event(1), Arc::default()) };
    assert!(emitter.emit(draft()));
    inside.recv_timeout(Duration::from_secs(60)).expect("the thread writes");
    let taken = (0..10_000).filter(|_| emitter.emit(draft())).count() as u64;
    assert!((1_000..10_000).contains(&taken), "{taken}");
    assert_eq!(emitter.counts().dropped, 10_000 - taken);
    drop(release);
    emitter.finish();
    assert_eq!(emitter.counts().recorded, taken + 1);
}

#[tokio::test]
async fn listeners_hear_of_events_without_secrets_and_lag_without_harm() {
    let emitter = Emitter::new();
    emitter.start(recording(None, KEEP));
    let mut fast = emitter.subscribe();
    let mut slow = emitter.subscribe();
    for number in 0..3_000 {
        let command = Some(GivenText::new(["export A_TO", "KEN=q7Lm2", "xR9vT4"].concat()));
        let event = event(number);
        while !emitter.emit(Draft { command: command.clone(), ..Draft::new(event.clone(), Arc::default()) }) {
            drop(emitter.record());
        }
        if number < 500 {
            drop(emitter.record());
            let heard = fast.recv().await.expect("an event");
            assert_eq!(heard.id, format!("event_{number}"));
            assert!(!heard.row().to_string().contains("q7Lm2"));
        }
    }
    drop(emitter.record());
    let missed = match slow.recv().await {
        Err(tokio::sync::broadcast::error::RecvError::Lagged(missed)) => missed,
        other => panic!("{other:?}"),
    };
    assert!(missed > 1_000, "{missed}");
    let closed = emitter.closed();
    emitter.finish();
    assert!(*closed.borrow());
}
