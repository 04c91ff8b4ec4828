//! Who may ask, and with what: every route is behind these checks, and a request that fails one is answered before its
//! body is read.
//!
//! Against web pages in a browser on the same machine: a page of a foreign site can send requests to loopback, and by a
//! name that it makes resolve to loopback (DNS rebinding) even read the answers. The first betrays itself by `Origin`
//! or `Sec-Fetch-Site`, the second by `Host`; and a page cannot send JSON without being allowed to, which it never is:
//! there are no CORS headers. Against other users of the machine: the user at the other end of the connection
//! ([`Peer`]), or a token.

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
use super::peer::{self, Peer};
use super::rare::Rare;
use crate::error::{Error, Result};
use crate::store::Token;

/// The names under which a program on this machine knows this machine.
const LOOPBACK_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];
/// What everybody on the machine may ask: that the server is there, and the doors for browsers, which open by a code and
/// for our own user.
const OPEN_PATHS: [&str; 3] = ["/health", "/ui", "/ui/open"];
/// What the login of a browser opens, to look at: the page's files, its socket, and what the record of actions has.
const PAGE_PATHS: [&str; 3] = ["/ui", "/ws/live", "/v1/pty-traffic"];
pub(super) const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
const BEARER: &str = "Bearer";

/// The mark of a request by our own user, or with the token.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownCaller;

/// As whom a request was let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admitted {
    /// As somebody who may ask: our own user, the token, a login, or anybody where everybody may.
    Known,
    /// As anybody, for what is open to everybody.
    Anybody,
}

/// Who asks for a page or a live screen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Visitor {
    /// Our own user, or somebody with the token.
    pub(super) is_known: bool,
    /// A browser that was let in by a link, or any where everybody is let in.
    pub(super) is_logged_in: bool,
}

/// What is let through.
#[derive(Debug)]
pub(super) struct Policy {
    /// Where the server listens.
    ports: Vec<u16>,
    /// What this machine is called here: the names of loopback, and the address that the server listens on if it is one.
    names: Vec<String>,
    /// What a request for it has as `Host`, as nearly everybody writes it.
    hosts: Vec<String>,
    reach: Reach,
    /// Pages that may ask besides those of this machine.
    origins: Vec<String>,
    login: Login,
    browsers: Arc<Browsers>,
    /// How many were refused.
    refusals: Rare,
}

/// How a caller shows that it may ask.
#[derive(Debug)]
pub(super) enum Login {
    /// It need not.
    Off,
    /// By being our own user, or by the token if there is one. It is looked at only for who is not our own user.
    On(Option<Mutex<Token>>),
}

impl Policy {
    /// A policy; origins are compared as browsers write them.
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
        Ok(Self { ports, names, hosts, reach, origins, login, browsers, refusals: Rare::default() })
    }

    /// The browsers that were let in by a link.
    pub(super) fn browsers(&self) -> &Arc<Browsers> {
        &self.browsers
    }

    /// Lets in with another token from now on, where there is one.
    pub(super) fn replace_token(&self, token: Token) {
        if let Login::On(Some(known)) = &self.login {
            *lock(known) = token;
        }
    }

    /// Why a request is refused, if it is.
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
            // A browser opens a socket for any page and does not say that the page is another server's.
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

    /// In a server for the network, a name that is not ours may be a web page's trick on our own browser: there only
    /// the token counts.
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

    /// The caller is our own user or has the token; where everybody is let in, the peer has to be looked at.
    fn is_known(&self, request: &Request, is_local_name: bool) -> bool {
        match self.login {
            Login::On(_) => self.objection_to_caller(request, is_local_name).is_none(),
            Login::Off => peer(request) == Peer::Own,
        }
    }

    fn is_logged_in(&self, request: &Request) -> bool {
        let is_known = || self.browsers.knows(request.headers(), peer(request), Instant::now());
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

    /// One of the names of this machine and nothing else, but for a port. The whole text is compared: the parser's own
    /// idea of the host ends at the bracket of `[::1].evil.example`.
    fn is_local(&self, authority: &Authority) -> bool {
        let host = match authority.port() {
            Some(port) => authority.as_str().strip_suffix(port.as_str()).and_then(|host| host.strip_suffix(':')),
            None => Some(authority.as_str()),
        };
        host.is_some_and(|host| self.names.iter().any(|name| host.eq_ignore_ascii_case(name)))
    }

    /// A page of this machine; of one of these ports, where some are given.
    fn is_local_origin(&self, origin: &str, ports: Option<&[u16]>) -> bool {
        let Some((scheme, rest)) = origin.split_once("://") else { return false };
        let is_port = |authority: &Authority| {
            ports.is_none_or(|ports| authority.port_u16().is_some_and(|port| ports.contains(&port)))
        };
        matches!(scheme, "http" | "https")
            && rest.parse().is_ok_and(|authority| self.is_local(&authority) && is_port(&authority))
    }
}

/// Who sent a request; nobody where that was not looked at.
pub(super) fn peer(request: &Request) -> Peer {
    request.extensions().get::<ConnectInfo<Peer>>().map_or(Peer::Nobody, |ConnectInfo(peer)| *peer)
}

/// A person's browser comes with a link, from a file that leads here or from a message. Browsers call that another site;
/// the code shows that it is meant, and nothing but the page itself is answered.
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

/// The path is one of the page's, or below one.
fn is_of_page(path: &str) -> bool {
    PAGE_PATHS.iter().any(|page| path.strip_prefix(page).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// Whether a server without a token file needs a token all the same.
pub(super) fn needs_token() -> bool {
    !peer::IS_KNOWN_HERE
}

/// Gives a request its whole body and what is known of its sender, as whoever answers is to see it; or the answer that
/// says why not.
pub(super) async fn admit(policy: &Policy, request: &mut Request) -> std::result::Result<Admitted, Response> {
    let is_local_name = policy.is_addressed_to_us(request.uri(), request.headers());
    if let Some(refusal) = policy.objection(request, is_local_name) {
        if let Some(others) = policy.refusals.count() {
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
        // What is open to everybody needs none, and nobody unknown has us hold megabytes.
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

/// The token that a request brings. Two of them are none.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.as_bytes().split_at_checked(BEARER.len())?;
    scheme.eq_ignore_ascii_case(BEARER.as_bytes()).then_some(token.strip_prefix(b" ")?.trim_ascii())
}

/// An origin as somebody wrote it for us. `null` is what every page without an origin says, so it names nobody.
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
