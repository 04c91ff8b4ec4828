//! The database of the traffic log; the only module that uses SQLite.
//!
//! One connection writes and another reads, so that a slow query does not delay an entry. An unreadable file is
//! quarantined with a warning; a failed write is retried.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::types::{ToSql, ToSqlOutput};
use rusqlite::{Connection, ErrorCode, OpenFlags, Row, params, params_from_iter};

use kpty_guard::Masked;

use super::query::{Filter, Page, Param, SessionSummary, Stats, Totals};
use super::{Event, SizedText};

const FILE: &str = "traffic.db";
/// Schema version; a file with another version is not modified.
const VERSION: i64 = 1;
/// Busy timeout of a connection. The two never hold a lock for long.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// SizedText columns come last, so that counting and filtering do not read them from disk.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS pty_events (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL, at_ms INTEGER NOT NULL, session_id TEXT NOT NULL, action TEXT NOT NULL, agent_id TEXT,
        owner_session_id TEXT, command_size INTEGER, response_size INTEGER, duration REAL NOT NULL,
        timeout_ms INTEGER, timed_out INTEGER NOT NULL, success INTEGER NOT NULL, error_code TEXT,
        blocked INTEGER NOT NULL, blocked_pattern TEXT, session_source TEXT, cli_type TEXT, label TEXT,
        evidence_id TEXT, command_id TEXT, exit_code INTEGER, result TEXT, error_message TEXT, extra TEXT,
        command TEXT, response TEXT);
    CREATE INDEX IF NOT EXISTS pty_events_of_session ON pty_events(session_id);
    PRAGMA user_version = 1;";
const COLUMNS: &str = "id, at_ms, session_id, action, agent_id, owner_session_id, command_size, response_size, \
    duration, timeout_ms, timed_out, success, error_code, blocked, blocked_pattern, session_source, cli_type, label, \
    evidence_id, command_id, exit_code, result, error_message, extra, command, response";
const INSERT: &str = "INSERT INTO pty_events (id, at_ms, session_id, action, agent_id, owner_session_id, \
    command_size, response_size, duration, timeout_ms, timed_out, success, error_code, blocked, blocked_pattern, \
    session_source, cli_type, label, evidence_id, command_id, exit_code, result, error_message, extra, command, \
    response) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, \
    ?22, ?23, ?24, ?25, ?26)";
const SUMS: &str = "COUNT(*), COALESCE(SUM(success = 0), 0), COALESCE(SUM(blocked), 0), \
    COALESCE(SUM(command_size), 0), COALESCE(SUM(response_size), 0)";

/// Limits of what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Maximum age of an event.
    pub age: Duration,
    /// Maximum number of events.
    pub rows: u64,
}

/// The stored events.
pub struct Store {
    /// `None` keeps the database in memory.
    path: Option<PathBuf>,
    retention: Retention,
    writer: Mutex<Option<Connection>>,
    /// Identity of the file that the writer has open; another process may remove or replace it.
    file: Mutex<Option<FileId>>,
    /// `None` when the writer's connection is the only one.
    reader: Mutex<Option<Connection>>,
}

/// Why the database could not be written or read; contains no path.
type Problem = String;

impl Store {
    /// Creates a store in a folder or in memory. Opens the database at the first access.
    pub fn new(folder: Option<&Path>, retention: Retention) -> Self {
        let path = folder.map(|folder| folder.join(FILE));
        Self { path, retention, writer: Mutex::default(), file: Mutex::default(), reader: Mutex::default() }
    }

    /// Returns the path of the database file.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the retention limits.
    pub fn retention(&self) -> Retention {
        self.retention
    }

    /// Inserts events in one transaction, and deletes the oldest beyond the limit.
    pub fn write(&self, events: &[Event]) -> Result<(), Problem> {
        self.on_writer(|connection| {
            let transaction = connection.transaction()?;
            {
                let mut insert = transaction.prepare_cached(INSERT)?;
                for event in events {
                    add(&mut insert, event)?;
                }
                let oldest = "DELETE FROM pty_events WHERE seq <= (SELECT MAX(seq) FROM pty_events) - ?1";
                transaction.prepare_cached(oldest)?.execute([self.retention.rows as i64])?;
            }
            transaction.commit()
        })
    }

    /// Deletes events beyond the retention limits.
    pub fn clean_up(&self) -> Result<(), Problem> {
        let age = i64::try_from(self.retention.age.as_millis()).unwrap_or(i64::MAX);
        let oldest = millis(SystemTime::now()).saturating_sub(age);
        self.on_writer(|connection| {
            connection.execute("DELETE FROM pty_events WHERE at_ms < ?1", [oldest])?;
            let surplus = "DELETE FROM pty_events WHERE seq <= (SELECT MAX(seq) FROM pty_events) - ?1";
            connection.execute(surplus, [self.retention.rows as i64]).map(drop)
        })
    }

