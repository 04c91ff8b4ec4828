//! A shell in the foreground that would get what is typed, and what its earlier commands tell of it.

use std::time::Duration;

use kpty_emulator::Buffer;

use super::evidence::is_prompt;
use super::foreground::{ReadDepth, Wanted, read_depth, startup_descriptor, wanted};
use super::readiness::{ASKING, PASTE_TIMEOUT, Readiness, SETTLING, START_TIMEOUT, STARTING};
use super::state::{TerminalState, TypedText};
use crate::terminal::commands::{Command, TypedTo, Way};
use crate::terminal::local::pty::{self, Foreground, Program, Waiting};
use crate::terminal::sentinel::Form;

/// A shell that would get what is typed.
pub(super) struct Reached {
    pub(super) form: Form,
    pub(super) name: String,
    /// The program in the foreground is a copy of its parent.
    pub(super) is_fork: bool,
    /// What the shell waits for, where the kernel tells.
    pub(super) waiting: Option<Waiting>,
    pub(super) wants: Option<Wanted>,
    pub(super) typed_to: TypedTo,
}

impl Reached {
    pub(super) fn new(form: Form, shell: Option<Program>, program: &Program, foreground: &Foreground) -> Self {
        let is_behind_relay = shell.as_ref().is_none_or(|shell| shell.pid != program.pid);
        let canonical = (!is_behind_relay).then_some(foreground.canonical);
        let pid = shell.as_ref().map(|shell| shell.pid);
        let waiting = pid.and_then(pty::waits_for);
        let wants = shell.as_ref().zip(waiting).and_then(|(shell, waiting)| wanted(&shell.name, waiting, canonical));
        let depth = pid.filter(|_| !matches!(waiting, None | Some(Waiting::Nothing))).and_then(pty::call_depth);
        let inner_args = shell.iter().filter(|_| is_behind_relay).flat_map(|shell| &shell.args);
        let args = program.args.iter().chain(inner_args).cloned().collect();
        Self {
            form,
            name: shell.as_ref().unwrap_or(program).name.clone(),
            is_fork: program.is_fork,
            waiting,
            wants,
            typed_to: TypedTo { group: foreground.group, args, pid, depth },
        }
    }

    /// On another machine, or where the system tells nothing of it.
    pub(super) fn is_far_away(&self) -> bool {
        self.typed_to.pid.is_none()
    }

    /// A shell that has run no command yet may still be about to read, or run a start-up file, which may ask for
    /// something.
    pub(super) fn before_first_command(
        &self,
        terminal: &TerminalState,
        waited: Duration,
    ) -> Option<std::result::Result<Readiness, String>> {
        if terminal.has_typed_to(self.typed_to.group) {
            return None;
        }
        // A start-up file runs programs in the shell's own process group.
        if terminal.commands.iter().next().is_none() && terminal.emulator.buffer() == Buffer::Alternate {
            return Some(Err("A program that fills the screen has the terminal before the first prompt".to_owned()));
        }
        // It is looked at when it has come to rest: its output may be a question.
        if self.waiting == Some(Waiting::Nothing) && waited < PASTE_TIMEOUT {
            return Some(Ok(Readiness::NotYet(waited + SETTLING)));
        }
        // bash has read its whole start-up file by now; a program that this runs is in the same process group.
        if self.form == Form::Bash
            && self.waiting == Some(Waiting::Nothing)
            && let Some(program) = pty::reader_beside(self.typed_to.group)
        {
            return Some(Err(format!("{} asks for something before the first prompt", program.name)));
        }
        let reads_file = |pid| startup_descriptor(&self.name).is_some_and(|least| pty::reads_file(pid, least));
        if !self.typed_to.pid.is_some_and(reads_file) {
            return None;
        }
        let silence = terminal.last_output.elapsed();
        Some(match self.waiting {
            _ if silence < ASKING => Ok(Readiness::NotYet(waited + ASKING - silence)),
            Some(Waiting::Nothing) if waited < START_TIMEOUT => Ok(Readiness::NotYet(waited + STARTING)),
            _ => Err(format!("{} asks for something before its first prompt", self.name)),
        })
    }

    /// One of its builtins reads. A shell that shows its prompt does not ask.
    pub(super) fn asks(&self, terminal: &mut TerminalState) -> bool {
        let depth = read_depth(self.typed_to.depth, terminal.prompt_depth(&self.typed_to));
        let is_untouched = terminal.is_untouched() && terminal.foreign.is_empty();
        let is_within_builtin = match depth {
            Some(ReadDepth::Builtin) => true,
            Some(ReadDepth::NearPrompt) => is_untouched,
            Some(ReadDepth::Prompt) | None => false,
        };
        (self.wants == Some(Wanted::Answer) || is_within_builtin) && !terminal.shows_prompt_of(self.typed_to.group)
    }

    /// It reads the rest of a command that somebody left unfinished.
    pub(super) fn is_unfinished(&self, terminal: &mut TerminalState) -> bool {
        if terminal.foreign.is_empty() {
            return false;
        }
        let group = self.typed_to.group;
        let at_prompt = terminal.prompt_depth(&self.typed_to);
        let moved = self.typed_to.depth.zip(at_prompt).map(|(depth, at_prompt)| depth != at_prompt);
        let shows_prompt = terminal.shows_prompt_of(group);
        terminal.foreign.is_unfinished(group, self.form, moved, shows_prompt)
    }
}

impl TerminalState {
    /// A command was typed to this process group before.
    pub(super) fn has_typed_to(&self, group: u32) -> bool {
        let is_there = |command: &Command| matches!(&command.way, Way::Sentinel { typed_to: Some(typed_to), .. } if typed_to.group == group);
        self.commands.iter().rev().any(is_there)
    }

    /// The cursor stands behind the prompt that the last command in this process group was typed at.
    pub(super) fn shows_prompt_of(&mut self, group: u32) -> bool {
        let line = self.line_before_cursor();
        let last = self.commands.iter().rev().find_map(|command| match &command.way {
            Way::Sentinel { typed_to: Some(typed_to), prompt, .. } if typed_to.group == group => Some(prompt),
            _ => None,
        });
        last.is_some_and(|prompt| is_prompt(&line, prompt))
    }

    /// How deep the calls of this shell were when it read a command that it has run since: as deep as now, if that ever
    /// was so, else as the first time. A line with text on it may have been read at another depth.
    pub(super) fn prompt_depth(&self, now: &TypedTo) -> Option<u64> {
        let depths = self.commands.iter().filter_map(|command| match &command.way {
            Way::Sentinel { typed_to: Some(typed_to), .. }
                if command.start.is_some() && typed_to.pid == now.pid && typed_to.args == now.args =>
            {
                typed_to.depth
            }
            _ => None,
        });
        let mut first = None;
        for depth in depths {
            if Some(depth) == now.depth {
                return now.depth;
            }
            first = first.or(Some(depth));
        }
        first
    }

    /// Nobody typed on the line since the shell drew its prompt, and the terminal answered nothing.
    pub(super) fn is_untouched(&self) -> bool {
        self.typed == TypedText::None && !self.has_answered
    }
}
