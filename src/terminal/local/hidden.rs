//! Whether what is typed now is shown: passwords are typed while nothing is echoed, and must not be recorded.
//!
//! A line editor switches echo off as well, because it draws what is typed itself. So two things count: the system edits
//! the line and does not echo it (`sudo`, `ssh`, `read -s`, `getpass`), or a program reads key by key and the line
//! that it left the cursor on asks for something secret (`mysql`, a prompt with asterisks, fish's `read -s`).

use std::sync::PoisonError;
use std::time::Instant;

use kpty_emulator::Buffer;

use super::evidence::Phase;
use super::{Session, Writer};
use crate::terminal::AttentionState;
use crate::terminal::secret_question::is_secret_question;

impl Session {
    /// What is typed now is not shown: it is a password, or the like.
    pub fn hides_input(&self) -> bool {
        match self.shared.control.line_modes() {
            None => false,
            Some(modes) if modes.echo => false,
            Some(modes) if modes.canonical => true,
            Some(_) => self.asks_for_secret() || self.is_asked_behind(),
        }
    }

    /// Something was typed since then that was not shown.
    pub fn typed_hidden_since(&self, moment: Instant) -> bool {
        let last = *self.shared.typed_hidden.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_some_and(|last| last >= moment)
    }

    /// Notes that something is about to be typed. What `talk` types goes to a shell, which shows it.
    pub(super) fn note_hidden(&self, writer: Writer) {
        let is_hidden = match writer {
            Writer::Talk => self.shared.control.line_modes().is_some_and(|modes| modes.canonical && !modes.echo),
            Writer::Other => self.hides_input(),
        };
        if is_hidden {
            *self.shared.typed_hidden.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
    }

    /// A program that has the terminal in raw mode passes on what is typed to one that hides it.
    fn is_asked_behind(&self) -> bool {
        let is_at_prompt = {
            let terminal = self.shared.lock();
            terminal.shell.as_ref().is_some_and(|shell| shell.phase == Phase::Prompt)
                || terminal.emulator.buffer() == Buffer::Alternate
        };
        !is_at_prompt && self.attention().state == AttentionState::InputSecret
    }

    /// The cursor stands behind a question for a secret. At a shell's prompt it never does, whatever the prompt says.
    fn asks_for_secret(&self) -> bool {
        let mut terminal = self.shared.lock();
        let is_at_prompt = terminal.shell.as_ref().is_some_and(|shell| shell.phase == Phase::Prompt);
        if is_at_prompt || terminal.emulator.buffer() == Buffer::Alternate {
            return false;
        }
        // A program that draws its line anew leaves the cursor at its beginning for a moment.
        let line = terminal.emulator.place().line;
        is_secret_question(&terminal.line_before_cursor()) || is_secret_question(&terminal.line(line))
    }
}
