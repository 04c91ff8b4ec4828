//! The text of a typed form: what stands before the command, what runs it, and what stands behind it.
//!
//! The names of all variables and functions come from the nonce. They are gone when the end mark has been printed; of
//! those that the end mark needs, two stay while the command runs: which word reaches the shell's builtins (`b`, `c`).
//! Somebody may have a function `builtin` or `command`, or have disabled what we need: the word is found out by having it
//! set a variable.

use super::pipeline::Pipeline;
use super::quote::typed;
use super::words::quiet;
use super::{Form, Sentinel};
use kpty_guard::is_complete;

/// Before the visible line: cancel an open sequence, then undo what would make text unreadable (character set, insert
/// mode, no wrap, attributes) and go to an empty line: the cursor may stand above older text. Written as a format of
/// printf.
const READABLE: &str = r"\030\033\134\017\033(B\033[4l\033[?7h\033[0m\r\n\033[K";

/// Tells whether mksh's prompt can be changed; to change one that is read-only would be an error like any other.
const MAY_PROMPT: &str = "(PS1=) 2>&-";

/// Tells the statuses of a pipeline.
const PIPELINE_FORMAT: &str = r"\030\033]133;L;%s;k=%s%s\033\134";

/// The longest pause of a shell whose outputs go through pipes, in seconds.
const LONGEST_PAUSE: u32 = 60;

impl Sentinel {
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

    /// What a form begins with. After an open quote that was evaluated, bash takes no `{` for the first word of a line.
    fn first_word(&self, form: Form) -> String {
        match form {
            Form::Bash => {
                let [status, prefix, second] = ['q', 'b', 'c'].map(|letter| self.name_of(letter));
                format!("{status}=$? {}=$_ {prefix}= {second}=; ", self.last_argument())
            }
            _ => String::new(),
        }
    }

    /// Notes what the command before has left, and which word reaches the builtins.
    fn begin(&self, form: Form) -> String {
        let status = self.name_of('q');
        let (prefix, second) = (self.name_of('b'), self.name_of('c'));
        match form {
            Form::Posix => format!(r"{status}=$? {prefix}=; \command eval {prefix}=command || :"),
            Form::Bash => format!(
                r"\builtin eval {prefix}=builtin {second}=command || :; [[ ${prefix} ]] || \command eval {prefix}=command || :"
            ),
            Form::Mksh => format!(r"{status}=$? {prefix}=; \builtin eval {prefix}=builtin || :"),
            Form::Zsh => {
                format!(r"{status}=$? {}=$_ {prefix}=; \builtin eval {prefix}=builtin || :", self.name_of('a'))
            }
            Form::Fish | Form::PowerShell => String::new(),
        }
    }

