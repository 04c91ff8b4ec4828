//! Classifies the foreground process by its arguments: whether it is a shell that reads commands from the terminal.
//!
//! Pure. A shell counts when it reads commands from the terminal, not when it runs a script; a program that carries a
//! shell counts when it was started to do that.

use crate::terminal::local::pty::{Program, Waiting};
use crate::terminal::sentinel::Form;

/// Options of shells that are followed by a value.
const SHELL_VALUES: [&str; 10] =
    ["-o", "+o", "-O", "+O", "--rcfile", "--init-file", "--init-command", "-C", "--features", "--emulate"];

/// Options of `ssh` that are followed by a value.
const SSH_VALUES: &str = "BbcDEeFIiJLlmOopQRSWw";

/// What may stand before a command without changing what it is.
const WRAPPERS: [&str; 5] = ["exec", "env", "command", "nice", "nohup"];

/// The form to type in, if the program is a shell that reads from the terminal.
pub(super) fn interactive_shell(program: &Program) -> Option<Form> {
    let form = Form::for_program(&program.name)?;
    // busybox takes the name of the shell as its first argument.
    let is_applet = |arg: &&String| program.name == "busybox" && is_shell_name(arg);
    let names = 1 + program.args.iter().skip(1).take(1).filter(is_applet).count();
    let mut args = program.args.iter().skip(names);
    while let Some(arg) = args.next() {
        if SHELL_VALUES.contains(&arg.as_str()) {
            args.next();
        } else if arg == "-s" || arg == "-" || arg == "--" {
            continue;
        } else if arg.starts_with("--") || arg.starts_with('+') {
            if arg.starts_with("--command") {
                return None;
            }
        } else if let Some(letters) = arg.strip_prefix('-') {
            let is_powershell_option = form == Form::PowerShell && letters.len() > 1;
            if letters.contains('c') && !is_powershell_option {
                return None;
            }
        } else {
            return None;
        }
    }
    Some(form)
}

/// What a shell wants to read, by the system call it waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The next command.
    Command,
    /// An answer to something that one of its builtins asks.
    Answer,
}

/// Tells a shell at its prompt from one in `read` or `select`; nothing where both look the same. `canonical` is the mode
/// of the shell's terminal, where that is known.
///
/// A prompt is read by the line editor, or into the shell's own input buffer; a builtin has a buffer of another size, or
/// takes one byte at a time so that the rest is left to others.
pub(super) fn wanted(name: &str, waiting: Waiting, canonical: Option<bool>) -> Option<Wanted> {
    let wanted = |is_command: bool| Some(if is_command { Wanted::Command } else { Wanted::Answer });
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    match (name, waiting) {
        ("bash" | "rbash" | "sh", Waiting::Read { bytes: 1 | 4096, .. }) => wanted(false),
        ("bash" | "rbash", Waiting::Read { .. }) => wanted(true),
        ("bash" | "rbash", Waiting::SelectInput) => canonical.and_then(|canonical| wanted(!canonical)),
        ("zsh", Waiting::Read { fd: 0, onto_stack, .. }) => wanted(!onto_stack),
        // Its line editor reads in no such mode: what it waits for is a program's output, most likely.
        ("zsh", Waiting::Read { onto_stack: true, .. }) if canonical == Some(true) => None,
        ("zsh", Waiting::Read { onto_stack, .. }) => wanted(onto_stack),
        // With a time limit.
        ("zsh" | "mksh" | "lksh", Waiting::SelectInput) if canonical == Some(true) => wanted(false),
        ("yash", Waiting::SelectInput) => canonical.and_then(|canonical| wanted(!canonical)),
        ("dash" | "sh", Waiting::Read { bytes, .. }) => wanted(bytes > 1),
        // Its line editor asks first whether there is something to read.
        ("ksh", Waiting::Read { bytes: 1, .. }) if canonical == Some(false) => wanted(false),
        // A number of characters: they go where they are kept.
        ("mksh" | "lksh", Waiting::Read { onto_stack: false, .. }) if canonical == Some(false) => wanted(false),
        // Without its line editor it takes single bytes at its prompt, too.
        ("mksh" | "lksh", Waiting::Read { .. }) => canonical.and_then(|canonical| wanted(!canonical)),
        _ => None,
    }
}

/// Where a shell reads, by the depth of its calls compared with the depth at which it reads a fresh prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadDepth {
    /// Its prompt, as nobody has touched it.
    Prompt,
    /// Close to that: a search, a prefix key, the rest of a command. A builtin in a function can be there by accident.
    NearPrompt,
    /// A builtin or a hook asks something.
    Builtin,
}

/// How much deeper than its prompt a line editor reads in a state of its own.
const EDITOR_DEPTH: u64 = 1_024;
/// How much less deep the rest of a command may be read (mksh).
const CONTINUATION_DEPTH: u64 = 64;

