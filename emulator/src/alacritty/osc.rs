//! The meaning of operating system commands: title, links, colours.
//!
//! The clipboard (OSC 52) is left alone on purpose: nobody sits at this terminal.

use alacritty_terminal::vte::ansi::{Handler, Hyperlink, NamedColor, Rgb};

use super::machine::Machine;
use crate::palette;
use crate::parser::StringEnd;

impl Machine {
    pub(super) fn dispatch_osc(&mut self, payload: &[u8], end: StringEnd, length: usize) {
        let (command, rest) = split(payload);
        self.answers.asked(length);
        match command {
            b"0" | b"2" => self.titles.set(rest),
            b"4" => self.palette_colors(rest, end),
            b"8" => self.set_link(rest),
            b"10" => self.dynamic_colors(0, rest, end),
            b"11" => self.dynamic_colors(1, rest, end),
            b"12" => self.dynamic_colors(2, rest, end),
            b"104" => self.reset_palette(rest),
            b"110" => self.term.reset_color(NamedColor::Foreground as usize),
            b"111" => self.term.reset_color(NamedColor::Background as usize),
            b"112" => self.term.reset_color(NamedColor::Cursor as usize),
            _ => (),
        }
    }

    /// OSC 8: `params;address`; an empty address ends the link.
    fn set_link(&mut self, rest: &[u8]) {
        let (_params, uri) = split(rest);
        let uri = std::str::from_utf8(uri).ok().filter(|uri| !uri.is_empty());
        let number = uri.and_then(|uri| self.links.number(uri));
        // The cells carry the number; the id only keeps the engine from making one up.
        let link = number.map(|number| Hyperlink { id: Some(String::new()), uri: number.to_string() });
        if link.is_some() {
            self.note_mark();
        }
        self.term.set_hyperlink(link);
    }

    /// OSC 4: pairs of index and colour or question mark.
    fn palette_colors(&mut self, rest: &[u8], end: StringEnd) {
        let mut parts = rest.split(|&byte| byte == b';');
        let mut is_first = true;
        while let (Some(index), Some(spec)) = (parts.next(), parts.next()) {
            let Some(index) = palette::parse_index(index) else { continue };
            self.color(usize::from(index), &format!("4;{index}"), spec, end, is_first);
            is_first = false;
        }
    }

    /// OSC 10 to 12: text, background and cursor colour; further values go to the next of the three.
    fn dynamic_colors(&mut self, first: usize, rest: &[u8], end: StringEnd) {
        for (offset, spec) in rest.split(|&byte| byte == b';').enumerate() {
            let which = first + offset;
            if which > 2 {
                break;
            }
            let index = NamedColor::Foreground as usize + which;
            self.color(index, &(10 + which).to_string(), spec, end, offset == 0);
        }
    }

    /// Sets or reports one colour. The first of a sequence is paid for by the whole sequence, each further one has a
    /// budget of its own.
    fn color(&mut self, index: usize, name: &str, spec: &[u8], end: StringEnd, is_first: bool) {
        if spec == b"?" {
            let Rgb { r, g, b } = self.current_color(index);
            let end = match end {
                StringEnd::Bell => "\x07",
                StringEnd::StringTerminator => "\x1b\\",
            };
            let answer = format!("\x1b]{name};rgb:{r:02x}{r:02x}/{g:02x}{g:02x}/{b:02x}{b:02x}{end}");
            if is_first {
                self.answers.give(answer.as_bytes());
            } else {
                self.answers.give_item(answer.as_bytes());
            }
        } else if let Some((r, g, b)) = palette::parse_color(spec) {
            self.term.set_color(index, Rgb { r, g, b });
        }
    }

    fn current_color(&self, index: usize) -> Rgb {
        self.term.colors()[index].unwrap_or_else(|| {
            let (r, g, b) = match u8::try_from(index) {
                Ok(index) => palette::default_color(index),
                Err(_) if index == NamedColor::Background as usize => palette::BACKGROUND,
                Err(_) => palette::FOREGROUND,
            };
            Rgb { r, g, b }
        })
    }

    fn reset_palette(&mut self, rest: &[u8]) {
        if rest.is_empty() {
            (0..256).for_each(|index| self.term.reset_color(index));
            return;
        }
        for index in rest.split(|&byte| byte == b';').filter_map(palette::parse_index) {
            self.term.reset_color(usize::from(index));
        }
    }
}

/// What stands before and after the first semicolon.
fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b';', bytes) {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &[]),
    }
}
