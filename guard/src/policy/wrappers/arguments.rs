//! Options and values among the arguments of a command.

/// The arguments after the options.
pub(in super::super) fn after_options<'a>(arguments: &'a [String], letters: &str, names: &[&str]) -> &'a [String] {
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        if argument == "--" {
            return &arguments[at + 1..];
        }
        let Some(option) = argument.strip_prefix('-').filter(|option| !option.is_empty()) else { break };
        at += 1;
        if let Some(name) = option.strip_prefix('-') {
            at += usize::from(names.contains(&name));
        } else if let Some(place) = option.find(|c| letters.contains(c)) {
            // The value is the rest of the word, or the next word.
            at += usize::from(place + 1 == option.len());
        }
    }
    arguments.get(at.min(arguments.len())..).unwrap_or_default()
}

/// `NAME=value` before a command.
pub(in super::super) fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '[' | ']'))
}

/// The value of `-c text`, `-lc text`, `--command text` or `--command=text`.
pub(in super::super) fn value_of<'a>(arguments: &'a [String], letter: char, name: &str) -> Option<&'a str> {
    for (at, argument) in arguments.iter().enumerate() {
        if let Some(long) = argument.strip_prefix("--") {
            if let Some(rest) = long.strip_prefix(name) {
                return rest.strip_prefix('=').or_else(|| arguments.get(at + 1).map(String::as_str));
            }
        } else if let Some(letters) = argument.strip_prefix('-')
            && letters.contains(letter)
        {
            let attached = letters.split_once(letter).map_or("", |(_, rest)| rest);
            let is_text = attached.contains([' ', '/']);
            return if is_text { Some(attached) } else { arguments.get(at + 1).map(String::as_str) };
        }
    }
    None
}

pub(super) fn following<'a>(arguments: &'a [String], option: &str) -> Option<&'a str> {
    let at = arguments.iter().position(|argument| argument == option)?;
    arguments.get(at + 1).map(String::as_str)
}
