//! Records a live session: a bounded queue that never blocks the session, and a thread that redacts and writes.
//!
//! A session that outpaces the disk loses its recording, not its speed: the recording ends there with a note. Files are
//! accessible to their owner only and never overwrite another file.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kpty_emulator::Size;

use super::mask::StreamRedactor;
use super::writer::{CastWriter, Kind};
use crate::error::{Error, Result};
use kpty_guard::Redactor;

/// Maximum bytes queued for the writer.
const MAX_QUEUED_BYTES: usize = 8 << 20;
/// Quiet period of output after which held-back bytes are released.
const QUIET: Duration = Duration::from_millis(200);
/// Default maximum size of a file.
pub const DEFAULT_MAX_BYTES: u64 = 64 << 20;
/// Largest configurable maximum size of a file.
pub const MAX_BYTES_CAP: u64 = 1 << 30;

/// Options of a recording.
#[derive(Clone, Debug)]
pub struct Options {
    /// Path of the file, which must not exist.
    pub path: PathBuf,
    /// Redacts secrets; `None` records everything as is.
    pub redactor: Option<Arc<Redactor>>,
    /// Records input as well.
    pub input: bool,
    /// Maximum size of the file; recording ends before it is exceeded.
    pub max_bytes: u64,
    /// Display title.
    pub title: Option<String>,
}

/// Receives a copy of the output.
pub type Echo = Box<dyn FnMut(&[u8]) + Send>;

/// State of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Path of the file.
    pub path: PathBuf,
    /// Current size of the file.
    pub bytes: u64,
    /// Why the recording ended; `None` while it runs.
    pub ended: Option<End>,
    /// Secrets are redacted in it.
    pub is_masked: bool,
}

/// Why a recording ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// A client stopped it.
    Stopped,
    /// The program of the session ended.
    SessionEnded,
    /// The file reached its maximum size.
    TooLarge,
    /// Output arrived faster than it could be written.
    TooFast,
    /// Writing failed with this error.
    Disk(String),
}

impl End {
    /// Returns the note at the end of the file; `None` if nothing is missing.
    fn note(&self) -> Option<&'static str> {
        match self {
            Self::Stopped | Self::SessionEnded | Self::Disk(_) => None,
            Self::TooLarge => Some("the recording ends here: the file reached its maximum size"),
            Self::TooFast => Some("the recording ends here: output arrived faster than it could be written"),
        }
    }

    /// Returns the name on the wire.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::SessionEnded => "session_ended",
            Self::TooLarge => "size_limit",
            Self::TooFast => "too_fast",
            Self::Disk(_) => "disk",
        }
    }
}

enum RecordedEvent {
    Output(Vec<u8>),
    Input(Vec<u8>),
    Resize(Size),
}

#[derive(Default)]
struct Queue {
    events: VecDeque<(Duration, RecordedEvent)>,
    bytes: usize,
    end: Option<End>,
}

struct RecorderInner {
    queue: Mutex<Queue>,
    ready: Condvar,
    began: Instant,
    input: bool,
    is_masked: bool,
    status: Mutex<Status>,
}

impl RecorderInner {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, size: usize, event: impl FnOnce() -> RecordedEvent) {
        let at = self.began.elapsed();
        let mut queue = self.lock();
        if queue.end.is_some() {
            return;
        }
        if queue.bytes + size > MAX_QUEUED_BYTES {
            queue.end = Some(End::TooFast);
        } else {
            queue.bytes += size;
            queue.events.push_back((at, event()));
        }
        self.ready.notify_one();
    }

    fn end(&self, end: End) {
        self.lock().end.get_or_insert(end);
        self.ready.notify_one();
    }
}

/// Input side of a recording, held by the session; clones are equivalent.
#[derive(Clone)]
pub struct Tap {
    shared: Arc<RecorderInner>,
}

impl Tap {
    /// Records output of the program.
    pub fn output(&self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.shared.push(bytes.len(), || RecordedEvent::Output(bytes.to_vec()));
        }
    }

    /// Records input; dropped when the recording excludes input.
    pub fn input(&self, bytes: &[u8]) {
        if self.shared.input && !bytes.is_empty() {
            self.shared.push(bytes.len(), || RecordedEvent::Input(bytes.to_vec()));
        }
    }

    /// Returns whether input is recorded.
    pub fn wants_input(&self) -> bool {
        self.shared.input
    }

    /// Returns whether secrets are redacted.
    pub fn is_masked(&self) -> bool {
        self.shared.is_masked
    }

    /// Records a new window size.
    pub fn resize(&self, size: Size) {
        self.shared.push(0, || RecordedEvent::Resize(size));
    }

    /// Ends the recording because the session's program ended.
    pub fn session_ended(&self) {
        self.shared.end(End::SessionEnded);
    }

    /// Returns whether the recording has ended.
    pub fn is_ended(&self) -> bool {
        self.shared.lock().end.is_some()
    }
}

