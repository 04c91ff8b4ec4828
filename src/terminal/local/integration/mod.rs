//! Start-up files that make bash, zsh and fish mark prompts, commands and their ends.
//!
//! Pure text: the caller writes the files with mode 0600 into a private directory, starts the shell with the arguments
//! and variables given here and removes the files after the first prompt. The user's own start-up files still run.
//! The secret of a session is literal text in the shell's functions and prompts; it must never enter an argument or the
//! environment, because children inherit those. What the marks mean for a command is decided elsewhere.
//!
//! | mark | meaning |
//! | --- | --- |
//! | `OSC 133;A;<status>;k=<secret>` | a prompt begins; the status is a reserve for a lost end |
//! | `OSC 133;B;k=<secret>` | the prompt is complete, the shell reads |
//! | `OSC 133;P;k=<secret>` | the command is incomplete: continuation prompt (bash, zsh), or kept in the editor as incomplete or wrong (fish) |
//! | `OSC 133;C;k=<secret>` | a command starts; bash sends one per line of a paste |
//! | `OSC 133;D;<status>;k=<secret>` | everything typed has ended; a `v` behind the status says that bash shows its hooks |
//! | `OSC 133;V;k=<secret>` | part of a hook's text: it is shown from here on |
//! | `OSC 133;F;k=<secret>` | all start-up files have been read |
//! | `OSC 133;N;k=<secret>` | starts of commands cannot be marked |
//! | `OSC 7;file://<secret><directory>` | around an end, where the directory is new |

use std::path::Path;

const BASH: &str = include_str!("bash.sh");
const ZSH: &str = include_str!("zsh.zsh");
const FISH: &str = include_str!("fish.fish");

/// Ctrl-C. A signal: it overtakes the keys before it and finds the shell wherever that is.
pub(super) const INTERRUPT: &[u8] = b"\x03";

/// What the start-up files of zsh and fish bind to taking an unfinished command back.
const CANCEL_KEY: &[u8] = b"\x1b[990~";

/// What the start-up files bind to emptying the line. Before it, a key that ends what somebody began (a search, a prefix
/// like Ctrl-X, Ctrl-V) and would take the escape character for itself: Ctrl-G in bash; in zsh, where that gives up the
/// line and changes `$?`, a blank.
const CLEAR_BASH: &[u8] = b"\x07\x1b[991~";
const CLEAR_ZSH: &[u8] = b" \x1b[991~";
const CLEAR_FISH: &[u8] = b"\x1b[991~";

/// Prints to the terminal in zsh, where nothing of the user's is in the place of what prints, or can be passed by.
const ZSH_TELL: &str = r#"() { [[ ${+functions[printf]}${+functions[builtin]}${+builtins[builtin]}${+builtins[printf]} == (0??|101)1 && /dev/fd/1 -ef ${TTY-} ]] && ${functions[printf]+builtin} printf "$@" || [[ ${+functions[printf]}${+functions[builtin]}${+builtins[builtin]}${+builtins[printf]} != (0??|101)1 ]] || ${functions[printf]+builtin} printf "$@" >|/dev/tty || [[ -n 1 ]] }"#;

/// What an interactive bash reads by itself; it is silent about a missing file.
const BASH_USER_FILES: &str = r"if [[ -r ~/.bashrc ]]; then \builtin . ~/.bashrc; fi";

/// What a login bash reads. It ignores `--rcfile`, so it is started in POSIX mode, where it reads `ENV` and nothing else;
/// this takes back what that mode has changed. One group, so that an alias of the first file cannot change the second.
const BASH_LOGIN_FILES: &str = r"{
  \builtin set +o posix
  \builtin shopt -u inherit_errexit
  @ENV@
  if [[ ${HISTFILE-} == ~/.sh_history ]]; then HISTFILE=~/.bash_history; fi
  if [[ -r /etc/profile ]]; then \builtin . /etc/profile; fi
  if [[ -r ~/.bash_profile ]]; then \builtin . ~/.bash_profile
  elif [[ -r ~/.bash_login ]]; then \builtin . ~/.bash_login
  elif [[ -r ~/.profile ]]; then \builtin . ~/.profile
  fi
}";

