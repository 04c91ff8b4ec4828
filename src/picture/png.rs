//! Rasterizes the SVG of this module.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use super::font;
use crate::error::{Error, Result};

/// Renders an SVG of [`super::svg()`] at its own size.
pub(super) fn rasterise(svg: &str, width: u32, height: u32) -> Result<Vec<u8>> {
    let problem = |what: String| Error::Server(format!("the picture could not be drawn: {what}"));
    let options = Options { fontdb: font::FACES.clone(), font_family: font::FAMILY.to_owned(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| problem(error.to_string()))?;
    let mut pixels = Pixmap::new(width, height).ok_or_else(|| problem("it has no size".to_owned()))?;
    resvg::render(&tree, Transform::identity(), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| problem(error.to_string()))
}
