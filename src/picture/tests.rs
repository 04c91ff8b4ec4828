//! Renders small screens and checks the SVG and the pixels.

use std::time::Duration;

use kpty_emulator::{Emulator, Settings, Size};
use resvg::tiny_skia::Pixmap;

use super::*;

fn subject(cols: u16, rows: u16, bytes: &str) -> Subject {
    let size = Size::new(cols, rows).expect("a size");
    let mut emulator = Emulator::new(Settings { size, ..Settings::default() });
    emulator.feed(Duration::ZERO, bytes.as_bytes());
    Subject::recorded(emulator.screen())
}

/// Returns the elements inside the group of a picture without its cursor.
fn inside(cols: u16, rows: u16, bytes: &str) -> String {
    let svg = svg(&Subject { cursor: None, ..subject(cols, rows, bytes) }, Look::default()).expect("a picture");
    let (_, rest) = svg.split_once("fill=\"#e5e5e5\">").expect("a group");
    rest.strip_suffix("</g></svg>\n").expect("an end").to_owned()
}

#[test]
fn a_screen_is_a_few_elements() {
    let whole = svg(&Subject { cursor: None, ..subject(5, 1, "hi") }, Look::default()).expect("a picture");
    assert_eq!(
        whole,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"66\" height=\"36\" viewBox=\"0 0 66 36\" \
         xml:space=\"preserve\"><rect width=\"66\" height=\"36\" fill=\"#000\"/><g transform=\"translate(8 8)\" \
         font-family=\"DejaVu Sans Mono,Menlo,Consolas,monospace\" font-size=\"16.610\" fill=\"#e5e5e5\">\
         <text x=\"0\" y=\"16\" textLength=\"20\">hi</text></g></svg>\n"
    );
}

#[test]
fn every_look_has_its_form() {
    for (bytes, expected) in [
        ("", ""),
        ("a  b", "<text x=\"0\" y=\"16\" textLength=\"40\">a  b</text>"),
        (
            "\x1b[31mr\x1b[32mg",
            "<text x=\"0\" y=\"16\" fill=\"#cd0000\">r</text><text x=\"10\" y=\"16\" fill=\"#00cd00\">g</text>",
        ),
        ("\x1b[38;5;208mo", "<text x=\"0\" y=\"16\" fill=\"#ff8700\">o</text>"),
        ("\x1b[38;2;1;2;3mt", "<text x=\"0\" y=\"16\" fill=\"#010203\">t</text>"),
        ("\x1b[1mb", "<text x=\"0\" y=\"16\" font-weight=\"bold\">b</text>"),
        ("\x1b[3mi", "<text x=\"0\" y=\"16\" font-style=\"italic\">i</text>"),
        ("\x1b[2md", "<text x=\"0\" y=\"16\" fill=\"#898989\">d</text>"),
        ("\x1b[8mh", ""),
        (
            "\x1b[41mab\x1b[0m",
            "<path fill=\"#cd0000\" shape-rendering=\"crispEdges\" d=\"M0 0h20v20h-20z\"/>\
             <text x=\"0\" y=\"16\" textLength=\"20\">ab</text>",
        ),
        (
            "\x1b[7mr",
            "<path fill=\"#e5e5e5\" shape-rendering=\"crispEdges\" d=\"M0 0h10v20h-10z\"/>\
             <text x=\"0\" y=\"16\" fill=\"#000\">r</text>",
        ),
        ("\x1b[4m ", "<path fill=\"#e5e5e5\" shape-rendering=\"crispEdges\" d=\"M0 18h10v1h-10z\"/>"),
        ("\x1b[4;58;5;9m ", "<path fill=\"#f00\" shape-rendering=\"crispEdges\" d=\"M0 18h10v1h-10z\"/>"),
        ("\x1b[21m ", "<path fill=\"#e5e5e5\" shape-rendering=\"crispEdges\" d=\"M0 17h10v1h-10zM0 19h10v1h-10z\"/>"),
        ("\x1b[4:3m ", "<path fill=\"none\" stroke=\"#e5e5e5\" d=\"M0 18q2.5 -3 5 0t5 0\"/>"),
        ("\x1b[4:5m ", "<path fill=\"#e5e5e5\" shape-rendering=\"crispEdges\" d=\"M0 18h3v1h-3zM5 18h3v1h-3z\"/>"),
        ("\x1b[9m  ", "<path fill=\"#e5e5e5\" shape-rendering=\"crispEdges\" d=\"M0 11h20v1h-20z\"/>"),
        ("<&>\"'", "<text x=\"0\" y=\"16\" textLength=\"50\">&lt;&amp;&gt;\"'</text>"),
        ("é→x", "<text x=\"0 10\" y=\"16\">é→</text><text x=\"20\" y=\"16\">x</text>"),
        ("日本", "<text x=\"10 30\" y=\"16\" text-anchor=\"middle\">日本</text>"),
        ("😀x", "<text x=\"10\" y=\"16\" text-anchor=\"middle\">😀</text><text x=\"20\" y=\"16\">x</text>"),
        ("e\u{301}x", "<text x=\"0\" y=\"16\">e\u{301}</text><text x=\"10\" y=\"16\">x</text>"),
        ("──", "<path fill=\"#e5e5e5\" shape-rendering=\"crispEdges\" d=\"M0 10h20v1h-20z\"/>"),
        ("█", "<path fill=\"#e5e5e5\" shape-rendering=\"crispEdges\" d=\"M0 0h10v20h-10z\"/>"),
        ("\u{e0b0}", "<path fill=\"#e5e5e5\" d=\"M0 0L10 10L0 20z\"/>"),
        ("╭", "<path fill=\"none\" stroke=\"#e5e5e5\" d=\"M5.5 20V15A4.5 4.5 0 0 1 10 10.5H10\"/>"),
    ] {
        assert_eq!(inside(6, 1, bytes), expected, "{bytes:?}");
    }
}

