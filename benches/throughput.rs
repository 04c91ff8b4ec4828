//! Output throughput of a session, as a ratio to a raw drain of a bare PTY and to a detached tmux in the same run; and
//! the cost of reading the screen meanwhile.

#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kpty::terminal::local::{Integration, Session};
use kpty::terminal::wait::{Ending, WaitRequest};
use kpty_emulator::{Mode, Request};

use crate::support::workload::agent_session;
use crate::support::{COLS, Home, ROWS, median, percentile, rounds, runtime, verdict};

const CAT_BYTES: usize = 40_000_000;
const YES_BYTES: usize = 8_000_000;
/// Maximum spread of a reference, in percent, for its run to count.
const MAX_SPREAD: f64 = 25.0;
/// Pause between two reads of the screen.
const PAUSE: Duration = Duration::from_millis(1);

/// A program that prints.
struct Flood {
    name: &'static str,
    program: &'static str,
    args: Vec<String>,
    bytes: usize,
    lines: u64,
}

fn main() {
    let runtime = runtime();
    let home = Home::new();
    let text = agent_session(CAT_BYTES);
    let file = home.path().join("text");
    std::fs::write(&file, &text).expect("room for a file");
    let path = file.to_str().expect("a plain path").to_owned();
    let lines = memchr::memchr_iter(b'\n', &text).count() as u64;
    let cat = Flood { name: "cat", program: "/bin/cat", args: vec![path], bytes: text.len(), lines };
    let pipe = format!("yes | head -c {YES_BYTES}");
    let args = vec!["-c".to_owned(), pipe];
    let yes = Flood { name: "yes", program: "/bin/sh", args, bytes: YES_BYTES, lines: YES_BYTES as u64 / 2 };
    runtime.block_on(async {
        let all = async move {
            flows(&home, &cat, &yes).await;
            reads(&home, &cat).await;
        };
        tokio::spawn(all).await.expect("the benchmark");
    });
}

/// Alternates rounds of the raw drain, a session and tmux.
async fn flows(home: &Home, cat: &Flood, yes: &Flood) {
    let has_tmux = Command::new("tmux").arg("-V").stdout(Stdio::null()).status().is_ok_and(|status| status.success());
    let [mut raw_cat, mut our_cat, mut tmux_cat, mut raw_yes, mut our_yes] = [const { Vec::<f64>::new() }; 5];
    for round in 0..=rounds(5) {
        let times = [
            tokio::task::block_in_place(|| cat.raw(home)),
            cat.ours(home).await,
            if has_tmux { tokio::task::block_in_place(|| tmux(&cat.args[0], round)) } else { Duration::ZERO },
            tokio::task::block_in_place(|| yes.raw(home)),
            yes.ours(home).await,
        ];
        // The first round warms up caches.
        if round > 0 {
            let all = [&mut raw_cat, &mut our_cat, &mut tmux_cat, &mut raw_yes, &mut our_yes];
            all.into_iter().zip(times).for_each(|(all, time)| all.push(time.as_secs_f64()));
        }
    }
    println!("{:<26} {:>7} {:>9} {:>7}", "flow", "MB/s", "spread %", "ratio");
    let show = |name: &str, flood: &Flood, times: &[f64]| {
        let (time, spread) = median(times);
        println!("{name:<26} {:>7.1} {spread:>9.0}", flood.bytes as f64 / 1e6 / time);
    };
    show("cat: raw drain", cat, &raw_cat);
    show("cat: session", cat, &our_cat);
    compare("  of the raw drain", &raw_cat, &our_cat, 0.60);
    if has_tmux {
        show("cat: tmux, detached", cat, &tmux_cat);
        compare("  session of tmux", &tmux_cat, &our_cat, 1.2);
    } else {
        println!("cat: tmux is not installed, not compared");
    }
    show("yes: raw drain", yes, &raw_yes);
    show("yes: session", yes, &our_yes);
    compare("  of the raw drain", &raw_yes, &our_yes, 0.85);
}

/// Compares the median ratio with its goal. A reference with a wide spread shows load of other processes.
fn compare(name: &str, reference: &[f64], ours: &[f64], goal: f64) {
    let ratios: Vec<f64> = reference.iter().zip(ours).map(|(reference, ours)| reference / ours).collect();
    let (ratio, spread) = median(&ratios);
    println!("{name:<26} {:>7} {spread:>9.0} {ratio:>7.2}   goal ≥ {goal:.2}: {}", "", verdict(ratio >= goal));
    let (_, spread) = median(reference);
    if spread > MAX_SPREAD {
        println!("  NOT VALID: the reference spreads over {spread:.0} %, more than {MAX_SPREAD:.0}");
    }
}

