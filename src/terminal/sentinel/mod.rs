//! Typed forms that tell the end of a command in a shell that sends no marks, and the search for that end.
//!
//! A form runs the command through the shell's own `eval`, so an open quote or a syntax error cannot swallow what
//! follows, and prints on the same logical line, so a command that reads its input cannot eat it. Everything printed goes
//! to `/dev/tty`, or where the shell reads from: the shell's output may be a file. For the latter no file is opened, which
//! a restricted shell forbids. Names that somebody may have given to an alias are written with a backslash,
//! and as builtins where the shell can say so.
//!
//! `$?` of the previous command is seen by this one, and this one's by the next; so is `$_` in bash and zsh. The statuses
//! of a pipeline are printed with the end, and the next form begins with a pipeline that has them.
//!
//! `set -e` keeps its meaning. A failure that it exempts (`false && true`) must not become the status of `eval`, which it
//! would not exempt: the evaluated text notes its status as its last act, in a variable that is gone with the end mark. A
//! restored status is the left side of `&&`. An incomplete command would take that last act for its own text. So where it
//! is not certain here that a command is whole, the shell itself is asked; what one that is not comes to is noted behind
//! `eval`, because a shell that would only have read on must not end.
//!
//! In mksh an error drops all that is left of the typed line, the end mark with it. There the next prompt prints the mark:
//! `PS1` does so once and takes that out of itself; after an ordinary end it is taken out unused.
//!
//! What is typed never holds what is printed: the token and the nonce are cut in two. It holds no control byte but the
//! line feed either; others of the command are written as escapes. Pure text; typing and waiting are done elsewhere.

mod pipeline;
mod quote;
mod words;

pub use self::pipeline::Pipeline;
use self::quote::typed;
use self::words::{eval, quiet, unset};
use kpty_guard::is_complete;

/// Before the visible line: cancel an open sequence, then undo what would make text unreadable (character set, insert
/// mode, no wrap, attributes) and go to an empty line: the cursor may stand above older text. Written as a format of
/// printf.
const READABLE: &str = r"\030\033\134\017\033(B\033[4l\033[?7h\033[0m\r\n\033[K";

/// Sets the status to what it was when the text around it was put together, inside single quotes. The only way without
/// a function of our own is a subshell; it is spared where the status is 0. As the left side of `&&` it fires neither
/// `set -e` nor a trap on errors.
const RESTORE: &str = r#"case '"$?"' in 0) ;; *) (exit '"$?"') && :;; esac"#;

/// Tells whether mksh's prompt can be changed; to change one that is read-only would be an error like any other.
const MAY_PROMPT: &str = "(PS1=) 2>&-";

/// The dialect a typed form is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Shells after the standard: sh, dash, ash, ksh, yash.
    Posix,
    /// bash, which has arrays and names its builtins.
    Bash,
    /// mksh, where an error drops the rest of the line.
    Mksh,
    /// zsh, where `command` means an external program.
    Zsh,
    /// fish.
    Fish,
    /// PowerShell. Written from its documentation, not tried.
    PowerShell,
}

impl Form {
    /// The form a program understands, by its file name; `None` for programs that have none, like csh.
    pub fn for_program(name: &str) -> Option<Self> {
        let name = name.rsplit(['/', '\\']).next()?.trim_start_matches('-').to_ascii_lowercase();
        let name = name.strip_suffix(".exe").unwrap_or(&name);
        match name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-') {
            "sh" | "dash" | "ash" | "busybox" | "ksh" | "oksh" | "yash" => Some(Self::Posix),
            "bash" | "rbash" => Some(Self::Bash),
            "mksh" | "lksh" => Some(Self::Mksh),
            "zsh" => Some(Self::Zsh),
            "fish" => Some(Self::Fish),
            "pwsh" | "powershell" => Some(Self::PowerShell),
            _ => None,
        }
    }
}

/// The marks of one command: a token for the reader and a nonce that no earlier output can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentinel {
    token: String,
    /// The token where the terminal prints capitals only (`stty olcuc`).
    capitals: String,
    nonce: String,
    /// The end is printed a moment later: the output takes a longer way.
    is_delayed: bool,
    /// The start as well: what is typed is shown through a pipe.
    begins_late: bool,
}

