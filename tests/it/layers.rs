//! The layers of the program: `ARCHITECTURE.md` has the tables, and the sources have to follow them.
//!
//! A module may import from the layers below its own only, a kind of terminal never from another kind, and an outside
//! library is named in its home alone. Paths are read from the text of the sources: `crate::…` and `super::…`, in `use`
//! lines with their groups and in expressions, tests included.

use std::collections::BTreeMap;
use std::fs;

use crate::support::repository;
use crate::tidy::{Source, sources};

/// A row of the layer table.
#[derive(Debug)]
struct Layer {
    /// Names of modules, `terminal` or `terminal::local`, and of our crates.
    modules: Vec<String>,
    /// The highest layer that it may import from.
    may_use: Option<usize>,
}

/// What `ARCHITECTURE.md` promises.
#[derive(Debug)]
struct Rules {
    layers: Vec<Layer>,
    /// The homes of outside libraries: folders with a slash at the end, or files.
    homes: BTreeMap<String, Vec<String>>,
}

impl Rules {
    fn parse(page: &str) -> Self {
        let rows = |first: &str| -> Vec<Vec<String>> {
            let lines = page.lines().skip_while(move |line| !line.starts_with(&format!("| {first} |"))).skip(2);
            let rows = lines.take_while(|line| line.starts_with('|'));
            rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
        };
        let mut layers = Vec::new();
        for (index, row) in rows("layer").into_iter().enumerate() {
            assert_eq!(row[0], index.to_string(), "layers are numbered in order: {row:?}");
            let may_use = match row[2].as_str() {
                "nothing of ours" => None,
                range => {
                    let last = range.rsplit('–').next().and_then(|last| last.parse().ok());
                    Some(last.unwrap_or_else(|| panic!("`{range}` is no range of layers")))
                }
            };
            assert!(may_use.is_none_or(|highest| highest < index), "a layer uses those below it: {row:?}");
            layers.push(Layer { modules: quoted(&row[1]), may_use });
        }
        let homes = rows("library").into_iter().flat_map(|row| {
            let homes = quoted(&row[1]);
            quoted(&row[0]).into_iter().map(move |library| (library, homes.clone())).collect::<Vec<_>>()
        });
        Self { layers, homes: homes.collect() }
    }

    fn of_the_page() -> Self {
        let page = fs::read_to_string(repository().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
        let rules = Self::parse(&page);
        assert!(rules.layers.len() > 5 && rules.homes.len() > 5, "the tables were not found: {rules:?}");
        rules
    }

    /// The layer of a module, and its kind where the table has one (`terminal::local`).
    fn place(&self, path: &[String]) -> Option<(usize, &str, Option<&str>)> {
        let module = path.first()?;
        let layer = self.layers.iter().position(|layer| layer.modules.contains(module))?;
        let names = &self.layers[layer].modules;
        let kind = path.get(1).map(|second| format!("{module}::{second}"));
        let kind = kind.and_then(|kind| names.iter().find(|name| **name == kind)).map(String::as_str);
        names.iter().find(|name| *name == module).map(|module| (layer, module.as_str(), kind))
    }

    /// Why this import must not be, if so.
    fn objection(&self, from: &[String], to: &[String]) -> Option<String> {
        let (from_layer, from_module, from_kind) = self.place(from)?;
        let (to_layer, to_module, to_kind) = self.place(to)?;
        if from_module != to_module {
            let is_allowed = self.layers[from_layer].may_use.is_some_and(|highest| to_layer <= highest);
            return (!is_allowed)
                .then(|| format!("`{from_module}` of layer {from_layer} uses `{to_module}` of layer {to_layer}"));
        }
        match (from_kind, to_kind) {
            (Some(from), Some(to)) if from != to => Some(format!("`{from}` uses its sibling `{to}`")),
            (None, Some(to)) => Some(format!("the root of `{from_module}` uses its kind `{to}`")),
            _ => None,
        }
    }

    /// Imports of one source file that must not be.
    fn objections(&self, name: &str, text: &str) -> Vec<String> {
        let from = module_path(name);
        let found = paths(text).into_iter().filter_map(|(line, path)| {
            let to = resolve(&from, &path)?;
            self.objection(&from, &to).map(|why| format!("{name}:{line}: {why}: {}", path.join("::")))
        });
        found.collect()
    }

    /// Outside libraries that this source file names and must not.
    fn strangers(&self, source: &Source) -> Vec<String> {
        let mut found = Vec::new();
        for (library, homes) in &self.homes {
            let is_home =
                homes.iter().any(|home| source.name == *home || home.ends_with('/') && source.name.starts_with(home));
            if !is_home {
                found.extend(source.offences(|line| names_library(line, library)));
            }
        }
        found
    }
}

/// The words in backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The module that a file is: `src/a/b.rs` is `a::b`, `src/a/mod.rs` is `a`.
fn module_path(name: &str) -> Vec<String> {
    let path = name.trim_start_matches("src/").trim_end_matches(".rs");
    let mut path: Vec<_> = path.split('/').map(str::to_owned).collect();
    if path.last().is_some_and(|last| last == "mod" || last == "lib") {
        path.pop();
    }
    path
}

/// The absolute path that a written one means. A module inside a file counts as the file: that makes a `super` too many,
/// which then names no module.
fn resolve(from: &[String], path: &[String]) -> Option<Vec<String>> {
    match path.first()?.as_str() {
        "crate" | "kpty" => Some(path[1..].to_vec()),
        _ => {
            let ups = path.iter().take_while(|segment| *segment == "super").count();
            let base = from.get(..from.len().checked_sub(ups)?)?;
            Some(base.iter().chain(&path[ups..]).cloned().collect())
        }
    }
}

/// A piece of Rust that matters for paths.
#[derive(Debug, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    Colons,
    Other(char),
}

