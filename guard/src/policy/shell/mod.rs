//! Reads a line as a POSIX shell would: which commands it has, in which pipelines, with which redirections.
//!
//! There is one path. The tree of tree-sitter-bash leads wherever something is nested, because it knows what belongs
//! together: functions, subshells, bodies of loops. The linear reader (`linear`) takes every place where a command can
//! begin, which is the harder judgement. It is the fallback where the tree is not to be believed or costs too much:
//!
//! - the tree has an error in it, or the text a here-document, whose place in the tree is not that of its reader;
//! - the text is longer than 16 KiB, or nested deeper than 48: the time of the tree is bounded by these, and the linear
//!   reader takes one pass whatever the text is.
//!
//! A line without anything nested goes to the linear reader at once. That is no second judgement: both read the same
//! commands in the same pipelines there, which a test checks on all lines of the fixtures, and it saves the tree.
//! Nothing here knows what a word means.

mod linear;
mod tree;

use super::lexer::{Token, tokens};

pub(super) use self::tree::tree_of;

/// Pipelines in the order of the line.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Script<'a> {
    pub(super) pipelines: Vec<Vec<Stage<'a>>>,
}

/// One part of a pipeline.
#[derive(Debug, PartialEq)]
pub(super) enum Stage<'a> {
    /// A command with its arguments.
    Simple(Simple<'a>),
    /// A subshell, a group or the body of a loop, and what is redirected into it.
    Group { body: Script<'a>, redirects: Vec<Token<'a>>, is_subshell: bool },
    /// A function: its name and body, read and as it is written.
    Function { name: &'a str, body: Script<'a>, text: &'a str },
}

/// A command as it is written.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Simple<'a> {
    pub(super) words: Vec<&'a str>,
    pub(super) redirects: Vec<Token<'a>>,
}

impl Simple<'_> {
    fn is_empty(&self) -> bool {
        self.words.is_empty() && self.redirects.is_empty()
    }
}

/// Reads a text.
pub(super) fn read(text: &str) -> Script<'_> {
    let tokens = tokens(text);
    let tree = if is_flat(&tokens) { None } else { tree::read(text) };
    tree.unwrap_or_else(|| linear::read(text, tokens))
}

/// Words that begin or end something that other commands stand in.
const NESTING: [&str; 20] = [
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function",
    "{", "}", "!", "[[", "]]", "coproc",
];

/// Commands in a row: no brackets, no loops. A tree would have the same commands in the same pipelines.
fn is_flat(tokens: &[Token<'_>]) -> bool {
    let mut is_first = true;
    tokens.iter().all(|token| {
        let is_nesting = match token {
            Token::Word(word) => is_first && NESTING.contains(word),
            Token::Operator(operator) => matches!(*operator, "(" | ")" | ";;" | ";&" | ";;&"),
            _ => false,
        };
        is_first = match token {
            // What stands before a command is none.
            Token::Word(word) => is_first && word.contains('='),
            Token::Operator(_) => true,
            _ => is_first,
        };
        !is_nesting
    })
}

#[cfg(test)]
mod tests;
