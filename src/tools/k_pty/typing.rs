//! What all actions that type have in common: the command policy, and the pause before Enter.
//!
//! Every way to type comes through here: lines, keys, pastes, raw writes, in sessions of this server and of desktops.
//! What stands in a session's line editor is remembered with the session, so that a command typed in pieces is judged
//! when Enter goes out. Whoever types takes the session's input turn first, and keeps it from the question to the last
//! byte: nobody else types in between.
//!
//! Keys tell what stands in a line only as far as [`PendingLine`] knows them. So where a shell reads, the line is also
//! looked at on the screen before Enter goes out, and judged there when it is not the one that was followed. Where
//! neither tells, Enter is refused and the line stays as it is. Programs other than shells get every key.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;

use crate::error::{Blocked, Error, Held, Result};
use crate::terminal::Rendered;
use crate::terminal::Terminal;
use crate::tools::params::Params;
use crate::tools::spec::Param;
use kpty_guard::pending::{PendingLine, edited};
use kpty_guard::{Policy, Redactor, Refusal, whole_words};

/// Programs with a composer take an Enter that comes in a burst for a pasted newline.
const COMPOSER_PAUSE: Duration = Duration::from_millis(150);
/// The pause before Enter that a caller may ask for.
pub(super) const ENTER_DELAY: Param =
    Param::millis("enter_delay_ms", "pause between text and the key after it").cap_time(Duration::from_secs(5));
/// Characters of a refused command that its report repeats.
const PREVIEW_CHARS: usize = 100;
/// Longer text is judged where nobody waits for the thread.
const LONG_TEXT: usize = 32 << 10;
/// A line that stands there is judged with each piece while it is no longer than this; always when it is sent off.
const LONGEST_STANDING: usize = 64 << 10;

/// Asks the guard about everything that is typed.
#[derive(Clone)]
pub(in crate::tools) struct Typist {
    policy: Policy,
    redactor: Arc<Redactor>,
    /// How often a text was judged.
    #[cfg(test)]
    pub(in crate::tools) judged: Arc<std::sync::atomic::AtomicUsize>,
}

impl Typist {
    pub(in crate::tools) fn new(policy: Policy, redactor: Arc<Redactor>) -> Self {
        Self {
            policy,
            redactor,
            #[cfg(test)]
            judged: Arc::default(),
        }
    }

    /// Refuses a text that has a dangerous command, as it would stand in the line before Enter.
    pub(in crate::tools) fn check(&self, text: &str) -> Result<()> {
        #[cfg(test)]
        self.judged.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let judged = off_worker(text.len(), || match Policy::is_too_long(text) {
            // Which keys it has makes no difference.
            true => self.policy.judge(text),
            false => self.policy.judge(&edited(text)),
        });
        judged.map_err(|refusal| self.blocked(refusal, text, Held::Text))
    }

    /// Refuses a program with its arguments and variables.
    pub(in crate::tools) fn check_program(
        &self,
        program: &str,
        args: &[String],
        env: &[(String, String)],
    ) -> Result<()> {
        check_program(&self.policy, &self.redactor, program, args, env)
    }

    fn blocked(&self, refusal: Refusal, text: &str, held: Held) -> Error {
        blocked(&self.redactor, refusal, text, held)
    }

    /// Takes the session's input turn.
    pub(in crate::tools) async fn turn<'a>(&'a self, session: &'a dyn Terminal) -> Turn<'a> {
        let line = Arc::clone(session.input()).lock_owned().await;
        Turn { typist: self, session, line, is_checked: false }
    }
}

/// Refuses to start a program by its words, and by the variables that are given to it.
pub fn check_program(
    policy: &Policy,
    redactor: &Redactor,
    program: &str,
    args: &[String],
    env: &[(String, String)],
) -> Result<()> {
    policy.judge_program(program, args, env).map_err(|refusal| {
        let words: Vec<&str> = std::iter::once(program).chain(args.iter().map(String::as_str)).collect();
        blocked(redactor, refusal, &words.join(" "), Held::Start)
    })
}

fn blocked(redactor: &Redactor, refusal: Refusal, text: &str, held: Held) -> Error {
    Error::Blocked(Box::new(Blocked {
        rule: refusal.rule,
        category: refusal.category,
        reason: refusal.why,
        instead: refusal.instead,
        words: refusal.words,
        // Masked before it is cut, and cut between words: half a token is none to a rule.
        preview: preview(redactor, text),
        held,
    }))
}

/// The beginning of a text; a long one is not masked as a whole.
fn preview(redactor: &Redactor, text: &str) -> String {
    let head = whole_words(text, LONG_TEXT);
    whole_words(&redactor.redact(head), PREVIEW_CHARS).to_owned()
}

/// Does what takes a while for so many bytes, without holding up what else the thread has to do.
fn off_worker<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let is_threaded = || {
        let flavor = tokio::runtime::Handle::try_current().map(|handle| handle.runtime_flavor());
        matches!(flavor, Ok(tokio::runtime::RuntimeFlavor::MultiThread))
    };
    if bytes > LONG_TEXT && is_threaded() { tokio::task::block_in_place(work) } else { work() }
}

