//! The text that a command printed, cut out of the session's text.
//!
//! Usually the lines between two places of the screen's history. Where that would be wrong (the command drew above
//! the place where it began, or on the alternate screen), its bytes are played once more on an empty screen of the
//! same size, as far as the ring still has them. Lines that have left the history are still known by their beginning
//! and by count (`Evicted`): cut, the text is the same as if the history had no limit.

use std::time::Duration;

use kpty_emulator::{Buffer, Emulator, Evicted, Limits, Mode, Place, Request, Settings, Size, Which};

use super::ring::Ring;
use crate::terminal::commands::{Edge, Point};
use crate::terminal::output::{Gap, Output, cut, cut_around};
use kpty_guard::Redactor;

/// Bytes of the shortest line that may have been cut for its length.
const SHORTEST_CUT: usize = 1_024;

/// Lines of text and how many before them are gone.
struct Text {
    lines: Vec<String>,
    evicted: u64,
}

/// The stretch of a session's output that one command printed.
pub(super) struct Stretch<'a> {
    pub(super) start: Point,
    pub(super) end: &'a Edge,
    /// There was other text below the start.
    pub(super) is_over_text: bool,
    /// The emulator notes what the history lets go of this stretch.
    pub(super) notes_evicted: bool,
}

/// The text of a stretch.
pub(super) fn extract(
    emulator: &mut Emulator,
    ring: &Ring,
    stretch: &Stretch<'_>,
    max_chars: usize,
    redactor: &Redactor,
) -> Output {
    let Stretch { start, end: Edge { point: end, line, .. }, is_over_text, notes_evicted } = stretch;
    let (bytes, is_whole) = ring.slice(start.offset, end.offset);
    let is_plain = start.place.buffer == Buffer::Main && end.place.buffer == Buffer::Main;
    // A hook left text before the output, which is printed over it: the column where it began says nothing.
    let starts_over = start.place.chars > 0 && starts_with_return(&bytes);
    let text = if is_whole && (!is_plain || *is_over_text || starts_over || goes_back(&bytes)) {
        replay(emulator.size(), &bytes, if starts_over { 0 } else { start.place.chars })
    } else {
        between(emulator, start.place, end.place, Some(line))
    };
    let kept = redactor.mask(text.lines.join("\n"));
    let evicted =
        emulator.evicted().filter(|evicted| *notes_evicted && text.evicted > 0 && evicted.until > start.place.line);
    let mut output = match evicted {
        Some(evicted) => {
            let head = beginning(evicted, start.place);
            let head = redactor.mask(head);
            let gap = Gap { chars: evicted.omitted_chars, newlines: evicted.omitted_newlines };
            let evicted_lines = evicted.until - evicted.first.max(start.place.line);
            Output { evicted_lines, ..cut_around(&head, gap, &kept, max_chars) }
        }
        None => {
            let output = cut(kept, max_chars);
            let omitted_lines = output.omitted_lines + text.evicted as usize;
            let truncated = output.truncated || text.evicted > 0;
            Output { evicted_lines: text.evicted, missing_before: text.evicted, truncated, omitted_lines, ..output }
        }
    };
    output.lines = (start.place.line, end.place.line + u64::from(end.place.chars > 0));
    output
}

/// The text that a stretch began with, without what stood on its first line before.
fn beginning(evicted: &Evicted, start: Place) -> String {
    let mut head = evicted.head.as_str();
    for _ in evicted.first..start.line {
        head = head.split_once('\n').map_or("", |(_, rest)| rest);
    }
    // After a clear, the first line is another one.
    let chars_before = if evicted.first <= start.line { start.chars } else { 0 };
    let from = head.char_indices().nth(chars_before).map_or(head.len(), |(at, _)| at);
    head[from..].to_owned()
}

/// The first thing that is printed is a return to the beginning of the line, and no line feed with it. Sequences before it
/// (colours, titles) print nothing.
fn starts_with_return(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    loop {
        let length = match rest {
            [b'\r', after @ ..] => return after.first() != Some(&b'\n'),
            [0x1b, b'[', sequence @ ..] => {
                sequence.iter().position(|byte| (0x40..=0x7e).contains(byte)).map(|at| at + 3)
            }
            [0x1b, b']', text @ ..] => text.iter().position(|byte| matches!(byte, 0x07 | b'\\')).map(|at| at + 3),
            [0x1b, b'(' | b')', _, ..] => Some(3),
            _ => None,
        };
        match length {
            Some(length) => rest = &rest[length..],
            None => return false,
        }
    }
}

