//! `write`: no longer offered. Text that was written without Enter went around the command policy.

use super::SESSION_ID;
use super::send_line::DATA;
use crate::error::{Error, Result};
use crate::tools::Tools;
use crate::tools::handler::{Handler, Outcome, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Effect};

pub(in crate::tools) static ACTION: Action = Action {
    name: "write",
    aliases: &[],
    summary: "Deprecated: use send_line, talk or send_keys",
    notes: "",
    example: r#"{"action":"write","session_id":"pty_0123abcd","data":"y"}"#,
    params: &[SESSION_ID, DATA],
    effect: Effect::Type,
    on_page: false,
    forwarded: false,
    shows_screen: false,
    begin: begin::<Write>,
};

/// What to use instead.
const ALTERNATIVES: [&str; 3] = [
    "send_line: types a line and presses Enter",
    "talk: runs a command and returns its output and exit code",
    "send_keys: keys and text without Enter",
];

struct Write;

impl Handler for Write {
    type Context = Tools;

    fn read(_: &mut Params<'_>, _: &Tools) -> Result<Self> {
        Err(Error::Deprecated { alternatives: &ALTERNATIVES })
    }

    async fn run(self, _: &Tools) -> Outcome {
        Err(Error::Deprecated { alternatives: &ALTERNATIVES }.into())
    }
}
