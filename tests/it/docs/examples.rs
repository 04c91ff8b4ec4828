//! Runs the shell examples of a page and compares what they print.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use super::read;
use crate::server::Server;
use crate::support::{Folder, finished, repository};

/// Stands between the outputs of two blocks.
const SEPARATOR: &str = "--- end of a block ---";
/// The address that the pages show.
const SHOWN_ADDRESS: &str = "127.0.0.1:8100";

/// A fenced block.
struct Block {
    kind: String,
    text: String,
    line: usize,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(kind), None) => {
                open = Some(Block { kind: kind.to_owned(), text: String::new(), line: index + 1 });
            }
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some(mut block)) => {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

/// Runs all examples of a page. Returns how many there were.
fn run(name: &str) -> usize {
    let page = blocks(&read(&repository().join(name)));
    let home = Folder::new();
    let server = page.iter().find(|block| block.kind == "sh,serve").map(|block| {
        assert_eq!(block.text, "kpty serve &\n", "{name}:{}: only this is replaced by a server for tests", block.line);
        Server::start()
    });
    let examples: Vec<(usize, &Block)> = page.iter().enumerate().filter(|(_, block)| block.kind == "sh,run").collect();
    let mut script = "set -eu\n".to_owned();
    for (_, block) in &examples {
        let _ = writeln!(script, "{}echo '{SEPARATOR}'", block.text);
    }
    if let Some(server) = &server {
        script = script.replace(SHOWN_ADDRESS, server.url().trim_start_matches("http://"));
    }
    let run = finished(shell(&script, home.path(), server.as_ref()).output().expect("bash starts"));
    let outputs: Vec<&str> = run.stdout.split(&format!("{SEPARATOR}\n")).collect();
    assert_eq!((run.code, outputs.len()), (0, examples.len() + 1), "{name}: {}\n{}", run.stdout, run.stderr);
    for ((index, block), output) in examples.iter().zip(outputs) {
        let Some(expected) = page.get(index + 1).filter(|next| next.kind == "text,output") else { continue };
        assert!(
            fits(output.trim_end(), expected.text.trim_end()),
            "{name}:{}: printed\n{output}instead of\n{}",
            block.line,
            expected.text
        );
    }
    examples.len()
}

/// A shell that finds the built `kpty` first and has no settings but these.
#[expect(clippy::disallowed_methods, reason = "the programs of the examples are found as the tests find theirs")]
fn shell(script: &str, home: &Path, server: Option<&Server>) -> Command {
    let kpty = Path::new(env!("CARGO_BIN_EXE_kpty")).parent().expect("a folder");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(kpty.to_owned()).chain(std::env::split_paths(&path)));
    let mut command = Command::new("bash");
    command.args(["--norc", "--noprofile", "-c", script]).env_clear().current_dir(home);
    command.env("HOME", home).env("PATH", path.expect("no colon in a folder")).env("LC_ALL", "C.UTF-8");
    command.env("KPTY_URL", server.map_or_else(|| "http://127.0.0.1:9".to_owned(), Server::url));
    command
}

/// The text is the pattern, in which `…` stands for anything.
fn fits(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[test]
fn a_pattern_fits_what_it_describes() {
    for (text, pattern, expected) in [
        ("a", "a", true),
        ("ab", "a", false),
        ("abc", "a…c", true),
        ("abcd", "a…c", false),
        ("a12b34c", "a…b…c", true),
        ("a12c", "a…b…c", false),
        ("", "…", true),
    ] {
        assert_eq!(fits(text, pattern), expected, "{text:?} {pattern:?}");
    }
}

/// One test for each page, so that they run at the same time.
macro_rules! pages {
    ($($name:ident: $path:literal, $least:literal;)*) => {$(
        #[test]
        fn $name() {
            assert!(run($path) >= $least, "{} has lost examples", $path);
        }
    )*};
}

pages! {
    examples_of_the_readme: "README.md", 2;
    examples_of_getting_started: "docs/src/getting-started.md", 7;
    examples_of_clients: "docs/src/clients.md", 1;
    examples_of_the_guide_for_agents: "docs/src/agents.md", 4;
    examples_of_http: "docs/src/http.md", 4;
    examples_of_security: "docs/src/security.md", 2;
    examples_of_recordings: "docs/src/recordings.md", 2;
}

/// A page with examples that nobody runs would not be noticed.
#[test]
fn every_page_with_examples_is_run() {
    let own = read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/docs/examples.rs")));
    for page in super::pages() {
        if blocks(&read(&page)).iter().any(|block| block.kind == "sh,run") {
            let name = page.strip_prefix(repository()).expect("in the repository").display().to_string();
            assert!(own.contains(&format!("\"{name}\"")), "{name} has examples that are not run");
        }
    }
}
