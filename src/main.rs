//! The program `kpty`: arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    kpty::cli::run()
}
