//! Commands that print and exit at once: every output whole, every code right, none mixed up.

use std::sync::Arc;

use kpty::terminal::local::pty::raise_open_files_limit;
use kpty::terminal::local::{Integration, Session};
use tokio::task::JoinSet;

use super::{amount, ask, session};
use crate::talk::Bench;

/// A command by its number, with what it prints and its code.
fn quick(number: usize) -> (String, String, i32) {
    let code = (number * 7 % 256) as i32;
    match number % 7 {
        0 => (format!("echo r{number}"), format!("r{number}"), 0),
        1 => (format!("echo r{number}; (exit {code})"), format!("r{number}"), code),
        2 => (format!("printf 'a{number}\\nb{number}\\n'; sh -c 'exit {code}'"), format!("a{number}\nb{number}"), code),
        3 => (format!("printf 'open {number}'; false"), format!("open {number}"), 1),
        4 => (format!("(exit {code})"), String::new(), code),
        5 => {
            let lines: Vec<_> = (number..number + 30).map(|line| line.to_string()).collect();
            (format!("seq {number} {}; (exit 3)", number + 29), lines.join("\n"), 3)
        }
        _ => {
            let long = format!("{number}-").repeat(60);
            (format!("echo {long}; ! true"), long, 1)
        }
    }
}

async fn run_quick(session: &Session, count: usize) {
    for number in 0..count {
        let (command, output, code) = quick(number);
        let told = ask(session, &command).await;
        assert_eq!((told.output.text.as_str(), told.exit_code), (output.as_str(), Some(code)), "{number}: {command}");
        assert!(!told.output.truncated);
    }
    session.kill().await.expect("it dies");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_quick_commands_are_answered_right_by_marks() {
    let bench = Bench::new();
    run_quick(&session(&bench, "/bin/bash", Integration::Auto).await, amount(1_000, 10_000)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quick_commands_are_answered_right_by_sentinels() {
    let bench = Bench::new();
    run_quick(&session(&bench, "/bin/sh", Integration::Off).await, amount(300, 3_000)).await;
    run_quick(&session(&bench, "/bin/bash", Integration::Off).await, amount(100, 3_000)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_sessions_at_once_are_not_mixed_up() {
    raise_open_files_limit();
    let bench = Arc::new(Bench::new());
    let (sessions, rounds) = (amount(60, 200), amount(20, 50));
    let mut running = JoinSet::new();
    for number in 0..sessions {
        let bench = Arc::clone(&bench);
        running.spawn(async move {
            let (shell, integration) = match number % 3 {
                0 => ("/bin/bash", Integration::Auto),
                1 => ("/bin/sh", Integration::Off),
                _ => ("/bin/bash", Integration::Off),
            };
            let session = session(&bench, shell, integration).await;
            for round in 0..rounds {
                let code = ((number + round) % 256) as i32;
                let told = ask(&session, &format!("echo s{number}.{round}; (exit {code})")).await;
                let expected = (format!("s{number}.{round}"), Some(code));
                assert_eq!((told.output.text.into_string(), told.exit_code), expected, "{shell} {integration:?}");
            }
            session
        });
    }
    let mut all = Vec::new();
    while let Some(joined) = running.join_next().await {
        all.push(joined.expect("every answer is its own"));
    }
    let mut kills: JoinSet<_> = all.into_iter().map(|session| async move { session.kill().await.map(drop) }).collect();
    while let Some(killed) = kills.join_next().await {
        killed.expect("no panic").expect("it dies");
    }
}
