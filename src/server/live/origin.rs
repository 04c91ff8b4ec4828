//! Origin check of the WebSocket. Browsers open one to any server that a page names, with cookies, so the check is
//! stricter than for other requests: a page must come from this server and be logged in.

use axum::http::{HeaderMap, header};

use super::super::access::Visitor;

/// Returns why the socket is refused, if it is.
pub(super) fn objection(headers: &HeaderMap, visitor: Visitor) -> Option<&'static str> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    match (origins.next(), origins.next()) {
        // Programs send no origin; the own user or the token authorized them.
        (None, _) if visitor.is_known || visitor.is_logged_in => None,
        (Some(origin), None) if !is_own(headers, origin.as_bytes()) => Some("this page is of another origin"),
        (Some(_), None) if visitor.is_logged_in => None,
        (Some(_), Some(_)) => Some("a request has one origin"),
        _ => Some("log in first: `kpty open` makes a link"),
    }
}

/// Returns whether the page comes from the host that the request addresses.
fn is_own(headers: &HeaderMap, origin: &[u8]) -> bool {
    let host = headers.get(header::HOST).map(|host| host.as_bytes());
    let names = [&b"http://"[..], b"https://"];
    names.iter().filter_map(|scheme| origin.strip_prefix(*scheme)).any(|rest| host == Some(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_page_and_programs_open_it() {
        let (unknown, known) = (Visitor::default(), Visitor { is_known: true, is_logged_in: false });
        let (browser, both) =
            (Visitor { is_known: false, is_logged_in: true }, Visitor { is_known: true, is_logged_in: true });
        for (origins, visitor, is_open) in [
            (&[][..], known, true),
            (&[], browser, true),
            (&[], unknown, false),
            (&["http://localhost:8100"], browser, true),
            (&["http://localhost:8100"], both, true),
            (&["http://localhost:8100"], known, false),
            (&["http://localhost:3000"], both, false),
            (&["http://127.0.0.1:8100"], both, false),
            (&["http://localhost:8100", "http://localhost:8100"], both, false),
            (&["null"], both, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "localhost:8100".parse().expect("a value"));
            for origin in origins {
                headers.append(header::ORIGIN, origin.parse().expect("a value"));
            }
            assert_eq!(objection(&headers, visitor).is_none(), is_open, "{origins:?} {visitor:?}");
        }
    }
}
