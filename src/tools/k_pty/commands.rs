//! `commands`: what was run in a session, and the output of one of them.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::talk::{MAX_CHARS_CAP, millis};
use super::{SESSION_ID, Target};
use crate::error::{Error, Result};
use crate::ids::CommandId;
use crate::model::iso_time;
use crate::terminal::Terminal;
use crate::terminal::commands::MAX_COMMANDS;
use crate::terminal::search::Pattern;
use crate::terminal::{Command, Output};
use crate::tools::Tools;
use crate::tools::handler::{Content, Handler, Outcome, begin};
use crate::tools::params::Params;
use crate::tools::spec::{Action, Effect, Param};
use crate::tools::text::{Cut, Room, cut_middle};
use kpty_guard::{Masked, MaskedStr, Redactor};

pub(in crate::tools) static ACTION: Action = Action {
    name: "commands",
    aliases: &[],
    summary: "The last commands",
    notes: "With command_id: its output, by head, tail, from_line, until_line (counted from 0 in the output) or regex.",
    example: r#"{"action":"commands","session_id":"pty_0123abcd","command_id":"cmd_1","tail":20}"#,
    params: &[SESSION_ID, LIMIT, COMMAND_ID, HEAD, TAIL, FROM_LINE, UNTIL_LINE, REGEX, IGNORE_CASE, MAX_CHARS],
    effect: Effect::Read,
    on_page: true,
    forwarded: true,
    shows_screen: false,
    begin: begin::<Commands>,
};

const LIMIT: Param = Param::integer("limit", "how many").or(20).cap(MAX_COMMANDS as u64);
pub(super) const COMMAND_ID: Param = Param::text("command_id", "its output");
const HEAD: Param = Param::integer("head", "first lines of the output");
const TAIL: Param = Param::integer("tail", "last lines of the output");
const FROM_LINE: Param = Param::integer("from_line", super::FROM_LINE_DOC);
const UNTIL_LINE: Param = Param::integer("until_line", super::UNTIL_LINE_DOC);
const REGEX: Param = Param::text("regex", "lines of the output to show");
pub(super) const IGNORE_CASE: Param = Param::flag("ignore_case", false, "capitals do not matter");
/// How much of an output fits a reply. Unless a number of characters is given these are bytes: with all around it a
/// reply stays below 8 KB.
pub(super) const MAX_CHARS: Param = Param::integer("max_chars", super::MAX_CHARS_DOC).or(6_000).cap(MAX_CHARS_CAP);

/// Characters of a command in an answer; `talk` takes much longer ones.
const LINE_CHARS: usize = 120;
/// What the number of a line costs in an answer.
const NUMBER_CHARS: usize = 8;

enum Commands {
    List { session: Target, limit: usize, room: Room },
    One { session: Target, id: CommandId, selection: Selection, room: Room },
}

/// Which lines of an output; they are counted from 0 at the command's first line.
#[derive(Default)]
struct Selection {
    head: Option<u64>,
    tail: Option<u64>,
    from: u64,
    until: Option<u64>,
    pattern: Option<Pattern>,
}

/// A command, as answers have it.
#[derive(Serialize)]
pub(super) struct CommandEntry {
    id: String,
    line: Masked,
    cwd: Option<Masked>,
    exit_code: Option<i32>,
    duration_ms: u64,
    started_at: String,
    /// Numbers of its lines in the session's text: the first, and the one after the last.
    lines: Option<[u64; 2]>,
    completed_by: Option<&'static str>,
    running: bool,
}

/// A command with its output.
#[derive(Serialize)]
pub(super) struct CommandOutput {
    #[serde(flatten)]
    command: CommandEntry,
    output: Masked,
    truncated: bool,
    omitted_chars: usize,
    omitted_lines: usize,
    evicted_lines: u64,
    /// The call that gives what was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Value>,
}

/// Some lines of an output.
#[derive(Serialize)]
struct SelectedReply {
    command: CommandEntry,
    output: Masked,
    /// Lines that the command printed in all.
    total_lines: u64,
    /// Lines that were asked for and are there.
    selected_lines: usize,
    /// Numbers of the selected lines, where they do not simply follow one another.
    #[serde(skip_serializing_if = "Option::is_none")]
    line_numbers: Option<Vec<u64>>,
    truncated: bool,
    omitted_chars: usize,
    omitted_lines: usize,
    /// Lines at the beginning that the history no longer has.
    evicted_lines: u64,
    /// The call that gives what was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Value>,
}

impl Handler for Commands {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let session = tools.target(params)?;
        let Some(id) = params.command_id(&COMMAND_ID)? else {
            let limit = params.count(&LIMIT)?;
            return Ok(Self::List { session, limit, room: Room::read(params, &MAX_CHARS)? });
        };
        let selection = Selection {
            head: params.number(&HEAD)?,
            tail: params.number(&TAIL)?,
            from: params.number(&FROM_LINE)?.unwrap_or(0),
            until: params.number(&UNTIL_LINE)?,
            pattern: expression(params)?,
        };
        Ok(Self::One { session, id, selection, room: Room::read(params, &MAX_CHARS)? })
    }

    async fn run(self, _: &Tools) -> Outcome {
        match self {
            Self::List { session, limit, room } => Ok(list(&*session, limit, room.size()).into()),
            Self::One { session, id, selection, room } => {
                // Reading a long output blocks its thread.
                let reading = tokio::task::spawn_blocking(move || selected(&*session, id, &selection, room)).await;
                Content::of(&reading.map_err(|error| Error::NotAvailable(error.to_string()))??)
            }
        }
    }
}

