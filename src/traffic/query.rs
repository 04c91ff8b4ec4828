//! What is asked of the record: filters, pages, sums. Pure: it makes the conditions, the store runs them.

use serde_json::{Map, Value, json};

use super::Event;

/// Events that one page may have.
pub const MAX_PAGE: u64 = 500;

/// Which events are asked for. What is not given does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this session.
    pub session_id: Option<String>,
    /// By this agent.
    pub agent_id: Option<String>,
    /// This action.
    pub action: Option<String>,
    /// Only those that failed.
    pub errors_only: bool,
    /// Only those that the guard refused.
    pub blocked_only: bool,
    /// Part of the command, the answer or the label; ASCII capitals do not matter.
    pub search: Option<String>,
    /// Not before this moment, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Not after it.
    pub until_ms: Option<i64>,
}

/// A value in a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Param {
    Text(String),
    Number(i64),
}

impl Filter {
    /// The condition, and its values in order.
    pub(super) fn condition(&self) -> (String, Vec<Param>) {
        let mut parts: Vec<&str> = Vec::new();
        let mut params = Vec::new();
        let texts =
            [("session_id = ?", &self.session_id), ("agent_id = ?", &self.agent_id), ("action = ?", &self.action)];
        for (part, text) in texts {
            if let Some(text) = text {
                parts.push(part);
                params.push(Param::Text(text.clone()));
            }
        }
        if self.errors_only {
            parts.push("success = 0");
        }
        if self.blocked_only {
            parts.push("blocked = 1");
        }
        if let Some(search) = &self.search {
            parts.push("(command LIKE ? ESCAPE '\\' OR response LIKE ? ESCAPE '\\' OR label LIKE ? ESCAPE '\\')");
            params.extend(std::iter::repeat_n(Param::Text(like(search)), 3));
        }
        for (part, moment) in [("at_ms >= ?", self.since_ms), ("at_ms <= ?", self.until_ms)] {
            if let Some(moment) = moment {
                parts.push(part);
                params.push(Param::Number(moment));
            }
        }
        let condition = if parts.is_empty() { "1".to_owned() } else { parts.join(" AND ") };
        (condition, params)
    }
}

/// A pattern that matches wherever the text stands, and nothing else.
fn like(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{escaped}%")
}

/// Which events a listener wants as they happen. Empty lists want all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// These actions.
    pub actions: Vec<String>,
    /// By these agents.
    pub agent_ids: Vec<String>,
    /// On these sessions.
    pub session_ids: Vec<String>,
    /// Only those that failed.
    pub errors_only: bool,
    /// Only those that the guard refused.
    pub blocked_only: bool,
}

impl Wanted {
    /// The event is one of them.
    pub fn wants(&self, event: &Event) -> bool {
        let is_in = |list: &[String], value: &str| list.is_empty() || list.iter().any(|wanted| wanted == value);
        is_in(&self.actions, &event.action)
            && is_in(&self.agent_ids, event.agent_id.as_deref().unwrap_or_default())
            && is_in(&self.session_ids, &event.session_id)
            && (!self.errors_only || !event.success)
            && (!self.blocked_only || event.blocked)
    }
}

/// Some of the events that were asked for, the newest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Those of this page.
    pub events: Vec<Event>,
    /// How many there are in all.
    pub total: u64,
    /// Others follow.
    pub has_more: bool,
}

/// What is known of one session's events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionSummary {
    /// Which session.
    pub session_id: String,
    /// Who acted on it last.
    pub agent_id: Option<String>,
    /// Its owner's own session.
    pub owner_session_id: Option<String>,
    /// Its name for people.
    pub label: Option<String>,
    /// What kind of program runs there.
    pub cli_type: Option<String>,
    /// The sums.
    pub totals: Totals,
    /// Mean of all durations in milliseconds.
    pub avg_duration: f64,
    /// The first one, in milliseconds since 1970.
    pub first_ms: i64,
    /// The last one.
    pub last_ms: i64,
    /// How many of each action.
    pub actions: Vec<(String, u64)>,
}

/// Sums over events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// All of them.
    pub events: u64,
    /// Those that failed.
    pub errors: u64,
    /// Those that the guard refused.
    pub blocked: u64,
    /// Characters that were typed or asked.
    pub sent: u64,
    /// Characters that were answered.
    pub received: u64,
}

/// What is known of all events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// The sums.
    pub totals: Totals,
    /// Sessions that have any.
    pub sessions: u64,
    /// The first one, in milliseconds since 1970.
    pub oldest_ms: Option<i64>,
    /// The last one.
    pub newest_ms: Option<i64>,
    /// How many of each action.
    pub actions: Vec<(String, u64)>,
    /// How many by each agent.
    pub agents: Vec<(String, u64)>,
}

impl Totals {
    /// Errors among all; 0 where there is nothing.
    pub fn error_rate(&self) -> f64 {
        if self.events == 0 { 0.0 } else { self.errors as f64 / self.events as f64 }
    }
}

/// Counts by name, as an object.
pub fn breakdown(counts: &[(String, u64)]) -> Value {
    Value::Object(counts.iter().map(|(name, count)| (name.clone(), json!(count))).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_given_is_a_condition() {
        assert_eq!(Filter::default().condition(), ("1".to_owned(), vec![]));
        let filter = Filter {
            action: Some("talk".to_owned()),
            blocked_only: true,
            search: Some("50%_\\".to_owned()),
            until_ms: Some(7),
            ..Filter::default()
        };
        let (condition, params) = filter.condition();
        assert!(condition.starts_with("action = ? AND blocked = 1 AND (command LIKE"), "{condition}");
        assert_eq!(condition.matches('?').count(), params.len());
        assert_eq!(params[1], Param::Text("%50\\%\\_\\\\%".to_owned()));
    }

    #[test]
    fn listeners_get_what_they_want() {
        let mut event = Event::new("talk", "s1");
        event.agent_id = Some("a1".to_owned());
        let list = |text: &str| vec![text.to_owned()];
        for (wanted, expected) in [
            (Wanted::default(), true),
            (Wanted { actions: list("talk"), ..Wanted::default() }, true),
            (Wanted { actions: list("read"), ..Wanted::default() }, false),
            (Wanted { agent_ids: list("a1"), session_ids: list("s1"), ..Wanted::default() }, true),
            (Wanted { agent_ids: list("a2"), ..Wanted::default() }, false),
            (Wanted { session_ids: list("s2"), ..Wanted::default() }, false),
            (Wanted { errors_only: true, ..Wanted::default() }, false),
            (Wanted { blocked_only: true, ..Wanted::default() }, false),
        ] {
            assert_eq!(wanted.wants(&event), expected, "{wanted:?}");
        }
    }
}
