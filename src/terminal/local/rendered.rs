//! The line that a shell reads, as the screen shows it: what Enter would run, whatever keys put it there.
//!
//! The guard follows the keys that are typed, and no model of them knows history, completion or a user's own bindings.
//! So before Enter goes out the line is read behind the prompt, once the shell has taken all keys and drawn what they did.
//! Where a marked shell reads, the end of its prompt is known; of any other, the prompt is recognised by its form. A
//! program that is no shell is never looked at.
//!
//! Nothing tells when a shell waits for the next key, so the kernel is asked every few milliseconds, and only while an
//! Enter waits for the answer.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kpty_emulator::{Buffer, Cell, Color, Mode, Place, Request, Width};

use super::Session;
use super::evidence::Phase;
use super::foreground::{Wanted, wanted};
use super::integration::IntegratedShell;
use super::readiness::answering_shell;
use super::state::TerminalState;
use crate::terminal::local::pty::{self, Foreground, Waiting};
use crate::terminal::prompt_line::{BehindPrompt, Rendered};
use crate::terminal::sentinel::Form;

/// How long a line that is not known is waited for.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How long the echo of a line that is known is waited for.
const ECHO_TIMEOUT: Duration = Duration::from_millis(400);
/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(3);
/// How long a shell that waits for a key has been silent when it has drawn everything.
const CALM: Duration = Duration::from_millis(25);
/// How long keys that show nothing may be on their way to the shell.
const UNSEEN: Duration = Duration::from_millis(100);
/// How long a shell is silent of which the kernel tells nothing.
const QUIET: Duration = Duration::from_millis(120);
/// Lines below the cursor that may belong to a line of several rows.
const MOST_BELOW: u64 = 64;
/// What fish shows its suggestions in.
const SUGGESTION: [Color; 2] = [Color::Indexed(8), Color::Rgb(0x55, 0x55, 0x55)];

/// Who gets the next key.
enum Reader {
    /// A program that is no shell.
    Program,
    /// Nobody yet: a command runs and does not read.
    Nobody,
    /// A shell with a line editor or without; its process, where it is one of this machine.
    Shell { is_marked: bool, pid: Option<u32> },
}

impl Session {
    /// The line that is sent off next may be one that a shell runs, and is worth a look. One that is known needs none
    /// where its echo cannot be waited for.
    pub fn may_show_line(&self, is_unknown: bool) -> bool {
        match self.line_reader(is_unknown) {
            Reader::Program => false,
            Reader::Nobody => is_unknown,
            Reader::Shell { pid, .. } => is_unknown || pid.is_some(),
        }
    }

