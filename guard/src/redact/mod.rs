//! Masks secrets in text that leaves the terminal.
//!
//! [`Redactor`] is the one entry. It hides the values that are known to be secret, wherever they stand, and what the
//! rules find: `rules.rs` has the table, `scan.rs` the pass over the text. Escape sequences are looked through, so
//! that a token with a colour inside is one. Redact before cutting: half a token matches nothing. What is hidden once
//! stays as it is when it is redacted again.

mod assign;
mod blocks;
mod keywords;
mod names;
mod page;
mod places;
mod plain;
mod rules;
mod scan;
mod stream;
#[cfg(test)]
mod tests;
mod values;
mod vendors_cloud;
mod vendors_code;
mod vendors_services;
mod watch;
mod words;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::AhoCorasick;

pub use self::page::PageRedactor;
pub use self::stream::{LineRedactor, RedactStream};
pub use self::watch::KeyWatch;

use self::scan::{Carry, Span};

/// What stands in place of a known secret.
const MASK: &str = "[REDACTED]";
/// What stands in place of a line of a private key that was seen before.
const KEY_MASK: &str = "[REDACTED_PRIVATE_KEY]";
/// Shorter values are too likely to be ordinary words.
const SHORTEST_LITERAL_CHARS: usize = 8;

/// How far around a known value others are looked for byte by byte, in lengths of the longest.
const NEAR_KNOWN: usize = 16;

/// How often masked text is looked at again; the second look rarely finds anything.
const MOST_LOOKS: usize = 6;

/// A value that is hidden wherever it stands.
type Literal = (String, &'static str);

/// Masks what looks like a secret, and the registered values. Clones share their values.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Option<Arc<Known>>,
    /// Only known values are masked.
    is_off: bool,
}

struct Known {
    literals: Vec<Literal>,
    search: AhoCorasick,
    /// Bytes of the longest of them.
    longest: usize,
}

impl Known {
    /// Finds every known value, also where they overlap. Most texts have none, which a search that may skip bytes
    /// finds out soon; only around a value that is there each byte is looked at.
    fn find(&self, text: &[u8], spans: &mut Vec<Span>) {
        let mut at = 0;
        while let Some(found) = self.search.find(&text[at..]) {
            let start = (at + found.end()).saturating_sub(self.longest);
            let end = text.len().min(at + found.end() + NEAR_KNOWN * self.longest);
            let near = self.search.find_overlapping_iter(&text[start..end]);
            spans.extend(near.map(|found| {
                let range = start + found.start()..start + found.end();
                Span::known(range, self.literals[found.pattern().as_usize()].1)
            }));
            if end == text.len() {
                break;
            }
            // What begins before this was found.
            at = end + 1 - self.longest;
        }
    }
}

/// Says how many secrets it knows, never which.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("literals", &self.literals().len()).finish()
    }
}

impl Redactor {
    /// A redactor that also masks these values. Values of fewer than 8 characters are left out.
    pub fn new(literals: impl IntoIterator<Item = String>) -> Self {
        Self::default().knowing(literals.into_iter().map(|literal| (literal, MASK)))
    }

    /// A redactor that masks, or does not.
    pub fn switched(is_on: bool) -> Self {
        if is_on { Self::default() } else { Self::off() }
    }

    /// A redactor that masks registered values only.
    pub fn off() -> Self {
        Self { known: None, is_off: true }
    }

    /// The same with one value more.
    pub fn with_literal(&self, literal: String) -> Self {
        self.with_literals([literal])
    }

    /// The same with more values.
    pub fn with_literals(&self, literals: impl IntoIterator<Item = String>) -> Self {
        self.knowing(literals.into_iter().map(|literal| (literal, MASK)))
    }

    /// The same with these lines of private keys that were seen, instead of those it knew.
    pub fn with_key_lines(&self, lines: impl IntoIterator<Item = String>) -> Self {
        if self.is_off {
            return self.clone();
        }
        let others = self.literals().iter().filter(|(_, mask)| *mask != KEY_MASK).cloned();
        let lines = lines.into_iter().map(|line| (line, KEY_MASK));
        Self::default().knowing(others.chain(lines).collect::<Vec<_>>())
    }

