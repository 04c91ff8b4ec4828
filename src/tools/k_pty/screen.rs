//! What `term_read` answers, as it is: a screen is the most that anybody reads, and the most often.
//!
//! Made into a map of values, its lines would be copied and freed one by one. So it stays what it is until it is written;
//! who needs a map can have one.

use kpty_emulator::Cursor;
use kpty_guard::Masked;
use serde_json::{Map, Value, json};

/// A screen, or a part of the history.
#[derive(Debug)]
pub struct Screen {
    /// The lines, with newlines between. There are as many as there are numbers.
    pub(in crate::tools) text: Masked,
    pub(in crate::tools) line_numbers: Vec<u64>,
    pub(in crate::tools) truncated: bool,
    /// Of a range, only those of lines that were looked at.
    pub(in crate::tools) dropped_chars: usize,
    pub(in crate::tools) dropped_lines: usize,
    pub(in crate::tools) cursor_line: Option<u64>,
    pub(in crate::tools) viewport_y: Option<u64>,
    pub(in crate::tools) rows: u16,
    pub(in crate::tools) cols: u16,
    pub(in crate::tools) buffer_type: &'static str,
    pub(in crate::tools) marker_id: Option<u64>,
    pub(in crate::tools) marker_line: Option<u64>,
    pub(in crate::tools) marker_disposed: bool,
    pub(in crate::tools) first_line: u64,
    pub(in crate::tools) next_line: u64,
    pub(in crate::tools) oldest_line: u64,
    pub(in crate::tools) cursor: Option<Cursor>,
    /// Lines that came and went unseen since the marker; null where nobody can tell.
    pub(in crate::tools) missed_lines: Option<Option<u64>>,
    /// Why they went.
    pub(in crate::tools) loss: Option<&'static str>,
    /// Where a range that was cut goes on.
    pub(in crate::tools) continue_from: Option<u64>,
}

/// The value of a field.
#[derive(Clone, Copy, Debug)]
pub enum Field<'a> {
    /// A number, where there is one.
    Number(Option<u64>),
    /// Yes or no.
    Flag(bool),
    /// A text.
    Text(&'a str),
    /// So many lines of a text.
    Lines(&'a str, usize),
    /// Numbers.
    Numbers(&'a [u64]),
    /// A cell, where there is one.
    Cell(Option<Cursor>),
}

/// So many lines of a text that has newlines between them.
pub fn lines_of(text: &str, count: usize) -> impl Iterator<Item = &str> {
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).chain([text.len()]);
    let mut start = 0;
    ends.take(count).map(move |end| {
        let line = &text[start..end];
        start = end + 1;
        line
    })
}

impl From<Field<'_>> for Value {
    fn from(field: Field<'_>) -> Self {
        match field {
            Field::Number(number) => number.into(),
            Field::Flag(flag) => flag.into(),
            Field::Text(text) => text.into(),
            Field::Lines(text, count) => lines_of(text, count).map(Self::from).collect(),
            Field::Numbers(numbers) => numbers.into(),
            Field::Cell(cell) => cell.map(|Cursor { row, col, .. }| json!({ "row": row, "col": col })).into(),
        }
    }
}

impl Screen {
    /// Its text.
    pub fn text(&self) -> &Masked {
        &self.text
    }

