//! The line that stands in a session's line editor: what was typed since the last Enter, as far as keys tell.
//!
//! Text, backspace, the usual editing keys and pastes are followed. What other keys do is not known here: history,
//! completion, undo, a second kill in a row and the like make the line *unknown*, and whoever sends it off has to look at
//! the screen. Nothing is ever dropped from the line: one that is too long, or too much work to follow, is unknown as
//! well. Linear in what is typed. It types nothing and judges nothing.

/// Characters of a line that are followed; the policy refuses a longer one anyway. Four bytes each.
pub const LONGEST_LINE: usize = 1 << 20;
/// Bytes of the lines before it that belong to the same command.
const LONGEST_CARRIED: usize = 1 << 20;
/// Bytes of an unfinished command that is given whole with each of its lines, not only with the last.
const LONGEST_SHOWN: usize = 16 << 10;
/// The longest escape sequence that is waited for.
const LONGEST_SEQUENCE: usize = 32;
/// Characters that may be moved while a line is edited, and how many more each key allows: jumps within a long line
/// cost its length, and nobody makes many of them.
const FREE_MOVES: usize = 256 << 10;
const MOVES_PER_KEY: usize = 32;

/// Bytes that are decoded at once: behind the next Enter they would be decoded again.
const WINDOW: usize = 256;

const PASTE_START: &str = "[200~";
const PASTE_END: &str = "[201~";

/// What was typed since the last Enter.
#[derive(Clone, Debug, Default)]
pub struct PendingLine {
    /// What stands before the cursor.
    before: Vec<char>,
    /// What stands behind it, last character first.
    after: Vec<char>,
    /// What was killed last; nothing where that is not known.
    killed: Option<Vec<char>>,
    /// The last key killed: another kill adds to what it killed.
    was_kill: bool,
    /// A key did what keys alone do not tell.
    is_unknown: bool,
    /// It was too long, and is no longer followed.
    is_long: bool,
    /// Characters that were moved, and those that may be.
    moves: usize,
    keys: usize,
    /// An escape sequence of which the end has not come yet, without its escape character.
    sequence: Option<String>,
    /// Bytes of a character of which the end has not come yet.
    partial: Vec<u8>,
    in_paste: bool,
    /// The next key is taken as it is.
    is_literal: bool,
    /// Lines that the shell waits for the rest of, and the quote that is open in them.
    carried: String,
    quote: Option<char>,
}

/// A key that sends the line off: where its bytes begin and end among those that were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enter {
    /// The first byte of the key.
    pub start: usize,
    /// The byte after it.
    pub end: usize,
    /// What the line editor has afterwards is not an empty line.
    leaves_unknown: bool,
}

/// What a key did.
#[derive(Debug, PartialEq)]
enum Effect {
    Edited,
    Entered,
    /// It may have sent the line off, and something stands there afterwards.
    EnteredUnknown,
}

impl PendingLine {
    /// Follows bytes that are typed up to the first key that sends the line off. That key is not followed yet: the line
    /// stands as it is sent, and [`PendingLine::enter`] goes on behind it.
    pub fn type_until_enter(&mut self, bytes: &[u8]) -> Option<Enter> {
        let lead = self.partial.len();
        let joined;
        let all = if lead == 0 {
            bytes
        } else {
            joined = [std::mem::take(&mut self.partial), bytes.to_vec()].concat();
            &joined
        };
        let (whole, partial) = all.split_at(all.len() - incomplete(all));
        let (mut at, mut start) = (0, 0);
        while at < whole.len() {
            let window = &whole[at..whole.len().min(at + WINDOW)];
            let window = &window[..window.len() - incomplete(window)];
            for chunk in window.utf8_chunks() {
                if let Some((end, effect)) = self.follow(chunk.valid(), at, &mut start) {
                    let leaves_unknown = effect == Effect::EnteredUnknown;
                    return Some(Enter { start: start.saturating_sub(lead), end: end - lead, leaves_unknown });
                }
                at += chunk.valid().len() + chunk.invalid().len();
                if !chunk.invalid().is_empty() {
                    self.key(char::REPLACEMENT_CHARACTER);
                }
            }
        }
        self.partial = partial.to_vec();
        None
    }

