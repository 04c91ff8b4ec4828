//! What the marks in a stream mean: where the shell is, and when a command began and ended.
//!
//! Believes only what fits. A mark counts with the secret of the session's shell, or with the nonce of a sentinel that is
//! waited for, and in the state that can lead to it: the first end after a start; a prompt only where the shell really
//! reads; a sentinel when it stands on a rendered line.

use kpty_emulator::{Buffer, Mode, Place, Request};

use super::commands::{Command, Edge, End, Evidence, Point, TypedTo, Way};
use super::integration::IntegratedShell;
use super::marks::{Mark, ShellEvent};
use super::output::Stretch;
use super::terminal::{Ingested, Probe, Reader, Terminal};
use crate::ids::CommandId;

/// Where a shell that marks what it does is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It has not shown its first prompt.
    Starting,
    /// It reads a command.
    Prompt,
    /// Somebody typed Enter at its prompt, and nothing came of it yet.
    Submitted,
    /// It runs a command.
    Running(CommandId),
    /// The command ended; the prompt is on its way.
    Ended,
}

/// A shell that marks what it does.
#[derive(Debug)]
pub(super) struct MarkedShell {
    pub(super) program: IntegratedShell,
    /// Carried by its marks and known to nobody else.
    secret: String,
    pub(super) phase: Phase,
    /// A command that was typed and has not begun.
    pub(super) pending: Option<CommandId>,
    /// A prompt came up while a command ran: its status, to be believed if the shell really reads.
    reserve: Option<(Option<i32>, Edge)>,
    /// Where the line editor handed the line over.
    accepted: Option<Point>,
    /// Where the prompt ended.
    prompt: Option<Point>,
    /// Somebody typed a line since the last `talk` began; it may still wait to be run.
    pub(super) has_typed_ahead: bool,
    /// The status that the last command left.
    last_status: Option<i32>,
}

impl Terminal {
    pub(super) fn on_mark(&mut self, mark: Mark, probe: &dyn Probe, ingested: &mut Ingested) {
        match mark {
            Mark::Paste(is_on) => {
                if is_on && let Some(group) = probe.foreground_group() {
                    self.note_reader(group, Reader::Pastes);
                }
                ingested.news |= is_on;
                if is_on && self.shell.as_ref().is_some_and(|shell| shell.phase == Phase::Ended) {
                    // The line editor reads; the prompt, which may have lost its marks, is about to be drawn.
                    let point = self.point();
                    self.shell.as_mut().expect("looked at above").come_to_prompt(point);
                }
                if !is_on && self.shell.as_ref().is_some_and(|shell| shell.pending.is_some()) {
                    let point = self.point();
                    self.shell.as_mut().expect("looked at above").accepted = Some(point);
                }
            }
            Mark::Directory { key, path } => {
                if self.shell.as_ref().is_some_and(|shell| shell.secret == key) {
                    self.cwd = Some(path);
                }
            }
            Mark::Shell { event: ShellEvent::SentinelStart, key } => self.on_sentinel_start(&key),
            Mark::Shell { event: ShellEvent::SentinelEnd(status), key } => self.on_sentinel_end(&key, status),
            Mark::Shell { event, key } => {
                if self.shell.as_ref().is_some_and(|shell| shell.secret == key) {
                    let _ = self.emulator.flush();
                    self.on_shell_event(event, probe);
                    ingested.news = true;
                }
            }
        }
    }

