//! Both readers on the lines of the fixtures.

use super::*;
use crate::policy::judge::Judge;
use crate::policy::user_rules::UserRules;
use crate::policy::{prose, tests::fixture_lines};

fn linear_only(text: &str) -> Script<'_> {
    linear::read(text, tokens(text))
}

/// A text without anything nested has the same commands in the same pipelines for both, so that it needs no tree.
#[test]
fn both_readers_agree_on_commands_in_a_row() {
    let lines = fixture_lines();
    let flat = lines.iter().filter(|line| is_flat(&tokens(line)));
    let both = flat.filter_map(|line| Some((line, tree::read(line)?, linear_only(line))));
    let mut count = 0;
    let mut differ = Vec::new();
    for (line, tree, linear) in both {
        count += 1;
        if commands(&tree) != commands(&linear) {
            differ.push(format!("{line:?}\n  {tree:?}\n  {linear:?}"));
        }
    }
    assert!(count > 1_000, "only {count} lines");
    assert!(differ.is_empty(), "{} of {count}:\n{}", differ.len(), differ.join("\n"));
}

/// The words of each command of each pipeline; a list in a pipeline is a group to the tree.
fn commands<'a>(script: &Script<'a>) -> Vec<Vec<Vec<&'a str>>> {
    fn words<'a>(stage: &Stage<'a>) -> Vec<Vec<&'a str>> {
        match stage {
            // The tree marks a test as data.
            Stage::Simple(simple) => {
                vec![simple.words.iter().copied().filter(|word| *word != ":").collect()]
            }
            Stage::Group { body, .. } | Stage::Function { body, .. } => commands(body).concat(),
        }
    }
    script.pipelines.iter().map(|stages| stages.iter().flat_map(words).collect()).collect()
}

/// The fallback refuses nothing that the tree lets pass. The other way round it misses what only the tree can know: that
/// a function calls itself, and what flows into or out of a group or a loop.
#[test]
fn the_fallback_differs_only_where_commands_belong_together() {
    let rules = UserRules::default();
    let refuses = |read: fn(&str) -> Script<'_>, line: &str| {
        let mut judge = Judge::new(&rules);
        (judge.read, judge.is_prose) = (read, prose::is_prose(line));
        judge.text(line, None).is_err()
    };
    let lines = fixture_lines();
    for line in lines.iter().filter(|line| refuses(linear_only, line)) {
        assert!(refuses(read, line), "the fallback alone refuses {line:?}");
    }
    let missed: Vec<&String> = lines.iter().filter(|line| refuses(read, line) && !refuses(linear_only, line)).collect();
    let is_function = |line: &str| line.contains("()") || line.starts_with("function ");
    let is_group = |line: &str| ["} |", ") |", "done <"].iter().any(|end| line.contains(end));
    let other: Vec<_> = missed.iter().filter(|line| !is_function(line) && !is_group(line)).collect();
    assert!(other.is_empty() && missed.len() < lines.len() / 100, "{} of {}: {other:#?}", missed.len(), lines.len());
}

/// Longer or deeper texts are not given to the tree.
#[test]
fn the_tree_is_bounded() {
    let long = format!("if true; then {} fi", "ls; ".repeat(5_000));
    let deep = format!("{}ls{}", "(".repeat(60), ")".repeat(60));
    for text in [long.as_str(), &deep, "if true; then ls", "cat <<X\nif\nX"] {
        assert!(tree::read(text).is_none(), "{:.40}", text);
        assert!(!read(text).pipelines.is_empty());
    }
    assert!(tree::read("if true; then ls; fi").is_some());
}
