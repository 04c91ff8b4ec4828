//! Running a command in a session's shell, and knowing its output, its end and its status.
//!
//! Owns the conversation: whose turn it is, how the command is handed over, how long its end is waited for. Who may be
//! typed at is found in `readiness.rs`; what counts as an end is decided in `state.rs`, which sees every byte.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kpty_emulator::{Buffer, Mode, Request};
use tokio::sync::watch;

use super::attend::{Turn, Unattended};
use super::dropped::{DroppedLine, Looks};
use super::enter::{Enter, can_be_pasted, is_plain, typed};
use super::evidence::{MarkedShell, Phase};
use super::foreign::ForeignLines;
use super::integration::{INTERRUPT, IntegratedShell};
use super::memory::release_soon;
use super::readiness::Readiness;
use super::state::{TerminalState, TypedText};
use super::{Session, Writer};
use crate::config::LONGEST_TALK;
use crate::error::{Error, Incomplete, Result, TimedOut};
use crate::ids::{CommandId, random_hex};
use crate::runtime::{DetachOnDrop, sleep_until};
use crate::terminal::Command;
use crate::terminal::attention::AttentionState;
use crate::terminal::commands::{Evidence, TypedTo, Way};
use crate::terminal::local::pty;
use crate::terminal::sentinel::{Form, Sentinel};
use crate::terminal::talk::{OnTimeout, TalkRequest, TalkResult};
use crate::terminal::wait::{Ending, WaitRequest};

/// What an answer may take beyond the time that its caller gave: for an interrupted command to end, and the like.
const GRACE: Duration = Duration::from_millis(400);
/// How long a shell that asked for the rest of a command may take until it reads; on a busy machine that is long.
const CONTINUATION_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest pause between two looks at it.
const LONGEST_PAUSE: Duration = Duration::from_millis(30);
/// How long typing may take at least, also for a caller who does not want to wait.
const LEAST_TYPING: Duration = Duration::from_millis(100);
/// How long a cancelled command may take to end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a shell may take from the end of a command to its word where it is.
const DIRECTORY_TIMEOUT: Duration = Duration::from_millis(500);
/// How long the line of a sentinel whose mark was seen is waited for. A line editor that draws its prompt anew while the
/// window changes can wipe it out before it was looked at.
const SENTINEL_TIMEOUT: Duration = Duration::from_millis(300);
/// Most commands end before it is looked whether they ask.
const FIRST_QUESTION: Duration = Duration::from_millis(150);
/// How long a program has to ask until that counts.
const QUESTION_PAUSE: Duration = Duration::from_millis(50);
/// Ctrl-U, which empties a line, in a line editor and in the system's own.
const CLEAR: &[u8] = b"\x15";
/// The same in zsh, which may have several lines there.
const CLEAR_BUFFER: &[u8] = b"\x18\x0b\x15";
/// Leaves a search of readline, goes to the end of the line and empties it.
const LEAVE_AND_CLEAR: &[u8] = b"\x07\x05\x15";
/// Characters of what an unfinished command printed.
const PARTIAL_CHARS: usize = 20_000;
/// Bytes of output that are copied several times on the way to an answer: what that leaves behind is worth giving back.
const LONG_OUTPUT: usize = 1 << 20;
/// Characters of raw output in an answer, unless all of it is asked for.
const RAW_TAIL: usize = 4_000;

