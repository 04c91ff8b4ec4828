//! The table of commands of `cmd` and PowerShell.

use std::sync::LazyLock;

use super::super::Verdict;
use super::super::by_name::ByName;
use super::super::judge::Violation;
use super::super::table::*;
use super::words::{is_drive, is_tree};
use super::{Piped, Reader, registry, run};

/// A command: its name in small letters and what stands behind it.
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: &'a [String],
    /// The arguments as one text.
    pub(super) rest: String,
}

impl Call<'_> {
    /// One of these words is an argument, in whatever letters.
    pub(super) fn has(&self, words: &[&str]) -> bool {
        self.arguments.iter().any(|argument| words.iter().any(|word| argument.eq_ignore_ascii_case(word)))
    }

    pub(super) fn has_tree(&self) -> bool {
        self.arguments.iter().any(|argument| is_tree(argument))
    }

    /// The argument behind an option.
    pub(super) fn value(&self, options: &[&str]) -> Option<&str> {
        let is_option = |word: &String| options.iter().any(|option| word.eq_ignore_ascii_case(option));
        let at = self.arguments.iter().position(is_option)?;
        self.arguments.get(at + 1).map(String::as_str)
    }

    pub(super) fn violation(&self, rule: &'static Rule) -> Box<Violation> {
        Violation::new(rule, self.name, self.arguments)
    }
}

