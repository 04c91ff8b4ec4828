//! Commands that change owners and permissions.

use super::super::table::{REMOVE_VITAL, Rule, TREE_RIGHTS};
use super::super::targets::Path;
use super::call::Call;

/// Modes that take everything away, or give everything to everybody.
const CLOSING_MODES: [&str; 14] =
    ["000", "0", "0000", "777", "0777", "666", "a-rwx", "a+rwx", "-x", "a-x", "a+w", "o+w", "-rwx", "ugo+rwx"];

/// The rule for a change of owner or permissions.
pub(super) fn changed(call: &Call<'_>) -> Option<&'static Rule> {
    let is_recursive = call.has(&["--recursive"]) || call.has_letter("R");
    // A mode that takes rights away looks like an option.
    let is_mode =
        |word: &&str| word.len() > 1 && word.starts_with('-') && word[1..].chars().all(|c| "rwxXst".contains(c));
    let taken = call.words().find(is_mode).filter(|_| call.name == "chmod");
    let mode = taken.unwrap_or(call.verb());
    let first = usize::from(taken.is_none() && !call.operands.is_empty() && !call.verb().contains('/'));
    let harms = |operand: &&str| {
        let path = call.path(operand);
        let is_whole = is_recursive || operand.ends_with('*') || *operand == "/";
        path.is_system_tree() && is_whole && !is_own(call, &path) || call.name == "chmod" && closes(mode, &path)
    };
    call.operands.iter().skip(first).any(harms).then_some(&TREE_RIGHTS)
}

/// Taking back one's own home, or the tree of a package manager, is daily work.
fn is_own(call: &Call<'_>, path: &Path) -> bool {
    let names: Vec<&str> = path.names.iter().map(String::as_str).collect();
    call.name != "chmod" && matches!(names.as_slice(), ["home" | "Users", _] | ["usr", "local"])
}

fn closes(mode: &str, path: &Path) -> bool {
    CLOSING_MODES.contains(&mode)
        && (path.removal() == Some(&REMOVE_VITAL) && !path.is_disk() || mode.contains('0') && path.is_system_tree())
}
