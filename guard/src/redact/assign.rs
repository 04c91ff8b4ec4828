//! Values that are hidden because of the name before them: `NAME=value` in shells, settings, JSON, YAML, TOML, XML,
//! tables, options of commands, URLs and prose.
//!
//! Owns the grammar between a name and its value. Which names count is judged in `names.rs`, which values in
//! `values.rs`; here the two are weighed against the form they stand in.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::names::{Group, Name};
use super::scan::{Run, Scan};
use super::values::{self, Kind, Looked};
use super::words::ends_with;

/// Longest name, in bytes.
const LONGEST_NAME: usize = 80;
/// Longest end of a sentence that tells a password.
const LONGEST_SENTENCE: usize = 160;
/// Spaces between a name, its sign and its value.
const WIDEST_GAP: usize = 64;

/// How a value is tied to its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `NAME=value`, the name in capitals; `setenv NAME value`.
    Variable,
    /// `name = value`.
    Equals,
    /// `name: value`.
    Colon,
    /// `--name value`.
    Option,
    /// `<name>value</name>`.
    Element,
    /// `'name', 'value'`.
    List,
    /// `| name | value |`, or a line of a name, spaces and a value.
    Table,
    /// `name value`, somewhere.
    Beside,
    /// `password for somebody is value`.
    Said,
}

struct Value {
    range: Range<usize>,
    /// With its quotes.
    whole: Range<usize>,
    is_quoted: bool,
}

/// `is`, `for somebody:` and the like between a name and what it is.
static SAID: LazyLock<Regex> = LazyLock::new(|| {
    let said = r"^(?:(?: \w{1,12}){0,3} (?:for|of) [^\s:]{1,64})?(?: is:?|:)[ \t]+";
    regex::bytes::RegexBuilder::new(said).unicode(false).build().expect("a test compiles it")
});

/// Looks at the name around a keyword.
pub(super) fn find(scan: &mut Scan<'_>, hit: Range<usize>) {
    let text = scan.text;
    if hit.start < scan.name_end {
        return;
    }
    let before = &text[scan.name_end..hit.start];
    let first = hit.start - before.iter().rev().take_while(|&&byte| is_name_byte(byte)).count();
    let end = hit.end + text[hit.end..].iter().take_while(|&&byte| is_name_byte(byte)).count();
    scan.name_end = end;
    let is_mask = first > 0 && text[first - 1] == b'[' && text[first..].starts_with(b"REDACTED");
    if end - first > LONGEST_NAME || is_mask {
        return;
    }
    let start = first + text[first..end].iter().take_while(|&&byte| b"-.".contains(&byte)).count();
    let end = end - text[start..end].iter().rev().take_while(|&&byte| b"-.".contains(&byte)).count();
    if hide_told(scan, start, end) || !may_be_tied(text, end) {
        return;
    }
    let Some(name) = judge_with_word_before(scan, start, end) else { return };
    let Some((form, at)) = tie(text, first, start, end) else { return };
    if name.group == Group::Perhaps && !matches!(form, Form::Variable | Form::Equals) {
        return;
    }
    if form == Form::Colon && block_follows(text, at) {
        match super::scan::line_end(text, at) {
            end if end < text.len() => hide_line(scan, end + 1),
            _ => scan.carry.wants_value = true,
        }
        return;
    }
    let Some(value) = value_at(text, at, form, &mut scan.bare) else { return };
    // A key of no kind is a secret only where a URL carries it.
    let is_lone_key = text[start..end].eq_ignore_ascii_case(b"key");
    if is_lone_key && form == Form::Equals && !(start > 0 && b"?&".contains(&text[start - 1])) {
        return;
    }
    if !value.is_quoted && scan.bare.is_crowded() {
        return scan.hide(value.range, scan.mask());
    }
    let is_short_word = start + 4 >= end && form == Form::Colon && !value.is_quoted && name.group == Group::Password;
    if is_short_word
        || is_working_directory(&text[start..end], &text[value.range.clone()])
        || !hides(name, form, &value, text)
    {
        return;
    }
    // `--secret id=name,src=file` of container builders names a file.
    if form == Form::Option && name.group == Group::Secret && text[value.range.clone()].starts_with(b"id=") {
        return;
    }
    // The signing key is identified by its id.
    if ends_with(&text[start..end], "signingkey") && values::is_digest(&text[value.range.clone()]) {
        return;
    }
    let (range, mask) = mask(text, start..end, name.group, form, &value);
    scan.hide(range, mask);
}

