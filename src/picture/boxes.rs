//! Renders characters that must join their neighbours as shapes: box drawing, blocks, braille, sextants, powerline.
//!
//! Fonts draw them for their own line height, which leaves gaps; here they fill the cell exactly.

use std::fmt::Write as _;

use super::shapes::{Paths, Pixels, Rect, Rects, Unit, px};
use super::theme::{Inks, blend};

/// Cell size and its centre, offset by half a pixel so that a line of one pixel is aligned to pixels.
const W: Unit = px(10);
const H: Unit = px(20);
const MID: (Unit, Unit) = (px(5) + 2, px(10) + 2);
/// Half widths of a thin and a thick line.
const THIN: Unit = 2;
const THICK: Unit = px(1) + 2;
/// Inner and outer edges of a double line, measured from the centre.
const INNER: Unit = px(1) + 2;
const OUTER: Unit = px(2) + 2;
/// Radius of round corners.
const RADIUS: Unit = px(4) + 2;

/// Lines from the centre of U+2500 to U+257F up, right, down and left, two bits each from the lowest: none, thin,
/// thick, double. Dashes, round corners and diagonals are not included.
const ARMS: [u8; 128] = [
    0x44, 0x88, 0x11, 0x22, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x14, 0x18, 0x24, 0x28, 0x50, 0x90, 0x60,
    0xa0, 0x05, 0x09, 0x06, 0x0a, 0x41, 0x81, 0x42, 0x82, 0x15, 0x19, 0x16, 0x25, 0x26, 0x1a, 0x29, 0x2a, 0x51, 0x91,
    0x52, 0x61, 0x62, 0x92, 0xa1, 0xa2, 0x54, 0x94, 0x58, 0x98, 0x64, 0xa4, 0x68, 0xa8, 0x45, 0x85, 0x49, 0x89, 0x46,
    0x86, 0x4a, 0x8a, 0x55, 0x95, 0x59, 0x99, 0x56, 0x65, 0x66, 0x96, 0x5a, 0xa5, 0x69, 0x9a, 0xa9, 0xa6, 0x6a, 0xaa,
    0x00, 0x00, 0x00, 0x00, 0xcc, 0x33, 0x1c, 0x34, 0x3c, 0xd0, 0x70, 0xf0, 0x0d, 0x07, 0x0f, 0xc1, 0x43, 0xc3, 0x1d,
    0x37, 0x3f, 0xd1, 0x73, 0xf3, 0xdc, 0x74, 0xfc, 0xcd, 0x47, 0xcf, 0xdd, 0x77, 0xff, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x40, 0x01, 0x04, 0x10, 0x80, 0x02, 0x08, 0x20, 0x48, 0x21, 0x84, 0x12,
];

/// Target of the shapes.
pub(super) struct Canvas<'a> {
    pub(super) rects: &'a mut Rects,
    pub(super) strokes: &'a mut Paths,
    pub(super) fills: &'a mut Paths,
}

/// Draws the character of the cell at a corner. Returns false for a character that the font draws.
pub(super) fn draw(c: char, (x, y): (Unit, Unit), inks: Inks, canvas: &mut Canvas<'_>) -> bool {
    let mut fill = |left: Unit, top: Unit, right: Unit, bottom: Unit| {
        let rect = Rect { x: x + left, y: y + top, w: right - left, h: bottom - top };
        canvas.rects.add(inks.fg, rect);
    };
    match c {
        '\u{2504}'..='\u{250b}' | '\u{254c}'..='\u{254f}' => dashes(c, fill),
        '\u{256d}'..='\u{2573}' => curves(c, (x, y), canvas.strokes.of(inks.fg)),
        '\u{2500}'..='\u{257f}' => arms(ARMS[c as usize - 0x2500], fill),
        '\u{2591}'..='\u{2593}' => {
            let share = (c as u32 - 0x2590) as f32 * 0.25;
            let whole = Rect { x, y, w: W, h: H };
            canvas.rects.add(blend(inks.fg, inks.bg, share), whole);
        }
        '\u{2580}'..='\u{259f}' => blocks(c, fill),
        '\u{2800}'..='\u{28ff}' => {
            for (bit, (col, row)) in
                [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)].into_iter().enumerate()
            {
                if c as u32 >> bit & 1 == 1 {
                    let (left, top) = (px(2) + col * px(5), px(1) + 2 + row * px(5));
                    fill(left, top, left + px(2), top + px(2));
                }
            }
        }
        '\u{1fb00}'..='\u{1fb3b}' => {
            // Sextants are in bit order, without the empty, the two half and the full block.
            let number = c as u32 - 0x1fb00 + 1;
            let number = number + u32::from(number >= 21);
            let number = number + u32::from(number >= 42);
            let rows = [0, px(7), px(13), H];
            for bit in (0..6).filter(|bit| number >> bit & 1 == 1) {
                let left = if bit % 2 == 0 { 0 } else { W / 2 };
                fill(left, rows[bit / 2], left + W / 2, rows[bit / 2 + 1]);
            }
        }
        '\u{e0b0}'..='\u{e0b3}' => {
            let is_right = c < '\u{e0b2}';
            let (from, tip) = if is_right { (x, x + W) } else { (x + W, x) };
            let [from, tip, top, middle, bottom] = [from, tip, y, y + H / 2, y + H].map(Pixels);
            let is_filled = c == '\u{e0b0}' || c == '\u{e0b2}';
            let (data, end) = match is_filled {
                true => (canvas.fills.of(inks.fg), "z"),
                false => (canvas.strokes.of(inks.fg), ""),
            };
            let _ = write!(data, "M{from} {top}L{tip} {middle}L{from} {bottom}{end}");
        }
        _ => return false,
    }
    true
}

