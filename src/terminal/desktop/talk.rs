//! Running a command in a desktop's terminal: typed with our own sentinel, which is looked for on the rendered lines.
//!
//! An app's own `/pty/talk` takes the echo of what it types for the end, or waits five seconds and knows nothing. So text
//! is typed with `/pty/write`, and the rules are those of a local shell without start-up files.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kpty_emulator::{Buffer, Mode, Request};

use super::{Desktop, State};
use crate::error::{Busy, DesktopFault, DesktopTrouble, Error, Exited, Result, TimedOut};
use crate::ids::{CommandId, random_hex};
use crate::model::ExitInfo;
use crate::terminal::Evidence;
use crate::terminal::Terminal;
use crate::terminal::deadline::{self, TALK_GRACE};
use crate::terminal::executable_name;
use crate::terminal::sentinel::{Form, Pipeline, Sentinel};
use crate::terminal::talk::{OnTimeout, TalkRequest, TalkResult};

/// The first pause between two looks, how it grows, and where it stops.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// How long nothing happens before the bridge is asked whether the terminal is still there; then less and less often.
const ALIVE_AFTER: Duration = Duration::from_millis(300);
const ALIVE_SELDOM: Duration = Duration::from_secs(5);
/// Looks that may fail one after the other.
const FAILED_LOOKS: u32 = 3;
/// How long a prompt may take to come back after a command, and a shell to show its first one.
const PROMPT_TIMEOUT: Duration = Duration::from_millis(500);
const START_TIMEOUT: Duration = Duration::from_secs(3);
/// How long another prompt than the last one must stand.
const OTHER_PROMPT: Duration = Duration::from_millis(120);
/// How long an interrupted command may take to end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// Pauses between looks: short at first and after every change, longer while nothing happens.
pub(super) struct Pace {
    pause: Duration,
    seen: Instant,
    alive_at: Instant,
    alive_pause: Duration,
}

impl Pace {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self { pause: FIRST_PAUSE, seen: now, alive_at: now + ALIVE_AFTER, alive_pause: ALIVE_AFTER }
    }

    /// Waits until it is time for another look, at most until then.
    pub(super) async fn pause(&mut self, last_change: Instant, until: Instant) {
        let has_changed = last_change > self.seen;
        self.seen = last_change.max(self.seen);
        self.pause = match has_changed {
            true => (self.pause / 2).max(FIRST_PAUSE),
            false => (self.pause * 3 / 2).min(LONGEST_PAUSE),
        };
        tokio::time::sleep_until((Instant::now() + self.pause).min(until).into()).await;
    }

    /// It is time to ask whether the terminal is still there.
    pub(super) fn asks_whether_alive(&mut self, last_change: Instant) -> bool {
        let now = Instant::now();
        if now < self.alive_at || now - last_change < ALIVE_AFTER {
            return false;
        }
        self.alive_at = now + self.alive_pause;
        self.alive_pause = (self.alive_pause * 2).min(ALIVE_SELDOM);
        true
    }
}

impl Desktop {
    /// Runs a command and waits for its end.
    pub(super) async fn run(&self, request: TalkRequest) -> Result<TalkResult> {
        let deadline = Instant::now() + deadline::limit(request.timeout, Duration::ZERO);
        let Ok(_turn) = tokio::time::timeout_at(deadline.into(), self.shared.turn.lock()).await else {
            return Err(self.busy("Another talk is running in this session"));
        };
        let sentinel = Sentinel::new(request.sentinel.as_deref(), &random_hex())
            .map_err(|problem| Error::invalid("sentinel", problem))?
            .rendered();
        self.ready().await?;
        let id = self.hand_over(&request, &sentinel).await?;
        match self.until_end(id, deadline).await {
            Ok(true) => self.answer(id, sentinel.token(), request.max_chars),
            Ok(false) => Err(self.time_out(id, &request).await),
            Err(error) => Err(with_command(error, id)),
        }
    }

