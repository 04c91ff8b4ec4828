//! Filters, pages and totals of the traffic log. Pure: builds SQL conditions that the store runs.

use serde_json::{Map, Value, json};

use super::Event;

/// Maximum number of events per page.
pub const MAX_PAGE: u64 = 500;

/// Filter of events; `None` matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Session id.
    pub session_id: Option<String>,
    /// Agent id.
    pub agent_id: Option<String>,
    /// Action name.
    pub action: Option<String>,
    /// Only failed actions.
    pub errors_only: bool,
    /// Only actions that the guard blocked.
    pub blocked_only: bool,
    /// Substring of the command, reply or label; ASCII case is ignored.
    pub search: Option<String>,
    /// Earliest time, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Latest time, in milliseconds since 1970.
    pub until_ms: Option<i64>,
}

/// A bound value of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Param {
    Text(String),
    Number(i64),
}

impl Filter {
    /// Returns the SQL condition and its values in order.
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

/// Returns a `LIKE` pattern that matches the literal text at any position.
fn like(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{escaped}%")
}

/// Filter of a live subscription. An empty list matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionFilter {
    /// Action names.
    pub actions: Vec<String>,
    /// Agent ids.
    pub agent_ids: Vec<String>,
    /// Session ids.
    pub session_ids: Vec<String>,
    /// Only failed actions.
    pub errors_only: bool,
    /// Only actions that the guard blocked.
    pub blocked_only: bool,
}

impl SubscriptionFilter {
    /// Returns whether the event matches.
    pub fn matches(&self, event: &Event) -> bool {
        let is_in = |list: &[String], value: &str| list.is_empty() || list.iter().any(|wanted| wanted == value);
        is_in(&self.actions, &event.action)
            && is_in(&self.agent_ids, event.agent_id.as_deref().unwrap_or_default())
            && is_in(&self.session_ids, &event.session_id)
            && (!self.errors_only || !event.success)
            && (!self.blocked_only || event.blocked)
    }
}

/// One page of matching events, newest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Events of this page.
    pub events: Vec<Event>,
    /// Total number of matches.
    pub total: u64,
    /// Further pages follow.
    pub has_more: bool,
}

/// Summary of one session's events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionSummary {
    /// Session id.
    pub session_id: String,
    /// Agent of the latest event.
    pub agent_id: Option<String>,
    /// The owner's own session id.
    pub owner_session_id: Option<String>,
    /// Display name of the session.
    pub label: Option<String>,
    /// Kind of program that runs in the session.
    pub cli_type: Option<String>,
    /// Totals.
    pub totals: Totals,
    /// Mean duration in milliseconds.
    pub avg_duration: f64,
    /// Time of the first event, in milliseconds since 1970.
    pub first_ms: i64,
    /// Time of the last event, in milliseconds since 1970.
    pub last_ms: i64,
    /// Number of events per action.
    pub actions: Vec<(String, u64)>,
}

/// Totals over events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of events.
    pub events: u64,
    /// Number of failed events.
    pub errors: u64,
    /// Number of blocked events.
    pub blocked: u64,
    /// Characters of input.
    pub sent: u64,
    /// Characters of replies.
    pub received: u64,
}

/// Statistics of all events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Totals.
    pub totals: Totals,
    /// Number of sessions with events.
    pub sessions: u64,
    /// Time of the first event, in milliseconds since 1970.
    pub oldest_ms: Option<i64>,
    /// Time of the last event, in milliseconds since 1970.
    pub newest_ms: Option<i64>,
    /// Number of events per action.
    pub actions: Vec<(String, u64)>,
    /// Number of events per agent.
    pub agents: Vec<(String, u64)>,
}

impl Totals {
    /// Share of failed events; 0 without events.
    pub fn error_rate(&self) -> f64 {
        if self.events == 0 { 0.0 } else { self.errors as f64 / self.events as f64 }
    }
}

/// Serializes counts by name as an object.
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
            (SubscriptionFilter::default(), true),
            (SubscriptionFilter { actions: list("talk"), ..SubscriptionFilter::default() }, true),
            (SubscriptionFilter { actions: list("read"), ..SubscriptionFilter::default() }, false),
            (
                SubscriptionFilter { agent_ids: list("a1"), session_ids: list("s1"), ..SubscriptionFilter::default() },
                true,
            ),
            (SubscriptionFilter { agent_ids: list("a2"), ..SubscriptionFilter::default() }, false),
            (SubscriptionFilter { session_ids: list("s2"), ..SubscriptionFilter::default() }, false),
            (SubscriptionFilter { errors_only: true, ..SubscriptionFilter::default() }, false),
            (SubscriptionFilter { blocked_only: true, ..SubscriptionFilter::default() }, false),
        ] {
            assert_eq!(wanted.matches(&event), expected, "{wanted:?}");
        }
    }
}
