//! Markers: what a reader had seen, so that the next delta tells only what is new or changed.
//!
//! Owns the table of markers and their disposal. A marker keeps one hash for each line that could still change
//! when it was made: those on the screen. Lines above the screen change only in a resize; before one, their
//! hashes are taken once and shared by all markers that had seen them.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::Arc;

use crate::lines::Lines;

/// Names a marker; positive, never used twice in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MarkerId(NonZeroU64);

impl MarkerId {
    /// `None` for zero, which names no marker.
    pub fn new(id: u64) -> Option<Self> {
        NonZeroU64::new(id).map(Self)
    }

    /// The number.
    pub fn get(self) -> u64 {
        self.0.get()
    }
}

/// What a reader had seen of the main screen.
#[derive(Clone, Debug)]
pub struct MainSeen {
    /// Number of the first line that `hashes` covers: the first on the screen.
    first: u64,
    hashes: Arc<[u64]>,
    /// Lines above the screen as they were before the first resize since then.
    above: Option<Arc<Above>>,
}

#[derive(Debug)]
struct Above {
    first: u64,
    hashes: Vec<u64>,
}

impl MainSeen {
    pub(crate) fn new(lines: &Lines<'_>) -> Self {
        let first = lines.screen_first().min(lines.next());
        Self::of(first, hashes(lines, first..lines.next()))
    }

    /// The hashes of the lines from this number on: those that could still change.
    pub fn of(first: u64, hashes: Vec<u64>) -> Self {
        Self { first, hashes: hashes.into(), above: None }
    }

    /// Of a reader who came when the alternate screen was shown: every line from the oldest on is new to it.
    pub fn nothing(oldest: u64) -> Self {
        Self { first: oldest, hashes: Arc::default(), above: None }
    }

    /// The number after the last line that was seen.
    pub fn end(&self) -> u64 {
        self.first + self.hashes.len() as u64
    }

    /// The first line that may have changed since.
    pub fn first_changeable(&self) -> u64 {
        self.above.as_ref().map_or(self.first, |above| above.first.min(self.first))
    }

    /// The hash of a line when it was seen, if it was.
    pub fn hash(&self, number: u64) -> Option<u64> {
        let at = |first: u64, hashes: &[u64]| hashes.get(number.checked_sub(first)? as usize).copied();
        let above = || self.above.as_ref().and_then(|above| at(above.first, &above.hashes));
        if number < self.first { above() } else { at(self.first, &self.hashes) }
    }
}

/// The hashes of the alternate screen's lines.
pub type AlternateSeen = Vec<u64>;

/// What a reader had seen.
#[derive(Clone, Debug)]
pub struct Marker {
    /// Of the main screen.
    pub main: MainSeen,
    /// Of the alternate screen, where that was shown.
    pub alternate: Option<AlternateSeen>,
}

/// The markers of one terminal, the newest last.
///
/// Where there are too many, those go first that their reader has read past twice: one that reads often must not take
/// the marker from another that reads seldom.
#[derive(Debug)]
pub struct Markers {
    kept: VecDeque<Kept>,
    made: NonZeroU64,
    limit: usize,
}

#[derive(Debug)]
struct Kept {
    id: MarkerId,
    marker: Marker,
    /// The marker whose reader was given this one.
    from: Option<MarkerId>,
    /// Its reader has come back with a later one, and can still ask again from there.
    is_past: bool,
}

impl Markers {
    /// None yet, and at most so many.
    pub fn new(limit: usize) -> Self {
        Self::numbered_from(limit, NonZeroU64::MIN)
    }

    /// The same; the first marker has this number.
    pub fn numbered_from(limit: usize, first: NonZeroU64) -> Self {
        Self { kept: VecDeque::new(), made: first, limit: limit.max(1) }
    }

    /// Disposes of all markers. Their numbers are not used again.
    pub fn clear(&mut self) {
        self.kept.clear();
    }

    /// What the reader with this marker had seen, if that is still known.
    pub fn get(&self, id: MarkerId) -> Option<&Marker> {
        self.position(id).map(|at| &self.kept[at].marker)
    }

    /// Keeps a marker for a reader who came with another, or with none.
    pub fn add(&mut self, marker: Marker, from: Option<MarkerId>) -> MarkerId {
        let id = MarkerId(self.made);
        self.made = self.made.saturating_add(1);
        // A reader who comes with one marker is done with the one before it, and with other answers that came from that.
        let before = from.and_then(|from| self.position(from)).and_then(|at| self.kept[at].from);
        if before.is_some() {
            let is_past = |kept: &&mut Kept| Some(kept.id) == before || (kept.from == before && Some(kept.id) != from);
            self.kept.iter_mut().filter(is_past).for_each(|kept| kept.is_past = true);
        }
        if self.kept.len() == self.limit {
            let past = self.kept.iter().position(|kept| kept.is_past);
            self.kept.remove(past.unwrap_or(0));
        }
        self.kept.push_back(Kept { id, marker, from, is_past: false });
        id
    }

    fn position(&self, id: MarkerId) -> Option<usize> {
        self.kept.binary_search_by_key(&id, |kept| kept.id).ok()
    }

    /// To be called before a resize with the lines of the main screen: notes what is above the screen.
    pub(crate) fn before_resize(&mut self, lines: &Lines<'_>) {
        let first = lines.first_live();
        let open = |seen: &&mut MainSeen| seen.above.is_none() && seen.first > first;
        let mut open: Vec<&mut MainSeen> =
            self.kept.iter_mut().map(|kept| &mut kept.marker.main).filter(open).collect();
        let Some(end) = open.iter().map(|seen| seen.first).max() else { return };
        let above = Arc::new(Above { first, hashes: hashes(lines, first..end.min(lines.next())) });
        open.iter_mut().for_each(|seen| seen.above = Some(above.clone()));
    }
}

/// The hashes of a range of lines.
pub(crate) fn hashes(lines: &Lines<'_>, range: std::ops::Range<u64>) -> Vec<u64> {
    let mut scratch = String::new();
    range.map(|number| lines.hash(number, &mut scratch)).collect()
}
