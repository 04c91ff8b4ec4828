//! The commands that we typed into a desktop's terminal: where they began, what they printed, how they ended.
//!
//! Only the rendered lines tell. A command ends with its own sentinel; one that was interrupted ends when the prompt is
//! back that stood there before.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use kpty_emulator::{Buffer, Place};

use super::text::Text;
use crate::ids::CommandId;
use crate::model::ExitInfo;
use crate::terminal::commands::{CommandLog, Edge, End, Point, Way};
use crate::terminal::output::cut;
use crate::terminal::sentinel::Sentinel;
use crate::terminal::{Command, Evidence, Output};
use kpty_guard::Redactor;

/// Bytes of output that are kept, of all commands together; the newest is kept whatever its size.
const MAX_OUTPUT: usize = 8 << 20;
/// How long nothing must happen before a prompt is believed that nobody asked for.
const PROMPT_STANDS: Duration = Duration::from_millis(300);
/// Characters by which the echo of a line is told from the prompt before it.
const ECHO_HEAD: usize = 8;
/// Characters that prompts end with.
const PROMPT_ENDS: [char; 6] = ['$', '#', '%', '>', '❯', 'λ'];

/// All commands of a terminal.
#[derive(Default)]
pub(super) struct Commands {
    log: CommandLog,
    /// Those that have not ended, oldest first.
    open: Vec<Begun>,
    outputs: VecDeque<(CommandId, Printed)>,
    /// What stood on the line when the last command was typed.
    prompt: Option<String>,
}

/// A command that was typed and has not ended.
struct Begun {
    id: CommandId,
    sentinel: Sentinel,
    prompt: String,
    /// What was typed.
    typed: String,
    /// The line that it was typed on.
    line: u64,
    /// The first line that could change then, and what the lines from there on were.
    screen: u64,
    before: Vec<String>,
    losses: u64,
}

/// What a command printed.
#[derive(Clone, Debug, Default)]
struct Printed {
    lines: Vec<String>,
    /// Lines before these that were not seen or are not kept.
    evicted: u64,
    /// Nobody knows whether these are all: the bridge showed too little to follow it.
    is_doubtful: bool,
    /// Numbers of the first line and of the one after the last.
    numbers: (u64, u64),
    buffer: Buffer,
    status: Option<i32>,
}

impl Begun {
    /// What it has printed, and its status if it has ended.
    fn printed(&self, text: &Text) -> Printed {
        let is_followed = text.main.losses() == self.losses;
        let from = if is_followed { self.screen.min(self.line) } else { 0 };
        let shown = text.shown(from);
        let all: Vec<&str> = shown.iter().map(|(_, line)| *line).collect();
        let end = all.iter().position(|line| self.sentinel.status(line).is_some());
        let lines = &all[..end.unwrap_or(all.len())];
        let on_main = text.buffer() == Buffer::Main;
        let evicted = if is_followed && on_main { text.main.first().saturating_sub(self.line) } else { 0 };
        let echo_end = self.sentinel.echo_end(lines);
        let start = echo_end.unwrap_or_else(|| {
            let shown = &shown[..lines.len()];
            let is_comparable = is_followed && on_main && evicted == 0;
            let cols = text.main.size().map_or(usize::MAX, |(_, cols)| cols.into());
            let first = if is_comparable { self.first_difference(shown, cols) } else { 0 };
            first.max(self.cut_echo(shown))
        });
        let mut printed = lines[start.min(lines.len())..].to_vec();
        // The end begins on a line of its own. The one before it is blank if the output ended its last line; so is the
        // cursor's while there is no end yet.
        if printed.last() == Some(&"") {
            printed.pop();
        }
        let number = |index: usize| shown.get(index).map_or(text.main.next(), |(number, _)| *number);
        Printed {
            numbers: (number(start), number(start) + printed.len() as u64),
            lines: printed.into_iter().map(str::to_owned).collect(),
            evicted,
            is_doubtful: echo_end.is_none() && !is_followed && on_main,
            buffer: text.buffer(),
            status: end.and_then(|end| self.sentinel.status(all[end])),
        }
    }

