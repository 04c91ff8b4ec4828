//! A command that has ended, or goes on, as text.

use std::time::Duration;

use serde_json::{Value, json};

use super::actions::{Actions, Called, Fields, add, number, text};
use super::callers::CallerName;
use super::digest::{Digest, ERRORS, Lines, digest, digest_of_success};
use super::header::{Header, add_line};
use super::session::Chosen;

/// Characters of an output that are read, to be cut to what is worth showing.
pub(super) const READ_CHARS: u64 = 200_000;
/// Lines with errors that are looked for in an output that is longer than that.
const FOUND_LINES: u64 = 40;

/// A command that has ended: how, and what it printed.
pub(super) async fn ended(
    actions: &Actions,
    chosen: &Chosen,
    reply: &Fields,
    command: &str,
    max_chars: Option<usize>,
) -> Called<String> {
    let exit_code = reply.get("exit_code").and_then(Value::as_i64);
    let mut header = Header::new(exit_code.map_or("exit unknown".to_owned(), |code| format!("exit {code}")));
    header.add_time(Duration::from_millis(number(reply, "duration_ms")));
    let Digest { text: output, missing } = output(actions, chosen, reply, command, max_chars).await?;
    if missing.is_some() || exit_code != Some(0) {
        header.add(command);
    }
    if let Some(cwd) = moved_to(actions, chosen, reply) {
        header.add(&cwd);
    }
    if let gone @ 1.. = number(reply, "evicted_lines") {
        header.add(&format!("its first {gone} lines are gone"));
    }
    let mut shown = header.above(&output);
    if let Some(line) = missing {
        add_line(&mut shown, &format!("[more: term_look {{\"command\":\"{command}\",\"from_line\":{line}}}]"));
    }
    Ok(shown)
}

/// The output of a reply, cut to what is worth showing.
async fn output(
    actions: &Actions,
    chosen: &Chosen,
    reply: &Fields,
    command: &str,
    max_chars: Option<usize>,
) -> Called<Digest> {
    let cut = match reply.get("exit_code").and_then(Value::as_i64) {
        Some(0) => digest_of_success,
        _ => digest,
    };
    let output = text(reply, "output");
    let first = number(reply, "evicted_lines");
    if reply.get("truncated") != Some(&Value::Bool(true)) {
        return Ok(cut(&Lines::of(output, first), max_chars));
    }
    // Its middle is not here; what went wrong there is looked for where all of it is.
    let of = |how: Value| {
        let mut arguments = json!({
            "action": "commands", "session_id": chosen.id.as_str(), "command_id": command, "max_chars": READ_CHARS,
        });
        add(&mut arguments, how);
        actions.call(arguments)
    };
    let head = of(json!({ "head": FOUND_LINES })).await?;
    let total = number(&head, "total_lines");
    let tail = of(json!({ "tail": FOUND_LINES })).await?;
    let found = of(json!({ "regex": ERRORS, "head": FOUND_LINES / 2, "tail": FOUND_LINES / 2 })).await?;
    let mut numbered: Vec<(u64, &str)> = (first..).zip(text(&head, "output").split('\n')).collect();
    let tail_lines: Vec<&str> = text(&tail, "output").split('\n').collect();
    let tail_first = total.saturating_sub(tail_lines.len() as u64);
    numbered.extend((tail_first..).zip(tail_lines));
    let numbers = found.get("line_numbers").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_u64);
    numbered.extend(numbers.zip(text(&found, "output").split('\n')));
    numbered.sort_by_key(|(number, _)| *number);
    numbered.dedup_by_key(|(number, _)| *number);
    Ok(cut(&Lines { numbered, end: total }, max_chars))
}

/// The directory, if it is not the one that the caller was told last.
fn moved_to(actions: &Actions, chosen: &Chosen, reply: &Fields) -> Option<String> {
    let cwd = reply.get("cwd").and_then(Value::as_str)?.to_owned();
    let name = CallerName::of(&actions.caller, &actions.tools);
    let mut last = None;
    actions.tools.callers.update(&name, &chosen.id, |seen| last = seen.cwd.replace(cwd.clone()));
    last.is_none_or(|last| last != cwd).then_some(cwd)
}