/// The right to type into a session, and what stands in its line.
pub(in crate::tools) struct Turn<'a> {
    typist: &'a Typist,
    session: &'a dyn Terminal,
    line: OwnedMutexGuard<PendingLine>,
    /// What is about to be typed was judged in this turn.
    is_checked: bool,
}

impl Turn<'_> {
    /// Refuses a line to which Enter will be added, behind what stands in the line of the session already. The line
    /// alone was judged before.
    pub(in crate::tools) fn check_line(&mut self, line: &str) -> Result<()> {
        let mut pending = self.line.clone();
        let entered = off_worker(line.len(), || pending.type_bytes(format!("{line}\r").as_bytes()));
        // Usually nothing stood there, and it is the line that was judged just now.
        entered.iter().filter(|whole| *whole != line).try_for_each(|whole| self.typist.check(whole))?;
        self.is_checked = true;
        Ok(())
    }

    /// Refuses keys that send off a dangerous line, or that leave one standing which this call typed.
    pub(in crate::tools) fn check_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let mut pending = self.line.clone();
        let entered = off_worker(bytes.len(), || pending.type_bytes(bytes));
        entered.iter().try_for_each(|line| self.typist.check(line))?;
        // Several lines of one call may be one command; so may be what a person types key by key, and there `rm -rf /`
        // is on the way to `rm -rf /tmp/x`.
        if bytes.len() > 1 {
            if entered.len() > 1 {
                self.typist.check(&entered.join("\n"))?;
            }
            if pending.len() <= LONGEST_STANDING {
                self.typist.check(&pending.text())?;
            }
        }
        self.is_checked = true;
        Ok(())
    }

    /// Types bytes. Where a shell reads, each Enter waits until its line was looked at.
    pub(in crate::tools) async fn type_bytes(&mut self, bytes: &[u8]) -> Result<usize> {
        let (mut written, mut from) = (0, 0);
        loop {
            let rest = &bytes[from..];
            let Some(enter) = off_worker(rest.len(), || self.line.type_until_enter(rest)) else { break };
            if self.session.may_show_line(self.line.is_unknown()) {
                let before = &bytes[written..from + enter.start];
                if !before.is_empty() {
                    self.write(before).await?;
                    written = from + enter.start;
                }
                self.look().await?;
            }
            let lines = self.line.enter(enter);
            if !self.is_checked {
                let judged = lines.iter().try_for_each(|line| self.typist.check(line));
                judged.inspect_err(|_| self.line.mark_unknown()).map_err(standing)?;
            }
            from += enter.end;
        }
        if written < bytes.len() {
            self.write(&bytes[written..]).await?;
        }
        Ok(bytes.len())
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.session.write(bytes).await;
        if written.is_err() {
            // Some of it may have been taken.
            self.line.mark_unknown();
        }
        written.map(drop)
    }

    /// Judges the line as the screen shows it.
    async fn look(&self) -> Result<()> {
        let is_known = !self.line.is_unknown();
        let expected = is_known.then(|| self.line.text());
        match self.session.rendered_line(expected.as_deref()).await {
            Rendered::NoShell | Rendered::AsExpected => Ok(()),
            Rendered::Lines(lines) => {
                let carried = self.line.carried();
                let judge = |line: &String| match carried.is_empty() {
                    true => self.typist.check(line),
                    // The shell waits for the rest of a command.
                    false => self.typist.check(line).and_then(|()| self.typist.check(&format!("{carried}{line}"))),
                };
                lines.iter().try_for_each(judge).map_err(standing)
            }
            Rendered::Unreadable if is_known => Ok(()),
            Rendered::Unreadable => match self.typist.policy.unknown_line() {
                Some(refusal) => Err(self.typist.blocked(refusal, &self.line.text(), Held::Enter)),
                None => Ok(()),
            },
        }
    }

    /// Waits between text and Enter: as long as asked for, else only where a program other than a shell reads key by
    /// key. Others may type during a pause that was asked for, so what comes after it is judged again.
    pub(in crate::tools) async fn pause_before_enter(self, asked: Option<Duration>) -> Self {
        let Self { typist, session, .. } = self;
        match asked {
            Some(pause) => {
                drop(self);
                tokio::time::sleep(pause).await;
                typist.turn(session).await
            }
            None => {
                if session.reads_keys() {
                    tokio::time::sleep(COMPOSER_PAUSE).await;
                }
                self
            }
        }
    }
}

/// The refused line was typed, and stands there without its Enter.
fn standing(error: Error) -> Error {
    match error {
        Error::Blocked(blocked) => Error::Blocked(Box::new(Blocked { held: Held::Enter, ..*blocked })),
        error => error,
    }
}

/// The pause before Enter that was asked for.
pub(in crate::tools) fn enter_delay(params: &mut Params<'_>) -> Result<Option<Duration>> {
    params.given_time(&ENTER_DELAY)
}
