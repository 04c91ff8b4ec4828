//! Commands whose typed line the shell dropped before its sentinel was printed.
//!
//! An interrupt makes a shell forget what is left of the line it runs; bash, dash and ksh do the same when a child dies of
//! SIGINT. The end is certain when the shell reads at the depth of its prompt, behind the prompt the command was typed at.
//! It is then asked for `$?`: a line that prints the status as an invisible mark, keeps it, and leaves no trace on the screen.

use std::time::{Duration, Instant};

use kpty_emulator::{Buffer, Place};
use tokio::sync::watch;

use super::foreground::{ReadDepth, Wanted, read_depth, wanted};
use super::state::{Ingested, TerminalState};
use super::typed_form::push_move;
use super::{Session, Writer};
use crate::ids::{CommandId, random_hex};
use crate::terminal::commands::{Command, Edge, Evidence, Point, TypedTo, Way};
use crate::terminal::executable_name;
use crate::terminal::local::pty;
use crate::terminal::sentinel::Form;

/// A shell that shows its prompt is looked at this often until it reads, each time after twice the pause.
const LOOKS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// How long the shell may take to tell its status.
const ANSWER: Duration = Duration::from_secs(2);

/// A question for the status of a dropped command.
#[derive(Debug)]
pub(super) struct StatusQuestion {
    nonce: String,
    typed_at: Place,
    /// The answer: none where the shell printed something else.
    answer: Option<Option<i32>>,
}

/// Whether the line of a command was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DroppedLine {
    No,
    /// Its prompt is there; it does not read yet.
    Perhaps,
    Yes,
}

/// How often a shell was looked at since it last printed something.
#[derive(Debug, Default)]
pub(super) struct Looks(u32);

impl Looks {
    /// There is new output.
    pub(super) fn reset(&mut self) {
        self.0 = 0;
    }

    /// When to look again.
    pub(super) fn next(&mut self) -> Option<Instant> {
        let pause = FIRST_PAUSE * 2_u32.pow(self.0);
        self.0 += 1;
        (self.0 <= LOOKS).then(|| Instant::now() + pause)
    }
}

impl TerminalState {
    /// The shell tells the status it has. True where that was asked for.
    pub(super) fn on_status(&mut self, status: Option<i32>, key: &str, ingested: &mut Ingested) -> bool {
        let Some(question) = self.status_question.as_mut().filter(|question| question.nonce == key) else {
            return false;
        };
        question.answer.get_or_insert(status);
        let from = Place { chars: 0, ..question.typed_at };
        let _ = self.emulator.flush();
        // The shell draws its prompt anew where the one before the question stood.
        let Some((row, _)) = self.emulator.position(from) else { return true };
        let Ok(row) = usize::try_from(row) else { return true };
        if let Some(up) = usize::from(self.emulator.cursor().row).checked_sub(row) {
            let mut bytes = String::from("\r");
            push_move(&mut bytes, up, 'A');
            bytes.push_str("\x1b[J");
            self.feed(bytes.as_bytes(), ingested);
        }
        true
    }

    /// Where the output of a dropped command ends: before the prompt on the cursor's line.
    fn edge_before_prompt(&mut self, id: CommandId) -> Edge {
        let line = self.line_before_cursor();
        let prompt = match self.commands.get(id).map(|command| &command.way) {
            Some(Way::Sentinel { prompt, .. }) => prompt.as_str(),
            _ => "",
        };
        let text = line.strip_suffix(prompt).unwrap_or_default().to_owned();
        let place = self.emulator.place();
        let place = Place { chars: text.chars().count(), ..place };
        Edge { point: Point { offset: self.ring.end(), place }, line: text, at: self.last_output }
    }
}

