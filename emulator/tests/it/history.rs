//! Numbered history: final lines, looks that survive, exact counts.

use kpty_emulator::{Attributes, Color, Limits, Mode, Request, Style};

use crate::support::{fed, feed, full, limited, numbered, size};

#[test]
fn a_stored_line_keeps_its_text_and_looks() {
    let mut emulator = fed(
        40,
        3,
        "plain \x1b[1;31mred\x1b[0m \x1b[48;5;20;4mblue\x1b[m\x1b[38;2;1;2;3m日本e\u{301}\x1b[0m\r\n\x1b[44m  \x1b[m\r\n",
    );
    feed(&mut emulator, numbered(0..10));
    emulator.shrink();
    let line = emulator.styled_line(0).unwrap();
    assert_eq!(line.text, "plain red blue日本e\u{301}");
    let runs: Vec<(&str, Style)> = line.runs.iter().map(|(range, style)| (&line.text[range.clone()], *style)).collect();
    let style = |fg, bg, attributes| Style { fg, bg, underline_color: None, attributes };
    let plain = Style::default();
    assert_eq!(
        runs,
        [
            ("plain ", plain),
            ("red", style(Color::Indexed(1), Color::Default, Attributes::BOLD)),
            (" ", plain),
            ("blue", style(Color::Default, Color::Indexed(20), Attributes::UNDERLINE)),
            ("日本e\u{301}", style(Color::Rgb(1, 2, 3), Color::Default, Attributes::default())),
        ]
    );
    assert_eq!(emulator.styled_line(1).unwrap().text, "  ", "blanks with a background are kept");
    assert_eq!(emulator.read(&Request::new(Mode::Range { from: 1, until: Some(2) }), None).text, "");
    assert_eq!(emulator.styled_line(2).unwrap().runs, [(0..6, plain)]);
}

#[test]
fn looks_survive_in_every_attribute() {
    for (sgr, attributes, underline_color) in [
        ("1", Attributes::BOLD, None),
        ("2", Attributes::DIM, None),
        ("3", Attributes::ITALIC, None),
        ("4", Attributes::UNDERLINE, None),
        ("21", Attributes::DOUBLE_UNDERLINE, None),
        ("4:3", Attributes::CURLY_UNDERLINE, None),
        ("4:4", Attributes::DOTTED_UNDERLINE, None),
        ("4:5", Attributes::DASHED_UNDERLINE, None),
        ("7", Attributes::INVERSE, None),
        ("8", Attributes::HIDDEN, None),
        ("9", Attributes::STRIKEOUT, None),
        ("4;58;5;9", Attributes::UNDERLINE, Some(Color::Indexed(9))),
        ("4;58:2::7:8:9", Attributes::UNDERLINE, Some(Color::Rgb(7, 8, 9))),
        ("1;3;9", Attributes::BOLD | Attributes::ITALIC | Attributes::STRIKEOUT, None),
    ] {
        let mut emulator = fed(20, 2, format!("\x1b[{sgr}mx\x1b[0m"));
        let expected = Style { attributes, underline_color, ..Style::default() };
        assert_eq!(emulator.screen().rows[0].cells[0].style, expected, "{sgr} on the screen");
        feed(&mut emulator, "\r\n1\r\n2\r\n3\r\n");
        emulator.shrink();
        assert_eq!(emulator.styled_line(0).unwrap().runs, [(0..1, expected)], "{sgr} in the history");
    }
}

#[test]
fn a_final_line_never_changes() {
    let mut emulator = fed(20, 5, format!("{}\r\n{}", "w".repeat(50), numbered(1..50)));
    emulator.shrink();
    let texts =
        |emulator: &kpty_emulator::Emulator| (0..40).map(|n| emulator.styled_line(n).unwrap().text).collect::<Vec<_>>();
    let before = texts(&emulator);
    assert_eq!(before[0], "w".repeat(50));
    for step in
        ["\x1b[2J", "\x1b[?1049h\x1b[2Jx\x1b[?1049l", "\x1b[H\x1b[10L", "\x1b[1;1H\x1bM\x1bM", "more\r\nand more"]
    {
        feed(&mut emulator, step);
        emulator.resize(size(7, 3));
        emulator.resize(size(90, 40));
        assert_eq!(texts(&emulator), before, "{step:?}");
    }
}

#[test]
fn what_falls_out_is_counted_exactly() {
    let limits = Limits { history_lines: 100, live_rows: 50, ..Limits::default() };
    let mut emulator = limited(20, 5, limits);
    for step in 0..50 {
        feed(&mut emulator, numbered(step * 97..(step + 1) * 97));
        let answer = emulator.read(&Request::new(Mode::Full), None);
        let total = (step as u64 + 1) * 97;
        assert_eq!(answer.next_line, total);
        assert!(answer.next_line - answer.oldest_line <= 100 + 50 + 5);
        assert_eq!(answer.line_numbers, (answer.oldest_line..total).collect::<Vec<_>>());
        assert!(answer.lines().zip(&answer.line_numbers).all(|(text, number)| text == format!("line {number}")));
    }
}

#[test]
fn the_byte_limit_holds_for_long_lines() {
    let limits = Limits { history_bytes: 100_000, live_rows: 50, ..Limits::default() };
    let mut emulator = limited(100, 5, limits);
    for number in 0..2_000 {
        feed(&mut emulator, format!("{number} {}\r\n", "x".repeat(500)));
    }
    assert!(emulator.heap_bytes() < 400_000, "{}", emulator.heap_bytes());
    let answer = emulator.read(&Request::new(Mode::Full), None);
    assert_eq!(answer.next_line, 2_000);
    assert!(answer.lines().zip(&answer.line_numbers).all(|(text, number)| text.starts_with(&format!("{number} "))));
}

#[test]
fn a_line_that_never_ends_is_cut_and_loses_nothing() {
    let limits = Limits { longest_line: 1_000, ..Limits::default() };
    let mut emulator = limited(100, 10, limits);
    let text: String = (0..300_000_u32).map(|at| char::from(b'a' + (at % 26) as u8)).collect();
    feed(&mut emulator, &text);
    feed(&mut emulator, "\r\nnext");
    let lines = full(&mut emulator);
    let joined: String = lines[..lines.len() - 1].iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(joined, text);
    assert!(lines.iter().all(|(_, text)| text.len() <= 1_000));
    assert_eq!(lines.last().unwrap().1, "next");
    assert!(emulator.styled_line(0).unwrap().continued);
}

#[test]
fn shrinking_gives_up_rows_but_no_line() {
    let mut emulator = fed(20, 5, numbered(0..200));
    let before = full(&mut emulator);
    emulator.shrink();
    assert_eq!(full(&mut emulator), before);
    emulator.resize(size(20, 30));
    assert_eq!(full(&mut emulator), before);
    feed(&mut emulator, "more");
    assert_eq!(full(&mut emulator).last().unwrap(), &(200, "more".to_owned()));
}
