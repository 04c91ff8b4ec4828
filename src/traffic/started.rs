//! Starts of actions that type, noted before anything is typed: what a server had begun that was killed.
//!
//! A start is one line appended to a file, which survives the end of the process but is not flushed to the disk; a line
//! behind it tells that the action's entry is stored. An action waits for that one write, which goes to the system's
//! memory. Nothing else waits: where a write fails or is slow, starts are left out for a while, and counted.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use kpty_guard::Masked;
use serde::{Deserialize, Serialize};

use super::store::{FileId, file_id};
use super::{Draft, Event, GivenText};

const FILE: &str = "started.jsonl";
/// Actions that are not over at the same time at most; further ones are left out.
const MOST_OPEN: usize = 4_096;
/// Length of the file at which it is written anew, with the open starts only.
const LONGEST_FILE: u64 = 1 << 20;
/// What is read of a file that was left behind.
const MOST_READ: u64 = 64 << 20;
/// A write that takes longer is one that others must not wait for.
const SLOW: Duration = Duration::from_millis(250);
/// How long nothing is noted after a failure or a slow write.
const PAUSE: Duration = Duration::from_secs(2);
/// The error of an action whose server ended before it.
const CODE: &str = "SERVER_ENDED";

/// An action that is about to type; masked and shortened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// When.
    pub at: SystemTime,
    /// The session.
    pub session_id: String,
    /// Name of the action.
    pub action: String,
    /// Agent that the caller claims to be.
    pub agent_id: Option<String>,
    /// What is typed.
    pub command: Option<String>,
    /// Characters of that before it was shortened.
    pub command_size: u64,
    /// `local` or `desktop`.
    pub session_source: Option<String>,
}

impl Start {
    /// The entry of an action that never ended.
    pub(super) fn into_draft(self, number: Option<u64>) -> Draft {
        let message = Masked::literal("the server ended before the answer; what was typed may have run");
        let is_for_journal = self.session_source.is_some();
        let mut event = Event::new(self.action, self.session_id);
        event.at = self.at;
        event.agent_id = self.agent_id;
        let size = self.command_size;
        let command = self.command.map(|text| GivenText { text, size });
        event.session_source = self.session_source;
        event.success = false;
        event.error_code = Some(Masked::literal(CODE));
        event.result = Some(message.clone());
        event.error_message = Some(message);
        Draft { command, started: number, is_for_journal, ..Draft::new(event, Default::default()) }
    }
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Started(u64, Start),
    Over(Vec<u64>),
}

/// The file of starts.
pub(super) struct StartLog(Mutex<Inner>);

struct Inner {
    path: PathBuf,
    file: Option<(File, Option<FileId>)>,
    len: u64,
    last_number: u64,
    /// Lines of actions that are not over.
    open: BTreeMap<u64, Vec<u8>>,
    paused_until: Option<Instant>,
}

impl StartLog {
    /// Opens the file in a folder. Returns the starts that an earlier server left, which are no longer in it.
    pub(super) fn open(folder: &Path) -> (Self, Vec<Start>) {
        let path = folder.join(FILE);
        let left = read(&path);
        let inner = Inner { path, file: None, len: 0, last_number: 0, open: BTreeMap::new(), paused_until: None };
        (Self(Mutex::new(inner)), left)
    }

    /// Notes a start. Returns its number, unless it could not be noted.
    pub(super) fn begin(&self, start: Start) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).begin(start)
    }

    /// The entries of these actions are stored. What they typed must not stay in the file if it was hidden.
    pub(super) fn end(&self, numbers: Vec<u64>, is_hidden: bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).end(numbers, is_hidden);
    }
}

impl Inner {
    fn begin(&mut self, start: Start) -> Option<u64> {
        if self.open.len() >= MOST_OPEN || self.paused_until.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        self.last_number += 1;
        let number = self.last_number;
        let line = line(&Line::Started(number, start))?;
        let noted = self.append(&line);
        if noted {
            self.open.insert(number, line);
        }
        noted.then_some(number)
    }

    fn end(&mut self, numbers: Vec<u64>, is_hidden: bool) {
        numbers.iter().for_each(|number| drop(self.open.remove(number)));
        let is_elsewhere = self.file.as_ref().is_some_and(|(_, id)| *id != file_id(&self.path));
        if is_hidden || is_elsewhere || self.len > LONGEST_FILE {
            let written = self.rewrite();
            self.note(written);
        } else if let Some(line) = line(&Line::Over(numbers)) {
            self.append(&line);
        }
    }

