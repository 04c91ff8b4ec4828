//! The documentation is true: generated pages are current, links lead somewhere, examples run and print what stands below them.
//!
//! In a page, a fenced block `sh,serve` starts a server, `sh,run` is executed, and `text,output` after it is what it has to print
//! (`…` stands for anything). All blocks of a page run in one shell, in an empty folder, against a server of their own.

mod examples;
mod openapi;
mod schema;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Folder, command, finished, repository, shown};

/// How a stale page is renewed.
const BLESS: &str = "KPTY_BLESS=1 cargo nextest run -p kpty --test it docs::";

/// All pages of the book, and the documents at the top of the repository.
fn pages() -> Vec<PathBuf> {
    let folder = repository().join("docs/src");
    let book = fs::read_dir(folder).expect("docs/src").map(|entry| entry.expect("an entry").path());
    let book = book.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let top =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "emulator/README.md", "guard/README.md"];
    let mut pages: Vec<_> = book.chain(top.map(|name| repository().join(name))).collect();
    pages.sort();
    assert!(pages.len() > 15, "{pages:?}");
    pages
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Compares a page with what it is generated from, or renews it.
#[expect(clippy::disallowed_methods, reason = "a switch of this test, not a setting of the program")]
fn assert_current(name: &str, generated: &str) {
    let path = repository().join("docs/src").join(name);
    if std::env::var_os("KPTY_BLESS").is_some() {
        fs::write(&path, generated).expect("a writable checkout");
    }
    assert!(read(&path) == generated, "docs/src/{name} is stale; renew it with: {BLESS}");
}

/// A page as the program prints it, without the settings of whoever runs the tests.
fn reference(page: &str) -> String {
    let mut command = command(["reference", page]);
    command.env_clear();
    let run = finished(command.output().expect("kpty starts"));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    run.stdout
}

#[test]
fn the_page_of_the_command_line_is_current() {
    assert_current("cli.md", &reference("cli"));
}

#[test]
fn the_page_of_settings_is_current() {
    assert_current("settings.md", &reference("settings"));
}

#[test]
fn man_pages_are_written_for_all_commands() {
    let folder = Folder::new();
    let target = folder.path().join("man1");
    assert_eq!(shown([Path::new("man"), &target]), "");
    let named: BTreeSet<_> = read(&repository().join("docs/src/cli.md"))
        .lines()
        .filter_map(|line| line.strip_prefix("### `kpty ")?.strip_suffix('`').map(|name| name.replace(' ', "-")))
        .collect();
    assert!(named.len() > 20, "{named:?}");
    for name in named {
        let page = read(&target.join(format!("kpty-{name}.1")));
        assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{name}: {page}");
    }
    assert!(read(&target.join("kpty.1")).contains("kpty\\-serve(1)"));
}

#[test]
fn the_summary_lists_every_page() {
    let folder = repository().join("docs/src");
    let summary = read(&folder.join("SUMMARY.md"));
    let listed: BTreeSet<String> = links(&summary).into_iter().collect();
    for path in pages().iter().filter(|path| path.starts_with(&folder)) {
        let name = path.file_name().and_then(|name| name.to_str()).expect("UTF-8");
        assert!(name == "SUMMARY.md" || listed.contains(name), "{name} is not in SUMMARY.md");
    }
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut broken = Vec::new();
    for page in pages() {
        for link in links(&read(&page)) {
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().expect("a folder").join(file) };
            let is_there = target.exists() && (heading.is_empty() || headings(&read(&target)).contains(heading));
            if !is_there {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Targets of links that are files of the repository.
fn links(text: &str) -> Vec<String> {
    let mut is_code = false;
    let prose = text.lines().filter(|line| {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    let targets = prose.flat_map(|line| line.split("](").skip(1)).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://")).map(str::to_owned).collect()
}

/// Names of headings as renderers make them.
fn headings(text: &str) -> BTreeSet<String> {
    let names = text
        .lines()
        .filter_map(|line| line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')));
    let anchor = |name: &str| {
        let kept = name.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    };
    names.map(anchor).collect()
}

/// The README is a short page that leads to the others.
#[test]
fn the_readme_is_short() {
    let readme = read(&repository().join("README.md"));
    let is_word = |word: &&str| word.chars().any(char::is_alphanumeric);
    let words = readme.split_whitespace().filter(is_word).count();
    assert!((800..=1_400).contains(&words), "{words} words");
}
