//! `resize`: another window for a session.

use kpty_emulator::{MAX_COLS, MAX_ROWS, Size};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::tools::params::Params;
use crate::tools::{Target, Tools};

pub(in crate::tools) const PARAMS: &[&str] = &["session_id", "cols", "rows"];

pub(in crate::tools) struct Request {
    session: Target,
    size: Size,
}

#[derive(Serialize)]
pub(in crate::tools) struct Answer {
    cols: u16,
    rows: u16,
}

impl Request {
    pub(in crate::tools) fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let session = tools.target(params)?;
        let cols = params.capped("cols", u64::from(MAX_COLS))?.filter(|&cols| cols > 0);
        let rows = params.capped("rows", u64::from(MAX_ROWS))?.filter(|&rows| rows > 0);
        let (Some(cols), Some(rows)) = (cols, rows) else { return Err(Error::MissingParam("cols and rows")) };
        Ok(Self { session, size: Size::new(cols as u16, rows as u16)? })
    }

    pub(in crate::tools) fn run(self, tools: &Tools) -> Result<Answer> {
        if let Ok(session) = tools.registry.get(self.session.id()) {
            tools.registry.free_memory_for_window(&session, self.size)?;
        }
        self.session.resize(self.size)?;
        Ok(Answer { cols: self.size.cols(), rows: self.size.rows() })
    }
}