/// The tokens of a source with their lines, without comments and the insides of strings.
fn tokens(text: &str) -> Vec<(usize, Token<'_>)> {
    let (mut tokens, mut at, mut line) = (Vec::new(), 0, 1);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = literal(rest) {
            length
        } else if c.is_alphanumeric() || c == '_' {
            let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            tokens.push((line, Token::Word(&rest[..word])));
            word
        } else if rest.starts_with("::") {
            tokens.push((line, Token::Colons));
            2
        } else {
            if !c.is_whitespace() {
                tokens.push((line, Token::Other(c)));
            }
            c.len_utf8()
        };
        line += rest[..length].matches('\n').count();
        at += length;
    }
    tokens
}

/// The length of a string or character literal at the beginning of a text.
fn literal(text: &str) -> Option<usize> {
    let prefix = text.find(|c: char| !matches!(c, 'b' | 'r' | 'c')).unwrap_or(0);
    let body = &text[prefix..];
    let hashes = body.len() - body.trim_start_matches('#').len();
    if prefix > 0 && text[..prefix].ends_with('r') && body[hashes..].starts_with('"') {
        let end = format!("\"{}", "#".repeat(hashes));
        let inside = &body[hashes + 1..];
        return Some(prefix + hashes + 1 + inside.find(&end).map_or(inside.len(), |at| at + end.len()));
    }
    let quote = body.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    if quote == '\'' {
        // A lifetime or a label is none.
        let mut after = body[1..].chars();
        let first = after.next()?;
        if first != '\\' && after.next() != Some('\'') {
            return None;
        }
    }
    let mut is_escaped = false;
    let end = body[1..].char_indices().find(|&(_, c)| {
        let is_end = c == quote && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    Some(prefix + end.map_or(body.len(), |(at, _)| at + 2))
}

/// All paths of a source that begin with the crate or with a module above, with their lines.
fn paths(text: &str) -> Vec<(usize, Vec<String>)> {
    let tokens = tokens(text);
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some((line, token)) = tokens.get(at) {
        let begins = matches!(token, Token::Word("crate" | "super" | "kpty"))
            && tokens.get(at + 1).is_some_and(|(_, next)| *next == Token::Colons);
        if begins {
            let mut paths = Vec::new();
            at = path_tree(&tokens, at, &[], &mut paths);
            found.extend(paths.into_iter().map(|path| (*line, path)));
        } else {
            at += 1;
        }
    }
    found
}

/// Reads one path with its groups; returns where it ends.
fn path_tree(tokens: &[(usize, Token<'_>)], mut at: usize, prefix: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let mut path = prefix.to_vec();
    loop {
        match tokens.get(at).map(|(_, token)| token) {
            Some(Token::Word(word)) => {
                if *word != "self" {
                    path.push((*word).to_owned());
                }
                at += 1;
            }
            Some(Token::Other('{')) => {
                at += 1;
                while tokens.get(at).is_some_and(|(_, token)| *token != Token::Other('}')) {
                    match &tokens[at].1 {
                        Token::Word(_) | Token::Other('{') => at = path_tree(tokens, at, &path, found),
                        _ => at += 1,
                    }
                }
                return at + 1;
            }
            _ => break,
        }
        match tokens.get(at).map(|(_, token)| token) {
            Some(Token::Colons) => at += 1,
            Some(Token::Word("as")) => {
                at += 2;
                break;
            }
            _ => break,
        }
    }
    found.push(path);
    at
}

/// The line has a path that begins with the library, or imports it whole.
fn names_library(line: &str, library: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(library).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + library.len()..]);
        let is_whole =
            !before.ends_with(|c: char| continues(c) || c == ':' || c == '.') && !after.starts_with(continues);
        let is_absolute = before.strip_suffix("::").is_some_and(|before| !before.ends_with(continues));
        let is_imported = before.trim_end().ends_with("use") && (after.starts_with(';') || after.starts_with(" as "));
        (is_whole || is_absolute) && (after.starts_with("::") || is_imported)
    })
}

