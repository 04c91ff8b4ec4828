//! How much work output may cause: a budget of cells that every byte adds to.
//!
//! A few bytes can ask for a whole screen to be filled, copied or repeated, again and again. What is within the budget is
//! done as the standards say; what is beyond is cut short (REP), done without colour (erasing), or ignored (rectangles,
//! DECALN, shifted columns). Redrawing the screen with every few kilobytes stays far within. The budget depends on the bytes
//! alone, so that any chunking gives the same screen.

/// Cells that a byte adds. One costs one to three nanoseconds.
const CELLS_PER_BYTE: usize = 48;
/// The same for bytes of a synchronized update: up to 256 KiB of them are shown in one go.
const CELLS_PER_HELD_BYTE: usize = 12;
/// The most that is saved up: some milliseconds of work, and nearly three hundred screens of 120 by 30.
const MOST: usize = 1 << 20;

/// The budget of one terminal.
#[derive(Debug)]
pub(super) struct Work {
    cells: usize,
    per_byte: usize,
}

impl Default for Work {
    fn default() -> Self {
        Self { cells: MOST, per_byte: CELLS_PER_BYTE }
    }
}

impl Work {
    /// Output of this length came.
    #[inline]
    pub(super) fn earn(&mut self, bytes: usize) {
        self.cells = (self.cells + bytes * self.per_byte).min(MOST);
    }

    /// The bytes of a synchronized update are shown from now on, or no longer.
    pub(super) fn show_held(&mut self, held: bool) {
        self.per_byte = if held { CELLS_PER_HELD_BYTE } else { CELLS_PER_BYTE };
    }

    /// Takes so many cells if they are there. What is more than can ever be saved up costs all of it.
    pub(super) fn take(&mut self, cells: usize) -> bool {
        let cells = cells.min(MOST);
        let affordable = cells <= self.cells;
        if affordable {
            self.cells -= cells;
        }
        affordable
    }

    /// Takes units of so many cells each, at most `count` of them. Returns how many.
    pub(super) fn take_up_to(&mut self, count: usize, cells: usize) -> usize {
        let count = count.min(self.cells / cells);
        self.cells -= count * cells;
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_up_is_earned_again_by_bytes() {
        let mut work = Work::default();
        assert!(work.take(MOST + 1), "more than there can be is done once");
        assert!(!work.take(1));
        work.earn(10);
        assert_eq!(work.take_up_to(1_000, 2), 10 * CELLS_PER_BYTE / 2);
        work.show_held(true);
        work.earn(10);
        assert!(work.take(10 * CELLS_PER_HELD_BYTE) && !work.take(1));
        work.show_held(false);
        work.earn(usize::MAX / CELLS_PER_BYTE / 2);
        assert!(work.take(MOST) && !work.take(1));
    }
}
