//! What stands in the place of a value: something harmless, a word, or something that nobody would remember.
//!
//! Knows nothing of names and places. A value is judged by its first bytes; a secret shows itself early.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::words::Words;

/// Bytes of a value that are looked at.
const LOOKED_AT: usize = 96;
/// Shorter values are never random: too many words and versions are as short.
const SHORTEST_RANDOM: usize = 8;
/// Shorter values are random only with some doubt.
const SHORTEST_VERY_RANDOM: usize = 16;

/// So many of the same letters are no token.
const FILLED_IN: usize = 12;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Empty, a number, a path, a reference, a placeholder, a mask, code.
    Harmless,
    /// A word or several.
    Word,
    /// Letters and digits without a plan.
    Random,
}

/// Words that say what belongs here instead of being it.
static WORDS: Words = Words::new(&[
    "null",
    "none",
    "nil",
    "true",
    "false",
    "yes",
    "no",
    "on",
    "off",
    "undefined",
    "unset",
    "empty",
    "string",
    "str",
    "text",
    "password",
    "passwd",
    "secret",
    "token",
    "key",
    "apikey",
    "api_key",
    "api-key",
    "changeme",
    "change_me",
    "change-me",
    "todo",
    "fixme",
    "required",
    "optional",
    "redacted",
    "hidden",
    "masked",
    "n/a",
    "value",
    "example",
    "test",
    "dummy",
    "foo",
    "bar",
    "default",
    "auto",
    "bytes",
    "object",
    "number",
    "boolean",
    "any",
    "self",
    "env",
    "ask",
    "prompt",
    "stdin",
    "file",
    "inherit",
    "disabled",
    "enabled",
    "basic",
    "bearer",
]);

/// Beginnings that name a place where the secret is kept.
const REFERENCES: [&str; 17] = [
    "op://",
    "vault:",
    "arn:",
    "ssm:",
    "secretsmanager:",
    "env:",
    "file:",
    "keyring:",
    "kms:",
    "gcpkms:",
    "sha1:",
    "sha256:",
    "sha512:",
    "sha256-",
    "sha384-",
    "sha512-",
    "md5:",
];

/// Parts of placeholders.
const PLACEHOLDERS: [&str; 16] = [
    "your",
    "changeme",
    "change-me",
    "change_me",
    "placeholder",
    "replace",
    "insert",
    "example",
    "redacted",
    "dummy",
    "sample",
    "xxxx",
    "****",
    "...",
    "\u{2026}",
    "goes-here",
];

/// Looks for all placeholders at once.
static PLACEHOLDER: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::builder().ascii_case_insensitive(true).build(PLACEHOLDERS).expect("a test builds it")
});

/// Judges a value.
pub(super) fn kind(value: &[u8]) -> Kind {
    Looked::at(value).kind()
}

/// Letters and digits without a plan: more changes between kinds of characters than words and versions have.
pub(super) fn is_random(value: &[u8]) -> bool {
    value.len() >= SHORTEST_RANDOM && Looked::at(value).is_random()
}

/// Long, and random beyond doubt.
pub(super) fn is_very_random(value: &[u8]) -> bool {
    value.len() >= SHORTEST_VERY_RANDOM && Looked::at(value).is_very_random()
}

/// A value whose characters were counted: once, for all that is asked about it.
pub(super) struct Looked<'a> {
    value: &'a [u8],
    counted: Changes,
}

impl<'a> Looked<'a> {
    /// Counts the characters of a value.
    pub(super) fn at(value: &'a [u8]) -> Self {
        let value = &value[..value.len().min(LOOKED_AT)];
        Self { value, counted: Changes::of(value) }
    }

    /// What it is.
    pub(super) fn kind(&self) -> Kind {
        match self.is_harmless() {
            true => Kind::Harmless,
            false if self.is_random() => Kind::Random,
            false => Kind::Word,
        }
    }

    /// Letters and digits without a plan.
    pub(super) fn is_random(&self) -> bool {
        let counted = &self.counted;
        if self.value.len() < SHORTEST_RANDOM {
            return false;
        }
        if counted.digits > 0 && counted.letters > 0 {
            return counted.changes >= 3;
        }
        // Without digits: many short stretches, more than names in camel case have.
        counted.letters >= 12 && counted.uppers > 0 && counted.lowers > 0 && counted.stretches * 3 >= self.value.len()
    }

    /// Long, and random beyond doubt.
    pub(super) fn is_very_random(&self) -> bool {
        self.value.len() >= SHORTEST_VERY_RANDOM && self.is_random() && self.counted.changes >= 5
    }

