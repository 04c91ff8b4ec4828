//! Readiness: whether and how the shell in the foreground can accept a command, and waiting until it can.
//!
//! A marked shell reports its own state. For any other, the system names the foreground process, and the output shows
//! whether a line editor reads. Nothing is typed unless the reader is certain to be a shell at its prompt.

use std::time::{Duration, Instant};

use kpty_emulator::Buffer;

use super::depth::asks_before_first_prompt;
use super::evidence::Phase;
use super::foreground::{Wanted, carries_shell, interactive_shell, may_be_prompt, startup_descriptor, wanted};
use super::foreign::ForeignLines;
use super::integration::INTERRUPT;
use super::reached::Reached;
use super::state::{Reader, TerminalState, TypedText};
use super::{Session, Writer};
use crate::error::{Busy, Error, Result};
use crate::ids::CommandId;
use crate::terminal::Command;
use crate::terminal::commands::{TypedTo, Way};
use crate::terminal::executable_name;
use crate::terminal::local::pty::{self, Foreground, Program, Waiting};
use crate::terminal::sentinel::Form;

/// How long a shell may take to show its first prompt before it is typed at all the same.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(15);
/// When a shell that has not shown its first prompt is looked at again. Nothing tells when a program begins to read.
pub(super) const STARTING: Duration = Duration::from_secs(1);
/// How long a program that reads before the first prompt is silent until it counts as one that asks for something.
pub(super) const ASKING: Duration = Duration::from_millis(250);
/// When a program that seems to ask before the first prompt is looked at again.
const SECOND_LOOK: Duration = Duration::from_millis(50);
/// How long a shell is waited for at least, whatever the caller's time.
const MOMENT: Duration = Duration::from_millis(400);
/// How long a prompt may take to come back after a command.
pub(super) const PROMPT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the terminal may be in the hands of something that is just beginning or ending.
pub(super) const PASSING: Duration = Duration::from_millis(300);
/// How long after its prompt a line editor may take to ask for pastes.
pub(super) const PASTE_TIMEOUT: Duration = Duration::from_millis(100);
/// When a shell that is about to read is looked at again.
pub(super) const SETTLING: Duration = Duration::from_millis(10);
/// How long a shell without a line editor may take to show something.
const PLAIN_TIMEOUT: Duration = Duration::from_millis(250);
/// A line that somebody typed ahead is run within this time after a prompt.
const TYPED_AHEAD: Duration = Duration::from_millis(60);

/// Shells of which there may be copies under other names.
const SHELLS: [&str; 6] = ["/bin/bash", "/bin/zsh", "/bin/dash", "/bin/mksh", "/bin/ksh93", "/bin/fish"];
/// How long a shell may take to drop an unfinished command.
const DROPPING: Duration = Duration::from_millis(500);
/// How long it is silent when it has.
const DROPPED: Duration = Duration::from_millis(30);

/// How the shell can be typed at.
pub(super) enum Readiness {
    /// A marked shell reads, and takes a paste.
    AtPrompt,
    /// Another shell, or one that takes no paste.
    ForeignShell { form: Form, typed_to: Option<TypedTo> },
    /// Somebody edited the line; it has to go first.
    EditedLine,
    /// Somebody left a command unfinished, and the shell reads the rest; it has to go first.
    Unfinished,
    /// Not yet, but soon: look again after news, for this long.
    NotYet(Duration),
    /// Another program owns the terminal, or a command is still running.
    Busy(String, Option<Foreground>),
}

/// What a look may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// Somebody is about to type: what is found to be over is given up.
    Act,
    /// Nothing.
    Peek,
}

impl Readiness {
    /// The process of the shell that gets what is typed; `own` is the session's own program.
    pub(super) fn shell(&self, own: u32) -> Option<u32> {
        match self {
            Self::AtPrompt => Some(own),
            Self::ForeignShell { typed_to: Some(typed_to), .. } => typed_to.pid,
            _ => None,
        }
    }
}