    /// Returns matching events, newest first.
    pub fn events(&self, filter: &Filter, limit: u64, offset: u64) -> Result<Page, Problem> {
        let (condition, params) = filter.condition();
        self.on_reader(|connection| {
            let count = format!("SELECT COUNT(*) FROM pty_events WHERE {condition}");
            let total: i64 = connection.query_row(&count, params_from_iter(&params), |row| row.get(0))?;
            let total = total as u64;
            let select =
                format!("SELECT {COLUMNS} FROM pty_events WHERE {condition} ORDER BY seq DESC LIMIT ? OFFSET ?");
            let bounds = [limit, offset].map(|number| Param::Number(i64::try_from(number).unwrap_or(i64::MAX)));
            let all = params.iter().chain(&bounds);
            let events: Vec<Event> =
                connection.prepare(&select)?.query_map(params_from_iter(all), read)?.collect::<Result<_, _>>()?;
            let has_more = offset.saturating_add(events.len() as u64) < total && !events.is_empty();
            Ok(Page { events, total, has_more })
        })
    }

    /// Returns the event with this id.
    pub fn event(&self, id: &str) -> Result<Option<Event>, Problem> {
        let select = format!("SELECT {COLUMNS} FROM pty_events WHERE id = ?1 ORDER BY seq DESC LIMIT 1");
        self.on_reader(|connection| {
            let mut statement = connection.prepare(&select)?;
            statement.query_map([id], read)?.next().transpose()
        })
    }

    /// Returns the agent that ran a command, if recorded.
    pub fn who_ran(&self, session_id: &str, command_id: &str) -> Result<Option<String>, Problem> {
        let select = "SELECT agent_id FROM pty_events WHERE session_id = ?1 AND command_id = ?2 \
                      AND action IN ('talk', 'run') ORDER BY seq LIMIT 1";
        self.on_reader(|connection| {
            let mut statement = connection.prepare(select)?;
            let found = statement.query_map([session_id, command_id], |row| row.get(0))?.next().transpose()?;
            Ok(found.flatten())
        })
    }

    /// Returns the summary of one session or of all, the most recently used first.
    pub fn sessions(&self, only: Option<&str>) -> Result<Vec<SessionSummary>, Problem> {
        let grouped = format!(
            "SELECT session_id, {SUMS}, COALESCE(AVG(duration), 0), MIN(at_ms), MAX(at_ms) FROM pty_events \
             WHERE session_id <> '' AND (?1 IS NULL OR session_id = ?1) GROUP BY session_id ORDER BY MAX(seq) DESC"
        );
        // Takes the newest event that has a value.
        let newest = |column: &str| {
            format!(
                "SELECT {column} FROM pty_events WHERE session_id = ?1 AND {column} IS NOT NULL \
                 ORDER BY seq DESC LIMIT 1"
            )
        };
        let actions = "SELECT action, COUNT(*) FROM pty_events WHERE session_id = ?1 GROUP BY action ORDER BY action";
        self.on_reader(|connection| {
            let mut statement = connection.prepare(&grouped)?;
            let summaries = statement.query_map([only], |row| {
                Ok(SessionSummary {
                    session_id: row.get(0)?,
                    totals: totals(row, 1)?,
                    avg_duration: row.get(6)?,
                    first_ms: row.get(7)?,
                    last_ms: row.get(8)?,
                    ..SessionSummary::default()
                })
            })?;
            let mut summaries: Vec<SessionSummary> = summaries.collect::<Result<_, _>>()?;
            for summary in &mut summaries {
                let id = summary.session_id.clone();
                let last = |column: &str| -> rusqlite::Result<Option<String>> {
                    connection.prepare_cached(&newest(column))?.query_map([&id], |row| row.get(0))?.next().transpose()
                };
                summary.agent_id = last("agent_id")?;
                summary.owner_session_id = last("owner_session_id")?;
                summary.label = last("label")?;
                summary.cli_type = last("cli_type")?;
                summary.actions = counts(connection, actions, &[&id])?;
            }
            Ok(summaries)
        })
    }

