//! The attention state of a terminal: what its program does, and whether it goes on without input.
//!
//! Pure: [`Attention::judge`] weighs facts that somebody else has gathered, for a session of this server from the system
//! and from the screen, for a desktop's from its text. What the system says about a process counts before anything that
//! the screen shows: text that looks like a question proves nothing while nobody reads.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kpty_guard::{Masked, Redactor};
use serde::{Serialize, Serializer};
use strum::IntoStaticStr;

use super::secret_question::is_secret_question;

/// How long a program that could read is silent until an unfinished line counts as its question.
const SETTLED: Duration = Duration::from_millis(300);
/// The same where nobody tells whether it reads: a program on another machine, or of another user.
const SETTLED_UNSEEN: Duration = Duration::from_secs(1);
/// How long a program that does not read is silent until it is called quiet.
const QUIET: Duration = Duration::from_secs(3);
/// Lines with text below the cursor that only a program has that draws the whole screen.
const PAINTED_BELOW: usize = 5;

/// Programs that show a text page by page.
const PAGERS: [&str; 6] = ["less", "more", "most", "pg", "lv", "pager"];
/// What a program shows that waits between two pages.
const PAGER_TEXTS: [&str; 7] = [
    "--more--",
    "-- more --",
    "(end)",
    "--type <ret> for more",
    "press return to continue",
    "press space to continue",
    "(press h for help or q to quit)",
];
/// Programs that draw the whole screen, also where they do not use the alternate one.
#[rustfmt::skip]
const FULL_SCREEN: [&str; 39] = [
    "alsamixer", "atop", "btop", "cfdisk", "dialog", "emacs", "glances", "helix", "htop", "hx", "iftop", "info",
    "iotop", "jed", "joe", "k9s", "lazygit", "lf", "links", "lynx", "mc", "micro", "mutt", "nano", "ncdu", "nethogs",
    "nmtui", "nnn", "nvim", "pico", "ranger", "screen", "tig", "tmux", "top", "vi", "vim", "w3m", "whiptail",
];
/// What the names of programs begin with that ask for passphrases on behalf of others.
pub(super) const PINENTRY: &str = "pinentry";
/// Shells, whose `read` may have a time limit.
const SHELLS: [&str; 8] = ["bash", "zsh", "dash", "sh", "ksh", "ksh93", "mksh", "fish"];

/// What a terminal's program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum AttentionState {
    /// The shell has not shown its first prompt.
    Starting,
    /// A shell reads the next command.
    Prompt,
    /// A program works, or was heard of a moment ago.
    Running,
    /// A program has been silent for a while; nothing says that it waits for input.
    Quiet,
    /// A program reads, and shows what is typed: a question, a menu, an interpreter.
    InputLine,
    /// A program reads something that is not shown.
    InputSecret,
    /// A text is shown page by page.
    Pager,
    /// A program has taken the whole screen.
    FullScreen,
    /// The program in the foreground is stopped.
    Stopped,
    /// The session's program has ended.
    Dead,
}

impl AttentionState {
    /// The text on the wire.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Serialize for AttentionState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A state, and what it was concluded from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attention {
    /// What the program does.
    pub state: AttentionState,
    /// The facts, as short codes; none of them repeats text of the screen.
    pub evidence: Vec<Evidence>,
    /// The program reads, and goes on only when something is typed.
    #[serde(skip)]
    pub awaits_input: bool,
}

/// One fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The program that the state is about.
    Foreground(Masked),
    /// Something that is so.
    Fact(&'static str),
    /// Milliseconds without output.
    QuietMs(u64),
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreground(name) => write!(f, "foreground:{name}"),
            Self::Fact(fact) => f.write_str(fact),
            Self::QuietMs(ms) => write!(f, "quiet_ms:{ms}"),
        }
    }
}

impl Serialize for Evidence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// All that a state is concluded from.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The session's program has ended.
    pub has_ended: bool,
    /// What is known of the shell.
    pub shell: Shell,
    /// The shell marks its prompts.
    pub is_marked: bool,
    /// The processes in the foreground; none where nobody can tell.
    pub processes: Option<Vec<Process>>,
    /// How the system treats what is typed; none where nobody can tell.
    pub editing: Option<Editing>,
    /// What is to be seen.
    pub shown: Shown,
    /// The command that runs was told to read without showing it.
    pub reads_secretly: bool,
    /// For how long nothing was printed or typed.
    pub quiet: Duration,
    /// Masks the names of programs.
    pub redactor: Arc<Redactor>,
}

