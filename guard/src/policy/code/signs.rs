//! Signs of what a program runs, removes, writes and reads, and the commands they stand for.
//!
//! The signs are words of the program outside of its literals; a literal is only judged where a sign says what is done
//! with it.

use super::super::decode::{base64, hex};
use super::super::words::HOME;
use super::super::wrappers::Inner;
use super::literals::{Literal, MOST_LITERALS, split};

/// Something is run.
const RUNS: &[&str] = &[
    "system",
    "popen",
    "Popen",
    "subprocess",
    "exec",
    "spawn",
    "qx",
    "`",
    "passthru",
    "child_process",
    "Command",
    "check_output",
    "check_call",
    "proc_open",
    "Open3",
    "execute",
    "%x",
    "shell",
    "| getline",
    "run(",
    "send ",
    "jobstart",
    "termopen",
    ".cmd(",
];
/// Literals that name what runs something.
const RUNNING_LITERALS: [&str; 7] = ["child_process", "node:child_process", "sh", "bash", "os", "system", "popen"];
/// Something is removed.
const REMOVES: &[&str] = &[
    "rmtree",
    "rm_rf",
    "rm_r",
    "remove_dir",
    "remove_entry",
    "rmSync",
    "rmdir",
    "rimraf",
    "unlink",
    "removeSync",
    "remove_tree",
    "removedirs",
    ".remove(",
    ".rm(",
    "FileUtils.rm",
    "rm_f",
    "rmdirSync",
    "deleteDir",
    "removeAll",
    "RemoveAll",
    "file delete",
    "File.delete",
    "delete-directory",
    "delete-file",
];
/// Something is written.
const WRITES: &[&str] = &["write", "truncate", "appendFile", "put_contents"];
/// Modes of opening a file for writing.
const WRITING_MODES: [&str; 10] = ["w", "wb", "a", "ab", "r+b", "r+", "wb+", "w+", ">", ">>"];
/// Something is read.
const READS: &[&str] = &["open", "read", "file_get_contents", "copy", "slurp", "load", "b64encode", "Path(", "<>"];
/// Something is decoded.
const DECODES: &[&str] = &["b64", "base64", "atob", "decode", "unpack", "fromhex", "Buffer"];
/// The home directory is looked up.
const HOMES: &[&str] =
    &["home()", "homedir()", "Dir.home", "expanduser", "environ", "ENV", "process.env.HOME", "getenv"];
/// Literals around a lookup of the home directory that say nothing about what is below it.
const HOME_LITERALS: [&str; 6] = ["~", "HOME", "fs", "os", "path", "fileutils"];
/// Loops.
const LOOPS: &[&str] = &["while", "loop", "for(;;)"];
/// Every process is killed.
const KILLS: &[&str] = &["kill(-1", "kill( -1"];

/// What a program does, as far as its signs tell.
struct Signs {
    runs: bool,
    removes: bool,
    writes: bool,
    reads: bool,
    decodes: bool,
    joins: bool,
    opens: bool,
}

impl Signs {
    fn of(skeleton: &str, literals: &[Literal]) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| skeleton.contains(word));
        let has_literal = |words: &[&str]| literals.iter().any(|literal| words.contains(&literal.text.as_str()));
        let pipes = skeleton.contains('|') && skeleton.contains("print");
        Self {
            runs: has(RUNS) || has_literal(&RUNNING_LITERALS) || pipes,
            removes: has(REMOVES) || calls(skeleton, "rm"),
            writes: has(WRITES) || has_literal(&WRITING_MODES),
            reads: has(READS),
            decodes: has(DECODES),
            joins: has(&["join("]) && literals.len() > 1,
            opens: has(&["open"]),
        }
    }
}

fn vector(words: &[&str]) -> Inner {
    Inner::Vector(words.iter().map(|word| (*word).to_owned()).collect())
}