    /// The fields of the answer.
    pub fn each_field<'a>(&'a self, mut tell: impl FnMut(&'static str, Field<'a>)) {
        tell("text", Field::Text(&self.text));
        tell("lines", Field::Lines(&self.text, self.line_numbers.len()));
        tell("line_numbers", Field::Numbers(&self.line_numbers));
        tell("truncated", Field::Flag(self.truncated));
        tell("dropped_chars", Field::Number(Some(self.dropped_chars as u64)));
        tell("dropped_lines", Field::Number(Some(self.dropped_lines as u64)));
        tell("cursor_line", Field::Number(self.cursor_line));
        tell("viewport_y", Field::Number(self.viewport_y));
        tell("rows", Field::Number(Some(self.rows.into())));
        tell("cols", Field::Number(Some(self.cols.into())));
        tell("buffer_type", Field::Text(self.buffer_type));
        tell("marker_id", Field::Number(self.marker_id));
        tell("marker_line", Field::Number(self.marker_line));
        tell("marker_disposed", Field::Flag(self.marker_disposed));
        tell("first_line", Field::Number(Some(self.first_line)));
        tell("next_line", Field::Number(Some(self.next_line)));
        tell("oldest_line", Field::Number(Some(self.oldest_line)));
        tell("cursor", Field::Cell(self.cursor));
        if let Some(missed) = self.missed_lines {
            tell("missed_lines", Field::Number(missed));
        }
        if let Some(loss) = self.loss {
            tell("loss", Field::Text(loss));
        }
        if self.continue_from.is_some() {
            tell("continue_from", Field::Number(self.continue_from));
        }
    }

    /// The same as a map.
    pub(in crate::tools) fn fields(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        self.each_field(|name, field| {
            fields.insert(name.to_owned(), field.into());
        });
        fields
    }

    /// Keeps the beginning of a range up to `end`. One line is always kept, so that reading on gets somewhere.
    pub(in crate::tools) fn keep_head(&mut self, max_lines: usize, max_chars: usize, from: u64, end: u64) {
        let mut chars = 0;
        let mut fits = |line: &str| {
            chars += line.chars().count() + 1;
            chars <= max_chars + 1
        };
        let count = self.line_numbers.len();
        let fitting = lines_of(&self.text, count).take(max_lines).take_while(|line| fits(line)).count();
        let kept = fitting.max(max_lines.min(1)).min(count);
        let after_last = self.line_numbers.last().map_or(from, |last| last + 1);
        let next = self.line_numbers.get(kept).copied().unwrap_or(after_last);
        if next >= end {
            return;
        }
        let bytes = lines_of(&self.text, kept).map(|line| line.len() + 1).sum::<usize>().saturating_sub(1);
        self.line_numbers.truncate(kept);
        self.dropped_chars = self.text[bytes..].chars().count();
        self.text.truncate(bytes);
        self.dropped_lines = (end - next) as usize;
        (self.truncated, self.continue_from) = (true, Some(next));
    }
}

#[cfg(test)]
impl Screen {
    /// One with something in every field.
    pub(crate) fn sample() -> Self {
        Self {
            text: Masked::literal("\"one\"\n\n漢字 \\ \t"),
            line_numbers: vec![7, 8, 1_000_000],
            truncated: true,
            dropped_chars: 12_345,
            dropped_lines: 10,
            cursor_line: Some(9),
            viewport_y: Some(0),
            rows: 30,
            cols: 120,
            buffer_type: "normal",
            marker_id: Some(3),
            marker_line: None,
            marker_disposed: false,
            first_line: 7,
            next_line: 10,
            oldest_line: 1,
            cursor: Some(Cursor { row: 2, col: 119, ..Cursor::default() }),
            missed_lines: Some(None),
            loss: Some("limit"),
            continue_from: Some(99),
        }
    }

    /// One with as little as possible.
    pub(crate) fn sample_of_nothing() -> Self {
        let (missed_lines, loss, continue_from) = (None, None, None);
        Self {
            text: Masked::default(),
            line_numbers: Vec::new(),
            cursor: None,
            missed_lines,
            loss,
            continue_from,
            ..Self::sample()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_as_many_lines_as_it_is_told() {
        for (text, count, expected) in [
            ("", 0, &[][..]),
            ("", 1, &[""]),
            ("a", 1, &["a"]),
            ("a\n", 2, &["a", ""]),
            ("\na\n\nb", 4, &["", "a", "", "b"]),
            ("a\nb\nc", 2, &["a", "b"]),
        ] {
            assert_eq!(lines_of(text, count).collect::<Vec<_>>(), expected, "{text:?}");
        }
    }

    #[test]
    fn the_head_of_a_range_is_kept_whole() {
        for (max_lines, max_chars, kept, dropped_chars, goes_on) in
            [(9, 99, 3, 12_345, None), (2, 99, 2, 7, Some(1_000_000)), (9, 5, 1, 8, Some(8)), (0, 99, 0, 13, Some(7))]
        {
            let mut screen = Screen { continue_from: None, ..Screen::sample() };
            screen.keep_head(max_lines, max_chars, 7, 1_000_001);
            let got = (screen.line_numbers.len(), screen.dropped_chars, screen.continue_from);
            assert_eq!(got, (kept, dropped_chars, goes_on), "{max_lines} lines, {max_chars} characters");
        }
    }

    #[test]
    fn a_map_has_every_field_once() {
        let mut names = Vec::new();
        let screen = Screen::sample();
        screen.each_field(|name, _| names.push(name));
        let fields = screen.fields();
        assert_eq!((fields.len(), names.len()), (21, 21));
        assert_eq!(fields["lines"], json!(["\"one\"", "", "漢字 \\ \t"]));
        assert_eq!((&fields["cursor"], &fields["missed_lines"]), (&json!({ "row": 2, "col": 119 }), &Value::Null));
    }
}
