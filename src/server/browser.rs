//! How a browser gets in: a link with a code that opens once and soon, and the login that it is exchanged for.
//!
//! Codes and logins are in memory only: a server that was started again knows none. Both are 128 random bits and are
//! compared in constant time. A cookie is not bound to a port by browsers, so its name has the port in it; that keeps
//! two servers apart, and a login is good for the page alone: it opens no action beside the page's own WebSocket.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};

use crate::guard::is_same;
use crate::ids::random_hex;

/// How long the link is good that a server prints at its start.
pub(super) const FIRST_LINK_LIFE: Duration = Duration::from_secs(600);
/// How long a link is good that was asked for.
pub(super) const LINK_LIFE: Duration = Duration::from_secs(120);
/// Links that wait to be opened; the oldest goes when one more is made.
const MAX_CODES: usize = 16;
/// Browsers that are logged in; the one that was silent for longest goes when one more comes.
const MAX_LOGINS: usize = 32;
/// How long a login lasts after its last use.
const LOGIN_LIFE: Duration = Duration::from_secs(12 * 3_600);

/// The links and logins of a server.
#[derive(Debug)]
pub(super) struct Browsers {
    cookie: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    codes: VecDeque<Secret>,
    /// The one that was used last is last.
    logins: VecDeque<Secret>,
}

struct Secret {
    text: String,
    until: Instant,
}

/// Says how many there are, never which.
impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("codes", &self.codes.len()).field("logins", &self.logins.len()).finish()
    }
}

impl Browsers {
    /// Nobody is logged in.
    pub(super) fn new(port: u16) -> Self {
        Self { cookie: format!("kpty_{port}"), state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A code that opens once.
    pub(super) fn new_code(&self, life: Duration, now: Instant) -> String {
        let text = random_hex();
        let mut state = self.lock();
        state.codes.retain(|code| code.until > now);
        if state.codes.len() == MAX_CODES {
            state.codes.pop_front();
        }
        state.codes.push_back(Secret { text: text.clone(), until: now + life });
        text
    }

    /// Takes a code, which is gone then. Returns the `Set-Cookie` of a new login; nothing for a code that is not good.
    pub(super) fn redeem(&self, code: &str, now: Instant) -> Option<String> {
        let mut state = self.lock();
        state.codes.retain(|code| code.until > now);
        let at = position(&state.codes, code)?;
        state.codes.remove(at);
        let key = random_hex();
        state.logins.retain(|login| login.until > now);
        if state.logins.len() == MAX_LOGINS {
            state.logins.pop_front();
        }
        state.logins.push_back(Secret { text: key.clone(), until: now + LOGIN_LIFE });
        let (name, life) = (&self.cookie, LOGIN_LIFE.as_secs());
        Some(format!("{name}={key}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict"))
    }

    /// The request comes from a browser that is logged in; its login lasts on from now.
    pub(super) fn knows(&self, headers: &HeaderMap, now: Instant) -> bool {
        let Some(key) = self.cookie_of(headers) else { return false };
        let mut state = self.lock();
        state.logins.retain(|login| login.until > now);
        let Some(at) = position(&state.logins, key) else { return false };
        if let Some(mut login) = state.logins.remove(at) {
            login.until = now + LOGIN_LIFE;
            state.logins.push_back(login);
        }
        true
    }

    /// The value of our cookie; two of them are none.
    fn cookie_of<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let mut ours = pairs.filter(|(name, _)| *name == self.cookie).map(|(_, value)| value);
        ours.next().filter(|_| ours.next().is_none())
    }
}

/// Where a secret is. All are compared, whichever is right.
fn position(secrets: &VecDeque<Secret>, guess: &str) -> Option<usize> {
    let mut found = None;
    for (at, secret) in secrets.iter().enumerate() {
        if is_same(secret.text.as_bytes(), guess.as_bytes()) {
            found = Some(at);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_cookie(cookie: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, cookie.parse().expect("a header value"));
        headers
    }

    /// The name and value of a `Set-Cookie`.
    fn pair(set: &str) -> &str {
        set.split(';').next().expect("a pair")
    }

    #[test]
    fn a_code_opens_once_and_soon() {
        let (browsers, now) = (Browsers::new(8100), Instant::now());
        let code = browsers.new_code(LINK_LIFE, now);
        let set = browsers.redeem(&code, now).expect("a new code");
        assert!(set.starts_with("kpty_8100=") && set.contains("HttpOnly") && set.contains("SameSite=Strict"), "{set}");
        assert_eq!(browsers.redeem(&code, now), None, "a code that was used");
        let late = browsers.new_code(LINK_LIFE, now);
        assert_eq!(browsers.redeem(&late, now + LINK_LIFE), None, "a code that is too old");
        for guess in ["", "0", &"0".repeat(32)] {
            assert_eq!(browsers.redeem(guess, now), None, "{guess}");
        }
    }

    #[test]
    fn a_login_lasts_while_it_is_used() {
        let (browsers, mut now) = (Browsers::new(1), Instant::now());
        let set = browsers.redeem(&browsers.new_code(LINK_LIFE, now), now).expect("a login");
        let headers = with_cookie(&format!("other=1; {}", pair(&set)));
        for _ in 0..3 {
            now += LOGIN_LIFE - Duration::from_secs(1);
            assert!(browsers.knows(&headers, now));
        }
        assert!(!browsers.knows(&headers, now + LOGIN_LIFE));
        assert!(!browsers.knows(&HeaderMap::new(), now));
        let doubled = format!("{0}; {0}", pair(&set));
        assert!(!browsers.knows(&with_cookie(&doubled), now), "two cookies are none");
        assert!(!browsers.knows(&with_cookie(&pair(&set).replace("kpty_1=", "kpty_2=")), now), "of another port");
    }

    #[test]
    fn links_and_logins_are_bounded() {
        let (browsers, now) = (Browsers::new(1), Instant::now());
        let codes: Vec<_> = (0..=MAX_CODES).map(|_| browsers.new_code(LINK_LIFE, now)).collect();
        assert_eq!(browsers.redeem(&codes[0], now), None, "the oldest went");
        let mut logins: Vec<String> = codes[1..].iter().filter_map(|code| browsers.redeem(code, now)).collect();
        assert_eq!(logins.len(), MAX_CODES);
        while logins.len() <= MAX_LOGINS {
            logins.extend(browsers.redeem(&browsers.new_code(LINK_LIFE, now), now));
        }
        assert!(!browsers.knows(&with_cookie(pair(&logins[0])), now), "the oldest went");
        assert!(browsers.knows(&with_cookie(pair(&logins[1])), now));
    }
}