impl Session {
    /// Waits until the shell accepts a command.
    pub(super) async fn ready(&self, deadline: Instant) -> Result<Readiness> {
        let mut news = self.shared.news.subscribe();
        let mut progress = self.shared.progress.subscribe();
        let mut began = Instant::now();
        // A shell that is about to read is worth a moment, also for a caller who does not want to wait.
        let deadline = deadline.max(began + MOMENT);
        let (mut is_settled, mut is_cleared) = (false, false);
        let mut is_starting = self.is_starting();
        let mut was_looked_at = false;
        loop {
            // What its start-up files took is not counted against its first prompt.
            if is_starting && !self.is_starting() {
                (is_starting, began) = (false, Instant::now());
            }
            match self.look(began.elapsed(), Look::Act) {
                // Its prompt may be on its way through the system, or be read and not yet taken in.
                Readiness::Busy(..) if is_starting && !was_looked_at => {
                    was_looked_at = true;
                    tokio::time::sleep(SECOND_LOOK).await;
                }
                Readiness::Busy(reason, foreground) => return Err(self.busy(&reason, foreground)),
                Readiness::EditedLine => self.clear_line().await?,
                Readiness::Unfinished => {
                    self.drop_unfinished().await?;
                    began = Instant::now();
                }
                // What somebody typed keeps the line editor from coming back to its prompt.
                Readiness::ForeignShell { .. } if !is_cleared && self.is_stuck() => {
                    self.clear_line().await?;
                    (is_cleared, began) = (true, Instant::now());
                }
                Readiness::AtPrompt | Readiness::ForeignShell { .. } if !is_settled && self.has_typed_ahead() => {
                    // What was typed ahead would be run first and be taken for ours.
                    is_settled = tokio::time::timeout(TYPED_AHEAD, news.changed()).await.is_err();
                }
                Readiness::NotYet(timeout) => {
                    if let Some(exit) = self.exit() {
                        return Err(self.exited(exit, None));
                    }
                    if Instant::now() >= deadline {
                        let reason = "The shell is not ready: it has not come back to its prompt";
                        return Err(self.busy(reason, self.foreground()));
                    }
                    let next = (began + timeout).min(deadline);
                    tokio::select! {
                        _ = news.changed() => {}
                        _ = progress.changed() => {}
                        () = tokio::time::sleep_until(next.into()) => {}
                    }
                }
                readiness => {
                    self.note_reader(&readiness);
                    return Ok(readiness);
                }
            }
        }
    }

    /// Who has been waited for to ask for pastes is not waited for again.
    fn note_reader(&self, readiness: &Readiness) {
        let Readiness::ForeignShell { typed_to: Some(typed_to), .. } = readiness else { return };
        let reader = if self.shared.control.is_canonical() { Reader::Plain } else { Reader::Edits };
        let mut terminal = self.shared.lock();
        if !terminal.emulator.modes().bracketed_paste {
            terminal.note_reader(typed_to.group, reader);
        }
    }

    /// It has not shown anything that tells where it is.
    pub(super) fn is_starting(&self) -> bool {
        let terminal = self.shared.lock();
        let is_marked_and_starting = terminal.shell.as_ref().is_some_and(|shell| shell.phase == Phase::Starting);
        is_marked_and_starting || terminal.ring.is_empty()
    }

    /// The session's own shell, as one that is typed at.
    pub(super) fn own_shell(&self) -> Option<Readiness> {
        let form = Form::for_program(&self.shared.shell)?;
        let args = std::iter::once(&self.shared.shell).chain(&self.shared.spawned_args).cloned().collect();
        let pid = self.shared.control.pid();
        Some(Readiness::ForeignShell {
            form,
            typed_to: Some(TypedTo { group: pid, args, pid: Some(pid), depth: None }),
        })
    }

    /// A shell reads.
    pub(super) fn is_at_prompt(&self) -> bool {
        // One that asks for no pastes reads all the same.
        matches!(
            self.look(PASTE_TIMEOUT, Look::Act),
            Readiness::AtPrompt | Readiness::EditedLine | Readiness::ForeignShell { .. }
        )
    }

    /// Somebody typed Enter at the prompt of a marked shell long ago, and its line editor still has the terminal.
    fn is_stuck(&self) -> bool {
        let phase = self.shared.lock().shell.as_ref().map(|shell| shell.phase);
        phase == Some(Phase::Submitted) && !self.shared.control.is_canonical()
    }

