//! Which lines a read is about: by mode, or by what changed since a marker.

use crate::engine::Engine;
use crate::history::Loss;
use crate::lines::Lines;
use crate::marker::Marker;
use crate::read::{Mode, Request};
use crate::screen::Buffer;

/// The chosen lines and how a cap on them is to be understood.
pub(crate) struct Choice {
    pub(crate) numbers: Vec<u64>,
    /// The cap on lines is what was asked for (a tail), not something left out.
    pub(crate) cap_is_the_question: bool,
}

/// The lines that a read other than a delta is about.
pub(crate) fn choose(lines: &Lines<'_>, request: &Request) -> Choice {
    let (range, cap_is_the_question) = match request.mode {
        Mode::Viewport => (lines.screen_first()..lines.screen_end(), false),
        Mode::Range { from, until } => {
            let end = until.map_or(lines.next(), |until| until.min(lines.next()));
            (from.max(lines.oldest())..end, false)
        }
        Mode::Full => (lines.oldest()..lines.next(), false),
        Mode::Tail | Mode::Delta { .. } => (tail_from(lines, request.max_lines)..lines.next(), true),
    };
    Choice { numbers: range.collect(), cap_is_the_question }
}

/// Every line is at least one row, so the last `max_lines` lines hold the last `max_lines` rows.
fn tail_from(lines: &Lines<'_>, max_lines: Option<usize>) -> u64 {
    let max = max_lines.map_or(u64::MAX, |max| max as u64);
    lines.next().saturating_sub(max).max(lines.oldest())
}

/// How a delta's marker fared.
pub(crate) struct Outcome {
    /// Lines that came and went unseen; `None` when the marker was not known.
    pub(crate) missed: Option<u64>,
    /// Why they went.
    pub(crate) loss: Option<Loss>,
}

/// The lines that were added or changed since a marker; the tail when it is not known.
pub(crate) fn changed_since(
    lines: &Lines<'_>,
    buffer: Buffer,
    seen: Option<&Marker>,
    engine: &dyn Engine,
    max_lines: Option<usize>,
) -> (Choice, Outcome) {
    let mut scratch = String::new();
    let mut changed = |number: u64, before: Option<u64>| before != Some(lines.hash(number, &mut scratch));
    let (numbers, outcome) = match (buffer, seen) {
        (Buffer::Alternate, Some(seen)) => {
            let before = |number: u64| seen.alternate.as_ref().and_then(|seen| seen.get(number as usize).copied());
            let numbers = (0..lines.next()).filter(|&number| changed(number, before(number))).collect();
            (numbers, Outcome { missed: Some(0), loss: None })
        }
        (Buffer::Main, Some(Marker { main: seen, .. })) => {
            let from = seen.first_changeable().max(lines.oldest());
            let numbers = (from..lines.next()).filter(|&number| changed(number, seen.hash(number))).collect();
            let missed = lines.oldest().saturating_sub(seen.end());
            (numbers, Outcome { missed: Some(missed), loss: engine.history().loss_of(seen.end()) })
        }
        (_, None) => {
            let numbers = (tail_from(lines, max_lines)..lines.next()).collect();
            return (Choice { numbers, cap_is_the_question: true }, Outcome { missed: None, loss: None });
        }
    };
    (Choice { numbers, cap_is_the_question: false }, outcome)
}
