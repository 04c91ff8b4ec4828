//! Rules of the source tree that no compiler checks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::repository;

/// Longest source file, in lines.
const LONGEST_FILE: usize = 600;

/// A source file of the program or of one of its crates.
pub(crate) struct Source {
    /// From the root of the repository, with `/`.
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Source {
    /// The code that ships: up to the tests at the end, without comment lines.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().map(|(index, line)| (index + 1, line));
        lines
            .take_while(|(_, line)| line.trim() != "#[cfg(test)]")
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// Where the code that ships has something forbidden.
    pub(crate) fn offences(&self, is_forbidden: impl Fn(&str) -> bool) -> Vec<String> {
        let found = self.code().filter(|(_, line)| is_forbidden(line));
        found.map(|(number, line)| format!("{}:{number}: {}", self.name, line.trim())).collect()
    }
}

pub(crate) fn sources() -> Vec<Source> {
    let mut paths = Vec::new();
    for folder in ["src", "emulator/src", "guard/src"] {
        collect(&repository().join(folder), &mut paths);
    }
    assert!(paths.len() > 20, "the sources were not found: {paths:?}");
    paths
        .into_iter()
        .map(|path| {
            let name =
                path.strip_prefix(repository()).expect("a path below the root").to_string_lossy().replace('\\', "/");
            Source { name, text: fs::read_to_string(&path).expect("a source file is readable") }
        })
        .collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("an entry of the folder").path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
}

/// Looks through the code that ships, except where a file may do it.
fn assert_nowhere(rule: &str, may: impl Fn(&str) -> bool, is_forbidden: impl Fn(&str) -> bool) {
    let sources = sources();
    let offences: Vec<_> =
        sources.iter().filter(|source| !may(&source.name)).flat_map(|source| source.offences(&is_forbidden)).collect();
    assert!(offences.is_empty(), "{rule}:\n{}", offences.join("\n"));
}

#[test]
fn every_file_says_what_it_owns() {
    let silent: Vec<_> =
        sources().into_iter().filter(|source| !source.text.starts_with("//! ")).map(|source| source.name).collect();
    assert!(silent.is_empty(), "these do not open with `//!`: {silent:?}");
}

#[test]
fn no_file_is_too_long_to_read() {
    let lengths = sources().into_iter().map(|source| (source.text.lines().count(), source.name));
    let long: Vec<_> = lengths.filter(|(length, _)| *length > LONGEST_FILE).collect();
    assert!(long.is_empty(), "these have more than {LONGEST_FILE} lines: {long:?}");
}

#[test]
fn one_module_knows_each_engine() {
    assert_nowhere(
        "only emulator/src/alacritty names alacritty_terminal, and the parser's tests its vte",
        |name| name.starts_with("emulator/src/alacritty/") || name == "emulator/src/parser/tests.rs",
        |line| line.contains("alacritty_terminal"),
    );
    assert_nowhere(
        "only emulator/src/vt100.rs names the crate vt100",
        |name| name == "emulator/src/vt100.rs",
        |line| {
            let line = line.replace("crate::vt100::", "");
            line.contains("vt100::") || line.contains("::vt100")
        },
    );
}

#[test]
fn sessions_know_no_json() {
    let is_outside = |name: &str| !name.starts_with("src/terminal/local/");
    assert_nowhere("sessions know no JSON", is_outside, |line| has_word(line, "serde_json"));
}

/// What a redactor returns is masked; these files vouch for what it returned in another shape.
#[test]
fn few_files_vouch_for_masked_text() {
    let homes = ["guard/src/masked.rs", "src/tools/envelope.rs", "src/tools/term/actions.rs", "src/traffic/store.rs"];
    assert_nowhere(
        "only the emulator's filter, finished replies, texts made of them and stored events are masked in a way that types do not show",
        |name| homes.contains(&name) || name.starts_with("src/masked/"),
        |line| line.contains("vouched"),
    );
}

#[test]
fn one_module_writes_to_the_terminal() {
    let needles = ["print!(", "println!(", "dbg!(", "stdout()", "stderr()"];
    assert_nowhere(
        "only src/cli/print.rs writes to standard output and error",
        |name| name == "src/cli/print.rs",
        |line| needles.iter().any(|needle| line.contains(needle)),
    );
}

#[test]
fn nothing_is_unwrapped_outside_tests() {
    assert_nowhere("no .unwrap() in code that ships", |_| false, |line| line.contains(".unwrap()"));
}

/// A path is found as a word of its own: `support/workloads` is none of them.
#[test]
fn no_file_names_a_folder_of_a_developers_machine() {
    // In halves, so that this file does not offend.
    let needles: Vec<String> = [("/ro", "ot"), ("/wo", "rk"), ("/ho", "me"), ("/Us", "ers"), ("/tmp/w", "t")]
        .map(|(a, b)| format!("{a}{b}"))
        .into();
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(repository())
        .output()
        .expect("git lists the files");
    assert!(listed.status.success(), "git lists the files: {}", String::from_utf8_lossy(&listed.stderr));
    let names = String::from_utf8(listed.stdout).expect("file names are UTF-8");
    let mut offences = Vec::new();
    for name in names.split_terminator('\0') {
        // A file that was deleted but is still tracked has nothing to say.
        let Ok(bytes) = fs::read(repository().join(name)) else { continue };
        for (index, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
            if needles.iter().any(|needle| names_folder(line, needle)) {
                offences.push(format!("{name}:{}: {line}", index + 1));
            }
        }
    }
    assert!(names.contains("Cargo.toml"), "the files were not found");
    assert!(offences.is_empty(), "{}", offences.join("\n"));
}

/// The line has the absolute path: nothing that continues a name stands before or after it.
fn names_folder(line: &str, folder: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || "._-~}".contains(c);
    line.match_indices(folder).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + folder.len()..]);
        !before.ends_with(continues) && !after.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-')
    })
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == word)
}

#[test]
fn a_folder_is_found_by_its_whole_name_only() {
    let folder = ["/wo", "rk"].concat();
    for (line, expected) in [
        (format!("see {folder}/main"), true),
        (format!("\"{folder}\""), true),
        (folder.clone(), true),
        (format!("support{folder}loads.rs"), false),
        (format!("{folder}loads"), false),
        (format!("~{folder}"), false),
    ] {
        assert_eq!(names_folder(&line, &folder), expected, "{line}");
    }
}
