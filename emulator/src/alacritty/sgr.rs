//! Select graphic rendition: the parameters of `CSI … m` as the engine's attributes.

use alacritty_terminal::vte::ansi::{Attr, Color, NamedColor, Rgb};

use crate::parser::{Groups, Sequence};

const NAMED: [NamedColor; 16] = [
    NamedColor::Black,
    NamedColor::Red,
    NamedColor::Green,
    NamedColor::Yellow,
    NamedColor::Blue,
    NamedColor::Magenta,
    NamedColor::Cyan,
    NamedColor::White,
    NamedColor::BrightBlack,
    NamedColor::BrightRed,
    NamedColor::BrightGreen,
    NamedColor::BrightYellow,
    NamedColor::BrightBlue,
    NamedColor::BrightMagenta,
    NamedColor::BrightCyan,
    NamedColor::BrightWhite,
];

/// Calls `apply` for each attribute of the sequence, in order.
pub(super) fn each_attribute(sequence: &Sequence, apply: impl FnMut(Attr)) {
    each_attribute_from(sequence, 0, apply);
}

/// The same for a sequence whose first parameters mean something else.
pub(super) fn each_attribute_from(sequence: &Sequence, first: usize, mut apply: impl FnMut(Attr)) {
    let mut groups = sequence.groups();
    for _ in 0..first {
        groups.next();
    }
    while let Some(group) = groups.next() {
        if let Some(attribute) = attribute(group, &mut groups) {
            apply(attribute);
        }
    }
}

fn attribute(group: &[u16], rest: &mut Groups<'_>) -> Option<Attr> {
    let attribute = match *group {
        [0] => Attr::Reset,
        [1] => Attr::Bold,
        [2] => Attr::Dim,
        [3] => Attr::Italic,
        [4, 0] | [24] => Attr::CancelUnderline,
        [4, 2] | [21] => Attr::DoubleUnderline,
        [4, 3] => Attr::Undercurl,
        [4, 4] => Attr::DottedUnderline,
        [4, 5] => Attr::DashedUnderline,
        [4, ..] => Attr::Underline,
        [5] => Attr::BlinkSlow,
        [6] => Attr::BlinkFast,
        [7] => Attr::Reverse,
        [8] => Attr::Hidden,
        [9] => Attr::Strike,
        [22] => Attr::CancelBoldDim,
        [23] => Attr::CancelItalic,
        [25] => Attr::CancelBlink,
        [27] => Attr::CancelReverse,
        [28] => Attr::CancelHidden,
        [29] => Attr::CancelStrike,
        [code @ 30..=37] => Attr::Foreground(named(code - 30)),
        [code @ 90..=97] => Attr::Foreground(named(code - 90 + 8)),
        [code @ 40..=47] => Attr::Background(named(code - 40)),
        [code @ 100..=107] => Attr::Background(named(code - 100 + 8)),
        [38, ref spec @ ..] => Attr::Foreground(color(spec, rest)?),
        [48, ref spec @ ..] => Attr::Background(color(spec, rest)?),
        [58, ref spec @ ..] => Attr::UnderlineColor(Some(color(spec, rest)?)),
        [39] => Attr::Foreground(Color::Named(NamedColor::Foreground)),
        [49] => Attr::Background(Color::Named(NamedColor::Background)),
        [59] => Attr::UnderlineColor(None),
        _ => return None,
    };
    Some(attribute)
}

fn named(index: u16) -> Color {
    Color::Named(NAMED[usize::from(index)])
}

/// A colour in the colon form (`38:2::r:g:b`, `38:5:n`), or in the parameters that follow (`38;2;r;g;b`).
fn color(spec: &[u16], rest: &mut Groups<'_>) -> Option<Color> {
    match *spec {
        [] => {
            let mut next = || rest.next().map(|group| group[0]);
            match next()? {
                2 => rgb(next()?, next()?, next()?),
                5 => indexed(next()?),
                _ => None,
            }
        }
        [2, r, g, b] => rgb(r, g, b),
        [2, _space, r, g, b, ..] => rgb(r, g, b),
        [5, index, ..] => indexed(index),
        _ => None,
    }
}

fn rgb(r: u16, g: u16, b: u16) -> Option<Color> {
    let byte = |value: u16| u8::try_from(value).ok();
    Some(Color::Spec(Rgb { r: byte(r)?, g: byte(g)?, b: byte(b)? }))
}

fn indexed(index: u16) -> Option<Color> {
    u8::try_from(index).ok().map(Color::Indexed)
}
