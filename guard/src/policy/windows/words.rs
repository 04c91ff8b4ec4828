//! Words and paths of `cmd` and PowerShell: where a command ends, what a caret hides, which folder is which.

use super::super::targets::is_everything;

/// A command with what was piped into it.
#[derive(Debug, Default)]
pub(super) struct Command {
    pub(super) words: Vec<String>,
    pub(super) is_piped: bool,
}

/// The names of commands that may follow a condition.
pub(super) fn is_known(name: &str) -> bool {
    matches!(
        name,
        "del"
            | "erase"
            | "rd"
            | "rmdir"
            | "format"
            | "shutdown"
            | "reg"
            | "cmd"
            | "powershell"
            | "start"
            | "call"
            | "remove-item"
    )
}

pub(super) fn is_start_switch(word: &str) -> bool {
    matches!(
        word.to_lowercase().as_str(),
        "/b" | "/wait" | "/min" | "/max" | "\"\"" | "/high" | "/low" | "/realtime" | "/d"
    )
}

pub(super) fn is_drive(word: &str) -> bool {
    let word = word.trim_matches('"').as_bytes();
    matches!(word, [letter, b':'] | [letter, b':', b'\\' | b'/'] if letter.is_ascii_alphabetic())
}

/// `HKEY_LOCAL_MACHINE` and `HKLM:` in one form.
pub(super) fn hive(key: &str) -> String {
    let key = key.trim_matches(['"', '\'']).to_lowercase().replace('/', "\\").replace(":\\", "\\");
    let key = key.strip_suffix(':').map_or(key.clone(), str::to_owned);
    [
        ("hkey_local_machine", "hklm"),
        ("hkey_current_user", "hkcu"),
        ("hkey_classes_root", "hkcr"),
        ("hkey_users", "hku"),
        ("hkey_current_config", "hkcc"),
    ]
    .into_iter()
    .fold(key, |key, (long, short)| key.replace(long, short))
}

/// A drive, a home, or a folder that Windows lives in; also as an item of a list.
pub(super) fn is_tree(target: &str) -> bool {
    target.split(',').any(|target| {
        let target = target.trim_matches(['"', '\'', '(', ')', ' ']).replace('\\', "/").to_lowercase();
        let target = target.trim_start_matches("//?/");
        let bytes = target.as_bytes();
        let (has_drive, rest) = match bytes {
            [letter, b':', ..] if letter.is_ascii_alphabetic() => (true, &target[2..]),
            _ => (false, target),
        };
        // Without a drive only what begins at its root, and a switch begins the same way.
        let is_switch = rest.len() == 2 && rest.as_bytes()[1].is_ascii_alphanumeric();
        let is_rooted = rest.starts_with('/') && (has_drive || !is_switch) || has_drive && rest.is_empty();
        let mut names: Vec<&str> = Vec::new();
        for name in rest.split('/') {
            match name {
                "" | "." => {}
                ".." => {
                    names.pop();
                }
                name => names.push(name),
            }
        }
        let was_everything = names.last().is_some_and(|name| is_everything(name));
        while names.last().is_some_and(|name| is_everything(name)) {
            names.pop();
        }
        match names.as_slice() {
            _ if !is_rooted => false,
            [] => has_drive || target == "/" || was_everything,
            _ if !has_drive && !matches!(names[0], "windows" | "users" | "program files") => false,
            [
                "windows"
                | "users"
                | "program files"
                | "program files (x86)"
                | "programdata"
                | "boot"
                | "recovery"
                | "documents and settings",
            ] => true,
            ["system volume information", ..] | ["users", _] => true,
            ["windows", "system32" | "syswow64" | "system" | "winsxs" | "boot" | "fonts"] => true,
            ["windows", "system32", "config" | "drivers"] => true,
            _ => false,
        }
    })
}

/// Cuts a text into commands and their words.
pub(super) fn commands(text: &str) -> Vec<Command> {
    let text = text.replace("'+'", "").replace("\"+\"", "").replace("' + '", "").replace("\" + \"", "");
    let (mut all, mut now, mut word) = (Vec::new(), Command::default(), String::new());
    let mut quote: Option<char> = None;
    // Brackets of a construct whose inside is read with it.
    let mut nested = 0_usize;
    let mut chars = text.chars().peekable();
    let end_word = |now: &mut Command, word: &mut String| {
        if !word.is_empty() {
            now.words.push(std::mem::take(word));
        }
    };
    while let Some(c) = chars.next() {
        match c {
            _ if quote == Some(c) => quote = None,
            _ if quote.is_some() => word.push(c),
            '"' | '\'' => quote = Some(c),
            '^' => word.extend(chars.next().filter(|c| !matches!(c, '\r' | '\n'))),
            '`' => {
                if let Some(next) = chars.next() {
                    word.push(next);
                }
            }
            '(' | '{' if holds(&now, &word) || nested > 0 => {
                nested += 1;
                word.push(c);
            }
            ')' | '}' if nested > 0 => {
                nested -= 1;
                word.push(c);
                if nested == 0 && !matches!(now.words.first().map(String::as_str), Some("for" | "FOR" | "For")) {
                    end_word(&mut now, &mut word);
                }
            }
            '&' | '|' | ';' | '\n' if nested == 0 => {
                end_word(&mut now, &mut word);
                let is_pipe = c == '|' && chars.peek() != Some(&'|');
                while chars.peek() == Some(&c) {
                    chars.next();
                }
                if !now.words.is_empty() {
                    all.push(std::mem::take(&mut now));
                }
                now.is_piped = is_pipe;
            }
            '(' | '{' if now.words.is_empty() && word.is_empty() => {}
            ')' | '}' if now.words.is_empty() => {}
            ' ' | '\t' | '\r' => end_word(&mut now, &mut word),
            '=' if now.words.is_empty() && word.starts_with('$') => {
                end_word(&mut now, &mut word);
                now.words.push("=".to_owned());
            }
            _ => word.push(c),
        }
    }
    end_word(&mut now, &mut word);
    if !now.words.is_empty() {
        all.push(now);
    }
    all
}

/// The command takes a bracket as its argument.
fn holds(now: &Command, word: &str) -> bool {
    let first = now.words.first().map_or(word, String::as_str).to_lowercase();
    matches!(
        first.as_str(),
        "for"
            | "invoke-command"
            | "icm"
            | "start-job"
            | "foreach"
            | "foreach-object"
            | "%"
            | "where-object"
            | "where"
            | "?"
            | "iex"
            | "invoke-expression"
            | "powershell"
            | "pwsh"
    ) || first.starts_with('[')
}
