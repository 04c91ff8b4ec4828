//! Shared parts of the benchmarks: sessions with a private home, a bare PTY, and statistics.

#![allow(dead_code, reason = "each benchmark uses its part")]

pub(crate) mod workload;

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use kpty::model::Owner;
use kpty::terminal::local::integration::{IntegratedShell, prepare};
use kpty::terminal::local::{Integration, NewSession, Session};
use kpty::terminal::talk::{OnTimeout, TalkRequest};
use kpty_emulator::Size;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use tempfile::TempDir;

/// Window size of every session.
pub(crate) const COLS: u16 = 120;
pub(crate) const ROWS: u16 = 30;

/// A home without start-up files.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        self.0.path()
    }

    pub(crate) fn environment(&self) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
        let mut all: Vec<_> = std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "LANG").collect();
        all.push(("HOME".into(), self.path().into()));
        all
    }

    /// Starts a session.
    pub(crate) async fn session(&self, shell: &str, args: &[&str], integration: Integration) -> Session {
        let new = NewSession {
            shell: shell.into(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            cwd: self.path().to_owned(),
            size: Size::new(COLS, ROWS).expect("a size"),
            env: Vec::new(),
            pager: false,
            owner: Owner::default(),
            integration,
            inherited: self.environment(),
            ring_bytes: 102_400,
            secrets: kpty::model::Secrets::default(),
            redactor: kpty_guard::Redactor::default(),
        };
        Session::spawn(new).await.expect("a session")
    }

    /// Starts bash with the integration script on a bare PTY; returns the secret of its marks too.
    pub(crate) fn bare_marked(&self) -> (Bare, String) {
        let secret = "0123456789abcdef0123456789abcdef".to_owned();
        let launch = prepare(IntegratedShell::Bash, &secret, self.path(), &[], &|_| None).expect("start-up files");
        for (name, content) in &launch.files {
            std::fs::write(self.path().join(name), content).expect("a file");
        }
        let args: Vec<&str> = launch.args.iter().map(String::as_str).collect();
        (self.bare("/bin/bash", &args), secret)
    }

    /// Starts a program on a bare PTY.
    pub(crate) fn bare(&self, program: &str, args: &[&str]) -> Bare {
        let size = PtySize { rows: ROWS, cols: COLS, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a terminal");
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.cwd(self.path());
        command.env_clear();
        for (name, value) in self.environment() {
            command.env(name, value);
        }
        command.env("TERM", "xterm-256color");
        let child = pair.slave.spawn_command(command).expect("a child");
        let reader = pair.master.try_clone_reader().expect("a reader");
        let writer = pair.master.take_writer().expect("a writer");
        Bare { master: pair.master, child, reader, writer, seen: Vec::new() }
    }
}

/// A bare PTY, read by a blocking loop.
pub(crate) struct Bare {
    pub(crate) master: Box<dyn MasterPty + Send>,
    pub(crate) child: Box<dyn Child + Send + Sync>,
    pub(crate) reader: Box<dyn Read + Send>,
    pub(crate) writer: Box<dyn Write + Send>,
    /// Bytes read but not consumed.
    seen: Vec<u8>,
}

impl Bare {
    /// Types a line and reads until a text appears.
    pub(crate) fn ask(&mut self, line: &str, until: &str) -> Duration {
        let began = Instant::now();
        if !line.is_empty() {
            self.writer.write_all(line.as_bytes()).expect("the shell reads");
            self.writer.flush().expect("the shell reads");
        }
        let mut buffer = [0; 4096];
        loop {
            if let Some(at) = memchr::memmem::find(&self.seen, until.as_bytes()) {
                self.seen.drain(..at + until.len());
                return began.elapsed();
            }
            let count = self.reader.read(&mut buffer).expect("the shell writes");
            assert!(count > 0, "the shell has ended");
            self.seen.extend_from_slice(&buffer[..count]);
        }
    }

    /// Reads and discards everything up to the end.
    pub(crate) fn drain(&mut self) -> usize {
        let (mut total, mut buffer) = (0, vec![0; 64 << 10]);
        while let Ok(count @ 1..) = self.reader.read(&mut buffer) {
            total += count;
        }
        total
    }

    /// Waits until the program ends.
    pub(crate) fn wait(mut self) {
        self.child.wait().expect("a child of ours");
    }

    pub(crate) fn end(mut self) {
        let _ = self.child.kill();
        self.wait();
    }
}

/// A command with default settings.
pub(crate) fn talk(command: &str) -> TalkRequest {
    TalkRequest {
        until_asks: false,
        command: command.into(),
        sentinel: None,
        timeout: Duration::from_secs(60),
        max_chars: 60_000,
        on_timeout: OnTimeout::Leave,
        all_raw: false,
    }
}

/// Returns a percentile of the sorted times, in µs.
pub(crate) fn percentile(times: &mut [Duration], share: f64) -> f64 {
    times.sort_unstable();
    let index = ((times.len() - 1) as f64 * share) as usize;
    times[index].as_secs_f64() * 1e6
}

/// Returns the median, and the spread in percent of it.
pub(crate) fn median(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (middle, first, last) = (sorted[sorted.len() / 2], sorted[0], sorted[sorted.len() - 1]);
    (middle, (last - first) / middle * 100.0)
}

/// Number of measurements.
#[allow(clippy::disallowed_methods, reason = "a benchmark is set by its environment")]
pub(crate) fn rounds(default: usize) -> usize {
    std::env::var("KPTY_BENCH_ROUNDS").map_or(default, |rounds| rounds.parse().expect("a number of rounds"))
}

/// Returns "met" or "MISSED".
pub(crate) fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    kpty::runtime::runtime().expect("a runtime")
}