/// The newest commands, oldest first, as many as there is room for.
fn list(session: &dyn Terminal, limit: usize, room: usize) -> Map<String, Value> {
    let (commands, redactor) = (session.commands(), session.redactor());
    let wanted = limit.min(commands.len());
    let mut left = room;
    let mut listed: Vec<Value> = Vec::new();
    for command in commands.iter().rev().take(wanted) {
        let entry = json!(CommandEntry::of(command, &redactor));
        let needed = entry.to_string().len();
        if needed > left && !listed.is_empty() {
            break;
        }
        left = left.saturating_sub(needed);
        listed.push(entry);
    }
    listed.reverse();
    let count = listed.len();
    let mut answer = Map::from_iter([
        ("commands".to_owned(), Value::Array(listed)),
        ("count".to_owned(), json!(count)),
        ("total".to_owned(), json!(commands.len())),
    ]);
    if count < wanted {
        answer.insert("truncated".to_owned(), Value::Bool(true));
        let why = "older commands are left out; with more max_chars they have room";
        let next = json!({ "action": "commands", "limit": wanted, "max_chars": MAX_CHARS_CAP, "why": why });
        answer.insert("next".to_owned(), next);
    }
    answer
}

fn expression(params: &Params<'_>) -> Result<Option<Pattern>> {
    let ignore_case = params.flag(&IGNORE_CASE)?;
    match params.text(&REGEX)? {
        None => Ok(None),
        Some(expression) => Pattern::regex(expression, ignore_case).map(Some),
    }
}

impl CommandEntry {
    fn of(command: &Command, redactor: &Redactor) -> Self {
        let end = command.end.as_ref();
        let lines = command.start.zip(end).map(|(start, end)| {
            let last = end.edge.point.place;
            [start.place.line, last.line + u64::from(last.chars > 0)]
        });
        Self {
            id: command.id.to_string(),
            line: command.line(redactor).as_masked().clip((0, 0), LINE_CHARS),
            cwd: command.cwd(redactor),
            exit_code: end.and_then(|end| end.status),
            duration_ms: millis(command.age()),
            started_at: iso_time(command.started_at),
            lines,
            completed_by: end.map(|end| end.by.as_str()),
            running: end.is_none(),
        }
    }
}

impl CommandOutput {
    /// A command with what it has printed so far, or in all.
    pub(super) fn of(session: &dyn Terminal, id: CommandId, room: Room) -> Option<Self> {
        let command = CommandEntry::of(&session.command(id)?, &session.redactor());
        let cut = |chars| session.output_of(id, chars).unwrap_or_default();
        let (output, max_chars) = room.fit(cut, |output| &output.text);
        let Output { text, truncated, omitted_chars, omitted_lines, evicted_lines, missing_before, .. } = output;
        let next = (omitted_chars > 0).then(|| {
            let head = head_lines(&text, max_chars);
            // Those that are gone are counted as left out, and cannot be asked for.
            rest(id, (missing_before + head).max(evicted_lines), head + omitted_lines as u64)
        });
        Some(Self { command, output: text, truncated, omitted_chars, omitted_lines, evicted_lines, next })
    }
}

/// Whole lines in the head of a text that was cut in the middle.
fn head_lines(text: &str, max_chars: usize) -> u64 {
    text.chars().take(max_chars / 2).filter(|&c| c == '\n').count() as u64
}

/// The call that gives some lines of an output.
fn rest(id: CommandId, from_line: u64, until_line: u64) -> Value {
    json!({
        "action": "commands", "command_id": id.to_string(), "from_line": from_line, "until_line": until_line,
        "why": "lines that were left out; or ask again with more max_chars",
    })
}

