//! What this server is asked as if it were the bridge of a desktop app, beyond the actions: raw typing, and the text of
//! a terminal by rows from the cursor up.
//!
//! Only sessions of this server are given: those of other desktops have a bridge of their own, and two servers that know
//! each other's sessions must not ask in circles. Guard, masks and the lock on screens are the same as for the actions.

use std::time::Instant;

use kpty_emulator::{Answer, Buffer, Mode, Request as ScreenRead, Size};

use serde_json::{Map, json};

use super::envelope::{self, Reply};
use super::term_read::buffer_name;
use super::typing::guard_forms;
use super::{Caller, Tools};
use crate::error::Result;
use crate::ids::SessionId;
use crate::session::Session;

/// Lines of an answer at most: all that a session keeps unless it was told to keep more.
pub const MAX_BUFFER_LINES: usize = 10_000;
/// Characters of an answer at most; the newest are kept. Clients take 8 MiB.
const MAX_BUFFER_CHARS: usize = 1 << 20;

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

/// The text of a terminal. Lines are counted from the session's first, and so is everything that is a line here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferAnswer {
    /// The lines.
    pub lines: Vec<String>,
    /// The number of each.
    pub line_numbers: Vec<u64>,
    /// Of a tail: the line of the cursor.
    pub cursor_line: Option<u64>,
    /// Of a viewport: the line of its first row.
    pub viewport_y: Option<u64>,
    /// Of a delta: its marker and the line of that. A marker stays where it is.
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
}

impl Tools {
    /// A session of this server, also a dead one.
    pub fn own_session(&self, id: &str) -> Result<Session> {
        self.registry.get(&SessionId::named(id))
    }

    /// Types text as it is; no Enter is added.
    pub async fn bridge_write(&self, session: &Session, data: &str, caller: &Caller) -> Reply {
        let began = Instant::now();
        let written = match guard_forms(&[data]) {
            Ok(()) => session.write(data.as_bytes()).await,
            Err(blocked) => Err(blocked),
        };
        let fields = written.map(|count| Map::from_iter([("bytes_written".to_owned(), json!(count))]));
        let reply = envelope::reply(fields.map_err(Into::into));
        let call = [("action", "write"), ("session_id", session.id().as_str()), ("data", data)];
        let call = call.map(|(name, value)| (name.to_owned(), json!(value)));
        self.record(&Map::from_iter(call), caller, began, &reply);
        reply
    }

    /// Reads the text of a terminal. Clients of a bridge have to look again and again, so looks are not recorded.
    pub fn bridge_buffer(&self, session: &Session, request: &BufferRequest) -> Result<BufferAnswer> {
        self.may_read_screens()?;
        let mut answer = session.reading(|read| buffer(read, request));
        answer.is_alive = session.exit().is_none();
        Ok(answer)
    }
}

/// Reads at one moment.
type Read<'a> = dyn FnMut(&ScreenRead) -> Answer + 'a;

fn buffer(read: &mut Read<'_>, request: &BufferRequest) -> BufferAnswer {
    let now = read(&ScreenRead { max_lines: Some(0), ..ScreenRead::new(Mode::Tail) });
    let up_to_cursor = |read: &mut Read<'_>, from: u64| lines(read, from, now.cursor_line, request.merge_wrapped);
    let from = now.cursor_line.saturating_sub(request.max_lines.min(MAX_BUFFER_LINES) as u64);
    match request.mode {
        BufferMode::Viewport => viewport(read, request),
        BufferMode::Delta { since: None } if now.buffer == Buffer::Main => {
            // The number of a marker is that of its line, so that there is nothing to be kept and to be lost. It is
            // counted from 1, since some callers take 0 for none.
            BufferAnswer { marker: Some((now.cursor_line + 1, now.cursor_line)), ..empty(&now) }
        }
        BufferMode::Delta { since: Some(marker) } if now.buffer == Buffer::Main => match marker_line(&now, marker) {
            Some(line) => BufferAnswer { marker: Some((marker, line)), ..up_to_cursor(read, line + 1) },
            None => {
                BufferAnswer { cursor_line: Some(now.cursor_line), marker_disposed: true, ..up_to_cursor(read, from) }
            }
        },
        // The other screen has no markers.
        BufferMode::Tail | BufferMode::Delta { .. } => {
            BufferAnswer { cursor_line: Some(now.cursor_line), ..up_to_cursor(read, from) }
        }
    }
}

