//! Ends that a marked shell announced, until it is certain that the shell reads its next command.
//!
//! Code that runs inside the shell (a hook, a trap, a function) can print whatever the shell prints, marks and secret
//! included. It cannot make the shell wait for a command. So an announced end counts when the line editor takes the
//! terminal behind it, or when the kernel says that the shell waits in the read of its prompt; what was announced
//! before a command began, or while it went on, comes to nothing.

use std::time::{Duration, Instant};

use super::foreground::{ReadDepth, Wanted, read_depth, wanted};
use super::integration::IntegratedShell;
use super::state::Probe;
use crate::ids::CommandId;
use crate::terminal::Output;
use crate::terminal::commands::{Edge, Point};
use crate::terminal::local::pty::Waiting;

/// When the kernel is asked first whether the shell reads. The time doubles up to the longest.
const FIRST_CHECK: Duration = Duration::from_millis(1);
const LONGEST_CHECK: Duration = Duration::from_millis(50);
/// How long a line editor that has asked for pastes before may take to do so again.
const EDITOR_TIMEOUT: Duration = Duration::from_millis(20);
/// Announced ends that are kept; of more, the first ones and the newest.
const MOST_ENDS: usize = 4;
/// How long a shell that reads must have been silent where its end is in doubt. What it wrote before may still be on its
/// way through the system, the true end with it.
const SETTLED: Duration = Duration::from_millis(20);
/// Where the kernel tells nothing, an authenticated mark alone has to do after this time.
const UNCONFIRMED: Duration = Duration::from_secs(3);

/// What is known of how the command began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// The shell marked its start.
    Marked,
    /// There was no start mark: nothing to run, or a syntax error.
    Unstarted,
    /// Only the prompt is marked any more.
    Unmarked,
}

/// What the kernel says of an announced end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// The shell reads its next command.
    Confirmed,
    /// The shell reads something else: the command goes on.
    Question,
    /// It does not read, or that is not certain.
    NotYet,
}

/// One announced end.
#[derive(Clone, Debug)]
pub(super) struct Announced {
    pub(super) status: Option<i32>,
    pub(super) edge: Edge,
    /// What the command had printed by then, where somebody waits for it.
    pub(super) output: Option<Output>,
    /// The terminal was in canonical mode: no line editor had it yet.
    was_canonical: bool,
}

/// The announced ends of one command.
#[derive(Debug)]
pub(super) struct Proposal {
    pub(super) id: CommandId,
    pub(super) begin: Begin,
    ends: Vec<Announced>,
    /// The statuses that prompts behind the last end show.
    shown: Vec<Option<i32>>,
    /// There is more than one end, or none with a mark of its own: only the kernel decides.
    is_contested: bool,
    /// No end has a mark of its own.
    is_by_prompt: bool,
    /// A line editor asked for pastes behind the prompt.
    has_editor: bool,
    /// A line editor seems to have taken the terminal.
    is_claimed: bool,
    /// Where the prompt ended: what stands behind it was put on the line.
    prompt_end: Option<Point>,
    due: Instant,
    wait: Duration,
}

impl Announced {
    pub(super) fn new(status: Option<i32>, edge: Edge, output: Option<Output>, probe: &dyn Probe) -> Self {
        Self { status, edge, output, was_canonical: probe.is_canonical() }
    }
}

impl Proposal {
    /// An end with a mark of its own.
    pub(super) fn new(id: CommandId, begin: Begin, end: Announced) -> Self {
        let due = end.edge.at + FIRST_CHECK;
        Self {
            id,
            begin,
            ends: vec![end],
            shown: Vec::new(),
            is_contested: false,
            is_by_prompt: false,
            has_editor: false,
            is_claimed: false,
            prompt_end: None,
            due,
            wait: FIRST_CHECK,
        }
    }

    /// An end that only a prompt tells of.
    pub(super) fn by_prompt(id: CommandId, begin: Begin, end: Announced) -> Self {
        Self { is_contested: true, is_by_prompt: true, ..Self::new(id, begin, end) }
    }

    /// Another end of the same command: one of them is not the shell's, nor may a prompt before it be.
    pub(super) fn add(&mut self, end: Announced) {
        (self.is_contested, self.is_by_prompt) = (true, false);
        self.shown.clear();
        self.ends.truncate(MOST_ENDS - 1);
        self.ends.push(end);
    }

    /// A line editor asks for pastes; it counts behind a prompt.
    pub(super) fn on_editor(&mut self, point: Point) {
        self.has_editor |= !self.shown.is_empty();
        self.is_claimed = true;
        self.prompt_end.get_or_insert(point);
    }

    /// Only a prompt tells of the end.
    pub(super) fn is_by_prompt(&self) -> bool {
        self.is_by_prompt
    }

    /// A prompt followed.
    pub(super) fn has_prompt(&self) -> bool {
        !self.shown.is_empty()
    }

    /// A prompt and a line editor followed.
    pub(super) fn has_editor(&self) -> bool {
        self.has_editor
    }

