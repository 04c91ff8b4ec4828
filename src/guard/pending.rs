//! The line that stands in a session's line editor: what was typed since the last Enter, as far as keys tell.
//!
//! Text, backspace, the usual editing keys and pastes are followed; history and completion are not known here, so what
//! they put into the line is not in it. Bounded: of a longer line the end is kept. It types nothing and judges nothing.

/// Characters of a line that are kept.
const LONGEST_LINE: usize = 64 << 10;
/// Characters of the lines before it that belong to the same command.
const LONGEST_CARRIED: usize = 16 << 10;
/// The longest escape sequence that is waited for.
const LONGEST_SEQUENCE: usize = 32;

const PASTE_START: &str = "[200~";
const PASTE_END: &str = "[201~";

/// What was typed since the last Enter.
#[derive(Clone, Debug, Default)]
pub struct PendingLine {
    chars: Vec<char>,
    cursor: usize,
    killed: Vec<char>,
    /// An escape sequence of which the end has not come yet, without its escape character.
    sequence: Option<String>,
    /// Bytes of a character of which the end has not come yet.
    partial: Vec<u8>,
    in_paste: bool,
    /// The next key is taken as it is.
    is_literal: bool,
    /// Lines that the shell waits for the rest of.
    carried: String,
}

/// What a key did.
#[derive(Debug, PartialEq)]
enum Effect {
    Edited,
    Entered,
}