/// `Use the following password to go on:`, and the value alone on a line below. False when the line says more.
fn hide_told(scan: &mut Scan<'_>, start: usize, end: usize) -> bool {
    let text = scan.text;
    if text.get(end) != Some(&b' ') || !text[start..end].eq_ignore_ascii_case(b"password") {
        return false;
    }
    let near = &text[end..text.len().min(end + LONGEST_SENTENCE)];
    let line = &near[..memchr::memchr2(b'\n', b'\r', near).unwrap_or(near.len())];
    if !line.ends_with(b":") || line.iter().filter(|byte| **byte == b' ').count() < 3 {
        return false;
    }
    let gap = text[end + line.len()..].iter().take(8).take_while(|byte| byte.is_ascii_whitespace()).count();
    match end + line.len() + gap {
        at if at < text.len() => hide_line(scan, at),
        _ => scan.carry.wants_value = true,
    }
    true
}

/// A quick look at what follows a name, before the name is judged: most of them are words of a sentence or of code.
fn may_be_tied(text: &[u8], end: usize) -> bool {
    match text.get(end) {
        Some(b' ' | b'\t') => {
            let rest = &text[end + gap(text, end)..];
            // A value without a sign has digits, or is said to be one.
            let is_said = match rest.first() {
                Some(b'i') => rest.starts_with(b"is"),
                Some(b'f') => rest.starts_with(b"for "),
                Some(b'o') => rest.starts_with(b"of "),
                Some(b'g') => rest.starts_with(b"generated "),
                first => matches!(first, Some(b'=' | b':' | b'|' | b'?' | b'+' | b'"' | b'\'' | 0xe2)),
            };
            let is_typed = || memchr::memchr(b'=', &rest[..rest.len().min(24)]).is_some();
            let word = &rest[..rest.iter().take(32).take_while(|byte| !byte.is_ascii_whitespace()).count()];
            let is_mixed = || word.windows(2).any(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase());
            is_said || is_typed() || has_value_sign(word.iter()) || is_mixed()
        }
        Some(byte) => matches!(
            byte,
            b'=' | b':' | b'?' | b'+' | b'%' | b'|' | b',' | b'>' | b'"' | b'\'' | b'`' | b'\\' | b'&' | b']' | 0xe2
        ),
        None => false,
    }
}

fn has_value_sign<'a>(mut word: impl Iterator<Item = &'a u8>) -> bool {
    word.any(|byte| matches!(byte, b'0'..=b'9' | b'!' | b'@' | b'#'..=b'&' | b'*' | b'+' | b'=' | b'^' | b'~'))
}

/// Hides a line that is a value by itself.
pub(super) fn hide_line(scan: &mut Scan<'_>, from: usize) {
    let line = &scan.text[from..super::scan::line_end(scan.text, from)];
    let lead = line.len() - line.trim_ascii_start().len();
    let value = line.trim_ascii();
    if values::kind(value) == Kind::Random && !value.contains(&b' ') {
        scan.hide(from + lead..from + lead + value.len(), "[REDACTED_SECRET]");
    }
}

fn is_name_byte(byte: u8) -> bool {
    NAME_BYTES[usize::from(byte)]
}

/// Letters, digits, `_`, `-` and `.`: looked up, because every name is gone through byte by byte.
static NAME_BYTES: [bool; 256] = {
    let mut bytes = [false; 256];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = matches!(at as u8, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.');
        at += 1;
    }
    bytes
};

/// `API key`, `public key`: the word before belongs to the name.
fn judge_with_word_before(scan: &mut Scan<'_>, start: usize, end: usize) -> Option<Name> {
    let text = scan.text;
    if start > 1 && text[start - 1] == b' ' {
        let word = text[..start - 1].iter().rev().take(16).take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let is_key_or_token = [&b"key"[..], b"token"].iter().any(|known| text[start..end].eq_ignore_ascii_case(known));
        if word > 1 && is_key_or_token {
            let judged = scan.names.judge(text, start - 1 - word..end);
            return judged.filter(|name| name.group != Group::AnyKey);
        }
    }
    scan.names.judge(text, start..end)
}

