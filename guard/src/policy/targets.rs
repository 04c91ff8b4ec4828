//! Where a path leads: the root, a home, a directory of the system, a disk, a secret.
//!
//! Paths are brought into one form without asking the file system (links are not followed), then compared with short
//! lists. Owns the lists; which command may touch what is decided elsewhere.

use super::decode::glob_matches;
use super::table::*;
use super::words::{HOME, UNKNOWN};

/// Where relative paths begin.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Cwd {
    /// The line does not tell.
    #[default]
    Somewhere,
    /// An absolute path, in the form of [`clean`].
    At(Vec<String>),
}

/// A path in one form.
#[derive(Debug, PartialEq)]
pub(super) struct Path {
    /// It begins at the root.
    pub(super) is_absolute: bool,
    /// How many directories it climbs before it goes down, when it is relative.
    pub(super) climbs: usize,
    /// The names on the way.
    pub(super) names: Vec<String>,
}

/// Directories below the root without which the system does not run, or that hold everybody's files.
const TOP: [&str; 27] = [
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "media",
    "mnt",
    "opt",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "usr",
    "var",
    "snap",
    "nix",
    "System",
    "Library",
    "Applications",
    "Users",
    "Volumes",
];
/// The same, one level deeper.
const SECOND: [(&str, &[&str]); 6] = [
    ("usr", &["bin", "sbin", "lib", "lib32", "lib64", "libexec", "local", "share", "include"]),
    ("var", &["lib", "db", "spool"]),
    ("etc", &["ssh", "pam.d", "systemd", "init.d", "sudoers.d", "security", "ssl"]),
    ("lib", &["modules", "systemd", "x86_64-linux-gnu", "aarch64-linux-gnu"]),
    ("private", &["etc", "var"]),
    ("export", &["home"]),
];
const ACCOUNTS: [&str; 8] = ["passwd", "shadow", "group", "gshadow", "sudoers", "master.passwd", "passwd-", "shadow-"];
const VITAL_ETC: [&str; 7] = ["fstab", "hosts", "inittab", "crypttab", "nsswitch.conf", "ld.so.conf", "ld.so.preload"];
const VITAL_PROGRAMS: [&str; 17] = [
    "sh",
    "bash",
    "dash",
    "ls",
    "cp",
    "mv",
    "rm",
    "cat",
    "sudo",
    "su",
    "login",
    "mount",
    "init",
    "systemctl",
    "env",
    "chmod",
    "chown",
];
const DISKS: [&str; 18] = [
    "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "md", "dm-", "mapper", "disk", "rdisk", "sr", "nbd", "bcache", "mem",
    "kmem", "port", "mtd",
];
/// Devices that begin like a disk, or like a glob over disks, and are none.
const HARMLESS_DEVICES: [&str; 4] = ["shm", "stdin", "stdout", "stderr"];

/// Brings a path into one form.
pub(super) fn clean(path: &str, cwd: &Cwd) -> Path {
    let path = path.strip_prefix("file://").unwrap_or(path);
    let is_absolute = path.starts_with('/') || path.starts_with(HOME);
    let mut clean = Path { is_absolute, climbs: 0, names: Vec::new() };
    if let (false, Cwd::At(names)) = (is_absolute, cwd) {
        clean = Path { is_absolute: true, climbs: 0, names: names.clone() };
    }
    for name in path.split('/').take(256) {
        match name {
            "" | "." => {}
            ".." => {
                if clean.names.pop().is_none() && !clean.is_absolute {
                    clean.climbs += 1;
                }
            }
            name if name.starts_with(HOME) => {
                clean.is_absolute = true;
                clean.names = vec!["home".to_owned(), HOME.to_string()];
            }
            name => clean.names.push(name.to_owned()),
        }
    }
    // The root as a process sees it.
    if clean.is_absolute && matches!(clean.names.as_slice(), [proc, _, root, ..] if proc == "proc" && root == "root") {
        clean.names.drain(..3);
    }
    clean
}

/// A pattern that leaves nothing out.
pub(super) fn is_everything(name: &str) -> bool {
    name.starts_with("!(") || name.contains('*') && name.chars().all(|c| "*?.[]!^".contains(c))
}

impl Path {
    /// The path without the patterns at its end that match everything.
    fn emptied(&self) -> &[String] {
        let kept = self.names.iter().rposition(|name| !is_everything(name)).map_or(0, |at| at + 1);
        &self.names[..kept]
    }

    fn last(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }

    pub(super) fn starts(&self, names: &[&str]) -> bool {
        self.names.len() >= names.len() && self.names.iter().zip(names).all(|(own, name)| own == name)
    }

