//! Words that several layers share, as plain values.

use std::fmt;
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

/// A moment in UTC: year, month, day, hour, minute, second.
pub fn date_and_time(time: SystemTime) -> [u64; 6] {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days as i64);
    [year as u64, month as u64, day as u64, rest / 3600, rest / 60 % 60, rest % 60]
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
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u32>().ok().map(i64::from);
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let seconds = number(11, 13)? * 3_600 + number(14, 16)? * 60 + number(17, 19)?;
    let seconds = Duration::from_secs(u64::try_from(day_number(year, month, day) * 86_400 + seconds).ok()?);
    let time = UNIX_EPOCH.checked_add(seconds)?;
    (iso_time(time) == text).then_some(time)
}

/// Milliseconds since 1970 of a moment that somebody wrote as ISO-8601: a date, or date and time with or without seconds,
/// their fraction and an offset. Without an offset it is UTC. A `+` that a query turned into a space is one again.
pub fn millis_from_iso(text: &str) -> Option<i64> {
    let text = text.trim();
    let digits = |from: usize, to: usize| {
        let digits = text.get(from..to)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<i64>().ok())?
    };
    let is = |at: usize, wanted: &[u8]| text.as_bytes().get(at).is_some_and(|byte| wanted.contains(byte));
    let (year, month, day) = (digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
    let days = day_number(year, month, day);
    if !is(4, b"-") || !is(7, b"-") || civil(days) != (year, month, day) {
        return None;
    }
    let midnight = days * 86_400_000;
    if text.len() == 10 {
        return Some(midnight);
    }
    let (hour, minute) = (digits(11, 13)?, digits(14, 16)?);
    if !is(10, b"Tt ") || !is(13, b":") || hour > 23 || minute > 59 {
        return None;
    }
    let (mut rest, mut second, mut millis) = (text.get(16..)?, 0, 0);
    if let Some(after) = rest.strip_prefix(':') {
        second = digits(17, 19)?;
        rest = after.get(2..)?;
        if let Some(fraction) = rest.strip_prefix(['.', ',']) {
            let length = fraction.bytes().take_while(u8::is_ascii_digit).count();
            let thousandths: String = fraction[..length].chars().chain("000".chars()).take(3).collect();
            millis = if length == 0 { return None } else { thousandths.parse::<i64>().ok()? };
            rest = &fraction[length..];
        }
    }
    if second > 59 {
        return None;
    }
    let local = midnight + ((hour * 60 + minute) * 60 + second) * 1_000 + millis;
    Some(local - offset_minutes(rest)? * 60_000)
}

/// The offset behind a time: nothing, `Z`, or hours and minutes with a sign.
fn offset_minutes(text: &str) -> Option<i64> {
    if text.is_empty() || text.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+" | " ", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let digits = rest.replace(':', "");
    let is_time = matches!(digits.len(), 2 | 4) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = |from: usize, to: usize| digits.get(from..to).and_then(|digits| digits.parse::<i64>().ok());
    let (hours, minutes) = (number(0, 2)?, number(2, 4).unwrap_or(0));
    (is_time && hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
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

/// The reverse of [`civil`].
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let (year, march_month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
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