    /// The echo is gone: somebody cleared the screen. What is not as it was before was printed since. Of a line that had
    /// left the screen in part, its first rows are left.
    fn first_difference(&self, shown: &[(u64, &str)], cols: usize) -> usize {
        let was = |number: u64| number.checked_sub(self.screen).and_then(|index| self.before.get(index as usize));
        let is_cut = |line: &str, was: &str| was.starts_with(line) && line.chars().count() >= cols;
        let is_same = |number: u64, line: &str| was(number).is_some_and(|was| was == line || is_cut(line, was));
        shown.iter().take_while(|(number, line)| *number < self.screen || is_same(*number, line)).count()
    }

    /// The line after a piece of the echo that had left the screen when the rest was cleared.
    fn cut_echo(&self, shown: &[(u64, &str)]) -> usize {
        let squeezed = |text: &str| text.split_whitespace().collect::<String>();
        let is_first = |(_, line): &(u64, &str)| line.contains(self.sentinel.name());
        let Some(first) = shown.iter().position(is_first) else { return 0 };
        let mut next = first;
        for ((_, line), typed) in shown[first..].iter().zip(self.typed.lines()) {
            let (line, typed) = (squeezed(line), squeezed(typed));
            let head: String = typed.chars().take(ECHO_HEAD).collect();
            // A prompt stands before it.
            let Some(echo) = line.find(&head).map(|at| &line[at..]) else { break };
            next += usize::from(typed.starts_with(echo));
            if typed != echo {
                break;
            }
        }
        if next == first { 0 } else { next }
    }

    /// The prompt stands there again, on another line than before.
    fn is_at_prompt(&self, text: &Text) -> bool {
        let is_elsewhere = text.main.losses() != self.losses
            || text.buffer() == Buffer::Alternate
            || text.main.cursor_line().is_some_and(|line| line != self.line);
        let line = text.cursor_text();
        is_elsewhere && !self.prompt.is_empty() && line == self.prompt
    }
}

impl Commands {
    /// Notes a command that is about to be typed, and how.
    pub(super) fn begin(&mut self, command: &str, typed: String, sentinel: Sentinel, text: &Text) -> CommandId {
        let prompt = text.cursor_text().to_owned();
        let way = Way::Sentinel {
            sentinel: sentinel.clone(),
            typed_to: None,
            prompt: prompt.clone(),
            typed_at: None,
            pasted: false,
        };
        let id = self.log.begin(command, None, way);
        let (screen, next) = (text.main.settled(), text.main.next());
        self.prompt = Some(prompt.clone());
        self.open.push(Begun {
            id,
            sentinel,
            prompt,
            typed,
            line: text.main.cursor_line().unwrap_or(next),
            screen,
            before: text.main.range(screen, next).map(|(_, line)| line.to_owned()).collect(),
            losses: text.main.losses(),
        });
        id
    }

    /// Takes a command back that was certainly not typed.
    pub(super) fn forget(&mut self, id: CommandId) {
        self.open.retain(|begun| begun.id != id);
        self.log.forget_last(id);
    }

    /// Finds the ends that are to be seen.
    pub(super) fn settle(&mut self, text: &Text, last_change: Instant) {
        for begun in std::mem::take(&mut self.open) {
            let printed = begun.printed(text);
            let interrupted = self.log.get(begun.id).is_some_and(|command| command.interrupted);
            let is_quiet = last_change.elapsed() >= PROMPT_STANDS;
            if printed.status.is_some() {
                self.end(begun.id, Evidence::Sentinel, printed);
            } else if interrupted && (begun.is_at_prompt(text) || is_quiet && looks_like_prompt(text.cursor_text())) {
                let lines = printed.lines.len().saturating_sub(1);
                self.end(begun.id, Evidence::Prompt, Printed { lines: printed.lines[..lines].to_vec(), ..printed });
            } else {
                self.open.push(begun);
            }
        }
    }

