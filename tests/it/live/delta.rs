//! A reader who follows by deltas holds every line exactly once, whatever the pauses, sizes and overwritten lines.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use kpty::masked::Page;
use kpty::terminal::local::{Integration, NewSession, Session};
use kpty_emulator::{MarkerId, Mode, Request, Size};

use super::{PATIENCE, Seeded, amount};
use crate::talk::Bench;

const LAST: &str = "the last line";

/// A script that prints in bursts with pauses, and the lines that it leaves.
struct Program {
    script: String,
    lines: Vec<String>,
}

impl Program {
    fn new(random: &mut Seeded, has_bars: bool) -> Self {
        let mut program = Self { script: "stty -echo\n".to_owned(), lines: Vec::new() };
        let out = &mut program.script;
        for _ in 0..120 {
            for _ in 0..random.below(12) {
                let number = program.lines.len();
                let line = match random.below(if has_bars { 5 } else { 3 }) {
                    0 => format!("{number}:{}", "wide-".repeat(30)),
                    1 | 2 => format!("{number}: plain"),
                    _ => {
                        let _ = writeln!(out, "for p in 10 40 70; do printf '{number}: %s%%\\r' $p; sleep 0.001; done");
                        format!("{number}: done")
                    }
                };
                let _ = match random.below(4) {
                    // In two writes, so that a reader may see half a line.
                    0 => writeln!(out, "printf '{}'; sleep 0.002; echo '{}'", &line[..2], &line[2..]),
                    _ => writeln!(out, "echo '{line}'"),
                };
                program.lines.push(line);
            }
            let _ = writeln!(out, "sleep 0.00{}", random.below(10));
        }
        let _ = writeln!(out, "echo '{LAST}'; read -r line");
        program.lines.push(LAST.to_owned());
        program
    }

    async fn start(&self, bench: &Bench, name: &str) -> Session {
        let script = bench.home.file(name, &self.script);
        let new = bench.new_session("/bin/sh", Size::new(80, 24).expect("a size"), Integration::Off);
        let args = vec![script.to_str().expect("UTF-8").to_owned()];
        Session::spawn(NewSession { args, ..new }).await.expect("the script starts")
    }
}

/// A reader that reads occasionally and keeps lines by their numbers.
struct Reader {
    random: Seeded,
    marker: Option<MarkerId>,
    lines: BTreeMap<u64, String>,
    /// Lines that were sent again although they had not changed.
    repeated: usize,
    max_lines: Option<usize>,
}

impl Reader {
    fn new(seed: u64, max_lines: Option<usize>) -> Self {
        Self { random: Seeded(seed), marker: None, lines: BTreeMap::new(), repeated: 0, max_lines }
    }

    fn read(&mut self, session: &Session) {
        let mode = Mode::Delta { since: self.marker };
        let answer = session.read(&Request { max_lines: self.max_lines, ..Request::new(mode) });
        let delta = answer.delta.expect("a delta");
        if self.marker.is_some() {
            assert!(!delta.marker_disposed && delta.missed_lines == Some(0), "{delta:?}");
        }
        if answer.dropped_lines > 0 || self.marker.is_none() {
            // Nothing is lost silently: the numbers say what to ask for. The first delta is the tail.
            let from = self.lines.last_key_value().map_or(answer.oldest_line, |(number, _)| *number);
            let range = Mode::Range { from, until: Some(answer.first_line) };
            self.apply(&session.read(&Request::new(range)), false);
        }
        self.apply(&answer, true);
        self.marker = Some(delta.marker);
    }

    fn apply(&mut self, answer: &Page, counts: bool) {
        for (&number, line) in answer.line_numbers.iter().zip(answer.lines()) {
            let before = self.lines.insert(number, line.to_owned());
            self.repeated += usize::from(counts && before.as_deref() == Some(line));
        }
        self.lines.retain(|&number, _| number < answer.next_line && number >= answer.oldest_line);
    }

    fn has_all(&self) -> bool {
        self.lines.values().any(|line| line == LAST)
    }

    /// Reads with pauses of its own until the program has said everything.
    async fn follow(mut self, session: Session, resizes: bool) -> Self {
        while !self.has_all() {
            self.read(&session);
            // The pauses are the case, nothing waits for them.
            tokio::time::sleep(Duration::from_millis(self.random.below(30))).await;
            if resizes && self.random.below(4) == 0 {
                let (cols, rows) = (20 + self.random.below(120), 4 + self.random.below(40));
                session.resize(Size::new(cols as u16, rows as u16).expect("a size")).expect("it is resized");
            }
        }
        self.read(&session);
        self
    }
}

async fn check(seed: u64, has_bars: bool, resizes: bool) {
    let bench = Bench::new();
    let program = Program::new(&mut Seeded(seed), has_bars);
    let session = program.start(&bench, "program.sh").await;
    let readers = [Reader::new(seed + 1, None), Reader::new(seed + 2, Some(5))];
    let [whole, capped] = readers.map(|reader| {
        let resizes = resizes && reader.max_lines.is_none();
        tokio::time::timeout(PATIENCE, tokio::spawn(reader.follow(session.clone(), resizes)))
    });
    for reader in [whole.await, capped.await] {
        let reader = reader.expect("in time").expect("no panic");
        let numbers: Vec<u64> = reader.lines.keys().copied().collect();
        let expected: Vec<u64> = (0..program.lines.len() as u64).collect();
        assert_eq!(reader.lines.into_values().collect::<Vec<_>>(), program.lines, "seed {seed}");
        assert_eq!(numbers, expected, "seed {seed}");
        assert!(resizes || reader.repeated == 0, "seed {seed}: {} lines were told twice", reader.repeated);
    }
    let full = session.read(&Request::new(Mode::Full));
    assert_eq!(full.lines().collect::<Vec<_>>(), program.lines);
    session.kill().await.expect("it dies");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_lines_come_exactly_once() {
    for seed in 0..amount(2, 50) as u64 {
        check(1_000 + seed, false, false).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_bars_come_as_what_they_end_in() {
    for seed in 0..amount(2, 50) as u64 {
        check(2_000 + seed, true, false).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_survive_a_window_that_changes() {
    for seed in 0..amount(2, 50) as u64 {
        check(3_000 + seed, true, true).await;
    }
}
