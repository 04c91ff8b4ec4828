//! Wrappers whose command follows their options.

use std::sync::LazyLock;

use super::super::by_name::ByName;
use super::arguments::{after_options, following, is_assignment};
use super::{Inner, Wrapper};

/// Wrappers with the same options; lists of words are separated by blanks.
struct Prefix {
    names: &'static str,
    /// Short options that take a value.
    letters: &'static str,
    /// Long options that take a value in a word of its own.
    options: &'static str,
    /// Operands before the command.
    operands: usize,
    /// One of these may stand before the command.
    verbs: &'static str,
}

const fn prefix(names: &'static str, letters: &'static str, options: &'static str, operands: usize) -> Prefix {
    Prefix { names, letters, options, operands, verbs: "" }
}

const fn verbs(names: &'static str, letters: &'static str, verbs: &'static str) -> Prefix {
    Prefix { names, letters, options: "", operands: 0, verbs }
}

const SUDO: &str = "user group prompt host chdir chroot close-from command-timeout role type";
const UNIT: &str = "unit property uid gid setenv on-active slice working-directory";

static PREFIXES: &[Prefix] = &[
    prefix("sudo sudo-rs", "ugpChTUrtDRa", SUDO, 0),
    prefix("run0", "ugDp", "user group chdir unit property slice nice background setenv machine", 0),
    prefix("doas", "uCa", "", 0),
    prefix("env genv", "uC", "unset chdir", 0),
    prefix("exec", "a", "", 0),
    prefix(
        "command builtin nohup setsid unbuffer catchsegv fakeroot firejail noglob nocorrect",
        "",
        "nice preserve",
        0,
    ),
    prefix(
        "chronic ifne dbus-run-session linux32 linux64 valgrind rlwrap winpty setpriv eatmydata",
        "",
        "nice preserve",
        0,
    ),
    prefix("proxychains proxychains4 torsocks coproc entr call then do else dotenv unshare", "", "nice preserve", 0),
    prefix("aa-exec numactl not and or reflex flatpak-spawn", "", "nice preserve", 0),
    prefix("time gtime", "fo", "format output", 0),
    prefix("nice", "n", "adjustment", 0),
    prefix("ionice", "cnpPu", "class classdata", 0),
    prefix("stdbuf", "ioe", "input output error", 0),
    prefix("timeout gtimeout", "sk", "signal kill-after", 1),
    prefix("chrt taskset chroot gosu su-exec cpulimit setuidgid", "", "userspec groups", 1),
    prefix("setarch", "", "", 0),
    prefix("strace ltrace", "oepsuEaPIbXnlxS", "output trace", 0),
    prefix("nsenter", "tSG", "target setuid setgid", 0),
    prefix("sshpass", "pfd", "", 0),
    prefix("prlimit", "p", "pid", 0),
    prefix("faketime chpst s6-setuidgid runcon", "ugUnm", "", 1),
    prefix("tini dumb-init catatonit chamber aws-vault", "", "", 0),
    prefix("cgexec", "g", "", 0),
    prefix("proot", "rbwq", "", 0),
    prefix("pkexec", "", "user", 0),
    prefix("xvfb-run", "ensfp", "server-args", 0),
    prefix("caffeinate", "tw", "", 0),
    prefix("systemd-run", "pEMHuG", UNIT, 0),
    prefix("systemd-inhibit", "", "what who why mode", 0),
    prefix("systemd-nspawn", "DiMupE", "directory image machine user property setenv bind bind-ro", 0),
    prefix("busybox toybox npx bunx pnpx uvx", "p", "package", 0),
    prefix("wsl", "du", "distribution user cd", 0),
    prefix("runas", "", "", 0),
    prefix("daemonize", "aceopluEL", "", 0),
    prefix("dtach abduco", "nAcaer", "", 0),
    prefix("heaptrack", "op", "", 0),
    prefix("ld-linux", "", "library-path preload argv0 audit", 0),
    verbs("direnv mise asdf doppler pipenv rbenv pyenv op", "", "exec run"),
    verbs("perf", "eptCGoFcjT", "stat record trace"),
    verbs("rr", "on", "record"),
    verbs("toolbox", "cdr", "run"),
];

