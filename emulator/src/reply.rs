//! What the terminal answers back to the program, returned as data.
//!
//! Owns the texts of all answers and their budget. An answer is made of constants and numbers only: nothing
//! that the output chose (a title, a setting echoed by DECRQSS) is ever sent back, or a file that is shown
//! with `cat` could type commands. Writing the bytes to the PTY is the caller's part.

/// Bytes that may come back for each byte that asked.
const ANSWER_RATIO: usize = 4;

/// Primary device attributes: a VT220 with ANSI colour.
pub(crate) const PRIMARY_ATTRIBUTES: &[u8] = b"\x1b[?62;22c";
/// The same question in its oldest form, `ESC Z`, which is too short for more.
pub(crate) const IDENTIFY: &[u8] = b"\x1b[?62c";
/// Secondary device attributes: VT220, version 1.0.
pub(crate) const SECONDARY_ATTRIBUTES: &[u8] = b"\x1b[>1;100;0c";
/// Tertiary device attributes: no unit number.
pub(crate) const TERTIARY_ATTRIBUTES: &[u8] = b"\x1bP!|00000000\x1b\\";
/// DSR 5: all is well.
pub(crate) const STATUS_OK: &[u8] = b"\x1b[0n";
/// XTVERSION.
pub(crate) const VERSION: &[u8] = b"\x1bP>|kpty 0.1\x1b\\";
/// DECRQSS: a request that is not answered in substance.
pub(crate) const SETTING_UNKNOWN: &[u8] = b"\x1bP0$r\x1b\\";
/// Colour scheme: dark.
pub(crate) const SCHEME_DARK: &[u8] = b"\x1b[?997;1n";

/// The height and width of a cell that answers about pixels assume.
pub(crate) const CELL_PIXELS: (usize, usize) = (16, 8);

/// What came back while bytes were fed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replies {
    /// To be written to the program, in this order.
    pub bytes: Vec<u8>,
    /// Answers that were not given because they were larger than four times the question.
    pub dropped: u64,
}

impl Replies {
    /// True when nothing was answered and nothing dropped.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.dropped == 0
    }

    /// Appends what came later.
    pub fn append(&mut self, mut later: Replies) {
        self.bytes.append(&mut later.bytes);
        self.dropped += later.dropped;
    }
}

/// Collects answers within the budget of the sequence that asks.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    replies: Replies,
    budget: usize,
}

impl Answers {
    /// A sequence of this length is about to be answered.
    pub(crate) fn asked(&mut self, length: usize) {
        self.budget = length.saturating_mul(ANSWER_RATIO);
    }

    /// Gives an answer, or counts it as dropped.
    pub(crate) fn give(&mut self, answer: &[u8]) {
        if answer.len() <= self.budget {
            self.budget -= answer.len();
            self.replies.bytes.extend_from_slice(answer);
        } else {
            self.replies.dropped += 1;
        }
    }

    /// What was collected since the last call.
    pub(crate) fn take(&mut self) -> Replies {
        std::mem::take(&mut self.replies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_over_four_times_the_question_is_dropped_and_counted() {
        let mut answers = Answers::default();
        answers.asked(2);
        answers.give(b"12345678");
        answers.give(b"9");
        let replies = answers.take();
        assert_eq!(replies, Replies { bytes: b"12345678".to_vec(), dropped: 1 });
        assert!(answers.take().is_empty());
    }
}
