//! Text on its way to the keyboard: escapes, single lines and pastes.
//!
//! Everything here is a function of its arguments. Whether text may be typed is the guard's question; typing it is
//! the driver's.

/// What begins a bracketed paste.
const PASTE_START: &str = "\x1b[200~";
/// What ends one.
const PASTE_END: &str = "\x1b[201~";
/// The same with CSI as one character.
const PASTE_END_C1: &str = "\u{9b}201~";

/// Converts the escapes that callers write in plain text.
///
/// Over the whole text first `\r\n` and `\xHH` (the code point U+00HH, not a raw byte), then `\r`, `\n` and `\t`
/// where no ASCII letter, digit or underscore follows, so `C:\new` stays. The second pass reads what the first one
/// made: `\x5cn` is a newline, and `\n\x41` is not one, being `\nA` by then. Nothing else is an escape.
///
/// A backslash is doubled to be kept, by the rule that Windows has for quotes: where the last of a run would
/// convert, each pair stands for one backslash and an odd one out converts; where it would not, the run stays as it
/// is. So `\\n` is typed as `\n`, `\\\n` as a backslash and a newline, and `\\server\share` and `\\new` are untouched.
pub fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    convert(&convert(text, first_pass), second_pass)
}

/// The parity of the backslashes before a possible escape.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    /// The last one is free to convert.
    Odd,
    /// All are doubled.
    Even,
}

/// What an escape becomes, and how many bytes it takes after its backslash.
type Escape = (String, usize);

/// Converts the escapes that `read` finds, and halves the backslashes before them.
fn convert(text: &str, read: impl Fn(&str, Run) -> Option<Escape>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let after = rest[at..].trim_start_matches('\\');
        let backslashes = rest.len() - at - after.len();
        let run = if backslashes % 2 == 1 { Run::Odd } else { Run::Even };
        let escape = read(after, run);
        let kept = if escape.is_some() { backslashes / 2 } else { backslashes };
        out.push_str(&rest[..at + kept]);
        rest = after;
        if let Some((becomes, length)) = escape
            && run == Run::Odd
        {
            out.push_str(&becomes);
            rest = &after[length..];
        }
    }
    out.push_str(rest);
    out
}

/// `\r\n` and `\xHH`. The doubled `\\r\n` is left to the second pass, which reads it as `\\r` and `\n`.
fn first_pass(after: &str, run: Run) -> Option<Escape> {
    if after.starts_with(r"r\n") && run == Run::Odd {
        return Some(("\r\n".to_owned(), r"r\n".len()));
    }
    let digits = after.strip_prefix('x')?.get(..2)?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let code = u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
    Some((char::from(code).to_string(), "xHH".len()))
}

/// `\r`, `\n` and `\t`, unless a word goes on after them.
fn second_pass(after: &str, _: Run) -> Option<Escape> {
    let mut chars = after.chars();
    let becomes = match chars.next()? {
        'r' => "\r",
        'n' => "\n",
        't' => "\t",
        _ => return None,
    };
    let in_word = chars.next().is_some_and(|next| next.is_ascii_alphanumeric() || next == '_');
    (!in_word).then(|| (becomes.to_owned(), 1))
}

/// The text without anything that ends a line. Nothing takes the place of what is removed.
pub fn one_line(text: &str) -> String {
    text.replace(['\r', '\n', '\u{85}', '\u{2028}', '\u{2029}'], "")
}

/// The bytes of a paste: newlines are carriage returns, as the Enter key sends them.
///
/// A bracketed paste stands between its markers and has no end marker inside, so pasted text cannot break out and
/// go on as typed keys.
pub fn paste(text: &str, bracketed: bool) -> Vec<u8> {
    let typed = text.replace("\r\n", "\r").replace('\n', "\r");
    match bracketed {
        false => typed.into_bytes(),
        true => [PASTE_START, &without_paste_end(&typed), PASTE_END].concat().into_bytes(),
    }
}

