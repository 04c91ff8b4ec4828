//! Query values of a request, and client input repeated in a reply.

use axum::extract::Query;
use axum::http::Uri;

use kpty_guard::Redactor;

/// Maximum characters of client input repeated in a reply.
const ECHO_CHARS: usize = 200;

/// Redacts, then truncates client input that a reply repeats.
pub(super) fn echo(text: &str, redactor: &Redactor) -> String {
    redactor.redact(text).chars().take(ECHO_CHARS).collect()
}

/// Like [`echo`] for input that should be a short word: anything longer is not repeated.
pub(super) fn echo_word(word: &str) -> String {
    match word.chars().count() {
        count @ 21.. => format!("(a text of {count} characters)"),
        _ => Redactor::default().redact(word).into_owned(),
    }
}

/// Returns a decoded query value; the first if the name is repeated.
pub(super) fn query_value(uri: &Uri, name: &str) -> Option<String> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri).ok()?;
    pairs.into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded() {
        for (uri, expected) in [
            ("/x", None),
            ("/x?", None),
            ("/x?agent_id", Some("")),
            ("/x?agent_id=a1", Some("a1")),
            ("/x?b=1&agent_id=a+b%20c%2Fd%C3%A9&agent_id=z", Some("a b c/dé")),
            ("/x?agent%5Fid=1%+%2", Some("1% %2")),
            ("/x?agent_id=%FF", Some("\u{fffd}")),
            ("/x?other=agent_id", None),
        ] {
            let uri: Uri = uri.parse().expect("a URI");
            assert_eq!(query_value(&uri, "agent_id").as_deref(), expected, "{uri}");
        }
    }
}