impl Session {
    /// Runs a command and waits for its end.
    pub async fn talk(&self, request: TalkRequest) -> Result<TalkResult> {
        if let Some(exit) = self.exit() {
            return Err(self.exited(exit, None));
        }
        let deadline = Instant::now() + request.timeout;
        let Ok(mut last_directory) = tokio::time::timeout_at(deadline.into(), self.shared.turn.lock()).await else {
            return Err(self.busy("Another talk is running in this session", None));
        };
        let sentinel = Sentinel::new(request.sentinel.as_deref(), &random_hex())
            .map_err(|problem| Error::invalid("sentinel", problem))?;
        let mut readiness = self.ready(deadline).await?;
        if let Readiness::ForeignShell { typed_to: Some(TypedTo { group, pid: None, .. }), .. } = &readiness
            && self.learn_dialect(&readiness, *group, deadline + GRACE).await?
        {
            readiness = self.ready(deadline).await?;
        }
        let shell = readiness.shell(self.shared.control.pid());
        let piped = shell.map(pty::piped).unwrap_or_default();
        let is_piped = piped.output || piped.errors;
        let needs_sentinel = || self.shared.lock().shell.as_ref().is_some_and(MarkedShell::needs_sentinel);
        if matches!(readiness, Readiness::AtPrompt)
            && (is_piped || !can_be_pasted(&request.command) || needs_sentinel())
        {
            readiness = self.own_shell().unwrap_or(readiness);
        }
        let sentinel = if is_piped { sentinel.delayed(piped.errors) } else { sentinel };
        let mut news = self.shared.news.subscribe();
        let mut progress = self.shared.progress.subscribe();
        let unattended = self.hand_over(&request, &readiness, &sentinel, deadline).await?;
        let id = unattended.command();
        #[cfg(target_os = "linux")]
        if let (true, Some(shell)) = (is_piped, shell) {
            tokio::spawn(self.clone().end_pauses(id, shell, sentinel.pause()));
        }
        let waiters = (&mut news, &mut progress);
        let began = Instant::now();
        let mut asks = None;
        let waited = tokio::select! {
            biased;
            waited = self.until_end(id, &readiness, deadline, waiters) => waited,
            state = self.until_asked(), if request.until_asks => {
                asks = Some(state.as_str());
                Waited::TimedOut
            }
        };
        match waited {
            Waited::Ended => {
                unattended.disarm();
                if self.has_moved_from(&mut last_directory) {
                    self.until_told_where(&mut news, deadline + GRACE).await;
                }
                self.answer(id, sentinel.token(), request.all_raw)
            }
            Waited::Incomplete => {
                let cancelled = self.cancel_incomplete(id, deadline + GRACE, &mut news).await;
                unattended.disarm();
                Err(cancelled)
            }
            Waited::TimedOut if asks.is_some() => Err(self.unended(id, &request, began.elapsed(), false, asks)),
            Waited::TimedOut => Err(self.time_out(id, &request, deadline + GRACE, &mut news).await),
        }
    }

    /// Notes the command and types it. Dropping the result leaves the command to itself.
    async fn hand_over(
        &self,
        request: &TalkRequest,
        readiness: &Readiness,
        sentinel: &Sentinel,
        deadline: Instant,
    ) -> Result<Unattended> {
        // Nobody else types between the look at the line and the last byte.
        let input = Arc::clone(&self.shared.input).lock_owned();
        let Ok(mut line) = tokio::time::timeout_at(deadline.into(), input).await else {
            return Err(self.busy("Somebody is typing into this session", None));
        };
        let has_line = !line.is_empty() || line.is_unknown();
        let command = request.command.trim_end_matches(['\n', '\r']);
        let cwd = self.directory().map(|path| path.display().to_string());
        let modes = self.shared.control.line_modes();
        let (id, bytes) = {
            let mut terminal = self.shared.lock();
            let takes_paste = terminal.emulator.modes().bracketed_paste;
            let way = match readiness {
                Readiness::ForeignShell { typed_to, .. } => Way::Sentinel {
                    sentinel: sentinel.clone(),
                    typed_to: typed_to.clone(),
                    prompt: terminal.line_before_cursor(),
                    typed_at: Some(terminal.end_of_prompt(typed_to.as_ref())),
                    pasted: takes_paste && !is_plain(typed_to.as_ref()),
                },
                _ => Way::Integration,
            };
            let enter = match way {
                Way::Sentinel { pasted: false, .. } => self.enter(),
                _ if Self::keeps_lines(&terminal, readiness, command) => Enter::PasteLineFeed,
                _ if modes.as_ref().is_some_and(|modes| modes.drops_enter) => Enter::PasteLineFeed,
                _ => Enter::Paste,
            };
            let pipeline = terminal.last_pipeline(&way);
            let text = match readiness {
                Readiness::ForeignShell { form, .. } => typed(&sentinel.typed(*form, command, &pipeline), enter),
                _ => typed(command, enter),
            };
            let text = match &modes {
                Some(modes) => modes.literally(text),
                None => Some(text),
            };
            let Some(text) = text else {
                drop(terminal);
                return Err(self.busy("The settings of the terminal (stty) would change what is typed", None));
            };
            let id = terminal.commands.begin(command, cwd, way);
            if let Some(command) = terminal.commands.get_mut(id) {
                command.wanted = Some(request.max_chars);
                command.named.clone_from(&request.sentinel);
            }
            let mut bytes = Vec::new();
            // In zsh any hook may have put text on the line, and only marks tell.
            let is_zle = matches!(readiness, Readiness::ForeignShell { form: Form::Zsh, .. })
                && !self.shared.control.is_canonical();
            if has_line || is_zle || terminal.typed != TypedText::None || terminal.has_text_behind_prompt() {
                bytes.extend(self.clearing(&terminal, readiness));
            }
            bytes.extend(text);
            terminal.typed = TypedText::None;
            (terminal.has_typed_line, terminal.has_answered) = (false, false);
            terminal.foreign = ForeignLines::default();
            if let Some(shell) = &mut terminal.shell {
                shell.expect(id);
            }
            (id, bytes)
        };
        // A command that was noted must be typed, and attended also when its caller leaves while it is typed.
        line.clear();
        let session = self.clone();
        let until = (deadline + GRACE).max(Instant::now() + LEAST_TYPING);
        let typing = async move {
            let unattended = Unattended::new(&session, id);
            let typed = session.type_command(id, &bytes, until).await;
            drop(line);
            match typed {
                Ok(()) => Ok(unattended),
                Err(error) => {
                    unattended.disarm();
                    Err(error)
                }
            }
        };
        DetachOnDrop::new(typing).await
    }

