//! Access control: every route is behind these checks, and a rejected request is answered before its body is read.
//!
//! Threats from web pages in a browser on the same machine: a foreign page can send requests to loopback, and through a
//! name that it resolves to loopback (DNS rebinding) even read the replies. `Origin` and `Sec-Fetch-Site` reveal the
//! first, `Host` the second. A page also cannot send JSON without a CORS permission, and the server sends no CORS
//! headers. Threats from other users of the machine: the server checks the user at the other end of the connection
//! ([`Peer`]) or a token.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::body::HttpBody as _;
use axum::extract::{ConnectInfo, Request};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use super::Reach;
use super::body::{self, Refusal, refusal};
use super::browser::Browsers;
use super::log_limit::LogRateLimit;
use super::peer::{self, Peer};
use crate::error::{Error, Result};
use crate::store::Token;

/// Host names that denote this machine in requests of local programs.
const LOOPBACK_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];
/// Paths open to every local client: the health check, and the login paths of browsers, which require a code or the
/// server's own user.
const OPEN_PATHS: [&str; 3] = ["/health", "/ui", "/ui/open"];
/// Paths that a browser login grants read access to: the page's files, its socket, and the traffic log.
const PAGE_PATHS: [&str; 3] = ["/ui", "/ws/live", "/v1/pty-traffic"];
pub(super) const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
const BEARER: &str = "Bearer";

/// Marks a request of the server's own user, or one with the token.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownCaller;

/// How a request was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admitted {
    /// Authorized: own user, token or login, or any client when authorization is off.
    Known,
    /// Unauthorized, for a path that is open to everyone.
    Anybody,
}

/// Authorization of a request for the page or a live screen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Visitor {
    /// The server's own user, or a client with the token.
    pub(super) is_known: bool,
    /// A browser with a login, or any browser when authorization is off.
    pub(super) is_logged_in: bool,
}

/// Access policy of a server.
#[derive(Debug)]
pub(super) struct Policy {
    /// Ports that the server listens on.
    ports: Vec<u16>,
    /// Valid host names: those of loopback, and the listening address unless it is unspecified.
    names: Vec<String>,
    /// The usual values of `Host`, for a fast comparison.
    hosts: Vec<String>,
    reach: Reach,
    /// Allowed origins besides local pages.
    origins: Vec<String>,
    login: Login,
    browsers: Arc<Browsers>,
    /// Limits log lines about rejected requests.
    refusals: LogRateLimit,
}

/// How a caller proves that it is authorized.
#[derive(Debug)]
pub(super) enum Login {
    /// Authorization is off.
    Off,
    /// By the user id, or by the token if there is one. The token is checked only for other users.
    On(Option<Mutex<Token>>),
}

