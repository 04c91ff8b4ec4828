//! Lines that somebody other than `talk` typed, and whether the shell waits for the rest of them.
//!
//! Only what was typed while the same process group had the terminal counts: what a program read is no command. Pure;
//! a shell that marks what it does tells such things itself.

use crate::terminal::sentinel::Form;
use kpty_guard::is_complete;

/// Longest text that is kept, in bytes. Of more nothing is known.
const LONGEST: usize = 8 << 10;

/// What was typed since the last command of ours.
#[derive(Debug, Default)]
pub(super) struct ForeignLines {
    /// Who had the terminal.
    group: Option<u32>,
    text: String,
    /// A line editor has handed a line over since the last Enter.
    is_accepted: bool,
}

impl ForeignLines {
    /// Somebody typed this while a process group had the terminal.
    pub(super) fn add(&mut self, bytes: &[u8], group: Option<u32>) {
        if self.group != group {
            *self = Self { group, ..Self::default() };
        }
        if group.is_none() {
            return;
        }
        // What stands before an interrupt or the end of input is no longer waited for.
        let from = bytes.iter().rposition(|byte| matches!(byte, 0x03 | 0x04 | 0x1a | 0x1c));
        if from.is_some() {
            self.text.clear();
        }
        let typed =
            String::from_utf8_lossy(&bytes[from.map_or(0, |at| at + 1)..]).replace("\r\n", "\n").replace('\r', "\n");
        self.is_accepted &= !typed.contains('\n');
        self.text.push_str(&typed);
        if self.text.len() > LONGEST {
            self.text.clear();
        }
    }

    /// A line editor handed a line over.
    pub(super) fn on_accepted(&mut self) {
        self.is_accepted = true;
    }

    /// Nothing was typed.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// At least one line was ended.
    pub(super) fn has_line(&self) -> bool {
        self.text.contains('\n')
    }

    /// Something other than text was typed since the last Enter.
    fn has_key(&self) -> bool {
        self.text.rsplit('\n').next().is_some_and(|line| line.contains(|c: char| c.is_control() && c != '\t'))
    }

    /// The shell with this process group, which reads, reads the rest of a command. `moved` tells whether it reads at
    /// another depth than at its prompt, where that is known, `shows_prompt` whether its known prompt is to be seen.
    pub(super) fn is_unfinished(&self, group: u32, form: Form, moved: Option<bool>, shows_prompt: bool) -> bool {
        // Enter alone begins nothing.
        if self.group != Some(group) || self.text.trim().is_empty() {
            return false;
        }
        match (form, moved) {
            // It reads all lines of a command at its prompt, and hands them over together. A key may have opened a
            // search or brought back older lines.
            (Form::Fish, _) => (self.has_line() && !self.is_accepted && !shows_prompt) || self.has_key(),
            (Form::PowerShell, _) => false,
            _ if !self.has_line() => false,
            (_, Some(true)) => true,
            (Form::Zsh, Some(false)) => false,
            _ if self.text.ends_with("\\\n") => true,
            _ => !shows_prompt && !is_complete(self.text.trim_end_matches('\n')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unfinished(text: &str, form: Form, moved: Option<bool>, shows_prompt: bool) -> bool {
        let mut lines = ForeignLines::default();
        lines.add(text.as_bytes(), Some(7));
        lines.is_unfinished(7, form, moved, shows_prompt)
    }

    #[test]
    fn a_command_without_its_end_is_unfinished() {
        for (text, expected) in [
            ("echo 'abc\r", true),
            ("echo 'abc", false),
            ("echo 'abc'\r", false),
            ("if true; then\r", true),
            ("if true; then\rfi\r", false),
            ("cat <<X\rtext\r", true),
            ("cat <<X\rtext\rX\r", false),
            ("echo a \\\r", true),
            ("echo 'abc\r\x03", false),
            ("echo 'abc\r\x03ls\r", false),
        ] {
            assert_eq!(unfinished(text, Form::Posix, None, false), expected, "{text:?}");
        }
    }

    #[test]
    fn other_evidence_counts_more_than_the_text() {
        assert!(unfinished("ls\r", Form::Posix, Some(true), true));
        assert!(!unfinished("for i (1 2) ls\r", Form::Zsh, Some(false), false));
        assert!(!unfinished("echo 'abc\r", Form::Posix, None, true));
        assert!(unfinished("begin\r", Form::Fish, None, false));
        assert!(unfinished("ls\x1b[D", Form::Fish, None, false) && !unfinished("ls", Form::Fish, None, false));
        let mut lines = ForeignLines::default();
        lines.add(b"if true; ls; end\r", Some(7));
        lines.on_accepted();
        assert!(!lines.is_unfinished(7, Form::Fish, None, false));
        assert!(!lines.is_unfinished(8, Form::Posix, None, false));
    }
}
