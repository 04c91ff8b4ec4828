//! Bytes to terminal actions: text runs, controls, escape sequences, strings.
//!
//! Owns the state between two chunks (half a UTF-8 character, half a sequence) and the bound on string
//! payloads. Knows no grid and gives no meaning to a sequence; a [`Sink`] does.
//!
//! The state machine is the well-known one of the DEC terminals with UTF-8 text, the same that `vte`
//! implements, and a test holds the two against each other. It is our own because four promises cannot
//! be kept on top of `vte` 0.15: any chunking gives the same result (`vte` drops a character when a chunk
//! ends inside a two-byte one that is followed by a cut multi-byte one), a string payload is bounded,
//! every sequence is visible, and plain text arrives as runs instead of single characters.

mod sequence;
#[cfg(test)]
mod tests;

pub(crate) use self::sequence::{Groups, Sequence};

/// Longest OSC payload that is kept. A longer string is swallowed to its end and then ignored.
pub(crate) const OSC_LIMIT: usize = 1 << 20;
/// Longest title of `ESC k`. A longer one is text.
const SCREEN_TITLE_LIMIT: usize = 4096;
/// Bytes kept of the payload of a device control string: every setting that can be asked for is shorter.
const DCS_LIMIT: usize = 8;
/// Characters beyond ASCII that are handed over at a time.
const TEXT_RUN: usize = 64;
/// A string buffer larger than this is given back once its string has ended.
const KEPT_CAPACITY: usize = 4096;

const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
const ESC: u8 = 0x1b;
const DEL: u8 = 0x7f;

/// What the parser found.
pub(crate) trait Sink {
    /// A run of printable ASCII, never empty.
    fn ascii(&mut self, run: &[u8]);
    /// A run of text beyond ASCII; U+FFFD stands for bytes that are no UTF-8. Encoded C1 controls may be in it: they
    /// are not acted on, and are no text either.
    fn text(&mut self, text: &[char]);
    /// A C0 control other than ESC.
    fn control(&mut self, byte: u8);
    /// `ESC`, intermediates, a final byte.
    fn escape(&mut self, intermediates: &[u8], last: u8);
    /// A control sequence. `length` is the number of bytes it took.
    fn csi(&mut self, sequence: &Sequence, length: usize);
    /// An operating system command within the bound; the payload is not split.
    fn osc(&mut self, payload: &[u8], end: StringEnd, length: usize);
    /// A device control string has ended. `payload` is its start, at most [`DCS_LIMIT`] bytes; the rest was thrown away.
    fn dcs(&mut self, header: &Sequence, payload: &[u8], length: usize);
    /// The title of `ESC k title ST`.
    fn screen_title(&mut self, title: &[u8]);
    /// Asked after each control sequence: true stops the parser behind it.
    fn wants_pause(&self) -> bool;
}

/// How a string ended; a reply uses the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StringEnd {
    Bell,
    StringTerminator,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    EscapeIntermediate,
    CsiParam,
    CsiIntermediate,
    CsiIgnore,
    DcsParam,
    DcsIntermediate,
    DcsIgnore,
    DcsPayload,
    Osc,
    ScreenTitle,
    /// An ESC after the text of a screen title: the end of the title, or something else.
    ScreenTitleEscape,
    /// SOS, PM, APC: swallowed to their end.
    IgnoredString,
}

/// The state machine. One per terminal.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    state: State,
    sequence: Sequence,
    /// Bytes of the sequence so far, its ESC included.
    length: usize,
    string: Vec<u8>,
    /// The string outgrew its bound.
    string_too_long: bool,
    /// The head of a UTF-8 character that the last chunk cut off.
    partial: [u8; 4],
    partial_len: usize,
}

