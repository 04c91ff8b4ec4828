//! Commands that look for files and run something with each: `find` and `fd`.
//!
//! What they find is not known here; it becomes a path below where they look, narrow if a name or type limits what they find.

use super::super::targets::is_everything;
use super::super::words::UNKNOWN;
use super::Inner;

/// What `fd` does to what it finds: a pattern, where it looks, and the command behind an option.
pub(in super::super) fn fd(arguments: &[String]) -> Vec<Inner> {
    let is_run = |word: &String| matches!(word.as_str(), "-x" | "-X" | "--exec" | "--exec-batch");
    let Some(at) = arguments.iter().position(is_run) else { return Vec::new() };
    let options = &arguments[..at];
    let takes = [
        "-e",
        "-t",
        "-E",
        "-d",
        "--extension",
        "--type",
        "--exclude",
        "--max-depth",
        "-S",
        "--size",
        "--changed-within",
    ];
    let is_value = |place: usize| place > 0 && takes.contains(&options[place - 1].as_str());
    let operands: Vec<&String> = options
        .iter()
        .enumerate()
        .filter(|(at, word)| !word.starts_with('-') && !is_value(*at))
        .map(|(_, word)| word)
        .collect();
    let is_narrow = options.iter().any(|word| takes.contains(&word.as_str()))
        || operands.first().is_some_and(|pattern| !matches!(pattern.as_str(), "." | "" | ".*"));
    let below = operands.get(1).map_or(".", |path| path.as_str()).trim_end_matches('/');
    let found = if is_narrow { format!("{below}/{UNKNOWN}x/{UNKNOWN}/x") } else { format!("{below}/*") };
    let mut words: Vec<String> = arguments[at + 1..].iter().map(|word| word.replace("{}", &found)).collect();
    if !arguments[at + 1..].iter().any(|word| word.contains("{}")) {
        words.push(found);
    }
    vec![Inner::Vector(words)]
}

/// What `find` does to what it finds.
pub(in super::super) fn find(arguments: &[String]) -> (Vec<Inner>, String) {
    let starts = arguments
        .iter()
        .position(|a| a.starts_with('-') && !matches!(a.as_str(), "-L" | "-H" | "-P") || a == "(" || a == "!");
    let (paths, tests) = arguments.split_at(starts.unwrap_or(arguments.len()));
    let paths: Vec<&str> = paths.iter().map(String::as_str).filter(|path| !path.starts_with('-')).collect();
    let paths = if paths.is_empty() { vec!["."] } else { paths };
    let mut narrow = None;
    for (at, test) in tests.iter().enumerate() {
        let is_negated = at > 0 && matches!(tests[at - 1].as_str(), "!" | "-not");
        let by_name =
            matches!(test.as_str(), "-name" | "-iname" | "-path" | "-ipath" | "-wholename" | "-regex" | "-iregex");
        if by_name && !is_negated {
            let pattern = tests.get(at + 1).map_or("", String::as_str);
            if !is_everything(pattern) {
                narrow = Some(pattern.rsplit('/').next().unwrap_or("").to_owned());
            }
        }
        if matches!(test.as_str(), "-empty" | "-xtype" | "-inum") {
            narrow = Some(UNKNOWN.to_string());
        }
    }
    let found: Vec<String> = paths
        .iter()
        .map(|path| match &narrow {
            Some(pattern) => format!("{path}/{UNKNOWN}x/{UNKNOWN}/{pattern}"),
            None => format!("{path}/*"),
        })
        .collect();
    let mut inner = Vec::new();
    for (at, test) in tests.iter().enumerate() {
        match test.as_str() {
            "-delete" => inner.push(Inner::Vector([vec!["rm".to_owned(), "-rf".to_owned()], found.clone()].concat())),
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let rest = &tests[at + 1..];
                let end = rest.iter().position(|word| matches!(word.as_str(), ";" | "+" | "\\;")).unwrap_or(rest.len());
                let mut words = Vec::new();
                for word in &rest[..end] {
                    match word.as_str() {
                        "{}" => words.extend(found.iter().cloned()),
                        word => words.push(word.replace("{}", &found[0])),
                    }
                }
                inner.push(Inner::Vector(words));
            }
            _ => {}
        }
    }
    (inner, found.join("\n"))
}
