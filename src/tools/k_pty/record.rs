//! `record`: start and stop a recording of a session, or save the session as a fixture for `kpty replay --check`.
//!
//! Files go to the folder `recordings` of the server's state and nowhere else.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use kpty_emulator::{EngineKind, Mode, Request as ScreenRead};
use kpty_guard::{Masked, Redactor};
use serde::Serialize;
use serde_json::json;

use super::SESSION_ID;
use crate::error::{Error, Result};
use crate::recording::fixture::{Fixture, trimmed};
use crate::recording::{DEFAULT_MAX_BYTES, End, MAX_BYTES_CAP, Options, Released, Status, make_folder};
use crate::terminal::local::Session;
use crate::tools::Tools;
use crate::tools::handler::{Content, Handler, Outcome, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Choice, Effect, Param};

pub(in crate::tools) static ACTION: Action = Action {
    name: "record",
    aliases: &[],
    summary: "Record a session as an asciicast in the server's folder",
    notes: "save_fixture saves a folder for kpty replay --check.",
    example: r#"{"action":"record","session_id":"pty_0123abcd","op":"start"}"#,
    params: &[SESSION_ID, OP.param, NAME, RAW, INPUT, MAX_BYTES],
    effect: Effect::Change,
    on_page: false,
    forwarded: false,
    shows_screen: false,
    begin: begin::<Record>,
};

const OP: Choice<Op> = Param::text("op", "").one_of(&OPS).required();
const NAME: Param = Param::text("name", "name of the file or folder");
const RAW: Param = Param::flag("raw", false, "secrets stay");
const INPUT: Param = Param::flag("input", false, "what is typed, too");
const MAX_BYTES: Param = Param::integer("max_bytes", "bytes of the file").or(DEFAULT_MAX_BYTES).cap(MAX_BYTES_CAP);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Op {
    Start,
    Stop,
    Status,
    SaveFixture,
}

const OPS: [(&str, Op); 5] = [
    ("start", Op::Start),
    ("stop", Op::Stop),
    ("status", Op::Status),
    ("save_fixture", Op::SaveFixture),
    ("fixture", Op::SaveFixture),
];

struct Record {
    session: Session,
    op: Op,
    name: Option<String>,
    raw: bool,
    input: bool,
    max_bytes: u64,
    tools: Tools,
}

#[derive(Debug, Default, Serialize)]
struct RecordReply {
    recording: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<Masked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redacted: Option<bool>,
    /// Where a fixture comes from: the whole output, the recording, or only the screen.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'static str>,
    /// The fixture shows what the session shows now.
    #[serde(skip_serializing_if = "Option::is_none")]
    same_as_live: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<Masked>,
}

impl RecordReply {
    fn of(status: Status, redactor: &Redactor) -> Self {
        let note = match &status.ended {
            Some(End::Disk(problem)) => Some(redactor.mask_str(problem)),
            _ => None,
        };
        Self {
            recording: status.ended.is_none(),
            file: Some(redactor.mask_str(&status.path.to_string_lossy())),
            bytes: Some(status.bytes),
            ended_by: status.ended.as_ref().map(End::as_str),
            note,
            ..Self::default()
        }
    }
}

impl Handler for Record {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        // What is written can be read again.
        tools.may_read_screens()?;
        let session = tools.session(params)?;
        let op = params.chosen(&OP)?;
        Ok(Self {
            session,
            op,
            name: params.text(&NAME)?.map(str::to_owned),
            raw: params.flag(&RAW)?,
            input: params.flag(&INPUT)?,
            max_bytes: params.count(&MAX_BYTES)? as u64,
            tools: tools.clone(),
        })
    }

    async fn run(self, _: &Tools) -> Outcome {
        // Writing files blocks its thread.
        let done = tokio::task::spawn_blocking(move || match self.op {
            Op::Start => self.start(),
            Op::Stop => self.stop(),
            Op::Status => {
                let status = self.tools.recordings().status(self.session.id());
                Ok(status.map(|status| self.reply(status)).unwrap_or_default())
            }
            Op::SaveFixture => self.save_fixture(),
        });
        let done = done.await.unwrap_or_else(|error| Err(Error::Server(format!("the recording failed: {error}"))));
        Content::of(&done?)
    }
}

