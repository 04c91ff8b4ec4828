//! The fallback: every place where a command can begin, without regard to what belongs together.
//!
//! One pass over the tokens, no recursion.

use super::{Script, Simple, Stage};
use crate::policy::lexer::Token;

/// Words after which a command begins.
const OPENERS: [&str; 13] = ["if", "then", "else", "elif", "while", "until", "do", "{", "}", "!", "fi", "done", "esac"];

/// Reads the tokens of a text.
pub(super) fn read<'a>(text: &'a str, tokens: Vec<Token<'a>>) -> Script<'a> {
    let mut reader = Reader { text, ..Reader::default() };
    tokens.into_iter().for_each(|token| reader.token(token));
    reader.end_command();
    reader.end_pipeline();
    reader.script
}

#[derive(Default)]
struct Reader<'a> {
    text: &'a str,
    script: Script<'a>,
    stages: Vec<Stage<'a>>,
    now: Simple<'a>,
    /// Between `[[` and `]]`.
    in_test: bool,
    open_brackets: usize,
    /// Brackets of a remark that are open.
    remark: usize,
    /// Where the last word ends.
    words_end: usize,
}

impl<'a> Reader<'a> {
    fn token(&mut self, token: Token<'a>) {
        match token {
            Token::Operator(operator) => self.operator(operator),
            Token::Word(word) => self.word(word),
            redirect => self.now.redirects.push(redirect),
        }
    }

    fn word(&mut self, word: &'a str) {
        self.words_end = word.as_ptr() as usize - self.text.as_ptr() as usize + word.len();
        match word {
            word if self.now.words.is_empty() && OPENERS.contains(&word) => {}
            "[[" if self.now.words.is_empty() => {
                self.in_test = true;
                self.now.words.push(":");
            }
            "]]" if self.in_test => self.in_test = false,
            word => self.now.words.push(word),
        }
    }

    fn operator(&mut self, operator: &str) {
        if self.is_inside(operator) {
            return;
        }
        (self.remark, self.in_test) = (0, false);
        // The closing bracket without an opening one ends a pattern of `case`.
        let is_pattern = operator == ")" && self.open_brackets == 0 && self.now.words.len() == 1;
        match operator {
            "(" => self.open_brackets += 1,
            ")" => self.open_brackets = self.open_brackets.saturating_sub(1),
            _ => {}
        }
        if is_pattern {
            self.now = Simple::default();
        }
        self.end_command();
        if !matches!(operator, "|" | "|&") {
            self.end_pipeline();
        }
    }

    /// The operator belongs to a test or to a remark: a bracket after a word is no syntax of a shell.
    fn is_inside(&mut self, operator: &str) -> bool {
        if operator == "\n" {
            return false;
        }
        let opens = operator == "(" && (self.remark > 0 || !self.now.words.is_empty() && !self.is_definition());
        let was_inside = self.in_test || self.remark > 0;
        if !self.in_test {
            self.remark += usize::from(opens);
            self.remark -= usize::from(was_inside && operator == ")");
        }
        was_inside || opens
    }

    /// `name()` begins a function, and `in (` or `= (` something else that runs.
    fn is_definition(&self) -> bool {
        let after = self.text[self.words_end..].trim_start_matches([' ', '\t', '(']);
        self.now.words.len() <= 2 && after.starts_with(')')
    }

    fn end_command(&mut self) {
        let finished = std::mem::take(&mut self.now);
        if !finished.is_empty() {
            self.stages.push(Stage::Simple(finished));
        }
    }

    fn end_pipeline(&mut self) {
        if !self.stages.is_empty() {
            self.script.pipelines.push(std::mem::take(&mut self.stages));
        }
    }
}