impl PendingLine {
    /// Follows bytes that are typed. Gives the lines that Enter sends off, each as it stands and, where the shell was
    /// still waiting for the rest of a command, with what came before.
    pub fn type_bytes(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut bytes = [std::mem::take(&mut self.partial), bytes.to_vec()].concat();
        if let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            self.partial = bytes.split_off(error.valid_up_to());
        }
        let mut lines = Vec::new();
        for c in String::from_utf8_lossy(&bytes).chars() {
            if self.key(c) == Effect::Entered {
                lines.extend(self.enter());
            }
        }
        lines
    }

    /// What stands in the line now.
    pub fn text(&self) -> String {
        self.chars.iter().collect()
    }

    /// Forgets the line.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn enter(&mut self) -> Vec<String> {
        let line = self.text();
        self.chars.clear();
        self.cursor = 0;
        let whole = format!("{}{line}", self.carried);
        let mut lines = vec![line];
        if !self.carried.is_empty() {
            lines.push(whole.clone());
        }
        self.carried = match is_open(&whole) && whole.len() < LONGEST_CARRIED {
            true => whole + "\n",
            false => String::new(),
        };
        lines
    }

    fn key(&mut self, c: char) -> Effect {
        if let Some(sequence) = &mut self.sequence {
            sequence.push(c);
            let is_long = sequence.len() > LONGEST_SEQUENCE;
            let is_csi = sequence.starts_with(['[', 'O']);
            let is_over = if is_csi { sequence.len() > 1 && matches!(c, '@'..='~') } else { true };
            if is_over || is_long {
                let sequence = std::mem::take(sequence);
                self.sequence = None;
                return self.escape(&sequence);
            }
            return Effect::Edited;
        }
        if self.is_literal {
            self.is_literal = false;
            self.insert(c);
            return Effect::Edited;
        }
        match c {
            '\u{1b}' => self.sequence = Some(String::new()),
            '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}' if self.in_paste => self.insert('\n'),
            '\t' => self.insert('\t'),
            _ if self.in_paste => self.insert(c),
            '\r' | '\n' | '\u{f}' => return Effect::Entered,
            c if !c.is_control() => self.insert(c),
            c => self.control(c),
        }
        Effect::Edited
    }

    fn insert(&mut self, c: char) {
        if self.chars.len() >= LONGEST_LINE {
            self.chars.remove(0);
            self.cursor = self.cursor.saturating_sub(1);
        }
        self.chars.insert(self.cursor, c);
        self.cursor += 1;
    }

    fn control(&mut self, c: char) {
        let end = self.chars.len();
        match c {
            '\u{1}' => self.cursor = 0,
            '\u{2}' => self.cursor = self.cursor.saturating_sub(1),
            '\u{3}' | '\u{7}' | '\u{1c}' => {
                self.chars.clear();
                self.cursor = 0;
                self.carried.clear();
            }
            '\u{4}' => self.delete(self.cursor, (self.cursor + 1).min(end)),
            '\u{5}' => self.cursor = end,
            '\u{6}' => self.cursor = (self.cursor + 1).min(end),
            '\u{8}' | '\u{7f}' => self.delete(self.cursor.saturating_sub(1), self.cursor),
            '\u{b}' => self.kill(self.cursor, end),
            '\u{14}' => {
                let second = if self.cursor == end { end.saturating_sub(1) } else { self.cursor };
                if second > 0 {
                    self.chars.swap(second - 1, second);
                    self.cursor = (second + 1).min(end);
                }
            }
            '\u{15}' => self.kill(0, self.cursor),
            '\u{16}' => self.is_literal = true,
            '\u{17}' => self.kill(self.word_start(|c| !c.is_whitespace()), self.cursor),
            '\u{19}' => {
                for c in self.killed.clone() {
                    self.insert(c);
                }
            }
            _ => {}
        }
    }

    /// A key that comes as an escape sequence, without its escape character.
    fn escape(&mut self, sequence: &str) -> Effect {
        let end = self.chars.len();
        match sequence {
            PASTE_START => self.in_paste = true,
            PASTE_END => self.in_paste = false,
            "[C" | "OC" => self.cursor = (self.cursor + 1).min(end),
            "[D" | "OD" => self.cursor = self.cursor.saturating_sub(1),
            "[H" | "OH" | "[1~" | "[7~" => self.cursor = 0,
            "[F" | "OF" | "[4~" | "[8~" => self.cursor = end,
            "[3~" => self.delete(self.cursor, (self.cursor + 1).min(end)),
            "b" => self.cursor = self.word_start(char::is_alphanumeric),
            "f" => self.cursor = self.word_end(),
            "d" => self.kill(self.cursor, self.word_end()),
            "\u{7f}" | "\u{8}" => self.kill(self.word_start(char::is_alphanumeric), self.cursor),
            "OM" => return Effect::Entered,
            _ => {
                if let Some(key) = sequence.strip_prefix('[').and_then(|rest| rest.strip_suffix('u')) {
                    return self.kitty(key);
                }
            }
        }
        Effect::Edited
    }

    /// `code;modifiers` of the kitty keyboard protocol.
    fn kitty(&mut self, key: &str) -> Effect {
        let mut numbers = key.split(';').map(|part| part.split(':').next().unwrap_or("").parse::<u32>().unwrap_or(0));
        let code = numbers.next().and_then(char::from_u32).unwrap_or('\0');
        let modifiers = numbers.next().unwrap_or(1).saturating_sub(1);
        const CTRL: u32 = 4;
        const SUPPRESSED: u32 = 2 | 8;
        if modifiers & SUPPRESSED != 0 {
            return Effect::Edited;
        }
        match code {
            c if modifiers & CTRL != 0 && c.is_ascii_alphabetic() => self.key(char::from((c as u8) & 0x1f)),
            c => self.key(c),
        }
    }

    fn delete(&mut self, from: usize, to: usize) {
        self.chars.drain(from..to);
        self.cursor = from.min(self.chars.len());
    }

    fn kill(&mut self, from: usize, to: usize) {
        self.killed = self.chars.drain(from..to).collect();
        self.cursor = from;
    }

    /// Where the word before the cursor begins.
    fn word_start(&self, is_word: impl Fn(char) -> bool) -> usize {
        let before = &self.chars[..self.cursor];
        let end = before.iter().rposition(|c| is_word(*c)).map_or(0, |at| at + 1);
        before[..end].iter().rposition(|c| !is_word(*c)).map_or(0, |at| at + 1)
    }

    /// Where the word after the cursor ends.
    fn word_end(&self) -> usize {
        let after = &self.chars[self.cursor..];
        let start = after.iter().position(|c| c.is_alphanumeric()).unwrap_or(after.len());
        self.cursor + after[start..].iter().position(|c| !c.is_alphanumeric()).map_or(after.len(), |at| start + at)
    }
}

