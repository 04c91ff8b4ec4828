//! `screenshot`: a picture of the screen, or of a range of lines.
//!
//! The picture is in the answer as `image`, with its data; a transport that has a better place for it puts it there.

use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kpty_emulator::{Mode, Request as ScreenRead, Which};
use serde::Serialize;

use super::Tools;
use super::params::Params;
use crate::error::{Error, Result};
use crate::picture::{self, Look, MAX_SCALE, Subject, Theme};
use crate::session::Session;

pub(super) const PARAMS: &[&str] =
    &["session_id", "format", "theme", "scale", "cursor", "from_line", "until_line", "which"];

/// Lines of history in a picture unless told, and at most.
const LINES: u64 = 200;
/// Bytes of a picture at most: an answer has to fit what clients read.
pub(super) const MAX_BYTES: usize = 4 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Png,
    Svg,
}

const FORMATS: [(&str, Format); 2] = [("png", Format::Png), ("svg", Format::Svg)];
const THEMES: [(&str, Theme); 2] = [("dark", Theme::Dark), ("light", Theme::Light)];
const WHICH: [(&str, Which); 2] = [("active", Which::Active), ("main", Which::Main)];

pub(super) struct Request {
    session: Session,
    format: Format,
    look: Look,
    cursor: bool,
    /// Lines of history instead of the screen.
    range: Option<(u64, u64, Which)>,
}

#[derive(Serialize)]
pub(super) struct Answer {
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
    pub(super) fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        tools.may_read_screens()?;
        let session = tools.session(params)?;
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

    pub(super) async fn run(self) -> Result<Answer> {
        // Drawing takes some milliseconds of a processor: not where sessions are driven.
        let drawn = tokio::task::spawn_blocking(move || self.draw()).await;
        drawn.unwrap_or_else(|error| Err(Error::Server(format!("the picture could not be drawn: {error}"))))
    }

    fn draw(self) -> Result<Answer> {
        let begun = Instant::now();
        let (subject, first_line, next_line) = self.subject()?;
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
        Ok(Answer { format, width, height, cols, rows, bytes, first_line, next_line, took_ms, image })
    }

    /// What is drawn; of a range, the first line and the one after the last.
    fn subject(&self) -> Result<(Subject, Option<u64>, Option<u64>)> {
        let Some((from, until, which)) = self.range else {
            let mut subject = Subject::screen(self.session.masked_screen().screen);
            subject.cursor = subject.cursor.filter(|_| self.cursor);
            return Ok((subject, None, None));
        };
        // Blank rows below the last text are no lines yet.
        let ends = ScreenRead { max_lines: Some(0), which, ..ScreenRead::new(Mode::Tail) };
        let ends = self.session.read(&ends);
        let lines = self.session.masked_rows(from..until.min(ends.next_line), which);
        let (Some((first, _)), Some((last, _))) = (lines.first(), lines.last()) else {
            let (oldest, next) = (ends.oldest_line, ends.next_line);
            let problem = format!("there is no such line: {oldest} is the oldest, and {next} will be the next");
            return Err(Error::invalid("from_line", problem));
        };
        let (first, next) = (*first, last + 1);
        let rows: Vec<_> = lines.into_iter().map(|(_, row)| row).collect();
        let cols = rows.first().map_or(0, |row| row.cells.len());
        Ok((Subject { cols, rows, cursor: None }, Some(first), Some(next)))
    }
}
