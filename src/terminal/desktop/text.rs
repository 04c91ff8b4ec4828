//! What is known of a desktop's screen, read like a session of our own: the same modes, markers, caps and masks.
//!
//! Looks come in, answers go out. Nothing here asks the bridge.

use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroU64;

use kpty_emulator::{
    Buffer, Delta, Limits, Loss, MainSeen, Marker, MarkerId, Markers, Mode, Request, Sheet, Size, Which,
};

use super::transcript::{Place, Tail, Transcript, hash};
use super::wire::Look;
use crate::masked::{self, Page};
use kpty_guard::{Masked, Redactor};

/// Lines before a read that its masks are made with; the longest private keys have about a hundred.
pub(super) const KEY_LINES: u64 = 130;
/// Lines of private keys have 64 characters or more, but the last.
const SHORTEST_KEY_LINE: usize = 40;

/// The window as it was seen last: all its rows.
#[derive(Debug)]
struct Window {
    first: u64,
    lines: Vec<String>,
}

/// Both screens of a terminal.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) main: Transcript,
    window: Option<Window>,
    /// What a full-screen program shows, while it does.
    alternate: Option<Look>,
    markers: Markers,
    /// Lines that had gone unseen when the markers were made; those of an earlier number are disposed of.
    losses: u64,
}

impl Text {
    /// Nothing known yet. Markers are counted from a number that no earlier reader of the same terminal has.
    pub(super) fn new(markers_from: u64) -> Self {
        Self {
            main: Transcript::default(),
            window: None,
            alternate: None,
            markers: Markers::numbered_from(Limits::default().markers, NonZeroU64::MIN.saturating_add(markers_from)),
            losses: 0,
        }
    }

    /// Takes in the end of the main screen. Returns whether anything is different.
    pub(super) fn absorb_tail(&mut self, tail: &Tail<'_>, place: Place) -> bool {
        let was_alternate = self.alternate.take().is_some();
        let (_, changed) = self.main.absorb(tail, place);
        if changed {
            self.window = None;
        }
        changed || was_alternate
    }

    /// Takes in what the window shows. Returns whether anything is different.
    pub(super) fn absorb_window(&mut self, look: Look) -> bool {
        if look.buffer == Buffer::Alternate {
            let changed = self.alternate.as_ref().is_none_or(|known| known.lines != look.lines);
            self.alternate = Some(look);
            return changed;
        }
        let was_alternate = self.alternate.take().is_some();
        let (first, changed) = self.main.absorb_window(&look);
        self.window = Some(Window { first, lines: look.lines });
        changed || was_alternate
    }

    /// Which screen is shown.
    pub(super) fn buffer(&self) -> Buffer {
        if self.alternate.is_some() { Buffer::Alternate } else { Buffer::Main }
    }

    /// Lines of the shown screen from this number on; all of a full-screen program's.
    pub(super) fn shown(&self, from: u64) -> Vec<(u64, &str)> {
        match &self.alternate {
            Some(look) => look.lines.iter().enumerate().map(|(row, line)| (row as u64, line.as_str())).collect(),
            None => self.main.range(from, u64::MAX).collect(),
        }
    }

    /// The line that the cursor is on; of a full-screen program the last one with text.
    pub(super) fn cursor_text(&self) -> &str {
        match &self.alternate {
            Some(look) => look.lines.iter().rev().find(|line| !line.is_empty()).map_or("", String::as_str),
            None => self.main.cursor_line().and_then(|line| self.main.line(line)).unwrap_or_default(),
        }
    }

    /// The last line that is not blank.
    pub(super) fn last_text(&self) -> &str {
        let known = self.shown(self.main.settled());
        known.iter().rev().map(|(_, line)| *line).find(|line| !line.is_empty()).unwrap_or_default()
    }

    /// Number of the window's first line, where it was seen.
    pub(super) fn top_line(&self) -> Option<u64> {
        self.window.as_ref().filter(|_| self.alternate.is_none()).map(|window| window.first)
    }