    fn has_typed_ahead(&self) -> bool {
        let terminal = self.shared.lock();
        terminal.shell.as_ref().is_some_and(|shell| shell.phase == Phase::Prompt && shell.has_typed_ahead)
    }

    /// Takes back what somebody left on the line of a marked shell.
    async fn clear_line(&self) -> Result<()> {
        {
            let mut terminal = self.shared.lock();
            terminal.typed = TypedText::None;
            if let Some(shell) = &mut terminal.shell {
                shell.phase = Phase::Submitted;
                // A prompt that was on its way is not yet the one after the Ctrl-C.
                shell.has_typed_ahead = true;
            }
        }
        self.write_as(Writer::Talk, INTERRUPT, None).await.map(drop)
    }

    /// Takes back what somebody left unfinished in a shell that marks nothing.
    async fn drop_unfinished(&self) -> Result<()> {
        let mut progress = self.shared.progress.subscribe();
        let began = Instant::now();
        {
            let mut terminal = self.shared.lock();
            terminal.foreign = ForeignLines::default();
            terminal.typed = TypedText::None;
        }
        self.write_as(Writer::Talk, INTERRUPT, None).await?;
        // The system shows the key at once; the prompt follows.
        let dropped = async {
            while self.shared.lock().last_output <= began && progress.changed().await.is_ok() {}
            while tokio::time::timeout(DROPPED, progress.changed()).await.is_ok_and(|changed| changed.is_ok()) {}
        };
        // One that does not answer is looked at like any other.
        let _ = tokio::time::timeout(DROPPING, dropped).await;
        Ok(())
    }

    /// Classifies the foreground process, and changes nothing.
    pub(super) fn peek(&self, waited: Duration) -> Readiness {
        self.look(waited, Look::Peek)
    }

    /// Classifies the foreground process, after having waited for some time.
    fn look(&self, waited: Duration, look: Look) -> Readiness {
        let own = self.shared.control.pid();
        let timeout = {
            let terminal = self.shared.lock();
            let takes_paste = terminal.emulator.modes().bracketed_paste;
            let has_pending = terminal.shell.as_ref().is_some_and(|shell| shell.pending.is_some());
            match phase(&terminal) {
                // A command that nobody waits for any more was typed and is about to begin: the next would be taken for it.
                Some(Phase::Prompt) if has_pending && waited < START_TIMEOUT => Some(START_TIMEOUT),
                Some(Phase::Prompt) if terminal.typed == TypedText::Edited => return Readiness::EditedLine,
                Some(Phase::Prompt) if takes_paste => {
                    drop(terminal);
                    return self.look_at_marked_prompt(waited);
                }
                Some(Phase::Prompt) if matches!(terminal.reader(own), Some(Reader::Edits | Reader::Plain)) => None,
                Some(Phase::Prompt) => Some(PASTE_TIMEOUT),
                Some(Phase::Starting) => {
                    drop(terminal);
                    return self.look_at_start(waited, look);
                }
                Some(Phase::Submitted | Phase::Ended) => Some(PROMPT_TIMEOUT),
                // Its end was announced; the kernel is asked whether the shell reads.
                Some(Phase::Running(_)) if terminal.has_proposal() => Some(PROMPT_TIMEOUT),
                Some(Phase::Running(_)) | None => None,
            }
        };
        match timeout {
            Some(timeout) if waited < timeout => Readiness::NotYet(timeout),
            _ => self.look_at_foreground(waited, look),
        }
    }

