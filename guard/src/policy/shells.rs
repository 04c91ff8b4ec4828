//! Commands that belong to the shell itself, and shells inside of shells.
//!
//! What they change (variables, directory, aliases) is kept in the judge; what they read once more is judged there.

use super::Verdict;
use super::decode::{self, base64};
use super::judge::{Flow, Judge, Value, Violation};
use super::later::cron_commands;
use super::table::DOWNLOAD_RUN;
use super::targets::{Cwd, clean};
use super::words::{HOME, UNKNOWN};
use super::wrappers::Inner;

impl Judge<'_> {
    /// Runs a command of the shell itself; `None` where the name is none, or is judged like a program as well.
    pub(super) fn builtin(&mut self, name: &str, arguments: &[String], input: &Flow) -> Verdict<Option<Flow>> {
        match name {
            "cd" | "pushd" | "chdir" | "set-location" | "sl" => self.change_directory(arguments),
            "export" | "declare" | "local" | "readonly" | "typeset" => self.declare(arguments),
            "set" => self.set_arguments(arguments),
            "for" | "select" if arguments.get(1).is_some_and(|word| word == "in") => {
                let items = arguments[2..].iter().take(64).cloned().collect();
                self.vars.insert(arguments[0].clone(), Value { items, is_each: true });
            }
            "read" | "mapfile" | "readarray" => self.read_variables(arguments, input),
            "printf" if arguments.first().is_some_and(|argument| argument == "-v") && arguments.len() > 2 => {
                let text = decode::output("printf", &arguments[2..], None).unwrap_or_default();
                self.set(&arguments[1], vec![text]);
            }
            // `hash -p /bin/rm x` gives the program another name.
            "hash" => {
                if let [option, program, name, ..] = arguments
                    && option == "-p"
                {
                    self.aliases.insert(name.clone(), program.clone());
                }
            }
            "alias" => {
                let pairs = arguments.iter().filter_map(|argument| argument.split_once('='));
                self.aliases.extend(pairs.take(16).map(|(name, text)| (name.to_owned(), text.to_owned())));
                return Ok(None);
            }
            "command" | "type" | "which" | "whence" if names_program(name, arguments) => {
                return Ok(Some(Flow { text: arguments.get(1).cloned(), is_download: false }));
            }
            "source" | "." if !arguments.is_empty() => return self.source(&arguments[0], input),
            "source" | "." => {}
            "at" | "batch" | "crontab" => {
                let Some(text) = &input.text else { return Ok(Some(silent())) };
                let text = if name == "crontab" { cron_commands(text, 5) } else { text.clone() };
                return self.inside(vec![Inner::Script(text)], &Flow::default()).map(Some);
            }
            _ => return Ok(None),
        }
        Ok(Some(silent()))
    }

    fn change_directory(&mut self, arguments: &[String]) {
        let to = arguments.iter().find(|argument| !argument.starts_with('-') || *argument == "-");
        let path = clean(to.map_or(&HOME.to_string(), |to| to), &self.cwd);
        self.cwd = if path.is_absolute { Cwd::At(path.names) } else { Cwd::Somewhere };
    }

    fn declare(&mut self, arguments: &[String]) {
        for (name, value) in arguments.iter().filter_map(|argument| argument.split_once('=')) {
            if !value.starts_with('(') {
                self.set(name, vec![value.to_owned()]);
            }
        }
    }

    /// `set -- a b` gives the shell arguments.
    fn set_arguments(&mut self, arguments: &[String]) {
        if let Some(at) = arguments.iter().position(|argument| argument == "--") {
            self.set_positional(&arguments[at + 1..]);
        }
    }

    /// The values of `$1`, `$@` and so on.
    pub(super) fn set_positional(&mut self, values: &[String]) {
        for (index, value) in values.iter().take(9).enumerate() {
            self.set(&(index + 1).to_string(), vec![value.clone()]);
        }
        self.set("@", values.to_vec());
        self.set("*", values.to_vec());
    }

    /// Variables get the words of the input, the last one all that are left.
    fn read_variables(&mut self, arguments: &[String], input: &Flow) {
        let text = input.text.clone().unwrap_or_else(|| UNKNOWN.to_string());
        let line = text.trim_end_matches('\n');
        let names: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
        for (index, name) in names.iter().enumerate() {
            let is_last = index + 1 == names.len();
            let value = if is_last { line.splitn(names.len(), ' ').last() } else { line.split(' ').nth(index) };
            let items = value.unwrap_or("").lines().map(str::to_owned).collect();
            self.vars.insert((*name).clone(), Value { items, is_each: true });
        }
    }

    fn source(&mut self, file: &str, input: &Flow) -> Verdict<Option<Flow>> {
        let text = self.file(file).or_else(|| is_input(file).then(|| input.text.clone()).flatten());
        text.map(|text| self.inside(vec![Inner::Script(text)], &Flow::default())).transpose()
    }

    /// A shell: its text, its file or its input is read once more.
    pub(super) fn shell(&mut self, name: &str, arguments: &[String], input: &Flow) -> Verdict<Flow> {
        let mut rest = arguments;
        while let Some((option, more)) = rest.split_first() {
            if matches!(option.as_str(), "-o" | "+o" | "-O" | "--rcfile" | "--init-file") {
                rest = more.get(1..).unwrap_or_default();
            } else if let Some(text) = init_command(name, option, more) {
                self.inside(vec![Inner::Script(text.to_owned())], &Flow::default())?;
                rest = more.get(usize::from(!option.contains('='))..).unwrap_or_default();
            } else if option == "--command" || is_letter(option, 'c') {
                return self.shell_command(more, input);
            } else if !option.starts_with(['-', '+']) || option == "-" || option == "--" {
                break;
            } else {
                // `-euo pipefail`: the last letter takes a value.
                let takes = !option.starts_with("--") && option.ends_with('o');
                rest = more.get(usize::from(takes)..).unwrap_or_default();
            }
        }
        // With -s all operands are arguments of what is read.
        let reads_input = arguments[..arguments.len() - rest.len()].iter().any(|option| is_letter(option, 's'));
        let file = rest.iter().find(|argument| !argument.starts_with('-')).filter(|_| !reads_input);
        let takes_input = file.is_none_or(|file| is_input(file));
        if takes_input && input.is_download && self.rules.blocks_downloads() {
            return Err(Violation::new(&DOWNLOAD_RUN, name, arguments));
        }
        match file {
            Some(file) if !takes_input => self.script_text(self.file(file)),
            _ => self.script_text(input.text.clone()),
        }
    }

    /// `-c text name values`.
    fn shell_command(&mut self, arguments: &[String], input: &Flow) -> Verdict<Flow> {
        let is_option = |a: &&String| a.starts_with(['-', '+']) || a.as_str() == "pipefail";
        let Some((text, values)) = arguments[arguments.iter().take_while(is_option).count()..].split_first() else {
            return Ok(Flow::default());
        };
        if let Some((name, values)) = values.split_first() {
            self.set_positional(values);
            self.set("0", vec![name.clone()]);
        }
        if text.contains(UNKNOWN) && text.chars().count() == 1 {
            return Ok(Flow::default());
        }
        self.inside(vec![Inner::Script(text.clone())], input)
    }

    /// A text that a shell reads, if it is known.
    fn script_text(&mut self, text: Option<String>) -> Verdict<Flow> {
        let Some(text) = text else { return Ok(Flow::default()) };
        // What was encoded by a filter that is not known may be base64 all the same.
        let is_text = |decoded: &String| decoded.chars().all(|c| !c.is_control() || c == '\n');
        if let Some(decoded) = base64(text.trim()).filter(is_text) {
            self.inside(vec![Inner::Script(decoded)], &Flow::default())?;
        }
        self.inside(vec![Inner::Script(text)], &Flow::default())
    }
}

