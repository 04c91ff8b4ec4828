//! Tells a marked shell that reads its prompt from one in which a hook or a builtin asks something with the same line
//! editor (`read -e`, `vared`, fish's `read`): those read at another depth of the shell's calls.
//!
//! The depth of the prompt is learned where the cursor stands at the marked end of a prompt.

use std::time::Duration;

use super::Session;
use super::foreground::{ReadDepth, read_depth};
use super::readiness::{PASSING, PROMPT_TIMEOUT, Readiness, SETTLING};
use crate::terminal::local::pty::{self, Program, Waiting};

/// zsh reads its first prompt at less than half of this depth, and the question of a hook at more than this.
const FIRST_QUESTION_DEPTH: u64 = 8_192;

/// A hook of a zsh that has shown no prompt yet asks something by the line editor.
pub(super) fn asks_before_first_prompt(program: &Program) -> bool {
    program.name == "zsh" && pty::call_depth(program.pid).is_some_and(|depth| depth > FIRST_QUESTION_DEPTH)
}

impl Session {
    /// Looks whether a marked shell that has drawn a prompt, or something that looks like one, can be typed at.
    pub(super) fn look_at_marked_prompt(&self, waited: Duration) -> Readiness {
        let pid = self.shared.control.pid();
        let Some(waiting) = pty::waits_for(pid) else { return Readiness::AtPrompt };
        if waiting == Waiting::Nothing {
            // Its line editor is about to read, or code of the user's runs.
            return match waited < PROMPT_TIMEOUT {
                true => Readiness::NotYet(waited + SETTLING),
                false => Readiness::Busy("The shell does not read".to_owned(), self.foreground()),
            };
        }
        let depth = pty::call_depth(pid);
        let (is_prompt, timeout) = {
            let mut terminal = self.shared.lock();
            let is_untouched = terminal.is_untouched();
            let place = terminal.emulator.place();
            let Some(shell) = &mut terminal.shell else { return Readiness::NotYet(waited + SETTLING) };
            let timeout = if shell.marked_prompt.is_some() { PASSING } else { PROMPT_TIMEOUT };
            let is_prompt = match read_depth(depth, shell.prompt_depth) {
                Some(ReadDepth::Prompt) => true,
                // Nothing was drawn behind the prompt. fish reads the first replies of the terminal at another depth.
                _ if shell.marked_prompt == Some(place) => {
                    shell.prompt_depth = depth;
                    true
                }
                Some(ReadDepth::NearPrompt) => !is_untouched,
                Some(ReadDepth::Builtin) => false,
                None => depth.is_none() || shell.marked_prompt.is_some(),
            };
            (is_prompt, timeout)
        };
        match is_prompt {
            true => Readiness::AtPrompt,
            // What it has drawn is not known yet.
            false if waited < PROMPT_TIMEOUT && self.shared.control.has_output() => {
                Readiness::NotYet(waited + SETTLING)
            }
            false if waited < timeout => Readiness::NotYet(waited + SETTLING),
            false => Readiness::Busy("The shell asks for something before its prompt".to_owned(), self.foreground()),
        }
    }
}