    /// Reads the line that Enter would send off, when the shell has taken everything that was typed.
    pub async fn rendered_line(&self, expected: Option<&str>) -> Rendered {
        let began = Instant::now();
        let deadline = began + if expected.is_some() { ECHO_TIMEOUT } else { TIMEOUT };
        let mut progress = self.shared.progress.subscribe();
        let mut calm_looks = 0;
        loop {
            let is_over = Instant::now() >= deadline || self.exit().is_some();
            match self.line_reader(expected.is_none()) {
                Reader::Program => return Rendered::NoShell,
                Reader::Nobody if expected.is_some() => return Rendered::NoShell,
                Reader::Nobody => calm_looks = 0,
                Reader::Shell { is_marked, pid } => {
                    calm_looks = if self.is_calm(pid) { calm_looks + 1 } else { 0 };
                    // Behind the question whether everything is drawn: what came between belongs to the line.
                    let lines = self.shared.lock().lines_behind_prompt(is_marked);
                    if let (Some(expected), Some(lines)) = (expected, &lines)
                        && lines.is(expected)
                    {
                        return Rendered::AsExpected;
                    }
                    if calm_looks > 1 || is_over && expected.is_some() {
                        return lines.map_or(Rendered::Unreadable, |lines| Rendered::Lines(lines.all()));
                    }
                }
            }
            if is_over {
                return Rendered::Unreadable;
            }
            tokio::select! {
                _ = progress.changed(), if calm_looks == 0 && expected.is_some() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// The shell has taken all keys and shown what they did.
    fn is_calm(&self, pid: Option<u32>) -> bool {
        // In this order: it has taken the keys, it waits for the next one, and what it drew before that was read and taken
        // in. Each question has what is under way in the system or in the driver arrive; none depends on how fast that is.
        let unread = self.shared.control.unread();
        let waiting = pid.and_then(pty::waits_for);
        if self.shared.control.has_output() || self.shared.has_in_hand.load(Ordering::SeqCst) {
            return false;
        }
        let (last_output, last_typed) = {
            let terminal = self.shared.lock();
            (terminal.last_output, terminal.last_typed)
        };
        let silence = last_output.elapsed();
        // What was typed is on its way until it shows, or for as long as that may take.
        if last_output <= last_typed && last_typed.elapsed() < UNSEEN {
            return false;
        }
        match (waiting, unread) {
            (Some(Waiting::Nothing), _) => false,
            (Some(_), Some(unread)) => unread == 0 && silence >= CALM,
            _ => silence >= QUIET && last_typed.elapsed() >= QUIET,
        }
    }

    /// Whether a program reads at all is only asked where the line is not known: that takes a look at every process.
    fn line_reader(&self, is_unknown: bool) -> Reader {
        let control = &self.shared.control;
        let own = control.pid();
        let is_main = self.shared.lock().emulator.buffer() == Buffer::Main;
        if !is_main || self.hides_input() {
            return Reader::Program;
        }
        let phase = self.shared.lock().shell.as_ref().map(|shell| shell.phase);
        let has_editor = phase == Some(Phase::Prompt) || phase == Some(Phase::Submitted) && !control.is_canonical();
        if has_editor && control.foreground_group() == Some(own) {
            return Reader::Shell { is_marked: true, pid: Some(own) };
        }
        let program_or_later = |is_program: bool| if is_program { Reader::Program } else { Reader::Nobody };
        let Some(foreground) = self.foreground() else { return program_or_later(!is_unknown || self.exit().is_some()) };
        let Some(program) = &foreground.program else { return Reader::Nobody };
        match answering_shell(program, foreground.canonical) {
            Ok((_, None)) => Reader::Shell { is_marked: false, pid: None },
            Ok((_, Some(shell))) => {
                let waiting = pty::waits_for(shell.pid);
                let is_behind_relay = shell.pid != program.pid;
                let canonical = (!is_behind_relay).then_some(foreground.canonical);
                match waiting.and_then(|waiting| wanted(&shell.name, waiting, canonical)) {
                    Some(Wanted::Answer) => Reader::Program,
                    _ if waiting == Some(Waiting::Nothing) => Reader::Nobody,
                    _ => Reader::Shell { is_marked: false, pid: Some(shell.pid).filter(|_| !is_behind_relay) },
                }
            }
            Err(_) => program_or_later(!is_unknown || !self.may_read_later(&foreground)),
        }
    }

    /// A command of a shell runs that does not read: what is typed now may be read by the shell when it is over.
    fn may_read_later(&self, foreground: &Foreground) -> bool {
        if Form::for_program(&self.shared.shell).is_none() {
            return false;
        }
        // Also the shell itself, which has taken a line and not yet handed the terminal to its command. A process that ends
        // while it is looked at reads nothing either.
        let is_reader = |pid| match pty::waits_for(pid) {
            Some(waiting) => waiting != Waiting::Nothing,
            None => pty::started(pid).is_some(),
        };
        let has_reader = pty::group_members(foreground.group).into_iter().any(is_reader);
        // What was found holds only while it is the same program that has the terminal: a command that has just ended
        // leaves a shell behind that is about to read, in a mode that looks like that of another program.
        let is_same = self.shared.control.foreground_group() == Some(foreground.group);
        !is_same || foreground.canonical && !has_reader
    }
}

impl TerminalState {
    /// The line that the cursor is in, behind its prompt.
    fn lines_behind_prompt(&mut self, is_marked: bool) -> Option<BehindPrompt> {
        let cursor = self.emulator.place();
        let shell = self.shell.as_ref().filter(|_| is_marked);
        let is_fish = shell.is_some_and(|shell| shell.program == IntegratedShell::Fish);
        let is_bash = shell.is_some_and(|shell| shell.program == IntegratedShell::Bash);
        let (start, prompt) = match shell.map(|shell| (shell.prompt_end(), shell.continued_at())) {
            Some((_, Some(place))) if !is_fish => (place, None),
            Some((Some(place), _)) => (place, Some(place.chars)),
            Some((None, _)) => return None,
            None => (Place { chars: 0, ..cursor }, None),
        };
        // A prompt that is drawn anew may be above the one that was marked, while the window changes.
        if start.buffer != cursor.buffer || start.line > cursor.line {
            return None;
        }
        let mut read = |from: u64, until: u64| {
            let range = Mode::Range { from, until: Some(until) };
            let answer = self.emulator.read(&Request::new(range), None);
            (answer.oldest_line <= from).then(|| answer.lines().map(str::to_owned).collect::<Vec<_>>())
        };
        let mut lines = read(start.line, cursor.line + 1)?;
        let mut below = if is_bash { read(cursor.line + 1, cursor.line + 1 + MOST_BELOW)? } else { Vec::new() };
        below.truncate(below.iter().position(|line| line.trim().is_empty()).unwrap_or(below.len()));
        if lines.is_empty() {
            lines.push(String::new());
        }
        if is_fish && let Some(last) = lines.last_mut() {
            let kept = last.trim_end().chars().count().saturating_sub(self.suggested_chars());
            *last = last.chars().take(kept).collect();
        }
        Some(BehindPrompt { lines, below, prompt })
    }

    /// How many characters at the end of the cursor's line have the colour of a suggestion. What is left of the cursor is
    /// none: a suggestion that was taken keeps its colour until fish has looked at the whole line. While fish draws one the
    /// cursor stands behind it, and that it is drawn is waited for.
    fn suggested_chars(&self) -> usize {
        let screen = self.emulator.screen();
        let rows = screen.rows.get(usize::from(screen.cursor.row)..).unwrap_or_default();
        let more = rows.iter().take_while(|row| row.wrapped).count();
        let cells = rows.iter().take(more + 1).flat_map(|row| &row.cells).filter(|cell| cell.width != Width::Spacer);
        let cells: Vec<_> = cells.collect();
        let text = cells.iter().rposition(|cell| cell.c != ' ').map_or(0, |last| last + 1);
        let is_suggested = |cell: &&&Cell| cell.c == ' ' || SUGGESTION.contains(&cell.style.fg);
        let before =
            rows.first().map_or(&[][..], |row| &row.cells[..usize::from(screen.cursor.col).min(row.cells.len())]);
        let before = before.iter().filter(|cell| cell.width != Width::Spacer).count();
        cells.get(before..text).unwrap_or_default().iter().rev().take_while(is_suggested).count()
    }
}
