//! `search`: lines of history and screen that match. The newest are shown first to be kept; older ones are read on
//! with `until_line`.

use serde::Serialize;
use serde_json::{Value, json};

use super::term_read::buffer_name;
use super::wait::pattern;
use crate::error::{Error, Result};
use crate::terminal::search::{Match, SearchRequest, SearchResult};
use crate::tools::params::Params;
use crate::tools::text::{Room, clip_around};
use crate::tools::{Target, Tools};

pub(in crate::tools) const PARAMS: &[&str] =
    &["session_id", "pattern", "text", "ignore_case", "context", "max_matches", "from_line", "until_line", "max_chars"];

pub(in crate::tools) const MAX_MATCHES: usize = 50;
pub(in crate::tools) const MAX_MATCHES_CAP: usize = 500;
const CONTEXT_CAP: usize = 20;
/// Bytes of an answer, unless a number of characters is asked for.
const MAX_CHARS: usize = 7_000;
const MAX_CHARS_CAP: usize = 50_000;
/// Characters of a matching line; of a longer one the part with the match is shown.
const LINE_CHARS: usize = 500;
/// What a match costs besides its lines: names, quotes and numbers.
const MATCH_CHARS: usize = 80;

pub(in crate::tools) struct Request {
    session: Target,
    search: SearchRequest,
    room: Room,
}

#[derive(Serialize)]
pub(in crate::tools) struct Answer {
    matches: Vec<Found>,
    /// Matching lines in all.
    total: usize,
    truncated: bool,
    oldest_line: u64,
    next_line: u64,
    /// The call that gives the matches before these.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Value>,
}

#[derive(Serialize)]
struct Found {
    line: u64,
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    before: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<String>,
    buffer: &'static str,
}

impl Request {
    pub(in crate::tools) fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        tools.may_read_screens()?;
        let session = tools.target(params)?;
        let ignore_case = params.flag("ignore_case", false)?;
        let pattern = pattern(params, ("text", "pattern"), ignore_case)?;
        let search = SearchRequest {
            pattern: pattern.ok_or(Error::MissingParam("pattern or text"))?,
            context: params.count("context", 0, CONTEXT_CAP)?,
            max_matches: params.count("max_matches", MAX_MATCHES, MAX_MATCHES_CAP)?,
            from_line: params.number("from_line")?,
            until_line: params.number("until_line")?,
        };
        Ok(Self { session, search, room: Room::read(params, MAX_CHARS, MAX_CHARS_CAP)? })
    }

    pub(in crate::tools) async fn run(self) -> Result<Answer> {
        let found = self.session.search(self.search.clone()).await?;
        Ok(self.cut(found))
    }

    /// Keeps the newest matches that fit the answer.
    fn cut(&self, found: SearchResult) -> Answer {
        let SearchResult { matches, total, oldest_line, next_line } = found;
        let mut left = self.room.size();
        let mut kept = Vec::new();
        for found in matches.into_iter().rev() {
            let mut found = self.shown(found);
            let mut size = found.size(self.room);
            if size > left && kept.is_empty() {
                // One is always shown, if need be without the lines around it.
                (found.before, found.after) = (Vec::new(), Vec::new());
                size = found.size(self.room);
            } else if size > left {
                break;
            }
            left = left.saturating_sub(size);
            kept.push(found);
        }
        kept.reverse();
        let truncated = kept.len() < total;
        let first = kept.iter().find(|found| found.buffer == "normal");
        let until_line = first.map_or(next_line, |found| found.line);
        let next = truncated.then(|| json!({ "action": "search", "until_line": until_line, "why": "older matches" }));
        Answer { matches: kept, total, truncated, oldest_line, next_line, next }
    }

    fn shown(&self, found: Match) -> Found {
        let at = self.search.pattern.find(&found.text).unwrap_or_default();
        let clipped = |lines: Vec<String>| lines.iter().map(|line| clip_around(line, (0, 0), LINE_CHARS)).collect();
        Found {
            line: found.line,
            text: clip_around(&found.text, at, LINE_CHARS),
            before: clipped(found.before),
            after: clipped(found.after),
            buffer: buffer_name(found.buffer),
        }
    }
}

impl Found {
    fn size(&self, room: Room) -> usize {
        let lines = self.before.iter().chain(&self.after).chain([&self.text]);
        MATCH_CHARS + lines.map(|line| room.cost(line) + 4).sum::<usize>()
    }
}