    /// Bytes that were looked at.
    pub(super) fn len(&self) -> usize {
        self.value.len()
    }

    /// One of the bytes that were looked at is a digit.
    pub(super) fn has_digit(&self) -> bool {
        self.counted.digits > 0
    }

    /// One of them is a sign that words do not have.
    pub(super) fn has_sign(&self) -> bool {
        self.counted.present & HAS_SIGN != 0
    }

    fn is_harmless(&self) -> bool {
        let value = self.value;
        let Some(&first) = value.first() else { return true };
        if value.starts_with(b"[REDACTED") || has_few_characters(value) || is_number(value) {
            return true;
        }
        // What a value must have to be one of these; most values do not.
        let has = |set: u64| self.counted.present & set != 0;
        if has(HAS_COLON | HAS_DASH)
            && (REFERENCES.iter().any(|start| starts_with(value, start.as_bytes())) || contains(value, b"://"))
        {
            return true;
        }
        let may_be_code = has(HAS_DOT | HAS_COLON | HAS_DASH | HAS_UNDERSCORE | HAS_OPENER);
        if is_reference(value, first) || has(HAS_SLASH | HAS_DOT) && is_path(value) || may_be_code && is_code(value) {
            return true;
        }
        if value.starts_with(b"****") || value.starts_with(b"....") {
            return true;
        }
        if WORDS.has(value.strip_suffix(b";").unwrap_or(value)) {
            return true;
        }
        let may_hold = || PLACEHOLDER_SETS.iter().any(|set| self.counted.present & set == *set);
        let is_elided = || contains(value, b"...") || contains(value, "\u{2026}".as_bytes());
        (value.len() < 24 && has(HAS_DOT | HAS_WIDE) && is_elided())
            || (!self.is_very_random() && may_hold() && PLACEHOLDER.is_match(value))
    }
}

/// A token of a document: it ends with one sign again and again, where a token has anything but that.
pub(super) fn is_filled_in(token: &[u8]) -> bool {
    let Some((end, &[.., last])) = token.last_chunk::<FILLED_IN>().map(|end| (end, end)) else { return false };
    matches!(last, b'x' | b'X' | b'*') && end.iter().all(|byte| *byte == last)
}

/// Hexadecimal digits only, or a UUID: what digests and ids are.
pub(super) fn is_digest(value: &[u8]) -> bool {
    let is_hex =
        value.iter().all(u8::is_ascii_hexdigit) && matches!(value.len(), 7..=16 | 32 | 40 | 56 | 64 | 96 | 128);
    let is_uuid = value.len() == 36 && value.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    is_hex || is_uuid
}

struct Changes {
    present: u64,
    changes: usize,
    stretches: usize,
    digits: usize,
    letters: usize,
    uppers: usize,
    lowers: usize,
}

/// What a value has, as a set: a bit for each letter, and these for other characters.
const HAS_SIGN: u64 = 1 << 32;
const HAS_SLASH: u64 = 1 << 33;
const HAS_DOT: u64 = 1 << 34;
const HAS_COLON: u64 = 1 << 35;
const HAS_DASH: u64 = 1 << 36;
const HAS_UNDERSCORE: u64 = 1 << 37;
const HAS_OPENER: u64 = 1 << 38;
const HAS_STAR: u64 = 1 << 39;
const HAS_WIDE: u64 = 1 << 40;

/// What each byte adds to the set.
static PRESENT: [u64; 256] = {
    let mut present = [0; 256];
    let mut byte = 0;
    while byte < present.len() {
        present[byte] = match byte as u8 {
            letter @ (b'a'..=b'z' | b'A'..=b'Z') => 1 << (letter & 31),
            b'*' => HAS_SIGN | HAS_STAR,
            b'!' => HAS_SIGN | HAS_OPENER,
            b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'?' | b'+' | b'=' | b'~' => HAS_SIGN,
            b'/' | b'\\' => HAS_SLASH,
            b'.' => HAS_DOT,
            b':' => HAS_COLON,
            b'-' => HAS_DASH,
            b'_' => HAS_UNDERSCORE,
            b'(' | b'<' | b'[' => HAS_OPENER,
            0x80.. => HAS_WIDE,
            _ => 0,
        };
        byte += 1;
    }
    present
};

