//! Resolves styles to RGB colours.
//!
//! The dark theme is the palette that the emulator reports to programs (xterm's). The light theme has a white
//! background and sixteen named colours dark enough to be read on it; the colour cube and the greys are the same in
//! both.

use kpty_emulator::{Attributes, Color, Style, palette};

/// Red, green and blue.
pub(super) type Rgb = (u8, u8, u8);

/// Share of the text colour in dim text; the rest is the background colour.
const DIM: f32 = 0.6;

/// The sixteen named colours on a light background.
const LIGHT: [Rgb; 16] = [
    (0x1c, 0x1c, 0x1c),
    (0xb8, 0x10, 0x10),
    (0x0f, 0x72, 0x1e),
    (0x8a, 0x65, 0x00),
    (0x10, 0x40, 0xc0),
    (0x98, 0x1a, 0x98),
    (0x00, 0x72, 0x7a),
    (0x8c, 0x8c, 0x8c),
    (0x6a, 0x6a, 0x6a),
    (0xdc, 0x28, 0x28),
    (0x1c, 0x92, 0x30),
    (0xa8, 0x80, 0x00),
    (0x38, 0x68, 0xf0),
    (0xc0, 0x38, 0xc0),
    (0x00, 0x94, 0x9e),
    (0xa0, 0xa0, 0xa0),
];

/// Default colours, for cells without an explicit colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// Light text on black.
    #[default]
    Dark,
    /// Dark text on white.
    Light,
}

/// Foreground and background of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inks {
    pub(super) fg: Rgb,
    pub(super) bg: Rgb,
    pub(super) underline: Rgb,
}

impl Theme {
    pub(super) fn foreground(self) -> Rgb {
        match self {
            Self::Dark => palette::FOREGROUND,
            Self::Light => (0x1c, 0x1c, 0x1c),
        }
    }

    pub(super) fn background(self) -> Rgb {
        match self {
            Self::Dark => palette::BACKGROUND,
            Self::Light => (0xff, 0xff, 0xff),
        }
    }

    fn color(self, color: Color, default: Rgb) -> Rgb {
        match color {
            Color::Default => default,
            Color::Indexed(index @ 0..=15) if self == Self::Light => LIGHT[usize::from(index)],
            Color::Indexed(index) => palette::default_color(index),
            Color::Rgb(r, g, b) => (r, g, b),
        }
    }

    /// Resolves a style. Bold text keeps its colour and does not become bright.
    pub(super) fn inks(self, style: &Style) -> Inks {
        let mut fg = self.color(style.fg, self.foreground());
        let mut bg = self.color(style.bg, self.background());
        if style.attributes.contains(Attributes::INVERSE) {
            (fg, bg) = (bg, fg);
        }
        if style.attributes.contains(Attributes::DIM) {
            fg = blend(fg, bg, DIM);
        }
        let underline = style.underline_color.map_or(fg, |color| self.color(color, fg));
        Inks { fg, bg, underline }
    }
}

/// Blends two colours; `share` is the weight of `over`.
pub(super) fn blend(over: Rgb, under: Rgb, share: f32) -> Rgb {
    let mix = |over: u8, under: u8| (f32::from(over) * share + f32::from(under) * (1.0 - share)).round() as u8;
    (mix(over.0, under.0), mix(over.1, under.1), mix(over.2, under.2))
}
