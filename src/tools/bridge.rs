//! What this server is asked as if it were the bridge of a desktop app, beyond the actions: raw typing, the text of a
//! terminal by rows from the cursor up, and what became of a command.
//!
//! Only sessions of this server are given: those of other desktops have a bridge of their own, and two servers that know
//! each other's sessions must not ask in circles. Guard, masks and the lock on screens are the same as for the actions.

use std::time::{Duration, Instant};

use kpty_emulator::{Buffer, Mode, Request as ScreenRead, Size, row_ends};
use kpty_guard::{Masked, MaskedStr};

use serde_json::{Map, json};

use super::audit::Typing;
use super::envelope::{self, Reply};
use super::k_pty::term_read::buffer_name;
use super::{Caller, Tools};
use crate::error::{Error, Result};
use crate::ids::{CommandId, SessionId};
use crate::masked::{Page, lines_of};
use crate::model::ExitInfo;
use crate::registry::Located;
use crate::terminal::Readable;
use crate::terminal::local::{Moment, Session};
use crate::terminal::wait::WaitRequest;
use crate::terminal::{Command, Output};

/// Lines of an answer at most: the default history of a session.
pub const MAX_BUFFER_LINES: usize = 10_000;
/// Lines that are read while the session has to wait.
pub const PIECE_LINES: u64 = 500;
/// Characters of an answer at most; the newest are kept. Clients take 8 MiB.
pub const MAX_BUFFER_CHARS: usize = 1 << 20;

/// What is asked about the text of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferMode {
    /// The last lines down to the cursor's.
    Tail,
    /// The visible rows.
    Viewport,
    /// The lines after a marker; without one, only a marker.
    Delta {
        /// The marker of an earlier answer.
        since: Option<u64>,
    },
}

/// A read of a terminal's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferRequest {
    /// What is wanted.
    pub mode: BufferMode,
    /// Lines above the cursor's that a tail has.
    pub max_lines: usize,
    /// Soft-wrapped rows are joined.
    pub merge_wrapped: bool,
}

/// The text of a terminal. Places in it are rows, counted from the oldest that is kept, as desktops count them; the
/// numbers of lines are ours, and stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferAnswer {
    /// The lines.
    pub lines: Vec<Masked>,
    /// The number of each.
    pub line_numbers: Vec<u64>,
    /// Of a tail: the row of the cursor.
    pub cursor_row: Option<u64>,
    /// Of a viewport: its first row.
    pub top_row: Option<u64>,
    /// Of a delta: its marker and the row of that. A marker stays where it is.
    pub marker: Option<(u64, u64)>,
    /// The marker that was asked for is not known any more.
    pub marker_disposed: bool,
    /// Older lines were left out because of a cap.
    pub truncated: bool,
    /// The window.
    pub size: Size,
    /// `normal` or `alternate`.
    pub buffer: &'static str,
    /// The program runs.
    pub is_alive: bool,
    /// A shell reads.
    pub is_at_prompt: bool,
}

/// Which command is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhichCommand {
    /// The one with this number.
    Numbered(CommandId),
    /// The newest that was talked with this sentinel.
    Named(String),
}

/// A question what became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRequest {
    /// Of which.
    pub which: WhichCommand,
    /// How long its end is waited for.
    pub timeout: Duration,
    /// Characters of its output.
    pub max_chars: usize,
}

/// What became of a command.
#[derive(Clone, Debug)]
pub struct CommandAnswer {
    /// The command.
    pub command: Command,
    /// What it printed, so far or in all.
    pub output: Output,
    /// How the session's program ended, if it has.
    pub exit: Option<ExitInfo>,
}

impl Tools {
    /// A session of this server, also a dead one.
    pub fn own_session(&self, id: &str) -> Result<Session> {
        self.registry.get(&SessionId::named(id))
    }

    /// Types text as it is; no Enter is added.
    pub async fn bridge_write(&self, session: &Session, data: &str, caller: &Caller) -> Reply {
        let began = Instant::now();
        let call = [("action", "write"), ("session_id", session.id().as_str()), ("data", data)];
        let call = Map::from_iter(call.map(|(name, value)| (name.to_owned(), json!(value))));
        let mut turn = self.typist.turn(session).await;
        let typing = Typing { action: "write", arguments: &call, text: Some(data.into()) };
        let started = self.note_start(typing, caller, Some(&Located::Local(session.clone())));
        let written = match turn.check_bytes(data.as_bytes()) {
            Ok(()) => turn.type_bytes(data.as_bytes()).await,
            Err(blocked) => Err(blocked),
        };
        drop(turn);
        let fields = written.map(|count| Map::from_iter([("bytes_written".to_owned(), json!(count))]));
        let reply = envelope::reply(fields.map_err(Into::into), || session.redactor());
        self.record_started(&call, caller, began, &reply, started);
        reply
    }