/// Adds what a program does as commands.
pub(super) fn collect(code: &str, depth: usize, found: &mut Vec<Inner>) {
    let (literals, skeleton) = split(code);
    let signs = Signs::of(&skeleton, &literals);
    let has = |words: &[&str]| words.iter().any(|word| skeleton.contains(word));
    if has(&["fork"]) && has(LOOPS) {
        found.push(Inner::Script(":(){ :|:& };:".to_owned()));
    }
    if has(KILLS) {
        found.push(vector(&["kill", "-9", "-1"]));
    }
    if signs.removes && has(HOMES) && names_nothing_below(&literals) {
        found.push(vector(&["rm", "-rf", &HOME.to_string()]));
    }
    rows(&literals, &signs, found);
    for literal in literals.iter().take(MOST_LITERALS) {
        single(literal, &signs, found);
        if depth == 0 {
            inner_programs(literal, &signs, &skeleton, found);
        }
    }
    unquoted(code, found);
}

/// No literal says what is removed below the home directory.
fn names_nothing_below(literals: &[Literal]) -> bool {
    literals.iter().all(|literal| HOME_LITERALS.contains(&literal.text.as_str()))
}

/// Lists of literals are the words of a command, where something is run.
fn rows(literals: &[Literal], signs: &Signs, found: &mut Vec<Inner>) {
    let mut row: Vec<String> = Vec::new();
    for literal in literals.iter().take(MOST_LITERALS).filter(|_| signs.runs) {
        let goes_on = literal.before.replace("args", "").chars().all(|c| c.is_whitespace() || ",[(=>{:".contains(c));
        if !goes_on {
            row.clear();
        }
        // What separates words is none of them.
        if !literal.text.trim().is_empty() {
            row.push(expanded(&literal.text));
        }
        if row.len() > 1 {
            found.push(Inner::Vector(row.clone()));
        }
    }
}

/// What a literal is by itself: a line, or a path that is removed, written or read.
fn single(literal: &Literal, signs: &Signs, found: &mut Vec<Inner>) {
    let text = expanded(&literal.text);
    let is_joined = signs.joins && matches!(literal.text.as_str(), "/" | "~");
    // The way of awk and of Perl to write to a file.
    let before = literal.before.trim_end();
    let is_redirected = before.ends_with('>') && !before.ends_with("=>") && !before.ends_with("->");
    let opened = literal.text.strip_prefix('>').filter(|_| signs.opens);
    if signs.runs {
        found.push(Inner::Script(literal.text.clone()));
    }
    if signs.removes && !is_joined {
        found.push(vector(&["rm", "-rf", &text]));
    }
    if let Some(file) = opened {
        found.push(vector(&["tee", file.trim_start_matches(['>', ' '])]));
    }
    if signs.writes || is_redirected {
        found.push(vector(&["tee", &text]));
    }
    if signs.reads {
        found.push(vector(&["cat", &text]));
    }
}

fn expanded(text: &str) -> String {
    text.strip_prefix('~').map_or_else(|| text.to_owned(), |rest| format!("{HOME}{rest}"))
}

/// Programs that are encoded in a literal, or that the program hands to itself.
fn inner_programs(literal: &Literal, signs: &Signs, skeleton: &str, found: &mut Vec<Inner>) {
    if signs.decodes {
        for decoded in [base64(&literal.text), hex(&literal.text)].into_iter().flatten() {
            found.push(Inner::Script(decoded.clone()));
            collect(&decoded, 1, found);
        }
    }
    if calls(skeleton, "exec") || calls(skeleton, "eval") {
        collect(&literal.text, 1, found);
    }
}

/// Commands that stand in no literal.
fn unquoted(code: &str, found: &mut Vec<Inner>) {
    // Perl, Ruby and the like run what stands behind qx and %x.
    for mark in ["qx", "%x"] {
        if let Some((_, rest)) = code.split_once(mark) {
            let is_nested = rest.starts_with(['{', '(', '[']);
            let ends = |c: char| matches!(c, '}' | ')' | ']' | '!') || c == '/' && !is_nested;
            found.push(Inner::Script(rest.chars().skip(1).take_while(|c| !ends(*c)).collect()));
        }
    }
    // Scripts of expect and Tcl name the command without quotes.
    for mark in ["spawn ", "exec "] {
        if let Some((_, rest)) = code.split_once(mark) {
            found.push(Inner::Script(rest.split(['\n', ';', ']']).next().unwrap_or("").to_owned()));
        }
    }
}

/// A function of this very name is called.
fn calls(skeleton: &str, name: &str) -> bool {
    skeleton
        .match_indices(&format!("{name}("))
        .any(|(at, _)| !skeleton[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':')))
}