    fn size(&self) -> Size {
        let shown = self.alternate.as_ref().map(|look| (look.rows, look.cols));
        let size = shown.or(self.main.size()).and_then(|(rows, cols)| Size::new(cols, rows).ok());
        size.unwrap_or_default()
    }

    /// Answers a read from what is known.
    pub(super) fn read(&mut self, request: &Request, redactor: &Redactor) -> Page {
        let is_main = self.alternate.is_none() || request.which == Which::Main;
        if self.losses != self.main.losses() {
            self.losses = self.main.losses();
            self.markers.clear();
        }
        let (lines, delta) = match (is_main, request.mode) {
            (true, Mode::Delta { since }) => self.main_delta(since, request.max_lines),
            (false, Mode::Delta { since }) => self.alternate_delta(since),
            (true, mode) => (self.main_lines(mode, request.max_lines), None),
            (false, mode) => (self.alternate_lines(mode), None),
        };
        let (next_line, oldest_line, cursor_line) = match is_main {
            true => {
                let next = self.main.next();
                (next, self.main.first(), self.main.cursor_line().unwrap_or(next))
            }
            false => (self.alternate_end(), 0, 0),
        };
        let sheet = Sheet {
            lines: Vec::new(),
            next_line,
            oldest_line,
            cursor_line,
            buffer: if is_main { Buffer::Main } else { Buffer::Alternate },
            size: self.size(),
            delta,
        };
        masked::of_sheet(sheet, self.masked(lines, is_main, redactor), request)
    }

    /// The lines without secrets. What stands before and between them is looked at too: a private key goes over many
    /// lines, and only its frame says what it is.
    fn masked(&self, wanted: Vec<(u64, String)>, is_main: bool, redactor: &Redactor) -> Vec<(u64, Masked)> {
        let (Some((first, _)), Some((last, _))) = (wanted.first(), wanted.last()) else { return Vec::new() };
        let (lead, last) = (first.saturating_sub(KEY_LINES), *last);
        let around: Vec<(u64, &str)> = match &self.alternate {
            Some(look) if !is_main => (0..)
                .zip(&look.lines)
                .map(|(row, line)| (row, line.as_str()))
                .take_while(|(row, _)| *row <= last)
                .collect(),
            _ => self.main.range(lead, last + 1).collect(),
        };
        let numbers: HashSet<u64> = wanted.iter().map(|(number, _)| *number).collect();
        let mut all: BTreeMap<u64, &str> = around.into_iter().collect();
        all.extend(wanted.iter().map(|(number, line)| (*number, line.as_str())));
        let joined = all.values().copied().collect::<Vec<_>>().join("\n");
        let joined = redactor.mask(joined);
        if joined.split('\n').count() == all.len() {
            let lines = all.keys().zip(joined.as_masked().split_lines()).filter(|(number, _)| numbers.contains(number));
            return lines.map(|(number, line)| (*number, line.to_masked())).collect();
        }
        let mut lines = redactor.lines();
        let masked = all.iter().map(|(number, line)| (*number, lines.mask(line)));
        masked.filter(|(number, _)| numbers.contains(number)).collect()
    }

    /// The oldest known line may be one of a private key whose frame was never seen.
    pub(super) fn may_begin_in_key(&self) -> bool {
        let is_body = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
        let first = self.main.line(self.main.first()).unwrap_or_default();
        first.len() >= SHORTEST_KEY_LINE && first.bytes().all(is_body)
    }

    fn main_lines(&self, mode: Mode, max_lines: Option<usize>) -> Vec<(u64, String)> {
        let main = &self.main;
        let next = main.next();
        let (from, until) = match mode {
            Mode::Viewport => match &self.window {
                Some(window) => {
                    return (window.first..).zip(&window.lines).map(|(number, line)| (number, line.clone())).collect();
                }
                None => (main.settled(), next),
            },
            Mode::Range { from, until } => (from, until.unwrap_or(next).min(next)),
            Mode::Full => (main.first(), next),
            Mode::Tail | Mode::Delta { .. } => (tail_from(next, max_lines), next),
        };
        main.range(from, until).map(|(number, line)| (number, line.to_owned())).collect()
    }

