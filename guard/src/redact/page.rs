//! Redaction of lines that are there all at once.
//!
//! A line by itself costs more to begin with than to look at. So all of them are looked at first, in one pass, for
//! anything that a rule could start from; lines without it are left alone, unless the line before them says something.

use super::scan::KEYWORDS;
use super::stream::VALUE;
use super::{LineRedactor, Redactor, plain};

/// Masks the lines of a page, one after the other.
pub struct PageRedactor {
    lines: LineRedactor,
    /// Where in the page something stands that is worth a look, in order.
    places: Vec<usize>,
    /// The next of them.
    next: usize,
    /// Every line is worth a look.
    is_odd: bool,
    /// Where the next line begins.
    at: usize,
}

impl PageRedactor {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self { lines: redactor.lines(), places: Vec::new(), next: 0, is_odd: true, at: 0 }
    }

    /// Tells of the lines that come: all of them, with newlines between.
    pub fn begin(&mut self, page: &str) {
        let (page, redactor) = (page.as_bytes(), self.lines.redactor());
        (self.next, self.at) = (0, 0);
        self.is_odd =
            plain::has_controls(page) || redactor.known.as_ref().is_some_and(|known| known.search.is_match(page));
        self.places.clear();
        if !self.is_odd && !redactor.is_off {
            // Ends of keywords, and the word that stands before a value which is named on the line before.
            self.places.extend(KEYWORDS.found_in(page).map(|(_, end)| end - 1));
            self.places.extend(VALUE.find_iter(page));
            self.places.sort_unstable();
        }
    }

    /// The next line without secrets; `None` when there are none in it.
    pub fn redact(&mut self, line: &str) -> Option<String> {
        let end = self.at + line.len();
        while self.places.get(self.next).is_some_and(|&place| place < self.at) {
            self.next += 1;
        }
        let has_place = self.places.get(self.next).is_some_and(|&place| place < end);
        self.at = end + 1;
        match self.is_odd || has_place {
            true => self.lines.redact(line),
            false => self.lines.pass(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same lines, one by one and as a page.
    fn check(redactor: &Redactor, lines: &[&str]) -> usize {
        let (mut one_by_one, mut page) = (redactor.lines(), PageRedactor::new(redactor.clone()));
        page.begin(&lines.join("\n"));
        let mut masked = 0;
        for line in lines {
            let expected = one_by_one.redact(line);
            masked += usize::from(expected.is_some());
            assert_eq!(page.redact(line), expected, "{line:?} of {lines:?}");
        }
        masked
    }

    #[test]
    fn a_page_is_masked_like_its_lines() {
        let token = ["ghp_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
        let header = ["-----BEGIN RSA ", "PRIVATE KEY-----"].concat();
        let body = "MIIEpAIBAAKCAQEA75c1nXo2hRq0".repeat(2);
        let assigned = ["export API_", "KEY=", "9f8e7d6c5b4a39281706f5e4d3c2b1a0"].concat();
        let plain = ["", "total 12", "drwxr-xr-x 2 me me 4096 src", "line 7 of a full screen", "日本 ✓"];
        let odd = [
            token.as_str(),
            &header,
            &body,
            &assigned,
            "password:",
            "hunter2hunter2",
            "a-known-secret-value",
            "value: x",
        ];
        let redactor = Redactor::new(["a-known-secret-value".to_owned()]);
        let mut masked = 0;
        for first in odd.iter().chain(&plain) {
            for second in odd.iter().chain(&plain) {
                for third in odd.iter().chain(&plain) {
                    masked += check(&redactor, &[plain[1], first, second, plain[0], third, plain[3]]);
                    masked += check(&Redactor::default(), &[first, plain[4], second, third]);
                    masked += check(&Redactor::off(), &[first, second, third]);
                }
            }
        }
        assert!(masked > 1_000, "{masked} are too few to tell anything");
    }
}
