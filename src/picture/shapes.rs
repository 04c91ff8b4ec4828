//! Rectangles and paths grouped by colour; adjacent rectangles are merged.
//!
//! Lengths are in quarter pixels, so halves and eighths of a cell are integers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::theme::Rgb;

/// Length in quarter pixels.
pub(super) type Unit = i32;

/// Converts pixels to units.
pub(super) const fn px(pixels: Unit) -> Unit {
    pixels * 4
}

/// A filled rectangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rect {
    pub(super) x: Unit,
    pub(super) y: Unit,
    pub(super) w: Unit,
    pub(super) h: Unit,
}

/// A set of rectangles. Those of one colour may overlap.
#[derive(Debug, Default)]
pub(super) struct Rects {
    by_color: BTreeMap<Rgb, Vec<Rect>>,
}

impl Rects {
    pub(super) fn add(&mut self, color: Rgb, rect: Rect) {
        let rects = self.by_color.entry(color).or_default();
        match rects.last_mut() {
            Some(last) if last.y == rect.y && last.h == rect.h && last.x + last.w == rect.x => last.w += rect.w,
            _ => rects.push(rect),
        }
    }

    /// Returns path data per colour.
    pub(super) fn paths(&self) -> impl Iterator<Item = (Rgb, String)> + '_ {
        self.by_color.iter().map(|(color, rects)| {
            let mut data = String::new();
            for Rect { x, y, w, h } in joined(rects.clone()) {
                let (x, y, w, h) = (Pixels(x), Pixels(y), Pixels(w), Pixels(h));
                // Writing to a string cannot fail.
                let _ = write!(data, "M{x} {y}h{w}v{h}h-{w}z");
            }
            (*color, data)
        })
    }
}

/// Merges adjacent rectangles; the covered area stays the same.
fn joined(mut rects: Vec<Rect>) -> Vec<Rect> {
    rects.sort_unstable_by_key(|rect| (rect.y, rect.h, rect.x, rect.w));
    rects.dedup_by(|next, last| {
        let touches = last.y == next.y && last.h == next.h && next.x <= last.x + last.w;
        if touches {
            last.w = last.w.max(next.x + next.w - last.x);
        }
        touches
    });
    rects.sort_unstable_by_key(|rect| (rect.x, rect.w, rect.y, rect.h));
    rects.dedup_by(|next, last| {
        let touches = last.x == next.x && last.w == next.w && next.y <= last.y + last.h;
        if touches {
            last.h = last.h.max(next.y + next.h - last.y);
        }
        touches
    });
    rects
}

/// Path data that is stroked or filled, per colour.
#[derive(Debug, Default)]
pub(super) struct Paths {
    pub(super) by_color: BTreeMap<Rgb, String>,
}

impl Paths {
    pub(super) fn of(&mut self, color: Rgb) -> &mut String {
        self.by_color.entry(color).or_default()
    }
}

/// A length in SVG notation.
#[derive(Clone, Copy)]
pub(super) struct Pixels(pub(super) Unit);

impl std::fmt::Display for Pixels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let whole = self.0.abs() / 4;
        let part = ["", ".25", ".5", ".75"][(self.0.abs() % 4) as usize];
        write!(f, "{sign}{whole}{part}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rect(x: Unit, y: Unit, w: Unit, h: Unit) -> Rect {
        Rect { x, y, w, h }
    }

    #[test]
    fn neighbours_become_one() {
        assert_eq!(
            joined(vec![rect(0, 0, 4, 4), rect(4, 0, 4, 4), rect(12, 0, 4, 4)]),
            [rect(0, 0, 8, 4), rect(12, 0, 4, 4)]
        );
        assert_eq!(joined(vec![rect(0, 4, 8, 4), rect(0, 0, 4, 4), rect(4, 0, 4, 4)]), [rect(0, 0, 8, 8)]);
        assert_eq!(joined(vec![rect(0, 0, 4, 4), rect(0, 4, 8, 4)]).len(), 2);
    }

    #[test]
    fn lengths_are_written_short() {
        for (units, expected) in [(0, "0"), (4, "1"), (5, "1.25"), (-2, "-0.5"), (43, "10.75")] {
            assert_eq!(Pixels(units).to_string(), expected);
        }
    }
}
