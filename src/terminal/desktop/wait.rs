//! Waiting for something in a desktop's terminal: looks, slower and slower while nothing happens. What counts as come is
//! decided by the same code as for a session of our own.

use std::time::{Duration, Instant};

use kpty_emulator::Request;

use super::Desktop;
use super::talk::Pace;
use crate::error::Result;
use crate::ids::CommandId;
use crate::masked::Page;
use crate::model::ExitInfo;
use crate::terminal::Readable;
use crate::terminal::attention::{Attention, Facts, Shell, Shown};
use crate::terminal::deadline;
use crate::terminal::wait::{Ending, WaitOutcome, WaitRequest, Watched, asked, ended};

/// Looks that may fail one after the other.
const FAILED_LOOKS: u32 = 3;

impl Readable for Desktop {
    fn read(&self, request: &Request) -> Page {
        self.lock().text.read(request, &self.shared.redactor)
    }

    fn exit(&self) -> Option<ExitInfo> {
        self.lock().exit
    }

    fn has_ended(&self, id: CommandId) -> bool {
        self.has_ended_there(id)
    }

    fn is_at_prompt(&self) -> bool {
        let state = self.lock();
        state.at_prompt.unwrap_or_else(|| state.commands.is_at_prompt(&state.text, state.last_change))
    }

    fn last_output(&self) -> Instant {
        self.lock().last_change
    }

    fn attention(&self) -> Attention {
        self.attention_from_text()
    }
}

impl Desktop {
    /// Of a program on a desktop only the text is known, and whether a shell reads there.
    pub(super) fn attention_from_text(&self) -> Attention {
        let has_ended = Readable::exit(self).is_some();
        let is_at_prompt = !has_ended && self.is_at_prompt();
        let state = self.lock();
        let shown = Shown {
            before_cursor: state.text.cursor_text().to_owned(),
            last_line: state.text.last_text().to_owned(),
            cursor_visible: true,
            ..Shown::default()
        };
        let shell = if is_at_prompt { Shell::Prompt } else { Shell::Busy };
        Attention::judge(&Facts { has_ended, shell, shown, quiet: state.last_change.elapsed(), ..Facts::default() })
    }

    pub(super) async fn wait_for(&self, request: &WaitRequest) -> Result<WaitOutcome> {
        let began = Instant::now();
        let deadline = began + deadline::limit(request.timeout, Duration::ZERO);
        let (mut pace, mut failed) = (Pace::new(), 0);
        let looked = self.look_for_wait(request).await;
        // A terminal that is gone is not shown, and has come to its end.
        if request.exit || looked.is_err() || Readable::exit(self).is_some() {
            let alive = self.look_whether_alive().await;
            if !matches!(alive, Ok(Some(_))) {
                looked.and(alive.map(drop))?;
            }
        }
        let mut watched = Watched::begin(self, request);
        let ending = loop {
            if let Some(ending) = watched.has_come(self, request, began).or_else(|| asked(self, request)) {
                break ending;
            }
            if Instant::now() >= deadline {
                break Ending::Deadline;
            }
            let last_change = self.lock().last_change;
            let quiet_at = request.quiet.map(|quiet| last_change.max(began) + quiet);
            pace.pause(last_change, quiet_at.unwrap_or(deadline).min(deadline)).await;
            match self.look_for_wait(request).await {
                Ok(()) => failed = 0,
                Err(error) => {
                    failed += 1;
                    let is_over = matches!(self.look_whether_alive().await, Ok(Some(_)));
                    if !is_over && failed >= FAILED_LOOKS {
                        return Err(error);
                    }
                }
            }
            if pace.asks_whether_alive(last_change)
                && let Ok(Some(exit)) = self.look_whether_alive().await
            {
                self.end_all(exit).await;
            }
        };
        Ok(WaitOutcome {
            marker_disposed: watched.is_marker_lost,
            ..ended(self, ending, began.elapsed(), request.since)
        })
    }

    /// The end of the text, and the window where something is looked for on it.
    async fn look_for_wait(&self, request: &WaitRequest) -> Result<()> {
        let from = self.lock().text.unseen_from(request.since);
        self.look_at_end(0, from).await?;
        if request.appears.is_some() || request.disappears.is_some() {
            self.look_at_window().await?;
        }
        Ok(())
    }
}
