//! Thirteen deterministic streams: the kinds of output that terminals get.
//!
//! With `KPTY_WORKLOADS` set to a folder, `NAME.bin` is read from there instead, so that others can measure the
//! same bytes.

use std::fmt::Write;

use super::{COLS, ROWS};

/// Name and one unit (a line, a frame) of each workload; the argument counts the units.
type Unit = fn(&mut Random, usize) -> String;

pub(crate) const WORKLOADS: [(&str, Unit); 13] = [
    ("dense_ascii", dense_ascii),
    ("seq_numbers", |_, n| format!("{}\r\n", n + 1)),
    ("yes_short", |_, _| "y\r\n".to_owned()),
    ("long_wrapped", long_wrapped),
    ("build_log", build_log),
    ("sgr_heavy", sgr_heavy),
    ("tui_redraw", tui_redraw),
    ("cursor_motion", cursor_motion),
    ("unicode_mix", unicode_mix),
    ("scroll_region", scroll_region),
    ("alt_random", alt_random),
    ("progress_cr", progress_cr),
    ("agent_session", agent_session),
];

/// At least `size` bytes of a workload, in whole units.
#[allow(clippy::disallowed_methods, reason = "a benchmark is set by its environment")]
pub(crate) fn bytes(name: &str, size: usize) -> Vec<u8> {
    if let Some(folder) = std::env::var_os("KPTY_WORKLOADS") {
        let path = std::path::Path::new(&folder).join(format!("{name}.bin"));
        return std::fs::read(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    }
    let unit = WORKLOADS.iter().find(|(known, _)| *known == name).map(|(_, unit)| unit);
    let unit = unit.unwrap_or_else(|| panic!("there is no workload {name}"));
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut stream = String::new();
    for count in 0.. {
        stream.push_str(&unit(&mut random, count));
        if stream.len() >= size {
            break;
        }
    }
    stream.into_bytes()
}

/// xorshift: the same numbers everywhere and for ever.
pub(crate) struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % limit
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn words(&mut self, count: usize) -> String {
        let words: Vec<&str> = (0..count).map(|_| self.pick(WORDS)).collect();
        words.join(" ")
    }
}

const WORDS: &[&str] = &[
    "and", "branch", "checked", "driver", "elapsed", "finished", "grid", "header", "input", "jobs", "keys", "linking",
    "marker", "number", "output", "parser", "queue", "reading", "session", "terminal", "until", "verified", "waiting",
    "xdg", "yielded", "zeroed",
];
const FILES: &[&str] =
    &["src/cli/mod.rs", "emulator/src/lines.rs", "tests/it/main.rs", "lib/term/grid.c", "include/cell.h"];

fn dense_ascii(_: &mut Random, n: usize) -> String {
    let line: String = (0..COLS - 1).map(|col| char::from(b'!' + ((n + col) % 94) as u8)).collect();
    line + "\r\n"
}

fn long_wrapped(random: &mut Random, _: usize) -> String {
    let length = 2_000 + random.below(6_000);
    let mut line: String = (0..length).map(|at| char::from(b'0' + (at % 75) as u8)).collect();
    line.push_str("\r\n");
    line
}

fn build_log(random: &mut Random, n: usize) -> String {
    match random.below(10) {
        0..6 => {
            let count = 3 + random.below(12);
            format!("{n:06} {}: {}\r\n", random.pick(FILES), random.words(count))
        }
        6 | 7 => format!("   \x1b[1;32mCompiling\x1b[0m {} v0.{}.1\r\n", random.pick(WORDS), random.below(30)),
        8 => format!("test {}::{} ... \x1b[32mok\x1b[m\r\n", random.pick(WORDS), random.pick(WORDS)),
        _ => "\r\n".to_owned(),
    }
}

fn sgr_heavy(random: &mut Random, _: usize) -> String {
    let mut line = String::new();
    let mut used = 0;
    while used < COLS - 20 {
        let word = random.pick(WORDS);
        used += word.len() + 1;
        let mut byte = || random.below(256);
        let _ = match byte() % 6 {
            0 => write!(line, "\x1b[{}m{word}\x1b[0m ", 30 + byte() % 8),
            1 => write!(line, "\x1b[1;{};{}m{word}\x1b[m ", 30 + byte() % 8, 40 + byte() % 8),
            2 => write!(line, "\x1b[38;5;{}m{word}\x1b[39m ", byte()),
            3 => write!(line, "\x1b[38;2;{};{};{}m{word}\x1b[0m ", byte(), byte(), byte()),
            4 => write!(line, "\x1b[4;3m{word}\x1b[24;23m "),
            _ => write!(line, "{word} "),
        };
    }
    line + "\x1b[0m\x1b[K\r\n"
}