    /// Looks at who has the terminal before the first prompt. A start-up file may ask for something, and a command is no
    /// answer to that.
    fn look_at_start(&self, waited: Duration, look: Look) -> Readiness {
        let (silence, edits, has_read_files) = {
            let terminal = self.shared.lock();
            let has_read_files = terminal.shell.as_ref().is_some_and(|shell| shell.has_read_files);
            (terminal.last_output.elapsed(), terminal.emulator.modes().bracketed_paste, has_read_files)
        };
        let Some(foreground) = self.foreground() else { return self.look_at_foreground(waited, look) };
        let Some(program) = &foreground.program else { return Readiness::NotYet(waited + STARTING) };
        let reads = match pty::waits_for(program.pid) {
            Some(Waiting::Read { .. } | Waiting::SelectInput) => true,
            // fish waits like this for other things, too, but not for long.
            Some(Waiting::Poll) => !foreground.canonical && silence >= STARTING,
            Some(Waiting::Nothing) | None => false,
        };
        let is_marked = self.is_marked(foreground.group, &program.args);
        // Its line editor reads, and no start-up file is open: the function that would print the mark is gone (`unfunction -m '*'`).
        let has_read_files = has_read_files || {
            let waiting = pty::waits_for(program.pid);
            let wants = waiting.and_then(|waiting| wanted(&program.name, waiting, Some(foreground.canonical)));
            let has_no_file = |least| !pty::reads_file(program.pid, least);
            wants == Some(Wanted::Command)
                && startup_descriptor(&program.name).is_some_and(has_no_file)
                && !asks_before_first_prompt(program)
        };
        if is_marked && has_read_files && reads && silence >= ASKING {
            // It shows a prompt, and something keeps its marks away.
            if look == Look::Act {
                self.shared.lock().shell = None;
            }
            return self.look_at_foreground(waited, look);
        }
        let is_other_shell = !is_marked && interactive_shell(program).is_some();
        match (silence < ASKING, reads) {
            (false, true) if self.shared.control.has_output() => Readiness::NotYet(waited + SETTLING),
            (true, _) => Readiness::NotYet(waited + ASKING - silence),
            // A start-up file began another shell, which knows no marks.
            (false, reads) if is_other_shell => match reads || edits || waited >= START_TIMEOUT {
                true => self.look_at_foreground(waited, look),
                false => Readiness::NotYet(waited + STARTING),
            },
            (false, true) => {
                let reason = format!("{} asks for something before its first prompt", program.name);
                Readiness::Busy(reason, Some(foreground))
            }
            (false, false) if is_marked || waited < START_TIMEOUT => Readiness::NotYet(waited + STARTING),
            (false, false) => self.look_at_foreground(waited, look),
        }
    }

    /// The program is the shell that was given start-up files, and no other in its place.
    fn is_marked(&self, group: u32, args: &[String]) -> bool {
        group == self.shared.control.pid() && args.get(1..) == Some(&self.shared.spawned_args)
    }

    /// Looks at who has the terminal.
    fn look_at_foreground(&self, waited: Duration, look: Look) -> Readiness {
        let own = self.shared.control.pid();
        let Some(foreground) = self.foreground() else {
            // Where the system does not tell, the session's own program is all there is.
            return match Form::for_program(&self.shared.shell) {
                Some(form) => Readiness::ForeignShell { form, typed_to: None },
                // The end of a program is noticed a moment after its terminal is gone.
                None if waited < PASSING => Readiness::NotYet(PASSING),
                None => Readiness::Busy("Nobody can tell which program has the terminal".into(), None),
            };
        };
        let group = foreground.group;
        // Before its first word a child may not even be the program that it is to become.
        if group == own && waited < START_TIMEOUT && self.shared.lock().ring.is_empty() {
            return Readiness::NotYet(START_TIMEOUT);
        }
        let Some(program) = &foreground.program else {
            let reason = "A program that is just ending has the terminal";
            return soon_or_busy(waited, reason.to_owned(), foreground);
        };
        match answering_shell(program, foreground.canonical) {
            Ok((form, shell)) => {
                let reached = Reached::new(form, shell, program, &foreground);
                self.look_at_shell(reached, foreground, waited, look)
            }
            // mksh has no printf of its own: after the end mark, this one is still to end.
            Err(reason) if program.name == "printf" => soon_or_busy(waited, reason, foreground),
            // Behind a relay that carried a shell before, the front changes hands when a command ends.
            Err(reason) if self.shared.lock().has_typed_to(group) => soon_or_busy(waited, reason, foreground),
            // What the shell runs for its prompt, most likely.
            Err(_)
                if group != own
                    && waited < PROMPT_TIMEOUT
                    && self.shared.lock().commands.is_before_prompt(PROMPT_TIMEOUT) =>
            {
                Readiness::NotYet(PROMPT_TIMEOUT)
            }
            Err(reason) => Readiness::Busy(reason, Some(foreground)),
        }
    }

