//! What a raw word comes to: quotes, escapes, braces, variables and substitutions resolved as far as the line tells.
//!
//! What cannot be known from the line alone becomes the mark [`UNKNOWN`]; a home directory becomes [`HOME`]. Both are
//! characters that no input has: the judge takes them out before it begins.

use std::borrow::Cow;

use super::Verdict;
use super::decode::{ansi_c, glob_matches};
use super::judge::{Judge, Value, Violation};
use super::lexer::closing;
use super::table::TOO_DEEP;

/// Text that only the running shell would know.
pub(super) const UNKNOWN: char = '\u{f8f0}';
/// A home directory.
pub(super) const HOME: char = '\u{f8f1}';
/// The output of a download, where those may not be run.
pub(super) const DOWNLOADED: char = '\u{f8f3}';
/// A text of the line that was unpacked by a program: nobody but that program can read it.
pub(super) const PACKED: char = '\u{f8f4}';
/// Where an unquoted expansion separates words.
const SPLIT: char = '\u{f8f2}';
/// The marks above.
pub(super) const MARKS: std::ops::RangeInclusive<char> = '\u{f8f0}'..='\u{f8ff}';

/// Words that one raw word may become.
const MOST_FIELDS: usize = 32;
/// Expansions inside of expansions that are looked into.
const DEEPEST_EXPANSION: usize = 32;
/// The longest text that a word may become.
const LONGEST_FIELD: usize = 1 << 16;
/// The longest value of a variable that is put into a word: what is longer is no name of a command or file.
const LONGEST_VALUE: usize = 1 << 10;

/// Whether an expansion stands in double quotes.
#[derive(Clone, Copy, PartialEq)]
enum Quotes {
    None,
    Double,
}

