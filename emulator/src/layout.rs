//! Text back into cells: finished lines are kept as text with looks, and shown as rows of a width.
//!
//! Owns how a finished line is laid out. Live rows are not laid out: the engine has them as they are.

use std::ops::Range;

use unicode_width::UnicodeWidthChar;

use crate::screen::{Cell, Row, Style, Width};

impl Cell {
    /// A cell with nothing in it.
    fn blank(style: Style, width: Width) -> Self {
        Self { c: ' ', marks: Vec::new(), width, style, link: None }
    }
}

/// The rows of a text at a width; at least one. `runs` say how stretches of it look, in order and without gaps.
pub(crate) fn rows_of(text: &str, runs: &[(Range<usize>, Style)], cols: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut cells: Vec<Cell> = Vec::with_capacity(cols);
    let mut runs = runs.iter().peekable();
    for (at, c) in text.char_indices() {
        while runs.next_if(|(range, _)| range.end <= at).is_some() {}
        let style =
            runs.peek().filter(|(range, _)| range.contains(&at)).map_or_else(Style::default, |(_, style)| *style);
        let wide = c.width().unwrap_or(0);
        if wide == 0 {
            let base = cells.iter_mut().rev().find(|cell| cell.width != Width::Spacer);
            if let Some(cell) = base {
                cell.marks.push(c);
            }
            continue;
        }
        if cells.len() + wide > cols && !cells.is_empty() {
            rows.push(full_row(&mut cells, cols, true));
        }
        let width = if wide > 1 { Width::Double } else { Width::Single };
        cells.push(Cell { c, ..Cell::blank(style, width) });
        if wide > 1 {
            cells.push(Cell::blank(style, Width::Spacer));
        }
    }
    rows.push(full_row(&mut cells, cols, false));
    rows
}

/// Ends a row. What is missing to the width is a gap where the text goes on, and blank where it does not.
fn full_row(cells: &mut Vec<Cell>, cols: usize, wrapped: bool) -> Row {
    let missing = if wrapped { Width::Spacer } else { Width::Single };
    while cells.len() < cols {
        cells.push(Cell::blank(Style::default(), missing));
    }
    Row { cells: std::mem::replace(cells, Vec::with_capacity(cols)), wrapped }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::Color;

    fn shown(row: &Row) -> String {
        row.cells
            .iter()
            .filter(|cell| cell.width != Width::Spacer)
            .flat_map(|cell| std::iter::once(cell.c).chain(cell.marks.clone()))
            .collect()
    }

    #[test]
    fn a_line_is_laid_out_as_a_terminal_would() {
        for (text, cols, expected) in [
            ("", 4, vec!["    "]),
            ("abcd", 4, vec!["abcd"]),
            ("abcdef", 4, vec!["abcd", "ef  "]),
            ("a日本", 4, vec!["a日", "本  "]),
            ("abce\u{301}f", 4, vec!["abce\u{301}", "f   "]),
        ] {
            let rows = rows_of(text, &[], cols);
            assert_eq!(rows.iter().map(shown).collect::<Vec<_>>(), expected, "{text:?}");
            assert!(rows.iter().all(|row| row.cells.len() == cols), "{text:?}");
            assert_eq!(rows.iter().filter(|row| !row.wrapped).count(), 1, "{text:?}");
        }
    }

    #[test]
    fn looks_follow_the_text() {
        let red = Style { fg: Color::Indexed(1), ..Style::default() };
        let rows = rows_of("abcdef", &[(0..3, Style::default()), (3..5, red)], 4);
        let looks: Vec<_> = rows.iter().flat_map(|row| &row.cells).map(|cell| cell.style == red).collect();
        assert_eq!(looks, [false, false, false, true, true, false, false, false]);
    }
}
