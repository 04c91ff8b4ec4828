//! Running a command through a bridge that knows its end: another kpty, which says so in its `/health`. It is asked by
//! `/pty/talk`, and what it answers is our answer: output, status, evidence, and its failures with all their facts.
//!
//! A command is handed over once. Whatever happens to the answer, nothing is typed again: the bridge is asked by
//! `/pty/command` what became of it, by the sentinel that went along, and the caller is told what is known.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::client::LONGEST_WAIT;
use super::talk::{Pace, with_command};
use super::told::{Doing, Ran, Scene, Told};
use super::wire;
use super::{Desktop, Shared};
use crate::error::{Busy, DesktopTrouble, Error, Exited, Incomplete, Result, TimedOut};
use crate::ids::CommandId;
use crate::model::ExitInfo;
use crate::terminal::Evidence;
use crate::terminal::Terminal;
use crate::terminal::talk::{TalkRequest, TalkResult};

/// How long a bridge's word holds that it knows ends; another program may answer at its address later.
const PROVEN_FOR: Duration = Duration::from_secs(5);
/// How long one is not asked again that does not, or that did not answer.
const DOUBTED_FOR: Duration = Duration::from_secs(30);

impl Desktop {
    /// The bridge says that it knows the end of a command.
    async fn is_exact(&self) -> bool {
        let known = self.lock().exact;
        let holds = |(at, is_exact): &(Instant, bool)| at.elapsed() < if *is_exact { PROVEN_FOR } else { DOUBTED_FOR };
        if let Some((_, is_exact)) = known.filter(holds) {
            return is_exact;
        }
        let Shared { client, url, .. } = &*self.shared;
        let health = client.health(url).await;
        let is_exact = health.is_ok_and(|health| {
            wire::field(&health, "exact_talk", "exactTalk").and_then(serde_json::Value::as_bool) == Some(true)
        });
        self.lock().exact = Some((Instant::now(), is_exact));
        is_exact
    }

    /// Has the bridge run a command, where it knows its end. `None` where it does not; then nothing was typed.
    pub(super) async fn run_there(
        &self,
        request: &TalkRequest,
        token: &str,
        deadline: Instant,
    ) -> Option<Result<TalkResult>> {
        if !self.is_exact().await {
            self.lose_all();
            return None;
        }
        self.settle_there().await;
        let id = {
            let mut state = self.lock();
            state.has_typed = false;
            state.commands.begin_there(request.command.trim_end_matches(['\n', '\r']), token)
        };
        let left = deadline.saturating_duration_since(Instant::now());
        let Shared { client, url, id: session, .. } = &*self.shared;
        let told = match client.talk(url, session, request, (token, left)).await {
            Ok(told) => Ok(told),
            Err(fault) => self.find_there(id, fault, deadline).await,
        };
        match told {
            Ok(Told::NoRoute) => {
                let mut state = self.lock();
                state.commands.forget_there(id);
                state.exact = Some((Instant::now(), false));
                None
            }
            Ok(told) => Some(self.answer_there(id, told, request, token).await),
            Err(error) => Some(Err(error)),
        }
    }