impl Judge<'_> {
    /// The words that a raw word stands for.
    pub(super) fn expand(&mut self, raw: &str) -> Verdict<Vec<String>> {
        self.step(raw.len())?;
        let mut fields = Vec::new();
        for piece in braces(raw) {
            let texts = self.expand_piece(&piece)?;
            for text in texts {
                if text.contains(SPLIT) {
                    fields.extend(text.split(SPLIT).filter(|field| !field.is_empty()).map(str::to_owned));
                } else if !text.is_empty() || piece.contains(['\'', '"']) {
                    fields.push(text);
                }
            }
        }
        fields.truncate(4 * MOST_FIELDS);
        Ok(fields)
    }

    /// A word in one piece: several alternatives are joined by blanks.
    pub(super) fn expand_one(&mut self, raw: &str) -> Verdict<String> {
        Ok(self.expand(raw)?.join(" "))
    }

    /// The text of an unquoted here-document.
    pub(super) fn expand_document(&mut self, body: &str) -> Verdict<String> {
        self.step(body.len())?;
        let texts = self.quoted(body, vec![String::new()])?;
        Ok(texts.into_iter().next().unwrap_or_default())
    }

    /// One text for each combination of alternatives.
    fn expand_piece(&mut self, raw: &str) -> Verdict<Vec<String>> {
        let mut texts = vec![String::new()];
        let mut at = 0;
        if let Some(rest) = raw.strip_prefix('~') {
            let user =
                rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')).count();
            if matches!(rest.as_bytes().get(user), None | Some(b'/')) {
                texts = vec![HOME.to_string()];
                at = 1 + user;
            } else if rest.starts_with("+/") || rest == "+" {
                texts = vec![self.cwd_text()];
                at = 2;
            }
        }
        while let Some(c) = raw[at..].chars().next() {
            let rest = &raw[at + c.len_utf8()..];
            match c {
                '\\' => {
                    let escaped = rest.chars().next();
                    if escaped != Some('\n') {
                        escaped.into_iter().for_each(|c| append(&mut texts, c.encode_utf8(&mut [0; 4])));
                    }
                    at += 1 + escaped.map_or(0, char::len_utf8);
                }
                '\'' => {
                    let end = rest.find('\'').unwrap_or(rest.len());
                    append(&mut texts, &rest[..end]);
                    at += 1 + end + usize::from(end < rest.len());
                }
                '"' => {
                    let end = closing(raw, at + 1, '"');
                    texts = self.quoted(&raw[at + 1..end], texts)?;
                    at = (end + 1).min(raw.len());
                }
                '$' if rest.starts_with('\'') => {
                    let end = ansi_c_end(rest, 1);
                    append(&mut texts, &ansi_c(&rest[1..end]));
                    at += 1 + (end + 1).min(rest.len());
                }
                '$' | '`' => at = self.expansion(raw, at, Quotes::None, &mut texts)?,
                '<' | '>' if rest.starts_with('(') => {
                    let end = closing(raw, at + 2, '(');
                    let output = self.text(&raw[at + 2..end], None)?;
                    append(&mut texts, &self.pretend_file(output)?);
                    at = (end + 1).min(raw.len());
                }
                _ => {
                    // What means something is one byte; a sign that means nothing here is taken as it is.
                    let plain = rest.find(['\\', '\'', '"', '$', '`', '<', '>']).unwrap_or(rest.len());
                    append(&mut texts, &raw[at..at + c.len_utf8() + plain]);
                    at += c.len_utf8() + plain;
                }
            }
        }
        Ok(texts)
    }

    /// Text in double quotes, added to each of the texts.
    fn quoted(&mut self, raw: &str, mut texts: Vec<String>) -> Verdict<Vec<String>> {
        let mut at = 0;
        while let Some(c) = raw[at..].chars().next() {
            match c {
                '\\' => {
                    let escaped = raw[at + 1..].chars().next();
                    match escaped {
                        Some('$' | '`' | '"' | '\\') => append(&mut texts, &raw[at + 1..at + 2]),
                        Some('\n') => {}
                        Some(other) => append(&mut texts, &format!("\\{other}")),
                        None => append(&mut texts, "\\"),
                    }
                    at += 1 + escaped.map_or(0, char::len_utf8);
                }
                '$' | '`' => at = self.expansion(raw, at, Quotes::Double, &mut texts)?,
                _ => {
                    let end = raw[at..].find(['\\', '$', '`']).map_or(raw.len(), |end| at + end);
                    append(&mut texts, &raw[at..end]);
                    at = end;
                }
            }
        }
        Ok(texts)
    }

    /// An expansion that begins here; returns where it ends.
    fn expansion(&mut self, raw: &str, at: usize, quotes: Quotes, texts: &mut Vec<String>) -> Verdict<usize> {
        // Expansions stand in one another; this is the one place that all of them pass.
        if self.nesting >= DEEPEST_EXPANSION {
            return Err(Violation::new(&TOO_DEEP, "", &[]));
        }
        self.nesting += 1;
        let end = self.expanded(raw, at, quotes, texts);
        self.nesting -= 1;
        self.step(texts.iter().map(String::len).sum::<usize>() / 8)?;
        end
    }

    fn expanded(&mut self, raw: &str, at: usize, quotes: Quotes, texts: &mut Vec<String>) -> Verdict<usize> {
        let rest = &raw[at + 1..];
        let past = |end: usize| (end + 1).min(raw.len());
        if raw[at..].starts_with('`') {
            let end = closing(raw, at + 1, '`');
            if !self.is_prose {
                let inner = raw[at + 1..end].replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\");
                let output = self.text(&inner, None)?;
                add(texts, &[substituted(output)], quotes);
            }
            return Ok(past(end));
        }
        if rest.starts_with("((") {
            let end = closing(raw, at + 2, '(');
            // A sum is a number; what is substituted into it runs all the same.
            let inner = raw[at + 3..end.max(at + 3)].to_owned();
            if inner.contains(['`', '$']) {
                self.quoted(&inner, vec![String::new()])?;
            }
            append(texts, &UNKNOWN.to_string());
            return Ok(past(end));
        }
        if rest.starts_with('(') {
            let end = closing(raw, at + 2, '(');
            let output = self.text(&raw[at + 2..end], None)?;
            add(texts, &[substituted(output)], quotes);
            return Ok(past(end));
        }
        if rest.starts_with('{') {
            let end = closing(raw, at + 2, '{');
            let values = self.parameter(&raw[at + 2..end])?;
            add(texts, &values, quotes);
            return Ok(past(end));
        }
        let name = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let name = match rest.as_bytes().first() {
            Some(b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'$' | b'!' | b'-') => 1,
            _ => name,
        };
        if name == 0 {
            if !(quotes == Quotes::None && rest.starts_with('"')) {
                append(texts, "$");
            }
            return Ok(at + 1);
        }
        let values = self.variable(&rest[..name]);
        add(texts, &values, quotes);
        Ok(at + 1 + name)
    }

    /// The values that a variable may have.
    fn variable(&mut self, name: &str) -> Vec<String> {
        if let Some(value) = self.vars.get(name) {
            // A line may choose itself what separates words.
            let Some(separators) = self.vars.get("IFS").filter(|_| name != "IFS") else { return value.items.clone() };
            let separators = separators.items.concat();
            let blank = |c: char| if separators.contains(c) { ' ' } else { c };
            return value.items.iter().map(|item| item.chars().map(blank).collect()).collect();
        }
        match name {
            "HOME" => vec![HOME.to_string()],
            "PWD" => vec![self.cwd_text()],
            "IFS" => vec![" ".to_owned()],
            "@" | "*" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" => vec![String::new()],
            "0" | "BASH" | "SHELL" => vec!["/bin/bash".to_owned()],
            "XDG_CONFIG_HOME" => vec![format!("{HOME}/.config")],
            "TMPDIR" => vec!["/tmp/x".to_owned()],
            _ => vec![UNKNOWN.to_string()],
        }
    }

    /// What stands between the brackets of `${…}`.
    fn parameter(&mut self, raw: &str) -> Verdict<Vec<String>> {
        if let Some(name) = raw.strip_prefix('!') {
            let name = self.variable(name.trim_end_matches(['@', '*'])).concat();
            return Ok(self.variable(&name));
        }
        if raw.starts_with('#') && raw.len() > 1 {
            return Ok(vec![UNKNOWN.to_string()]);
        }
        let length = raw.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let length = if length == 0 { raw.chars().next().map_or(0, char::len_utf8) } else { length };
        let (name, mut operation) = raw.split_at(length);
        let mut values = self.variable(name);
        if let Some(index) = operation.strip_prefix('[')
            && let Some((index, rest)) = index.split_once(']')
        {
            operation = rest;
            if let Ok(index) = index.trim().parse::<usize>() {
                values = vec![values.get(index).cloned().unwrap_or_default()];
            }
        }
        // Settings of the session that begin with the root: their first character is known.
        let is_path = matches!(name, "HOME" | "PATH" | "PWD" | "SHELL" | "BASH" | "OLDPWD");
        if is_path && matches!(operation.replace(' ', "").as_str(), ":0:1" | "%%[!/]*" | "%%[^/]*") {
            return Ok(vec!["/".to_owned()]);
        }
        if is_path
            && (operation.starts_with("%%/") || operation.starts_with("//[!/]") || operation.starts_with("//[^/]"))
        {
            return Ok(vec!["/".to_owned()]);
        }
        if operation.is_empty() || name == "IFS" {
            return Ok(values);
        }
        // Those that every session has are set.
        let is_set = is_path || self.vars.contains_key(name) && values.iter().any(|value| !value.is_empty());
        let is_unknown = values.iter().any(|value| value.contains(UNKNOWN));
        let plain = operation.strip_prefix(':').unwrap_or(operation);
        if let Some(other) = plain.strip_prefix(['-', '=']) {
            let default = self.quoted_or_plain(other)?;
            if plain.starts_with('=') {
                self.set(name, vec![default.clone()]);
            }
            return Ok(if is_set { values } else { vec![default] });
        }
        if let Some(other) = plain.strip_prefix('+') {
            let other = self.quoted_or_plain(other)?;
            return Ok(if is_set || name == "HOME" || is_unknown { vec![other] } else { vec![String::new()] });
        }
        if plain.starts_with('?') {
            return Ok(values);
        }
        if is_unknown || values.iter().any(|value| value.contains(HOME)) {
            // What is substituted into the operation runs all the same.
            self.quoted_or_plain(operation)?;
            // A part taken off a home or of something unknown; removal of nothing that is there leaves it whole.
            let keeps = operation.starts_with(['%', '#']) && !operation.contains(['*', '?', '[']);
            return Ok(if keeps { values } else { vec![UNKNOWN.to_string()] });
        }
        // The sign stands once or twice; what follows it may begin with any character.
        let sign = operation.chars().next().unwrap_or(' ');
        let width = if matches!(sign, '#' | '%' | '/' | '^' | ',') && operation[1..].starts_with(sign) { 2 } else { 1 };
        let operand = self.quoted_or_plain(operation.get(width..).unwrap_or(""))?;
        Ok(values.iter().map(|value| operate(value, operation, &operand)).collect())
    }

    fn quoted_or_plain(&mut self, raw: &str) -> Verdict<String> {
        let texts = self.expand_piece(raw)?;
        Ok(texts.join(" ").replace(SPLIT, " "))
    }

    /// Remembers a value.
    pub(super) fn set(&mut self, name: &str, items: Vec<String>) {
        if self.vars.len() < 256 || self.vars.contains_key(name) {
            self.vars.insert(name.to_owned(), Value { items, is_each: false });
        }
    }
}

