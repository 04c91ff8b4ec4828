//! `read`: the newest raw output, or the screen as text.

use std::time::Duration;

use kpty_emulator::{Mode, Request as ScreenRead};
use serde::Serialize;

use crate::error::Result;
use crate::tools::params::Params;
use crate::tools::{Target, Tools};

pub(in crate::tools) const PARAMS: &[&str] = &["session_id", "max_bytes", "timeout_ms", "mode"];

const MAX_BYTES: usize = 4_096;
const TIMEOUT: Duration = Duration::from_secs(5);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(45);
/// Lines of a rendered tail.
const TAIL_LINES: usize = 40;

const MODES: [(&str, Option<Mode>); 3] =
    [("raw", None), ("viewport", Some(Mode::Viewport)), ("tail", Some(Mode::Tail))];

pub(in crate::tools) struct Request {
    session: Target,
    max_bytes: usize,
    timeout: Duration,
    /// Rendered text instead of bytes.
    rendered: Option<Mode>,
}

#[derive(Serialize)]
pub(in crate::tools) struct Answer {
    output: String,
    bytes_read: usize,
    session_alive: bool,
}

impl Request {
    pub(in crate::tools) fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let session = tools.target(params)?;
        let rendered = params.choice("mode", &MODES)?.flatten();
        if rendered.is_some() {
            tools.may_read_screens()?;
        }
        let ring = tools.config.ring_bytes;
        let max_bytes = params.count("max_bytes", MAX_BYTES.min(ring), ring)?;
        let timeout = params.millis("timeout_ms", TIMEOUT, LONGEST_TIMEOUT)?;
        Ok(Self { session, max_bytes, timeout, rendered })
    }

    pub(in crate::tools) async fn run(self) -> Result<Answer> {
        let output = match self.rendered {
            None => self.session.read_raw(self.max_bytes, self.timeout).await?,
            Some(mode) => {
                self.session.first_output(self.timeout).await;
                let request = ScreenRead { max_lines: Some(TAIL_LINES), ..ScreenRead::new(mode) };
                self.session.view_within(&request, self.timeout).await?.answer.text
            }
        };
        Ok(Answer { bytes_read: output.len(), output, session_alive: self.session.exit().is_none() })
    }
}
