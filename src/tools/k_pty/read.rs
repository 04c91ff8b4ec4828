//! `read`: the newest raw output, or the screen as text.

use std::time::Duration;

use kpty_emulator::{Mode, Request as ScreenRead};
use kpty_guard::Masked;
use serde::Serialize;

use super::{SESSION_ID, Target};
use crate::error::Result;
use crate::tools::Tools;
use crate::tools::handler::{Content, Handler, Outcome, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Choice, Effect, Param};

pub(in crate::tools) static ACTION: Action = Action {
    name: "read",
    aliases: &[],
    summary: "The newest raw output",
    notes: "timeout_ms counts only while there is none.",
    example: r#"{"action":"read","session_id":"pty_0123abcd","mode":"tail"}"#,
    params: &[SESSION_ID, MAX_BYTES, TIMEOUT, MODE.param],
    effect: Effect::Wait,
    on_page: false,
    forwarded: true,
    shows_screen: true,
    begin: begin::<Read>,
};

const MODES: [(&str, Option<Mode>); 3] =
    [("raw", None), ("viewport", Some(Mode::Viewport)), ("tail", Some(Mode::Tail))];

const MAX_BYTES: Param = Param::integer("max_bytes", "bytes of raw output")
    .or_setting(|config| config.ring_bytes.min(4_096) as u64)
    .cap_setting(|config| config.ring_bytes as u64);
const TIMEOUT: Param =
    Param::timeout("timeout_ms", super::TIMEOUT_DOC).or_time(Duration::from_secs(5)).cap_time(Duration::from_secs(45));
const MODE: Choice<Option<Mode>> = Param::text("mode", "").one_of(&MODES).or("raw");
/// Lines of a rendered tail.
const TAIL_LINES: usize = 40;

struct Read {
    session: Target,
    max_bytes: usize,
    timeout: Duration,
    /// Rendered text instead of bytes.
    rendered: Option<Mode>,
}

#[derive(Serialize)]
struct ReadReply {
    output: Masked,
    bytes_read: usize,
    session_alive: bool,
}

impl Handler for Read {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let session = tools.target(params)?;
        let rendered = params.chosen(&MODE)?;
        if rendered.is_some() {
            tools.may_read_screens()?;
        }
        let max_bytes = params.count(&MAX_BYTES)?;
        Ok(Self { session, max_bytes, timeout: params.time(&TIMEOUT)?, rendered })
    }

    async fn run(self, _: &Tools) -> Outcome {
        let output = match self.rendered {
            None => self.session.read_raw(self.max_bytes, self.timeout).await?,
            Some(mode) => {
                self.session.first_output(self.timeout).await;
                let request = ScreenRead { max_lines: Some(TAIL_LINES), ..ScreenRead::new(mode) };
                self.session.view_within(&request, self.timeout).await?.answer.text
            }
        };
        Content::of(&ReadReply { bytes_read: output.len(), output, session_alive: self.session.exit().is_none() })
    }
}
