//! What all commands that ask a server share: which session is meant, how an answer is shown, which exit code it gives.

use serde_json::{Map, Value, json};

use super::client::{Answer, Client, Connection, text};
use super::{EXIT_BUSY, EXIT_EXITED, EXIT_NOT_FOUND, EXIT_OTHER, EXIT_TIMEOUT, Failure, Outcome, print};
use crate::error::Error;

/// For the end of each help.
pub(super) const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 nothing found or a wait timed out, 2 wrong usage or another failure (see the message), 3 no such
session, 4 the session is busy, 5 its program has ended.";

/// What a command needs to ask.
pub(super) struct Remote {
    pub(super) client: Client,
    json: bool,
}

impl Remote {
    pub(super) fn new(connection: &Connection) -> Result<Self, Failure> {
        Ok(Self { client: Client::new(connection)?, json: connection.json })
    }

    /// The id of the session that somebody means by its id, the beginning of it, or its label.
    pub(super) async fn resolve(&self, name: &str) -> Result<String, Failure> {
        if is_whole_id(name) {
            return Ok(name.to_owned());
        }
        let answer = self.client.call("list", json!({})).await?;
        let sessions = answer.objects("sessions");
        match candidates(&sessions, name).as_slice() {
            [id] => Ok((*id).to_owned()),
            [] => {
                print::problem(&format!("no session {name:?}; `kpty list` shows all sessions"));
                Err(Failure::Code(EXIT_NOT_FOUND))
            }
            several => Err(Error::Usage(format!("{name:?} fits several sessions: {}", several.join(", "))).into()),
        }
    }

    /// Shows an answer: as JSON, by `show`, or as the failure it is. `show` gives the exit code.
    pub(super) fn finish(
        &self,
        answer: &Answer,
        code: impl FnOnce(&Answer) -> u8,
        show: impl FnOnce(&Answer) -> Result<(), Failure>,
    ) -> Result<Outcome, Failure> {
        let code = if answer.is_ok() { code(answer) } else { failure_code(answer.error_code()) };
        let shown = if self.json {
            print::line(&Value::Object(answer.body.clone()).to_string()).map_err(Failure::from)
        } else if answer.is_ok() {
            show(answer)
        } else {
            show_failure(answer)
        };
        match shown {
            // The exit code stands, also when nobody reads to the end.
            Ok(()) | Err(Failure::OutputClosed) => Ok(Outcome::Code(code)),
            Err(failure) => Err(failure),
        }
    }
}

/// `pty_` and eight hex digits: nothing to look up.
fn is_whole_id(name: &str) -> bool {
    let hex = name.strip_prefix("pty_");
    hex.is_some_and(|hex| hex.len() == 8 && hex.chars().all(|c| c.is_ascii_hexdigit()))
}

/// The ids that a name can stand for: the best kind of match wins, and among equals those that are alive.
fn candidates<'a>(sessions: &[&'a Map<String, Value>], name: &str) -> Vec<&'a str> {
    let kind = |session: &Map<String, Value>| {
        let id = text(session, "session_id");
        let starts = |id: &str| !name.is_empty() && id.starts_with(name);
        match () {
            () if id == name => Some(0),
            () if !name.is_empty() && text(session, "label") == name => Some(1),
            () if starts(id) || id.strip_prefix("pty_").is_some_and(starts) => Some(2),
            () => None,
        }
    };
    let is_dead = |session: &Map<String, Value>| session.get("is_alive") == Some(&Value::Bool(false));
    let rank = |session: &Map<String, Value>| kind(session).map(|kind| (kind, is_dead(session)));
    let best = sessions.iter().filter_map(|session| rank(session)).min();
    let found = sessions.iter().filter(|session| best.is_some() && rank(session) == best);
    found.map(|session| text(session, "session_id")).collect()
}

/// The exit code for a failure.
fn failure_code(error_code: &str) -> u8 {
    match error_code {
        "PTY_TIMEOUT" => EXIT_TIMEOUT,
        "PTY_SESSION_NOT_FOUND" => EXIT_NOT_FOUND,
        "PTY_BUSY" | "PTY_SECRET_PROMPT" => EXIT_BUSY,
        "PTY_PROCESS_EXITED" => EXIT_EXITED,
        _ => EXIT_OTHER,
    }
}

/// What a command printed before it failed, then why it failed.
fn show_failure(answer: &Answer) -> Result<(), Failure> {
    let partial = answer.details().map(|details| text(details, "partial_output")).unwrap_or_default();
    let shown = print::text(partial);
    let message = match answer.text("message") {
        "" => answer.text("error"),
        message => message,
    };
    print::problem(&format!("{} ({})", print::tame(message), print::tame(answer.error_code())));
    Ok(shown?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_meant_by_id_label_or_beginning() {
        let sessions = [
            json!({ "session_id": "pty_0000aaaa", "label": "build", "is_alive": true }),
            json!({ "session_id": "pty_0000bbbb", "label": "web", "is_alive": true }),
            json!({ "session_id": "pty_1111cccc", "label": "web", "is_alive": true }),
            json!({ "session_id": "pty_1111dddd", "label": "build", "is_alive": false }),
            json!({ "session_id": "desk-7", "label": null }),
        ];
        let sessions: Vec<_> = sessions.iter().filter_map(Value::as_object).collect();
        for (name, expected) in [
            ("pty_0000aaaa", vec!["pty_0000aaaa"]),
            ("build", vec!["pty_0000aaaa"]),
            ("web", vec!["pty_0000bbbb", "pty_1111cccc"]),
            ("pty_0000", vec!["pty_0000aaaa", "pty_0000bbbb"]),
            ("0000a", vec!["pty_0000aaaa"]),
            ("1111d", vec!["pty_1111dddd"]),
            ("1111", vec!["pty_1111cccc"]),
            ("desk-7", vec!["desk-7"]),
            ("nothing", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(candidates(&sessions, name), expected, "{name:?}");
        }
    }

    #[test]
    fn whole_ids_need_no_looking_up() {
        assert!(is_whole_id("pty_0123abcd"));
        assert!(!is_whole_id("pty_0123abc") && !is_whole_id("pty_0123abcg") && !is_whole_id("0123abcd"));
    }
}
