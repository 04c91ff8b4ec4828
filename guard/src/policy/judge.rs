//! Walks through a line as a shell would and refuses it at the first command that falls under a rule.
//!
//! Keeps what the line itself says: variables, the directory, small files it writes, what flows through its pipes. It
//! runs nothing. Every loop is bounded: layers of wrappers, nesting of substitutions, and the text that is looked at.

use std::collections::HashMap;

use super::code;
use super::commands::NAMED;
use super::decode::{self, glob_matches};
use super::later::MOST_FILES;
use super::lexer::Token;
use super::shell::{self, Script, Simple, Stage};
use super::table::*;
use super::targets::{Cwd, Path, clean};
use super::user_rules::UserRules;
use super::words::{DOWNLOADED, HOME, PACKED, UNKNOWN};
use super::wrappers::{self, Inner, finders, is_assignment, options};
use super::{Hit, Verdict};

/// Wrappers around wrappers that are peeled.
const MOST_LAYERS: usize = 8;
/// Scripts inside of scripts that are read, by any way.
const DEEPEST_SCRIPT: usize = 16;
/// Bytes of words that are resolved for one line: many times what a person types.
const MOST_WORK: usize = 4 << 20;
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
pub(super) struct Violation {
    pub(super) hit: Hit,
    pub(super) words: String,
}

impl Violation {
    pub(super) fn new(rule: &'static Rule, name: &str, arguments: &[String]) -> Box<Self> {
        let words: Vec<&str> = std::iter::once(name).chain(arguments.iter().map(String::as_str)).take(16).collect();
        Box::new(Self { hit: Hit::Rule(rule), words: words.join(" ") })
    }
}

/// What flows into a command.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    /// The text, where the line tells.
    pub(super) text: Option<String>,
    /// It comes from the network.
    pub(super) is_download: bool,
}

