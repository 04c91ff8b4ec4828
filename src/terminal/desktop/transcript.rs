//! The lines of a desktop's terminal with numbers that stay, put together from looks at its end. No I/O.
//!
//! A bridge tells the last rows only, and of their place only a row that is counted from the oldest one it keeps. Each
//! look is laid over what is known: first where the rows say that it belongs, else where the text fits. Lines above the
//! screen never change, so where they differ the place is wrong. A look that fits nowhere begins anew, and that is a
//! loss: somebody cleared the history, or more was printed than the bridge shows.
//!
//! Two cases look alike: a full scrollback in which nothing happened, and one in which lines were added that
//! are all equal to those before them.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use kpty_emulator::row_ends;

use super::wire::Look;

/// Lines that are kept.
pub(super) const MAX_LINES: usize = 10_000;
/// Bytes of their text.
const MAX_BYTES: usize = 4 << 20;

/// A line and what tells it from others.
#[derive(Clone, Debug)]
struct Line {
    text: String,
    hash: u64,
}

impl Line {
    fn new(text: &str) -> Self {
        Self { text: text.to_owned(), hash: hash(text) }
    }
}

/// Tells lines apart.
pub(super) fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Where a look belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Its first whole line has this number.
    At(u64),
    /// Nothing of what is known is in it.
    Nowhere,
}

/// What is known of the main screen and its history.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    lines: VecDeque<Line>,
    bytes: usize,
    /// Number of the first line.
    first: u64,
    /// Lines before this one had left the screen.
    settled: u64,
    /// Number and first row of the line that the cursor was on.
    cursor: Option<(u64, u64)>,
    /// The oldest row of the terminal is among the lines.
    has_top: bool,
    /// The window at the last look.
    size: (u16, u16),
    /// How often a look did not fit.
    losses: u64,
}

/// A look at the end of the text, made ready to be laid over it.
pub(super) struct Tail<'a> {
    look: &'a Look,
    /// The whole lines of it.
    body: &'a [String],
    /// The number of the first of them, from a bridge that counts lines.
    number: Option<u64>,
    /// The oldest row of the terminal is in it.
    pub(super) is_whole: bool,
}

impl<'a> Tail<'a> {
    pub(super) fn new(look: &'a Look) -> Self {
        let rows: u64 = look.lines.iter().map(|line| rows_of(line, look.cols)).sum();
        let is_whole = look.row.is_some_and(|row| row < rows);
        // The first of several may be the end of a longer line.
        let skipped = usize::from(!is_whole && look.number.is_none() && look.lines.len() > 1);
        let number = look.number.map(|number| number + skipped as u64);
        Self { look, body: &look.lines[skipped..], number, is_whole }
    }

    /// Lines of it that are whole.
    pub(super) fn len(&self) -> usize {
        self.body.len()
    }

    /// The first row of the last line, when each line has so many rows.
    fn last_row(&self, rows: impl Fn(&str) -> u64) -> Option<u64> {
        self.look.row.zip(self.body.last()).map(|(row, last)| (row + 1).saturating_sub(rows(last)))
    }
}

fn rows_of(line: &str, cols: u16) -> u64 {
    // Bytes are at least as many as columns.
    if line.len() <= usize::from(cols) { 1 } else { row_ends(line, cols).len() as u64 }
}

impl Transcript {
    /// Number of the oldest line.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Number after the last line with text.
    pub(super) fn next(&self) -> u64 {
        let blank = self.lines.iter().rev().take_while(|line| line.text.is_empty()).count();
        self.first + (self.lines.len() - blank) as u64
    }

    /// Number after the last line, blank ones at the end included.
    fn end(&self) -> u64 {
        self.first + self.lines.len() as u64
    }

    /// Lines from this one on may have changed since the last look.
    pub(super) fn settled(&self) -> u64 {
        self.settled
    }

    /// Number of the line that the cursor was on.
    pub(super) fn cursor_line(&self) -> Option<u64> {
        self.cursor.map(|(line, _)| line)
    }

    /// The row that the cursor's line began in.
    pub(super) fn cursor_row(&self) -> Option<u64> {
        self.cursor.map(|(_, row)| row)
    }

    /// How often lines went unseen.
    pub(super) fn losses(&self) -> u64 {
        self.losses
    }

