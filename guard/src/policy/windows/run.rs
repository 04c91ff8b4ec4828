//! Commands of `cmd` and PowerShell that run another command, remove something, or hand something to the next command.

use super::super::Verdict;
use super::super::decode::utf16_base64;
use super::super::table::{BACKUPS, DOWNLOAD_RUN, REMOVE_DRIVE};
use super::rows::Call;
use super::words::{commands, is_known, is_start_switch, is_tree};
use super::{Piped, Reader, registry};

const QUOTES: [char; 2] = ['"', '\''];

/// `set name=value`.
pub(super) fn set(reader: &mut Reader<'_, '_>, call: &Call<'_>, _: &mut Piped) -> Verdict<()> {
    if let Some((key, value)) = call.rest.trim_start_matches("/a ").split_once('=') {
        let value = value.trim().trim_matches('"').to_owned();
        reader.vars.insert(key.trim().trim_matches('"').to_lowercase(), value);
    }
    Ok(())
}

/// `call`, `do`, `runas`: the command behind the switches.
pub(super) fn inner(reader: &mut Reader<'_, '_>, call: &Call<'_>, piped: &mut Piped) -> Verdict<()> {
    let inner: Vec<String> = call.arguments.iter().skip_while(|word| word.starts_with(['/', '-'])).cloned().collect();
    match inner.as_slice() {
        [only] if only.contains(' ') => reader.text(only),
        inner => reader.command(inner, piped),
    }
}

/// `start /b program`, `Start-Process program -ArgumentList a, b`.
pub(super) fn start(reader: &mut Reader<'_, '_>, call: &Call<'_>, _: &mut Piped) -> Verdict<()> {
    let is_option = |word: &&String| word.starts_with('-') && word.len() > 2 || is_start_switch(word);
    let words = call.arguments.iter().filter(|word| !is_option(word));
    let words: Vec<&str> = words.map(|word| word.trim_matches([',', '\'', '"'])).collect();
    reader.text(&words.join(" ").replace(", ", " ").replace(',', " "))
}

/// `if exist x command`.
pub(super) fn condition(reader: &mut Reader<'_, '_>, call: &Call<'_>, piped: &mut Piped) -> Verdict<()> {
    let at = call.arguments.iter().position(|word| is_known(&word.to_lowercase()));
    at.map_or(Ok(()), |at| reader.command(&call.arguments[at..], piped))
}

/// `for %p in (set) do command`: the set is what the command is given.
pub(super) fn loop_over(reader: &mut Reader<'_, '_>, call: &Call<'_>, _: &mut Piped) -> Verdict<()> {
    let variable = call.arguments.iter().find(|word| word.starts_with('%'));
    let set = call.rest.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    let (Some(variable), Some((set, after))) = (variable, set) else { return Ok(()) };
    let line = after.trim().trim_start_matches("do ").replace(variable.as_str(), set);
    reader.text(&line)
}

/// `cmd /c line`.
pub(super) fn cmd(reader: &mut Reader<'_, '_>, call: &Call<'_>, _: &mut Piped) -> Verdict<()> {
    let runs = |word: &String| {
        let switch = word.get(..2).map(str::to_lowercase);
        matches!(switch.as_deref(), Some("/c" | "/k" | "/r"))
    };
    let Some(at) = call.arguments.iter().position(runs) else { return Ok(()) };
    let line = format!("{} {}", &call.arguments[at][2..], call.arguments[at + 1..].join(" "));
    reader.text(line.trim().trim_matches('"'))
}

/// Names of options of PowerShell that take a value; they may be cut short.
const POWERSHELL_OPTIONS: [&str; 9] =
    ["executionpolicy", "ep", "ex", "windowstyle", "w", "version", "inputformat", "outputformat", "configurationname"];

/// `powershell -EncodedCommand …`, `pwsh -c line`.
pub(super) fn powershell(reader: &mut Reader<'_, '_>, call: &Call<'_>, _: &mut Piped) -> Verdict<()> {
    let arguments = call.arguments;
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        let option = argument.to_lowercase().replace('/', "-");
        let Some(option) = option.strip_prefix('-') else { break };
        at += 1;
        if option == "e" || option == "ec" || option.len() > 1 && "encodedcommand".starts_with(option) {
            let text = arguments.get(at).and_then(|text| utf16_base64(text));
            return text.map_or(Ok(()), |text| reader.both(&text));
        }
        if !option.is_empty() && "command".starts_with(option) {
            break;
        }
        if "file".starts_with(option) {
            return Ok(());
        }
        let takes = |name: &str| name == option || option.len() > 1 && name.starts_with(option);
        at += usize::from(POWERSHELL_OPTIONS.iter().any(|name| takes(name)));
    }
    let text = arguments.get(at..).unwrap_or_default().join(" ");
    reader.both(text.trim_matches(['"', '\'', '{', '}', '&', ' ']))
}

/// `iex text`.
pub(super) fn expression(reader: &mut Reader<'_, '_>, call: &Call<'_>, piped: &mut Piped) -> Verdict<()> {
    let is_download = *piped == Piped::Download || fetches(&call.rest);
    if is_download && reader.judge.rules.blocks_downloads() {
        return Err(call.violation(&DOWNLOAD_RUN));
    }
    reader.both(call.rest.trim_matches(['(', ')', '"', '\'']))
}

