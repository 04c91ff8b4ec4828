//! What a line runs later or by another name: files that it writes, functions that it defines, variables that other
//! programs run.
//!
//! The texts are kept in the judge, a few of them, and judged there when their time comes.

use super::Verdict;
use super::judge::{Flow, Judge, base_name, is_shell};
use super::shells::is_input;

/// Files that every new shell runs, or every one that ends.
const STARTUP_FILES: [&str; 14] = [
    ".bashrc",
    ".zshrc",
    "profile",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".zprofile",
    ".zshenv",
    ".zlogin",
    ".zlogout",
    "bash.bashrc",
    ".xprofile",
    ".xinitrc",
    "config.fish",
];
/// Variables whose value other programs run as a command.
const COMMAND_VARIABLES: [&str; 18] = [
    "PAGER",
    "GIT_PAGER",
    "MANPAGER",
    "SYSTEMD_PAGER",
    "EDITOR",
    "VISUAL",
    "SUDO_EDITOR",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "RSYNC_RSH",
    "PROMPT_COMMAND",
    "LESSOPEN",
    "BROWSER",
    "FZF_DEFAULT_COMMAND",
    "GIT_ASKPASS",
    "SUDO_ASKPASS",
];
/// Folders whose files are run by a clock, with the fields of a line before its command: the time, and who runs it.
const CRON_FOLDERS: [(&str, usize); 5] =
    [("/cron.d/", 6), ("/cron.hourly/", 0), ("/cron.daily/", 0), ("/cron.weekly/", 0), ("/cron.monthly/", 0)];
/// Files that a line may write and run, and functions that it may define.
pub(super) const MOST_FILES: usize = 32;

impl Judge<'_> {
    /// Judges what a variable is given, where other programs or the shell itself will run it.
    pub(super) fn run_later(&mut self, name: &str, value: &str) -> Verdict<()> {
        if COMMAND_VARIABLES.contains(&name) {
            self.text(value, None)?;
        } else if matches!(name, "PS0" | "PS1" | "PS2" | "PS4") {
            self.expand_document(value)?;
        } else if matches!(name, "BASH_ENV" | "ENV")
            && let Some(text) = self.file(value)
        {
            self.text(&text, None)?;
        }
        Ok(())
    }

    /// A file that the line wrote is run by its path: by a shell, or by whom its first line names.
    pub(super) fn run_file(&mut self, text: &str, arguments: &[String], input: &Flow) -> Verdict<()> {
        let interpreter = text.strip_prefix("#!").and_then(|rest| rest.lines().next()).unwrap_or("sh");
        let interpreter = interpreter.split_whitespace().map(base_name).find(|name| name != "env").unwrap_or_default();
        match is_shell(&interpreter) {
            true => self.call(text, arguments, input),
            false => {
                let text = Flow { text: Some(text.to_owned()), is_download: false };
                self.named(&interpreter, &[], &text).map(|_| ())
            }
        }
    }

    /// Runs a text with arguments of its own.
    pub(super) fn call(&mut self, text: &str, arguments: &[String], input: &Flow) -> Verdict<()> {
        self.set_positional(arguments);
        self.text(text, input.text.as_deref())?;
        for name in ["@", "*", "1", "2", "3", "4", "5", "6", "7", "8", "9"] {
            self.vars.remove(name);
        }
        Ok(())
    }

    /// The text of a file that the line wrote.
    pub(super) fn file(&self, path: &str) -> Option<String> {
        self.files.get(path.trim_start_matches("./")).cloned()
    }

    pub(super) fn write_file(&mut self, file: Option<String>, text: Option<&str>) -> Verdict<()> {
        let (Some(file), Some(text)) = (file, text) else { return Ok(()) };
        if STARTUP_FILES.iter().any(|name| file.ends_with(name)) || file.contains("/profile.d/") {
            // The next shell runs it.
            self.text(text, None)?;
        }
        if let Some((_, fields)) = CRON_FOLDERS.iter().find(|(folder, _)| file.contains(folder)) {
            self.text(&cron_commands(text, *fields), None)?;
        }
        if self.files.len() < MOST_FILES {
            let known = self.files.entry(file.trim_start_matches("./").to_owned()).or_default();
            if known.len() + text.len() < 1 << 16 {
                known.push_str(text);
            }
        }
        Ok(())
    }

    /// What is known of a text is known of its copies.
    pub(super) fn copy_known(&mut self, name: &str, arguments: &[String], input: &Flow) -> Verdict<()> {
        let operands: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
        match (name, operands.as_slice()) {
            ("tee" | "sponge", files) => {
                for file in files.iter().take(MOST_FILES) {
                    self.write_file(Some((*file).clone()), input.text.as_deref())?;
                }
                Ok(())
            }
            (_, [from, to]) => {
                let text = self.file(from).or_else(|| is_input(from).then(|| input.text.clone()).flatten());
                self.write_file(Some((*to).clone()), text.as_deref())
            }
            _ => Ok(()),
        }
    }

    /// A name under which the output of a process substitution can be read.
    pub(super) fn pretend_file(&mut self, output: Option<String>) -> Verdict<String> {
        let name = format!("/dev/fd/{}", 63 + self.files.len());
        self.write_file(Some(name.clone()), output.as_deref())?;
        Ok(name)
    }
}

/// The commands of a table of `cron`, behind so many fields; a time such as `@reboot` is one field instead of five.
pub(super) fn cron_commands(text: &str, fields: usize) -> String {
    let command = |line: &str| {
        let fields = if line.starts_with('@') { fields.saturating_sub(4) } else { fields };
        let mut rest = line;
        for _ in 0..fields {
            rest = rest.trim_start().split_once([' ', '\t']).map_or("", |(_, rest)| rest);
        }
        rest.to_owned()
    };
    text.lines().map(command).collect::<Vec<_>>().join("\n")
}
