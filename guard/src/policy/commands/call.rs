//! A command with its arguments, and the questions that the rows of the table ask about it.

use super::super::targets::{Cwd, Path, clean};
use super::super::words::UNKNOWN;

/// A command under judgement: a base name without extension, and its words as the shell would pass them.
#[derive(Debug)]
pub(in super::super) struct Call<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: &'a [String],
    /// Arguments that do not look like options.
    pub(super) operands: Vec<&'a str>,
    cwd: &'a Cwd,
}

impl<'a> Call<'a> {
    pub(super) fn new(name: &'a str, arguments: &'a [String], cwd: &'a Cwd) -> Self {
        let is_operand = |argument: &&str| !argument.starts_with('-') || argument.len() == 1;
        let operands = arguments.iter().map(String::as_str).filter(is_operand).collect();
        Self { name, arguments, operands, cwd }
    }

    pub(super) fn words(&self) -> impl DoubleEndedIterator<Item = &'a str> {
        self.arguments.iter().map(String::as_str)
    }

    pub(super) fn has(&self, words: &[&str]) -> bool {
        self.words().any(|argument| words.contains(&argument))
    }

    pub(super) fn has_start(&self, starts: &[&str]) -> bool {
        self.words().any(|argument| starts.iter().any(|start| argument.starts_with(start)))
    }

    /// One of the letters is given as a short option, alone or among others.
    pub(super) fn has_letter(&self, letters: &str) -> bool {
        self.words().any(|a| a.starts_with('-') && !a.starts_with("--") && a.contains(|c| letters.contains(c)))
    }

    /// The first operand: the verb of tools that have verbs.
    pub(super) fn verb(&self) -> &'a str {
        self.operands.first().copied().unwrap_or("")
    }

    pub(super) fn last(&self) -> Option<&'a str> {
        self.operands.last().copied()
    }

    pub(super) fn path(&self, text: &str) -> Path {
        clean(text, self.cwd)
    }

    pub(super) fn has_disk(&self) -> bool {
        self.operands.iter().any(|operand| self.path(operand).is_disk())
    }

    /// An operand may be anything.
    pub(super) fn has_unknown(&self) -> bool {
        self.operands.iter().any(|operand| operand.contains(UNKNOWN))
    }

    /// The words behind one of these options.
    pub(super) fn values(&self, options: &[&str]) -> impl Iterator<Item = &'a str> {
        let pairs = self.arguments.windows(2).filter(move |pair| options.contains(&pair[0].as_str()));
        pairs.map(|pair| pair[1].as_str())
    }

    /// What stands behind one of these beginnings of a word.
    pub(super) fn attached(&self, starts: &[&str]) -> impl Iterator<Item = &'a str> {
        self.words().filter_map(move |argument| starts.iter().find_map(|start| argument.strip_prefix(start)))
    }
}
