//! Words that several layers share, as plain values.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
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
    /// The session of Claude Code that runs there.
    pub claude_code_session_id: Option<String>,
}

impl Owner {
    /// Takes over what is given; the rest stays.
    pub fn update(&mut self, given: &Self) {
        let texts = [
            (&mut self.agent_id, &given.agent_id),
            (&mut self.session_id, &given.session_id),
            (&mut self.label, &given.label),
            (&mut self.claude_code_session_id, &given.claude_code_session_id),
        ];
        for (mine, theirs) in texts {
            if theirs.is_some() {
                mine.clone_from(theirs);
            }
        }
        self.role = given.role.or(self.role);
    }
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

/// Who answers when a program asks for something that is not to be seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Secrets {
    /// Anybody.
    #[default]
    Agent,
    /// A person, on the page, with `kpty answer` or `kpty attach`; agents are refused.
    Person,
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

impl Source {
    /// The text on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Desktop => "desktop",
        }
    }

    /// The reverse of [`Source::as_str`].
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Local, Self::Desktop].into_iter().find(|source| source.as_str() == name)
    }
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
    /// Process id of the child; 0 if unknown.
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

/// What is known of a session that is looked for. A session that has any of it is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionQuery {
    /// The agent that it belongs to.
    pub agent_id: Option<String>,
    /// That agent's own session.
    pub owner_session_id: Option<String>,
    /// Its name for people.
    pub label: Option<String>,
    /// The session of Claude Code that runs there.
    pub claude_code_session_id: Option<String>,
    /// The folder that its shell is in.
    pub cwd: Option<String>,
    /// A part of the command that was run there last.
    pub last_command: Option<String>,
}

