//! The only place that writes to the terminal of whoever runs `kpty`.

use std::env::VarError;
use std::error::Error as _;
use std::io::{self, IsTerminal, Write};

use tracing_subscriber::EnvFilter;

use crate::config;

/// How a word is set apart for a person.
#[derive(Clone, Copy)]
enum Look {
    Bold,
    Red,
}

/// A text as a person's terminal shows it best; as it is for everything else, and where `NO_COLOR` is set.
fn with_look(text: &str, look: Look, out: &impl IsTerminal) -> String {
    if !out.is_terminal() || config::wants_no_color() {
        return text.to_owned();
    }
    let look = match look {
        Look::Bold => 1,
        Look::Red => 31,
    };
    format!("\x1b[{look}m{text}\x1b[0m")
}

/// Writes a line to standard output. A reader that went away (`| head`) ends the program quietly.
pub(super) fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")
}

/// Writes a text of any number of lines, none for an empty one.
pub(super) fn text(text: &str) -> io::Result<()> {
    match text.strip_suffix('\n').unwrap_or(text) {
        "" => Ok(()),
        text => line(text),
    }
}

/// Standard output is a terminal.
pub(super) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// A person reads standard error as it is written.
pub(super) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Writes bytes as they are.
pub(super) fn bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Tells what went wrong, or what there is to know besides the answer.
pub(super) fn problem(message: &str) {
    // Nobody is left to tell when standard error is closed.
    let mut out = io::stderr().lock();
    let _ = writeln!(out, "{} {message}", with_look("kpty:", Look::Red, &out));
}

/// A line on standard error that says what goes on, written again and again, and taken away when this is dropped.
pub(super) struct Passing {
    is_shown: bool,
}

impl Passing {
    /// None where no person looks on.
    pub(super) fn new() -> Option<Self> {
        io::stderr().is_terminal().then_some(Self { is_shown: false })
    }

    /// Says this instead of what was said before.
    pub(super) fn write(&mut self, text: &str) {
        self.is_shown = true;
        let _ = write!(io::stderr().lock(), "\r{text}\x1b[K");
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

/// Sends what the program logs to standard error: warnings, or what `RUST_LOG` asks for.
pub(super) fn log_problems() {
    let wanted = EnvFilter::try_from_default_env();
    let problem =
        wanted.as_ref().err().filter(|error| !matches!(error.source(), Some(cause) if cause.is::<VarError>()));
    let problem = problem.map(|error| format!("RUST_LOG is not understood, warnings are logged: {error}"));
    let filter = wanted.unwrap_or_else(|_| EnvFilter::new("warn"));
    // A second call changes nothing.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(false).try_init();
    if let Some(problem) = problem {
        tracing::warn!("{problem}");
    }
}

/// A text without anything that a terminal would obey.
pub(super) fn tame(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Writes rows with their columns aligned, below their names where there are any; the last column is as long as it is.
pub(super) fn table(names: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0).max(names.len());
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(names.get(column).map(|name| name.len())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let aligned = |row: &mut dyn Iterator<Item = &str>| {
        let cells: Vec<_> = row.zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    if !names.is_empty() {
        line(&with_look(&aligned(&mut names.iter().copied()), Look::Bold, &io::stdout()))?;
    }
    rows.iter().try_for_each(|row| line(&aligned(&mut row.iter().map(String::as_str))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_taken_out() {
        assert_eq!(tame("a\u{1b}[31mé\n"), "a\u{fffd}[31mé\u{fffd}");
    }
}
