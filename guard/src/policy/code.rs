//! One-liners of other languages: the shell commands, removals and reads that stand in their string literals.
//!
//! No parser for any of them: literals are taken out, and what is left says whether something is run, removed or read.
//! A literal that is only printed is data.

use super::decode::{ansi_c, base64, hex};
use super::words::HOME;
use super::wrappers::Inner;

/// Literals that are looked at.
const MOST_LITERALS: usize = 64;

/// A string literal and what stands between the one before and it.
struct Literal {
    text: String,
    before: String,
}

fn is_language(name: &str) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    matches!(
        stem,
        "python"
            | "pypy"
            | "perl"
            | "ruby"
            | "node"
            | "nodejs"
            | "deno"
            | "bun"
            | "php"
            | "lua"
            | "luajit"
            | "tclsh"
            | "expect"
            | "awk"
            | "gawk"
            | "mawk"
            | "nawk"
            | "rscript"
            | "r"
            | "julia"
            | "swift"
            | "groovy"
            | "jshell"
            | "guile"
            | "racket"
            | "elixir"
    )
}

/// The programs in a one-liner; `None` for a command that is no language.
pub(super) fn inside(
    name: &str,
    arguments: &[String],
    input: Option<&str>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<Vec<Inner>> {
    if matches!(
        name,
        "vim" | "vi" | "nvim" | "ex" | "view" | "gdb" | "psql" | "mysql" | "sqlite3" | "ftp" | "less" | "ed" | "emacs"
    ) {
        let mut found = escapes_to_shell(arguments, input);
        // Editors have a language of their own.
        let is_call = |text: &&String| {
            ["system(", "shell-command", "jobstart(", "termopen("].iter().any(|call| text.contains(call))
        };
        arguments.iter().filter(is_call).for_each(|code| collect(code, 0, &mut found));
        return Some(found);
    }
    if !is_language(name) {
        return None;
    }
    let code = code_of(name, arguments, input)?;
    let mut found = Vec::new();
    collect(&code, 0, &mut found);
    // What the line has put into the environment is part of the command that is built of it.
    if let Some(known) = with_environment(&code, variable) {
        collect(&known, 0, &mut found);
    }
    Some(found)
}

/// How a program names a variable of its environment: what stands before and behind the name.
const ENVIRONMENT: [(&str, &str); 17] = [
    ("os.environ['", "']"),
    ("os.environ[\"", "\"]"),
    ("environ['", "']"),
    ("environ[\"", "\"]"),
    ("os.environ.get('", "')"),
    ("os.environ.get(\"", "\")"),
    ("os.getenv('", "')"),
    ("os.getenv(\"", "\")"),
    ("getenv('", "')"),
    ("getenv(\"", "\")"),
    ("process.env['", "']"),
    ("process.env[\"", "\"]"),
    ("ENV['", "']"),
    ("ENV[\"", "\"]"),
    ("ENV.fetch('", "')"),
    ("$ENV{'", "'}"),
    ("$ENV{", "}"),
];
/// Lookups that are resolved.
const MOST_LOOKUPS: usize = 64;

/// The code with the values of the variables that it looks up, where the line tells them; none where it looks up none.
fn with_environment(code: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let mut code = node_lookups(code);
    let mut is_changed = false;
    for (open, close) in ENVIRONMENT {
        let mut from = 0;
        for _ in 0..MOST_LOOKUPS {
            let Some(at) = code[from..].find(open).map(|at| from + at) else { break };
            let rest = &code[at + open.len()..];
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
            let Some(value) = variable(name).filter(|_| rest[name.len()..].starts_with(close)) else {
                from = at + open.len();
                continue;
            };
            let end = at + open.len() + name.len() + close.len();
            // Within braces it is part of the literal around it.
            let braces = code[..at].ends_with('{') && code[end..].starts_with('}');
            let value = value.replace(['\'', '"', '\\'], " ");
            let (range, text) = if braces { (at - 1..end + 1, value) } else { (at..end, format!("'{value}'")) };
            from = range.start + text.len();
            code.replace_range(range, &text);
            is_changed = true;
        }
    }
    is_changed.then_some(code)
}

/// `process.env.NAME` as the form with brackets.
fn node_lookups(code: &str) -> String {
    let mut parts = code.split("process.env.");
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        out.push_str(&format!("process.env['{name}']{rest}"));
    }
    out
}

