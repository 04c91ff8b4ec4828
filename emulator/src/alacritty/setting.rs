//! Reports of settings (DECRQSS), made from the state of the terminal.
//!
//! An answer consists of numbers and of the final bytes of the setting that was asked for, which are constants here: nothing
//! of the question is repeated.

use std::fmt::Write;

use alacritty_terminal::vte::ansi::CursorShape;

use super::cells;
use super::edit::Protection;
use super::machine::Machine;
use crate::reply;
use crate::screen::{Color, Style};

impl Machine {
    /// DECRQSS. The setting is named by the end of the sequence that sets it.
    pub(super) fn report_setting(&mut self, setting: &[u8]) {
        let answer = match setting {
            b"m" => rendition(&cells::style(&self.cursor().template)),
            b" q" => format!("{} q", self.cursor_style_number()),
            b"r" => format!("{};{}r", self.region.start + 1, self.region.end),
            b"s" => format!("{};{}s", self.columns.start + 1, self.columns.end),
            b"*x" => format!("{}*x", if self.area_is_rectangle { 2 } else { 0 }),
            b"\"q" => format!("{}\"q", u8::from(self.protecting && self.protection == Protection::Selective)),
            _ => return self.answers.give(reply::SETTING_UNKNOWN),
        };
        self.answers.give_item(format!("\x1bP1$r{answer}\x1b\\").as_bytes());
    }

    /// The parameter of DECSCUSR that gives the cursor its present look.
    fn cursor_style_number(&self) -> u8 {
        let style = self.term.cursor_style();
        let blinking = match style.shape {
            CursorShape::Underline => 3,
            CursorShape::Beam => 5,
            _ => 1,
        };
        blinking + u8::from(!style.blinking)
    }
}

/// The sequence that gives text this style, from a reset on.
fn rendition(style: &Style) -> String {
    let mut text = String::from("0");
    for parameter in style.attributes.sgr() {
        text.push(';');
        text.push_str(parameter);
    }
    push_color(&mut text, 30, style.fg);
    push_color(&mut text, 40, style.bg);
    push_color(&mut text, 50, style.underline_color.unwrap_or_default());
    text.push('m');
    text
}

/// Appends the parameter for a colour; `base` is 30 for the text, 40 for the background, 50 for the underline.
fn push_color(text: &mut String, base: u8, color: Color) {
    let extended = base + 8;
    // Writing to a string does not fail.
    let _ = match color {
        Color::Default => Ok(()),
        Color::Indexed(index @ 0..=7) if base < 50 => write!(text, ";{}", base + index),
        Color::Indexed(index @ 8..=15) if base < 50 => write!(text, ";{}", base + 60 + index - 8),
        Color::Indexed(index) => write!(text, ";{extended}:5:{index}"),
        Color::Rgb(r, g, b) => write!(text, ";{extended}:2::{r}:{g}:{b}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::Attributes;

    #[test]
    fn the_longest_rendition_is_below_the_budget_of_an_answer() {
        let white = Color::Rgb(255, 255, 255);
        let every = Attributes::from_bits(u16::MAX);
        let style = Style { fg: white, bg: white, underline_color: Some(white), attributes: every };
        let answer = format!("\x1bP1$r{}\x1b\\", rendition(&style));
        assert!(answer.len() <= 96, "{}", answer.len());
    }
}
