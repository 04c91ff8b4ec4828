//! Waiting in a session of this server, without polling: every wait ends by an event or by its deadline.

use std::time::Instant;

use super::Session;
use super::dropped::Looks;
use crate::error::Result;
use crate::terminal::wait::{Ending, WaitOutcome, WaitRequest, Watched, ended};

impl Session {
    /// Waits for the first of several things.
    pub async fn wait(&self, request: &WaitRequest) -> Result<WaitOutcome> {
        let began = Instant::now();
        let deadline = began + request.timeout;
        let mut progress = self.shared.progress.subscribe();
        let mut news = self.shared.news.subscribe();
        let mut watched = Watched::begin(self, request);
        let mut looks = Looks::default();
        // The end of the program is news; the rest can come with any output.
        let WaitRequest { appears, disappears, quiet, prompt, command, .. } = request;
        let follows_output =
            appears.is_some() || disappears.is_some() || quiet.is_some() || command.is_some() || *prompt;
        let ending = loop {
            if let Some(ending) = watched.has_come(self, request, began) {
                break ending;
            }
            let now = Instant::now();
            if now >= deadline {
                break Ending::Deadline;
            }
            let quiet_at = request.quiet.map(|quiet| self.shared.lock().last_output.max(began) + quiet);
            let mut next = quiet_at.map_or(deadline, |quiet_at| quiet_at.min(deadline));
            if *prompt {
                // A shell that has drawn its prompt reads a moment later, and nothing tells of that.
                next = looks.next().map_or(next, |look| look.min(next));
            }
            tokio::select! {
                _ = progress.changed(), if follows_output => looks.reset(),
                _ = news.changed() => looks.reset(),
                () = tokio::time::sleep_until(next.into()) => {}
            }
        };
        Ok(WaitOutcome {
            marker_disposed: watched.is_marker_lost,
            ..ended(self, ending, began.elapsed(), request.since)
        })
    }
}