/// Classifies the depth at which a shell reads; nothing where one of the two is unknown. A shell reads its prompt at
/// exactly the same depth every time.
pub(super) fn read_depth(depth: Option<u64>, at_prompt: Option<u64>) -> Option<ReadDepth> {
    let (depth, at_prompt) = depth.zip(at_prompt)?;
    let near = at_prompt.saturating_sub(CONTINUATION_DEPTH)..=at_prompt + EDITOR_DEPTH;
    Some(match depth {
        depth if depth == at_prompt => ReadDepth::Prompt,
        depth if near.contains(&depth) => ReadDepth::NearPrompt,
        _ => ReadDepth::Builtin,
    })
}

/// The least number of a descriptor by which this shell reads a start-up file, and keeps it open while what stands in
/// there is run; none for one that reads the whole file first.
pub(super) fn startup_descriptor(name: &str) -> Option<u32> {
    match name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-') {
        "fish" => Some(3),
        // The lower ones are left to the user.
        "zsh" | "dash" | "sh" | "ash" | "busybox" | "mksh" | "lksh" | "ksh" | "yash" => Some(10),
        _ => None,
    }
}

/// What the prompts of other programs than shells begin with.
const OTHER_PROMPTS: [&str; 8] = [">>>", "...", "In [", "mysql>", "MariaDB [", "sqlite>", "(gdb)", "ftp>"];

/// The line before the cursor may be the prompt of a shell of which nothing else is known.
pub(super) fn may_be_prompt(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !OTHER_PROMPTS.iter().any(|other| line.starts_with(other))
}

/// True for a program that was started to give a shell on another machine, as another user, or in a container.
pub(super) fn carries_shell(program: &Program) -> bool {
    let args: Vec<&str> = program.args.iter().skip(1).map(String::as_str).collect();
    match program.name.as_str() {
        "ssh" => ssh_gives_shell(&args),
        "su" => !args.iter().any(|arg| *arg == "-c" || arg.starts_with("--command")),
        "sudo" | "doas" => sudo_gives_shell(&args),
        "docker" | "podman" | "kubectl" | "nerdctl" => args.iter().skip(1).any(|arg| is_shell_name(arg)),
        _ => false,
    }
}

fn is_shell_name(arg: &str) -> bool {
    Form::for_program(arg.rsplit('/').next().unwrap_or(arg)).is_some()
}

/// `ssh [options] host`, and no command behind it, or one that is a shell.
fn ssh_gives_shell(args: &[&str]) -> bool {
    let mut args = args.iter();
    let mut host = None;
    while host.is_none()
        && let Some(arg) = args.next()
    {
        match arg.strip_prefix('-') {
            Some(letters) if letters.contains('N') || letters.contains('W') => return false,
            Some(letters) if letters.ends_with(|last| SSH_VALUES.contains(last)) => drop(args.next()),
            Some(_) => {}
            None => host = Some(arg),
        }
    }
    let command: Vec<&str> = args.copied().collect();
    host.is_some() && (command.is_empty() || line_gives_shell(&command.join(" ")))
}

/// The last command of a line is a shell that reads from the terminal. Quotes are not understood: a line with some is
/// seldom a plain shell.
fn line_gives_shell(line: &str) -> bool {
    let last = line.rsplit(['&', ';', '|']).next().unwrap_or(line);
    let mut words = last.split_whitespace().skip_while(|word| WRAPPERS.contains(word) || word.contains('='));
    let Some(command) = words.next() else { return false };
    let args: Vec<String> = std::iter::once(command).chain(words).map(str::to_owned).collect();
    let name = command.rsplit('/').next().unwrap_or(command).to_owned();
    let program = Program { pid: 0, name, args, is_fork: false };
    interactive_shell(&program).is_some() || carries_shell(&program)
}

