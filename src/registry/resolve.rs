//! Resolves a query to exactly one session. Several matches are an error, because input must never reach more than one
//! session.

use std::path::{Path, PathBuf};

use super::Registry;
use crate::error::{Ambiguous, Error, Result};
use crate::model::{SessionQuery, SessionRecord};
use crate::terminal::local::Session;

/// Maximum number of matches that an ambiguity error lists.
const MAX_MATCHES: usize = 20;

impl Registry {
    /// Returns the one live session that matches any key of the query. Reads the file system, so it must not run on an
    /// async worker thread.
    pub fn resolve(&self, query: &SessionQuery) -> Result<SessionRecord> {
        let folder = query.cwd.as_deref().map(Folder::new);
        let mut matches = Vec::new();
        for (session, record) in self.live() {
            let is_match = has_key(query, &record) || runs_there(query, folder.as_ref(), &session);
            matches.extend(is_match.then_some(record));
        }
        let desktop = self.desktop_sessions().into_iter().map(|listed| listed.record);
        matches.extend(desktop.filter(|record| has_key(query, record)));
        let count = matches.len();
        match (matches.pop(), matches.is_empty()) {
            (None, _) => Err(Error::NoMatch(Box::new(query.clone()))),
            (Some(record), true) => Ok(record),
            (Some(record), false) => {
                matches.push(record);
                matches.truncate(MAX_MATCHES);
                Err(Error::Ambiguous(Box::new(Ambiguous { query: query.clone(), matches, count })))
            }
        }
    }
}

/// Returns whether the record has one of the keys.
fn has_key(query: &SessionQuery, record: &SessionRecord) -> bool {
    let keys = [
        (&query.agent_id, &record.owner_agent_id),
        (&query.owner_session_id, &record.owner_session_id),
        (&query.label, &record.label),
        (&query.claude_code_session_id, &record.claude_code_session_id),
    ];
    keys.iter().any(|(wanted, found)| wanted.is_some() && wanted == found)
}

/// Returns whether the session's working folder or last command matches.
fn runs_there(query: &SessionQuery, folder: Option<&Folder>, session: &Session) -> bool {
    let has_text = |text: &str| session.last_command().is_some_and(|line| line.contains(text));
    folder.is_some_and(|folder| session.is_in(|path| folder.is(path)))
        || query.last_command.as_deref().is_some_and(has_text)
}

/// A folder, compared by path or by canonical path.
struct Folder {
    given: PathBuf,
    real: Option<PathBuf>,
}

impl Folder {
    fn new(path: &str) -> Self {
        Self { given: PathBuf::from(path), real: std::fs::canonicalize(path).ok() }
    }

    fn is(&self, other: &Path) -> bool {
        self.given == other || self.real.is_some() && self.real == std::fs::canonicalize(other).ok()
    }
}
