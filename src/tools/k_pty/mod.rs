//! The tool `k_pty`: terminal sessions. One file per action, and what several of its actions share.

mod adopt;
mod commands;
mod create;
mod disown;
mod evidence;
mod help;
mod kill;
mod list;
mod owner;
mod read;
mod record;
mod resize;
mod resolve;
pub(super) mod screen;
mod screenshot;
mod search;
mod send_keys;
mod send_line;
mod send_line_to_agent;
mod talk;
mod target;
pub(super) mod term_read;
pub(super) mod typing;
mod wait;
mod write;

use super::Tools;
use super::handler::Context;
use super::params::ACTION;
use super::spec::{Annotations, Format, Selector, Tool, View};
use target::{SESSION_ID, Target, session_id};

/// Terminals.
pub(super) static TOOL: Tool = Tool {
    name: "k_pty",
    title: "Terminal",
    description: "\
Real terminals for agents: start shells and programs, run commands, read the screen, press keys.
Start with action=create (gives session_id), then action=talk with command: it runs one shell command, waits for its \
real end and returns output and exit_code. After PTY_TIMEOUT the command goes on: wait {command_id}, or send_keys \
\"Ctrl-C\". For programs that take over the screen or ask questions: term_read shows the screen, send_keys presses \
keys, send_line types a line, wait waits for text, quiet, the prompt or the exit. search and commands look back; kill \
ends a session.
Answers have ok; failures have error_code, message and details that say what to do next. action=help explains \
everything.",
    annotations: Annotations::UNLIMITED,
    selector: Selector::Param(ACTION),
    format: Format::Json,
    view: Some(View {
        name: "k_pty_view",
        title: "Terminal, looking only",
        description: "\
Look at the terminals of k_pty without changing anything: list shows the sessions, term_read the screen or what \
changed since a marker, read the raw output, commands the last commands and their output, search finds text in history \
and screen, wait waits for text, quiet, the prompt, a command's end or the exit. Types nothing, starts nothing, ends \
nothing; for that use k_pty. Answers have ok; failures have error_code and message.",
    }),
    actions: &[
        &help::ACTION,
        &list::ACTION,
        &create::ACTION,
        &send_line::ACTION,
        &send_keys::ACTION,
        &talk::ACTION,
        &wait::ACTION,
        &read::ACTION,
        &term_read::ACTION,
        &screenshot::ACTION,
        &search::ACTION,
        &commands::ACTION,
        &evidence::ACTION,
        &record::ACTION,
        &resize::ACTION,
        &kill::ACTION,
        &resolve::ACTION,
        &send_line_to_agent::ACTION,
        &adopt::ACTION,
        &disown::ACTION,
        &write::ACTION,
    ],
};

/// Sessions are the state that the whole server is built around.
impl Context for Tools {
    fn of(tools: &Tools) -> &Self {
        tools
    }
}

// What parameters of the same name mean in several actions.
const MAX_CHARS_DOC: &str = "characters in the answer";
const TIMEOUT_DOC: &str = "how long to wait; 0 does not wait";
const FROM_LINE_DOC: &str = "the first line wanted";
const UNTIL_LINE_DOC: &str = "the line to stop before";
const MARKER_DOC: &str = "only what changed since this marker";