/// `sudo -i`, `sudo -s`, `sudo su`, `sudo bash`, and not `sudo make`.
fn sudo_gives_shell(args: &[&str]) -> bool {
    let mut wants_shell = false;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "-i" | "-s" | "--login" | "--shell" => wants_shell = true,
            "-u" | "-g" | "-h" | "-p" | "-C" | "-D" | "-R" | "-T" => drop(args.next()),
            option if option.starts_with('-') || option.contains('=') => {}
            "su" => return !args.any(|arg| *arg == "-c"),
            command => {
                let rest: Vec<String> = std::iter::once(command).chain(args.copied()).map(str::to_owned).collect();
                let name = command.rsplit('/').next().unwrap_or(command).to_owned();
                return interactive_shell(&Program { pid: 0, name, args: rest, is_fork: false }).is_some();
            }
        }
    }
    wants_shell
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(line: &str) -> Program {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let name = args[0].rsplit('/').next().expect("a name").trim_start_matches('-').to_owned();
        Program { pid: 1, name, args, is_fork: false }
    }

    #[test]
    fn a_shell_counts_when_it_reads_from_the_terminal() {
        for (line, expected) in [
            ("bash", Some(Form::Bash)),
            ("-bash", Some(Form::Bash)),
            ("/bin/bash --norc -i", Some(Form::Bash)),
            ("bash --rcfile x -i", Some(Form::Bash)),
            ("bash -o vi", Some(Form::Bash)),
            ("/bin/sh", Some(Form::Posix)),
            ("dash -i", Some(Form::Posix)),
            ("busybox sh", Some(Form::Posix)),
            ("/bin/busybox ash -i", Some(Form::Posix)),
            ("zsh -f", Some(Form::Zsh)),
            ("fish -C true", Some(Form::Fish)),
            ("zsh --emulate sh -f", Some(Form::Zsh)),
            ("bash -c true", None),
            ("busybox vi", None),
            ("busybox sh -c true", None),
            ("busybox sh script", None),
            ("sh -ec true", None),
            ("bash build.sh", None),
            ("sh -x ./configure", None),
            ("fish --command true", None),
            ("vim", None),
            ("python3", None),
        ] {
            assert_eq!(interactive_shell(&program(line)), expected, "{line}");
        }
    }

    #[test]
    fn a_question_is_told_from_a_prompt() {
        let read = |fd, bytes, onto_stack| Waiting::Read { fd, bytes, onto_stack };
        for (name, waiting, canonical, expected) in [
            ("bash", Waiting::SelectInput, Some(false), Some(Wanted::Command)),
            ("bash", Waiting::SelectInput, Some(true), Some(Wanted::Answer)),
            ("bash", Waiting::SelectInput, None, None),
            ("bash-5.2", read(0, 1024, false), Some(true), Some(Wanted::Command)),
            ("bash", read(0, 4096, false), Some(true), Some(Wanted::Answer)),
            ("bash", read(0, 1, true), Some(false), Some(Wanted::Answer)),
            ("dash", read(0, 8192, false), Some(true), Some(Wanted::Command)),
            ("dash", read(0, 1, true), Some(true), Some(Wanted::Answer)),
            ("zsh", read(10, 1, true), Some(false), Some(Wanted::Command)),
            ("zsh", read(0, 1, false), Some(true), Some(Wanted::Command)),
            ("zsh", read(0, 1, true), Some(true), Some(Wanted::Answer)),
            ("zsh", read(10, 1, false), Some(false), Some(Wanted::Answer)),
            ("zsh", read(12, 64, true), Some(true), None),
            ("mksh", read(0, 1, true), Some(false), Some(Wanted::Command)),
            ("mksh", read(0, 1, false), Some(true), Some(Wanted::Answer)),
            ("mksh", read(0, 1, false), Some(false), Some(Wanted::Answer)),
            ("mksh", Waiting::SelectInput, Some(true), Some(Wanted::Answer)),
            ("zsh", Waiting::SelectInput, Some(true), Some(Wanted::Answer)),
            ("yash", Waiting::SelectInput, Some(true), Some(Wanted::Answer)),
            ("yash", Waiting::SelectInput, Some(false), Some(Wanted::Command)),
            ("ksh93", read(0, 1, false), Some(false), Some(Wanted::Answer)),
            ("ksh93", Waiting::SelectInput, Some(false), None),
            ("fish", Waiting::Poll, Some(false), None),
            ("ksh93", Waiting::SelectInput, Some(true), None),
        ] {
            assert_eq!(wanted(name, waiting, canonical), expected, "{name} {waiting:?}");
        }
    }

    #[test]
    fn a_prompt_is_read_at_one_depth() {
        for (depth, expected) in [
            (5_344, ReadDepth::Prompt),
            (5_568, ReadDepth::NearPrompt),
            (5_328, ReadDepth::NearPrompt),
            (2_496, ReadDepth::Builtin),
            (4_464, ReadDepth::Builtin),
            (9_528, ReadDepth::Builtin),
        ] {
            assert_eq!(read_depth(Some(depth), Some(5_344)), Some(expected), "{depth}");
        }
        assert_eq!((read_depth(None, Some(1)), read_depth(Some(1), None)), (None, None));
    }

    #[test]
    fn a_carrier_counts_when_it_was_started_for_a_shell() {
        for (line, expected) in [
            ("ssh host", true),
            ("ssh -p 22 -A user@host", true),
            ("ssh host make", false),
            ("ssh -t host zsh -f", true),
            ("ssh -tt -F file host cd / && exec fish", true),
            ("ssh -t host env A=1 bash", true),
            ("ssh -t jump ssh host", true),
            ("ssh -t host bash -c make", false),
            ("ssh -t host sudo -i", true),
            ("ssh -N -L 1:2:3 host", false),
            ("su", true),
            ("su - other", true),
            ("su -c make", false),
            ("sudo -i", true),
            ("sudo -u www -s", true),
            ("sudo su -", true),
            ("sudo bash", true),
            ("sudo bash -c make", false),
            ("sudo apt upgrade", false),
            ("docker exec -it box bash", true),
            ("docker run -it debian /bin/sh", true),
            ("docker build .", false),
            ("less file", false),
        ] {
            assert_eq!(carries_shell(&program(line)), expected, "{line}");
        }
    }
}