    /// Looks at what a shell does that would get what is typed.
    fn look_at_shell(&self, mut reached: Reached, foreground: Foreground, waited: Duration, look: Look) -> Readiness {
        let (own, group) = (self.shared.control.pid(), foreground.group);
        let mut terminal = self.shared.lock();
        // A copy of the shell runs something in its name, or is about to become a program. It may ask (`(read -e x)`).
        if group != own && reached.is_fork {
            return soon_or_busy(waited, "A part of a command is still running".to_owned(), foreground);
        }
        let is_at_marked_prompt = group == own && phase(&terminal) == Some(Phase::Prompt);
        if !is_at_marked_prompt {
            if let Some(readiness) = reached.before_first_command(&terminal, waited) {
                return readiness.unwrap_or_else(|reason| Readiness::Busy(reason, Some(foreground)));
            }
            if reached.asks(&mut terminal) {
                let reason = format!("{} asks for something", reached.name);
                return soon_or_busy(waited, reason, foreground);
            }
        }
        if let Some(id) = running_in(&terminal, &reached.typed_to, own, &self.shared.spawned_args) {
            let reads = reached.wants == Some(Wanted::Command) && terminal.was_interrupted(id, PASSING);
            if !reads && !terminal.has_returned_to_prompt(id, Some(&reached.typed_to)) {
                // A line that was sent off just now is often over in a moment.
                let is_young = terminal.commands.get(id).is_some_and(|command| command.age() < PASSING);
                return match is_young && waited < PASSING {
                    true => Readiness::NotYet(PASSING),
                    false => Readiness::Busy("A command is still running".to_owned(), Some(foreground)),
                };
            }
            if look == Look::Act {
                terminal.give_up(id);
            }
        }
        // It runs a hook, perhaps, which may ask for something.
        let is_known = terminal.prompt_depth(&reached.typed_to).is_some();
        if is_known && reached.waiting == Some(Waiting::Nothing) && waited < PROMPT_TIMEOUT {
            return Readiness::NotYet(waited + SETTLING);
        }
        let timeout = match reached.wants {
            _ if is_at_marked_prompt => Duration::ZERO,
            // It reads; its prompt, by which it will be known when it reads again, may be still on its way.
            Some(Wanted::Command) => patience_for_prompt(&mut terminal),
            _ => patience_with(&mut terminal, &reached.name, group, foreground.canonical),
        };
        // That its line editor takes pastes may be on its way.
        let may_take_pastes = !foreground.canonical && !terminal.emulator.modes().bracketed_paste;
        if may_take_pastes && waited < PASSING && self.shared.control.has_output() {
            return Readiness::NotYet(waited + SETTLING);
        }
        match waited >= timeout {
            false => Readiness::NotYet(timeout),
            true if timeout == PROMPT_TIMEOUT && reached.waiting == Some(Waiting::Nothing) => {
                Readiness::Busy(format!("{} does not read", reached.name), Some(foreground))
            }
            true if !is_at_marked_prompt && reached.is_unfinished(&mut terminal) => Readiness::Unfinished,
            true => {
                if reached.is_far_away() {
                    match terminal.dialect_behind(group) {
                        Some(form) => reached.form = form,
                        None if may_be_at_prompt(&mut terminal) => {}
                        None => {
                            let reason = format!("{} shows no prompt", reached.name);
                            return Readiness::Busy(reason, Some(foreground));
                        }
                    }
                }
                Readiness::ForeignShell { form: reached.form, typed_to: Some(reached.typed_to) }
            }
        }
    }

    /// The error that says what is running, and for how long.
    pub(super) fn busy(&self, reason: &str, foreground: Option<Foreground>) -> Error {
        let terminal = self.shared.lock();
        let running = terminal.commands.open().next_back();
        let age = running.map(Command::age);
        let reason = match running {
            Some(Command { id, line, .. }) => {
                let ms = age.unwrap_or_default().as_millis();
                format!("{reason}: {id} `{line}` has been running for {ms} ms")
            }
            None => reason.to_owned(),
        };
        let redactor = &terminal.redactor;
        Error::Busy(Box::new(Busy {
            session: self.id().clone(),
            reason: redactor.mask(reason),
            foreground: foreground.and_then(|foreground| foreground.program).map(|program| redactor.mask(program.name)),
            command: running.map(|command| (command.id, redactor.mask_str(&command.line))),
            age,
        }))
    }
}

