//! Several clients that type long texts into one session at once: every text arrives whole, and no call fails.

use std::sync::Arc;

use kpty::terminal::local::{Integration, NewSession, Session};
use kpty::terminal::wait::{Ending, WaitRequest};
use kpty_emulator::Size;

use super::{PATIENCE, amount};
use crate::talk::Bench;

const CLIENTS: usize = 4;
/// More than the system takes at once, and no multiple of anything.
const TEXT_BYTES: usize = 40_003;

/// A text that says whose it is at both ends. Its characters have three bytes each, so that a cut shows.
fn text(client: usize, call: usize) -> String {
    let (head, tail) = (format!("<{client}:{call:05}|"), format!("|{client}:{call:05}>"));
    let body = "\u{2500}".repeat((TEXT_BYTES - head.len() - tail.len()) / 3);
    let fill = "x".repeat(TEXT_BYTES - head.len() - tail.len() - body.len());
    format!("{head}{body}{fill}{tail}")
}

/// A program that reads `bytes` bytes as they come, writes them to a file and ends.
async fn reading_session(bench: &Bench, read: &str) -> Session {
    let size = Size::new(80, 24).expect("a size");
    let line = format!("stty raw -echo; echo ready; {read} >taken");
    let new = NewSession { args: vec!["-c".into(), line], ..bench.new_session("/bin/sh", size, Integration::Off) };
    let session = Session::spawn(new).await.expect("the shell starts");
    let ready = WaitRequest {
        appears: Some(kpty::terminal::search::Pattern::literal("ready").expect("a pattern")),
        timeout: PATIENCE,
        ..WaitRequest::default()
    };
    let ending = session.wait(&ready).await.expect("it waits").ending;
    assert!(matches!(ending, Ending::Appeared { .. }), "{ending:?}");
    session
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn texts_of_four_clients_arrive_whole() {
    let calls = amount(25, 250);
    let bench = Bench::new();
    let session = reading_session(&bench, &format!("head -c {}", CLIENTS * calls * TEXT_BYTES)).await;
    let session = Arc::new(session);
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        let session = Arc::clone(&session);
        clients.spawn(async move {
            let mut failures = Vec::new();
            for call in 0..calls {
                match session.write(text(client, call).as_bytes()).await {
                    Ok(TEXT_BYTES) => {}
                    other => failures.push(format!("{client}:{call}: {other:?}")),
                }
            }
            failures
        });
    }
    let failures: Vec<_> = clients.join_all().await.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{} of {} calls: {failures:?}", failures.len(), CLIENTS * calls);
    let ended = WaitRequest { exit: true, timeout: PATIENCE, ..WaitRequest::default() };
    session.wait(&ended).await.expect("it waits");
    let taken = bench.home.read("taken");
    let mut next = [0; CLIENTS];
    for got in taken.as_bytes().chunks(TEXT_BYTES) {
        let client = usize::from(got[1].wrapping_sub(b'0'));
        assert!(client < CLIENTS, "not the beginning of a text: {:?}", String::from_utf8_lossy(&got[..20]));
        assert!(got == text(client, next[client]).as_bytes(), "text {} of client {client} was cut", next[client]);
        next[client] += 1;
    }
    assert_eq!(next, [calls; CLIENTS]);
    session.kill().await.expect("it ends");
}
