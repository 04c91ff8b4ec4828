//! `term_look`: shows what is new, the screen, the output of a command, lines that match, or a picture.

use serde_json::{Value, json};

use super::actions::{Actions, Called, Fields, add, number, outcome, shown, text as field};
use super::digest::{Lines, digest};
use super::fresh::{fresh, whole};
use super::header::{Header, add_line};
use super::outcome::READ_CHARS;
use super::run::MAX_CHARS;
use super::session::{Chosen, Missing, choose};
use super::{SESSION, selected, sessions};
use crate::error::Result;
use crate::tools::Tools;
use crate::tools::handler::{Handler, Outcome, TextReply, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Effect, Param};

pub(super) static ACTION: Action = Action {
    name: "term_look",
    aliases: &[],
    summary: "Look at a session",
    notes: "Without parameters: what is new since your last look.",
    example: r#"{"command":"cmd_7","from_line":400}"#,
    params: &[SESSION, SCREEN, GREP, COMMAND, FROM_LINE, MAX_LINES, MAX_CHARS, PICTURE],
    effect: Effect::Read,
    on_page: false,
    forwarded: false,
    shows_screen: true,
    begin: begin::<Look>,
};

const SCREEN: Param = Param::flag("screen", false, "the whole screen");
const GREP: Param = Param::text("grep", "only lines that match this regex");
const COMMAND: Param = Param::text("command", "the output of this command");
const FROM_LINE: Param = Param::integer("from_line", "lines from this number on");
const MAX_LINES: Param = Param::integer("max_lines", "").or(40).cap(200);
const PICTURE: Param = Param::flag("picture", false, "an image of the screen");

struct Look {
    actions: Actions,
    session: Option<String>,
    what: What,
    max_lines: usize,
    max_chars: Option<usize>,
}

enum What {
    Fresh,
    Screen,
    Picture,
    Lines { from: u64 },
    Matches { expression: String, from: Option<u64> },
    Command { id: String, expression: Option<String>, from: Option<u64> },
}

impl Handler for Look {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let expression = params.text(&GREP)?.map(str::to_owned);
        let from = params.number(&FROM_LINE)?;
        let command = params.command_id(&COMMAND)?.map(|id| id.to_string());
        let what = match (command, expression, from) {
            _ if params.flag(&PICTURE)? => What::Picture,
            (Some(id), expression, from) => What::Command { id, expression, from },
            (None, Some(expression), from) => What::Matches { expression, from },
            (None, None, Some(from)) => What::Lines { from },
            _ if params.flag(&SCREEN)? => What::Screen,
            _ => What::Fresh,
        };
        Ok(Self {
            actions: Actions::new(tools, params.caller()),
            session: params.text(&SESSION)?.map(str::to_owned),
            what,
            max_lines: params.count(&MAX_LINES)?,
            max_chars: params.number(&MAX_CHARS)?.map(|chars| chars as usize),
        })
    }

    async fn run(self, _: &Tools) -> Outcome {
        outcome(self.go().await)
    }
}

impl Look {
    async fn go(self) -> Called<TextReply> {
        let chosen = choose(&self.actions, self.session.as_deref(), Missing::Refuse).await?;
        let text = match &self.what {
            What::Fresh => self.above(&chosen, fresh(&self.actions, &chosen, self.max_chars).await?, "nothing new"),
            What::Screen => self.above(&chosen, whole(&self.actions, &chosen, self.max_chars).await?, "blank"),
            What::Picture => return self.picture(&chosen).await,
            What::Lines { from } => self.lines(&chosen, *from).await?,
            What::Matches { expression, from } => self.matches(&chosen, expression, *from).await?,
            What::Command { id, expression, from } => self.command(&chosen, id, expression.as_deref(), *from).await?,
        };
        Ok(shown(text))
    }

    /// What the session is doing, above what it shows.
    fn above(&self, chosen: &Chosen, shown: String, nothing: &str) -> String {
        let mut header = Header::default();
        header.add(&sessions::state(chosen));
        if let Some(selected) = selected::selected(chosen) {
            header.add(&format!("selected: {selected}"));
        }
        if shown.is_empty() {
            header.add(nothing);
        }
        header.above(&shown)
    }

