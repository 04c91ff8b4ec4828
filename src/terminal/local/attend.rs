//! Commands that go on after their caller left or ran out of time.
//!
//! Two things must not wait for the next caller: a command that its shell finds incomplete would swallow what is typed
//! next, and one whose line the shell dropped has an end that only a question can tell.

use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::Session;
use super::dropped::{DroppedLine, Looks};
use super::talk::State;
use crate::ids::CommandId;
use crate::runtime::sleep_until;
use crate::terminal::commands::Way;

/// How long cancelling a command may take when nobody waits for it.
const CANCELLING: Duration = Duration::from_secs(4);

/// Whether the session's turn is the caller's already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Held,
    Free,
}

/// Attends a command whose caller went away or ran out of time. One task at most per command, until that ends.
pub(super) struct Unattended {
    session: Option<Session>,
    id: CommandId,
}

impl Unattended {
    pub(super) fn new(session: &Session, id: CommandId) -> Self {
        Self { session: Some(session.clone()), id }
    }

    /// The command that is attended.
    pub(super) fn command(&self) -> CommandId {
        self.id
    }

    /// The caller has seen what came of the command.
    pub(super) fn disarm(mut self) {
        self.session = None;
    }
}

impl Drop for Unattended {
    fn drop(&mut self) {
        let id = self.id;
        if let (Some(session), Ok(runtime), false) =
            (self.session.take(), Handle::try_current(), std::thread::panicking())
        {
            runtime.spawn(async move { session.attend(id, Turn::Free).await });
        }
    }
}

impl Session {
    /// Waits for the end of a command; cancels it should its shell find it incomplete, and asks for its status should the
    /// shell drop its line.
    pub(super) async fn attend(&self, id: CommandId, turn: Turn) {
        let mut news = self.shared.news.subscribe();
        let mut progress = self.shared.progress.subscribe();
        let is_typed = {
            let terminal = self.shared.lock();
            terminal.commands.get(id).is_some_and(|command| matches!(command.way, Way::Sentinel { .. }))
        };
        let mut looks = Looks::default();
        loop {
            match self.state_of(id) {
                State::Ended => return,
                State::Incomplete if self.waits_for_rest(id, None).await => {
                    self.cancel_incomplete(id, Instant::now() + CANCELLING, &mut news).await;
                    return;
                }
                State::Incomplete => self.forget_incomplete(id),
                State::Running => {}
            }
            let mut next_look = None;
            match if is_typed { self.dropped_line(id) } else { DroppedLine::No } {
                DroppedLine::No => {}
                DroppedLine::Perhaps => next_look = looks.next(),
                DroppedLine::Yes => {
                    self.end_dropped_in_turn(id, turn).await;
                    continue;
                }
            }
            tokio::select! {
                _ = news.changed() => {}
                _ = progress.changed(), if is_typed => looks.reset(),
                () = sleep_until(next_look.unwrap_or_else(Instant::now)), if next_look.is_some() => {}
            }
        }
    }

    async fn end_dropped_in_turn(&self, id: CommandId, turn: Turn) {
        let _turn = match turn {
            Turn::Held => None,
            Turn::Free => Some(self.shared.turn.lock().await),
        };
        // Whoever had the turn before may have run something else.
        if self.dropped_line(id) == DroppedLine::Yes {
            self.end_dropped(id).await;
        }
    }
}