    /// The rule under which this may not be removed.
    pub(super) fn removal(&self) -> Option<&'static Rule> {
        let names = self.emptied();
        if !self.is_absolute {
            return match names {
                [] if self.climbs > 0 => Some(&REMOVE_PARENT),
                [first, ..] if self.climbs > 2 && TOP.contains(&first.as_str()) => tree(names),
                _ => None,
            };
        }
        tree(names).or_else(|| self.is_vital().then_some(&REMOVE_VITAL))
    }

    /// The directory is a system tree, a home or the root: not to be changed as a whole.
    pub(super) fn is_system_tree(&self) -> bool {
        self.is_absolute && tree(self.emptied()).is_some()
    }

    /// A file that the system cannot do without.
    fn is_vital(&self) -> bool {
        let [first, .., last] = self.names.as_slice() else { return false };
        let depth = self.names.len();
        let is_program = |name: &String| VITAL_PROGRAMS.contains(&name.as_str());
        let is_library = ["libc.so", "libc-2", "ld-linux", "libc.musl"].iter().any(|start| last.starts_with(start));
        match first.as_str() {
            "etc" if depth == 2 => ACCOUNTS.contains(&last.as_str()) || VITAL_ETC.contains(&last.as_str()),
            "bin" | "sbin" if depth == 2 => is_program(last),
            "usr" if depth == 3 && matches!(self.names[1].as_str(), "bin" | "sbin") => is_program(last),
            "lib" | "lib64" | "usr" => is_library,
            "boot" => true,
            "dev" => {
                depth == 2
                    && (matches!(last.as_str(), "null" | "zero" | "random" | "urandom" | "tty") || self.is_disk())
            }
            "home" | "Users" => depth == 3 && matches!(last.as_str(), ".ssh" | ".gnupg"),
            "root" => depth == 2 && matches!(last.as_str(), ".ssh" | ".gnupg"),
            _ => false,
        }
    }

    /// A disk, a partition or the memory.
    pub(super) fn is_disk(&self) -> bool {
        let [first, device, ..] = self.names.as_slice() else { return false };
        first == "dev"
            && self.is_absolute
            && !HARMLESS_DEVICES.contains(&device.as_str())
            && (DISKS.iter().any(|start| device.starts_with(start))
                || device.starts_with(UNKNOWN)
                || is_bsd_disk(device))
    }

    /// The rule under which this may not be written to.
    pub(super) fn write(&self) -> Option<&'static Rule> {
        if self.is_disk() {
            return Some(&DISK_WRITE);
        }
        let in_ssh = self.names.len() >= 2 && self.names[self.names.len() - 2] == ".ssh";
        if self.last().starts_with("authorized_keys") && (in_ssh || self.names.len() == 1) {
            return Some(&LOGIN_KEY);
        }
        if !self.is_absolute {
            return None;
        }
        match self.names.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["etc", file] if ACCOUNTS.contains(file) => Some(&ACCOUNT_FILES),
            ["etc", "sudoers.d", ..] => Some(&ACCOUNT_FILES),
            ["proc", "sysrq-trigger"] => Some(&KERNEL),
            ["sys", "power", "state" | "disk"] => Some(&POWER),
            ["sys", "block", _, "device", "delete"] => Some(&DISK_ERASE),
            ["sys", "firmware", "efi", ..] => Some(&BOOT_SETTINGS),
            ["etc", "fstab" | "ld.so.preload" | "inittab" | "crypttab"] => Some(&WRITE_VITAL),
            ["etc", _] | ["boot"] | ["dev", ..] => None,
            _ => self.is_vital().then_some(&WRITE_VITAL),
        }
    }
}

/// `ada0p2`, `da1`: a short name, a number and perhaps a part of it.
fn is_bsd_disk(device: &str) -> bool {
    let rest = ["ada", "nda", "nvd", "da", "wd"].iter().find_map(|start| device.strip_prefix(start));
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// The rule for a tree that begins at the root.
fn tree(names: &[String]) -> Option<&'static Rule> {
    let fits = |pattern: &str, name: &str| match pattern.contains(['*', '?', '[']) {
        true => glob_matches(pattern, name),
        false => pattern == name,
    };
    let is_top = |pattern: &str| TOP.iter().find(|top| fits(pattern, top));
    match names {
        [] => Some(&REMOVE_ROOT),
        [only] if only.chars().all(|c| c == UNKNOWN) => Some(&REMOVE_ROOT),
        [only] if only == "root" => Some(&REMOVE_HOME),
        [only] => is_top(only).map(|_| &REMOVE_SYSTEM),
        [first, second] if matches!(first.as_str(), "home" | "Users") => (second != "Shared").then_some(&REMOVE_HOME),
        [first, second] if is_everything(first) => is_top(second).map(|_| &REMOVE_SYSTEM),
        [first, second] => {
            let second_level = SECOND.iter().find(|(top, _)| fits(first, top));
            second_level.and_then(|(_, names)| names.iter().any(|name| fits(second, name)).then_some(&REMOVE_SYSTEM))
        }
        [first, second, _] if first == "export" && second == "home" => Some(&REMOVE_HOME),
        _ => None,
    }
}

impl Path {
    /// The text of an absolute path.
    pub(super) fn absolute(names: &[String]) -> String {
        match names {
            [first, second, rest @ ..] if first == "home" && second.starts_with(HOME) => {
                std::iter::once(second.as_str()).chain(rest.iter().map(String::as_str)).collect::<Vec<_>>().join("/")
            }
            names => format!("/{}", names.join("/")),
        }
    }
}
