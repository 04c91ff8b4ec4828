//! Browser login: a single-use link with a short-lived code, exchanged for a login cookie.
//!
//! Codes and logins are in memory only, so a restarted server has_login none. Both are 128 random bits, compared in
//! constant time, and bound to the user that requested them: another user who learns one cannot use it
//! ([`Peer::may_act_for`]). A browser of the server's own user needs only an announcement instead of a code, because
//! the kernel identifies its user. Browsers do not bind cookies to a port, so the cookie's name contains the port,
//! which separates two servers. A login grants access to the page only: it permits no action outside the page's own
//! WebSocket.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};
use tokio::sync::watch;

use super::peer::Peer;
use crate::ids::random_hex;
use kpty_guard::is_same;

/// Lifetime of the link printed at startup.
pub(super) const FIRST_LINK_LIFE: Duration = Duration::from_secs(600);
/// Lifetime of a requested link.
pub(super) const LINK_LIFE: Duration = Duration::from_secs(120);
/// Maximum number of unused links and announcements; a new one evicts the oldest.
const MAX_CODES: usize = 16;
/// Maximum number of logins; a new one evicts the least recently used.
const MAX_LOGINS: usize = 32;
/// Lifetime of a login after its last use.
const LOGIN_LIFE: Duration = Duration::from_secs(12 * 3_600);

/// Links and logins of a server.
#[derive(Debug)]
pub(super) struct Browsers {
    cookie: String,
    state: Mutex<BrowserState>,
    /// Advances when a code is used.
    used: watch::Sender<()>,
}

#[derive(Default)]
struct BrowserState {
    codes: VecDeque<StoredSecret>,
    /// Logins, the most recently used last.
    logins: VecDeque<StoredSecret>,
    /// Expiry times of announced browsers of the server's own user.
    announced: VecDeque<Instant>,
}

struct StoredSecret {
    text: String,
    holder: Peer,
    until: Instant,
}

impl BrowserState {
    fn log_in(&mut self, holder: Peer, now: Instant) -> String {
        let text = random_hex();
        self.logins.retain(|login| login.until > now);
        if self.logins.len() == MAX_LOGINS {
            self.logins.pop_front();
        }
        self.logins.push_back(StoredSecret { text: text.clone(), holder, until: now + LOGIN_LIFE });
        text
    }
}

/// Shows counts only, no secrets.
impl std::fmt::Debug for BrowserState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BrowserState").field("codes", &self.codes.len()).field("logins", &self.logins.len()).finish()
    }
}

