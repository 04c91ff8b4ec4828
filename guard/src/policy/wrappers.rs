//! Commands that run another command: what is inside, once their own options are taken off.
//!
//! Owns the options of the wrappers and nothing else. One layer is peeled at a time; the judge counts them.

use super::words::{HOME, UNKNOWN};

/// What a wrapper runs.
#[derive(Debug, PartialEq)]
pub(super) enum Inner {
    /// Words as they are.
    Vector(Vec<String>),
    /// Text that a shell reads once more.
    Script(String),
}

/// A wrapper whose command follows its options: letters and names of options that take a value, and operands of its
/// own before the command.
struct Prefix {
    letters: &'static str,
    names: &'static [&'static str],
    operands: usize,
}

const fn prefix(letters: &'static str, names: &'static [&'static str], operands: usize) -> Option<Prefix> {
    Some(Prefix { letters, names, operands })
}

fn prefix_of(name: &str) -> Option<Prefix> {
    match name {
        "sudo" | "sudo-rs" => prefix(
            "ugpChTUrtDRa",
            &["user", "group", "prompt", "host", "chdir", "chroot", "close-from", "command-timeout", "role", "type"],
            0,
        ),
        "doas" => prefix("uCa", &[], 0),
        "env" | "genv" => prefix("uC", &["unset", "chdir"], 0),
        "exec" => prefix("a", &[], 0),
        "command" | "builtin" | "nohup" | "setsid" | "unbuffer" | "catchsegv" | "fakeroot" | "firejail" | "noglob"
        | "nocorrect" | "chronic" | "ifne" | "dbus-run-session" | "linux32" | "linux64" | "valgrind" | "rlwrap"
        | "winpty" | "setpriv" | "eatmydata" | "proxychains" | "proxychains4" | "torsocks" | "coproc" | "entr"
        | "call" | "then" | "do" | "else" | "dotenv" | "direnv" | "mise" | "asdf" | "doppler" | "unshare"
        | "aa-exec" | "numactl" | "not" | "and" | "or" => prefix("", &["nice", "preserve"], 0),
        "time" | "gtime" => prefix("fo", &["format", "output"], 0),
        "nice" => prefix("n", &["adjustment"], 0),
        "ionice" => prefix("cnpPu", &["class", "classdata"], 0),
        "stdbuf" => prefix("ioe", &["input", "output", "error"], 0),
        "timeout" | "gtimeout" => prefix("sk", &["signal", "kill-after"], 1),
        "chrt" | "taskset" | "chroot" | "setarch" | "gosu" | "su-exec" | "cpulimit" | "setuidgid" => {
            prefix("", &["userspec", "groups"], 1)
        }
        "strace" | "ltrace" => prefix("oepsuEaPIbXnlxS", &["output", "trace"], 0),
        "nsenter" => prefix("tSG", &["target", "setuid", "setgid"], 0),
        "sshpass" => prefix("pfd", &[], 0),
        "prlimit" => prefix("p", &["pid"], 0),
        "faketime" | "chpst" | "s6-setuidgid" | "runcon" => prefix("ugUnm", &[], 1),
        "tini" | "dumb-init" | "catatonit" | "pipenv" | "rbenv" | "pyenv" | "op" | "chamber" | "aws-vault" => {
            prefix("", &[], 0)
        }
        "cgexec" => prefix("g", &[], 0),
        "proot" => prefix("rbwq", &[], 0),
        "pkexec" => prefix("", &["user"], 0),
        "xvfb-run" => prefix("ensfp", &["server-args"], 0),
        "caffeinate" => prefix("tw", &[], 0),
        "systemd-run" => prefix(
            "pEMHuG",
            &["unit", "property", "uid", "gid", "setenv", "on-active", "slice", "working-directory"],
            0,
        ),
        "systemd-inhibit" => prefix("", &["what", "who", "why", "mode"], 0),
        "busybox" | "toybox" | "npx" | "bunx" | "pnpx" | "uvx" => prefix("p", &["package"], 0),
        "wsl" => prefix("du", &["distribution", "user", "cd"], 0),
        "runas" => prefix("", &[], 0),
        _ => None,
    }
}

/// What stands inside, if this is a wrapper. `input` is what it reads, where that is known.
pub(super) fn inner(name: &str, arguments: &[String], input: Option<&str>) -> Option<Vec<Inner>> {
    if let Some(prefix) = prefix_of(name) {
        return Some(prefixed(name, arguments, &prefix));
    }
    let joined = |words: &[String]| vec![Inner::Script(words.join(" "))];
    Some(match name {
        "eval" => joined(arguments),
        "trap" => arguments
            .iter()
            .find(|argument| *argument != "--")
            .map(|text| Inner::Script(text.clone()))
            .into_iter()
            .collect(),
        "alias" => arguments
            .iter()
            .filter_map(|argument| argument.split_once('='))
            .map(|(_, text)| Inner::Script(text.to_owned()))
            .collect(),
        "su" | "runuser" | "sg" => switch_user(name, arguments),
        "ssh" | "mosh" | "rsh" | "autossh" => {
            let rest = after_options(arguments, "BbcDEeFIiJLlmOopQRSWw", &[]);
            let rest = rest.get(1..).unwrap_or_default();
            match (rest, input) {
                // Without a command the other side's shell reads what comes in.
                ([], Some(text)) => vec![Inner::Script(text.to_owned())],
                ([first, rest @ ..], _) if first == "--" => joined(rest),
                (rest, _) => joined(rest),
            }
        }
        "watch" | "viddy" => joined(after_options(arguments, "n", &["interval"])),
        "flock" => {
            let rest = after_options(arguments, "wE", &["timeout", "wait"]);
            match rest.get(1..).unwrap_or_default() {
                [option, text, ..] if matches!(option.as_str(), "-c" | "--command") => {
                    vec![Inner::Script(text.clone())]
                }
                rest => vec![Inner::Vector(rest.to_vec())],
            }
        }
        "script" => {
            value_of(arguments, 'c', "command").map(|text| Inner::Script(text.to_owned())).into_iter().collect()
        }
        "xargs" | "gxargs" => vec![Inner::Vector(xargs(arguments, input))],
        "parallel" => parallel(arguments, input),
        "docker" | "podman" | "nerdctl" | "docker-compose" | "kubectl" | "oc" | "lxc" | "incus" | "lxc-attach"
        | "limactl" => container(name, arguments),
        "tmux" | "screen" | "zellij" => multiplexer(arguments),
        "xterm" | "gnome-terminal" | "konsole" | "alacritty" | "kitty" | "urxvt" | "xfce4-terminal" | "wezterm" => {
            let at =
                arguments.iter().position(|argument| matches!(argument.as_str(), "-e" | "--" | "-x" | "--command"));
            match arguments.get(at? + 1..) {
                Some([only]) => vec![Inner::Script(only.clone())],
                Some(rest) => vec![Inner::Vector(rest.to_vec())],
                None => Vec::new(),
            }
        }
        "git" => git(arguments)?,
        "npm" | "pnpm" | "yarn" | "pipx" | "bun" | "poetry" | "uv" | "bundle" | "rye" | "hatch" | "nix" | "vagrant" => {
            // The scripts of a package have names of their own: `npm run halt` is none of ours.
            let runs_programs = !matches!(name, "npm" | "pnpm" | "yarn" | "bun");
            let is_verb =
                |word: &str| matches!(word, "exec" | "dlx" | "--command" | "-c") || runs_programs && word == "run";
            let at = arguments.iter().position(|argument| is_verb(argument))?;
            let rest = &arguments[at + 1..];
            let rest = &rest[rest.iter().take_while(|argument| argument.starts_with('-')).count()..];
            // What is run comes behind the dashes; before them is where it comes from.
            let dashes = rest.iter().position(|argument| argument == "--").filter(|_| name == "nix");
            let rest = dashes.map_or(rest, |at| &rest[at + 1..]);
            match rest {
                [only] => vec![Inner::Script(only.clone())],
                rest => vec![Inner::Vector(rest.to_vec())],
            }
        }
        "nodemon" | "watchexec" | "cargo" | "chokidar" => {
            let text = ["--exec", "-x", "-s", "-c"].iter().find_map(|option| following(arguments, option))?;
            if name == "cargo" && arguments.first().map(String::as_str) != Some("watch") {
                return None;
            }
            vec![Inner::Script(text.to_owned())]
        }
        "ansible" => value_of(arguments, 'a', "args").map(|text| Inner::Script(text.to_owned())).into_iter().collect(),
        "machinectl" if arguments.first().is_some_and(|verb| verb == "shell") => {
            vec![Inner::Vector(after_options(&arguments[1..], "", &["uid"]).get(1..).unwrap_or_default().to_vec())]
        }
        "schtasks" => {
            following_folded(arguments, "/tr").map(|text| Inner::Script(text.to_owned())).into_iter().collect()
        }
        "osascript" => osascript(arguments),
        "nix-shell" => ["--run", "--command"]
            .iter()
            .find_map(|option| following(arguments, option))
            .map(|text| Inner::Script(text.to_owned()))
            .into_iter()
            .collect(),
        // What stands behind the dashes is for a shell.
        "capsh" => {
            let at = arguments.iter().position(|argument| argument == "--")?;
            let shell = std::iter::once("bash".to_owned());
            vec![Inner::Vector(shell.chain(arguments[at + 1..].iter().cloned()).collect())]
        }
        "bwrap" => vec![Inner::Vector(sandboxed(arguments).to_vec())],
        "ip" => {
            let at = arguments.iter().position(|argument| argument == "exec")?;
            vec![Inner::Vector(arguments.get(at + 2..).unwrap_or_default().to_vec())]
        }
        "hyperfine" | "concurrently" => arguments
            .iter()
            .filter(|argument| !argument.starts_with('-'))
            .map(|text| Inner::Script(text.clone()))
            .collect(),
        _ => return None,
    })
}

/// The directory that a wrapper is told to go to first.
pub(super) fn folder(arguments: &[String]) -> Option<&str> {
    let own = &arguments[..arguments.len() - after_options(arguments, "uCDgp", &["chdir", "user"]).len()];
    let following = ["-C", "-D", "--chdir"].iter().find_map(|option| following(own, option));
    following.or_else(|| own.iter().find_map(|option| option.strip_prefix("--chdir=")))
}

/// The arguments after the options.
pub(super) fn after_options<'a>(arguments: &'a [String], letters: &str, names: &[&str]) -> &'a [String] {
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