fn tui_redraw(random: &mut Random, n: usize) -> String {
    let mut frame = if n == 0 { "\x1b[?1049h\x1b[2J\x1b[?25l".to_owned() } else { "\x1b[H".to_owned() };
    for cpu in 1..=4 {
        let fill = random.below(40);
        let bar = "|".repeat(fill);
        let _ = write!(
            frame,
            "\x1b[{cpu};3H\x1b[36m{cpu}\x1b[1;39m[\x1b[32m{bar}\x1b[{cpu};52H\x1b[1;30m{fill:>4}%\x1b[0m]\x1b[K"
        );
    }
    let _ = write!(frame, "\x1b[6;1H\x1b[30;42m{:<COLS$}\x1b[0m", "    PID USER      PRI  NI  VIRT   RES COMMAND");
    for row in 7..ROWS {
        let mark = if row == 7 + n % (ROWS - 8) { "\x1b[7m" } else { "" };
        let _ = write!(
            frame,
            "\x1b[{row};1H{mark}{:>7} \x1b[35mdemo     \x1b[39m 20   0 \x1b[36m{:>6}M\x1b[39m {:>5} \x1b[1m{:>5}\x1b[0m \x1b[32m/usr/bin/{}\x1b[39m --{}\x1b[0m\x1b[K",
            random.below(60_000),
            random.below(9_000),
            random.below(99_999),
            random.below(1_000),
            random.pick(WORDS),
            random.pick(WORDS),
        );
    }
    let _ = write!(frame, "\x1b[{ROWS};1H\x1b[30;46mF1\x1b[0mHelp  \x1b[30;46mF10\x1b[0mQuit\x1b[K");
    frame
}

fn cursor_motion(random: &mut Random, _: usize) -> String {
    let word = random.pick(WORDS);
    match random.below(8) {
        0..3 => format!("\x1b[{};{}H{word}", 1 + random.below(ROWS), 1 + random.below(COLS)),
        3 => format!("\x1b[{}{}{}", 1 + random.below(6), random.pick(&["A", "B", "C", "D"]), &word[..3]),
        4 => format!("\x1b[{}X", 1 + random.below(10)),
        5 => format!("\x1b[{}{}", 1 + random.below(5), random.pick(&["P", "@"])),
        6 => random.pick(&["\x1b[K", "\x1b[1K", "\x1b[0K"]).to_owned(),
        _ => format!("\r\x1b[{}C\x08\x08{}", 1 + random.below(40), random.below(100)),
    }
}

fn unicode_mix(random: &mut Random, _: usize) -> String {
    const WIDE: &[&str] = &["端", "末", "表", "示", "文", "字", "글", "자", "行", "幅"];
    const EMOJI: &[&str] = &["😀", "🦀", "👩\u{200d}💻", "🇳🇴", "👍🏽", "❤\u{fe0f}", "🔥"];
    const ACCENTED: &[&str] = &["å", "ø", "ß", "e\u{301}", "o\u{308}", "ñ"];
    let mut line = String::new();
    let mut used = 0;
    while used < COLS - 12 {
        let (count, set, width) = match random.below(10) {
            0..5 => (3 + random.below(6), WIDE, 2),
            5 => (1, EMOJI, 2),
            6 => (2 + random.below(5), ACCENTED, 1),
            7 => (4, &["─", "│", "┌", "┘"] as &[&str], 1),
            _ => (1, WORDS, 8),
        };
        for _ in 0..count {
            line.push_str(random.pick(set));
        }
        used += count * width;
    }
    line + "\r\n"
}

fn scroll_region(random: &mut Random, n: usize) -> String {
    let last = ROWS - 1;
    let mut unit = if n == 0 { format!("\x1b[2;{last}r\x1b[{last};1H") } else { String::new() };
    let count = 4 + random.below(10);
    let _ = write!(unit, "\r\n{}", random.words(count));
    let _ = match random.below(16) {
        0 => write!(unit, "\x1b7\x1b[{ROWS};1H\x1b[7m{:>3}% done\x1b[0m\x1b[K\x1b8", n % 100),
        1 => write!(unit, "\x1b[2;1H\x1bM{}\x1b[{last};1H", random.pick(WORDS)),
        2 => write!(unit, "\x1b[{};1H\x1b[{}L\x1b[{last};1H", 2 + random.below(ROWS - 3), 1 + random.below(3)),
        _ => Ok(()),
    };
    unit
}

fn alt_random(random: &mut Random, n: usize) -> String {
    let start = if n == 0 { "\x1b[?1049h\x1b[2J" } else { "" };
    let (row, col) = (1 + random.below(ROWS), 1 + random.below(COLS));
    let (fg, bg) = (random.below(256), random.below(256));
    let c = char::from(b'!' + random.below(94) as u8);
    format!("{start}\x1b[{row};{col}H\x1b[38;5;{fg};48;5;{bg}m{c}")
}

fn progress_cr(random: &mut Random, n: usize) -> String {
    let percent = n % 101;
    let bar = "#".repeat(percent * 40 / 100);
    let end = if percent == 100 { "\r\n" } else { "" };
    let (file, rate) = (random.pick(FILES), random.below(99_999));
    format!("\r\x1b[K\x1b[32mDownloading\x1b[0m {file} [{bar:<40}] {percent:>3}% {rate}/s{end}")
}

fn agent_session(random: &mut Random, _: usize) -> String {
    let mut unit = format!(
        "\x1b[?2004h\x1b[01;32mdemo@host\x1b[00m:\x1b[01;34m~/src\x1b[00m$ {} --{} {}\r\n\x1b[?2004l\r",
        random.pick(WORDS),
        random.pick(WORDS),
        random.pick(FILES)
    );
    for _ in 0..5 + random.below(196) {
        match random.below(12) {
            0..8 => {
                let count = 2 + random.below(12);
                unit.push_str(&random.words(count));
            }
            8 | 9 => {
                let _ = write!(unit, "{}:{}: {}", random.pick(FILES), random.below(2_000), random.pick(WORDS));
            }
            10 => {
                let _ = write!(unit, "\x1b[1m\x1b[38;5;9merror\x1b[0m\x1b[1m: {}\x1b[0m", random.pick(WORDS));
            }
            _ => (),
        }
        unit.push_str("\r\n");
    }
    unit
}
