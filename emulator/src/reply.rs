//! What the terminal answers back to the program, returned as data.
//!
//! Owns the texts of all answers and their budget. An answer is made of constants and numbers only: nothing
//! that the output chose (a title, a setting echoed by DECRQSS) is ever sent back, or a file that is shown
//! with `cat` could type commands. Writing the bytes to the PTY is the caller's part.

/// Bytes that may come back for each byte that asked.
const ANSWER_RATIO: usize = 4;
/// Items of one question that have a budget of their own: as many as the palette has colours.
const ITEMS_LIMIT: usize = 256;
/// Budget of one item: the longest rendition, with every attribute and three colours.
const ITEM_BUDGET: usize = 96;

/// Primary device attributes: a VT220 with ANSI colour.
pub(crate) const PRIMARY_ATTRIBUTES: &[u8] = b"\x1b[?62;22c";
/// The same question in its oldest form, `ESC Z`, which is too short for more.
pub(crate) const IDENTIFY: &[u8] = b"\x1b[?62c";
/// Secondary device attributes: VT220, and a version that programs compare with xterm's. Emacs asks for the background
/// colour from 242 on and takes numbers above 2000 for another terminal; Vim uses the SGR mouse from 277 on.
pub(crate) const SECONDARY_ATTRIBUTES: &[u8] = b"\x1b[>1;277;0c";
/// Tertiary device attributes: no unit number.
pub(crate) const TERTIARY_ATTRIBUTES: &[u8] = b"\x1bP!|00000000\x1b\\";
/// DSR 5: all is well.
pub(crate) const STATUS_OK: &[u8] = b"\x1b[0n";
/// Length of the shortest XTVERSION question, `CSI > q`.
const VERSION_QUESTION: usize = 4;
/// XTGETTCAP: no capability is known. The name that was asked for is not repeated.
pub(crate) const CAPABILITY_UNKNOWN: &[u8] = b"\x1bP0+r\x1b\\";
/// DECRQSS: a setting that is not known.
pub(crate) const SETTING_UNKNOWN: &[u8] = b"\x1bP0$r\x1b\\";
/// Colour scheme: dark.
pub(crate) const SCHEME_DARK: &[u8] = b"\x1b[?997;1n";

/// The height and width of a cell that answers about pixels assume.
pub(crate) const CELL_PIXELS: (usize, usize) = (16, 8);

/// XTVERSION: name and version, as many parts of it as the shortest question pays for.
pub(crate) fn version(version: &str) -> String {
    let mut name = format!("kpty {version}");
    loop {
        let answer = format!("\x1bP>|{name}\x1b\\");
        if answer.len() <= VERSION_QUESTION * ANSWER_RATIO {
            return answer;
        }
        let end = name.rfind(['.', '-', '+', ' ']).unwrap_or(0);
        name.truncate(end);
    }
}

/// What came back while bytes were fed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replies {
    /// To be written to the program, in this order.
    pub bytes: Vec<u8>,
    /// Answers that were not given because they were larger than the question allows.
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
    /// Items of the question that may still use a budget of their own.
    items: usize,
}

impl Answers {
    /// A sequence of this length is about to be answered.
    pub(crate) fn asked(&mut self, length: usize) {
        self.budget = length.saturating_mul(ANSWER_RATIO);
        self.items = ITEMS_LIMIT;
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

    /// Answers one item of a question that has several, or whose answer has a bounded length that does not depend on the
    /// question. Such an answer has a budget of its own.
    pub(crate) fn give_item(&mut self, answer: &[u8]) {
        if answer.len() > self.budget && answer.len() <= ITEM_BUDGET && self.items > 0 {
            self.items -= 1;
            self.replies.bytes.extend_from_slice(answer);
        } else {
            self.give(answer);
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

    #[test]
    fn items_have_a_budget_of_their_own_and_their_number_is_bounded() {
        let mut answers = Answers::default();
        answers.asked(1);
        for _ in 0..ITEMS_LIMIT + 3 {
            answers.give_item(b"12345678");
        }
        answers.give_item(&[b'x'; ITEM_BUDGET + 1]);
        let replies = answers.take();
        assert_eq!((replies.bytes.len(), replies.dropped), (8 * ITEMS_LIMIT, 4));
    }

    #[test]
    fn the_version_fits_its_budget_whatever_it_is() {
        for (text, expected) in [
            ("0.1.0", "kpty 0.1.0"),
            ("0.10.12", "kpty 0.10"),
            ("12.34.56-beta.7+build", "kpty 12.34"),
            ("1234567.0.0", "kpty"),
            ("", "kpty "),
        ] {
            let answer = version(text);
            assert_eq!(answer, format!("\x1bP>|{expected}\x1b\\"));
            assert!(answer.len() <= VERSION_QUESTION * ANSWER_RATIO);
        }
    }
}
