//! What `tools/list` says about the one tool.

use serde_json::{Value, json};

use crate::tools::input_schema;

/// The tool's name.
pub(super) const TOOL: &str = "k_pty";

const DESCRIPTION: &str = "\
Real terminals for agents: start shells and programs, run commands, read the screen, press keys.
Start with action=create (gives session_id), then action=talk with command: it runs one shell command, waits for its \
real end and returns output and exit_code. After PTY_TIMEOUT the command goes on: wait {command_id}, or send_keys \
\"Ctrl-C\". For programs that take over the screen or ask questions: term_read shows the screen, send_keys presses \
keys, send_line types a line, wait waits for text, quiet, the prompt or the exit. search and commands look back; kill \
ends a session.
Answers have ok; failures have error_code, message and details that say what to do next. action=help explains \
everything.";

/// The tool as `tools/list` shows it: flat, so that every client and model can read it.
pub(super) fn tool() -> Value {
    json!({ "name": TOOL, "description": DESCRIPTION, "inputSchema": input_schema() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_fits_into_a_kilobyte() {
        assert!(DESCRIPTION.len() < 1024, "{} bytes", DESCRIPTION.len());
    }
}
