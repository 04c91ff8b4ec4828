//! The 256 colours a terminal has before a program changes them, and the ways to write a colour.

/// The text colour of a terminal nobody configured.
pub const FOREGROUND: (u8, u8, u8) = (0xe5, 0xe5, 0xe5);
/// The background of a terminal nobody configured.
pub const BACKGROUND: (u8, u8, u8) = (0, 0, 0);

/// The sixteen named colours, as xterm has them.
const NAMED: [(u8, u8, u8); 16] = [
    (0x00, 0x00, 0x00),
    (0xcd, 0x00, 0x00),
    (0x00, 0xcd, 0x00),
    (0xcd, 0xcd, 0x00),
    (0x00, 0x00, 0xee),
    (0xcd, 0x00, 0xcd),
    (0x00, 0xcd, 0xcd),
    (0xe5, 0xe5, 0xe5),
    (0x7f, 0x7f, 0x7f),
    (0xff, 0x00, 0x00),
    (0x00, 0xff, 0x00),
    (0xff, 0xff, 0x00),
    (0x5c, 0x5c, 0xff),
    (0xff, 0x00, 0xff),
    (0x00, 0xff, 0xff),
    (0xff, 0xff, 0xff),
];

/// Red, green, blue of a palette entry: 16 named, a 6×6×6 cube, 24 greys.
pub fn default_color(index: u8) -> (u8, u8, u8) {
    match index {
        0..=15 => NAMED[usize::from(index)],
        16..=231 => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let cube = index - 16;
            (level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        232..=255 => {
            let grey = 8 + 10 * (index - 232);
            (grey, grey, grey)
        }
    }
}

/// A palette index as text.
pub(crate) fn parse_index(text: &[u8]) -> Option<u8> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A colour written as `rgb:r/g/b` or `#rgb`, with one to four hexadecimal digits each. In the second form the digits are
/// the leading ones of a longer number, as in X: `#fff` is not quite white.
pub(crate) fn parse_color(spec: &[u8]) -> Option<(u8, u8, u8)> {
    let spec = std::str::from_utf8(spec).ok()?;
    if let Some(spec) = spec.strip_prefix("rgb:") {
        let mut parts = spec.split('/').map(scaled);
        let color = (parts.next()??, parts.next()??, parts.next()??);
        return parts.next().is_none().then_some(color);
    }
    let digits = spec.strip_prefix('#')?;
    let each = digits.len() / 3;
    if !digits.is_ascii() || each == 0 || each > 4 || digits.len() % 3 != 0 {
        return None;
    }
    Some((leading(&digits[..each])?, leading(&digits[each..2 * each])?, leading(&digits[2 * each..])?))
}

/// One to four hexadecimal digits as a number.
fn hexadecimal(digits: &str) -> Option<u32> {
    if !(1..=4).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

/// One to four hexadecimal digits, the first two of which make a byte.
fn leading(digits: &str) -> Option<u8> {
    let value = hexadecimal(digits)? << (4 * (4 - digits.len()));
    u8::try_from(value >> 8).ok()
}

/// One to four hexadecimal digits, scaled to a byte.
fn scaled(digits: &str) -> Option<u8> {
    let value = hexadecimal(digits)?;
    let max = (1 << (4 * digits.len())) - 1;
    u8::try_from(255 * value / max).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read_in_every_form() {
        for (spec, expected) in [
            ("rgb:ff/80/00", Some((255, 128, 0))),
            ("rgb:f/8/0", Some((255, 136, 0))),
            ("rgb:ffff/8080/0000", Some((255, 128, 0))),
            ("#ff8000", Some((255, 128, 0))),
            ("#f80", Some((240, 128, 0))),
            ("#ff0800080", Some((255, 128, 8))),
            ("#ff0080000800", Some((255, 128, 8))),
            ("rgb:ff/80", None),
            ("rgb:ff/80/00/00", None),
            ("rgb:ff/80/zz", None),
            ("#ff800", None),
            ("#é", None),
            ("red", None),
        ] {
            assert_eq!(parse_color(spec.as_bytes()), expected, "{spec}");
        }
    }

    #[test]
    fn the_palette_has_a_cube_and_greys() {
        assert_eq!(default_color(9), (0xff, 0, 0));
        assert_eq!(default_color(16), (0, 0, 0));
        assert_eq!(default_color(231), (255, 255, 255));
        assert_eq!(default_color(244), (128, 128, 128));
    }
}
