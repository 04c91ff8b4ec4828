//! The query of a request. Few routes have one, so nothing more is needed to read it.

use axum::http::Uri;

use kpty_guard::Redactor;

/// Characters of what a caller sent that an answer repeats.
const ECHO_CHARS: usize = 200;

/// What a caller sent, as an answer may repeat it: masked, then cut.
pub(super) fn echo(text: &str, redactor: &Redactor) -> String {
    redactor.redact(text).chars().take(ECHO_CHARS).collect()
}

/// The same for what is one of a few short words: anything longer was not meant for its place, and is not repeated.
pub(super) fn echo_word(word: &str) -> String {
    match word.chars().count() {
        count @ 21.. => format!("(a text of {count} characters)"),
        _ => Redactor::default().redact(word).into_owned(),
    }
}

/// A value of the query, decoded; the first of several.
pub(super) fn query_value(uri: &Uri, name: &str) -> Option<String> {
    let pairs = uri.query()?.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.map(|(key, value)| (decoded(key), value)).find(|(key, _)| key == name).map(|(_, value)| decoded(value))
}

/// Text of a query: `+` is a space, `%` and two hex digits are a byte. What is not that stands for itself.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, others @ ..] = rest {
        let digits = others.get(..2).filter(|digits| *first == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        let byte = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[2..];
            }
            None => {
                bytes.push(if *first == b'+' { b' ' } else { *first });
                rest = others;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
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
