//! What is new in a session since its caller last saw it.

use std::time::Duration;

use kpty_emulator::{Mode, Request};
use serde_json::{Value, json};

use super::actions::{Actions, Called, Failed, add};
use super::callers::{CallerName, Seen};
use super::digest::{Lines, digest, without_repetition};
use super::header::add_line;
use super::session::Chosen;
use crate::tools::k_pty::screen::{Screen, lines_of};
use crate::tools::k_pty::term_read::known_marker;

/// Lines of a look.
const MAX_LINES: u64 = 200;
/// Characters that are read, and then cut to what is worth showing.
const MAX_CHARS: u64 = 50_000;
/// A full-screen program that changed more rows than this, in hundredths, is shown whole.
const REDRAWN_SHARE: usize = 40;
/// How long a look at a desktop's session may take.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// The text that is new, cut to what is worth showing, and what was left out below it.
pub(super) async fn fresh(actions: &Actions, chosen: &Chosen, max_chars: Option<usize>) -> Called<String> {
    let name = CallerName::of(&actions.caller, &actions.tools);
    let seen = actions.tools.callers.seen(&name, &chosen.id);
    let Some(marker) = seen.marker else { return whole(actions, chosen, max_chars).await };
    let delta = read(actions, chosen, json!({ "mode": "delta", "marker_id": marker.get() })).await?;
    remember(actions, chosen, &delta)?;
    let changed = delta.line_numbers.len();
    if delta.buffer_type == "alternate" && changed * 100 > usize::from(delta.rows) * REDRAWN_SHARE {
        return whole(actions, chosen, max_chars).await;
    }
    let mut text = shown(&delta, max_chars);
    let missed = delta.missed_lines.flatten().unwrap_or(0);
    if missed > 0 {
        add_line(&mut text, &format!("[{missed} more lines went by]"));
    }
    Ok(text)
}

/// The screen, down to its last row with text.
pub(super) async fn whole(actions: &Actions, chosen: &Chosen, max_chars: Option<usize>) -> Called<String> {
    let screen = read(actions, chosen, json!({ "mode": "viewport", "max_chars": MAX_CHARS })).await?;
    see(actions, chosen).await?;
    let text = screen.text().trim_end_matches(['\n', ' ']);
    let text = without_repetition(text);
    Ok(digest(&Lines::of(&text, 0), Some(max_chars.unwrap_or(MAX_CHARS as usize))).text)
}

/// The caller has seen everything up to now.
pub(super) async fn see(actions: &Actions, chosen: &Chosen) -> Called<()> {
    let terminal = chosen.terminal(&actions.tools);
    let name = CallerName::of(&actions.caller, &actions.tools);
    let since = actions.tools.callers.seen(&name, &chosen.id).marker;
    let request = Request { max_lines: Some(0), ..Request::new(Mode::Delta { since }) };
    let view = terminal.view_within(&request, LOOK_TIMEOUT).await?;
    let marker = view.answer.delta.map(|delta| delta.marker);
    actions.tools.callers.update(&name, &chosen.id, |seen| seen.marker = marker);
    Ok(())
}

/// What the caller has seen.
pub(super) fn seen(actions: &Actions, chosen: &Chosen) -> Seen {
    actions.tools.callers.seen(&CallerName::of(&actions.caller, &actions.tools), &chosen.id)
}

async fn read(actions: &Actions, chosen: &Chosen, how: Value) -> Called<Screen> {
    let mut arguments = json!({
        "action": "term_read", "session_id": chosen.id.as_str(), "max_lines": MAX_LINES, "max_chars": MAX_CHARS,
    });
    add(&mut arguments, how);
    actions.screen(arguments).await
}

fn remember(actions: &Actions, chosen: &Chosen, delta: &Screen) -> Called<()> {
    let marker = delta.marker_id.map(known_marker).transpose().map_err(Failed::from)?;
    let name = CallerName::of(&actions.caller, &actions.tools);
    actions.tools.callers.update(&name, &chosen.id, |seen| seen.marker = marker);
    Ok(())
}

/// The lines of a delta; rows of a full-screen program with their numbers, which say where they are.
fn shown(delta: &Screen, max_chars: Option<usize>) -> String {
    let lines: Vec<_> = lines_of(delta.text(), delta.line_numbers.len()).collect();
    if delta.buffer_type == "alternate" {
        let rows = delta.line_numbers.iter().zip(&lines);
        let rows: Vec<_> = rows.map(|(row, line)| format!("{row}: {line}").trim_end().to_owned()).collect();
        return rows.join("\n");
    }
    let text = lines.join("\n");
    let dropped = delta.dropped_lines;
    let mut text = digest(&Lines::of(text.trim_end_matches(['\n', ' ']), delta.first_line), max_chars).text;
    if dropped > 0 {
        let note = format!(
            "[{dropped} lines before: term_look {{\"from_line\":{}}}]",
            delta.first_line.saturating_sub(dropped as u64)
        );
        text = if text.is_empty() { note } else { format!("{note}\n{text}") };
    }
    text
}
