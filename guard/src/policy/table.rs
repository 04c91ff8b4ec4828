//! The rules as a table: what is refused, under which name, why, and what to do instead.
//!
//! Which commands fall under a rule is decided where argument vectors are judged; what is said about it stands here
//! and nowhere else. Ids are a contract: callers compare them. Rows are added, never renamed.

/// One row.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name for callers.
    pub id: &'static str,
    /// The kind of damage, as callers know it from the older filter's documents.
    pub category: &'static str,
    /// What the command would do.
    pub why: &'static str,
    /// What to do instead.
    pub instead: &'static str,
}

const fn rule(id: &'static str, category: &'static str, why: &'static str, instead: &'static str) -> Rule {
    Rule { id, category, why, instead }
}

const FILES: &str = "destructive_file_ops";
const DISK: &str = "disk_ops";
const SYSTEM: &str = "system_damage";
const CREDENTIALS: &str = "credential_access";
const BOOT: &str = "registry_boot";
/// Off unless a setting turns it on.
pub(super) const DOWNLOAD: &str = "download_execute";
/// Off unless a setting turns it on.
pub(super) const REVERSE: &str = "reverse_shell";
const LIMIT: &str = "cannot_be_judged";

const NAME_THE_FOLDER: &str = "name the one folder below it that is to go, for instance ./target";
const USE_A_FILE: &str = "write to an image file, or let a person do it who looks at the machine";
const ASK_A_PERSON: &str = "ask the person whose machine it is";
const USE_THE_KEY: &str =
    "let the tool use the key or profile by its name (ssh -i, aws --profile) instead of showing it";

pub(super) static REMOVE_ROOT: Rule =
    rule("remove-root", FILES, "removes everything from the root down", NAME_THE_FOLDER);
pub(super) static REMOVE_HOME: Rule =
    rule("remove-home", FILES, "removes a home directory or empties it", NAME_THE_FOLDER);
pub(super) static REMOVE_SYSTEM: Rule =
    rule("remove-system-dir", FILES, "removes a directory that the system lives in, or empties it", NAME_THE_FOLDER);
pub(super) static REMOVE_PARENT: Rule =
    rule("remove-parent", FILES, "removes a directory above the one it runs in", NAME_THE_FOLDER);
pub(super) static REMOVE_VITAL: Rule = rule(
    "remove-vital-file",
    FILES,
    "removes or moves a file that the system cannot do without",
    "copy it and edit the copy",
);
pub(super) static REMOVE_DRIVE: Rule = rule(
    "remove-windows-tree",
    FILES,
    "deletes a drive, a user's folder or a system folder of Windows",
    NAME_THE_FOLDER,
);
pub(super) static DISK_WRITE: Rule = rule("write-device", DISK, "writes over a disk", USE_A_FILE);
pub(super) static DISK_FORMAT: Rule =
    rule("make-filesystem", DISK, "makes a new file system over what is on a disk", USE_A_FILE);
pub(super) static DISK_PARTITION: Rule =
    rule("change-partitions", DISK, "changes partitions or volumes of a disk", "list them (lsblk, fdisk -l, Get-Disk)");
pub(super) static DISK_ERASE: Rule = rule("erase-disk", DISK, "erases a disk", USE_A_FILE);
pub(super) static POWER: Rule =
    rule("power-off", SYSTEM, "stops or restarts the machine", "stop the one service or session that is meant");
pub(super) static FORK_BOMB: Rule = rule("fork-bomb", SYSTEM, "starts itself without end", "set a number of rounds");
pub(super) static KILL_ALL: Rule =
    rule("kill-everything", SYSTEM, "ends every process that it can reach", "name the one process");
pub(super) static TREE_RIGHTS: Rule = rule(
    "change-tree-rights",
    SYSTEM,
    "changes owner or permissions of a whole system tree",
    "name the one file or folder",
);
pub(super) static ACCOUNT_FILES: Rule = rule(
    "write-account-files",
    SYSTEM,
    "writes into the files that hold accounts and rights",
    "use useradd, passwd or visudo",
);
pub(super) static WRITE_VITAL: Rule = rule(
    "write-system-file",
    SYSTEM,
    "overwrites a file that the system cannot do without",
    "write beside it and compare",
);
pub(super) static KERNEL: Rule =
    rule("kernel-trigger", SYSTEM, "makes the kernel stop, crash or restart", ASK_A_PERSON);
pub(super) static PRIVATE_KEY: Rule =
    rule("read-private-key", CREDENTIALS, "shows or copies private keys", USE_THE_KEY);
pub(super) static CLOUD_KEY: Rule =
    rule("read-cloud-credentials", CREDENTIALS, "shows or copies credentials of a cloud or a service", USE_THE_KEY);
pub(super) static PASSWORDS: Rule =
    rule("dump-passwords", CREDENTIALS, "dumps stored passwords or their hashes", ASK_A_PERSON);
pub(super) static LOGIN_KEY: Rule = rule("add-login-key", CREDENTIALS, "adds a key that may log in here", ASK_A_PERSON);
pub(super) static REGISTRY: Rule = rule(
    "delete-registry",
    BOOT,
    "deletes or replaces a part of the registry that the machine needs",
    "export the key first, then ask",
);
pub(super) static BOOT_SETTINGS: Rule = rule("change-boot", BOOT, "changes how the machine starts", ASK_A_PERSON);
pub(super) static BACKUPS: Rule =
    rule("delete-backups", BOOT, "deletes shadow copies, snapshots or backups", "list them first");
pub(super) static DOWNLOAD_RUN: Rule =
    rule("download-and-run", DOWNLOAD, "runs what it downloads, unread", "download to a file, read it, then run it");
pub(super) static REVERSE_SHELL: Rule = rule("reverse-shell", REVERSE, "gives a shell to another machine", "use ssh");
pub(super) static TOO_DEEP: Rule =
    rule("too-deep", LIMIT, "hides a command under more layers than are looked through", "write the command plainly");
pub(super) static TOO_LONG: Rule =
    rule("too-long", LIMIT, "is longer or more tangled than can be judged", "put it into a file and run that");
pub(super) static UNKNOWN_LINE: Rule = rule(
    "unknown-line",
    LIMIT,
    "stands on a line that neither the typed keys nor the screen tell",
    "wait for the prompt, take the line back with Ctrl-C and type the command as text",
);

/// All of them.
pub static RULES: [&Rule; 29] = [
    &REMOVE_ROOT,
    &REMOVE_HOME,
    &REMOVE_SYSTEM,
    &REMOVE_PARENT,
    &REMOVE_VITAL,
    &REMOVE_DRIVE,
    &DISK_WRITE,
    &DISK_FORMAT,
    &DISK_PARTITION,
    &DISK_ERASE,
    &POWER,
    &FORK_BOMB,
    &KILL_ALL,
    &TREE_RIGHTS,
    &ACCOUNT_FILES,
    &WRITE_VITAL,
    &KERNEL,
    &PRIVATE_KEY,
    &CLOUD_KEY,
    &PASSWORDS,
    &LOGIN_KEY,
    &REGISTRY,
    &BOOT_SETTINGS,
    &BACKUPS,
    &DOWNLOAD_RUN,
    &REVERSE_SHELL,
    &TOO_DEEP,
    &TOO_LONG,
    &UNKNOWN_LINE,
];
