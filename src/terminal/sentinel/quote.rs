//! A command as quoted text inside a typed form, in lines that a terminal takes.

use std::fmt::Write as _;

use super::Form;

/// The longest line typed, in bytes. A terminal in canonical mode silently drops what exceeds 4,095, and the shortened
/// command would run.
pub(super) const LINE_LIMIT_BYTES: usize = 1_000;

/// A whole form: everything up to and into an open quote, what is quoted, and what follows.
pub(super) fn typed(form: Form, start: String, quoted: &[&str], end: &str) -> String {
    let mut line = Line { text: start, len: 0 };
    quoted.iter().for_each(|text| line.quoted(form, text));
    line.close(form, end);
    line.text
}

impl Form {
    /// How one character stands in a quoted text that is open before and after it.
    fn escape(self, c: char, out: &mut String) {
        match (self, c) {
            (_, '\n') => out.push('\n'),
            // Not possible in any of these shells, and nothing a terminal would pass on.
            (_, '\0') => {}
            (Self::Posix | Self::Bash | Self::Mksh | Self::Zsh, '\'') => out.push_str(r"'\''"),
            (Self::Fish, '\'' | '\\') => out.extend(['\\', c]),
            (Self::PowerShell, '\'') => out.push_str("''"),
            (_, c) if c.is_control() => self.escape_control(c, out),
            _ => out.push(c),
        }
    }

    fn escape_control(self, c: char, out: &mut String) {
        // Writing to a String cannot fail.
        let _ = match self {
            Self::Bash | Self::Mksh => {
                out.push_str("'$'");
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    let _ = write!(out, r"\{byte:03o}");
                }
                write!(out, "''")
            }
            Self::Posix => {
                out.push_str(r#"'"$(\command printf '"#);
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    let _ = write!(out, r"\{byte:03o}");
                }
                write!(out, r#"')"'"#)
            }
            Self::Zsh => write!(out, r"'$'\u{:04x}''", u32::from(c)),
            Self::Fish => write!(out, r"'\u{:04x}'", u32::from(c)),
            Self::PowerShell => write!(out, "'+[char]{}+'", u32::from(c)),
        };
    }

    /// Closes the quote, goes on in the next line and opens it again, without adding to the text.
    pub(super) fn line_break(self) -> &'static str {
        match self {
            Self::Posix | Self::Bash | Self::Mksh | Self::Zsh | Self::Fish => "'\\\n'",
            Self::PowerShell => "'+\n'",
        }
    }
}

/// Typed text under construction and the length of its last line.
struct Line {
    text: String,
    len: usize,
}

impl Line {
    fn quoted(&mut self, form: Form, text: &str) {
        let mut piece = String::new();
        for c in text.chars() {
            piece.clear();
            form.escape(c, &mut piece);
            // Room for the break itself.
            if c != '\n' && self.len + piece.len() + 4 > LINE_LIMIT_BYTES {
                self.text.push_str(form.line_break());
                self.len = 1;
            }
            self.text.push_str(&piece);
            self.len = if c == '\n' { 0 } else { self.len + piece.len() };
        }
    }

    fn close(&mut self, form: Form, end: &str) {
        if self.len + 1 + end.len() > LINE_LIMIT_BYTES {
            self.text.push_str(form.line_break());
        }
        self.text.push('\'');
        self.text.push_str(end);
    }
}
