//! What the tests share.

use std::collections::BTreeMap;
use std::time::Duration;

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::term::test::TermSize;
use alacritty_terminal::term::{Config, Term};
use alacritty_terminal::vte::ansi::{Processor, StdSyncHandler};
use kpty_emulator::{Buffer, Emulator, Limits, MarkerId, Mode, Request, Settings, Size, Which};

pub(crate) fn size(cols: u16, rows: u16) -> Size {
    Size::new(cols, rows).unwrap()
}

pub(crate) fn terminal(cols: u16, rows: u16) -> Emulator {
    limited(cols, rows, Limits::default())
}

pub(crate) fn limited(cols: u16, rows: u16, limits: Limits) -> Emulator {
    Emulator::new(Settings { size: size(cols, rows), limits, ..Settings::default() })
}

/// Feeds at time zero; returns the bytes of the replies.
pub(crate) fn feed(emulator: &mut Emulator, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    emulator.feed(Duration::ZERO, bytes.as_ref()).bytes
}

pub(crate) fn fed(cols: u16, rows: u16, bytes: impl AsRef<[u8]>) -> Emulator {
    let mut emulator = terminal(cols, rows);
    feed(&mut emulator, bytes);
    emulator
}

/// The lines of a read.
pub(crate) fn lines(emulator: &mut Emulator, request: &Request) -> Vec<String> {
    emulator.read(request, None).lines().map(str::to_owned).collect()
}

/// The visible rows, without the blank ones at the end.
pub(crate) fn rows(emulator: &mut Emulator) -> Vec<String> {
    let request = Request { merge_wrapped: false, ..Request::new(Mode::Viewport) };
    let mut rows = lines(emulator, &request);
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}

/// The visible rows of the bare engine, fed as its documentation says.
pub(crate) fn bare_rows(cols: u16, rows: u16, bytes: &str) -> Vec<String> {
    let size = TermSize::new(usize::from(cols), usize::from(rows));
    let mut term = Term::new(Config::default(), &size, VoidListener);
    Processor::<StdSyncHandler>::new().advance(&mut term, bytes.as_bytes());
    let row = |line: i32| {
        let mut text = String::new();
        for cell in &term.grid()[Line(line)] {
            if !cell.flags.intersects(Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER) {
                text.push(if cell.c == '\t' { ' ' } else { cell.c });
                text.extend(cell.zerowidth().into_iter().flatten());
            }
        }
        text.trim_end().to_owned()
    };
    let mut rows: Vec<String> = (0..i32::from(rows)).map(row).collect();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}

/// Everything, by number.
pub(crate) fn full(emulator: &mut Emulator) -> Vec<(u64, String)> {
    let answer = emulator.read(&Request::new(Mode::Full), None);
    answer.line_numbers.iter().copied().zip(answer.lines().map(str::to_owned)).collect()
}

/// `count` lines of the form `line N`.
pub(crate) fn numbered(range: std::ops::Range<usize>) -> String {
    range.map(|number| format!("line {number}\r\n")).collect()
}

/// What happens in a recording.
pub(crate) enum CastEvent {
    Output(Vec<u8>),
    Resize(Size),
}

/// Output and resizes of an asciicast, whatever its version; times do not matter here.
pub(crate) fn cast_events(text: &str) -> Vec<CastEvent> {
    let header: serde_json::Value =
        serde_json::from_str(text).or_else(|_| serde_json::from_str(text.lines().next().unwrap_or_default())).unwrap();
    let output = |value: &serde_json::Value| CastEvent::Output(value.as_str().unwrap().as_bytes().to_vec());
    if header["version"] == 1 {
        return header["stdout"].as_array().unwrap().iter().map(|entry| output(&entry[1])).collect();
    }
    let events = text.lines().skip(1).filter(|line| line.starts_with('['));
    let events = events.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    events
        .filter_map(|event| match event[1].as_str() {
            Some("o") => Some(output(&event[2])),
            Some("r") => {
                let (cols, rows) = event[2].as_str().unwrap().split_once('x').unwrap();
                Some(CastEvent::Resize(size(cols.parse().unwrap(), rows.parse().unwrap())))
            }
            _ => None,
        })
        .collect()
}

pub(crate) fn play_event(emulator: &mut Emulator, event: &CastEvent) {
    match event {
        CastEvent::Output(bytes) => drop(feed(emulator, bytes)),
        CastEvent::Resize(size) => emulator.resize(*size),
    }
}

/// Somebody who follows by deltas and checks the law after every read.
#[derive(Default)]
pub(crate) struct Reader {
    marker: Option<MarkerId>,
    main: BTreeMap<u64, String>,
    alternate: BTreeMap<u64, String>,
    /// Number after the last main line that was seen.
    end: Option<u64>,
}

impl Reader {
    pub(crate) fn read(&mut self, emulator: &mut Emulator) {
        let answer = emulator.read(&Request::new(Mode::Delta { since: self.marker }), None);
        let delta = answer.delta.unwrap();
        let lines = match answer.buffer {
            Buffer::Main => &mut self.main,
            Buffer::Alternate => &mut self.alternate,
        };
        lines.extend(answer.line_numbers.iter().copied().zip(answer.lines().map(str::to_owned)));
        lines.retain(|number, _| (answer.oldest_line..answer.next_line).contains(number));
        let held: Vec<(u64, String)> = lines.iter().map(|(number, text)| (*number, text.clone())).collect();
        assert_eq!(held, full(emulator), "what the reader holds and what a full read gives");
        if answer.buffer == Buffer::Main {
            if let Some(end) = self.end {
                let missed = answer.oldest_line.saturating_sub(end);
                assert_eq!(delta.missed_lines, Some(missed));
                assert_eq!(delta.marker_disposed, missed > 0);
                assert_eq!(delta.loss.is_some(), missed > 0);
            }
            self.end = Some(answer.next_line);
        } else if self.end.is_none() {
            // A reader who comes now has seen nothing, and misses what goes from here on.
            let main = emulator.read(&Request { which: Which::Main, max_lines: Some(0), ..Request::default() }, None);
            self.end = Some(main.oldest_line);
        }
        self.marker = Some(delta.marker);
    }
}
