//! The marks in a terminal's output: where a shell's prompt, a command and its end are.
//!
//! A byte scanner beside the emulator's parser. It looks before the emulator holds anything back for a synchronized
//! update, and cuts the stream right behind each mark, so that whoever feeds the emulator knows where on the screen
//! the mark stands. Whether a mark may be believed is not decided here.

use memchr::memchr;

/// Longest string that can be a mark, in bytes: a path of 4,096 and what stands around it.
const LONGEST_MARK: usize = 4_400;
/// Longest parameters of a mode change that are looked at.
const LONGEST_CSI: usize = 32;
const ESC: u8 = 0x1b;

/// Something the scanner knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// One of OSC 133, with the key it carries.
    Shell {
        /// What happened.
        event: ShellEvent,
        /// Proof of where it comes from.
        key: String,
    },
    /// OSC 7: the shell's directory.
    Directory {
        /// Where the host's name would be.
        key: String,
        /// The path.
        path: String,
    },
    /// The statuses of the pipeline that a typed sentinel's command ended with.
    Pipeline {
        /// The nonce of the sentinel.
        key: String,
        /// As the shell joined them.
        statuses: String,
    },
    /// Mode 2004: a line editor began (true) or stopped (false) to read.
    Paste(bool),
}

/// What a shell tells by OSC 133.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShellEvent {
    /// A prompt begins; the status of the last command, as a reserve.
    PromptStart(Option<i32>),
    /// The prompt is complete; the shell reads.
    PromptEnd,
    /// The shell wants the rest of a command.
    Continuation,
    /// A command starts.
    Start,
    /// It ended with this status.
    End(Option<i32>),
    /// The same, behind the text of the hook that printed it.
    ShownEnd(Option<i32>),
    /// The text of what tells the end is shown from here on.
    Shown,
    /// All start-up files have been read.
    FilesRead,
    /// The starts of commands cannot be marked.
    NoStarts,
    /// A shell on another machine tells its dialect, as a number.
    Dialect(Option<i32>),
    /// A typed sentinel's beginning.
    SentinelStart,
    /// A typed sentinel's end, with the status.
    SentinelEnd(Option<i32>),
    /// The command of a typed sentinel is over, and what follows is ours. Twice, so that what a trap of the user's prints
    /// for each of our own commands is known; true where a trap runs before its command.
    SentinelNote(bool),
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Readiness,
    Escape,
    Csi,
    Osc,
    /// ESC inside a string: its end, if a backslash follows.
    OscEscape,
}

/// Finds marks in a stream that is cut anywhere.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    state: State,
    text: Vec<u8>,
}

impl Scanner {
    /// Goes on until a mark is complete. Returns it and the number of bytes up to its end; `None` when all bytes were
    /// taken without one.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Option<(usize, Mark)> {
        let mut at = 0;
        while at < bytes.len() {
            if matches!(self.state, State::Readiness) {
                at += memchr(ESC, &bytes[at..])? + 1;
                self.state = State::Escape;
                continue;
            }
            let byte = bytes[at];
            at += 1;
            if let Some(mark) = self.step(byte) {
                return Some((at, mark));
            }
        }
        None
    }

    fn step(&mut self, byte: u8) -> Option<Mark> {
        match (&self.state, byte) {
            // CAN and SUB end everything.
            (_, 0x18 | 0x1a) => self.state = State::Readiness,
            (State::Osc, ESC) => self.state = State::OscEscape,
            (_, ESC) => self.state = State::Escape,
            (State::Osc, 0x07) | (State::OscEscape, b'\\') => {
                self.state = State::Readiness;
                return parse_osc(&self.text);
            }
            (State::Osc, _) => {
                self.text.push(byte);
                // What is too long is no mark; the next ESC starts something new anyway.
                if self.text.len() > LONGEST_MARK {
                    self.state = State::Readiness;
                }
            }
            (State::Escape | State::OscEscape, b']') => self.begin(State::Osc),
            (State::Escape | State::OscEscape, b'[') => self.begin(State::Csi),
            (State::Csi, 0x20..=0x3f) if self.text.len() < LONGEST_CSI => self.text.push(byte),
            // Control characters act in the middle of a sequence and do not end it.
            (State::Csi, 0x00..=0x1f) => {}
            (State::Csi, _) => {
                self.state = State::Readiness;
                return parse_csi(&self.text, byte);
            }
            _ => self.state = State::Readiness,
        }
        None
    }

    fn begin(&mut self, state: State) {
        self.text.clear();
        self.state = state;
    }
}

fn parse_csi(parameters: &[u8], last: u8) -> Option<Mark> {
    let modes = std::str::from_utf8(parameters.strip_prefix(b"?")?).ok()?;
    let is_on = match last {
        b'h' | b'H' => true,
        b'l' | b'L' => false,
        _ => return None,
    };
    modes.split(';').any(|mode| mode == "2004").then_some(Mark::Paste(is_on))
}

