//! What a user adds to the table or takes out of it, and which categories are on. Read once, from one TOML file.

use serde::Deserialize;

use super::decode::glob_matches;
use super::judge::Violation;
use super::table::{RULES, Rule};
use super::{Hit, Verdict};

/// Rules of a user at most: each is compared with every command.
const MOST_RULES: usize = 256;

/// The settings of the policy.
#[derive(Clone, Debug, Default)]
pub struct UserRules {
    own: Vec<OwnRule>,
    off: Vec<String>,
    blocks_downloads: bool,
}

/// A rule that a user wrote.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct OwnRule {
    /// Its name for callers.
    pub id: String,
    /// The kind of damage.
    #[serde(default = "own_category")]
    pub category: String,
    /// The program: a base name, which may be a pattern.
    pub command: String,
    /// Patterns: each must fit one of the arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// What the command would do.
    pub why: String,
    /// What to do instead.
    #[serde(default)]
    pub instead: String,
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    off: Vec<String>,
    #[serde(default)]
    rule: Vec<OwnRule>,
}

fn own_category() -> String {
    "own".to_owned()
}

impl UserRules {
    /// Reads the text of a file. The problem is one sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
            format!("line {line}: {}", error.message().replace('\n', " "))
        })?;
        if file.rule.len() > MOST_RULES {
            return Err(format!("{} rules are more than {MOST_RULES}", file.rule.len()));
        }
        if let Some(name) = file.off.iter().find(|name| !RULES.iter().any(|rule| rule.id == name.as_str())) {
            return Err(format!("there is no rule {name} that could be off"));
        }
        let is_taken = |id: &str| {
            RULES.iter().any(|rule| rule.id == id) || file.rule.iter().filter(|rule| rule.id == id).count() > 1
        };
        if let Some(rule) =
            file.rule.iter().find(|rule| rule.id.is_empty() || rule.command.is_empty() || is_taken(&rule.id))
        {
            return Err(format!("a rule needs a command and an id of its own, and {:?} has not", rule.id));
        }
        Ok(Self { own: file.rule, off: file.off, blocks_downloads: false })
    }

    /// The same with the rules for downloads that are run and for reverse shells on or off.
    #[must_use]
    pub fn with_downloads(self, blocks_downloads: bool) -> Self {
        Self { blocks_downloads, ..self }
    }

    pub(super) fn blocks_downloads(&self) -> bool {
        self.blocks_downloads
    }

    /// Whether a rule of the table is switched off.
    pub(super) fn is_off(&self, rule: &Rule) -> bool {
        self.off.iter().any(|id| id == rule.id)
    }

    /// Refuses a command by the user's own rules.
    pub(super) fn judge(&self, name: &str, arguments: &[String]) -> Verdict<()> {
        let fits = |rule: &&OwnRule| {
            glob_matches(&rule.command, name)
                && rule.args.iter().all(|pattern| arguments.iter().any(|argument| glob_matches(pattern, argument)))
        };
        match self.own.iter().find(fits) {
            Some(rule) => {
                let words = std::iter::once(name).chain(arguments.iter().map(String::as_str)).take(16);
                Err(Box::new(Violation { hit: Hit::Own(rule.clone()), words: words.collect::<Vec<_>>().join(" ") }))
            }
            None => Ok(()),
        }
    }
}
