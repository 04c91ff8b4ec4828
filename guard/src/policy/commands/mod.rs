//! Argument vectors: which command does harm with which arguments.
//!
//! `rows` is the table, `call` what its conditions ask about a command. `partitions`, `power`, `rights` and `files` hold
//! what one condition cannot say, `reads` the commands that show or copy secrets. Every name here is a base name
//! without extension; wrappers are peeled off before.

mod call;
mod files;
mod partitions;
mod power;
mod reads;
mod rights;
mod rows;

use self::call::Call;
use super::Verdict;
use super::judge::{Judge, Violation};

/// The names that are tried when a command's name is a pattern such as `/bin/r?`.
pub(super) const NAMED: [&str; 22] = [
    "rm", "dd", "mkfs", "shutdown", "reboot", "halt", "poweroff", "init", "cat", "chmod", "chown", "shred", "wipefs",
    "fdisk", "sh", "bash", "find", "mv", "cp", "tee", "unlink", "base64",
];

impl Judge<'_> {
    /// Refuses a command by its name and arguments.
    pub(super) fn vector(&self, name: &str, arguments: &[String]) -> Verdict<()> {
        let call = Call::new(name, arguments, &self.cwd);
        let mut rows = rows::of(name).filter(|row| row.when.holds(&call));
        match rows.find_map(|row| row.then.rule(&call)).or_else(|| reads::secret(&call)) {
            Some(rule) => Err(Violation::new(rule, name, arguments)),
            None => Ok(()),
        }
    }
}