/// Removes end markers, and those that a removal would put together: none is ever complete in `out`.
fn without_paste_end(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        out.push(c);
        for end in [PASTE_END, PASTE_END_C1] {
            if out.ends_with(end) {
                out.truncate(out.len() - end.len());
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cases: &[(&str, &str)]) {
        for (text, expected) in cases {
            assert_eq!(unescape(text), *expected, "{text}");
        }
    }

    #[test]
    fn escapes_convert_where_no_word_goes_on() {
        check(&[
            ("", ""),
            ("plain é", "plain é"),
            (r"a\n", "a\n"),
            (r"a\r", "a\r"),
            (r"a\tb", r"a\tb"),
            (r"a\t b", "a\t b"),
            (r"a\né", "a\né"),
            (r"C:\new\test\r_1", r"C:\new\test\r_1"),
            (r"printf 'a\n'", "printf 'a\n'"),
            (r"\n\n\t.", "\n\n\t."),
            (r"\N \T \0 \e \u0041 \", r"\N \T \0 \e \u0041 \"),
        ]);
    }

    #[test]
    fn a_line_end_and_a_code_convert_always() {
        check(&[
            (r"a\r\nb", "a\r\nb"),
            (r"C:\r\new", "C:\r\new"),
            (r"\x03", "\x03"),
            (r"\x1b[A\x41b", "\x1b[AAb"),
            (r"\xE9\xff", "éÿ"),
            (r"\x4 \xg0 \x+1 \x", r"\x4 \xg0 \x+1 \x"),
            (r"\xé1", r"\xé1"),
        ]);
    }

    #[test]
    fn codes_convert_before_single_letters() {
        check(&[(r"\x5cn", "\n"), (r"\n\x41", r"\nA"), (r"\n\x0a", "\n\n"), (r"\x5cx41", r"\x41")]);
    }

    #[test]
    fn a_doubled_backslash_keeps_an_escape_as_text() {
        check(&[
            (r"printf 'a\\n'", r"printf 'a\n'"),
            (r"\\t", r"\t"),
            (r"\\x41", r"\x41"),
            (r"\\r\\n", r"\r\n"),
            (r"\\r\n", "\\r\n"),
            (r"\\r\new", r"\r\new"),
            (r"\\\n", "\\\n"),
            (r"\\\r\n", "\\\r\n"),
            (r"\\\x41", r"\A"),
            (r"\\\\n", r"\\n"),
            (r"\\\\\n", "\\\\\n"),
        ]);
    }

    #[test]
    fn a_doubled_backslash_before_anything_else_stays() {
        check(&[
            (r"\\server\share", r"\\server\share"),
            (r"\\new", r"\\new"),
            (r"\\nas\tmp\x", r"\\nas\tmp\x"),
            (r"\\\new", r"\\\new"),
            (r"a\\", r"a\\"),
            (r"\\.\pipe\x", r"\\.\pipe\x"),
        ]);
    }

    #[test]
    fn one_line_has_no_line_ends() {
        for (text, expected) in [
            ("echo a\necho b\r\n", "echo aecho b"),
            ("a\u{85}b\u{2028}c\u{2029}d", "abcd"),
            ("\n\r", ""),
            ("tab\tstays é", "tab\tstays é"),
        ] {
            assert_eq!(one_line(text), expected);
        }
    }

    #[test]
    fn a_paste_types_newlines_as_enter() {
        for (text, expected) in [("a\nb", "a\rb"), ("a\r\nb\rc\n\nd", "a\rb\rc\r\rd"), ("é", "é"), ("", "")] {
            assert_eq!(paste(text, false), expected.as_bytes());
            assert_eq!(paste(text, true), format!("\x1b[200~{expected}\x1b[201~").as_bytes());
        }
    }

    #[test]
    fn a_paste_cannot_end_itself() {
        for (text, expected) in [
            ("a\x1b[201~b", "ab"),
            ("a\x1b[20\x1b[201~1~b", "ab"),
            ("\x1b\x1b[2\x1b[201~01~[201~rm", "rm"),
            ("a\u{9b}201~b\x1b\u{9b}201~[201~c", "abc"),
            ("\x1b[200~a\x1b[1m", "\x1b[200~a\x1b[1m"),
        ] {
            assert_eq!(paste(text, true), format!("\x1b[200~{expected}\x1b[201~").as_bytes(), "{text:?}");
        }
        assert_eq!(paste("a\x1b[201~b", false), b"a\x1b[201~b");
    }
}
