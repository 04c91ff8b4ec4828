//! Terminals of desktop apps, reached through their HTTP bridge: [`Desktop`] is the handle that tools hold.
//!
//! A bridge pushes nothing, so here, and only here, is polled: while somebody waits, and slower the longer nothing
//! happens. What was seen is kept for each session, within bounds, so that lines have numbers and deltas are exact.
//! A bridge that is another kpty gets whole actions instead: `terminal/peer`.
//! The other direction is [`register`]: this server registers its own sessions with another kpty.

mod client;
mod commands;
mod leaders;
mod line;
mod look;
pub mod register;
mod talk;
mod text;
mod transcript;
mod verify;
mod wait;
mod wire;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use kpty_emulator::{Modes, Request, Screen, Size};

pub use leaders::LeaderQuestion;

use crate::error::{Error, Result};
use crate::ids::{CommandId, SessionId};
use crate::model::{ExitInfo, SessionRecord};
use crate::terminal::search::{SearchRequest, SearchResult, search};

use crate::terminal::deadline;
use crate::terminal::secret_question::is_secret_question;
use crate::terminal::talk::{TalkRequest, TalkResult};
use crate::terminal::wait::{WaitOutcome, WaitRequest};
use crate::terminal::{Attention, Command, InputTurn, Output, Rendered, Terminal, View, line_readings};
use client::Client;
use commands::Commands;
use kpty_guard::{Masked, Redactor};
use leaders::LeaderCache;
use text::Text;

/// Sessions of which something is remembered; who was not asked for the longest time is forgotten first.
const MAX_REMEMBERED: usize = 64;
/// How long a text may take to be typed, whatever its length.
const LONGEST_TYPING: Duration = Duration::from_secs(60);
/// How long a look may take, however many questions it needs.
const LONGEST_LOOK: Duration = Duration::from_secs(10);
/// Looks at a line that keys do not tell, and the pause before each: an app shows what was typed soon.
const MOST_LOOKS: usize = 8;
const LOOK_PAUSE: Duration = Duration::from_millis(60);
/// Bytes that are typed with one call.
const WRITE_PIECE: usize = 16 << 10;

/// All desktops that this server reaches; clones are the same.
#[derive(Clone, Default)]
pub struct Bridges {
    client: Arc<Client>,
    sessions: Arc<Mutex<HashMap<SessionId, Desktop>>>,
    leaders: Arc<LeaderCache>,
    redactor: Arc<Redactor>,
}

/// A terminal of a desktop app; clones are the same terminal.
#[derive(Clone)]
pub struct Desktop {
    shared: Arc<Shared>,
}

struct Shared {
    id: SessionId,
    url: String,
    /// Another terminal of the same name was registered at another time.
    created_at: String,
    cli_type: String,
    /// Process id of the child, where the desktop runs on this machine and reported it.
    pid: AtomicU32,
    client: Arc<Client>,
    redactor: Arc<Redactor>,
    /// Held by the `talk` that may type.
    turn: tokio::sync::Mutex<()>,
    /// Held by whoever types, from the question whether that is allowed to the last byte.
    input: Arc<InputTurn>,
    /// Held by who looks: a bridge may mix up the answers to two looks at the same terminal.
    looks: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

/// What is known of a terminal.
struct State {
    text: Text,
    commands: Commands,
    /// When something was last seen to be different.
    last_change: Instant,
    /// When somebody last asked.
    last_use: Instant,
    /// The desktop said that its program has ended.
    exit: Option<ExitInfo>,
    /// Somebody typed text without Enter.
    has_typed: bool,
    /// A shell reads, as the bridge said last, where it knows.
    at_prompt: Option<bool>,
}

impl Bridges {
    /// Desktops whose text is masked like this.
    pub fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor, ..Self::default() }
    }

    /// The terminal of a registered desktop session, with what was seen of it before.
    pub fn session(&self, record: &SessionRecord) -> Desktop {
        let id = SessionId::named(&record.session_id);
        let url = record.desktop_url.as_deref().unwrap_or_default();
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let known = sessions.get(&id);
        let is_same = |desktop: &&Desktop| desktop.shared.url == url && desktop.shared.created_at == record.created_at;
        if let Some(desktop) = known.filter(is_same) {
            desktop.lock().last_use = Instant::now();
            desktop.shared.pid.store(local_pid(record), Ordering::Relaxed);
            return desktop.clone();
        }
        if sessions.len() >= MAX_REMEMBERED {
            // Those that somebody works with right now come last.
            let idle_first = |desktop: &Desktop| (Arc::strong_count(&desktop.shared) > 1, desktop.lock().last_use);
            let oldest = sessions.iter().min_by_key(|(_, desktop)| idle_first(desktop)).map(|(id, _)| id.clone());
            oldest.map(|id| sessions.remove(&id));
        }
        let desktop = Desktop::new(id.clone(), url, record, self);
        sessions.insert(id, desktop.clone());
        desktop
    }
}