/// Where the shell is, as far as a shell has the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shell {
    /// It runs something, or another program has the terminal.
    #[default]
    Busy,
    /// It has not shown its first prompt.
    Starting,
    /// It is about to read, or has just begun to run something.
    Settling,
    /// It reads a command.
    Prompt,
    /// It reads the rest of a command.
    Continuation,
    /// There may be one behind a program that leads elsewhere: only the screen tells.
    Elsewhere,
}

/// How the system treats what is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Editing {
    /// It hands over whole lines.
    pub canonical: bool,
    /// It shows what is typed.
    pub echo: bool,
}

/// A process in the foreground.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its program.
    pub name: String,
    /// What it does.
    pub activity: Activity,
    /// What it wants of the terminal.
    pub input: Input,
}

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// One of its threads runs, or waits for a disk.
    Working,
    /// All of them wait.
    Asleep,
    /// It is stopped.
    Stopped,
}

/// Whether a process waits for input from its terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// It is blocked in a read from it.
    Reads,
    /// It waits until the terminal, among other things, has something to read.
    Watches {
        /// Nothing from outside of the process is waited for besides.
        alone: bool,
        /// Only for some time.
        timed: bool,
    },
    /// It waits for something else.
    Nothing,
    /// Nobody may look.
    Unknown,
}

impl Input {
    /// Only input can make it go on.
    fn is_certain(self) -> bool {
        matches!(self, Self::Reads | Self::Watches { alone: true, timed: false })
    }

    fn is_reader(self) -> bool {
        matches!(self, Self::Reads | Self::Watches { .. })
    }
}

/// What the screen shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The alternate screen.
    pub alternate: bool,
    /// The cursor can be seen.
    pub cursor_visible: bool,
    /// The cursor's line, up to the cursor.
    pub before_cursor: String,
    /// The last line with text.
    pub last_line: String,
    /// Lines with text below the cursor.
    pub below_cursor: usize,
    /// A line editor asks for pastes.
    pub bracketed_paste: bool,
}

impl Shown {
    /// The cursor stands behind text: somebody is in the middle of a line.
    fn is_unfinished(&self) -> bool {
        !self.before_cursor.trim().is_empty()
    }

    /// The line before the cursor ends as questions do.
    fn is_question(&self) -> bool {
        let line = self.before_cursor.trim_end();
        let behind = self.before_cursor.len() - line.len();
        behind <= 2 && line.ends_with([':', '?', '>', ']', ')', '›', '❯', '=', '#', '$', '%'])
    }

    /// The line before the cursor ends as prompts of shells do.
    fn is_prompt(&self) -> bool {
        let line = self.before_cursor.trim_end();
        line.len() < self.before_cursor.len() && line.ends_with(['$', '#', '%', '>', '❯', '➜', 'λ'])
    }

    fn is_pager(&self) -> bool {
        let line = self.last_line.to_lowercase();
        PAGER_TEXTS.iter().any(|text| line.contains(text))
    }

    fn asks_for_secret(&self) -> bool {
        is_secret_question(&self.before_cursor)
            || (self.before_cursor.is_empty() && is_secret_question(&self.last_line))
    }
}

impl Attention {
    /// Weighs the facts.
    pub fn judge(facts: &Facts) -> Self {
        let reader = facts.reader();
        let state = facts.state(reader);
        let is_certain = reader.is_some_and(|reader| reader.input.is_certain());
        let awaits_input = match state {
            AttentionState::InputLine | AttentionState::InputSecret => true,
            AttentionState::Pager | AttentionState::FullScreen => is_certain,
            _ => false,
        };
        Self { state, evidence: facts.evidence(reader, state), awaits_input }
    }

    /// Another look may find that the program was busy for a moment only: it draws a clock behind its question.
    pub fn is_passing(&self) -> bool {
        let has = |fact| self.evidence.contains(&Evidence::Fact(fact));
        self.state == AttentionState::Running && has("working") && has("unfinished_line")
    }

    /// It is a shell that reads, and no program that it runs.
    pub fn is_of_shell(&self) -> bool {
        let facts = ["shell_starting", "shell_settling", "shell_prompt", "shell_continuation"];
        facts.iter().any(|fact| self.evidence.contains(&Evidence::Fact(fact)))
    }