fn prefixed(name: &str, arguments: &[String], prefix: &Prefix) -> Vec<Inner> {
    let only_looks = match name {
        "command" => arguments.iter().take_while(|a| a.starts_with('-')).any(|a| a.contains(['v', 'V'])),
        "sudo" => arguments
            .iter()
            .take_while(|a| a.starts_with('-'))
            .any(|a| matches!(a.as_str(), "-l" | "-e" | "-v" | "-K" | "--list" | "--edit")),
        _ => false,
    };
    if only_looks {
        return Vec::new();
    }
    if matches!(name, "env" | "genv")
        && let Some(at) =
            arguments.iter().position(|a| a.starts_with("-S") || a.starts_with("--split-string") || a == "-vS")
    {
        let text = match arguments[at].as_str() {
            "-S" | "--split-string" | "-vS" => "",
            attached => attached.trim_start_matches("--split-string").trim_start_matches("-S").trim_start_matches('='),
        };
        let words = std::iter::once(text).chain(arguments[at + 1..].iter().map(String::as_str));
        return vec![Inner::Script(words.collect::<Vec<_>>().join(" "))];
    }
    let mut rest = after_options(arguments, prefix.letters, prefix.names);
    if name == "env" && rest.first().is_some_and(|word| word == "-") {
        rest = &rest[1..];
    }
    while let Some((first, more)) = rest.split_first()
        && is_assignment(first)
    {
        rest = more;
    }
    let rest = rest.get(prefix.operands..).unwrap_or_default();
    let rest = if name == "setarch" { after_options(rest, "", &[]) } else { rest };
    let rest = match rest.first().map(String::as_str) {
        Some("exec" | "run")
            if matches!(name, "mise" | "direnv" | "asdf" | "doppler" | "pipenv" | "op" | "rbenv" | "pyenv") =>
        {
            after_options(&rest[1..], "", &[])
        }
        // What stands between the verb and the command is the name of a store.
        Some("exec") if matches!(name, "chamber" | "aws-vault") => {
            rest.iter().position(|word| word == "--").map_or(&[][..], |at| &rest[at..])
        }
        _ => rest,
    };
    let rest = if rest.first().is_some_and(|word| word == "--") { &rest[1..] } else { rest };
    // `time { … }`: what is timed begins behind the bracket.
    let rest = &rest[rest.iter().take_while(|word| matches!(word.as_str(), "{" | "!")).count()..];
    match rest {
        // One word with blanks is a line for a shell, where the wrapper makes one.
        [only] if only.contains(' ') && matches!(name, "runas" | "wsl") => vec![Inner::Script(only.clone())],
        rest => vec![Inner::Vector(rest.to_vec())],
    }
}