    /// Waits until the terminal shows where it can be typed at, as far as that can be seen.
    async fn ready(&self) -> Result<()> {
        let (began, mut pace) = (Instant::now(), Pace::new());
        loop {
            self.look_at_end(0, None).await?;
            let last_change = {
                let mut state = self.lock();
                let State { text, commands, last_change, .. } = &mut *state;
                commands.give_up(text, *last_change);
                let line = text.cursor_text();
                let timeout = match commands.prompt() {
                    _ if commands.running().is_some() => 2 * PROMPT_TIMEOUT,
                    None if text.main.next() == text.main.first() => START_TIMEOUT,
                    _ if line.is_empty() => PROMPT_TIMEOUT,
                    Some(prompt) if prompt != line => OTHER_PROMPT,
                    _ => Duration::ZERO,
                };
                if began.elapsed() >= timeout || deadline::limit(timeout, TALK_GRACE).is_zero() {
                    break;
                }
                *last_change
            };
            pace.pause(last_change, Instant::now() + deadline::limit(START_TIMEOUT, TALK_GRACE)).await;
        }
        match self.lock().commands.running() {
            Some(_) => {}
            None => return Ok(()),
        }
        Err(self.busy("A command is still running"))
    }

    /// Notes the command and types it.
    async fn hand_over(&self, request: &TalkRequest, sentinel: &Sentinel) -> Result<CommandId> {
        let command = request.command.trim_end_matches(['\n', '\r']);
        let program = executable_name(self.shared.pid.load(Ordering::Relaxed)).unwrap_or_default();
        // Nobody else types between the look at the line and the last byte.
        let mut line = self.shared.input.lock().await;
        let has_line = !line.is_empty() || line.is_unknown();
        line.clear();
        let (id, typed) = {
            let mut state = self.lock();
            let State { text, commands, has_typed, .. } = &mut *state;
            let form = form_of([&self.shared.cli_type, &program], text.cursor_text());
            // Ctrl-U takes back what somebody left on the line.
            let before = if std::mem::take(has_typed) || has_line { "\x15" } else { "" };
            let lines = sentinel.typed(form, command, &Pipeline::default());
            let bytes = format!("{before}{}\r", lines.replace('\n', "\r"));
            (commands.begin(command, lines, sentinel.clone(), text), bytes)
        };
        let typed = self.type_text(typed).await;
        if let Err(error) = typed {
            // Only a bridge that could not be reached, or refused, has certainly typed nothing.
            let is_certain = matches!(&error, Error::Desktop(fault) if fault.trouble == DesktopTrouble::Refused
                || fault.trouble == DesktopTrouble::Unreachable);
            if is_certain {
                self.lock().commands.forget(id);
                return Err(error);
            }
            return Err(with_command(error, id));
        }
        Ok(id)
    }

