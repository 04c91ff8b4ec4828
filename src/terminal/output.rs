//! The output of a command as it is answered, and its limit: head and tail of a long text, and what is missing between.

use kpty_guard::{Masked, MaskedStr};

/// What a command printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Rendered text; head and tail of it when there is more than was asked for.
    pub text: Masked,
    /// Something was left out.
    pub truncated: bool,
    /// Characters left out of the middle, newlines included.
    pub omitted_chars: usize,
    /// Lines that are missing wholly or in part.
    pub omitted_lines: usize,
    /// Lines that the history no longer has. The first of them may be in the text all the same.
    pub evicted_lines: u64,
    /// Lines missing before the text: its beginning is gone.
    pub missing_before: u64,
    /// Numbers of its lines in the session's text: the first, and the one after the last.
    pub lines: (u64, u64),
}

/// Text that is no longer there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gap {
    pub(super) chars: u64,
    pub(super) newlines: u64,
}

/// Keeps head and tail of a text that is too long, and says between them what is missing.
pub(super) fn cut(text: Masked, max_chars: usize) -> Output {
    // A character has at least one byte, so a shorter text needs no count.
    let chars = if text.len() <= max_chars { text.len() } else { text.chars().count() };
    if chars <= max_chars {
        return Output { text, ..Output::default() };
    }
    let (head, tail) = (text.as_masked().head(max_chars / 2), text.as_masked().tail(max_chars - max_chars / 2));
    let omitted_lines = text[head.len()..text.len() - tail.len()].lines().count();
    with_note(head, chars - max_chars, omitted_lines, tail)
}

/// The same for a text with a gap in it.
pub(super) fn cut_around(head: &Masked, gap: Gap, tail: &Masked, max_chars: usize) -> Output {
    if gap.chars == 0 {
        return cut(Masked::concat(&[head, tail]), max_chars);
    }
    let (head_chars, tail_chars) = (head.chars().count(), tail.chars().count());
    let shown_head = head_chars.min(max_chars / 2);
    let shown_tail = tail_chars.min(max_chars - max_chars / 2);
    let (kept_head, kept_tail) = (head.as_masked().head(shown_head), tail.as_masked().tail(shown_tail));
    let omitted_chars = (head_chars - shown_head) + gap.chars as usize + (tail_chars - shown_tail);
    let before_tail = &tail[..tail.len() - kept_tail.len()];
    let newlines = |text: &str| memchr::memchr_iter(b'\n', text.as_bytes()).count();
    // A line that is missing in part counts, too. The gap ends at the end of a line.
    let is_half = !before_tail.is_empty() && !before_tail.ends_with('\n');
    let omitted_lines =
        newlines(&head[kept_head.len()..]) + gap.newlines as usize + newlines(before_tail) + usize::from(is_half);
    with_note(kept_head, omitted_chars, omitted_lines, kept_tail)
}

fn with_note(head: MaskedStr<'_>, omitted_chars: usize, omitted_lines: usize, tail: MaskedStr<'_>) -> Output {
    let text = joined_with_note(head, omitted_chars, omitted_lines, tail);
    Output { text, truncated: true, omitted_chars, omitted_lines, ..Output::default() }
}

/// Head and tail of a text with a note between them.
pub fn joined_with_note(head: MaskedStr<'_>, chars: usize, lines: usize, tail: MaskedStr<'_>) -> Masked {
    Masked::concat(&[&head, &"\n[... ", &chars, &" characters in ", &lines, &" lines omitted ...]\n", &tail])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_keeps_head_and_tail_and_counts_the_rest() {
        let output = cut(Masked::literal("aaaa\nbbbb\ncccc\ndddd"), 8);
        assert_eq!(output.text, "aaaa\n[... 11 characters in 3 lines omitted ...]\ndddd");
        assert_eq!((output.omitted_chars, output.omitted_lines, output.truncated), (11, 3, true));
        assert_eq!(cut(Masked::literal("日本"), 2).text, "日本");
    }
}
