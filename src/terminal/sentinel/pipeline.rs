//! The statuses of a pipeline's parts, carried from one typed form to the next.

use super::Form;

/// The statuses of the parts of a pipeline, where they are more than its own status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pipeline {
    parts: Vec<u8>,
    /// It ended with the opposite of its last part (`!`, `not`).
    is_negated: bool,
}

impl Pipeline {
    /// From what a shell joined by its own separator; unreadable where that is a digit or nothing at all.
    pub fn parse(statuses: &str) -> Self {
        let parts: Option<Vec<u8>> =
            statuses.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().ok()).collect();
        let parts = parts.filter(|parts| (1..=MOST_PARTS).contains(&parts.len())).unwrap_or_default();
        Self { parts, is_negated: false }
    }

    /// The same as that of a command that ended with this status, if it can be.
    pub fn of(&self, status: Option<i32>) -> Self {
        let last = self.parts.last().map(|&last| i32::from(last));
        let is_negated = match (last, status) {
            (Some(last), Some(status)) if last == status => false,
            (Some(0), Some(1)) | (Some(1..), Some(0)) => true,
            _ => return Self::default(),
        };
        match is_negated || self.parts.len() > 1 {
            true => Self { is_negated, ..self.clone() },
            false => Self::default(),
        }
    }

    /// The status of the whole.
    fn status(&self) -> Option<i32> {
        let last = self.parts.last().map(|&last| i32::from(last))?;
        Some(if self.is_negated { i32::from(last == 0) } else { last })
    }

    /// A pipeline with the same statuses, to be put behind other commands. On the left of `&&` a failure fires neither
    /// `set -e` nor a trap; what stands on the right would change the statuses of one that did not fail.
    pub(super) fn again(&self, form: Form) -> String {
        let yes = match form {
            Form::Bash | Form::Mksh => "[[ 1 ]]",
            Form::Zsh => "[[ -n 1 ]]",
            Form::Posix | Form::Fish | Form::PowerShell => return String::new(),
        };
        let parts: Vec<String> = self.parts.iter().map(|status| format!("(exit {status})")).collect();
        let not = if self.is_negated { "! " } else { "" };
        match self.status() {
            None => String::new(),
            Some(0) => format!("; {not}{}", parts.join("|")),
            Some(_) => format!("; {not}{} && {yes}", parts.join("|")),
        }
    }

    /// The same for fish, with a function of this name.
    pub(super) fn again_by(&self, name: &str) -> String {
        if self.parts.is_empty() {
            return String::new();
        }
        let parts: Vec<String> = self.parts.iter().map(|status| format!("{name} {status}")).collect();
        let not = if self.is_negated { "not " } else { "" };
        format!("; function {name}; builtin return $argv; end; {not}{}", parts.join(" | "))
    }
}

/// Parts of the longest pipeline whose statuses are kept.
const MOST_PARTS: usize = 16;
