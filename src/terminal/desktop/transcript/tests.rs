//! Looks at a terminal that prints, scrolls and is cleared, laid over one another.

use kpty_emulator::Buffer;

use super::*;

/// A terminal as a bridge shows it: rows of 20 columns, the last ones kept.
struct Desk {
    rows: Vec<String>,
    kept: usize,
    height: u16,
}

impl Desk {
    fn new(kept: usize) -> Self {
        Self { rows: Vec::new(), kept, height: 5 }
    }

    fn print(&mut self, lines: impl IntoIterator<Item = String>) {
        self.rows.extend(lines);
        self.rows.drain(..self.rows.len().saturating_sub(self.kept));
    }

    fn tail(&self, asked: usize) -> Look {
        let from = self.rows.len().saturating_sub(asked + 1);
        self.look(self.rows[from..].to_vec(), self.rows.len() as u64 - 1)
    }

    fn look(&self, lines: Vec<String>, row: u64) -> Look {
        Look { lines, row: Some(row), rows: self.height, cols: 20, buffer: Buffer::Main, number: None, at_prompt: None }
    }
}

/// Looks until what is known is reached, as the client does.
fn follow(transcript: &mut Transcript, desk: &Desk) -> (u64, bool) {
    let mut asked = 8;
    loop {
        let look = desk.tail(asked);
        let tail = Tail::new(&look);
        let place = transcript.place(&tail);
        let is_enough = matches!(place, Place::At(at) if at <= transcript.settled());
        if is_enough || tail.is_whole || asked > 1_000 {
            return transcript.absorb(&tail, place);
        }
        asked *= 4;
    }
}

fn numbered(range: std::ops::Range<u32>) -> impl Iterator<Item = String> {
    range.map(|number| format!("line {number}"))
}

fn all(transcript: &Transcript) -> Vec<String> {
    transcript.range(0, u64::MAX).map(|(_, text)| text.to_owned()).collect()
}

#[test]
fn lines_keep_their_numbers_while_more_are_printed() {
    let (mut transcript, mut desk) = (Transcript::default(), Desk::new(1_000));
    let mut printed = 0;
    for count in [3, 1, 0, 7, 40, 200, 2] {
        desk.print(numbered(printed..printed + count));
        printed += count;
        follow(&mut transcript, &desk);
        let expected: Vec<_> = numbered(0..printed).collect();
        assert_eq!(all(&transcript), expected);
        assert_eq!((transcript.first(), transcript.losses()), (0, 0));
    }
}

#[test]
fn a_full_scrollback_is_followed_by_its_text() {
    let (mut transcript, mut desk) = (Transcript::default(), Desk::new(60));
    let mut printed = 0;
    for count in [50, 30, 1, 0, 45, 10] {
        desk.print(numbered(printed..printed + count));
        printed += count;
        follow(&mut transcript, &desk);
        assert_eq!(transcript.line(u64::from(printed - 1)), Some(format!("line {}", printed - 1).as_str()));
        assert_eq!((transcript.next(), transcript.losses()), (u64::from(printed), 0), "{printed}");
    }
    desk.print(numbered(printed..printed + 61));
    follow(&mut transcript, &desk);
    assert_eq!((transcript.losses(), transcript.next()), (1, u64::from(printed) + 60), "nothing known is left");
}

#[test]
fn equal_lines_are_counted_by_their_rows() {
    let (mut transcript, mut desk) = (Transcript::default(), Desk::new(1_000));
    let mut printed = 0;
    for count in [2, 5, 1, 100, 7] {
        desk.print((0..count).map(|_| "y".to_owned()));
        printed += count;
        follow(&mut transcript, &desk);
        assert_eq!((transcript.next(), transcript.losses()), (printed, 0));
    }
}

#[test]
fn changed_lines_of_the_screen_stay_where_they_are() {
    let (mut transcript, mut desk) = (Transcript::default(), Desk::new(1_000));
    desk.print(numbered(0..20));
    follow(&mut transcript, &desk);
    desk.rows[18] = "changed".to_owned();
    desk.print(numbered(20..23));
    let (_, changed) = follow(&mut transcript, &desk);
    assert!(changed);
    assert_eq!((transcript.line(18), transcript.line(19)), (Some("changed"), Some("line 19")));
    let (_, changed) = follow(&mut transcript, &desk);
    assert!(!changed, "nothing happened");
}

