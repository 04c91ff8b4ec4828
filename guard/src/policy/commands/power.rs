//! Commands that stop the machine or every process, where one condition does not tell a command from a sentence.

use super::call::Call;

/// `shutdown`: a time that is none, and a second word that is none either, is prose.
pub(super) fn shuts_down(call: &Call<'_>) -> bool {
    let helps = call.has(&["--help", "--version", "-?"]);
    let is_option = |word: &str| word.len() > 1 && word.starts_with(['-', '/']) && !helps;
    !call.has(&["-c", "-k", "/a", "/?", "-a"])
        && (call.operands.is_empty() && !helps || is_time(call.verb()) || call.words().any(is_option))
}

fn is_time(word: &str) -> bool {
    let is_clock = |c: char| c.is_ascii_digit() || c == ':';
    word == "now" || !word.is_empty() && word.trim_start_matches('+').chars().all(is_clock)
}

/// `halt`, `reboot` and the like stop the machine whatever follows, unless what follows reads as a sentence.
pub(super) fn stops_now(call: &Call<'_>) -> bool {
    const ARGUMENTS: [&str; 4] = ["now", "bootloader", "recovery", "fastboot"];
    const SENTENCES: [&str; 7] = ["it", "them", "that", "this", "again", "please", "please."];
    let is_word =
        |word: &&str| word.chars().all(|c| c.is_alphabetic() || ",.?!'".contains(c)) && !ARGUMENTS.contains(word);
    let is_prose = !call.operands.is_empty()
        && call.operands.iter().all(is_word)
        && (call.operands.len() > 1 || SENTENCES.contains(&call.verb()));
    !is_prose && !call.has(&["--help", "--version", "-?", "-w", "--wtmp-only"])
}

/// Verbs of `systemctl` that stop the machine or leave nothing running on it.
const STOPPING_VERBS: [&str; 10] = [
    "poweroff",
    "reboot",
    "halt",
    "kexec",
    "suspend",
    "hibernate",
    "hybrid-sleep",
    "rescue",
    "emergency",
    "soft-reboot",
];
/// Targets with the same effect.
const STOPPING_TARGETS: [&str; 9] =
    ["poweroff", "reboot", "halt", "rescue", "emergency", "kexec", "shutdown", "runlevel0", "runlevel6"];

/// `systemctl reboot`, `systemctl isolate rescue.target`.
pub(super) fn starts_stopping(call: &Call<'_>) -> bool {
    let is_target = |word: &&str| STOPPING_TARGETS.contains(&word.strip_suffix(".target").unwrap_or(word));
    STOPPING_VERBS.contains(&call.verb())
        || matches!(call.verb(), "isolate" | "start" | "set-default") && call.operands.iter().skip(1).any(is_target)
}

/// `rundll32 user.exe,ExitWindowsEx`.
pub(super) fn exits_windows(call: &Call<'_>) -> bool {
    call.words()
        .map(str::to_lowercase)
        .any(|word| word.contains("exitwindowsex") || word.contains("shellexec_rundll") && word.contains("shutdown"))
}

/// `kill -9 -1`, or a signal to the first process that does not merely ask it for something.
pub(super) fn kills_everything(call: &Call<'_>) -> bool {
    // The first process takes some signals as a request, in containers above all.
    let asks = call.has(&["-HUP", "-USR1", "-USR2", "-WINCH", "-10", "-12"]);
    let targets_all = match kill_targets(call.arguments) {
        [first, ..] if first == "-1" || first == "1" && !asks => true,
        targets => targets.iter().skip(1).any(|pid| pid == "-1"),
    };
    targets_all && !call.has(&["-0", "-l", "-L"])
}

/// The targets of `kill`; the first argument is the signal unless only one is there.
fn kill_targets(arguments: &[String]) -> &[String] {
    match arguments {
        [only] => std::slice::from_ref(only),
        [option, _, rest @ ..] if matches!(option.as_str(), "-s" | "-n" | "--signal") => rest,
        [first, second, rest @ ..] if first.starts_with('-') && second == "--" => rest,
        [first, rest @ ..] if first.starts_with('-') => rest,
        all => all,
    }
}