/// What a one-liner prints, when that is a literal.
pub(super) fn printed(name: &str, arguments: &[String]) -> Option<String> {
    let code = is_language(name).then(|| code_of(name, arguments, None)).flatten()?;
    let (literals, skeleton) = split(&code);
    let prints = ["print", "puts", "console.log", "echo", "say", "write"].iter().any(|word| skeleton.contains(word));
    let decodes = ["b64", "base64", "atob"].iter().any(|word| skeleton.contains(word));
    let text = &literals.iter().find(|literal| literal.text.contains(' ') || decodes)?.text;
    prints.then(|| if decodes { base64(text) } else { Some(text.clone()) }).flatten()
}

/// A loop that forks.
pub(super) fn forks_forever(name: &str, arguments: &[String]) -> bool {
    is_language(name)
        && arguments.iter().any(|code| {
            code.contains("fork")
                && ["while", "for(;;)", "for (;;)", "loop", "until"].iter().any(|word| code.contains(word))
        })
}

/// The text that the interpreter runs.
fn code_of(name: &str, arguments: &[String], input: Option<&str>) -> Option<String> {
    if name.ends_with("awk") {
        return arguments.iter().find(|argument| !argument.starts_with('-')).cloned();
    }
    let mut code = String::new();
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        let letters = argument.strip_prefix('-').unwrap_or("");
        let takes = match letters.strip_prefix('-') {
            Some(long) => matches!(long, "eval" | "print" | "command" | "execute" | "run"),
            None => letters.ends_with(['c', 'e', 'E', 'r']) && letters.len() <= 6 || letters == "p",
        };
        let is_verb = at == 0 && matches!(argument.as_str(), "eval" | "-");
        if takes || is_verb && argument == "eval" {
            code.push_str(arguments.get(at + 1).map_or("", String::as_str));
            code.push('\n');
            at += 1;
        } else if let Some(attached) = argument
            .strip_prefix("-c")
            .or_else(|| argument.strip_prefix("-e"))
            .or_else(|| argument.strip_prefix("--eval="))
        {
            code.push_str(attached);
            code.push('\n');
        } else if !argument.starts_with('-') {
            break;
        }
        at += 1;
    }
    let reads_input = code.is_empty() && arguments.iter().all(|argument| argument.starts_with('-'));
    if reads_input { input.map(str::to_owned) } else { Some(code) }
}