    /// Reads the text of a terminal. Clients of a bridge have to look again and again, so looks are not recorded.
    /// A long text is read piece by piece, so that the session can go on between two of them.
    pub fn bridge_buffer(&self, session: &Session, request: &BufferRequest) -> Result<BufferAnswer> {
        self.may_read_screens()?;
        let (mut answer, older) = buffer(&mut session.moment(), request);
        let mut chars: usize = answer.lines.iter().map(|line| line.chars().count()).sum();
        while let Some((from, until)) = older.map(|from| (from, answer.line_numbers.first().copied().unwrap_or(from))) {
            if from >= until {
                break;
            }
            let piece = Mode::Range { from: from.max(until.saturating_sub(PIECE_LINES)), until: Some(until) };
            let merge_wrapped = request.merge_wrapped;
            let piece = session.moment().read(&ScreenRead { merge_wrapped, ..ScreenRead::new(piece) });
            chars += piece.text.chars().count();
            if piece.line_numbers.is_empty() || chars > MAX_BUFFER_CHARS {
                answer.truncated = true;
                break;
            }
            answer.lines.splice(..0, lines_of(&piece).map(MaskedStr::to_masked));
            answer.line_numbers.splice(..0, piece.line_numbers);
        }
        answer.is_alive = session.exit().is_none();
        answer.is_at_prompt = answer.is_alive && Readable::is_at_prompt(session);
        Ok(answer)
    }

    /// What became of a command; `None` where the session knows none such. Questions are not recorded.
    pub async fn bridge_command(&self, session: &Session, request: &CommandRequest) -> Result<Option<CommandAnswer>> {
        let id = match &request.which {
            WhichCommand::Numbered(id) => Some(*id),
            WhichCommand::Named(token) => {
                let is_named = |command: &Command| command.named.as_ref() == Some(token);
                session.commands().into_iter().rev().find(is_named).map(|command| command.id)
            }
        };
        let Some(id) = id.filter(|id| session.command(*id).is_some()) else { return Ok(None) };
        session.wait(&WaitRequest { command: Some(id), timeout: request.timeout, ..WaitRequest::default() }).await?;
        let (session, max_chars) = (session.clone(), request.max_chars);
        // A long output takes a while, so not on a thread that others wait for.
        let look = move || {
            let output = session.output_of(id, max_chars).unwrap_or_default();
            session.command(id).map(|command| CommandAnswer { command, output, exit: session.exit() })
        };
        tokio::task::spawn_blocking(look).await.map_err(|error| Error::NotAvailable(error.to_string()))
    }
}

/// A terminal at one moment.
trait Text {
    fn read(&mut self, request: &ScreenRead) -> Page;
    fn rows_before(&mut self, line: u64) -> u64;
    fn rows_before_screen(&mut self) -> u64;
}

impl Text for Moment<'_> {
    fn read(&mut self, request: &ScreenRead) -> Page {
        Moment::read(self, request)
    }

    fn rows_before(&mut self, line: u64) -> u64 {
        Moment::rows_before(self, line)
    }

    fn rows_before_screen(&mut self) -> u64 {
        Moment::rows_before_screen(self)
    }
}

/// Reads what fits into one piece; and where the lines begin that are still to be read before it.
fn buffer(text: &mut impl Text, request: &BufferRequest) -> (BufferAnswer, Option<u64>) {
    if request.mode == BufferMode::Viewport {
        return (viewport(text, request.merge_wrapped), None);
    }
    let now = text.read(&ScreenRead { max_lines: Some(0), ..ScreenRead::new(Mode::Tail) });
    let cursor = Place { line: now.cursor_line, row: text.rows_before_screen() + u64::from(now.cursor.row) };
    let tail_from = cursor.line.saturating_sub(request.max_lines.min(MAX_BUFFER_LINES) as u64);
    let is_main = now.buffer == Buffer::Main;
    let (from, marker, marker_disposed) = match request.mode {
        // The number of a marker is that of its line, so that there is nothing to be kept and to be lost. It is counted
        // from 1, since some callers take 0 for none.
        BufferMode::Delta { since: None } if is_main => {
            return (BufferAnswer { marker: Some((cursor.line + 1, cursor.row)), ..empty(&now) }, None);
        }
        BufferMode::Delta { since: Some(marker) } if is_main => match marker_line(&now, marker) {
            Some(line) => (line + 1, Some((marker, text.rows_before(line))), false),
            None => (tail_from, None, true),
        },
        // The other screen has no markers.
        _ => (tail_from, None, false),
    };
    let first = from.max((cursor.line + 1).saturating_sub(PIECE_LINES));
    let read = down_to_cursor(text, first, cursor, request.merge_wrapped);
    let cursor_row = Some(cursor.row).filter(|_| marker.is_none());
    let answer = BufferAnswer { cursor_row, marker, marker_disposed, ..read };
    (answer, Some(from.max(now.oldest_line)).filter(|from| *from < first))
}