    /// Somebody has to do something before it goes on: answer, turn the page, leave the program, or continue it. A shell
    /// at its prompt asks for nothing.
    pub fn asks(&self) -> bool {
        self.awaits_input || self.state == AttentionState::Stopped
    }
}

impl Facts {
    /// Who reads, or might: the surest of them.
    fn reader(&self) -> Option<&Process> {
        let processes = self.processes.as_deref().unwrap_or_default();
        let readers = processes.iter().filter(|process| process.input.is_reader());
        readers.max_by_key(|process| (process.input.is_certain(), process.activity != Activity::Working))
    }

    fn is_unseen(&self) -> bool {
        let is_unknown = |process: &Process| process.input == Input::Unknown && process.activity == Activity::Asleep;
        self.processes.as_ref().is_none_or(|processes| processes.iter().any(is_unknown))
    }

    fn has(&self, activity: Activity) -> bool {
        self.processes.iter().flatten().any(|process| process.activity == activity)
    }

    fn is_named(&self, names: &[&str]) -> bool {
        self.processes.iter().flatten().any(|process| names.contains(&process.name.as_str()))
    }

    fn state(&self, reader: Option<&Process>) -> AttentionState {
        if self.has_ended {
            return AttentionState::Dead;
        }
        if self.has(Activity::Stopped) && reader.is_none() && !self.has(Activity::Working) {
            return AttentionState::Stopped;
        }
        let hides_line = self.editing == Some(Editing { canonical: true, echo: false });
        match self.shell {
            // It has not come to read yet, or runs something of its own.
            Shell::Prompt if reader.is_none() && self.processes.is_some() && !self.is_unseen() => {
                return AttentionState::Running;
            }
            // Only its marks tell a prompt from a question that is not shown.
            Shell::Prompt if hides_line && !self.is_marked => return AttentionState::InputSecret,
            Shell::Prompt => return AttentionState::Prompt,
            Shell::Continuation => return AttentionState::InputLine,
            // What it reads now may be its first prompt, or what a terminal answers.
            Shell::Starting => return AttentionState::Starting,
            Shell::Settling => return AttentionState::Running,
            Shell::Busy | Shell::Elsewhere => {}
        }
        let asks_over_screen =
            |reader: &Process| (hides_line && reader.input == Input::Reads) || reader.name.starts_with(PINENTRY);
        if self.shown.alternate && !reader.is_some_and(asks_over_screen) {
            let is_pager = self.is_named(&PAGERS) || (self.shell == Shell::Elsewhere && self.shown.is_pager());
            return if is_pager { AttentionState::Pager } else { AttentionState::FullScreen };
        }
        let asked = match reader {
            // One of its threads reads, perhaps, while the others work.
            Some(reader) if reader.activity == Activity::Working && !self.may_ask_at_work(reader) => None,
            Some(reader) if self.shell == Shell::Elsewhere && !reader.input.is_certain() => self.asked_unseen(),
            Some(reader) => self.asked_by(reader),
            None if self.is_unseen() || self.shell == Shell::Elsewhere => self.asked_unseen(),
            None => None,
        };
        asked.unwrap_or_else(|| match self.quiet >= QUIET && !self.has(Activity::Working) {
            true => AttentionState::Quiet,
            false => AttentionState::Running,
        })
    }

    fn may_ask_at_work(&self, reader: &Process) -> bool {
        reader.input == Input::Reads && self.shown.is_unfinished()
    }

    /// What a process wants that waits for the terminal.
    fn asked_by(&self, reader: &Process) -> Option<AttentionState> {
        let name = reader.name.as_str();
        if name.starts_with(PINENTRY) {
            return Some(AttentionState::InputSecret);
        }
        let Editing { canonical, echo } = self.editing.unwrap_or(Editing { canonical: true, echo: true });
        let is_settled = self.quiet >= SETTLED;
        let is_asking = match reader.input {
            input if input.is_certain() => true,
            Input::Watches { alone: true, .. } => self.shown.is_unfinished() || (is_settled && SHELLS.contains(&name)),
            _ => self.shown.is_unfinished() && is_settled,
        };
        match (canonical, echo) {
            (true, true) => is_asking.then_some(AttentionState::InputLine),
            (true, false) => (is_asking || self.shown.asks_for_secret()).then_some(AttentionState::InputSecret),
            (false, _) if PAGERS.contains(&name) || self.shown.is_pager() => Some(AttentionState::Pager),
            (false, false) if self.reads_secretly || self.shown.asks_for_secret() => Some(AttentionState::InputSecret),
            (false, _) if FULL_SCREEN.contains(&name) || self.is_painted() => Some(AttentionState::FullScreen),
            // A menu hides the cursor; so does what draws a turning wheel, and that is not silent.
            (false, _) => {
                let is_menu = !self.shown.cursor_visible && self.quiet >= SETTLED_UNSEEN;
                let is_asking = is_asking && (self.shown.cursor_visible || is_settled);
                (is_asking || is_menu).then_some(AttentionState::InputLine)
            }
        }
    }