#[test]
fn lines_of_several_rows_are_one_shape() {
    let expected = "<path fill=\"#e5e5e5\" shape-rendering=\"crispEdges\" d=\"M5 0h1v60h-1z\"/>";
    assert_eq!(inside(3, 3, "│\r\n│\r\n│"), expected);
    let expected = "<path fill=\"#00e\" shape-rendering=\"crispEdges\" d=\"M0 0h30v40h-30z\"/>";
    assert_eq!(inside(3, 2, "\x1b[44m\x1b[2J"), expected);
}

#[test]
fn nothing_in_a_picture_can_do_anything() {
    let bytes = "\x1b]8;;javascript:alert(1)\x07<script>\x1b]8;;\x07 </text><image href='x'>";
    let picture = svg(&subject(60, 2, bytes), Look::default()).expect("a picture");
    for needle in ["<script", "<image", "href=", "javascript", "url(", "<a "] {
        assert!(!picture.replace("href='x'", "").contains(needle), "{needle}: {picture}");
    }
}

#[test]
fn what_is_too_large_is_refused() {
    let wide = subject(2_000, 101, "");
    assert!(svg(&wide, Look::default()).is_err());
    let many = subject(600, 250, "");
    assert!(svg(&many, Look::default()).is_ok());
    assert!(png(&many, Look::default()).is_err());
    assert!(svg(&many, Look { scale: 5, ..Look::default() }).is_err());
    let none = Subject { cols: 10, rows: Vec::new(), cursor: None };
    assert!(svg(&none, Look::default()).is_err() && png(&none, Look::default()).is_err());
}

/// A PNG and its pixel colours.
struct Pixels {
    map: Pixmap,
    scale: u32,
}

impl Pixels {
    fn draw(subject: &Subject, look: Look) -> Self {
        let bytes = png(subject, look).expect("a picture");
        Self { map: Pixmap::decode_png(&bytes).expect("a PNG"), scale: look.scale }
    }

    fn of(bytes: &str) -> Self {
        Self::draw(&Subject { cursor: None, ..subject(10, 3, bytes) }, Look::default())
    }

    /// Returns the colour at a position in a cell.
    fn at(&self, row: u32, col: u32, x: u32, y: u32) -> (u8, u8, u8) {
        let place = |cells: u32, size: u32, inside: u32| (MARGIN + cells * size + inside) * self.scale;
        let pixel = self.map.pixel(place(col, CELL.0, x), place(row, CELL.1, y)).expect("inside the picture");
        (pixel.red(), pixel.green(), pixel.blue())
    }

    /// Returns how many pixels of a cell have another colour.
    fn unlike(&self, row: u32, col: u32, color: (u8, u8, u8)) -> usize {
        let places = (0..CELL.1).flat_map(|y| (0..CELL.0).map(move |x| (x, y)));
        places.filter(|&(x, y)| self.at(row, col, x, y) != color).count()
    }
}

const BLACK: (u8, u8, u8) = (0, 0, 0);
const GREY: (u8, u8, u8) = (0xe5, 0xe5, 0xe5);