impl Record {
    /// The name that was given, or one of the session and the time.
    fn name(&self) -> String {
        let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        self.name.clone().unwrap_or_else(|| format!("{}-{millis}", self.session.id()))
    }

    fn reply(&self, status: Status) -> RecordReply {
        RecordReply::of(status, &self.session.redactor())
    }

    fn start(&self) -> Result<RecordReply> {
        let recordings = self.tools.recordings();
        let id = self.session.id();
        if recordings.status(id).is_some_and(|status| status.ended.is_none()) {
            return Err(Error::invalid(OP.param.name, "the session is being recorded already; stop that first"));
        }
        recordings.check_running_limit()?;
        let recorder = self.session.record(Options {
            path: recordings.new_path(&self.name(), ".cast")?,
            redactor: (!self.raw).then(|| self.session.redactor()),
            input: self.input,
            max_bytes: self.max_bytes,
            title: self.session.with_owner(|owner| owner.label.clone()),
        })?;
        let status = recorder.status();
        recordings.keep(id.clone(), recorder);
        Ok(RecordReply { redacted: Some(!self.raw), ..self.reply(status) })
    }

    fn stop(&self) -> Result<RecordReply> {
        let recorder = self.tools.recordings().take(self.session.id());
        let recorder = recorder.ok_or_else(|| Error::invalid(OP.param.name, "the session is not being recorded"))?;
        Ok(self.reply(recorder.join()))
    }

    /// A folder that `kpty replay --check` understands.
    fn save_fixture(&self) -> Result<RecordReply> {
        let recordings = self.tools.recordings();
        let name = self.name();
        let folder = recordings.new_path(&name, "")?;
        make_folder(&folder).map_err(|cause| Error::file("create", &folder, cause))?;
        let write = |ending: &str, bytes: &[u8]| write(&folder.join(format!("{name}.{ending}")), bytes);
        let redactor = (!self.raw).then(|| self.session.redactor());
        // A recording that shows everything is nothing to make a masked fixture of.
        let recording = recordings.status(self.session.id()).filter(|status| self.raw || status.is_masked);
        let (source, note) = if let Some(whole) = self.session.whole_output() {
            let size = whole.size;
            write("bytes", whole.release(redactor.as_deref()).as_bytes())?;
            write("json", json!({ "cols": size.cols(), "rows": size.rows() }).to_string().as_bytes())?;
            ("output", None)
        } else if let Some(Status { path, .. }) = recording {
            let cast = fs::read(&path).map_err(|cause| Error::file("read", &path, cause))?;
            // A line may be half written at this moment.
            let whole = cast.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            write("cast", &cast[..whole])?;
            ("recording", Some("the session's first output is no longer kept: this begins where its recording does"))
        } else {
            let (painted, size) = match self.raw {
                true => (Released::raw_screen(&self.session.screen()), self.session.size()),
                false => (Released::screen(&self.session.masked_screen()), self.session.size()),
            };
            write("bytes", painted.as_bytes())?;
            write("json", json!({ "cols": size.cols(), "rows": size.rows() }).to_string().as_bytes())?;
            let note = "the session's first output is no longer kept, or its window was resized: this has only the \
                        screen. Start a recording before, and the fixture has everything from there on";
            ("screen", Some(note))
        };
        let mut same_as_live = false;
        for fixture in Fixture::load_all(&folder)? {
            fixture.update(EngineKind::Alacritty)?;
            let live = ScreenRead { merge_wrapped: false, ..ScreenRead::new(Mode::Viewport) };
            let live = trimmed(self.session.read(&live).lines());
            same_as_live = fixture.views(EngineKind::Alacritty).first().is_some_and(|(_, lines)| *lines == live);
        }
        Ok(RecordReply {
            recording: recordings.status(self.session.id()).is_some_and(|status| status.ended.is_none()),
            file: Some(self.session.redactor().mask_str(&folder.to_string_lossy())),
            redacted: Some(!self.raw),
            source: Some(source),
            same_as_live: Some(same_as_live),
            note: note.map(Masked::literal),
            ..RecordReply::default()
        })
    }
}

/// A new file; the folder around it is its owner's alone.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(|cause| Error::file("write", path, cause))
}
