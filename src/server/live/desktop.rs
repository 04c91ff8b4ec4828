//! Screens of desktop sessions: a bridge offers no notifications, so it is polled, and only while a client watches.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kpty_guard::Masked;
use serde_json::{Value, json};

use super::view::{DesktopScreen, Scale};
use super::wire::WireCursor;
use crate::tools::{Reply, Tools};

/// Polling interval of a desktop.
fn pause(scale: Scale) -> Duration {
    match scale {
        Scale::Small => Duration::from_secs(3),
        Scale::Large => Duration::from_millis(700),
    }
}

/// Polls the screen and signals changes. Runs until it is aborted.
pub(super) async fn follow(
    tools: Tools,
    id: String,
    scale: Scale,
    screen: Arc<Mutex<DesktopScreen>>,
    moved: impl Fn(),
) {
    let arguments = json!({
        "action": "term_read", "session_id": id, "mode": "viewport", "merge_wrapped": false, "max_lines": 200,
    });
    let Value::Object(arguments) = arguments else { return };
    loop {
        let reply = tools.look(&arguments).await;
        let read = if reply.is_error { no_screen(&reply) } else { screen_of(&reply) };
        let is_new = {
            let mut screen = screen.lock().unwrap_or_else(PoisonError::into_inner);
            let is_new = *screen != read;
            *screen = read;
            is_new
        };
        if is_new {
            moved();
        }
        tokio::time::sleep(pause(scale)).await;
    }
}

fn screen_of(reply: &Reply) -> DesktopScreen {
    let body = &reply.body;
    let number = |name: &str| body.get(name).and_then(Value::as_u64).and_then(|number| u16::try_from(number).ok());
    let lines = reply.texts("lines");
    let widest = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let cell = |name: &str| body.get("cursor")?.get(name)?.as_u64().and_then(|number| u16::try_from(number).ok());
    let cursor = WireCursor {
        col: cell("col").unwrap_or(0),
        row: cell("row").unwrap_or(0),
        visible: cell("col").is_some(),
        ..WireCursor::default()
    };
    DesktopScreen {
        cols: number("cols").filter(|cols| *cols > 0).unwrap_or(widest.clamp(80, 500) as u16),
        rows: number("rows").filter(|rows| *rows > 0).unwrap_or(lines.len().clamp(1, 200) as u16),
        lines,
        cursor,
        problem: None,
    }
}

fn no_screen(reply: &Reply) -> DesktopScreen {
    let why = reply.text("message").unwrap_or_else(|| Masked::literal("its screen cannot be read"));
    DesktopScreen { cols: 80, rows: 24, problem: Some(why), ..DesktopScreen::default() }
}
