//! The output of a command as it is answered, and its limit: head and tail of a long text, and what is missing between.

/// What a command printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Rendered text; head and tail of it when there is more than was asked for.
    pub text: String,
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
pub(super) fn cut(text: &str, max_chars: usize) -> Output {
    let chars = text.chars().count();
    if chars <= max_chars {
        return Output { text: text.to_owned(), ..Output::default() };
    }
    let (head, tail) = (max_chars / 2, max_chars - max_chars / 2);
    let (head_end, tail_start) = (char_at(text, head), char_at(text, chars - tail));
    let omitted_lines = text[head_end..tail_start].lines().count();
    with_note(&text[..head_end], chars - max_chars, omitted_lines, &text[tail_start..])
}

/// The same for a text with a gap in it.
pub(super) fn cut_around(head: &str, gap: Gap, tail: &str, max_chars: usize) -> Output {
    if gap.chars == 0 {
        return cut(&format!("{head}{tail}"), max_chars);
    }
    let (head_chars, tail_chars) = (head.chars().count(), tail.chars().count());
    let shown_head = head_chars.min(max_chars / 2);
    let shown_tail = tail_chars.min(max_chars - max_chars / 2);
    let (head_end, tail_start) = (char_at(head, shown_head), char_at(tail, tail_chars - shown_tail));
    let omitted_chars = (head_chars - shown_head) + gap.chars as usize + (tail_chars - shown_tail);
    let before_tail = &tail[..tail_start];
    let newlines = |text: &str| memchr::memchr_iter(b'\n', text.as_bytes()).count();
    // A line that is missing in part counts, too. The gap ends at the end of a line.
    let is_half = !before_tail.is_empty() && !before_tail.ends_with('\n');
    let omitted_lines =
        newlines(&head[head_end..]) + gap.newlines as usize + newlines(before_tail) + usize::from(is_half);
    with_note(&head[..head_end], omitted_chars, omitted_lines, &tail[tail_start..])
}

fn with_note(head: &str, omitted_chars: usize, omitted_lines: usize, tail: &str) -> Output {
    let note = format!("\n[... {omitted_chars} characters in {omitted_lines} lines omitted ...]\n");
    Output { text: format!("{head}{note}{tail}"), truncated: true, omitted_chars, omitted_lines, ..Output::default() }
}

/// Where a character begins, counted from 0; the end of the text for one behind it.
fn char_at(text: &str, index: usize) -> usize {
    text.char_indices().nth(index).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_keeps_head_and_tail_and_counts_the_rest() {
        let output = cut("aaaa\nbbbb\ncccc\ndddd", 8);
        assert_eq!(output.text, "aaaa\n[... 11 characters in 3 lines omitted ...]\ndddd");
        assert_eq!((output.omitted_chars, output.omitted_lines, output.truncated), (11, 3, true));
        assert_eq!(cut("日本", 2).text, "日本");
    }
}
