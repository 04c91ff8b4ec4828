//! The read modes: what they return, how they cut, what the filter sees.

use kpty_emulator::{Buffer, Mode, Request, Which};

use crate::support::{fed, feed, lines, numbered, terminal};

#[test]
fn each_mode_reads_its_lines() {
    let mut emulator = fed(6, 3, "one\r\ntwo\r\nthree four\r\n$ ");
    for (mode, merge_wrapped, max_lines, expected) in [
        (Mode::Tail, true, None, vec!["one", "two", "three four", "$"]),
        (Mode::Tail, true, Some(2), vec!["three four", "$"]),
        (Mode::Tail, false, Some(2), vec!["four", "$"]),
        (Mode::Tail, true, Some(0), vec![]),
        (Mode::Viewport, true, None, vec!["three four", "$"]),
        (Mode::Viewport, false, None, vec!["three", "four", "$"]),
        (Mode::Viewport, false, Some(1), vec!["three", "four", "$"]),
        (Mode::Full, false, None, vec!["one", "two", "three", "four", "$"]),
        (Mode::Range { from: 1, until: None }, true, None, vec!["two", "three four", "$"]),
        (Mode::Range { from: 1, until: Some(2) }, true, None, vec!["two"]),
        (Mode::Range { from: 99, until: None }, true, None, vec![]),
        (Mode::Range { from: 2, until: Some(1) }, true, None, vec![]),
    ] {
        let request = Request { mode, merge_wrapped, max_lines, ..Request::default() };
        assert_eq!(lines(&mut emulator, &request), expected, "{request:?}");
    }
}

#[test]
fn a_viewport_that_begins_inside_a_line_shows_only_what_is_visible() {
    let mut emulator = fed(4, 2, "aaaabbbbcccc");
    for (merge_wrapped, expected) in [(true, vec!["bbbbcccc"]), (false, vec!["bbbb", "cccc"])] {
        let request = Request { merge_wrapped, ..Request::new(Mode::Viewport) };
        assert_eq!(lines(&mut emulator, &request), expected);
    }
}

#[test]
fn a_viewport_has_every_row() {
    let mut emulator = fed(10, 5, "one\r\n\r\nthree");
    let request = Request { merge_wrapped: false, ..Request::new(Mode::Viewport) };
    let answer = emulator.read(&request, None);
    assert_eq!(answer.lines().collect::<Vec<_>>(), ["one", "", "three", "", ""]);
    assert_eq!(answer.line_numbers, [0, 1, 2, 3, 4]);
    assert_eq!(answer.next_line, 3, "blank rows below the text are not lines yet");
}

#[test]
fn a_tail_reaches_below_the_cursor() {
    let mut emulator = fed(10, 5, "one\r\ntwo\r\nstatus\x1b[1;1H");
    assert_eq!(lines(&mut emulator, &Request::default()), ["one", "two", "status"]);
    assert_eq!(emulator.read(&Request::default(), None).cursor_line, 0);
}

#[test]
fn numbers_go_on_through_the_history() {
    let mut emulator = fed(20, 5, numbered(0..3_000));
    let answer = emulator.read(&Request { max_lines: Some(3), ..Request::default() }, None);
    assert_eq!(answer.lines().collect::<Vec<_>>(), ["line 2997", "line 2998", "line 2999"]);
    assert_eq!(answer.line_numbers, [2997, 2998, 2999]);
    assert_eq!((answer.first_line, answer.next_line, answer.oldest_line), (2997, 3000, 0));
    assert!(!answer.truncated, "a tail is what was asked for");
    let full = emulator.read(&Request::new(Mode::Full), None);
    assert!(full.lines().enumerate().all(|(number, line)| line == format!("line {number}")));
    assert_eq!(full.line_numbers, (0..3_000).collect::<Vec<_>>());
}

#[test]
fn cuts_keep_the_newest_and_are_reported() {
    let mut emulator = fed(20, 5, "alpha\r\nbeta\r\ngamma");
    let answer = emulator.read(&Request { max_chars: Some(7), ..Request::default() }, None);
    assert_eq!(answer.text, "a\ngamma");
    assert_eq!(answer.lines().collect::<Vec<_>>(), ["a", "gamma"]);
    assert_eq!(answer.line_numbers, [1, 2]);
    assert!(answer.truncated);
    assert_eq!((answer.dropped_chars, answer.dropped_lines, answer.first_line), (9, 1, 1));

    let answer = emulator.read(&Request { max_lines: Some(1), ..Request::new(Mode::Full) }, None);
    assert_eq!((answer.text.as_str(), answer.dropped_lines, answer.truncated), ("gamma", 2, true));
}

#[test]
fn a_filter_sees_whole_lines_before_any_cut() {
    let mut emulator = fed(6, 4, "x secret-token y\r\nplain");
    let mut seen = Vec::new();
    let mut filter = |line: &str| {
        seen.push(line.to_owned());
        line.contains("secret").then(|| line.replace("secret-token", "[gone]"))
    };
    let request = Request { max_chars: Some(9), ..Request::default() };
    let answer = emulator.read(&request, Some(&mut filter));
    assert_eq!(answer.text, "] y\nplain");
    assert_eq!(seen, ["x secret-token y", "plain"]);
}