/// One line under judgement.
pub(super) struct Judge<'p> {
    pub(super) rules: &'p UserRules,
    pub(super) vars: HashMap<String, Value>,
    pub(super) cwd: Cwd,
    pub(super) is_prose: bool,
    pub(super) nesting: usize,
    pub(super) aliases: HashMap<String, String>,
    pub(super) functions: HashMap<String, String>,
    pub(super) files: HashMap<String, String>,
    /// Reads the structure of a text; tests put the fallback alone here.
    pub(super) read: fn(&str) -> Script<'_>,
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
            nesting: 0,
            aliases: HashMap::new(),
            functions: HashMap::new(),
            files: HashMap::new(),
            read: shell::read,
            depth: 0,
            layers: 0,
            work: 0,
        }
    }

    /// Counts work; a line that needs too much is refused, not waved through.
    pub(super) fn step(&mut self, bytes: usize) -> Verdict<()> {
        self.work += bytes + 16;
        if self.work > MOST_WORK { Err(Violation::new(&TOO_LONG, "", &[])) } else { Ok(()) }
    }

    /// Judges a text as a script; returns what it prints, where that is known.
    pub(super) fn text(&mut self, text: &str, input: Option<&str>) -> Verdict<Option<String>> {
        self.step(text.len())?;
        if text.trim_start().starts_with(DOWNLOADED) {
            return Err(Violation::new(&DOWNLOAD_RUN, "", &[]));
        }
        // A text that was packed away in the line itself, only to be run.
        if text.trim_start().starts_with(PACKED) {
            return Err(Violation::new(&TOO_DEEP, "", &[]));
        }
        if self.depth >= DEEPEST_SCRIPT {
            return Err(Violation::new(&TOO_DEEP, "", &[]));
        }
        self.depth += 1;
        let flow = Flow { text: input.map(str::to_owned), is_download: false };
        let output = self.script(&(self.read)(text), &flow)?;
        self.depth -= 1;
        let is_download = output.is_download && self.rules.blocks_downloads();
        Ok(if is_download { Some(DOWNLOADED.to_string()) } else { output.text })
    }

    fn script(&mut self, script: &Script<'_>, input: &Flow) -> Verdict<Flow> {
        let mut all = Some(String::new());
        let mut is_download = false;
        for pipeline in &script.pipelines {
            let counts = (self.depth, self.layers, self.nesting);
            let output = match self.pipeline(pipeline, input) {
                // What is switched off must not hide the next command.
                Err(found) if self.is_off(&found) => {
                    (self.depth, self.layers, self.nesting) = counts;
                    Flow::default()
                }
                output => output?,
            };
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
                self.write_file(file, output.text.as_deref())?;
                if let Some(cwd) = before {
                    self.cwd = cwd;
                }
                Ok(output)
            }
            Stage::Function { name, body, text } => {
                if calls(body, name) > 1 {
                    return Err(Violation::new(&FORK_BOMB, name, &[]));
                }
                self.script(body, &Flow::default())?;
                if self.functions.len() < MOST_FILES {
                    self.functions.insert(base_name(name), (*text).to_owned());
                }
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
        if raw.first().is_some_and(|word| matches!(*word, "declare" | "typeset" | "local" | "export" | "readonly")) {
            for word in raw.iter().filter(|word| is_assignment(word)) {
                self.assign(word)?;
            }
        }
        let mut words = Vec::new();
        for word in raw {
            words.extend(self.expand(word)?);
        }
        let first = words.first().cloned().unwrap_or_default();
        let (input, file) = self.redirects(&simple.redirects, input, &first)?;
        if words.is_empty() {
            let text = if assignments > 0 || file.is_some() { Some(String::new()) } else { input.text.clone() };
            self.write_file(file, text.as_deref())?;
            return Ok(Flow { text, is_download: false });
        }
        // A loop over commands runs each of them.
        let looped =
            raw[0].trim_matches('"').strip_prefix('$').and_then(|name| self.vars.get(name.trim_matches(['{', '}'])));
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
        self.write_file(file, output.text.as_deref())?;
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
                        return Err(Violation::new(rule, name, &[(*operator).to_owned(), target]));
                    }
                    let is_network = target.starts_with("/dev/tcp/") || target.starts_with("/dev/udp/");
                    if is_network && (is_shell(&base_name(name)) || name == "exec") && self.rules.blocks_downloads() {
                        return Err(Violation::new(&REVERSE_SHELL, name, &[(*operator).to_owned(), target]));
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
                        // `[0]=word` is an element with its place.
                        let word = match word.strip_prefix('[').and_then(|rest| rest.split_once("]=")) {
                            Some((_, element)) => element,
                            None => word,
                        };
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
        self.run_later(name, &items.join(" "))?;
        self.set(name, items);
        Ok(())
    }

    /// Judges the words of a command and says what it prints.
    fn command(&mut self, words: Vec<String>, input: &Flow) -> Verdict<Flow> {
        self.step(words.iter().map(String::len).sum())?;
        let Some(first) = words.first() else { return Ok(Flow::default()) };
        // A variable that is not known to be set may as well be empty.
        let bare: String = first.chars().filter(|c| *c != UNKNOWN).collect();
        if bare.is_empty() && words.len() > 1 {
            // `$SUDO rm -rf /` runs what follows when the variable is empty or a wrapper.
            let known = words.iter().position(|word| word.chars().any(|c| c != UNKNOWN)).unwrap_or(words.len());
            return self.command(words[known..].to_vec(), input).map(|_| Flow::default());
        }
        if bare.contains(['*', '?', '[']) && bare != "[" && bare != "[[" {
            let pattern = bare.rsplit('/').next().unwrap_or("");
            for name in NAMED
                .iter()
                .filter(|name| pattern.chars().any(|c| c.is_alphanumeric() || c == '?') && glob_matches(pattern, name))
            {
                self.named(name, &words[1..], input)?;
            }
            return Ok(Flow::default());
        }
        if let Some(text) = self.file(&bare).filter(|_| bare.contains('/')) {
            self.run_file(&text, &words[1..], input)?;
        }
        let name = base_name(&bare);
        self.named(&name, &words[1..], input)
    }

    pub(super) fn named(&mut self, name: &str, arguments: &[String], input: &Flow) -> Verdict<Flow> {
        self.rules.judge(name, arguments)?;
        if let Some(text) = self.aliases.remove(name) {
            let text = format!("{text} {}", arguments.join(" "));
            self.text(&text, input.text.as_deref())?;
        }
        // It is gone while it runs: a function that calls itself is looked at once.
        if let Some(text) = self.functions.remove(name) {
            self.call(&text, arguments, input)?;
            self.functions.insert(name.to_owned(), text);
        }
        if let Some(flow) = self.builtin(name, arguments, input)? {
            return Ok(flow);
        }
        if is_shell(name) {
            return self.shell(name, arguments, input);
        }
        if matches!(name, "cmd" | "powershell" | "pwsh") {
            return self.windows_shell(name, arguments, input);
        }
        if let Some((inner, text)) = found_by(name, arguments) {
            let output = self.inside(inner, input)?;
            return Ok(text.map_or(output, |text| Flow { text: Some(text), is_download: false }));
        }
        self.environment(name, arguments)?;
        if matches!(name, "tee" | "sponge" | "cp" | "mv" | "install") {
            self.copy_known(name, arguments, input)?;
        }
        for command in options::commands(name, arguments, input.text.as_deref()) {
            self.inside(vec![command], &Flow::default())?;
        }
        let listed = matches!(name, "xargs" | "gxargs").then(|| wrappers::argument_file(arguments)).flatten();
        let listed = listed.and_then(|file| self.file(file));
        if let Some(inner) = wrappers::inner(name, arguments, listed.as_deref().or(input.text.as_deref())) {
            return self.inside(inner, input);
        }
        self.program(name, arguments, input)?;
        Ok(self.output(name, arguments, input))
    }

    /// A line for `cmd` or PowerShell.
    fn windows_shell(&mut self, name: &str, arguments: &[String], input: &Flow) -> Verdict<Flow> {
        let quoted = |word: &String| match word.contains(' ') && word.starts_with('/') {
            true => format!("\"{word}\""),
            false => word.clone(),
        };
        let line: Vec<String> = arguments.iter().map(quoted).collect();
        super::windows::judge(self, &format!("{name} {}", line.join(" ")))?;
        if arguments.iter().any(|a| a == "-") || arguments.is_empty() {
            super::windows::judge(self, input.text.as_deref().unwrap_or(""))?;
        }
        Ok(Flow::default())
    }

    /// What `env` and `sudo` set for the command that they run.
    fn environment(&mut self, name: &str, arguments: &[String]) -> Verdict<()> {
        if matches!(name, "env" | "sudo")
            && let Some(folder) = wrappers::folder(arguments)
        {
            let path = clean(folder, &self.cwd);
            self.cwd = if path.is_absolute { Cwd::At(path.names) } else { Cwd::Somewhere };
        }
        if matches!(name, "env" | "sudo" | "doas") {
            for (name, value) in arguments.iter().filter_map(|argument| argument.split_once('=')) {
                self.run_later(name, value)?;
            }
        }
        Ok(())
    }

    /// A program that wraps nothing: what it runs by itself, and what its arguments do.
    fn program(&mut self, name: &str, arguments: &[String], input: &Flow) -> Verdict<()> {
        let variable = |name: &str| match self.vars.get(name) {
            Some(Value { items, .. }) => Some(items.join(" ")),
            None => (name == "HOME").then(|| HOME.to_string()),
        };
        for inner in code::inside(name, arguments, input.text.as_deref(), &variable).into_iter().flatten() {
            self.inside(vec![inner], &Flow::default())?;
        }
        if code::forks_forever(name, arguments) {
            return Err(Violation::new(&FORK_BOMB, name, arguments));
        }
        self.unless_off(self.vector(name, arguments))?;
        self.network(name, arguments)
    }

    /// What a program prints, as far as the line tells.
    fn output(&self, name: &str, arguments: &[String], input: &Flow) -> Flow {
        let file = || arguments.iter().find_map(|argument| self.file(argument));
        let text = decode::output(name, arguments, input.text.as_deref());
        // A file that the line itself wrote can be read again.
        let text = text.or_else(|| code::printed(name, arguments)).or_else(|| match name {
            "cat" | "head" | "tail" => file(),
            "base64" | "xxd" | "rev" | "tr" => decode::output(name, arguments, Some(&file()?)),
            _ => None,
        });
        let is_download = matches!(name, "curl" | "wget" | "fetch" | "aria2c" | "http" | "lwp-request");
        Flow { text, is_download: is_download || input.is_download && text_passes(name) }
    }

    /// Judges what a wrapper runs, one layer deeper.
    pub(super) fn inside(&mut self, inner: Vec<Inner>, input: &Flow) -> Verdict<Flow> {
        if self.layers >= MOST_LAYERS {
            return Err(Violation::new(&TOO_DEEP, "", &[]));
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

    /// Goes on when a rule that is switched off was met.
    fn unless_off(&self, verdict: Verdict<()>) -> Verdict<()> {
        match verdict {
            Err(found) if self.is_off(&found) => Ok(()),
            verdict => verdict,
        }
    }

    /// The rule that was met is switched off.
    pub(super) fn is_off(&self, found: &Violation) -> bool {
        matches!(found.hit, Hit::Rule(rule) if self.rules.is_off(rule))
    }

    /// Rules that are off unless a setting turns them on.
    fn network(&self, name: &str, arguments: &[String]) -> Verdict<()> {
        if !self.rules.blocks_downloads() {
            return Ok(());
        }
        let executes = |a: &String| {
            matches!(a.as_str(), "-e" | "-c" | "--exec" | "--sh-exec") || a.to_lowercase().contains("exec:")
        };
        if matches!(name, "nc" | "ncat" | "netcat" | "socat") && arguments.iter().any(executes) {
            return Err(Violation::new(&REVERSE_SHELL, name, arguments));
        }
        Ok(())
    }

    /// The directory that the line has gone to.
    pub(super) fn cwd_text(&self) -> String {
        match &self.cwd {
            Cwd::Somewhere => ".".to_owned(),
            Cwd::At(names) => Path::absolute(names),
        }
    }
}

/// What `find` and `fd` run, and the names that `find` prints.
fn found_by(name: &str, arguments: &[String]) -> Option<(Vec<Inner>, Option<String>)> {
    match name {
        "fd" | "fdfind" => Some((finders::fd(arguments), None)),
        "find" | "gfind" => {
            let (inner, found) = finders::find(arguments);
            Some((inner, Some(found)))
        }
        _ => None,
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
    matches!(
        name,
        "sh" | "bash"
            | "dash"
            | "zsh"
            | "ksh"
            | "mksh"
            | "ash"
            | "fish"
            | "csh"
            | "tcsh"
            | "rbash"
            | "yash"
            | "ksh93"
            | "elvish"
            | "oksh"
    )
}

/// A filter lets a download through.
fn text_passes(name: &str) -> bool {
    matches!(name, "cat" | "tee" | "sed" | "tr" | "gunzip" | "base64" | "xz" | "head" | "tail" | "grep" | "awk")
}