/// The shell that gets what is typed: the program itself, or one behind it; the process is unknown of a shell elsewhere.
/// Else the reason why nothing may be typed.
pub(super) fn answering_shell(
    program: &Program,
    canonical: bool,
) -> std::result::Result<(Form, Option<Program>), String> {
    let program = &named_by_file(program.clone());
    if let Some(form) = interactive_shell(program) {
        return Ok((form, Some(program.clone())));
    }
    match pty::behind_relay(program.pid).map(named_by_file) {
        Some(inner) => match interactive_shell(&inner) {
            Some(form) => Ok((form, Some(inner))),
            None => Err(format!("{} has the terminal", inner.name)),
        },
        None if !carries_shell(program) => Err(format!("{} has the terminal", program.name)),
        None if canonical => Err(format!("{} asks for something, a password perhaps", program.name)),
        None => Ok((Form::Posix, None)),
    }
}

/// A shell with the name of its file: it may be started under any other.
pub(super) fn named_by_file(program: Program) -> Program {
    let Some(file) = executable_name(program.pid) else { return program };
    let known = Form::for_program(&file).map(|_| file);
    let copied = || SHELLS.into_iter().find(|path| pty::is_copy_of(program.pid, path));
    let known = known.or_else(|| copied().map(|path| path.rsplit('/').next().unwrap_or(path).to_owned()));
    match known {
        // busybox is many programs, and its name tells which.
        Some(name) if !name.starts_with("busybox") => Program { name, ..program },
        _ => program,
    }
}

/// Something that is often over in a moment.
fn soon_or_busy(waited: Duration, reason: String, foreground: Foreground) -> Readiness {
    match waited < PASSING {
        true => Readiness::NotYet(PASSING),
        false => Readiness::Busy(reason, Some(foreground)),
    }
}

/// Where a marked shell is. A command that ended by other evidence no longer runs.
fn phase(terminal: &TerminalState) -> Option<Phase> {
    match terminal.shell.as_ref().map(|shell| shell.phase)? {
        Phase::Running(id) if terminal.commands.get(id).is_none_or(|command| command.end.is_some()) => {
            Some(Phase::Ended)
        }
        phase => Some(phase),
    }
}

/// The unfinished command that the shell in the foreground was given.
fn running_in(terminal: &TerminalState, now: &TypedTo, own: u32, spawned: &[String]) -> Option<CommandId> {
    let typed_here = terminal.commands.open().rev().find(|command| match &command.way {
        Way::Sentinel { typed_to: Some(typed_to), .. } => typed_to.group == now.group,
        _ => false,
    });
    let marked = match phase(terminal) {
        // A shell that replaced the one we started has other arguments, and knows no marks.
        Some(Phase::Running(id)) if now.group == own && now.args.get(1..) == Some(spawned) => Some(id),
        _ => None,
    };
    typed_here.map(|command| command.id).or(marked)
}

/// How long a shell without marks may take until it reads; not at all where it does.
fn patience_with(terminal: &mut TerminalState, name: &str, group: u32, canonical: bool) -> Duration {
    if terminal.emulator.modes().bracketed_paste {
        return Duration::ZERO;
    }
    let reader = match name {
        "bash" | "zsh" | "fish" => terminal.reader(group),
        _ => Some(Reader::Plain),
    };
    match reader {
        // Its line editor does not have the terminal yet.
        Some(Reader::Pastes) => PROMPT_TIMEOUT,
        None | Some(Reader::Edits) if canonical => PROMPT_TIMEOUT,
        None => patience_for_prompt(terminal).max(PASTE_TIMEOUT),
        Some(Reader::Edits | Reader::Plain) => patience_for_prompt(terminal),
    }
}

/// The screen does not speak against a prompt.
fn may_be_at_prompt(terminal: &mut TerminalState) -> bool {
    terminal.emulator.buffer() == Buffer::Main && may_be_prompt(&terminal.line_before_cursor())
}

/// How long a prompt may take to show. By its prompt a shell is known when it reads again.
fn patience_for_prompt(terminal: &mut TerminalState) -> Duration {
    if terminal.line_before_cursor().trim().is_empty() { PLAIN_TIMEOUT } else { Duration::ZERO }
}
