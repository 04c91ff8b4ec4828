//! `term_read`: the terminal as rendered text, by lines that have numbers.
//!
//! `cursor_line`, `viewport_y` and `marker_line` are numbers of lines, in every mode; `cursor` is the cell.

use kpty_emulator::{Buffer, Loss, MarkerId, Mode, Request as ScreenRead, Which};

use super::screen::Screen;
use crate::error::{Error, Result};
use crate::terminal::View;
use crate::tools::params::Params;
use crate::tools::{Target, Tools};

pub(in crate::tools) const PARAMS: &[&str] =
    &["session_id", "mode", "max_lines", "max_chars", "merge_wrapped", "marker_id", "from_line", "until_line", "which"];

pub(in crate::tools) const MAX_LINES: usize = 40;
pub(in crate::tools) const MAX_LINES_CAP: usize = 200;
pub(in crate::tools) const MAX_CHARS: usize = 12_000;
pub(in crate::tools) const MAX_CHARS_CAP: usize = 50_000;

const WHICH: [(&str, Which); 2] = [("active", Which::Active), ("main", Which::Main)];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Tail,
    Viewport,
    Delta,
    Range,
    Full,
}

const WORDS: [(&str, Word); 5] = [
    ("tail", Word::Tail),
    ("viewport", Word::Viewport),
    ("delta", Word::Delta),
    ("range", Word::Range),
    ("full", Word::Full),
];

pub(in crate::tools) struct Request {
    session: Target,
    read: ScreenRead,
}

impl Request {
    pub(in crate::tools) fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        tools.may_read_screens()?;
        let session = tools.target(params)?;
        let marker = params.number("marker_id")?;
        let (from, until) = (params.number("from_line")?, params.number("until_line")?);
        let default = if from.is_some() { Word::Range } else { Word::Tail };
        let mode = match params.choice("mode", &WORDS)?.unwrap_or(default) {
            Word::Tail => Mode::Tail,
            Word::Viewport => Mode::Viewport,
            Word::Delta => Mode::Delta { since: marker.map(known_marker).transpose()? },
            Word::Range => Mode::Range { from: from.ok_or(Error::MissingParam("from_line"))?, until },
            Word::Full => Mode::Full,
        };
        let max_lines = params.count("max_lines", MAX_LINES, MAX_LINES_CAP)?;
        // Without lines there is only a marker to be had.
        let mode = match mode {
            Mode::Tail | Mode::Viewport | Mode::Full if max_lines == 0 => Mode::Delta { since: None },
            mode => mode,
        };
        let max_chars = params.count("max_chars", MAX_CHARS, MAX_CHARS_CAP)?;
        let read = ScreenRead {
            max_lines: Some(max_lines),
            max_chars: Some(max_chars),
            merge_wrapped: params.flag("merge_wrapped", true)?,
            which: params.choice("which", &WHICH)?.unwrap_or_default(),
            ..ScreenRead::new(mode)
        };
        Ok(Self { session, read })
    }

    pub(in crate::tools) async fn run(self) -> Result<Screen> {
        match self.read.mode {
            Mode::Range { from, until } => self.range(from, until).await,
            _ => Ok(screen(self.session.view(&self.read).await?)),
        }
    }

    /// A range is read on from its beginning: whoever asks for lines from 100 on wants line 100. No more is looked at
    /// than fits the answer.
    async fn range(&self, from: u64, until: Option<u64>) -> Result<Screen> {
        let max_lines = self.read.max_lines.unwrap_or(MAX_LINES);
        let ends = ScreenRead { mode: Mode::Tail, max_lines: Some(0), ..self.read };
        let ends = self.session.view(&ends).await?.answer;
        let from = from.max(ends.oldest_line);
        let end = until.unwrap_or(u64::MAX).min(ends.next_line);
        let mode = Mode::Range { from, until: Some(end.min(from.saturating_add(max_lines as u64))) };
        let read = ScreenRead { mode, max_lines: None, max_chars: None, ..self.read };
        let mut screen = screen(self.session.view(&read).await?);
        screen.keep_head(max_lines, self.read.max_chars.unwrap_or(MAX_CHARS), from, end);
        Ok(screen)
    }
}

/// Markers are counted from 1.
pub(in crate::tools) fn known_marker(id: u64) -> Result<MarkerId> {
    MarkerId::new(id).ok_or_else(|| Error::invalid("marker_id", "must be one of an earlier answer"))
}

fn screen(view: View) -> Screen {
    let View { answer: read, top_line, cursor_line, cursor } = view;
    Screen {
        truncated: read.truncated,
        dropped_chars: read.dropped_chars,
        dropped_lines: read.dropped_lines,
        cursor_line,
        viewport_y: top_line,
        rows: read.size.rows(),
        cols: read.size.cols(),
        buffer_type: buffer_name(read.buffer),
        marker_id: read.delta.map(|delta| delta.marker.get()),
        marker_line: cursor_line.filter(|_| read.delta.is_some()),
        marker_disposed: read.delta.is_some_and(|delta| delta.marker_disposed),
        first_line: read.first_line,
        next_line: read.next_line,
        oldest_line: read.oldest_line,
        cursor,
        missed_lines: read.delta.map(|delta| delta.missed_lines),
        loss: read.delta.and_then(|delta| delta.loss).map(|loss| match loss {
            Loss::Limit => "limit",
            Loss::Cleared => "cleared",
        }),
        continue_from: None,
        line_numbers: read.line_numbers,
        text: read.text,
    }
}

/// The name of a screen on the wire.
pub(in crate::tools) fn buffer_name(buffer: Buffer) -> &'static str {
    match buffer {
        Buffer::Main => "normal",
        Buffer::Alternate => "alternate",
    }
}
