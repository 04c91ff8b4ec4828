//! Text like that of an agent's session: prompts, prose, file positions, coloured errors.
//!
//! With `KPTY_WORKLOADS` set to a folder, `agent_session.bin` is read from there instead.

use std::fmt::Write;

const WORDS: [&str; 16] = [
    "and", "branch", "checked", "driver", "elapsed", "finished", "grid", "header", "input", "linking", "number",
    "output", "queue", "session", "until", "verified",
];
const FILES: [&str; 4] = ["src/cli/mod.rs", "emulator/src/lines.rs", "tests/it/main.rs", "include/cell.h"];

/// Generates at least `size` bytes, in complete lines.
#[allow(clippy::disallowed_methods, reason = "a benchmark is set by its environment")]
pub(crate) fn agent_session(size: usize) -> Vec<u8> {
    let Some(folder) = std::env::var_os("KPTY_WORKLOADS") else { return generated(size) };
    let path = std::path::Path::new(&folder).join("agent_session.bin");
    let one = std::fs::read(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    one.repeat(size.div_ceil(one.len()))
}

fn generated(size: usize) -> Vec<u8> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut text = String::with_capacity(size + 16_000);
    while text.len() < size {
        command(&mut random, &mut text);
    }
    text.into_bytes()
}

/// Generates a prompt with a command and its output.
fn command(random: &mut Random, text: &mut String) {
    let (name, file) = (random.pick(&WORDS), random.pick(&FILES));
    let _ = writeln!(text, "\x1b[?2004h\x1b[01;32mdemo@host\x1b[00m:\x1b[01;34m~/src\x1b[00m$ {name} {file}");
    text.push_str("\x1b[?2004l\r");
    for _ in 0..5 + random.below(196) {
        let _ = match random.below(12) {
            0..8 => (0..2 + random.below(12)).try_for_each(|_| write!(text, "{} ", random.pick(&WORDS))),
            8 | 9 => write!(text, "{}:{}: {}", random.pick(&FILES), random.below(2_000), random.pick(&WORDS)),
            10 => write!(text, "\x1b[1m\x1b[38;5;9merror\x1b[0m\x1b[1m: {}\x1b[0m", random.pick(&WORDS)),
            _ => Ok(()),
        };
        text.push('\n');
    }
}

/// xorshift: the same numbers on every machine and in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % limit
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.below(from.len())]
    }
}