impl Flood {
    fn args(&self) -> Vec<&str> {
        self.args.iter().map(String::as_str).collect()
    }

    /// A blocking drain of a bare PTY.
    fn raw(&self, home: &Home) -> Duration {
        let began = Instant::now();
        let mut bare = home.bare(self.program, &self.args());
        let count = bare.drain();
        bare.wait();
        let time = began.elapsed();
        assert_eq!(count as u64, self.bytes as u64 + self.lines, "every newline has become two bytes");
        time
    }

    async fn ours(&self, home: &Home) -> Duration {
        let began = Instant::now();
        let session = self.session(home).await;
        wait_for_end(&session).await;
        let time = began.elapsed();
        self.check(&session);
        time
    }

    async fn session(&self, home: &Home) -> Session {
        home.session(self.program, &self.args(), Integration::Off).await
    }

    /// The session has received everything.
    fn check(&self, session: &Session) {
        let end = session.read(&Request { max_lines: Some(0), ..Request::new(Mode::Tail) });
        assert_eq!(end.next_line, self.lines, "lines of {}", self.name);
    }
}

async fn wait_for_end(session: &Session) {
    let request = WaitRequest { exit: true, timeout: Duration::from_secs(300), ..WaitRequest::default() };
    let answer = session.wait(&request).await.expect("an answer");
    assert!(matches!(answer.ending, Ending::Exit(_)), "{:?}", answer.ending);
}

/// Measures a private tmux server without an attached client.
fn tmux(path: &str, round: usize) -> Duration {
    let socket = format!("kpty-bench-{}-{round}", std::process::id());
    let run = |args: &[&str]| {
        let mut command = Command::new("tmux");
        command.env_remove("TMUX").args(["-L", &socket, "-f", "/dev/null"]).args(args).stdin(Stdio::null());
        command.status().expect("tmux starts")
    };
    let (cols, rows) = (COLS.to_string(), ROWS.to_string());
    // The pane stays until the server is stopped, so that a late waiter still finds it.
    let line = format!("cat {path}; tmux -L {socket} wait-for -S done; sleep 60");
    let began = Instant::now();
    assert!(run(&["new-session", "-d", "-x", &cols, "-y", &rows, &line]).success(), "tmux has no session");
    assert!(run(&["wait-for", "done"]).success(), "tmux did not wait");
    let time = began.elapsed();
    run(&["kill-server"]);
    let _ = std::fs::remove_file(Path::new("/tmp").join(format!("tmux-{}", uid())).join(socket));
    time
}

fn uid() -> u32 {
    rustix::process::getuid().as_raw()
}

/// Reads the screen while `cat` runs, and afterwards.
#[allow(clippy::disallowed_methods, reason = "reads come at a pace of their own")]
async fn reads(home: &Home, cat: &Flood) {
    let (mut busy, mut rest) = (Vec::new(), Vec::new());
    for _ in 0..rounds(5) {
        let session = cat.session(home).await;
        let is_over = AtomicBool::new(false);
        let read = || {
            let began = Instant::now();
            let answer = session.read(&Request::new(Mode::Viewport));
            assert!(answer.text.len() < 1 << 20);
            let time = began.elapsed();
            std::thread::sleep(PAUSE);
            time
        };
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut times = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    times.push(read());
                }
                times
            });
            tokio::task::block_in_place(|| {
                tokio::runtime::Handle::current().block_on(wait_for_end(&session));
            });
            is_over.store(true, Ordering::Relaxed);
            busy.extend(reader.join().expect("a reader"));
        });
        rest.extend((0..500).map(|_| tokio::task::block_in_place(read)));
        cat.check(&session);
    }
    println!("{:<26} {:>7} {:>9} {:>7} {:>7}", "viewport read, µs", "p50", "p99", "max", "reads");
    let mut p50s = [0.0; 2];
    for ((name, times), p50) in [("at rest", &mut rest), ("while cat runs", &mut busy)].into_iter().zip(&mut p50s) {
        *p50 = percentile(times, 0.5);
        let (p99, max) = (percentile(times, 0.99), percentile(times, 1.0));
        println!("{name:<26} {p50:>7.0} {p99:>9.0} {max:>7.0} {:>7}", times.len());
    }
    let (ratio, max) = (p50s[1] / p50s[0], percentile(&mut busy, 1.0) / 1e3);
    println!("{:<26} {ratio:>7.2}   goal ≤ 5: {}", "  p50 of that at rest", verdict(ratio <= 5.0));
    println!("{:<26} {max:>7.1}   goal ≤ 20: {}", "  longest, ms", verdict(max <= 20.0));
}
