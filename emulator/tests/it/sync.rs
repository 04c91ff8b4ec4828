//! Synchronized updates: whole frames, but never a frozen screen.

use std::time::Duration;

use crate::support::{feed, rows, terminal};

const MS: fn(u64) -> Duration = Duration::from_millis;

#[test]
fn an_open_update_is_not_shown_and_a_closed_one_is() {
    let mut emulator = terminal(20, 2);
    emulator.feed(MS(0), b"old\x1b[?2026h\x1b[Hnew");
    assert_eq!(rows(&mut emulator), ["old"]);
    assert!(emulator.screen().modes.synchronized);
    emulator.feed(MS(10), b"er\x1b[?2026l");
    assert_eq!(rows(&mut emulator), ["newer"]);
    assert_eq!(emulator.sync_deadline(), None);
}

#[test]
fn an_update_open_for_more_than_150_ms_is_shown() {
    let mut emulator = terminal(20, 2);
    emulator.feed(MS(1_000), b"old\x1b[?2026h\x1b[Hnew");
    assert_eq!(emulator.sync_deadline(), Some(MS(1_150)));
    emulator.tick(MS(1_150));
    assert_eq!(rows(&mut emulator), ["old"]);
    emulator.tick(MS(1_151));
    assert_eq!(rows(&mut emulator), ["new"]);
    emulator.feed(MS(1_152), b"est");
    assert_eq!(rows(&mut emulator), ["newest"]);
}

#[test]
fn bytes_that_come_late_show_the_update_first() {
    let mut emulator = terminal(20, 2);
    emulator.feed(MS(0), b"\x1b[?2026hone");
    emulator.feed(MS(151), b" two");
    assert_eq!(rows(&mut emulator), ["one two"]);
}

#[test]
fn beginning_again_does_not_prolong_an_update() {
    let mut emulator = terminal(40, 2);
    for at in 0..20 {
        emulator.feed(MS(at * 10), b"\x1b[?2026hx");
    }
    assert_eq!(rows(&mut emulator), ["xxxxxxxxxxxxxxxx"], "shown after 150 ms, then held again");
}

#[test]
fn a_read_that_must_be_current_flushes() {
    let mut emulator = terminal(20, 2);
    emulator.feed(MS(0), b"\x1b[?2026hab\x1b[6n");
    assert_eq!(rows(&mut emulator), Vec::<String>::new());
    assert_eq!(emulator.flush().bytes, b"\x1b[1;3R");
    assert_eq!(rows(&mut emulator), ["ab"]);
}

#[test]
fn a_question_about_the_mode_is_answered_for_its_place_in_the_stream() {
    let mut emulator = terminal(20, 2);
    let query = "\x1b[?2026$p";
    let replies = feed(&mut emulator, format!("{query}\x1b[?2026h{query}\x1b[?2026l{query}"));
    assert_eq!(String::from_utf8_lossy(&replies), "\x1b[?2026;2$y\x1b[?2026;1$y\x1b[?2026;2$y");
}

#[test]
fn an_update_without_end_is_bounded() {
    let mut emulator = terminal(20, 2);
    feed(&mut emulator, b"\x1b[?2026h");
    for _ in 0..40 {
        feed(&mut emulator, vec![b'x'; 64 << 10]);
    }
    assert!(emulator.heap_bytes() < 4 << 20, "{}", emulator.heap_bytes());
    assert_eq!(rows(&mut emulator)[0], "x".repeat(20), "the bound shows what came");
}

#[test]
fn a_long_update_is_shown_in_portions_and_what_is_behind_it_in_its_order() {
    let line = |number: usize| format!("{number:>19}\r\n");
    let update: String = (0..6_000).map(line).collect();
    let stream = format!("\x1b[?2026h{update}\x1b[?2026lbehind\x1b[?2026h it\x1b[?2026l");
    let expected = vec![" ".repeat(15) + "5999", "behind it".to_owned()];
    let mut emulator = terminal(20, 40);
    emulator.feed(MS(5), stream.as_bytes());
    let mut portions = 0;
    while emulator.sync_deadline() == Some(Duration::ZERO) {
        emulator.tick(MS(6));
        portions += 1;
    }
    assert!((10..40).contains(&portions), "{portions}");
    assert!(rows(&mut emulator).ends_with(&expected));
    let mut emulator = terminal(20, 40);
    emulator.feed(MS(5), stream.as_bytes());
    emulator.flush();
    assert!(rows(&mut emulator).ends_with(&expected) && emulator.sync_deadline().is_none());
}

#[test]
fn two_updates_in_one_chunk_are_both_shown() {
    let mut emulator = terminal(20, 2);
    feed(&mut emulator, b"\x1b[?2026ha\x1b[?2026lb\x1b[?2026hc\x1b[?2026ld");
    assert_eq!(rows(&mut emulator), ["abcd"]);
}

#[test]
fn the_generation_tells_whether_anything_happened() {
    let mut emulator = terminal(20, 2);
    let mut last = emulator.generation();
    let mut moved = |emulator: &kpty_emulator::Emulator| std::mem::replace(&mut last, emulator.generation()) != last;
    emulator.tick(MS(1));
    emulator.flush();
    emulator.feed(MS(1), b"");
    assert!(!moved(&emulator));
    emulator.feed(MS(2), b"\x1b[?2026hx");
    assert!(moved(&emulator));
    emulator.tick(MS(100));
    assert!(!moved(&emulator));
    emulator.tick(MS(200));
    assert!(moved(&emulator));
    emulator.resize(crate::support::size(20, 2));
    assert!(!moved(&emulator));
    emulator.resize(crate::support::size(21, 2));
    assert!(moved(&emulator));
}

#[test]
fn the_end_of_time_is_no_problem() {
    let mut emulator = terminal(20, 2);
    emulator.feed(Duration::MAX, b"\x1b[?2026hx");
    assert_eq!(emulator.sync_deadline(), Some(Duration::MAX));
}
