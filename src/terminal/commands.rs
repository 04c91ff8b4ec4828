//! The commands of a session: what was typed, where its output stands, how it ended.
//!
//! Owns the log and its bound. Each kind of terminal decides what counts as an end.

use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime};

use kpty_emulator::Place;

use super::output::Output;
use super::sentinel::{Pipeline, Sentinel};
use crate::ids::CommandId;
use kpty_guard::{Masked, Redactor, whole_words};

/// Commands that are remembered; the oldest finished ones go first.
pub const MAX_COMMANDS: usize = 1_000;
/// Longest text of a command that is remembered, in bytes.
const LONGEST_LINE: usize = 8 << 10;

/// A point in the output of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// In the raw bytes.
    pub offset: u64,
    /// In the rendered text.
    pub place: Place,
}

/// Where output ends, and what its last line was then: a prompt may be drawn behind it or over it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Where.
    pub point: Point,
    /// The text of the line there.
    pub(in crate::terminal) line: String,
    /// When.
    pub at: Instant,
}

/// Who a command was typed at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedTo {
    /// The process group that had the terminal.
    pub group: u32,
    /// Its arguments: another program in its place has others.
    pub args: Vec<String>,
    /// The process of the shell; unknown where that is on another machine.
    pub pid: Option<u32>,
    /// How deep the calls of the shell were while it read.
    pub depth: Option<u64>,
}

impl TypedTo {
    /// The same shell.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.group == other.group && self.pid == other.pid && self.args == other.args
    }
}

/// How a command was handed to a shell.
#[derive(Clone, Debug)]
pub enum Way {
    /// Pasted at the prompt of a shell that marks what it does.
    Integration,
    /// Typed with a sentinel behind it.
    Sentinel {
        /// What is looked for.
        sentinel: Sentinel,
        /// Who had the terminal.
        typed_to: Option<TypedTo>,
        /// What stood on the line before it was typed.
        prompt: String,
        /// Where it was typed, if that is a screen of ours.
        typed_at: Option<Place>,
        /// It was pasted: its shell has a line editor that asks for pastes when it reads.
        pasted: bool,
    },
    /// Typed by somebody; only a shell that marks what it does lets us know.
    Typed,
}

/// What tells that a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The shell's own mark.
    Integration,
    /// The sentinel on a rendered line.
    Sentinel,
    /// The program of the session ended.
    ProcessExit,
    /// The shell reads the next line, and did not say how the command ended.
    Prompt,
    /// The shell that ran it has ended itself.
    ShellExit,
}

impl Evidence {
    /// The text on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Integration => "integration",
            Self::Sentinel => "sentinel",
            Self::ProcessExit => "process_exit",
            Self::Prompt => "prompt",
            Self::ShellExit => "shell_exit",
        }
    }
}

/// The end of a command.
#[derive(Clone, Debug)]
pub struct End {
    /// Exit status, where known.
    pub status: Option<i32>,
    /// Who says so.
    pub by: Evidence,
    /// How long it ran.
    pub after: Duration,
    /// Where its output ends.
    pub edge: Edge,
}

/// One command. Its texts leave the terminal masked:
///
/// ```
/// fn shown(command: &kpty::terminal::Command, redactor: &kpty_guard::Redactor) -> serde_json::Value {
///     serde_json::json!({ "line": command.line(redactor) })
/// }
/// ```
///
/// ```compile_fail,E0616
/// fn shown(command: &kpty::terminal::Command) -> serde_json::Value {
///     serde_json::json!({ "line": command.line })
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Command {
    /// Its number.
    pub id: CommandId,
    /// What was typed, secrets and all: others get [`Command::line`].
    pub(in crate::terminal) line: String,
    /// Where the shell was; others get [`Command::cwd`].
    pub(in crate::terminal) cwd: Option<String>,
    /// How it was handed over.
    pub(in crate::terminal) way: Way,
    /// The sentinel that its caller gave, by which a caller finds it again who never got its number.
    pub named: Option<String>,
    /// When.
    pub started_at: SystemTime,
    pub(crate) since: Instant,
    /// Where its output begins; `None` until the shell has begun to run it.
    pub start: Option<Point>,
    /// Its end; set by the log alone.
    pub end: Option<End>,
    /// There was other text below the place where it began.
    pub(super) is_over_text: bool,
    /// Where the shell asked for the rest of it.
    pub(super) incomplete: Option<Edge>,
    /// Ctrl-C or the like was typed while it ran.
    pub(crate) interrupted: bool,
    /// An end that something else has to confirm: a sentinel's on the screen, fish's by a prompt.
    pub(super) candidate: Option<(Option<i32>, Edge)>,
    /// Somebody waits: the output is taken at the very end, before a prompt is drawn.
    pub(super) wanted: Option<usize>,
    pub(super) output: Option<Output>,
    /// The statuses of the pipeline that it ended with.
    pub(super) pipeline: Pipeline,
    /// Where our own commands behind it began, and whether a trap for them runs before each.
    pub(super) noted: Option<(Edge, bool)>,
    /// Where its output ends, before what is printed for our own commands.
    pub(super) cut: Option<Edge>,
    /// The sentinel reported an end without a start: the shell did not run the command.
    pub(super) was_refused: bool,
}