/// Finds out how a name is tied to what follows, and where that begins.
fn tie(text: &[u8], first: usize, start: usize, end: usize) -> Option<(Form, usize)> {
    let closer = quote_at(text, end).map_or(0, |quote| quote.len());
    let mut at = end + closer;
    if text.get(at) == Some(&b']') {
        at += 1;
    }
    let gap = gap(text, at);
    let rest = &text[at + gap..];
    let is_capital = is_variable(&text[start..end]);
    let after = |length: usize| at + gap + length + self::gap(text, at + gap + length);
    let is_flag = first < start || (start > 0 && text[start - 1] == b'/' && rest.starts_with(b":"));
    match rest {
        [b'=', b'>', ..] | [b':', b'=', ..] | [b'?', b'=', ..] | [b'+', b'=', ..] | [b'=', b'=', ..] => {
            let signs = rest.iter().take(3).take_while(|byte| b"=>:?+".contains(byte)).count();
            Some((Form::Equals, after(signs)))
        }
        [b'=', next, ..] if is_capital && gap == 0 && !b" \t".contains(next) => Some((Form::Variable, after(1))),
        [b'=', ..] => Some((Form::Equals, after(1))),
        [b'%', b'3', b'D' | b'd', ..] => Some((Form::Equals, at + 3)),
        [b':', b':', ..] => None,
        [b':', ..] => Some((Form::Colon, after_type(text, after(1)))),
        [b'>', ..] if start > 0 && text[start - 1] == b'<' => Some((Form::Element, at + gap + 1)),
        [b',', ..] if closer > 0 => Some((Form::List, after(1))),
        [b'|', ..] if gap > 0 => Some((Form::Table, after(1))),
        [0xe2, 0x94, 0x82 | 0x83, ..] => Some((Form::Table, after(3))),
        _ if closer == 0 && gap > 0 => Some(beside(text, start, end, gap, is_flag)),
        _ => None,
    }
}

/// The form of a name with nothing but space after it.
fn beside(text: &[u8], start: usize, end: usize, gap: usize, is_flag: bool) -> (Form, usize) {
    const SETTERS: [&str; 12] = [
        "setenv",
        "setx",
        "set -x",
        "set -gx",
        "set -Ux",
        "set -g",
        "set -U",
        "ENV",
        "ARG",
        "config set",
        "configure set",
        "secret set",
    ];
    let line = line_before(text, start);
    let lead = line.trim_ascii_end();
    if is_flag {
        return (Form::Option, end + gap);
    }
    let may_be_set = lead.len() < line.len() && lead.last().is_some_and(|byte| b"vxgUVGt".contains(byte));
    if may_be_set && SETTERS.iter().any(|setter| lead.ends_with(setter.as_bytes())) {
        return (Form::Variable, end + gap);
    }
    if [&b" is"[..], b" for ", b" of ", b" gen"].iter().any(|word| text[end..].starts_with(word))
        && let Some(said) = SAID.find(&text[end..text.len().min(end + 160)])
    {
        return (Form::Said, end + said.end());
    }
    let typed = after_type(text, end + gap);
    if typed > end + gap {
        return (Form::Equals, typed);
    }
    let form = if lead.is_empty() { Form::Table } else { Form::Beside };
    (form, end + gap)
}

/// The line up to a place, as far as it matters.
fn line_before(text: &[u8], at: usize) -> &[u8] {
    let from = at.saturating_sub(64);
    let start = memchr::memrchr(b'\n', &text[from..at]).map_or(from, |newline| from + newline + 1);
    &text[start..at]
}

fn gap(text: &[u8], at: usize) -> usize {
    text[at.min(text.len())..].iter().take(WIDEST_GAP).take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// In capitals, as environment variables are.
fn is_variable(name: &[u8]) -> bool {
    name.iter().any(u8::is_ascii_uppercase) && !name.iter().any(u8::is_ascii_lowercase)
}

/// Steps over the type in `name: Type = "value"`.
fn after_type(text: &[u8], at: usize) -> usize {
    let near = &text[at..text.len().min(at + 48)];
    let is_type = |byte: &u8| {
        matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'&' | b'<' | b'>' | b'[' | b']' | b'\'' | b'_')
            || matches!(byte, b' ' | b':' | b'|' | b'?')
    };
    let length = near.iter().take_while(|byte| is_type(byte)).count();
    let is_assigned = length > 1 && near.get(length) == Some(&b'=') && near[length - 1] == b' ';
    let next = at + length + 1;
    match is_assigned && text.get(next + gap(text, next)).is_some_and(|byte| b"\"'`".contains(byte)) {
        true => next + gap(text, next),
        false => at,
    }
}

/// YAML's mark for a value on the lines below.
fn block_follows(text: &[u8], at: usize) -> bool {
    let near = &text[at.min(text.len())..text.len().min(at + 4)];
    let line = near.split(|byte| b"\r\n".contains(byte)).next().unwrap_or_default();
    matches!(line.trim_ascii_end(), [b'|' | b'>'] | [b'|' | b'>', b'-' | b'+']) && near.len() > line.len()
        || matches!(near, [b'|' | b'>'] | [b'|' | b'>', b'-' | b'+'])
}

