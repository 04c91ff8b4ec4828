//! Waiting in a session of this server, without polling: every wait ends by an event or by its deadline.

use std::time::{Duration, Instant};

use super::Session;
use super::dropped::Looks;
use crate::error::Result;
use crate::terminal::wait::{Ending, WaitOutcome, WaitRequest, Watched, asked, ended};

/// How long after output it is looked whether the program asks.
const FIRST_LOOK: Duration = Duration::from_millis(20);
/// The same at the latest while there is always more output.
const LATEST_LOOK: Duration = Duration::from_millis(250);

/// When to look whether a program asks. Nothing tells that it begins to read, so that it is looked at some time after its
/// last output, and then each time after twice the pause: a dozen looks in a minute of silence.
struct Questions {
    next: Instant,
    pause: Duration,
    /// The last look.
    last: Instant,
}

impl Questions {
    /// The first look is now.
    fn new(now: Instant) -> Self {
        Self { next: now, pause: FIRST_LOOK, last: now }
    }

    fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }

    fn looked(&mut self) {
        self.last = Instant::now();
        self.next = self.last + self.pause;
        self.pause *= 2;
    }

    /// There is new output.
    fn heard(&mut self) {
        self.pause = FIRST_LOOK;
        self.next = (Instant::now() + FIRST_LOOK).min(self.last + LATEST_LOOK).max(self.last + FIRST_LOOK);
    }
}

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
        let WaitRequest { appears, disappears, quiet, prompt, asks, command, .. } = request;
        let follows_output =
            appears.is_some() || disappears.is_some() || quiet.is_some() || command.is_some() || *prompt || *asks;
        let mut questions = Questions::new(began);
        let ending = loop {
            if let Some(ending) = watched.has_come(self, request, began) {
                break ending;
            }
            if *asks && questions.is_due() {
                if let Some(ending) = asked(self, request) {
                    break ending;
                }
                questions.looked();
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
            if *asks {
                next = next.min(questions.next);
            }
            tokio::select! {
                _ = progress.changed(), if follows_output => {
                    looks.reset();
                    questions.heard();
                }
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
