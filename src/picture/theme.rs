//! Colours: what a style comes to in red, green and blue.
//!
//! Dark is the palette that the emulator tells programs about (xterm's). Light has a white ground and the sixteen named
//! colours dark enough to be read on it; the cube and the greys are the same in both.

use kpty_emulator::{Attributes, Color, Style, palette};

/// A colour as it is drawn.
pub(super) type Rgb = (u8, u8, u8);

/// How much of a dim text's colour is left; the rest is its background's.
const DIM: f32 = 0.6;

/// The sixteen named colours on a light ground.
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

/// Which colours a picture has where the program named none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// Light text on black.
    #[default]
    Dark,
    /// Dark text on white.
    Light,
}

/// The colours of one cell.
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

    /// What a style looks like. Bold stays bold and does not become bright.
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

/// So much of one colour over another.
pub(super) fn blend(over: Rgb, under: Rgb, share: f32) -> Rgb {
    let mix = |over: u8, under: u8| (f32::from(over) * share + f32::from(under) * (1.0 - share)).round() as u8;
    (mix(over.0, under.0), mix(over.1, under.1), mix(over.2, under.2))
}