    /// Believes an event of the marked shell as far as it fits where the shell is.
    fn on_shell_event(&mut self, event: ShellEvent, probe: &dyn Probe) {
        let edge = self.edge();
        let Some(shell) = &mut self.shell else { return };
        match (event, shell.phase) {
            (ShellEvent::PromptStart(status), Phase::Running(id)) => {
                let candidate = self.commands.get_mut(id).and_then(|command| command.candidate.take());
                match candidate {
                    Some((status, edge)) => {
                        shell.phase = Phase::Ended;
                        self.close(id, status, Evidence::Integration, edge);
                    }
                    None => shell.reserve = Some((status, edge)),
                }
            }
            (ShellEvent::PromptStart(status), _) => {
                // The line was taken and the shell reads again: somebody has dropped the hooks, but not the prompt.
                if shell.accepted.is_some()
                    && let Some(id) = shell.pending.take()
                {
                    shell.phase = Phase::Ended;
                    self.close_unmarked(id, status, edge);
                }
            }
            (ShellEvent::PromptEnd, Phase::Running(id)) => {
                // A prompt without an end before it. A program can print one; only the shell's line editor takes the
                // terminal as well.
                let reads = !probe.is_canonical() && probe.foreground_group() == Some(probe.pid());
                if let Some((status, end)) = shell.reserve.take().filter(|_| reads) {
                    shell.come_to_prompt(edge.point);
                    self.close(id, status, Evidence::Integration, end);
                }
            }
            (ShellEvent::PromptEnd, _) => shell.come_to_prompt(edge.point),
            // Somebody prints the continuation prompt: the shell does not read.
            (ShellEvent::Continuation, Phase::Running(_)) if probe.is_canonical() => {}
            (ShellEvent::Continuation, phase) => {
                let running = if let Phase::Running(id) = phase { Some(id) } else { shell.pending };
                let command = running.and_then(|id| self.commands.get_mut(id));
                // A sentinel's lines are read one by one, and are complete at the end.
                if let Some(command) = command.filter(|command| matches!(command.way, Way::Integration)) {
                    command.incomplete.get_or_insert(edge);
                }
            }
            (ShellEvent::Start, Phase::Running(_)) => {}
            (ShellEvent::Start, _) => self.on_start(edge.point),
            (ShellEvent::End(status), Phase::Running(id)) => {
                shell.last_status = status;
                if shell.ends_before_exit() {
                    self.propose_end(id, status, edge);
                } else {
                    shell.phase = Phase::Ended;
                    self.close(id, status, Evidence::Integration, edge);
                }
            }
            (ShellEvent::End(status), _) => {
                shell.phase = Phase::Ended;
                if let Some(id) = shell.pending.take() {
                    self.close_unstarted(id, status, edge);
                }
            }
            (ShellEvent::SentinelStart | ShellEvent::SentinelEnd(_), _) => {}
        }
    }

    fn on_start(&mut self, point: Point) {
        let Some(shell) = &mut self.shell else { return };
        let typed_at = shell.prompt.filter(|prompt| prompt.place.buffer == point.place.buffer);
        let pending = shell.pending.take().or_else(|| {
            // Typed before the shell was ready, and begun now.
            let is_waiting =
                |command: &&Command| command.start.is_none() && matches!(command.way, Way::Sentinel { .. });
            self.commands.open().find(is_waiting).map(|command| command.id)
        });
        let id = match pending {
            Some(id) => id,
            None => {
                let line = typed_at.map(|from| self.text_between(from.place, point.place)).unwrap_or_default();
                self.commands.begin(&line, self.cwd.clone(), Way::Typed)
            }
        };
        self.begin_output(id, point);
        if let Some(shell) = &mut self.shell {
            shell.phase = Phase::Running(id);
            shell.reserve = None;
        }
    }

    /// What is printed from here on is the command's.
    fn begin_output(&mut self, id: CommandId, point: Point) {
        let is_over_text = self.is_over_text();
        if let Some(command) = self.commands.get_mut(id) {
            command.start = Some(point);
            command.is_over_text = is_over_text;
        }
        self.emulator.settle();
    }

    /// The rendered text between two places of the main screen.
    fn text_between(&mut self, from: Place, until: Place) -> String {
        let range = Mode::Range { from: from.line, until: Some(until.line) };
        let text = self.emulator.read(&Request::new(range), None).text;
        text.chars().skip(from.chars).collect::<String>().trim().to_owned()
    }

    /// The shell reads again, and never said that the command began: there was nothing to run, or it did not
    /// understand. What it had to say about that is the output.
    fn close_unstarted(&mut self, id: CommandId, status: Option<i32>, edge: Edge) {
        let Some(shell) = &mut self.shell else { return };
        let from = shell.accepted.take().unwrap_or(edge.point);
        let last_status = shell.last_status;
        if let Some(command) = self.commands.get_mut(id) {
            command.start = Some(from);
        }
        let said = self.stretch(&Stretch { start: from, end: &edge, is_over_text: false }, usize::MAX).text;
        let status = match (said.trim().is_empty(), status) {
            // A comment leaves the status as it was, and it is not this command's.
            (true, status) if status == last_status || status.is_none() => Some(0),
            // A complaint with the old status: the shell forgot to set it.
            (false, Some(0) | None) => Some(1),
            (_, status) => status,
        };
        self.close(id, status, Evidence::Integration, edge);
    }

