//! Tables whose rows are found by the name of a command.

use std::collections::HashMap;

/// The rows of a table by the names that each of them lists, separated by blanks.
#[derive(Debug)]
pub(super) struct ByName<Row: 'static>(HashMap<&'static str, Vec<&'static Row>>);

impl<Row> ByName<Row> {
    /// Indexes a table. Rows of one name keep the order of the table.
    pub(super) fn new(rows: &'static [Row], names: impl Fn(&Row) -> &'static str) -> Self {
        let mut index: HashMap<_, Vec<_>> = HashMap::new();
        for row in rows {
            names(row).split(' ').for_each(|name| index.entry(name).or_default().push(row));
        }
        Self(index)
    }

    /// The rows for a name.
    pub(super) fn all(&self, name: &str) -> &[&'static Row] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// The first row for a name.
    pub(super) fn first(&self, name: &str) -> Option<&'static Row> {
        self.all(name).first().copied()
    }
}
