//! Cost of many sessions: start time as a ratio to a loop that only starts shells on bare PTYs, memory of a fresh
//! session, and activity while idle.
//!
//! `KPTY_BENCH_TERM_KIB` is the size of an empty terminal of the bare engine, as reported by the emulator's `memory`
//! benchmark; without it an empty emulator of this crate is measured.

#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

mod support;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use kpty::terminal::local::{Integration, Session};
use kpty_emulator::{Emulator, Settings, Size};

use crate::support::{COLS, Home, ROWS, median, runtime, verdict};

const SESSIONS: usize = 300;
/// Number of sessions started per batch.
const BATCH: usize = 10;
const IDLE: Duration = Duration::from_secs(10);
/// Time for started shells to become idle; the threads that started them exit after ten seconds.
const SETTLE: Duration = Duration::from_secs(12);

fn main() {
    kpty::terminal::local::pty::raise_open_files_limit();
    let mut arguments = std::env::args().skip_while(|argument| argument != "--measure").skip(1);
    if let Some(kind) = arguments.next() {
        println!("{}", measure(&kind));
        return;
    }
    starts();
    memory();
    idle();
}

/// Runs this program again for one figure, without the residue of other measurements.
fn child(kind: &str) -> Vec<f64> {
    let program = std::env::current_exe().expect("the path of this program");
    let output = Command::new(program).args(["--measure", kind]).output().expect("this program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace().map(|number| number.parse().expect("a number")).collect()
}

fn measure(kind: &str) -> String {
    let numbers = match kind {
        "emulator" => vec![emulators()],
        "off" => run(resident(Integration::Off)),
        "auto" => run(resident(Integration::Auto)),
        "idle-1" => run(idling(1)),
        "idle-300" => run(idling(SESSIONS)),
        other => panic!("there is no measurement {other}"),
    };
    numbers.iter().map(f64::to_string).collect::<Vec<_>>().join(" ")
}

fn run<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> T {
    let runtime = runtime();
    runtime.block_on(async { tokio::spawn(future).await.expect("the benchmark") })
}

/// Starts shells in alternating batches of each kind; all of them live until the end.
fn starts() {
    println!("{:<30} {:>8} {:>9} {:>7}", "300 starts", "ms each", "spread %", "ratio");
    for (shell, args) in [("/bin/bash", &["--norc"] as &[&str]), ("/bin/sh", &[])] {
        run(async move {
            let home = Home::new();
            let [mut bare, mut off, mut auto] = [const { Vec::<f64>::new() }; 3];
            let (mut shells, mut sessions) = (Vec::new(), Vec::new());
            for batch in 0..=SESSIONS / BATCH {
                let began = Instant::now();
                tokio::task::block_in_place(|| shells.extend((0..BATCH).map(|_| home.bare(shell, args))));
                let first = began.elapsed();
                let second = start(&home, shell, args, Integration::Off, &mut sessions).await;
                let third = start(&home, shell, args, Integration::Auto, &mut sessions).await;
                // The first batch warms up caches.
                if batch > 0 {
                    let each = |time: Duration| time.as_secs_f64() * 1e3 / BATCH as f64;
                    bare.push(each(first));
                    off.push(each(second));
                    auto.push(each(third));
                }
            }
            let floor = show(&format!("{shell}: bare PTY"), &bare, None);
            show(&format!("{shell}: session, off"), &off, Some(floor));
            show(&format!("{shell}: session, auto"), &auto, Some(floor));
            end(sessions).await;
            shells.into_iter().for_each(support::Bare::end);
        });
    }
}

async fn start(
    home: &Home,
    shell: &str,
    args: &[&str],
    integration: Integration,
    sessions: &mut Vec<Session>,
) -> Duration {
    let began = Instant::now();
    for _ in 0..BATCH {
        sessions.push(home.session(shell, args, integration).await);
    }
    began.elapsed()
}

fn show(name: &str, times: &[f64], floor: Option<f64>) -> f64 {
    let (time, spread) = median(times);
    print!("{name:<30} {time:>8.2} {spread:>9.0}");
    match floor {
        Some(floor) => println!(" {:>7.2}   goal ≤ 1.30: {}", time / floor, verdict(time / floor <= 1.3)),
        None => println!(),
    }
    time
}

async fn sessions(home: &Home, count: usize, integration: Integration) -> Vec<Session> {
    let mut sessions = Vec::new();
    for _ in 0..count {
        sessions.push(home.session("/bin/bash", &[], integration).await);
    }
    tokio::time::sleep(SETTLE).await;
    sessions
}

async fn end(sessions: Vec<Session>) {
    let kills: Vec<_> =
        sessions.into_iter().map(|session| tokio::spawn(async move { session.kill().await.map(drop) })).collect();
    for kill in kills {
        let _ = kill.await;
    }
}

/// Measures the resident memory of fresh sessions.
fn memory() {
    println!("{:<30} {:>8} {:>7}", "memory of a fresh session", "KiB", "ratio");
    let emulator = child("emulator")[0];
    let term = bare_term();
    let (name, floor) = match term {
        Some(term) => ("bare Term", term),
        None => ("emulator, for want of a Term", emulator),
    };
    println!("{name:<30} {floor:>8.0}");
    for (name, kib) in [("emulator", emulator), ("session, off", child("off")[0]), ("session, auto", child("auto")[0])]
    {
        let ratio = kib / floor;
        println!("{name:<30} {kib:>8.0} {ratio:>7.2}   goal ≤ 2.00: {}", verdict(ratio <= 2.0));
    }
}

#[allow(clippy::disallowed_methods, reason = "a benchmark is set by its environment")]
fn bare_term() -> Option<f64> {
    std::env::var("KPTY_BENCH_TERM_KIB").ok().map(|kib| kib.trim().parse().expect("a number of KiB"))
}

fn emulators() -> f64 {
    let before = resident_kib();
    let size = Size::new(COLS, ROWS).expect("a size");
    let all: Vec<Emulator> = (0..SESSIONS).map(|_| Emulator::new(Settings { size, ..Settings::default() })).collect();
    (resident_kib() - before) / all.len() as f64
}

async fn resident(integration: Integration) -> Vec<f64> {
    let home = Home::new();
    // The runtime, the patterns and the like are allocated once.
    let first = sessions(&home, 1, integration).await;
    let before = resident_kib();
    let all = sessions(&home, SESSIONS, integration).await;
    let each = (resident_kib() - before) / SESSIONS as f64;
    end(all).await;
    end(first).await;
    vec![each]
}

/// Measures the activity of idle sessions.
fn idle() {
    println!("{:<30} {:>8} {:>9}", "idle for 10 s", "CPU ms", "switches");
    let one = child("idle-1");
    println!("{:<30} {:>8.2} {:>9.0}", "1 session", one[0], one[1]);
    let many = child("idle-300");
    println!("{:<30} {:>8.2} {:>9.0}", "300 sessions", many[0], many[1]);
    let (cpu, switches) = (many[0], many[1] - one[1]);
    println!("{:<30} {cpu:>8.2}   goal ≤ 10: {}", "  CPU of 300, ms", verdict(cpu <= 10.0));
    println!("{:<30} {switches:>+8.0}   goal ≤ +10: {}", "  switches more than 1", verdict(switches <= 10.0));
}

async fn idling(count: usize) -> Vec<f64> {
    let home = Home::new();
    let all = sessions(&home, count, Integration::Auto).await;
    let (cpu, switches) = (cpu_ms(), voluntary_switches());
    tokio::time::sleep(IDLE).await;
    let answer = vec![cpu_ms() - cpu, voluntary_switches() - switches];
    end(all).await;
    answer
}

fn cpu_ms() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// Sum over all threads.
fn voluntary_switches() -> f64 {
    let threads = Path::new("/proc/self/task").read_dir().expect("a Linux system");
    let of = |thread: &Path| -> f64 {
        let status = std::fs::read_to_string(thread.join("status")).unwrap_or_default();
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or_default()
    };
    threads.flatten().map(|thread| of(&thread.path())).sum()
}

fn resident_kib() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("a Linux system");
    let pages: f64 = statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).expect("resident pages");
    pages * rustix::param::page_size() as f64 / 1024.0
}