    /// Sends the line off. Gives it as it stands and, where the shell was still waiting for the rest of a command, with
    /// what came before.
    pub fn enter(&mut self, key: Enter) -> Vec<String> {
        let line = self.text();
        self.forget_line();
        self.is_unknown = key.leaves_unknown;
        let (quote, is_escaped) = scan(self.quote, &line);
        let is_open = quote.is_some() || is_escaped;
        let was_open = !self.carried.is_empty();
        if !is_open && !was_open {
            self.quote = None;
            return vec![line];
        }
        self.carried.push_str(&line);
        let mut lines = vec![line];
        if was_open && (!is_open || self.carried.len() < LONGEST_SHOWN) {
            lines.push(self.carried.clone());
        }
        self.carried.push('\n');
        self.quote = quote;
        if !is_open || self.carried.len() > LONGEST_CARRIED {
            // The rest of a command of which the beginning is no longer known.
            self.is_unknown |= is_open;
            (self.carried, self.quote) = (String::new(), None);
        }
        lines
    }

    /// Follows bytes that are typed. Gives the lines that Enter sends off.
    pub fn type_bytes(&mut self, bytes: &[u8]) -> Vec<String> {
        let (mut lines, mut rest) = (Vec::new(), bytes);
        while let Some(enter) = self.type_until_enter(rest) {
            lines.extend(self.enter(enter));
            rest = &rest[enter.end..];
        }
        lines
    }

    /// What stands in the line now, or would if the keys that are not known did nothing.
    pub fn text(&self) -> String {
        self.before.iter().chain(self.after.iter().rev()).collect()
    }

    /// Characters in the line.
    pub fn len(&self) -> usize {
        self.before.len() + self.after.len()
    }

    /// Nothing stands there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys alone do not tell what stands in the line.
    pub fn is_unknown(&self) -> bool {
        self.is_unknown || self.is_long
    }

    /// More was typed than is followed.
    pub fn is_long(&self) -> bool {
        self.is_long
    }

    /// The lines before it that the shell waits for the rest of.
    pub fn carried(&self) -> &str {
        &self.carried
    }

    /// The line changed in a way that was not reported here.
    pub fn mark_unknown(&mut self) {
        self.is_unknown = true;
    }

    /// The line is known to be empty.
    pub fn clear(&mut self) {
        *self = Self { killed: self.killed.take(), ..Self::default() };
    }

    fn forget_line(&mut self) {
        (self.before, self.after) = (Vec::new(), Vec::new());
        (self.is_unknown, self.is_long, self.was_kill) = (false, false, false);
        (self.moves, self.keys) = (0, 0);
    }