/// `NAME=value` before a command.
pub(super) fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '[' | ']'))
}

/// The value of `-c text`, `-lc text`, `--command text` or `--command=text`.
pub(super) fn value_of<'a>(arguments: &'a [String], letter: char, name: &str) -> Option<&'a str> {
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

fn following<'a>(arguments: &'a [String], option: &str) -> Option<&'a str> {
    let at = arguments.iter().position(|argument| argument == option)?;
    arguments.get(at + 1).map(String::as_str)
}

fn following_folded<'a>(arguments: &'a [String], option: &str) -> Option<&'a str> {
    let at = arguments.iter().position(|argument| argument.eq_ignore_ascii_case(option))?;
    arguments.get(at + 1).map(String::as_str)
}

fn switch_user(name: &str, arguments: &[String]) -> Vec<Inner> {
    if let Some(text) = value_of(arguments, 'c', "command") {
        return vec![Inner::Script(text.to_owned())];
    }
    match name {
        "runuser" => vec![Inner::Vector(after_options(arguments, "ugGs", &["user", "group"]).to_vec())],
        "sg" => vec![Inner::Script(arguments.get(1..).unwrap_or_default().join(" "))],
        _ => Vec::new(),
    }
}

/// The file that `xargs` reads instead of its input.
pub(super) fn argument_file(arguments: &[String]) -> Option<&str> {
    let attached = arguments.iter().find_map(|argument| argument.strip_prefix("--arg-file="));
    attached.or_else(|| ["-a", "--arg-file"].iter().find_map(|option| following(arguments, option)))
}

