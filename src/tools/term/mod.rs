//! The tools `term_run`, `term_type`, `term_look`, `term_wait` and `term_sessions`: terminals in few words, for agents.
//!
//! They add nothing to what `k_pty` can do. Each call becomes actions of `k_pty`, which are guarded, masked, recorded and
//! forwarded as always, and their replies become one text: a short line of facts, then what the screen shows. What goes
//! without saying is not said.

mod actions;
mod callers;
mod condition;
mod digest;
mod errors;
mod fresh;
mod header;
mod look;
mod outcome;
mod run;
mod selected;
mod session;
mod sessions;
mod typing;
mod wait;

use serde_json::Value;

pub(super) use callers::Callers;

use super::audit::Shown;
use super::envelope::Reply;
use super::handler::TextReply;
use super::spec::{Annotations, Format, Param, Recorded, Selector, Tool};

/// Runs a command.
pub(super) static RUN: Tool = Tool {
    name: "term_run",
    title: "Run a command",
    description: "Run a shell command in a terminal that stays; returns exit code and output when it ends, asks, or takes \
                  the screen.",
    actions: &[&run::ACTION],
    ..TOOL
};

/// Types.
pub(super) static TYPE: Tool = Tool {
    name: "term_type",
    title: "Type",
    description: "Type into the program that runs there; returns what changed.",
    actions: &[&typing::ACTION],
    ..TOOL
};

/// Looks.
pub(super) static LOOK: Tool = Tool {
    name: "term_look",
    title: "Look",
    description: "What is new since your last look, the screen, a command's output, or lines that match.",
    annotations: Annotations::READ_ONLY,
    actions: &[&look::ACTION],
    ..TOOL
};

/// Waits.
pub(super) static WAIT: Tool = Tool {
    name: "term_wait",
    title: "Wait",
    description: "Wait for the first of these; without any, for the command that runs to end or ask.",
    annotations: Annotations::READ_ONLY,
    actions: &[&wait::ACTION],
    ..TOOL
};

/// Lists, opens and closes sessions.
pub(super) static SESSIONS: Tool = Tool {
    name: "term_sessions",
    title: "Terminals",
    description: "List, open or close terminals.",
    selector: Selector::Param(sessions::OP),
    actions: &[&sessions::LIST, &sessions::OPEN, &sessions::CLOSE],
    ..TOOL
};

/// What all of them have in common.
const TOOL: Tool = Tool {
    name: "",
    title: "",
    description: "",
    annotations: Annotations::UNLIMITED,
    selector: Selector::Only,
    format: Format::Text,
    view: None,
    actions: &[],
};

/// Which session.
const SESSION: Param = Param::text("session", "id or label; default: your own shell").recorded(Recorded::Omitted);

/// The text of a call that is over: that of the action, or of its failure, and what was ignored.
pub(super) fn finished(reply: &mut Reply, shown: Shown) -> TextReply {
    let TextReply { text, image, is_error } = match shown {
        Shown::Text(text) => text,
        Shown::Nothing | Shown::Screen(_) => {
            TextReply { is_error: reply.is_error, ..actions::shown(errors::text(&reply.body)) }
        }
    };
    reply.is_error = is_error;
    let mut text = text.into_string();
    if let Some(Value::Array(names)) = reply.body.get("ignored_params") {
        let names: Vec<_> = names.iter().filter_map(Value::as_str).collect();
        header::add_line(&mut text, &format!("[not a parameter: {}]", names.join(", ")));
    }
    TextReply { image, is_error, ..actions::shown(text) }
}