impl Parser {
    /// Parses `bytes` up to their end, or to the sequence after which the sink wanted a pause.
    /// Returns how many bytes were taken.
    pub(crate) fn advance<S: Sink>(&mut self, sink: &mut S, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            if self.state == State::Ground {
                at += self.ground(sink, &bytes[at..]);
            } else {
                let dispatched = self.step(sink, bytes[at]);
                at += 1;
                if dispatched && sink.wants_pause() {
                    break;
                }
            }
        }
        at
    }

    /// Bytes of memory held between chunks.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.string.capacity()
    }

    /// Text and controls up to and including the next ESC. Returns the bytes taken.
    fn ground<S: Sink>(&mut self, sink: &mut S, bytes: &[u8]) -> usize {
        let mut at = 0;
        if self.partial_len > 0 {
            at = self.complete_partial(sink, bytes);
        }
        while at < bytes.len() {
            let run = printable_ascii(&bytes[at..]);
            if run > 0 {
                sink.ascii(&bytes[at..at + run]);
                at += run;
                if at == bytes.len() {
                    break;
                }
            }
            match bytes[at] {
                ESC => {
                    self.enter_escape();
                    return at + 1;
                }
                DEL => at += 1,
                byte if byte < 0x20 => {
                    sink.control(byte);
                    at += 1;
                }
                _ => {
                    let rest = &bytes[at..];
                    let run = rest.iter().position(u8::is_ascii).unwrap_or(rest.len());
                    self.unicode(sink, &rest[..run], run == rest.len());
                    at += run;
                }
            }
        }
        at
    }

    /// A run of bytes above ASCII. At the end of the chunk a cut character waits for the next one.
    fn unicode<S: Sink>(&mut self, sink: &mut S, mut bytes: &[u8], at_end: bool) {
        let mut text = ['\0'; TEXT_RUN];
        while !bytes.is_empty() {
            let mut len = 0;
            while len < TEXT_RUN
                && let Some((c, rest)) = decode(bytes)
            {
                text[len] = c;
                len += 1;
                bytes = rest;
            }
            if len > 0 {
                sink.text(&text[..len]);
                continue;
            }
            // Rare, so the standard library may tell how much of it is malformed.
            match std::str::from_utf8(bytes).map_err(|error| error.error_len()) {
                Err(None) if at_end => {
                    self.partial[..bytes.len()].copy_from_slice(bytes);
                    self.partial_len = bytes.len();
                    return;
                }
                Err(Some(malformed_len)) => {
                    malformed(sink, &bytes[..malformed_len]);
                    bytes = &bytes[malformed_len..];
                }
                _ => {
                    malformed(sink, bytes);
                    return;
                }
            }
        }
    }

    /// Adds bytes to the cut character until it is whole or broken. Returns the bytes taken.
    fn complete_partial<S: Sink>(&mut self, sink: &mut S, bytes: &[u8]) -> usize {
        for (taken, &byte) in bytes.iter().enumerate() {
            self.partial[self.partial_len] = byte;
            let candidate = &self.partial[..=self.partial_len];
            match std::str::from_utf8(candidate) {
                Ok(text) => {
                    text.chars().for_each(|c| sink.text(&[c]));
                    self.partial_len = 0;
                    return taken + 1;
                }
                Err(error) if error.error_len().is_some() => {
                    // The new byte does not continue the character: it is looked at afresh.
                    malformed(sink, &self.partial[..self.partial_len]);
                    self.partial_len = 0;
                    return taken;
                }
                Err(_) => self.partial_len += 1,
            }
        }
        bytes.len()
    }

    fn enter_escape(&mut self) {
        self.state = State::Escape;
        self.sequence.clear();
        self.length = 1;
    }

    /// The ESC has ended a string and counts as its last byte: it must not pay for an answer twice.
    fn enter_escape_after_string(&mut self) {
        self.enter_escape();
        self.length = 0;
    }

    /// One byte outside of ground. True when a control sequence was handed over.
    fn step<S: Sink>(&mut self, sink: &mut S, byte: u8) -> bool {
        self.length = self.length.saturating_add(1);
        match self.state {
            State::CsiParam => return self.csi_param(sink, byte),
            State::CsiIntermediate => return self.csi_intermediate(sink, byte),
            State::CsiIgnore => self.csi_ignore(sink, byte),
            State::Escape => self.escape(sink, byte),
            State::EscapeIntermediate => self.escape_intermediate(sink, byte),
            State::Osc => self.osc(sink, byte),
            State::ScreenTitle => self.screen_title(sink, byte),
            State::ScreenTitleEscape => return self.screen_title_escape(sink, byte),
            State::DcsParam => self.dcs_param(sink, byte),
            State::DcsIntermediate => self.dcs_intermediate(sink, byte),
            State::DcsPayload => self.dcs_payload(sink, byte),
            State::DcsIgnore | State::IgnoredString | State::Ground => self.anywhere(sink, byte),
        }
        false
    }

    /// CAN and SUB abort, ESC begins anew; every other byte is ignored.
    fn anywhere<S: Sink>(&mut self, sink: &mut S, byte: u8) {
        match byte {
            CAN | SUB => {
                self.state = State::Ground;
                sink.control(byte);
            }
            ESC => self.enter_escape(),
            _ => (),
        }
    }

    fn escape<S: Sink>(&mut self, sink: &mut S, byte: u8) {
        match byte {
            b'[' => {
                self.sequence.begin_params();
                self.state = State::CsiParam;
            }
            b']' => self.begin_string(State::Osc),
            b'P' => {
                self.sequence.begin_params();
                self.state = State::DcsParam;
            }
            b'k' => self.begin_string(State::ScreenTitle),
            b'X' | b'^' | b'_' => self.state = State::IgnoredString,
            0x20..=0x2f => {
                self.sequence.collect(byte);
                self.state = State::EscapeIntermediate;
            }
            0x30..=0x7e => {
                self.state = State::Ground;
                sink.escape(&[], byte);
            }
            ESC => self.enter_escape(),
            CAN | SUB => self.anywhere(sink, byte),
            0x00..=0x1f => sink.control(byte),
            _ => (),
        }
    }

    fn escape_intermediate<S: Sink>(&mut self, sink: &mut S, byte: u8) {
        match byte {
            0x20..=0x2f => self.sequence.collect(byte),
            0x30..=0x7e => {
                self.state = State::Ground;
                if !self.sequence.overflow {
                    sink.escape(self.sequence.intermediates(), byte);
                }
            }
            ESC | CAN | SUB => self.anywhere(sink, byte),
            0x00..=0x1f => sink.control(byte),
            _ => (),
        }
    }

    fn csi_param<S: Sink>(&mut self, sink: &mut S, byte: u8) -> bool {
        match byte {
            b'0'..=b'9' => self.sequence.digit(byte),
            b';' => self.sequence.next_param(false),
            0x40..=0x7e => return self.csi_end(sink, byte),
            b':' => self.sequence.next_param(true),
            0x3c..=0x3f if self.sequence.fresh => self.sequence.collect(byte),
            0x3c..=0x3f => self.state = State::CsiIgnore,
            0x20..=0x2f => {
                self.sequence.collect(byte);
                self.state = State::CsiIntermediate;
            }
            ESC | CAN | SUB => self.anywhere(sink, byte),
            0x00..=0x1f => sink.control(byte),
            _ => (),
        }
        false
    }

    fn csi_intermediate<S: Sink>(&mut self, sink: &mut S, byte: u8) -> bool {
        match byte {
            0x20..=0x2f => self.sequence.collect(byte),
            0x30..=0x3f => self.state = State::CsiIgnore,
            0x40..=0x7e => return self.csi_end(sink, byte),
            ESC | CAN | SUB => self.anywhere(sink, byte),
            0x00..=0x1f => sink.control(byte),
            _ => (),
        }
        false
    }

    fn csi_ignore<S: Sink>(&mut self, sink: &mut S, byte: u8) {
        match byte {
            0x40..=0x7e => self.state = State::Ground,
            ESC | CAN | SUB => self.anywhere(sink, byte),
            0x00..=0x1f => sink.control(byte),
            _ => (),
        }
    }

    fn csi_end<S: Sink>(&mut self, sink: &mut S, byte: u8) -> bool {
        self.state = State::Ground;
        if self.sequence.overflow {
            return false;
        }
        self.sequence.last = byte;
        sink.csi(&self.sequence, self.length);
        true
    }

    fn dcs_param<S: Sink>(&mut self, sink: &mut S, byte: u8) {
        match byte {
            b'0'..=b'9' => self.sequence.digit(byte),
            b';' => self.sequence.next_param(false),
            b':' => self.sequence.next_param(true),
            0x3c..=0x3f if self.sequence.fresh => self.sequence.collect(byte),
            0x3c..=0x3f => self.state = State::DcsIgnore,
            0x20..=0x2f => {
                self.sequence.collect(byte);
                self.state = State::DcsIntermediate;
            }
            0x40..=0x7e => self.dcs_begin(byte),
            _ => self.anywhere(sink, byte),
        }
    }

    fn dcs_intermediate<S: Sink>(&mut self, sink: &mut S, byte: u8) {
        match byte {
            0x20..=0x2f => self.sequence.collect(byte),
            0x30..=0x3f => self.state = State::DcsIgnore,
            0x40..=0x7e => self.dcs_begin(byte),
            _ => self.anywhere(sink, byte),
        }
    }

    fn dcs_begin(&mut self, byte: u8) {
        self.sequence.last = byte;
        self.begin_string(State::DcsPayload);
    }

    fn dcs_payload<S: Sink>(&mut self, sink: &mut S, byte: u8) {
        match byte {
            ESC | 0x9c => {
                if !self.sequence.overflow {
                    sink.dcs(&self.sequence, &self.string, self.length);
                }
                self.state = State::Ground;
                if byte == ESC {
                    self.enter_escape_after_string();
                }
            }
            0x20.. => self.put(byte, DCS_LIMIT),
            _ => self.anywhere(sink, byte),
        }
    }

    fn begin_string(&mut self, state: State) {
        self.string.clear();
        self.string_too_long = false;
        self.state = state;
    }

    fn put(&mut self, byte: u8, limit: usize) {
        if self.string.len() < limit {
            self.string.push(byte);
        } else {
            self.string_too_long = true;
        }
    }

    fn osc<S: Sink>(&mut self, sink: &mut S, byte: u8) {
        match byte {
            0x20.. => self.put(byte, OSC_LIMIT),
            BEL => {
                self.state = State::Ground;
                self.osc_end(sink, StringEnd::Bell);
            }
            ESC => {
                self.osc_end(sink, StringEnd::StringTerminator);
                self.enter_escape_after_string();
            }
            _ => self.anywhere(sink, byte),
        }
    }

    fn osc_end<S: Sink>(&mut self, sink: &mut S, end: StringEnd) {
        if !self.string_too_long {
            sink.osc(&self.string, end, self.length);
        }
        self.release_string();
    }

    /// `ESC k` is a title only if it ends as one. Everything else shows that it was a stray sequence, which other
    /// terminals ignore, and that what was held back is text.
    fn screen_title<S: Sink>(&mut self, sink: &mut S, byte: u8) {
        match byte {
            ESC => self.state = State::ScreenTitleEscape,
            0x20.. if self.string.len() < SCREEN_TITLE_LIMIT => self.string.push(byte),
            _ => {
                self.print_string(sink);
                self.ground(sink, &[byte]);
            }
        }
    }

    fn screen_title_escape<S: Sink>(&mut self, sink: &mut S, byte: u8) -> bool {
        if byte == b'\\' {
            sink.screen_title(&self.string);
            self.release_string();
            self.state = State::Ground;
            return false;
        }
        self.print_string(sink);
        self.enter_escape();
        self.step(sink, byte)
    }

    /// What was taken for a string is text after all.
    fn print_string<S: Sink>(&mut self, sink: &mut S) {
        let text = std::mem::take(&mut self.string);
        self.state = State::Ground;
        self.ground(sink, &text);
        // Whatever comes next ends a character that the text left unfinished.
        if self.partial_len > 0 {
            malformed(sink, &self.partial[..self.partial_len]);
            self.partial_len = 0;
        }
    }

    fn release_string(&mut self) {
        self.string.clear();
        self.string.shrink_to(KEPT_CAPACITY);
    }
}

