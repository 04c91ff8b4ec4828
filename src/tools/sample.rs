//! A tool for tests: two actions in one file, and a line in the catalogue. Everything else has to follow from that.

use serde::Serialize;

use super::Tools;
use super::handler::{Content, Context, Handler, Outcome, begin};
use super::params::{ACTION, Params};
use super::spec::{Action, Annotations, Choice, Effect, Format, Param, Recorded, Selector, Tool, View};
use crate::error::Result;
use crate::traffic::Emitter;

pub(super) static TOOL: Tool = Tool {
    name: "k_sample",
    title: "Sample",
    description: "A tool for tests.",
    annotations: Annotations { open_world: false, ..Annotations::UNLIMITED },
    selector: Selector::Param(ACTION),
    format: Format::Json,
    view: Some(View { name: "k_sample_view", title: "Sample, looking only", description: "Its read-only twin." }),
    actions: &[&COUNT, &PUT],
};

static COUNT: Action = Action {
    name: "count",
    aliases: &[],
    summary: "Count to a number",
    notes: "",
    example: r#"{"action":"count","up_to":3}"#,
    params: &[UP_TO],
    effect: Effect::Read,
    on_page: false,
    forwarded: false,
    shows_screen: false,
    begin: begin::<Count>,
};

static PUT: Action = Action {
    name: "put",
    aliases: &["set"],
    summary: "Put a note somewhere",
    notes: "Nobody reads it.",
    example: r#"{"action":"put","note":"hello"}"#,
    params: &[NOTE, PLACE.param, KEY],
    effect: Effect::Type,
    on_page: false,
    forwarded: false,
    shows_screen: false,
    begin: begin::<Put>,
};

const UP_TO: Param = Param::integer("up_to", "where to stop").or(7).cap(9);
const NOTE: Param = Param::text("note", "the note").required().recorded(Recorded::Typed);
const PLACES: [(&str, u8); 2] = [("shelf", 1), ("drawer", 2)];
const PLACE: Choice<u8> = Param::text("place", "").one_of(&PLACES).or("drawer");
const KEY: Param = Param::text("key", "what opens it").recorded(Recorded::Omitted);

/// These actions see nothing but this part of the state.
impl Context for Emitter {
    fn of(tools: &Tools) -> &Self {
        &tools.traffic
    }
}

struct Count(usize);

#[derive(Serialize)]
struct CountReply {
    counted: Vec<usize>,
    is_recorded: bool,
}

impl Handler for Count {
    type Context = Emitter;

    fn read(params: &mut Params<'_>, _: &Emitter) -> Result<Self> {
        Ok(Self(params.count(&UP_TO)?))
    }

    async fn run(self, traffic: &Emitter) -> Outcome {
        Content::of(&CountReply { counted: (1..=self.0).collect(), is_recorded: traffic.is_on() })
    }
}

struct Put {
    note: String,
    place: u8,
}

#[derive(Serialize)]
struct PutReply {
    chars: usize,
    place: u8,
}

impl Handler for Put {
    type Context = Emitter;

    fn read(params: &mut Params<'_>, _: &Emitter) -> Result<Self> {
        Ok(Self { note: params.required(&NOTE)?.to_owned(), place: params.chosen(&PLACE)? })
    }

    async fn run(self, _: &Emitter) -> Outcome {
        Content::of(&PutReply { chars: self.note.chars().count(), place: self.place })
    }
}
