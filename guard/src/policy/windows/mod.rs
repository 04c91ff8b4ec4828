//! The same categories in the words of `cmd` and PowerShell, by a tokenizer of their own.
//!
//! Which shell a session runs is not always known, so a line is read both ways. Names here are either those that no
//! POSIX system has, or are looked at only with arguments that no POSIX system would have (`C:\`, `/s`, `%VAR%`).
//! `rows` is the table of commands, `run` what the commands in it do that run others, `words` cuts lines and knows
//! folders, `variables` puts in values.

mod registry;
mod rows;
mod run;
mod variables;
mod words;

use std::collections::HashMap;

use self::rows::{Call, Then};
use self::words::{commands, is_tree};
use super::Verdict;
use super::judge::{Judge, Violation, base_name};
use super::table::*;

/// Lines inside of lines that are read.
const DEEPEST: usize = 6;
/// Longer text is no line of these shells.
const LONGEST_BYTES: usize = 32 << 10;

/// Judges a line as these shells would read it.
pub(super) fn judge(judge: &mut Judge<'_>, text: &str) -> Verdict<()> {
    Reader { judge, vars: HashMap::new(), depth: 0 }.text(text)
}

/// What flows from a command into the next one of its pipeline.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Piped {
    #[default]
    Nothing,
    Download,
    /// Shadow copies.
    Backups,
    /// The files of a drive, a home or a system folder.
    Tree,
}

struct Reader<'a, 'p> {
    judge: &'a mut Judge<'p>,
    vars: HashMap<String, String>,
    depth: usize,
}

impl Reader<'_, '_> {
    fn text(&mut self, text: &str) -> Verdict<()> {
        // Neither shell has here-documents; what stands in one is data, and the other reader looks at who reads it.
        if text.len() > LONGEST_BYTES || text.trim().is_empty() || text.contains("<<") {
            return Ok(());
        }
        self.judge.step(text.len())?;
        if self.depth >= DEEPEST {
            return Err(Violation::new(&TOO_DEEP, "", &[]));
        }
        let compact: String = text.chars().filter(|c| !c.is_whitespace()).take(64).collect();
        if compact.starts_with("%0|%0") || compact.contains("start%0&goto") {
            return Err(Violation::new(&FORK_BOMB, "%0", &[]));
        }
        self.depth += 1;
        let mut piped = Piped::Nothing;
        for command in commands(text) {
            let words: Vec<String> = command.words.iter().map(|word| self.expand(word)).collect();
            if !command.is_piped {
                piped = Piped::Nothing;
            }
            let depth = self.depth;
            match self.command(&words, &mut piped) {
                // What is switched off must not hide the next command.
                Err(found) if self.judge.is_off(&found) => self.depth = depth,
                judged => judged?,
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn command(&mut self, words: &[String], piped: &mut Piped) -> Verdict<()> {
        let Some((first, arguments)) = words.split_first() else { return Ok(()) };
        let first = first.trim_start_matches(['@', '&', '.']).trim_matches(['"', '\'', '(']);
        if first.is_empty() {
            return self.command(arguments, piped);
        }
        // `$x = 'text'`.
        if let Some(name) = first.strip_prefix('$').filter(|_| arguments.first().is_some_and(|word| word == "=")) {
            self.vars.insert(name.to_lowercase(), arguments[1..].join(" ").trim_matches(['"', '\'']).to_owned());
            return Ok(());
        }
        // Switches may stand right behind the name: `del/s`.
        let glued = first.find('/').filter(|at| *at > 0 && !first[..*at].contains(['\\', ':', '.', '-']));
        let (first, more) = glued.map_or((first, ""), |at| first.split_at(at));
        let switches = more.split('/').filter(|switch| !switch.is_empty()).map(|switch| format!("/{switch}"));
        let arguments: Vec<String> = switches.chain(arguments.iter().cloned()).collect();
        let name = base_name(&first.replace('\\', "/")).to_lowercase();
        let call = Call { name: &name, rest: arguments.join(" "), arguments: &arguments };
        for row in rows::of(&name) {
            match &row.then {
                _ if !row.when.holds(&call) => {}
                Then::Refuse(rule) => return Err(call.violation(rule)),
                Then::Run(run) => run(self, &call, piped)?,
            }
        }
        self.methods(&format!("{first} {}", call.rest))
    }

    /// Calls of .NET methods that remove or read.
    fn methods(&mut self, text: &str) -> Verdict<()> {
        let folded = text.to_lowercase();
        if !folded.starts_with('[') {
            return Ok(());
        }
        let target = text.split(['(', ',', ')']).nth(1).unwrap_or("").trim().trim_matches(['"', '\'']);
        if folded.contains("directory]::delete(") && is_tree(target) {
            return Err(Violation::new(&REMOVE_DRIVE, text, &[]));
        }
        if folded.contains("file]::readall") {
            let target = target.replace('\\', "/");
            self.judge.vector("cat", &[target])?;
        }
        Ok(())
    }
}
