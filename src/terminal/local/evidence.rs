//! What the marks in a stream mean: where the shell is, and when a command began and ended.
//!
//! Believes only what fits. A mark counts with the secret of the session's shell, or with the nonce of a sentinel that is
//! waited for, and in the state that can lead to it: the first end after a start; a prompt only where the shell really
//! reads (`proposal.rs`); a sentinel when it stands on a rendered line.

use std::time::{Duration, Instant};

use kpty_emulator::{Mode, Place, Request};

use super::integration::IntegratedShell;
use super::marks::{Mark, ShellEvent};
use super::output::Stretch;
use super::proposal::{Announced, Begin, Check, Proposal};
use super::state::{Ingested, Probe, Reader, TerminalState, TypedText};
use crate::ids::CommandId;
use crate::terminal::Output;
use crate::terminal::commands::{Command, Edge, End, Evidence, Point, TypedTo, Way};

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
    /// The arguments it was started with: another shell in its place has others.
    args: Vec<String>,
    /// Carried by its marks and known to nobody else.
    secret: String,
    pub(super) phase: Phase,
    /// A command that was typed and has not begun.
    pub(super) pending: Option<CommandId>,
    /// Ends of the running or pending command that were announced and do not count yet.
    proposal: Option<Proposal>,
    /// Where the line editor handed the line over.
    accepted: Option<Point>,
    /// Where the prompt ended.
    prompt: Option<Point>,
    /// Where its continuation prompt began, while it reads the rest of a command.
    continued: Option<Point>,
    /// Somebody typed a line since the last `talk` began; it may still wait to be run.
    pub(super) has_typed_ahead: bool,
    /// The status that the last command left.
    last_status: Option<i32>,
    /// All start-up files have been read: what comes next is the prompt.
    pub(super) has_read_files: bool,
    /// It marks where a command starts.
    marks_starts: bool,
    /// How deep its calls are when it reads a command.
    pub(super) prompt_depth: Option<u64>,
    /// Where the end of its prompt was marked last.
    pub(super) marked_prompt: Option<Place>,
    /// Where it began to show the text of its hooks.
    shown: Option<Edge>,
    /// The last end had no mark of its own.
    has_lost_ends: bool,
}

impl TerminalState {
    pub(super) fn on_mark(&mut self, mark: Mark, probe: &dyn Probe, ingested: &mut Ingested) {
        match mark {
            Mark::Paste(is_on) => {
                if is_on && let Some(group) = probe.foreground_group() {
                    self.note_reader(group, Reader::Pastes);
                }
                ingested.news |= is_on;
                match is_on {
                    true => self.on_editor(probe),
                    false => {
                        self.foreign.on_accepted();
                        self.on_accepted();
                    }
                }
            }
            Mark::Directory { key, path } => {
                if self.shell.as_ref().is_some_and(|shell| shell.secret == key) {
                    self.cwd = Some(path);
                }
            }
            Mark::Pipeline { key, statuses } => self.on_pipeline(&key, &statuses),
            Mark::Shell { event: ShellEvent::Dialect(number), key } => {
                ingested.news |= self.on_dialect(number, &key) || self.on_status(number, &key, ingested);
            }
            Mark::Shell { event: ShellEvent::SentinelStart, key } => self.on_sentinel_start(&key, ingested),
            Mark::Shell { event: ShellEvent::SentinelEnd(status), key } => self.on_sentinel_end(&key, status),
            Mark::Shell { event: ShellEvent::SentinelNote(is_before), key } => self.on_sentinel_note(&key, is_before),
            Mark::Shell { event, key } => {
                if self.shell.as_ref().is_some_and(|shell| shell.secret == key) {
                    let _ = self.emulator.flush();
                    self.on_shell_event(event, probe);
                    // Whoever waits for an end is woken when it counts.
                    ingested.news |= !matches!(event, ShellEvent::End(_) | ShellEvent::ShownEnd(_));
                }
            }
        }
    }

