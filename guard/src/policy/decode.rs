//! Texts that are spelled in another way: escapes, base64, hexadecimal, reversed, translated; and what a simple command
//! prints, where its arguments tell.
//!
//! Pure functions on text. A text that cannot be known is `None`, never a guess.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::words::PACKED;

/// Takes base64 with and without its padding.
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
/// The longest pattern that is compared.
const LONGEST_PATTERN: usize = 256;

/// The text between `$'` and `'`.
pub(super) fn ansi_c(text: &str) -> String {
    escapes(text, Escapes::AnsiC)
}

/// Which digits an octal escape may have before it.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Escapes {
    /// `$'…'` and the format of `printf`.
    AnsiC,
    /// `echo -e` and `%b`.
    Echo,
}

/// Resolves backslash escapes.
pub(super) fn escapes(text: &str, kind: Escapes) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        let Some(c) = rest.chars().next() else {
            bytes.push(b'\\');
            break;
        };
        rest = &rest[c.len_utf8()..];
        let mut number = |digits: usize, radix: u32| {
            let count = rest.chars().take(digits).take_while(|c| c.is_digit(radix)).count();
            let value = u32::from_str_radix(&rest[..count], radix).ok();
            rest = &rest[count..];
            value
        };
        match c {
            'n' => bytes.push(b'\n'),
            't' => bytes.push(b'\t'),
            'r' => bytes.push(b'\r'),
            'a' | 'b' | 'e' | 'E' | 'f' | 'v' => bytes.push(b' '),
            'x' => bytes.extend(number(2, 16).map(|value| value as u8)),
            'u' | 'U' => {
                let value = number(if c == 'u' { 4 } else { 8 }, 16).and_then(char::from_u32);
                value.into_iter().for_each(|c| bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()));
            }
            '0'..='7' => {
                let first = c.to_digit(8).unwrap_or(0);
                let digits = if kind == Escapes::Echo && c == '0' { 3 } else { 2 };
                let count = rest.chars().take(digits).take_while(|c| c.is_digit(8)).count();
                let value = rest[..count].chars().fold(first, |sum, c| sum * 8 + c.to_digit(8).unwrap_or(0));
                rest = &rest[count..];
                bytes.push(value as u8);
            }
            '\\' | '\'' | '"' | '?' => bytes.push(c as u8),
            'c' if kind == Escapes::Echo => return String::from_utf8_lossy(&bytes).into_owned(),
            other => {
                bytes.push(b'\\');
                bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Shell patterns: `*`, `?`, `[…]`. Cost is the product of both lengths, which are bounded.
pub(super) fn glob_matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    if pattern.len() > LONGEST_PATTERN || text.len() > 4 * LONGEST_PATTERN {
        return false;
    }
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
                continue;
            }
            Some('?') => Some(1),
            Some('[') => class_matches(&pattern[p..], text[t]),
            Some('\\') if pattern.get(p + 1) == Some(&text[t]) => Some(2),
            Some(c) if *c == text[t] => Some(1),
            _ => None,
        };
        match (step, star) {
            (Some(step), _) => {
                p += step;
                t += 1;
            }
            (None, Some((at, from))) => {
                p = at + 1;
                t = from + 1;
                star = Some((at, from + 1));
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// The length of the class that begins here, if the character is in it.
fn class_matches(pattern: &[char], c: char) -> Option<usize> {
    let end = pattern.iter().skip(2).position(|c| *c == ']')? + 2;
    let negated = matches!(pattern[1], '!' | '^');
    let set = &pattern[1 + usize::from(negated)..end];
    let mut found = set.starts_with(&['[', ':']);
    let mut at = 0;
    while at < set.len() {
        if at + 2 < set.len() && set[at + 1] == '-' {
            found |= (set[at]..=set[at + 2]).contains(&c);
            at += 3;
        } else {
            found |= set[at] == c;
            at += 1;
        }
    }
    (found != negated).then_some(end + 1)
}

/// The bytes behind base64, as text.
pub(super) fn base64(text: &str) -> Option<String> {
    let bytes = base64_bytes(text)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn base64_bytes(text: &str) -> Option<Vec<u8>> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let alphabet = if compact.contains(['-', '_']) { alphabet::URL_SAFE } else { alphabet::STANDARD };
    GeneralPurpose::new(&alphabet, LENIENT).decode(compact).ok()
}

/// What PowerShell's `-EncodedCommand` holds: base64 of UTF-16.
pub(super) fn utf16_base64(text: &str) -> Option<String> {
    let bytes = base64_bytes(text.trim())?;
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    Some(String::from_utf16_lossy(&units))
}

/// The bytes behind base32, as text.
fn base32(text: &str) -> Option<String> {
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for c in text.chars().filter(|c| !c.is_whitespace() && *c != '=') {
        let value = match c {
            'A'..='Z' => c as u32 - 'A' as u32,
            '2'..='7' => c as u32 - '2' as u32 + 26,
            _ => return None,
        };
        bits = (bits << 5 | value) & 0xfff;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The bytes behind pairs of hexadecimal digits, as text.
pub(super) fn hex(text: &str) -> Option<String> {
    let digits: Vec<u32> = text.replace("0x", "").replace("\\x", "").chars().filter_map(|c| c.to_digit(16)).collect();
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect();
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// What a filter or a printing command prints; `None` when that is unknown.
pub(super) fn output(name: &str, arguments: &[String], input: Option<&str>) -> Option<String> {
    let has = |names: &[&str]| arguments.iter().any(|argument| names.contains(&argument.as_str()));
    let operands = || arguments.iter().filter(|argument| !argument.starts_with('-') || argument.len() == 1);
    match name {
        "echo" | "print" | "write-output" | "write-host" => Some(echo(arguments)),
        "printf" => printf(arguments),
        "cat" | "tee" | "sort" | "uniq" | "head" | "tail" | "less" | "more" | "pv" | "nl" | "stdbuf" | "unbuffer" => {
            input.map(str::to_owned)
        }
        "yes" => Some(operands().cloned().collect::<Vec<_>>().join(" ") + "\n"),
        "ls" if operands().next().is_some() => Some(operands().cloned().collect::<Vec<_>>().join("\n")),
        "tac" => input.map(|text| text.lines().rev().collect::<Vec<_>>().join("\n")),
        "rev" => {
            input.map(|text| text.lines().map(|line| line.chars().rev().collect()).collect::<Vec<String>>().join("\n"))
        }
        "base64" | "gbase64" | "basenc" if decodes(arguments) => base64(input?),
        "base32" if decodes(arguments) => base32(input?),
        "openssl" if has(&["-d"]) && has(&["base64", "enc", "-base64", "-a"]) => base64(input?),
        "xxd" if arguments.iter().any(|argument| argument.starts_with("-r") || argument.ends_with('r')) => hex(input?),
        "tr" => tr(arguments, input?),
        "sed" => sed(operands().next()?, input?),
        "gunzip" | "zcat" | "bzcat" | "xzcat" | "zstdcat" | "bunzip2" | "unxz" | "unzstd" => unpacked(input?),
        "gzip" | "bzip2" | "xz" | "zstd" | "pigz" | "lzma" | "brotli" if decodes(arguments) => unpacked(input?),
        "cut" | "awk" | "grep" | "egrep" | "perl" | "python" | "python3" | "fold" | "fmt" | "column" | "paste"
        | "xxd" | "base64" | "od" | "jq" => None,
        "which" | "type" | "whereis" => operands().next().cloned(),
        "basename" => operands().next().map(|path| path.rsplit('/').next().unwrap_or("").to_owned()),
        "dirname" => operands().next().map(|path| match path.rsplit_once('/') {
            Some(("", _)) => "/".to_owned(),
            Some((folder, _)) => folder.to_owned(),
            None => ".".to_owned(),
        }),
        "readlink" | "realpath" => operands().next().cloned(),
        "seq" | "true" | ":" | "false" | "sleep" | "cd" | "set" | "export" | "shopt" | "unset" => Some(String::new()),
        _ => None,
    }
}

/// A packed text of the line; its content is unknown here.
fn unpacked(text: &str) -> Option<String> {
    (!text.trim().is_empty()).then(|| PACKED.to_string())
}

/// A decoder that is asked to decode, and not to encode.
fn decodes(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| {
        let short = argument.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        short.is_some_and(|letters| letters.contains(['d', 'D'])) || argument.starts_with("--d")
    })
}

fn echo(arguments: &[String]) -> String {
    let is_option = |argument: &&String| {
        argument.strip_prefix('-').is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| "neE".contains(c)))
    };
    let options = arguments.iter().take_while(is_option).count();
    let text = arguments[options..].join(" ");
    let interprets = arguments[..options].iter().any(|option| option.contains('e'));
    let text = if interprets { escapes(&text, Escapes::Echo) } else { text };
    format!("{text}\n")
}

fn printf(arguments: &[String]) -> Option<String> {
    let arguments = arguments.strip_prefix(&["--".to_owned()]).unwrap_or(arguments);
    let (format, mut values) = arguments.split_first()?;
    if format == "-v" {
        return Some(String::new());
    }
    let format = escapes(format, Escapes::AnsiC);
    let mut out = String::new();
    for _ in 0..64 {
        let before = values.len();
        values = printf_once(&format, values, &mut out);
        if values.is_empty() || values.len() == before {
            break;
        }
    }
    Some(out)
}

fn printf_once<'a>(format: &str, mut values: &'a [String], out: &mut String) -> &'a [String] {
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let kind = chars.find(|c| !matches!(c, '0'..='9' | '-' | '.' | '+' | ' ' | '#'));
        let value = match kind {
            Some('%') | None => {
                out.push('%');
                continue;
            }
            Some(_) => values.split_first().map(|(value, rest)| {
                values = rest;
                value.as_str()
            }),
        };
        match kind {
            Some('b') => out.push_str(&escapes(value.unwrap_or(""), Escapes::Echo)),
            _ => out.push_str(value.unwrap_or("")),
        }
    }
    values
}