    /// Something does not fit a plain end: only the kernel decides.
    pub(super) fn contest(&mut self) {
        self.is_contested = true;
    }

    /// A prompt shows this status.
    pub(super) fn on_prompt(&mut self, status: Option<i32>) {
        self.shown.truncate(MOST_ENDS - 1);
        self.shown.push(status);
    }

    /// A line editor is about to take the terminal, which tells more than the kernel does: asking can wait.
    pub(super) fn expect_editor(&mut self) {
        self.due += EDITOR_TIMEOUT;
    }

    /// Where the prompt ended, as far as it was drawn.
    pub(super) fn prompt_end(&self) -> Option<Point> {
        self.prompt_end
    }

    /// The prompt is complete: the shell reads in a moment.
    pub(super) fn on_prompt_end(&mut self, point: Point) {
        self.prompt_end = Some(point);
        self.wait = FIRST_CHECK;
        self.due = self.due.min(Instant::now() + FIRST_CHECK);
        self.is_claimed = true;
    }

    /// When the kernel is to be asked.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// The kernel confirmed nothing: asks again later.
    pub(super) fn postpone(&mut self) {
        self.wait = (self.wait * 2).min(LONGEST_CHECK);
        self.due = Instant::now() + self.wait;
    }

    /// A line editor has taken the terminal, by what it printed and by what the kernel says. All output that was read has
    /// been taken.
    ///
    /// The kernel speaks of now, the output of some time ago: a command that printed the marks may have ended since, and
    /// its true end may wait to be read. So nothing may wait, and that is asked last.
    pub(super) fn is_confirmed_by_editor(&self, shell: IntegratedShell, probe: &dyn Probe) -> bool {
        let [end] = self.ends.as_slice() else { return false };
        if !self.is_claimed
            || self.is_contested
            || probe.is_canonical()
            || probe.foreground_group() != Some(probe.pid())
        {
            return false;
        }
        // The mode of the terminal says something where it has just changed. fish has the terminal in its own mode while
        // it runs code of its own, too.
        let has_changed = shell != IntegratedShell::Fish && end.was_canonical;
        (has_changed || reads(shell, probe) == Some(true)) && !probe.has_output()
    }

    /// Asks the kernel whether the shell reads its next command; nothing has come from it for `silence`. `at_prompt` is
    /// how deep its calls are then, where that is known.
    pub(super) fn ask_kernel(
        &self,
        shell: IntegratedShell,
        probe: &dyn Probe,
        silence: Duration,
        at_prompt: Option<u64>,
    ) -> Check {
        let is_plain = self.begin == Begin::Marked && !self.is_contested;
        if !is_plain && silence < SETTLED {
            return Check::NotYet;
        }
        let since = self.ends.first().map_or(Duration::MAX, |end| end.edge.at.elapsed());
        // Only the line editor tells of it, and no mark.
        let is_bare = self.ends.iter().all(|end| end.status.is_none());
        match reads(shell, probe).unwrap_or(since >= UNCONFIRMED) {
            false => Check::NotYet,
            true if !is_bare => Check::Confirmed,
            true => match read_depth(probe.call_depth(), at_prompt) {
                // A builtin asks something by the line editor (`read -e`, `vared`, fish's `read`).
                Some(ReadDepth::Builtin) => Check::Question,
                Some(ReadDepth::NearPrompt) => Check::NotYet,
                Some(ReadDepth::Prompt) | None => Check::Confirmed,
            },
        }
    }

    /// The end that counts.
    ///
    /// The status in the prompt is the shell's own: it tells which of several ends is. A forged one comes before the
    /// command or in its course, so the newest that fits is taken. A forged prompt may come before or after the true one.
    pub(super) fn decide(mut self) -> Option<Announced> {
        let last = self.ends.pop()?;
        let is_shown = self.shown.contains(&last.status) && last.status.is_some();
        let Some(shown) = self.shown.pop().filter(|_| self.is_contested && !is_shown) else { return Some(last) };
        let fitting = self.ends.into_iter().rfind(|end| end.status == shown);
        Some(fitting.unwrap_or(Announced { status: shown, ..last }))
    }
}

/// The shell waits for a command; unknown where the kernel does not tell.
fn reads(shell: IntegratedShell, probe: &dyn Probe) -> Option<bool> {
    let waiting = probe.waiting()?;
    let canonical = Some(probe.is_canonical());
    let is_reading = match shell {
        IntegratedShell::Bash => wanted("bash", waiting, canonical) == Some(Wanted::Command),
        // Where something is due, or another descriptor is watched, its line editor waits for more than the terminal.
        IntegratedShell::Zsh if waiting == Waiting::Poll => canonical == Some(false),
        IntegratedShell::Zsh => wanted("zsh", waiting, canonical) == Some(Wanted::Command),
        IntegratedShell::Fish => waiting == Waiting::Poll,
    };
    Some(is_reading && probe.foreground_group() == Some(probe.pid()))
}
