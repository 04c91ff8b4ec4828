//! Secrets known by the place where they stand: passwords in URLs, credentials in headers and cookies, options.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::names::Group;
use super::scan::{Scan, starts_word};
use super::values::{self, Kind};
use super::words::Words;

/// Longest user and password in a URL, in bytes.
const LONGEST_LOGIN: usize = 512;
/// Longest line of cookies that is looked at, in bytes.
const LONGEST_COOKIES: usize = 8 << 10;

const PASSWORD: &str = "[REDACTED_PASSWORD]";

/// `AKIA… date secret`: the secret of a cloud's key, a few words after its id.
pub(super) fn find_aws_secret(scan: &mut Scan<'_>, hit: Range<usize>) {
    const ID: usize = 20;
    const SECRET: usize = 40;
    const MOST_WORDS: usize = 12;
    let text = scan.text;
    let is_id = |word: &[u8]| {
        matches!(word, [b'A', b'K' | b'S', b'I', b'A', rest @ ..]
            if rest.len() + 4 == ID && rest.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()))
    };
    let is_gap = |byte: &&u8| byte.is_ascii_whitespace() || b",:;|\"'".contains(byte);
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"/+_.-".contains(byte);
    let mut at = hit.start + ID;
    if !text.get(hit.start..at).is_some_and(is_id) {
        return;
    }
    for _ in 0..MOST_WORDS {
        let gap = text[at..].iter().take(32).take_while(is_gap).count();
        let word = &text[at + gap..];
        let word = &word[..word.iter().take(SECRET + 1).take_while(is_part).count()];
        if gap == 0 || word.is_empty() || word.len() > SECRET || is_id(word) {
            return;
        }
        at += gap + word.len();
        let is_end = text.get(at).as_ref().is_none_or(is_gap);
        if word.len() == SECRET && is_end && !word.iter().any(|byte| b"_.-".contains(byte)) {
            if !values::is_filled_in(word) {
                scan.hide(at - SECRET..at, scan.mask());
            }
            return;
        }
    }
}

/// `scheme://user:password@host`, at the colon.
pub(super) fn find_url(scan: &mut Scan<'_>, hit: Range<usize>) {
    let text = scan.text;
    let is_scheme = hit.start > 1 && text[hit.start - 1].is_ascii_alphanumeric();
    let near = &text[hit.end..text.len().min(hit.end + LONGEST_LOGIN)];
    // Most URLs have no sign of a login at all.
    if !is_scheme || memchr::memchr(b'@', near).is_none() {
        return;
    }
    let ends_word = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\');
    let word = scan.words.end(hit.end, || text[hit.end..].iter().take_while(|byte| !ends_word(byte)).count());
    let word = &near[..near.len().min(word - hit.end)];
    if memchr::memchr(b'@', word).is_none() {
        return;
    }
    let authority = &word[..word.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(word.len())];
    if let Some(at) = memchr::memrchr(b'@', authority) {
        return hide_login(scan, hit.end, &authority[..at]);
    }
    // A password with a slash in it; a port is none.
    let Some(colon) = memchr::memchr(b':', authority) else { return };
    let Some(at) = memchr::memchr(b'@', &word[colon..]) else { return };
    let password = &word[colon + 1..colon + at];
    let is_port = authority[colon + 1..].iter().all(u8::is_ascii_digit);
    if !is_port && values::is_random(password) {
        scan.hide(hit.end + colon + 1..hit.end + colon + at, PASSWORD);
    }
}

fn hide_login(scan: &mut Scan<'_>, from: usize, login: &[u8]) {
    match memchr::memchr(b':', login) {
        Some(colon) => {
            let password = &login[colon + 1..];
            let is_number = !password.is_empty() && password.iter().all(u8::is_ascii_digit);
            let is_shown = matches!(password, b"pass" | b"pwd" | b"PASS" | b"PASSWORD" | b"TOKEN" | b"x-oauth-basic");
            if is_number || (values::kind(password) != Kind::Harmless && !is_shown) {
                scan.hide(from + colon + 1..from + login.len(), PASSWORD);
            }
            let user = &login[..colon];
            if values::is_very_random(user) && user.len() >= 20 {
                scan.hide(from..from + colon, "[REDACTED_TOKEN]");
            }
        }
        None if values::is_very_random(login) && values::kind(login) == Kind::Random => {
            scan.hide(from..from + login.len(), "[REDACTED_TOKEN]");
        }
        None => {}
    }
}

