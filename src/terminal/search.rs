//! Finding text in what a session shows and has shown.

use kpty_emulator::{Buffer, Mode, Request, Which};
use regex::{Regex, RegexBuilder};

use super::interface::Readable;
use crate::error::{Error, Result};
use crate::masked::{Page, lines_of};
use kpty_guard::{Masked, MaskedStr};

/// Longest pattern, in bytes.
const LONGEST_PATTERN: usize = 4 << 10;
/// Memory that a compiled pattern may take, in bytes; matching is linear in the text whatever the pattern.
const PATTERN_MEMORY: usize = 1 << 20;

/// A text or an expression to look for, line by line.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// The text itself, no character of it special.
    pub fn literal(text: &str) -> Result<Self> {
        Self::new("text", &regex::escape(text), false)
    }

    /// The text itself, in capital letters or not.
    pub fn literal_in_any_case(text: &str) -> Result<Self> {
        Self::new("text", &regex::escape(text), true)
    }

    /// A regular expression.
    pub fn regex(expression: &str, ignore_case: bool) -> Result<Self> {
        Self::new("regex", expression, ignore_case)
    }

    fn new(name: &'static str, expression: &str, ignore_case: bool) -> Result<Self> {
        if expression.is_empty() {
            return Err(Error::MissingParam(name));
        }
        if expression.len() > LONGEST_PATTERN {
            return Err(Error::invalid(name, format!("longer than {LONGEST_PATTERN} bytes")));
        }
        let built = RegexBuilder::new(expression).case_insensitive(ignore_case).size_limit(PATTERN_MEMORY).build();
        built.map(Self).map_err(|error| Error::invalid(name, error.to_string()))
    }

    /// True when the line has it.
    pub fn is_in(&self, line: &str) -> bool {
        self.0.is_match(line)
    }

    /// Where it is in the line, in bytes.
    pub fn find(&self, line: &str) -> Option<(usize, usize)> {
        self.0.find(line).map(|found| (found.start(), found.end()))
    }
}

/// What to look for.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    /// The pattern.
    pub pattern: Pattern,
    /// Lines around each match.
    pub context: usize,
    /// Matches in the answer; the newest are kept.
    pub max_matches: usize,
    /// The first line to look at.
    pub from_line: Option<u64>,
    /// The line to stop before; the alternate screen is not looked at then.
    pub until_line: Option<u64>,
}

/// A line that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// Its number.
    pub line: u64,
    /// Its text.
    pub text: Masked,
    /// The lines before it.
    pub before: Vec<Masked>,
    /// The lines after it.
    pub after: Vec<Masked>,
    /// The screen it is on; lines of the alternate one have numbers of their own.
    pub buffer: Buffer,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct SearchResult {
    /// Oldest first.
    pub matches: Vec<Match>,
    /// Matching lines in all.
    pub total: usize,
    /// The oldest line that is still kept.
    pub oldest_line: u64,
    /// The number after the last line.
    pub next_line: u64,
}

/// Looks through what a terminal shows and has shown.
pub(crate) fn search(shown: &impl Readable, request: &SearchRequest) -> SearchResult {
    // The lines around the range are read too, for the context of its first and last match.
    let around = request.context as u64;
    let (from, until) = (request.from_line.unwrap_or(0), request.until_line);
    let mode =
        Mode::Range { from: from.saturating_sub(around), until: until.map(|until| until.saturating_add(around)) };
    let main = shown.read(&Request { which: Which::Main, ..Request::new(mode) });
    let mut hits = Vec::new();
    let main_lines = Lines::of(&main, Buffer::Main);
    main_lines.find(&request.pattern, |line| line >= from && until.is_none_or(|until| line < until), &mut hits);
    let shown = shown.read(&Request::new(Mode::Full));
    let shown_lines = Lines::of(&shown, Buffer::Alternate);
    if shown.buffer == Buffer::Alternate && until.is_none() {
        shown_lines.find(&request.pattern, |_| true, &mut hits);
    }
    let total = hits.len();
    hits.drain(..total.saturating_sub(request.max_matches));
    let matches = hits.into_iter().map(|(lines, index)| lines.hit(index, request.context)).collect();
    SearchResult { matches, total, oldest_line: main.oldest_line, next_line: main.next_line }
}

/// Lines of one screen with their numbers.
struct Lines<'a> {
    texts: Vec<MaskedStr<'a>>,
    numbers: &'a [u64],
    buffer: Buffer,
}

impl<'a> Lines<'a> {
    fn of(page: &'a Page, buffer: Buffer) -> Self {
        Self { texts: lines_of(page).collect(), numbers: &page.line_numbers, buffer }
    }

    fn number(&self, index: usize) -> u64 {
        self.numbers.get(index).copied().unwrap_or_default()
    }

    /// Notes the lines that match.
    fn find<'b>(&'b self, pattern: &Pattern, counts: impl Fn(u64) -> bool, hits: &mut Vec<(&'b Self, usize)>) {
        let texts = self.texts.iter().enumerate();
        let matching = texts.filter(|(index, text)| counts(self.number(*index)) && pattern.is_in(text));
        hits.extend(matching.map(|(index, _)| (self, index)));
    }

    fn hit(&self, index: usize, context: usize) -> Match {
        let owned = |lines: &[MaskedStr<'_>]| lines.iter().map(|line| line.to_masked()).collect();
        let end = self.texts.len().min(index.saturating_add(1).saturating_add(context));
        Match {
            line: self.number(index),
            text: self.texts[index].to_masked(),
            before: owned(&self.texts[index.saturating_sub(context)..index]),
            after: owned(&self.texts[index + 1..end]),
            buffer: self.buffer,
        }
    }
}