/// The line of a marker, while it is kept. The cursor may have gone up since, but not by more than a screen.
fn marker_line(now: &Answer, marker: u64) -> Option<u64> {
    let line = marker.checked_sub(1)?;
    let end = now.next_line.max(now.cursor_line) + u64::from(now.size.rows());
    (now.oldest_line..end).contains(&line).then_some(line)
}

fn empty(now: &Answer) -> BufferAnswer {
    BufferAnswer {
        lines: Vec::new(),
        line_numbers: Vec::new(),
        cursor_line: None,
        viewport_y: None,
        marker: None,
        marker_disposed: false,
        truncated: false,
        size: now.size,
        buffer: buffer_name(now.buffer),
        is_alive: true,
    }
}

fn shown(answer: &Answer) -> BufferAnswer {
    BufferAnswer {
        lines: answer.lines().map(str::to_owned).collect(),
        line_numbers: answer.line_numbers.clone(),
        truncated: answer.truncated,
        ..empty(answer)
    }
}

/// Lines down to the cursor's, which is there also when nothing stands on it.
fn lines(read: &mut Read<'_>, from: u64, cursor: u64, merge_wrapped: bool) -> BufferAnswer {
    let mode = Mode::Range { from, until: Some(cursor + 1) };
    let answer = read(&ScreenRead { merge_wrapped, max_chars: Some(MAX_BUFFER_CHARS), ..ScreenRead::new(mode) });
    let mut shown = shown(&answer);
    let next = shown.line_numbers.last().map_or(from.max(answer.oldest_line), |last| last + 1);
    for number in next..=cursor {
        shown.lines.push(String::new());
        shown.line_numbers.push(number);
    }
    shown
}

/// The visible rows. What continues a row above them says so, where rows are joined.
fn viewport(read: &mut Read<'_>, request: &BufferRequest) -> BufferAnswer {
    let merge_wrapped = request.merge_wrapped;
    let answer = read(&ScreenRead { merge_wrapped, ..ScreenRead::new(Mode::Viewport) });
    let top = answer.first_line;
    let mut shown = BufferAnswer { viewport_y: Some(top), ..shown(&answer) };
    if merge_wrapped && let Some(first) = shown.lines.first_mut() {
        let whole = read(&ScreenRead::new(Mode::Range { from: top, until: Some(top + 1) }));
        if whole.text.len() > first.len() && whole.text.ends_with(first.as_str()) {
            first.insert_str(0, "...");
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kpty_emulator::{Emulator, Settings};

    use super::*;

    fn terminal(rows: u16, bytes: &str) -> Emulator {
        let size = Size::new(20, rows).expect("a size");
        let mut emulator = Emulator::new(Settings { size, ..Settings::default() });
        let _ = emulator.feed(Duration::ZERO, bytes.as_bytes());
        emulator
    }

    fn asked(emulator: &mut Emulator, mode: BufferMode, max_lines: usize, merge_wrapped: bool) -> BufferAnswer {
        let request = BufferRequest { mode, max_lines, merge_wrapped };
        buffer(&mut |read| emulator.read(read, None), &request)
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
            assert_eq!((answer.cursor_line.is_some(), answer.viewport_y.is_some()), (mode == tail, mode == view));
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
        assert_eq!((again.lines, again.marker), (["hi", "$ more", "m", "$"].map(str::to_owned).into(), first.marker));
        feed(&mut emulator, "\x1b[?1049h\x1b[Hother");
        let other = asked(&mut emulator, since, 40, true);
        assert_eq!((other.lines, other.marker, other.buffer), (vec!["other".to_owned()], None, "alternate"));
        feed(&mut emulator, "\x1b[?1049l\x1b[2J\x1b[3J\x1b[H");
        let gone = asked(&mut emulator, since, 40, true);
        assert!(gone.marker.is_none() && gone.marker_disposed && gone.cursor_line.is_some(), "{gone:?}");
        for nonsense in [0, 1_000_000, u64::MAX] {
            let answer = asked(&mut emulator, BufferMode::Delta { since: Some(nonsense) }, 40, true);
            assert!(answer.marker_disposed, "{nonsense}");
        }
    }
}
