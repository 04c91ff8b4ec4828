//! Commands on files and disks whose harm depends on more than one of their arguments.

use super::super::table::{REMOVE_PARENT, REMOVE_VITAL, Rule};
use super::super::targets::Path;
use super::call::Call;

/// `mv`: a vital file may be moved within one's own folders, not away from the system's and not into nothing.
pub(super) fn moved(call: &Call<'_>) -> Option<&'static Rule> {
    let (to, sources) = call.operands.split_last()?;
    let is_gone = to.starts_with("/dev/null");
    sources.iter().find_map(|source| {
        let path = call.path(source);
        let harms = |rule: &&Rule| **rule != REMOVE_PARENT && (is_gone || **rule != REMOVE_VITAL || is_system(&path));
        path.removal().filter(harms)
    })
}

fn is_system(path: &Path) -> bool {
    const FOLDERS: [&str; 7] = ["etc", "bin", "sbin", "usr", "lib", "lib64", "boot"];
    path.names.first().is_some_and(|name| FOLDERS.contains(&name.as_str()))
}

/// `rsync --delete`: what is not in the source is removed from the target.
pub(super) fn mirrored(call: &Call<'_>) -> Option<&'static Rule> {
    call.path(call.last()?).removal().filter(|rule| **rule != REMOVE_PARENT)
}

pub(super) fn is_system_tree(call: &Call<'_>) -> bool {
    call.operands.iter().any(|file| call.path(file).is_system_tree())
}

/// Verbs of `diskutil` that erase, by their beginnings.
const DISKUTIL_VERBS: [&str; 9] =
    ["erase", "partition", "zero", "secureerase", "random", "reformat", "merge", "split", "resize"];

pub(super) fn erases_mac_disk(call: &Call<'_>) -> bool {
    let verb = call.verb().to_lowercase();
    let deletes = call.operands.get(1).is_some_and(|verb| verb.to_lowercase().starts_with("delete"));
    verb == "apfs" && deletes || DISKUTIL_VERBS.iter().any(|start| verb.starts_with(start))
}

/// The arguments of a dumping tool name a store of passwords.
pub(super) fn names_passwords(call: &Call<'_>) -> bool {
    const STORES: [&str; 4] = ["lsass", "minidump", "ntds", "/listcreds"];
    call.words()
        .map(str::to_lowercase)
        .any(|word| STORES.iter().any(|store| word.contains(store)) || word.ends_with("sam"))
}
