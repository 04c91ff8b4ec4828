//! Parser of asciicast files: versions 2 and 3 (one JSON value per line) and version 1 (one JSON object).

use std::time::Duration;

use kpty_emulator::Size;
use serde::Deserialize;

use super::{Action, Event, Recording};

/// A parse error and its position.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Line number, starting at 1.
    pub(super) line: Option<usize>,
    pub(super) what: String,
}

impl Problem {
    fn at(line: usize, what: impl Into<String>) -> Self {
        Self { line: Some(line), what: what.into() }
    }
}

/// Header line of versions 2 and 3. In version 1 the same object contains the events.
#[derive(Deserialize)]
struct Header {
    version: u64,
    width: Option<u16>,
    height: Option<u16>,
    term: Option<TermHeader>,
    stdout: Option<Vec<(f64, String)>>,
}

/// Version 3 stores the size here.
#[derive(Deserialize)]
struct TermHeader {
    cols: u16,
    rows: u16,
}

/// Meaning of event times.
#[derive(Clone, Copy)]
enum Times {
    SinceStart,
    SincePrevious,
}

pub(super) fn parse(bytes: &[u8]) -> Result<Recording, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count();
        Problem::at(line, "not UTF-8 text, so not an asciicast; rename it if it is a plain capture")
    })?;
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let (number, first) =
        lines.next().ok_or_else(|| Problem::at(1, "the file is empty: an asciicast header is missing"))?;
    // A version 1 file may span several lines: then the first line alone is not JSON, but the whole file is.
    let header: Header = serde_json::from_str(first).or_else(|error| {
        serde_json::from_str::<Header>(text)
            .ok()
            .filter(|header| header.version == 1)
            .ok_or_else(|| Problem::at(number, format!("not an asciicast header: {}", reason(&error))))
    })?;
    let size = size_of(&header).map_err(|what| Problem::at(number, what))?;
    let events = match header.version {
        1 => old_events(header.stdout.unwrap_or_default()),
        2 => event_lines(lines, Times::SinceStart),
        3 => event_lines(lines, Times::SincePrevious),
        other => Err(Problem::at(number, format!("asciicast version {other} is not known: use 1, 2 or 3"))),
    }?;
    Ok(Recording { size: Some(size), events, timed: true })
}

fn size_of(header: &Header) -> Result<Size, String> {
    let (cols, rows) = match (&header.term, header.width, header.height) {
        (Some(term), ..) => (term.cols, term.rows),
        (None, Some(width), Some(height)) => (width, height),
        _ => return Err("the header gives no width and height".to_owned()),
    };
    Size::new(cols, rows).map_err(|error| error.to_string())
}

fn old_events(stdout: Vec<(f64, String)>) -> Result<Vec<Event>, Problem> {
    let mut clock = Duration::ZERO;
    let mut events = Vec::new();
    for (index, (delay, text)) in stdout.into_iter().enumerate() {
        clock = seconds(delay)
            .and_then(|delay| clock.checked_add(delay))
            .ok_or_else(|| Problem { line: None, what: format!("entry {index} of stdout has no valid delay") })?;
        events.push(Event { at: clock, action: Action::Output(text.into_bytes()) });
    }
    Ok(events)
}

fn event_lines<'a>(lines: impl Iterator<Item = (usize, &'a str)>, times: Times) -> Result<Vec<Event>, Problem> {
    let mut clock = Duration::ZERO;
    let mut events = Vec::new();
    for (number, line) in lines {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let (time, code, data): (f64, String, serde_json::Value) = serde_json::from_str(line)
            .map_err(|error| Problem::at(number, format!("not an event: {}", reason(&error))))?;
        let moment = seconds(time).and_then(|time| match times {
            // A decreasing time would reorder output, so it counts as the previous time.
            Times::SinceStart => Some(clock.max(time)),
            Times::SincePrevious => clock.checked_add(time),
        });
        clock = moment.ok_or_else(|| Problem::at(number, "the time is not a number of seconds"))?;
        if let Some(action) = action(&code, &data).map_err(|what| Problem::at(number, what))? {
            events.push(Event { at: clock, action });
        }
    }
    Ok(events)
}