/// An operation on a value that is known.
fn operate(value: &str, operation: &str, operand: &str) -> String {
    let chars: Vec<char> = value.chars().collect();
    let part = |range: std::ops::Range<usize>| chars[range].iter().collect::<String>();
    let (op, count) = (operation.chars().next().unwrap_or(' '), chars.len());
    match op {
        ':' => {
            let mut numbers = operation[1..].split(':').map(|number| number.trim().parse::<i64>().unwrap_or(0));
            let from = numbers.next().unwrap_or(0);
            let from =
                if from < 0 { count.saturating_sub(from.unsigned_abs() as usize) } else { (from as usize).min(count) };
            let to = match numbers.next() {
                Some(length) if length >= 0 => (from + length as usize).min(count),
                Some(length) => count.saturating_sub(length.unsigned_abs() as usize).max(from),
                None => count,
            };
            part(from..to)
        }
        '#' | '%' if count <= 512 => {
            let is_longest = operation.starts_with("##") || operation.starts_with("%%");
            let mut cuts: Vec<usize> = (0..=count).collect();
            if is_longest == (op == '#') {
                cuts.reverse();
            }
            let fits = |cut: &usize| match op {
                '#' => glob_matches(operand, &part(0..*cut)),
                _ => glob_matches(operand, &part(*cut..count)),
            };
            match cuts.into_iter().find(fits) {
                Some(cut) if op == '#' => part(cut..count),
                Some(cut) => part(0..cut),
                None => value.to_owned(),
            }
        }
        '/' => {
            let (pattern, with) = operand.split_once('/').unwrap_or((operand, ""));
            match operation.starts_with("//") {
                _ if pattern.is_empty() => value.to_owned(),
                true => value.replace(pattern, with),
                false => value.replacen(pattern, with, 1),
            }
        }
        '^' => value.to_uppercase(),
        ',' => value.to_lowercase(),
        '@' if operand == "U" => value.to_uppercase(),
        '@' if operand == "L" => value.to_lowercase(),
        _ => value.to_owned(),
    }
}