/// Control side of a recording.
pub struct Recorder {
    shared: Arc<RecorderInner>,
    writer: Option<JoinHandle<()>>,
}

impl Recorder {
    /// Creates the file and starts recording event the tap receives.
    pub fn start(options: Options, size: Size) -> Result<(Self, Tap)> {
        Self::start_with(options, size, None)
    }

    /// Like [`Recorder::start`]; `echo` receives the unredacted output.
    pub fn start_with(options: Options, size: Size, echo: Option<Echo>) -> Result<(Self, Tap)> {
        let file = create(&options.path).map_err(|cause| Error::file("create", &options.path, cause))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let masked = |title: &str| match &options.redactor {
            Some(redactor) => redactor.redact(title).into_owned(),
            None => title.to_owned(),
        };
        let title = options.title.as_deref().map(masked);
        let writer = CastWriter::new(file, size, now, title.as_deref())
            .map_err(|cause| Error::file("write", &options.path, cause))?;
        let is_masked = options.redactor.is_some();
        let status = Status { path: options.path.clone(), bytes: writer.bytes, ended: None, is_masked };
        let shared = Arc::new(RecorderInner {
            queue: Mutex::default(),
            ready: Condvar::new(),
            began: Instant::now(),
            input: options.input,
            is_masked,
            status: Mutex::new(status),
        });
        let job = RecordingWriter {
            shared: Arc::clone(&shared),
            writer,
            output: StreamRedactor::new(options.redactor.clone()),
            input: StreamRedactor::new(options.redactor),
            max_bytes: options.max_bytes,
            held_since: None,
            echo,
        };
        let thread = std::thread::Builder::new().name("recorder".to_owned());
        let thread = thread.spawn(move || job.run()).map_err(|cause| Error::file("write", &options.path, cause))?;
        let tap = Tap { shared: Arc::clone(&shared) };
        Ok((Self { shared, writer: Some(thread) }, tap))
    }

    /// Returns the current state.
    pub fn status(&self) -> Status {
        self.shared.status().clone()
    }

    /// Ends the recording. [`Recorder::join`] waits for the file.
    pub fn stop(&self) {
        self.shared.end(End::Stopped);
    }