    /// Returns the statistics of all events.
    pub fn stats(&self) -> Result<Stats, Problem> {
        let all = format!("SELECT {SUMS}, MIN(at_ms), MAX(at_ms) FROM pty_events");
        let sessions = "SELECT COUNT(DISTINCT session_id) FROM pty_events WHERE session_id <> ''";
        let actions = "SELECT action, COUNT(*) FROM pty_events GROUP BY action ORDER BY action";
        let agents = "SELECT agent_id, COUNT(*) FROM pty_events WHERE agent_id IS NOT NULL GROUP BY agent_id \
                      ORDER BY agent_id";
        self.on_reader(|connection| {
            let (totals, oldest_ms, newest_ms) =
                connection.query_row(&all, [], |row| Ok((totals(row, 0)?, row.get(5)?, row.get(6)?)))?;
            let sessions: i64 = connection.query_row(sessions, [], |row| row.get(0))?;
            Ok(Stats {
                totals,
                sessions: sessions as u64,
                oldest_ms,
                newest_ms,
                actions: counts(connection, actions, &[])?,
                agents: counts(connection, agents, &[])?,
            })
        })
    }

    fn writer(&self) -> MutexGuard<'_, Option<Connection>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self) -> MutexGuard<'_, Option<FileId>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reader(&self) -> MutexGuard<'_, Option<Connection>> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on the writer's connection; reopens it when its file is gone.
    fn on_writer<T>(&self, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T, Problem> {
        let mut writer = self.writer();
        if self.path.as_deref().is_some_and(|path| *self.file() != file_id(path)) {
            *writer = None;
        }
        let done = self.opened(&mut writer).and_then(work);
        if let Err(error) = &done {
            // The next open examines a damaged file and quarantines it if necessary.
            *writer = None;
            *self.reader() = None;
            if is_damage(error) {
                self.quarantine(&error.to_string());
            }
        }
        done.map_err(|error| problem(&error))
    }

    fn on_reader<T>(&self, work: impl Fn(&mut Connection) -> rusqlite::Result<T>) -> Result<T, Problem> {
        {
            let mut writer = self.writer();
            let connection = self.opened(&mut writer).map_err(|error| problem(&error))?;
            if self.path.is_none() {
                return work(connection).map_err(|error| problem(&error));
            }
        }
        let mut reader = self.reader();
        if reader.is_none() {
            let path = self.path.as_deref().unwrap_or(Path::new(FILE));
            *reader = Some(connect(path).map_err(|error| problem(&error))?);
        }
        let done = match reader.as_mut() {
            Some(connection) => work(connection),
            None => Err(rusqlite::Error::InvalidQuery),
        };
        if done.is_err() {
            *reader = None;
        }
        done.map_err(|error| problem(&error))
    }

    /// Opens the connection and creates the table if necessary.
    fn opened<'a>(&self, connection: &'a mut Option<Connection>) -> rusqlite::Result<&'a mut Connection> {
        if connection.is_none() {
            *connection = Some(match self.open() {
                Err(error) if is_damage(&error) => {
                    self.quarantine(&error.to_string());
                    self.open()?
                }
                opened => opened?,
            });
            *self.file() = self.path.as_deref().and_then(file_id);
            *self.reader() = None;
        }
        connection.as_mut().ok_or(rusqlite::Error::InvalidQuery)
    }

    fn open(&self) -> rusqlite::Result<Connection> {
        let Some(path) = &self.path else {
            let connection = Connection::open_in_memory()?;
            connection.execute_batch(SCHEMA)?;
            return Ok(connection);
        };
        make_private(path);
        let connection = connect(path)?;
        let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let tables: i64 = connection.query_row("SELECT COUNT(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if version != VERSION && tables > 0 {
            return Err(not_ours());
        }
        connection.execute_batch(SCHEMA)?;
        // Detects a table of another schema now, not in the middle of later work.
        connection.prepare(&format!("SELECT {COLUMNS} FROM pty_events LIMIT 1")).map_err(|_| not_ours())?;
        Ok(connection)
    }

    /// Renames a file that cannot be used.
    fn quarantine(&self, problem: &str) {
        let Some(path) = &self.path else { return };
        let aside = path.with_extension("db.damaged");
        let moved = fs::rename(path, &aside);
        for end in ["db-wal", "db-shm"] {
            // The journal files are meaningless without the database.
            let _ = fs::remove_file(path.with_extension(end));
        }
        match moved {
            Ok(()) => {
                tracing::warn!("{} is not used: {problem}. It was renamed to {}", path.display(), aside.display())
            }
            Err(cause) => tracing::warn!("{} is not used: {problem}. It stays where it is: {cause}", path.display()),
        }
    }
}

/// Device and inode, which identify the file behind a path.
pub(super) type FileId = (u64, u64);

#[cfg(unix)]
pub(super) fn file_id(path: &Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt as _;
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(not(unix))]
pub(super) fn file_id(path: &Path) -> Option<FileId> {
    path.exists().then_some((0, 0))
}

/// Opens a database file without following a link.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(resolved(path), flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // Survives the end of this process; a power failure may lose the newest entries.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(connection)
}