    fn alternate_end(&self) -> u64 {
        let lines = self.alternate.as_ref().map(|look| look.lines.as_slice()).unwrap_or_default();
        lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last as u64 + 1)
    }

    fn alternate_lines(&self, mode: Mode) -> Vec<(u64, String)> {
        let Some(look) = &self.alternate else { return Vec::new() };
        let (from, until) = match mode {
            Mode::Viewport => (0, look.lines.len() as u64),
            Mode::Range { from, until } => (from, until.unwrap_or(u64::MAX).min(self.alternate_end())),
            _ => (0, self.alternate_end()),
        };
        let numbered = look.lines.iter().enumerate().map(|(row, line)| (row as u64, line.clone()));
        numbered.filter(|(row, _)| (from..until).contains(row)).collect()
    }

    fn marker(&self, id: Option<MarkerId>) -> Option<&Marker> {
        self.markers.get(id?)
    }

    fn main_delta(&mut self, since: Option<MarkerId>, max_lines: Option<usize>) -> (Vec<(u64, String)>, Option<Delta>) {
        let (main, next) = (&self.main, self.main.next());
        let (lines, missed) = match self.marker(since).map(|seen| &seen.main) {
            Some(seen) => {
                let range = main.range(seen.first_changeable(), next);
                let changed = range.filter(|(number, _)| main.line_hash(*number) != seen.hash(*number));
                let missed = main.first().saturating_sub(seen.end());
                (changed.map(|(number, line)| (number, line.to_owned())).collect(), Some(missed))
            }
            None => {
                let mode = Mode::Delta { since: None };
                (self.main_lines(mode, max_lines), if since.is_some() { None } else { Some(0) })
            }
        };
        let marker = self.markers.add(Marker { main: self.seen_of_main(), alternate: None }, since);
        let loss = missed.filter(|&missed| missed > 0).map(|_| Loss::Limit);
        (lines, Some(Delta { marker, marker_disposed: missed != Some(0), missed_lines: missed, loss }))
    }

    fn alternate_delta(&mut self, since: Option<MarkerId>) -> (Vec<(u64, String)>, Option<Delta>) {
        let lines = self.alternate_lines(Mode::Full);
        let hashes: Vec<_> = lines.iter().map(|(_, line)| hash(line)).collect();
        let seen = self.marker(since).cloned();
        let is_known = since.is_none() || seen.is_some();
        let before = seen.as_ref().and_then(|seen| seen.alternate.clone()).unwrap_or_default();
        let changed = lines.into_iter().filter(|(row, line)| before.get(*row as usize) != Some(&hash(line))).collect();
        // What the reader had seen of the main screen is still what it had seen.
        let main = seen.map_or_else(|| MainSeen::nothing(self.main.first()), |seen| seen.main);
        let marker = self.markers.add(Marker { main, alternate: Some(hashes) }, since);
        let missed_lines = is_known.then_some(0);
        (changed, Some(Delta { marker, marker_disposed: !is_known, missed_lines, loss: None }))
    }

    fn seen_of_main(&self) -> MainSeen {
        let (main, first) = (&self.main, self.main.settled().min(self.main.next()));
        MainSeen::of(first, main.range(first, main.next()).map(|(_, line)| hash(line)).collect())
    }

    /// The first line that has to be looked at to tell what is new since a marker.
    pub(super) fn unseen_from(&self, since: Option<MarkerId>) -> Option<u64> {
        self.marker(since).map(|seen| seen.main.first_changeable())
    }
}

