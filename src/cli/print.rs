//! The only place that writes to the terminal of whoever runs `kpty`.

use std::io::{self, Write};

use tracing_subscriber::EnvFilter;

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

/// Tells what went wrong, or what there is to know besides the answer.
pub(super) fn problem(message: &str) {
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(io::stderr().lock(), "kpty: {message}");
}

/// Sends what the program logs to standard error: warnings, or what `RUST_LOG` asks for.
pub(super) fn log_problems() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    // A second call changes nothing.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(false).try_init();
}

/// A text without anything that a terminal would obey.
pub(super) fn tame(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Writes rows with their columns aligned; the last column is as long as it is.
pub(super) fn table(rows: &[Vec<String>]) -> io::Result<()> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        line(cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_taken_out() {
        assert_eq!(tame("a\u{1b}[31mé\n"), "a\u{fffd}[31mé\u{fffd}");
    }
}
