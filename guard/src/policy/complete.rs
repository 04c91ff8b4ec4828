//! Tells whether a text is whole commands, so that more can be typed behind it.
//!
//! Says no where it is not certain. Runs and judges nothing.

use std::collections::VecDeque;

use tree_sitter::Tree;

use super::shell::tree_of;

/// Words that a shell takes for the beginning of something larger, and the parser for the name of a command.
const BEGINNINGS: [&str; 6] = ["coproc", "foreach", "nocorrect", "repeat", "select", "time"];

/// True for one or more whole commands: what follows in the next line belongs to none of them.
pub fn is_complete(text: &str) -> bool {
    let tree = if has_a_beginning(text) { None } else { tree_of(text) };
    let tree = tree.filter(|tree| !tree.root_node().has_error());
    tree.is_some_and(|tree| have_here_documents_ended(text) || !has_here_document(&tree))
}

/// One of the words stands somewhere; as what, is not looked at.
fn has_a_beginning(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| BEGINNINGS.contains(&word))
}

/// `<<` may also be a number that is shifted.
fn has_here_document(tree: &Tree) -> bool {
    tree.root_node().to_sexp().contains("heredoc")
}

/// Every here-document, wherever in the text it is begun, finds its delimiter on a line of its own. The tree does not
/// tell: to it, the end of the text ends a document.
fn have_here_documents_ended(text: &str) -> bool {
    let text = text.replace("<<<", "");
    let mut open: VecDeque<(String, bool)> = VecDeque::new();
    for line in text.lines() {
        match open.front() {
            Some((delimiter, strips_tabs)) => {
                let line = if *strips_tabs { line.trim_start_matches('\t') } else { line };
                if line == delimiter {
                    open.pop_front();
                }
            }
            // Where the next line belongs to this one, the document begins later.
            None if line.contains("<<") && line.ends_with('\\') => return false,
            None => open.extend(line.split("<<").skip(1).map(delimiter)),
        }
    }
    open.is_empty()
}

/// The delimiter behind `<<`, and whether tabs before it are passed over. One that is not understood is never found.
fn delimiter(rest: &str) -> (String, bool) {
    let (strips_tabs, rest) = rest.strip_prefix('-').map_or((false, rest), |rest| (true, rest));
    let rest = rest.trim_start_matches([' ', '\t']);
    let word = rest.split([' ', '\t', ';', '|', '&', '(', ')', '<', '>']).next().unwrap_or_default();
    (word.replace(['\'', '"', '\\'], ""), strips_tabs)
}

#[cfg(test)]
mod tests {
    use super::is_complete;

    #[test]
    fn whole_commands_are_complete() {
        for text in [
            "ls",
            "",
            "# nothing",
            "false && true",
            "sleep 1 &",
            "a; b\nc | d || e",
            "if a; then b; fi",
            "for i in 1 2; do echo $i; done",
            "f() { echo; }; f",
            "case $x in a) b;; esac",
            "echo \"$(date)\" 'x y' $((1 + 2))",
            "(cd /; ls) > out 2>&1",
            "cat <<X\na\nX",
            "cat <<-'X' | wc\n\ta << b\n\tX\necho",
            "echo $(cat <<X\na\nX\n)",
            "cat <<<word",
            "echo $((1<<2))",
            "echo times",
        ] {
            assert!(is_complete(text), "{text:?}");
        }
    }

    #[test]
    fn what_goes_on_or_is_not_understood_is_not_complete() {
        for text in [
            "a &&",
            "a ||",
            "a |",
            "echo 'a",
            "echo \"a",
            "echo `a",
            "echo $(a",
            "echo ${a",
            "echo $((1 +",
            "echo $'a",
            "(a",
            "{ a",
            "[[ a",
            "if a",
            "if a; then b",
            "if a; then b; else",
            "for i in 1 2",
            "for i in 1 2; do",
            "while a; do b",
            "case x in",
            "case x in a) b;;",
            "f()",
            "function f",
            "f() {",
            "cat <<X",
            "cat <<X\na",
            "cat <<X\na\n X",
            "cat <<X\na\n\tX",
            "cat <<-X\na",
            "cat <<A; cat <<B\n1\nA\n2",
            "X\ncat <<X\na",
            "cat <<X \\\n<<Y\nX",
            "cat <<''",
            "a=(1 2",
            "!",
            "time {",
            "a; coproc { b",
            "repeat 3",
            "echo )",
            "ls *(.)",
        ] {
            assert!(!is_complete(text), "{text:?}");
        }
        for text in ["(".repeat(100_000), "x ".repeat(100_000)] {
            assert!(!is_complete(&text));
        }
    }
}
