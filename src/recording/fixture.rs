//! Fixture folders: recordings beside the text they must show.
//!
//! `NAME.cast`, or `NAME.bytes` with its size in `NAME.json`, is next to `NAME.viewport.txt`, `NAME.tail.txt` and
//! `NAME.full.txt`; those that exist are compared. Users can run this test on their own captures.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kpty_emulator::{EngineKind, Mode, Request, Size};
use serde::Deserialize;

use crate::error::{Error, Result};
use crate::recording::Recording;
use crate::recording::replay::Player;

/// The expectation files of a recording: suffix, read mode, and whether wrapped rows are joined.
const VIEWS: [(&str, Mode, bool); 3] =
    [("viewport", Mode::Viewport, false), ("tail", Mode::Tail, true), ("full", Mode::Full, true)];
/// Example of a size file, for error messages.
const SIZE_EXAMPLE: &str = r#"{"cols": 80, "rows": 24}"#;
/// Default number of lines of a tail.
pub const TAIL_LINES: usize = 40;

/// A recording with its expectations.
#[derive(Debug)]
pub struct Fixture {
    /// File name without the extension.
    pub name: String,
    recording: Recording,
    size: Option<Size>,
    base: PathBuf,
}

/// Size file of a plain capture.
#[derive(Deserialize)]
struct SizeFile {
    cols: u16,
    rows: u16,
}

/// A mismatch between expectation and replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Name of the expectation file.
    pub expectation: String,
    /// Expected lines.
    pub expected: Vec<String>,
    /// Lines of the replay.
    pub got: Vec<String>,
}

impl Fixture {
    /// Loads all fixtures of a folder, sorted by name.
    pub fn load_all(folder: &Path) -> Result<Vec<Self>> {
        let entries = fs::read_dir(folder).map_err(|cause| Error::file("list", folder, cause))?;
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(|cause| Error::file("list", folder, cause))?.path();
            if path.extension().is_some_and(|extension| extension == "cast" || extension == "bytes") {
                paths.push(path);
            }
        }
        paths.sort();
        paths.iter().map(|path| Self::load(path)).collect()
    }

    fn load(path: &Path) -> Result<Self> {
        let recording = Recording::load(path)?;
        let size = match recording.size {
            Some(_) => None,
            None => Some(read_size(&path.with_extension("json"))?),
        };
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, recording, size, base: path.with_extension("") })
    }

    /// Replays the recording and compares every existing expectation. Returns the number compared and the mismatches.
    pub fn check(&self, engine: EngineKind) -> Result<(usize, Vec<Difference>)> {
        let mut compared = 0;
        let mut differences = Vec::new();
        for (path, got) in self.views(engine) {
            let expected = match fs::read_to_string(&path) {
                Ok(text) => trimmed(text.lines()),
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(cause) => return Err(Error::file("read", &path, cause)),
            };
            compared += 1;
            if expected != got {
                let expectation = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                differences.push(Difference { expectation, expected, got });
            }
        }
        Ok((compared, differences))
    }

    /// Rewrites the existing expectations, or writes `viewport` and `full` when there are none. Returns the names of
    /// the changed files.
    pub fn update(&self, engine: EngineKind) -> Result<Vec<String>> {
        let views = self.views(engine);
        let none_there = views.iter().all(|(path, _)| !path.exists());
        let mut changed = Vec::new();
        for (index, (path, got)) in views.iter().enumerate() {
            let wanted = path.exists() || (none_there && VIEWS[index].0 != "tail");
            let text: String = got.iter().map(|line| format!("{line}\n")).collect();
            if wanted && fs::read_to_string(path).ok().as_ref() != Some(&text) {
                fs::write(path, text).map_err(|cause| Error::file("write", path, cause))?;
                changed.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
            }
        }
        Ok(changed)
    }

    /// Returns the lines of every view with the path of its expectation.
    pub fn views(&self, engine: EngineKind) -> Vec<(PathBuf, Vec<String>)> {
        let mut player = Player::new(&self.recording, engine, self.size);
        player.play_to_end();
        let mut views = Vec::new();
        for (suffix, mode, merge_wrapped) in VIEWS {
            let max_lines = (mode == Mode::Tail).then_some(TAIL_LINES);
            let request = Request { merge_wrapped, max_lines, ..Request::new(mode) };
            let answer = player.emulator().read(&request, None);
            let mut path = self.base.clone().into_os_string();
            path.push(format!(".{suffix}.txt"));
            views.push((path.into(), trimmed(answer.lines())));
        }
        views
    }
}

fn read_size(path: &Path) -> Result<Size> {
    let text = fs::read_to_string(path).map_err(|cause| match cause.kind() {
        ErrorKind::NotFound => Error::Recording {
            path: path.with_extension("bytes"),
            line: None,
            problem: format!("its size is missing: write {SIZE_EXAMPLE} to {}", path.display()),
        },
        _ => Error::file("read", path, cause),
    })?;
    let size: SizeFile = serde_json::from_str(&text).map_err(|error| Error::Recording {
        path: path.to_owned(),
        line: Some(error.line()),
        problem: format!("a size like {SIZE_EXAMPLE} is expected: {error}"),
    })?;
    Size::new(size.cols, size.rows).map_err(|error| Error::Recording {
        path: path.to_owned(),
        line: None,
        problem: error.to_string(),
    })
}

/// Strips trailing blanks and trailing empty lines.
pub fn trimmed<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut lines: Vec<String> = lines.map(|line| line.trim_end_matches([' ', '\t', '\r']).to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}