/// The owner may reach the folder through a link; only the file itself must not be one.
fn resolved(path: &Path) -> PathBuf {
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

/// SQLite creates its journal files with the mode of the database, so the database is created with the right mode.
fn make_private(path: &Path) {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // A failure here is reported when the database is opened.
    let is_new = options.open(path).is_ok();
    #[cfg(unix)]
    if !is_new && fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        use std::os::unix::fs::PermissionsExt as _;
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o600));
    }
    #[cfg(not(unix))]
    let _ = is_new;
}

fn not_ours() -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_NOTADB);
    rusqlite::Error::SqliteFailure(code, Some("its schema differs from the one this version writes".to_owned()))
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
}

/// Returns the reason without paths, since it appears in health replies.
fn problem(error: &rusqlite::Error) -> Problem {
    match error.sqlite_error_code() {
        Some(code) => format!("the traffic log cannot be used: {code:?}"),
        None => "the traffic log cannot be used".to_owned(),
    }
}

impl ToSql for Param {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Text(text) => text.to_sql(),
            Self::Number(number) => number.to_sql(),
        }
    }
}

fn millis(at: SystemTime) -> i64 {
    i64::try_from(at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_millis()).unwrap_or(i64::MAX)
}

fn add(insert: &mut rusqlite::CachedStatement<'_>, event: &Event) -> rusqlite::Result<()> {
    let (command, response) = (event.command.as_ref(), event.response.as_ref());
    let extra = (!event.extra.is_empty()).then(|| serde_json::Value::Object(event.extra.clone()).to_string());
    insert.execute(params![
        event.id,
        millis(event.at),
        event.session_id,
        event.action,
        event.agent_id,
        event.owner_session_id,
        command.map(|text| text.size as i64),
        response.map(|text| text.size as i64),
        event.duration_ms(),
        event.timeout_ms.map(|timeout| i64::try_from(timeout).unwrap_or(i64::MAX)),
        event.timed_out,
        event.success,
        event.error_code.as_deref(),
        event.blocked,
        event.blocked_pattern.as_deref(),
        event.session_source,
        event.cli_type,
        event.label,
        event.evidence_id.as_deref(),
        event.command_id.as_deref(),
        event.exit_code,
        event.result.as_deref(),
        event.error_message.as_deref(),
        extra,
        command.map(|text| text.kept.as_str()),
        response.map(|text| text.kept.as_str()),
    ])?;
    Ok(())
}

/// Reads an event from a row of [`COLUMNS`].
fn read(row: &Row<'_>) -> rusqlite::Result<Event> {
    // It was masked before it was written.
    let masked = |text: Option<String>| text.map(Masked::vouched);
    let text = |size: Option<i64>, kept: Option<String>| {
        masked(kept).map(|kept| SizedText { kept, size: size.unwrap_or_default().max(0) as u64 })
    };
    let duration: f64 = row.get(8)?;
    let extra: Option<String> = row.get(23)?;
    Ok(Event {
        id: row.get(0)?,
        at: UNIX_EPOCH + Duration::from_millis(row.get::<_, i64>(1)?.max(0) as u64),
        session_id: row.get(2)?,
        action: row.get(3)?,
        agent_id: row.get(4)?,
        owner_session_id: row.get(5)?,
        command: text(row.get(6)?, row.get(24)?),
        response: text(row.get(7)?, row.get(25)?),
        duration: Duration::from_micros((duration.max(0.0) * 1e3).round() as u64),
        timeout_ms: row.get::<_, Option<i64>>(9)?.map(|timeout| timeout.max(0) as u64),
        timed_out: row.get(10)?,
        success: row.get(11)?,
        error_code: masked(row.get(12)?),
        blocked: row.get(13)?,
        blocked_pattern: masked(row.get(14)?),
        session_source: row.get(15)?,
        cli_type: row.get(16)?,
        label: row.get(17)?,
        evidence_id: masked(row.get(18)?),
        command_id: masked(row.get(19)?),
        exit_code: row.get(20)?,
        result: masked(row.get(21)?),
        error_message: masked(row.get(22)?),
        extra: extra.and_then(|extra| serde_json::from_str(&extra).ok()).unwrap_or_default(),
    })
}

/// Reads the five totals of [`SUMS`], starting at a column.
fn totals(row: &Row<'_>, from: usize) -> rusqlite::Result<Totals> {
    let sum = |at: usize| row.get::<_, i64>(from + at).map(|sum| sum.max(0) as u64);
    Ok(Totals { events: sum(0)?, errors: sum(1)?, blocked: sum(2)?, sent: sum(3)?, received: sum(4)? })
}

fn counts(connection: &Connection, select: &str, params: &[&str]) -> rusqlite::Result<Vec<(String, u64)>> {
    let mut statement = connection.prepare_cached(select)?;
    let rows = statement.query_map(params_from_iter(params), |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?.max(0) as u64))
    })?;
    rows.collect()
}