    /// Rows and columns of the window, once it was seen.
    pub(super) fn size(&self) -> Option<(u16, u16)> {
        (self.size != (0, 0)).then_some(self.size)
    }

    /// The text of a line.
    pub(super) fn line(&self, number: u64) -> Option<&str> {
        self.get(number).map(|line| line.text.as_str())
    }

    /// What tells a line from others.
    pub(super) fn line_hash(&self, number: u64) -> Option<u64> {
        self.get(number).map(|line| line.hash)
    }

    fn get(&self, number: u64) -> Option<&Line> {
        self.lines.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// Lines by number, as far as they are kept.
    pub(super) fn range(&self, from: u64, until: u64) -> impl Iterator<Item = (u64, &str)> {
        let (from, until) = (from.max(self.first), until.min(self.end()));
        (from..until).filter_map(|number| self.line(number).map(|text| (number, text)))
    }

    /// Where a tail belongs.
    pub(super) fn place(&self, tail: &Tail<'_>) -> Place {
        let cols = tail.look.cols;
        if let Some(number) = tail.number {
            // Another kpty counts lines as we do. A line that is not there yet is missing for good.
            let is_known = self.lines.is_empty() || number <= self.end();
            return if is_known { Place::At(number) } else { Place::Nowhere };
        }
        if self.lines.is_empty() {
            // Rows are at least as many as lines, so older lines can have their numbers later.
            let length = tail.body.len() as u64;
            return Place::At((tail.look.row.unwrap_or(0) + 1).saturating_sub(length).max(self.first));
        }
        let is_scrolled = self.settled > self.first;
        let rows: u64 = tail.body.iter().map(|line| rows_of(line, cols)).sum();
        if tail.is_whole && is_scrolled && rows < u64::from(tail.look.rows) {
            // There was history, and now there is less than a screen.
            return Place::Nowhere;
        }
        // Another width has other rows.
        let has_rows = self.size.1 == cols;
        let fitting = |at: &u64| self.fits(tail.body, *at);
        let found = match self.by_rows(tail, |line| rows_of(line, cols)) {
            _ if !has_rows => None,
            ByRows::Above => return Place::Nowhere,
            ByRows::At(at) => Some(at).filter(fitting),
            ByRows::Unknown => None,
        };
        // Some bridges count lines where others count rows.
        let by_lines = || match self.by_rows(tail, |_| 1) {
            ByRows::At(at) => Some(at).filter(fitting),
            _ => None,
        };
        let found = found.or_else(by_lines).or_else(|| self.by_text(tail.body));
        found.or_else(|| self.by_top(tail)).map_or(Place::Nowhere, Place::At)
    }

    /// The number of the first line, if no row was dropped at the top since the last look.
    fn by_rows(&self, tail: &Tail<'_>, rows: impl Fn(&str) -> u64) -> ByRows {
        let (Some((cursor, cursor_row)), Some(mut row)) = (self.cursor, tail.last_row(&rows)) else {
            return ByRows::Unknown;
        };
        let mut index = tail.body.len() - 1;
        let mut number = cursor;
        let mut at = cursor_row;
        while row > at {
            if index == 0 {
                return ByRows::Above;
            }
            index -= 1;
            row = row.saturating_sub(rows(&tail.body[index]));
        }
        while at > row {
            let line = number.checked_sub(1).and_then(|above| self.line(above));
            let Some(line) = line.filter(|_| index + 1 == tail.body.len()) else { return ByRows::Unknown };
            number -= 1;
            at = at.saturating_sub(rows(line));
        }
        let first = number.checked_sub(index as u64).filter(|_| at == row);
        first.map_or(ByRows::Unknown, ByRows::At)
    }

    /// Lines that cannot have changed are the same, and of the others enough to believe it.
    fn fits(&self, body: &[String], at: u64) -> bool {
        if self.has_top && at < self.first {
            return false;
        }
        let Some(score) = self.score(body, at) else { return false };
        score.settled > 0 || self.settled <= self.first || score.equal * 2 >= score.compared
    }

    /// How well a text fits at a place; `None` where a line differs that cannot have changed.
    fn score(&self, body: &[String], at: u64) -> Option<Score> {
        let mut score = Score::default();
        let (from, until) = (at.max(self.first), (at + body.len() as u64).min(self.end()));
        for number in from..until {
            let (line, known) = (&body[(number - at) as usize], self.get(number)?);
            let is_equal = known.text == *line;
            if number < self.settled && !is_equal {
                return None;
            }
            if line.is_empty() && known.text.is_empty() {
                continue;
            }
            score.compared += 1;
            score.equal += usize::from(is_equal);
            score.settled += usize::from(number < self.settled);
        }
        Some(score)
    }

    /// The place where the text fits best. The end of it is where the screen was, or below.
    fn by_text(&self, body: &[String]) -> Option<u64> {
        let length = body.len() as u64;
        let least = match self.has_top {
            true => self.first,
            false => self.first.saturating_sub(length - 1),
        };
        let least = least.max((self.settled + 1).saturating_sub(length));
        let mut best: Option<(usize, u64)> = None;
        for at in least..self.end() {
            let Some(score) = self.score(body, at) else { continue };
            let is_better = best.is_none_or(|(equal, _)| score.equal > equal);
            if is_better && score.equal > 0 && score.equal * 2 >= score.compared {
                best = Some((score.equal, at));
            }
        }
        best.map(|(_, at)| at)
    }

    /// Both begin with the oldest row, and with the same text there: lines left the screen before it was cleared.
    fn by_top(&self, tail: &Tail<'_>) -> Option<u64> {
        let text = tail.body.iter().position(|line| !line.is_empty())?;
        let is_same = self.line(self.first + text as u64) == Some(tail.body[text].as_str());
        let begins_alike = self.has_top && tail.is_whole && is_same;
        (begins_alike && self.score(tail.body, self.first).is_some()).then_some(self.first)
    }

    /// Lays a tail over what is known. Returns the number of its first whole line, and whether anything is different.
    pub(super) fn absorb(&mut self, tail: &Tail<'_>, place: Place) -> (u64, bool) {
        let (place, body) = (self.open(tail, place), tail.body);
        let mut changed = self.overlay(place, body);
        let last = place + (body.len() as u64).saturating_sub(1);
        let before = self.cursor;
        self.cursor = tail.last_row(|line| rows_of(line, tail.look.cols)).map(|row| (last, row));
        changed |= before.map(|(line, _)| line) != self.cursor.map(|(line, _)| line);
        self.note_size(tail.look);
        // What is more than a screen above the cursor has left the screen.
        let mut rows = 0;
        let mut top = last + 1;
        while top > place && rows < u64::from(tail.look.rows) {
            top -= 1;
            rows += rows_of(&body[(top - place) as usize], tail.look.cols);
        }
        self.settled = self.settled.max(top);
        self.has_top |= tail.is_whole;
        self.trim();
        (place, changed)
    }

    /// Makes the place fit: what is known goes where nothing of it fits.
    fn open(&mut self, tail: &Tail<'_>, place: Place) -> u64 {
        match place {
            Place::At(at) if !self.lines.is_empty() && at <= self.end() => {
                // Older lines come before the known ones, as long as no line is missing between them.
                if at + (tail.body.len() as u64) < self.first {
                    return self.begin_anew(tail);
                }
                at
            }
            Place::At(at) if self.lines.is_empty() => {
                (self.first, self.settled) = (at, at);
                at
            }
            _ => self.begin_anew(tail),
        }
    }

    fn begin_anew(&mut self, tail: &Tail<'_>) -> u64 {
        let at = tail.number.unwrap_or(0).max(self.end());
        self.lines.clear();
        self.bytes = 0;
        (self.first, self.settled, self.cursor, self.has_top) = (at, at, None, tail.is_whole);
        self.losses += 1;
        at
    }

    /// Puts lines at their numbers. Returns whether anything is different.
    fn overlay(&mut self, at: u64, body: &[String]) -> bool {
        let mut changed = false;
        let older = self.first.saturating_sub(at).min(body.len() as u64);
        for line in body[..older as usize].iter().rev() {
            self.bytes += line.len();
            self.lines.push_front(Line::new(line));
            self.first -= 1;
        }
        for (index, line) in body.iter().enumerate().skip(older as usize) {
            let offset = (at + index as u64 - self.first) as usize;
            match self.lines.get_mut(offset) {
                Some(known) if known.text == *line => {}
                Some(known) => {
                    self.bytes = self.bytes + line.len() - known.text.len();
                    *known = Line::new(line);
                    changed = true;
                }
                None => {
                    self.bytes += line.len();
                    self.lines.push_back(Line::new(line));
                    changed = true;
                }
            }
        }
        changed
    }

    /// Another window may show lines again that had left the screen.
    fn note_size(&mut self, look: &Look) {
        let size = (look.rows, look.cols);
        if self.size != size && self.size != (0, 0) {
            let shown = u64::from(look.rows.max(self.size.0));
            self.settled = self.settled.min(self.end().saturating_sub(2 * shown)).max(self.first);
        }
        self.size = size;
    }

    fn trim(&mut self) {
        while self.lines.len() > MAX_LINES || self.bytes > MAX_BYTES {
            let Some(line) = self.lines.pop_front() else { return };
            self.bytes -= line.text.len();
            self.first += 1;
            self.has_top = false;
        }
        self.settled = self.settled.max(self.first);
    }

    /// Text stands below the line that the cursor is on, or did when it was last seen.
    pub(super) fn has_text_below(&self) -> bool {
        self.cursor.is_some_and(|(line, _)| self.next() > line + 1)
    }

    /// Lays what the window shows over what is known, where it fits. Returns the number of its first line, and whether
    /// anything is different.
    pub(super) fn absorb_window(&mut self, look: &Look) -> (u64, bool) {
        let text = look.lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        let is_cut = look.lines.first().is_some_and(|line| line.starts_with("..."));
        let skipped = usize::from(is_cut && text > 1);
        let body = &look.lines[skipped..text.max(skipped)];
        if self.lines.is_empty() {
            let at = look.number.or(look.row).unwrap_or(0) + skipped as u64;
            (self.first, self.settled) = (at, at);
            self.overlay(at, body);
            self.cursor = None;
            self.note_size(look);
            return (at.saturating_sub(skipped as u64), true);
        }
        let by_rows = look.row.and_then(|row| self.number_at(row, look.cols)).map(|number| number + skipped as u64);
        let by_number = look.number.map(|number| number + skipped as u64);
        let fitting = by_number.or_else(|| by_rows.filter(|at| self.fits(body, *at)).or_else(|| self.by_text(body)));
        let is_joined = |at: &u64| *at <= self.end() && at + body.len() as u64 >= self.first;
        let Some(at) = fitting.filter(is_joined) else {
            // Somebody looks at something else: it has a place, but not in what is known.
            return (by_rows.unwrap_or(self.next()).saturating_sub(skipped as u64), false);
        };
        let mut changed = self.overlay(at, body);
        let window_end = at + (look.lines.len() - skipped) as u64;
        let shows_cursor = self.cursor.is_none_or(|(line, _)| line >= at && line < window_end);
        let end = at + body.len() as u64;
        if shows_cursor && end < self.next() {
            let kept = end.max(self.cursor_line().map_or(0, |line| line + 1));
            while self.end() > kept && self.end() > self.settled {
                changed |= self.lines.pop_back().is_some_and(|line| {
                    self.bytes -= line.text.len();
                    !line.text.is_empty()
                });
            }
        }
        self.note_size(look);
        self.trim();
        (at.saturating_sub(skipped as u64), changed)
    }

    /// The line that begins in a row, counted from where the cursor was.
    fn number_at(&self, row: u64, cols: u16) -> Option<u64> {
        let (mut number, mut at) = self.cursor?;
        while at > row {
            number = number.checked_sub(1)?;
            at = at.checked_sub(rows_of(self.line(number)?, cols))?;
        }
        while at < row {
            at += rows_of(self.line(number)?, cols);
            number += 1;
        }
        (at == row).then_some(number)
    }
}

/// What the rows say of a look.
enum ByRows {
    /// Its first line has this number.
    At(u64),
    /// So much was printed that the line of the cursor is above it.
    Above,
    /// They do not fit.
    Unknown,
}

#[derive(Default)]
struct Score {
    /// Lines with text that were compared.
    compared: usize,
    /// Of these, those that are the same.
    equal: usize,
    /// Those that cannot have changed.
    settled: usize,
}

#[cfg(test)]
mod tests;