/// The command behind the options of `bwrap`, which take none, one or two values.
fn sandboxed(arguments: &[String]) -> &[String] {
    let mut at = 0;
    while let Some(option) = arguments.get(at).and_then(|argument| argument.strip_prefix("--")) {
        at += match option {
            "" => return &arguments[at + 1..],
            "bind" | "bind-try" | "dev-bind" | "dev-bind-try" | "ro-bind" | "ro-bind-try" | "setenv" | "symlink"
            | "file" | "bind-data" | "ro-bind-data" | "chmod" => 3,
            _ if option.starts_with("unshare") || option.starts_with("share") => 1,
            "die-with-parent" | "new-session" | "clearenv" | "as-pid-1" => 1,
            _ => 2,
        };
    }
    arguments.get(at..).unwrap_or_default()
}

/// The command of `xargs` with what it reads as its arguments.
fn xargs(arguments: &[String], input: Option<&str>) -> Vec<String> {
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

fn parallel(arguments: &[String], input: Option<&str>) -> Vec<Inner> {
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

/// Options of `docker run` and `exec` that take a value.
const CONTAINER_OPTIONS: &[&str] = &[
    "volume",
    "env",
    "publish",
    "workdir",
    "user",
    "name",
    "network",
    "net",
    "memory",
    "cpus",
    "entrypoint",
    "mount",
    "label",
    "hostname",
    "add-host",
    "device",
    "env-file",
    "platform",
    "pull",
    "restart",
    "gpus",
    "shm-size",
    "tmpfs",
    "ulimit",
    "volumes-from",
    "ipc",
    "pid",
    "cap-add",
    "cap-drop",
    "security-opt",
    "cidfile",
    "link",
    "dns",
    "userns",
    "runtime",
    "file",
    "container",
    "namespace",
    "context",
    "index",
    "profile",
    "project-name",
    "project-directory",
];

fn container(name: &str, arguments: &[String]) -> Vec<Inner> {
    if matches!(name, "kubectl" | "oc" | "lxc" | "incus" | "lxc-attach" | "limactl") {
        let cut = arguments.iter().position(|argument| argument == "--");
        return cut.map(|cut| Inner::Vector(arguments[cut + 1..].to_vec())).into_iter().collect();
    }
    let mut rest = after_options(arguments, "HlcfpvewuamL", CONTAINER_OPTIONS);
    if matches!(rest.first().map(String::as_str), Some("compose" | "container")) {
        rest = after_options(&rest[1..], "fp", CONTAINER_OPTIONS);
    }
    let Some((verb, rest)) = rest.split_first() else { return Vec::new() };
    if !matches!(verb.as_str(), "run" | "exec" | "create") {
        return Vec::new();
    }
    let after = after_options(rest, "vepwumlhac", CONTAINER_OPTIONS);
    let options = &rest[..rest.len() - after.len()];
    let mut command = after.get(1..).unwrap_or_default().to_vec();
    if let Some(entry) =
        following(options, "--entrypoint").or_else(|| options.iter().find_map(|o| o.strip_prefix("--entrypoint=")))
    {
        command.insert(0, entry.to_owned());
    }
    // What is mounted from the machine is the machine's.
    for option in options {
        let option = option.strip_prefix("--volume=").or_else(|| option.strip_prefix("-v")).unwrap_or(option);
        let pair = option.split_once(":/").map(|(from, to)| (from.to_owned(), format!("/{to}")));
        let pair = pair.or_else(|| {
            let part = |name: &str| option.split(',').find_map(|part| part.strip_prefix(name));
            let from = part("source=").or_else(|| part("src="))?;
            let to = part("target=").or_else(|| part("dst=")).or_else(|| part("destination="))?;
            Some((from.to_owned(), to.to_owned()))
        });
        if let Some((from, to)) = pair {
            let to = to.split(':').next().unwrap_or("").trim_end_matches('/').to_owned();
            if (from.starts_with('/') || from.starts_with(HOME)) && to.len() > 1 {
                let from = from.trim_end_matches('/');
                let outside = |word: &String| match word.strip_prefix(&to) {
                    Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{from}{rest}"),
                    // In a script for a shell it stands somewhere.
                    _ if word.contains(' ') => word.replace(&to, from),
                    _ => word.clone(),
                };
                command =
                    command.iter().map(outside).map(|word| if word.is_empty() { "/".into() } else { word }).collect();
            }
        }
    }
    vec![Inner::Vector(command)]
}

fn multiplexer(arguments: &[String]) -> Vec<Inner> {
    const RUNS: [&str; 16] = [
        "new-session",
        "new",
        "new-window",
        "neww",
        "split-window",
        "splitw",
        "run-shell",
        "run",
        "respawn-pane",
        "respawnp",
        "if-shell",
        "display-popup",
        "popup",
        "send-keys",
        "send",
        "stuff",
    ];
    let is_key = |word: &&String| matches!(word.as_str(), "Enter" | "C-m" | "C-j" | "KPEnter");
    let at = arguments.iter().position(|argument| RUNS.contains(&argument.as_str()));
    let rest = match at {
        Some(at) => after_options(&arguments[at + 1..], "tsncFxylpe", &[]),
        None => after_options(arguments, "SehpctTLf", &[]),
    };
    let words: Vec<String> = rest.iter().filter(|word| !is_key(word)).cloned().collect();
    let text = words.join(" ");
    vec![Inner::Script(text.trim_end_matches("\\n").to_owned())]
}

fn git(arguments: &[String]) -> Option<Vec<Inner>> {
    let alias = arguments.iter().find_map(|argument| {
        let (name, text) = argument.split_once("=!")?;
        name.starts_with("alias.").then(|| text.to_owned())
    });
    if let Some(text) = alias {
        return Some(vec![Inner::Script(text)]);
    }
    let verb =
        arguments.iter().position(|a| matches!(a.as_str(), "submodule" | "bisect" | "rebase" | "filter-branch"))?;
    let rest = &arguments[verb + 1..];
    match arguments[verb].as_str() {
        "submodule" => following(rest, "foreach").map(|_| {
            let at = rest.iter().position(|a| a == "foreach").unwrap_or(0);
            vec![Inner::Script(after_options(&rest[at + 1..], "", &[]).join(" "))]
        }),
        "bisect" if rest.first().is_some_and(|a| a == "run") => Some(vec![Inner::Vector(rest[1..].to_vec())]),
        "rebase" => value_of(rest, 'x', "exec").map(|text| vec![Inner::Script(text.to_owned())]),
        "filter-branch" => ["--tree-filter", "--index-filter", "--msg-filter"]
            .iter()
            .find_map(|option| following(rest, option))
            .map(|text| vec![Inner::Script(text.to_owned())]),
        _ => None,
    }
}

/// The shell lines in AppleScript.
fn osascript(arguments: &[String]) -> Vec<Inner> {
    let scripts = arguments.iter().filter_map(|text| text.split_once("do shell script"));
    let quoted = scripts.filter_map(|(_, rest)| rest.split('"').nth(1));
    quoted.map(|text| Inner::Script(text.replace("\\\"", "\""))).collect()
}
