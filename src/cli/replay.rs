//! `kpty replay`: the screen after a captured stream, and the check of a folder of fixtures.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use kpty_emulator::{Answer, Buffer, EngineKind, MarkerId, Mode, Request, Size, Which};
use serde::Serialize;

use super::screenshot::{self, LookArguments};
use super::{Failure, Outcome, print};
use crate::error::Error;
use crate::picture::{self, Subject};
use crate::recording::Recording;
use crate::recording::fixture::{Difference, Fixture, TAIL_LINES, trimmed};
use crate::recording::replay::Player;

#[derive(Args)]
#[command(after_help = "\
Examples:
  kpty replay session.cast                       the last screen of a recording
  kpty replay typescript --cols 100 --mode full  everything a raw capture shows, wrapped lines joined
  kpty replay session.cast --mode delta --at 2   the lines that changed after the first two seconds
  kpty replay session.cast --at 2 --png two.png  a picture of the screen after two seconds
  kpty replay --check fixtures/recordings        compare recordings with the text beside them")]
pub(super) struct ReplayArguments {
    /// Raw bytes as a terminal received them, or an asciicast (version 1, 2 or 3) when the name ends in .cast
    #[arg(required_unless_present = "check")]
    file: Option<PathBuf>,

    /// Width of the terminal; the recording's own, or 120
    #[arg(long, value_name = "C")]
    cols: Option<u16>,

    /// Height of the terminal; the recording's own, or 30
    #[arg(long, value_name = "R")]
    rows: Option<u16>,

    /// What to print
    #[arg(long, value_enum, default_value = "viewport")]
    mode: ModeName,

    /// The newest lines only; 40 for a tail, a viewport is always whole
    #[arg(long, value_name = "N")]
    max_lines: Option<usize>,

    /// Print soft-wrapped rows one by one instead of joined
    #[arg(long)]
    no_merge: bool,

    /// Which terminal engine
    #[arg(long, value_enum, default_value = "alacritty")]
    engine: EngineName,

    /// Stop at this moment of the recording; with --mode delta, compare it with the end
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    at: Option<f64>,

    /// Print a JSON object with line numbers, cursor and markers
    #[arg(long)]
    json: bool,

    /// Draw the screen into this file as a PNG instead of printing it
    #[arg(long, value_name = "FILE")]
    png: Option<PathBuf>,

    /// Draw the screen into this file as an SVG instead of printing it
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    #[command(flatten)]
    look: LookArguments,

    /// Check a folder: NAME.cast, or NAME.bytes with NAME.json, beside NAME.viewport.txt, .tail.txt, .full.txt
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["file", "cols", "rows", "mode", "max_lines", "no_merge", "at", "json", "png", "svg"]
    )]
    check: Option<PathBuf>,

    /// With --check: rewrite the expectations
    #[arg(long, requires = "check", conflicts_with = "file")]
    update: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModeName {
    Viewport,
    Tail,
    Full,
    Delta,
}

#[derive(Clone, Copy, ValueEnum)]
enum EngineName {
    Alacritty,
    Vt100,
}

impl From<EngineName> for EngineKind {
    fn from(name: EngineName) -> Self {
        match name {
            EngineName::Alacritty => Self::Alacritty,
            EngineName::Vt100 => Self::Vt100,
        }
    }
}

pub(super) fn run(arguments: &ReplayArguments) -> Result<Outcome, Failure> {
    match (&arguments.check, &arguments.file) {
        (Some(folder), _) => check(folder, arguments),
        (None, Some(file)) => show(file, arguments),
        (None, None) => Err(Error::Usage("name a file, or a folder with --check".to_owned()).into()),
    }
}

fn show(file: &Path, arguments: &ReplayArguments) -> Result<Outcome, Failure> {
    let recording = Recording::load(file)?;
    let size = size(&recording, arguments)?;
    let at = moment(&recording, arguments)?;
    let mut player = Player::new(&recording, arguments.engine.into(), size);
    if arguments.png.is_some() || arguments.svg.is_some() {
        return draw(&mut player, at, arguments);
    }
    let answer = match (arguments.mode, at) {
        (ModeName::Delta, at) => delta(&mut player, at, arguments),
        (_, Some(at)) => {
            player.play_until(at);
            player.emulator().read(&request(arguments, None), None)
        }
        (_, None) => {
            player.play_to_end();
            player.emulator().read(&request(arguments, None), None)
        }
    };
    if arguments.json {
        let json = serde_json::to_string(&ReplayJson::new(&answer)).map_err(std::io::Error::from)?;
        print::line(&json)?;
    } else {
        trimmed(answer.lines()).iter().try_for_each(|line| print::line(line))?;
    }
    Ok(Outcome::Done)
}

/// Pictures of the screen at a moment, or at the end.
fn draw(player: &mut Player<'_>, at: Option<Duration>, arguments: &ReplayArguments) -> Result<Outcome, Failure> {
    match at {
        Some(at) => player.play_until(at),
        None => player.play_to_end(),
    }
    let mut subject = Subject::recorded(player.emulator().screen());
    let look = arguments.look.look();
    if arguments.look.no_cursor {
        subject = subject.without_cursor();
    }
    if let Some(path) = &arguments.svg {
        screenshot::save(path, picture::svg(&subject, look)?.as_bytes())?;
    }
    if let Some(path) = &arguments.png {
        screenshot::save(path, &picture::png(&subject, look)?)?;
    }
    Ok(Outcome::Done)
}

