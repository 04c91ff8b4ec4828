//! The first line of a text: facts with dots between, only those that do not go without saying.

use std::time::Duration;

/// Between two facts.
const GAP: &str = " · ";

/// Facts for the first line.
#[derive(Debug, Default)]
pub(super) struct Header(String);

impl Header {
    pub(super) fn new(fact: impl Into<String>) -> Self {
        Self(fact.into())
    }

    /// Adds a fact; nothing is none.
    pub(super) fn add(&mut self, fact: &str) {
        if !self.0.is_empty() && !fact.is_empty() {
            self.0.push_str(GAP);
        }
        self.0.push_str(fact);
    }

    /// Adds a fact, if it is known.
    pub(super) fn add_some(&mut self, fact: Option<&str>) {
        self.add(fact.unwrap_or_default());
    }

    /// Adds a time that is worth telling.
    pub(super) fn add_time(&mut self, time: Duration) {
        if time >= Duration::from_secs(1) {
            self.add(&seconds(time));
        }
    }

    /// The line, and what comes below it.
    pub(super) fn above(self, body: &str) -> String {
        let mut text = self.0;
        add_line(&mut text, body);
        text
    }
}

/// Adds a line, or several, below a text; nothing for nothing.
pub(super) fn add_line(text: &mut String, line: &str) {
    if line.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

/// A time as people write it: `2.1 s`, `45 s`, `3 min`.
pub(super) fn seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        short if short < 1.0 => format!("{} ms", time.as_millis()),
        short if short < 10.0 => format!("{short:.1} s"),
        long if long < 600.0 => format!("{long:.0} s"),
        long => format!("{:.0} min", long / 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_there_is_is_said() {
        let mut header = Header::new("exit 1");
        header.add_time(Duration::from_millis(999));
        header.add_time(Duration::from_millis(2_140));
        header.add("cmd_7");
        assert_eq!(header.above(""), "exit 1 · 2.1 s · cmd_7");
        assert_eq!(Header::new("exit 0").above("a\nb"), "exit 0\na\nb");
        assert_eq!(Header::default().above("a"), "a");
        for (millis, expected) in [(62, "62 ms"), (9_949, "9.9 s"), (45_400, "45 s"), (3_600_000, "60 min")] {
            assert_eq!(seconds(Duration::from_millis(millis)), expected);
        }
    }
}