#[test]
fn colours_and_glyphs_are_in_their_cells() {
    let pixels = Pixels::of("a \x1b[41m \x1b[0m\r\n\x1b[38;2;10;200;30m█\x1b[0mM");
    assert!(pixels.unlike(0, 0, BLACK) > 10, "a letter is drawn");
    assert_eq!(pixels.unlike(0, 1, BLACK), 0, "and only in its cell");
    assert_eq!(pixels.unlike(0, 2, (0xcd, 0, 0)), 0);
    assert_eq!(pixels.unlike(1, 0, (10, 200, 30)), 0);
    assert!(pixels.unlike(1, 1, BLACK) > 10);
    assert_eq!(pixels.unlike(2, 9, BLACK), 0);
}

#[test]
fn bold_is_heavier_and_italic_leans() {
    let pixels = Pixels::of("l\x1b[1ml\x1b[0;3m|");
    let ink = |col: u32| {
        let places = (0..CELL.1).flat_map(|y| (0..CELL.0).map(move |x| (x, y)));
        places.map(|(x, y)| u32::from(pixels.at(0, col, x, y).0)).sum::<u32>()
    };
    assert!(ink(1) > ink(0) * 5 / 4, "{} {}", ink(1), ink(0));
    let column = |col: u32, rows: std::ops::Range<u32>| {
        let (mut sum, mut weight) = (0, 0);
        for (x, y) in rows.flat_map(|y| (0..CELL.0).map(move |x| (x, y))) {
            let value = u32::from(pixels.at(0, col, x, y).0);
            (sum, weight) = (sum + value * x * 100, weight + value);
        }
        sum / weight.max(1)
    };
    assert!(column(2, 3..7) > column(2, 10..14) + 80, "the top is further to the right");
}

/// Every line reaches the edge of its cell and meets its neighbour there.
#[test]
fn boxes_join_without_a_seam() {
    let pixels = Pixels::of("┌─┐\r\n│ │\r\n└─┘");
    for x in 6..30 {
        let (col, inside) = (x / 10, x % 10);
        if (6..25).contains(&x) {
            assert_eq!(pixels.at(0, col, inside, 10), GREY, "top at {x}");
            assert_eq!(pixels.at(2, col, inside, 10), GREY, "bottom at {x}");
        }
    }
    for y in 10..50 {
        assert_eq!(pixels.at(y / 20, 0, 5, y % 20), GREY, "left at {y}");
        assert_eq!(pixels.at(y / 20, 2, 5, y % 20), GREY, "right at {y}");
    }
    assert_eq!(pixels.unlike(1, 1, BLACK), 0);
    for (bytes, edge) in [("═║", (8, 12)), ("━┃", (9, 11))] {
        let pixels = Pixels::of(bytes);
        assert_eq!((pixels.at(0, 0, 0, edge.0), pixels.at(0, 0, 9, edge.1)), (GREY, GREY), "{bytes}");
    }
}

#[test]
fn what_the_font_lacks_takes_its_cells() {
    let pixels = Pixels::of("日x😀x");
    for col in [0, 3] {
        assert!(pixels.unlike(0, col, BLACK) > 20 && pixels.unlike(0, col + 1, BLACK) > 20, "{col}");
    }
    let other = Pixels::of("  x  x");
    for col in [2, 5] {
        assert_eq!(pixels.unlike(0, col, BLACK), other.unlike(0, col, BLACK), "x is where it would be");
    }
}

#[test]
fn cursor_theme_and_scale_are_as_asked() {
    for (shape, inside, outside) in [("2", (5, 10), None), ("4", (5, 18), Some((5, 10))), ("6", (0, 10), Some((5, 10)))]
    {
        let subject = subject(4, 1, &format!("a\x1b[{shape} q"));
        let pixels = Pixels::draw(&subject, Look::default());
        assert_eq!(pixels.at(0, 1, inside.0, inside.1), GREY, "shape {shape}");
        if let Some((x, y)) = outside {
            assert_eq!(pixels.at(0, 1, x, y), BLACK, "shape {shape}");
        }
    }
    let hidden = subject(4, 1, "\x1b[?25l");
    assert_eq!(Pixels::draw(&hidden, Look::default()).unlike(0, 0, BLACK), 0);
    let light = Look { theme: Theme::Light, scale: 2 };
    let pixels = Pixels::draw(&Subject { cursor: None, ..subject(4, 1, " █") }, light);
    assert_eq!((pixels.map.width(), pixels.map.height()), (2 * 56, 2 * 36));
    assert_eq!((pixels.at(0, 0, 5, 5), pixels.at(0, 1, 5, 5)), ((255, 255, 255), (0x1c, 0x1c, 0x1c)));
}