/// What a substitution leaves behind.
fn substituted(output: Option<String>) -> String {
    output.map_or_else(|| UNKNOWN.to_string(), |text| text.trim_end_matches('\n').to_owned())
}

fn append(texts: &mut [String], more: &str) {
    for text in texts.iter_mut() {
        if text.len() + more.len() <= LONGEST_FIELD {
            text.push_str(more);
        }
    }
}

/// Adds each of the values to each of the texts.
fn add(texts: &mut Vec<String>, values: &[String], quotes: Quotes) {
    let split = |value: &String| match quotes {
        _ if value.len() > LONGEST_VALUE && !value.contains(' ') => UNKNOWN.to_string(),
        Quotes::Double => value.clone(),
        Quotes::None => value.replace([' ', '\t', '\n'], SPLIT.encode_utf8(&mut [0; 4])),
    };
    if values.len() == 1 || texts.len() * values.len() > MOST_FIELDS {
        values.iter().take(1).for_each(|value| append(texts, &split(value)));
        return;
    }
    let all = texts.iter().flat_map(|text| values.iter().map(move |value| format!("{text}{}", split(value))));
    *texts = all.collect();
}

/// Where an ANSI-C quoted text ends.
fn ansi_c_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start;
    while at < bytes.len() && bytes[at] != b'\'' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(text.len())
}

