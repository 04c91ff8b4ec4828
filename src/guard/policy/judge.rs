//! Walks through a line as a shell would and refuses it at the first command that falls under a rule.
//!
//! Keeps what the line itself tells: variables, the directory, small files it writes, what flows through its pipes. It
//! runs nothing. Every loop is bounded: layers of wrappers, nesting of substitutions, and the text that is looked at.

use std::collections::HashMap;

use super::code;
use super::commands::NAMED;
use super::decode::{self, base64, glob_matches};
use super::lexer::Token;
use super::shell::{self, Script, Simple, Stage};
use super::table::*;
use super::targets::{Cwd, Path, clean};
use super::user_rules::UserRules;
use super::words::{HOME, UNKNOWN};
use super::wrappers::{self, Inner, is_assignment};
use super::{Hit, Verdict};

/// Wrappers around wrappers that are peeled.
const MOST_LAYERS: usize = 8;
/// Scripts inside of scripts that are read, by any way.
const DEEPEST_SCRIPT: usize = 16;
/// Bytes of words that are resolved for one line: many times what a person types.
const MOST_WORK: usize = 4 << 20;
/// Files that a line may write and run.
const MOST_FILES: usize = 32;

/// What a variable holds.
#[derive(Clone, Debug)]
pub(super) struct Value {
    /// One value, the elements of an array, or what a loop goes through.
    pub(super) items: Vec<String>,
    /// It is the variable of a loop.
    pub(super) is_each: bool,
}

/// What was refused.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) hit: Hit,
    pub(super) words: String,
}

impl Found {
    pub(super) fn new(rule: &'static Rule, name: &str, arguments: &[String]) -> Box<Self> {
        let words: Vec<&str> = std::iter::once(name).chain(arguments.iter().map(String::as_str)).take(16).collect();
        Box::new(Self { hit: Hit::Rule(rule), words: words.join(" ") })
    }
}

/// What flows into a command.
#[derive(Clone, Debug, Default)]
struct Flow {
    /// The text, where the line tells.
    text: Option<String>,
    /// It comes from the network.
    is_download: bool,
}

/// One line under judgement.
pub(super) struct Judge<'p> {
    pub(super) rules: &'p UserRules,
    pub(super) vars: HashMap<String, Value>,
    pub(super) cwd: Cwd,
    pub(super) is_prose: bool,
    aliases: HashMap<String, String>,
    files: HashMap<String, String>,
    depth: usize,
    layers: usize,
    work: usize,
}

impl<'p> Judge<'p> {
    pub(super) fn new(rules: &'p UserRules) -> Self {
        Self {
            rules,
            vars: HashMap::new(),
            cwd: Cwd::default(),
            is_prose: false,
            aliases: HashMap::new(),
            files: HashMap::new(),
            depth: 0,
            layers: 0,
            work: 0,
        }
    }

    /// Counts work; a line that needs too much is refused, not waved through.
    pub(super) fn step(&mut self, bytes: usize) -> Verdict<()> {
        self.work += bytes + 16;
        if self.work > MOST_WORK { Err(Found::new(&TOO_LONG, "", &[])) } else { Ok(()) }
    }

    /// Judges a text as a script; gives what it prints, where that can be told.
    pub(super) fn text(&mut self, text: &str, input: Option<&str>) -> Verdict<Option<String>> {
        self.step(text.len())?;
        if self.depth >= DEEPEST_SCRIPT {
            return Err(Found::new(&TOO_DEEP, "", &[]));
        }
        self.depth += 1;
        let flow = Flow { text: input.map(str::to_owned), is_download: false };
        let output = self.script(&shell::read(text), &flow)?;
        self.depth -= 1;
        Ok(output.text)
    }

    fn script(&mut self, script: &Script<'_>, input: &Flow) -> Verdict<Flow> {
        let mut all = Some(String::new());
        let mut is_download = false;
        for pipeline in &script.pipelines {
            let output = self.pipeline(pipeline, input)?;
            is_download |= output.is_download;
            all = match (all, output.text) {
                (Some(all), Some(text)) if all.len() < 1 << 16 => Some(all + &text),
                _ => None,
            };
        }
        Ok(Flow { text: all, is_download })
    }