/// The lines that changed between a moment and the end; without a moment, everything.
fn delta(player: &mut Player<'_>, at: Option<Duration>, arguments: &ReplayArguments) -> Answer {
    let since = at.and_then(|at| {
        player.play_until(at);
        // First the main screen, then the one that is shown: the marker must know both, whichever is shown at the end.
        let main = mark(player, None, Which::Main);
        mark(player, main, Which::Active)
    });
    player.play_to_end();
    player.emulator().read(&request(arguments, since), None)
}

fn mark(player: &mut Player<'_>, since: Option<MarkerId>, which: Which) -> Option<MarkerId> {
    let request = Request { max_lines: Some(0), which, ..Request::new(Mode::Delta { since }) };
    player.emulator().read(&request, None).delta.map(|delta| delta.marker)
}

fn request(arguments: &ReplayArguments, since: Option<MarkerId>) -> Request {
    let mode = match arguments.mode {
        ModeName::Viewport => Mode::Viewport,
        ModeName::Tail => Mode::Tail,
        ModeName::Full => Mode::Full,
        ModeName::Delta => Mode::Delta { since },
    };
    let max_lines = match (arguments.mode, arguments.max_lines) {
        (ModeName::Tail, None) => Some(TAIL_LINES),
        (_, max_lines) => max_lines,
    };
    Request { merge_wrapped: !arguments.no_merge, max_lines, ..Request::new(mode) }
}

fn size(recording: &Recording, arguments: &ReplayArguments) -> Result<Option<Size>, Error> {
    if arguments.cols.is_none() && arguments.rows.is_none() {
        return Ok(None);
    }
    let own = recording.size.unwrap_or_default();
    let size = Size::new(arguments.cols.unwrap_or(own.cols()), arguments.rows.unwrap_or(own.rows()))?;
    Ok(Some(size))
}

fn moment(recording: &Recording, arguments: &ReplayArguments) -> Result<Option<Duration>, Error> {
    let Some(seconds) = arguments.at else { return Ok(None) };
    if !recording.timed {
        return Err(Error::Usage("--at needs a recording with times: a .cast file".to_owned()));
    }
    let moment = Duration::try_from_secs_f64(seconds)
        .map_err(|_| Error::Usage(format!("--at {seconds} is not a moment: give seconds from the start")))?;
    Ok(Some(moment))
}

fn check(folder: &Path, arguments: &ReplayArguments) -> Result<Outcome, Failure> {
    let engine = arguments.engine.into();
    let fixtures = Fixture::load_all(folder)?;
    if fixtures.is_empty() {
        let message = format!("{} holds no NAME.cast and no NAME.bytes", folder.display());
        return Err(Error::Usage(message).into());
    }
    let (mut compared, mut different) = (0, 0);
    let mut report = Vec::new();
    for fixture in &fixtures {
        if arguments.update {
            report.extend(fixture.update(engine)?.iter().map(|name| format!("updated {name}")));
        }
        let (views, differences) = fixture.check(engine)?;
        compared += views;
        different += differences.len();
        if views == 0 {
            report.push(format!("{}: nothing to compare with; --update writes it", fixture.name));
        }
        differences.iter().for_each(|difference| describe(difference, &mut report));
    }
    let same = compared - different;
    let recordings = fixtures.len();
    report.push(format!("{recordings} recordings, {compared} expectations: {same} as expected, {different} different"));
    let outcome = if different == 0 { Outcome::Done } else { Outcome::Differences };
    match report.iter().try_for_each(|line| print::line(line)).map_err(Failure::from) {
        // The verdict stands, also when nobody reads to the end.
        Ok(()) | Err(Failure::OutputClosed) => Ok(outcome),
        Err(failure) => Err(failure),
    }
}

fn describe(difference: &Difference, report: &mut Vec<String>) {
    report.push(format!("{} differs:", difference.expectation));
    let rows = difference.expected.len().max(difference.got.len());
    for row in 0..rows {
        let (expected, got) = (difference.expected.get(row), difference.got.get(row));
        if expected != got {
            let signed = [("-", expected), ("+", got)].into_iter().filter_map(|(sign, text)| Some((sign, text?)));
            report.extend(signed.map(|(sign, text)| format!("  {:>4} {sign}{text}", row + 1)));
        }
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct ReplayJson<'a> {
    text: &'a str,
    lines: Vec<&'a str>,
    line_numbers: &'a [u64],
    truncated: bool,
    dropped_chars: usize,
    dropped_lines: usize,
    first_line: u64,
    next_line: u64,
    oldest_line: u64,
    cursor_line: u64,
    cursor_col: u16,
    cursor_row: u16,
    cols: u16,
    rows: u16,
    buffer_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    marker_disposed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missed_lines: Option<u64>,
}

impl<'a> ReplayJson<'a> {
    fn new(answer: &'a Answer) -> Self {
        Self {
            text: &answer.text,
            lines: answer.lines().collect(),
            line_numbers: &answer.line_numbers,
            truncated: answer.truncated,
            dropped_chars: answer.dropped_chars,
            dropped_lines: answer.dropped_lines,
            first_line: answer.first_line,
            next_line: answer.next_line,
            oldest_line: answer.oldest_line,
            cursor_line: answer.cursor_line,
            cursor_col: answer.cursor.col,
            cursor_row: answer.cursor.row,
            cols: answer.size.cols(),
            rows: answer.size.rows(),
            buffer_type: match answer.buffer {
                Buffer::Main => "normal",
                Buffer::Alternate => "alternate",
            },
            marker_disposed: answer.delta.map(|delta| delta.marker_disposed),
            missed_lines: answer.delta.and_then(|delta| delta.missed_lines),
        }
    }
}