/// `tr SET SET` and `tr -d SET`.
fn tr(arguments: &[String], input: &str) -> Option<String> {
    let deletes = arguments.first().is_some_and(|argument| argument.starts_with('-') && argument.contains('d'));
    let mut sets = arguments.iter().filter(|argument| !argument.starts_with('-')).map(|set| char_set(set));
    let from = sets.next()?;
    if deletes {
        return Some(input.chars().filter(|c| !from.contains(c)).collect());
    }
    let to = sets.next()?;
    let last = *to.last()?;
    let swap = |c: char| from.iter().position(|from| *from == c).map_or(c, |at| to.get(at).copied().unwrap_or(last));
    Some(input.chars().map(swap).collect())
}

fn char_set(set: &str) -> Vec<char> {
    let set = match set {
        "[:upper:]" => "A-Z",
        "[:lower:]" => "a-z",
        other => other,
    };
    let chars: Vec<char> = escapes(set, Escapes::AnsiC).chars().take(LONGEST_PATTERN).collect();
    let (mut all, mut at) = (Vec::new(), 0);
    while at < chars.len() {
        if at + 2 < chars.len() && chars[at + 1] == '-' {
            all.extend((chars[at]..=chars[at + 2]).take(LONGEST_PATTERN));
            at += 3;
        } else {
            all.push(chars[at]);
            at += 1;
        }
    }
    all
}

/// `s/text/other/`, as plain text; anything else passes the input on.
fn sed(script: &str, input: &str) -> Option<String> {
    let Some(rest) = script.strip_prefix('s') else { return Some(input.to_owned()) };
    let separator = rest.chars().next()?;
    // An escaped separator is a character like any other.
    let body = rest[separator.len_utf8()..].replace(&format!("\\{separator}"), "\u{f8ff}");
    let parts: Vec<String> =
        body.split(separator).map(|part| part.replace('\u{f8ff}', &separator.to_string())).collect();
    let [from, to, flags] = parts.as_slice() else { return Some(input.to_owned()) };
    Some(match flags.contains('g') {
        _ if from.is_empty() => input.to_owned(),
        true => input.replace(from, to),
        false => input.lines().map(|line| line.replacen(from, to, 1)).collect::<Vec<_>>().join("\n"),
    })
}