#[test]
fn modules_import_from_the_layers_below() {
    let rules = Rules::of_the_page();
    let sources = sources();
    let program = sources.iter().filter(|source| source.name.starts_with("src/") && source.name != "src/lib.rs");
    let wrong: Vec<_> = program.flat_map(|source| rules.objections(&source.name, &source.text)).collect();
    assert!(wrong.is_empty(), "imports that ARCHITECTURE.md forbids:\n{}", wrong.join("\n"));
}

#[test]
fn the_page_has_every_module_and_no_other() {
    let rules = Rules::of_the_page();
    let mut modules: Vec<_> = sources().into_iter().map(|source| module_path(&source.name)).collect();
    modules.retain(|path| !path.is_empty() && path[0] != "guard" && path[0] != "emulator");
    for path in &modules {
        assert!(rules.place(path).is_some(), "no layer has `{}`", path[0]);
    }
    let is_there = |name: &str| {
        let name: Vec<_> = name.split("::").collect();
        modules.iter().any(|path| path.len() >= name.len() && path[..name.len()] == name)
    };
    let names = rules.layers.iter().flat_map(|layer| &layer.modules);
    let missing: Vec<_> = names.filter(|name| !name.starts_with("kpty-") && !is_there(name)).collect();
    assert!(missing.is_empty(), "there are no such modules: {missing:?}");
}

#[test]
fn the_pure_crates_use_nothing_of_ours_and_do_nothing() {
    let sources = sources();
    for (folder, ours) in [("guard", ["kpty", "kpty_emulator"]), ("emulator", ["kpty", "kpty_guard"])] {
        let manifest = fs::read_to_string(repository().join(folder).join("Cargo.toml")).expect("a manifest");
        let dependencies = manifest.split_once("[dependencies]").map_or("", |(_, rest)| rest);
        let dependencies = dependencies.split_once("\n[").map_or(dependencies, |(section, _)| section);
        for name in ["kpty", "tokio", "async", "reqwest", "hyper"] {
            assert!(!dependencies.lines().any(|line| line.starts_with(name)), "{folder} depends on {name}");
        }
        let needles = ["std::fs", "std::net", "std::process", "std::thread", "SystemTime::now", "Instant::now"];
        for source in sources.iter().filter(|source| source.name.starts_with(&format!("{folder}/"))) {
            let is_foreign = |line: &str| {
                ours.iter().any(|name| names_library(line, name)) || needles.iter().any(|needle| line.contains(needle))
            };
            let found = if source.name.contains("tests") { Vec::new() } else { source.offences(is_foreign) };
            assert!(found.is_empty(), "{folder} is pure: {found:?}");
        }
    }
}

