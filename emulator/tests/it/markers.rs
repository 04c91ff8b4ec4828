//! Markers and deltas: what is new or changed since a reader last looked.

use kpty_emulator::{Answer, Buffer, Delta, Emulator, Limits, Loss, MarkerId, Mode, Request};

use crate::support::{fed, feed, limited, numbered, size, terminal};

fn delta(emulator: &mut Emulator, since: Option<MarkerId>) -> (Answer, Delta) {
    let answer = emulator.read(&Request::new(Mode::Delta { since }), None);
    let delta = answer.delta.unwrap();
    (answer, delta)
}

/// The numbered lines of a delta, and the marker to go on from.
fn follow(emulator: &mut Emulator, since: MarkerId) -> (Vec<(u64, String)>, MarkerId) {
    let (answer, delta) = delta(emulator, Some(since));
    assert!(!delta.marker_disposed);
    assert_eq!(delta.missed_lines, Some(0));
    let lines = answer.line_numbers.iter().copied().zip(answer.lines().map(str::to_owned)).collect();
    (lines, delta.marker)
}

fn line(number: u64, text: &str) -> (u64, String) {
    (number, text.to_owned())
}

#[test]
fn the_first_delta_gives_the_tail_and_a_marker() {
    let mut emulator = fed(20, 5, "one\r\ntwo");
    let (answer, first) = delta(&mut emulator, None);
    assert_eq!(answer.text, "one\ntwo");
    assert_eq!(first.marker.get(), 1);
    assert!(!first.marker_disposed);
    let (answer, second) = delta(&mut emulator, Some(first.marker));
    assert_eq!(answer.text, "");
    assert_ne!(second.marker, first.marker, "every answer carries a fresh marker");
}

#[test]
fn max_lines_zero_gives_the_marker_only() {
    let mut emulator = fed(20, 5, "one\r\ntwo");
    let request = Request { max_lines: Some(0), ..Request::new(Mode::Delta { since: None }) };
    let answer = emulator.read(&request, None);
    assert_eq!(answer.lines().count(), 0);
    feed(&mut emulator, "\r\nthree");
    let (lines, _) = follow(&mut emulator, answer.delta.unwrap().marker);
    assert_eq!(lines, [line(2, "three")]);
}

#[test]
fn a_delta_tells_what_changed() {
    let mut emulator = fed(20, 5, "building\r\n10%\r\n$ ");
    let mut marker = delta(&mut emulator, None).1.marker;
    for (bytes, expected) in [
        ("make", vec![line(2, "$ make")]),
        ("\x1b[2;1H20%", vec![line(1, "20%")]),
        ("\x1b[3;8Hit", vec![line(2, "$ make it")]),
        ("\x1b[1;1H\x1b[1L", vec![line(0, ""), line(1, "building"), line(2, "20%"), line(3, "$ make it")]),
        ("\x1b[31m", vec![]),
        ("\x1b[2J\x1b[H$ ", vec![line(4, "$")]),
    ] {
        feed(&mut emulator, bytes);
        let (lines, next) = follow(&mut emulator, marker);
        assert_eq!(lines, expected, "{bytes:?}");
        marker = next;
    }
}

#[test]
fn a_delta_carries_the_new_end() {
    let mut emulator = fed(20, 5, "one\r\ntwo\r\nthree");
    let marker = delta(&mut emulator, None).1.marker;
    feed(&mut emulator, "\x1b[2;1H\x1b[J");
    let (answer, _) = delta(&mut emulator, Some(marker));
    assert_eq!((answer.lines().count(), answer.next_line), (0, 1));
}

#[test]
fn readers_do_not_disturb_one_another() {
    let mut emulator = fed(20, 5, "one");
    let slow = delta(&mut emulator, None).1.marker;
    let mut fast = slow;
    for number in 0..20 {
        feed(&mut emulator, format!("\r\nline {number}"));
        fast = follow(&mut emulator, fast).1;
    }
    let (lines, _) = follow(&mut emulator, slow);
    assert_eq!(lines.len(), 20);
    assert_eq!(follow(&mut emulator, slow).0, lines, "a marker may be used again");
}

#[test]
fn an_unknown_marker_gives_the_tail() {
    let mut emulator = fed(20, 5, "one\r\ntwo");
    let request = Request { max_lines: Some(1), ..Request::new(Mode::Delta { since: MarkerId::new(99) }) };
    let answer = emulator.read(&request, None);
    let delta = answer.delta.unwrap();
    assert_eq!(answer.text, "two");
    assert!(delta.marker_disposed);
    assert_eq!(delta.missed_lines, None);
}

#[test]
fn too_old_a_marker_is_like_an_unknown_one() {
    let mut emulator = limited(20, 5, Limits { markers: 3, ..Limits::default() });
    let first = delta(&mut emulator, None).1.marker;
    for _ in 0..2 {
        delta(&mut emulator, None);
    }
    assert!(!delta(&mut emulator, Some(first)).1.marker_disposed, "still kept");
    assert!(delta(&mut emulator, Some(first)).1.marker_disposed, "its own answer pushed it out");
}

#[test]
fn lines_evicted_unseen_are_counted() {
    let limits = Limits { history_lines: 10, live_rows: 20, ..Limits::default() };
    let mut emulator = limited(20, 5, limits);
    feed(&mut emulator, "start\r\n");
    let marker = delta(&mut emulator, None).1.marker;
    feed(&mut emulator, numbered(1..1_001));
    let (answer, told) = delta(&mut emulator, Some(marker));
    assert!(told.marker_disposed);
    assert_eq!(told.loss, Some(Loss::Limit));
    assert_eq!(told.missed_lines, Some(answer.oldest_line - 1));
    assert_eq!(answer.line_numbers, (answer.oldest_line..1_001).collect::<Vec<_>>());
    assert!(answer.lines().zip(&answer.line_numbers).all(|(text, number)| text == format!("line {number}")));
}