    /// A line editor asks for pastes.
    fn on_editor(&mut self, probe: &dyn Probe) {
        let point = self.point();
        let Some(shell) = &mut self.shell else { return };
        if let Some(proposal) = &mut shell.proposal {
            proposal.on_editor(point);
            return;
        }
        let (phase, pending) = (shell.phase, shell.pending.filter(|_| shell.accepted.is_some()));
        // A shell inside this one, or one in its place, has marks of its own or none.
        let is_own = probe.foreground_group() == Some(probe.pid()) && probe.has_arguments(&shell.args);
        match (phase, pending) {
            // The prompt, which may have lost its marks, is about to be drawn.
            (Phase::Ended, _) => {
                self.shell.as_mut().expect("looked at above").come_to_prompt(point);
            }
            // Somebody has dropped the hooks: this is all there is to tell the end.
            (Phase::Running(id), _) | (_, Some(id)) if !is_own || self.is_incomplete(id) => {}
            (Phase::Running(id), _) => self.propose_by_prompt(id, Begin::Marked, None, probe),
            (_, Some(id)) => self.propose_by_prompt(id, Begin::Unmarked, None, probe),
            _ => {}
        }
    }

    fn is_incomplete(&self, id: CommandId) -> bool {
        self.commands.get(id).is_some_and(|command| command.incomplete.is_some())
    }

    /// The line editor has handed a line over.
    fn on_accepted(&mut self) {
        let Some(id) = self.shell.as_ref().and_then(|shell| shell.pending) else { return };
        let point = self.point();
        if let Some(shell) = &mut self.shell {
            shell.accepted = Some(point);
        }
        self.note_evicted(id, point);
    }

    /// Believes an event of the marked shell as far as it fits where the shell is.
    fn on_shell_event(&mut self, event: ShellEvent, probe: &dyn Probe) {
        let edge = self.edge();
        let Some(shell) = &mut self.shell else { return };
        let (event, edge) = match event {
            ShellEvent::ShownEnd(status) => (ShellEvent::End(status), shell.shown.take().unwrap_or(edge)),
            event => (event, edge),
        };
        match (event, shell.phase) {
            (ShellEvent::PromptStart(status), phase) => {
                let pending = shell.pending.filter(|_| shell.accepted.is_some());
                match (&mut shell.proposal, phase, pending) {
                    (Some(proposal), ..) => proposal.on_prompt(status),
                    (None, Phase::Running(id), _) => self.propose_by_prompt(id, Begin::Marked, status, probe),
                    // The line was taken and the shell reads again: somebody has dropped the hooks, but not the prompt.
                    (None, _, Some(id)) => self.propose_by_prompt(id, Begin::Unmarked, status, probe),
                    (None, _, None) => {}
                }
            }
            (ShellEvent::PromptEnd, Phase::Running(_)) if shell.proposal.is_none() => {}
            (ShellEvent::PromptEnd, _) => {
                shell.marked_prompt = Some(edge.point.place);
                match &mut shell.proposal {
                    Some(proposal) => proposal.on_prompt_end(edge.point),
                    None => shell.come_to_prompt(edge.point),
                }
            }
            // Somebody prints the continuation prompt: the shell does not read.
            (ShellEvent::Continuation, Phase::Running(_)) if probe.is_canonical() => {}
            // Somebody else has left an unfinished command: it is taken back like any other text on the line.
            (ShellEvent::Continuation, Phase::Submitted | Phase::Prompt) if shell.pending.is_none() => {
                shell.phase = Phase::Prompt;
                shell.continued = Some(edge.point);
                self.typed = TypedText::Edited;
            }
            (ShellEvent::Continuation, phase) => {
                let running = if let Phase::Running(id) = phase { Some(id) } else { shell.pending };
                let command = running.and_then(|id| self.commands.get_mut(id));
                // A sentinel's lines are read one by one, and are complete at the end.
                if let Some(command) = command.filter(|command| matches!(command.way, Way::Integration)) {
                    command.incomplete.get_or_insert(edge);
                    // The line editor reads the rest of it.
                    shell.proposal = None;
                }
            }
            // The next command, which somebody typed while this one ran: a shell that has nothing to read starts none.
            (ShellEvent::Start, Phase::Running(_))
                if shell.has_typed_ahead && shell.proposal.as_ref().is_some_and(Proposal::has_prompt) =>
            {
                self.accept_proposal();
                self.on_start(edge.point);
            }
            // A start behind an end: one of them is not the shell's.
            (ShellEvent::Start, Phase::Running(_)) => {
                if let Some(proposal) = &mut shell.proposal {
                    proposal.contest();
                }
            }
            // What was announced before the start was not the end.
            (ShellEvent::Start, _) => {
                (shell.proposal, shell.shown) = (None, None);
                self.on_start(edge.point);
            }
            (ShellEvent::End(status), Phase::Running(id)) => self.propose(id, Begin::Marked, status, edge, probe),
            (ShellEvent::End(status), _) => match shell.pending {
                Some(id) => {
                    let begin = if shell.marks_starts { Begin::Unstarted } else { Begin::Unmarked };
                    self.propose(id, begin, status, edge, probe);
                }
                None => shell.phase = Phase::Ended,
            },
            (ShellEvent::FilesRead, _) => shell.has_read_files = true,
            (ShellEvent::NoStarts, _) => shell.marks_starts = false,
            (ShellEvent::Shown, _) => shell.shown = Some(edge),
            (
                ShellEvent::SentinelStart
                | ShellEvent::SentinelEnd(_)
                | ShellEvent::SentinelNote(_)
                | ShellEvent::ShownEnd(_)
                | ShellEvent::Dialect(_),
                _,
            ) => {}
        }
    }