/// Where the end of a command was found on rendered lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Index of the line that is the sentinel.
    pub index: usize,
    /// The status of the command.
    pub status: i32,
    /// Index of the first line after the echo of what was typed, where that echo is visible.
    pub start: Option<usize>,
}

/// Tells whether a caller's token can be typed and found again.
pub fn check_token(token: &str) -> Result<(), &'static str> {
    if !(4..=64).contains(&token.len()) {
        return Err("a sentinel has 4 to 64 characters");
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("a sentinel has printable ASCII characters only, no blanks");
    }
    if token.contains(['\'', '"', '`', '\\', '%']) {
        return Err("a sentinel has no quotes, backslash or percent sign");
    }
    Ok(())
}

impl Sentinel {
    /// A sentinel with a caller's token, or one made from the nonce. The nonce is at least 8 random hexadecimal digits.
    pub fn new(token: Option<&str>, nonce: &str) -> Result<Self, &'static str> {
        if nonce.len() < 8 || !nonce.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err("a nonce has at least 8 hexadecimal digits");
        }
        let token = match token {
            Some(token) => check_token(token).map(|()| token.to_owned())?,
            None => format!("__KR_DONE_{}__", &nonce[..8]),
        };
        let (is_delayed, begins_late) = (false, false);
        Ok(Self { capitals: token.to_ascii_uppercase(), token, nonce: nonce.to_owned(), is_delayed, begins_late })
    }

    /// The same for a shell whose output goes through a pipe (`exec > >(tee …)`), while the marks are printed to the
    /// terminal: gives whoever reads the pipe the time to pass the output on. `begins_late` says that the echo of what is
    /// typed takes that way, too.
    pub fn delayed(self, begins_late: bool) -> Self {
        Self { is_delayed: true, begins_late, ..self }
    }

    /// The token, as the caller gets it back.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The nonce, which the marks of start and end carry: `OSC 133;S;k=<nonce>` and `OSC 133;E;<status>;k=<nonce>`.
    pub fn nonce(&self) -> &str {
        &self.nonce
    }

    /// What every form shows of itself on the screen: the part that all its names share.
    pub(super) fn name(&self) -> &str {
        &self.nonce[..6]
    }

    /// What to type for `command`, without the final Enter; lines are separated by `\n` and at most 1,000 bytes long.
    /// `before` is the pipeline that ran last in that shell, where it had several parts.
    pub fn typed(&self, form: Form, command: &str, before: &Pipeline) -> String {
        if matches!(form, Form::Fish | Form::PowerShell) {
            let noted = match form {
                Form::Fish if is_complete(command) => {
                    format!("\n\nbuiltin set -g {} $pipestatus", self.pipeline_variable())
                }
                _ => String::new(),
            };
            return typed(form, self.start(form, before), &[command, &noted], &self.end(form));
        }
        let last_act = self.last_act(form);
        if !is_complete(command) {
            let (start, run) = (self.start_of_text(form, before), self.run_text(form, &last_act));
            return typed(form, start, &[command], &format!("{run}{}", self.end(form)));
        }
        // A backslash at the end, should it count, takes one line end. In others it would cost a row of the screen.
        let gap = if command.ends_with('\\') { "\n\n" } else { "\n" };
        typed(form, self.start(form, before), &[command, gap, &last_act], &self.end(form))
    }

    /// Looks for the end on rendered logical lines: `<token>:<status>:<nonce>`.
    pub fn find<'a>(&self, lines: impl Iterator<Item = &'a str>) -> Option<Found> {
        let mut before = Vec::new();
        for (index, line) in lines.enumerate() {
            if let Some(status) = self.status(line) {
                return Some(Found { index, status, start: self.echo_end(&before) });
            }
            before.push(line);
        }
        None
    }

    /// The status on a line that is the end. Something else may stand before it or behind it: the system shows what was
    /// typed, or what the terminal answered, wherever the cursor is.
    pub(crate) fn status(&self, line: &str) -> Option<i32> {
        let (_, rest) = line.split_once(self.token.as_str()).or_else(|| line.split_once(self.capitals.as_str()))?;
        let (status, rest) = rest.strip_prefix(':')?.split_once(':')?;
        let nonce = rest.get(..self.nonce.len())?;
        nonce.eq_ignore_ascii_case(&self.nonce).then(|| status.parse().ok())?
    }

    /// The line after the last one that echoes the end of a typed form. Blanks and line breaks do not count: a shell may
    /// wrap its echo anywhere.
    pub(crate) fn echo_end(&self, lines: &[&str]) -> Option<usize> {
        let mut text = String::new();
        let mut ends = Vec::with_capacity(lines.len());
        for line in lines {
            text.extend(line.split_whitespace());
            ends.push(text.len());
        }
        let ends_at = |form| {
            let end: String = self.end(form).split_whitespace().collect();
            text.rfind(&end).map(|at| at + end.len())
        };
        let forms = [Form::Posix, Form::Bash, Form::Mksh, Form::Zsh, Form::Fish, Form::PowerShell];
        let at = forms.into_iter().filter_map(ends_at).max()?;
        Some(ends.partition_point(|&end| end < at) + 1)
    }

    /// Prints the start and leaves the status as it was; to be put inside single quotes.
    fn mark(&self, form: Form, before: &Pipeline) -> String {
        // A shell that read several lines left its continuation prompt where the output is to begin.
        let mark = format!(r"\030\r\033[K\033]133;S;k={}\033\134", self.nonce);
        let again = before.again(form);
        let delay = if self.begins_late { BEGIN_DELAY } else { "" };
        match form {
            Form::Posix => format!(r#"{delay}{}; {RESTORE}"#, self.print(form, &format!("\"{mark}\""))),
            // The last argument of the call is `$_` then.
            Form::Bash => {
                let (name, last) = (self.function(), self.last_argument());
                format!(
                    r#"{last}=$_; {name}() {{ \builtin unset {last}; \builtin unset -f {name}; {delay}\builtin printf "{mark}" >&0 || \command printf "{mark}" >/dev/tty; \builtin return '"$?"'; }}; {name} "${last}" && [[ 1 ]]{again}"#
                )
            }
            Form::Mksh => {
                let (print, hook, armed) =
                    (self.print(form, &format!("\"{mark}\"")), self.prompt_hook(), self.prompt_variable());
                format!(r#"{delay}{print}; {MAY_PROMPT} && {armed}= PS1="{hook}$PS1"; {RESTORE}{again}"#)
            }
            // The mark comes last, because zsh shows the trace of what restores the status. All of it stands on the left
            // of `&&`: what is inside of `always` is no longer exempt from `set -e`.
            Form::Zsh => {
                let print = self.print(form, &format!("\"{mark}\""));
                format!(r#"{{ () {{ return '"$?"'; }}; }} always {{ {print}; }} && :{again}"#)
            }
            Form::Fish => format!(r#"builtin printf "{mark}" >/dev/tty 2>/dev/null; return '$status'"#),
            Form::PowerShell => {
                format!(r#"[Console]::Write("$([char]24)$([char]27)]133;S;k={}$([char]27)\")"#, self.nonce)
            }
        }
    }

    /// Prints to the terminal; `arguments` are those of printf.
    fn print(&self, form: Form, arguments: &str) -> String {
        let printf = match form {
            // A function would be traced behind the mark.
            Form::Zsh => return format!(r"\builtin printf {arguments} >/dev/tty"),
            Form::Posix => return format!(r"\command printf {arguments} >/dev/tty"),
            Form::Bash => r"\builtin printf",
            Form::Mksh => r"\builtin command printf",
            Form::Fish | Form::PowerShell => "printf",
        };
        let (name, unset) = (self.function(), unset(form));
        // Somebody may have disabled the builtin.
        format!(
            r#"{name}() {{ {printf} "$@" >&0 || \command printf "$@" >/dev/tty; }}; {name} {arguments}; {unset} -f {name}"#
        )
    }

    /// The name of a function that is there for a moment.
    fn function(&self) -> String {
        format!("f{}", &self.nonce[..6])
    }

    /// The variable that holds the last argument of a command for a moment.
    fn last_argument(&self) -> String {
        format!("l{}", &self.nonce[..6])
    }

    /// The variable that holds the statuses of a pipeline for a moment.
    fn pipeline_variable(&self) -> String {
        format!("s{}", &self.nonce[..6])
    }

    /// Everything before the command, up to and into its open quote.
    ///
    /// The mark is inside the evaluated text, behind a trace of `eval` itself. zsh and fish read that text as a whole
    /// and run nothing of it after a syntax error: there the mark comes before it, too.
    fn start(&self, form: Form, before: &Pipeline) -> String {
        match form {
            Form::Posix | Form::Bash | Form::Mksh | Form::Zsh => self.opening(form, eval(form), "", before),
            Form::Fish => {
                let mark = self.mark(form, before);
                let again = before.again_by(&self.function());
                format!("eval '{mark}'; eval 'eval \"{}\"{again}\n", mark.replace('"', "\\\\\""))
            }
            Form::PowerShell => format!("try {{ Invoke-Expression '{}\n", self.mark(form, before)),
        }
    }

    /// The same where the evaluated text has to be looked at first: it becomes the value of a variable.
    fn start_of_text(&self, form: Form, before: &Pipeline) -> String {
        let text = self.text_variable();
        self.opening(form, &format!("{{ {text}="), &format!("{} {text}; ", unset(form)), before)
    }

    fn opening(&self, form: Form, verb: &str, first: &str, before: &Pipeline) -> String {
        let (mark, quiet) = (self.mark(form, before), quiet(form));
        let mark_before = match form {
            Form::Zsh => format!("{{ {{ {}'{mark}' && :; }} {quiet}; ", eval(form)),
            _ => String::new(),
        };
        format!("{mark_before}{verb}'{{ {first}{mark}; }} {quiet}\n")
    }

    /// Runs the text. As the body of a function it is read and not run, and is whole or none; in a condition, that fires
    /// neither `set -e` nor a trap, and in a subshell an error ends nothing else. A shell that reads a text as a whole does
    /// not run what unsets the variable in it.
    fn run_text(&self, form: Form, last_act: &str) -> String {
        // The text stands between double quotes.
        let last_act_later = last_act.replace('"', r#"\""#).replace('$', r"\$");
        let (eval, unset, quiet, text) = (eval(form), unset(form), quiet(form), self.text_variable());
        let as_it_is = match form {
            // With `set -e` the error would end the shell.
            Form::Mksh => format!(r#"case $- in *e*) ({eval}"${text}");; *) {eval}"${text}";; esac"#),
            // mksh and its kin under another name, or far away: the error would take the end mark with it.
            Form::Posix => {
                format!(r#"case ${{KSH_VERSION-}} in "@(#)"*) ({eval}"${text}");; *) {eval}"${text}";; esac"#)
            }
            Form::Bash => format!(r#"case $- in *e*) (\command eval "${text}");; *) \command eval "${text}";; esac"#),
            _ => format!(r#"{eval}"${text}""#),
        };
        format!(
            r#"; }} {quiet}; if ({eval}"f{text}() {{ if :; then
${text}
fi; }}") {quiet}; then {eval}"${text}
{last_act_later}"; else {as_it_is} || {last_act}; {{ {unset} {text}; }} {quiet}; fi"#
        )
    }

    /// The variable that holds a text for a moment.
    fn text_variable(&self) -> String {
        format!("t{}", &self.nonce[..6])
    }

    /// Notes the status of the command, and what else the next one can see of it, from within the evaluated text.
    fn last_act(&self, form: Form) -> String {
        let (status, statuses, last) = (self.variable(), self.pipeline_variable(), self.last_argument());
        let noted = match form {
            Form::Posix => format!("{status}=$?"),
            Form::Bash => format!(r#"{status}=$? {statuses}="${{PIPESTATUS[*]}}" {last}=$_"#),
            Form::Mksh => format!(r#"{status}=$? {statuses}="${{PIPESTATUS[*]}}""#),
            Form::Zsh => format!(r#"{status}=$? {statuses}="${{pipestatus[*]}}""#),
            Form::Fish | Form::PowerShell => return String::new(),
        };
        format!("{{ {noted}; }} {}", quiet(form))
    }

    /// The variable that holds the status for a moment; no other command's, and nobody else's.
    fn variable(&self) -> String {
        format!("k{}", &self.nonce[..6])
    }

    /// The variable that makes the hook in mksh's prompt work, and is part of nothing else in there. A copy of the prompt
    /// that a command keeps for later holds a hook that does nothing.
    fn prompt_variable(&self) -> String {
        format!("p{}", &self.nonce[..6])
    }

    /// What mksh's prompt begins with while a command runs: prints the end, takes itself out, leaves the status and shows
    /// nothing. To be put between double quotes.
    fn prompt_hook(&self) -> String {
        let ((t1, t2), (n1, n2)) = (halves(&self.token), halves(&self.nonce));
        // In a prompt a single exclamation mark is a number.
        let [t1, t2] = [t1, t2].map(|half| half.replace('$', r"\$").replace('!', "!!"));
        let (format, noted, armed, unhooked) = (end_format(), self.variable(), self.prompt_variable(), self.unhooked());
        let hook = format!(
            r#"${{{armed}+${{ {noted}=$?; command printf "{format}" ${noted} {n1} {n2} "{t1}" "{t2}" ${noted} {n1} {n2} >&0; {unhooked}; eval "unset {noted}; (exit ${noted})";}}}}${{{armed}-}}"#
        );
        hook.replace('\\', r"\\").replace('"', r#"\""#).replace('$', r"\$")
    }

    /// Takes the hook out of mksh's prompt, and nothing that the command put there.
    fn unhooked(&self) -> String {
        let armed = self.prompt_variable();
        let without = format!("${{PS1%%??{armed}+*}}${{PS1##*{armed}-?}}");
        format!(r"\builtin unset {armed}; case $PS1 in *{armed}-*) {MAY_PROMPT} && PS1={without};; esac")
    }

    /// What follows the evaluated text: prints the end and leaves the status of the command.
    fn end(&self, form: Form) -> String {
        let ((t1, t2), (n1, n2)) = (halves(&self.token), halves(&self.nonce));
        let format = end_format();
        let (noted, statuses) = (self.variable(), self.pipeline_variable());
        let (unset, quiet) = (unset(form), quiet(form));
        let (s1, s2) = (t1.replace('$', r"\$"), t2.replace('$', r"\$"));
        let delay = if self.is_delayed { END_DELAY } else { "" };
        let values = format!(r#""${noted}" {n1} {n2} "{s1}" "{s2}" "${noted}" {n1} {n2}"#);
        let with_pipeline = format!(r#""{PIPELINE_FORMAT}{format}" "${{{statuses}-}}" {n1} {n2} {values}"#);
        match form {
            Form::Posix => {
                let (print, restore) =
                    (self.print(form, &format!(r#""{format}" {values}"#)), self.restore_noted(form, &noted));
                format!(r#"; {{ : "${{{noted}=$?}}"; {delay}{print}; {restore}; }} {quiet}"#)
            }
            Form::Mksh => {
                let (print, unhooked) = (self.print(form, &with_pipeline), self.unhooked());
                let restore = self.restore_noted(form, &format!("{noted} {statuses}"));
                format!(r#"; {{ : "${{{noted}=$?}}"; {unhooked}; {delay}{print}; {restore}; }} {quiet}"#)
            }
            Form::Bash => {
                let (print, name, last) = (self.print(form, &with_pipeline), self.function(), self.last_argument());
                format!(
                    r#"; {{ {noted}=${{{noted}-$?}}; {delay}{print}; {name}() {{ {unset} {noted} {statuses} {last}; {unset} -f {name}; \builtin return "$1"; }}; {name} "${noted}" "${{{last}-}}" && [[ 1 ]]; }} {quiet}"#
                )
            }
            Form::Zsh => {
                let print = self.print(form, &with_pipeline);
                format!(
                    r#"; }} always {{ {{ : "${{{noted}=$?}}"; {delay}{print}; }} {quiet}; }}; {{ () {{ {unset} {noted} {statuses}; return $1; }} "${noted}" && :; }} {quiet}"#
                )
            }
            Form::Fish => format!(
                r#"; eval 'builtin printf "{PIPELINE_FORMAT}{format}" "${statuses}" "{n1}" "{n2}" '$status' "{n1}" "{n2}" \'{t1}\' \'{t2}\' '$status' "{n1}" "{n2}" >/dev/tty 2>/dev/null; builtin set -e {statuses}; builtin functions -e {function} 2>/dev/null; return '$status"#,
                function = self.function(),
            ),
            Form::PowerShell => format!(
                r#"; $KrOk = $? }} catch {{ Write-Host $_; $KrOk = $false }}; $KrS = $(if ($KrOk) {{ 0 }} elseif ($LASTEXITCODE) {{ $LASTEXITCODE }} else {{ 1 }}); [Console]::Write(("{{0}}{{1}}]133;E;{{2}};k={{3}}{{4}}{{1}}\{{0}}{{1}}\{{5}}{{1}}(B{{1}}[4l{{1}}[?7h{{1}}[0m`r`n{{6}}{{7}}:{{2}}:{{3}}{{4}}`r`n" -f [char]24, [char]27, $KrS, '{n1}', '{n2}', [char]15, '{t1}', '{t2}'))"#
            ),
        }
    }
}

impl Sentinel {
    /// Drops what was noted of a command and leaves its status.
    fn restore_noted(&self, form: Form, names: &str) -> String {
        let (eval, unset, noted) = (eval(form), unset(form), self.variable());
        format!(r#"{eval}'{unset} {names}; case '"${noted}"' in 0) ;; *) (exit '"${noted}"');; esac' && :"#)
    }
}

/// Gives a pipe the time to pass on what the shell printed, before the start mark and before the end mark.
const BEGIN_DELAY: &str = r"\command sleep 0.1 || :; ";
const END_DELAY: &str = r"\command sleep 0.15 || :; ";

/// Tells the statuses of a pipeline.
const PIPELINE_FORMAT: &str = r"\030\033]133;L;%s;k=%s%s\033\134";

/// The format of what is printed at the end: the mark and the visible line.
fn end_format() -> String {
    format!(r"\030\033]133;E;%s;k=%s%s\033\134{READABLE}%s%s:%s:%s%s\r\n")
}

fn halves(text: &str) -> (&str, &str) {
    text.split_at(text.len() / 2)
}

#[cfg(test)]
mod tests {
    use super::quote::LINE_LIMIT_BYTES;
    use super::*;

    const FORMS: [Form; 6] = [Form::Posix, Form::Bash, Form::Mksh, Form::Zsh, Form::Fish, Form::PowerShell];
    const NONCE: &str = "0123456789abcdef";

    fn sentinel() -> Sentinel {
        Sentinel::new(None, NONCE).expect("a good nonce")
    }

    #[test]
    fn a_form_is_known_by_the_program() {
        for (program, expected) in [
            ("/bin/sh", Some(Form::Posix)),
            ("-dash", Some(Form::Posix)),
            ("bash-5.2", Some(Form::Bash)),
            ("ksh93", Some(Form::Posix)),
            ("mksh", Some(Form::Mksh)),
            ("zsh", Some(Form::Zsh)),
            ("fish", Some(Form::Fish)),
            (r"C:\Windows\powershell.exe", Some(Form::PowerShell)),
            ("pwsh", Some(Form::PowerShell)),
            ("tcsh", None),
            ("vim", None),
        ] {
            assert_eq!(Form::for_program(program), expected, "{program}");
        }
    }

    #[test]
    fn a_token_is_printable_and_needs_no_quoting() {
        for (token, good) in [
            ("DONE", true),
            ("__DONE_BY_ME__", true),
            ("$a{b}!*", true),
            ("abc", false),
            ("a b c", false),
            ("it's", false),
            ("100%", false),
            (r"a\nb", false),
            ("a`b`", false),
            ("fertig€", false),
        ] {
            assert_eq!(check_token(token).is_ok(), good, "{token}");
        }
        assert!(check_token(&"x".repeat(64)).is_ok() && check_token(&"x".repeat(65)).is_err());
        assert!(Sentinel::new(None, "0123").is_err() && Sentinel::new(None, "0123456z").is_err());
        assert_eq!(sentinel().token(), "__KR_DONE_01234567__");
    }

    #[test]
    fn commands_are_quoted_for_each_shell() {
        for (form, command, quoted) in [
            (Form::Posix, "it's", r"it'\''s'; } >/dev/null 2>&1; if ("),
            (Form::Posix, "a\tb", "a'\"$(\\command printf '\\011')\"'b\n{ k012345=$?; }"),
            (Form::Posix, "\u{9b}", r#"'"$(\command printf '\302\233')"'"#),
            (Form::Posix, r"a\", r"a\'; } >/dev/null 2>&1; if ("),
            (
                Form::Posix,
                "a\nb\0c )",
                "\na\nbc )'; } >/dev/null 2>&1; if (\\command eval \"ft012345() { if :; then\n$t012345\nfi; }\")",
            ),
            (
                Form::Zsh,
                "ls *(.)",
                "\nls *(.)'; } >/dev/null 2>&1; if (\\builtin eval \"ft012345() { if :; then\n$t012345\nfi; }\")",
            ),
            (Form::Zsh, "it's\u{1b}", r"it'\''s'$'\u001b'''; } >/dev/null 2>&1; if ("),
            (Form::Fish, r"it's \", r"it\'s \\'; eval"),
            (Form::Fish, "a\rb", "a'\\u000d'b\n\nbuiltin set -g s012345 $pipestatus'"),
            (Form::PowerShell, "it's\t", "it''s'+[char]9+''"),
        ] {
            let typed = sentinel().typed(form, command, &Pipeline::default());
            assert!(typed.contains(quoted), "{form:?} {command:?}: {typed}");
        }
    }

    #[test]
    fn lines_are_short_and_hold_neither_control_bytes_nor_the_sentinel() {
        let commands = ["x".repeat(6_000), "漢".repeat(2_000), "'".repeat(3_000), "\t\\'\n".repeat(900), String::new()];
        for form in FORMS {
            (0..1_200).for_each(|length| check_lines(form, &"y".repeat(length)));
            commands.iter().for_each(|command| check_lines(form, command));
        }
    }

    fn check_lines(form: Form, command: &str) {
        let token = "T".repeat(64);
        let typed =
            Sentinel::new(Some(&token), NONCE).expect("a good token").typed(form, command, &Pipeline::default());
        assert!(typed.lines().all(|line| line.len() <= LINE_LIMIT_BYTES), "{form:?} {}", command.len());
        assert!(!typed.contains(|c: char| c.is_control() && c != '\n'));
        assert!(!typed.contains(&token));
    }

    #[test]
    fn a_broken_line_joins_to_the_same_command() {
        let command = "漢x".repeat(1_000);
        for form in FORMS {
            let joined = sentinel().typed(form, &command, &Pipeline::default()).replace(form.line_break(), "");
            assert!(joined.contains(&command), "{form:?}");
        }
    }

    #[test]
    fn the_sentinel_has_token_status_and_nonce() {
        for (lines, expected) in [
            (vec!["out", "__KR_DONE_01234567__:17:0123456789abcdef   "], Some((1, 17))),
            (vec!["__KR_DONE_01234567__:-1:0123456789abcdef"], Some((0, -1))),
            (vec!["^[P1$r0m__KR_DONE_01234567__:0:0123456789abcdef"], Some((0, 0))),
            (vec!["__KR_DONE_01234567__:0:0123456789abcdef^[[?6c"], Some((0, 0))),
            (vec!["__KR_DONE_01234567__:0:0123456789abcdee"], None),
            (vec!["__KR_DONE_01234567__::0123456789abcdef"], None),
            (vec!["__KR_DONE_01234567__"], None),
            (vec![], None),
        ] {
            let found = sentinel().find(lines.iter().copied()).map(|found| (found.index, found.status));
            assert_eq!(found, expected, "{lines:?}");
        }
    }

    #[test]
    fn output_begins_after_the_echo_however_it_is_wrapped() {
        for form in FORMS {
            let typed = sentinel().typed(form, "echo hi\necho ho", &Pipeline::default());
            for width in [7, 40, 80, 2_000] {
                let mut rows = wrap(&format!("$ {}", typed.replace('\n', "\n> ")), width);
                let echo_rows = rows.len();
                rows.extend(["hi", "", "__KR_DONE_01234567__:0:0123456789abcdef"].map(str::to_owned));
                let found = sentinel().find(rows.iter().map(String::as_str)).expect("the last row");
                assert_eq!((found.index, found.start), (rows.len() - 1, Some(echo_rows)), "{form:?} {width}");
            }
        }
        let unseen = sentinel().find(["hi", "__KR_DONE_01234567__:0:0123456789abcdef"].into_iter());
        assert_eq!(unseen.map(|found| found.start), Some(None));
    }

    /// Rows of a screen, trailing blanks cut.
    fn wrap(text: &str, width: usize) -> Vec<String> {
        let rows = text.lines().flat_map(|line| line.as_bytes().chunks(width));
        rows.map(|row| String::from_utf8_lossy(row).trim_end().to_owned()).collect()
    }
}
