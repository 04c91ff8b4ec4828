//! Cuts shell text into raw words and operators: quotes, substitutions and here-documents stay whole.
//!
//! Owns where a word begins and ends. What a word comes to is found in `words.rs`. Reads any text: what is left open
//! goes to the end. One pass with a stack of its own, so depth costs no recursion.

/// A piece of a line.
#[derive(Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A word as it is written.
    Word(&'a str),
    /// `;`, `&`, `&&`, `||`, `|`, `|&`, `;;`, `(`, `)` or a line end.
    Operator(&'a str),
    /// `>`, `>>`, `<`, `<<<`, `&>` and so on, with its target.
    Redirect { operator: &'a str, target: &'a str },
    /// A here-document: its text, and whether its delimiter was quoted.
    HereDoc { body: &'a str, is_quoted: bool },
}

const OPERATORS: [&str; 11] = [";;&", "&&", "||", "|&", ";;", ";&", ";", "&", "|", "(", ")"];
const REDIRECTS: [&str; 12] = ["<<<", "&>>", "<<-", ">>", "<<", "<>", ">|", "&>", ">&", "<&", "<", ">"];

/// All tokens of a text.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    // Here-documents whose text comes after this line: place among the tokens, delimiter, tabs are stripped.
    let mut waiting: Vec<(usize, String, bool)> = Vec::new();
    let mut at = 0;
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let rest = &text[at..];
        match bytes[at] {
            b' ' | b'\t' | b'\r' => at += 1,
            b'\\' if rest.starts_with("\\\n") => at += 2,
            b'\n' => {
                tokens.push(Token::Operator("\n"));
                at += 1;
                for (place, delimiter, strips_tabs) in waiting.drain(..) {
                    let (body, end) = here_document(text, at, &delimiter, strips_tabs);
                    if let Some(Token::HereDoc { body: slot, .. }) = tokens.get_mut(place) {
                        *slot = body;
                    }
                    at = end;
                }
            }
            b'#' => at += rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("<(") || rest.starts_with(">(") => {
                let end = word_end(text, at);
                tokens.push(Token::Word(&text[at..end]));
                at = end;
            }
            _ => {
                let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                let redirect = REDIRECTS.iter().find(|operator| rest[digits..].starts_with(**operator));
                if let Some(operator) = redirect.filter(|operator| digits == 0 || !operator.starts_with('&')) {
                    at += digits + operator.len();
                    at += text[at..].bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
                    let end = word_end(text, at);
                    let target = &text[at..end];
                    at = end;
                    if matches!(*operator, "<<" | "<<-") {
                        let delimiter: String = target.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
                        waiting.push((tokens.len(), delimiter, *operator == "<<-"));
                        tokens.push(Token::HereDoc { body: "", is_quoted: target.contains(['\'', '"', '\\']) });
                    } else {
                        tokens.push(Token::Redirect { operator, target });
                    }
                } else if let Some(operator) = OPERATORS.iter().find(|operator| rest.starts_with(**operator)) {
                    tokens.push(Token::Operator(operator));
                    at += operator.len();
                } else {
                    let end = word_end(text, at).max(at + rest.chars().next().map_or(1, char::len_utf8));
                    tokens.push(Token::Word(&text[at..end]));
                    at = end;
                }
            }
        }
    }
    tokens
}

/// The text of a here-document that begins here, and where the line after it begins.
fn here_document<'a>(text: &'a str, start: usize, delimiter: &str, strips_tabs: bool) -> (&'a str, usize) {
    let mut at = start;
    for line in text[start..].split_inclusive('\n') {
        let bare = line.strip_suffix('\n').unwrap_or(line);
        let bare = if strips_tabs { bare.trim_start_matches('\t') } else { bare };
        if bare.strip_suffix('\r').unwrap_or(bare) == delimiter {
            return (&text[start..at], at + line.len());
        }
        at += line.len();
    }
    (&text[start.min(text.len())..], text.len())
}

/// What a scan is inside of.
#[derive(Clone, Copy, PartialEq)]
enum Inside {
    Single,
    AnsiC,
    Double,
    Backtick,
    /// `$(…)`, `<(…)`, `(…)` of an array.
    Round,
    /// `${…}`.
    Curly,
}

/// Where the word that begins here ends.
pub(super) fn word_end(text: &str, start: usize) -> usize {
    scan(text, start, None)
}

/// Where the bracket that was opened just before `start` is closed; the end of the text if nowhere.
pub(super) fn closing(text: &str, start: usize, open: char) -> usize {
    let inside = match open {
        '(' => Inside::Round,
        '{' => Inside::Curly,
        '`' => Inside::Backtick,
        '"' => Inside::Double,
        _ => Inside::Single,
    };
    scan(text, start, Some(inside))
}

fn scan(text: &str, start: usize, first: Option<Inside>) -> usize {
    let bytes = text.as_bytes();
    let mut stack: Vec<Inside> = first.into_iter().collect();
    let is_nested = first.is_some();
    let mut at = start;
    while at < bytes.len() {
        let byte = bytes[at];
        let next = bytes.get(at + 1).copied();
        let top = stack.last().copied();
        let close = |stack: &mut Vec<Inside>| {
            stack.pop();
            stack.is_empty() && is_nested
        };
        match (top, byte) {
            (Some(Inside::Single), b'\'') | (Some(Inside::AnsiC), b'\'') | (Some(Inside::Double), b'"') => {
                if close(&mut stack) {
                    return at;
                }
            }
            (Some(Inside::Single), _) => {}
            (_, b'\\') => at += 1,
            (Some(Inside::AnsiC), _) => {}
            (Some(Inside::Backtick), b'`') | (Some(Inside::Round), b')') | (Some(Inside::Curly), b'}') => {
                if close(&mut stack) {
                    return at;
                }
            }
            // The number of the process: a bracket behind it is none of its own.
            (_, b'$') if next == Some(b'$') => at += 1,
            (_, b'$') if next == Some(b'(') => {
                stack.push(Inside::Round);
                at += 1;
            }
            (_, b'$') if next == Some(b'{') => {
                stack.push(Inside::Curly);
                at += 1;
            }
            (_, b'`') => stack.push(Inside::Backtick),
            (Some(Inside::Double), _) => {}
            (_, b'$') if next == Some(b'\'') => {
                stack.push(Inside::AnsiC);
                at += 1;
            }
            (Some(Inside::Curly), b'\'') if stack.iter().rev().nth(1) == Some(&Inside::Double) => {}
            (_, b'\'') => stack.push(Inside::Single),
            (_, b'"') => stack.push(Inside::Double),
            (Some(Inside::Round), b'(') => stack.push(Inside::Round),
            (Some(Inside::Round), b'#') if at > start && matches!(bytes[at - 1], b' ' | b'\t' | b'\n' | b';') => {
                at += text[at..].find('\n').unwrap_or(bytes.len() - at);
                continue;
            }
            (None, b'<' | b'>') if next == Some(b'(') => {
                stack.push(Inside::Round);
                at += 1;
            }
            // A pattern such as `!(x)`.
            (None, b'(') if at > start && matches!(bytes[at - 1], b'!' | b'@' | b'+' | b'?' | b'*') => {
                stack.push(Inside::Round)
            }
            // An array: the bracket stands right behind the equals sign.
            (None, b'(') if at > start && bytes[at - 1] == b'=' => stack.push(Inside::Round),
            (None, b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')') => return at,
            _ => {}
        }
        at += 1;
        while at < bytes.len() && !text.is_char_boundary(at) {
            at += 1;
        }
    }
    bytes.len()
}
