//! `resize`: changes the size of a session's window.

use kpty_emulator::Size;
use serde::Serialize;

use super::SESSION_ID;
use super::create::{COLS, ROWS};
use crate::error::{Error, Result};
use crate::registry::Located;
use crate::tools::Tools;
use crate::tools::handler::{Content, Handler, Outcome, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Effect, Param, Preset};

pub(in crate::tools) static ACTION: Action = Action {
    name: "resize",
    aliases: &[],
    summary: "Change the size of a session's window",
    notes: "",
    example: r#"{"action":"resize","session_id":"pty_0123abcd","cols":120,"rows":40}"#,
    params: &[SESSION_ID, NEW_COLS, NEW_ROWS],
    effect: Effect::Change,
    on_page: true,
    forwarded: false,
    shows_screen: false,
    begin: begin::<Resize>,
};

const NEW_COLS: Param = Param { preset: Preset::None, ..COLS.required() };
const NEW_ROWS: Param = Param { preset: Preset::None, ..ROWS.required() };

struct Resize {
    session: Located,
    size: Size,
}

#[derive(Serialize)]
struct ResizeReply {
    cols: u16,
    rows: u16,
}

impl Handler for Resize {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let session = tools.located(params)?;
        let cols = params.number(&NEW_COLS)?.filter(|&cols| cols > 0);
        let rows = params.number(&NEW_ROWS)?.filter(|&rows| rows > 0);
        let (Some(cols), Some(rows)) = (cols, rows) else { return Err(Error::MissingParam("cols and rows")) };
        Ok(Self { session, size: Size::new(cols as u16, rows as u16)? })
    }

    async fn run(self, tools: &Tools) -> Outcome {
        if let Located::Local(session) = &self.session {
            tools.registry.free_memory_for_window(session, self.size)?;
        }
        tools.target_of(self.session).resize(self.size)?;
        Content::of(&ResizeReply { cols: self.size.cols(), rows: self.size.rows() })
    }
}