    /// Ends the recording and waits until everything is written.
    pub fn join(mut self) -> Status {
        self.stop();
        if let Some(writer) = self.writer.take() {
            // After a panic of the writer, the status still holds event was written.
            let _ = writer.join();
        }
        self.status()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Creates a new file with access for its owner only.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The writer thread.
struct RecordingWriter {
    shared: Arc<RecorderInner>,
    writer: CastWriter<File>,
    output: StreamRedactor,
    input: StreamRedactor,
    max_bytes: u64,
    /// Arrival time of the oldest held-back output.
    held_since: Option<Duration>,
    echo: Option<Echo>,
}

impl RecordingWriter {
    fn run(mut self) {
        let end = match self.write_all() {
            Ok(end) => end,
            Err(error) => End::Disk(error.to_string()),
        };
        self.shared.end(end.clone());
        // No consumer is left for the queued events.
        let mut queue = self.shared.lock();
        queue.events = VecDeque::new();
        queue.bytes = 0;
        drop(queue);
        let mut status = self.shared.status();
        (status.bytes, status.ended) = (self.writer.bytes, Some(end));
    }

    fn write_all(&mut self) -> io::Result<End> {
        loop {
            let (events, end) = self.next();
            let is_quiet = events.is_empty() && end.is_none();
            for (at, event) in events {
                self.write(at, event)?;
                if self.writer.bytes > self.max_bytes {
                    return self.finish(End::TooLarge);
                }
            }
            if is_quiet {
                let at = self.shared.began.elapsed();
                let (output, input) = (self.output.quiet(), self.input.quiet());
                self.held_since = None;
                self.writer.data(at, Kind::Output, &output)?;
                self.writer.data(at, Kind::Input, &input)?;
            }
            if let Some(end) = end {
                return self.finish(end);
            }
            self.shared.status().bytes = self.writer.bytes;
        }
    }

    /// Returns queued events; none after a quiet period with held-back output.
    fn next(&self) -> (VecDeque<(Duration, RecordedEvent)>, Option<End>) {
        let is_holding = self.output.is_holding() || self.input.is_holding();
        let is_idle = |queue: &mut Queue| queue.events.is_empty() && queue.end.is_none();
        let queue = self.shared.lock();
        let mut queue = match is_holding {
            true => {
                let waited = self.shared.ready.wait_timeout_while(queue, QUIET, is_idle);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            false => self.shared.ready.wait_while(queue, is_idle).unwrap_or_else(PoisonError::into_inner),
        };
        queue.bytes = 0;
        (std::mem::take(&mut queue.events), queue.end.clone())
    }

    fn write(&mut self, at: Duration, event: RecordedEvent) -> io::Result<()> {
        match event {
            RecordedEvent::Output(bytes) => {
                if let Some(echo) = &mut self.echo {
                    echo(&bytes);
                }
                let mut released = self.output.push(&bytes);
                // Output without a pause must not be held back for long either.
                if !released.is_empty() || !self.output.is_holding() {
                    self.held_since = None;
                }
                if at > *self.held_since.get_or_insert(at) + QUIET {
                    released.extend(self.output.quiet());
                    self.held_since = None;
                }
                self.writer.data(at, Kind::Output, &released)
            }
            RecordedEvent::Input(bytes) => {
                let released = self.input.push(&bytes);
                self.writer.data(at, Kind::Input, &released)
            }
            RecordedEvent::Resize(size) => {
                // Output that preceded the resize is written before it.
                let released = self.output.finish();
                self.writer.data(at, Kind::Output, &released)?;
                self.writer.resize(at, size)
            }
        }
    }

    fn finish(&mut self, end: End) -> io::Result<End> {
        let at = self.shared.began.elapsed();
        let (output, input) = (self.output.finish(), self.input.finish());
        self.writer.data(at, Kind::Output, &output)?;
        self.writer.data(at, Kind::Input, &input)?;
        self.writer.finish(at)?;
        if let Some(note) = end.note() {
            self.writer.event(at, Kind::Marker, note)?;
        }
        Ok(end)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Action, Recording};
    use super::*;

    fn options(folder: &Path) -> Options {
        let path = folder.join("x.cast");
        Options { path, redactor: None, input: false, max_bytes: DEFAULT_MAX_BYTES, title: None }
    }

    fn text(path: &Path) -> String {
        let recording = Recording::load(path).expect("a good cast");
        let outputs = recording.events.iter().filter_map(|event| match &event.action {
            Action::Output(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Action::Resize(_) => None,
        });
        outputs.collect()
    }

    #[test]
    fn what_the_tap_is_told_is_in_the_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let options = options(folder.path());
        let (recorder, tap) = Recorder::start(options.clone(), Size::default()).expect("a file");
        tap.output(b"one ");
        tap.input(b"typed");
        tap.resize(Size::new(40, 10).expect("a size"));
        tap.output(b"two");
        tap.session_ended();
        tap.output(b"late");
        assert!(tap.is_ended());
        let status = recorder.join();
        assert_eq!(status.ended, Some(End::SessionEnded));
        assert_eq!(text(&options.path), "one two");
        let file = std::fs::read_to_string(&options.path).expect("a file");
        assert_eq!(status.bytes, file.len() as u64);
        assert!(file.contains("\"r\", \"40x10\"") && !file.contains("typed"), "{file}");
        assert!(Recorder::start(options, Size::default()).is_err(), "a file is not written over");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let options = options(folder.path());
        let (recorder, _) = Recorder::start(options.clone(), Size::default()).expect("a file");
        let mode = std::fs::metadata(&options.path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        recorder.join();
    }

    #[test]
    fn secrets_are_masked_in_both_directions() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let redactor = Some(Arc::new(Redactor::new(["geheimnis-123".to_owned()])));
        let options = Options { redactor, input: true, ..options(folder.path()) };
        let (recorder, tap) = Recorder::start(options.clone(), Size::default()).expect("a file");
        for piece in ["geh", "eimnis", "-123"] {
            tap.output(piece.as_bytes());
            tap.input(piece.as_bytes());
        }
        recorder.join();
        let file = std::fs::read_to_string(&options.path).expect("a file");
        assert_eq!(file.matches("[REDACTED]").count(), 2, "{file}");
        assert!(!file.contains("geh") && file.contains("\"i\""), "{file}");
    }

    #[test]
    fn a_file_that_has_its_size_ends_with_a_note() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let options = Options { max_bytes: 10_000, ..options(folder.path()) };
        let (recorder, tap) = Recorder::start(options.clone(), Size::default()).expect("a file");
        while !tap.is_ended() {
            tap.output(&[b'x'; 1_000]);
        }
        let status = recorder.join();
        assert!(matches!(status.ended, Some(End::TooLarge | End::TooFast)), "{status:?}");
        let file = std::fs::read_to_string(&options.path).expect("a file");
        assert!(file.len() < 12_000 && file.lines().last().is_some_and(|line| line.contains("ends here")), "{file}");
        Recording::load(&options.path).expect("a good cast");
    }

    /// The queue is full long before a stalled writer could empty it.
    #[test]
    fn a_session_is_never_made_to_wait() {
        let status = Status { path: PathBuf::new(), bytes: 0, ended: None, is_masked: false };
        let shared = Arc::new(RecorderInner {
            queue: Mutex::default(),
            ready: Condvar::new(),
            began: Instant::now(),
            input: false,
            is_masked: false,
            status: Mutex::new(status),
        });
        let tap = Tap { shared: Arc::clone(&shared) };
        for _ in 0..=MAX_QUEUED_BYTES >> 20 {
            tap.output(&vec![0; 1 << 20]);
        }
        assert_eq!(shared.lock().end, Some(End::TooFast));
        assert!(shared.lock().bytes <= MAX_QUEUED_BYTES);
    }
}
