//! `screenshot`: a picture of the screen, or of a range of lines.
//!
//! The picture is in the answer as `image`, with its data; a transport that has a better place for it puts it there.

use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kpty_emulator::{Mode, Request as ScreenRead, Which};
use serde::Serialize;

use super::term_read::WHICH;
use super::{SESSION_ID, Target};
use crate::error::{Error, Result};
use crate::masked::{MaskedRows, MaskedScreen, Page};
use crate::picture::{self, Look, MAX_SCALE, Subject, Theme};
use crate::terminal::local::Session;
use crate::tools::Tools;
use crate::tools::handler::{Content, Handler, Outcome, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Choice, Effect, Param};

pub(in crate::tools) static ACTION: Action = Action {
    name: "screenshot",
    aliases: &[],
    summary: "A picture of the screen",
    notes: "With from_line: of lines of the history.",
    example: r#"{"action":"screenshot","session_id":"pty_0123abcd","format":"png"}"#,
    params: &[SESSION_ID, FORMAT.param, THEME.param, SCALE, CURSOR, FROM_LINE, UNTIL_LINE, WHICH.param],
    effect: Effect::Read,
    on_page: false,
    forwarded: false,
    shows_screen: true,
    begin: begin::<Screenshot>,
};

const FORMATS: [(&str, Format); 2] = [("png", Format::Png), ("svg", Format::Svg)];
const THEMES: [(&str, Theme); 2] = [("dark", Theme::Dark), ("light", Theme::Light)];

const FORMAT: Choice<Format> = Param::text("format", "").one_of(&FORMATS).or("png");
const THEME: Choice<Theme> = Param::text("theme", "").one_of(&THEMES).or("dark");
const SCALE: Param = Param::integer("scale", "times the size").or(1).cap(MAX_SCALE);
const CURSOR: Param = Param::flag("cursor", true, "false draws no cursor");
const FROM_LINE: Param = Param::integer("from_line", super::FROM_LINE_DOC);
const UNTIL_LINE: Param = Param::integer("until_line", super::UNTIL_LINE_DOC);

/// Lines of history in a picture at most, and where no end is given.
const LINES: u64 = 200;
/// Bytes of a picture at most: clients refuse larger replies.
const MAX_BYTES: usize = 4 << 20;

/// The note with pictures of a desktop's session.
const ONLY_TEXT: &str = "a desktop app tells only text: no colours, no cursor";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Png,
    Svg,
}

/// Whose session it is.
enum Whose {
    Ours(Session),
    /// Of a desktop app, whose bridge returns only text.
    Desktop(Target),
}

struct Screenshot {
    session: Whose,
    format: Format,
    look: Look,
    cursor: bool,
    /// Lines of history instead of the screen.
    range: Option<(u64, u64, Which)>,
}

#[derive(Serialize)]
struct ScreenshotReply {
    format: &'static str,
    width: u32,
    height: u32,
    cols: usize,
    rows: usize,
    bytes: usize,
    /// Of a range: the first line, and the one after the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_line: Option<u64>,
    took_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    image: Image,
}

/// The picture itself.
#[derive(Serialize)]
struct Image {
    mime_type: &'static str,
    /// Base64 of a PNG.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    /// An SVG as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Handler for Screenshot {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        tools.may_read_screens()?;
        let session = match tools.session(params) {
            Ok(session) => Whose::Ours(session),
            Err(Error::DesktopOnly(_)) => Whose::Desktop(tools.target(params)?),
            Err(error) => return Err(error),
        };
        let scale = params.count(&SCALE)?.max(1) as u32;
        let look = Look { theme: params.chosen(&THEME)?, scale };
        let which = params.chosen(&WHICH)?;
        let until = params.number(&UNTIL_LINE)?;
        let range = params.number(&FROM_LINE)?.map(|from| {
            let most = from.saturating_add(LINES);
            (from, until.unwrap_or(most).min(most), which)
        });
        if range.is_none() && until.is_some() {
            return Err(Error::MissingParam(FROM_LINE.name));
        }
        Ok(Self { session, format: params.chosen(&FORMAT)?, look, cursor: params.flag(&CURSOR)?, range })
    }

    async fn run(self, _: &Tools) -> Outcome {
        let screen_text = match &self.session {
            Whose::Ours(_) => None,
            Whose::Desktop(target) => Some(self.plain_view(target).await?),
        };
        // Drawing takes some milliseconds of a processor, which blocks its thread.
        let drawn = tokio::task::spawn_blocking(move || self.draw(screen_text)).await;
        let failed = |error| Err(Error::Server(format!("the picture could not be drawn: {error}")));
        Content::of(&drawn.unwrap_or_else(failed)?)
    }
}