/// `user:password@tcp(host)`, as Go's drivers write it; at the sign before the network.
pub(super) fn find_driver(scan: &mut Scan<'_>, hit: Range<usize>) {
    let before = &scan.text[hit.start.saturating_sub(128)..hit.start];
    let word = before.iter().rev().take_while(|byte| !byte.is_ascii_whitespace() && !b"\"'`=".contains(byte)).count();
    let login = &before[before.len() - word..];
    hide_login(scan, hit.start - word, login);
}

/// `Authorization: Scheme credentials`, at the header's name.
pub(super) fn find_authorization(scan: &mut Scan<'_>, hit: Range<usize>) {
    static SCHEMES: Words = Words::new(&[
        "basic",
        "bearer",
        "token",
        "apikey",
        "api-key",
        "key",
        "bot",
        "ssws",
        "splunk",
        "geniekey",
        "oauth",
        "negotiate",
        "aws4-hmac-sha256",
        "digest",
    ]);
    let text = scan.text;
    let Some(at) = after_name(text, hit.end) else { return };
    let word = token_length(scan, at);
    let first = &text[at..at + word];
    let is_scheme = SCHEMES.has(first);
    let gap = text[at + word..].iter().take(4).take_while(|byte| **byte == b' ').count();
    if !is_scheme || gap == 0 {
        if scan.credentials.is_crowded() || values::kind(first) == Kind::Random {
            scan.hide(at..at + word, "[REDACTED_TOKEN]");
        }
        return;
    }
    let start = at + word + gap;
    let length = token_length(scan, start);
    let value = &text[start..start + length];
    if first.eq_ignore_ascii_case(b"digest") || first.len() > 10 {
        return hide_signature(scan, start);
    }
    if is_credential(value, || true) {
        let mask = if first.eq_ignore_ascii_case(b"bearer") { "[REDACTED]" } else { "[REDACTED_TOKEN]" };
        scan.hide(start..start + length, mask);
    }
}

/// The parts of signed headers that let somebody in.
fn hide_signature(scan: &mut Scan<'_>, from: usize) {
    let line = &scan.text[from..scan.text.len().min(from + 1_024)];
    let line = &line[..memchr::memchr(b'\n', line).unwrap_or(line.len())];
    for name in [&b"Signature="[..], b"response=\"", b"nonce=\""] {
        if let Some(found) = memchr::memmem::find(line, name) {
            let start = found + name.len();
            let length =
                line[start..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte)).count();
            scan.hide(from + start..from + start + length, "[REDACTED_TOKEN]");
        }
    }
}

/// Steps over what stands between the name of a header and its value.
fn after_name(text: &[u8], at: usize) -> Option<usize> {
    let near = &text[at..text.len().min(at + 16)];
    let is_between = |byte: &&u8| matches!(byte, b'\\' | b'"' | b'\'' | b':' | b' ' | b'\t' | b'=' | b'>' | b',');
    let length = near.iter().take_while(is_between).count();
    let has_sign = near[..length].iter().any(|byte| matches!(byte, b':' | b'=' | b','));
    has_sign.then_some(at + length)
}

/// Characters that credentials are made of.
fn token_length(scan: &mut Scan<'_>, at: usize) -> usize {
    let is_part = |byte: &&u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'+' | b'/' | b'=' | b':' | b'-' | b'%')
    };
    let text = scan.text;
    scan.credentials.end(at, || text[at..].iter().take_while(is_part).count()) - at
}

/// Not a word of a sentence, not the name of a parameter.
fn is_credential(value: &[u8], is_in_header: impl Fn() -> bool) -> bool {
    let is_marked = || value.iter().any(u8::is_ascii_digit);
    let padding = value.iter().rev().take_while(|byte| **byte == b'=').count();
    if memchr::memchr(b'=', &value[..value.len() - padding]).is_some() {
        return false;
    }
    match values::kind(value) {
        Kind::Harmless => false,
        Kind::Random => true,
        Kind::Word => (is_marked() || value.len() >= 12) && (value.len() >= 20 && is_marked() || is_in_header()),
    }
}

