//! One-liners of other languages: the shell commands, removals and reads that stand in their string literals.
//!
//! No parser for any of them: literals are taken out, and what is left says whether something is run, removed or read.
//! A literal that is only printed is data.

mod environment;
mod literals;
mod signs;

use super::decode::base64;
use super::wrappers::Inner;

/// Interpreters, without the number of a version.
const LANGUAGES: [&str; 26] = [
    "python", "pypy", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "luajit", "tclsh", "expect",
    "awk", "gawk", "mawk", "nawk", "rscript", "r", "julia", "swift", "groovy", "jshell", "guile", "racket", "elixir",
];
/// Programs with commands of their own, one of which runs a line of the shell.
const CLIENTS: [&str; 15] = [
    "vim",
    "vi",
    "nvim",
    "ex",
    "view",
    "gdb",
    "psql",
    "mysql",
    "mariadb",
    "sqlite3",
    "ftp",
    "less",
    "ed",
    "emacs",
    "emacsclient",
];
/// Calls in the languages of editors that run or remove something.
const EDITOR_CALLS: [&str; 8] = [
    "system(",
    "shell-command",
    "jobstart(",
    "termopen(",
    "os.execute(",
    "io.popen(",
    "delete-directory",
    "delete-file",
];

fn is_language(name: &str) -> bool {
    LANGUAGES.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
}

/// The programs in a one-liner; `None` for a command that is no language.
pub(super) fn inside(
    name: &str,
    arguments: &[String],
    input: Option<&str>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<Vec<Inner>> {
    let mut found = Vec::new();
    if CLIENTS.contains(&name) {
        found = escapes_to_shell(arguments, input);
        let is_call = |text: &&String| EDITOR_CALLS.iter().any(|call| text.contains(call));
        arguments.iter().filter(is_call).for_each(|code| signs::collect(code, 0, &mut found));
        return Some(found);
    }
    let code = is_language(name).then(|| code_of(name, arguments, input)).flatten()?;
    let code = literals::plain_quotes(&code);
    signs::collect(&code, 0, &mut found);
    // What the line has put into the environment is part of the command that is built of it.
    if let Some(known) = environment::with_environment(&code, variable) {
        signs::collect(&known, 0, &mut found);
    }
    Some(found)
}

/// What a one-liner prints, when that is a literal.
pub(super) fn printed(name: &str, arguments: &[String]) -> Option<String> {
    let code = is_language(name).then(|| code_of(name, arguments, None)).flatten()?;
    let (literals, skeleton) = literals::split(&code);
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