impl Command {
    /// What was typed, secrets masked.
    pub fn line(&self, redactor: &Redactor) -> Masked {
        redactor.mask_str(&self.line)
    }

    /// Where the shell was, secrets masked.
    pub fn cwd(&self, redactor: &Redactor) -> Option<Masked> {
        self.cwd.as_deref().map(|cwd| redactor.mask_str(cwd))
    }

    /// How long it has been running, or ran.
    pub fn age(&self) -> Duration {
        self.end.as_ref().map_or_else(|| self.since.elapsed(), |end| end.after)
    }
}

/// The newest commands, in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct CommandLog {
    commands: VecDeque<Command>,
    /// Those that have not ended, oldest first: they are asked for with every piece of output.
    open: Vec<CommandId>,
    last: u64,
}

impl CommandLog {
    /// Adds one that is about to start.
    pub(crate) fn begin(&mut self, line: &str, cwd: Option<String>, way: Way) -> CommandId {
        if self.commands.len() == MAX_COMMANDS
            && let Some(oldest) = self.commands.pop_front()
        {
            self.open.retain(|&id| id != oldest.id);
        }
        self.last += 1;
        let id = CommandId(self.last);
        self.open.push(id);
        self.commands.push_back(Command {
            id,
            line: whole_words(line, LONGEST_LINE).to_owned(),
            cwd,
            way,
            named: None,
            started_at: SystemTime::now(),
            since: Instant::now(),
            start: None,
            end: None,
            is_over_text: false,
            incomplete: None,
            interrupted: false,
            candidate: None,
            wanted: None,
            output: None,
            pipeline: Pipeline::default(),
            noted: None,
            cut: None,
            was_refused: false,
        });
        id
    }

    pub(crate) fn get(&self, id: CommandId) -> Option<&Command> {
        self.commands.get(self.index(id)?)
    }

    pub(crate) fn get_mut(&mut self, id: CommandId) -> Option<&mut Command> {
        let index = self.index(id)?;
        self.commands.get_mut(index)
    }

    fn index(&self, id: CommandId) -> Option<usize> {
        let first = self.commands.front()?.id.0;
        id.0.checked_sub(first).map(|index| index as usize).filter(|&index| index < self.commands.len())
    }

    /// Takes one back that was never typed. The next has its number: they are found by counting.
    pub(crate) fn forget_last(&mut self, id: CommandId) {
        if self.commands.back().is_some_and(|command| command.id == id) {
            self.commands.pop_back();
            self.last = id.0 - 1;
            self.open.retain(|&open| open != id);
        }
    }

    /// Notes the end of one. The first end counts.
    pub(crate) fn end(&mut self, id: CommandId, end: End) {
        self.open.retain(|&open| open != id);
        if let Some(command) = self.get_mut(id) {
            command.end.get_or_insert(end);
        }
    }

    /// Oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Command> {
        self.commands.iter()
    }

    /// Those that have not ended, oldest first.
    pub(crate) fn open(&self) -> impl DoubleEndedIterator<Item = &Command> {
        self.open.iter().filter_map(|&id| self.get(id))
    }

    /// Nothing runs, and the last command ended less than this time ago, or there was none yet.
    pub(crate) fn is_before_prompt(&self, within: Duration) -> bool {
        let last = self.commands.back().map(|command| command.end.as_ref());
        last.is_none_or(|end| end.is_some_and(|end| end.edge.at.elapsed() < within)) && self.open.is_empty()
    }

    /// Notes that Ctrl-C or the like was typed at all that run.
    pub(crate) fn interrupt_open(&mut self) {
        for id in self.open.clone() {
            if let Some(command) = self.get_mut(id) {
                command.interrupted = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_after_one_that_was_taken_back_are_found() {
        let mut log = CommandLog::default();
        let first = log.begin("first", None, Way::Typed);
        let never = log.begin("never typed", None, Way::Typed);
        log.forget_last(never);
        let second = log.begin("second", None, Way::Typed);
        for (id, line) in [(first, "first"), (second, "second")] {
            assert_eq!(log.get(id).map(|command| command.line.as_str()), Some(line), "{id}");
        }
        assert_eq!(log.open().count(), 2);
    }
}