/// What each placeholder has.
static PLACEHOLDER_SETS: [u64; PLACEHOLDERS.len()] = {
    let mut sets = [0; PLACEHOLDERS.len()];
    let mut at = 0;
    while at < sets.len() {
        let bytes = PLACEHOLDERS[at].as_bytes();
        let mut byte = 0;
        while byte < bytes.len() {
            sets[at] |= PRESENT[bytes[byte] as usize];
            byte += 1;
        }
        at += 1;
    }
    sets
};

/// Kinds of characters.
const LOWER: u8 = 0;
const UPPER: u8 = 1;
const DIGIT: u8 = 2;
const SIGN: u8 = 3;
const SEPARATOR: u8 = 4;

/// The kind of each byte.
static CLASSES: [u8; 256] = {
    let mut classes = [SIGN; 256];
    let mut byte = 0;
    while byte < classes.len() {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            b'0'..=b'9' => DIGIT,
            b'-' | b'_' | b'.' | b'/' | b':' | b' ' | b',' => SEPARATOR,
            _ => SIGN,
        };
        byte += 1;
    }
    classes
};

impl Changes {
    fn of(value: &[u8]) -> Self {
        let (mut counts, mut present) = ([0; 5], 0);
        let (mut changes, mut stretches, mut before, mut run) = (0, 0, SEPARATOR, 0);
        for &byte in value {
            let class = CLASSES[usize::from(byte)];
            counts[usize::from(class)] += 1;
            present |= PRESENT[usize::from(byte)];
            if class == before {
                run += 1;
                continue;
            }
            // One capital letter belongs to the word that it begins.
            let begins_word = before == UPPER && class == LOWER && run == 1;
            stretches += usize::from(!begins_word);
            changes += usize::from(!begins_word && class != SEPARATOR && before != SEPARATOR);
            (before, run) = (class, 1);
        }
        let [lowers, uppers, digits, ..] = counts;
        Self { present, changes, stretches, digits, letters: uppers + lowers, uppers, lowers }
    }
}

fn starts_with(value: &[u8], start: &[u8]) -> bool {
    value.len() >= start.len() && value[..start.len()].eq_ignore_ascii_case(start)
}

/// Stars, dots, `xxxx-xxxx`: at most two different characters.
fn has_few_characters(value: &[u8]) -> bool {
    let first = value[0];
    let other = value.iter().find(|&&byte| byte != first);
    other.is_none_or(|&other| value.iter().all(|&byte| byte == first || byte == other))
}

/// A number, a version, a time.
fn is_number(value: &[u8]) -> bool {
    if !matches!(value[0], b'0'..=b'9' | b'+' | b'-' | b'.') {
        return false;
    }
    let is_part = |byte: &u8| {
        matches!(byte, b'0'..=b'9' | b'.' | b',' | b':' | b'+' | b'-' | b'_' | b'/' | b'%' | b' ' | b'T' | b'Z')
    };
    let has_unit = |unit: &&[u8]| value.ends_with(unit);
    let units: [&[u8]; 12] = [b"ms", b"s", b"m", b"h", b"d", b"k", b"K", b"M", b"kB", b"KB", b"MB", b"GB"];
    let unit = units.iter().filter(|unit| has_unit(unit)).map(|unit| unit.len()).max().unwrap_or(0);
    let number = &value[..value.len() - unit];
    let hex = number.strip_prefix(b"0x").or(number.strip_prefix(b"0X")).unwrap_or_default();
    let is_hex = (1..=16).contains(&hex.len()) && hex.iter().all(u8::is_ascii_hexdigit);
    is_hex
        || value[0] != b'/'
            && value.iter().any(u8::is_ascii_digit)
            && (value.iter().all(is_part) || number.iter().all(is_part))
}

/// Something that stands for a value: a variable, a template, an argument's name in brackets.
fn is_reference(value: &[u8], first: u8) -> bool {
    let rest = &value[1..];
    let is_name = |text: &[u8]| !text.is_empty() && text.iter().all(|&byte| is_name_byte(byte));
    let closes_with = |closer: u8| value.len() > 1 && value.last() == Some(&closer);
    match first {
        b'$' => rest.is_empty() || rest.starts_with(b"{") || rest.starts_with(b"(") || is_variable(rest),
        b'%' => closes_with(b'%') && is_name(&value[1..value.len() - 1]),
        b'<' => closes_with(b'>') || !is_random(value),
        b'{' => closes_with(b'}') || rest.starts_with(b"{") || !is_random(value),
        b'[' => closes_with(b']') || !is_random(value),
        b'(' | b'&' | b'*' | b'@' | b'!' | b'|' | b'\\' | b'#' => !is_random(rest),
        _ => false,
    }
}