fn parse_osc(text: &[u8]) -> Option<Mark> {
    let text = std::str::from_utf8(text).ok()?;
    if let Some(rest) = text.strip_prefix("7;file://") {
        let slash = rest.find('/')?;
        return Some(Mark::Directory { key: rest[..slash].to_owned(), path: rest[slash..].to_owned() });
    }
    let mut parts = text.strip_prefix("133;")?.split(';');
    let letter = parts.next()?;
    let (mut value, mut key) = (None, None);
    for part in parts {
        match part.split_at_checked(2) {
            Some(("k=", part)) => key = Some(part.to_owned()),
            // The terminal's settings turn what is printed into capitals (`stty olcuc`); keys have none.
            Some(("K=", part)) => key = Some(part.to_ascii_lowercase()),
            _ => value = Some(part),
        }
    }
    if letter == "L" {
        return Some(Mark::Pipeline { key: key?, statuses: value?.to_owned() });
    }
    let shown = value.and_then(|value| value.strip_suffix(['v', 'V']));
    let (status, is_shown) = (shown.or(value).and_then(|value| value.parse().ok()), shown.is_some());
    let event = match letter {
        "A" => ShellEvent::PromptStart(status),
        "B" => ShellEvent::PromptEnd,
        "P" => ShellEvent::Continuation,
        "C" => ShellEvent::Start,
        "D" if is_shown => ShellEvent::ShownEnd(status),
        "D" => ShellEvent::End(status),
        "V" => ShellEvent::Shown,
        "F" => ShellEvent::FilesRead,
        "N" => ShellEvent::NoStarts,
        "Y" => ShellEvent::Dialect(status),
        "S" => ShellEvent::SentinelStart,
        "E" => ShellEvent::SentinelEnd(status),
        "T" => ShellEvent::SentinelNote(!value.is_some_and(|value| value.eq_ignore_ascii_case("off"))),
        _ => return None,
    };
    Some(Mark::Shell { event, key: key? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(scanner: &mut Scanner, bytes: &[u8]) -> Vec<(usize, Mark)> {
        let (mut found, mut base) = (Vec::new(), 0);
        while let Some((end, mark)) = scanner.next(&bytes[base..]) {
            base += end;
            found.push((base, mark));
        }
        found
    }

    fn shell(event: ShellEvent, key: &str) -> Mark {
        Mark::Shell { event, key: key.to_owned() }
    }

    #[test]
    fn marks_are_found_wherever_the_stream_is_cut() {
        let stream = b"a\x1b]133;C;k=s\x1b\\out\x1b[?2004h\x1b]133;D;3;k=s\x07\x1b]7;file://s/tmp/x y\x1b\\b\x1b[31m\x1b[?1;2004l";
        let expected = vec![
            (14, shell(ShellEvent::Start, "s")),
            (25, Mark::Paste(true)),
            (39, shell(ShellEvent::End(Some(3)), "s")),
            (61, Mark::Directory { key: "s".into(), path: "/tmp/x y".into() }),
            (stream.len(), Mark::Paste(false)),
        ];
        assert_eq!(scan(&mut Scanner::default(), stream), expected);
        for cut in 0..stream.len() {
            let mut scanner = Scanner::default();
            let mut found = scan(&mut scanner, &stream[..cut]);
            found.extend(scan(&mut scanner, &stream[cut..]).into_iter().map(|(at, mark)| (at + cut, mark)));
            assert_eq!(found, expected, "cut at {cut}");
        }
    }

    #[test]
    fn a_mark_survives_what_a_program_left_open() {
        let mark = b"\x1b]133;D;0;k=s\x1b\\";
        for before in
            [&b"\x1b]0;title"[..], b"\x1bPq", b"\x1b[3", b"\x1b", b"\xe6\x97", b"\x1b[?2026h", b"\x1b(", b"\x0e"]
        {
            let found = scan(&mut Scanner::default(), &[before, mark].concat());
            assert_eq!(found.len(), 1, "{before:?}");
        }
    }

    #[test]
    fn what_is_no_mark_is_passed_over() {
        for stream in [
            &b"\x1b]133;D;0\x1b\\"[..],
            b"\x1b]133;Z;k=s\x07",
            b"\x1b]0;133;D;k=s\x07",
            b"\x1b]133;D;0;k=s\x18\\",
            b"\x1b[2004h",
            b"\x1b[?2004$p",
            b"\x1b]7;file://nohost\x07",
        ] {
            assert_eq!(scan(&mut Scanner::default(), stream), [], "{stream:?}");
        }
        let long = [b"\x1b]133;D;0;k=".as_slice(), &vec![b'x'; 1 << 20], b"\x07"].concat();
        let mut scanner = Scanner::default();
        assert_eq!(scan(&mut scanner, &long), []);
        assert!(scanner.text.capacity() < 4 * LONGEST_MARK, "{}", scanner.text.capacity());
    }
}
