//! The statuses of a pipeline's parts, carried from one typed form to the next.

use super::Form;

/// The statuses of the parts of a pipeline, where it had several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pipeline(Vec<u8>);

impl Pipeline {
    /// From what a shell joined by its own separator; unreadable where that is a digit or nothing at all.
    pub fn parse(statuses: &str) -> Self {
        let parts: Option<Vec<u8>> =
            statuses.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().ok()).collect();
        Self(parts.filter(|parts| (2..=MOST_PARTS).contains(&parts.len())).unwrap_or_default())
    }

    /// The status of the last part.
    pub fn last(&self) -> Option<i32> {
        self.0.last().map(|&status| i32::from(status))
    }

    /// A pipeline with the same statuses, to be put behind other commands. On the left of `&&` a failure fires neither
    /// `set -e` nor a trap; what stands on the right would change the statuses of one that did not fail.
    pub(super) fn again(&self, form: Form) -> String {
        let yes = match form {
            Form::Bash | Form::Mksh => "[[ 1 ]]",
            Form::Zsh => "[[ -n 1 ]]",
            Form::Posix | Form::Fish | Form::PowerShell => return String::new(),
        };
        let parts: Vec<String> = self.0.iter().map(|status| format!("(exit {status})")).collect();
        match self.last() {
            None => String::new(),
            Some(0) => format!("; {}", parts.join("|")),
            Some(_) => format!("; {} && {yes}", parts.join("|")),
        }
    }

    /// The same for fish, with a function of this name.
    pub(super) fn again_by(&self, name: &str) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let parts: Vec<String> = self.0.iter().map(|status| format!("{name} {status}")).collect();
        format!("; function {name}; builtin return $argv; end; {}", parts.join(" | "))
    }
}

/// Parts of the longest pipeline whose statuses are kept.
const MOST_PARTS: usize = 16;
