//! What all actions that type have in common: the guard's question, and the pause before Enter.
//!
//! Every way to type comes through here: lines, keys, pastes, raw writes, in sessions of this server and of desktops.
//! What stands in a session's line editor is remembered, so that a command typed in pieces is judged when Enter goes out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::params::Params;
use crate::error::{Blocked, Error, Result};
use crate::guard::pending::{PendingLine, edited};
use crate::guard::{Policy, Redactor, whole_words};
use crate::ids::SessionId;
use crate::session::source::Source;

/// Programs with a composer take an Enter that comes in a burst for a pasted newline.
const ENTER_DELAY: Duration = Duration::from_millis(150);
/// The longest pause that can be asked for.
const LONGEST_ENTER_DELAY: Duration = Duration::from_secs(5);
/// Lines that are remembered; beyond that the lines of all sessions are forgotten, and each call is judged alone.
const MOST_LINES: usize = 4_096;
/// Characters of a refused command that its report repeats.
const PREVIEW_CHARS: usize = 100;

/// Asks the guard about everything that is typed.
#[derive(Clone)]
pub(super) struct Typist {
    policy: Policy,
    redactor: Arc<Redactor>,
    lines: Arc<Mutex<HashMap<SessionId, PendingLine>>>,
}

impl Typist {
    pub(super) fn new(policy: Policy, redactor: Arc<Redactor>) -> Self {
        Self { policy, redactor, lines: Arc::default() }
    }

    /// Refuses a text that has a dangerous command, as it would stand in the line before Enter.
    pub(super) fn check(&self, text: &str) -> Result<()> {
        self.policy.judge(&edited(text)).map_err(|refusal| {
            Error::Blocked(Box::new(Blocked {
                rule: refusal.rule,
                category: refusal.category,
                reason: refusal.why,
                instead: refusal.instead,
                words: refusal.words,
                // Masked before it is cut, and cut between words: half a token is none to a rule.
                preview: whole_words(&self.redactor.redact(text), PREVIEW_CHARS).to_owned(),
            }))
        })
    }

    /// Refuses a line to which Enter will be added, alone and behind what stands in the line of the session already.
    pub(super) fn check_line(&self, id: &SessionId, line: &str) -> Result<()> {
        self.check(line)?;
        let mut pending = self.lines().get(id).cloned().unwrap_or_default();
        let entered = pending.type_bytes(format!("{line}\r").as_bytes());
        // Usually nothing stood there, and it is the line that was judged just now.
        entered.iter().filter(|whole| *whole != line).try_for_each(|whole| self.check(whole))?;
        self.keep(id, pending);
        Ok(())
    }

    /// Refuses keys that send off a dangerous line, or that leave one standing which this call typed.
    pub(super) fn check_bytes(&self, id: &SessionId, bytes: &[u8]) -> Result<()> {
        let mut pending = self.lines().get(id).cloned().unwrap_or_default();
        let entered = pending.type_bytes(bytes);
        entered.iter().try_for_each(|line| self.check(line))?;
        // Several lines of one call may be one command; so may be what a person types key by key, and there `rm -rf /`
        // is on the way to `rm -rf /tmp/x`.
        if bytes.len() > 1 {
            if entered.len() > 1 {
                self.check(&entered.join("\n"))?;
            }
            self.check(&pending.text())?;
        }
        self.keep(id, pending);
        Ok(())
    }

    fn keep(&self, id: &SessionId, pending: PendingLine) {
        let mut lines = self.lines();
        if lines.len() >= MOST_LINES && !lines.contains_key(id) {
            lines.clear();
        }
        lines.insert(id.clone(), pending);
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<SessionId, PendingLine>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pause before Enter that was asked for.
pub(super) fn enter_delay(params: &mut Params<'_>) -> Result<Option<Duration>> {
    match params.value("enter_delay_ms") {
        None => Ok(None),
        Some(_) => params.millis("enter_delay_ms", ENTER_DELAY, LONGEST_ENTER_DELAY).map(Some),
    }
}

/// Waits between text and Enter: as long as asked for, else only where a program other than a shell reads key by key.
pub(super) async fn pause_before_enter(session: &dyn Source, asked: Option<Duration>) {
    let pause = match asked {
        Some(pause) => pause,
        None if session.reads_keys() => ENTER_DELAY,
        None => return,
    };
    tokio::time::sleep(pause).await;
}
