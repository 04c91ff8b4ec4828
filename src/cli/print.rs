//! The only place that writes to the terminal of whoever runs `kpty`.

use std::io::{self, Write};

/// Writes a line to standard output. A reader that went away (`| head`) ends the program quietly.
pub(super) fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")
}

/// Tells what went wrong.
pub(super) fn problem(message: &str) {
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(io::stderr().lock(), "kpty: {message}");
}
