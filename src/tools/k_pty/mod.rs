//! The tool `k_pty`: terminal sessions. One file per action, and what several of its actions share.

pub(super) mod adopt;
pub(super) mod commands;
pub(super) mod create;
pub(super) mod evidence;
pub(super) mod help;
pub(super) mod kill;
pub(super) mod list;
mod owner;
pub(super) mod read;
pub(super) mod record;
pub(super) mod resize;
pub(super) mod resolve;
pub(super) mod screen;
pub(super) mod screenshot;
pub(super) mod search;
pub(super) mod send_keys;
pub(super) mod send_line;
pub(super) mod send_line_to_agent;
pub(super) mod talk;
pub(super) mod term_read;
pub(super) mod typing;
pub(super) mod wait;