/// What a row of the table does beside refusing.
type Run = fn(&mut Reader<'_, '_>, &Call<'_>, &mut Piped) -> Verdict<()>;

/// Names of commands, separated by blanks, and what about them is refused or run.
pub(super) struct Row {
    names: &'static str,
    pub(super) when: When,
    pub(super) then: Then,
}

/// A condition on the arguments; letters are compared without case.
pub(super) enum When {
    Always,
    /// There are arguments.
    Given,
    Word(&'static [&'static str]),
    /// An argument begins so.
    Start(&'static str),
    /// All of these texts stand somewhere behind the command.
    Text(&'static [&'static str]),
    /// An argument is a drive.
    Drive,
    /// An argument is a drive, a home or a folder of the system.
    Tree,
    /// The second argument is one.
    TargetTree,
    All(&'static [When]),
    Any(&'static [When]),
    Not(&'static When),
}

pub(super) enum Then {
    Refuse(&'static Rule),
    Run(Run),
}

impl When {
    pub(super) fn holds(&self, call: &Call<'_>) -> bool {
        match self {
            Self::Always => true,
            Self::Given => !call.arguments.is_empty(),
            Self::Word(words) => call.has(words),
            Self::Start(start) => call.arguments.iter().any(|a| a.to_lowercase().starts_with(start)),
            Self::Text(texts) => {
                let folded = call.rest.to_lowercase();
                texts.iter().all(|text| folded.contains(text))
            }
            Self::Drive => call.arguments.iter().any(|a| is_drive(a)),
            Self::Tree => call.has_tree(),
            Self::TargetTree => call.arguments.get(1).is_some_and(|to| is_tree(to)),
            Self::All(all) => all.iter().all(|when| when.holds(call)),
            Self::Any(any) => any.iter().any(|when| when.holds(call)),
            Self::Not(when) => !when.holds(call),
        }
    }
}

/// The rows for a command, in the order of the table.
pub(super) fn of(name: &str) -> &'static [&'static Row] {
    static INDEX: LazyLock<ByName<Row>> = LazyLock::new(|| ByName::new(ROWS, |row| row.names));
    INDEX.all(name)
}

const fn row(names: &'static str, when: When, then: Then) -> Row {
    Row { names, when, then }
}

use Then::{Refuse, Run as Do};
use When::{All, Always, Any, Drive, Given, Not, Start, TargetTree, Text, Tree, Word};

const STOPS: &[&str] = &["/s", "/r", "/p", "/h", "/g", "/sg", "/o", "/hybrid", "/fw", "-s", "-r", "-p", "-h", "-g"];

static ROWS: &[Row] = &[
    // What runs something else.
    row("set", Always, Do(run::set)),
    row("call do else runas then gsudo sudo", Always, Do(run::inner)),
    row("start start-process saps", Always, Do(run::start)),
    row("if", Always, Do(run::condition)),
    row("for", Always, Do(run::loop_over)),
    row("cmd", Always, Do(run::cmd)),
    row("powershell pwsh", Always, Do(run::powershell)),
    row("invoke-expression iex", Always, Do(run::expression)),
    row("schtasks forfiles", Always, Do(run::task)),
    row("wmic", Text(&["call create "]), Do(run::created)),
    row("invoke-command icm start-job measure-command foreach-object foreach %", Always, Do(run::block)),
    row("where-object where ? sort-object select-object", Always, Do(run::block)),
    // What flows into the next command.
    row("invoke-webrequest iwr invoke-restmethod irm", Always, Do(run::download)),
    row("get-childitem gci dir ls get-item gi", Always, Do(run::list)),
    row("get-wmiobject gwmi get-ciminstance gcim", Text(&["shadowcopy"]), Do(run::backups)),
    // Files and disks.
    row("del erase", Always, Do(run::delete)),
    row("rd rmdir remove-item remove-itemproperty ri rm deltree sdelete sdelete64", Always, Do(run::remove)),
    row("robocopy", All(&[Word(&["/mir", "/purge"]), TargetTree]), Refuse(&REMOVE_DRIVE)),
    row("format", Drive, Refuse(&DISK_FORMAT)),
    row("format-volume clear-disk initialize-disk reset-physicaldisk", Always, Refuse(&DISK_FORMAT)),
    row(
        "diskpart remove-partition new-partition resize-partition set-disk set-partition",
        Not(&Word(&["/?"])),
        Refuse(&DISK_PARTITION),
    ),
    row("mountvol", Word(&["/d"]), Refuse(&DISK_PARTITION)),
    row("cipher", Start("/w"), Refuse(&DISK_ERASE)),
    row("takeown icacls cacls xcacls", All(&[Word(&["/r", "/t"]), Tree]), Refuse(&TREE_RIGHTS)),
    // The machine.
    row("shutdown", All(&[Word(STOPS), Not(&Word(&["/a", "-a", "/?", "-?", "-c", "-k"]))]), Refuse(&POWER)),
    row("stop-computer restart-computer", Always, Refuse(&POWER)),
    row("psshutdown psshutdown64", Not(&Word(&["-a", "/?", "-?"])), Refuse(&POWER)),
    row("wmic", All(&[Text(&["os "]), Any(&[Text(&["shutdown"]), Text(&["reboot"])])]), Refuse(&POWER)),
    row("get-wmiobject gwmi get-ciminstance gcim", Text(&["win32shutdown("]), Refuse(&POWER)),
    row("reg", Always, Do(registry::reg)),
    row("bcdedit", All(&[Given, Not(&Word(&["/enum", "/?", "/v", "/export", "-enum"]))]), Refuse(&BOOT_SETTINGS)),
    row("bootsect bootrec reagentc", Word(&["/nt60", "/nt52", "/fixmbr", "/mbr", "/disable"]), Refuse(&BOOT_SETTINGS)),
    // Backups.
    row("wmic", Text(&["shadowcopy", "delete"]), Refuse(&BACKUPS)),
    row("vssadmin", Word(&["delete", "resize"]), Refuse(&BACKUPS)),
    row("wbadmin", Word(&["delete", "disable"]), Refuse(&BACKUPS)),
    row("remove-wmiobject remove-ciminstance rwmi rcim", Always, Do(run::remove_backups)),
    row("get-wmiobject gwmi get-ciminstance gcim", Text(&["shadowcopy", ".delete("]), Refuse(&BACKUPS)),
    // Secrets: the table of the other shells has them.
    row("type get-content gc copy copy-item cpi xcopy certutil select-string sls findstr", Always, Do(run::posix)),
    row(
        "procdump procdump64 rundll32 ntdsutil compress-archive esentutl mimikatz lazagne vaultcmd",
        Always,
        Do(run::posix),
    ),
    row("invoke-mimikatz sekurlsa", Always, Do(run::posix)),
    row("cat more cp less scp curl tar 7z base64 notepad", Text(&["\\"]), Do(run::posix)),
];
