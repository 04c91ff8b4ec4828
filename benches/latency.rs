//! Latency of `talk`, as a ratio to a blocking read loop on a bare PTY in the same run.

#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

mod support;

use std::time::{Duration, Instant};

use kpty::terminal::local::{Integration, Session};
use tokio::sync::oneshot;

use crate::support::{Home, percentile, runtime, talk};

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

/// Measures on an otherwise idle machine.
async fn quiet(home: &Home) {
    let bare = Floor::new(home);
    marked_floor(home);
    for (what, shell, args, integration) in [
        ("bash, marks", "/bin/bash", &[][..], Integration::Auto),
        ("sh, sentinel", "/bin/sh", &[], Integration::Off),
        ("bash, sentinel", "/bin/bash", &["--norc"], Integration::Off),
    ] {
        let session = home.session(shell, args, integration).await;
        compare(what, &bare, &session).await;
        let _ = session.kill().await;
    }
    bare.end();
}

/// Measures while other sessions print continuously.
async fn under_flood(home: &Home) {
    for floods in [1, 3] {
        let mut noise = Vec::new();
        for _ in 0..floods {
            noise.push(home.session("/bin/sh", &["-c", "yes"], Integration::Off).await);
        }
        let bare = Floor::new(home);
        let marked = home.session("/bin/bash", &[], Integration::Auto).await;
        compare(&format!("bash, marks, beside {floods} x yes"), &bare, &marked).await;
        bare.end();
        for session in noise.into_iter().chain([marked]) {
            let _ = session.kill().await;
        }
    }
}

/// Measures what the marks cost bash: the same blocking loop with the integration script.
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

/// A blocking read loop on a bare `bash`, on its own thread, so that it takes none of the sessions' threads.
struct Floor {
    questions: std::sync::mpsc::Sender<Question>,
    thread: std::thread::JoinHandle<()>,
}

/// Text to type, text to read up to, and the channel for the measured time.
type Question = (String, String, oneshot::Sender<Duration>);

impl Floor {
    fn new(home: &Home) -> Self {
        let mut bare = home.bare("/bin/bash", &["--norc"]);
        let (questions, asked) = std::sync::mpsc::channel::<Question>();
        let thread = std::thread::spawn(move || {
            bare.ask("echo READ\"\"Y\r", "READY");
            for (line, until, answer) in asked {
                answer.send(bare.ask(&line, &until)).expect("somebody waits");
            }
            bare.end();
        });
        Self { questions, thread }
    }

    async fn ask(&self, line: String, until: String) -> Duration {
        let (answer, answered) = oneshot::channel();
        self.questions.send((line, until, answer)).expect("the thread of the floor");
        answered.await.expect("the thread of the floor")
    }

    fn end(self) {
        drop(self.questions);
        self.thread.join().expect("the thread of the floor");
    }
}

/// Alternates rounds of the reference and of a session: each begins while the other's shell draws its prompt.
async fn compare(what: &str, bare: &Floor, session: &Session) {
    let (mut floor, mut times) = (Vec::new(), Vec::new());
    session.talk(talk("echo warm")).await.expect("a warm shell");
    for round in 0..ROUNDS {
        let line = format!("echo X{round}; echo SE\"\"NT{round}\r");
        floor.push(bare.ask(line, format!("SENT{round}")).await);
        let request = talk(&format!("echo X{round}"));
        let began = Instant::now();
        let answer = session.talk(request).await.expect("an answer");
        times.push(began.elapsed());
        assert_eq!((&*answer.output.text, answer.exit_code), (&*format!("X{round}"), Some(0)));
    }
    let (p50, p99) = (percentile(&mut floor, 0.5), percentile(&mut floor, 0.99));
    let (a, b) = (percentile(&mut times, 0.5), percentile(&mut times, 0.99));
    println!("{:<34} {p50:>9.0} {p99:>9.0}", "blocking read");
    println!("{what:<34} {a:>9.0} {b:>9.0} {:>7.2} {:>7.2}", a / p50, b / p99);
}
