//! The conditions of a wait: text, quiet, a prompt, a command's end, the end of the program. They are the same for every
//! kind of terminal; how a kind learns that it has to check them again is its own.
//!
//! Lines are checked when they change: those that left the screen once, those on it at each piece of output.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use kpty_emulator::{Buffer, MarkerId, Mode, Request};

use super::attention::AttentionState;
use super::interface::Readable;
use super::search::Pattern;
use crate::ids::CommandId;
use crate::masked::{Page, lines_of};
use crate::model::ExitInfo;
use kpty_guard::Masked;

/// Lines at the end of an answer that show where the session is.
const TAIL_LINES: usize = 10;

/// What to wait for; the first that comes ends the wait.
#[derive(Clone, Debug, Default)]
pub struct WaitRequest {
    /// A line with this appears.
    pub appears: Option<Pattern>,
    /// No line of the screen has this any more.
    pub disappears: Option<Pattern>,
    /// Nothing was printed for this long.
    pub quiet: Option<Duration>,
    /// A shell reads.
    pub prompt: bool,
    /// A program asks: it goes on only when something is typed.
    pub asks: bool,
    /// This command ends.
    pub command: Option<CommandId>,
    /// The session's program ends.
    pub exit: bool,
    /// Only lines that changed since this count as appearing.
    pub since: Option<MarkerId>,
    /// How long to wait.
    pub timeout: Duration,
}

/// What ended a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The text appeared on this line.
    Appeared {
        /// Its number.
        line: u64,
        /// Its text.
        text: Masked,
    },
    /// The text is gone.
    Disappeared,
    /// Quiet.
    Quiet,
    /// A shell reads.
    Prompt,
    /// A program asks.
    Asks(AttentionState),
    /// The command ended.
    Command(CommandId),
    /// The program ended.
    Exit(ExitInfo),
    /// None of it came in time.
    Deadline,
}

/// How a wait ended.
#[derive(Clone, Debug)]
pub struct WaitOutcome {
    /// By what.
    pub ending: Ending,
    /// After how long.
    pub waited: Duration,
    /// The last lines of the session.
    pub tail: Masked,
    /// To go on from here.
    pub marker: Option<MarkerId>,
    /// Nobody knows any more what had been seen at the marker that was given: only what came during the wait counted.
    pub marker_disposed: bool,
}

/// Which lines have been looked at.
pub(crate) struct Watched {
    /// Lines before this one are done with.
    from: u64,
    /// Lines that were there before the wait and do not count while they stay the same.
    old: HashMap<u64, String>,
    /// The marker that was given is not known any more.
    pub(crate) is_marker_lost: bool,
}

impl Watched {
    pub(crate) fn begin(shown: &impl Readable, request: &WaitRequest) -> Self {
        let viewport = shown.read(&Request::new(Mode::Viewport));
        let mut watched = Self { from: viewport.first_line, old: HashMap::new(), is_marker_lost: false };
        if let Some(since) = request.since {
            let changed = shown.read(&Request::new(Mode::Delta { since: Some(since) }));
            watched.is_marker_lost = changed.delta.is_none_or(|delta| delta.missed_lines.is_none());
            let is_old = |number: &u64| watched.is_marker_lost || !changed.line_numbers.contains(number);
            let lines = viewport.line_numbers.iter().zip(viewport.lines()).filter(|(number, _)| is_old(number));
            watched.old = lines.map(|(&number, line)| (number, line.to_owned())).collect();
            if !watched.is_marker_lost {
                watched.from = changed.first_line.min(viewport.first_line);
            }
        }
        watched
    }

    /// What has come of what is waited for.
    pub(crate) fn has_come(&mut self, shown: &impl Readable, request: &WaitRequest, began: Instant) -> Option<Ending> {
        if let Some(id) = request.command
            && shown.has_ended(id)
        {
            return Some(Ending::Command(id));
        }
        if let Some(pattern) = &request.appears
            && let Some(ending) = self.appeared(shown, pattern)
        {
            return Some(ending);
        }
        if let Some(pattern) = &request.disappears {
            let viewport = shown.read(&Request::new(Mode::Viewport));
            if !viewport.lines().any(|line| pattern.is_in(line)) {
                return Some(Ending::Disappeared);
            }
        }
        // A session that has ended comes to nothing else, so that it ends every wait.
        if let Some(exit) = shown.exit() {
            return Some(Ending::Exit(exit));
        }
        if request.prompt && shown.is_at_prompt() {
            return Some(Ending::Prompt);
        }
        let quiet_since = shown.last_output().max(began);
        request.quiet.filter(|&quiet| quiet_since.elapsed() >= quiet).map(|_| Ending::Quiet)
    }

    fn appeared(&mut self, shown: &impl Readable, pattern: &Pattern) -> Option<Ending> {
        let viewport = shown.read(&Request::new(Mode::Viewport));
        let find = |page: &Page, old: &HashMap<u64, String>| {
            let lines = page.line_numbers.iter().zip(lines_of(page));
            lines
                .filter(|(number, line)| old.get(number).is_none_or(|old| *old != **line))
                .find(|(_, line)| pattern.is_in(line))
                .map(|(&line, text)| Ending::Appeared { line, text: text.to_masked() })
        };
        if viewport.buffer == Buffer::Alternate {
            return find(&viewport, &HashMap::new());
        }
        let range = Mode::Range { from: self.from, until: None };
        let lines = shown.read(&Request::new(range));
        self.from = viewport.first_line.max(self.from);
        find(&lines, &self.old)
    }
}

/// A program asks, where that is waited for. It costs a look at the system's processes.
pub(crate) fn asked(shown: &impl Readable, request: &WaitRequest) -> Option<Ending> {
    let attention = request.asks.then(|| shown.attention())?;
    attention.asks().then_some(Ending::Asks(attention.state))
}

/// The end of a wait: where the session is now, and a marker to go on from, for a reader who came with one or with none.
pub(crate) fn ended(shown: &impl Readable, ending: Ending, waited: Duration, since: Option<MarkerId>) -> WaitOutcome {
    let tail = shown.read(&Request { max_lines: Some(TAIL_LINES), ..Request::new(Mode::Tail) }).text;
    let delta = shown.read(&Request { max_lines: Some(0), ..Request::new(Mode::Delta { since }) }).delta;
    WaitOutcome { ending, waited, tail, marker: delta.map(|delta| delta.marker), marker_disposed: false }
}