/// The text of an expression fetches something.
fn fetches(text: &str) -> bool {
    const WORDS: [&str; 6] = ["downloadstring", "invoke-webrequest", "invoke-restmethod", "iwr ", "irm ", "curl "];
    let folded = text.to_lowercase();
    WORDS.iter().any(|word| folded.contains(word))
}

/// `schtasks /tr line`, `forfiles /p folder /c line`.
pub(super) fn task(reader: &mut Reader<'_, '_>, call: &Call<'_>, _: &mut Piped) -> Verdict<()> {
    let Some(line) = call.value(&["/tr", "/c"]) else { return Ok(()) };
    // A file of the folder, whichever its pattern lets through.
    let mask = call.value(&["/m"]).unwrap_or("*");
    let folder = call.value(&["/p"]).map(|folder| folder.trim_end_matches('\\'));
    let file = folder.map_or("x".to_owned(), |folder| format!("{folder}\\{mask}"));
    reader.text(&line.trim_matches('"').replace("@path", &file).replace("@file", &file))
}

/// `wmic process call create line`.
pub(super) fn created(reader: &mut Reader<'_, '_>, call: &Call<'_>, _: &mut Piped) -> Verdict<()> {
    let folded = call.rest.to_lowercase();
    let line = folded.split_once("call create ").map_or("", |(_, line)| line);
    reader.text(line.trim_matches(QUOTES))
}

/// `ForEach-Object { command }`.
pub(super) fn block(reader: &mut Reader<'_, '_>, call: &Call<'_>, piped: &mut Piped) -> Verdict<()> {
    if let Some(at) = call.rest.find(['{', '(']) {
        let inside = call.rest[at + 1..].trim_end_matches(['}', ')']).to_owned();
        for command in commands(&inside) {
            let words: Vec<String> = command.words.iter().map(|word| reader.expand(word)).collect();
            reader.command(&words, &mut piped.clone())?;
        }
    }
    let deletes = *piped != Piped::Nothing && call.rest.to_lowercase().contains(".delete(");
    if deletes { Err(call.violation(&REMOVE_DRIVE)) } else { Ok(()) }
}

pub(super) fn download(_: &mut Reader<'_, '_>, _: &Call<'_>, piped: &mut Piped) -> Verdict<()> {
    *piped = Piped::Download;
    Ok(())
}

pub(super) fn backups(_: &mut Reader<'_, '_>, _: &Call<'_>, piped: &mut Piped) -> Verdict<()> {
    *piped = Piped::Backups;
    Ok(())
}

/// `Get-ChildItem C:\`.
pub(super) fn list(_: &mut Reader<'_, '_>, call: &Call<'_>, piped: &mut Piped) -> Verdict<()> {
    let is_narrow = call.has(&["-filter", "-include", "-name"]);
    *piped = if call.has_tree() && !is_narrow { Piped::Tree } else { Piped::Nothing };
    Ok(())
}

/// `del`.
pub(super) fn delete(_: &mut Reader<'_, '_>, call: &Call<'_>, piped: &mut Piped) -> Verdict<()> {
    let is_recursive = call.has(&["/s"]) || call.arguments.iter().any(|a| a.to_lowercase().starts_with("-r"));
    let is_everything = is_recursive && call.has(&["*", "*.*", ".\\*", ".\\*.*"]);
    if is_everything || gets_tree(*piped) || call.has_tree() {
        return Err(call.violation(&REMOVE_DRIVE));
    }
    registry::removed_item(call)
}

/// `rd`, `Remove-Item` and the like.
pub(super) fn remove(_: &mut Reader<'_, '_>, call: &Call<'_>, piped: &mut Piped) -> Verdict<()> {
    registry::removed_item(call)?;
    // What `rm` and `rmdir` mean with other paths is for the other reader to say.
    let is_ours = |a: &&String| !matches!(call.name, "rm" | "rmdir") || a.contains(['\\', ':']);
    let has_tree = call.arguments.iter().filter(is_ours).any(|a| is_tree(a));
    if has_tree || gets_tree(*piped) { Err(call.violation(&REMOVE_DRIVE)) } else { Ok(()) }
}

fn gets_tree(piped: Piped) -> bool {
    matches!(piped, Piped::Tree | Piped::Backups)
}

/// `Remove-WmiObject` behind a list of shadow copies.
pub(super) fn remove_backups(_: &mut Reader<'_, '_>, call: &Call<'_>, piped: &mut Piped) -> Verdict<()> {
    let is_meant = call.rest.to_lowercase().contains("shadow") || *piped == Piped::Backups;
    if is_meant { Err(call.violation(&BACKUPS)) } else { Ok(()) }
}

/// Judges a command by the table of the other shells, its paths in their form.
pub(super) fn posix(reader: &mut Reader<'_, '_>, call: &Call<'_>, _: &mut Piped) -> Verdict<()> {
    let arguments: Vec<String> = call.arguments.iter().map(|a| a.replace('\\', "/")).collect();
    let name = if call.name == "notepad" { "cat" } else { call.name };
    reader.judge.vector(name, &arguments)
}

impl Reader<'_, '_> {
    /// A text for PowerShell, whose aliases are names of POSIX commands.
    fn both(&mut self, text: &str) -> Verdict<()> {
        self.text(text)?;
        let is_posix = !text.contains('\\');
        if is_posix { self.judge.text(text, None).map(|_| ()) } else { Ok(()) }
    }
}