/// Sequences that can lead to text above the place where a command began, or that take text away.
fn goes_back(bytes: &[u8]) -> bool {
    memchr::memchr_iter(0x1b, bytes).any(|at| match bytes.get(at + 1) {
        Some(b'M' | b'7' | b'8' | b'c') => true,
        Some(b'[') => {
            let rest = &bytes[at + 2..];
            let last = rest.iter().find(|byte| (0x40..=0x7e).contains(*byte));
            let is_private = rest.first() == Some(&b'?');
            match last {
                Some(b'h' | b'l') => {
                    is_private && [&b"?1049"[..], b"?1047", b"?47"].iter().any(|m| rest.starts_with(m))
                }
                Some(last) => b"AFHfdJrTLMSu".contains(last),
                None => false,
            }
        }
        _ => false,
    })
}

/// Plays bytes on an empty screen.
fn replay(size: Size, bytes: &[u8], chars_before: usize) -> Text {
    let mut emulator = Emulator::new(Settings { size, limits: Limits::default(), ..Settings::default() });
    let column = chars_before % usize::from(size.cols());
    let _ = emulator.feed(Duration::ZERO, format!("\x1b[{}G", column + 1).as_bytes());
    let start = emulator.place();
    let _ = emulator.feed(Duration::ZERO, bytes);
    let _ = emulator.flush();
    let end = emulator.place();
    if emulator.buffer() == Buffer::Alternate {
        // What was printed before the screen was changed, then what the new one shows.
        let main = emulator.read(&Request { which: Which::Main, ..Request::new(Mode::Full) }, None);
        let shown = emulator.read(&Request::new(Mode::Full), None);
        let lines = main.lines().chain(shown.lines()).map(str::to_owned).collect();
        return Text { lines, evicted: 0 };
    }
    let all = emulator.read(&Request::new(Mode::Full), None);
    // Text may stand below the place where the cursor came to rest.
    let last = all.next_line.max(end.line).saturating_sub(u64::from(end.chars == 0 && end.line >= all.next_line));
    let end = Place { line: last.max(end.line), ..end };
    let mut text = between(&mut emulator, Place { line: all.oldest_line.min(start.line), ..start }, end, None);
    text.evicted = 0;
    while text.lines.last().is_some_and(String::is_empty) {
        text.lines.pop();
    }
    text
}

/// The lines from one place to another. `last_line` is the text of the last one as it was at the end.
fn between(emulator: &mut Emulator, start: Place, end: Place, last_line: Option<&str>) -> Text {
    let range = Mode::Range { from: start.line, until: Some(end.line + 1) };
    let answer = emulator.read(&Request { which: Which::Main, ..Request::new(range) }, None);
    let first = start.line.max(answer.oldest_line);
    let mut lines = vec![String::new(); (end.line + 1).saturating_sub(first) as usize];
    for (number, line) in answer.line_numbers.iter().zip(answer.lines()) {
        if let Some(slot) = number.checked_sub(first).and_then(|index| lines.get_mut(index as usize)) {
            line.clone_into(slot);
        }
    }
    if let (Some(last), Some(slot)) = (last_line, lines.last_mut()) {
        last.clone_into(slot);
    }
    if first == start.line
        && let Some(line) = lines.first_mut()
    {
        let cut = line.char_indices().nth(start.chars).map_or(line.len(), |(at, _)| at);
        line.drain(..cut);
    }
    // The cursor at the beginning of an empty line: the line before it was ended, and this one is not printed yet.
    let began_here = start.line == end.line && first == start.line;
    let is_blank_end = end.chars == 0 || (began_here && end.chars <= start.chars);
    if is_blank_end && lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let lines = joined(lines, |index| emulator.is_continued(first + index as u64));
    // What left the history after this stretch is none of it.
    let after_last = (end.line + u64::from(end.chars > 0)).max(start.line);
    Text { lines, evicted: first.min(after_last) - start.line }
}