    /// The same with the values of these variables, as far as their names promise secrets.
    pub fn with_variables<'a>(&self, variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        if self.is_off {
            return self.clone();
        }
        let is_secret = |name: &str, value: &str| {
            let is_named = names::judge(name.as_bytes()).is_some_and(|name| {
                name.is_sure && !matches!(name.group, names::Group::AnyKey | names::Group::Perhaps)
            });
            // Somebody's password may be a word that stands everywhere.
            is_named
                && match values::kind(value.as_bytes()) {
                    values::Kind::Harmless => false,
                    values::Kind::Random => true,
                    values::Kind::Word => value.len() >= 16,
                }
        };
        let secret = variables.into_iter().filter(|(name, value)| is_secret(name, value));
        self.with_literals(secret.map(|(_, value)| value.to_owned()))
    }

    fn knowing(&self, more: impl IntoIterator<Item = Literal>) -> Self {
        let is_long = |literal: &Literal| literal.0.chars().count() >= SHORTEST_LITERAL_CHARS;
        let mut literals: Vec<Literal> =
            self.literals().iter().cloned().chain(more.into_iter().filter(is_long)).collect();
        literals.sort();
        literals.dedup_by(|a, b| a.0 == b.0);
        let search = AhoCorasick::new(literals.iter().map(|(literal, _)| literal)).ok();
        let longest = literals.iter().map(|(literal, _)| literal.len()).max().unwrap_or(0);
        let known = search.filter(|_| !literals.is_empty());
        let known = known.map(|search| Arc::new(Known { literals, search, longest }));
        Self { known, is_off: self.is_off }
    }

    fn literals(&self) -> &[Literal] {
        self.known.as_deref().map_or(&[], |known| &known.literals)
    }

    /// The text without secrets: one line or many, with escape sequences or without. What has no secret comes back as
    /// it is, without a copy.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.redact_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(into_text(bytes)),
        }
    }

    /// The same for output as it came, UTF-8 or not.
    pub fn redact_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let cuts = self.cuts(bytes, &mut Carry::default());
        match cuts.is_empty() {
            true => Cow::Borrowed(bytes),
            false => Cow::Owned(self.settled(apply(bytes, &cuts, 0), &Carry::default())),
        }
    }

    /// What is hidden changes what stands beside it: looks again until nothing more is found.
    fn settled(&self, mut masked: Vec<u8>, carry: &Carry) -> Vec<u8> {
        for _ in 0..MOST_LOOKS {
            let cuts = self.cuts(&masked, &mut carry.clone());
            if cuts.is_empty() {
                break;
            }
            masked = apply(&masked, &cuts, 0);
        }
        masked
    }

    /// The end of some output from an offset on. What stands before it is looked at too, so that a token that begins
    /// before the window is hidden in it.
    pub fn redact_window(&self, bytes: &[u8], from: usize) -> String {
        let cuts = self.cuts(bytes, &mut Carry::default());
        let masked = apply(bytes, &cuts, from);
        into_text(if cuts.is_empty() { masked } else { self.settled(masked, &Carry::default()) })
    }

    /// Where secrets stand in a line, in bytes.
    pub fn hidden(&self, line: &str) -> Vec<Range<usize>> {
        self.spans(line.as_bytes(), &mut Carry::default()).into_iter().map(|span| span.range).collect()
    }

    /// For lines that come one after the other.
    pub fn lines(&self) -> LineRedactor {
        LineRedactor::new(self.clone())
    }

    /// For lines that are there all at once.
    pub fn page(&self) -> PageRedactor {
        PageRedactor::new(self.clone())
    }

    /// For output that comes in pieces.
    pub fn stream(&self) -> RedactStream {
        RedactStream::new(self.clone())
    }

    /// What is to be hidden in plain text.
    fn spans(&self, text: &[u8], carry: &mut Carry) -> Vec<Span> {
        let mut spans = if self.is_off { Vec::new() } else { scan::scan(text, carry) };
        if let Some(known) = &self.known {
            known.find(text, &mut spans);
        }
        match spans.is_empty() {
            true => spans,
            false => scan::merged(spans, text),
        }
    }

    /// What is to be cut out of output with escape sequences. The sequences inside a secret stay.
    fn cuts(&self, raw: &[u8], carry: &mut Carry) -> Vec<Cut> {
        if !plain::has_controls(raw) {
            let spans = self.spans(raw, carry).into_iter();
            return spans.map(|span| Cut { range: span.range, mask: Some(span.mask) }).collect();
        }
        let plain = plain::plain(raw);
        let mut cuts = Vec::new();
        for Span { range, mask, .. } in self.spans(&plain.bytes, carry) {
            let mut mask = Some(mask);
            let places = plain.places(range).filter(|place| !place.is_empty());
            cuts.extend(places.map(|range| Cut { range, mask: mask.take() }));
        }
        let open = plain.open.map(|open| open..raw.len());
        for string in plain.strings.into_iter().chain(open) {
            let spans = self.spans(&raw[string.clone()], &mut Carry::default()).into_iter();
            cuts.extend(spans.map(|span| Cut {
                range: string.start + span.range.start..string.start + span.range.end,
                mask: Some(span.mask),
            }));
        }
        cuts.sort_by_key(|cut| cut.range.start);
        cuts
    }
}

/// Bytes that are left out, and what is shown where they were.
struct Cut {
    range: Range<usize>,
    mask: Option<&'static str>,
}

/// The bytes from an offset on, without what is cut.
fn apply(bytes: &[u8], cuts: &[Cut], from: usize) -> Vec<u8> {
    let mut kept = Vec::with_capacity(bytes.len() - from.min(bytes.len()));
    let mut done = from.min(bytes.len());
    // The mask of a secret that begins before the offset and goes on behind it.
    let mut pending = None;
    for Cut { range, mask } in cuts {
        pending = mask.or(pending);
        if range.end <= done {
            continue;
        }
        kept.extend_from_slice(&bytes[done..range.start.max(done)]);
        kept.extend_from_slice(pending.take().unwrap_or_default().as_bytes());
        done = range.end;
    }
    kept.extend_from_slice(&bytes[done..]);
    kept
}

/// Secrets end at characters, so that what is left of text is text.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