    /// Looks until the command has ended, or the time is over.
    async fn until_end(&self, id: CommandId, deadline: Instant) -> Result<bool> {
        let (mut pace, mut failed) = (Pace::new(), 0);
        loop {
            let looked = self.look_at_end(0, None).await;
            let last_change = self.lock().last_change;
            let is_gone = matches!(&looked, Err(Error::Desktop(fault)) if fault.status == Some(404));
            if self.has_ended_there(id) {
                return Ok(true);
            }
            if is_gone || pace.asks_whether_alive(last_change) {
                // A bridge that does not answer this may still show the end.
                if let Ok(Some(exit)) = self.look_whether_alive().await {
                    self.end_all(exit).await;
                    return Ok(true);
                }
            }
            match looked {
                Ok(()) => failed = 0,
                Err(error) if failed + 1 >= FAILED_LOOKS => return Err(error),
                Err(_) => failed += 1,
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            pace.pause(last_change, deadline).await;
        }
    }

    /// The terminal's program has ended. What it showed last may still be there to be seen.
    pub(super) async fn end_all(&self, exit: ExitInfo) {
        // A terminal that is gone shows nothing.
        let _ = self.look_at_end(0, None).await;
        let mut state = self.lock();
        let State { text, commands, .. } = &mut *state;
        commands.end_all(text, exit);
    }

    pub(super) fn has_ended_there(&self, id: CommandId) -> bool {
        self.lock().commands.get(id).is_none_or(|command| command.end.is_some())
    }

    /// What a command came to.
    fn answer(&self, id: CommandId, sentinel: &str, max_chars: usize) -> Result<TalkResult> {
        let output = self.output_of(id, max_chars).unwrap_or_default();
        let command = self.command(id).and_then(|command| command.end);
        let Some(end) = command else {
            return Err(Error::invalid("command_id", format!("{id} has not ended")));
        };
        if end.by == Evidence::ProcessExit {
            let exit = self.exit().unwrap_or(ExitInfo::Unknown);
            let (session, partial_output) = (self.id().clone(), Some(output.text));
            return Err(Error::Exited(Box::new(Exited { session, exit, command: Some(id), partial_output })));
        }
        Ok(TalkResult {
            command: id,
            raw_output: output.text.clone(),
            output,
            exit_code: end.status,
            duration: end.after,
            cwd: None,
            logical_cwd: None,
            completed_by: end.by,
            sentinel: self.shared.redactor.mask_str(sentinel),
        })
    }

    /// The time is over; the command goes on, or is interrupted.
    async fn time_out(&self, id: CommandId, request: &TalkRequest) -> Error {
        let interrupted = request.on_timeout == OnTimeout::Interrupt;
        if interrupted {
            // A failure shows in what follows: the command is still there.
            let _ = self.write(b"\x03").await;
            let timeout = deadline::limit(CANCEL_TIMEOUT, TALK_GRACE);
            let _ = self.until_end(id, Instant::now() + timeout).await;
        }
        // An old picture is better than none.
        let _ = self.look_at_window().await;
        let partial_output = self.output_of(id, request.max_chars).unwrap_or_default().text;
        let mut state = self.lock();
        let screen = state.text.read(&Request::new(Mode::Viewport), &self.shared.redactor);
        Error::Timeout(Box::new(TimedOut {
            asks: None,
            session: self.id().clone(),
            command: id,
            line: self.shared.redactor.mask_str(&request.command),
            waited: request.timeout,
            partial_output,
            foreground: None,
            alternate_screen: screen.buffer == Buffer::Alternate,
            screen: screen.text.trim_end(),
            interrupted,
        }))
    }

    /// The error that says what is running, and for how long.
    fn busy(&self, reason: &str) -> Error {
        let running = self.lock().commands.running();
        let (command, age) = running.map(|command| ((command.id, command.line.clone()), command.age())).unzip();
        let mut reason = reason.to_owned();
        if let (Some((id, line)), Some(age)) = (&command, age) {
            reason = format!("{reason}: {id} `{line}` has been running for {} ms", age.as_millis());
        }
        let redactor = &self.shared.redactor;
        let (reason, command) = (redactor.mask(reason), command.map(|(id, line)| (id, redactor.mask(line))));
        Error::Busy(Box::new(Busy { session: self.id().clone(), reason, foreground: None, command, age }))
    }
}

/// The dialect to type in: that of the program, as the desktop or the system names it, else as the prompt looks.
fn form_of(programs: [&str; 2], prompt: &str) -> Form {
    let looks_like = match prompt.chars().last() {
        Some('>') if prompt.starts_with("PS ") => Form::PowerShell,
        // The usual prompts of fish and of zsh.
        Some('>') if prompt.contains('@') => Form::Fish,
        Some('%') => Form::Zsh,
        _ => Form::Posix,
    };
    programs.into_iter().find_map(Form::for_program).unwrap_or(looks_like)
}

/// The same failure of a bridge, with the command that was typed before.
pub(super) fn with_command(error: Error, id: CommandId) -> Error {
    match error {
        Error::Desktop(fault) => Error::Desktop(Box::new(DesktopFault { command: Some(id), ..*fault })),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dialect_is_the_programs_or_the_prompts() {
        for (cli_type, program, prompt, form) in [
            ("shell", "", "user@host:~$", Form::Posix),
            ("shell", "", r"PS C:\Users\me>", Form::PowerShell),
            ("shell", "", "me@host ~ %", Form::Zsh),
            ("shell", "", "me@host ~>", Form::Fish),
            ("shell", "", ">", Form::Posix),
            ("shell", "zsh", "#", Form::Zsh),
            ("shell", "electron", "#", Form::Posix),
            ("zsh", "bash", "$", Form::Zsh),
            ("fish", "", ">", Form::Fish),
            ("claude", "", "$", Form::Posix),
        ] {
            assert_eq!(form_of([cli_type, program], prompt), form, "{cli_type} {program} {prompt}");
        }
    }
}