/// Where the cursor is.
#[derive(Clone, Copy)]
struct Place {
    line: u64,
    row: u64,
}

/// The line of a marker, while it is kept. The cursor may have gone up since, but not by more than a screen.
fn marker_line(now: &Page, marker: u64) -> Option<u64> {
    let line = marker.checked_sub(1)?;
    let end = now.next_line.max(now.cursor_line) + u64::from(now.size.rows());
    (now.oldest_line..end).contains(&line).then_some(line)
}

fn empty(now: &Page) -> BufferAnswer {
    BufferAnswer {
        lines: Vec::new(),
        line_numbers: Vec::new(),
        cursor_row: None,
        top_row: None,
        marker: None,
        marker_disposed: false,
        truncated: false,
        size: now.size,
        buffer: buffer_name(now.buffer),
        is_alive: true,
        is_at_prompt: false,
    }
}

fn shown(answer: &Page) -> BufferAnswer {
    BufferAnswer {
        lines: lines_of(answer).map(MaskedStr::to_masked).collect(),
        line_numbers: answer.line_numbers.clone(),
        truncated: answer.truncated,
        ..empty(answer)
    }
}

/// Lines down to the row of the cursor, which is there also when nothing stands on it.
fn down_to_cursor(text: &mut impl Text, from: u64, cursor: Place, merge_wrapped: bool) -> BufferAnswer {
    let mode = Mode::Range { from, until: Some(cursor.line + 1) };
    let answer = text.read(&ScreenRead { merge_wrapped, max_chars: Some(MAX_BUFFER_CHARS), ..ScreenRead::new(mode) });
    let mut shown = shown(&answer);
    let next = shown.line_numbers.last().map_or(from.max(answer.oldest_line), |last| last + 1);
    for number in next..=cursor.line {
        shown.lines.push(Masked::default());
        shown.line_numbers.push(number);
    }
    // What the cursor's line has below the cursor is not asked for.
    let rows = 1 + cursor.row.saturating_sub(text.rows_before(cursor.line)) as usize;
    if merge_wrapped {
        if let (Some(line), Some(_)) =
            (shown.lines.last_mut(), shown.line_numbers.last().filter(|_| from <= cursor.line))
        {
            let end = row_ends(line, answer.size.cols()).get(rows - 1).copied();
            line.truncate(end.unwrap_or(line.len()));
        }
    } else {
        let above = shown.line_numbers.partition_point(|number| *number < cursor.line);
        shown.lines.truncate(above + rows);
        shown.line_numbers.truncate(above + rows);
    }
    shown
}