/// The quote that stands at a place, in the spellings it has inside strings.
fn quote_at(text: &[u8], at: usize) -> Option<&[u8]> {
    const QUOTES: [&[u8]; 5] = [b"\\\"", b"\\'", b"&quot;", b"%22", b"\\\\\\\""];
    match text.get(at)? {
        b'"' | b'\'' | b'`' => Some(&text[at..=at]),
        b'\\' | b'&' | b'%' => QUOTES.into_iter().find(|quote| text[at..].starts_with(quote)),
        _ => None,
    }
}

fn value_at(text: &[u8], at: usize, form: Form, bare: &mut Run) -> Option<Value> {
    let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
    if form == Form::Element {
        let end = at + rest.iter().position(|byte| b"<\r\n".contains(byte)).unwrap_or(rest.len());
        return Some(Value { range: at..end, whole: at..end, is_quoted: true });
    }
    // Prefixes of strings, and the call that PowerShell wraps them in.
    const PREFIXES: [&[u8]; 9] =
        [b"b", b"r", b"f", b"u", b"@", b"$", b"L", b"ConvertTo-SecureString ", b"ConvertTo-SecureString -String "];
    let may_have_prefix = matches!(rest[0], b'b' | b'r' | b'f' | b'u' | b'@' | b'$' | b'L' | b'C');
    let prefixes = PREFIXES.iter().filter(|_| may_have_prefix);
    let prefix = prefixes.filter(|prefix| rest.starts_with(prefix) && quote_at(text, at + prefix.len()).is_some());
    let at_quote = at + prefix.map(|prefix| prefix.len()).max().unwrap_or(0);
    if let Some(quote) = quote_at(text, at_quote)
        && let Some(length) = until_quote(&text[at_quote + quote.len()..], quote)
    {
        let start = at_quote + quote.len();
        let range = start..start + length;
        return Some(Value { whole: at..range.end + quote.len(), range, is_quoted: true });
    }
    let start = at + quote_at(text, at).map_or(0, <[u8]>::len);
    let end = bare.end(start, || bare_length(&text[start..]));
    Some(Value { range: start..end, whole: at..end, is_quoted: false })
}

/// Bytes up to the same quote on this line.
fn until_quote(text: &[u8], quote: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let step = memchr::memchr3(quote[0], b'\n', b'\\', &text[at..])?;
        at += step;
        if text[at..].starts_with(quote) {
            return Some(at);
        }
        match text[at] {
            b'\n' => return None,
            b'\\' if quote.len() == 1 && quote[0] != b'\'' => at = (at + 2).min(text.len()),
            _ => at += 1,
        }
    }
}

/// Bytes of a value without quotes. Signs that part settings end it only where something follows that is one.
fn bare_length(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let next = text.get(at + 1);
        let ends = match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'|' | 0 => true,
            b'\\' => matches!(next, Some(b'n' | b'r' | b't' | b'"' | b'u' | b'\'') | None),
            b';' | b'&' | b',' => ends_here(&text[at + 1..]),
            b')' | b']' | b'}' => next.is_none_or(|next| b" \t\r\n,;)]}\"'".contains(next)),
            b'[' => text[at..].starts_with(b"[REDACTED"),
            _ => false,
        };
        if ends {
            break;
        }
        at += 1;
    }
    at
}

/// After a sign: a space, the end, another setting, or a word before a space, which is a command.
fn ends_here(rest: &[u8]) -> bool {
    let name = rest.iter().take(64).take_while(|&&byte| is_name_byte(byte)).count();
    match rest.get(name) {
        None => name == 0,
        Some(b'=' | b':') => true,
        Some(b' ') => true,
        Some(b'\t' | b'\r' | b'\n' | b'"' | b'\'' | b'&' | b'$') => name == 0,
        _ => false,
    }
}

/// `PWD=/srv/a%b`: shells keep the working directory under a name that others use for a password.
fn is_working_directory(name: &[u8], value: &[u8]) -> bool {
    matches!(name, b"PWD" | b"OLDPWD") && value.starts_with(b"/")
}

