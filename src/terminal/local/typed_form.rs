//! Keeps typed forms off the screen.
//!
//! Where a command is typed with a sentinel, the shell echoes the whole form, and prints the sentinel at its end. Nobody
//! typed the one or asked for the other: when the command begins, its echo is replaced by the command alone, and when it
//! has ended, the sentinel's line goes. Both are done by sequences put into the stream where the shell's own mark stands,
//! so that screen, raw output and recording agree. They move the cursor by rows only, as shells do.

use std::fmt::Write as _;

use kpty_emulator::{Buffer, Mode, Place, Request};

use super::state::{Ingested, TerminalState, TypedText};
use crate::ids::CommandId;
use crate::terminal::commands::{Command, Evidence, TypedTo, Way};
use crate::terminal::sentinel::Pipeline;

/// Characters of a command that are shown in the place of its form.
const SHOWN_CHARS: usize = 2_000;

/// Rows that a sentinel and the blank line before it take at most; what is more is not only that.
const MOST_SENTINEL_ROWS: isize = 4;

impl TerminalState {
    /// Where the prompt ends at which a command is about to be typed. What somebody left behind it is taken back first.
    pub(super) fn end_of_prompt(&mut self, typed_to: Option<&TypedTo>) -> Place {
        let place = self.emulator.place();
        if self.typed == TypedText::None {
            return place;
        }
        let line = self.line_before_cursor();
        let last = self.commands.iter().rev().find_map(|command| match &command.way {
            Way::Sentinel { typed_to: Some(other), prompt, .. } if typed_to.is_some_and(|now| now.is_same(other)) => {
                Some(prompt)
            }
            _ => None,
        });
        match last.filter(|prompt| line.starts_with(prompt.as_str())) {
            Some(prompt) => Place { chars: prompt.chars().count(), ..place },
            None => place,
        }
    }

    /// The statuses of the pipeline that ran last in a shell, if nobody ran anything else there since.
    pub(super) fn last_pipeline(&self, way: &Way) -> Pipeline {
        let Way::Sentinel { typed_to: Some(now), .. } = way else { return Pipeline::default() };
        let last = self.commands.iter().next_back().filter(|_| !self.has_typed_line);
        let pipeline = last.and_then(|command| match (&command.way, &command.end) {
            (Way::Sentinel { typed_to: Some(then), .. }, Some(end))
                if then.is_same(now) && end.by == Evidence::Sentinel =>
            {
                Some(command.pipeline.of(end.status))
            }
            _ => None,
        });
        pipeline.unwrap_or_default()
    }

    /// Replaces the echo of a form by the command. Does nothing where the echo is not to be seen.
    pub(super) fn hide_typed_form(&mut self, id: CommandId, ingested: &mut Ingested) {
        let Some(Command {
            way: Way::Sentinel { sentinel, typed_at: Some(typed_at), prompt, .. },
            line,
            start: None,
            ..
        }) = self.commands.get(id)
        else {
            return;
        };
        let (from, name, prompt, shown) = (*typed_at, sentinel.name().to_owned(), prompt.clone(), shown(line));
        if !self.shows_echo(from, &name) {
            return;
        }
        let Some((row, col)) = self.emulator.position(from) else { return };
        // The beginning of a long form may have left the screen.
        let (row, col) = if row < 0 { (0, 0) } else { (row as usize, col) };
        let Some(up) = usize::from(self.emulator.cursor().row).checked_sub(row) else { return };
        // A line editor that shows one row of a long line draws over the prompt.
        let has_prompt = self.line(from.line).chars().take(from.chars).eq(prompt.chars().take(from.chars));
        let mut bytes = String::from("\r");
        push_move(&mut bytes, up, 'A');
        if has_prompt {
            push_move(&mut bytes, col, 'C');
        }
        bytes.push_str("\x1b[J");
        if !has_prompt {
            bytes.push_str(&prompt);
        }
        bytes.push_str(&shown);
        bytes.push_str("\r\n");
        self.feed(bytes.as_bytes(), ingested);
    }

    /// The text from a place to the cursor has a name of the form in it. A shell may wrap its echo anywhere, or show only
    /// the end of each line.
    fn shows_echo(&mut self, from: Place, name: &str) -> bool {
        let now = self.emulator.place();
        if from.buffer != Buffer::Main || now.buffer != Buffer::Main || now.line < from.line {
            return false;
        }
        let range = Mode::Range { from: from.line, until: Some(now.line + 1) };
        let text = self.emulator.read(&Request::new(range), None).text;
        text.split_whitespace().collect::<String>().contains(name)
    }

    /// Takes the line of a sentinel off the screen, and the blank one that it began below the output. A prompt may stand
    /// behind it already.
    pub(super) fn hide_sentinel(&mut self, output_end: Place, line: u64, ingested: &mut Ingested) {
        let is_blank = output_end.chars == 0 && output_end.line < line && self.line(output_end.line).is_empty();
        let first = if is_blank { output_end.line } else { line };
        let row_of = |terminal: &mut Self, line| {
            terminal.emulator.position(Place { line, chars: 0, buffer: Buffer::Main }).map(|(row, _)| row)
        };
        let (Some(top), Some(below)) = (row_of(self, first), row_of(self, line + 1)) else { return };
        let cursor = self.emulator.cursor();
        let (row, col) = (cursor.row as isize, usize::from(cursor.col));
        // Only what stands wholly on the screen, above the cursor, can be taken away.
        if top < 0 || below > row || below - top > MOST_SENTINEL_ROWS {
            return;
        }
        let mut bytes = String::from("\r");
        push_move(&mut bytes, (row - top) as usize, 'A');
        push_move(&mut bytes, (below - top) as usize, 'M');
        push_move(&mut bytes, (row - below) as usize, 'B');
        push_move(&mut bytes, col, 'C');
        self.feed(bytes.as_bytes(), ingested);
    }
}

/// A control sequence with a count; none for nothing.
pub(super) fn push_move(bytes: &mut String, count: usize, letter: char) {
    if count > 0 {
        // Writing to a String cannot fail.
        let _ = write!(bytes, "\x1b[{count}{letter}");
    }
}

/// A command as it would have been typed.
fn shown(command: &str) -> String {
    let text: String = command.chars().filter(|c| !c.is_control() || *c == '\n').take(SHOWN_CHARS).collect();
    text.replace('\n', "\r\n> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_without_control_characters() {
        assert_eq!(shown("echo a\necho\x1b[2J b\0"), "echo a\r\n> echo[2J b");
    }
}
