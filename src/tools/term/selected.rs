//! The entry of a menu that is selected: text alone does not show it.

use kpty_emulator::{Attributes, Cell, Row, Width};

use super::session::Chosen;
use crate::registry::Located;

/// Characters of an entry.
const MAX_CHARS: usize = 60;

/// The text in reverse video, where exactly one row besides the first and the last has some: those are status lines.
pub(super) fn selected(chosen: &Chosen) -> Option<String> {
    let Located::Local(session) = &chosen.located else { return None };
    of(&session.masked_screen().cells().rows)
}

fn of(rows: &[Row]) -> Option<String> {
    let inner = rows.get(1..rows.len().checked_sub(1)?)?;
    let mut found = inner.iter().filter_map(reversed);
    let only = found.next()?;
    found.next().is_none().then_some(only)
}

/// The first text in reverse video of a row.
fn reversed(row: &Row) -> Option<String> {
    let is_reversed = |cell: &&Cell| cell.style.attributes.contains(Attributes::INVERSE);
    let cells = row.cells.iter().skip_while(|cell| !is_reversed(cell)).take_while(is_reversed);
    let text: String = cells.filter(|cell| cell.width != Width::Spacer).map(|cell| cell.c).collect();
    let text: String = text.trim().chars().take(MAX_CHARS).collect();
    // A single cell is a cursor that a program draws itself.
    (text.chars().count() > 1).then_some(text)
}
