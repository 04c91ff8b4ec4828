//! `search`: lines of history and screen that match. The newest are kept; `until_line` continues with older ones.

use kpty_guard::Masked;
use serde::Serialize;
use serde_json::{Value, json};

use super::commands::IGNORE_CASE;
use super::term_read::buffer_name;
use super::wait::pattern;
use super::{SESSION_ID, Target};
use crate::error::{Error, Result};
use crate::terminal::search::{Match, SearchRequest, SearchResult};
use crate::tools::Tools;
use crate::tools::handler::{Content, Handler, Outcome, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Effect, Param};
use crate::tools::text::Room;

pub(in crate::tools) static ACTION: Action = Action {
    name: "search",
    aliases: &[],
    summary: "Lines of history and screen that match",
    notes: "By pattern or by text.",
    example: r#"{"action":"search","session_id":"pty_0123abcd","pattern":"error|warning"}"#,
    params: &[SESSION_ID, PATTERN, TEXT, IGNORE_CASE, CONTEXT, MAX_MATCHES, FROM_LINE, UNTIL_LINE, MAX_CHARS],
    effect: Effect::Read,
    on_page: true,
    forwarded: true,
    shows_screen: true,
    begin: begin::<Search>,
};

const PATTERN: Param = Param::text("pattern", "regular expression");
const TEXT: Param = Param::text("text", "text to look for");
const CONTEXT: Param = Param::integer("context", "lines around each match").or(0).cap(20);
const MAX_MATCHES: Param = Param::integer("max_matches", "matches in the answer").or(50).cap(500);
const FROM_LINE: Param = Param::integer("from_line", super::FROM_LINE_DOC);
const UNTIL_LINE: Param = Param::integer("until_line", super::UNTIL_LINE_DOC);
/// Unless a number of characters is given these are bytes.
const MAX_CHARS: Param = Param::integer("max_chars", super::MAX_CHARS_DOC).or(7_000).cap(50_000);

/// Characters of a matching line; of a longer one the part with the match is shown.
const LINE_CHARS: usize = 500;
/// What a match costs besides its lines: names, quotes and numbers.
const MATCH_CHARS: usize = 80;

struct Search {
    session: Target,
    search: SearchRequest,
    room: Room,
}

#[derive(Serialize)]
struct SearchReply {
    matches: Vec<FoundLine>,
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
struct FoundLine {
    line: u64,
    text: Masked,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    before: Vec<Masked>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<Masked>,
    buffer: &'static str,
}

impl Handler for Search {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        tools.may_read_screens()?;
        let session = tools.target(params)?;
        let ignore_case = params.flag(&IGNORE_CASE)?;
        let pattern = pattern(params, (&TEXT, &PATTERN), ignore_case)?;
        let search = SearchRequest {
            pattern: pattern.ok_or(Error::MissingParam("pattern or text"))?,
            context: params.count(&CONTEXT)?,
            max_matches: params.count(&MAX_MATCHES)?,
            from_line: params.number(&FROM_LINE)?,
            until_line: params.number(&UNTIL_LINE)?,
        };
        Ok(Self { session, search, room: Room::read(params, &MAX_CHARS)? })
    }

    async fn run(self, _: &Tools) -> Outcome {
        let found = self.session.search(self.search.clone()).await?;
        Content::of(&self.cut(found))
    }
}

impl Search {
    /// Keeps the newest matches that fit the answer.
    fn cut(&self, found: SearchResult) -> SearchReply {
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
        SearchReply { matches: kept, total, truncated, oldest_line, next_line, next }
    }

    fn shown(&self, found: Match) -> FoundLine {
        let at = self.search.pattern.find(&found.text).unwrap_or_default();
        let clipped = |lines: Vec<Masked>| lines.iter().map(|line| line.as_masked().clip((0, 0), LINE_CHARS)).collect();
        FoundLine {
            line: found.line,
            text: found.text.as_masked().clip(at, LINE_CHARS),
            before: clipped(found.before),
            after: clipped(found.after),
            buffer: buffer_name(found.buffer),
        }
    }
}

impl FoundLine {
    fn size(&self, room: Room) -> usize {
        let lines = self.before.iter().chain(&self.after).chain([&self.text]);
        MATCH_CHARS + lines.map(|line| room.cost(line) + 4).sum::<usize>()
    }
}
