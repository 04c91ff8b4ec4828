//! Live sessions under pressure: many commands, many sessions, many ends, with real shells. `KPTY_SOAK` makes it many more.

mod child;
mod delta;
mod idle;
pub(crate) mod kill;
mod many;
mod memory;
mod promise;
pub(crate) mod queries;
mod random;
mod slices;
mod turns;
mod writes;

use std::time::Duration;

use kpty::terminal::local::{Integration, Session};
use kpty::terminal::talk::{TalkRequest, TalkResult};
use kpty_emulator::Size;

use crate::talk::{Bench, request};

/// Timeout that only a failure reaches.
const PATIENCE: Duration = Duration::from_secs(120);

/// A number of repetitions: `brief` in a test, `long` in `scripts/soak`.
#[expect(clippy::disallowed_methods, reason = "a setting of the tests, not of the program")]
pub(crate) fn amount(brief: usize, long: usize) -> usize {
    if std::env::var_os("KPTY_SOAK").is_some() { long } else { brief }
}

/// Numbers that look random and are the same in every run.
pub(crate) struct Seeded(u64);

impl Seeded {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// A session of 80 × 24 with a home of its own.
async fn session(bench: &Bench, shell: &str, integration: Integration) -> Session {
    let size = Size::new(80, 24).expect("a size");
    Session::spawn(bench.new_session(shell, size, integration)).await.expect("the shell starts")
}

/// A command that must be answered.
async fn ask(session: &Session, command: &str) -> TalkResult {
    let asked = TalkRequest { timeout: PATIENCE, ..request(command) };
    session.talk(asked).await.unwrap_or_else(|error| panic!("{command:?}: {error:?}"))
}

/// Polls a condition for which there is no event.
async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let look = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(30), look).await.is_ok(), "{what} did not come");
}