    fn append(&mut self, line: &[u8]) -> bool {
        let began = Instant::now();
        let written = match &mut self.file {
            Some((file, _)) => file.write_all(line),
            None => self.rewrite().and_then(|()| match &mut self.file {
                Some((file, _)) => file.write_all(line),
                None => Err(io::ErrorKind::NotFound.into()),
            }),
        };
        if written.is_ok() {
            self.len += line.len() as u64;
        }
        let is_written = self.note(written);
        if began.elapsed() > SLOW {
            self.paused_until = Some(Instant::now() + PAUSE);
        }
        is_written
    }

    /// A file that cannot be written is left alone for a while, and opened anew then.
    fn note(&mut self, written: io::Result<()>) -> bool {
        if let Err(error) = &written {
            tracing::debug!("starts of actions are not noted for now: {error}");
            self.file = None;
            self.paused_until = Some(Instant::now() + PAUSE);
        }
        written.is_ok()
    }

    /// Replaces the file by one that has the open starts only.
    fn rewrite(&mut self) -> io::Result<()> {
        let folder = self.path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let mut file = tempfile::Builder::new().prefix(".kpty-unfinished-").append(true).tempfile_in(folder)?;
        let lines: Vec<u8> = self.open.values().flatten().copied().collect();
        file.write_all(&lines)?;
        let file = file.persist(&self.path).map_err(|error| error.error)?;
        self.file = Some((file, file_id(&self.path)));
        self.len = lines.len() as u64;
        Ok(())
    }
}

fn line(line: &Line) -> Option<Vec<u8>> {
    let mut bytes = serde_json::to_vec(line).ok()?;
    bytes.push(b'\n');
    Some(bytes)
}

/// The starts in a file that have no end; lines that cannot be read are left out.
fn read(path: &Path) -> Vec<Start> {
    let is_plain = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let Some(file) = is_plain.then(|| OpenOptions::new().read(true).open(path).ok()).flatten() else {
        return Vec::new();
    };
    let mut bytes = Vec::new();
    // What was read of a file that fails half-way counts, too.
    let _ = file.take(MOST_READ).read_to_end(&mut bytes);
    let mut open = BTreeMap::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        match serde_json::from_slice(line) {
            Ok(Line::Started(number, start)) => drop(open.insert(number, start)),
            Ok(Line::Over(numbers)) => numbers.iter().for_each(|number| drop(open.remove(number))),
            Err(_) => {}
        }
    }
    open.into_values().take(MOST_OPEN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(command: &str) -> Start {
        Start {
            at: SystemTime::UNIX_EPOCH,
            session_id: "pty_1".to_owned(),
            action: "talk".to_owned(),
            agent_id: None,
            command: Some(command.to_owned()),
            command_size: 3,
            session_source: Some("local".to_owned()),
        }
    }

    fn left(folder: &Path) -> Vec<String> {
        StartLog::open(folder).1.into_iter().filter_map(|start| start.command).collect()
    }

    #[test]
    fn what_has_no_end_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let (log, before) = StartLog::open(folder.path());
        assert_eq!(before, []);
        let numbers: Vec<_> = ["a", "b", "c"].iter().filter_map(|command| log.begin(start(command))).collect();
        assert_eq!(numbers, [1, 2, 3]);
        assert_eq!(left(folder.path()), ["a", "b", "c"]);
        log.end(vec![2], false);
        assert_eq!(left(folder.path()), ["a", "c"]);
        // Half a line, as a full disk leaves one.
        fs::OpenOptions::new()
            .append(true)
            .open(folder.path().join(FILE))
            .and_then(|mut file| file.write_all(b"{\"started\":[9,{"))
            .expect("our file");
        assert_eq!(left(folder.path()), ["a", "c"]);
    }

    #[test]
    fn hidden_input_does_not_stay_and_the_file_does_not_grow() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(FILE);
        let (log, _) = StartLog::open(folder.path());
        let kept = log.begin(start("kept"));
        let secret = log.begin(start("hidden-input")).expect("noted");
        log.end(vec![secret], true);
        let text = fs::read_to_string(&path).expect("our file");
        assert!(text.contains("kept") && !text.contains("hidden-input"), "{text}");
        for _ in 0..2_000 {
            let number = log.begin(start(&"x".repeat(1_000))).expect("noted");
            log.end(vec![number], false);
        }
        assert!(fs::metadata(&path).expect("our file").len() < 2 * LONGEST_FILE);
        assert_eq!((kept, left(folder.path())), (Some(1), vec!["kept".to_owned()]));
    }

    #[test]
    fn a_folder_that_is_gone_is_no_failure() {
        let folder = tempfile::tempdir().expect("a folder");
        let (log, _) = StartLog::open(&folder.path().join("gone"));
        assert_eq!(log.begin(start("a")), None);
        log.end(vec![1], true);
    }
}
