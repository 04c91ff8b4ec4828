//! One stream played to a session of a running server, and what that costs the server and whoever asks it meanwhile.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::streams::{END, Stream};
use crate::server::Server;

/// Only a failure takes so long.
const PATIENCE: Duration = Duration::from_secs(240);
/// The pause between two questions to the server.
const PAUSE: Duration = Duration::from_millis(20);
/// How long memory may take to go back to the system.
const SETTLE: Duration = Duration::from_secs(5);
/// Lines that fill the history before a stream comes.
const WARM_LINES: usize = 12_000;

/// What the program does whose output the stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// It reads nothing that the terminal answers.
    Deaf,
    /// It reads all answers and keeps them in a file.
    Reading,
}

/// What was measured.
#[derive(Debug)]
pub(super) struct Played {
    pub(super) name: String,
    pub(super) bytes: usize,
    pub(super) cpu: Duration,
    /// How long `term_read` of the session took.
    pub(super) reads: Vec<Duration>,
    /// How long an action on another session took, and `/health`.
    pub(super) others: Vec<Duration>,
    pub(super) peak_kib: u64,
    pub(super) kept_kib: u64,
    /// What the terminal answered to a program that reads.
    pub(super) replies: Vec<u8>,
}

impl Played {
    pub(super) fn cpu_per_megabyte(&self) -> f64 {
        self.cpu.as_secs_f64() / (self.bytes as f64 / 1e6)
    }
}

/// The slowest but one in a hundred.
pub(super) fn p99(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len().saturating_sub(1) * 99 / 100).copied().unwrap_or_default()
}

/// Plays a stream to a new server while two clients keep asking.
pub(super) fn play(stream: &Stream, size: usize, program: Program) -> Played {
    let server = &Server::start();
    let (other, _) = server.create();
    server.done("talk", json!({ "session_id": other, "command": "echo here" }));
    let folder = server.state.path();
    let bytes = stream.bytes(size);
    fs::write(folder.join("stream"), &bytes).expect("a writable folder");
    fs::write(folder.join("end"), format!("{END}\r\nit is over\r\n")).expect("a writable folder");
    fs::write(folder.join("warm"), format!("{:079}\n", 7).repeat(WARM_LINES)).expect("a writable folder");
    let session = start(server, folder, program);
    let before = Process::of(server.pid());
    before.forget_peak();
    let is_over = AtomicBool::new(false);
    let (reads, others) = std::thread::scope(|scope| {
        let reads = scope.spawn(|| asked_until(&is_over, |_| drop(screen(server, &session))));
        let others = scope.spawn(|| {
            asked_until(&is_over, |round| match round % 2 {
                0 => drop(screen(server, &other)),
                _ => assert_eq!(server.get("/health").status, 200),
            })
        });
        server.done("send_keys", json!({ "session_id": session, "keys": "Enter" }));
        let written = until(PATIENCE, || folder.join("over").exists());
        let shown = until(PATIENCE, || screen(server, &session).contains("it is over"));
        is_over.store(true, Ordering::Relaxed);
        assert!(written && shown, "{}: {}", stream.name, screen(server, &session));
        (reads.join().expect("it reads"), others.join().expect("it asks"))
    });
    let after = Process::of(server.pid());
    let peak_kib = after.peak_kib.saturating_sub(before.resident_kib);
    let kept = || Process::of(server.pid()).resident_kib.saturating_sub(before.resident_kib);
    until(SETTLE, || kept() <= super::KEPT_KIB);
    let kept_kib = kept();
    let replies = fs::read(folder.join("replies")).unwrap_or_default();
    let (name, cpu) = (stream.name.to_owned(), after.cpu - before.cpu);
    Played { name, bytes: bytes.len(), cpu, reads, others, peak_kib, kept_kib, replies }
}

/// Starts the program; it waits for Enter behind a history that is full.
fn start(server: &Server, folder: &Path, program: Program) -> String {
    let reads = match program {
        Program::Deaf => "",
        Program::Reading => "stty -icanon; cat < /dev/tty > replies &",
    };
    // Without echo: answers that nobody reads would be shown behind the end.
    let script = format!("stty -echo; cat warm; echo ready; read go; {reads} cat stream end; : > over; sleep 1000");
    let made = server
        .done("create", json!({ "shell": "/bin/sh", "args": ["-c", script], "cwd": folder, "cols": 80, "rows": 24 }));
    let id = made["session_id"].as_str().expect("an id").to_owned();
    server.done("wait", json!({ "session_id": id, "regex": "^ready", "timeout_ms": 45_000 }));
    id
}

pub(super) fn screen(server: &Server, id: &str) -> String {
    let read = server.done("term_read", json!({ "session_id": id, "mode": "viewport" }));
    let Value::String(text) = &read["text"] else { panic!("no text: {read}") };
    text.clone()
}

/// Asks again and again, with pauses. Returns how long each answer took.
#[expect(clippy::disallowed_methods, reason = "two questions of a client have a pause between them")]
fn asked_until(is_over: &AtomicBool, mut ask: impl FnMut(usize)) -> Vec<Duration> {
    let mut took = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let began = Instant::now();
        ask(took.len());
        took.push(began.elapsed());
        std::thread::sleep(PAUSE);
    }
    took
}

/// Waits for what no event tells, for so long at most.
#[expect(clippy::disallowed_methods, reason = "no event tells of a file or of the size of another process")]
fn until(longest: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    loop {
        if is_so() {
            return true;
        }
        if began.elapsed() >= longest {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What a process has used.
struct Process {
    pid: u32,
    cpu: Duration,
    resident_kib: u64,
    peak_kib: u64,
}

impl Process {
    fn of(pid: u32) -> Self {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process runs");
        let fields: Vec<_> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
        let ticks = |index: usize| fields[index].parse::<u64>().expect("a number");
        let cpu = Duration::from_secs(ticks(11) + ticks(12)) / rustix::param::clock_ticks_per_second() as u32;
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a size");
            line.split_whitespace().next().and_then(|size| size.parse().ok()).expect("a number")
        };
        Self { pid, cpu, resident_kib: kib("VmRSS:"), peak_kib: kib("VmHWM:") }
    }

    /// From now on the peak is what comes.
    fn forget_peak(&self) {
        fs::write(format!("/proc/{}/clear_refs", self.pid), "5").expect("a process of ours");
    }
}