/// What a piece of code runs, removes, writes and reads.
fn collect(code: &str, depth: usize, found: &mut Vec<Inner>) {
    let (literals, skeleton) = split(code);
    let has = |words: &[&str]| words.iter().any(|word| skeleton.contains(word));
    let runs = has(&[
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
    ]) || literals
        .iter()
        .any(|literal| matches!(literal.text.as_str(), "child_process" | "node:child_process" | "sh" | "bash" | "os"))
        || skeleton.contains('|') && skeleton.contains("print");
    let removes = has(&[
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
        "removeSync",
    ]) || calls(&skeleton, "rm");
    let writes = has(&["write", "truncate", "appendFile", "put_contents"])
        || literals.iter().any(|literal| {
            matches!(literal.text.as_str(), "w" | "wb" | "a" | "ab" | "r+b" | "r+" | "wb+" | "w+" | ">" | ">>")
        });
    let reads = has(&["open", "read", "file_get_contents", "copy", "slurp", "load", "b64encode", "Path(", "<>"]);
    if has(&["fork"]) && has(&["while", "loop", "for(;;)"]) {
        found.push(Inner::Script(":(){ :|:& };:".to_owned()));
    }
    if removes
        && literals.iter().all(|literal| !literal.text.contains(['/', '~']) || literal.text == "~")
        && has(&["home()", "homedir()", "Dir.home", "expanduser", "environ", "ENV", "process.env.HOME", "getenv"])
    {
        let below: Vec<&str> = literals
            .iter()
            .map(|l| l.text.as_str())
            .filter(|text| !matches!(*text, "~" | "HOME" | "fs" | "os" | "path" | "fileutils"))
            .collect();
        if below.is_empty() {
            found.push(Inner::Vector(vec!["rm".into(), "-rf".into(), HOME.to_string()]));
        }
    }
    let mut row: Vec<String> = Vec::new();
    for literal in literals.iter().take(MOST_LITERALS) {
        let text = literal.text.strip_prefix('~').map_or(literal.text.clone(), |rest| format!("{HOME}{rest}"));
        if !literal.before.chars().all(|c| c.is_whitespace() || ",[(=>".contains(c)) {
            row.clear();
        }
        row.push(text.clone());
        if runs {
            found.push(Inner::Script(literal.text.clone()));
            if row.len() > 1 {
                found.push(Inner::Vector(row.clone()));
            }
        }
        let joined = has(&["join("]) && literals.len() > 1 && matches!(literal.text.as_str(), "/" | "~");
        if removes && !joined {
            found.push(Inner::Vector(vec!["rm".into(), "-rf".into(), text.clone()]));
        }
        // Perl's way to open a file for writing.
        if let Some(file) = literal.text.strip_prefix('>').filter(|_| skeleton.contains("open")) {
            found.push(Inner::Vector(vec!["tee".into(), file.trim_start_matches(['>', ' ']).to_owned()]));
        }
        if writes {
            found.push(Inner::Vector(vec!["tee".into(), text.clone()]));
        }
        if reads {
            found.push(Inner::Vector(vec!["cat".into(), text.clone()]));
        }
        if depth == 0 && has(&["b64", "base64", "atob", "decode", "unpack", "fromhex", "Buffer"]) {
            for decoded in [base64(&literal.text), hex(&literal.text)].into_iter().flatten() {
                found.push(Inner::Script(decoded.clone()));
                collect(&decoded, 1, found);
            }
        }
    }
    // Perl, Ruby and the like run what stands between backticks or behind qx and %x.
    for mark in ["qx", "%x"] {
        if let Some((_, rest)) = code.split_once(mark) {
            let text: String = rest
                .chars()
                .skip(1)
                .take_while(|c| {
                    !matches!(c, '}' | ')' | '/' | ']' | '!') || *c == '/' && rest.starts_with(['{', '(', '['])
                })
                .collect();
            found.push(Inner::Script(text));
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

/// The literals of a code, and the code without them. Neighbours that are added to each other are one.
fn split(code: &str) -> (Vec<Literal>, String) {
    let (mut literals, mut skeleton): (Vec<Literal>, String) = (Vec::new(), String::new());
    let mut before = String::new();
    let mut rest = code;
    while let Some(at) = rest.find(['\'', '"', '`']) {
        let quote = rest.as_bytes()[at];
        before.push_str(&rest[..at]);
        skeleton.push_str(&rest[..at]);
        if quote == b'`' {
            skeleton.push('`');
        }
        let triple = rest.as_bytes()[at..].starts_with(&[quote; 3]);
        let width = if triple { 3 } else { 1 };
        let inner = &rest[at + width..];
        let end = literal_end(inner, quote, triple);
        let text = ansi_c(&inner[..end]);
        rest = inner.get(end + width..).unwrap_or("");
        let is_added = matches!(before.trim(), "+" | "." | "..") || before.is_empty() && !literals.is_empty();
        let room = literals.len() < MOST_LITERALS;
        match literals.last_mut() {
            Some(last) if is_added => last.text.push_str(&text),
            _ if room => literals.push(Literal { text, before: std::mem::take(&mut before) }),
            _ => {}
        }
        before.clear();
        skeleton.push(' ');
    }
    skeleton.push_str(rest);
    (literals, skeleton)
}

fn literal_end(text: &str, quote: u8, triple: bool) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'\\' {
            at += 1;
        } else if bytes[at] == quote && (!triple || bytes[at..].starts_with(&[quote; 3])) {
            return at;
        }
        at += 1;
    }
    text.len()
}

/// Editors and clients that hand a line to a shell.
fn escapes_to_shell(arguments: &[String], input: Option<&str>) -> Vec<Inner> {
    let lines = arguments.iter().map(String::as_str).chain(input.unwrap_or("").lines().take(64));
    let command = |line: &str| {
        let line = line.trim_start_matches(['+', ':', ' ', '-']);
        let at =
            ["!", "\\!", ".shell ", ".system ", "shell ", "system "].iter().find_map(|mark| line.strip_prefix(mark));
        at.map(|rest| Inner::Script(rest.trim_start_matches(' ').to_owned()))
    };
    lines.filter_map(command).collect()
}
