//! Wrappers whose command stands somewhere else than right behind their options.

use std::sync::LazyLock;

use super::super::by_name::ByName;
use super::arguments::{after_options, following, value_of};
use super::{Inner, Wrapper, container, xargs};

/// Wrappers, their names separated by blanks, and where their command stands.
struct Form {
    names: &'static str,
    place: Place,
}

enum Place {
    /// All arguments are a line.
    Line,
    /// The arguments behind the options are a line: letters and names of options that take a value, and operands before
    /// the line.
    LineBehind(&'static str, &'static [&'static str], usize),
    /// The value of one of these options is a line.
    Option(&'static [&'static str]),
    /// The value of an option, by its letter or its name, is a line.
    Value(char, &'static str),
    /// The command stands behind this word.
    Behind(&'static str),
    /// Every argument that is no option is a line of its own.
    Each,
    /// A function finds it; `None` where the command wraps nothing this time.
    Find(fn(Wrapper<'_>) -> Option<Vec<Inner>>),
}

use Place::{Behind, Each, Find, Line, LineBehind, Option as Of, Value};

const fn form(names: &'static str, place: Place) -> Form {
    Form { names, place }
}

static FORMS: &[Form] = &[
    form("eval", Line),
    form("trap", Find(trap)),
    form("alias", Find(alias)),
    form("su runuser sg", Find(switch_user)),
    form("ssh mosh rsh autossh", Find(ssh)),
    form("pdsh clush", LineBehind("wxglfutXq", &[], 0)),
    form("pssh parallel-ssh", LineBehind("HhlptoexOA", &["host", "hosts", "user", "par", "timeout"], 0)),
    form("salt", Find(salt)),
    form("knife", Find(|wrapper| verb_line(wrapper, "ssh", 2))),
    form("heroku", Find(|wrapper| verb_line(wrapper, "run", 1))),
    form("fly flyctl", Value('C', "command")),
    form("watch viddy", LineBehind("n", &["interval"], 0)),
    form("flock", Find(flock)),
    form("script", Value('c', "command")),
    form("xargs gxargs", Find(|wrapper| Some(vec![Inner::Vector(xargs::xargs(wrapper))]))),
    form("parallel sem", Find(|wrapper| Some(xargs::parallel(wrapper)))),
    form("docker podman nerdctl docker-compose buildah", Find(|wrapper| Some(container::docker(wrapper.arguments)))),
    form("kubectl oc lxc incus lxc-attach limactl", Find(|wrapper| Some(container::kubectl(wrapper)))),
    form("distrobox", Behind("--")),
    form("tmux screen zellij", Find(|wrapper| Some(multiplexer(wrapper.arguments)))),
    form("xterm gnome-terminal konsole alacritty kitty urxvt xfce4-terminal wezterm", Find(terminal_window)),
    form("git", Find(git)),
    form("npm pnpm yarn bun pipx poetry uv bundle rye hatch nix vagrant", Find(package_tool)),
    form("nodemon chokidar", Of(&["--exec", "-x", "-s", "-c"])),
    form("cargo", Find(cargo_watch)),
    form("watchexec", Find(|wrapper| Some(Inner::line_or_vector(after_options(wrapper.arguments, "wefisdo", &[]))))),
    form("just", Behind("--command")),
    form("ansible", Find(ansible)),
    form("machinectl", Find(machinectl)),
    form("schtasks", Find(schtasks)),
    form("osascript", Find(|wrapper| Some(osascript(wrapper.arguments)))),
    form("nix-shell", Of(&["--run", "--command"])),
    form("capsh", Find(capsh)),
    form("bwrap", Find(|wrapper| Some(Inner::vector(sandboxed(wrapper.arguments))))),
    form("ip", Find(network_namespace)),
    form("hyperfine concurrently", Each),
    form("start-stop-daemon", Find(start_stop_daemon)),
];

/// What stands inside, if the table has the command.
pub(super) fn inner(wrapper: Wrapper<'_>) -> Option<Vec<Inner>> {
    static INDEX: LazyLock<ByName<Form>> = LazyLock::new(|| ByName::new(FORMS, |row| row.names));
    let arguments = wrapper.arguments;
    match &INDEX.first(wrapper.name)?.place {
        Line => Some(Inner::line(arguments)),
        LineBehind(letters, options, operands) => {
            let rest = after_options(arguments, letters, options);
            Some(Inner::line(rest.get(*operands..).unwrap_or_default()))
        }
        Of(options) => {
            options.iter().find_map(|option| following(arguments, option)).map(|text| vec![Inner::script(text)])
        }
        Value(letter, name) => Some(value_of(arguments, *letter, name).map(Inner::script).into_iter().collect()),
        Behind(word) => {
            let at = arguments.iter().position(|argument| argument == word)?;
            Some(Inner::vector(&arguments[at + 1..]))
        }
        Each => Some(arguments.iter().filter(|a| !a.starts_with('-')).map(|text| Inner::script(text)).collect()),
        Find(find) => find(wrapper),
    }
}

fn trap(wrapper: Wrapper<'_>) -> Option<Vec<Inner>> {
    let text = wrapper.arguments.iter().find(|argument| *argument != "--");
    Some(text.map(|text| Inner::script(text)).into_iter().collect())
}

fn alias(wrapper: Wrapper<'_>) -> Option<Vec<Inner>> {
    let pairs = wrapper.arguments.iter().filter_map(|argument| argument.split_once('='));
    Some(pairs.map(|(_, text)| Inner::script(text)).collect())
}

fn switch_user(wrapper: Wrapper<'_>) -> Option<Vec<Inner>> {
    let arguments = wrapper.arguments;
    if let Some(text) = value_of(arguments, 'c', "command") {
        return Some(vec![Inner::script(text)]);
    }
    Some(match wrapper.name {
        "runuser" => Inner::vector(after_options(arguments, "ugGs", &["user", "group"])),
        "sg" => Inner::line(arguments.get(1..).unwrap_or_default()),
        _ => Vec::new(),
    })
}

fn ssh(wrapper: Wrapper<'_>) -> Option<Vec<Inner>> {
    const LETTERS: &str = "BbcDEeFIiJLlmOopQRSWw";
    let host = after_options(wrapper.arguments, LETTERS, &[]);
    // Options may stand behind the host as well.
    let rest = after_options(host.get(1..).unwrap_or_default(), LETTERS, &[]);
    Some(match (rest, wrapper.input) {
        // Without a command the other side's shell reads what comes in.
        ([], Some(text)) => vec![Inner::script(text)],
        (rest, _) => Inner::line(rest),
    })
}

/// The words behind a verb and so many operands are a line.
fn verb_line(wrapper: Wrapper<'_>, verb: &str, operands: usize) -> Option<Vec<Inner>> {
    let rest = wrapper.arguments.get(operands..).filter(|_| wrapper.arguments[0] == verb)?;
    Some(Inner::line(rest))
}

fn salt(wrapper: Wrapper<'_>) -> Option<Vec<Inner>> {
    Some(vec![Inner::script(following(wrapper.arguments, "cmd.run")?)])
}

fn flock(wrapper: Wrapper<'_>) -> Option<Vec<Inner>> {
    let rest = after_options(wrapper.arguments, "wE", &["timeout", "wait"]);
    Some(match rest.get(1..).unwrap_or_default() {
        [option, text, ..] if matches!(option.as_str(), "-c" | "--command") => vec![Inner::script(text)],
        rest => Inner::vector(rest),
    })
}

fn terminal_window(wrapper: Wrapper<'_>) -> Option<Vec<Inner>> {
    let is_mark = |argument: &String| matches!(argument.as_str(), "-e" | "--" | "-x" | "--command");
    let at = wrapper.arguments.iter().position(is_mark)?;
    Some(Inner::line_or_vector(&wrapper.arguments[at + 1..]))
}

fn package_tool(wrapper: Wrapper<'_>) -> Option<Vec<Inner>> {
    // The scripts of a package have names of their own: `npm run halt` is none of ours.
    let runs_programs = !matches!(wrapper.name, "npm" | "pnpm" | "yarn" | "bun");
    let is_verb =
        |word: &String| matches!(word.as_str(), "exec" | "dlx" | "--command" | "-c") || runs_programs && word == "run";
    let at = wrapper.arguments.iter().position(is_verb)?;
    let rest = &wrapper.arguments[at + 1..];
    let rest = &rest[rest.iter().take_while(|argument| argument.starts_with('-')).count()..];
    // What is run comes behind the dashes; before them is where it comes from.
    let dashes = rest.iter().position(|argument| argument == "--").filter(|_| wrapper.name == "nix");
    Some(Inner::line_or_vector(dashes.map_or(rest, |at| &rest[at + 1..])))
}

fn cargo_watch(wrapper: Wrapper<'_>) -> Option<Vec<Inner>> {
    let (_, arguments) = wrapper.arguments.split_first().filter(|(verb, _)| *verb == "watch")?;
    let text = ["--exec", "-x", "-s", "-c"].iter().find_map(|option| following(arguments, option))?;
    Some(vec![Inner::script(text)])
}

fn ansible(wrapper: Wrapper<'_>) -> Option<Vec<Inner>> {
    let text = value_of(wrapper.arguments, 'a', "args").map(Inner::script);
    // Modules that are commands themselves.
    let module = following(wrapper.arguments, "-m").filter(|name| matches!(*name, "reboot" | "shutdown"));
    Some(text.into_iter().chain(module.map(Inner::script)).collect())
}

fn machinectl(wrapper: Wrapper<'_>) -> Option<Vec<Inner>> {
    let (_, arguments) = wrapper.arguments.split_first().filter(|(verb, _)| *verb == "shell")?;
    Some(Inner::vector(after_options(arguments, "", &["uid"]).get(1..).unwrap_or_default()))
}

fn schtasks(wrapper: Wrapper<'_>) -> Option<Vec<Inner>> {
    let at = wrapper.arguments.iter().position(|argument| argument.eq_ignore_ascii_case("/tr"));
    let text = at.and_then(|at| wrapper.arguments.get(at + 1));
    Some(text.map(|text| Inner::script(text)).into_iter().collect())
}

/// What stands behind the dashes of `capsh` is for a shell.
fn capsh(wrapper: Wrapper<'_>) -> Option<Vec<Inner>> {
    let at = wrapper.arguments.iter().position(|argument| argument == "--")?;
    let shell = std::iter::once("bash".to_owned());
    Some(vec![Inner::Vector(shell.chain(wrapper.arguments[at + 1..].iter().cloned()).collect())])
}

fn network_namespace(wrapper: Wrapper<'_>) -> Option<Vec<Inner>> {
    let at = wrapper.arguments.iter().position(|argument| argument == "exec")?;
    Some(Inner::vector(wrapper.arguments.get(at + 2..).unwrap_or_default()))
}

/// The program behind `--exec`, with the arguments behind the dashes.
fn start_stop_daemon(wrapper: Wrapper<'_>) -> Option<Vec<Inner>> {
    let program = ["-x", "--exec", "-a", "--startas"].iter().find_map(|option| following(wrapper.arguments, option))?;
    let dashes = wrapper.arguments.iter().position(|argument| argument == "--");
    let rest = dashes.map_or(&[][..], |at| &wrapper.arguments[at + 1..]);
    Some(vec![Inner::Vector(std::iter::once(program.to_owned()).chain(rest.iter().cloned()).collect())])
}

/// The command behind the options of `bwrap`, which take none, one or two values.
fn sandboxed(arguments: &[String]) -> &[String] {
    const TWO_VALUES: [&str; 13] = [
        "bind",
        "bind-try",
        "dev-bind",
        "dev-bind-try",
        "ro-bind",
        "ro-bind-try",
        "setenv",
        "symlink",
        "file",
        "bind-data",
        "ro-bind-data",
        "chmod",
        "overlay",
    ];
    const NO_VALUE: [&str; 4] = ["die-with-parent", "new-session", "clearenv", "as-pid-1"];
    let mut at = 0;
    while let Some(option) = arguments.get(at).and_then(|argument| argument.strip_prefix("--")) {
        at += match option {
            "" => return &arguments[at + 1..],
            option if TWO_VALUES.contains(&option) => 3,
            option if NO_VALUE.contains(&option) || option.starts_with("unshare") || option.starts_with("share") => 1,
            _ => 2,
        };
    }
    arguments.get(at..).unwrap_or_default()
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
    vec![Inner::script(words.join(" ").trim_end_matches("\\n"))]
}

fn git(wrapper: Wrapper<'_>) -> Option<Vec<Inner>> {
    let arguments = wrapper.arguments;
    let alias = |argument: &String| {
        argument.split_once("=!").filter(|(name, _)| name.starts_with("alias.")).map(|p| p.1.to_owned())
    };
    if let Some(text) = arguments.iter().find_map(alias) {
        return Some(vec![Inner::Script(text)]);
    }
    let is_verb = |a: &String| matches!(a.as_str(), "submodule" | "bisect" | "rebase" | "filter-branch");
    let at = arguments.iter().position(is_verb)?;
    let rest = &arguments[at + 1..];
    match arguments[at].as_str() {
        "submodule" => {
            let at = rest.iter().position(|a| a == "foreach").filter(|at| at + 1 < rest.len())?;
            Some(Inner::line(after_options(&rest[at + 1..], "", &[])))
        }
        "bisect" if rest.first().is_some_and(|a| a == "run") => Some(Inner::vector(&rest[1..])),
        "rebase" => value_of(rest, 'x', "exec").map(|text| vec![Inner::script(text)]),
        "filter-branch" => ["--tree-filter", "--index-filter", "--msg-filter"]
            .iter()
            .find_map(|option| following(rest, option))
            .map(|text| vec![Inner::script(text)]),
        _ => None,
    }
}

/// The shell lines in AppleScript, and what it tells the system to do.
fn osascript(arguments: &[String]) -> Vec<Inner> {
    let scripts = arguments.iter().filter_map(|text| text.split_once("do shell script"));
    let quoted = scripts.filter_map(|(_, rest)| rest.split('"').nth(1));
    let lines = quoted.map(|text| Inner::Script(text.replace("\\\"", "\"")));
    let stops = |text: &&String| {
        let is_system = ["System Events", "Finder", "loginwindow"].iter().any(|name| text.contains(name));
        is_system && ["to shut down", "to restart", "to sleep"].iter().any(|verb| text.contains(verb))
    };
    lines.chain(arguments.iter().filter(stops).map(|_| Inner::script("shutdown now"))).collect()
}