    /// The command ran, and only the prompts around it tell so. What it printed begins below the line that was taken.
    fn close_unmarked(&mut self, id: CommandId, status: Option<i32>, edge: Edge) {
        let accepted = self.shell.as_mut().and_then(|shell| shell.accepted.take());
        let mut start = accepted.unwrap_or(edge.point);
        let (bytes, _) = self.ring.slice(start.offset, edge.point.offset);
        if let Some(newline) = memchr::memchr(b'\n', &bytes) {
            start.offset += newline as u64 + 1;
            start.place = Place { line: start.place.line + 1, chars: 0, ..start.place };
        }
        if let Some(command) = self.commands.get_mut(id) {
            command.start = Some(start);
        }
        self.close(id, status, Evidence::Integration, edge);
    }

    fn on_sentinel_start(&mut self, nonce: &str) {
        let Some(id) = self.open_sentinel(nonce) else { return };
        let _ = self.emulator.flush();
        let point = self.point();
        self.begin_output(id, point);
    }

    fn on_sentinel_end(&mut self, nonce: &str, status: Option<i32>) {
        let Some(id) = self.open_sentinel(nonce) else { return };
        let _ = self.emulator.flush();
        let edge = self.edge();
        self.propose_end(id, status, edge);
        self.emulator.settle();
    }

    /// Notes an end that has to be confirmed. The output is complete here, and is taken before more is drawn.
    fn propose_end(&mut self, id: CommandId, status: Option<i32>, edge: Edge) {
        let Some(command) = self.commands.get_mut(id).filter(|command| command.candidate.is_none()) else { return };
        command.start.get_or_insert(edge.point);
        command.candidate = Some((status, edge.clone()));
        self.take_output(id, &edge);
    }

    /// Takes the output of a command that somebody waits for.
    fn take_output(&mut self, id: CommandId, end: &Edge) {
        let Some(Command { wanted: Some(max_chars), output: None, start: Some(start), is_over_text, .. }) =
            self.commands.get(id)
        else {
            return;
        };
        let (stretch, max_chars) = (Stretch { start: *start, end, is_over_text: *is_over_text }, *max_chars);
        let output = self.stretch(&stretch, max_chars);
        if let Some(command) = self.commands.get_mut(id) {
            command.output = Some(output);
        }
    }

    fn open_sentinel(&self, nonce: &str) -> Option<CommandId> {
        let is_it =
            |command: &&Command| matches!(&command.way, Way::Sentinel { sentinel, .. } if sentinel.nonce() == nonce);
        self.commands.open().find(is_it).map(|command| command.id)
    }

    /// Looks for printed sentinels on the rendered lines. They decide.
    pub(super) fn look_for_sentinels(&mut self, ingested: &mut Ingested) {
        let open: Vec<_> = self
            .commands
            .open()
            .rev()
            .filter_map(|command| match &command.way {
                Way::Sentinel { sentinel, .. } => Some((command.id, sentinel.clone(), command.candidate.clone())),
                _ => None,
            })
            .collect();
        for (id, sentinel, candidate) in open {
            let mode = match &candidate {
                // Lines of the alternate screen change their numbers when it scrolls.
                Some((_, Edge { point, .. })) if point.place.buffer == Buffer::Main => {
                    Mode::Range { from: point.place.line, until: None }
                }
                _ => Mode::Viewport,
            };
            let answer = self.emulator.read(&Request::new(mode), None);
            let Some(found) = sentinel.find(answer.lines()) else { continue };
            let end = match candidate {
                Some((_, edge)) => edge,
                // Some terminals between us and the shell keep the invisible mark to themselves.
                None => {
                    let line = answer.line_numbers.get(found.index).copied().unwrap_or(answer.next_line);
                    let echo = found.start.and_then(|index| answer.line_numbers.get(index)).copied();
                    let offset = self.ring.end();
                    let at = |line| Point { offset, place: Place { line, chars: 0, buffer: answer.buffer } };
                    if let Some(command) = self.commands.get_mut(id) {
                        command.start.get_or_insert(at(echo.unwrap_or(answer.first_line)));
                    }
                    Edge { point: at(line), line: String::new() }
                }
            };
            ingested.news = true;
            self.close(id, Some(found.status), Evidence::Sentinel, end);
        }
    }