    /// Follows text; gives the end of a key that sends the line off. `start` is where the key under way began.
    fn follow(&mut self, text: &str, base: usize, start: &mut usize) -> Option<(usize, Effect)> {
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            if self.sequence.is_none() && !self.is_literal {
                let rest = &text[at..];
                let run = rest.find(is_special).unwrap_or(rest.len());
                if run > 0 {
                    self.insert(&rest[..run]);
                    self.keys += run;
                    at += run;
                    continue;
                }
                *start = base + at;
            }
            at += c.len_utf8();
            match self.key(c) {
                Effect::Edited => {}
                entered => return Some((base + at, entered)),
            }
        }
        None
    }

    fn key(&mut self, c: char) -> Effect {
        self.keys += 1;
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
            self.insert(c.encode_utf8(&mut [0; 4]));
            return Effect::Edited;
        }
        match c {
            '\u{1b}' => self.sequence = Some(String::new()),
            '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}' if self.in_paste => self.insert("\n"),
            _ if self.in_paste => self.insert(c.encode_utf8(&mut [0; 4])),
            '\r' | '\n' => return Effect::Entered,
            // The line is run, and the next one of the history stands there.
            '\u{f}' => return Effect::EnteredUnknown,
            '\t' => {
                self.insert("\t");
                self.is_unknown = true;
            }
            c if !c.is_control() => self.insert(c.encode_utf8(&mut [0; 4])),
            c => self.control(c),
        }
        Effect::Edited
    }

    fn insert(&mut self, text: &str) {
        self.was_kill = false;
        if self.is_long {
            return;
        }
        self.before.extend(text.chars());
        if self.len() > LONGEST_LINE {
            self.give_up();
        }
    }

    /// The line is too much to be followed.
    fn give_up(&mut self) {
        (self.before, self.after) = (Vec::new(), Vec::new());
        self.is_long = true;
    }

    /// Counts characters that are moved.
    fn charge(&mut self, count: usize) {
        self.moves += count;
        if self.moves > FREE_MOVES + MOVES_PER_KEY * self.keys {
            self.give_up();
        }
    }

    fn control(&mut self, c: char) {
        let was_kill = std::mem::take(&mut self.was_kill);
        match c {
            '\u{1}' => self.move_to(0),
            '\u{2}' => self.move_to(self.before.len().saturating_sub(1)),
            '\u{3}' => {
                self.forget_line();
                (self.carried, self.quote) = (String::new(), None);
            }
            '\u{4}' => drop(self.after.pop()),
            '\u{5}' => self.move_on(self.len()),
            '\u{6}' => self.move_on(self.before.len() + 1),
            '\u{8}' | '\u{7f}' => drop(self.before.pop()),
            '\u{b}' => self.kill_after(self.after.len(), was_kill),
            // Draws the line anew.
            '\u{c}' => {}
            '\u{14}' => self.transpose(),
            '\u{15}' => self.kill_before(0, was_kill),
            '\u{16}' => self.is_literal = true,
            '\u{17}' => self.kill_before(self.word_start(|c| !c.is_whitespace()), was_kill),
            '\u{19}' => match self.killed.take() {
                Some(killed) => {
                    self.charge(killed.len());
                    self.insert(&killed.iter().collect::<String>());
                    self.killed = Some(killed);
                }
                None => self.is_unknown = true,
            },
            // Ctrl-G and Ctrl-\ among them: some line editors keep the line, and others do not.
            _ => self.is_unknown = true,
        }
    }

    /// A key that comes as an escape sequence, without its escape character.
    fn escape(&mut self, sequence: &str) -> Effect {
        let was_kill = std::mem::take(&mut self.was_kill);
        match sequence {
            PASTE_START => self.in_paste = true,
            PASTE_END => self.in_paste = false,
            "[C" | "OC" => self.move_on(self.before.len() + 1),
            "[D" | "OD" => self.move_to(self.before.len().saturating_sub(1)),
            "[H" | "OH" | "[1~" | "[7~" => self.move_to(0),
            "[F" | "OF" | "[4~" | "[8~" => self.move_on(self.len()),
            "[3~" => drop(self.after.pop()),
            // The window got or lost the focus.
            "[I" | "[O" => {}
            "b" => self.move_to(self.word_start(char::is_alphanumeric)),
            "f" => self.move_on(self.before.len() + self.word_end()),
            "d" => self.kill_after(self.word_end(), was_kill),
            "\u{7f}" | "\u{8}" => self.kill_before(self.word_start(char::is_alphanumeric), was_kill),
            "OM" => return Effect::Entered,
            // Escape and Enter in vi's mode, and one key elsewhere.
            "\r" | "\n" => return Effect::EnteredUnknown,
            _ => {
                if let Some(key) = sequence.strip_prefix('[').and_then(|rest| rest.strip_suffix('u')) {
                    return self.kitty(key);
                }
                self.is_unknown = true;
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
            self.is_unknown = true;
            return Effect::Edited;
        }
        match code {
            // Escape as a key of its own.
            '\u{1b}' => {
                self.is_unknown = true;
                Effect::Edited
            }
            c if modifiers & CTRL != 0 && c.is_ascii_alphabetic() => self.key(char::from((c as u8) & 0x1f)),
            c => self.key(c),
        }
    }

    /// Moves to the right. At the end of the line that takes what a shell suggests.
    fn move_on(&mut self, cursor: usize) {
        self.is_unknown |= self.after.is_empty();
        self.move_to(cursor);
    }

    fn move_to(&mut self, cursor: usize) {
        let cursor = cursor.min(self.len());
        self.charge(cursor.abs_diff(self.before.len()));
        if self.is_long {
            return;
        }
        if cursor < self.before.len() {
            self.after.extend(self.before.drain(cursor..).rev());
        } else {
            let stays = self.after.len() - (cursor - self.before.len());
            self.before.extend(self.after.drain(stays..).rev());
        }
    }

    fn transpose(&mut self) {
        match (self.after.pop(), self.before.pop()) {
            (Some(second), Some(first)) => self.before.extend([second, first]),
            (None, Some(second)) => match self.before.pop() {
                Some(first) => self.before.extend([second, first]),
                None => self.before.push(second),
            },
            (second, None) => self.after.extend(second),
        }
    }

    fn kill_before(&mut self, from: usize, was_kill: bool) {
        let killed = self.before.split_off(from.min(self.before.len()));
        self.note_kill(killed, was_kill);
    }

    fn kill_after(&mut self, count: usize, was_kill: bool) {
        let killed = self.after.split_off(self.after.len().saturating_sub(count));
        self.note_kill(killed.into_iter().rev().collect(), was_kill);
    }

    /// A kill behind another one adds to it, and how is the line editor's affair.
    fn note_kill(&mut self, killed: Vec<char>, was_kill: bool) {
        self.charge(killed.len());
        self.was_kill = true;
        if !killed.is_empty() {
            self.killed = (!was_kill).then_some(killed);
        }
    }

    /// Where the word before the cursor begins.
    fn word_start(&self, is_word: impl Fn(char) -> bool) -> usize {
        let end = self.before.iter().rposition(|c| is_word(*c)).map_or(0, |at| at + 1);
        self.before[..end].iter().rposition(|c| !is_word(*c)).map_or(0, |at| at + 1)
    }

    /// How many characters behind the cursor the word there ends.
    fn word_end(&self) -> usize {
        let mut after = self.after.iter().rev();
        let skipped = after.by_ref().take_while(|c| !c.is_alphanumeric()).count();
        if skipped == self.after.len() {
            return skipped;
        }
        skipped + 1 + after.take_while(|c| c.is_alphanumeric()).count()
    }
}

/// It is a key rather than text, or ends a line.
fn is_special(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// How many bytes at the end are the beginning of a character.
fn incomplete(bytes: &[u8]) -> usize {
    let most = bytes.len().min(3);
    for count in 1..=most {
        let needed = match bytes[bytes.len() - count] {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            0x80..=0xbf => continue,
            _ => return 0,
        };
        return if needed > count { count } else { 0 };
    }
    0
}

/// The text that a line editor would be left with: editing keys applied, line ends kept.
pub fn edited(text: &str) -> String {
    let is_edited = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    if !text.contains(is_edited) {
        return text.to_owned();
    }
    let mut pending = PendingLine::default();
    let (mut lines, mut rest) = (Vec::new(), text.as_bytes());
    while let Some(enter) = pending.type_until_enter(rest) {
        lines.push(pending.text());
        pending.forget_line();
        rest = &rest[enter.end..];
    }
    lines.push(pending.text());
    lines.join("\n")
}

/// Follows quotes through a line: which one is open at its end, and whether a backslash takes the line end away.
fn scan(mut quote: Option<char>, text: &str) -> (Option<char>, bool) {
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
    (quote, is_escaped)
}

#[cfg(test)]
mod tests;
