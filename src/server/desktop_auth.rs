//! Secrets of the desktop app and of related services.
//!
//! A secret identifies who changes owners; it does not grant access to the server, which is decided before any route is
//! reached.

use std::sync::{Mutex, PoisonError};

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};

use super::access::KnownCaller;
use crate::config::Secret;
use kpty_guard::is_same;

/// Header with the desktop's secret.
pub(super) const DESKTOP_SECRET: HeaderName = HeaderName::from_static("x-kuroryuu-desktop-secret");
/// Header with the secret of other services.
pub(super) const INTERNAL_SECRET: HeaderName = HeaderName::from_static("x-kuroryuu-internal-secret");

/// Hex digits of the desktop's secret.
const SECRET_DIGITS: usize = 64;

/// The known secrets.
#[derive(Debug)]
pub(super) struct DesktopAuth {
    desktop: Mutex<Option<Secret>>,
    internal: Option<Secret>,
}

/// Outcome of registering a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplaceOutcome {
    Taken,
    /// Not a valid secret.
    Malformed,
    /// There is one already, and the caller may not replace it.
    Refused,
}

impl DesktopAuth {
    /// Creates a table without a desktop secret.
    pub(super) fn new(internal: Option<Secret>) -> Self {
        Self { desktop: Mutex::default(), internal }
    }

    /// Registers the desktop's secret. Only an authorized caller may replace an older one.
    pub(super) fn replace(&self, secret: &[u8], request: &Parts) -> ReplaceOutcome {
        let Some(secret) = normal(secret) else { return ReplaceOutcome::Malformed };
        let mut desktop = self.desktop.lock().unwrap_or_else(PoisonError::into_inner);
        if desktop.is_some() && request.extensions.get::<KnownCaller>().is_none() {
            return ReplaceOutcome::Refused;
        }
        *desktop = Some(secret);
        ReplaceOutcome::Taken
    }

    /// Returns whether the request has the desktop's secret.
    pub(super) fn is_desktop(&self, headers: &HeaderMap) -> bool {
        let known = self.desktop.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let given = only(headers, &DESKTOP_SECRET).and_then(normal);
        known.zip(given).is_some_and(|(known, given)| is_same(known.reveal().as_bytes(), given.reveal().as_bytes()))
    }

    /// Returns whether the request has the secret of other services.
    pub(super) fn is_internal(&self, headers: &HeaderMap) -> bool {
        let given = only(headers, &INTERNAL_SECRET);
        self.internal.as_ref().zip(given).is_some_and(|(known, given)| is_same(known.reveal().as_bytes(), given))
    }
}

/// Returns the value of a header; `None` when it is repeated.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value.as_bytes()),
        _ => None,
    }
}

/// Normalizes the desktop's secret for comparison: hex digits are case-insensitive.
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

    /// Builds a request of an authorized or unauthorized caller.
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
        assert_eq!(auth.replace(first.as_bytes(), &by(false)), ReplaceOutcome::Taken);
        assert_eq!(auth.replace(second.as_bytes(), &by(false)), ReplaceOutcome::Refused);
        assert!(auth.is_desktop(&headers(&DESKTOP_SECRET, &[&first])));
        assert_eq!(auth.replace(second.as_bytes(), &by(true)), ReplaceOutcome::Taken);
        assert!(auth.is_desktop(&headers(&DESKTOP_SECRET, &[&second])));
    }

    #[test]
    fn capitals_do_not_lock_a_desktop_out() {
        let auth = DesktopAuth::new(None);
        let (lower, upper) = ("ab".repeat(32), "AB".repeat(32));
        assert!(!auth.is_desktop(&headers(&DESKTOP_SECRET, &[&lower])), "no desktop has come yet");
        for known in [&lower, &upper] {
            assert_eq!(auth.replace(known.as_bytes(), &by(true)), ReplaceOutcome::Taken);
            for given in [&lower, &upper] {
                assert!(auth.is_desktop(&headers(&DESKTOP_SECRET, &[given])));
            }
        }
        let other = "cd".repeat(32);
        for bad in [&[][..], &[""], &["ab"], &[&other], &[&lower, &lower], &[&lower[1..]]] {
            assert!(!auth.is_desktop(&headers(&DESKTOP_SECRET, bad)), "{bad:?}");
        }
        for bad in ["", "ab", &"xy".repeat(32), &"ab".repeat(33), &"é".repeat(32)] {
            assert_eq!(auth.replace(bad.as_bytes(), &by(true)), ReplaceOutcome::Malformed, "{bad}");
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
