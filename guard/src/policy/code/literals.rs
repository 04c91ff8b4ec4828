//! The string literals of a program, and the program without them.

use super::super::decode::ansi_c;

/// Literals that are looked at.
pub(super) const MOST_LITERALS: usize = 64;

/// A string literal and what stands between the one before and it.
pub(super) struct Literal {
    pub(super) text: String,
    pub(super) before: String,
}

/// The literals of a code, and the code without them. Neighbours that are added to each other are one.
pub(super) fn split(code: &str) -> (Vec<Literal>, String) {
    let (mut literals, mut skeleton): (Vec<Literal>, String) = (Vec::new(), String::new());
    let mut before = String::new();
    let mut rest = code;
    while let Some(at) = rest.find(['\'', '"', '`']) {
        let quote = rest.as_bytes()[at];
        before.push_str(&rest[..at]);
        skeleton.push_str(&rest[..at]);
        if quote == b'`' {
            skeleton.push('`');
        }
        let triple = rest.as_bytes()[at..].starts_with(&[quote; 3]);
        let width = if triple { 3 } else { 1 };
        let inner = &rest[at + width..];
        let end = literal_end(inner, quote, triple);
        let text = ansi_c(&inner[..end]);
        rest = inner.get(end + width..).unwrap_or("");
        let is_added = matches!(before.trim(), "+" | "." | "..") || before.is_empty() && !literals.is_empty();
        let room = literals.len() < MOST_LITERALS;
        match literals.last_mut() {
            Some(last) if is_added => last.text.push_str(&text),
            _ if room => literals.push(Literal { text, before: std::mem::take(&mut before) }),
            _ => {}
        }
        before.clear();
        skeleton.push(' ');
    }
    skeleton.push_str(rest);
    (literals, skeleton)
}

fn literal_end(text: &str, quote: u8, triple: bool) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'\\' {
            at += 1;
        } else if bytes[at] == quote && (!triple || bytes[at..].starts_with(&[quote; 3])) {
            return at;
        }
        at += 1;
    }
    text.len()
}

/// Other spellings of literals in the common one: `qw(a b)` of Perl, `chr(114)` of many languages.
pub(super) fn plain_quotes(code: &str) -> String {
    let code = replaced(code, "qw(", ')', |words| {
        let quoted: Vec<String> = words.split_whitespace().map(|word| format!("\"{word}\"")).collect();
        Some(quoted.join(","))
    });
    replaced(&code, "chr(", ')', |number| {
        let c = number.trim().parse::<u32>().ok().and_then(char::from_u32)?;
        (c.is_ascii_graphic() && !matches!(c, '"' | '\\') || c == ' ').then(|| format!("\"{c}\""))
    })
}

/// The text with each piece between two marks replaced, where there is something to replace it with.
fn replaced(text: &str, open: &str, close: char, with: impl Fn(&str) -> Option<String>) -> String {
    let mut parts = text.split(open);
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let piece = part.split_once(close).and_then(|(inside, rest)| Some((with(inside)?, rest)));
        match piece {
            Some((piece, rest)) => out.extend([piece.as_str(), rest]),
            None => out.extend([open, part]),
        }
    }
    out
}
