//! Durations as people write them: `500ms`, `30s`, `2m`, `1.5h`; a bare number is seconds.

use std::time::Duration;

/// A year is longer than anybody waits, and short enough to be added to any moment.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Reads a duration.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds_per_unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        unit => return Err(format!("{unit} is not a unit of time: use ms, s, m or h")),
    };
    // `parse` takes words such as `inf` too, but those have no digits.
    let number: f64 = digits.parse().map_err(|_| format!("{text:?} is not a duration such as 500ms, 30s or 2m"))?;
    let duration =
        Duration::try_from_secs_f64(number * seconds_per_unit).map_err(|_| format!("{text} is too long a duration"))?;
    Ok(duration.min(LONGEST))
}

/// Whole milliseconds, for the wire.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, expected) in [
            ("500ms", Some(500)),
            ("30s", Some(30_000)),
            ("30", Some(30_000)),
            ("0", Some(0)),
            ("2m", Some(120_000)),
            ("1.5h", Some(5_400_000)),
            ("0.25", Some(250)),
            ("", None),
            ("s", None),
            ("-1s", None),
            ("5 s", None),
            ("5d", None),
            ("inf", None),
            ("1e400", None),
        ] {
            assert_eq!(parse(text).ok().map(millis), expected, "{text:?}");
        }
        assert_eq!(parse("1e12"), Ok(LONGEST));
    }
}
