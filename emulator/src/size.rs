//! Width and height, which always travel together.
//!
//! A [`Size`] that exists is within bounds, so no engine has to check again.

use std::fmt;

/// Widest terminal, in columns.
pub const MAX_COLS: u16 = 2_000;
/// Highest terminal, in rows.
pub const MAX_ROWS: u16 = 1_000;

/// A terminal's size: 1×1 to [`MAX_COLS`]×[`MAX_ROWS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    cols: u16,
    rows: u16,
}

impl Size {
    /// Checks the bounds.
    pub fn new(cols: u16, rows: u16) -> Result<Self, SizeError> {
        if (1..=MAX_COLS).contains(&cols) && (1..=MAX_ROWS).contains(&rows) {
            Ok(Self { cols, rows })
        } else {
            Err(SizeError { cols, rows })
        }
    }

    /// Width in columns.
    pub fn cols(self) -> u16 {
        self.cols
    }

    /// Height in rows.
    pub fn rows(self) -> u16 {
        self.rows
    }
}

impl Default for Size {
    /// The size of a session nobody gave one: 120×30.
    fn default() -> Self {
        Self { cols: 120, rows: 30 }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.cols, self.rows)
    }
}

/// A size outside the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeError {
    cols: u16,
    rows: u16,
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cols, rows } = self;
        write!(f, "a terminal of {cols} columns and {rows} rows is outside 1x1 to {MAX_COLS}x{MAX_ROWS}")
    }
}

impl std::error::Error for SizeError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_are_part_of_the_range() {
        for (cols, rows, good) in [
            (1, 1, true),
            (MAX_COLS, MAX_ROWS, true),
            (0, 1, false),
            (1, 0, false),
            (MAX_COLS + 1, 1, false),
            (1, MAX_ROWS + 1, false),
        ] {
            assert_eq!(Size::new(cols, rows).is_ok(), good, "{cols}x{rows}");
        }
    }
}