fn tail_from(next: u64, max_lines: Option<usize>) -> u64 {
    next.saturating_sub(max_lines.map_or(u64::MAX, |max| max as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(lines: &[&str], row: u64, buffer: Buffer) -> Look {
        Look {
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
            row: Some(row),
            rows: 4,
            cols: 20,
            buffer,
            number: None,
            at_prompt: None,
        }
    }

    /// A terminal that shows these lines, the cursor on the last.
    fn show(text: &mut Text, lines: &[&str]) {
        let look = look(lines, lines.len() as u64 - 1, Buffer::Main);
        let tail = Tail::new(&look);
        let place = text.main.place(&tail);
        text.absorb_tail(&tail, place);
    }

    fn delta(text: &mut Text, since: Option<u64>) -> (Vec<String>, Delta) {
        let mode = Mode::Delta { since: since.and_then(MarkerId::new) };
        let answer = text.read(&Request { max_lines: Some(3), ..Request::new(mode) }, &Redactor::new([]));
        (answer.lines().map(str::to_owned).collect(), answer.delta.expect("a delta"))
    }

    #[test]
    fn a_delta_has_what_is_new_or_changed_and_the_first_has_content() {
        let mut text = Text::new(0);
        show(&mut text, &["a", "b", "c", "$"]);
        let (lines, first) = delta(&mut text, None);
        assert_eq!(
            (lines, first.marker_disposed, first.missed_lines),
            (vec!["b".into(), "c".into(), "$".into()], false, Some(0))
        );
        show(&mut text, &["a", "b", "c", "$ x", "1", "2", "$"]);
        let (lines, second) = delta(&mut text, Some(first.marker.get()));
        assert_eq!(lines, ["1", "2", "$"], "the cap keeps the newest");
        assert!(!second.marker_disposed && second.marker != first.marker);
        let (lines, third) = delta(&mut text, Some(second.marker.get()));
        assert_eq!((lines, third.marker_disposed), (vec![], false));
        let (_, unknown) = delta(&mut text, Some(99));
        assert_eq!((unknown.marker_disposed, unknown.missed_lines), (true, None));
    }

    #[test]
    fn a_lost_marker_says_so() {
        let mut text = Text::new(0);
        show(&mut text, &["a", "b", "c", "d", "e", "f", "$"]);
        let (_, first) = delta(&mut text, None);
        show(&mut text, &["$"]);
        let (lines, second) = delta(&mut text, Some(first.marker.get()));
        assert_eq!((lines, second.marker_disposed, second.missed_lines), (vec!["$".to_owned()], true, None));
    }

    #[test]
    fn nothing_of_the_main_screen_is_lost_behind_a_full_screen_program() {
        let mut text = Text::new(0);
        show(&mut text, &["a", "$"]);
        let (_, first) = delta(&mut text, None);
        text.absorb_window(look(&["full", "screen", "", ""], 0, Buffer::Alternate));
        let (lines, second) = delta(&mut text, Some(first.marker.get()));
        assert_eq!(lines, ["full", "screen"]);
        text.absorb_window(look(&["full", "house", "", ""], 0, Buffer::Alternate));
        let (lines, third) = delta(&mut text, Some(second.marker.get()));
        assert_eq!(lines, ["house"]);
        show(&mut text, &["a", "$ vim", "b", "$"]);
        let (lines, _) = delta(&mut text, Some(third.marker.get()));
        assert_eq!(lines, ["$ vim", "b", "$"]);
    }

    #[test]
    fn there_are_as_many_markers_as_for_a_session_of_our_own() {
        let (mut text, limit) = (Text::new(0), Limits::default().markers);
        show(&mut text, &["a"]);
        let markers: Vec<_> = (0..=limit).map(|_| delta(&mut text, None).1.marker.get()).collect();
        assert!(!delta(&mut text, Some(markers[limit])).1.marker_disposed);
        assert!(delta(&mut text, Some(markers[0])).1.marker_disposed);
    }
}
