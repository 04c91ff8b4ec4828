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
    /// What changes the shell itself.
    pub(super) fn builtin(&mut self, name: &str, arguments: &[String], input: &Flow) -> Verdict<Option<Flow>> {
        let silent = Flow { text: Some(String::new()), is_download: false };
        match name {
            "cd" | "pushd" | "chdir" | "set-location" | "sl" => {
                let to = arguments.iter().find(|argument| !argument.starts_with('-') || *argument == "-");
                let path = clean(to.map_or(&HOME.to_string(), |to| to), &self.cwd);
                self.cwd = if path.is_absolute { Cwd::At(path.names) } else { Cwd::Somewhere };
                Ok(Some(silent))
            }
            "export" | "declare" | "local" | "readonly" | "typeset" => {
                for argument in arguments {
                    if let Some((name, value)) = argument.split_once('=').filter(|(_, value)| !value.starts_with('(')) {
                        self.set(name, vec![value.to_owned()]);
                    }
                }
                Ok(Some(silent))
            }
            "set" => {
                if let Some(at) = arguments.iter().position(|argument| argument == "--") {
                    let values = arguments[at + 1..].to_vec();
                    for (index, value) in values.iter().take(9).enumerate() {
                        self.set(&(index + 1).to_string(), vec![value.clone()]);
                    }
                    self.set("@", values.clone());
                    self.set("*", values);
                }
                Ok(Some(silent))
            }
            "for" | "select" if arguments.get(1).is_some_and(|word| word == "in") => {
                let items: Vec<String> = arguments[2..].iter().take(64).cloned().collect();
                self.vars.insert(arguments[0].clone(), Value { items, is_each: true });
                Ok(Some(silent))
            }
            "read" | "mapfile" | "readarray" => {
                let text = input.text.clone().unwrap_or_else(|| UNKNOWN.to_string());
                let names: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
                let line = text.trim_end_matches('\n');
                for (index, name) in names.iter().enumerate() {
                    let value = match index + 1 == names.len() {
                        true => line.splitn(names.len(), ' ').last().unwrap_or("").to_owned(),
                        false => line.split(' ').nth(index).unwrap_or("").to_owned(),
                    };
                    self.vars.insert(
                        (*name).clone(),
                        Value { items: value.lines().map(str::to_owned).collect(), is_each: true },
                    );
                }
                Ok(Some(silent))
            }
            "printf" if arguments.first().is_some_and(|argument| argument == "-v") && arguments.len() > 2 => {
                let text = decode::output("printf", &arguments[2..], None).unwrap_or_default();
                self.set(&arguments[1].clone(), vec![text]);
                Ok(Some(silent))
            }
            "hash" => {
                // `hash -p /bin/rm x` gives the program another name.
                if let [option, program, name, ..] = arguments
                    && option == "-p"
                {
                    self.aliases.insert(name.clone(), program.clone());
                }
                Ok(Some(silent))
            }
            "alias" => {
                for (name, text) in arguments.iter().filter_map(|argument| argument.split_once('=')).take(16) {
                    self.aliases.insert(name.to_owned(), text.to_owned());
                }
                Ok(None)
            }
            "command" | "type" | "which" | "whence"
                if arguments
                    .first()
                    .is_some_and(|a| a == "-v" || name != "command" && matches!(a.as_str(), "-p" | "-P")) =>
            {
                let text = arguments.get(1).cloned();
                Ok(Some(Flow { text, is_download: false }))
            }
            "source" | "." => {
                let Some(file) = arguments.first() else { return Ok(Some(silent)) };
                let text = self.file(file).or_else(|| is_input(file).then(|| input.text.clone()).flatten());
                match text {
                    Some(text) => self.inside(vec![Inner::Script(text)], &Flow::default()).map(Some),
                    None => Ok(None),
                }
            }
            "at" | "batch" | "crontab" => {
                let Some(text) = &input.text else { return Ok(Some(silent)) };
                let text = if name == "crontab" { cron_commands(text, 5) } else { text.clone() };
                self.inside(vec![Inner::Script(text)], &Flow::default()).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// A shell: its text, its file or its input is read once more.
    pub(super) fn shell(&mut self, name: &str, arguments: &[String], input: &Flow) -> Verdict<Flow> {
        let mut rest = arguments;
        while let Some((option, more)) = rest.split_first() {
            if matches!(option.as_str(), "-o" | "+o" | "-O" | "--rcfile" | "--init-file") {
                rest = more.get(1..).unwrap_or_default();
                continue;
            }
            // What fish runs before its first prompt.
            let begins = option.strip_prefix("--init-command=").or_else(|| {
                let follows = name == "fish" && matches!(option.as_str(), "-C" | "--init-command");
                more.first().map(String::as_str).filter(|_| follows)
            });
            if let Some(text) = begins {
                self.inside(vec![Inner::Script(text.to_owned())], &Flow::default())?;
                rest = more.get(usize::from(!option.contains('='))..).unwrap_or_default();
                continue;
            }
            let is_command =
                option == "--command" || option.starts_with('-') && !option.starts_with("--") && option.contains('c');
            if is_command {
                let more = &more[more
                    .iter()
                    .take_while(|a| a.starts_with('-') || a.starts_with('+') || a.as_str() == "pipefail")
                    .count()..];
                let Some((text, values)) = more.split_first() else { return Ok(Flow::default()) };
                if let Some((_, values)) = values.split_first() {
                    for (index, value) in values.iter().take(9).enumerate() {
                        self.set(&(index + 1).to_string(), vec![value.clone()]);
                    }
                    self.set("@", values.to_vec());
                    self.set("*", values.to_vec());
                }
                if let Some(name) = values.first() {
                    self.set("0", vec![name.clone()]);
                }
                if text.contains(UNKNOWN) && text.chars().count() == 1 {
                    return Ok(Flow::default());
                }
                return self.inside(vec![Inner::Script(text.clone())], input);
            }
            if !option.starts_with(['-', '+']) || option == "-" || option == "--" {
                break;
            }
            // `-euo pipefail`: the last letter takes a value.
            let takes = !option.starts_with("--") && option.ends_with('o');
            rest = more.get(usize::from(takes)..).unwrap_or_default();
        }
        // With -s all operands are arguments of what is read.
        let reads_input = arguments[..arguments.len() - rest.len()].iter().any(|option| is_letter(option, 's'));
        let file = rest.iter().find(|argument| !argument.starts_with('-')).filter(|_| !reads_input);
        let text = match file {
            Some(file) if is_input(file) => input.text.clone(),
            Some(file) => self.file(file),
            None => input.text.clone(),
        };
        if input.is_download
            && (file.is_none() || file.is_some_and(|file| is_input(file)))
            && self.rules.blocks_downloads()
        {
            return Err(Violation::new(&DOWNLOAD_RUN, name, arguments));
        }
        let Some(text) = text else { return Ok(Flow::default()) };
        // What was encoded by a filter that is not known may be base64 all the same.
        if let Some(decoded) =
            base64(text.trim()).filter(|decoded| decoded.chars().all(|c| !c.is_control() || c == '\n'))
        {
            self.inside(vec![Inner::Script(decoded)], &Flow::default())?;
        }
        self.inside(vec![Inner::Script(text)], &Flow::default())
    }
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