/// Returns output and resize events; input, markers and exits do not affect the screen.
fn action(code: &str, data: &serde_json::Value) -> Result<Option<Action>, String> {
    let text = || data.as_str().ok_or_else(|| format!("the data of an event {code:?} is not text"));
    match code {
        "o" => Ok(Some(Action::Output(text()?.as_bytes().to_vec()))),
        "r" => parse_size(text()?).map(|size| Some(Action::Resize(size))),
        _ => Ok(None),
    }
}

fn parse_size(text: &str) -> Result<Size, String> {
    let wrong = || format!("{text:?} is not a size like 80x24");
    let (cols, rows) = text.split_once('x').ok_or_else(wrong)?;
    let parse = |number: &str| number.parse::<u16>().map_err(|_| wrong());
    Size::new(parse(cols)?, parse(rows)?).map_err(|error| error.to_string())
}

/// Returns the JSON parser's message without its line number, which is relative to the parsed line.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.split_once(" at line ") {
        Some((what, _)) => format!("{what} at column {}", error.column()),
        None => text,
    }
}

fn seconds(value: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(millis: u64, text: &str) -> Event {
        Event { at: Duration::from_millis(millis), action: Action::Output(text.into()) }
    }

    #[test]
    fn every_version_gives_the_same_events() {
        let resize =
            Event { at: Duration::from_millis(750), action: Action::Resize(Size::new(40, 10).unwrap_or_default()) };
        let v1 = "{\"version\": 1, \"width\": 20, \"height\": 5,\n \"stdout\": [[0.5, \"a\"], [0.25, \"b\"]]}";
        let v2 = "{\"version\":2,\"width\":20,\"height\":5}\n[0.5,\"o\",\"a\"]\n[0.6,\"i\",\"x\"]\n\n[0.75,\"o\",\"b\"]\n[0.75,\"r\",\"40x10\"]\n";
        let v3 = "{\"version\":3,\"term\":{\"cols\":20,\"rows\":5}}\n[0.5,\"o\",\"a\"]\n# note\n[0.25,\"o\",\"b\"]\n[0,\"r\",\"40x10\"]\n[0,\"x\",\"0\"]\n";
        let plain = vec![output(500, "a"), output(750, "b")];
        let with_resize = [plain.clone(), vec![resize]].concat();
        for (cast, expected) in [(v1, plain), (v2, with_resize.clone()), (v3, with_resize)] {
            let recording = parse(cast.as_bytes()).expect("a good cast");
            assert_eq!(recording.size, Size::new(20, 5).ok());
            assert_eq!(recording.events, expected, "{cast}");
        }
    }

    #[test]
    fn a_bad_line_is_named() {
        let header = "{\"version\":2,\"width\":20,\"height\":5}\n";
        for (cast, line) in [
            (String::new(), 1),
            ("nonsense".to_owned(), 1),
            ("{\"version\":9,\"width\":1,\"height\":1}".to_owned(), 1),
            ("{\"version\":2}".to_owned(), 1),
            ("{\"version\":2,\"width\":0,\"height\":5}".to_owned(), 1),
            (format!("{header}[0.1,\"o\",\"a\"]\n[0.2,\"o\""), 3),
            (format!("{header}[-1,\"o\",\"a\"]"), 2),
            (format!("{header}[1e300,\"o\",\"a\"]"), 2),
            (format!("{header}[1,\"o\",7]"), 2),
            (format!("{header}[1,\"r\",\"big\"]"), 2),
            (format!("{header}[1,\"r\",\"9999x1\"]"), 2),
        ] {
            assert_eq!(parse(cast.as_bytes()).map_err(|problem| problem.line), Err(Some(line)), "{cast}");
        }
        let long = "{\"version\":3,\"term\":{\"cols\":20,\"rows\":5}}\n[1e19,\"o\",\"a\"]\n[1e19,\"o\",\"b\"]";
        assert_eq!(parse(long.as_bytes()).map_err(|p| p.line), Err(Some(3)), "times that add up to too much");
        assert_eq!(parse(b"{\"version\":2,\"width\":20,\"height\":5}\n\xff").map_err(|p| p.line), Err(Some(2)));
    }
}
