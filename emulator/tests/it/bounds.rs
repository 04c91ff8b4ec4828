//! No input grows memory past the stated bounds.

use kpty_emulator::{Limits, Memory, Mode, Request, Size};

use crate::support::{fed, feed, limited, rows, terminal};

#[test]
fn a_size_outside_the_bounds_is_an_error() {
    assert!(Size::new(0, 10).is_err() && Size::new(10, 0).is_err());
    assert!(Size::new(2_001, 10).is_err() && Size::new(10, 1_001).is_err());
    let message = Size::new(2_001, 10).unwrap_err().to_string();
    assert!(message.contains("2001") && message.contains("2000x1000"), "{message}");
}

#[test]
fn the_smallest_and_the_largest_terminal_work() {
    let mut emulator = fed(1, 1, "a日\u{301}b\r\nc\x1b[2J\x1b[Hd");
    assert_eq!(rows(&mut emulator), ["d"]);
    let mut emulator = fed(2_000, 1_000, "\x1b[1000;2000Hx");
    assert_eq!(rows(&mut emulator).len(), 1_000);
}

#[test]
fn a_character_is_repeated_no_more_than_fills_the_screen() {
    let mut emulator = fed(10, 3, "a\x1b[65535b");
    assert_eq!(rows(&mut emulator), ["a".repeat(10), "a".repeat(10), "a".to_owned()]);
    assert_eq!(emulator.rows_before_screen(), 1);
}

#[test]
fn work_beyond_the_budget_is_cut_short_and_earned_again() {
    // The first few are within the budget of a million cells, the last ones far beyond it.
    let mut emulator = fed(100, 100, "x\x1b[65$x".repeat(400));
    assert_eq!(rows(&mut emulator)[1], "A".repeat(100));
    feed(&mut emulator, "\x1b[66$x");
    assert_eq!(rows(&mut emulator)[1], "A".repeat(100), "the budget is used up");
    feed(&mut emulator, "a\x1b[9999b".repeat(10));
    feed(&mut emulator, "\x1b[2J\x1b[Ha\x1b[9999b");
    let repeated = rows(&mut emulator).concat().len();
    assert!((100..1_000).contains(&repeated), "{repeated}");
    feed(&mut emulator, "y".repeat(400));
    feed(&mut emulator, "\x1b[66$x");
    assert_eq!(rows(&mut emulator)[1], "B".repeat(100), "four hundred bytes earn a screen");
}

#[test]
fn lines_between_margins_move_as_long_as_they_are_longer_than_nothing() {
    let line = |number: usize| format!("{number:08}");
    let mut emulator = fed(80, 24, "\x1b[?69h\x1b[2;41s\x1b[24;2H");
    for number in 0..100_000 {
        feed(&mut emulator, format!("{}\r\n", line(number)));
    }
    let expected: Vec<_> = (0..23).map(|row| format!(" {}", line(99_977 + row))).collect();
    assert_eq!(rows(&mut emulator), expected, "such lines are within the budget");
    // Short ones in a large window are not: the newest is shown all the same.
    let mut emulator = fed(500, 200, "\x1b[?69h\x1b[2;400s\x1b[200;2H");
    feed(&mut emulator, "abc\r\nx\r\n".repeat(20_000));
    feed(&mut emulator, "end");
    assert_eq!(rows(&mut emulator).last().map(String::as_str), Some(" end"));
}

/// Each of these few bytes long sequences asks for work in every cell of the screen.
const EXPENSIVE: [&str; 16] = [
    "a\x1b[65535b",
    "\u{65e5}\x1b[65535b",
    "\x1b[;;;;;2$v",
    "\x1b[65$x",
    "\x1b[$z",
    "\x1b[${",
    "\x1b[2*x\x1b[;;;;7$t",
    "\x1b#8\x1bc",
    "a\x1bc",
    "\x1b#8\x1b[2J",
    "\x1b[41m\x1b[2J\x1b[42m\x1b[2J",
    "\x1b[?47h\x1b[?47l",
    "\x1b[ @\x1b[ A",
    "\x1b6",
    "\x1b[?69h\x1b[2;300s\x1b[100H\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n",
    "\x1b[?69h\x1b[2;300s\x1b[H\x1bM\x1bM\x1bM\x1bM\x1bM\x1bM\x1bM\x1bM\x1b[L\x1b[M",
];