/// The text that a line editor would be left with: editing keys applied, line ends kept.
pub fn edited(text: &str) -> String {
    let is_edited = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    if !text.contains(is_edited) {
        return text.to_owned();
    }
    let mut pending = PendingLine::default();
    let mut lines = Vec::new();
    for c in text.chars() {
        if pending.key(c) == Effect::Entered {
            lines.push(pending.text());
            pending.chars.clear();
            pending.cursor = 0;
        }
    }
    lines.push(pending.text());
    lines.join("\n")
}

/// The shell waits for more: a quote is open, or the line ends in a backslash.
fn is_open(text: &str) -> bool {
    let mut quote = None;
    let mut chars = text.chars();
    let mut is_escaped = false;
    while let Some(c) = chars.next() {
        is_escaped = false;
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => is_escaped = chars.next().is_none(),
            (None, '\'' | '"') => quote = Some(c),
            _ => {}
        }
    }
    quote.is_some() || is_escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&str]) -> Vec<String> {
        let mut pending = PendingLine::default();
        pieces.iter().flat_map(|piece| pending.type_bytes(piece.as_bytes())).collect()
    }

    #[test]
    fn what_is_typed_in_pieces_is_one_line() {
        assert_eq!(lines(&["rm -rf ", "/", "\r"]), ["rm -rf /"]);
        assert_eq!(lines(&["a\rb\r", "c"]), ["a", "b"]);
        assert_eq!(lines(&["gr\u{fc}n\n"]), ["gr\u{fc}n"]);
        let mut pending = PendingLine::default();
        assert_eq!(pending.type_bytes(b"\xc3"), Vec::<String>::new());
        assert_eq!(pending.type_bytes(b"\xbc\r"), ["\u{fc}"]);
    }

    #[test]
    fn editing_keys_edit() {
        for (typed, expected) in [
            ("rmx\u{7f} -rf /", "rm -rf /"),
            ("rmx\u{8} -rf /", "rm -rf /"),
            ("echo hi\u{15}rm -rf /", "rm -rf /"),
            ("rm -rf / tmp\u{17}", "rm -rf / "),
            ("ls\u{3}halt", "halt"),
            (" -rf /\u{1}rm", "rm -rf /"),
            ("m -rf /\u{1b}[Hr\u{1b}[F", "rm -rf /"),
            ("mr\u{14} -rf /", "rm -rf /"),
            ("rxm\u{1b}[D\u{7f}", "rm"),
            ("halt\u{1}\u{b}\u{19}", "halt"),
            ("one two\u{1b}\u{7f}", "one "),
            ("one two\u{1b}b\u{1b}d", "one "),
            ("a\u{16}\u{3}b", "a\u{3}b"),
            ("a\u{1b}[Ab\u{1b}[1;5Cc", "abc"),
            ("\u{1b}[114u\u{1b}[109;1u", "rm"),
            ("x\u{1b}[117;5urm", "rm"),
        ] {
            assert_eq!(edited(typed), expected, "{typed:?}");
            assert_eq!(lines(&[typed, "\r"]), [expected], "{typed:?}");
        }
    }

    #[test]
    fn a_bracketed_paste_is_sent_off_by_enter_only() {
        assert_eq!(lines(&["\u{1b}[200~a\rb\u{1b}[201~"]), Vec::<String>::new());
        assert_eq!(lines(&["\u{1b}[200~a\rb\u{1b}[201~\r"]), ["a\nb"]);
        assert_eq!(lines(&["\u{1b}[20", "0~x\u{1b}[2", "01~\r"]), ["x"]);
    }

    #[test]
    fn a_command_that_goes_on_is_seen_whole() {
        assert_eq!(lines(&["rm \\\r", "-rf /\r", "ls\r"]), ["rm \\", "-rf /", "rm \\\n-rf /", "ls"]);
        assert_eq!(lines(&["echo '\r", "'; halt\r"]), ["echo '", "'; halt", "echo '\n'; halt"]);
    }

    #[test]
    fn a_line_without_end_is_bounded() {
        let mut pending = PendingLine::default();
        for _ in 0..40 {
            pending.type_bytes(&[b'x'; 4096]);
        }
        assert_eq!(pending.text().len(), LONGEST_LINE);
        assert_eq!(pending.type_bytes(b"\r").len(), 1);
        assert_eq!(pending.text(), "");
    }
}