impl Policy {
    /// Creates a policy; origins are compared in the form that browsers send.
    pub(super) fn new(host: IpAddr, ports: Vec<u16>, reach: Reach, origins: &[String], login: Login) -> Result<Self> {
        let origins = origins.iter().map(|origin| written_origin(origin)).collect::<Result<_>>()?;
        let browsers = Arc::new(Browsers::new(ports.first().copied().unwrap_or(0)));
        let own = match host {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let mut names: Vec<String> = LOOPBACK_NAMES.map(str::to_owned).into();
        if host.is_loopback() && !names.contains(&own) {
            names.push(own);
        }
        let hosts = ports.iter().flat_map(|port| names.iter().map(move |name| format!("{name}:{port}"))).collect();
        Ok(Self { ports, names, hosts, reach, origins, login, browsers, refusals: LogRateLimit::default() })
    }

    /// Returns the browser logins.
    pub(super) fn browsers(&self) -> &Arc<Browsers> {
        &self.browsers
    }

    /// Replaces the token, if the policy has one.
    pub(super) fn replace_token(&self, token: Token) {
        if let Login::On(Some(known)) = &self.login {
            *lock(known) = token;
        }
    }

    /// Returns why a request is rejected, if it is.
    fn objection(&self, request: &Request, is_local_name: bool) -> Option<Refusal> {
        let (uri, headers) = (request.uri(), request.headers());
        if self.reach == Reach::Loopback && !is_local_name {
            let why = "Host must be localhost, 127.0.0.1, [::1] or the server's own address, with its port";
            return Some(refusal(StatusCode::FORBIDDEN, why));
        }
        if !is_arrival(request)
            && let Some(why) = self.objection_to_page(headers)
        {
            return Some(refusal(StatusCode::FORBIDDEN, why));
        }
        let looks = [Method::GET, Method::HEAD].contains(request.method());
        let is_open = looks && OPEN_PATHS.contains(&uri.path());
        let is_page = looks && is_of_page(uri.path()) && self.is_logged_in(request);
        if !is_open
            && !is_page
            && let Some(why) = self.objection_to_caller(request, is_local_name)
        {
            return Some(refusal(StatusCode::UNAUTHORIZED, why));
        }
        body::objection(request)
    }

    fn objection_to_page(&self, headers: &HeaderMap) -> Option<&'static str> {
        let origins: Vec<_> =
            headers.get_all(header::ORIGIN).iter().map(|value| value.to_str().unwrap_or("")).collect();
        let is_allowed = |origin: &&str| self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin));
        if !origins.is_empty() && origins.iter().all(is_allowed) {
            return None;
        }
        let may_ask = |origin: &&str| match headers.contains_key(header::UPGRADE) {
            // A browser opens a WebSocket for any page and does not mark it as cross-site, so the port is compared too.
            true => self.is_local_origin(origin, Some(&self.ports)),
            false => self.is_local_origin(origin, None),
        };
        if !origins.iter().all(may_ask) {
            return Some("requests from web pages of other machines are refused; --allow-origin lets one through");
        }
        let mut sites = headers.get_all(SEC_FETCH_SITE).iter();
        match sites.all(|site| site == "same-origin" || site == "none") {
            true => None,
            false => Some("requests from other web pages are refused"),
        }
    }

    /// On a network-facing server, an unknown host name may come from a page that attacks a local browser by DNS
    /// rebinding; then only the token counts.
    fn objection_to_caller(&self, request: &Request, is_local_name: bool) -> Option<&'static str> {
        let Login::On(token) = &self.login else { return None };
        if is_local_name && peer(request) == Peer::Own {
            return None;
        }
        match (token, bearer(request.headers())) {
            (Some(token), Some(guess)) if lock(token).matches(guess) => None,
            (Some(_), Some(_)) => Some("the token is wrong"),
            (Some(_), None) => Some("this server wants its token: Authorization: Bearer TOKEN"),
            (None, _) => Some("this server answers only the user that it runs as; --token-file lets others in"),
        }
    }

    /// Returns whether the caller is the server's own user or has the token; needed even when authorization is off.
    fn is_known(&self, request: &Request, is_local_name: bool) -> bool {
        match self.login {
            Login::On(_) => self.objection_to_caller(request, is_local_name).is_none(),
            Login::Off => peer(request) == Peer::Own,
        }
    }

    fn is_logged_in(&self, request: &Request) -> bool {
        let is_known = || self.browsers.has_login(request.headers(), peer(request), Instant::now());
        matches!(self.login, Login::Off) || is_known()
    }

    fn is_addressed_to_us(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        if uri.authority().is_none() && self.hosts.iter().any(|known| host == known.as_str()) {
            return true;
        }
        let host = host.to_str().ok().and_then(|host| host.parse().ok());
        let is_ours = |authority: &Authority| {
            self.is_local(authority) && authority.port_u16().is_some_and(|port| self.ports.contains(&port))
        };
        host.as_ref().is_some_and(is_ours) && uri.authority().is_none_or(is_ours)
    }

    /// Returns whether the authority is a name of this machine with an optional port. Compares the whole text: the
    /// parser's host ends at the bracket of `[::1].evil.example`.
    fn is_local(&self, authority: &Authority) -> bool {
        let host = match authority.port() {
            Some(port) => authority.as_str().strip_suffix(port.as_str()).and_then(|host| host.strip_suffix(':')),
            None => Some(authority.as_str()),
        };
        host.is_some_and(|host| self.names.iter().any(|name| host.eq_ignore_ascii_case(name)))
    }

    /// Returns whether the origin is a local page, on one of `ports` if given.
    fn is_local_origin(&self, origin: &str, ports: Option<&[u16]>) -> bool {
        let Some((scheme, rest)) = origin.split_once("://") else { return false };
        let is_port = |authority: &Authority| {
            ports.is_none_or(|ports| authority.port_u16().is_some_and(|port| ports.contains(&port)))
        };
        matches!(scheme, "http" | "https")
            && rest.parse().is_ok_and(|authority| self.is_local(&authority) && is_port(&authority))
    }
}