#[test]
fn no_output_costs_far_more_than_its_length() {
    for sequence in EXPENSIVE {
        let mut emulator = terminal(300, 100);
        let stream = sequence.repeat(100_000 / sequence.len());
        let began = thread_time();
        feed(&mut emulator, &stream);
        let seconds = (thread_time() - began).as_secs_f64();
        // Without a budget it is 0.3 to 2.3 seconds in an optimised build, and 0.05 with one.
        assert!(seconds < 0.5, "{sequence:?}: {:.2} s per megabyte", seconds * 10.0);
    }
}

/// CPU time of this thread.
fn thread_time() -> std::time::Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    std::time::Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

#[test]
fn titles_are_bounded() {
    let mut emulator = terminal(10, 2);
    feed(&mut emulator, format!("\x1b]2;{}\x07", "t".repeat(100_000)));
    assert_eq!(emulator.screen().title.unwrap().len(), 4_096);
    for number in 0..100 {
        feed(&mut emulator, format!("\x1b]2;{number}\x07\x1b[22t"));
    }
    for number in (84..100).rev() {
        feed(&mut emulator, "\x1b[23t");
        assert_eq!(emulator.screen().title.unwrap(), number.to_string());
    }
    feed(&mut emulator, "\x1b[23t");
    assert_eq!(emulator.screen().title.unwrap(), "84", "sixteen titles are kept");
}

#[test]
fn combining_marks_are_bounded() {
    let emulator = fed(10, 2, format!("a{}", "\u{301}".repeat(100_000)));
    assert_eq!(emulator.screen().rows[0].cells[0].marks.len(), 16);
}

#[test]
fn combining_marks_on_many_rows_are_bounded() {
    let mut emulator = terminal(120, 30);
    for number in 0..20_000 {
        feed(&mut emulator, format!("{number:>8} {}\r\n", "e\u{301}".repeat(50)));
    }
    let answer = emulator.read(&Request { max_lines: Some(2), ..Request::new(Mode::Tail) }, None);
    let line = |number: usize| format!("{number:>8} {}", "e\u{301}".repeat(50));
    assert_eq!(answer.lines().collect::<Vec<_>>(), [line(19_998), line(19_999)]);
    let Memory { history, total } = emulator.memory();
    assert!(total - history < 8 << 20, "{} bytes besides {history} of history", total - history);
}

#[test]
fn an_endless_line_of_marks_links_and_coloured_underlines_is_bounded() {
    for unit in ["e\u{301}", "\x1b]8;;https://x.example/{}\x07L\x1b]8;;\x07", "\x1b[4;58;5;{}mu"] {
        let mut emulator = terminal(120, 30);
        for number in 0..200_000 {
            feed(&mut emulator, unit.replace("{}", &number.to_string()));
        }
        let Memory { history, total } = emulator.memory();
        assert!(total - history < 8 << 20, "{unit:?}: {} bytes besides {history} of history", total - history);
        let text = emulator.read(&Request::new(Mode::Full), None).text;
        assert!(text.len() > 20_000, "{unit:?}: {}", text.len());
        feed(&mut emulator, "\r\nend");
        assert_eq!(rows(&mut emulator).last().map(String::as_str), Some("end"), "{unit:?}");
    }
}

#[test]
fn links_are_bounded() {
    let mut emulator = terminal(10, 2);
    feed(&mut emulator, format!("\x1b]8;;https://x.example/{}\x07L\x1b]8;;\x07", "p".repeat(3_000)));
    assert_eq!(emulator.screen().rows[0].cells[0].link, None);
    feed(&mut emulator, "\x1b]8;id=1;https://x.example/a;b\x07L\x1b]8;;\x07.");
    let cells = &emulator.screen().rows[0].cells;
    assert_eq!(cells[1].link.as_deref(), Some("https://x.example/a;b"));
    assert_eq!(cells[2].link, None);
    for number in 0..5_000 {
        feed(&mut emulator, format!("\x1b]8;;https://x.example/{number}\x07"));
    }
    assert_eq!(emulator.screen().rows[0].cells[1].link, None, "the oldest of 5,001 links is forgotten");
}