    async fn call(&self, chosen: &Chosen, how: Value) -> Called<Fields> {
        let mut arguments = json!({ "session_id": chosen.id.as_str() });
        add(&mut arguments, how);
        self.actions.call(arguments).await
    }

    async fn picture(&self, chosen: &Chosen) -> Called<TextReply> {
        let mut reply = self.call(chosen, json!({ "action": "screenshot", "format": "png" })).await?;
        let image = match reply.remove("image") {
            Some(Value::Object(image)) => Some(image),
            _ => None,
        };
        let (cols, rows) = (number(&reply, "cols"), number(&reply, "rows"));
        Ok(TextReply { image, ..shown(format!("{cols}x{rows}")) })
    }

    /// Lines of the history by number.
    async fn lines(&self, chosen: &Chosen, from: u64) -> Called<String> {
        let screen = self
            .actions
            .screen(json!({
                "action": "term_read", "session_id": chosen.id.as_str(), "from_line": from, "max_lines": self.max_lines,
                "max_chars": self.max_chars.unwrap_or(12_000),
            }))
            .await?;
        let mut text = screen.text().to_string();
        if screen.first_line > from {
            text = format!("[from {}; older lines are gone]\n{text}", screen.first_line);
        }
        if let Some(next) = screen.continue_from {
            add_line(&mut text, &format!("[more: \"from_line\":{next}]"));
        }
        Ok(text)
    }

    /// Lines that match, with their numbers.
    async fn matches(&self, chosen: &Chosen, expression: &str, from: Option<u64>) -> Called<String> {
        let how = json!({
            "action": "search", "pattern": expression, "from_line": from, "max_matches": self.max_lines,
            "max_chars": self.max_chars,
        });
        let found = self.call(chosen, how).await?;
        let matches = found.get("matches").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let lines = matches.iter().filter_map(Value::as_object);
        let lines: Vec<_> = lines.map(|line| format!("{}: {}", number(line, "line"), field(line, "text"))).collect();
        let total = number(&found, "total");
        let mut text = match total {
            0 => "no match".to_owned(),
            total if total as usize > lines.len() => format!("the last {} of {total} matches", lines.len()),
            _ => String::new(),
        };
        add_line(&mut text, &lines.join("\n"));
        Ok(text)
    }

    /// The output of a command, or a part of it.
    async fn command(&self, chosen: &Chosen, id: &str, expression: Option<&str>, from: Option<u64>) -> Called<String> {
        let limit = (from.is_some() || expression.is_some()).then_some(self.max_lines);
        let until = from.filter(|_| expression.is_none()).map(|from| from + self.max_lines as u64);
        let how = json!({
            "action": "commands", "command_id": id, "regex": expression, "from_line": from, "until_line": until,
            "head": limit, "max_chars": self.max_chars.map_or(READ_CHARS, |chars| chars as u64),
        });
        let reply = self.call(chosen, how).await?;
        let command = reply.get("command").and_then(Value::as_object).cloned().unwrap_or_default();
        let mut header = Header::default();
        match command.get("exit_code").and_then(Value::as_i64) {
            _ if command.get("running") == Some(&Value::Bool(true)) => header.add("runs"),
            Some(0) | None => {}
            Some(code) => header.add(&format!("exit {code}")),
        }
        let output = field(&reply, "output");
        if let Some(numbers) = reply.get("line_numbers").and_then(Value::as_array) {
            let lines = numbers.iter().zip(output.split('\n')).map(|(number, line)| format!("{number}: {line}"));
            let lines: Vec<_> = if output.is_empty() { vec!["no match".to_owned()] } else { lines.collect() };
            return Ok(header.above(&lines.join("\n")));
        }
        let total = number(&reply, "total_lines");
        if let (Some(from), Some(until)) = (from, until) {
            let mut text = header.above(output);
            if until < total {
                add_line(
                    &mut text,
                    &format!("[{} more: \"from_line\":{}]", total - until, from + self.max_lines as u64),
                );
            }
            return Ok(text);
        }
        let first = number(&reply, "evicted_lines");
        Ok(header.above(&digest(&Lines::of(output, first), self.max_chars).text))
    }
}