/// `Bearer token`, at the word.
pub(super) fn find_bearer(scan: &mut Scan<'_>, hit: Range<usize>) {
    let text = scan.text;
    if !starts_word(text, hit.start) {
        return;
    }
    let start = hit.end;
    let length = token_length(scan, start);
    let value = &text[start..start + length];
    let is_parameter = value.ends_with(b"=") && text.get(start + length) == Some(&b'"');
    let near = &text[hit.start.saturating_sub(24)..hit.start];
    let is_in_header = || near.windows(13).any(|word| word.eq_ignore_ascii_case(b"authorization"));
    if !is_parameter && is_credential(value, is_in_header) {
        scan.hide(start..start + length, "[REDACTED]");
    }
}

/// `Basic dXNlcjpwYXNz`, at the word: only what is a name, a colon and a password.
pub(super) fn find_basic(scan: &mut Scan<'_>, hit: Range<usize>) {
    let text = scan.text;
    let rest = &text[hit.end..];
    let length = rest.iter().take(512).take_while(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte)).count();
    if starts_word(text, hit.start) && is_login(&rest[..length]) {
        scan.hide(hit.end..hit.end + length, scan.mask());
    }
}

/// Encoded, a name, a colon and a password.
fn is_login(value: &[u8]) -> bool {
    let trimmed = &value[..value.len() - value.iter().rev().take_while(|byte| **byte == b'=').count()];
    let is_text = |decoded: &[u8]| {
        decoded.iter().position(|&byte| byte == b':').is_some_and(|at| at > 0 && at + 1 < decoded.len())
            && decoded.iter().all(|byte| (0x20..0x7f).contains(byte) || *byte > 0x7f)
    };
    trimmed.len() >= 8 && STANDARD_NO_PAD.decode(trimmed).is_ok_and(|decoded| is_text(&decoded))
}

/// `"auth": "dXNlcjpwYXNz"` of container tools, at the name.
pub(super) fn find_container_login(scan: &mut Scan<'_>, hit: Range<usize>) {
    let text = scan.text;
    let Some(start) = after_name(text, hit.end) else { return };
    let rest = &text[start..];
    let length =
        rest.iter().take(4_096).take_while(|byte| byte.is_ascii_alphanumeric() || b"+/=_-".contains(byte)).count();
    if is_login(&rest[..length]) || (length >= 24 && values::is_very_random(&rest[..length])) {
        scan.hide(start..start + length, scan.mask());
    }
}

/// `Cookie: a=b; c=d`, at the header's name: values that nobody would type.
pub(super) fn find_cookies(scan: &mut Scan<'_>, hit: Range<usize>) {
    static OPEN: Words =
        Words::new(&["path", "domain", "expires", "max-age", "samesite", "version", "priority", "secure"]);
    let text = scan.text;
    // A cookie of that name, in a line that was looked at.
    if hit.start < scan.cookies_end {
        return;
    }
    let is_option = text[..hit.start].ends_with(b"--");
    let gap = || hit.end + text[hit.end..].iter().take(3).take_while(|byte| b" \"'".contains(byte)).count();
    let Some(mut at) = after_name(text, hit.end).or_else(|| is_option.then(gap)) else { return };
    let until = text.len().min(at + LONGEST_COOKIES);
    while at < until {
        let name =
            text[at..until].iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"_-.%".contains(byte)).count();
        if name == 0 || text.get(at + name) != Some(&b'=') {
            return;
        }
        let start = at + name + 1;
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b';' | b',' | b'"' | b'\'' | b'\\');
        let length = scan.cookies.end(start, || text[start..].iter().take_while(|byte| !is_end(byte)).count()) - start;
        let is_open = OPEN.has(&text[at..at + name]);
        let value = &text[start..start + length];
        if !is_open && values::kind(value) == Kind::Random {
            scan.hide(start..start + length, scan.mask());
        }
        at = start + length;
        scan.cookies_end = at;
        at += text[at..].iter().take(4).take_while(|byte| b"; ".contains(byte)).count();
    }
}

