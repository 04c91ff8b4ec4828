//! Which lines may be typed: read as a shell would read them, judged by argument vectors and targets.
//!
//! A guard rail against honest mistakes and careless generation, not a wall: whoever has a shell can always do harm in
//! a way that no reader of lines foresees. The line is cut into commands (`shell`, `lexer`), its words are resolved
//! (`words`, `decode`), wrappers are peeled (`wrappers`, `options`, `code`), and what is left is compared with the table
//! (`commands`, `targets`, `table`). `windows` does the same for `cmd` and PowerShell. Nothing is ever run, and the
//! cost is bounded before any recursion.

mod by_name;
mod code;
mod commands;
mod complete;
mod decode;
mod judge;
mod later;
#[expect(clippy::collapsible_match, reason = "closing a bracket changes the stack: no condition for an arm")]
mod lexer;
mod program;
mod prose;
mod secrets;
mod shell;
mod shells;
mod table;
mod targets;
mod user_rules;
mod windows;
mod words;
mod wrappers;

pub use complete::is_complete;
pub use table::{RULES, Rule};
pub use user_rules::{OwnRule, UserRules};

use judge::{Judge, Violation};
use table::{DOWNLOAD, REVERSE, TOO_LONG, UNKNOWN_LINE};
use words::MARKS;

/// Longer text is refused: nobody types it, and judging it would cost as much as it is long.
const LONGEST_BYTES: usize = 1 << 20;

/// Bytes of the words that a refusal repeats.
const MOST_WORDS: usize = 200;

/// The result of a step; the error is what was refused.
type Verdict<T> = Result<T, Box<Violation>>;

/// The rule that was met.
#[derive(Debug)]
enum Hit {
    Rule(&'static Rule),
    Own(OwnRule),
}

/// Why a line is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The rule's name.
    pub rule: String,
    /// The kind of damage.
    pub category: String,
    /// What the command would do.
    pub why: String,
    /// What to do instead.
    pub instead: String,
    /// The words that met the rule, as the shell would see them; empty when no single command did.
    pub words: String,
}

/// The table with what a user added to it.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    rules: UserRules,
}

impl Policy {
    /// The table with these additions.
    pub fn new(rules: UserRules) -> Self {
        Self { rules }
    }

    /// Nothing but its length is known of such a text.
    pub fn is_too_long(text: &str) -> bool {
        text.len() > LONGEST_BYTES
    }

    /// Why a line is refused that nobody can see before it is run; not where a user has that rule off.
    pub fn unknown_line(&self) -> Option<Refusal> {
        (!self.rules.is_off(&UNKNOWN_LINE)).then(|| refusal(&UNKNOWN_LINE, String::new()))
    }

    /// Judges a text of one line or several, as it would be typed.
    pub fn judge(&self, text: &str) -> Result<(), Refusal> {
        self.judged(text).or_else(|found| match found.hit {
            Hit::Rule(rule) if self.rules.is_off(rule) => Ok(()),
            Hit::Rule(rule) if matches!(rule.category, DOWNLOAD | REVERSE) && !self.rules.blocks_downloads() => Ok(()),
            Hit::Rule(rule) => Err(refusal(rule, shown(&found.words))),
            Hit::Own(rule) => Err(Refusal {
                rule: rule.id,
                category: rule.category,
                why: rule.why,
                instead: rule.instead,
                words: shown(&found.words),
            }),
        })
    }

    fn judged(&self, text: &str) -> Verdict<()> {
        if Self::is_too_long(text) {
            return Err(Violation::new(&TOO_LONG, "", &[]));
        }
        let text = prose::normal(text);
        let mut judge = Judge::new(&self.rules);
        judge.is_prose = prose::is_prose(&text);
        match judge.text(&text, None) {
            // The other shells may read something else in it.
            Err(found) if judge.is_off(&found) => {}
            judged => drop(judged?),
        }
        windows::judge(&mut Judge::new(&self.rules), &text)
    }
}

fn refusal(rule: &Rule, words: String) -> Refusal {
    Refusal {
        rule: rule.id.to_owned(),
        category: rule.category.to_owned(),
        why: rule.why.to_owned(),
        instead: rule.instead.to_owned(),
        words,
    }
}

/// Words without the marks that stand for what is not known.
fn shown(words: &str) -> String {
    let text = words.replace(words::HOME, "~").replace(words::UNKNOWN, "…");
    let text: String = text.chars().filter(|c| !MARKS.contains(c)).collect();
    super::whole_words(&text, MOST_WORDS).to_owned()
}

#[cfg(test)]
mod tests;