    /// The shell announces the end of a command.
    fn propose(&mut self, id: CommandId, begin: Begin, status: Option<i32>, edge: Edge, probe: &dyn Probe) {
        let output = if begin == Begin::Marked { self.wanted_output(id, &edge) } else { None };
        let end = Announced::new(status, edge, output, probe);
        // A continuation prompt before an end was printed by the command.
        if let Some(command) = self.commands.get_mut(id) {
            command.incomplete = None;
        }
        let asks_for_pastes = self.reader(probe.pid()) == Some(Reader::Pastes);
        let Some(shell) = &mut self.shell else { return };
        match &mut shell.proposal {
            // A reply that nobody read made the line editor give a line up, behind the prompt of this command.
            Some(proposal) if proposal.id == id && proposal.has_editor() && self.has_answered => {}
            Some(proposal) if proposal.id == id => proposal.add(end),
            other => {
                let proposal = other.insert(Proposal::new(id, begin, end));
                // A reply of the terminal that nobody read can make a line editor give its line up (zsh takes the BEL of
                // an OSC for a key), and that looks the same. What was typed is read next then, and begins.
                if begin == Begin::Unstarted {
                    proposal.contest();
                } else if asks_for_pastes {
                    proposal.expect_editor();
                }
            }
        }
    }

    /// A prompt shows up, and no end was announced before it.
    fn propose_by_prompt(&mut self, id: CommandId, begin: Begin, status: Option<i32>, probe: &dyn Probe) {
        let edge = self.edge();
        let output = if begin == Begin::Marked { self.wanted_output(id, &edge) } else { None };
        let end = Announced::new(status, edge, output, probe);
        if let Some(shell) = &mut self.shell {
            shell.proposal = Some(Proposal::by_prompt(id, begin, end));
        }
    }

    /// A marked shell reads, and the cursor is not where its prompt ended: a hook or `print -z` put text on the line.
    pub(super) fn has_text_behind_prompt(&mut self) -> bool {
        let Some(MarkedShell { phase: Phase::Prompt, prompt: Some(prompt), .. }) = &self.shell else { return false };
        prompt.place != self.emulator.place()
    }

    pub(super) fn has_proposal(&self) -> bool {
        self.shell.as_ref().is_some_and(|shell| shell.proposal.is_some())
    }

    /// Accepts an announced end when the line editor has taken the terminal behind it. True when it was accepted.
    pub(super) fn confirm_by_editor(&mut self, probe: &dyn Probe) -> bool {
        let Some(MarkedShell { program, proposal: Some(proposal), .. }) = &self.shell else { return false };
        let is_confirmed = proposal.is_confirmed_by_editor(*program, probe);
        if is_confirmed {
            self.accept_proposal();
        }
        is_confirmed
    }

    /// When the kernel is to be asked whether the shell reads.
    pub(super) fn next_check(&self) -> Option<Instant> {
        self.shell.as_ref()?.proposal.as_ref().map(Proposal::due)
    }

    /// Asks the kernel about an announced end, if that is due.
    pub(super) fn check_end(&self, probe: &dyn Probe) -> Check {
        let Some(MarkedShell { program, proposal: Some(proposal), prompt_depth, .. }) = &self.shell else {
            return Check::NotYet;
        };
        if proposal.due() > Instant::now() {
            return Check::NotYet;
        }
        proposal.ask_kernel(*program, probe, self.last_output.elapsed(), *prompt_depth)
    }