/// The child of a desktop on this machine; 0 where it is not known.
fn local_pid(record: &SessionRecord) -> u32 {
    let url = record.desktop_url.as_deref().unwrap_or_default();
    let is_here = ["http://127.", "http://localhost:", "http://[::1]:"].iter().any(|here| url.starts_with(here));
    if is_here { record.pid } else { 0 }
}

impl Desktop {
    fn new(id: SessionId, url: &str, record: &SessionRecord, bridges: &Bridges) -> Self {
        let now = Instant::now();
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let state = State {
            text: Text::new(since_epoch.as_millis() as u64),
            commands: Commands::default(),
            last_change: now,
            last_use: now,
            exit: None,
            has_typed: false,
            at_prompt: None,
        };
        Self {
            shared: Arc::new(Shared {
                id,
                url: url.to_owned(),
                created_at: record.created_at.clone(),
                cli_type: record.cli_type.clone(),
                pid: AtomicU32::new(local_pid(record)),
                client: Arc::clone(&bridges.client),
                redactor: Arc::clone(&bridges.redactor),
                turn: tokio::sync::Mutex::default(),
                input: Arc::default(),
                looks: tokio::sync::Mutex::default(),
                state: Mutex::new(state),
            }),
        }
    }

    /// The lock is short and never held across an await; what a panic left behind is still the newest there is.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was last seen asks for something secret. A bridge does not tell whether it echoes, and not always where the
    /// cursor is: then it is taken to be on the last line with text.
    pub fn asks_for_secret(&self) -> bool {
        let state = self.lock();
        // Prompts of shells end otherwise, whatever their folders are called.
        let is_question =
            |line: &str| line.trim_end().ends_with([':', '?', '*']) && state.commands.prompt() != Some(line);
        let lines = [state.text.cursor_text(), state.text.last_text()];
        state.at_prompt != Some(true) && lines.into_iter().any(|line| is_question(line) && is_secret_question(line))
    }

    /// The line that the cursor is in, once two looks have found the same. The bridge does not report whether a shell reads there, so a
    /// line that cannot be seen keeps nobody from typing.
    async fn line_there(&self) -> Rendered {
        let mut last = None;
        for _ in 0..MOST_LOOKS {
            tokio::time::sleep(LOOK_PAUSE).await;
            if self.look_at_end(0, None).await.is_err() || self.asks_for_secret() {
                return Rendered::NoShell;
            }
            let line = self.lock().text.cursor_text().to_owned();
            if last.as_ref() == Some(&line) {
                return Rendered::Lines(line_readings(&line));
            }
            last = Some(line);
        }
        Rendered::NoShell
    }

    /// Types text. A caller that goes away does not stop it in the middle.
    async fn type_text(&self, text: String) -> Result<()> {
        let desktop = self.clone();
        let typing = tokio::spawn(async move {
            let Shared { client, url, id, .. } = &*desktop.shared;
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(rest.floor_char_boundary(WRITE_PIECE.min(rest.len())));
                client.write(url, id, piece).await?;
                rest = after;
            }
            Ok(())
        });
        // As long as the pieces may take, unless the caller cannot wait that long; the typing goes on.
        let typed = tokio::time::timeout(deadline::limit(LONGEST_TYPING, deadline::GRACE), typing).await;
        match typed {
            Ok(typed) => typed.unwrap_or_else(|error| Err(Error::Server(error.to_string()))),
            Err(_) => Err(self.shared.client.late_write(&self.shared.url)),
        }
    }
}

#[async_trait]
impl Terminal for Desktop {
    fn id(&self) -> &SessionId {
        &self.shared.id
    }

    async fn view(&self, request: &Request) -> Result<View> {
        deadline::within(Instant::now() + LONGEST_LOOK, self.look_for(request)).await?;
        let mut state = self.lock();
        let answer = state.text.read(request, &self.shared.redactor);
        let cursor_line = state.text.main.cursor_line().filter(|_| answer.buffer == kpty_emulator::Buffer::Main);
        Ok(View { answer, top_line: state.text.top_line(), cursor_line, cursor: None })
    }