    fn pipeline(&mut self, stages: &[Stage<'_>], input: &Flow) -> Verdict<Flow> {
        let mut flow = input.clone();
        for stage in stages {
            let next = self.stage(stage, &flow)?;
            // What a filter makes of a known text is not known; the text itself is the best there is.
            let text = match (&next.text, stages.len() > 1) {
                (None, true) => flow.text.take(),
                _ => next.text,
            };
            flow = Flow { text, is_download: next.is_download };
        }
        Ok(flow)
    }

    fn stage(&mut self, stage: &Stage<'_>, input: &Flow) -> Verdict<Flow> {
        match stage {
            Stage::Simple(simple) => self.simple(simple, input),
            Stage::Group { body, redirects, is_subshell } => {
                let (input, file) = self.redirects(redirects, input, "")?;
                let before = is_subshell.then(|| self.cwd.clone());
                let output = self.script(body, &input)?;
                self.write_file(file, output.text.as_deref());
                if let Some(cwd) = before {
                    self.cwd = cwd;
                }
                Ok(output)
            }
            Stage::Function { name, body } => {
                if calls(body, name) > 1 {
                    return Err(Found::new(&FORK_BOMB, name, &[]));
                }
                self.script(body, &Flow::default())?;
                Ok(Flow { text: Some(String::new()), is_download: false })
            }
        }
    }

    fn simple(&mut self, simple: &Simple<'_>, input: &Flow) -> Verdict<Flow> {
        let assignments = simple.words.iter().take_while(|word| is_assignment(word)).count();
        for word in &simple.words[..assignments] {
            self.assign(word)?;
        }
        let raw = &simple.words[assignments..];
        let mut words = Vec::new();
        for word in raw {
            words.extend(self.expand(word)?);
        }
        let first = words.first().cloned().unwrap_or_default();
        let (input, file) = self.redirects(&simple.redirects, input, &first)?;
        if words.is_empty() {
            let text = if assignments > 0 || file.is_some() { Some(String::new()) } else { input.text.clone() };
            self.write_file(file, text.as_deref());
            return Ok(Flow { text, is_download: false });
        }
        // A loop over commands runs each of them.
        let looped = raw[0].trim_matches('"').strip_prefix('$').and_then(|name| self.vars.get(name.trim_matches(['{', '}'])));
        if let Some(Value { items, is_each: true }) = looped
            && items.len() > 1
        {
            let rest = words.get(items.len()..).unwrap_or_default().to_vec();
            for item in items.clone() {
                let vector = item.split(' ').map(str::to_owned).chain(rest.iter().cloned()).collect();
                self.command(vector, &input)?;
            }
        }
        let output = self.command(words, &input)?;
        self.write_file(file, output.text.as_deref());
        Ok(output)
    }

    /// Follows redirections: what flows in, and the file that the output goes to.
    fn redirects(&mut self, redirects: &[Token<'_>], input: &Flow, name: &str) -> Verdict<(Flow, Option<String>)> {
        let (mut input, mut file) = (input.clone(), None);
        for redirect in redirects {
            match redirect {
                Token::HereDoc { body, is_quoted } => {
                    let text = if *is_quoted { (*body).to_owned() } else { self.expand_document(body)? };
                    input = Flow { text: Some(text), is_download: false };
                }
                Token::Redirect { operator: "<<<", target } => {
                    input = Flow { text: Some(self.expand_one(target)?), is_download: false };
                }
                Token::Redirect { operator, target } => {
                    let target = self.expand_one(target)?;
                    let path = clean(&target, &self.cwd);
                    let reads = operator.starts_with('<') && *operator != "<>";
                    let rule = if reads { path.secret() } else { path.write() };
                    if let Some(rule) = rule.filter(|rule| !self.rules.is_off(rule)) {
                        return Err(Found::new(rule, name, &[(*operator).to_owned(), target]));
                    }
                    if reads {
                        input = Flow { text: self.file(&target), is_download: false };
                    } else {
                        file = Some(target);
                    }
                }
                _ => {}
            }
        }
        Ok((input, file))
    }

    fn assign(&mut self, word: &str) -> Verdict<()> {
        let Some((name, raw)) = word.split_once('=') else { return Ok(()) };
        let (name, appends) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
        let name = name.split('[').next().unwrap_or(name);
        let mut items = match raw.strip_prefix('(') {
            Some(array) => {
                let array = array.strip_suffix(')').unwrap_or(array);
                let mut items = Vec::new();
                for token in super::lexer::tokens(array) {
                    if let Token::Word(word) = token {
                        items.extend(self.expand(word)?);
                    }
                }
                items
            }
            None => vec![self.expand_one(raw)?],
        };
        if appends && let Some(before) = self.vars.get(name) {
            items = match (raw.starts_with('('), before.items.as_slice()) {
                (false, [before]) => vec![format!("{before}{}", items.concat())],
                _ => before.items.iter().cloned().chain(items).collect(),
            };
        }
        items.truncate(64);
        self.set(name, items);
        Ok(())
    }

    /// Judges the words of a command and says what it prints.
    fn command(&mut self, words: Vec<String>, input: &Flow) -> Verdict<Flow> {
        self.step(words.iter().map(String::len).sum())?;
        let Some(first) = words.first() else { return Ok(Flow::default()) };
        // A variable that is not known to be set may as well be empty.
        let bare: String = first.chars().filter(|c| *c != UNKNOWN).collect();
        if bare.is_empty() && words.len() > 1 && first.chars().count() == 1 && self.depth <= DEEPEST_SCRIPT {
            // `$SUDO rm -rf /` runs what follows when the variable is empty or a wrapper.
            return self.command(words[1..].to_vec(), input).map(|_| Flow::default());
        }
        if bare.contains(['*', '?', '[']) && bare != "[" && bare != "[[" {
            let pattern = bare.rsplit('/').next().unwrap_or("");
            for name in NAMED.iter().filter(|name| pattern.chars().any(|c| c.is_alphanumeric() || c == '?') && glob_matches(pattern, name)) {
                self.named(name, &words[1..], input)?;
            }
            return Ok(Flow::default());
        }
        let name = base_name(&bare);
        self.named(&name, &words[1..], input)
    }

    fn named(&mut self, name: &str, arguments: &[String], input: &Flow) -> Verdict<Flow> {
        self.rules.judge(name, arguments)?;
        if let Some(text) = self.aliases.remove(name) {
            let text = format!("{text} {}", arguments.join(" "));
            self.text(&text, input.text.as_deref())?;
        }
        if let Some(flow) = self.builtin(name, arguments, input)? {
            return Ok(flow);
        }
        if is_shell(name) {
            return self.shell(name, arguments, input);
        }
        if matches!(name, "cmd" | "powershell" | "pwsh") {
            let line: Vec<String> = arguments.iter().map(|a| if a.contains(' ') && a.starts_with('/') { format!("\"{a}\"") } else { a.clone() }).collect();
            let input = input.text.as_deref().unwrap_or("");
            super::windows::judge(self, &format!("{name} {}", line.join(" ")))?;
            super::windows::judge(self, if arguments.iter().any(|a| a == "-") || arguments.is_empty() { input } else { "" })?;
            return Ok(Flow::default());
        }
        if matches!(name, "find" | "gfind" | "fd" | "fdfind") {
            let (inner, found) = wrappers::find(arguments);
            self.inside(inner, input)?;
            return Ok(Flow { text: Some(found), is_download: false });
        }
        if let Some(inner) = wrappers::inner(name, arguments, input.text.as_deref()) {
            return self.inside(inner, input);
        }
        if let Some(inner) = code::inside(name, arguments, input.text.as_deref()) {
            for found in inner {
                self.inside(vec![found], &Flow::default())?;
            }
        }
        if code::forks_forever(name, arguments) {
            return Err(Found::new(&FORK_BOMB, name, arguments));
        }
        self.unless_off(self.vector(name, arguments))?;
        self.network(name, arguments)?;
        let is_download = matches!(name, "curl" | "wget" | "fetch" | "aria2c" | "http" | "lwp-request");
        let text = decode::output(name, arguments, input.text.as_deref());
        // A file that the line itself wrote can be read again.
        let text = text.or_else(|| match name {
            "cat" | "head" | "tail" => arguments.iter().find_map(|argument| self.file(argument)),
            "base64" | "xxd" | "rev" | "tr" => {
                let read = arguments.iter().find_map(|argument| self.file(argument))?;
                decode::output(name, arguments, Some(&read))
            }
            _ => None,
        });
        Ok(Flow { text, is_download: is_download || input.is_download && text_passes(name) })
    }

    /// Judges what a wrapper runs, one layer deeper.
    fn inside(&mut self, inner: Vec<Inner>, input: &Flow) -> Verdict<Flow> {
        if self.layers >= MOST_LAYERS {
            return Err(Found::new(&TOO_DEEP, "", &[]));
        }
        self.layers += 1;
        let mut output = Flow::default();
        for inner in inner {
            output = match inner {
                Inner::Vector(words) => self.command(words, input)?,
                Inner::Script(text) => Flow { text: self.text(&text, input.text.as_deref())?, is_download: false },
            };
        }
        self.layers -= 1;
        Ok(output)
    }

    /// What changes the shell itself.
    fn builtin(&mut self, name: &str, arguments: &[String], input: &Flow) -> Verdict<Option<Flow>> {
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
                    if let Some((name, value)) = argument.split_once('=') {
                        self.set(name, vec![value.trim_matches(['(', ')']).to_owned()]);
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
                    self.vars.insert((*name).clone(), Value { items: value.lines().map(str::to_owned).collect(), is_each: true });
                }
                Ok(Some(silent))
            }
            "printf" if arguments.first().is_some_and(|argument| argument == "-v") && arguments.len() > 2 => {
                let text = decode::output("printf", &arguments[2..], None).unwrap_or_default();
                self.set(&arguments[1].clone(), vec![text]);
                Ok(Some(silent))
            }
            "alias" => {
                for (name, text) in arguments.iter().filter_map(|argument| argument.split_once('=')).take(16) {
                    self.aliases.insert(name.to_owned(), text.to_owned());
                }
                Ok(None)
            }
            "command" | "type" | "which" | "whence" if arguments.first().is_some_and(|a| a == "-v" || name != "command" && matches!(a.as_str(), "-p" | "-P")) => {
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
                // The fields of a time come before the command of a line.
                let lines = text.lines().map(|line| match name {
                    "crontab" if line.starts_with('@') => line.split_once(' ').map_or("", |(_, rest)| rest),
                    "crontab" => line.splitn(6, [' ', '\t']).nth(5).unwrap_or(""),
                    _ => line,
                });
                let text = lines.collect::<Vec<_>>().join("\n");
                self.inside(vec![Inner::Script(text)], &Flow::default()).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// A shell: its text, its file or its input is read once more.
    fn shell(&mut self, name: &str, arguments: &[String], input: &Flow) -> Verdict<Flow> {
        let mut rest = arguments;
        while let Some((option, more)) = rest.split_first() {
            if matches!(option.as_str(), "-o" | "+o" | "-O" | "--rcfile" | "--init-file") {
                rest = more.get(1..).unwrap_or_default();
                continue;
            }
            let is_command = option == "--command" || option.starts_with('-') && !option.starts_with("--") && option.contains('c');
            if is_command {
                let more = &more[more.iter().take_while(|a| a.starts_with('-') || a.starts_with('+') || a.as_str() == "pipefail").count()..];
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
        let file = rest.iter().find(|argument| !argument.starts_with('-'));
        let text = match file {
            Some(file) if is_input(file) => input.text.clone(),
            Some(file) => self.file(file),
            None => input.text.clone(),
        };
        if input.is_download && (file.is_none() || file.is_some_and(|file| is_input(file))) && self.rules.blocks_downloads() {
            return Err(Found::new(&DOWNLOAD_RUN, name, arguments));
        }
        let Some(text) = text else { return Ok(Flow::default()) };
        // What was encoded by a filter that is not known may be base64 all the same.
        if let Some(decoded) = base64(text.trim()).filter(|decoded| decoded.chars().all(|c| !c.is_control() || c == '\n')) {
            self.inside(vec![Inner::Script(decoded)], &Flow::default())?;
        }
        self.inside(vec![Inner::Script(text)], &Flow::default())
    }

    /// Goes on when a rule that is switched off was met.
    fn unless_off(&self, verdict: Verdict<()>) -> Verdict<()> {
        match verdict {
            Err(found) if matches!(found.hit, Hit::Rule(rule) if self.rules.is_off(rule)) => Ok(()),
            verdict => verdict,
        }
    }

    /// Rules that are off unless a setting turns them on.
    fn network(&self, name: &str, arguments: &[String]) -> Verdict<()> {
        if !self.rules.blocks_downloads() {
            return Ok(());
        }
        let executes = |a: &String| matches!(a.as_str(), "-e" | "-c" | "--exec" | "--sh-exec") || a.to_lowercase().contains("exec:");
        if matches!(name, "nc" | "ncat" | "netcat" | "socat") && arguments.iter().any(executes) {
            return Err(Found::new(&REVERSE_SHELL, name, arguments));
        }
        Ok(())
    }

    /// The text of a file that the line wrote.
    fn file(&self, path: &str) -> Option<String> {
        self.files.get(path.trim_start_matches("./")).cloned()
    }

    fn write_file(&mut self, file: Option<String>, text: Option<&str>) {
        if let (Some(file), Some(text)) = (file, text)
            && self.files.len() < MOST_FILES
        {
            let known = self.files.entry(file.trim_start_matches("./").to_owned()).or_default();
            if known.len() + text.len() < 1 << 16 {
                known.push_str(text);
            }
        }
    }

    /// A name under which the output of a process substitution can be read.
    pub(super) fn pretend_file(&mut self, output: Option<String>) -> String {
        let name = format!("/dev/fd/{}", 63 + self.files.len());
        self.write_file(Some(name.clone()), output.as_deref());
        name
    }

    /// The directory that the line has gone to.
    pub(super) fn cwd_text(&self) -> String {
        match &self.cwd {
            Cwd::Somewhere => ".".to_owned(),
            Cwd::At(names) => Path::absolute(names),
        }
    }
}

/// How often a script calls a function at its own level.
fn calls(script: &Script<'_>, name: &str) -> usize {
    let in_stage = |stage: &Stage<'_>| match stage {
        Stage::Simple(simple) => usize::from(simple.words.first() == Some(&name)),
        Stage::Group { body, .. } => calls(body, name),
        Stage::Function { .. } => 0,
    };
    script.pipelines.iter().flatten().map(in_stage).sum()
}

/// The name of a program without its folder and extension.
pub(super) fn base_name(word: &str) -> String {
    let name = word.rsplit('/').next().unwrap_or(word);
    let lower = name.to_ascii_lowercase();
    let stem = [".exe", ".com", ".cmd", ".bat"].iter().find_map(|extension| lower.strip_suffix(extension));
    let stem = stem.map_or(lower.clone(), str::to_owned);
    // Capitals begin sentences; the words that mean the machine's end must be as they are typed.
    // So must their folder be one of the system's: `./halt` is a script of somebody, `/init` a word for an agent.
    let is_word = matches!(stem.as_str(), "halt" | "reboot" | "poweroff" | "shutdown" | "init");
    let folder = word.strip_suffix(name).unwrap_or("");
    if is_word && !folder.is_empty() && !folder.ends_with("bin/") && !folder.contains(['?', '*', '\\']) {
        return word.to_owned();
    }
    if is_word && stem != name && !name.contains('.') { name.to_owned() } else { stem }
}

pub(super) fn is_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh" | "mksh" | "ash" | "fish" | "csh" | "tcsh" | "rbash" | "yash" | "ksh93" | "elvish" | "oksh")
}

/// Names under which a command reads its own input.
fn is_input(file: &str) -> bool {
    matches!(file, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

/// A filter lets a download through.
fn text_passes(name: &str) -> bool {
    matches!(name, "cat" | "tee" | "sed" | "tr" | "gunzip" | "base64" | "xz" | "head" | "tail" | "grep" | "awk")
}
