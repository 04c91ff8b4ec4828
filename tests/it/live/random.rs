//! Commands put together at random from harmless parts, whose output and code are known beforehand.

use std::sync::Arc;

use kpty::terminal::local::Integration;
use tokio::task::JoinSet;

use super::{Seeded, amount, ask, session};
use crate::talk::{Bench, lines_of};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Posix,
    Fish,
}

/// Text that shells and terminals have to carry unharmed.
const WORDS: [&str; 16] = [
    "plain",
    "it's",
    "\"quoted\"",
    "$HOME",
    "back\\slash",
    "wow!",
    "über",
    "漢字かな",
    "🙂🙃",
    "cafe\u{301}",
    "`tick`",
    "a  b   c",
    "#comment",
    "~*?[x]{a,b}",
    "%d %s",
    "-n",
];

/// A command under construction, and what will come of it.
struct Script {
    random: Seeded,
    dialect: Dialect,
    text: String,
    printed: String,
    code: i32,
}

impl Script {
    fn new(seed: u64, dialect: Dialect) -> Self {
        let mut script = Self { random: Seeded(seed), dialect, text: String::new(), printed: String::new(), code: 0 };
        for part in 0..1 + script.random.below(5) {
            if part > 0 {
                let separator = script.random.pick(&["; ", "\n", "\n\n", " ; "]);
                // What follows a here-document has a line of its own.
                let separator = if script.text.ends_with("\nEOF") { "\n" } else { separator };
                script.text.push_str(separator);
            }
            script.add_part();
        }
        script
    }

    fn quoted(&self, word: &str) -> String {
        match self.dialect {
            Dialect::Posix => format!("'{}'", word.replace('\'', r"'\''")),
            Dialect::Fish => format!("'{}'", word.replace('\\', r"\\").replace('\'', r"\'")),
        }
    }

    fn word(&mut self) -> &'static str {
        self.random.pick(&WORDS)
    }

    fn add(&mut self, text: &str, printed: &str, code: i32) {
        self.text.push_str(text);
        self.printed.push_str(printed);
        self.code = code;
    }

    fn add_part(&mut self) {
        let number = self.random.below(1_000);
        match self.random.below(14) {
            0 | 1 => {
                let (first, second) = (self.word(), self.word());
                let text = format!("printf '%s %s\\n' {} {}", self.quoted(first), self.quoted(second));
                self.add(&text, &format!("{first} {second}\n"), 0);
            }
            2 => {
                let word = self.word();
                let text = format!("printf %s {}", self.quoted(word));
                self.add(&text, word, 0);
            }
            3 => {
                let length = [1, 78, 79, 80, 81, 159, 160, 161, 2_000][self.random.below(9) as usize];
                let long = self.random.pick(&["x", "漢", "é"]).repeat(length);
                self.add(&format!("echo {long}"), &format!("{long}\n"), 0);
            }
            4 => {
                let colour = 31 + number % 6;
                let text = format!("printf '\\033[1;{colour}mred{number}\\033[0m\\n'");
                self.add(&text, &format!("red{number}\n"), 0);
            }
            5 => {
                let code = (number % 256) as i32;
                self.add(&format!("sh -c 'exit {code}'"), "", code);
            }
            6 => self.add("false", "", 1),
            7 => self.add(&format!("echo;printf 'a\\tb{number}\\tc\\n'"), &tabbed(number), 0),
            8 => self.add(&format!("echo; printf '10%%\\r20%%\\rdone{number}\\n'"), &format!("\ndone{number}\n"), 0),
            9 => {
                let text = match self.dialect {
                    Dialect::Posix => format!("for i in 1 2 3; do echo \"n{number}.$i\"; done"),
                    Dialect::Fish => format!("for i in 1 2 3; echo \"n{number}.$i\"; end"),
                };
                self.add(&text, &format!("n{number}.1\nn{number}.2\nn{number}.3\n"), 0);
            }
            10 => {
                let text = match self.dialect {
                    Dialect::Posix => format!("if test {number} -gt 500\nthen\n  echo more\nelse\n  echo less\nfi"),
                    Dialect::Fish => format!("if test {number} -gt 500\n  echo more\nelse\n  echo less\nend"),
                };
                self.add(&text, if number > 500 { "more\n" } else { "less\n" }, 0);
            }
            11 => {
                let word = self.word();
                match self.dialect {
                    Dialect::Posix => {
                        let text = format!("cat <<'EOF'\nbegin {number}\n{word}\n\nend\nEOF");
                        self.add(&text, &format!("begin {number}\n{word}\n\nend\n"), 0);
                    }
                    Dialect::Fish => {
                        let text = format!("printf '%s\\n' {} | cat", self.quoted(&format!("a\n{word}\nb")));
                        self.add(&text, &format!("a\n{word}\nb\n"), 0);
                    }
                }
            }
            12 => self.add(&format!("printf 'b{number}\\na\\n' | sort"), &format!("a\nb{number}\n"), 0),
            _ => {
                let lines = 1 + number % 60;
                let printed: String = (1..=lines).map(|line| format!("{line}\n")).collect();
                self.add(&format!("seq {lines}"), &printed, 0);
            }
        }
    }
}

/// Text with tabs, after an end of line, as the terminal shows it.
fn tabbed(number: u64) -> String {
    format!("\na       {:<8}c\n", format!("b{number}"))
}

async fn check(bench: &Bench, shell: &str, integration: Integration, seed: u64) {
    let dialect = if shell.ends_with("fish") { Dialect::Fish } else { Dialect::Posix };
    let session = session(bench, shell, integration).await;
    for round in 0..amount(150, 3_000) as u64 {
        let script = Script::new(seed * 1_000_000 + round, dialect);
        let told = ask(&session, &script.text).await;
        let context = format!("{shell} {integration:?} {round}: {:?}", script.text);
        assert_eq!(lines_of(&told.output.text), lines_of(&script.printed), "{context}");
        assert_eq!(told.exit_code, Some(script.code), "{context}");
    }
    session.kill().await.expect("it dies");
}

async fn check_all(integration: Integration, shells: &'static [&'static str]) {
    let bench = Arc::new(Bench::new());
    let mut running = JoinSet::new();
    for (seed, shell) in shells.iter().enumerate() {
        let bench = Arc::clone(&bench);
        running.spawn(async move { check(&bench, shell, integration, 1 + seed as u64).await });
    }
    while let Some(joined) = running.join_next().await {
        joined.expect("every answer is right");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_commands_are_answered_right_with_start_up_files() {
    check_all(Integration::Auto, &["/bin/bash", "/usr/bin/zsh", "/usr/bin/fish"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_commands_are_answered_right_without_start_up_files() {
    check_all(Integration::Off, &["/bin/bash", "/bin/dash", "/usr/bin/zsh", "/usr/bin/fish"]).await;
}
