//! Failures in few words: the code, what happened, and the one call that helps.

use serde_json::Value;

use super::actions::{Fields, text as field};
use super::header::add_line;

/// Characters of a message.
const MESSAGE_CHARS: usize = 160;

/// A failure as text.
pub(super) fn text(body: &Fields) -> String {
    let code = field(body, "error_code");
    let details = body.get("details").and_then(Value::as_object);
    let detail = |name: &str| details.and_then(|details| details.get(name)).and_then(Value::as_str).unwrap_or_default();
    let message = match code {
        "PTY_BUSY" if !detail("foreground").is_empty() => format!("{} runs; nothing was typed", detail("foreground")),
        "PTY_SESSION_NOT_FOUND" => "no such session".to_owned(),
        "PTY_PROCESS_EXITED" => "the program of the session has ended".to_owned(),
        "DANGEROUS_COMMAND_BLOCKED" => [detail("reason"), detail("alternative")].join("; try: "),
        _ => first_sentence(field(body, "message")).to_owned(),
    };
    let mut text = format!("{code}: {}", message.chars().take(MESSAGE_CHARS).collect::<String>());
    if let Some(hint) = hint(code) {
        add_line(&mut text, hint);
    }
    text
}

/// The call that helps.
fn hint(code: &str) -> Option<&'static str> {
    Some(match code {
        "PTY_BUSY" => "term_look {\"screen\":true} shows it; term_type answers or ends it; term_wait waits for it",
        "PTY_SESSION_NOT_FOUND" => "term_sessions {\"op\":\"list\"}",
        "PTY_PROCESS_EXITED" => "leave out session for a new shell",
        "PTY_INCOMPLETE_COMMAND" => "complete the command and run it again",
        "PTY_SECRET_PROMPT" => {
            "a person answers (kpty answer), or term_sessions {\"op\":\"open\",\"secrets\":\"agent\"} for a shell where you may"
        }
        _ => return None,
    })
}

/// Messages say next what to try with `k_pty`.
fn first_sentence(message: &str) -> &str {
    message.find(". ").map_or(message, |end| &message[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, ErrorCode};
    use crate::ids::SessionId;
    use crate::tools::envelope::failed;
    use kpty_guard::Redactor;

    #[test]
    fn a_failure_names_its_code_and_what_helps() {
        let body = failed(&Error::SessionNotFound(SessionId::named("x")), &Redactor::default());
        assert_eq!(text(&body), "PTY_SESSION_NOT_FOUND: no such session\nterm_sessions {\"op\":\"list\"}");
        let body = failed(&Error::MissingParam("command"), &Redactor::default());
        assert!(text(&body).starts_with("MISSING_PARAM: "), "{}", text(&body));
    }

    #[test]
    fn hints_are_for_codes_that_exist() {
        let known = |code: &str| ErrorCode::ALL.iter().any(|known| known.as_str() == code);
        for code in ["PTY_BUSY", "PTY_SESSION_NOT_FOUND", "PTY_PROCESS_EXITED", "PTY_INCOMPLETE_COMMAND"] {
            assert!(known(code) && hint(code).is_some(), "{code}");
        }
    }
}