/// A shell that can be given start-up files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegratedShell {
    /// GNU bash; marks need 5.1 or later, an older one starts without them.
    Bash,
    /// The Z shell.
    Zsh,
    /// The friendly interactive shell.
    Fish,
}

impl IntegratedShell {
    /// Tells by the file name of a program, which may be a login name (`-bash`) or carry a version (`bash-5.2`).
    pub fn from_program(path: impl AsRef<Path>) -> Option<Self> {
        let name = path.as_ref().file_name()?.to_str()?.trim_start_matches('-');
        let name = name.strip_suffix(".exe").unwrap_or(name);
        match name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-') {
            "bash" => Some(Self::Bash),
            "zsh" => Some(Self::Zsh),
            "fish" => Some(Self::Fish),
            _ => None,
        }
    }

    /// What empties the line, whatever stands there, and leaves `$?` alone.
    pub(super) fn clearing(self) -> &'static [u8] {
        match self {
            Self::Bash => CLEAR_BASH,
            Self::Zsh => CLEAR_ZSH,
            Self::Fish => CLEAR_FISH,
        }
    }

    /// What takes an unfinished command back, each tried when the one before came to nothing.
    pub(super) fn cancelling(self) -> &'static [&'static [u8]] {
        match self {
            Self::Bash => &[INTERRUPT],
            Self::Zsh | Self::Fish => &[CANCEL_KEY, INTERRUPT],
        }
    }
}

/// How to start a shell so that it sends marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// All arguments, the user's included, without the program's name.
    pub args: Vec<String>,
    /// Variables to set in the environment of the shell.
    pub env: Vec<(String, String)>,
    /// Files to write into the directory: name and content. They hold the secret.
    pub files: Vec<(String, String)>,
}

/// Prepares the start of `shell` with start-up files in `dir`, an absolute path.
///
/// `inherited` gives the variables the shell would have without us: what is used of them here is handed back to the user.
/// `None` when marks are impossible: the arguments name a command, a script, other start-up files or a mode that reads
/// none, the path is not UTF-8, or the secret is not 32 hexadecimal digits.
pub fn prepare(
    shell: IntegratedShell,
    secret: &str,
    dir: &Path,
    user_args: &[String],
    inherited: &dyn Fn(&str) -> Option<String>,
) -> Option<Launch> {
    if secret.len() != 32 || !secret.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let dir = dir.to_str()?;
    let launch = match shell {
        IntegratedShell::Bash => bash(dir, Args::parse(user_args, &BASH_OPTIONS)?, inherited)?,
        IntegratedShell::Zsh => zsh(dir, Args::parse(user_args, &ZSH_OPTIONS)?, inherited),
        IntegratedShell::Fish => fish(dir, Args::parse(user_args, &FISH_OPTIONS)?),
    };
    let files = launch.files.into_iter().map(|(name, text)| (name, text.replace("@SECRET@", secret))).collect();
    Some(Launch { files, ..launch })
}

fn bash(dir: &str, args: Args, inherited: &dyn Fn(&str) -> Option<String>) -> Option<Launch> {
    if inherited("POSIXLY_CORRECT").is_some() {
        return None; // The user wants a POSIX shell, and such a bash reads no rcfile.
    }
    let file = format!("{dir}/init.bash");
    let (user_files, mut all, env) = if args.login {
        let restore = BASH_LOGIN_FILES.replace("@ENV@", &restore("ENV", inherited));
        (restore, vec!["--posix".to_owned()], vec![("ENV".to_owned(), file)])
    } else {
        (BASH_USER_FILES.to_owned(), vec!["--rcfile".to_owned(), file], Vec::new())
    };
    // Long options must come before short ones, or bash only prints its usage.
    let (long, short): (Vec<_>, Vec<_>) = args.rest.into_iter().partition(|arg| arg.starts_with("--"));
    all.extend(long);
    all.push("-i".to_owned());
    all.extend(args.login.then(|| "-l".to_owned()));
    all.extend(short);
    Some(Launch { args: all, env, files: vec![("init.bash".to_owned(), BASH.replace("@USER_FILES@", &user_files))] })
}