/// Returns the sender of a request; [`Peer::Orphaned`] when it was not determined.
pub(super) fn peer(request: &Request) -> Peer {
    request.extensions().get::<ConnectInfo<Peer>>().map_or(Peer::Orphaned, |ConnectInfo(peer)| *peer)
}

/// A user may open a link from a file or a message, which browsers report as cross-site navigation. The code proves the
/// intent, and only the page itself is returned.
fn is_arrival(request: &Request) -> bool {
    let headers = request.headers();
    let says = |name: &HeaderName, value: &str| headers.get(name).is_some_and(|said| said == value);
    request.method() == Method::GET
        && request.uri().path() == "/ui"
        && request.uri().query().is_some_and(|query| query.starts_with("code="))
        && !headers.contains_key(header::ORIGIN)
        && says(&SEC_FETCH_MODE, "navigate")
        && says(&SEC_FETCH_DEST, "document")
}

/// Returns whether the path belongs to the page.
fn is_of_page(path: &str) -> bool {
    PAGE_PATHS.iter().any(|page| path.strip_prefix(page).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// Returns whether a server without a token file requires a token anyway.
pub(super) fn needs_token() -> bool {
    !peer::IS_KNOWN_HERE
}

/// Checks a request and completes it with its body and the sender's authorization; or returns the rejection.
pub(super) async fn admit(policy: &Policy, request: &mut Request) -> std::result::Result<Admitted, Response> {
    let is_local_name = policy.is_addressed_to_us(request.uri(), request.headers());
    if let Some(refusal) = policy.objection(request, is_local_name) {
        if let Some(others) = policy.refusals.record() {
            let (host, path) = (request.headers().get(header::HOST), request.uri().path());
            tracing::warn!(?host, path, status = %refusal.0, others, "refused");
        }
        let is_login = refusal.0 == StatusCode::UNAUTHORIZED;
        let mut response = refusal.into_response();
        if is_login {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(BEARER));
        }
        return Err(response);
    }
    let is_known = policy.is_known(request, is_local_name);
    let is_trusted = is_known || matches!(policy.login, Login::Off);
    if !is_trusted && !request.body().is_end_stream() {
        // Open paths need no body, so an unauthorized client cannot make the server buffer megabytes.
        let refusal = refusal(StatusCode::PAYLOAD_TOO_LARGE, "this is answered without a body");
        return Err(refusal.into_response());
    }
    body::complete(request.body_mut()).await.map_err(IntoResponse::into_response)?;
    let mut admitted = if is_trusted { Admitted::Known } else { Admitted::Anybody };
    if is_known {
        request.extensions_mut().insert(KnownCaller);
    }
    if is_of_page(request.uri().path()) {
        let is_logged_in = policy.is_logged_in(request);
        request.extensions_mut().insert(Visitor { is_known, is_logged_in });
        if is_logged_in {
            admitted = Admitted::Known;
        }
    }
    Ok(admitted)
}

fn lock(token: &Mutex<Token>) -> MutexGuard<'_, Token> {
    token.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the token of a request; `None` when the header is repeated.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.as_bytes().split_at_checked(BEARER.len())?;
    scheme.eq_ignore_ascii_case(BEARER.as_bytes()).then_some(token.strip_prefix(b" ")?.trim_ascii())
}

