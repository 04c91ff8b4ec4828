//! Who may ask: the defence of a server without a login against web pages in a browser on the same machine.
//!
//! A page of a foreign site can send requests to loopback, and by a name that it makes resolve to loopback
//! (DNS rebinding) even read the answers. The first betrays itself by `Origin`, the second by `Host`.

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Reach;
use super::body::refusal;

/// The names under which a program on this machine knows this machine.
const LOOPBACK_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// What is let through.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    port: u16,
    reach: Reach,
}

impl Policy {
    pub(super) fn new(port: u16, reach: Reach) -> Self {
        Self { port, reach }
    }

    /// Why a request is refused, if it is.
    fn objection(self, uri: &Uri, headers: &HeaderMap) -> Option<&'static str> {
        if self.reach == Reach::Loopback && !self.is_addressed_to_us(uri, headers) {
            return Some("Host must be localhost, 127.0.0.1 or [::1], with the port of this server");
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        if !origins.all(|origin| origin.to_str().is_ok_and(is_loopback_origin)) {
            return Some("requests from web pages of other machines are refused");
        }
        None
    }

    fn is_addressed_to_us(self, uri: &Uri, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        let host = host.to_str().ok().and_then(|host| host.parse().ok());
        let is_ours = |authority: &Authority| is_loopback(authority) && authority.port_u16() == Some(self.port);
        host.as_ref().is_some_and(is_ours) && uri.authority().is_none_or(is_ours)
    }
}

/// Lets a request pass or answers 403.
pub(super) async fn check(State(policy): State<Policy>, request: Request, next: Next) -> Response {
    match policy.objection(request.uri(), request.headers()) {
        None => next.run(request).await,
        Some(objection) => {
            tracing::warn!(host = ?request.headers().get(header::HOST), "refused: {objection}");
            refusal(StatusCode::FORBIDDEN, objection).into_response()
        }
    }
}

fn is_loopback(authority: &Authority) -> bool {
    let has_user = authority.as_str().contains('@');
    !has_user && LOOPBACK_NAMES.iter().any(|name| authority.host().eq_ignore_ascii_case(name))
}

fn is_loopback_origin(origin: &str) -> bool {
    let Some((scheme, rest)) = origin.split_once("://") else { return false };
    matches!(scheme, "http" | "https") && rest.parse().is_ok_and(|authority| is_loopback(&authority))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for &(name, value) in pairs {
            headers.append(name, value.parse().expect("a header value"));
        }
        headers
    }

    fn passes(reach: Reach, uri: &str, pairs: &[(&'static str, &'static str)]) -> bool {
        let uri = uri.parse().expect("a URI");
        Policy::new(8100, reach).objection(&uri, &headers(pairs)).is_none()
    }

    #[test]
    fn only_our_own_names_with_our_port_are_served() {
        for (host, expected) in [
            ("localhost:8100", true),
            ("LOCALHOST:8100", true),
            ("127.0.0.1:8100", true),
            ("[::1]:8100", true),
            ("localhost", false),
            ("localhost:8101", false),
            ("localhost.evil.example:8100", false),
            ("evil.example:8100", false),
            ("127.0.0.1.evil.example:8100", false),
            ("user@localhost:8100", false),
            ("0.0.0.0:8100", false),
            ("", false),
        ] {
            assert_eq!(passes(Reach::Loopback, "/mcp", &[("host", host)]), expected, "{host:?}");
        }
        assert!(!passes(Reach::Loopback, "/mcp", &[]));
        assert!(!passes(Reach::Loopback, "/mcp", &[("host", "localhost:8100"), ("host", "evil.example:8100")]));
        assert!(!passes(Reach::Loopback, "http://evil.example/mcp", &[("host", "localhost:8100")]));
    }

    #[test]
    fn pages_of_this_machine_may_ask_and_others_may_not() {
        for (origin, expected) in [
            ("http://localhost:3000", true),
            ("https://127.0.0.1", true),
            ("http://[::1]:8100", true),
            ("null", false),
            ("http://evil.example", false),
            ("http://localhost.evil.example", false),
            ("http://localhost@evil.example", false),
            ("file://localhost", false),
            ("", false),
        ] {
            let pairs = [("host", "localhost:8100"), ("origin", origin)];
            assert_eq!(passes(Reach::Loopback, "/mcp", &pairs), expected, "{origin:?}");
        }
    }

    #[test]
    fn a_server_for_the_network_has_many_names_but_the_same_pages() {
        assert!(passes(Reach::Network, "/mcp", &[("host", "box.example:8100")]));
        assert!(!passes(Reach::Network, "/mcp", &[("host", "box.example:8100"), ("origin", "http://evil.example")]));
    }
}