impl Session {
    /// Looks whether the shell reads its next line though the sentinel of this one was not printed.
    pub(super) fn dropped_line(&self, id: CommandId) -> DroppedLine {
        let typed_to = {
            let mut terminal = self.shared.lock();
            let Some(Command { way: Way::Sentinel { typed_to: Some(typed_to), .. }, end: None, .. }) =
                terminal.commands.get(id)
            else {
                return DroppedLine::No;
            };
            let typed_to = typed_to.clone();
            if terminal.emulator.buffer() != Buffer::Main || !terminal.has_returned_to_prompt(id, Some(&typed_to)) {
                return DroppedLine::No;
            }
            typed_to
        };
        // The system is asked last and without the lock: this runs for every piece of output.
        if !drops_lines(&typed_to) {
            return DroppedLine::No;
        }
        if self.reads_at_prompt(&typed_to) { DroppedLine::Yes } else { DroppedLine::Perhaps }
    }

    /// The kernel says that this shell waits in the read of its prompt.
    fn reads_at_prompt(&self, shell: &TypedTo) -> bool {
        let (Some(pid), Some(depth)) = (shell.pid, shell.depth) else { return false };
        if self.shared.control.foreground_group() != Some(shell.group) {
            return false;
        }
        // Behind a relay it has a terminal of its own.
        let canonical = (pid == shell.group).then(|| self.shared.control.is_canonical());
        let name = executable_name(pid).unwrap_or_default();
        let wants = pty::waits_for(pid).and_then(|waiting| wanted(&name, waiting, canonical));
        wants == Some(Wanted::Command) && read_depth(pty::call_depth(pid), Some(depth)) == Some(ReadDepth::Prompt)
    }

    /// Asks the shell that dropped a command for its status, and ends the command. The caller has the session's turn.
    pub(super) async fn end_dropped(&self, id: CommandId) {
        let nonce = random_hex();
        let mut news = self.shared.news.subscribe();
        let (edge, line) = {
            let mut terminal = self.shared.lock();
            let typed_at = terminal.emulator.place();
            terminal.status_question = Some(StatusQuestion { nonce: nonce.clone(), typed_at, answer: None });
            (terminal.edge_before_prompt(id), question(&nonce))
        };
        let status = match self.write_as(Writer::Talk, line.as_bytes(), Some(Instant::now() + ANSWER)).await {
            Ok(_) => self.answered_status(&mut news).await,
            Err(_) => None,
        };
        let mut terminal = self.shared.lock();
        terminal.status_question = None;
        terminal.close(id, status, Evidence::Prompt, edge);
        drop(terminal);
        self.shared.publish(true);
    }

    async fn answered_status(&self, news: &mut watch::Receiver<u64>) -> Option<i32> {
        let answer = || self.shared.lock().status_question.as_ref().and_then(|question| question.answer);
        let answered = async { while answer().is_none() && news.changed().await.is_ok() {} };
        // One that does not answer in time has ended all the same, and nobody knows how.
        let _ = tokio::time::timeout(ANSWER, answered).await;
        answer().flatten()
    }
}

/// The shells that forget what is left of a line; the others go on with it or tell the end in their own way.
fn drops_lines(shell: &TypedTo) -> bool {
    let name = shell.pid.and_then(executable_name);
    matches!(name.as_deref().and_then(Form::for_program), Some(Form::Posix | Form::Bash))
}

/// Prints the status and leaves it as it was. Begins with a blank, which keeps it out of many histories.
fn question(nonce: &str) -> String {
    let (first, second) = nonce.split_at(nonce.len() / 2);
    format!(r#" (s=$?; \command printf "\033]133;Y;%s;k=%s%s\033\134" "$s" {first} {second} >/dev/tty; exit "$s")"#)
        + "\r"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_no_answer() {
        let line = question("0123456789abcdef");
        assert!(!line.contains("0123456789abcdef") && !line.contains('\x1b') && line.ends_with('\r'), "{line}");
    }

    #[test]
    fn looks_come_to_an_end() {
        let mut looks = Looks::default();
        assert_eq!(std::iter::from_fn(|| looks.next()).count(), LOOKS as usize);
        looks.reset();
        assert!(looks.next().is_some());
    }
}
