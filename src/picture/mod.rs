//! Renders a terminal: cells in, SVG text or PNG bytes out.
//!
//! Pure: uses no file, clock or system font. [`svg()`] targets viewers, whose fonts cover every script; [`png()`] uses
//! the embedded font and draws a framed code point for a missing glyph. Lines, blocks and underlines are shapes in
//! both, so that they join with any font. The only module that uses `resvg`.

mod boxes;
mod font;
mod layout;
mod png;
mod shapes;
mod svg;
mod theme;

use kpty_emulator::{Cursor, Row, Screen};

use crate::masked::{MaskedRows, MaskedScreen};

pub use theme::Theme;

use crate::error::{Error, Result};

/// Maximum number of cells of a picture.
pub const MAX_CELLS: usize = 200_000;
/// Maximum number of pixels of a PNG; each takes four bytes of memory while it is drawn.
pub const MAX_PIXELS: u64 = 24_000_000;
/// Maximum scale factor.
pub const MAX_SCALE: u64 = 4;

/// Width and height of a cell, and the outer margin, in pixels at scale 1.
const CELL: (u32, u32) = (10, 20);
const MARGIN: u32 = 8;

/// Content of a picture.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Width of every row.
    cols: usize,
    /// Rows, top to bottom.
    rows: Vec<Row>,
    /// Drawn if the program made it visible.
    cursor: Option<Cursor>,
}

/// Rendering options.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Colour theme.
    pub theme: Theme,
    /// Scale factor, from 1 to [`MAX_SCALE`].
    pub scale: u32,
}

impl Default for Look {
    fn default() -> Self {
        Self { theme: Theme::default(), scale: 1 }
    }
}

impl Subject {
    /// Renders a whole screen of a session with its cursor.
    pub fn screen(screen: MaskedScreen) -> Self {
        Self::recorded(screen.into_cells())
    }

    /// Renders lines of a session.
    pub fn rows(rows: MaskedRows) -> Self {
        let rows = rows.into_cells();
        Self { cols: rows.first().map_or(0, |row| row.cells.len()), rows, cursor: None }
    }

    /// Renders a whole screen of a recording that the user has in a file.
    pub fn recorded(screen: Screen) -> Self {
        Self { cols: usize::from(screen.size.cols()), rows: screen.rows, cursor: Some(screen.cursor) }
    }

    /// The same without its cursor.
    #[must_use]
    pub fn without_cursor(self) -> Self {
        Self { cursor: None, ..self }
    }

    /// Returns width and height in cells.
    pub fn cells(&self) -> (usize, usize) {
        (self.cols, self.rows.len())
    }

    /// Returns width and height of the picture in pixels.
    pub fn pixels(&self, look: Look) -> (u32, u32) {
        let side = |cells: usize, size: u32| (cells as u32 * size + 2 * MARGIN) * look.scale;
        (side(self.cols, CELL.0), side(self.rows.len(), CELL.1))
    }

    /// Rejects a picture beyond the limits.
    fn check(&self, look: Look) -> Result<()> {
        let cells = self.cols * self.rows.len();
        if cells == 0 {
            return Err(Error::invalid("from_line", "there is nothing to draw"));
        }
        if cells > MAX_CELLS {
            let problem = format!("{cells} cells are too many for a picture: at most {MAX_CELLS}. Ask for fewer lines");
            return Err(Error::invalid("until_line", problem));
        }
        if look.scale == 0 || u64::from(look.scale) > MAX_SCALE {
            return Err(Error::invalid("scale", format!("must be from 1 to {MAX_SCALE}")));
        }
        Ok(())
    }
}

/// Renders an SVG of text, shapes and plain attributes, without scripts, links or external resources.
pub fn svg(subject: &Subject, look: Look) -> Result<String> {
    subject.check(look)?;
    Ok(svg::write(&layout::lay_out(subject, look.theme, None), look.scale, svg::Viewer::External))
}

/// Renders a PNG.
pub fn png(subject: &Subject, look: Look) -> Result<Vec<u8>> {
    subject.check(look)?;
    let (width, height) = subject.pixels(look);
    let pixels = u64::from(width) * u64::from(height);
    if pixels > MAX_PIXELS {
        let problem = format!(
            "{width}x{height} pixels are too many: at most {MAX_PIXELS}. Ask for a smaller scale, fewer lines, or SVG"
        );
        return Err(Error::invalid("scale", problem));
    }
    let drawing = layout::lay_out(subject, look.theme, Some(font::coverage()));
    png::rasterise(&svg::write(&drawing, look.scale, svg::Viewer::BuiltIn), width, height)
}

#[cfg(test)]
mod tests;
