//! Asking a shell on another machine for its dialect: nothing here tells which program reads there.
//!
//! A line is typed that every shell after the standard understands and that leaves the status as it was; one that fish
//! understands follows where nobody answered. The answer is an invisible mark with a nonce. It holds for the process
//! group until somebody types a line there or a command is left running: either may begin another shell.

use std::time::{Duration, Instant};

use super::readiness::Readiness;
use super::state::{TerminalState, TypedText};
use super::{Session, Writer};
use crate::error::Result;
use crate::ids::random_hex;
use crate::terminal::sentinel::Form;

/// How long an answer may take before the other line is typed. Whoever answers the first does so before the second.
const FIRST_ANSWER: Duration = Duration::from_millis(700);
/// How long an answer may take at all.
const LAST_ANSWER: Duration = Duration::from_secs(4);

/// The dialects by their numbers in an answer.
const FORMS: [Form; 4] = [Form::Posix, Form::Zsh, Form::Mksh, Form::Fish];

/// What is known of a shell far away.
#[derive(Debug)]
pub(super) struct Dialect {
    group: u32,
    nonce: String,
    form: Option<Form>,
}

impl TerminalState {
    /// The dialect that is spoken behind this process group.
    pub(super) fn dialect_behind(&self, group: u32) -> Option<Form> {
        self.dialect.as_ref().filter(|dialect| dialect.group == group)?.form
    }

    /// Takes an answer. The first one counts.
    pub(super) fn on_dialect(&mut self, number: Option<i32>, key: &str) -> bool {
        let Some(dialect) = self.dialect.as_mut().filter(|dialect| dialect.nonce == key) else { return false };
        let form = number.and_then(|number| FORMS.get(usize::try_from(number).ok()?)).copied();
        dialect.form = dialect.form.or(form);
        true
    }
}

impl Session {
    /// Asks the shell behind this process group, unless it has answered before. True when something was typed.
    pub(super) async fn learn_dialect(&self, readiness: &Readiness, group: u32, deadline: Instant) -> Result<bool> {
        let nonce = random_hex();
        let clearing = {
            let mut terminal = self.shared.lock();
            if terminal.dialect_behind(group).is_some() {
                return Ok(false);
            }
            terminal.dialect = Some(Dialect { group, nonce: nonce.clone(), form: None });
            let has_text = std::mem::replace(&mut terminal.typed, TypedText::None) != TypedText::None;
            if has_text { self.clearing(&terminal, readiness) } else { b"" }
        };
        let mut news = self.shared.news.subscribe();
        let mut clearing = clearing.to_vec();
        let began = Instant::now();
        for (line, until) in [(standard_question(&nonce), FIRST_ANSWER), (fish_question(&nonce), LAST_ANSWER)] {
            clearing.extend_from_slice(line.as_bytes());
            self.write_as(Writer::Talk, &std::mem::take(&mut clearing), Some(deadline)).await?;
            let answered =
                async { while self.shared.lock().dialect_behind(group).is_none() && news.changed().await.is_ok() {} };
            if tokio::time::timeout_at((began + until).min(deadline).into(), answered).await.is_ok() {
                return Ok(true);
            }
        }
        self.shared.lock().dialect = None;
        Err(self.busy("Nobody answers as a shell on the other side", self.foreground()))
    }
}

/// Prints the answer; the first argument is its number. It begins where the echo ended.
fn answer(nonce: &str) -> String {
    let (first, second) = nonce.split_at(nonce.len() / 2);
    format!(r#"printf "\r\033[K\033]133;Y;%s;k=%s%s\033\134" "$d" {first} {second} >/dev/tty"#)
}

/// In a subshell, so that nothing is left of it, and evaluated, so that fish reports an error and goes on.
fn standard_question(nonce: &str) -> String {
    let answer = answer(nonce);
    format!(
        " eval '(s=$?; case ${{ZSH_VERSION+z}}${{KSH_VERSION-}} in z*) d=1;; \"@(#)\"*) d=2;; *) d=0;; esac; {answer}; exit $s)'\r"
    )
}

/// Where there is no `and`, nothing is printed.
fn fish_question(nonce: &str) -> String {
    let answer = answer(nonce).replace("\"$d\"", "3");
    format!(" test -n \"$FISH_VERSION\"; and {answer}\r")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_no_answer() {
        for line in [standard_question("0123456789abcdef"), fish_question("0123456789abcdef")] {
            assert!(!line.contains("0123456789abcdef") && !line.contains('\x1b') && line.ends_with('\r'), "{line}");
            assert!(line.len() < 1_000);
        }
    }
}