/// Parses an origin from the command line. Browsers send `null` for every opaque origin, so it identifies no page.
fn written_origin(origin: &str) -> Result<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "+-.:[]_".contains(c);
    let is_origin = origin.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty() && !rest.is_empty() && scheme.chars().all(is_name) && rest.chars().all(is_name)
    });
    match is_origin {
        true => Ok(origin.to_owned()),
        false => Err(Error::Usage(format!(
            "{origin:?} is not an origin: give scheme, name and port as browsers send it, such as http://localhost:5173"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use axum::body::Body;

    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn request(uri: &str, peer: Peer, pairs: &[(&str, &str)]) -> Request {
        let mut request = Request::builder().method("POST").uri(uri).extension(ConnectInfo(peer));
        for &(name, value) in pairs {
            request = request.header(name, value);
        }
        request.body(Body::empty()).expect("a request")
    }

    fn policy(reach: Reach, origins: &[&str], login: Login) -> Policy {
        let origins: Vec<_> = origins.iter().map(|&origin| origin.to_owned()).collect();
        Policy::new(Ipv4Addr::LOCALHOST.into(), vec![8100], reach, &origins, login).expect("a policy")
    }

    fn status(policy: &Policy, request: &Request) -> u16 {
        let is_local_name = policy.is_addressed_to_us(request.uri(), request.headers());
        policy.objection(request, is_local_name).map_or(200, |(status, _)| status.as_u16())
    }

    fn passes(reach: Reach, uri: &str, pairs: &[(&str, &str)]) -> bool {
        status(&policy(reach, &[], Login::Off), &request(uri, Peer::User(7), pairs)) == 200
    }

    fn token() -> Token {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("token");
        std::fs::write(&path, TOKEN).expect("a file");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("our file");
        }
        Token::read(&path).expect("a token")
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
            ("[::1].evil.example:8100", false),
            ("[::1]evil.example:8100", false),
            ("127.0.0.2:8100", false),
            ("", false),
        ] {
            assert_eq!(passes(Reach::Loopback, "/mcp", &[("host", host)]), expected, "{host:?}");
        }
        let own = Policy::new([127, 0, 0, 2].into(), vec![8100], Reach::Loopback, &[], Login::Off).expect("a policy");
        for (host, expected) in [("127.0.0.2:8100", 200), ("localhost:8100", 200), ("127.0.0.3:8100", 403)] {
            assert_eq!(status(&own, &request("/mcp", Peer::Own, &[("host", host)])), expected, "{host}");
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
            ("http://[::1].evil.example", false),
            ("http://[::1].evil.example:8100", false),
            ("", false),
        ] {
            let pairs = [("host", "localhost:8100"), ("origin", origin)];
            assert_eq!(passes(Reach::Loopback, "/mcp", &pairs), expected, "{origin:?}");
        }
    }

    #[test]
    fn a_socket_is_opened_by_our_own_pages_only() {
        for (origin, expected) in
            [("http://localhost:8100", true), ("http://[::1]:8100", true), ("http://localhost:3000", false)]
        {
            let pairs = [("host", "localhost:8100"), ("origin", origin), ("upgrade", "websocket")];
            assert_eq!(passes(Reach::Loopback, "/ws/pty-traffic", &pairs), expected, "{origin}");
        }
    }

    #[test]
    fn a_server_for_the_network_has_many_names_but_the_same_pages() {
        assert!(passes(Reach::Network, "/mcp", &[("host", "box.example:8100")]));
        assert!(!passes(Reach::Network, "/mcp", &[("host", "box.example:8100"), ("origin", "http://evil.example")]));
    }

    #[test]
    fn a_page_that_is_named_may_ask_from_another_site() {
        let policy = policy(Reach::Loopback, &["http://desk.example:5173", "app://desk"], Login::Off);
        for (origin, site, expected) in [
            (Some("http://desk.example:5173"), Some("cross-site"), 200),
            (Some("HTTP://desk.example:5173"), None, 200),
            (Some("app://desk"), Some("same-site"), 200),
            (Some("http://desk.example"), None, 403),
            (Some("null"), None, 403),
            (Some("http://localhost:3000"), Some("same-site"), 403),
            (Some("http://localhost:8100"), Some("same-origin"), 200),
            (None, Some("cross-site"), 403),
            (None, Some("same-site"), 403),
            (None, Some("none"), 200),
            (None, Some("nonsense"), 403),
        ] {
            let mut pairs = vec![("host", "localhost:8100")];
            pairs.extend(origin.map(|origin| ("origin", origin)));
            pairs.extend(site.map(|site| ("sec-fetch-site", site)));
            assert_eq!(status(&policy, &request("/mcp", Peer::Own, &pairs)), expected, "{origin:?} {site:?}");
        }
    }

    #[test]
    fn a_link_may_be_followed_from_anywhere_but_not_framed() {
        let policy = policy(Reach::Loopback, &[], Login::On(None));
        for (method, uri, mode, dest, expected) in [
            ("GET", "/ui?code=1", "navigate", "document", 200),
            ("GET", "/ui?code=1", "navigate", "iframe", 403),
            ("GET", "/ui?code=1", "no-cors", "document", 403),
            ("GET", "/ui", "navigate", "document", 403),
            ("GET", "/ui/open", "navigate", "document", 403),
            ("GET", "/mcp?code=1", "navigate", "document", 403),
            ("POST", "/ui?code=1", "navigate", "document", 403),
        ] {
            let pairs = [("host", "localhost:8100"), ("sec-fetch-site", "cross-site")];
            let mut request = request(uri, Peer::Own, &pairs);
            *request.method_mut() = method.parse().expect("a method");
            request.headers_mut().insert(SEC_FETCH_MODE, mode.parse().expect("a value"));
            request.headers_mut().insert(SEC_FETCH_DEST, dest.parse().expect("a value"));
            assert_eq!(status(&policy, &request), expected, "{method} {uri} {mode} {dest}");
        }
    }

    #[test]
    fn what_is_no_origin_cannot_be_allowed() {
        for origin in ["null", "*", "", "localhost", "http://", "http://*", "http://a/b", "http://a b", "http://u@a"] {
            let written = written_origin(origin);
            assert!(written.is_err_and(|error| error.to_string().contains("such as http://")), "{origin:?}");
        }
    }

    #[test]
    fn the_own_user_or_the_token_opens() {
        let right = format!("Bearer {TOKEN}");
        let lower = format!("bearer  {TOKEN} ");
        let longer = format!("Bearer {TOKEN}0");
        let (with, without) = (Login::On(Some(Mutex::new(token()))), Login::On(None));
        let (with, without) = (policy(Reach::Loopback, &[], with), policy(Reach::Loopback, &[], without));
        for (policy, peer, sent, expected) in [
            (&without, Peer::Own, None, 200),
            (&without, Peer::User(7), None, 401),
            (&without, Peer::User(7), Some(right.as_str()), 401),
            (&with, Peer::Own, None, 200),
            (&with, Peer::User(7), None, 401),
            (&with, Peer::User(7), Some(right.as_str()), 200),
            (&with, Peer::User(7), Some(lower.as_str()), 200),
            (&with, Peer::User(7), Some(longer.as_str()), 401),
            (&with, Peer::User(7), Some("Bearer "), 401),
            (&with, Peer::User(7), Some("Bearer"), 401),
            (&with, Peer::User(7), Some(TOKEN), 401),
            (&with, Peer::User(7), Some("Basic eDp5"), 401),
        ] {
            let mut pairs = vec![("host", "localhost:8100")];
            pairs.extend(sent.map(|sent| ("authorization", sent)));
            assert_eq!(status(policy, &request("/mcp", peer, &pairs)), expected, "{peer:?} {sent:?}");
            let health = Request::builder().uri("/health").header("host", "localhost:8100").body(Body::empty());
            assert_eq!(status(policy, &health.expect("a request")), 200);
        }
        let twice = [("host", "localhost:8100"), ("authorization", right.as_str()), ("authorization", right.as_str())];
        assert_eq!(status(&with, &request("/mcp", Peer::User(7), &twice)), 401);
    }

    #[test]
    fn under_a_foreign_name_only_the_token_counts() {
        let policy = policy(Reach::Network, &[], Login::On(Some(Mutex::new(token()))));
        let right = format!("Bearer {TOKEN}");
        assert_eq!(status(&policy, &request("/mcp", Peer::Own, &[("host", "localhost:8100")])), 200);
        assert_eq!(status(&policy, &request("/mcp", Peer::Own, &[("host", "box.example:8100")])), 401);
        let sent = [("host", "box.example:8100"), ("authorization", right.as_str())];
        assert_eq!(status(&policy, &request("/mcp", Peer::User(7), &sent)), 200);
    }
}
