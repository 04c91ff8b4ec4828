//! Commands that stand in the options of other commands: what an archiver runs at a checkpoint, a pager, a remote shell.
//!
//! Unlike a wrapper, the command itself is judged as well. Owns which option of which program is a command.

use super::Inner;

/// Programs, and their options whose value is run. A value follows as a word of its own or behind an equals sign.
const OPTIONS: &[(&[&str], &[&str])] = &[
    (&["tar", "gtar", "bsdtar"], &["--to-command", "--use-compress-program", "-I", "--info-script", "-F"]),
    (&["zip"], &["-TT", "--unzip-command"]),
    (&["rsync"], &["-e", "--rsh", "--rsync-path"]),
    (&["man"], &["-P", "--pager"]),
    (&["split", "gsplit"], &["--filter"]),
    (&["sort", "gsort"], &["--compress-program"]),
    (&["tcpdump"], &["-z"]),
    (&["scp", "sftp"], &["-S"]),
    (&["git"], &["--upload-pack", "--receive-pack", "--extcmd"]),
    (&["gcloud"], &["--command"]),
    (&["fzf", "sk"], &["--preview"]),
    (&["complete", "compgen"], &["-C"]),
    (&["bpftrace"], &["-c"]),
];

/// Settings of programs whose value is run: what stands before the equals sign, at the beginning or after `-o`.
const SETTINGS: [&str; 9] = [
    "ProxyCommand=",
    "LocalCommand=",
    "core.pager=",
    "core.editor=",
    "core.sshCommand=",
    "core.fsmonitor=",
    "sequence.editor=",
    "--checkpoint-action=exec=",
    "diff.external=",
];

/// What the options of a command run.
pub(in super::super) fn commands(name: &str, arguments: &[String], input: Option<&str>) -> Vec<Inner> {
    let script = |text: &str| Inner::Script(text.to_owned());
    let mut found = Vec::new();
    if let Some((_, options)) = OPTIONS.iter().find(|(names, _)| names.contains(&name)) {
        for option in *options {
            let mut words = arguments.iter();
            while let Some(word) = words.next() {
                let attached = word.strip_prefix(option).and_then(|rest| rest.strip_prefix('='));
                let value = if word == option { words.next().map(String::as_str) } else { attached };
                found.extend(value.map(script));
            }
        }
    }
    if matches!(name, "ssh" | "scp" | "sftp" | "git" | "tar" | "gtar") {
        let values = arguments.iter().map(|word| word.strip_prefix("-o").unwrap_or(word));
        found.extend(
            values.filter_map(|word| SETTINGS.iter().find_map(|setting| word.strip_prefix(setting))).map(script),
        );
    }
    match name {
        // `git config alias.x '!command'`.
        "git" => {
            let pairs = arguments.windows(2).filter(|pair| pair[0].starts_with("alias."));
            found.extend(pairs.filter_map(|pair| pair[1].strip_prefix('!')).map(script));
        }
        "gdb" | "cgdb" => found.extend(behind(arguments, "--args")),
        "lldb" => found.extend(behind(arguments, "--")),
        "fzf" | "sk" => found.extend(arguments.iter().flat_map(|words| actions(words))),
        "bind" => found.extend(bindings(arguments)),
        "make" | "gmake" => found.extend(recipes(arguments, input)),
        "sed" | "gsed" => found.extend(arguments.iter().flat_map(|script| edits(script))),
        _ => {}
    }
    found
}

/// The command behind a word.
fn behind(arguments: &[String], mark: &str) -> Option<Inner> {
    let at = arguments.iter().position(|word| word == mark)?;
    Some(Inner::Vector(arguments[at + 1..].to_vec()))
}

/// What a binding of `fzf` runs: `enter:execute(command)`.
fn actions(binding: &str) -> Vec<Inner> {
    let texts = binding.split("execute").skip(1).filter_map(|rest| rest.split_once('(')).map(|(_, rest)| rest);
    texts.map(|text| Inner::Script(text.split(')').next().unwrap_or("").to_owned())).collect()
}

/// What a key of readline runs by itself: a command (`-x`), or typed text with an Enter in it.
fn bindings(arguments: &[String]) -> Vec<Inner> {
    let is_command = arguments.iter().any(|word| word.starts_with('-') && word.contains('x'));
    let bound = |word: &String| {
        let text = word.split_once("\":")?.1.trim();
        let enters = ["\\n", "\\r", "\\C-m", "\\C-j", "\\C-M", "\\C-J"];
        let has_enter = enters.iter().any(|enter| text.contains(enter));
        let text =
            enters.iter().fold(text.trim_matches(['"', '\'']).to_owned(), |text, enter| text.replace(enter, "\n"));
        (is_command || has_enter).then_some(Inner::Script(text))
    };
    arguments.iter().filter_map(bound).collect()
}

/// The lines of rules that `make` is given on its own line or reads.
fn recipes(arguments: &[String], input: Option<&str>) -> Vec<Inner> {
    let reads = arguments.windows(2).any(|pair| pair[0] == "-f" && matches!(pair[1].as_str(), "-" | "/dev/stdin"));
    let given = arguments.iter().enumerate().filter_map(|(at, word)| match word.strip_prefix("--eval") {
        Some("") => arguments.get(at + 1).map(String::as_str),
        attached => attached?.strip_prefix('='),
    });
    let recipe = |line: &str| {
        let command =
            line.strip_prefix('\t').or_else(|| line.split_once(':')?.1.split_once(';').map(|(_, rest)| rest))?;
        Some(Inner::Script(command.trim_start_matches([' ', '@', '-', '+']).to_owned()))
    };
    given.chain(input.filter(|_| reads)).flat_map(|text| text.lines().filter_map(recipe)).collect()
}

/// What a script of `sed` runs: the command `e`, and a replacement with that flag.
fn edits(script: &str) -> Vec<Inner> {
    let mut found = Vec::new();
    for edit in script.split(['\n', ';']).map(str::trim_start) {
        let command = edit.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ',' | '$' | ' '));
        if let Some(text) = command.strip_prefix("e ") {
            found.push(Inner::Script(text.to_owned()));
        }
    }
    let Some(rest) = script.trim_start().strip_prefix('s') else { return found };
    let Some(separator) = rest.chars().next().filter(char::is_ascii_punctuation) else { return found };
    let escaped = format!("\\{separator}");
    // An escaped separator is a character like any other.
    let parts: Vec<String> = rest[1..]
        .replace(&escaped, "\u{f8ff}")
        .split(separator)
        .map(|part| part.replace('\u{f8ff}', &separator.to_string()))
        .collect();
    if let [_, with, flags] = parts.as_slice()
        && flags.contains('e')
        && flags.chars().all(|c| c.is_ascii_digit() || "gpiIeMm".contains(c))
    {
        found.push(Inner::Script(with.clone()));
    }
    found
}