fn zsh(dir: &str, args: Args, inherited: &dyn Fn(&str) -> Option<String>) -> Launch {
    let mut all = vec!["-i".to_owned()];
    all.extend(args.login.then(|| "-l".to_owned()));
    all.extend(args.rest);
    Launch {
        args: all,
        env: vec![("ZDOTDIR".to_owned(), dir.to_owned())],
        files: vec![(
            ".zshenv".to_owned(),
            ZSH.replace("@TELL@", ZSH_TELL).replace("@ZDOTDIR@", &restore("ZDOTDIR", inherited)),
        )],
    }
}

fn fish(dir: &str, args: Args) -> Launch {
    let mut all = vec!["-i".to_owned()];
    all.extend(args.login.then(|| "-l".to_owned()));
    all.extend(args.rest);
    let file = format!("{dir}/init.fish").replace('\\', r"\\").replace('\'', r"\'");
    all.extend(["-C".to_owned(), format!("source '{file}'")]);
    Launch { args: all, env: Vec::new(), files: vec![("init.fish".to_owned(), FISH.to_owned())] }
}

/// Gives a variable that we have occupied back to the user. It is exported already.
fn restore(name: &str, inherited: &dyn Fn(&str) -> Option<String>) -> String {
    match inherited(name) {
        Some(value) => format!("{name}='{}'", value.replace('\'', r"'\''")),
        None => format!(r"\builtin unset {name}"),
    }
}

/// The options that leave an interactive shell reading its start-up files and a terminal.
struct Options {
    letters: &'static str,
    long: &'static [&'static str],
    /// Options followed by a value, and the values allowed; an empty list allows all.
    valued: &'static [(&'static str, &'static [&'static str])],
}

const BASH_OPTIONS: Options =
    Options { letters: "abefhkmuvxBCEHPT", long: &["--noediting"], valued: &[("-o", &["vi", "emacs"])] };
const ZSH_OPTIONS: Options = Options { letters: "euvx", long: &[], valued: &[("-o", &["vi", "emacs"])] };
const FISH_OPTIONS: Options = Options {
    letters: "NP",
    long: &["--no-config", "--private"],
    valued: &[("-C", &[]), ("--init-command", &[]), ("-f", &[]), ("--features", &[])],
};

/// The user's arguments, understood.
struct Args {
    login: bool,
    rest: Vec<String>,
}

impl Args {
    fn parse(args: &[String], options: &Options) -> Option<Self> {
        let mut parsed = Self { login: false, rest: Vec::new() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            if let Some((_, values)) = options.valued.iter().find(|(name, _)| name == arg) {
                let value = args.next()?;
                if !values.is_empty() && !values.contains(&value.as_str()) {
                    return None;
                }
                parsed.rest.extend([arg.clone(), value.clone()]);
            } else if arg.starts_with("--") {
                parsed.long(arg, options)?;
            } else {
                parsed.letters(arg.strip_prefix('-')?, options)?;
            }
        }
        Some(parsed)
    }

    fn long(&mut self, arg: &str, options: &Options) -> Option<()> {
        let known = options.long.contains(&arg)
            || arg.split_once('=').is_some_and(|(name, _)| options.valued.iter().any(|(valued, _)| *valued == name));
        match arg {
            "--login" => self.login = true,
            "--interactive" => {}
            _ if known => self.rest.push(arg.to_owned()),
            _ => return None,
        }
        Some(())
    }

