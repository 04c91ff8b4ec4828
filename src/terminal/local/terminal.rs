//! A session of this server as a [`Terminal`] that actions work on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use kpty_emulator::{Modes, Request, Screen, Size};

use super::Session;
use crate::error::{Error, Result};
use crate::ids::{CommandId, SessionId};
use crate::masked::Page;
use crate::model::ExitInfo;
use crate::terminal::search::{SearchRequest, SearchResult, search};
use crate::terminal::talk::{TalkRequest, TalkResult};
use crate::terminal::wait::{WaitOutcome, WaitRequest};
use crate::terminal::{Attention, Command, InputTurn, Output, Readable, Rendered, Terminal, View};
use kpty_guard::{Masked, Redactor};

impl Session {
    /// Looks through history and screen, secrets masked before.
    pub fn search(&self, request: &SearchRequest) -> SearchResult {
        search(self, request)
    }
}

impl Readable for Session {
    fn read(&self, request: &Request) -> Page {
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

    fn attention(&self) -> Attention {
        Self::attention(self)
    }
}

#[async_trait]
impl Terminal for Session {
    fn id(&self) -> &SessionId {
        Self::id(self)
    }

    async fn view(&self, request: &Request) -> Result<View> {
        Ok(Self::view(self, request))
    }

    async fn read_raw(&self, max_bytes: usize, timeout: Duration) -> Result<Masked> {
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

    async fn talk(&self, request: TalkRequest) -> Result<TalkResult> {
        self.check_secret_prompt()?;
        Self::talk(self, request).await
    }

    async fn wait(&self, request: &WaitRequest) -> Result<WaitOutcome> {
        Self::wait(self, request).await
    }

    async fn search(&self, request: SearchRequest) -> Result<SearchResult> {
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

    fn attention(&self) -> Attention {
        Self::attention(self)
    }

    fn exit(&self) -> Option<ExitInfo> {
        Self::exit(self)
    }

    fn resize(&self, size: Size) -> Result<()> {
        Self::resize(self, size)
    }
}