    /// The command ended. Commands that were typed into it have ended with it.
    pub(super) fn close(&mut self, id: CommandId, status: Option<i32>, by: Evidence, edge: Edge) {
        let inner: Vec<_> = self.commands.open().map(|command| command.id).filter(|&other| other > id).collect();
        for inner in inner {
            self.finish(inner, status, Evidence::ShellExit, edge.clone());
        }
        self.finish(id, status, by, edge);
        self.emulator.settle();
    }

    pub(super) fn finish(&mut self, id: CommandId, status: Option<i32>, by: Evidence, edge: Edge) {
        let Some(command) = self.commands.get_mut(id).filter(|command| command.end.is_none()) else { return };
        command.start.get_or_insert(edge.point);
        let after = command.since.elapsed();
        self.commands.end(id, End { status, by, after, edge: edge.clone() });
        self.take_output(id, &edge);
    }

    /// A command whose sentinel has not come, although the shell it was typed into seems to read the next line: somebody
    /// interrupted it, and the shell dropped the rest of the line. A shell with a line editor takes the terminal over to
    /// read; another one shows the same prompt as before.
    pub(super) fn has_returned_to_prompt(&mut self, id: CommandId, now: Option<&TypedTo>) -> bool {
        let line = self.line_before_cursor();
        let edits = self.emulator.modes().bracketed_paste;
        let Some(Command {
            way: Way::Sentinel { typed_to, prompt, pasted, .. },
            start: Some(_),
            candidate: None,
            interrupted,
            ..
        }) = self.commands.get(id)
        else {
            return false;
        };
        let (Some(typed_to), Some(now)) = (typed_to, now) else { return false };
        if typed_to.group != now.group {
            return false;
        }
        // Another shell in the place of the one that was typed at has nothing to run yet.
        if typed_to.args != now.args {
            return true;
        }
        // Not every shell begins a new line after the echo of a Ctrl-C.
        let line = line.rsplit_once("^C").filter(|_| *interrupted).map_or(line.as_str(), |(_, line)| line);
        let is_same_prompt = is_prompt(line, prompt);
        if *pasted { edits && (*interrupted || is_same_prompt) } else { is_same_prompt }
    }

    /// Gives such a command up: it has ended, and nobody knows how.
    pub(super) fn give_up(&mut self, id: CommandId) {
        let edge = self.edge();
        self.close(id, None, Evidence::Prompt, edge);
    }
}

/// The line is the prompt and nothing else; Enter on an empty line can put several side by side.
fn is_prompt(line: &str, prompt: &str) -> bool {
    let is_text = !prompt.trim().is_empty() && !line.is_empty();
    is_text && line.len().is_multiple_of(prompt.len()) && prompt.repeat(line.len() / prompt.len()) == line
}

impl MarkedShell {
    /// One that has just been started.
    pub(super) fn new(program: IntegratedShell, secret: String) -> Self {
        Self {
            program,
            secret,
            phase: Phase::Starting,
            pending: None,
            reserve: None,
            accepted: None,
            prompt: None,
            has_typed_ahead: false,
            last_status: None,
        }
    }

    /// It marks the end of `exit` too; only the next prompt tells that it goes on.
    fn ends_before_exit(&self) -> bool {
        self.program == IntegratedShell::Fish
    }

    /// A command is about to be typed.
    pub(super) fn expect(&mut self, id: CommandId) {
        self.has_typed_ahead = false;
        if self.phase == Phase::Prompt {
            (self.pending, self.accepted) = (Some(id), None);
        }
    }

    fn come_to_prompt(&mut self, point: Point) {
        self.phase = Phase::Prompt;
        self.prompt = Some(point);
        self.reserve = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_may_stand_there_several_times() {
        for (line, prompt, expected) in
            [("$ ", "$ ", true), ("$ $ ", "$ ", true), ("$ x", "$ ", false), ("", "$ ", false), ("  ", "  ", false)]
        {
            assert_eq!(is_prompt(line, prompt), expected, "{line:?} {prompt:?}");
        }
    }
}
