//! Serializes a drawing as SVG.

use std::fmt::Write as _;

use super::font::{FAMILY, SIZE};
use super::layout::{Drawing, Placement, TextRun};
use super::shapes::{Paths, Pixels, Rects};
use super::theme::Rgb;
use super::{CELL, MARGIN};

/// Distance from the top of a row to the text baseline.
const BASELINE: usize = 16;
/// Font size of the digits in a placeholder.
const SMALL: f32 = 6.6;
/// Slant of italic text; the embedded font has no italic face.
const SLANT: f32 = 0.2;

/// Program that renders the SVG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Viewer {
    /// A viewer with its own fonts: runs are stretched to their cells.
    External,
    /// The built-in rasterizer: the embedded font fits without stretching.
    BuiltIn,
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

/// Returns the whole file. Writing to a string cannot fail, so write results are ignored.
pub(super) fn write(drawing: &Drawing, scale: u32, viewer: Viewer) -> String {
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
    let (background, ink) = (drawing.theme.background(), drawing.theme.foreground());
    let _ = write!(out, "<rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>", Hex(background));
    let fonts = match viewer {
        Viewer::External => format!("{FAMILY},Menlo,Consolas,monospace"),
        Viewer::BuiltIn => FAMILY.to_owned(),
    };
    let _ = write!(
        out,
        "<g transform=\"translate({MARGIN} {MARGIN})\" font-family=\"{fonts}\" font-size=\"{SIZE:.3}\" fill=\"{}\">",
        Hex(ink)
    );
    rects(&mut out, &drawing.backgrounds);
    rects(&mut out, &drawing.shapes);
    paths(&mut out, &drawing.fills, "fill");
    paths(&mut out, &drawing.strokes, "fill=\"none\" stroke");
    for run in &drawing.texts {
        text(&mut out, run, ink, viewer);
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

fn text(out: &mut String, run: &TextRun, ink: Rgb, viewer: Viewer) {
    let y = run.row * CELL.1 as usize + BASELINE;
    let across = CELL.0 as usize;
    match &run.place {
        Placement::Even(col) => {
            let _ = write!(out, "<text x=\"{}\" y=\"{y}\"", col * across);
            if viewer == Viewer::External && run.text.len() > 1 {
                let _ = write!(out, " textLength=\"{}\"", run.text.len() * across);
            }
        }
        Placement::Each(cols) => {
            list(out, cols.iter().map(|col| col * across));
            let _ = write!(out, " y=\"{y}\"");
        }
        Placement::Wide(cols) => {
            list(out, cols.iter().map(|col| (col + 1) * across));
            let _ = write!(out, " y=\"{y}\" text-anchor=\"middle\"");
        }
        Placement::Small(x, y) => {
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
        let _ = match viewer {
            Viewer::External => write!(out, " font-style=\"italic\""),
            Viewer::BuiltIn => write!(out, " transform=\"matrix(1 0 -{SLANT} 1 {} 0)\"", SLANT * y as f32),
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

/// Escapes text for XML and replaces characters that XML cannot contain.
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