    /// What takes back what stands on the line: text of somebody's, or replies of the terminal that nobody read.
    pub(super) fn clearing(&self, terminal: &TerminalState, readiness: &Readiness) -> &'static [u8] {
        match readiness {
            Readiness::ForeignShell { form: Form::Posix | Form::Bash, .. } if !self.shared.control.is_canonical() => {
                LEAVE_AND_CLEAR
            }
            Readiness::ForeignShell { form: Form::Zsh, .. } => CLEAR_BUFFER,
            Readiness::ForeignShell { .. } => CLEAR,
            _ => terminal.shell.as_ref().map_or(CLEAR, |shell| shell.program.clearing()),
        }
    }

    /// Several lines for bash: a line editor in readline's place (ble.sh) takes Enter for one more line there, and a line
    /// feed, like readline itself, for the end.
    fn keeps_lines(terminal: &TerminalState, readiness: &Readiness, command: &str) -> bool {
        match readiness {
            Readiness::ForeignShell { form, .. } => matches!(form, Form::Posix | Form::Bash),
            _ => {
                let is_bash = |shell: &MarkedShell| shell.program == IntegratedShell::Bash;
                command.contains('\n') && terminal.shell.as_ref().is_some_and(is_bash)
            }
        }
    }

    /// How a line is ended for a shell without a line editor.
    fn enter(&self) -> Enter {
        match self.shared.control.line_modes() {
            Some(modes) if !modes.enter => Enter::LineFeed,
            _ => Enter::Key,
        }
    }

    /// Types what belongs to a command, or forgets the command.
    async fn type_command(&self, id: CommandId, bytes: &[u8], until: Instant) -> Result<()> {
        let Err(error) = self.write_as(Writer::Talk, bytes, Some(until)).await else { return Ok(()) };
        let mut terminal = self.shared.lock();
        if terminal.exit.is_none() {
            terminal.commands.forget_last(id);
        }
        if let Some(shell) = &mut terminal.shell {
            shell.pending.take_if(|pending| *pending == id);
        }
        Err(error)
    }

    /// Waits for the end of a command, or for what else can come of it.
    async fn until_end(
        &self,
        id: CommandId,
        readiness: &Readiness,
        deadline: Instant,
        (news, progress): (&mut watch::Receiver<u64>, &mut watch::Receiver<u64>),
    ) -> Waited {
        let follows_output = matches!(readiness, Readiness::ForeignShell { .. });
        let mut looks = Looks::default();
        loop {
            match self.state_of(id) {
                State::Ended => return Waited::Ended,
                State::Incomplete if self.waits_for_rest(id, Some(deadline)).await => return Waited::Incomplete,
                State::Incomplete => self.forget_incomplete(id),
                State::Running if Instant::now() >= deadline => return Waited::TimedOut,
                State::Running => {}
            }
            let mut next_look = self.sentinel_due(id).map_or(deadline, |due| due.min(deadline));
            if follows_output {
                match self.dropped_line(id) {
                    DroppedLine::No => {}
                    DroppedLine::Perhaps => next_look = looks.next().map_or(next_look, |look| look.min(next_look)),
                    DroppedLine::Yes => {
                        self.end_dropped(id).await;
                        continue;
                    }
                }
            }
            tokio::select! {
                _ = news.changed() => {}
                _ = progress.changed(), if follows_output => looks.reset(),
                () = sleep_until(next_look) => {}
            }
        }
    }

    /// Waits until the program that runs asks for something, and still does a moment later. A shell that asks for the
    /// rest of a command is none: that command is cancelled.
    async fn until_asked(&self) -> AttentionState {
        tokio::time::sleep(FIRST_QUESTION).await;
        loop {
            let asks = WaitRequest { asks: true, timeout: LONGEST_TALK, ..WaitRequest::default() };
            let waited = self.wait(&asks).await;
            tokio::time::sleep(QUESTION_PAUSE).await;
            let attention = self.attention();
            let is_asked = waited.is_ok_and(|waited| matches!(waited.ending, Ending::Asks(_)));
            if is_asked && attention.asks() && !attention.is_of_shell() {
                return attention.state;
            }
        }
    }

    /// When the mark of a sentinel counts without its line.
    fn sentinel_due(&self, id: CommandId) -> Option<Instant> {
        let terminal = self.shared.lock();
        let (_, edge) = terminal.commands.get(id)?.candidate.as_ref()?;
        Some(edge.at + SENTINEL_TIMEOUT)
    }

    /// The shell has asked for the rest of a command. It reads by now or will in a moment, unless a program that runs in it
    /// printed the mark, and that must not be interrupted.
    pub(super) async fn waits_for_rest(&self, id: CommandId, deadline: Option<Instant>) -> bool {
        let longest = Instant::now() + CONTINUATION_TIMEOUT;
        // The moment that a shell takes on an idle machine is there for every caller.
        let until = deadline.map_or(longest, |deadline| deadline.max(Instant::now() + GRACE / 8).min(longest));
        let mut pause = Duration::from_millis(1);
        loop {
            let reads = pty::waits_for(self.shared.control.pid()) != Some(pty::Waiting::Nothing);
            // An end that came meanwhile is noticed before the next look.
            tokio::time::sleep(pause).await;
            let is_incomplete = || {
                let terminal = self.shared.lock();
                terminal.commands.get(id).is_some_and(|command| command.incomplete.is_some() && command.end.is_none())
            };
            if reads || Instant::now() >= until || !is_incomplete() {
                return reads && is_incomplete();
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    pub(super) fn forget_incomplete(&self, id: CommandId) {
        if let Some(command) = self.shared.lock().commands.get_mut(id) {
            command.incomplete = None;
        }
    }

    /// The shell is not where the last command left it. Before the first, nobody knows.
    fn has_moved_from(&self, last: &mut Option<PathBuf>) -> bool {
        let now = self.shared.control.directory();
        std::mem::replace(last, now.clone()) != now
    }

    /// A marked shell tells where it is before its next prompt; one that has moved is given a moment to do so.
    async fn until_told_where(&self, news: &mut watch::Receiver<u64>, until: Instant) {
        let is_on_its_way = || self.shared.lock().shell.as_ref().is_some_and(|shell| shell.phase == Phase::Ended);
        let moved = async { while is_on_its_way() && news.changed().await.is_ok() {} };
        // Without its word the last one holds.
        let until = until.min(Instant::now() + DIRECTORY_TIMEOUT);
        let _ = tokio::time::timeout_at(until.into(), moved).await;
    }

    /// The command has ended, also if it was interrupted and its shell printed no end mark.
    pub(super) fn has_ended(&self, id: CommandId) -> bool {
        matches!(self.state_of(id), State::Ended)
    }

    pub(super) fn state_of(&self, id: CommandId) -> State {
        let mut terminal = self.shared.lock();
        let Some(command) = terminal.commands.get(id) else { return State::Ended };
        if command.end.is_some() {
            return State::Ended;
        }
        if command.incomplete.is_some() {
            return State::Incomplete;
        }
        if let Some((status, edge)) =
            command.candidate.clone().filter(|(_, edge)| edge.at.elapsed() >= SENTINEL_TIMEOUT)
        {
            terminal.close(id, status, Evidence::Sentinel, edge);
            return State::Ended;
        }
        // One that can be asked for its status is.
        if command.interrupted
            && let Way::Sentinel { typed_to: Some(typed_to @ TypedTo { depth: None, .. }), .. } = command.way.clone()
            && self.shared.control.foreground_group() == Some(typed_to.group)
            && terminal.has_returned_to_prompt(id, Some(&typed_to))
        {
            terminal.give_up(id);
            return State::Ended;
        }
        State::Running
    }

    /// Where the shell is that ran a command, and what it calls that.
    fn directory_after(&self, id: CommandId) -> (Option<PathBuf>, Option<PathBuf>) {
        let (shell, said) = {
            let terminal = self.shared.lock();
            let typed_to = terminal.commands.get(id).and_then(|command| match &command.way {
                Way::Sentinel { typed_to, .. } => typed_to.as_ref().map(|typed_to| typed_to.pid),
                _ => None,
            });
            (typed_to.unwrap_or(Some(self.shared.control.pid())), terminal.cwd.clone().map(PathBuf::from))
        };
        let Some(shell) = shell else { return (None, None) };
        // A shell that the command ended has given the terminal back to the session's own.
        let cwd = pty::directory(shell).or_else(|| self.directory());
        let is_own = shell == self.shared.control.pid();
        // A shell can be made to say anything; a name counts when it leads to the same place.
        let leads_there = |path: &PathBuf| Some(path) != cwd.as_ref() && std::fs::canonicalize(path).ok() == cwd;
        (cwd.clone(), said.filter(|_| is_own).filter(leads_there))
    }

    /// What a command came to.
    pub(super) fn answer(&self, id: CommandId, sentinel: &str, all_raw: bool) -> Result<TalkResult> {
        let (cwd, logical_cwd) = self.directory_after(id);
        let mut terminal = self.shared.lock();
        let output = terminal.output_of(id, usize::MAX).unwrap_or_default();
        if output.text.len() > LONG_OUTPUT {
            release_soon();
        }
        let Some(command) = terminal.commands.get_mut(id) else {
            return Err(Error::invalid("command_id", format!("{id} is not known any more")));
        };
        command.output = None;
        command.wanted = None;
        let Some(end) = command.end.clone() else {
            return Err(Error::invalid("command_id", format!("{id} has not ended")));
        };
        if end.by == Evidence::ProcessExit
            && let Some(exit) = terminal.exit
        {
            return Err(self.exited(exit, Some((id, output.text))));
        }
        let mut raw_output = terminal.raw_output_of(id);
        if !all_raw {
            raw_output.keep_tail(RAW_TAIL);
        }
        let shown = |path: PathBuf| terminal.redactor.mask_str(&path.to_string_lossy());
        Ok(TalkResult {
            command: id,
            output,
            exit_code: end.status,
            duration: end.after,
            cwd: cwd.map(shown),
            logical_cwd: logical_cwd.map(shown),
            completed_by: end.by,
            sentinel: terminal.redactor.mask_str(sentinel),
            raw_output,
        })
    }

    /// Takes a command back that the shell found unfinished.
    pub(super) async fn cancel_incomplete(
        &self,
        id: CommandId,
        until: Instant,
        news: &mut watch::Receiver<u64>,
    ) -> Error {
        let partial_output = self.shared.lock().output_before_continuation(id, PARTIAL_CHARS);
        let ways = self.shared.lock().shell.as_ref().map_or(&[] as &[_], |shell| shell.program.cancelling());
        for keys in ways {
            if let Some(shell) = &mut self.shared.lock().shell
                && shell.pending == Some(id)
            {
                shell.phase = Phase::Submitted;
            }
            // A session that ended meanwhile needs no cancelling.
            let _ = self.write_as(Writer::Talk, keys, Some(until)).await;
            let over = async { while !self.is_over(id) && news.changed().await.is_ok() {} };
            let timeout = until.min(Instant::now() + CANCEL_TIMEOUT);
            if tokio::time::timeout_at(timeout.into(), over).await.is_ok() {
                break;
            }
        }
        let mut terminal = self.shared.lock();
        if let Some(shell) = &mut terminal.shell
            && shell.pending == Some(id)
        {
            shell.pending = None;
        }
        if terminal.commands.get(id).is_some_and(|command| command.end.is_none()) {
            terminal.give_up(id);
        }
        drop(terminal);
        // Another talk may wait for this command to be out of the way.
        self.shared.publish(true);
        let partial_output = partial_output.map(|output| output.text).unwrap_or_default();
        Error::Incomplete(Box::new(Incomplete { session: self.id().clone(), command: id, partial_output }))
    }

    /// A cancelled command has ended, or the shell shows its prompt again.
    fn is_over(&self, id: CommandId) -> bool {
        let terminal = self.shared.lock();
        let is_at_prompt = terminal.shell.as_ref().is_some_and(|shell| shell.phase == Phase::Prompt);
        is_at_prompt || terminal.commands.get(id).is_none_or(|command| command.end.is_some())
    }

    async fn until(&self, id: CommandId, news: &mut watch::Receiver<u64>, is_so: impl Fn(&Command) -> bool) {
        loop {
            if self.shared.lock().commands.get(id).is_none_or(&is_so) || news.changed().await.is_err() {
                return;
            }
        }
    }

    /// The time is over; the command goes on, or is interrupted.
    async fn time_out(
        &self,
        id: CommandId,
        request: &TalkRequest,
        until: Instant,
        news: &mut watch::Receiver<u64>,
    ) -> Error {
        let interrupted = request.on_timeout == OnTimeout::Interrupt;
        if interrupted {
            // A failure shows in what follows: the command is still there.
            let _ = self.write_as(Writer::Other, INTERRUPT, Some(until)).await;
            let ended = async {
                tokio::select! {
                    () = self.until(id, news, |command| command.end.is_some()) => {}
                    () = self.attend(id, Turn::Held) => {}
                }
            };
            let _ = tokio::time::timeout_at(until.into(), ended).await;
        }
        self.unended(id, request, request.timeout, interrupted, None)
    }

    /// What is known of a command that goes on.
    fn unended(
        &self,
        id: CommandId,
        request: &TalkRequest,
        waited: Duration,
        interrupted: bool,
        asks: Option<&'static str>,
    ) -> Error {
        let foreground = self.foreground().and_then(|foreground| foreground.program);
        let screen = self.read(&Request::new(Mode::Viewport)).text.trim_end();
        let mut terminal = self.shared.lock();
        // It may be a shell.
        terminal.dialect = None;
        if let Some(command) = terminal.commands.get_mut(id) {
            command.wanted = None;
            command.output = None;
        }
        let partial_output = terminal.output_of(id, request.max_chars).unwrap_or_default().text;
        Error::Timeout(Box::new(TimedOut {
            session: self.id().clone(),
            command: id,
            line: terminal.redactor.mask_str(&request.command),
            waited,
            partial_output,
            screen,
            foreground: foreground.map(|program| terminal.redactor.mask(program.name)),
            alternate_screen: terminal.emulator.buffer() == Buffer::Alternate,
            interrupted,
            asks,
        }))
    }
}

/// What a wait for a command came to.
enum Waited {
    Ended,
    Incomplete,
    TimedOut,
}

/// Where a command is.
pub(super) enum State {
    Ended,
    Incomplete,
    Running,
}