/// `a{b,c}d` becomes `abd` and `acd`; quotes are left alone.
fn braces(raw: &str) -> Vec<Cow<'_, str>> {
    if !raw.contains('{') {
        return vec![Cow::Borrowed(raw)];
    }
    // Texts, and up to where each has none.
    let mut open = vec![(Cow::Borrowed(raw), 0)];
    let mut done = Vec::new();
    while let Some((text, from)) = open.pop() {
        if done.len() + open.len() >= MOST_FIELDS {
            done.push(text);
            continue;
        }
        match first_braces(&text, from) {
            Some((start, end, parts)) => {
                let with = |part: &String| [&text[..start], part, &text[end + 1..]].concat();
                open.extend(parts.iter().rev().map(|part| (Cow::Owned(with(part)), start)));
            }
            None => done.push(text),
        }
    }
    done
}

/// The first pair of brackets with a comma or a range in it: where it begins and ends, and its parts.
fn first_braces(text: &str, from: usize) -> Option<(usize, usize, Vec<String>)> {
    if text.len() > 4096 {
        return None;
    }
    let bytes = text.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'\'' => at = closing(text, at + 1, '\''),
            b'"' => at = closing(text, at + 1, '"'),
            b'`' => at = closing(text, at + 1, '`'),
            b'$' if matches!(bytes.get(at + 1), Some(b'{')) => at = closing(text, at + 2, '{'),
            b'$' if matches!(bytes.get(at + 1), Some(b'(')) => at = closing(text, at + 2, '('),
            b'{' => {
                if let Some((end, parts)) = brace_parts(text, at) {
                    return Some((at, end, parts));
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

fn brace_parts(text: &str, start: usize) -> Option<(usize, Vec<String>)> {
    let bytes = text.as_bytes();
    let (mut depth, mut from, mut parts) = (0, start + 1, Vec::new());
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'\'' => at = closing(text, at + 1, '\''),
            b'"' => at = closing(text, at + 1, '"'),
            b'{' => depth += 1,
            b'}' if depth > 0 => depth -= 1,
            b',' if depth == 0 => {
                parts.push(text[from..at].to_owned());
                from = at + 1;
            }
            b'}' => {
                let last = &text[from..at];
                if parts.is_empty() {
                    let (low, high) = last.split_once("..")?;
                    let one = |text: &str| text.chars().next().filter(|_| text.chars().count() == 1);
                    let (low, high) = (one(low)?, one(high)?);
                    let range = (low.min(high)..=low.max(high)).take(26).map(String::from);
                    return Some((at, range.collect()));
                }
                parts.push(last.to_owned());
                return Some((at, parts));
            }
            _ => {}
        }
        at += 1;
    }
    None
}
