//! Private keys that go over lines: armour of PEM, OpenSSH and PGP, PuTTY's files, secret keys of signers.
//!
//! The lines between the frames are hidden, the frames stay. A block that is cut off ends with the first line that
//! cannot be its own.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::scan::{Scan, line_end};

/// A first line of fewer characters is none of a key's.
const SHORTEST_FIRST_LINE: usize = 16;
/// Lines that are looked back at from an end without a beginning.
const MOST_LINES_BACK: usize = 400;

/// A key block that has begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    /// Characters in each of its lines, once one was seen.
    width: usize,
    /// A shorter line was seen, which is the last but for a checksum.
    is_ending: bool,
}

/// What a line is to a block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Part of the key.
    Hidden(Range<usize>),
    /// A frame's header, an empty line, a mask.
    Passed,
    /// Not of the block, which ends before it.
    Over,
}

impl Block {
    /// Takes the next line.
    pub(super) fn feed(&mut self, line: &[u8]) -> Line {
        let trimmed = line.trim_ascii();
        if trimmed.is_empty() || trimmed.windows(9).take(48).any(|word| word == b"[REDACTED") {
            return Line::Passed;
        }
        if trimmed.windows(3).take(96).any(|word| word == b"---") {
            return Line::Over;
        }
        if self.width == 0 && is_header(trimmed) {
            return Line::Passed;
        }
        let Some(body) = body(line) else { return Line::Over };
        let length = body.len();
        if self.width == 0 {
            if length < SHORTEST_FIRST_LINE {
                return Line::Over;
            }
            self.width = length;
        } else if self.is_ending {
            // The checksum of PGP.
            let is_checksum = length == 5 && line[body.start] == b'=';
            return if is_checksum { Line::Hidden(body) } else { Line::Over };
        } else if length < self.width {
            self.is_ending = true;
        }
        Line::Hidden(body)
    }
}

/// `Proc-Type: 4,ENCRYPTED` and the like.
fn is_header(line: &[u8]) -> bool {
    let name = line.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-').count();
    name > 2 && line[name..].starts_with(b": ")
}

/// The encoded part of a line, between what lists, quotes and numbers put around it.
fn body(line: &[u8]) -> Option<Range<usize>> {
    let is_body = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    let is_before = |byte: u8| byte.is_ascii_digit() || b" \t>|:\"'#*+-;,\xe2\x94\x82".contains(&byte);
    let mut at = 0;
    let mut longest = 0..0;
    while at < line.len() {
        let length = line[at..].iter().take_while(|&&byte| is_body(byte)).count();
        if length > longest.len() {
            longest = at..at + length;
        }
        at += length.max(1);
    }
    let (before, after) = (&line[..longest.start], &line[longest.end..]);
    let is_after = |byte: u8| b" \t\r\\nr\"',+;|".contains(&byte);
    let fits = !longest.is_empty()
        && before.len() <= 24
        && before.iter().all(|&byte| is_before(byte))
        && after.len() <= 24
        && after.iter().all(|&byte| is_after(byte));
    fits.then_some(longest)
}

/// Looks at `PRIVATE KEY` in a frame.
pub(super) fn find_frame(scan: &mut Scan<'_>, hit: Range<usize>) {
    let text = scan.text;
    let near = hit.start.saturating_sub(60).max(scan.free_from().min(hit.start));
    let Some(dashes) = text[near..hit.start].windows(4).rposition(|four| four == b"----") else { return };
    let mut start = near + dashes;
    start -= usize::from(start > near && text[start - 1] == b'-');
    let is_dash = |byte: &&u8| **byte == b'-';
    let label = &text[start + text[start..].iter().take(5).take_while(is_dash).count()..hit.start];
    let label = label.strip_prefix(b" ").unwrap_or(label);
    let rest = &text[hit.end..];
    let rest = rest.strip_prefix(b" BLOCK").unwrap_or(rest);
    let rest = &rest[rest.iter().take(2).take_while(|byte| byte.is_ascii_digit() || **byte == b' ').count()..];
    let dashes = rest.iter().take(5).take_while(is_dash).count();
    if dashes < 4 || !label.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b' ') {
        return;
    }
    if label.starts_with(b"BEGIN ") {
        begin(scan, text.len() - rest.len() + dashes);
    } else if label.starts_with(b"END ") {
        hide_lines_before(scan, start);
    }
}