/// `-u user:password`, at the option.
pub(super) fn find_user_option(scan: &mut Scan<'_>, hit: Range<usize>) {
    let text = scan.text;
    let start = hit.end + text[hit.end..].iter().take(3).take_while(|byte| b"\"' =".contains(byte)).count();
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"\"'".contains(byte);
    let word = text[start..].iter().take(LONGEST_LOGIN).take_while(|byte| !is_end(byte)).count();
    let login = &text[start..start + word];
    let Some(colon) = memchr::memchr(b':', login) else { return };
    let password = &login[colon + 1..];
    let line = &text[hit.start.saturating_sub(256)..hit.start];
    let line = &line[memchr::memrchr(b'\n', line).map_or(0, |newline| newline + 1)..];
    let is_client = || [&b"curl"[..], b"http", b"wget"].iter().any(|name| memchr::memmem::find(line, name).is_some());
    let is_hidden = match values::kind(password) {
        Kind::Harmless => false,
        Kind::Random => true,
        Kind::Word => is_client() || password.iter().any(|byte| byte.is_ascii_digit() || b"!@#$%^&*".contains(byte)),
    };
    if is_hidden && !matches!(password, b"pass" | b"password") {
        scan.hide(start + colon + 1..start + word, PASSWORD);
    }
}

/// The private numbers of a JSON web key, at its kind.
pub(super) fn find_web_key(scan: &mut Scan<'_>, hit: Range<usize>) {
    let text = scan.text;
    // Its kind a second time.
    if hit.start < scan.web_key_end {
        return;
    }
    let from = memchr::memrchr(b'{', &text[hit.start.saturating_sub(2_048)..hit.start]);
    let from = from.map_or(hit.start, |at| hit.start.saturating_sub(2_048) + at).max(scan.free_from().min(hit.start));
    let until = text.len().min(hit.end + 8_192);
    let until = memchr::memchr(b'}', &text[hit.end..until]).map_or(until, |at| hit.end + at);
    scan.web_key_end = until;
    for name in [&b"\"d\""[..], b"\"p\"", b"\"q\"", b"\"dp\"", b"\"dq\"", b"\"qi\"", b"\"k\""] {
        let Some(found) = memchr::memmem::find(&text[from..until], name) else { continue };
        let Some(start) = after_name(text, from + found + name.len()) else { continue };
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
        let length = text[start..].iter().take_while(|byte| is_part(byte)).count();
        if length >= 16 {
            scan.hide(start..start + length, scan.mask());
        }
    }
}

/// `{"name": "DB_PASSWORD", "value": "…"}`, at the second name: the first one tells what the value is.
pub(super) fn find_pair(scan: &mut Scan<'_>, hit: Range<usize>) {
    let text = scan.text;
    let Some(start) = after_name(text, hit.end) else { return };
    let before = &text[hit.start.saturating_sub(120)..hit.start];
    let end = before.len() - before.iter().rev().take_while(|byte| b" \t\r\n,;\"'\\".contains(byte)).count();
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    let name = &before[end - before[..end].iter().rev().take_while(is_name).count()..end];
    let is_secret = super::names::judge(name)
        .is_some_and(|name| name.is_sure && !matches!(name.group, Group::AnyKey | Group::Perhaps));
    let label = before[..end - name.len()].trim_ascii_end();
    let label = &label[..label.len() - label.iter().rev().take_while(|byte| b"\\\"': \t=".contains(byte)).count()];
    let is_labelled = [&b"name"[..], b"key"]
        .iter()
        .any(|word| label.len() >= word.len() && label[label.len() - word.len()..].eq_ignore_ascii_case(word));
    if end == before.len() || !is_secret || !is_labelled {
        return;
    }
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"\"',}\\".contains(byte);
    let length = text[start..].iter().take_while(|byte| !is_end(byte)).count();
    let value = &text[start..start + length];
    if values::kind(value) == Kind::Random
        || (values::kind(value) == Kind::Word && name.iter().any(u8::is_ascii_uppercase))
    {
        scan.hide(start..start + length, scan.mask());
    }
}
