//! Looking at a terminal through its bridge: how much to ask for, and again until what is known is reached.

use std::time::{Duration, Instant};

use kpty_emulator::{Buffer, MAX_ROWS, Mode, Request, Which};

use super::text::KEY_LINES;
use super::transcript::{MAX_LINES, Place, Tail};
use super::wire::{Look, Question};
use super::{Desktop, Shared, State};
use crate::error::{DesktopTrouble, Error, Result};
use crate::model::ExitInfo;
use crate::terminal::deadline;

/// Rows that are asked for besides the screen's.
const MORE_ROWS: usize = 20;
/// The window until it was seen.
const USUAL_ROWS: usize = 30;
/// Rows that are asked for at most.
const MOST_ROWS: usize = 2 * MAX_LINES;
/// How long another look at the same terminal is waited for. One that hangs must not take others along.
const TURN_TIMEOUT: Duration = Duration::from_secs(2);
/// How often a question is asked again when the bridge answered another one, and after which time.
const MIXED_UP: u32 = 3;
const MIXED_UP_PAUSE: Duration = Duration::from_millis(15);

impl Desktop {
    /// Asks the bridge what the terminal shows.
    async fn ask(&self, question: Question) -> Result<Look> {
        let Shared { client, url, id, .. } = &*self.shared;
        for _ in 1..MIXED_UP {
            let timeout = deadline::limit(TURN_TIMEOUT, Duration::ZERO);
            let _turn = tokio::time::timeout(timeout, self.shared.looks.lock()).await;
            match client.buffer(url, id, question).await {
                Err(Error::Desktop(fault)) if is_mixed_up(&fault.problem, fault.trouble) => {}
                other => return other,
            }
            tokio::time::sleep(MIXED_UP_PAUSE).await;
        }
        client.buffer(url, id, question).await
    }

    /// Brings what is known up to what a read needs, and what its masks need.
    pub(super) async fn look_for(&self, request: &Request) -> Result<()> {
        self.look_for_lines(request).await?;
        if !self.lock().text.may_begin_in_key() {
            return Ok(());
        }
        self.look_at_end(KEY_LINES as usize + usize::from(MAX_ROWS), None).await?;
        match (request.mode, request.which) {
            (Mode::Viewport, Which::Active) => self.look_at_window().await,
            _ => Ok(()),
        }
    }

    async fn look_for_lines(&self, request: &Request) -> Result<()> {
        let is_alternate = self.lock().text.buffer() == Buffer::Alternate;
        match request.mode {
            Mode::Viewport if request.which == Which::Active => self.look_at_window().await,
            Mode::Full => self.look_at_end(MAX_LINES, None).await,
            // A full-screen program is looked at as a whole; the same reply says whether it still runs.
            _ if is_alternate && request.which == Which::Active => {
                self.look_at_window().await?;
                match self.lock().text.buffer() {
                    Buffer::Alternate => return Ok(()),
                    Buffer::Main => {}
                }
                self.look_at_end(request.max_lines.unwrap_or(0), None).await
            }
            Mode::Delta { since } => {
                let from = self.lock().text.unseen_from(since);
                self.look_at_end(request.max_lines.filter(|_| from.is_none()).unwrap_or(0), from).await
            }
            Mode::Range { from, .. } => self.look_at_end(0, Some(from)).await,
            Mode::Tail | Mode::Viewport => self.look_at_end(request.max_lines.unwrap_or(MAX_LINES), None).await,
        }
    }

    /// Looks at the window.
    pub(super) async fn look_at_window(&self) -> Result<()> {
        let look = self.ask(Question::Viewport).await?;
        let mut state = self.lock();
        state.at_prompt = look.at_prompt;
        let changed = state.text.absorb_window(look);
        state.note(changed);
        Ok(())
    }

    /// Looks at the end of the text: so many lines, down to this one, and down to what is known, as far as the bridge
    /// shows it.
    pub(super) async fn look_at_end(&self, lines: usize, down_to: Option<u64>) -> Result<()> {
        let rows = self.lock().text.main.size().map_or(USUAL_ROWS, |(rows, _)| usize::from(rows));
        let mut asked = (lines + 1).max(rows + MORE_ROWS).min(MOST_ROWS);
        let least = asked.min(rows + MORE_ROWS);
        let (mut got, mut most) = (0, MOST_ROWS);
        loop {
            let look = match self.ask(Question::Tail(asked)).await {
                // Long lines: fewer of them fit.
                Err(Error::Desktop(fault)) if fault.trouble == DesktopTrouble::TooLong && asked > least => {
                    asked = (asked / 4).max(least);
                    most = asked;
                    continue;
                }
                other => other?,
            };
            if look.buffer == Buffer::Alternate {
                return self.look_at_window().await;
            }
            // By its size: a line that fills the window many times over is one line, and longer each time.
            let size: usize = look.lines.iter().map(|line| line.len() + 1).sum();
            let is_more = size > got;
            got = size;
            let grown = {
                let mut state = self.lock();
                state.at_prompt = look.at_prompt;
                let main = &state.text.main;
                let tail = Tail::new(&look);
                let place = main.place(&tail);
                let settled = if main.size().is_some() { main.settled() } else { u64::MAX };
                let wanted = down_to.map_or(settled, |line| line.min(settled));
                let reaches = matches!(place, Place::At(at) if at <= wanted) && (tail.len() >= lines);
                let last_row = look.row.zip(main.cursor_row()).map_or(0, |(now, then)| now.saturating_sub(then));
                if reaches || tail.is_whole || !is_more || asked >= most {
                    let changed = state.text.absorb_tail(&tail, place);
                    state.note(changed);
                    if !state.text.main.has_text_below() {
                        return Ok(());
                    }
                    None
                } else {
                    Some(last_row as usize + rows + MORE_ROWS)
                }
            };
            match grown {
                Some(needed) => asked = needed.max(4 * asked).min(most),
                // The cursor went up: only the window tells what is below it.
                None => return self.look_at_window().await,
            }
        }
    }

    /// Asks the bridge whether the terminal is still there.
    pub(super) async fn look_whether_alive(&self) -> Result<Option<ExitInfo>> {
        let Shared { client, url, id, .. } = &*self.shared;
        let terminals = client.list(url).await?;
        let is_alive = terminals.iter().any(|terminal| terminal.is_named(id.as_str()) && terminal.is_alive);
        let mut state = self.lock();
        // A reported exit status is final.
        state.exit = (!is_alive).then_some(state.exit.unwrap_or(ExitInfo::Unknown));
        Ok(state.exit)
    }
}

impl State {
    /// Notes what came of a look.
    fn note(&mut self, changed: bool) {
        if changed {
            self.last_change = Instant::now();
        }
        self.commands.settle(&self.text, self.last_change);
    }
}

fn is_mixed_up(problem: &str, trouble: DesktopTrouble) -> bool {
    trouble == DesktopTrouble::NotJson && problem == super::wire::ANOTHER_QUESTION
}
