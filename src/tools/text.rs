//! Cutting text to a size, with exact counts of what is left out.

/// A text that was cut in the middle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cut {
    /// Head and tail, with a note between them where something is missing.
    pub(super) text: String,
    /// Characters left out.
    pub(super) omitted_chars: usize,
    /// Lines that are missing wholly or in part.
    pub(super) omitted_lines: usize,
}

/// Keeps head and tail of a text that is too long.
pub(super) fn cut_middle(text: &str, max_chars: usize) -> Cut {
    let chars = text.chars().count();
    if chars <= max_chars {
        return Cut { text: text.to_owned(), ..Cut::default() };
    }
    let at = |index: usize| text.char_indices().nth(index).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (at(max_chars / 2), at(chars - (max_chars - max_chars / 2)));
    let (omitted_chars, omitted_lines) = (chars - max_chars, text[head..tail].lines().count());
    let note = format!("\n[... {omitted_chars} characters in {omitted_lines} lines omitted ...]\n");
    Cut { text: [&text[..head], &note, &text[tail..]].concat(), omitted_chars, omitted_lines }
}

/// The part of a long line around a stretch of it, in bytes.
pub(super) fn clip_around(line: &str, (start, end): (usize, usize), max_chars: usize) -> String {
    if line.chars().count() <= max_chars {
        return line.to_owned();
    }
    let around = max_chars.saturating_sub(line[start..end].chars().count()) / 2;
    let from = line[..start].char_indices().rev().take(around).last().map_or(start, |(at, _)| at);
    let until = line[from..].char_indices().nth(max_chars).map_or(line.len(), |(at, _)| from + at);
    let (before, after) = (if from > 0 { "…" } else { "" }, if until < line.len() { "…" } else { "" });
    format!("{before}{}{after}", &line[from..until])
}

/// The end of a text, with a sign where something is missing.
pub(super) fn end_of(text: String, max_chars: usize) -> String {
    match text.chars().count().checked_sub(max_chars) {
        None | Some(0) => text,
        Some(omitted) => text.chars().skip(omitted).fold("…".to_owned(), |mut end, c| {
            end.push(c);
            end
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_counts_what_it_leaves_out() {
        let cut = cut_middle("aaaa\nbbbb\ncccc\ndddd", 8);
        assert_eq!(cut.text, "aaaa\n[... 11 characters in 3 lines omitted ...]\ndddd");
        assert_eq!((cut.omitted_chars, cut.omitted_lines), (11, 3));
        assert_eq!(cut_middle("日本", 2).text, "日本");
        assert_eq!(cut_middle("abc", 0).omitted_chars, 3);
    }

    #[test]
    fn an_end_keeps_what_is_newest() {
        for (text, expected) in [("", ""), ("abc", "abc"), ("abcd", "…bcd"), ("日本語の", "…本語の")] {
            assert_eq!(end_of(text.to_owned(), 3), expected);
        }
    }

    #[test]
    fn a_clip_shows_the_match() {
        assert_eq!(clip_around("short", (0, 2), 10), "short");
        assert_eq!(clip_around("aaaaaaaaaaXbbbbbbbbbb", (10, 11), 5), "…aaXbb…");
        assert_eq!(clip_around("Xbbbbbbbbbb", (0, 1), 5), "Xbbbb…");
        assert_eq!(clip_around("日本日本日本X", (18, 19), 3), "…本X");
        assert_eq!(clip_around("aaaaaaaaaa", (0, 10), 4), "aaaa…");
    }
}