    fn letters(&mut self, letters: &str, options: &Options) -> Option<()> {
        let mut rest = String::new();
        for letter in letters.chars() {
            match letter {
                'i' => {}
                'l' => self.login = true,
                _ if options.letters.contains(letter) => rest.push(letter),
                _ => return None,
            }
        }
        if !rest.is_empty() {
            self.rest.push(format!("-{rest}"));
        }
        (!letters.is_empty()).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn launch(shell: IntegratedShell, args: &str) -> Option<Launch> {
        let args: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
        let inherited = |name: &str| (name == "ZDOTDIR").then(|| "/it's".to_owned());
        prepare(shell, SECRET, Path::new("/run/x"), &args, &inherited)
    }

    #[test]
    fn a_shell_is_known_by_its_file_name() {
        for (program, expected) in [
            ("/bin/bash", Some(IntegratedShell::Bash)),
            ("-bash", Some(IntegratedShell::Bash)),
            ("/opt/bash-5.2", Some(IntegratedShell::Bash)),
            ("zsh-5.9", Some(IntegratedShell::Zsh)),
            ("/usr/bin/fish", Some(IntegratedShell::Fish)),
            ("/bin/sh", None),
            ("rbash", None),
            ("bashful", None),
            ("", None),
        ] {
            assert_eq!(IntegratedShell::from_program(program), expected, "{program}");
        }
    }

    #[test]
    fn arguments_are_kept_and_ordered() {
        use IntegratedShell::{Bash, Fish, Zsh};
        for (shell, args, expected) in [
            (Bash, "", Some("--rcfile /run/x/init.bash -i")),
            (Bash, "-i", Some("--rcfile /run/x/init.bash -i")),
            (Bash, "-ux --noediting -o vi", Some("--rcfile /run/x/init.bash --noediting -i -ux -o vi")),
            (Bash, "-il", Some("--posix -i -l")),
            (Bash, "--login -x", Some("--posix -i -l -x")),
            (Bash, "-c true", None),
            (Bash, "script.sh", None),
            (Bash, "--norc", None),
            (Bash, "--rcfile f", None),
            (Bash, "-o posix", None),
            (Bash, "-", None),
            (Zsh, "", Some("-i")),
            (Zsh, "-l", Some("-i -l")),
            (Zsh, "-f", None),
            (Zsh, "--emulate sh", None),
            (Fish, "--login", Some("-i -l -C source '/run/x/init.fish'")),
            (Fish, "-C true -N", Some("-i -C true -N -C source '/run/x/init.fish'")),
            (Fish, "--init-command=true", Some("-i --init-command=true -C source '/run/x/init.fish'")),
            (Fish, "-C", None),
            (Fish, "-c true", None),
        ] {
            let actual = launch(shell, args).map(|launch| launch.args.join(" "));
            assert_eq!(actual.as_deref(), expected, "{shell:?} {args}");
        }
    }

    #[test]
    fn the_secret_is_in_the_files_and_nowhere_else() {
        for shell in [IntegratedShell::Bash, IntegratedShell::Zsh, IntegratedShell::Fish] {
            for args in ["", "-l"] {
                let launch = launch(shell, args).expect("plain arguments");
                assert!(!format!("{:?} {:?}", launch.args, launch.env).contains(SECRET));
                for (name, text) in &launch.files {
                    assert!(text.contains(SECRET) && !text.contains("@SECRET@"), "{name}");
                    assert!(
                        !["@USER_FILES@", "@ZDOTDIR@", "@ENV@", "@TELL@ "].iter().any(|hole| text.contains(hole)),
                        "{name}"
                    );
                }
            }
        }
        assert_eq!(prepare(IntegratedShell::Bash, "';ls", Path::new("/x"), &[], &|_| None), None);
    }

    #[test]
    fn what_we_occupy_is_given_back() {
        let zsh = launch(IntegratedShell::Zsh, "").expect("no arguments");
        assert_eq!(zsh.env, [("ZDOTDIR".to_owned(), "/run/x".to_owned())]);
        assert!(zsh.files[0].1.contains(r"ZDOTDIR='/it'\''s'"));
        let bash = launch(IntegratedShell::Bash, "-l").expect("a login shell");
        assert_eq!(bash.env, [("ENV".to_owned(), "/run/x/init.bash".to_owned())]);
        assert!(bash.files[0].1.contains(r"\builtin unset ENV"));
    }
}