#[test]
fn a_wrapped_line_is_one_line() {
    let (mut transcript, desk) = (Transcript::default(), Desk::new(1_000));
    let long = "x".repeat(50);
    // Rows: the long line has three.
    let first = desk.look(vec!["a".to_owned(), long.clone(), "$".to_owned()], 4);
    let second = desk.look(vec!["a".to_owned(), long.clone(), "$ ls".to_owned(), "b".to_owned()], 5);
    for look in [first, second] {
        let tail = Tail::new(&look);
        assert!(tail.is_whole);
        let place = transcript.place(&tail);
        transcript.absorb(&tail, place);
    }
    assert_eq!(all(&transcript), ["a", long.as_str(), "$ ls", "b"]);
    assert_eq!(transcript.losses(), 0);
}

#[test]
fn a_cleared_history_is_a_loss() {
    let (mut transcript, mut desk) = (Transcript::default(), Desk::new(1_000));
    desk.print(numbered(0..20));
    follow(&mut transcript, &desk);
    desk.rows = vec!["$".to_owned()];
    follow(&mut transcript, &desk);
    assert_eq!((transcript.losses(), all(&transcript)), (1, vec!["$".to_owned()]));
    assert_eq!(transcript.first(), 20, "numbers are not used twice");
}

#[test]
fn a_screen_that_was_cleared_after_lines_had_left_it_is_no_loss() {
    let (mut transcript, desk) = (Transcript::default(), Desk { height: 8, ..Desk::new(1_000) });
    // A wrapped line, which was to be seen before, is gone: neither rows nor most of the text tell the place.
    let wrapped = "x".repeat(60);
    for (lines, row) in [(["a", "b", &wrapped, "$ "], 5), (["a", "again", "more", "# "], 3)] {
        let look = desk.look(lines.map(str::to_owned).to_vec(), row);
        let tail = Tail::new(&look);
        let place = transcript.place(&tail);
        assert_eq!((place, transcript.absorb(&tail, place).0, transcript.losses()), (Place::At(2), 2, 0), "{lines:?}");
    }
}

#[test]
fn the_window_shows_what_is_below_the_cursor() {
    let (mut transcript, mut desk) = (Transcript::default(), Desk::new(1_000));
    desk.print(numbered(0..20));
    follow(&mut transcript, &desk);
    // The cursor goes up two rows, and what is below is erased.
    let look = desk.look(desk.rows[..18].to_vec(), 17);
    let tail = Tail::new(&look);
    let place = transcript.place(&tail);
    transcript.absorb(&tail, place);
    assert!(transcript.has_text_below());
    let window = ["line 15", "line 16", "line 17", "", ""].map(str::to_owned).to_vec();
    let (at, changed) = transcript.absorb_window(&desk.look(window, 15));
    assert_eq!((at, changed, transcript.next()), (15, true, 18));
}

#[test]
fn what_is_kept_is_bounded() {
    let (mut transcript, mut desk) = (Transcript::default(), Desk::new(100_000));
    for start in (0..12_000).step_by(300) {
        desk.print(numbered(start..start + 300));
        follow(&mut transcript, &desk);
    }
    assert_eq!((transcript.lines.len(), transcript.next(), transcript.losses()), (MAX_LINES, 12_000, 0));
}

#[test]
fn numbers_of_another_kpty_are_taken_as_they_are() {
    let mut transcript = Transcript::default();
    let desk = Desk::new(1_000);
    let mut look = |first: u64, lines: &[&str], row: u64| {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        let look = Look { number: Some(first), ..desk.look(lines, row) };
        let tail = Tail::new(&look);
        let place = transcript.place(&tail);
        transcript.absorb(&tail, place);
        (transcript.first(), transcript.next(), transcript.losses())
    };
    assert_eq!(look(100, &["y", "y", "y"], 102), (100, 103, 0));
    assert_eq!(look(102, &["y", "y", "y", "y"], 105), (100, 106, 0), "equal lines are counted");
    assert_eq!(look(106, &["y", "y"], 107), (100, 108, 0), "nothing is missing between them");
    assert_eq!(look(200, &["y", "y"], 201), (200, 202, 1), "and here something is");
}
