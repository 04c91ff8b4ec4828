//! Reads a line as a POSIX shell would: which commands it has, in which pipelines, with which redirections.
//!
//! Most lines are commands in a row, which the tokens tell alone. Where something is nested, tree-sitter-bash finds the
//! structure. It is error-tolerant, so a tree with an error in it is not believed: then the plain reader below takes
//! every place where a command can begin, which is the harder judgement. Nothing here knows what a word means.

use std::cell::RefCell;

use tree_sitter::{Node, Parser, Tree};

use super::lexer::{Token, tokens};

/// Longer text is read by the plain reader alone, whose cost is linear whatever the text is.
const LONGEST_PARSED_BYTES: usize = 16 << 10;
/// Deeper brackets are left to the plain reader, which does not recurse.
const DEEPEST_PARSED: usize = 48;
/// Lists nest in the tree by their length; a longer one is left to the plain reader as well.
const LONGEST_LIST: usize = 64;

/// Pipelines in the order of the line.
#[derive(Debug, Default)]
pub(super) struct Script<'a> {
    pub(super) pipelines: Vec<Vec<Stage<'a>>>,
}

/// One part of a pipeline.
#[derive(Debug)]
pub(super) enum Stage<'a> {
    /// A command with its arguments.
    Simple(Simple<'a>),
    /// A subshell, a group or the body of a loop, and what is redirected into it.
    Group { body: Script<'a>, redirects: Vec<Token<'a>>, is_subshell: bool },
    /// A function: its name and body, read and as it is written.
    Function { name: &'a str, body: Script<'a>, text: &'a str },
}

/// A command as it is written.
#[derive(Debug, Default)]
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
    let tree = if is_flat(&tokens) { None } else { parsed(text) };
    tree.unwrap_or_else(|| plain(text, tokens))
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

/// How deep brackets stand in one another at most; quotes are not looked at.
fn depth(text: &str) -> usize {
    let (mut now, mut deepest) = (0_usize, 0);
    let mut keywords = 0;
    for byte in text.bytes() {
        match byte {
            b'(' | b'{' | b'[' => now += 1,
            b')' | b'}' | b']' => now = now.saturating_sub(1),
            b'`' | b'"' => keywords += 1,
            _ => {}
        }
        deepest = deepest.max(now);
    }
    // Keywords and quotes nest as well; so many of them are no line that somebody typed.
    let words =
        text.split_ascii_whitespace().filter(|word| matches!(*word, "if" | "case" | "do" | "then" | "!")).count();
    let joints = text.bytes().filter(|byte| matches!(byte, b'&' | b'|')).count();
    if words > DEEPEST_PARSED || joints > 2 * LONGEST_LIST || keywords > 8 * DEEPEST_PARSED {
        DEEPEST_PARSED + 1
    } else {
        deepest
    }
}

thread_local! {
    /// A parser costs more to make than most lines cost to parse.
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

/// The tree's reading; `None` when it has an error, or a here-document, whose place in the tree is not that of the
/// command that reads it.
fn parsed(text: &str) -> Option<Script<'_>> {
    if text.replace("<<<", "").contains("<<") {
        return None;
    }
    let tree = tree_of(text)?;
    let root = tree.root_node();
    if root.has_error() {
        return None;
    }
    let mut script = Script::default();
    walk(root, text, &mut script)?;
    Some(script)
}

/// The tree of a text, however many errors are in it; `None` where the text is too long or too deep for one.
pub(super) fn tree_of(text: &str) -> Option<Tree> {
    if text.len() > LONGEST_PARSED_BYTES || depth(text) > DEEPEST_PARSED {
        return None;
    }
    PARSER.with_borrow_mut(|parser| {
        let parser = match parser {
            Some(parser) => parser,
            none => {
                let mut new = Parser::new();
                new.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
                none.insert(new)
            }
        };
        parser.parse(text, None)
    })
}

/// Adds the commands of a node, each a pipeline of its own unless it is one of several stages.
fn walk<'a>(node: Node<'_>, text: &'a str, script: &mut Script<'a>) -> Option<()> {
    match node.kind() {
        "pipeline" => {
            let mut stages = Vec::new();
            for child in children(node) {
                stages.extend(stage(child, text)?);
            }
            script.pipelines.push(stages);
        }
        "program" | "list" | "do_group" | "if_statement" | "elif_clause" | "else_clause" | "negated_command"
        | "while_statement" | "case_item" => {
            for child in children(node) {
                walk(child, text, script)?;
            }
        }
        "for_statement" => {
            let body = node.child_by_field_name("body")?;
            let head = &text[node.start_byte()..body.start_byte()];
            script.pipelines.push(vec![Stage::Simple(simple(head.trim_end_matches([';', ' ', '\n', '\t'])))]);
            walk(body, text, script)?;
        }
        "c_style_for_statement" => {
            let body = node.child_by_field_name("body")?;
            script.pipelines.push(vec![Stage::Simple(as_data(&text[node.start_byte()..body.start_byte()]))]);
            walk(body, text, script)?;
        }
        "case_statement" => {
            for child in children(node) {
                if child.kind() == "case_item" {
                    for inner in children(child).into_iter().skip(1) {
                        walk(inner, text, script)?;
                    }
                } else {
                    script.pipelines.push(vec![Stage::Simple(as_data(slice(child, text)))]);
                }
            }
        }
        "comment" => {}
        _ => script.pipelines.push(stage(node, text)?),
    }
    Some(())
}