    /// Accepts an announced end that was confirmed, or asks again later. True when it was accepted.
    pub(super) fn apply_check(&mut self, check: Check) -> bool {
        let Some(MarkedShell { proposal: slot @ Some(_), .. }) = &mut self.shell else { return false };
        match (check, slot) {
            (Check::Confirmed, _) => {
                self.accept_proposal();
                return true;
            }
            (Check::Question, slot) => *slot = None,
            (Check::NotYet, Some(proposal)) if proposal.due() <= Instant::now() => proposal.postpone(),
            (Check::NotYet, _) => {}
        }
        false
    }

    /// The command has ended as announced, and the shell reads.
    fn accept_proposal(&mut self) {
        let point = self.point();
        let Some(shell) = &mut self.shell else { return };
        let Some(proposal) = shell.proposal.take() else { return };
        let (id, begin, point) = (proposal.id, proposal.begin, proposal.prompt_end().unwrap_or(point));
        shell.has_lost_ends = proposal.is_by_prompt();
        let Some(Announced { status, edge, output, .. }) = proposal.decide() else { return };
        shell.pending.take_if(|pending| *pending == id);
        shell.come_to_prompt(point);
        match begin {
            Begin::Marked => {
                // A sentinel's output was taken when its own end mark came.
                if let Some(command) = self.commands.get_mut(id).filter(|command| command.output.is_none()) {
                    command.output = output;
                }
                let by = if status.is_some() { Evidence::Integration } else { Evidence::Prompt };
                self.close(id, status, by, edge);
            }
            Begin::Unstarted => self.close_unstarted(id, status, edge),
            Begin::Unmarked => self.close_unmarked(id, status, edge),
        }
        match (&mut self.shell, status) {
            (Some(shell), Some(_)) => shell.last_status = status,
            // Nothing but its line editor tells of this shell any more.
            (shell, None) => *shell = None,
            _ => {}
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
        }
    }

    /// What is printed from here on is the command's.
    pub(super) fn begin_output(&mut self, id: CommandId, point: Point) {
        let is_over_text = self.is_over_text();
        if let Some(command) = self.commands.get_mut(id) {
            command.start = Some(point);
            command.is_over_text = is_over_text;
        }
        self.note_evicted(id, point);
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
        let (last_status, program) = (shell.last_status, shell.program);
        if let Some(command) = self.commands.get_mut(id) {
            command.start = Some(from);
        }
        let stretch = Stretch { start: from, end: &edge, is_over_text: false, notes_evicted: false };
        let said = self.stretch(&stretch, usize::MAX).text;
        let status = match (said.trim().is_empty(), status) {
            // A comment leaves the status as it was, and it is not this command's.
            (true, status) if status == last_status || status.is_none() => Some(0),
            // It has no complaints but those of its line editor: the command ran, and its start was not marked.
            (false, Some(0)) if program == IntegratedShell::Fish => Some(0),
            // A complaint with the old status: the shell forgot to set it.
            (false, Some(0) | None) => Some(1),
            (_, status) => status,
        };
        self.close(id, status, Evidence::Integration, edge);
    }

    /// The command ran, and only the prompts around it tell so. What it printed begins below the line that was taken.
    fn close_unmarked(&mut self, id: CommandId, status: Option<i32>, edge: Edge) {
        let accepted = self.shell.as_mut().and_then(|shell| shell.accepted.take());
        // Its sentinel has told more, also where a line editor has wiped its line out.
        match self.commands.get(id).map(|command| (command.end.is_some(), command.candidate.clone())) {
            Some((false, None)) => {}
            Some((false, Some((status, edge)))) => return self.close(id, status, Evidence::Sentinel, edge),
            Some((true, _)) | None => return,
        }
        let mut start = accepted.unwrap_or(edge.point);
        let (bytes, _) = self.ring.slice(start.offset, edge.point.offset);
        // Some line editors go to the next line before they give the terminal back, others after that.
        let is_on_prompt = start.place.chars > 0;
        if let Some(newline) = memchr::memchr(b'\n', &bytes).filter(|_| is_on_prompt) {
            start.offset += newline as u64 + 1;
            start.place = Place { line: start.place.line + 1, chars: 0, ..start.place };
        }
        if let Some(command) = self.commands.get_mut(id) {
            command.start = Some(start);
        }
        let by = if status.is_some() { Evidence::Integration } else { Evidence::Prompt };
        self.close(id, status, by, edge);
    }

    /// Takes the output of a command that somebody waits for.
    pub(super) fn take_output(&mut self, id: CommandId, end: &Edge) {
        let Some(output) = self.wanted_output(id, end) else { return };
        if let Some(command) = self.commands.get_mut(id) {
            command.output = Some(output);
        }
    }