/// As clients know it: what is not given reads `None`, and the newer keys are named only when they are.
impl fmt::Display for SessionQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "None".to_owned());
        write!(f, "agent_id={}, owner_session_id={}", text(&self.agent_id), text(&self.owner_session_id))?;
        let claude = text(&self.claude_code_session_id);
        write!(f, ", label={}, claude_code_session_id={claude}", text(&self.label))?;
        for (name, text) in [("cwd", &self.cwd), ("last_command", &self.last_command)] {
            if let Some(text) = text {
                write!(f, ", {name}={text}")?;
            }
        }
        Ok(())
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitInfo {
    /// It exited with this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// The process is gone, and its status is unknown.
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

/// A moment in UTC: year, month, day, hour, minute, second. What is before 1970 counts as its beginning.
pub fn date_and_time(time: SystemTime) -> [u64; 6] {
    let moment = Timestamp::try_from(time.max(UNIX_EPOCH)).unwrap_or(Timestamp::MAX);
    let date = Offset::UTC.to_datetime(moment);
    let parts = [date.month(), date.day(), date.hour(), date.minute(), date.second()].map(|part| part.unsigned_abs());
    let [month, day, hour, minute, second] = parts.map(u64::from);
    [u64::from(date.year().unsigned_abs()), month, day, hour, minute, second]
}

/// The digits of a number, at least so many. Every recorded action has its time in its name, and every line of a screen its
/// number; `format!` would take most of what these cost.
pub fn digits(mut number: u64, places: usize, room: &mut [u8; 20]) -> &[u8] {
    let mut start = room.len();
    while start > 0 && (number > 0 || room.len() - start < places.max(1)) {
        start -= 1;
        room[start] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    &room[start..]
}

/// Adds a number with at least so many digits.
pub fn push_digits(text: &mut String, number: u64, places: usize) {
    text.extend(digits(number, places, &mut [0; 20]).iter().copied().map(char::from));
}

/// A moment as ISO-8601 in UTC, to the second.
pub fn iso_time(time: SystemTime) -> String {
    let [year, month, day, hour, minute, second] = date_and_time(time);
    let mut text = String::with_capacity("0000-00-00T00:00:00+00:00".len());
    push_digits(&mut text, year, 4);
    for (gap, number) in [('-', month), ('-', day), ('T', hour), (':', minute), (':', second)] {
        text.push(gap);
        push_digits(&mut text, number, 2);
    }
    text.push_str("+00:00");
    text
}

/// A moment as ISO-8601 in UTC, to the millisecond.
pub fn iso_time_millis(time: SystemTime) -> String {
    let millis = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).subsec_millis();
    let whole = iso_time(time);
    format!("{}.{millis:03}{}", &whole[..19], &whole[19..])
}

/// The reverse of [`iso_time`]: exactly its form, and no moment before 1970.
pub fn time_from_iso(text: &str) -> Option<SystemTime> {
    let time = SystemTime::from(text.parse::<Timestamp>().ok()?);
    (time >= UNIX_EPOCH && iso_time(time) == text).then_some(time)
}

/// Milliseconds since 1970 of a moment that somebody wrote as ISO-8601: a date, or date and time with or without seconds,
/// their fraction and an offset. Without an offset it is UTC. A `+` that a query turned into a space is one again.
pub fn millis_from_iso(text: &str) -> Option<i64> {
    let text = match text.trim().rsplit_once(' ') {
        Some((time, offset)) if time.contains(':') => format!("{time}+{offset}"),
        _ => text.trim().to_owned(),
    };
    let has_offset = text.get(10..).is_some_and(|time| time.contains(['+', '-', 'Z', 'z']));
    let moment = match has_offset {
        true => text.parse::<Timestamp>().ok()?,
        false => Offset::UTC.to_timestamp(text.parse::<DateTime>().ok()?).ok()?,
    };
    Some(moment.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_digits() {
        for (number, places, expected) in
            [(0, 0, "0"), (7, 1, "7"), (10, 1, "10"), (7, 8, "00000007"), (2026, 2, "2026")]
        {
            assert_eq!(digits(number, places, &mut [0; 20]), expected.as_bytes());
        }
        assert_eq!(digits(u64::MAX, 1, &mut [0; 20]), u64::MAX.to_string().as_bytes());
    }

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
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(iso_time(time), expected);
            assert_eq!(time_from_iso(expected), Some(time));
        }
        for text in ["", "now", "2024-02-30T00:00:00+00:00", "2024-02-29T24:00:00+00:00", "2024-02-29T00:00:00Z"] {
            assert_eq!(time_from_iso(text), None, "{text}");
        }
    }

    #[test]
    fn moments_that_people_write_are_understood() {
        for (text, expected) in [
            ("1970-01-01", Some(0)),
            ("1970-01-01T00:00", Some(0)),
            ("1970-01-01 00:00:01", Some(1_000)),
            ("1970-01-01T00:00:01.5Z", Some(1_500)),
            ("1970-01-01T00:00:01.123456+00:00", Some(1_123)),
            ("1970-01-01T02:00:00+02:00", Some(0)),
            ("1970-01-01T02:00:00 02:00", Some(0)),
            ("1969-12-31T19:00:00-0500", Some(0)),
            ("2000-02-29T00:00:00z", Some(951_782_400_000)),
            ("2001-02-29T00:00:00Z", None),
            ("1970-01-01T24:00:00Z", None),
            ("1970-01-01T00:60:00Z", None),
            ("1970-01-01T00:00:61Z", None),
            ("1970-01-01T00:00:00.Z", None),
            ("1970-01-01T00:00:00+2", None),
            ("1970-01-01T00:00:00+é0", None),
            ("yesterday", None),
            ("", None),
            ("1970-13-01", None),
            ("1970-01-01T", None),
            ("+970-01-01", None),
        ] {
            assert_eq!(millis_from_iso(text), expected, "{text:?}");
        }
        let shown = iso_time_millis(UNIX_EPOCH + Duration::from_millis(951_782_399_042));
        assert_eq!(shown, "2000-02-28T23:59:59.042+00:00");
        assert_eq!(millis_from_iso(&shown), Some(951_782_399_042));
    }

    #[test]
    fn a_signal_reads_as_a_shell_shows_it() {
        assert_eq!(ExitInfo::Code(3).status(), Some(3));
        assert_eq!(ExitInfo::Signal(9).status(), Some(137));
        assert_eq!(ExitInfo::Unknown.status(), None);
    }
}
