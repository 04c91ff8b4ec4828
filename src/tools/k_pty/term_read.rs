//! `term_read`: the terminal as rendered text, by lines that have numbers.
//!
//! `cursor_line`, `viewport_y` and `marker_line` are numbers of lines, in every mode; `cursor` is the cell.

use kpty_emulator::{Buffer, Loss, MarkerId, Mode, Request as ScreenRead, Which};

use super::screen::Screen;
use super::{SESSION_ID, Target};
use crate::error::{Error, Result};
use crate::terminal::View;
use crate::tools::Tools;
use crate::tools::handler::{Content, Handler, Outcome, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Choice, Effect, Param};

pub(in crate::tools) static ACTION: Action = Action {
    name: "term_read",
    aliases: &[],
    summary: "The screen as text",
    notes: "delta: what changed since marker_id. max_lines:0 only sets a marker. which:main is behind a full-screen \
            program. Lines have numbers that stay.",
    example: r#"{"action":"term_read","session_id":"pty_0123abcd","mode":"viewport"}"#,
    params: &[
        SESSION_ID,
        MODE.param,
        MAX_LINES,
        MAX_CHARS,
        MERGE_WRAPPED,
        MARKER_ID,
        FROM_LINE,
        UNTIL_LINE,
        WHICH.param,
    ],
    effect: Effect::Read,
    on_page: true,
    forwarded: true,
    shows_screen: true,
    begin: begin::<TermRead>,
};

const WHICHES: [(&str, Which); 2] = [("active", Which::Active), ("main", Which::Main)];

/// Unless given, `range` with `from_line` and `tail` without.
pub(in crate::tools) const MODE: Choice<Word> = Param::text("mode", "").one_of(&WORDS);
const MAX_LINES: Param = Param::integer("max_lines", "lines; 0 only sets a marker").or(40).cap(200);
const MAX_CHARS: Param = Param::integer("max_chars", super::MAX_CHARS_DOC).or(12_000).cap(50_000);
const MERGE_WRAPPED: Param = Param::flag("merge_wrapped", true, "join wrapped rows to lines");
const MARKER_ID: Param = Param::integer("marker_id", super::MARKER_DOC);
const FROM_LINE: Param = Param::integer("from_line", super::FROM_LINE_DOC);
const UNTIL_LINE: Param = Param::integer("until_line", super::UNTIL_LINE_DOC);
pub(super) const WHICH: Choice<Which> =
    Param::text("which", "active, or main for the screen behind a full-screen program").one_of(&WHICHES).or("active");

#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) enum Word {
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

struct TermRead {
    session: Target,
    read: ScreenRead,
    max_lines: usize,
    max_chars: usize,
}

impl Handler for TermRead {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        tools.may_read_screens()?;
        let session = tools.target(params)?;
        let marker = params.number(&MARKER_ID)?;
        let (from, until) = (params.number(&FROM_LINE)?, params.number(&UNTIL_LINE)?);
        let unless_given = if from.is_some() { Word::Range } else { Word::Tail };
        let mode = match params.choice(&MODE)?.unwrap_or(unless_given) {
            Word::Tail => Mode::Tail,
            Word::Viewport => Mode::Viewport,
            Word::Delta => Mode::Delta { since: marker.map(known_marker).transpose()? },
            Word::Range => Mode::Range { from: from.ok_or(Error::MissingParam(FROM_LINE.name))?, until },
            Word::Full => Mode::Full,
        };
        let max_lines = params.count(&MAX_LINES)?;
        // Without lines there is only a marker to be had.
        let mode = match mode {
            Mode::Tail | Mode::Viewport | Mode::Full if max_lines == 0 => Mode::Delta { since: None },
            mode => mode,
        };
        let max_chars = params.count(&MAX_CHARS)?;
        let read = ScreenRead {
            max_lines: Some(max_lines),
            max_chars: Some(max_chars),
            merge_wrapped: params.flag(&MERGE_WRAPPED)?,
            which: params.chosen(&WHICH)?,
            ..ScreenRead::new(mode)
        };
        Ok(Self { session, read, max_lines, max_chars })
    }

    async fn run(self, _: &Tools) -> Outcome {
        let screen = match self.read.mode {
            Mode::Range { from, until } => self.range(from, until).await?,
            _ => screen(self.session.view(&self.read).await?),
        };
        Ok(Content::Screen(Box::new(screen)))
    }
}

impl TermRead {
    /// A range is cut at its end: a caller that asks for lines from 100 on wants line 100. No more is read than fits the
    /// reply.
    async fn range(&self, from: u64, until: Option<u64>) -> Result<Screen> {
        let until = until.unwrap_or(u64::MAX);
        let mut view = self.lines(from, until).await?;
        let oldest = view.answer.oldest_line;
        if from < oldest {
            // The first lines are gone, and the reply has room for others.
            view = self.lines(oldest, until).await?;
        }
        let (from, end) = (from.max(view.answer.oldest_line), until.min(view.answer.next_line));
        let mut screen = screen(view);
        screen.keep_head(self.max_lines, self.max_chars, from, end);
        Ok(screen)
    }

    /// Lines from a number on, as many as a reply may have.
    async fn lines(&self, from: u64, until: u64) -> Result<View> {
        let mode = Mode::Range { from, until: Some(until.min(from.saturating_add(self.max_lines as u64))) };
        self.session.view(&ScreenRead { mode, max_lines: None, max_chars: None, ..self.read }).await
    }
}

/// Markers are counted from 1.
pub(in crate::tools) fn known_marker(id: u64) -> Result<MarkerId> {
    MarkerId::new(id).ok_or_else(|| Error::invalid(MARKER_ID.name, "must be one of an earlier answer"))
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