fn selected(session: &dyn Terminal, id: CommandId, selection: &Selection, room: Room) -> Result<SelectedReply> {
    let unknown = || Error::invalid("command_id", format!("{id} is no command of this session, or is forgotten"));
    let command = CommandEntry::of(&session.command(id).ok_or_else(unknown)?, &session.redactor());
    let output = session.kept_lines_of(id).unwrap_or_default();
    let evicted = output.evicted_lines;
    let lines: Vec<MaskedStr<'_>> =
        if output.text.is_empty() { Vec::new() } else { output.text.as_masked().split_lines().collect() };
    let chosen = selection.choose(&lines, evicted);
    let selected_lines = chosen.len();
    let is_gapped = |pair: &[(u64, MaskedStr<'_>)]| pair[0].0 + 1 != pair[1].0;
    let has_gaps = chosen.windows(2).any(is_gapped) || selection.pattern.is_some();
    let shown = if has_gaps { Shown::newest(&chosen, id, room) } else { Shown::ends(&chosen, id, room) };
    Ok(SelectedReply {
        command,
        total_lines: evicted + lines.len() as u64,
        selected_lines,
        line_numbers: shown.numbers,
        truncated: shown.omitted_chars > 0 || evicted > 0,
        omitted_chars: shown.omitted_chars,
        omitted_lines: shown.omitted_lines,
        evicted_lines: evicted,
        next: shown.next,
        output: shown.text,
    })
}

/// What an answer has room for.
struct Shown {
    text: Masked,
    numbers: Option<Vec<u64>>,
    omitted_chars: usize,
    omitted_lines: usize,
    next: Option<Value>,
}

impl Shown {
    /// Lines that follow one another: both ends.
    fn ends(chosen: &[(u64, MaskedStr<'_>)], id: CommandId, room: Room) -> Self {
        let text = Masked::join(chosen.iter().map(|(_, line)| *line), "\n");
        let (cut, max_chars) = room.fit(|chars| cut_middle(text.as_masked(), chars), |cut| &cut.text);
        let Cut { text, omitted_chars, omitted_lines } = cut;
        let next = chosen.first().filter(|_| omitted_chars > 0).map(|(first, _)| {
            let from = first + head_lines(&text, max_chars);
            rest(id, from, from + omitted_lines as u64)
        });
        Self { text, numbers: None, omitted_chars, omitted_lines, next }
    }

    /// Lines from here and there, each with its number: the newest. One is always shown, of a long one both ends.
    fn newest(chosen: &[(u64, MaskedStr<'_>)], id: CommandId, room: Room) -> Self {
        let mut left = room.size();
        let kept = chosen.iter().rev().take_while(|(_, line)| {
            let needed = room.cost(line) + 1 + NUMBER_CHARS;
            let fits = needed <= left || left == room.size();
            left = left.saturating_sub(needed);
            fits
        });
        let (omitted, shown) = chosen.split_at(chosen.len() - kept.count());
        let next = omitted.first().map(|(first, _)| {
            let until = shown.first().map_or(0, |(number, _)| *number);
            rest(id, *first, until)
        });
        let text = Masked::join(shown.iter().map(|(_, line)| *line), "\n");
        let (cut, _) = room.fit(|chars| cut_middle(text.as_masked(), chars), |cut| &cut.text);
        Self {
            text: cut.text,
            numbers: Some(shown.iter().map(|(number, _)| *number).collect()),
            omitted_chars: omitted.iter().map(|(_, line)| line.chars().count() + 1).sum::<usize>() + cut.omitted_chars,
            omitted_lines: omitted.len() + cut.omitted_lines,
            next,
        }
    }
}

impl Selection {
    /// The lines that are asked for, with their numbers. `evicted` lines before the first are gone.
    fn choose<'a>(&self, lines: &[MaskedStr<'a>], evicted: u64) -> Vec<(u64, MaskedStr<'a>)> {
        let total = evicted + lines.len() as u64;
        let is_in = |number: u64, line: &str| {
            number >= self.from
                && self.until.is_none_or(|until| number < until)
                && self.pattern.as_ref().is_none_or(|pattern| pattern.is_in(line))
        };
        let numbered = lines.iter().enumerate().map(|(index, line)| (evicted + index as u64, *line));
        let mut chosen: Vec<_> = numbered.filter(|(number, line)| is_in(*number, line)).collect();
        debug_assert!(chosen.len() as u64 <= total);
        let count = chosen.len() as u64;
        let ends = (self.head, self.tail);
        if ends != (None, None) {
            let head = ends.0.unwrap_or(0);
            let tail_from = count.saturating_sub(ends.1.unwrap_or(0));
            let mut index = 0;
            chosen.retain(|_| {
                index += 1;
                index <= head || index > tail_from
            });
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_chosen_by_number_pattern_and_ends() {
        let lines = ["a1", "b2", "a3", "b4", "a5"].map(MaskedStr::literal);
        let regex = |expression: &str| Pattern::regex(expression, false).ok();
        for (selection, expected) in [
            (Selection::default(), "10 11 12 13 14"),
            (Selection { head: Some(2), ..Selection::default() }, "10 11"),
            (Selection { tail: Some(2), ..Selection::default() }, "13 14"),
            (Selection { head: Some(1), tail: Some(1), ..Selection::default() }, "10 14"),
            (Selection { head: Some(4), tail: Some(4), ..Selection::default() }, "10 11 12 13 14"),
            (Selection { head: Some(0), ..Selection::default() }, ""),
            (Selection { from: 12, until: Some(14), ..Selection::default() }, "12 13"),
            (Selection { from: 0, until: Some(11), ..Selection::default() }, "10"),
            (Selection { pattern: regex("^a"), ..Selection::default() }, "10 12 14"),
            (Selection { pattern: regex("^a"), tail: Some(1), ..Selection::default() }, "14"),
        ] {
            let chosen = selection.choose(&lines, 10);
            let numbers: Vec<_> = chosen.iter().map(|(number, _)| number.to_string()).collect();
            assert_eq!(numbers.join(" "), expected);
        }
    }
}
