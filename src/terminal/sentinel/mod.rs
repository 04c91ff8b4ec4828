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

mod forms;
mod pipeline;
mod quote;
mod words;

pub use self::pipeline::Pipeline;

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
    /// The end is printed after a pause: the output takes a longer way.
    is_delayed: bool,
    /// The start as well: what is typed is shown through a pipe.
    begins_late: bool,
    /// Only the rendered lines are seen: marks that change none of them are not worth their room on the screen.
    is_rendered: bool,
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
        Ok(Self {
            capitals: token.to_ascii_uppercase(),
            token,
            nonce: nonce.to_owned(),
            is_delayed: false,
            begins_late: false,
            is_rendered: false,
        })
    }

    /// The same for a shell whose output goes through a pipe (`exec > >(tee …)`), while the marks are printed to the
    /// terminal: pauses before a mark until somebody ends the pause, so that whoever reads the pipe can pass the output on.
    /// `begins_late` says that the echo of what is typed takes that way, too.
    pub fn delayed(self, begins_late: bool) -> Self {
        Self { is_delayed: true, begins_late, ..self }
    }

    /// The same for a reader who sees nothing but the rendered lines.
    pub fn rendered(self) -> Self {
        Self { is_rendered: true, ..self }
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
    pub(crate) fn name(&self) -> &str {
        &self.nonce[..6]
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
            let end: String = self.tail(form).split_whitespace().collect();
            text.rfind(&end).map(|at| at + end.len())
        };
        let forms = [Form::Posix, Form::Bash, Form::Mksh, Form::Zsh, Form::Fish, Form::PowerShell];
        let at = forms.into_iter().filter_map(ends_at).max()?;
        Some(ends.partition_point(|&end| end < at) + 1)
    }
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
            (Form::Posix, "it's", r"it'\''s'"),
            (Form::Posix, "a\tb", "a'\"$(\\command printf '\\011')\"'b\n{ k012345=${k012345-$?};"),
            (Form::Posix, "\u{9b}", r#"'"$(\command printf '\302\233')"'"#),
            (Form::Posix, r"a\", r"a\'"),
            (Form::Posix, "a\nb\0c )", "\na\nbc )'"),
            (Form::Bash, "a\tb", r"a'$'\011''b"),
            (Form::Mksh, "a\u{9b}b", r"a'$'\302\233''b"),
            (Form::Zsh, "ls *(.)", "\nls *(.)'"),
            (Form::Zsh, "it's\u{1b}", r"it'\''s'$'\u001b''"),
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