/// The visible rows. What continues a row above them says so, where rows are joined.
fn viewport(text: &mut impl Text, merge_wrapped: bool) -> BufferAnswer {
    let answer = text.read(&ScreenRead { merge_wrapped, ..ScreenRead::new(Mode::Viewport) });
    let top_row = text.rows_before_screen();
    let mut shown = BufferAnswer { top_row: Some(top_row), ..shown(&answer) };
    if merge_wrapped
        && let Some(first) = shown.lines.first_mut()
        && text.rows_before(answer.first_line) < top_row
    {
        first.prepend("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kpty_emulator::{Emulator, Settings};
    use kpty_guard::Redactor;

    use super::*;
    use crate::masked;

    impl Text for Emulator {
        fn read(&mut self, request: &ScreenRead) -> Page {
            masked::read(self, request, &Redactor::off())
        }

        fn rows_before(&mut self, line: u64) -> u64 {
            Emulator::rows_before(self, line)
        }

        fn rows_before_screen(&mut self) -> u64 {
            Emulator::rows_before_screen(self)
        }
    }

    fn terminal(rows: u16, bytes: &str) -> Emulator {
        let size = Size::new(20, rows).expect("a size");
        let mut emulator = Emulator::new(Settings { size, ..Settings::default() });
        let _ = emulator.feed(Duration::ZERO, bytes.as_bytes());
        emulator
    }

    fn asked(emulator: &mut Emulator, mode: BufferMode, max_lines: usize, merge_wrapped: bool) -> BufferAnswer {
        let request = BufferRequest { mode, max_lines, merge_wrapped };
        buffer(emulator, &request).0
    }

    #[test]
    fn text_is_read_as_desktops_read_it() {
        let twelve: String = (1..=12).map(|number| format!("line{number}\r\n")).collect();
        let prompt = format!("{twelve}$ ");
        let (tail, view) = (BufferMode::Tail, BufferMode::Viewport);
        let (a, b) = ("a".repeat(50), "b".repeat(70));
        for (rows, bytes, mode, max_lines, merge, expected) in [
            (5, prompt.as_str(), tail, 3, true, vec!["line10", "line11", "line12", "$"]),
            (5, &prompt, view, 2, true, vec!["line9", "line10", "line11", "line12", "$"]),
            (5, &a, tail, 40, true, vec![&a[..]]),
            (5, &a, tail, 40, false, vec![&a[..20], &a[..20], &a[..10]]),
            (3, &b, view, 40, true, vec![&*format!("...{}", "b".repeat(50)).leak()]),
            (5, "a\r\nb\r\nc\x1b[H", tail, 40, true, vec!["a"]),
            (5, "30%\r\n\x1b[31mred\x1b[0m\r\n", tail, 40, true, vec!["30%", "red", ""]),
            (3, "a", view, 40, true, vec!["a", "", ""]),
            (3, "", tail, 40, true, vec![""]),
        ] {
            let answer = asked(&mut terminal(rows, bytes), mode, max_lines, merge);
            assert_eq!(answer.lines, expected, "{bytes:?} {mode:?}");
            assert_eq!(answer.lines.len(), answer.line_numbers.len(), "{bytes:?}");
            assert_eq!((answer.cursor_row.is_some(), answer.top_row.is_some()), (mode == tail, mode == view));
        }
    }

    #[test]
    fn places_are_rows_from_the_oldest() {
        let b = "b".repeat(70);
        for (rows, bytes, cursor, top, last) in [
            (5, "", 0, 0, ""),
            (5, "a\r\nb", 1, 0, "b"),
            (3, b.as_str(), 3, 1, b.as_str()),
            (3, &format!("{b}\r\n{b}\r\nx"), 8, 6, "x"),
            // The cursor is on the second row of its line.
            (5, &format!("a\r\n{b}\x1b[3;4H"), 2, 0, &b[..40]),
        ] {
            let mut emulator = terminal(rows, bytes);
            let tail = asked(&mut emulator, BufferMode::Tail, 40, true);
            assert_eq!(
                (tail.cursor_row, tail.lines.last().map(|line| &**line)),
                (Some(cursor), Some(last)),
                "{bytes:?}"
            );
            let unmerged = asked(&mut emulator, BufferMode::Tail, 40, false);
            assert_eq!(unmerged.lines.len() as u64, cursor + 1, "{bytes:?}");
            assert_eq!(asked(&mut emulator, BufferMode::Viewport, 40, true).top_row, Some(top), "{bytes:?}");
        }
    }

    #[test]
    fn a_marker_stays_until_its_line_is_gone() {
        let mut emulator = terminal(5, "one\r\n$ ");
        let feed = |emulator: &mut Emulator, text: &str| drop(emulator.feed(Duration::ZERO, text.as_bytes()));
        let first = asked(&mut emulator, BufferMode::Delta { since: None }, 40, true);
        let (marker, line) = first.marker.expect("a marker");
        assert_eq!((first.lines.len(), line), (0, 1));
        let since = BufferMode::Delta { since: Some(marker) };
        assert!(asked(&mut emulator, since, 40, true).lines.is_empty());
        feed(&mut emulator, "echo hi\r\nhi\r\n$ more\r\nm\r\n$ ");
        let again = asked(&mut emulator, since, 1, true);
        assert_eq!((again.lines, again.marker), (["hi", "$ more", "m", "$"].map(Masked::literal).into(), first.marker));
        feed(&mut emulator, "\x1b[?1049h\x1b[Hother");
        let other = asked(&mut emulator, since, 40, true);
        assert_eq!((other.lines, other.marker, other.buffer), (vec![Masked::literal("other")], None, "alternate"));
        feed(&mut emulator, "\x1b[?1049l\x1b[2J\x1b[3J\x1b[H");
        let gone = asked(&mut emulator, since, 40, true);
        assert!(gone.marker.is_none() && gone.marker_disposed && gone.cursor_row.is_some(), "{gone:?}");
        for nonsense in [0, 1_000_000, u64::MAX] {
            let answer = asked(&mut emulator, BufferMode::Delta { since: Some(nonsense) }, 40, true);
            assert!(answer.marker_disposed, "{nonsense}");
        }
    }
}