    async fn read_raw(&self, max_bytes: usize, timeout: Duration) -> Result<Masked> {
        let Shared { client, url, id, redactor, .. } = &*self.shared;
        let output = deadline::within(Instant::now() + timeout, client.read(url, id, timeout)).await?;
        let mut masked = redactor.mask(output);
        masked.keep_tail_bytes(max_bytes);
        Ok(masked)
    }

    async fn first_output(&self, _timeout: Duration) {}

    async fn view_within(&self, request: &Request, timeout: Duration) -> Result<View> {
        deadline::within(Instant::now() + timeout, self.view(request)).await
    }

    fn input(&self) -> &Arc<InputTurn> {
        &self.shared.input
    }

    /// It is asked to, by a key that some programs do not know.
    fn takes_line_back(&self) -> bool {
        false
    }

    /// A look asks the app, so it is worth it only where keys do not tell.
    fn may_show_line(&self, is_unknown: bool) -> bool {
        is_unknown && self.lock().at_prompt != Some(false)
    }

    async fn rendered_line(&self, _expected: Option<&str>) -> Rendered {
        self.line_there().await
    }

    async fn write(&self, bytes: &[u8]) -> Result<usize> {
        {
            let mut state = self.lock();
            if bytes.iter().any(|byte| matches!(byte, 0x03 | 0x1a | 0x1c)) {
                state.commands.interrupt();
            }
            // Enter, Ctrl-C, Ctrl-D, Ctrl-U and the like leave nothing on the line.
            let leaves = !matches!(bytes.last(), Some(b'\r' | b'\n' | 0x03 | 0x04 | 0x15 | 0x1a | 0x1c) | None);
            state.has_typed = leaves;
        }
        self.type_text(String::from_utf8_lossy(bytes).into_owned()).await?;
        Ok(bytes.len())
    }

    async fn talk(&self, request: TalkRequest) -> Result<TalkResult> {
        deadline::within(Instant::now() + request.timeout, self.run(request)).await
    }

    async fn wait(&self, request: &WaitRequest) -> Result<WaitOutcome> {
        deadline::within(Instant::now() + request.timeout, self.wait_for(request)).await
    }

    async fn search(&self, request: SearchRequest) -> Result<SearchResult> {
        self.look_for(&Request::new(kpty_emulator::Mode::Full)).await?;
        Ok(search(self, &request))
    }

    fn commands(&self) -> Vec<Command> {
        self.lock().commands.all()
    }

    fn command(&self, id: CommandId) -> Option<Command> {
        self.lock().commands.get(id)
    }

    fn output_of(&self, id: CommandId, max_chars: usize) -> Option<Output> {
        let state = self.lock();
        state.commands.output_of(id, &state.text, max_chars, &self.shared.redactor)
    }

    fn redactor(&self) -> Arc<Redactor> {
        Arc::clone(&self.shared.redactor)
    }

    /// Nobody tells who reads; a burst is taken for a paste by some of those who might.
    fn reads_keys(&self) -> bool {
        true
    }

    fn modes(&self) -> Option<Modes> {
        None
    }

    fn screen(&self) -> Option<Screen> {
        None
    }

    fn attention(&self) -> Attention {
        self.attention_from_text()
    }

    fn exit(&self) -> Option<ExitInfo> {
        self.lock().exit
    }

    fn resize(&self, _size: Size) -> Result<()> {
        Err(Error::DesktopResizeDisabled(self.shared.id.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Source, iso_time};

    fn record(id: usize, url: &str) -> SessionRecord {
        SessionRecord {
            session_id: format!("d{id}"),
            source: Source::Desktop,
            desktop_url: Some(url.to_owned()),
            cli_type: "shell".to_owned(),
            pid: 0,
            created_at: iso_time(UNIX_EPOCH),
            last_heartbeat: iso_time(UNIX_EPOCH),
            owner_agent_id: None,
            owner_session_id: None,
            owner_role: None,
            label: None,
            claude_code_session_id: None,
        }
    }

    #[test]
    fn only_so_many_terminals_are_remembered_and_those_in_use_longest() {
        let bridges = Bridges::default();
        let held = bridges.session(&record(0, "http://127.0.0.1:1"));
        (1..=2 * MAX_REMEMBERED).for_each(|id| drop(bridges.session(&record(id, "http://127.0.0.1:1"))));
        assert_eq!(bridges.sessions.lock().expect("a lock").len(), MAX_REMEMBERED);
        let again = bridges.session(&record(0, "http://127.0.0.1:1"));
        assert!(Arc::ptr_eq(&held.shared, &again.shared));
        let moved = bridges.session(&record(0, "http://127.0.0.1:2"));
        assert!(!Arc::ptr_eq(&held.shared, &moved.shared), "another desktop has another terminal");
    }
}
