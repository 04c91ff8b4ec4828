//! Waiting until what a shell printed through pipes has been passed on.
//!
//! Where the outputs of a shell go through pipes (`exec > >(tee …)`), the marks of a sentinel, which go to the terminal
//! itself, would overtake them. So the typed form pauses before it prints a mark: it starts a `sleep` with an argument of
//! its own, and that is ended here when the kernel says that the pipes are empty and their readers wait for more. Nothing
//! tells when they do, so this looks again and again while there is such a command.

use std::time::{Duration, Instant};

use super::Session;
use super::pty::{self, Passing};
use crate::ids::CommandId;

/// How often a shell is looked at for its pause, at first and at most.
const FIRST_LOOK: Duration = Duration::from_millis(3);
const LAST_LOOK: Duration = Duration::from_millis(100);
/// How often the pipes are looked at.
const NEXT_LOOK: Duration = Duration::from_millis(5);
/// How long readers that do not get on are waited for: they may never read.
const STALLED: Duration = Duration::from_secs(5);
/// How long a pipe of which nobody can tell has to pass something on.
const BLIND: Duration = Duration::from_millis(150);

impl Session {
    /// Ends the pauses of a command's typed form when the pipes of its shell have been drained, until the command ends.
    pub(super) async fn end_pauses(self, id: CommandId, shell: u32, pause: String) {
        let mut look = FIRST_LOOK;
        while self.exit().is_none() && !self.is_done(id) {
            if let Some(sleeper) = pty::child_with(shell, &["sleep", &pause]) {
                until_drained(shell).await;
                pty::terminate(sleeper);
                look = FIRST_LOOK;
            }
            tokio::time::sleep(look).await;
            look = (look * 3 / 2).min(LAST_LOOK);
        }
    }

    fn is_done(&self, id: CommandId) -> bool {
        self.shared.lock().commands.get(id).is_none_or(|command| command.end.is_some())
    }
}

/// Waits until the pipes of a shell are empty and their readers wait for more, seen twice.
async fn until_drained(shell: u32) {
    let began = Instant::now();
    let (mut last, mut since, mut was_done) = (None, began, false);
    loop {
        match pty::passing(shell) {
            Passing::Done if was_done => return,
            Passing::Done => was_done = true,
            Passing::Unknown if began.elapsed() >= BLIND => return,
            Passing::Unknown => was_done = false,
            Passing::Going(progress) => {
                was_done = false;
                if last != Some(progress) {
                    (last, since) = (Some(progress), Instant::now());
                } else if since.elapsed() >= STALLED {
                    return;
                }
            }
        }
        tokio::time::sleep(NEXT_LOOK).await;
    }
}