/// Length of the leading run of printable ASCII.
fn printable_ascii(bytes: &[u8]) -> usize {
    const STEP: usize = 32;
    let is_printable = |byte: u8| byte.wrapping_sub(0x20) < 0x5f;
    let run_in = |bytes: &[u8]| bytes.iter().position(|&byte| !is_printable(byte)).unwrap_or(bytes.len());
    // Short runs end here; longer ones go on in whole steps: a fold without an early exit is what the compiler turns
    // into vector code.
    let mut at = run_in(&bytes[..bytes.len().min(STEP / 2)]);
    if at < STEP / 2 {
        return at;
    }
    for step in bytes[at..].chunks_exact(STEP) {
        if !step.iter().fold(true, |all, &byte| all & is_printable(byte)) {
            break;
        }
        at += STEP;
    }
    at + run_in(&bytes[at..])
}

/// The first character of bytes above ASCII and what follows it; `None` when it is cut or malformed. Does in one go what
/// validating a string and then taking its characters does in two.
#[inline]
fn decode(bytes: &[u8]) -> Option<(char, &[u8])> {
    let low = |byte: u8| (byte & 0xc0 == 0x80).then_some(u32::from(byte & 0x3f));
    let (code, shortest, rest) = match *bytes {
        [a @ 0xc2..=0xdf, b, ref rest @ ..] => (u32::from(a & 0x1f) << 6 | low(b)?, 0x80, rest),
        [a @ 0xe0..=0xef, b, c, ref rest @ ..] => (u32::from(a & 0x0f) << 12 | low(b)? << 6 | low(c)?, 0x800, rest),
        [a @ 0xf0..=0xf4, b, c, d, ref rest @ ..] => {
            (u32::from(a & 0x07) << 18 | low(b)? << 12 | low(c)? << 6 | low(d)?, 0x1_0000, rest)
        }
        _ => return None,
    };
    // Longer than needed is malformed; `char` knows the surrogates and the end of Unicode.
    let c = char::from_u32(code).filter(|_| code >= shortest)?;
    Some((c, rest))
}

/// Bytes that are no UTF-8: one replacement character, except for a lone 8-bit C1 control.
fn malformed<S: Sink>(sink: &mut S, bytes: &[u8]) {
    if !matches!(bytes, [0x80..=0x9f]) {
        sink.text(&[char::REPLACEMENT_CHARACTER]);
    }
}
