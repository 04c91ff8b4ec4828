//! The same categories in the words of `cmd` and PowerShell, by a tokenizer of their own.
//!
//! Which shell a session runs is not always known, so a line is read both ways. Names here are either those that no
//! POSIX system has, or are looked at only with arguments that no POSIX system would have (`C:\`, `/s`, `%VAR%`).

use std::collections::HashMap;

use super::Verdict;
use super::decode::utf16_base64;
use super::judge::{Judge, Violation, base_name, is_shell};
use super::table::*;
use super::windows_words::{commands, hive, is_drive, is_known, is_start_switch, is_tree};
use super::words::HOME;

/// Lines inside of lines that are read.
const DEEPEST: usize = 6;
/// Longer text is no line of these shells.
const LONGEST_BYTES: usize = 32 << 10;

/// Judges a line as these shells would read it.
pub(super) fn judge(judge: &mut Judge<'_>, text: &str) -> Verdict<()> {
    Reader { judge, vars: HashMap::new(), depth: 0 }.text(text)
}

struct Reader<'a, 'p> {
    judge: &'a mut Judge<'p>,
    vars: HashMap<String, String>,
    depth: usize,
}

impl Reader<'_, '_> {
    fn text(&mut self, text: &str) -> Verdict<()> {
        // Neither shell has here-documents; what stands in one is data, and the other reader looks at who reads it.
        if text.len() > LONGEST_BYTES || text.trim().is_empty() || text.contains("<<") {
            return Ok(());
        }
        self.judge.step(text.len())?;
        if self.depth >= DEEPEST {
            return Err(Violation::new(&TOO_DEEP, "", &[]));
        }
        let compact: String = text.chars().filter(|c| !c.is_whitespace()).take(64).collect();
        if compact.starts_with("%0|%0") || compact.contains("start%0&goto") {
            return Err(Violation::new(&FORK_BOMB, "%0", &[]));
        }
        self.depth += 1;
        let mut listed: Option<String> = None;
        for command in commands(text) {
            let words: Vec<String> = command.words.iter().map(|word| self.expand(word)).collect();
            if !command.is_piped {
                listed = None;
            }
            let depth = self.depth;
            match self.command(&words, &mut listed, &command.words) {
                // What is switched off must not hide the next command.
                Err(found) if self.judge.is_off(&found) => self.depth = depth,
                judged => judged?,
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn command(&mut self, words: &[String], listed: &mut Option<String>, raw: &[String]) -> Verdict<()> {
        let Some((first, arguments)) = words.split_first() else { return Ok(()) };
        let first = first.trim_start_matches(['@', '&', '.']).trim_matches(['"', '\'', '(']);
        if first.is_empty() {
            return self.command(arguments, listed, raw.get(1..).unwrap_or_default());
        }
        // `$x = 'text'` and `set x=text`.
        if let Some(name) = first.strip_prefix('$').filter(|_| arguments.first().is_some_and(|word| word == "=")) {
            self.vars.insert(name.to_lowercase(), arguments[1..].join(" ").trim_matches(['"', '\'']).to_owned());
            return Ok(());
        }
        let glued = first.find('/').filter(|at| *at > 0 && !first[..*at].contains(['\\', ':', '.', '-']));
        let (first, more) = glued.map_or((first, ""), |at| first.split_at(at));
        let switches = more.split('/').filter(|switch| !switch.is_empty()).map(|switch| format!("/{switch}"));
        let arguments: Vec<String> = switches.chain(arguments.iter().cloned()).collect();
        let name = base_name(&first.replace('\\', "/")).to_lowercase();
        let rest = arguments.join(" ");
        let is =
            |wanted: &[&str]| arguments.iter().any(|argument| wanted.iter().any(|w| argument.eq_ignore_ascii_case(w)));
        let refuse = |rule: &'static Rule| Err(Violation::new(rule, &name, &arguments));
        match name.as_str() {
            "set" => {
                if let Some((key, value)) = rest.trim_start_matches("/a ").split_once('=') {
                    self.vars
                        .insert(key.trim().trim_matches('"').to_lowercase(), value.trim().trim_matches('"').to_owned());
                }
            }
            "call" | "do" | "else" | "runas" | "then" | "gsudo" | "sudo" => {
                let inner: Vec<String> =
                    arguments.iter().skip_while(|word| word.starts_with(['/', '-'])).cloned().collect();
                match inner.as_slice() {
                    [only] if only.contains(' ') => return self.text(only),
                    inner => return self.command(inner, listed, raw),
                }
            }
            "start" | "start-process" | "saps" => {
                let inner: Vec<String> = arguments
                    .iter()
                    .filter(|word| !(word.starts_with('-') && word.len() > 2 || is_start_switch(word)))
                    .map(|word| word.trim_matches([',', '\'', '"']).to_owned())
                    .collect();
                let inner = inner.join(" ").replace(", ", " ").replace(',', " ");
                return self.text(&inner);
            }
            "if" => {
                let at = arguments.iter().position(|word| is_known(&word.to_lowercase()));
                return at.map_or(Ok(()), |at| self.command(&arguments[at..], listed, raw));
            }
            "for" => {
                // `for %p in (set) do command`: the set is what the command is given.
                let variable = arguments.iter().find(|word| word.starts_with('%'));
                let set = rest.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
                if let (Some(variable), Some((set, after))) = (variable, set) {
                    let with = after.trim().trim_start_matches("do ").replace(variable.as_str(), set);
                    return self.text(&with);
                }
            }
            "cmd" => {
                let at = arguments.iter().position(|word| {
                    word.get(..2).is_some_and(|switch| matches!(switch.to_lowercase().as_str(), "/c" | "/k" | "/r"))
                });
                if let Some(at) = at {
                    let inner = format!("{} {}", &arguments[at][2..], arguments[at + 1..].join(" "));
                    return self.text(inner.trim().trim_matches('"'));
                }
            }
            "powershell" | "pwsh" => return self.powershell(&arguments),
            "invoke-expression" | "iex"
                if self.judge.rules.blocks_downloads()
                    && (listed.as_deref() == Some("download") || is_download(&rest)) =>
            {
                return refuse(&DOWNLOAD_RUN);
            }
            "invoke-webrequest" | "iwr" | "invoke-restmethod" | "irm" => *listed = Some("download".to_owned()),
            "invoke-expression" | "iex" => return self.both(rest.trim_matches(['(', ')', '"', '\''])),
            "wmic" => {
                let folded = rest.to_lowercase();
                if folded.contains("shadowcopy") && folded.contains("delete") {
                    return refuse(&BACKUPS);
                }
                if folded.contains("os ")
                    && ["shutdown", "reboot", "win32shutdown"].iter().any(|word| folded.contains(word))
                {
                    return refuse(&POWER);
                }
                if let Some((_, inner)) = folded.split_once("call create ") {
                    return self.text(inner.trim_matches(['"', '\'']));
                }
            }
            "schtasks" | "forfiles" => {
                let at = arguments.iter().position(|word| matches!(word.to_lowercase().as_str(), "/tr" | "/c"));
                if let Some(inner) = at.and_then(|at| arguments.get(at + 1)) {
                    let from = arguments
                        .iter()
                        .position(|word| word.eq_ignore_ascii_case("/p"))
                        .and_then(|at| arguments.get(at + 1));
                    // A file of the folder, whichever its pattern lets through.
                    let mask = arguments
                        .iter()
                        .position(|word| word.eq_ignore_ascii_case("/m"))
                        .and_then(|at| arguments.get(at + 1))
                        .map_or("*", String::as_str);
                    let file = from.map_or("x".to_owned(), |from| format!("{}\\{mask}", from.trim_end_matches('\\')));
                    let inner = inner.trim_matches('"').replace("@path", &file).replace("@file", &file);
                    return self.text(&inner);
                }
            }
            "del" | "erase" => {
                let recursive = is(&["/s"]) || arguments.iter().any(|a| a.to_lowercase().starts_with("-r"));
                let everything =
                    recursive && arguments.iter().any(|a| matches!(a.as_str(), "*" | "*.*" | ".\\*" | ".\\*.*"));
                let is_listed = listed.as_deref().is_some_and(|listed| listed != "download");
                if everything || is_listed || arguments.iter().any(|a| is_tree(a)) {
                    return refuse(&REMOVE_DRIVE);
                }
                self.registry_item(&name, &arguments)?;
            }
            "rd"
            | "rmdir"
            | "remove-item"
            | "remove-itemproperty"
            | "ri"
            | "rm"
            | "deltree"
            | "sdelete"
            | "sdelete64" => {
                self.registry_item(&name, &arguments)?;
                // What `rm` and `rmdir` mean with other paths is for the other reader to say.
                let is_ours = |a: &&String| !matches!(name.as_str(), "rm" | "rmdir") || a.contains(['\\', ':']);
                if arguments.iter().filter(is_ours).any(|a| is_tree(a))
                    || listed.as_deref().is_some_and(|listed| listed != "download")
                {
                    return refuse(&REMOVE_DRIVE);
                }
            }
            "get-childitem" | "gci" | "dir" | "ls" | "get-item" | "gi" => {
                let narrows =
                    arguments.iter().any(|a| matches!(a.to_lowercase().as_str(), "-filter" | "-include" | "-name"));
                *listed = arguments.iter().find(|a| is_tree(a)).filter(|_| !narrows).cloned();
            }
            "invoke-command" | "icm" | "start-job" | "measure-command" | "foreach-object" | "foreach" | "%"
            | "where-object" | "where" | "?" | "sort-object" | "select-object" => {
                if let Some(at) = rest.find(['{', '(']) {
                    let inner = rest[at + 1..].trim_end_matches(['}', ')']).to_owned();
                    for command in commands(&inner) {
                        let mut listed = listed.clone();
                        let words: Vec<String> = command.words.iter().map(|word| self.expand(word)).collect();
                        self.command(&words, &mut listed, &command.words)?;
                    }
                }
                if listed.is_some() && rest.to_lowercase().contains(".delete(") {
                    return refuse(&REMOVE_DRIVE);
                }
            }
            "robocopy" if is(&["/mir", "/purge"]) && arguments.get(1).is_some_and(|to| is_tree(to)) => {
                return refuse(&REMOVE_DRIVE);
            }
            "format" if arguments.iter().any(|a| is_drive(a)) => return refuse(&DISK_FORMAT),
            "format-volume" | "clear-disk" | "initialize-disk" | "reset-physicaldisk" => return refuse(&DISK_FORMAT),
            "diskpart" | "remove-partition" | "new-partition" | "resize-partition" | "set-disk" | "set-partition" => {
                if !is(&["/?"]) {
                    return refuse(&DISK_PARTITION);
                }
            }
            "mountvol" if is(&["/d"]) => return refuse(&DISK_PARTITION),
            "cipher" if arguments.iter().any(|a| a.to_lowercase().starts_with("/w")) => return refuse(&DISK_ERASE),
            "shutdown" => {
                let stops = ["/s", "/r", "/p", "/h", "/g", "/sg", "/o", "/hybrid", "/fw", "-s", "-r", "-p", "-h", "-g"];
                let helps = ["/a", "-a", "/?", "-?", "-c", "-k"];
                if is(&stops) && !is(&helps) {
                    return refuse(&POWER);
                }
            }
            "stop-computer" | "restart-computer" => return refuse(&POWER),
            "psshutdown" | "psshutdown64" if !is(&["-a", "/?", "-?"]) => return refuse(&POWER),
            "reg" => self.registry(&arguments)?,
            "vssadmin" if is(&["delete", "resize"]) => return refuse(&BACKUPS),
            "wbadmin" if is(&["delete"]) || is(&["disable"]) => return refuse(&BACKUPS),
            "remove-wmiobject" | "remove-ciminstance" | "rwmi" | "rcim" => {
                if raw.iter().any(|word| word.to_lowercase().contains("shadow")) || listed.as_deref() == Some("shadow")
                {
                    return refuse(&BACKUPS);
                }
            }
            "get-wmiobject" | "gwmi" | "get-ciminstance" | "gcim" => {
                let folded = rest.to_lowercase();
                if folded.contains("shadowcopy") {
                    *listed = Some("shadow".to_owned());
                }
                if folded.contains("shadowcopy") && folded.contains(".delete(") {
                    return refuse(&BACKUPS);
                }
                if folded.contains("win32shutdown(") {
                    return refuse(&POWER);
                }
            }
            "bcdedit" => {
                let looks = arguments.is_empty() || is(&["/enum", "/?", "/v", "/export", "-enum"]);
                if !looks {
                    return refuse(&BOOT_SETTINGS);
                }
            }
            "bootsect" | "bootrec" | "reagentc" if is(&["/nt60", "/nt52", "/fixmbr", "/mbr", "/disable"]) => {
                return refuse(&BOOT_SETTINGS);
            }
            "takeown" | "icacls" | "cacls" | "xcacls" => {
                let deep = is(&["/r", "/t"]);
                if deep && arguments.iter().any(|a| is_tree(a)) {
                    return refuse(&TREE_RIGHTS);
                }
            }
            "type" | "get-content" | "gc" | "copy" | "copy-item" | "cpi" | "xcopy" | "certutil" | "select-string"
            | "sls" | "findstr" | "procdump" | "procdump64" | "rundll32" | "ntdsutil" | "compress-archive"
            | "esentutl" | "mimikatz" | "lazagne" | "vaultcmd" | "invoke-mimikatz" | "sekurlsa" => {
                let plain: Vec<String> = arguments.iter().map(|a| a.replace('\\', "/")).collect();
                self.judge.vector(&name, &plain)?;
            }
            "cat" | "more" | "cp" | "less" | "scp" | "curl" | "tar" | "7z" | "base64" | "notepad"
                if rest.contains('\\') =>
            {
                let plain: Vec<String> = arguments.iter().map(|a| a.replace('\\', "/")).collect();
                self.judge.vector(if name == "notepad" { "cat" } else { &name }, &plain)?;
            }
            "bash" | "wsl" | "sh" if is_shell(&name) || name == "wsl" => {
                // A POSIX shell inside is read by the other reader, which has seen the line as well.
            }
            _ => {}
        }
        if name.starts_with("sekurlsa::") || name.starts_with("lsadump::") {
            return refuse(&PASSWORDS);
        }
        self.methods(&format!("{first} {rest}"))
    }

    /// Calls of .NET methods that remove or stop.
    fn methods(&mut self, text: &str) -> Verdict<()> {
        let folded = text.to_lowercase();
        if folded.starts_with('[') && folded.contains("directory]::delete(") {
            let target = text.split(['(', ',', ')']).nth(1).unwrap_or("").trim().trim_matches(['"', '\'']);
            if is_tree(target) {
                return Err(Violation::new(&REMOVE_DRIVE, text, &[]));
            }
        }
        if folded.starts_with('[') && folded.contains("file]::readall") {
            let target =
                text.split(['(', ')']).nth(1).unwrap_or("").trim().trim_matches(['"', '\'']).replace('\\', "/");
            self.judge.vector("cat", &[target])?;
        }
        if folded.starts_with("(get-wmiobject") && folded.contains("shutdown") {
            return Err(Violation::new(&POWER, text, &[]));
        }
        Ok(())
    }

    fn registry(&mut self, arguments: &[String]) -> Verdict<()> {
        let verb = arguments.first().map_or(String::new(), |verb| verb.to_lowercase());
        let key = arguments.get(1).map_or(String::new(), |key| hive(key));
        let parts: Vec<&str> = key.split('\\').filter(|part| !part.is_empty()).collect();
        let is_machine = parts.first().is_some_and(|hive| hive != &"hkcu");
        let is_vault = parts.len() > 1 && parts[0] == "hklm" && matches!(parts[1], "sam" | "security");
        let is_loot = is_vault || parts.as_slice() == ["hklm", "system"] || parts.len() == 1;
        let rule = match verb.as_str() {
            "query" if is_vault => &PASSWORDS,
            "save" | "export" if is_loot => &PASSWORDS,
            "delete" | "restore" | "unload" | "load" if is_machine || parts.len() <= 2 && verb == "delete" => &REGISTRY,
            "add" if is_vault || key.contains("\\winlogon") || key.contains("image file execution") => &REGISTRY,
            _ => return Ok(()),
        };
        Err(Violation::new(rule, "reg", arguments))
    }

    /// `Remove-Item HKLM:\…`.
    fn registry_item(&mut self, name: &str, arguments: &[String]) -> Verdict<()> {
        let is_hive = |argument: &String| {
            let key = hive(argument.trim_start_matches("Registry::").trim_start_matches("registry::"));
            let parts = key.split('\\').filter(|part| !part.is_empty()).count();
            ["hklm", "hkcr", "hku", "hkcc"].iter().any(|hive| key.starts_with(&format!("{hive}\\")) || key == *hive)
                || (key.starts_with("hkcu\\") || key == "hkcu") && parts <= 2
        };
        match arguments.iter().any(is_hive) {
            true => Err(Violation::new(&REGISTRY, name, arguments)),
            false => Ok(()),
        }
    }

    fn powershell(&mut self, arguments: &[String]) -> Verdict<()> {
        let mut at = 0;
        while let Some(argument) = arguments.get(at) {
            let option = argument.to_lowercase().replace('/', "-");
            let Some(option) = option.strip_prefix('-') else { break };
            at += 1;
            if option == "e" || option == "ec" || option.len() > 1 && "encodedcommand".starts_with(option) {
                let Some(text) = arguments.get(at).and_then(|text| utf16_base64(text)) else { return Ok(()) };
                return self.both(&text);
            }
            if !option.is_empty() && "command".starts_with(option) {
                break;
            }
            if "file".starts_with(option) {
                return Ok(());
            }
            let takes = [
                "executionpolicy",
                "ep",
                "ex",
                "windowstyle",
                "w",
                "version",
                "inputformat",
                "outputformat",
                "configurationname",
            ];
            at += usize::from(takes.iter().any(|name| *name == option || option.len() > 1 && name.starts_with(option)));
        }
        let text = arguments.get(at..).unwrap_or_default().join(" ");
        self.both(text.trim_matches(['"', '\'', '{', '}', '&', ' ']))
    }

    /// A text for PowerShell, whose aliases are names of POSIX commands.
    fn both(&mut self, text: &str) -> Verdict<()> {
        self.text(text)?;
        let is_posix = !text.contains('\\');
        if is_posix { self.judge.text(text, None).map(|_| ()) } else { Ok(()) }
    }

    /// Variables of either shell, where the line or Windows itself gives them a value.
    fn expand(&self, word: &str) -> String {
        if !word.contains(['%', '$', '~', '!']) {
            return word.to_owned();
        }
        let mut out = String::new();
        let mut rest = word;
        while let Some(at) = rest.find(['%', '$', '!']) {
            out.push_str(&rest[..at]);
            let mark = rest.as_bytes()[at];
            let after = &rest[at + 1..];
            let (name, tail) = match mark {
                b'$' => {
                    let braces = after.strip_prefix('{');
                    let body = braces.unwrap_or(after);
                    let end =
                        body.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | ':')).unwrap_or(body.len());
                    (
                        &body[..end],
                        if braces.is_some() { body[end..].strip_prefix('}').unwrap_or("") } else { &body[end..] },
                    )
                }
                mark => match after.split_once(mark as char) {
                    Some((name, tail)) if !name.is_empty() && !name.contains(' ') => (name, tail),
                    _ => {
                        out.push(mark as char);
                        rest = after;
                        continue;
                    }
                },
            };
            match self.variable(name) {
                Some(value) => out.push_str(&value),
                None => out.push_str(&rest[at..rest.len() - tail.len()]),
            }
            rest = tail;
        }
        out.push_str(rest);
        match out.strip_prefix('~') {
            Some(tail) if tail.is_empty() || tail.starts_with(['\\', '/']) => format!("C:\\Users\\{HOME}{tail}"),
            _ => out,
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        let folded = name.to_lowercase();
        let folded = folded.strip_prefix("env:").unwrap_or(&folded);
        let (name, cut) = folded.split_once(":~").map_or((folded, None), |(name, cut)| (name, Some(cut)));
        let value = match self.vars.get(name) {
            Some(value) => value.clone(),
            None => match name {
                "userprofile" | "home" => format!("C:\\Users\\{HOME}"),
                "homepath" => format!("\\Users\\{HOME}"),
                "systemroot" | "windir" => "C:\\Windows".to_owned(),
                "systemdrive" | "homedrive" => "C:".to_owned(),
                "programfiles" => "C:\\Program Files".to_owned(),
                "programdata" | "allusersprofile" => "C:\\ProgramData".to_owned(),
                "appdata" => format!("C:\\Users\\{HOME}\\AppData\\Roaming"),
                "localappdata" => format!("C:\\Users\\{HOME}\\AppData\\Local"),
                "comspec" => "cmd".to_owned(),
                _ => return None,
            },
        };
        let Some(cut) = cut else { return Some(value) };
        let chars: Vec<char> = value.chars().collect();
        let mut numbers = cut.split(',').map(|number| number.trim().parse::<i64>().unwrap_or(0));
        let place = |number: i64| {
            if number < 0 {
                chars.len().saturating_sub(number.unsigned_abs() as usize)
            } else {
                (number as usize).min(chars.len())
            }
        };
        let from = place(numbers.next().unwrap_or(0));
        let to = match numbers.next() {
            Some(length) if length >= 0 => (from + length as usize).min(chars.len()),
            Some(length) => place(length).max(from),
            None => chars.len(),
        };
        Some(chars[from..to].iter().collect())
    }
}

/// The text of an expression fetches something.
fn is_download(text: &str) -> bool {
    let folded = text.to_lowercase();
    ["downloadstring", "invoke-webrequest", "invoke-restmethod", "iwr ", "irm ", "curl "]
        .iter()
        .any(|word| folded.contains(word))
}
