//! Words that several layers share, as plain values.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// What a session is used for and by whom. All of it is claimed by the caller, none of it proven.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// The agent.
    pub agent_id: Option<String>,
    /// The agent's own session, not ours.
    pub session_id: Option<String>,
    /// Leader or worker.
    pub role: Option<Role>,
    /// A name for people.
    pub label: Option<String>,
}

/// What an agent is in its team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Watches and unblocks others; its session is not killed by accident.
    Leader,
    /// Does the work.
    Worker,
}

impl Role {
    /// The text on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Leader => "leader",
            Self::Worker => "worker",
        }
    }

    /// The reverse of [`Role::as_str`].
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Leader, Self::Worker].into_iter().find(|role| role.as_str() == name)
    }
}

/// Where a session lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A terminal of this server.
    Local,
    /// A terminal of a desktop app, reached through its bridge.
    Desktop,
}

/// A session as the registry tells it to others and keeps it on disk: the twelve fields of the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Its name.
    pub session_id: String,
    /// Where it lives.
    pub source: Source,
    /// The bridge of a desktop session.
    pub desktop_url: Option<String>,
    /// What kind of program runs there: `shell`, or an agent's name.
    pub cli_type: String,
    /// The child; 0 when nobody told.
    pub pid: u32,
    /// When it was made, as [`iso_time`] writes it.
    pub created_at: String,
    /// When it was last heard of, as [`iso_time`] writes it.
    pub last_heartbeat: String,
    /// The agent that it belongs to.
    pub owner_agent_id: Option<String>,
    /// That agent's own session.
    pub owner_session_id: Option<String>,
    /// Leader or worker.
    pub owner_role: Option<Role>,
    /// A name for people.
    pub label: Option<String>,
    /// The session of Claude Code that runs there.
    pub claude_code_session_id: Option<String>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitInfo {
    /// It exited with this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// It is gone, and nobody can tell how.
    Unknown,
}

impl ExitInfo {
    /// The status as a shell would show it: 128 and the number for a signal.
    pub fn status(self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(code),
            Self::Signal(signal) => Some(128 + signal),
            Self::Unknown => None,
        }
    }
}

/// A moment as ISO-8601 in UTC, to the second.
pub fn iso_time(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days as i64);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}+00:00", rest / 3600, rest / 60 % 60, rest % 60)
}

/// The Gregorian date of a day counted from 1970-01-01. Years are counted from March, so that a leap day is the last.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_iso_8601() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00+00:00"),
            (951_782_399, "2000-02-28T23:59:59+00:00"),
            (951_782_400, "2000-02-29T00:00:00+00:00"),
            (1_709_251_199, "2024-02-29T23:59:59+00:00"),
            (1_794_787_200, "2026-11-16T00:00:00+00:00"),
            (4_102_444_799, "2099-12-31T23:59:59+00:00"),
        ] {
            assert_eq!(iso_time(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn a_signal_reads_as_a_shell_shows_it() {
        assert_eq!(ExitInfo::Code(3).status(), Some(3));
        assert_eq!(ExitInfo::Signal(9).status(), Some(137));
        assert_eq!(ExitInfo::Unknown.status(), None);
    }
}
