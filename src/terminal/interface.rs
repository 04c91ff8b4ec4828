//! The interface of a terminal: what actions ask of a session of this server and of a desktop app's alike.
//!
//! [`Readable`] is what is known of a terminal without asking anybody; waiting and searching are written against it,
//! once. [`Terminal`] is all that actions need, and may do I/O.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use kpty_emulator::{Cursor, Modes, Request, Screen, Size};

use super::attention::Attention;
use super::commands::Command;
use super::output::Output;
use super::prompt_line::Rendered;
use super::search::{SearchRequest, SearchResult};
use super::talk::{TalkRequest, TalkResult};
use super::wait::{WaitOutcome, WaitRequest};
use crate::error::Result;
use crate::ids::{CommandId, SessionId};
use crate::masked::Page;
use crate::model::ExitInfo;
use kpty_guard::pending::PendingLine;
use kpty_guard::{Masked, Redactor};

/// The right to type into a session, and what stands in its line editor as far as keys tell.
pub type InputTurn = tokio::sync::Mutex<PendingLine>;

/// A read, and where the visible screen began at that moment.
#[derive(Clone, Debug)]
pub struct View {
    /// What was read.
    pub answer: Page,
    /// Number of the line that the first visible row belongs to, where that is known.
    pub top_line: Option<u64>,
    /// Number of the line that the cursor is on, where that is known.
    pub cursor_line: Option<u64>,
    /// The cursor, where it is known.
    pub cursor: Option<Cursor>,
}

/// The text of a terminal at one moment, and what goes on there.
pub trait Readable {
    /// Reads rendered text, secrets masked before anything is cut.
    fn read(&self, request: &Request) -> Page;
    /// How its program ended, if it has.
    fn exit(&self) -> Option<ExitInfo>;
    /// This command has ended.
    fn has_ended(&self, id: CommandId) -> bool;
    /// A shell reads.
    fn is_at_prompt(&self) -> bool;
    /// When something was printed last.
    fn last_output(&self) -> Instant;
    /// What its program does, and whether it goes on without input.
    fn attention(&self) -> Attention;
}

/// A terminal that actions work on.
#[async_trait]
pub trait Terminal: Send + Sync {
    /// Its name.
    fn id(&self) -> &SessionId;

    /// Reads rendered text, and says where the window stands.
    async fn view(&self, request: &Request) -> Result<View>;

    /// The same for a caller that waits this long at most.
    async fn view_within(&self, request: &Request, _timeout: Duration) -> Result<View> {
        self.view(request).await
    }

    /// The newest raw output, secrets masked; waits while there is none.
    async fn read_raw(&self, max_bytes: usize, timeout: Duration) -> Result<Masked>;

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
    async fn talk(&self, request: TalkRequest) -> Result<TalkResult>;

    /// Waits for the first of several things.
    async fn wait(&self, request: &WaitRequest) -> Result<WaitOutcome>;

    /// Looks through history and screen.
    async fn search(&self, request: SearchRequest) -> Result<SearchResult>;

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

    /// Masks what callers gave: names, and what a reply repeats. What the terminal shows comes masked.
    fn redactor(&self) -> Arc<Redactor>;

    /// A program reads key by key, and takes what comes in a burst for a paste.
    fn reads_keys(&self) -> bool;

    /// What the program asked of keyboard, mouse and paste, where that is known.
    fn modes(&self) -> Option<Modes>;

    /// The visible cells, where they are known. Nothing is masked: for finding places, not for showing.
    fn screen(&self) -> Option<Screen>;

    /// What its program does, and whether it goes on without input, as far as that is known without asking anybody else.
    /// On Linux the process table is read.
    fn attention(&self) -> Attention;

    /// How its program ended, if it is known to have.
    fn exit(&self) -> Option<ExitInfo>;

    /// Changes the window.
    fn resize(&self, size: Size) -> Result<()>;
}