/// Weight of one line from the centre.
#[derive(Clone, Copy)]
struct Weight(u8);

impl Weight {
    const DOUBLE: u8 = 3;

    fn is_there(self) -> bool {
        self.0 != 0
    }

    fn is_double(self) -> bool {
        self.0 == Self::DOUBLE
    }

    fn half(self) -> Unit {
        [0, THIN, THICK, 0][usize::from(self.0)]
    }
}

fn arms(code: u8, mut fill: impl FnMut(Unit, Unit, Unit, Unit)) {
    let weight = |direction: usize| Weight(code >> (2 * (direction % 4)) & 3);
    for direction in 0..4 {
        // Relative to the direction of the line: `left` and `right` are its sides.
        let (arm, right, opposite, left) =
            (weight(direction), weight(direction + 1), weight(direction + 2), weight(direction + 3));
        let mut line = |start: Unit, from: Unit, until: Unit| match direction {
            0 => fill(MID.0 + from, 0, MID.0 + until, MID.1 - start),
            1 => fill(MID.0 + start, MID.1 + from, W, MID.1 + until),
            2 => fill(MID.0 - until, MID.1 + start, MID.0 - from, H),
            _ => fill(0, MID.1 - until, MID.0 - start, MID.1 - from),
        };
        let sides_double = left.is_double() || right.is_double();
        let past_middle = -left.half().max(right.half());
        match arm.0 {
            0 => {}
            Weight::DOUBLE => {
                for (side, sign) in [(right, 1), (left, -1)] {
                    let start = match (sides_double, side.is_there()) {
                        (true, true) => INNER,
                        (true, false) => -OUTER,
                        (false, _) => past_middle,
                    };
                    let (near, far) = (sign * INNER, sign * OUTER);
                    line(start, near.min(far), near.max(far));
                }
            }
            _ => {
                let start = match (left.is_there(), right.is_there()) {
                    _ if !sides_double => past_middle,
                    _ if opposite.is_there() => 0,
                    (true, true) => INNER,
                    _ => -OUTER,
                };
                line(start, -arm.half(), arm.half());
            }
        }
    }
}

fn dashes(c: char, mut fill: impl FnMut(Unit, Unit, Unit, Unit)) {
    let code = c as u32;
    let count: Unit = match code {
        0x2504..=0x2507 => 3,
        0x2508..=0x250b => 4,
        _ => 2,
    };
    let half = if code & 1 == 0 { THIN } else { THICK };
    let is_vertical = code & 2 != 0;
    let length = if is_vertical { H } else { W };
    for dash in 0..count {
        let from = length * dash / count;
        let until = from + length * 3 / (count * 5);
        match is_vertical {
            true => fill(MID.0 - half, from, MID.0 + half, until),
            false => fill(from, MID.1 - half, until, MID.1 + half),
        }
    }
}

/// Draws round corners and diagonals as lines of one pixel.
fn curves(c: char, (x, y): (Unit, Unit), data: &mut String) {
    let (left, right, top, bottom) = (Pixels(x), Pixels(x + W), Pixels(y), Pixels(y + H));
    if matches!(c, '╱' | '╳') {
        let _ = write!(data, "M{right} {top}L{left} {bottom}");
    }
    if matches!(c, '╲' | '╳') {
        let _ = write!(data, "M{left} {top}L{right} {bottom}");
    }
    let (is_down, is_right) = match c {
        '╭' => (true, true),
        '╮' => (true, false),
        '╯' => (false, false),
        '╰' => (false, true),
        _ => return,
    };
    let (mid_x, mid_y) = (x + MID.0, y + MID.1);
    let (down, across) = (if is_down { 1 } else { -1 }, if is_right { 1 } else { -1 });
    let turn = Pixels(mid_y + down * RADIUS);
    let (end, sweep) = (Pixels(mid_x + across * RADIUS), u8::from(is_down == is_right));
    let (start, edge) = (if is_down { bottom } else { top }, if is_right { right } else { left });
    let (mid_x, mid_y, radius) = (Pixels(mid_x), Pixels(mid_y), Pixels(RADIUS));
    let _ = write!(data, "M{mid_x} {start}V{turn}A{radius} {radius} 0 0 {sweep} {end} {mid_y}H{edge}");
}

fn blocks(c: char, mut fill: impl FnMut(Unit, Unit, Unit, Unit)) {
    let code = c as Unit;
    match code {
        0x2580 => fill(0, 0, W, H / 2),
        0x2581..=0x2588 => fill(0, H - H * (code - 0x2580) / 8, W, H),
        0x2589..=0x258f => fill(0, 0, W * (0x2590 - code) / 8, H),
        0x2590 => fill(W / 2, 0, W, H),
        0x2594 => fill(0, 0, W, H / 8),
        0x2595 => fill(W - W / 8, 0, W, H),
        _ => {
            // Upper left, upper right, lower left, lower right.
            let quarters = [0b0100, 0b1000, 0b0001, 0b1101, 0b1001, 0b0111, 0b1011, 0b0010, 0b0110, 0b1110];
            let quarters = quarters[(code - 0x2596) as usize];
            for bit in (0..4).filter(|bit| quarters >> bit & 1 == 1) {
                let (left, top) = (bit % 2 * W / 2, bit / 2 * H / 2);
                fill(left, top, left + W / 2, top + H / 2);
            }
        }
    }
}