impl Browsers {
    /// Creates an empty table.
    pub(super) fn new(port: u16) -> Self {
        Self { cookie: format!("kpty_{port}"), state: Mutex::default(), used: watch::Sender::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BrowserState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a single-use code for a user.
    pub(super) fn new_code(&self, life: Duration, holder: Peer, now: Instant) -> String {
        let text = random_hex();
        let mut state = self.lock();
        state.codes.retain(|code| code.until > now);
        if state.codes.len() == MAX_CODES {
            state.codes.pop_front();
        }
        state.codes.push_back(StoredSecret { text: text.clone(), holder, until: now + life });
        text
    }

    /// Redeems a code and returns the `Set-Cookie` header of a new login; `None` for an invalid code. A code presented
    /// by the wrong user stays valid for the right one.
    pub(super) fn redeem(&self, code: &str, user: Peer, now: Instant) -> Option<String> {
        let mut state = self.lock();
        state.codes.retain(|code| code.until > now);
        let at = position(&state.codes, code).filter(|&at| user.may_act_for(state.codes[at].holder))?;
        state.codes.remove(at);
        let key = state.log_in(user, now);
        drop(state);
        self.used.send_replace(());
        Some(self.set_cookie(&key))
    }

    /// Waits until a code is used or expired.
    pub(super) async fn spent(&self, code: &str) {
        let mut used = self.used.subscribe();
        loop {
            let until = {
                let state = self.lock();
                position(&state.codes, code).map(|at| state.codes[at].until)
            };
            let Some(until) = until else { return };
            if tokio::time::timeout_at(until.into(), used.changed()).await.is_err() {
                return;
            }
        }
    }

    /// Announces a browser of the server's own user.
    pub(super) fn announce(&self, now: Instant) {
        let mut state = self.lock();
        state.announced.retain(|&until| until > now);
        if state.announced.len() == MAX_CODES {
            state.announced.pop_front();
        }
        state.announced.push_back(now + LINK_LIFE);
    }

    /// Redeems an announcement and returns the `Set-Cookie` header of the login.
    pub(super) fn redeem_announcement(&self, user: Peer, now: Instant) -> Option<String> {
        let mut state = self.lock();
        state.announced.retain(|&until| until > now);
        if user != Peer::Own {
            return None;
        }
        state.announced.pop_front()?;
        let key = state.log_in(user, now);
        Some(self.set_cookie(&key))
    }

    fn set_cookie(&self, key: &str) -> String {
        let (name, life) = (&self.cookie, LOGIN_LIFE.as_secs());
        format!("{name}={key}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict")
    }

    /// Returns whether the request has a valid login cookie, and renews that login.
    pub(super) fn has_login(&self, headers: &HeaderMap, user: Peer, now: Instant) -> bool {
        let Some(key) = self.cookie_of(headers) else { return false };
        let mut state = self.lock();
        state.logins.retain(|login| login.until > now);
        let at = position(&state.logins, key).filter(|&at| user.may_act_for(state.logins[at].holder));
        let Some(at) = at else { return false };
        if let Some(mut login) = state.logins.remove(at) {
            login.until = now + LOGIN_LIFE;
            state.logins.push_back(login);
        }
        true
    }

    /// Returns the value of the login cookie; `None` when it is repeated.
    fn cookie_of<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let mut ours = pairs.filter(|(name, _)| *name == self.cookie).map(|(_, value)| value);
        ours.next().filter(|_| ours.next().is_none())
    }
}

/// Returns the position of a secret. Compares with all of them, so the time does not depend on the match.
fn position(secrets: &VecDeque<StoredSecret>, guess: &str) -> Option<usize> {
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

    /// Returns the name and value of a `Set-Cookie` header.
    fn pair(set: &str) -> &str {
        set.split(';').next().expect("a pair")
    }

    #[test]
    fn a_code_opens_once_and_soon() {
        let (browsers, now) = (Browsers::new(8100), Instant::now());
        let code = browsers.new_code(LINK_LIFE, Peer::Own, now);
        let set = browsers.redeem(&code, Peer::Own, now).expect("a new code");
        assert!(set.starts_with("kpty_8100=") && set.contains("HttpOnly") && set.contains("SameSite=Strict"), "{set}");
        assert_eq!(browsers.redeem(&code, Peer::Own, now), None, "a code that was used");
        let late = browsers.new_code(LINK_LIFE, Peer::Own, now);
        assert_eq!(browsers.redeem(&late, Peer::Own, now + LINK_LIFE), None, "a code that is too old");
        for guess in ["", "0", &"0".repeat(32)] {
            assert_eq!(browsers.redeem(guess, Peer::Own, now), None, "{guess}");
        }
    }

    #[test]
    fn a_login_lasts_while_it_is_used() {
        let (browsers, mut now) = (Browsers::new(1), Instant::now());
        let set = browsers.redeem(&browsers.new_code(LINK_LIFE, Peer::Own, now), Peer::Own, now).expect("a login");
        let headers = with_cookie(&format!("other=1; {}", pair(&set)));
        for _ in 0..3 {
            now += LOGIN_LIFE - Duration::from_secs(1);
            assert!(browsers.has_login(&headers, Peer::Own, now));
        }
        assert!(!browsers.has_login(&headers, Peer::Own, now + LOGIN_LIFE));
        assert!(!browsers.has_login(&HeaderMap::new(), Peer::Own, now));
        let doubled = format!("{0}; {0}", pair(&set));
        assert!(!browsers.has_login(&with_cookie(&doubled), Peer::Own, now), "two cookies are none");
        assert!(
            !browsers.has_login(&with_cookie(&pair(&set).replace("kpty_1=", "kpty_2=")), Peer::Own, now),
            "of another port"
        );
    }

    #[test]
    fn links_and_logins_are_bounded() {
        let (browsers, now) = (Browsers::new(1), Instant::now());
        let codes: Vec<_> = (0..=MAX_CODES).map(|_| browsers.new_code(LINK_LIFE, Peer::Own, now)).collect();
        assert_eq!(browsers.redeem(&codes[0], Peer::Own, now), None, "the oldest went");
        let mut logins: Vec<String> =
            codes[1..].iter().filter_map(|code| browsers.redeem(code, Peer::Own, now)).collect();
        assert_eq!(logins.len(), MAX_CODES);
        while logins.len() <= MAX_LOGINS {
            logins.extend(browsers.redeem(&browsers.new_code(LINK_LIFE, Peer::Own, now), Peer::Own, now));
        }
        assert!(!browsers.has_login(&with_cookie(pair(&logins[0])), Peer::Own, now), "the oldest went");
        assert!(browsers.has_login(&with_cookie(pair(&logins[1])), Peer::Own, now));
    }

    #[test]
    fn what_was_made_for_one_user_opens_for_no_other() {
        let (browsers, now, thief) = (Browsers::new(1), Instant::now(), Peer::User(7));
        for holder in [Peer::Own, Peer::User(8), Peer::Unknown] {
            let code = browsers.new_code(LINK_LIFE, holder, now);
            assert_eq!(browsers.redeem(&code, thief, now), None, "{holder:?}");
            assert_eq!(browsers.redeem(&code, Peer::Orphaned, now), None, "{holder:?}");
            let set = browsers.redeem(&code, holder, now).expect("it is still good");
            assert!(!browsers.has_login(&with_cookie(pair(&set)), thief, now), "{holder:?}");
            assert!(browsers.has_login(&with_cookie(pair(&set)), holder, now), "{holder:?}");
        }
        assert_eq!(browsers.redeem_announcement(Peer::Own, now), None, "no browser was announced");
        browsers.announce(now);
        for user in [thief, Peer::Orphaned, Peer::Unknown] {
            assert_eq!(browsers.redeem_announcement(user, now), None, "{user:?}");
        }
        assert!(browsers.redeem_announcement(Peer::Own, now).is_some());
        assert_eq!(browsers.redeem_announcement(Peer::Own, now), None, "once");
        browsers.announce(now);
        assert_eq!(browsers.redeem_announcement(Peer::Own, now + LINK_LIFE), None, "soon");
    }

    #[tokio::test]
    async fn the_end_of_a_code_can_be_waited_for() {
        let (browsers, now) = (std::sync::Arc::new(Browsers::new(1)), Instant::now());
        let code = browsers.new_code(LINK_LIFE, Peer::Own, now);
        let waiting = tokio::spawn({
            let (browsers, code) = (std::sync::Arc::clone(&browsers), code.clone());
            async move { browsers.spent(&code).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        assert!(browsers.redeem(&code, Peer::Own, now).is_some());
        waiting.await.expect("it ends");
        browsers.spent("nonsense").await;
        browsers.spent(&browsers.new_code(Duration::ZERO, Peer::Own, now)).await;
    }
}
