//! Gathers what the attention state of a session is concluded from: its foreground as the system sees it, the modes of
//! its terminal, the screen, the marks of its shell. Nothing is kept: a state is found when asked
//! for, by one look, or by a few a millisecond apart where a program may only be drawing its clock.

use std::time::Duration;

use kpty_emulator::{Buffer, Mode, Request};

use super::Session;
use super::foreground::{ReadDepth, carries_shell, read_depth};
use super::readiness::{PASTE_TIMEOUT, Readiness};
use super::state::TerminalState;
use crate::terminal::attention::{Activity, Attention, Editing, Facts, Input, PINENTRY, Process, Shell, Shown};
use crate::terminal::local::pty::{self, Front};
use crate::terminal::sentinel::Form;

/// How often a program is looked at again that was busy at the moment, behind a line that may be its question.
const MOST_LOOKS: usize = 3;
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(1);

impl Session {
    /// What its program does, and whether it goes on without input.
    #[expect(clippy::disallowed_methods, reason = "nothing tells when a program has drawn its clock")]
    pub fn attention(&self) -> Attention {
        let mut attention = Attention::judge(&self.facts());
        for _ in 0..MOST_LOOKS {
            if !attention.is_passing() {
                break;
            }
            std::thread::sleep(PAUSE);
            attention = Attention::judge(&self.facts());
        }
        attention
    }

    fn facts(&self) -> Facts {
        if self.exit().is_some() {
            return Facts { has_ended: true, ..Facts::default() };
        }
        let control = &self.shared.control;
        let front = control.foreground_group().and_then(|group| pty::front(control.pid(), group));
        let modes = control.line_modes();
        let mut editing = modes.map(|modes| Editing { canonical: modes.canonical, echo: modes.echo });
        let (shown, quiet, reads_secretly) = {
            let mut terminal = self.shared.lock();
            let reads_secretly = self.shared.shell.ends_with("fish") && terminal.reads_secretly();
            (terminal.shown(), terminal.last_output.max(terminal.last_typed).elapsed(), reads_secretly)
        };
        // What it says now is not on the screen yet.
        let is_marked = self.is_integrated() && control.foreground_group() == Some(control.pid());
        let quiet = if control.has_output() { Duration::ZERO } else { quiet };
        let shell = self.shell_state(front.as_ref(), quiet);
        let front = front.map(|front| self.with_pinentry(front, editing));
        let processes = front.map(|Front { processes, relay }| match relay {
            Some(relay) => {
                editing = relay.editing;
                relay.processes
            }
            None => processes,
        });
        let redactor = self.redactor();
        Facts { has_ended: false, shell, is_marked, processes, editing, shown, reads_secretly, quiet, redactor }
    }

    /// Adds a program that asks for a passphrase in the name of one that waits for it: an agent in the background started
    /// it. Looked for only where nobody else reads and nothing typed is shown.
    fn with_pinentry(&self, mut front: Front, editing: Option<Editing>) -> Front {
        let is_hidden = editing.is_some_and(|editing| !editing.echo);
        let is_asleep = |process: &Process| process.input == Input::Nothing && process.activity == Activity::Asleep;
        if is_hidden && front.relay.is_none() && front.processes.iter().all(is_asleep) {
            front.processes.extend(pty::reader_from_outside(self.shared.control.pid(), PINENTRY));
        }
        front
    }

    /// A shell that marks nothing reads at another depth than when somebody typed at it for the first time: it asks.
    fn reads_elsewhere_than_first(&self, group: u32) -> bool {
        let is_alike = pty::program_of(group).is_some_and(|program| ALIKE.contains(&program.name.as_str()));
        let first = if is_alike { self.shared.lock().first_typed_at(group) } else { None };
        first.is_some() && read_depth(pty::call_depth(group), first) == Some(ReadDepth::Builtin)
    }

