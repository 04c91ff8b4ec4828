//! One terminal, whoever runs it: what actions ask of a session of this server and of a desktop's alike.
//!
//! [`Shown`] is its text at one moment; waiting and searching are written against it, once. [`Source`] is all that
//! actions need, and may take its time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use kpty_emulator::{Answer, Modes, Request, Screen, Size};

use super::search::{SearchAnswer, SearchRequest, search};
use super::talk::{TalkAnswer, TalkRequest};
use super::wait::{WaitAnswer, WaitRequest};
use super::{Command, InputTurn, Output, Rendered, Session, View};
use crate::error::{Error, Result};
use crate::ids::{CommandId, SessionId};
use crate::model::ExitInfo;
use kpty_guard::Redactor;

/// The text of a terminal at one moment, and what goes on there.
pub trait Shown {
    /// Reads rendered text, secrets masked before anything is cut.
    fn read(&self, request: &Request) -> Answer;
    /// How its program ended, if it has.
    fn exit(&self) -> Option<ExitInfo>;
    /// This command has ended.
    fn has_ended(&self, id: CommandId) -> bool;
    /// A shell reads.
    fn is_at_prompt(&self) -> bool;
    /// When something was printed last.
    fn last_output(&self) -> Instant;
}

/// A terminal that actions work on.
#[async_trait]
pub trait Source: Send + Sync {
    /// Its name.
    fn id(&self) -> &SessionId;

    /// Reads rendered text, and says where the window stands.
    async fn view(&self, request: &Request) -> Result<View>;

    /// The same for a caller that waits this long at most.
    async fn view_within(&self, request: &Request, _timeout: Duration) -> Result<View> {
        self.view(request).await
    }

    /// The newest raw output, secrets masked; waits while there is none.
    async fn read_raw(&self, max_bytes: usize, timeout: Duration) -> Result<String>;

    /// Waits while it has never said anything.
    async fn first_output(&self, timeout: Duration);

    /// Whoever types takes this first.
    fn input(&self) -> &Arc<InputTurn>;

    /// What stands on the line is surely taken back before `talk` types there.
    fn takes_line_back(&self) -> bool;

    /// A shell may run the line that is sent off next, and its line can be looked at; one that is known need not be.
    fn may_show_line(&self, is_unknown: bool) -> bool;

    /// The line that Enter would send off, as the screen shows it when everything that was typed has been taken.
    async fn rendered_line(&self, expected: Option<&str>) -> Rendered;

    /// Types bytes.
    async fn write(&self, bytes: &[u8]) -> Result<usize>;

    /// Runs a command and waits for its end.
    async fn talk(&self, request: TalkRequest) -> Result<TalkAnswer>;

    /// Waits for the first of several things.
    async fn wait(&self, request: &WaitRequest) -> Result<WaitAnswer>;

    /// Looks through history and screen.
    async fn search(&self, request: SearchRequest) -> Result<SearchAnswer>;

    /// The commands that are remembered, oldest first.
    fn commands(&self) -> Vec<Command>;

    /// One command.
    fn command(&self, id: CommandId) -> Option<Command>;

    /// What a command printed, so far or in all.
    fn output_of(&self, id: CommandId, max_chars: usize) -> Option<Output>;

    /// Those lines of it that can still be read, whole.
    fn kept_lines_of(&self, id: CommandId) -> Option<Output> {
        self.output_of(id, usize::MAX)
    }

    /// Takes secrets out of a text.
    fn redactor(&self) -> Arc<Redactor>;

    /// A program reads key by key, and takes what comes in a burst for a paste.
    fn reads_keys(&self) -> bool;

    /// What the program asked of keyboard, mouse and paste, where that is known.
    fn modes(&self) -> Option<Modes>;

    /// The visible cells, where they are known. Nothing is masked: for finding places, not for showing.
    fn screen(&self) -> Option<Screen>;

    /// How its program ended, if it is known to have.
    fn exit(&self) -> Option<ExitInfo>;

    /// Changes the window.
    fn resize(&self, size: Size) -> Result<()>;
}

impl Shown for Session {
    fn read(&self, request: &Request) -> Answer {
        Self::read(self, request)
    }

    fn exit(&self) -> Option<ExitInfo> {
        Self::exit(self)
    }

    fn has_ended(&self, id: CommandId) -> bool {
        Self::has_ended(self, id)
    }

    fn is_at_prompt(&self) -> bool {
        Self::is_at_prompt(self)
    }

    fn last_output(&self) -> Instant {
        self.shared.lock().last_output
    }
}

#[async_trait]
impl Source for Session {
    fn id(&self) -> &SessionId {
        Self::id(self)
    }

    async fn view(&self, request: &Request) -> Result<View> {
        Ok(Self::view(self, request))
    }

    async fn read_raw(&self, max_bytes: usize, timeout: Duration) -> Result<String> {
        Ok(Self::read_raw(self, max_bytes, timeout).await)
    }

    async fn first_output(&self, timeout: Duration) {
        Self::read_raw(self, 0, timeout).await;
    }

    fn input(&self) -> &Arc<InputTurn> {
        &self.shared.input
    }

    fn takes_line_back(&self) -> bool {
        true
    }

    fn may_show_line(&self, is_unknown: bool) -> bool {
        Self::may_show_line(self, is_unknown)
    }

    async fn rendered_line(&self, expected: Option<&str>) -> Rendered {
        Self::rendered_line(self, expected).await
    }

    async fn write(&self, bytes: &[u8]) -> Result<usize> {
        Self::write(self, bytes).await
    }

    async fn talk(&self, request: TalkRequest) -> Result<TalkAnswer> {
        Self::talk(self, request).await
    }

    async fn wait(&self, request: &WaitRequest) -> Result<WaitAnswer> {
        Self::wait(self, request).await
    }

    async fn search(&self, request: SearchRequest) -> Result<SearchAnswer> {
        // A search through a long history takes a while, so not on a thread that others wait for.
        let session = self.clone();
        let searched = tokio::task::spawn_blocking(move || search(&session, &request));
        searched.await.map_err(|error| Error::NotAvailable(error.to_string()))
    }

    fn commands(&self) -> Vec<Command> {
        Self::commands(self)
    }

    fn command(&self, id: CommandId) -> Option<Command> {
        Self::command(self, id)
    }

    fn output_of(&self, id: CommandId, max_chars: usize) -> Option<Output> {
        Self::output_of(self, id, max_chars)
    }

    fn kept_lines_of(&self, id: CommandId) -> Option<Output> {
        Self::kept_lines_of(self, id)
    }

    fn redactor(&self) -> Arc<Redactor> {
        Self::redactor(self)
    }

    fn reads_keys(&self) -> bool {
        Self::reads_keys(self)
    }

    fn modes(&self) -> Option<Modes> {
        Some(Self::modes(self))
    }

    fn screen(&self) -> Option<Screen> {
        Some(Self::screen(self))
    }

    fn exit(&self) -> Option<ExitInfo> {
        Self::exit(self)
    }

    fn resize(&self, size: Size) -> Result<()> {
        Self::resize(self, size)
    }
}