    /// Gives up what somebody else must have ended: the prompt is back, and stands.
    pub(super) fn give_up(&mut self, text: &Text, last_change: Instant) {
        let is_quiet = last_change.elapsed() >= PROMPT_STANDS;
        for begun in std::mem::take(&mut self.open) {
            if is_quiet && begun.is_at_prompt(text) {
                let printed = begun.printed(text);
                self.end(begun.id, Evidence::Prompt, printed);
            } else {
                self.open.push(begun);
            }
        }
    }

    /// The terminal's program has ended, and all commands with it.
    pub(super) fn end_all(&mut self, text: &Text, exit: ExitInfo) {
        for begun in std::mem::take(&mut self.open) {
            let printed = Printed { status: exit.status(), ..begun.printed(text) };
            self.end(begun.id, Evidence::ProcessExit, printed);
        }
    }

    fn end(&mut self, id: CommandId, by: Evidence, printed: Printed) {
        let point = |line: u64| Point { offset: 0, place: Place { line, chars: 0, buffer: printed.buffer } };
        let Some(command) = self.log.get_mut(id) else { return };
        command.start = Some(point(printed.numbers.0));
        let edge = Edge { point: point(printed.numbers.1), line: String::new(), at: Instant::now() };
        let after = command.since.elapsed();
        self.log.end(id, End { status: printed.status, by, after, edge });
        self.outputs.push_back((id, printed));
        let size = |(_, printed): &(CommandId, Printed)| printed.lines.iter().map(|line| line.len() + 1).sum::<usize>();
        let mut kept: usize = self.outputs.iter().map(size).sum();
        while kept > MAX_OUTPUT && self.outputs.len() > 1 {
            kept -= self.outputs.pop_front().as_ref().map_or(0, size);
        }
    }

    /// Notes that Ctrl-C or the like was typed.
    pub(super) fn interrupt(&mut self) {
        self.log.interrupt_open();
    }

    /// All that are remembered, oldest first.
    pub(super) fn all(&self) -> Vec<Command> {
        self.log.iter().cloned().collect()
    }

    /// One of them.
    pub(super) fn get(&self, id: CommandId) -> Option<Command> {
        self.log.get(id).cloned()
    }

    /// The one that runs, if any does.
    pub(super) fn running(&self) -> Option<Command> {
        self.open.last().and_then(|begun| self.get(begun.id))
    }

    /// What a command printed, so far or in all.
    pub(super) fn output_of(
        &self,
        id: CommandId,
        text: &Text,
        max_chars: usize,
        redactor: &Redactor,
    ) -> Option<Output> {
        let begun = self.open.iter().find(|begun| begun.id == id);
        let kept = self.outputs.iter().find(|(other, _)| *other == id).map(|(_, printed)| printed.clone());
        let printed = match (begun, kept) {
            (Some(begun), _) => begun.printed(text),
            (None, Some(printed)) => printed,
            (None, None) => {
                let _ = self.log.get(id)?;
                return Some(Output { truncated: true, ..Output::default() });
            }
        };
        let mut output = cut(redactor.mask(printed.lines.join("\n")), max_chars);
        (output.evicted_lines, output.missing_before) = (printed.evicted, printed.evicted);
        output.truncated |= printed.evicted > 0 || printed.is_doubtful;
        output.omitted_lines += printed.evicted as usize;
        output.lines = printed.numbers;
        Some(output)
    }

    /// A shell seems to read: the prompt of the last command, or what looks like one and stays.
    pub(super) fn is_at_prompt(&self, text: &Text, last_change: Instant) -> bool {
        let line = text.cursor_text();
        let is_known = !line.is_empty() && self.prompt.as_deref() == Some(line);
        self.open.is_empty() && (is_known || last_change.elapsed() >= PROMPT_STANDS && looks_like_prompt(line))
    }

    /// The prompt that was last typed at.
    pub(super) fn prompt(&self) -> Option<&str> {
        self.prompt.as_deref().filter(|prompt| !prompt.is_empty())
    }
}

fn looks_like_prompt(line: &str) -> bool {
    line.ends_with(PROMPT_ENDS)
}