/// The name of a wrapper under which the table knows it.
fn known(name: &str) -> &str {
    let is_loader = (name.starts_with("ld-linux") || name.starts_with("ld-musl")) && name.contains(".so");
    if is_loader { "ld-linux" } else { name }
}

/// The command behind the options of a wrapper.
pub(super) fn inner(wrapper: Wrapper<'_>) -> Option<Vec<Inner>> {
    static INDEX: LazyLock<ByName<Prefix>> = LazyLock::new(|| ByName::new(PREFIXES, |row| row.names));
    let prefix = INDEX.first(known(wrapper.name))?;
    if only_looks(wrapper) {
        return Some(Vec::new());
    }
    if matches!(wrapper.name, "env" | "genv")
        && let Some(line) = split_string(wrapper.arguments)
    {
        return Some(vec![Inner::Script(line)]);
    }
    let rest = prefix.command(wrapper.name, wrapper.arguments);
    Some(match (wrapper.name, rest) {
        // The name of the architecture may be left out.
        ("setarch", [_, more @ ..]) => {
            vec![Inner::Vector(rest.to_vec()), Inner::Vector(after_options(more, "", &[]).to_vec())]
        }
        // One word with blanks is a line for a shell, where the wrapper makes one.
        ("runas" | "wsl", [only]) if only.contains(' ') => vec![Inner::Script(only.clone())],
        (_, rest) => Inner::vector(rest),
    })
}

impl Prefix {
    fn command<'a>(&self, name: &str, arguments: &'a [String]) -> &'a [String] {
        let options: Vec<&str> = self.options.split(' ').collect();
        let mut rest = after_options(arguments, self.letters, &options);
        if name == "env" && rest.first().is_some_and(|word| word == "-") {
            rest = &rest[1..];
        }
        rest = &rest[rest.iter().take_while(|word| is_assignment(word)).count()..];
        rest = rest.get(self.operands..).unwrap_or_default();
        rest = match rest.first().map(String::as_str) {
            Some(verb) if !self.verbs.is_empty() && self.verbs.split(' ').any(|known| known == verb) => {
                after_options(&rest[1..], self.letters, &[])
            }
            // What stands between the verb and the command is the name of a store.
            Some("exec") if matches!(name, "chamber" | "aws-vault") => {
                rest.iter().position(|word| word == "--").map_or(&[][..], |at| &rest[at..])
            }
            // The coprocess has a name.
            Some(_) if name == "coproc" && rest.get(1).is_some_and(|word| word == "{") => &rest[1..],
            _ => rest,
        };
        rest = if rest.first().is_some_and(|word| word == "--") { &rest[1..] } else { rest };
        // `time { … }`: what is timed begins behind the bracket.
        &rest[rest.iter().take_while(|word| matches!(word.as_str(), "{" | "!")).count()..]
    }
}

/// `command -v` and `sudo -l` run nothing.
fn only_looks(wrapper: Wrapper<'_>) -> bool {
    let mut options = wrapper.arguments.iter().take_while(|a| a.starts_with('-'));
    match wrapper.name {
        "command" => options.any(|a| a.contains(['v', 'V'])),
        "sudo" => options.any(|a| matches!(a.as_str(), "-l" | "-e" | "-v" | "-K" | "--list" | "--edit")),
        _ => false,
    }
}

/// The line of `env -S`.
fn split_string(arguments: &[String]) -> Option<String> {
    let attached = |word: &String| {
        let short = word.strip_prefix("-vS").or_else(|| word.strip_prefix("-S"));
        short.or_else(|| word.strip_prefix("--split-string")).map(|rest| rest.trim_start_matches('=').to_owned())
    };
    let (at, first) = arguments.iter().enumerate().find_map(|(at, word)| Some((at, attached(word)?)))?;
    let words = std::iter::once(first.as_str()).chain(arguments[at + 1..].iter().map(String::as_str));
    Some(words.collect::<Vec<_>>().join(" "))
}

/// The directory in which a wrapper runs its command.
pub(in super::super) fn folder(arguments: &[String]) -> Option<&str> {
    let own = &arguments[..arguments.len() - after_options(arguments, "uCDgp", &["chdir", "user"]).len()];
    let following = ["-C", "-D", "--chdir"].iter().find_map(|option| following(own, option));
    following.or_else(|| own.iter().find_map(|option| option.strip_prefix("--chdir=")))
}
