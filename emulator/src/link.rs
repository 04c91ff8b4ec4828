//! The links of OSC 8 by number, within bounds.
//!
//! Cells and stored lines carry a number instead of an address. The newest 5,000 addresses are kept; a number
//! whose address is gone is simply no link any more.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::history::LinkNumber;

/// Links kept.
pub(crate) const LINKS_LIMIT: usize = 5_000;
/// Longest address, in bytes. A longer one is no link.
pub(crate) const URI_LIMIT: usize = 2_048;

/// Addresses by number, numbers by address.
#[derive(Debug)]
pub(crate) struct Links {
    /// The newest addresses; the first has the number `first`.
    kept: VecDeque<Arc<str>>,
    first: LinkNumber,
    numbers: HashMap<Arc<str>, LinkNumber>,
}

impl Default for Links {
    fn default() -> Self {
        Self { kept: VecDeque::new(), first: 1, numbers: HashMap::new() }
    }
}

impl Links {
    /// The number of an address, `None` when it is too long to keep.
    pub(crate) fn number(&mut self, uri: &str) -> Option<LinkNumber> {
        if uri.len() > URI_LIMIT {
            return None;
        }
        if let Some(&number) = self.numbers.get(uri) {
            return Some(number);
        }
        if self.kept.len() == LINKS_LIMIT
            && let Some(oldest) = self.kept.pop_front()
        {
            self.numbers.remove(&oldest);
            self.first = self.first.wrapping_add(1).max(1);
        }
        let uri: Arc<str> = uri.into();
        let number = self.first.wrapping_add(self.kept.len() as LinkNumber);
        self.kept.push_back(uri.clone());
        self.numbers.insert(uri, number);
        Some(number)
    }

    /// The address of a number, if it is still kept.
    pub(crate) fn uri(&self, number: LinkNumber) -> Option<Arc<str>> {
        let index = number.checked_sub(self.first)? as usize;
        self.kept.get(index).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_links_are_kept_and_equal_ones_share_a_number() {
        let mut links = Links::default();
        let first = links.number("https://a.example/0");
        assert_eq!(first, links.number("https://a.example/0"));
        for index in 1..=LINKS_LIMIT {
            assert!(links.number(&format!("https://a.example/{index}")).is_some());
        }
        assert_eq!(links.kept.len(), LINKS_LIMIT);
        assert_eq!(links.numbers.len(), LINKS_LIMIT);
        assert_eq!(first.and_then(|number| links.uri(number)), None);
        let last = links.number("https://a.example/5000");
        assert_eq!(last.and_then(|number| links.uri(number)).as_deref(), Some("https://a.example/5000"));
    }

    #[test]
    fn an_address_over_the_bound_is_no_link() {
        assert_eq!(Links::default().number(&"x".repeat(URI_LIMIT + 1)), None);
    }
}