#[test]
fn an_endless_string_is_bounded_and_swallowed() {
    for begin in ["\x1b]0;", "\x1b]52;c;", "\x1bP1;2q", "\x1b_G", "\x1b^", "\x1bX", "\x1b[", "\x1b[?"] {
        let mut emulator = terminal(10, 2);
        feed(&mut emulator, "a");
        feed(&mut emulator, begin);
        for _ in 0..48 {
            feed(&mut emulator, vec![b'0'; 64 << 10]);
        }
        assert!(emulator.heap_bytes() <= 3 << 20, "{begin:?}: {}", emulator.heap_bytes());
        feed(&mut emulator, if begin.contains('[') { "m" } else { "\x1b\\" });
        feed(&mut emulator, "b");
        assert_eq!(rows(&mut emulator), ["ab"], "{begin:?}");
        assert!(emulator.heap_bytes() <= 64 << 10, "{begin:?}: given back, {}", emulator.heap_bytes());
    }
}

#[test]
fn an_endless_screen_title_is_text_after_all() {
    let mut emulator = terminal(100, 100);
    feed(&mut emulator, "\x1bk");
    feed(&mut emulator, "x".repeat(8_000));
    assert_eq!(rows(&mut emulator).concat().len(), 8_000);
}

#[test]
fn a_narrow_window_does_not_multiply_rows_beyond_measure() {
    let limits = Limits { history_lines: 100, ..Limits::default() };
    let mut emulator = limited(2_000, 10, limits);
    for _ in 0..1_000 {
        feed(&mut emulator, format!("{}\r\n", "y".repeat(1_990)));
    }
    for cols in [1, 2_000, 1] {
        emulator.resize(crate::support::size(cols, 10));
    }
    assert!(emulator.heap_bytes() < 2 << 20, "{}", emulator.heap_bytes());
}

#[test]
fn ever_new_colours_count_against_the_history() {
    let limits = Limits { history_bytes: 1 << 20, live_rows: 50, ..Limits::default() };
    let mut emulator = limited(80, 10, limits);
    for colour in 0..100_000_u32 {
        let [_, r, g, b] = (colour * 167).to_be_bytes();
        feed(&mut emulator, format!("\x1b[38;2;{r};{g};{b}mX"));
    }
    assert!(emulator.heap_bytes() < 2 << 20, "{}", emulator.heap_bytes());
}

#[test]
fn a_large_screen_is_narrowed_in_proportion() {
    let mut emulator = fed(1_000, 500, "y".repeat(500_000));
    emulator.resize(crate::support::size(3, 500));
    let answer = emulator.read(&Request { max_lines: Some(1), ..Request::default() }, None);
    assert_eq!(answer.text.trim_matches('y'), "");
    let lines = emulator.read(&Request::new(Mode::Full), None);
    assert_eq!(lines.text.matches('y').count(), 500_000, "nothing is lost on the way");
}

#[test]
fn a_history_is_shortened_from_its_beginning() {
    let mut emulator = terminal(80, 10);
    for line in 0..9_000 {
        feed(&mut emulator, format!("{line:060}\r\n"));
    }
    let before = emulator.memory();
    assert!(before.history > 480 << 10 && before.total > before.history, "{before:?}");
    emulator.shorten_history(128 << 10);
    let after = emulator.memory();
    assert!(after.history <= 128 << 10 && after.total < before.total, "{after:?}");
    let answer = emulator.read(&Request::new(Mode::Tail), None);
    assert!(answer.text.ends_with(&format!("{:060}", 8_999)), "the newest lines stay");
    assert!(answer.oldest_line > 1_000 && answer.oldest_line < 9_000, "{}", answer.oldest_line);
    feed(&mut emulator, "more\r\n");
    assert!(emulator.memory().history <= 132 << 10, "it grows again from there");
}

#[test]
fn the_estimate_of_memory_follows_the_size() {
    let mut emulator = terminal(80, 24);
    let small = emulator.memory().total;
    emulator.resize(crate::support::size(2_000, 1_000));
    let large = emulator.memory().total;
    assert!(large >= kpty_emulator::Emulator::memory_of_size(crate::support::size(2_000, 1_000)), "{large}");
    emulator.resize(crate::support::size(80, 24));
    assert!(emulator.memory().total <= small + (3 << 20), "{}", emulator.memory().total);
}