/// The stages that a node of a pipeline stands for.
fn stage<'a>(node: Node<'_>, text: &'a str) -> Option<Vec<Stage<'a>>> {
    let group = |body: Node<'_>, redirects, is_subshell| {
        let mut script = Script::default();
        for child in children(body) {
            walk(child, text, &mut script)?;
        }
        Some(Stage::Group { body: script, redirects, is_subshell })
    };
    Some(match node.kind() {
        "pipeline" => {
            let mut stages = Vec::new();
            for child in children(node) {
                stages.extend(stage(child, text)?);
            }
            stages
        }
        "subshell" => vec![group(node, Vec::new(), true)?],
        "compound_statement" => vec![group(node, Vec::new(), false)?],
        "while_statement" | "for_statement" | "c_style_for_statement" | "if_statement" | "case_statement" | "list" => {
            let mut script = Script::default();
            walk(node, text, &mut script)?;
            vec![Stage::Group { body: script, redirects: Vec::new(), is_subshell: false }]
        }
        "redirected_statement" => {
            let Some(body) = node.child_by_field_name("body") else {
                return Some(vec![Stage::Simple(simple(slice(node, text)))]);
            };
            let after = simple(&text[body.end_byte()..node.end_byte()]);
            let before = simple(&text[node.start_byte()..body.start_byte()]);
            // What the tree took for redirections alone may have words among them.
            let mut stages = stage(body, text)?;
            match stages.last_mut() {
                Some(Stage::Simple(last)) => {
                    last.words.extend(after.words);
                    last.redirects.extend(before.redirects.into_iter().chain(after.redirects));
                }
                Some(Stage::Group { redirects, .. }) => redirects.extend(after.redirects),
                _ => {}
            }
            stages
        }
        "function_definition" => {
            let name = node.child_by_field_name("name").map_or("", |name| slice(name, text));
            let mut body = Script::default();
            let inside = node.child_by_field_name("body")?;
            walk(inside, text, &mut body)?;
            vec![Stage::Function { name, body, text: slice(inside, text) }]
        }
        "comment" => Vec::new(),
        // A test or a sum runs nothing but the substitutions in it.
        "test_command" => vec![Stage::Simple(as_data(slice(node, text)))],
        "negated_command" => {
            let mut stages = Vec::new();
            for child in children(node) {
                stages.extend(stage(child, text)?);
            }
            stages
        }
        _ => vec![Stage::Simple(simple(slice(node, text)))],
    })
}

fn children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).collect()
}

fn slice<'a>(node: Node<'_>, text: &'a str) -> &'a str {
    &text[node.start_byte()..node.end_byte()]
}

/// Words that are looked into and not run.
fn as_data(text: &str) -> Simple<'_> {
    let mut data = simple(text);
    data.words.insert(0, ":");
    data
}

/// The text of one command. An operator in it, where the tree saw none, ends it.
fn simple(text: &str) -> Simple<'_> {
    let mut simple = Simple::default();
    for token in tokens(text) {
        match token {
            Token::Word(word) => simple.words.push(word),
            Token::Operator(_) => {}
            other => simple.redirects.push(other),
        }
    }
    simple
}

/// Words after which a command begins.
const OPENERS: [&str; 13] = ["if", "then", "else", "elif", "while", "until", "do", "{", "}", "!", "fi", "done", "esac"];

/// Every place where a command can begin, without regard to what belongs together.
fn plain<'a>(text: &'a str, tokens: Vec<Token<'a>>) -> Script<'a> {
    let mut script = Script::default();
    let mut stages: Vec<Stage<'_>> = Vec::new();
    let mut now = Simple::default();
    let mut in_test = false;
    let mut open_brackets = 0_usize;
    let (mut remark, mut words_end) = (0_usize, 0);
    for token in tokens {
        if let Token::Word(word) = token {
            words_end = word.as_ptr() as usize - text.as_ptr() as usize + word.len();
        }
        match token {
            Token::Operator(operator) => {
                if in_test && operator != "\n" {
                    continue;
                }
                // A bracket after a word is no syntax of a shell: what stands in it is a remark.
                if operator == "(" && (remark > 0 || !now.words.is_empty() && !is_definition(&now, text, words_end)) {
                    remark += 1;
                    continue;
                }
                if remark > 0 && operator != "\n" {
                    remark -= usize::from(operator == ")");
                    continue;
                }
                remark = 0;
                in_test = false;
                // The closing bracket without an opening one ends a pattern of `case`.
                let is_pattern = operator == ")" && open_brackets == 0 && now.words.len() == 1;
                match operator {
                    "(" => open_brackets += 1,
                    ")" => open_brackets = open_brackets.saturating_sub(1),
                    _ => {}
                }
                let finished = std::mem::take(&mut now);
                if !finished.is_empty() && !is_pattern {
                    stages.push(Stage::Simple(finished));
                }
                if !matches!(operator, "|" | "|&") && !stages.is_empty() {
                    script.pipelines.push(std::mem::take(&mut stages));
                }
            }
            Token::Word(word) if now.words.is_empty() && OPENERS.contains(&word) => {}
            Token::Word("[[") if now.words.is_empty() => {
                in_test = true;
                now.words.push(":");
            }
            Token::Word("]]") if in_test => in_test = false,
            Token::Word(word) => now.words.push(word),
            redirect => now.redirects.push(redirect),
        }
    }
    if !now.is_empty() {
        stages.push(Stage::Simple(now));
    }
    if !stages.is_empty() {
        script.pipelines.push(stages);
    }
    script
}

/// `name()` begins a function, and `in (` or `= (` something else that runs.
fn is_definition(now: &Simple<'_>, text: &str, words_end: usize) -> bool {
    let after = text[words_end..].trim_start_matches([' ', '\t', '(']);
    now.words.len() <= 2 && after.starts_with(')')
}