/// `NAME` after a dollar sign, with what a shell lets follow it.
fn is_variable(rest: &[u8]) -> bool {
    let end = rest.iter().position(|&byte| !is_name_byte(byte)).unwrap_or(rest.len());
    let name = &rest[..end];
    let is_plain = name.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_') && !is_random(name);
    is_plain && (end == rest.len() || b":.[/-\"'@;,)".contains(&rest[end]))
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// A path, no part of which is random.
fn is_path(value: &[u8]) -> bool {
    let starts = [&b"/"[..], b"./", b"../", b"~/", b"\\\\"];
    let has_drive = value.len() > 2 && value[0].is_ascii_alphabetic() && value[1] == b':' && b"\\/".contains(&value[2]);
    let begins = has_drive || starts.iter().any(|start| value.starts_with(start));
    let parts = || value.split(|byte| b"/\\".contains(byte));
    let is_plain = |part: &[u8]| part.len() < 20 || !is_random(part);
    if begins {
        // Base64 has slashes too, but its parts are no words.
        return parts().all(is_plain) && !value.iter().any(|byte| b"+=".contains(byte));
    }
    value.contains(&b'/') && parts().all(|part| !is_random(part) && !part.iter().any(|byte| b"+=".contains(byte)))
        || has_extension(value)
}

fn has_extension(value: &[u8]) -> bool {
    const EXTENSIONS: [&str; 20] = [
        "pem", "key", "crt", "cer", "pub", "txt", "json", "yaml", "yml", "toml", "env", "ini", "conf", "p12", "pfx",
        "jks", "asc", "gpg", "log", "sh",
    ];
    let Some(dot) = value.iter().rposition(|&byte| byte == b'.') else { return false };
    let (stem, extension) = (&value[..dot], &value[dot + 1..]);
    !is_random(stem) && EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known.as_bytes()))
}

/// A call, a member, a type: `os.getenv("X")`, `config.password`, `Option<String>`.
fn is_code(value: &[u8]) -> bool {
    let is_start = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    if !is_start(value[0]) {
        return false;
    }
    let end = value.iter().position(|&byte| !is_name_byte(byte) && byte != b'.' && byte != b':').unwrap_or(value.len());
    let (head, rest) = value.split_at(end);
    let parts = || head.split(|byte| b".:".contains(byte)).filter(|part| !part.is_empty());
    let is_plain = parts().all(|part| is_start(part[0]) && !is_random(part));
    match rest.first() {
        Some(b'(' | b'<' | b'[') => is_plain,
        Some(b'!') if rest.len() > 1 && b"([{".contains(&rest[1]) => is_plain,
        Some(b'-') if rest.starts_with(b"->") => is_plain,
        None if parts().count() > 1 => {
            is_plain && parts().any(|part| part.len() > 2 && part.iter().all(u8::is_ascii_alphabetic))
        }
        // The name of a constant.
        None => head.contains(&b'_') && head.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_'),
        _ => false,
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    // Values are short: to prepare a search would take longer.
    memchr::memchr_iter(part[0], text).any(|at| text[at..].starts_with(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_apart() {
        let random = ["a1B2c3D4e5F6", "83Gg-Ex7Arsk", "e28IWu0ioXkU/1Va", "AbQxLmPzRtYuIoKj", "5f2a9c0b7d1e"];
        let words = ["hunter2", "Summer2024!", "my-db-password", "getUserAccessTokenFromEnv", "us-east-1"];
        let harmless = [
            "",
            "512",
            "1.2.3",
            "2024-01-15T10:30:00Z",
            "30s",
            "$TOKEN",
            "${TOKEN}",
            "$(cat x)",
            "%TOKEN%",
            "<token>",
            "{{ token }}",
            "xxxxxxxx",
            "********",
            "/etc/ssl/server.key",
            "./x",
            "~/.ssh/id",
            "server.pem",
            "null",
            "your-api-key",
            "YOUR_TOKEN_HERE",
            "process.env.TOKEN",
            "os.getenv(\"X\")",
            "&str,",
            "Option<String>",
            "[REDACTED_X]",
            "https://a.example/x",
            "sha256:0f1e2d3c4b5a",
            "op://vault/item",
            "abcd...wxyz",
            "config.key",
        ];
        for (values, expected) in
            [(&random[..], Kind::Random), (&words[..], Kind::Word), (&harmless[..], Kind::Harmless)]
        {
            for value in values {
                assert_eq!(kind(value.as_bytes()), expected, "{value}");
            }
        }
    }
}