    /// Prints the start and leaves the status as it was; to be put inside single quotes.
    fn mark(&self, form: Form, before: &Pipeline) -> String {
        // A shell that read several lines left its continuation prompt where the output is to begin.
        let mark = format!(r"\030\r\033[K\033]133;S;k={}\033\134", self.nonce);
        let again = before.again(form);
        let delay = if self.begins_late { self.delay() } else { String::new() };
        let (prefix, last) = (self.word(form, 'b'), self.last_argument());
        // Its value, as it is when the text is put together.
        let status = format!(r#"'"${}"'"#, self.name_of('q'));
        // The only way without a function of our own is a subshell; it is spared where the status is 0. As the left side of
        // `&&` it fires neither `set -e` nor a trap on errors.
        let restore = format!("case {status} in 0) ;; *) (exit {status}) && :;; esac");
        match form {
            Form::Posix => format!(r#"{delay}{}; {restore}"#, self.print(form, &format!("\"{mark}\""))),
            // The last argument of the call is `$_` then.
            Form::Bash => {
                let (name, printed) = (self.function(), self.name_of('m'));
                let status_and_last = format!("{} {last}", self.name_of('q'));
                format!(
                    r#"{name}() {{ {delay}{printed}=; {prefix} printf -v {printed} "{mark}"; [[ ${printed} ]] && {prefix} printf %s "${printed}" >&0 || \command printf "{mark}" >/dev/tty; {prefix} unset {printed} {status_and_last}; {prefix} unset -f {name}; {prefix} return "$1"; (exit "$1"); }}; {name} {status} "${last}" && [[ 1 ]]{again}"#
                )
            }
            // The mark comes last, behind the trace of all this (`set -x`).
            Form::Mksh => {
                let (name, hook, armed) = (self.function(), self.prompt_hook(), self.prompt_variable());
                format!(
                    r#"{name}() {{ {prefix} command printf "{mark}" >&0 || \command printf "{mark}" >/dev/tty; }}; {delay}{MAY_PROMPT} && {armed}= PS1="{hook}$PS1"; case $-{status} in *[!0-9]0) {name};; *x*) sh -c "printf \"\$0\" >&0; exit \$1" "{mark}" {status} && :;; *) {name}; (exit {status}) && :;; esac{again}"#
                )
            }
            // The mark comes last, because zsh shows the trace of what restores the status. All of it stands on the left
            // of `&&`: what is inside of `always` is no longer exempt from `set -e`. The last argument of what prints is `$_`.
            Form::Zsh => {
                let print = self.print(form, &format!("\"{mark}%.0s\" \"${}\"", self.name_of('a')));
                format!(
                    r#"{{ () {{ {prefix} return $1; (exit $1); }} {status}; }} always {{ {print}; }} && [[ -n 1 ]]{again}"#
                )
            }
            Form::Fish => format!(r#"builtin printf "{mark}" >/dev/tty 2>/dev/null; return '$status'"#),
            Form::PowerShell => {
                format!(r#"[Console]::Write("$([char]24)$([char]27)]133;S;k={}$([char]27)\")"#, self.nonce)
            }
        }
    }

    /// Prints to the terminal; `arguments` are those of printf. Somebody may have disabled the builtin.
    fn print(&self, form: Form, arguments: &str) -> String {
        let (name, prefix, unset) = (self.function(), self.word(form, 'b'), self.unset(form));
        let printf = match form {
            // A function would be traced behind the mark.
            Form::Zsh => {
                return format!(r"{prefix} printf {arguments} >/dev/tty || \command printf {arguments} >/dev/tty");
            }
            Form::Posix => return format!(r"{prefix} printf {arguments} >/dev/tty"),
            // What a function of somebody's prints instead goes nowhere.
            Form::Bash => {
                let printed = self.name_of('m');
                return format!(
                    r#"{name}() {{ {printed}=; {prefix} printf -v {printed} "$@"; [[ ${printed} ]] && {prefix} printf %s "${printed}" >&0 || \command printf "$@" >/dev/tty; }}; {name} {arguments}; {unset} {printed}; {unset} -f {name}"#
                );
            }
            Form::Mksh => format!("{prefix} command printf"),
            Form::Fish | Form::PowerShell => "printf".to_owned(),
        };
        format!(
            r#"{name}() {{ {printf} "$@" >&0 || \command printf "$@" >/dev/tty; }}; {name} {arguments}; {unset} -f {name}"#
        )
    }

    /// The argument of the `sleep` by which a form pauses before a mark. No other has this one.
    pub fn pause(&self) -> String {
        let digits: String = self.nonce.bytes().take(9).map(|byte| char::from(b'0' + byte % 10)).collect();
        format!("{LONGEST_PAUSE}.{digits}")
    }

    fn delay(&self) -> String {
        format!(r"\command sleep {} || :; ", self.pause())
    }

    /// A name that is there for a moment; no other command's, and nobody else's.
    fn name_of(&self, letter: char) -> String {
        format!("{letter}{}", &self.nonce[..6])
    }

    fn function(&self) -> String {
        self.name_of('f')
    }

    /// The variable that holds the last argument of a command.
    fn last_argument(&self) -> String {
        self.name_of('l')
    }

    /// The variable that holds the statuses of a pipeline.
    fn pipeline_variable(&self) -> String {
        self.name_of('s')
    }

    /// A word from a variable, or none where that is empty; `IFS` may have letters that would cut it. In mksh there is no
    /// room for that on the line.
    fn word(&self, form: Form, letter: char) -> String {
        let name = self.name_of(letter);
        match form {
            Form::Mksh => format!("${name}"),
            _ => format!(r#"${{{name}:+"${name}"}}"#),
        }
    }

    /// Runs a text in this shell; an error in it must not end the shell.
    fn eval(&self, form: Form) -> String {
        let prefix = self.word(form, 'b');
        match form {
            Form::Bash => format!("{prefix} {} eval ", self.word(form, 'c')),
            // In mksh, `command` would keep positional parameters and `typeset` from the shell.
            _ => format!("{prefix} eval "),
        }
    }

    /// Removes variables, or functions with `-f` behind it.
    fn unset(&self, form: Form) -> String {
        match form {
            Form::Bash | Form::Mksh | Form::Zsh => format!("{} unset", self.word(form, 'b')),
            _ => r"\unset".to_owned(),
        }
    }

    /// Everything before the command, up to and into its open quote.
    ///
    /// The mark is inside the evaluated text, behind a trace of `eval` itself. zsh and fish read that text as a whole
    /// and run nothing of it after a syntax error: there the mark comes before it, too.
    fn start(&self, form: Form, before: &Pipeline) -> String {
        match form {
            Form::Posix | Form::Bash | Form::Mksh | Form::Zsh => self.opening(form, &self.eval(form), "", before),
            Form::Fish => {
                let mark = self.mark(form, before);
                let again = before.again_by(&self.function());
                format!("eval '{mark}'; eval 'eval \"{}\"{again}\n", mark.replace('"', "\\\\\""))
            }
            Form::PowerShell => {
                format!("try {{ Invoke-Expression '{}\n", self.mark(form, before))
            }
        }
    }

    /// The same where the evaluated text has to be looked at first: it becomes the value of a variable.
    fn start_of_text(&self, form: Form, before: &Pipeline) -> String {
        let text = self.text_variable();
        self.opening(form, &format!("{{ {text}="), &format!("{} {text}; ", self.unset(form)), before)
    }

    fn opening(&self, form: Form, verb: &str, first: &str, before: &Pipeline) -> String {
        let (mark, quiet) = (self.mark(form, before), quiet(form));
        let mark_before = match form {
            Form::Zsh => format!("{{ {{ {}'{mark}' && :; }} {quiet}; ", self.eval(form)),
            _ => String::new(),
        };
        let (word, begin) = (self.first_word(form), self.begin(form));
        format!("{word}{{ {begin}; }} {quiet}; {mark_before}{verb}'{{ {first}{mark}; }} {quiet}\n")
    }

    /// Runs the text. As the body of a function it is read and not run, and is whole or none; in a condition, that fires
    /// neither `set -e` nor a trap, and in a subshell an error ends nothing else. A shell that reads a text as a whole does
    /// not run what unsets the variable in it.
    fn run_text(&self, form: Form, last_act: &str) -> String {
        // The text stands between double quotes.
        let last_act_later = last_act.replace('"', r#"\""#).replace('$', r"\$");
        let (eval, unset, quiet, text) = (self.eval(form), self.unset(form), quiet(form), self.text_variable());
        let as_it_is = match form {
            // With `set -e` the error would end the shell.
            Form::Mksh | Form::Bash => format!(r#"case $- in *e*) ({eval}"${text}");; *) {eval}"${text}";; esac"#),
            // mksh and its kin under another name, or far away: the error would take the end mark with it.
            Form::Posix => {
                format!(r#"case ${{KSH_VERSION-}} in "@(#)"*) ({eval}"${text}");; *) {eval}"${text}";; esac"#)
            }
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
        self.name_of('t')
    }

    /// Notes the status of the command, and what else the next one can see of it.
    fn noted(&self, form: Form) -> String {
        let (status, statuses, last) = (self.variable(), self.pipeline_variable(), self.last_argument());
        match form {
            Form::Posix if self.is_rendered => format!("{status}=$?"),
            Form::Zsh if self.is_rendered => format!(r#"{status}=$? {statuses}="${{pipestatus[*]}}" {last}=$_"#),
            // Twice, so that a trace of it shows what stands before all traces.
            Form::Posix => {
                format!(r#"{status}=${{{status}-$?}}; {status}=${status}; {}"#, self.print(form, &self.note("")))
            }
            Form::Bash => format!(r#"{status}=$? {statuses}="${{PIPESTATUS[*]}}" {last}=$_"#),
            Form::Mksh => format!(r#"{status}=$? {statuses}="${{PIPESTATUS[*]}}"; {status}=${status}"#),
            Form::Zsh => format!(
                r#"{status}=${{{status}-$?}} {statuses}="${{{statuses}-${{pipestatus[*]}}}}" {last}="${{{last}-$_}}"; {}"#,
                self.print(form, &self.note("${options[debugbeforecmd]-}"))
            ),
            Form::Fish | Form::PowerShell => String::new(),
        }
    }

    /// Tells that the command is over, as arguments of printf.
    fn note(&self, before: &str) -> String {
        let (n1, n2) = halves(&self.nonce);
        format!(r#""\030\033]133;T;%s;k=%s%s\033\134" "{before}" {n1} {n2}"#)
    }

    /// The same as the last act of the evaluated text.
    fn last_act(&self, form: Form) -> String {
        match form {
            Form::Fish | Form::PowerShell => String::new(),
            _ if self.is_rendered => format!("{{ {}; }} {}", self.noted(form), quiet(form)),
            // Some of these show a redirection in their trace, and nothing tells that from the command's own. What is
            // noted is known by its name, and is taken out of the output.
            Form::Mksh => format!("{{ {}; }}", self.noted(form)),
            Form::Posix => format!("{{ {0}; }}; {{ {0}; }}", self.noted(form)),
            Form::Bash => format!("{{ {}; }} {}", self.noted(form), quiet(form)),
            // Twice the same, for a trap that runs for each command.
            Form::Zsh => format!("{{ {0}; }} {1}; {{ {0}; }} {1}", self.noted(form), quiet(form)),
        }
    }

    /// The variable that holds the status for a moment.
    fn variable(&self) -> String {
        self.name_of('k')
    }

    /// How a trace shows that the status was noted (`set -x`).
    pub(crate) fn trace(&self) -> String {
        format!("{}=", self.variable())
    }

    /// The variable that makes the hook in mksh's prompt work, and is part of nothing else in there. A copy of the prompt
    /// that a command keeps for later holds a hook that does nothing.
    fn prompt_variable(&self) -> String {
        self.name_of('p')
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
        let (armed, unset) = (self.prompt_variable(), self.unset(Form::Mksh));
        let without = format!("${{PS1%%??{armed}+*}}${{PS1##*{armed}-?}}");
        format!(r"{unset} {armed}; case $PS1 in *{armed}-*) {MAY_PROMPT} && PS1={without};; esac")
    }

    /// What follows the evaluated text: prints the end and leaves the status of the command.
    pub(super) fn end(&self, form: Form) -> String {
        let noted = self.variable();
        let tail = self.tail(form);
        match form {
            Form::Posix | Form::Mksh => format!(r#"; {{ : "${{{noted}=$?}}"; {tail}"#),
            Form::Bash => format!("; {{ {noted}=${{{noted}-$?}}; {tail}"),
            Form::Zsh => {
                let quiet = quiet(form);
                format!(
                    r#"; }} always {{ {{ : "${{{noted}=$?}}"; {print}; }} {quiet}; }}; {{ {tail}"#,
                    print = self.print_end(form)
                )
            }
            Form::Fish | Form::PowerShell => tail,
        }
    }

    /// Prints the end mark and the visible line.
    fn print_end(&self, form: Form) -> String {
        let ((t1, t2), (n1, n2)) = (halves(&self.token), halves(&self.nonce));
        let (noted, statuses) = (self.variable(), self.pipeline_variable());
        let (s1, s2) = (t1.replace('$', r"\$"), t2.replace('$', r"\$"));
        let format = end_format();
        let values = format!(r#""${noted}" {n1} {n2} "{s1}" "{s2}" "${noted}" {n1} {n2}"#);
        let delay = if self.is_delayed { self.delay() } else { String::new() };
        let arguments = match form {
            Form::Posix => format!(r#""{format}" {values}"#),
            _ => format!(r#""{PIPELINE_FORMAT}{format}" "${{{statuses}-}}" {n1} {n2} {values}"#),
        };
        format!("{delay}{}", self.print(form, &arguments))
    }

    /// How the end of a typed form ends, for each kind of command.
    pub(super) fn tail(&self, form: Form) -> String {
        let ((t1, t2), (n1, n2)) = (halves(&self.token), halves(&self.nonce));
        let (noted, statuses, last) = (self.variable(), self.pipeline_variable(), self.last_argument());
        let (unset, quiet) = (self.unset(form), quiet(form));
        let (status, prefix, second) = (self.name_of('q'), self.name_of('b'), self.name_of('c'));
        match form {
            Form::Posix => {
                let restore = self.restore_noted(form, &format!("{noted} {status} {prefix}"));
                format!("{}; {restore}; }} {quiet}", self.print_end(form))
            }
            Form::Mksh => {
                let restore = self.restore_noted(form, &format!("{noted} {statuses} {status} {prefix}"));
                format!("{}; {}; {restore}; }} {quiet}", self.unhooked(), self.print_end(form))
            }
            Form::Bash => {
                let name = self.function();
                let print = self.print_end(form);
                format!(
                    r#"{print}; {name}() {{ {unset} -f {name}; {unset} {noted} {statuses} {last} {status} {second} {prefix}; \builtin return "$1"; (exit "$1"); }}; {name} "${noted}" "${{{last}-}}" && [[ 1 ]]; }} {quiet}"#
                )
            }
            Form::Zsh => format!(
                r#"() {{ {unset} {noted} {statuses} {last} {status} {before} {prefix}; \builtin return $1; [[ $1 == 0 ]] || (exit $1); }} "${noted}" "${{{last}-}}" && [[ -n 1 ]]; }} {quiet}"#,
                before = self.name_of('a'),
            ),
            Form::Fish => format!(
                r#"; eval 'builtin printf "{PIPELINE_FORMAT}{format}" "${statuses}" "{n1}" "{n2}" '$status' "{n1}" "{n2}" \'{t1}\' \'{t2}\' '$status' "{n1}" "{n2}" >/dev/tty 2>/dev/null; builtin set -e {statuses}; builtin functions -e {function} 2>/dev/null; return '$status"#,
                function = self.function(),
                format = end_format(),
            ),
            Form::PowerShell => format!(
                r#"; $KrOk = $? }} catch {{ Write-Host $_; $KrOk = $false }}; $KrS = $(if ($KrOk) {{ 0 }} elseif ($LASTEXITCODE) {{ $LASTEXITCODE }} else {{ 1 }}); [Console]::Write(("{{0}}{{1}}]133;E;{{2}};k={{3}}{{4}}{{1}}\{{0}}{{1}}\{{5}}{{1}}(B{{1}}[4l{{1}}[?7h{{1}}[0m`r`n{{6}}{{7}}:{{2}}:{{3}}{{4}}`r`n" -f [char]24, [char]27, $KrS, '{n1}', '{n2}', [char]15, '{t1}', '{t2}'))"#
            ),
        }
    }

    /// Drops what was noted of a command and leaves its status.
    fn restore_noted(&self, form: Form, names: &str) -> String {
        let (eval, unset, noted) = (self.eval(form), self.unset(form), self.variable());
        format!(r#"{eval}'{unset} {names}; case '"${noted}"' in 0) ;; *) (exit '"${noted}"');; esac' && :"#)
    }
}

/// The format of what is printed at the end: the mark and the visible line.
fn end_format() -> String {
    format!(r"\030\033]133;E;%s;k=%s%s\033\134{READABLE}%s%s:%s:%s%s\r\n")
}

fn halves(text: &str) -> (&str, &str) {
    text.split_at(text.len() / 2)
}