#[test]
fn a_filter_is_mapped_back_to_rows() {
    let mut emulator = fed(6, 4, "x secret-token y\r\nplain");
    let mut filter = |line: &str| Some(line.replace("secret-token", "[gone]"));
    let request = Request { merge_wrapped: false, ..Request::default() };
    let answer = emulator.read(&request, Some(&mut filter));
    assert_eq!(answer.lines().collect::<Vec<_>>(), ["x [gone]", "", " y", "plain"]);
    assert_eq!(answer.line_numbers, [0, 0, 0, 1]);
}

#[test]
fn a_filter_sees_the_hidden_part_of_a_visible_line() {
    let mut emulator = fed(4, 2, "se\r\nsecret-token!\r\n$");
    let mut filter = |line: &str| Some(line.replace("secret-token", "[gone]"));
    let answer = emulator.read(&Request::new(Mode::Viewport), Some(&mut filter));
    assert_eq!(answer.lines().collect::<Vec<_>>(), ["!", "$"], "no tail of the secret is left");
}

#[test]
fn a_filter_may_carry_state_and_gets_a_lead() {
    let mut emulator = fed(20, 4, "BEGIN\r\nkey1\r\nkey2\r\nEND\r\nafter");
    let mut masked = |filter_lead: u64| {
        let mut inside = false;
        let mut filter = |line: &str| {
            inside = (inside || line == "BEGIN") && line != "END";
            inside.then(|| "*".to_owned())
        };
        let request = Request { max_lines: Some(3), filter_lead, ..Request::default() };
        emulator.read(&request, Some(&mut filter)).text
    };
    assert_eq!(masked(10), "*\nEND\nafter");
    assert_eq!(masked(0), "key2\nEND\nafter", "without a lead the filter cannot know");
}

#[test]
fn rows_of_a_stored_line_are_wrapped_at_todays_width() {
    let mut emulator = fed(10, 2, "abcdefghij日本語\r\n");
    feed(&mut emulator, numbered(1..3));
    emulator.shrink();
    let request = Request { merge_wrapped: false, ..Request::new(Mode::Range { from: 0, until: Some(1) }) };
    assert_eq!(lines(&mut emulator, &request), ["abcdefghij", "日本語"]);
    emulator.resize(crate::support::size(5, 2));
    assert_eq!(lines(&mut emulator, &request), ["abcde", "fghij", "日本", "語"]);
}

#[test]
fn the_alternate_screen_is_read_by_default_and_the_main_one_on_request() {
    let mut emulator = fed(20, 3, "one\r\ntwo\x1b[?1049h\x1b[Halt");
    let answer = emulator.read(&Request::default(), None);
    assert_eq!((answer.text.as_str(), answer.buffer), ("alt", Buffer::Alternate));
    let answer = emulator.read(&Request { which: Which::Main, ..Request::default() }, None);
    assert_eq!((answer.text.as_str(), answer.buffer), ("one\ntwo", Buffer::Main));
    assert_eq!(emulator.buffer(), Buffer::Alternate);
    assert_eq!(lines(&mut emulator, &Request::default()), ["alt"], "looking behind changes nothing");
    feed(&mut emulator, "!\x1b[?1049l!");
    assert_eq!(lines(&mut emulator, &Request::default()), ["one", "two!"]);
}

#[test]
fn looking_behind_the_alternate_screen_keeps_cursors_and_attributes() {
    let mut emulator = fed(20, 3, "one\x1b[31m\x1b7\x1b[3;3H\x1b[?1049h\x1b[2;2H\x1b[32mx");
    let before = emulator.screen();
    emulator.read(&Request { which: Which::Main, ..Request::default() }, None);
    assert_eq!(emulator.screen(), before);
    feed(&mut emulator, "y\x1b[?1049l\x1b[6n");
    let cursor = emulator.screen().cursor;
    assert_eq!((cursor.col, cursor.row), (2, 2));
}

#[test]
fn an_empty_terminal_reads_as_nothing() {
    let mut emulator = terminal(10, 3);
    let answer = emulator.read(&Request::default(), None);
    assert_eq!((answer.text.as_str(), answer.lines().count()), ("", 0));
    assert_eq!((answer.first_line, answer.next_line, answer.oldest_line), (0, 0, 0));
}

#[test]
fn a_filter_sees_the_lines_between_two_of_a_delta() {
    let mut emulator = fed(20, 6, "BEGIN\r\nkey1\r\nkey2\r\nkey3\r\nEND");
    let marker = emulator.read(&Request::new(Mode::Delta { since: None }), None).delta.map(|delta| delta.marker);
    feed(&mut emulator, "\x1b[2;1Hkey0\x1b[6;1Hafter");
    let mut inside = false;
    let mut filter = |line: &str| {
        inside = (inside || line == "BEGIN") && line != "END";
        inside.then(|| "*".to_owned())
    };
    let request = Request { filter_lead: 5, ..Request::new(Mode::Delta { since: marker }) };
    assert_eq!(emulator.read(&request, Some(&mut filter)).text, "*\nafter");
}