    /// Where the shell is. Only programs that may be one are looked at closely.
    fn shell_state(&self, front: Option<&Front>, quiet: Duration) -> Shell {
        if let Some(front) = front {
            let outer = front.processes.first();
            let inner = front.relay.as_ref().and_then(|relay| relay.processes.first());
            if !inner.or(outer).is_none_or(may_be_shell) {
                return Shell::Busy;
            }
        }
        // What was waited for since anything was heard of it.
        match self.peek(quiet.max(PASTE_TIMEOUT)) {
            Readiness::AtPrompt | Readiness::EditedLine if self.shared.lock().continues() => Shell::Continuation,
            Readiness::AtPrompt | Readiness::EditedLine => Shell::Prompt,
            Readiness::ForeignShell { typed_to: Some(typed_to), .. } if typed_to.pid.is_some() => {
                match self.reads_elsewhere_than_first(typed_to.group) {
                    true => Shell::Busy,
                    false => Shell::Prompt,
                }
            }
            Readiness::ForeignShell { .. } => Shell::Elsewhere,
            Readiness::Unfinished => Shell::Continuation,
            Readiness::NotYet(_) if self.is_starting() => Shell::Starting,
            Readiness::NotYet(_) => Shell::Settling,
            Readiness::Busy(_, Some(foreground)) if foreground.program.as_ref().is_some_and(carries_shell) => {
                Shell::Elsewhere
            }
            Readiness::Busy(..) => Shell::Busy,
        }
    }
}

/// Shells whose questions are read by the same system call as their prompts.
const ALIKE: [&str; 4] = ["bash", "fish", "ksh", "ksh93"];

/// It is a shell by its name or by its file, or a program that leads to one.
fn may_be_shell(process: &Process) -> bool {
    Form::for_program(&process.name).is_some()
        || pty::program_of(process.pid).is_some_and(|program| {
            carries_shell(&program) || Form::for_program(&super::readiness::named_by_file(program).name).is_some()
        })
}

impl TerminalState {
    fn shown(&mut self) -> Shown {
        let before_cursor = self.line_before_cursor();
        let answer = self.emulator.read(&Request::new(Mode::Viewport), None);
        let lines = answer.line_numbers.iter().zip(answer.lines());
        let with_text: Vec<(u64, &str)> =
            lines.map(|(&number, line)| (number, line)).filter(|(_, line)| !line.trim().is_empty()).collect();
        Shown {
            alternate: answer.buffer == Buffer::Alternate,
            cursor_visible: answer.cursor.visible,
            before_cursor,
            last_line: with_text.last().map(|(_, line)| (*line).to_owned()).unwrap_or_default(),
            below_cursor: with_text.iter().filter(|(number, _)| *number > answer.cursor_line).count(),
            bracketed_paste: self.emulator.modes().bracketed_paste,
        }
    }

    /// The shell shows its continuation prompt.
    fn continues(&self) -> bool {
        self.shell.as_ref().is_some_and(|shell| shell.continued_at().is_some())
    }

    /// The command that runs is a `read` that hides what is typed by drawing something else.
    fn reads_secretly(&self) -> bool {
        let running = self.commands.open().next_back().map(|command| command.line.as_str());
        running.is_some_and(reads_secretly)
    }
}

/// One of the commands of this line is `read` with the option that hides its input.
fn reads_secretly(line: &str) -> bool {
    line.split([';', '|', '&', '\n']).any(|command| {
        let mut words = command.split_whitespace();
        let is_option =
            |word: &str| word == "--silent" || (word.starts_with('-') && !word.starts_with("--") && word.contains('s'));
        words.next() == Some("read") && words.any(is_option)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_hides_is_known_by_its_option() {
        for (line, expected) in [
            ("read -s", true),
            ("echo a; read -P 'Password: ' -s x", true),
            ("read -sP 'Password: ' x", true),
            ("read --silent x", true),
            ("read x", false),
            ("cat -s", false),
        ] {
            assert_eq!(reads_secretly(line), expected, "{line}");
        }
    }
}
