//! Laws that hold for every stream.

use std::time::Duration;

use kpty_emulator::{Answer, Emulator, Limits, Mode, Replies, Request, Screen};
use proptest::prelude::*;

use crate::stream::{fragment, gentle_fragment, stream};
use crate::support::{Reader, feed, full, limited, size, terminal};

/// Cases of one law; a soak asks for more.
fn cases() -> ProptestConfig {
    let cases = std::env::var("KPTY_PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(192);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// All that can be seen of a terminal.
fn seen(emulator: &mut Emulator) -> (Screen, Answer, u64) {
    (emulator.screen(), emulator.read(&Request::new(Mode::Full), None), emulator.bells())
}

/// Something that happens to a terminal.
#[derive(Clone, Debug)]
enum Step {
    Feed(Vec<u8>),
    Resize(u16, u16),
    Shrink,
    Flush,
}

fn apply(emulator: &mut Emulator, step: &Step) {
    match step {
        Step::Feed(bytes) => drop(feed(emulator, bytes)),
        Step::Resize(cols, rows) => emulator.resize(size(*cols, *rows)),
        Step::Shrink => emulator.shrink(),
        Step::Flush => drop(emulator.flush()),
    }
}

fn step(bytes: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => prop::collection::vec(bytes, 1..8).prop_map(|fragments| Step::Feed(fragments.concat())),
        2 => (1..40_u16, 1..12_u16).prop_map(|(cols, rows)| Step::Resize(cols, rows)),
        1 => Just(Step::Shrink),
        1 => Just(Step::Flush),
    ]
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn any_chunking_gives_the_same(
        bytes in prop_oneof![stream(), prop::collection::vec(any::<u8>(), 0..300)],
        mut cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut whole = terminal(20, 6);
        let whole_replies = whole.feed(Duration::ZERO, &bytes);
        cuts.sort_by_key(|cut| cut.index(bytes.len() + 1));
        let mut pieces = terminal(20, 6);
        let mut replies = Replies::default();
        let mut at = 0;
        for cut in cuts.iter().map(|cut| cut.index(bytes.len() + 1)).chain([bytes.len()]) {
            replies.append(pieces.feed(Duration::ZERO, &bytes[at..cut]));
            at = cut;
        }
        prop_assert_eq!(replies, whole_replies);
        prop_assert_eq!(seen(&mut pieces), seen(&mut whole));
    }

    #[test]
    fn single_bytes_give_the_same(bytes in stream()) {
        let mut whole = terminal(13, 5);
        let whole_replies = whole.feed(Duration::ZERO, &bytes);
        let mut pieces = terminal(13, 5);
        let mut replies = Replies::default();
        for byte in &bytes {
            replies.append(pieces.feed(Duration::ZERO, &[*byte]));
        }
        prop_assert_eq!(replies, whole_replies);
        prop_assert_eq!(seen(&mut pieces), seen(&mut whole));
    }

    #[test]
    fn nothing_makes_it_panic(
        cols in 1..30_u16,
        rows in 1..10_u16,
        steps in prop::collection::vec(step(prop_oneof![fragment(), prop::collection::vec(any::<u8>(), 0..80)]), 0..30),
    ) {
        let mut emulator = limited(cols, rows, Limits { live_rows: 20, history_lines: 50, ..Limits::default() });
        for step in &steps {
            apply(&mut emulator, step);
            emulator.read(&Request { merge_wrapped: false, ..Request::new(Mode::Viewport) }, None);
            emulator.read(&Request { max_lines: Some(5), max_chars: Some(40), ..Request::default() }, None);
            let answer = emulator.read(&Request { merge_wrapped: false, ..Request::new(Mode::Full) }, None);
            prop_assert_eq!(answer.lines().count(), answer.line_numbers.len());
            prop_assert!(answer.line_numbers.is_sorted());
        }
    }

    #[test]
    fn readers_who_apply_deltas_hold_what_a_full_read_gives(
        live_rows in 1..60_usize,
        history_lines in 1..40_usize,
        steps in prop::collection::vec((step(fragment()), any::<[bool; 2]>()), 1..40),
    ) {
        let limits = Limits { live_rows, history_lines, ..Limits::default() };
        let mut emulator = limited(12, 5, limits);
        let mut readers = [Reader::default(), Reader::default()];
        for (step, reads) in &steps {
            apply(&mut emulator, step);
            for (reader, _) in readers.iter_mut().zip(reads).filter(|(_, reads)| **reads) {
                reader.read(&mut emulator);
            }
        }
        readers.iter_mut().for_each(|reader| reader.read(&mut emulator));
    }

    #[test]
    fn numbers_are_those_of_a_terminal_that_never_drains(
        steps in prop::collection::vec(prop::collection::vec(gentle_fragment(), 1..20), 1..40),
    ) {
        // Four rows: within half of the live rows, so that both cut long lines at the same place.
        let longest_line = 60;
        let mut ours = limited(15, 6, Limits { live_rows: 12, longest_line, ..Limits::default() });
        let mut reference = limited(15, 6, Limits { live_rows: 1_000_000, longest_line, ..Limits::default() });
        for fragments in &steps {
            let bytes = fragments.concat();
            feed(&mut ours, &bytes);
            feed(&mut reference, &bytes);
            prop_assert_eq!(full(&mut ours), full(&mut reference));
        }
    }

    #[test]
    fn numbers_survive_resizes(
        steps in prop::collection::vec((step(gentle_fragment()), 8..40_u16), 1..60),
    ) {
        let mut ours = limited(15, 6, Limits { live_rows: 1_000, ..Limits::default() });
        let mut reference = limited(15, 6, Limits { live_rows: 1_000_000, ..Limits::default() });
        for (step, width) in &steps {
            let step = match step {
                // No line grows so long that it is cut, which the two do at different places.
                Step::Feed(bytes) => Step::Feed([bytes, b"\r\n".as_slice()].concat()),
                Step::Resize(_, rows) => Step::Resize(*width, *rows),
                // A terminal that was shrunk shows blank rows when it grows.
                Step::Shrink | Step::Flush => Step::Flush,
            };
            apply(&mut ours, &step);
            apply(&mut reference, &step);
            prop_assert_eq!(full(&mut ours), full(&mut reference));
        }
    }

    #[test]
    fn final_lines_stay_as_they_are(
        steps in prop::collection::vec(step(gentle_fragment()), 1..60),
    ) {
        let mut emulator = limited(12, 4, Limits { live_rows: 8, ..Limits::default() });
        let mut known: Vec<String> = Vec::new();
        for step in &steps {
            apply(&mut emulator, step);
            for (number, text) in known.iter().enumerate() {
                prop_assert_eq!(&emulator.styled_line(number as u64).unwrap().text, text);
            }
            while let Some(line) = emulator.styled_line(known.len() as u64) {
                known.push(line.text);
            }
        }
    }

    #[test]
    fn caps_are_kept_and_the_newest_stay(
        bytes in stream(),
        max_lines in 0..12_usize,
        max_chars in 0..200_usize,
        merge_wrapped in any::<bool>(),
    ) {
        let mut emulator = terminal(15, 6);
        feed(&mut emulator, &bytes);
        let whole = emulator.read(&Request { merge_wrapped, ..Request::new(Mode::Full) }, None);
        for mode in [Mode::Tail, Mode::Full, Mode::Viewport, Mode::Range { from: 1, until: None }] {
            let request = Request { mode, merge_wrapped, max_lines: Some(max_lines), max_chars: Some(max_chars), ..Request::default() };
            let answer = emulator.read(&request, None);
            prop_assert!(answer.text.chars().count() <= max_chars);
            prop_assert_eq!(answer.lines().count(), answer.line_numbers.len());
            prop_assert_eq!(answer.lines().collect::<Vec<_>>().join("\n"), answer.text.clone());
            if mode != Mode::Viewport {
                prop_assert!(answer.line_numbers.len() <= max_lines);
                prop_assert!(whole.text.ends_with(&answer.text), "{:?} of {:?}", answer.text, whole.text);
            }
        }
    }
}
