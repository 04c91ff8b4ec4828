//! What `until` says: a text, or an expression between slashes.

use serde_json::{Value, json};

/// Adds the condition to the arguments of a `wait`.
pub(super) fn add(until: &str, arguments: &mut Value) {
    match expression(until) {
        Some(expression) => arguments["regex"] = json!(expression),
        None => arguments["text"] = json!(until),
    }
}

/// The expression of `/expression/`.
pub(super) fn expression(until: &str) -> Option<&str> {
    until.strip_prefix('/')?.strip_suffix('/').filter(|expression| !expression.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_make_an_expression() {
        for (until, expected) in [
            ("done", json!({ "text": "done" })),
            ("/err(or)?/", json!({ "regex": "err(or)?" })),
            ("/", json!({ "text": "/" })),
            ("//", json!({ "text": "//" })),
            ("/usr/bin", json!({ "text": "/usr/bin" })),
        ] {
            let mut arguments = json!({});
            add(until, &mut arguments);
            assert_eq!(arguments, expected);
        }
    }
}