#[test]
fn libraries_stay_at_home() {
    let rules = Rules::of_the_page();
    let sources = sources();
    let found: Vec<_> = sources.iter().flat_map(|source| rules.strangers(source)).collect();
    assert!(found.is_empty(), "libraries outside the homes that ARCHITECTURE.md gives them:\n{}", found.join("\n"));
    for home in rules.homes.values().flatten() {
        assert!(repository().join(home).exists(), "{home} is not there");
    }
}

/// A page of tables like ours.
const PAGE: &str = "
| layer | modules | may use |
| --- | --- | --- |
| 0 | `ids`, `model` | nothing of ours |
| 1 | `config` | 0–0 |
| 2 | `terminal` (`terminal::local`, `terminal::desktop`), `traffic` | 0–1 |
| 3 | `store` | 0–2 |

| library | home |
| --- | --- |
| `rusqlite` | `src/traffic/store.rs` |
| `clap`, `clap_complete` | `src/cli/` |
";

#[test]
fn planted_imports_are_found() {
    let rules = Rules::parse(PAGE);
    for (file, text, expected) in [
        ("src/config.rs", "use crate::store::place;", 1),
        ("src/config.rs", "use crate::model::Role;\nuse crate::ids;", 0),
        ("src/store/mod.rs", "use crate::{config, terminal::{self, local::Session}, traffic as t};", 0),
        ("src/config.rs", "use crate::{\n    ids::Id,\n    terminal::{self, local::Session},\n};", 2),
        ("src/config.rs", "fn f() -> crate::store::Store { crate::terminal::local::spawn() }", 2),
        ("src/ids.rs", "use crate::model::Role;", 1),
        ("src/traffic/mod.rs", "use super::terminal::Terminal;", 1),
        ("src/traffic/store.rs", "use super::super::store::Store;", 1),
        ("src/terminal/desktop/mod.rs", "use crate::terminal::local::Session;", 1),
        ("src/terminal/desktop/mod.rs", "use super::local::Session;", 1),
        ("src/terminal/desktop/talk.rs", "use super::super::local;", 1),
        ("src/terminal/desktop/talk.rs", "use super::wait::Pace;\nuse crate::terminal::desktop::text;", 0),
        ("src/terminal/desktop/talk.rs", "use crate::terminal::{Terminal, sentinel::Form};", 0),
        ("src/terminal/wait.rs", "use crate::terminal::local::Session;", 1),
        ("src/terminal/mod.rs", "pub mod local;\npub use interface::Terminal;", 0),
        ("src/config.rs", "// crate::store::x\n/* crate::store */ const A: &str = \"crate::store::x\";", 0),
        (
            "src/config.rs",
            "const A: &str = r#\"\" crate::store::x\"#; const B: char = '\"'; type C = crate::store::X;",
            1,
        ),
        ("src/config.rs", "fn f<'a>(a: &'a str) -> crate::store::X<'a, crate::terminal::Y> {}", 2),
        ("src/config.rs", "#[cfg(test)]\nmod tests {\n    use super::*;\n    use crate::store::Store;\n}", 1),
    ] {
        let found = rules.objections(file, text);
        assert_eq!(found.len(), expected, "{file}: {text}: {found:?}");
    }
    let found = rules.objections("src/config.rs", "\n\nuse crate::store::place;");
    assert_eq!(found, ["src/config.rs:3: `config` of layer 1 uses `store` of layer 3: crate::store::place"]);
}

#[test]
fn planted_libraries_are_found() {
    let rules = Rules::parse(PAGE);
    for (file, line, expected) in [
        ("src/traffic/store.rs", "use rusqlite::Connection;", 0),
        ("src/traffic/query.rs", "use rusqlite::Connection;", 1),
        ("src/traffic/query.rs", "use rusqlite;", 1),
        ("src/traffic/query.rs", "let x = ::rusqlite::Connection::open();", 1),
        ("src/traffic/query.rs", "// rusqlite::Connection", 0),
        ("src/traffic/query.rs", "let rusqlite = crate::rusqlite::open();", 0),
        ("src/cli/mod.rs", "#[derive(clap::Parser)]", 0),
        ("src/tools/mod.rs", "#[derive(clap::Parser)]", 1),
        ("src/tools/mod.rs", "use clap_complete::Shell;", 1),
    ] {
        let source = Source { name: file.to_owned(), text: line.to_owned() };
        assert_eq!(rules.strangers(&source).len(), expected, "{file}: {line}");
    }
}