/// A command that prints nothing.
fn silent() -> Flow {
    Flow { text: Some(String::new()), is_download: false }
}

/// `command -v`, `type -p`: the name of a program is printed.
fn names_program(name: &str, arguments: &[String]) -> bool {
    let is_meant = |a: &String| a == "-v" || name != "command" && matches!(a.as_str(), "-p" | "-P");
    arguments.first().is_some_and(is_meant)
}

/// What fish runs before its first prompt.
fn init_command<'a>(name: &str, option: &'a str, more: &'a [String]) -> Option<&'a str> {
    option.strip_prefix("--init-command=").or_else(|| {
        let follows = name == "fish" && matches!(option, "-C" | "--init-command");
        more.first().map(String::as_str).filter(|_| follows)
    })
}

/// A short option with this letter.
fn is_letter(option: &str, letter: char) -> bool {
    option.starts_with('-') && !option.starts_with("--") && option.contains(letter)
}

/// Names under which a command reads its own input.
pub(super) fn is_input(file: &str) -> bool {
    let descriptor = file.strip_prefix("/dev/fd/").or_else(|| file.strip_prefix("/proc/self/fd/"));
    // Which descriptor a text was redirected to is not kept: any of one digit may be it.
    matches!(file, "-" | "/dev/stdin") || descriptor.is_some_and(|number| matches!(number.as_bytes(), [b'0'..=b'9']))
}
