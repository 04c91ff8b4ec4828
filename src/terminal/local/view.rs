//! What tools ask of a session besides its text: where the window stands, the cells, the end.

use std::ops::Range;
use std::sync::MutexGuard;

use kpty_emulator::{Mode, Request, Screen, Which};
use tokio::sync::watch;

use super::Session;
use super::foreground::interactive_shell;
use super::state::TerminalState;
use crate::masked::{MaskedRows, MaskedScreen, Page};
use crate::model::ExitInfo;
use crate::terminal::View;

/// A session at one moment.
pub struct Moment<'a> {
    terminal: MutexGuard<'a, TerminalState>,
}

impl Moment<'_> {
    /// Reads rendered text, secrets masked.
    pub fn read(&mut self, request: &Request) -> Page {
        self.terminal.read_masked(request)
    }

    /// Rows of the kept text before a line.
    pub fn rows_before(&mut self, line: u64) -> u64 {
        self.terminal.emulator.rows_before(line)
    }

    /// Rows of the kept text before the first visible one.
    pub fn rows_before_screen(&mut self) -> u64 {
        self.terminal.emulator.rows_before_screen()
    }
}

impl Session {
    /// Reads rendered text, secrets masked, and says where the window stands; both at one moment.
    pub fn view(&self, request: &Request) -> View {
        let mut terminal = self.shared.lock();
        let answer = terminal.read_masked(request);
        let top_line = match request.mode {
            Mode::Viewport if !answer.truncated => answer.first_line,
            // Line numbers need no second read of the text, except of a screen behind another one.
            _ => match request.which {
                Which::Active => terminal.emulator.screen_lines().first().copied().unwrap_or(answer.next_line),
                Which::Main => {
                    let visible = Request { which: request.which, ..Request::new(Mode::Viewport) };
                    terminal.emulator.read(&visible, None).first_line
                }
            },
        };
        let (cursor_line, cursor) = (Some(answer.cursor_line), Some(answer.cursor));
        View { answer, top_line: Some(top_line), cursor_line, cursor }
    }

    /// The session as it is now, for several looks at the same thing. Nothing happens in it while this is held.
    pub fn moment(&self) -> Moment<'_> {
        Moment { terminal: self.shared.lock() }
    }

    /// The visible cells, secrets masked.
    pub fn masked_screen(&self) -> MaskedScreen {
        self.shared.lock().masked_screen()
    }

    /// The cells of whole lines, row by row, each row with the number of its line, secrets masked. Lines that left the
    /// screen long ago are laid out at the present width.
    pub fn masked_rows(&self, lines: Range<u64>, which: Which) -> MaskedRows {
        self.shared.lock().masked_rows(lines, which)
    }

    /// The visible cells. Nothing is masked: for finding places, not for showing.
    pub fn screen(&self) -> Screen {
        self.shared.lock().emulator.screen()
    }

    /// The shell was given start-up files, and marks what it does.
    pub fn is_integrated(&self) -> bool {
        self.shared.lock().shell.is_some()
    }

    /// A program other than a shell at its prompt has the terminal in raw mode, and reads key by key.
    pub fn reads_keys(&self) -> bool {
        self.foreground().is_some_and(|foreground| {
            let is_shell = foreground.program.as_ref().is_some_and(|program| interactive_shell(program).is_some());
            !foreground.canonical && !is_shell
        })
    }

    /// Moves with every piece of output, every new size, and the end.
    pub fn progress(&self) -> watch::Receiver<u64> {
        self.shared.progress.subscribe()
    }

    /// The child.
    pub fn pid(&self) -> u32 {
        self.shared.control.pid()
    }

    /// Waits for the end of the session's program.
    pub async fn ended(&self) -> ExitInfo {
        let mut news = self.shared.news.subscribe();
        loop {
            if let Some(exit) = self.exit() {
                return exit;
            }
            if news.changed().await.is_err() {
                return ExitInfo::Unknown;
            }
        }
    }
}
