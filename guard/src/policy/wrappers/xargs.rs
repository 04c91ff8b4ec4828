//! `xargs` and `parallel`: a command that gets its arguments from what it reads.

use super::super::words::UNKNOWN;
use super::arguments::{after_options, following};
use super::{Inner, Wrapper};

/// The file that `xargs` reads instead of its input.
pub(in super::super) fn argument_file(arguments: &[String]) -> Option<&str> {
    let attached = arguments.iter().find_map(|argument| argument.strip_prefix("--arg-file="));
    attached.or_else(|| ["-a", "--arg-file"].iter().find_map(|option| following(arguments, option)))
}

/// The command of `xargs` with what it reads as its arguments.
pub(super) fn xargs(wrapper: Wrapper<'_>) -> Vec<String> {
    let Wrapper { arguments, input, .. } = wrapper;
    let replaced = arguments.iter().enumerate().find_map(|(at, argument)| {
        let rest = argument.strip_prefix("-I").or_else(|| argument.strip_prefix("--replace="))?;
        if rest.is_empty() { arguments.get(at + 1).map(String::as_str) } else { Some(rest) }
    });
    let replaced = replaced.or_else(|| arguments.iter().any(|a| a == "-i" || a == "--replace").then_some("{}"));
    let rest = after_options(
        arguments,
        "InLPsdEa",
        &["max-args", "max-procs", "max-lines", "delimiter", "arg-file", "max-chars"],
    );
    // With a separator of its own, a blank is a character like any other.
    let is_whole =
        arguments.iter().any(|a| a == "-0" || a == "--null" || a.starts_with("-d") || a.starts_with("--delim"));
    let separators: &[char] = if is_whole { &['\n', '\0'] } else { &[' ', '\n', '\t', '\0'] };
    let fields = || input.unwrap_or("").split(separators).filter(|field| !field.is_empty()).take(64);
    match (replaced, input) {
        (Some(mark), Some(text)) => {
            let line = text.trim_matches(['\n', '\0', ' ']);
            rest.iter().map(|word| word.replace(mark, line)).collect()
        }
        (Some(mark), None) => rest.iter().map(|word| word.replace(mark, &UNKNOWN.to_string())).collect(),
        (None, _) => {
            rest.iter().cloned().chain(fields().map(|field| field.trim_matches(['"', '\'']).to_owned())).collect()
        }
    }
}

/// The lines that `parallel` makes of its command and its values.
pub(super) fn parallel(wrapper: Wrapper<'_>) -> Vec<Inner> {
    let Wrapper { arguments, input, .. } = wrapper;
    let rest = after_options(arguments, "jSnNIaP", &["jobs", "sshlogin", "arg-file", "max-args"]);
    let cut = rest.iter().position(|word| word.starts_with(":::")).unwrap_or(rest.len());
    let (command, values) = rest.split_at(cut);
    let values: Vec<&str> = match values.is_empty() {
        true => input.unwrap_or("").lines().take(16).collect(),
        false => values.iter().map(String::as_str).filter(|value| !value.starts_with(":::")).take(16).collect(),
    };
    if command.is_empty() {
        return values.into_iter().map(|value| Inner::Script(value.to_owned())).collect();
    }
    let text = command.join(" ");
    let with = |value: &str| match text.contains('{') {
        true => text.replace("{}", value).replace("{1}", value),
        false => format!("{text} {value}"),
    };
    if values.is_empty() {
        return vec![Inner::Script(text)];
    }
    values.into_iter().map(|value| Inner::Script(with(value))).collect()
}
