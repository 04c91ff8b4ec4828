//! `screenshot`: a picture of the screen, or of a range of lines.
//!
//! The picture is in the answer as `image`, with its data; a transport that has a better place for it puts it there.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kpty_emulator::{Answer as ScreenAnswer, Emulator, Mode, Request as ScreenRead, Row, Settings, Which};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::picture::{self, Look, MAX_SCALE, Subject, Theme};
use crate::terminal::local::Session;
use crate::tools::params::Params;
use crate::tools::{Target, Tools};

pub(in crate::tools) const PARAMS: &[&str] =
    &["session_id", "format", "theme", "scale", "cursor", "from_line", "until_line", "which"];

/// Lines of history in a picture unless told, and at most.
const LINES: u64 = 200;
/// Bytes of a picture at most: an answer has to fit what clients read.
pub(in crate::tools) const MAX_BYTES: usize = 4 << 20;

/// Said with pictures of a desktop's session.
const ONLY_TEXT: &str = "a desktop app tells only text: no colours, no cursor";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Png,
    Svg,
}

const FORMATS: [(&str, Format); 2] = [("png", Format::Png), ("svg", Format::Svg)];
const THEMES: [(&str, Theme); 2] = [("dark", Theme::Dark), ("light", Theme::Light)];
const WHICH: [(&str, Which); 2] = [("active", Which::Active), ("main", Which::Main)];

/// Whose session it is.
enum Whose {
    Ours(Session),
    /// Of a desktop app, which tells only text.
    Desktop(Target),
}

pub(in crate::tools) struct Request {
    session: Whose,
    format: Format,
    look: Look,
    cursor: bool,
    /// Lines of history instead of the screen.
    range: Option<(u64, u64, Which)>,
}

#[derive(Serialize)]
pub(in crate::tools) struct Answer {
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

impl Request {
    pub(in crate::tools) fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        tools.may_read_screens()?;
        let session = match tools.session(params) {
            Ok(session) => Whose::Ours(session),
            Err(Error::DesktopOnly(_)) => Whose::Desktop(tools.target(params)?),
            Err(error) => return Err(error),
        };
        let scale = params.capped("scale", MAX_SCALE)?.unwrap_or(1).max(1) as u32;
        let look = Look { theme: params.choice("theme", &THEMES)?.unwrap_or_default(), scale };
        let which = params.choice("which", &WHICH)?.unwrap_or_default();
        let until = params.number("until_line")?;
        let range = params.number("from_line")?.map(|from| {
            let most = from.saturating_add(LINES);
            (from, until.unwrap_or(most).min(most), which)
        });
        if range.is_none() && until.is_some() {
            return Err(Error::MissingParam("from_line"));
        }
        Ok(Self {
            session,
            format: params.choice("format", &FORMATS)?.unwrap_or(Format::Png),
            look,
            cursor: params.flag("cursor", true)?,
            range,
        })
    }

    pub(in crate::tools) async fn run(self) -> Result<Answer> {
        let told = match &self.session {
            Whose::Ours(_) => None,
            Whose::Desktop(target) => Some(self.plain_view(target).await?),
        };
        // Drawing takes some milliseconds of a processor: not where sessions are driven.
        let drawn = tokio::task::spawn_blocking(move || self.draw(told)).await;
        drawn.unwrap_or_else(|error| Err(Error::Server(format!("the picture could not be drawn: {error}"))))
    }

    fn draw(self, told: Option<ScreenAnswer>) -> Result<Answer> {
        let begun = Instant::now();
        let Drawn { subject, first_line, next_line } = match (&self.session, told) {
            (_, Some(told)) => self.plain_subject(&told)?,
            (Whose::Ours(session), None) => self.subject(session)?,
            (Whose::Desktop(_), None) => return Err(Error::Server("the desktop app told nothing".to_owned())),
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
            return Err(Error::invalid("scale", problem));
        }
        let took_ms = (begun.elapsed().as_secs_f64() * 1e5).round() / 100.0;
        let (cols, rows) = (subject.cols, subject.rows.len());
        Ok(Answer { format, width, height, cols, rows, bytes, first_line, next_line, took_ms, note, image })
    }

    /// What a session of this server shows.
    fn subject(&self, session: &Session) -> Result<Drawn> {
        let Some((from, until, which)) = self.range else {
            let mut subject = Subject::screen(session.masked_screen().screen);
            subject.cursor = subject.cursor.filter(|_| self.cursor);
            return Ok(Drawn { subject, first_line: None, next_line: None });
        };
        // Blank rows below the last text are no lines yet.
        let ends = ScreenRead { max_lines: Some(0), which, ..ScreenRead::new(Mode::Tail) };
        let ends = session.read(&ends);
        let lines = session.masked_rows(from..until.min(ends.next_line), which);
        let (Some((first, _)), Some((last, _))) = (lines.first(), lines.last()) else { return Err(no_line(&ends)) };
        let (first_line, next_line) = (Some(*first), Some(last + 1));
        Ok(Drawn { subject: subject_of(lines), first_line, next_line })
    }

    /// What a desktop's session shows, as text.
    async fn plain_view(&self, target: &Target) -> Result<ScreenAnswer> {
        let (mode, which) = match self.range {
            None => (Mode::Viewport, Which::Active),
            Some((from, until, which)) => (Mode::Range { from, until: Some(until) }, which),
        };
        let read = ScreenRead { merge_wrapped: self.range.is_some(), which, ..ScreenRead::new(mode) };
        Ok(target.view(&read).await?.answer)
    }

    /// Text in cells: a blank terminal shows it.
    fn plain_subject(&self, told: &ScreenAnswer) -> Result<Drawn> {
        let mut emulator = Emulator::new(Settings { size: told.size, ..Settings::default() });
        let text = told.lines().collect::<Vec<_>>().join("\n");
        let text: String = text.chars().filter(|c| *c == '\n' || !c.is_control()).collect();
        emulator.feed(Duration::ZERO, text.replace('\n', "\r\n").as_bytes());
        if self.range.is_none() {
            let subject = Subject { cursor: None, ..Subject::screen(emulator.screen()) };
            return Ok(Drawn { subject, first_line: None, next_line: None });
        }
        let (Some(first), Some(last)) = (told.line_numbers.first(), told.line_numbers.last()) else {
            return Err(no_line(told));
        };
        let subject = subject_of(emulator.rows(0..told.line_numbers.len() as u64, Which::Active));
        Ok(Drawn { subject, first_line: Some(*first), next_line: Some(last + 1) })
    }
}

/// What is drawn; of a range, the first line and the one after the last.
struct Drawn {
    subject: Subject,
    first_line: Option<u64>,
    next_line: Option<u64>,
}

fn subject_of(rows: Vec<(u64, Row)>) -> Subject {
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    Subject { cols: rows.first().map_or(0, |row| row.cells.len()), rows, cursor: None }
}

fn no_line(ends: &ScreenAnswer) -> Error {
    let (oldest, next) = (ends.oldest_line, ends.next_line);
    Error::invalid("from_line", format!("there is no such line: {oldest} is the oldest, and {next} will be the next"))
}
