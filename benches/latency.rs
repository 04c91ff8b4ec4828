//! How long a `talk` takes, as a ratio to a blocking read loop on a bare PTY in the same run.

#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

mod support;

use std::time::{Duration, Instant};

use kpty::session::{Integration, Session};

use crate::support::{Bare, Home, percentile, runtime, talk};

const ROUNDS: usize = 1_000;

fn main() {
    let runtime = runtime();
    let home = Home::new();
    println!("{:<34} {:>9} {:>9} {:>7} {:>7}", "talk `echo X`, µs", "p50", "p99", "p50 x", "p99 x");
    runtime.block_on(async {
        tokio::spawn(async move {
            quiet(&home).await;
            under_flood(&home).await;
        })
        .await
        .expect("the benchmark")
    });
}

/// `bash`, nothing else going on.
async fn quiet(home: &Home) {
    let mut bare = floor(home);
    marked_floor(home);
    let marked = home.session("/bin/bash", &[], Integration::Auto).await;
    let typed = home.session("/bin/bash", &["--norc"], Integration::Off).await;
    let plain = home.session("/bin/sh", &[], Integration::Off).await;
    compare("at rest", &mut bare, &[("bash, marks", &marked), ("bash, sentinel", &typed), ("sh, sentinel", &plain)])
        .await;
    for session in [marked, typed, plain] {
        let _ = session.kill().await;
    }
    bare.end();
}

/// The same while other sessions print without a pause.
async fn under_flood(home: &Home) {
    for floods in [1, 3] {
        let mut noise = Vec::new();
        for _ in 0..floods {
            noise.push(home.session("/bin/sh", &["-c", "yes"], Integration::Off).await);
        }
        let mut bare = floor(home);
        let marked = home.session("/bin/bash", &[], Integration::Auto).await;
        compare(&format!("beside {floods} x yes"), &mut bare, &[("bash, marks", &marked)]).await;
        bare.end();
        for session in noise.into_iter().chain([marked]) {
            let _ = session.kill().await;
        }
    }
}

/// What the marks cost bash itself: the same blocking loop, with our start-up file.
fn marked_floor(home: &Home) {
    let (mut bare, secret) = home.bare_marked();
    let ready = format!("133;B;k={secret}");
    bare.ask("", &ready);
    let (mut until_end, mut all) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let began = Instant::now();
        until_end.push(bare.ask(&format!("\x1b[200~echo X{round}\x1b[201~\r"), &format!("133;D;0;k={secret}")));
        bare.ask("", &ready);
        all.push(began.elapsed());
    }
    println!(
        "{:<34} {:>9.0} {:>9.0}",
        "blocking read, marks: to the end",
        percentile(&mut until_end, 0.5),
        percentile(&mut until_end, 0.99)
    );
    println!(
        "{:<34} {:>9.0} {:>9.0}",
        "  ... and to the next prompt",
        percentile(&mut all, 0.5),
        percentile(&mut all, 0.99)
    );
    bare.end();
}

fn floor(home: &Home) -> Bare {
    let mut bare = home.bare("/bin/bash", &["--norc"]);
    bare.ask("echo READ\"\"Y\r", "READY");
    bare
}

/// Interleaved rounds of the floor and of sessions.
async fn compare(what: &str, bare: &mut Bare, sessions: &[(&str, &Session)]) {
    let mut floor = Vec::new();
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); sessions.len()];
    for (_, session) in sessions {
        session.talk(talk("echo warm")).await.expect("a warm shell");
    }
    for round in 0..ROUNDS {
        let line = format!("echo X{round}; echo SE\"\"NT{round}\r");
        floor.push(tokio::task::block_in_place(|| bare.ask(&line, &format!("SENT{round}"))));
        for ((_, session), times) in sessions.iter().zip(&mut times) {
            let request = talk(&format!("echo X{round}"));
            let began = Instant::now();
            let answer = session.talk(request).await.expect("an answer");
            times.push(began.elapsed());
            assert_eq!((answer.output.text, answer.exit_code), (format!("X{round}"), Some(0)));
        }
    }
    let (p50, p99) = (percentile(&mut floor, 0.5), percentile(&mut floor, 0.99));
    println!("{:<34} {p50:>9.0} {p99:>9.0}", format!("{what}: blocking read"));
    for ((name, _), times) in sessions.iter().zip(&mut times) {
        let (a, b) = (percentile(times, 0.5), percentile(times, 0.99));
        println!("{:<34} {a:>9.0} {b:>9.0} {:>7.2} {:>7.2}", format!("{what}: {name}"), a / p50, b / p99);
    }
}
