//! Actions on the terminals of another kpty: judged by the guard of this server, forwarded as a whole, and answered with
//! the other server's reply, which this server masks like every reply.
//!
//! Actions that type keys are not forwarded: what stands on the line is followed here, key by key, so they write to the
//! terminal as to a desktop's.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::Tools;
use super::envelope::{Failure, mask_foreign};
use super::handler::{Content, Outcome};
use super::params::Params;
use super::spec::{Action, Effect, Preset, Tool};
use crate::config::{LONGEST_TALK, ScreenAccess};
use crate::error::{Error, Result};
use crate::model::SessionRecord;
use crate::registry::Located;
use crate::terminal::deadline;
use crate::terminal::local::input;
use crate::terminal::peer::Forwarded;

/// How long an action that reads may take where its caller gives no time.
const USUAL_LIMIT: Duration = Duration::from_secs(10);

/// An action that may be one for another kpty: the session is not one of this server.
pub(super) struct PeerAction {
    action: &'static Action,
    arguments: Map<String, Value>,
    record: SessionRecord,
}

impl Tools {
    /// The action, if it may be forwarded: the bridge of its session has not been asked yet whether it takes any.
    pub(super) fn peer_action(&self, tool: &Tool, params: &mut Params<'_>) -> Option<PeerAction> {
        let action = tool.action(&tool.selected(params.arguments()).ok()??).filter(|action| action.forwarded)?;
        if action.shows_screen && self.config.screen_access == ScreenAccess::Off {
            return None;
        }
        params.expect(action.params);
        let Ok(Located::Desktop(record)) = self.located(params) else { return None };
        let mut arguments = params.arguments().clone();
        arguments.insert("session_id".to_owned(), json!(record.session_id));
        Some(PeerAction { action, arguments, record: *record })
    }

    /// Forwards an action and takes the reply; one whose bridge takes none is carried out here, as for a desktop.
    pub(super) async fn forward(&self, tool: &'static Tool, action: PeerAction, params: &mut Params<'_>) -> Outcome {
        let PeerAction { action, mut arguments, record } = action;
        let caller = params.caller();
        let url = record.desktop_url.as_deref().unwrap_or_default();
        let timeout = self.timeout_of(action, &mut arguments);
        let deadline = Instant::now() + timeout;
        if !self.peers.takes_actions(url, timeout).await {
            return deadline::within(deadline, self.dispatch(tool, params)).await;
        }
        if action.effect == Effect::Type {
            self.judge_talk(&arguments, &record).await?;
        }
        let about = json!({ "agent": caller.agent, "shows_progress": caller.can_show_progress });
        let left = deadline.saturating_duration_since(Instant::now());
        let Forwarded::Reply(mut reply) = self.peers.forward(url, &arguments, about, left).await? else {
            return deadline::within(deadline, self.dispatch(tool, params)).await;
        };
        params.leave_notes();
        mask_foreign(&mut reply, &self.redactor);
        if self.config.screen_access == ScreenAccess::Off {
            hide_screen(&mut reply);
        }
        match reply.get("ok") {
            Some(Value::Bool(true)) => Ok(Content::Fields(reply)),
            _ => {
                let message = reply.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
                reply.entry("error").or_insert_with(|| json!(message));
                Err(Failure::with(Error::NotAvailable(message), reply))
            }
        }
    }

    /// How long the action may take. Where the caller gives no time it is this server's default, not the other's.
    fn timeout_of(&self, action: &Action, arguments: &mut Map<String, Value>) -> Duration {
        let preset = action.timeout().and_then(|param| match param.preset {
            Preset::Number(number) => Some((param.name, number.value(&self.config))),
            _ => None,
        });
        let given = match arguments.get("timeout_ms") {
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(value) => value.as_u64(),
            None => None,
        };
        if let Some((name, preset)) = preset
            && arguments.get(name).is_none_or(Value::is_null)
        {
            arguments.insert(name.to_owned(), json!(preset));
        }
        let usual = preset.map_or(Duration::ZERO, |(_, preset)| Duration::from_millis(preset));
        let usual = if action.only_looks() { usual.max(USUAL_LIMIT) } else { usual };
        given.map_or(usual, Duration::from_millis).min(LONGEST_TALK)
    }

    /// Asks this server's guard about the command, behind what was typed from here into the same line.
    async fn judge_talk(&self, arguments: &Map<String, Value>, record: &SessionRecord) -> Result<()> {
        let Some(command) = arguments.get("command").and_then(Value::as_str) else { return Ok(()) };
        self.typist.check(command)?;
        let mut typed = command.to_owned();
        if !matches!(arguments.get("escapes"), None | Some(Value::Null | Value::Bool(false))) {
            typed = input::unescape(command);
            self.typist.check(&typed)?;
        }
        let session = self.bridges.session(record);
        let mut turn = self.typist.turn(&session).await;
        turn.check_line(&typed)
    }
}

/// Takes out what shows a screen, where this server shows none.
fn hide_screen(reply: &mut Map<String, Value>) {
    for name in ["tail", "line_text", "matched_text"] {
        reply.remove(name);
    }
    if let Some(screen) = reply.get_mut("details").and_then(|details| details.get_mut("screen")) {
        *screen = json!("");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_screen_is_in_no_reply() {
        let reply = json!({ "ok": false, "tail": "a", "line_text": "a", "details": { "screen": "a", "more": 1 } });
        let Value::Object(mut reply) = reply else { panic!("an object") };
        hide_screen(&mut reply);
        assert_eq!(Value::Object(reply), json!({ "ok": false, "details": { "screen": "", "more": 1 } }));
    }
}