impl Screenshot {
    fn draw(self, screen_text: Option<Page>) -> Result<ScreenshotReply> {
        let begun = Instant::now();
        let Drawn { subject, first_line, next_line } = match (&self.session, screen_text) {
            (_, Some(screen_text)) => self.plain_subject(&screen_text)?,
            (Whose::Ours(session), None) => self.subject(session)?,
            (Whose::Desktop(_), None) => return Err(Error::Server("the desktop app returned no screen".to_owned())),
        };
        let note = matches!(self.session, Whose::Desktop(_)).then_some(ONLY_TEXT);
        let (width, height) = subject.pixels(self.look);
        let (bytes, format, image) = match self.format {
            Format::Png => {
                let png = picture::png(&subject, self.look)?;
                let data = Some(STANDARD.encode(&png));
                (png.len(), "png", Image { mime_type: "image/png", data, text: None })
            }
            Format::Svg => {
                let svg = picture::svg(&subject, self.look)?;
                (svg.len(), "svg", Image { mime_type: "image/svg+xml", data: None, text: Some(svg) })
            }
        };
        if bytes > MAX_BYTES {
            let problem = format!("the picture has {bytes} bytes, and {MAX_BYTES} fit an answer. Ask for less of it");
            return Err(Error::invalid(SCALE.name, problem));
        }
        let took_ms = (begun.elapsed().as_secs_f64() * 1e5).round() / 100.0;
        let (cols, rows) = subject.cells();
        Ok(ScreenshotReply { format, width, height, cols, rows, bytes, first_line, next_line, took_ms, note, image })
    }

    /// What a session of this server shows.
    fn subject(&self, session: &Session) -> Result<Drawn> {
        let Some((from, until, which)) = self.range else {
            let subject = Subject::screen(session.masked_screen());
            let subject = if self.cursor { subject } else { subject.without_cursor() };
            return Ok(Drawn { subject, first_line: None, next_line: None });
        };
        // Blank rows below the last text are no lines yet.
        let ends = ScreenRead { max_lines: Some(0), which, ..ScreenRead::new(Mode::Tail) };
        let ends = session.read(&ends);
        let rows = session.masked_rows(from..until.min(ends.next_line), which);
        let (Some((first, _)), Some((last, _))) = (rows.iter().next(), rows.iter().next_back()) else {
            return Err(no_line(&ends));
        };
        Ok(Drawn { subject: Subject::rows(rows), first_line: Some(first), next_line: Some(last + 1) })
    }

    /// What a desktop's session shows, as text.
    async fn plain_view(&self, target: &Target) -> Result<Page> {
        let (mode, which) = match self.range {
            None => (Mode::Viewport, Which::Active),
            Some((from, until, which)) => (Mode::Range { from, until: Some(until) }, which),
        };
        let read = ScreenRead { merge_wrapped: self.range.is_some(), which, ..ScreenRead::new(mode) };
        Ok(target.view(&read).await?.answer)
    }

    /// Text in cells: a blank terminal shows it.
    fn plain_subject(&self, screen_text: &Page) -> Result<Drawn> {
        if self.range.is_none() {
            let subject = Subject::screen(MaskedScreen::of_page(screen_text)).without_cursor();
            return Ok(Drawn { subject, first_line: None, next_line: None });
        }
        let (Some(first), Some(last)) = (screen_text.line_numbers.first(), screen_text.line_numbers.last()) else {
            return Err(no_line(screen_text));
        };
        let subject = Subject::rows(MaskedRows::of_page(screen_text));
        Ok(Drawn { subject, first_line: Some(*first), next_line: Some(last + 1) })
    }
}

/// What is drawn; of a range, the first line and the one after the last.
struct Drawn {
    subject: Subject,
    first_line: Option<u64>,
    next_line: Option<u64>,
}

fn no_line(ends: &Page) -> Error {
    let (oldest, next) = (ends.oldest_line, ends.next_line);
    Error::invalid(
        FROM_LINE.name,
        format!("there is no such line: {oldest} is the oldest, and {next} will be the next"),
    )
}
