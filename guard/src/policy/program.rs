//! A program that is started rather than typed: its arguments, and the variables that carry code.
//!
//! The words are those of an argument vector: nothing in them is expanded by a shell, so they are judged as quoted words of
//! a line. Variables count where a shell, or a program that looks for a pager, an editor or the like, would run them.

use super::{Policy, Refusal};

/// Variables whose value a shell runs as it is: before a prompt, or as what stands before a command.
const RUN: [&str; 3] = ["PROMPT_COMMAND", "command_not_found_handle", "fish_prompt"];
/// Variables with text in which a shell runs substitutions.
const EXPANDED: [&str; 11] =
    ["PS0", "PS1", "PS2", "PS3", "PS4", "PROMPT", "RPROMPT", "RPS1", "BASH_ENV", "ENV", "MAILPATH"];
/// Variables that name a command of which the arguments are given by others.
const COMMANDS: [&str; 15] = [
    "PAGER",
    "EDITOR",
    "VISUAL",
    "BROWSER",
    "MANPAGER",
    "GIT_PAGER",
    "GIT_EDITOR",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "LESSOPEN",
    "LESSCLOSE",
    "FCEDIT",
    "GIT_SEQUENCE_EDITOR",
];

impl Policy {
    /// Judges the start of a program.
    pub fn judge_program(&self, program: &str, args: &[String], env: &[(String, String)]) -> Result<(), Refusal> {
        let words: Vec<String> = std::iter::once(program).chain(args.iter().map(String::as_str)).map(quoted).collect();
        self.judge(&words.join(" "))?;
        env.iter().try_for_each(|(name, value)| self.judge_variable(name, value))
    }

    fn judge_variable(&self, name: &str, value: &str) -> Result<(), Refusal> {
        // An exported function of bash.
        if let Some(body) = value.strip_prefix("() {").filter(|_| name.starts_with("BASH_FUNC_")) {
            return self.judge(&format!("exported_function() {{{body}"));
        }
        if RUN.contains(&name) || COMMANDS.contains(&name) {
            return self.judge(value.trim_start_matches('|'));
        }
        if !EXPANDED.contains(&name) {
            return Ok(());
        }
        // Only what is substituted is run; a file of that name is not looked at.
        let substituted = value.contains("$(") || value.contains('`');
        if substituted { self.judge(&format!(": \"{}\"", value.replace('"', "\\\""))) } else { Ok(()) }
    }
}

/// A word that a shell takes as it is.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(words: &[&str], env: &[(&str, &str)]) -> Option<String> {
        let args: Vec<String> = words[1..].iter().map(|word| (*word).to_owned()).collect();
        let env: Vec<_> = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Policy::default().judge_program(words[0], &args, &env).err().map(|refusal| refusal.rule)
    }

    #[test]
    fn a_program_is_judged_with_its_arguments() {
        for (words, expected) in [
            (&["/bin/bash"][..], None),
            (&["bash", "-l"], None),
            (&["bash", "-c", "rm -rf /"], Some("remove-root")),
            (&["sh", "-ec", "cd /tmp && reboot"], Some("power-off")),
            (&["rm", "-rf", "/"], Some("remove-root")),
            (&["/sbin/reboot"], Some("power-off")),
            (&["env", "X=1", "bash", "-c", "reboot"], Some("power-off")),
            (&["python3", "-c", "import os; os.system('reboot')"], Some("power-off")),
            (&["fish", "-C", "reboot"], Some("power-off")),
            // Nothing is expanded here: these are words.
            (&["echo", "$(reboot)"], None),
            (&["echo", "a; reboot"], None),
            (&["grep", "rm -rf /", "notes"], None),
            (&["git", "commit", "-m", "it's `reboot`"], None),
        ] {
            assert_eq!(judged(words, &[]).as_deref(), expected, "{words:?}");
        }
    }

    #[test]
    fn variables_that_carry_code_are_judged() {
        for (name, value, expected) in [
            ("PROMPT_COMMAND", "reboot", Some("power-off")),
            ("PROMPT_COMMAND", "history -a; rm -rf ~", Some("remove-home")),
            ("PROMPT_COMMAND", "history -a", None),
            ("BASH_ENV", "$(reboot)", Some("power-off")),
            ("BASH_ENV", "/etc/profile", None),
            ("ENV", "`reboot`", Some("power-off")),
            ("PS1", "\\u \"$(reboot)\" $ ", Some("power-off")),
            ("PS1", "$(git branch --show-current) \\$ ", None),
            ("PS1", "reboot $ ", None),
            ("PS0", "$(rm -rf /)", Some("remove-root")),
            ("PAGER", "rm -rf /", Some("remove-root")),
            ("PAGER", "less -R", None),
            ("LESSOPEN", "| /usr/bin/lesspipe %s", None),
            ("LESSOPEN", "|reboot", Some("power-off")),
            ("BASH_FUNC_ls%%", "() {  reboot\n}", Some("power-off")),
            ("BASH_FUNC_ls%%", "() {  command ls -la\n}", None),
            ("TITLE", "rm -rf /", None),
        ] {
            assert_eq!(judged(&["bash"], &[(name, value)]).as_deref(), expected, "{name}={value}");
        }
    }
}