/// A block begins at the end of its frame: on the same line where newlines are spelled out, else on the next.
fn begin(scan: &mut Scan<'_>, from: usize) {
    let text = scan.text;
    let end = line_end(text, from);
    let line = &text[from..end];
    if let Some(length) = memchr::memmem::find(line, b"----") {
        let inside = &line[..length];
        if inside.iter().filter(|byte| byte.is_ascii_alphanumeric()).count() > 4 && !inside.starts_with(b"[REDACTED") {
            let skipped = if inside.starts_with(b"\\n") { 2 } else { 0 };
            scan.hide(from + skipped..from + length, scan.mask());
        }
        return;
    }
    let inside = line.trim_ascii_end();
    let has_key = inside.split(|byte| !byte.is_ascii_alphanumeric() && !b"+/=".contains(byte));
    if has_key.clone().any(|run| run.len() >= SHORTEST_FIRST_LINE) {
        scan.hide(from..from + inside.len(), scan.mask());
    }
    match end < text.len() {
        true => scan.hide_block(Block::default(), end + 1),
        false => scan.carry.block = Some(Block::default()),
    }
}

/// An end without its beginning: the lines before it are the key.
fn hide_lines_before(scan: &mut Scan<'_>, frame: usize) {
    let text = scan.text;
    let floor = scan.free_from().min(frame);
    let mut end = memchr::memrchr(b'\n', &text[floor..frame]).map(|newline| floor + newline);
    let mut width = 0;
    let mut hidden = Vec::new();
    while let Some(line_end) = end.filter(|_| hidden.len() < MOST_LINES_BACK) {
        let start = memchr::memrchr(b'\n', &text[floor..line_end]).map_or(floor, |newline| floor + newline + 1);
        let Some(range) = body(&text[start..line_end]) else { break };
        let is_first = start == floor;
        let fits = hidden.is_empty() || range.len() == width || (width < range.len() && hidden.len() < 3) || is_first;
        if !fits {
            break;
        }
        width = width.max(range.len());
        hidden.push(start + range.start..start + range.end);
        end = (start > floor).then(|| start - 1);
    }
    if width >= SHORTEST_FIRST_LINE {
        hidden.into_iter().rev().for_each(|range| scan.hide(range, scan.mask()));
    }
}

/// `Private-Lines: 14` of PuTTY, `untrusted comment: … secret key` of signers: the key is on the lines below.
pub(super) fn find_heading(scan: &mut Scan<'_>, hit: Range<usize>) {
    let text = scan.text;
    let near = hit.start.saturating_sub(80);
    let start = memchr::memrchr(b'\n', &text[near..hit.start]).map_or(near, |newline| near + newline + 1);
    let line = text[start..hit.end].trim_ascii_start();
    if !line.starts_with(b"Private-Lines:") && !line.starts_with(b"untrusted comment:") {
        return;
    }
    let end = line_end(text, hit.end);
    match end < text.len() {
        true => scan.hide_block(Block::default(), end + 1),
        false => scan.carry.block = Some(Block::default()),
    }
}

/// A private key in its armour, encoded once more.
pub(super) fn find_encoded(scan: &mut Scan<'_>, hit: Range<usize>) {
    // The keyword ends in the middle of a byte: the space after `BEGIN`.
    if !matches!(scan.text.get(hit.end), Some(b'A'..=b'D')) {
        return;
    }
    let rest = &scan.text[hit.start..];
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let head = &rest[..rest.iter().take(80).take_while(is_part).count() / 4 * 4];
    let mut decoded = [0; 60];
    let is_key = STANDARD_NO_PAD
        .decode_slice(head, &mut decoded)
        .is_ok_and(|length| memchr::memmem::find(&decoded[..length], b"PRIVATE KEY").is_some());
    if is_key {
        let length = rest.iter().take_while(is_part).count();
        scan.hide(hit.start..hit.start + length, scan.mask());
    }
}
