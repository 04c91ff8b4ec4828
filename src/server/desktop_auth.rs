//! Who speaks for the desktop: a secret that it brings itself, and one that other services are started with.
//!
//! A secret says who is asking about owners, not who may use the server: that is decided before any route is reached.

use std::sync::{Mutex, PoisonError};

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};

use super::access::KnownCaller;
use crate::config::Secret;
use kpty_guard::is_same;

/// The header with the secret of the desktop.
pub(super) const DESKTOP_SECRET: HeaderName = HeaderName::from_static("x-kuroryuu-desktop-secret");
/// The header with the secret of other services.
pub(super) const INTERNAL_SECRET: HeaderName = HeaderName::from_static("x-kuroryuu-internal-secret");

/// Hex digits of a desktop's secret.
const SECRET_DIGITS: usize = 64;

/// The secrets that are known.
#[derive(Debug)]
pub(super) struct DesktopAuth {
    desktop: Mutex<Option<Secret>>,
    internal: Option<Secret>,
}

/// What came of a new secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replaced {
    Taken,
    /// It cannot be one.
    Malformed,
    /// There is one, and the caller may not replace it.
    Refused,
}

impl DesktopAuth {
    /// No desktop has come yet.
    pub(super) fn new(internal: Option<Secret>) -> Self {
        Self { desktop: Mutex::default(), internal }
    }

    /// Takes the desktop's secret; in place of an older one only from a caller that is known.
    pub(super) fn replace(&self, secret: &[u8], request: &Parts) -> Replaced {
        let Some(secret) = normal(secret) else { return Replaced::Malformed };
        let mut desktop = self.desktop.lock().unwrap_or_else(PoisonError::into_inner);
        if desktop.is_some() && request.extensions.get::<KnownCaller>().is_none() {
            return Replaced::Refused;
        }
        *desktop = Some(secret);
        Replaced::Taken
    }

    /// The request brings the desktop's secret.
    pub(super) fn is_desktop(&self, headers: &HeaderMap) -> bool {
        let known = self.desktop.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let given = only(headers, &DESKTOP_SECRET).and_then(normal);
        known.zip(given).is_some_and(|(known, given)| is_same(known.reveal().as_bytes(), given.reveal().as_bytes()))
    }

    /// The request brings the secret of other services.
    pub(super) fn is_internal(&self, headers: &HeaderMap) -> bool {
        let given = only(headers, &INTERNAL_SECRET);
        self.internal.as_ref().zip(given).is_some_and(|(known, given)| is_same(known.reveal().as_bytes(), given))
    }
}

/// The value of a header that comes once; two of them are none.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value.as_bytes()),
        _ => None,
    }
}

/// A secret of the desktop as it is compared: capitals make no difference in hex.
fn normal(secret: &[u8]) -> Option<Secret> {
    let is_hex = secret.len() == SECRET_DIGITS && secret.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(secret).ok().filter(|_| is_hex)?;
    Some(Secret::new(text.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, value.parse().expect("a header value"));
        }
        headers
    }

    /// A request by somebody who is known, or not.
    fn by(is_known: bool) -> Parts {
        let (mut parts, ()) = axum::http::Request::new(()).into_parts();
        if is_known {
            parts.extensions.insert(KnownCaller);
        }
        parts
    }

    #[test]
    fn only_who_is_known_replaces_a_secret() {
        let auth = DesktopAuth::new(None);
        let (first, second) = ("01".repeat(32), "23".repeat(32));
        assert_eq!(auth.replace(first.as_bytes(), &by(false)), Replaced::Taken);
        assert_eq!(auth.replace(second.as_bytes(), &by(false)), Replaced::Refused);
        assert!(auth.is_desktop(&headers(&DESKTOP_SECRET, &[&first])));
        assert_eq!(auth.replace(second.as_bytes(), &by(true)), Replaced::Taken);
        assert!(auth.is_desktop(&headers(&DESKTOP_SECRET, &[&second])));
    }

    #[test]
    fn capitals_do_not_lock_a_desktop_out() {
        let auth = DesktopAuth::new(None);
        let (lower, upper) = ("ab".repeat(32), "AB".repeat(32));
        assert!(!auth.is_desktop(&headers(&DESKTOP_SECRET, &[&lower])), "no desktop has come yet");
        for known in [&lower, &upper] {
            assert_eq!(auth.replace(known.as_bytes(), &by(true)), Replaced::Taken);
            for given in [&lower, &upper] {
                assert!(auth.is_desktop(&headers(&DESKTOP_SECRET, &[given])));
            }
        }
        let other = "cd".repeat(32);
        for bad in [&[][..], &[""], &["ab"], &[&other], &[&lower, &lower], &[&lower[1..]]] {
            assert!(!auth.is_desktop(&headers(&DESKTOP_SECRET, bad)), "{bad:?}");
        }
        for bad in ["", "ab", &"xy".repeat(32), &"ab".repeat(33), &"é".repeat(32)] {
            assert_eq!(auth.replace(bad.as_bytes(), &by(true)), Replaced::Malformed, "{bad}");
        }
        assert!(auth.is_desktop(&headers(&DESKTOP_SECRET, &[&lower])), "a bad secret replaces nothing");
    }

    #[test]
    fn services_need_a_secret_that_was_set() {
        let set = DesktopAuth::new(Some(Secret::new("Hush")));
        let unset = DesktopAuth::new(None);
        for (given, expected) in [("Hush", true), ("hush", false), ("Hush ", false), ("", false)] {
            let given = headers(&INTERNAL_SECRET, &[given]);
            assert_eq!((set.is_internal(&given), unset.is_internal(&given)), (expected, false));
        }
        assert!(!set.is_desktop(&headers(&DESKTOP_SECRET, &["Hush"])));
    }
}
