//! Text before it is judged: characters that look like others, and whether it is a sentence for somebody to read.

use std::borrow::Cow;

use super::words::MARKS;

/// Words that begin a request or a remark and are the name of no command.
const STARTERS: [&str; 96] = [
    "a",
    "about",
    "according",
    "actually",
    "add",
    "after",
    "again",
    "all",
    "also",
    "always",
    "an",
    "and",
    "any",
    "are",
    "as",
    "ask",
    "be",
    "because",
    "before",
    "both",
    "but",
    "can",
    "cannot",
    "check",
    "clean",
    "compare",
    "continue",
    "could",
    "create",
    "describe",
    "did",
    "does",
    "document",
    "done",
    "ensure",
    "every",
    "explain",
    "fix",
    "give",
    "go",
    "great",
    "hello",
    "hi",
    "how",
    "however",
    "i",
    "implement",
    "in",
    "instead",
    "is",
    "it",
    "its",
    "keep",
    "let",
    "list",
    "look",
    "maybe",
    "my",
    "never",
    "next",
    "no",
    "nobody",
    "note",
    "now",
    "of",
    "ok",
    "okay",
    "on",
    "once",
    "only",
    "our",
    "please",
    "plan",
    "refactor",
    "remember",
    "remove",
    "review",
    "should",
    "since",
    "so",
    "sorry",
    "summarize",
    "tell",
    "thanks",
    "that",
    "the",
    "there",
    "these",
    "think",
    "this",
    "ultrathink",
    "update",
    "use",
    "we",
    "what",
    "why",
];

/// Blanks of every kind as blanks, invisible characters gone, and our own marks with them.
pub(super) fn normal(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte) || matches!(byte, b'\n' | b'\t')) {
        return Cow::Borrowed(text);
    }
    let normal = text
        .chars()
        .filter_map(|c| match c {
            '\u{a0}'
            | '\u{1680}'
            | '\u{2000}'..='\u{200a}'
            | '\u{202f}'
            | '\u{205f}'
            | '\u{3000}'
            | '\u{b}'
            | '\u{c}' => Some(' '),
            '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => Some('\n'),
            '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}' | '\0' => None,
            c if MARKS.contains(&c) => Some('\u{fffd}'),
            c => Some(c),
        })
        .collect();
    Cow::Owned(normal)
}

/// A sentence: it begins with a word that begins sentences, and goes on with others. In it a backtick marks a word.
pub(super) fn is_prose(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let Some(first) = words.next() else { return false };
    let first = first.trim_end_matches([',', ':', '.', '!', '?', '\'']).to_lowercase();
    let is_word = |word: &str| word.chars().all(|c| c.is_alphabetic() || ",.?!'\"`-:()/".contains(c));
    STARTERS.contains(&first.as_str()) && words.clone().count() >= 2 && words.next().is_some_and(is_word)
}
