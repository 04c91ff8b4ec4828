//! Writing a drawing as SVG.

use std::fmt::Write as _;

use super::font::{FAMILY, SIZE};
use super::layout::{Drawing, Place, Text};
use super::shapes::{Paths, Pixels, Rects};
use super::theme::Rgb;
use super::{CELL, MARGIN};

/// From the top of a row to the line that characters stand on.
const BASELINE: usize = 16;
/// Size of the digits of a stand-in.
const SMALL: f32 = 6.6;
/// How far the embedded font, which has no italic face, is slanted.
const SLANT: f32 = 0.2;

/// Who draws it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    /// A viewer with fonts of its own: runs are stretched to their cells.
    Viewers,
    /// Our rasteriser: the embedded font fits as it is.
    OwnFont,
}

struct Hex(Rgb);

impl std::fmt::Display for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (r, g, b) = self.0;
        let is_short = [r, g, b].iter().all(|part| part >> 4 == part & 15);
        match is_short {
            true => write!(f, "#{:x}{:x}{:x}", r & 15, g & 15, b & 15),
            false => write!(f, "#{r:02x}{g:02x}{b:02x}"),
        }
    }
}

/// The whole file. Writing to a string does not fail, so results of it are not looked at.
pub(super) fn write(drawing: &Drawing, scale: u32, reader: For) -> String {
    let width = drawing.cols as u32 * CELL.0 + 2 * MARGIN;
    let height = drawing.rows as u32 * CELL.1 + 2 * MARGIN;
    let mut out = String::with_capacity(4096);
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {width} {height}\" \
         xml:space=\"preserve\">",
        width * scale,
        height * scale
    );
    let (ground, ink) = (drawing.theme.background(), drawing.theme.foreground());
    let _ = write!(out, "<rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>", Hex(ground));
    let fonts = match reader {
        For::Viewers => format!("{FAMILY},Menlo,Consolas,monospace"),
        For::OwnFont => FAMILY.to_owned(),
    };
    let _ = write!(
        out,
        "<g transform=\"translate({MARGIN} {MARGIN})\" font-family=\"{fonts}\" font-size=\"{SIZE:.3}\" fill=\"{}\">",
        Hex(ink)
    );
    rects(&mut out, &drawing.grounds);
    rects(&mut out, &drawing.shapes);
    paths(&mut out, &drawing.fills, "fill");
    paths(&mut out, &drawing.strokes, "fill=\"none\" stroke");
    for run in &drawing.texts {
        text(&mut out, run, ink, reader);
    }
    rects(&mut out, &drawing.over);
    out.push_str("</g></svg>\n");
    out
}

fn rects(out: &mut String, rects: &Rects) {
    for (color, data) in rects.paths() {
        let _ = write!(out, "<path fill=\"{}\" shape-rendering=\"crispEdges\" d=\"{data}\"/>", Hex(color));
    }
}

fn paths(out: &mut String, paths: &Paths, attribute: &str) {
    for (color, data) in &paths.by_color {
        let _ = write!(out, "<path {attribute}=\"{}\" d=\"{data}\"/>", Hex(*color));
    }
}

fn text(out: &mut String, run: &Text, ink: Rgb, reader: For) {
    let y = run.row * CELL.1 as usize + BASELINE;
    let across = CELL.0 as usize;
    match &run.place {
        Place::Even(col) => {
            let _ = write!(out, "<text x=\"{}\" y=\"{y}\"", col * across);
            if reader == For::Viewers && run.text.len() > 1 {
                let _ = write!(out, " textLength=\"{}\"", run.text.len() * across);
            }
        }
        Place::Each(cols) => {
            list(out, cols.iter().map(|col| col * across));
            let _ = write!(out, " y=\"{y}\"");
        }
        Place::Wide(cols) => {
            list(out, cols.iter().map(|col| (col + 1) * across));
            let _ = write!(out, " y=\"{y}\" text-anchor=\"middle\"");
        }
        Place::Small(x, y) => {
            let _ = write!(
                out,
                "<text x=\"{}\" y=\"{}\" font-size=\"{SMALL}\" text-anchor=\"middle\"",
                Pixels(*x),
                Pixels(*y)
            );
        }
    }
    if run.ink.color != ink {
        let _ = write!(out, " fill=\"{}\"", Hex(run.ink.color));
    }
    if run.ink.bold {
        out.push_str(" font-weight=\"bold\"");
    }
    if run.ink.italic {
        let _ = match reader {
            For::Viewers => write!(out, " font-style=\"italic\""),
            For::OwnFont => write!(out, " transform=\"matrix(1 0 -{SLANT} 1 {} 0)\"", SLANT * y as f32),
        };
    }
    out.push('>');
    escape(out, &run.text);
    out.push_str("</text>");
}

fn list(out: &mut String, places: impl Iterator<Item = usize>) {
    out.push_str("<text x=\"");
    for (index, x) in places.enumerate() {
        let space = if index == 0 { "" } else { " " };
        let _ = write!(out, "{space}{x}");
    }
    out.push('"');
}

/// Text as XML has it; what XML cannot have is replaced.
fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}
