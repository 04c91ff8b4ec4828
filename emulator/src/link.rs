//! The links of OSC 8 by number, within bounds.
//!
//! Cells and stored lines carry a number instead of an address. The newest 5,000 addresses are kept; a number
//! whose address is gone is simply no link any more.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::history::LinkNumber;

/// Links kept.
pub(crate) const LINKS_LIMIT: usize = 5_000;
/// Bytes of all addresses together.
pub(crate) const LINKS_BYTES: usize = 1 << 20;
/// What an address takes besides its bytes: two entries and two counters.
const LINK_OVERHEAD: usize = 96;
/// Longest address, in bytes. A longer one is no link.
pub(crate) const URI_LIMIT: usize = 2_048;

/// Addresses by number, numbers by address.
#[derive(Debug)]
pub(crate) struct Links {
    /// The newest addresses; the first has the number `first`.
    kept: VecDeque<Arc<str>>,
    first: LinkNumber,
    numbers: HashMap<Arc<str>, LinkNumber>,
    /// Bytes of the addresses.
    bytes: usize,
}

impl Default for Links {
    fn default() -> Self {
        Self { kept: VecDeque::new(), first: 1, numbers: HashMap::new(), bytes: 0 }
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
        while (self.kept.len() == LINKS_LIMIT || self.bytes + uri.len() > LINKS_BYTES)
            && let Some(oldest) = self.kept.pop_front()
        {
            self.bytes -= oldest.len();
            self.numbers.remove(&oldest);
            self.first = self.first.wrapping_add(1).max(1);
        }
        self.bytes += uri.len();
        let uri: Arc<str> = uri.into();
        let number = self.first.wrapping_add(self.kept.len() as LinkNumber);
        self.kept.push_back(uri.clone());
        self.numbers.insert(uri, number);
        Some(number)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes + self.kept.len() * LINK_OVERHEAD
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
    fn long_addresses_are_bounded_together() {
        let mut links = Links::default();
        let first = links.number("https://a.example/");
        for index in 0..2_000 {
            assert!(links.number(&format!("{index:02048}")).is_some());
        }
        assert_eq!(links.kept.len(), LINKS_BYTES / URI_LIMIT);
        assert_eq!((links.numbers.len(), links.bytes), (links.kept.len(), LINKS_BYTES));
        assert_eq!(first.and_then(|number| links.uri(number)), None);
        assert!(links.heap_bytes() < 2 * LINKS_BYTES);
    }

    #[test]
    fn an_address_over_the_bound_is_no_link() {
        assert_eq!(Links::default().number(&"x".repeat(URI_LIMIT + 1)), None);
    }
}