    /// The answer to a command did not arrive, or cannot be understood: what became of it?
    async fn find_there(&self, id: CommandId, fault: Error, deadline: Instant) -> Result<Told> {
        // Who could not be reached was told nothing.
        if matches!(&fault, Error::Desktop(fault) if fault.trouble == DesktopTrouble::Unreachable) {
            self.lock().commands.forget_there(id);
            return Err(fault);
        }
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.ask_there(id, left).await {
                Some(Ok(Told::Running(_))) if Instant::now() < deadline => {}
                Some(Ok(told @ (Told::Running(_) | Told::Ended(_)))) => return Ok(told),
                Some(Ok(Told::Unknown)) => {
                    self.lock().commands.forget_there(id);
                    return Err(fault);
                }
                // A bridge that is no kpty after all.
                Some(Ok(_)) | None => {
                    let mut state = self.lock();
                    state.commands.lose_there(id);
                    state.exact = Some((Instant::now(), false));
                    return Err(with_command(fault, id));
                }
                Some(Err(_)) => {
                    self.lock().exact = None;
                    return Err(with_command(fault, id));
                }
            }
        }
    }

    /// Asks what became of a command; `None` where nobody can be asked.
    async fn ask_there(&self, id: CommandId, wait: Duration) -> Option<Result<Told>> {
        let (number, token) = self.lock().commands.asked_by(id)?;
        let Shared { client, url, id: session, .. } = &*self.shared;
        match client.command(url, session, (number, &token), wait.min(LONGEST_WAIT)).await {
            // Nonsense is no answer, and will not be one later.
            Err(Error::Desktop(fault)) if fault.trouble == DesktopTrouble::NotJson => None,
            asked => Some(asked),
        }
    }

    /// Asks for the end of a command and notes what is told. True when that is all there is to know.
    async fn learn_there(&self, id: CommandId, wait: Duration) -> Result<bool> {
        let asked = match self.ask_there(id, wait).await {
            Some(asked) => asked?,
            None => Told::NoRoute,
        };
        let mut state = self.lock();
        match asked {
            Told::Ended(ran) => state.commands.told(id, *ran),
            Told::Running(ran) => {
                state.commands.told(id, *ran);
                return Ok(false);
            }
            // It was never typed, or so long ago that nobody remembers.
            Told::Unknown => state.commands.forget_there(id),
            _ => state.commands.lose_there(id),
        }
        Ok(true)
    }

    /// Notes the ends of commands that ran on when they were last heard of.
    pub(super) async fn settle_there(&self) {
        let open = self.lock().commands.open_there();
        for id in open {
            // Who does not answer now is asked again the next time.
            let _ = self.learn_there(id, Duration::ZERO).await;
        }
    }

    /// Waits until the other side has told the end of a command; never comes back where it cannot be asked.
    pub(super) async fn until_told(&self, id: Option<CommandId>, deadline: Instant) {
        let mut pace = Pace::new();
        while let Some(id) = id.filter(|id| self.lock().commands.asked_by(*id).is_some()) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.learn_there(id, left).await {
                Ok(true) => return,
                Ok(false) if left.is_zero() => break,
                Ok(false) => {}
                Err(_) => pace.pause(Instant::now(), deadline).await,
            }
        }
        std::future::pending().await
    }

    /// The bridge no longer says that it knows ends: what it ran is to be seen, or not at all.
    fn lose_all(&self) {
        let mut state = self.lock();
        let open = state.commands.open_there();
        open.into_iter().for_each(|id| state.commands.lose_there(id));
    }

    /// What the other side told, as our own answer.
    async fn answer_there(&self, id: CommandId, told: Told, request: &TalkRequest, token: &str) -> Result<TalkResult> {
        match told {
            Told::Ended(ran) if ran.by == Some(Evidence::ProcessExit) => {
                let exit = ran.status.map_or(ExitInfo::Unknown, ExitInfo::Code);
                Err(self.exited_there(id, *ran, exit, request.max_chars))
            }
            Told::Ended(ran) => Ok(self.ended_there(id, *ran, request, token).await),
            Told::Running(ran) => Err(self.late_there(id, *ran, Scene::default(), request).await),
            Told::TimedOut(ran, scene) => Err(self.late_there(id, *ran, scene, request).await),
            Told::Incomplete(ran) => {
                self.lock().commands.told(id, Ran { by: Some(Evidence::Prompt), ..*ran });
                let partial_output = self.printed_there(id, request.max_chars);
                Err(Error::Incomplete(Box::new(Incomplete { session: self.id().clone(), command: id, partial_output })))
            }
            Told::Exited(ran, exit) => Err(self.exited_there(id, *ran, exit, request.max_chars)),
            Told::Busy(doing) => {
                self.lock().commands.forget_there(id);
                Err(self.busy_there(*doing))
            }
            Told::Blocked(blocked) => {
                self.lock().commands.forget_there(id);
                Err(Error::Blocked(blocked))
            }
            Told::Refused(error) => {
                self.lock().commands.forget_there(id);
                Err(error)
            }
            Told::Unknown | Told::NoRoute => {
                self.lock().commands.forget_there(id);
                Err(Error::invalid("command_id", format!("{id} is not known any more")))
            }
        }
    }

    async fn ended_there(&self, id: CommandId, ran: Ran, request: &TalkRequest, token: &str) -> TalkResult {
        let Ran { status, by, took, cwd, logical_cwd, raw_output, .. } = ran.clone();
        // The rest of a long output is had by another question; without an answer the beginning and the end must do.
        let whole = match ran.output.omitted_chars {
            0 => None,
            _ => self.ask_there(id, Duration::ZERO).await,
        };
        let whole = match whole {
            Some(Ok(Told::Ended(whole))) => *whole,
            _ => ran,
        };
        self.lock().commands.told(id, whole);
        let output = self.output_of(id, request.max_chars).unwrap_or_default();
        let raw_output = match raw_output {
            Some(raw) => self.shared.redactor.redact(&raw).into_owned(),
            None => output.text.clone(),
        };
        TalkResult {
            command: id,
            output,
            exit_code: status,
            duration: took.or_else(|| self.command(id).map(|command| command.age())).unwrap_or_default(),
            cwd: cwd.map(PathBuf::from),
            logical_cwd: logical_cwd.map(PathBuf::from),
            completed_by: by.unwrap_or(Evidence::Sentinel),
            sentinel: token.to_owned(),
            raw_output,
        }
    }

    /// The time is over; the command goes on there.
    async fn late_there(&self, id: CommandId, ran: Ran, scene: Scene, request: &TalkRequest) -> Error {
        self.lock().commands.told(id, ran);
        if scene.interrupted {
            self.lock().commands.interrupt();
            self.settle_there().await;
        }
        Error::Timeout(Box::new(TimedOut {
            session: self.id().clone(),
            command: id,
            line: request.command.clone(),
            waited: request.timeout,
            partial_output: self.printed_there(id, request.max_chars),
            screen: self.shared.redactor.redact(&scene.screen).into_owned(),
            foreground: scene.foreground,
            alternate_screen: scene.alternate_screen,
            interrupted: scene.interrupted,
        }))
    }

    /// The session's program has ended, and the command with it; or before it, and then it was never typed.
    fn exited_there(&self, id: CommandId, ran: Ran, exit: ExitInfo, max_chars: usize) -> Error {
        let was_typed = ran.number.is_some();
        {
            let mut state = self.lock();
            state.exit = Some(exit);
            match was_typed {
                true => state.commands.told(id, Ran { by: Some(Evidence::ProcessExit), status: exit.status(), ..ran }),
                false => state.commands.forget_there(id),
            }
        }
        let command = Some(id).filter(|_| was_typed);
        let partial_output = command.map(|id| self.printed_there(id, max_chars));
        Error::Exited(Box::new(Exited { session: self.id().clone(), exit, command, partial_output }))
    }

    /// Nothing was typed there. What runs instead can be waited for here too, whoever began it.
    fn busy_there(&self, doing: Doing) -> Error {
        let Doing { mut reason, foreground, command, age } = doing;
        let command = command.map(|(number, line)| (self.lock().commands.known_there(number, &line), line));
        if let (Some((id, line)), Some(age)) = (&command, age) {
            reason = format!("{reason}: {id} `{line}` has been running for {} ms", age.as_millis());
        }
        Error::Busy(Box::new(Busy { session: self.id().clone(), reason, foreground, command, age }))
    }

    fn printed_there(&self, id: CommandId, max_chars: usize) -> String {
        self.output_of(id, max_chars).unwrap_or_default().text
    }
}