#[test]
fn a_clear_counts_as_eviction() {
    for (clear, left) in [("\x1b[3J", 4), ("\x1bc", 0)] {
        let mut emulator = fed(20, 5, numbered(0..3));
        let marker = delta(&mut emulator, None).1.marker;
        feed(&mut emulator, numbered(3..100));
        feed(&mut emulator, clear);
        feed(&mut emulator, "after");
        let (answer, told) = delta(&mut emulator, Some(marker));
        assert!(told.marker_disposed, "{clear:?}");
        assert_eq!(told.loss, Some(Loss::Cleared), "{clear:?}");
        assert_eq!(told.missed_lines, Some(100 - 3 - left), "{clear:?}");
        assert_eq!(answer.next_line, 101, "{clear:?}: numbers go on");
        assert_eq!(answer.lines().last(), Some("after"), "{clear:?}");
    }
}

#[test]
fn a_clear_of_what_was_seen_loses_nothing() {
    let mut emulator = fed(20, 5, numbered(0..100));
    let marker = delta(&mut emulator, None).1.marker;
    feed(&mut emulator, "\x1b[H\x1b[2J\x1b[3J$ ");
    let (answer, told) = delta(&mut emulator, Some(marker));
    assert!(!told.marker_disposed);
    assert_eq!((told.missed_lines, told.loss), (Some(0), None));
    assert_eq!(answer.text, "$");
    assert_eq!(answer.oldest_line, 100);
}

#[test]
fn rows_with_a_background_only_are_no_lines_to_miss() {
    let mut emulator = fed(20, 5, "one\r\ntwo\x1b[44m\x1b[4;1H\x1b[K\x1b[m");
    let (answer, first) = delta(&mut emulator, None);
    assert_eq!(answer.next_line, 2);
    feed(&mut emulator, "\x1bcnew");
    let (answer, told) = delta(&mut emulator, Some(first.marker));
    assert_eq!((told.missed_lines, answer.line_numbers), (Some(0), vec![2]));
}

#[test]
fn a_resize_alone_changes_no_line() {
    let mut emulator = fed(20, 5, "a long line that wraps twice at twenty columns\r\n");
    feed(&mut emulator, numbered(1..50));
    let marker = delta(&mut emulator, None).1.marker;
    for (cols, rows) in [(10, 5), (33, 12), (20, 2), (80, 24)] {
        emulator.resize(size(cols, rows));
        assert_eq!(follow(&mut emulator, marker).0, [], "{cols}x{rows}");
    }
    feed(&mut emulator, "new");
    assert_eq!(follow(&mut emulator, marker).0, [line(50, "new")]);
}

#[test]
fn the_alternate_screen_has_deltas_of_its_own_and_loses_none_of_the_main_ones() {
    let mut emulator = fed(20, 3, "one\r\n");
    let main = delta(&mut emulator, None).1.marker;
    feed(&mut emulator, "two\r\n\x1b[?1049h\x1b[Htop\r\nbottom");
    let (answer, told) = delta(&mut emulator, Some(main));
    assert_eq!((answer.text.as_str(), answer.buffer), ("top\nbottom", Buffer::Alternate));
    assert_eq!(answer.line_numbers, [0, 1]);
    let alternate = told.marker;
    feed(&mut emulator, "\x1b[1;1Htip");
    let (lines, alternate) = follow(&mut emulator, alternate);
    assert_eq!(lines, [line(0, "tip")]);
    feed(&mut emulator, "\x1b[?1049lthree");
    for marker in [main, alternate] {
        assert_eq!(follow(&mut emulator, marker).0, [line(1, "two"), line(2, "three")]);
    }
}

#[test]
fn a_reader_who_met_the_alternate_screen_first_gets_the_main_one_whole() {
    let mut emulator = fed(20, 3, "one\r\ntwo\x1b[?1049h\x1b[Halt");
    let marker = delta(&mut emulator, None).1.marker;
    emulator.resize(size(30, 5));
    feed(&mut emulator, "\x1b[?1049l\r\nthree");
    assert_eq!(follow(&mut emulator, marker).0, [line(0, "one"), line(1, "two"), line(2, "three")]);
}

#[test]
fn marker_ids_are_positive() {
    assert_eq!(MarkerId::new(0), None);
    let mut emulator = terminal(10, 2);
    assert_eq!(delta(&mut emulator, None).1.marker.get(), 1);
    assert_eq!(delta(&mut emulator, None).1.marker.get(), 2);
}

#[test]
fn a_reader_who_reads_often_takes_nobody_s_marker() {
    let mut emulator = limited(20, 5, Limits { markers: 8, ..Limits::default() });
    let seldom = delta(&mut emulator, None).1.marker;
    let mut often = delta(&mut emulator, None).1.marker;
    for _ in 0..100 {
        let (_, told) = delta(&mut emulator, Some(often));
        assert!(!told.marker_disposed);
        assert!(!delta(&mut emulator, Some(often)).1.marker_disposed, "an answer that was lost is asked for again");
        often = told.marker;
    }
    assert!(!delta(&mut emulator, Some(seldom)).1.marker_disposed);
}