    fn is_painted(&self) -> bool {
        self.shown.below_cursor >= PAINTED_BELOW && !self.shown.bracketed_paste
    }

    /// What the screen says where nobody can tell who reads.
    fn asked_unseen(&self) -> Option<AttentionState> {
        let is_far = self.shell == Shell::Elsewhere;
        let hides_line = self.editing == Some(Editing { canonical: true, echo: false });
        let hides_keys = self.editing.is_some_and(|editing| !editing.canonical && !editing.echo);
        if hides_line && self.shown.is_unfinished() {
            return Some(AttentionState::InputSecret);
        }
        if (hides_keys || self.editing.is_none()) && self.shown.asks_for_secret() {
            return Some(AttentionState::InputSecret);
        }
        if self.quiet < SETTLED {
            return None;
        }
        if is_far && self.shown.is_prompt() {
            return Some(AttentionState::Prompt);
        }
        if self.shown.is_pager() && hides_keys {
            return Some(AttentionState::Pager);
        }
        (self.quiet >= SETTLED_UNSEEN && self.shown.is_question()).then_some(AttentionState::InputLine)
    }

    fn evidence(&self, reader: Option<&Process>, state: AttentionState) -> Vec<Evidence> {
        use Evidence::Fact;
        if state == AttentionState::Dead {
            return vec![Fact("exited")];
        }
        let mut evidence = Vec::new();
        let named = reader.or_else(|| self.processes.as_deref().and_then(<[Process]>::first));
        evidence.extend(named.map(|process| Evidence::Foreground(self.redactor.mask_str(&process.name))));
        evidence.extend(match self.shell {
            Shell::Busy => None,
            Shell::Starting => Some(Fact("shell_starting")),
            Shell::Settling => Some(Fact("shell_settling")),
            Shell::Prompt => Some(Fact("shell_prompt")),
            Shell::Continuation => Some(Fact("shell_continuation")),
            Shell::Elsewhere => Some(Fact("elsewhere")),
        });
        evidence.extend(match reader.map(|reader| reader.input) {
            Some(Input::Reads) => Some(Fact("reads_terminal")),
            Some(Input::Watches { alone: true, timed: false }) => Some(Fact("waits_for_terminal")),
            Some(Input::Watches { .. }) => Some(Fact("watches_terminal")),
            _ if self.is_unseen() => Some(Fact("reader_unknown")),
            _ => Some(Fact("reads_nothing")),
        });
        evidence.extend(self.editing.map(|editing| Fact(if editing.canonical { "canonical" } else { "raw" })));
        evidence.extend(self.editing.filter(|editing| !editing.echo).map(|_| Fact("no_echo")));
        let facts = [
            (self.shown.alternate, "alternate_screen"),
            (self.shown.bracketed_paste, "bracketed_paste"),
            (self.shown.is_unfinished(), "unfinished_line"),
            (self.shown.asks_for_secret() || self.reads_secretly, "secret_words"),
            (self.has(Activity::Working), "working"),
            (self.has(Activity::Stopped), "stopped"),
        ];
        evidence.extend(facts.into_iter().filter(|(is_so, _)| *is_so).map(|(_, fact)| Fact(fact)));
        evidence.push(Evidence::QuietMs(u64::try_from(self.quiet.as_millis()).unwrap_or(u64::MAX)));
        evidence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(name: &str, activity: Activity, input: Input) -> Option<Vec<Process>> {
        Some(vec![Process { pid: 1, name: name.to_owned(), activity, input }])
    }

    fn facts(input: Input, (canonical, echo): (bool, bool), line: &str, quiet_ms: u64) -> Facts {
        Facts {
            processes: process("program", Activity::Asleep, input),
            editing: Some(Editing { canonical, echo }),
            shown: Shown { before_cursor: line.to_owned(), cursor_visible: true, ..Shown::default() },
            quiet: Duration::from_millis(quiet_ms),
            ..Facts::default()
        }
    }

    const LINES: (bool, bool) = (true, true);
    const HIDDEN_LINES: (bool, bool) = (true, false);
    const KEYS: (bool, bool) = (false, false);
    const BESIDES: Input = Input::Watches { alone: false, timed: false };
    const TIMED: Input = Input::Watches { alone: true, timed: true };

    #[test]
    fn what_reads_is_told_from_what_only_looks_like_it() {
        use AttentionState::{InputLine, InputSecret, Quiet, Running};
        for (input, modes, line, quiet_ms, expected) in [
            (Input::Reads, LINES, "", 0, InputLine),
            (Input::Reads, LINES, "Password: ", 0, InputLine),
            (Input::Reads, HIDDEN_LINES, "", 0, InputSecret),
            (Input::Reads, KEYS, ">>> ", 0, InputLine),
            (Input::Reads, KEYS, "Password: **", 0, InputSecret),
            (Input::Nothing, LINES, "Password: ", 0, Running),
            (Input::Nothing, HIDDEN_LINES, "Password: ", 9_000, Quiet),
            (BESIDES, LINES, "Name? ", 0, Running),
            (BESIDES, LINES, "Name? ", 500, InputLine),
            (BESIDES, LINES, "", 500, Running),
            (BESIDES, HIDDEN_LINES, "Password: ", 0, InputSecret),
            (TIMED, LINES, "Name? ", 0, InputLine),
            (TIMED, KEYS, "", 9_000, Quiet),
            (Input::Unknown, HIDDEN_LINES, "[sudo] password for me: ", 0, InputSecret),
            (Input::Unknown, LINES, "Do you want to continue? [Y/n] ", 100, Running),
            (Input::Unknown, LINES, "Do you want to continue? [Y/n] ", 1_500, InputLine),
            (Input::Unknown, LINES, "", 1_500, Running),
        ] {
            let found = Attention::judge(&facts(input, modes, line, quiet_ms));
            assert_eq!(found.state, expected, "{input:?} {modes:?} {line:?}: {found:?}");
            assert_eq!(found.asks(), matches!(expected, InputLine | InputSecret));
        }
    }

    #[test]
    fn the_shell_the_screen_and_the_end_count() {
        use AttentionState::{Dead, FullScreen, InputLine, Pager, Prompt, Running, Starting, Stopped};
        let shell = |shell| Facts { shell, ..facts(Input::Reads, KEYS, "$ ", 0) };
        let screen = |name: &str, input| {
            let shown = Shown { alternate: true, ..Shown::default() };
            Facts { processes: process(name, Activity::Asleep, input), shown, ..Facts::default() }
        };
        for (facts, expected) in [
            (Facts { has_ended: true, ..shell(Shell::Prompt) }, Dead),
            (shell(Shell::Prompt), Prompt),
            (Facts { shell: Shell::Prompt, ..facts(Input::Nothing, KEYS, "$ ", 0) }, Running),
            (shell(Shell::Starting), Starting),
            (shell(Shell::Continuation), InputLine),
            (screen("less", Input::Reads), Pager),
            (screen("vim", Input::Watches { alone: true, timed: false }), FullScreen),
            (Facts { processes: process("sleep", Activity::Stopped, Input::Nothing), ..Facts::default() }, Stopped),
        ] {
            assert_eq!(Attention::judge(&facts).state, expected, "{facts:?}");
        }
    }

    #[test]
    fn elsewhere_only_the_screen_tells() {
        use AttentionState::{InputLine, InputSecret, Prompt, Running};
        for (line, quiet_ms, expected) in [
            ("me@there:~$ ", 500, Prompt),
            ("[sudo] password for me: ", 0, InputSecret),
            ("Continue? ", 1_500, InputLine),
            ("Compiling", 1_500, Running),
        ] {
            let facts = Facts { shell: Shell::Elsewhere, ..facts(BESIDES, KEYS, line, quiet_ms) };
            assert_eq!(Attention::judge(&facts).state, expected, "{line}");
        }
    }

    #[test]
    fn a_state_is_a_word_and_its_evidence_codes() {
        let attention = Attention::judge(&facts(Input::Reads, HIDDEN_LINES, "Password: ", 7));
        let expected = serde_json::json!({
            "state": "input_secret",
            "evidence": ["foreground:program", "reads_terminal", "canonical", "no_echo", "unfinished_line",
                "secret_words", "quiet_ms:7"],
        });
        assert_eq!(serde_json::to_value(&attention).expect("JSON"), expected);
    }
}
