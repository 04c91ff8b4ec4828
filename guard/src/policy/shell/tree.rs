//! The structure of a line as tree-sitter-bash finds it.

use std::cell::RefCell;

use tree_sitter::{Node, Parser, Tree};

use super::{Script, Simple, Stage};
use crate::policy::lexer::{Token, tokens};

/// Longer text is left to the linear reader.
const LONGEST_PARSED_BYTES: usize = 16 << 10;
/// Deeper brackets are left to the linear reader, which does not recurse.
const DEEPEST_PARSED: usize = 48;
/// Lists nest in the tree by their length; a longer one is left to the linear reader as well.
const LONGEST_LIST: usize = 64;

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
pub(super) fn read(text: &str) -> Option<Script<'_>> {
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
pub(in super::super) fn tree_of(text: &str) -> Option<Tree> {
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

/// Nodes that have commands in a row, whatever decides which of them run.
const LISTS: [&str; 9] = [
    "program",
    "list",
    "do_group",
    "if_statement",
    "elif_clause",
    "else_clause",
    "negated_command",
    "while_statement",
    "case_item",
];
/// Nodes that are one stage of a pipeline with a script of their own.
const BODIES: [&str; 6] =
    ["while_statement", "for_statement", "c_style_for_statement", "if_statement", "case_statement", "list"];

/// Adds the commands of a node, each a pipeline of its own unless it is one of several stages. `None` where the tree is
/// not understood.
fn walk<'a>(node: Node<'_>, text: &'a str, script: &mut Script<'a>) -> Option<()> {
    match node.kind() {
        "comment" => {}
        "case_statement" => cases(node, text, script)?,
        "for_statement" => {
            let head = head(node, text)?.trim_end_matches([';', ' ', '\n', '\t']);
            script.pipelines.push(vec![Stage::Simple(simple(head))]);
            walk(node.child_by_field_name("body")?, text, script)?;
        }
        "c_style_for_statement" => {
            script.pipelines.push(vec![Stage::Simple(as_data(head(node, text)?))]);
            walk(node.child_by_field_name("body")?, text, script)?;
        }
        kind if LISTS.contains(&kind) => {
            for child in children(node) {
                walk(child, text, script)?;
            }
        }
        _ => script.pipelines.push(stages(node, text)?),
    }
    Some(())
}

/// What stands before the body of a loop.
fn head<'a>(node: Node<'_>, text: &'a str) -> Option<&'a str> {
    let body = node.child_by_field_name("body")?;
    Some(&text[node.start_byte()..body.start_byte()])
}

/// The word of `case` is looked into, its patterns are not, and their commands run.
fn cases<'a>(node: Node<'_>, text: &'a str, script: &mut Script<'a>) -> Option<()> {
    for child in children(node) {
        if child.kind() != "case_item" {
            script.pipelines.push(vec![Stage::Simple(as_data(slice(child, text)))]);
            continue;
        }
        for inner in children(child).into_iter().skip(1) {
            walk(inner, text, script)?;
        }
    }
    Some(())
}

/// The stages of a pipeline that a node stands for.
fn stages<'a>(node: Node<'_>, text: &'a str) -> Option<Vec<Stage<'a>>> {
    Some(match node.kind() {
        "pipeline" | "negated_command" => {
            let mut all = Vec::new();
            for child in children(node) {
                all.extend(stages(child, text)?);
            }
            all
        }
        "subshell" => vec![group(&children(node), text, true)?],
        "compound_statement" => vec![group(&children(node), text, false)?],
        "redirected_statement" => redirected(node, text)?,
        "function_definition" => {
            let inside = node.child_by_field_name("body")?;
            let mut body = Script::default();
            walk(inside, text, &mut body)?;
            let name = node.child_by_field_name("name").map_or("", |name| slice(name, text));
            vec![Stage::Function { name, body, text: slice(inside, text) }]
        }
        "comment" => Vec::new(),
        // A test or a sum runs nothing but the substitutions in it.
        "test_command" => vec![Stage::Simple(as_data(slice(node, text)))],
        kind if BODIES.contains(&kind) => vec![group(&[node], text, false)?],
        _ => vec![Stage::Simple(simple(slice(node, text)))],
    })
}

fn group<'a>(nodes: &[Node<'_>], text: &'a str, is_subshell: bool) -> Option<Stage<'a>> {
    let mut body = Script::default();
    for node in nodes {
        walk(*node, text, &mut body)?;
    }
    Some(Stage::Group { body, redirects: Vec::new(), is_subshell })
}

/// A statement and what is redirected into it. What the tree took for redirections alone may have words among them.
fn redirected<'a>(node: Node<'_>, text: &'a str) -> Option<Vec<Stage<'a>>> {
    let Some(body) = node.child_by_field_name("body") else {
        return Some(vec![Stage::Simple(simple(slice(node, text)))]);
    };
    let before = simple(&text[node.start_byte()..body.start_byte()]);
    let after = simple(&text[body.end_byte()..node.end_byte()]);
    let mut stages = stages(body, text)?;
    match stages.last_mut() {
        Some(Stage::Simple(last)) => {
            last.words.extend(after.words);
            last.redirects.extend(before.redirects.into_iter().chain(after.redirects));
        }
        Some(Stage::Group { redirects, .. }) => redirects.extend(after.redirects),
        _ => {}
    }
    Some(stages)
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
