//! The embedded font, DejaVu Sans Mono, and its character coverage.

use std::sync::{Arc, LazyLock};

use resvg::usvg::fontdb;

/// Family name in the SVG.
pub(super) const FAMILY: &str = "DejaVu Sans Mono";
/// Font size at which a character is exactly ten pixels wide: its advance is 1233 of 2048 units.
pub(super) const SIZE: f32 = 10.0 * 2048.0 / 1233.0;

static REGULAR: &[u8] = include_bytes!("../../assets/fonts/DejaVuSansMono.ttf");
static BOLD: &[u8] = include_bytes!("../../assets/fonts/DejaVuSansMono-Bold.ttf");

/// Both faces for the rasterizer; no other font is used.
pub(super) static FACES: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut faces = fontdb::Database::new();
    for face in [REGULAR, BOLD] {
        faces.load_font_source(fontdb::Source::Binary(Arc::new(face)));
    }
    Arc::new(faces)
});

static COVERAGE: LazyLock<Coverage> = LazyLock::new(|| Coverage::read(REGULAR).unwrap_or_default());

/// Returns the coverage of the regular face; that of the bold face is nearly the same.
pub(super) fn coverage() -> &'static Coverage {
    &COVERAGE
}

/// Sorted ranges of characters.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    ranges: Vec<(u32, u32)>,
}

impl Coverage {
    pub(super) fn has(&self, c: char) -> bool {
        let c = c as u32;
        let after = self.ranges.partition_point(|&(first, _)| first <= c);
        after > 0 && c <= self.ranges[after - 1].1
    }

    /// Parses the character map of a TrueType font: table `cmap`, format 12.
    fn read(font: &[u8]) -> Option<Self> {
        let tables = usize::from(short(font, 4)?);
        let record = (0..tables).map(|n| 12 + 16 * n).find(|&at| font.get(at..at + 4) == Some(b"cmap"))?;
        let cmap = font.get(long(font, record + 8)? as usize..)?;
        let maps = usize::from(short(cmap, 2)?);
        let offsets = (0..maps).filter_map(|n| long(cmap, 4 + 8 * n + 4));
        let map = offsets.filter_map(|at| cmap.get(at as usize..)).find(|map| short(map, 0) == Some(12))?;
        let groups = long(map, 12)? as usize;
        let range = |n: usize| Some((long(map, 16 + 12 * n)?, long(map, 16 + 12 * n + 4)?));
        (0..groups).map(range).collect::<Option<_>>().map(|ranges| Self { ranges })
    }
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_knows_what_it_lacks() {
        for c in "aZ0~é€→✓★Ωж│█".chars() {
            assert!(coverage().has(c), "{c}");
        }
        for c in "日本한😀\u{10ffff}".chars() {
            assert!(!coverage().has(c), "{c}");
        }
    }

    #[test]
    fn a_file_that_is_no_font_covers_nothing() {
        assert!(Coverage::read(b"").is_none() && Coverage::read(&REGULAR[..200]).is_none());
    }
}