/// Puts together again what was cut into several lines.
fn joined(lines: Vec<String>, mut goes_on: impl FnMut(usize) -> bool) -> Vec<String> {
    let mut whole: Vec<String> = Vec::with_capacity(lines.len());
    for (index, line) in lines.into_iter().enumerate() {
        // Only a line of some length can have been cut.
        match whole.last_mut().filter(|last| last.len() >= SHORTEST_CUT && goes_on(index - 1)) {
            Some(last) => last.push_str(&line),
            None => whole.push(line),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds what was before, then the output, and cuts the output out again.
    fn extracted(before: &str, printed: &str) -> Vec<String> {
        let mut emulator = Emulator::new(Settings { size: Size::new(20, 6).expect("a size"), ..Settings::default() });
        let mut ring = Ring::new(1 << 16);
        let mut point = |emulator: &mut Emulator, bytes: &str| {
            ring.push(bytes.as_bytes());
            let _ = emulator.feed(Duration::ZERO, bytes.as_bytes());
            Point { offset: ring.end(), place: emulator.place() }
        };
        let start = point(&mut emulator, before);
        let end = point(&mut emulator, printed);
        let range = Mode::Range { from: end.place.line, until: Some(end.place.line + 1) };
        let line = emulator.read(&Request::new(range), None).text;
        let stretch = Stretch {
            start,
            end: &Edge { point: end, line, at: std::time::Instant::now() },
            is_over_text: false,
            notes_evicted: false,
        };
        let output = extract(&mut emulator, &ring, &stretch, 10_000, &Redactor::new([]));
        output.text.split('\n').map(str::to_owned).collect()
    }

    #[test]
    fn the_output_is_what_was_printed_between_two_places() {
        for (before, printed, expected) in [
            ("$ x\r\n", "one\r\ntwo\r\n", &["one", "two"][..]),
            ("$ x\r\n", "", &[""]),
            ("$ x\r\n", "no newline", &["no newline"]),
            ("$ x\r\n", "\r\n\r\n", &["", ""]),
            ("$ ", "same line\r\n", &["same line"]),
            ("$ ", "same", &["same"]),
            ("$ ", "", &[""]),
            ("$ x\r\n", "10%\r20%\rdone\r\n", &["done"]),
            ("running... ", "\rone\r\n", &["one"]),
            ("running... ", "\x1b]0;title\x07\x1b[m\rone\r\ntwo\r\n", &["one", "two"]),
            ("$ ", "\r\none\r\n", &["", "one"]),
            ("$ x\r\n", "100%\r", &["100%"]),
            ("$ x\r\n", "12345678901234567890", &["12345678901234567890"]),
            ("$ x\r\n", "12345678901234567890\r\n", &["12345678901234567890"]),
            ("$ x\r\n", "1234567890123456789012345\r\nb", &["1234567890123456789012345", "b"]),
            ("a\r\nb\r\nc\r\n", "x\r\ny\x1b[A\r\x1b[2Kz\r\n", &["z", "y"]),
            ("a\r\nb\r\nc\r\n", "old\x1b[H\x1b[2J\x1b[3Jfresh\r\n", &["fresh"]),
            ("a\r\nb\r\nc\r\n", "\x1b[H\x1b[Jfresh\r\n", &["fresh"]),
            ("a\r\nb\r\n", "\x1b[?1049h\x1b[Hfull\x1b[?1049lout\r\n", &["out"]),
            (
                "\x1b[?1049ha\r\nb\r\n",
                "1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n8\r\n",
                &["1", "2", "3", "4", "5", "6", "7", "8"],
            ),
        ] {
            assert_eq!(extracted(before, printed), expected, "{before:?} {printed:?}");
        }
    }

    /// However much has left the history, the answer is the same as if nothing had.
    #[test]
    fn lines_that_left_the_history_are_shown_and_counted() {
        let size = Size::new(20, 6).expect("a size");
        let numbers: String = (1..=3_000).map(|number| format!("{number}\r\n")).collect();
        let long: String = (1..=40).map(|line| format!("{line}{}\r\n", "x".repeat(3_000 + line))).collect();
        for (before, printed, history_lines) in
            [("$ seq\r\n", &numbers, 400), ("$ ", &numbers, 400), ("$ x\r\n", &long, 50), ("$ ", &long, 50)]
        {
            let whole: String = printed.trim_end().replace("\r\n", "\n");
            for max_chars in [10, 101, 1_000, 100_000] {
                let limits = Limits { history_lines, live_rows: 120, longest_line: 1_100, ..Limits::default() };
                let mut emulator = Emulator::new(Settings { size, limits, ..Settings::default() });
                let _ = emulator.feed(Duration::ZERO, before.as_bytes());
                let start = Point { offset: 0, place: emulator.place() };
                emulator.keep_evicted(start.place.line, max_chars);
                let _ = emulator.feed(Duration::ZERO, printed.as_bytes());
                // The ring has none of it any more.
                let end = Point { offset: 1 << 20, place: emulator.place() };
                let edge = Edge { point: end, line: String::new(), at: std::time::Instant::now() };
                let stretch = Stretch { start, end: &edge, is_over_text: false, notes_evicted: true };
                let output = extract(&mut emulator, &Ring::new(1), &stretch, max_chars, &Redactor::new([]));
                let expected = cut(Redactor::off().mask_str(&whole), max_chars);
                assert!(output.evicted_lines > 0);
                assert_eq!(
                    (output.omitted_chars, output.omitted_lines),
                    (expected.omitted_chars, expected.omitted_lines)
                );
                assert_eq!(output.text, expected.text, "{max_chars}");
            }
        }
    }
}
