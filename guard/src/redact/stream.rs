//! Redaction of what comes line by line or piece by piece.
//!
//! Lines are looked at one by one, with what the lines before said; so it makes no difference how output was cut into
//! pieces. No more than one line is held, and of a line without an end no more than 64 KiB.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::scan::Carry;
use super::{Redactor, apply};

/// Bytes of a line that are held at most.
const LONGEST_LINE: usize = 64 << 10;
/// Bytes at the end of a longer line that are held on, because a token may go on there.
const HELD_BACK: usize = 8 << 10;
/// Bytes of the line before that are looked at again.
const LOOKED_BACK: usize = 120;

/// The end of the word that stands before such a value, large or small. Made once: it is looked for in every line.
pub(super) static VALUE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"alue"));

/// Masks lines that come one after the other.
#[derive(Clone)]
pub struct LineRedactor {
    redactor: Redactor,
    carry: Carry,
    /// The end of the line before.
    before: Vec<u8>,
}

impl LineRedactor {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self { redactor, carry: Carry::default(), before: Vec::new() }
    }

    /// The next line without secrets; `None` when there are none in it.
    pub fn redact(&mut self, line: &str) -> Option<String> {
        self.redact_bytes(line.as_bytes()).map(super::into_text)
    }

    /// The same for a line as it came, with or without its newline.
    pub fn redact_bytes(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        let before = self.carry.clone();
        let cuts = self.redactor.cuts(line, &mut self.carry);
        let masked = (!cuts.is_empty()).then(|| self.redactor.settled(apply(line, &cuts, 0), &before));
        let masked = match masked {
            None if self.may_be_named_before(line) => self.redact_after_name(line),
            masked => masked,
        };
        self.remember(line);
        masked
    }

    /// The same for a line in which no rule has anything to start from; the lines before it may say otherwise.
    pub(super) fn pass(&mut self, line: &str) -> Option<String> {
        if !self.carry.is_empty() {
            return self.redact(line);
        }
        self.remember(line.as_bytes());
        None
    }

    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    fn remember(&mut self, line: &[u8]) {
        self.before.clear();
        self.before.extend_from_slice(&line[line.len().saturating_sub(LOOKED_BACK)..]);
    }

    /// The end of a line from an offset on; what stands before it was shown already. Only a line that is whole counts
    /// for the lines that come.
    pub fn redact_rest(&mut self, line: &[u8], from: usize, is_whole: bool) -> Vec<u8> {
        if from == 0 && is_whole {
            return self.redact_bytes(line).unwrap_or_else(|| line.to_vec());
        }
        let before = self.carry.clone();
        let mut carry = before.clone();
        let cuts = self.redactor.cuts(line, &mut carry);
        let masked = apply(line, &cuts, from);
        if is_whole {
            self.carry = carry;
            self.remember(line);
        }
        if cuts.is_empty() { masked } else { self.redactor.settled(masked, &before) }
    }

    /// A value whose name is on the line before.
    fn may_be_named_before(&self, line: &[u8]) -> bool {
        let start = &line[..line.len().min(LOOKED_BACK)];
        !self.before.is_empty() && VALUE.find(start).is_some()
    }

    fn redact_after_name(&self, line: &[u8]) -> Option<Vec<u8>> {
        let mut both = self.before.clone();
        if both.last() != Some(&b'\n') {
            both.push(b'\n');
        }
        let from = both.len();
        both.extend_from_slice(line);
        let cuts = self.redactor.cuts(&both, &mut Carry::default());
        cuts.iter().any(|cut| cut.range.start >= from).then(|| apply(&both, &cuts, from))
    }
}

/// Masks output that comes in pieces.
pub struct RedactStream {
    lines: LineRedactor,
    /// The beginning of a line.
    held: Vec<u8>,
    /// Inside a token that was too long to be held.
    is_swallowing: bool,
}

impl RedactStream {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self { lines: LineRedactor::new(redactor), held: Vec::new(), is_swallowing: false }
    }

    /// Takes a piece and returns what can be shown of all so far.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(piece.len());
        let mut rest = piece;
        while !rest.is_empty() {
            let newline = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
            let room = LONGEST_LINE - self.held.len();
            let (line, later) = rest.split_at(newline.min(room));
            self.held.extend_from_slice(line);
            rest = later;
            if self.held.ends_with(b"\n") {
                self.show_line(&mut shown);
            } else if self.held.len() == LONGEST_LINE {
                self.show_head(&mut shown);
            }
        }
        shown
    }

    /// What was held, at the end of the output.
    pub fn finish(mut self) -> Vec<u8> {
        let mut shown = Vec::new();
        self.show_line(&mut shown);
        shown
    }

    /// Bytes that are held.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    fn show_line(&mut self, shown: &mut Vec<u8>) {
        self.swallow();
        let line = std::mem::take(&mut self.held);
        match self.lines.redact_bytes(&line) {
            Some(masked) => shown.extend(masked),
            None => shown.extend_from_slice(&line),
        }
        self.is_swallowing = false;
        self.held = line;
        self.held.clear();
    }

    /// Shows the beginning of a line that is too long; what may go on stays.
    fn show_head(&mut self, shown: &mut Vec<u8>) {
        self.swallow();
        if self.held.len() < LONGEST_LINE {
            return;
        }
        let cuts = self.lines.redactor.cuts(&self.held, &mut self.lines.carry.clone());
        let wanted = LONGEST_LINE - HELD_BACK;
        let space = self.held[..wanted].iter().rposition(|byte| b" \t,;\"'".contains(byte)).map(|at| at + 1);
        let mut end = space.filter(|&at| at > wanted / 2).unwrap_or(wanted);
        if let Some(cut) = cuts.iter().find(|cut| cut.range.start < end && cut.range.end > end) {
            self.is_swallowing = cut.range.end == self.held.len();
            end = cut.range.end;
        }
        let kept: Vec<_> = cuts.into_iter().take_while(|cut| cut.range.start < end).collect();
        shown.extend(apply(&self.held[..end], &kept, 0));
        self.held.drain(..end);
    }

    /// Leaves out what still belongs to a token that was too long.
    fn swallow(&mut self) {
        if !self.is_swallowing {
            return;
        }
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`;,<>".contains(byte);
        let length = self.held.iter().position(is_end).unwrap_or(self.held.len());
        self.is_swallowing = length == self.held.len();
        self.held.drain(..length);
    }
}