    /// The output of a command up to an end, if somebody waits for it and it was not taken yet.
    fn wanted_output(&mut self, id: CommandId, end: &Edge) -> Option<Output> {
        let command = self.commands.get(id)?;
        let Command { wanted: Some(max_chars), output: None, start: Some(start), .. } = *command else { return None };
        let is_over_text = self.is_redrawn(command);
        let notes_evicted = self.notes_evicted_of(id);
        Some(self.stretch(&Stretch { start, end, is_over_text, notes_evicted }, max_chars))
    }

    /// The command ended. Commands that were typed into it have ended with it; one that was typed to the same shell was
    /// not: that shell had come to read again, and only word of the end came late.
    pub(super) fn close(&mut self, id: CommandId, status: Option<i32>, by: Evidence, edge: Edge) {
        let shell_of = |command: &Command| match &command.way {
            Way::Sentinel { typed_to: Some(typed_to), .. } => typed_to.pid,
            _ => None,
        };
        let own = self.commands.get(id).and_then(shell_of);
        let is_inner = |command: &&Command| command.id > id && (own.is_none() || shell_of(command) != own);
        let inner: Vec<_> = self.commands.open().filter(is_inner).map(|command| command.id).collect();
        for inner in inner {
            self.finish(inner, status, Evidence::ShellExit, edge.clone());
        }
        self.finish(id, status, by, edge);
        self.emulator.settle();
    }

    pub(super) fn finish(&mut self, id: CommandId, status: Option<i32>, by: Evidence, edge: Edge) {
        let Some(command) = self.commands.get_mut(id).filter(|command| command.end.is_none()) else { return };
        command.start.get_or_insert(edge.point);
        let after = edge.at.saturating_duration_since(command.since);
        self.commands.end(id, End { status, by, after, edge: edge.clone() });
        self.end_evicted(id, edge.point.place);
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

    /// A command began and was interrupted, and nothing has come of it for this long.
    pub(super) fn was_interrupted(&self, id: CommandId, silence: Duration) -> bool {
        let was = |command: &Command| command.interrupted && command.start.is_some() && command.candidate.is_none();
        self.commands.get(id).is_some_and(was) && self.last_output.elapsed() >= silence
    }

    /// Gives such a command up: it has ended, and nobody knows how.
    pub(super) fn give_up(&mut self, id: CommandId) {
        let edge = self.edge();
        self.close(id, None, Evidence::Prompt, edge);
    }
}

/// The line is the prompt and nothing else; Enter on an empty line can put several side by side.
pub(super) fn is_prompt(line: &str, prompt: &str) -> bool {
    let is_text = !prompt.trim().is_empty() && !line.is_empty();
    is_text && line.len().is_multiple_of(prompt.len()) && prompt.repeat(line.len() / prompt.len()) == line
}

impl MarkedShell {
    /// One that has just been started.
    pub(super) fn new(program: IntegratedShell, args: Vec<String>, secret: String) -> Self {
        Self {
            program,
            args,
            secret,
            phase: Phase::Starting,
            pending: None,
            proposal: None,
            accepted: None,
            prompt: None,
            continued: None,
            has_typed_ahead: false,
            last_status: None,
            has_read_files: false,
            marks_starts: true,
            prompt_depth: None,
            marked_prompt: None,
            shown: None,
            has_lost_ends: false,
        }
    }

    /// A command is about to be typed.
    pub(super) fn expect(&mut self, id: CommandId) {
        self.has_typed_ahead = false;
        if self.phase == Phase::Prompt {
            (self.pending, self.accepted) = (Some(id), None);
        }
    }

    /// Its ends are not marked any more, and its line editor prints before its prompt what is no output of a command: a
    /// sentinel tells better.
    pub(super) fn needs_sentinel(&self) -> bool {
        self.program == IntegratedShell::Zsh && self.has_lost_ends
    }

    fn come_to_prompt(&mut self, point: Point) {
        self.phase = Phase::Prompt;
        (self.prompt, self.continued) = (Some(point), None);
    }

    /// Where its prompt ended.
    pub(super) fn prompt_end(&self) -> Option<Place> {
        self.prompt.map(|point| point.place)
    }

    /// Where its continuation prompt began, while it reads the rest of a command.
    pub(super) fn continued_at(&self) -> Option<Place> {
        self.continued.map(|point| point.place)
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