/// Weighs name, form and value.
fn hides(name: Name, form: Form, value: &Value, text: &[u8]) -> bool {
    let bytes = &text[value.range.clone()];
    // Few names hide words; what is random is found out at once.
    let hides_words = match name.group {
        Group::Password | Group::Secret => name.is_sure,
        _ => form == Form::Variable,
    };
    let looked = Looked::at(bytes);
    if !hides_words && !looked.is_random() {
        return false;
    }
    let has_digit = looked.has_digit() || bytes[looked.len()..].iter().any(u8::is_ascii_digit);
    let is_sign =
        |byte: &u8| matches!(byte, b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'?' | b'+' | b'=' | b'~');
    let has_sign = looked.has_sign() || bytes[looked.len()..].iter().any(is_sign);
    let has_space = memchr::memchr(b' ', &bytes[..bytes.len().min(256)]).is_some();
    match looked.kind() {
        Kind::Harmless => false,
        _ if has_space && !(form == Form::Option && value.is_quoted) => {
            value.is_quoted && name.group == Group::Password && bytes.split(|&b| b == b' ').any(values::is_very_random)
        }
        _ if form == Form::Table
            && !ends_line(text, value.whole.end)
            && text.get(value.whole.end + 1) != Some(&b'|') =>
        {
            false
        }
        Kind::Random => hides_random(name, form, bytes),
        Kind::Word if !name.is_sure => false,
        Kind::Word => match (name.group, form) {
            (_, Form::Said | Form::Beside | Form::List) => false,
            (Group::Password, Form::Variable | Form::Element) => true,
            (Group::Password, Form::Option) => value.is_quoted || has_digit || has_sign,
            (Group::Password, Form::Table) => (has_digit || has_sign) && ends_line(text, value.whole.end),
            (Group::Password, Form::Equals | Form::Colon) => (has_digit || has_sign) && bytes.len() >= 6,
            (Group::Secret, Form::Variable) => bytes.len() >= 8 && (has_digit || has_sign || is_one_word(bytes)),
            (Group::Secret, Form::Option | Form::Equals | Form::Colon) => bytes.len() >= 8 && has_sign,
            (Group::Token | Group::Key | Group::AnyKey, Form::Variable) => bytes.len() >= 16 && is_one_word(bytes),
            _ => false,
        },
    }
}

fn hides_random(name: Name, form: Form, bytes: &[u8]) -> bool {
    let is_encoded = |byte: &u8| byte.is_ascii_alphanumeric() || b"_+/=.%-".contains(byte);
    if name.group == Group::Perhaps && !bytes.iter().all(is_encoded) {
        return false;
    }
    if !name.is_sure {
        return form == Form::Variable && values::is_very_random(bytes);
    }
    match (name.group, form) {
        (Group::Perhaps, Form::Variable) => values::is_very_random(bytes) && !values::is_digest(bytes),
        (Group::Perhaps, Form::Equals) => {
            bytes.len() >= 20 && values::is_very_random(bytes) && !values::is_digest(bytes)
        }
        (Group::Perhaps, _) => false,
        (Group::Secret, Form::Beside) => false,
        (Group::AnyKey, Form::Variable) => true,
        (Group::AnyKey, Form::Beside | Form::Said) => false,
        (Group::AnyKey, _) => bytes.len() >= 20 && values::is_very_random(bytes) && !values::is_digest(bytes),
        (_, Form::Beside) => values::is_very_random(bytes) && !values::is_digest(bytes),
        _ => true,
    }
}

fn is_one_word(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_alphanumeric)
}

fn ends_line(text: &[u8], at: usize) -> bool {
    let rest = &text[at.min(text.len())..];
    let gap = rest.iter().take(WIDEST_GAP).take_while(|byte| b" \t\r".contains(byte)).count();
    matches!(rest.get(gap), None | Some(b'\n'))
}

/// What is replaced, and by what. The first patterns of all have texts of their own, which callers know.
fn mask(text: &[u8], name: Range<usize>, group: Group, form: Form, value: &Value) -> (Range<usize>, &'static str) {
    let name_text = &text[name.clone()];
    let has = |word: &str| {
        let word = word.as_bytes();
        name_text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
    };
    if form == Form::Variable {
        let lead = line_before(text, name.start);
        let spaces = lead.len() - lead.trim_ascii_end().len();
        if spaces > 0 && lead.trim_ascii_end().ends_with(b"export") && (has("TOKEN") || has("KEY")) {
            let shown = if has("TOKEN") { "export TOKEN=[REDACTED]" } else { "export KEY=[REDACTED]" };
            return (name.start - spaces - b"export".len()..value.whole.end, shown);
        }
        if name_text == b"ANTHROPIC_API_KEY" || name_text == b"OPENAI_API_KEY" {
            return (value.whole.clone(), "[REDACTED]");
        }
    }
    let shown = match group {
        Group::Password => "[REDACTED_PASSWORD]",
        _ if has("aws") => "[REDACTED_AWS_KEY]",
        Group::Key if has("private") => "[REDACTED_PRIVATE_KEY]",
        _ => "[REDACTED_SECRET]",
    };
    (value.range.clone(), shown)
}
