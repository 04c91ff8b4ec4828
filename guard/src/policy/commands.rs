//! Argument vectors: which command does harm with which arguments.
//!
//! Every name here is a base name without extension. A vector comes from a wrapper's inside or a line's word; what it
//! was wrapped in plays no part any more.

use super::Verdict;
use super::judge::{Found, Judge};
use super::table::*;
use super::targets::{Path, clean};
use super::words::UNKNOWN;
use super::wrappers::after_options;

/// The names that are looked for when a command's name is a pattern such as `/bin/r?`.
pub(super) const NAMED: [&str; 22] = [
    "rm", "dd", "mkfs", "shutdown", "reboot", "halt", "poweroff", "init", "cat", "chmod", "chown", "shred", "wipefs",
    "fdisk", "sh", "bash", "find", "mv", "cp", "tee", "unlink", "base64",
];

/// Commands that show or copy what they are given.
const READERS: [&str; 78] = [
    "cat", "more", "less", "head", "tail", "tac", "nl", "od", "xxd", "hexdump", "hd", "strings", "base64", "base32",
    "basenc", "uuencode", "rev", "sort", "uniq", "cut", "paste", "awk", "gawk", "mawk", "sed", "grep", "egrep",
    "fgrep", "rg", "ag", "bat", "batcat", "cp", "scp", "rsync", "sftp", "tar", "zip", "7z", "gzip", "bzip2", "xz",
    "zstd", "cpio", "ar", "dd", "install", "curl", "wget", "nc", "ncat", "netcat", "socat", "openssl", "gpg", "pr",
    "fold", "fmt", "expand", "column", "diff", "cmp", "view", "vim", "vi", "nano", "emacs", "ed", "jq", "yq", "tee",
    "iconv", "pbcopy", "xclip", "xsel", "mail", "sqlite3", "split",
];
const MORE_READERS: [&str; 30] = [
    "ln",
    "type",
    "get-content",
    "gc",
    "copy",
    "copy-item",
    "cpi",
    "xcopy",
    "robocopy",
    "certutil",
    "compress-archive",
    "out-file",
    "select-string",
    "sls",
    "findstr",
    "most",
    "pg",
    "look",
    "shuf",
    "python",
    "ccat",
    "glow",
    "rclone",
    "s3cmd",
    "gsutil",
    "mapfile",
    "readarray",
    "source",
    "john",
    "hashcat",
];

impl Judge<'_> {
    /// Refuses a command by its name and arguments.
    pub(super) fn vector(&self, name: &str, arguments: &[String]) -> Verdict<()> {
        let has = |words: &[&str]| arguments.iter().any(|argument| words.contains(&argument.as_str()));
        let operands: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-') || a.len() == 1).collect();
        let refuse = |rule: &'static Rule| Err(Found::new(rule, name, arguments));
        let any_disk = || operands.iter().any(|operand| self.path(operand).is_disk());
        match name {
            "rm" | "grm" | "unlink" | "rimraf" | "srm" | "trash" | "trash-put" | "del-cli" | "rmtree" => {
                self.removal(name, arguments, &operands)?
            }
            "mv" | "gmv" => {
                let sources = operands.split_last().map_or(&[][..], |(_, sources)| sources);
                let is_gone = operands.last().is_some_and(|to| to.starts_with("/dev/null"));
                for source in sources {
                    let path = self.path(source);
                    let rule = path.removal().filter(|rule| {
                        **rule != REMOVE_PARENT && (is_gone || **rule != REMOVE_VITAL || self.is_etc(&path))
                    });
                    rule.map_or(Ok(()), refuse)?;
                }
                operands.last().and_then(|to| self.path(to).write()).map_or(Ok(()), refuse)?;
            }
            "ln" if has(&["-f", "-sf", "-fs", "-snf", "-sfn", "--force"]) => {
                operands.get(1..).into_iter().flatten().find_map(|to| self.path(to).write()).map_or(Ok(()), refuse)?;
            }
            "mkfs" | "mke2fs" | "mkswap" | "mkntfs" | "mkdosfs" | "newfs" | "mformat" => {
                // An image file may be formatted, and a dry run makes nothing.
                let is_disk = any_disk()
                    || operands.iter().any(|operand| operand.contains(UNKNOWN))
                    || name == "mkfs" && has(&["/dev"]);
                if is_disk && !(name == "newfs" && has(&["-N"])) {
                    return refuse(&DISK_FORMAT);
                }
            }
            _ if name.starts_with("mkfs.") || name.starts_with("newfs_") => {
                if any_disk() {
                    return refuse(&DISK_FORMAT);
                }
            }
            "dd" | "dcfldd" | "dc3dd" | "gdd" => {
                let outputs = arguments.iter().filter_map(|a| a.strip_prefix("of=").or_else(|| a.strip_prefix("hof=")));
                outputs.filter_map(|to| self.path(to).write()).next().map_or(Ok(()), refuse)?;
                let inputs = arguments.iter().filter_map(|a| a.strip_prefix("if="));
                inputs.filter_map(|from| self.path(from).secret()).next().map_or(Ok(()), refuse)?;
            }
            "fdisk" | "cfdisk" | "gdisk" | "sgdisk" | "sfdisk" | "parted" | "partx" => {
                self.partitions(name, arguments, any_disk())?
            }
            "wipefs"
                if any_disk() && (has(&["--all", "--offset"]) || short(arguments, 'a') || short(arguments, 'o')) =>
            {
                return refuse(&DISK_ERASE);
            }
            "shred" | "scrub" | "blkdiscard" | "badblocks" | "wipe" if any_disk() => {
                if name != "badblocks" || short(arguments, 'w') {
                    return refuse(&DISK_ERASE);
                }
            }
            "shred" if operands.iter().any(|file| self.path(file).is_system_tree()) => return refuse(&REMOVE_SYSTEM),
            "shred" | "truncate" => operands.iter().find_map(|file| self.path(file).write()).map_or(Ok(()), refuse)?,
            "hdparm"
                if arguments.iter().any(|a| {
                    a.starts_with("--security-erase") || a.starts_with("--trim") || a.starts_with("--make-bad")
                }) =>
            {
                return refuse(&DISK_ERASE);
            }
            "nvme" if has(&["format", "sanitize", "write-zeroes", "delete-ns"]) => return refuse(&DISK_ERASE),
            "cryptsetup" if has(&["luksFormat", "erase", "luksErase", "reencrypt", "luksKillSlot"]) => {
                return refuse(&DISK_ERASE);
            }
            "mdadm" if has(&["--zero-superblock", "--create", "--stop"]) && any_disk() => {
                return refuse(&DISK_PARTITION);
            }
            "pvcreate" | "vgremove" | "lvremove" | "pvremove" | "vgreduce" | "lvreduce" if !operands.is_empty() => {
                return refuse(&DISK_PARTITION);
            }
            "zpool" if has(&["destroy", "labelclear"]) || has(&["create"]) && any_disk() => {
                return refuse(&DISK_PARTITION);
            }
            "zfs" if has(&["destroy"]) => return refuse(&BACKUPS),
            "btrfs" if has(&["delete"]) && has(&["subvolume", "device"]) => return refuse(&BACKUPS),
            "diskutil" => {
                let verb = operands.first().map_or(String::new(), |verb| verb.to_lowercase());
                let starts =
                    ["erase", "partition", "zero", "secureerase", "random", "reformat", "merge", "split", "resize"];
                let apfs =
                    verb == "apfs" && operands.get(1).is_some_and(|verb| verb.to_lowercase().starts_with("delete"));
                if apfs || starts.iter().any(|start| verb.starts_with(start)) {
                    return refuse(&DISK_ERASE);
                }
            }
            "tmutil" if arguments.first().is_some_and(|verb| verb.starts_with("delete")) => return refuse(&BACKUPS),
            "shutdown" | "halt" | "poweroff" | "reboot" | "init" | "telinit" | "systemctl" | "loginctl"
            | "pm-suspend" | "kexec" | "rundll32" | "initctl" | "openrc-shutdown" => {
                self.power(name, arguments, &operands)?
            }
            "dbus-send" | "busctl" | "gdbus" | "qdbus" => {
                let stops = ["PowerOff", "Reboot", "Halt", "poweroff", "logoutDialog", "requestShutdown"];
                if arguments.iter().any(|a| stops.iter().any(|stop| a.rsplit(['.', '/']).next() == Some(stop))) {
                    return refuse(&POWER);
                }
            }
            "kill" => {
                // The first process takes some signals as a request, in containers above all.
                let asks = has(&["-HUP", "-USR1", "-USR2", "-WINCH", "-10", "-12"]);
                let targets = match after_kill_signal(arguments) {
                    [first, ..] if first == "-1" || first == "1" && !asks => true,
                    [] => false,
                    more => more.iter().skip(1).any(|pid| pid == "-1"),
                };
                if targets && !has(&["-0", "-l", "-L"]) {
                    return refuse(&KILL_ALL);
                }
            }
            "killall5" => return refuse(&KILL_ALL),
            "pkill" | "killall"
                if operands.iter().any(|o| matches!(o.as_str(), "." | ".*" | "init" | "systemd" | "launchd")) =>
            {
                return refuse(&KILL_ALL);
            }
            "pkill" | "killall"
                if (short(arguments, 'u') || short(arguments, 'U'))
                    && matches!(operands.as_slice(), [only] if matches!(only.as_str(), "root" | "0")) =>
            {
                return refuse(&KILL_ALL);
            }
            "chmod" | "chown" | "chgrp" | "chattr" | "setfacl" | "chflags" => {
                let recursive = has(&["--recursive"]) || short(arguments, 'R');
                // A mode that takes rights away looks like an option.
                let is_mode =
                    |a: &&String| a.len() > 1 && a.starts_with('-') && a[1..].chars().all(|c| "rwxXst".contains(c));
                let taken = arguments.iter().find(is_mode).filter(|_| name == "chmod");
                let mode = taken.or(operands.first().copied()).map_or("", String::as_str);
                let first = usize::from(taken.is_none() && operands.first().is_some_and(|mode| !mode.contains('/')));
                for operand in operands.iter().skip(first) {
                    let path = self.path(operand);
                    let ends_tree =
                        path.is_system_tree() && (recursive || operand.ends_with('*') || operand.as_str() == "/");
                    // Taking back one's own home, or the tree of a package manager, is daily work.
                    let names: Vec<&str> = path.names.iter().map(String::as_str).collect();
                    let own_home =
                        name != "chmod" && matches!(names.as_slice(), ["home" | "Users", _] | ["usr", "local"]);
                    if ends_tree && !own_home {
                        return refuse(&TREE_RIGHTS);
                    }
                    let closes = matches!(
                        mode,
                        "000"
                            | "0"
                            | "0000"
                            | "777"
                            | "0777"
                            | "666"
                            | "a-rwx"
                            | "a+rwx"
                            | "-x"
                            | "a-x"
                            | "a+w"
                            | "o+w"
                            | "-rwx"
                            | "ugo+rwx"
                    );
                    if name == "chmod" && closes && path.removal() == Some(&REMOVE_VITAL) && !path.is_disk() {
                        return refuse(&TREE_RIGHTS);
                    }
                    if name == "chmod" && closes && mode.contains('0') && path.is_system_tree() {
                        return refuse(&TREE_RIGHTS);
                    }
                }
            }
            "userdel" | "deluser" if operands.iter().any(|o| o.as_str() == "root") => return refuse(&ACCOUNT_FILES),
            "passwd" if has(&["root"]) && has(&["-d", "-l", "--delete", "--lock"]) => return refuse(&ACCOUNT_FILES),
            "usermod" if has(&["root"]) && has(&["-L", "--lock"]) => return refuse(&ACCOUNT_FILES),
            "rsync" if arguments.iter().any(|a| a.starts_with("--delete")) => {
                operands
                    .last()
                    .and_then(|to| self.path(to).removal())
                    .filter(|rule| **rule != REMOVE_PARENT)
                    .map_or(Ok(()), refuse)?;
            }
            "efibootmgr" if has(&["-B", "-O", "--delete-bootnum", "-N"]) => return refuse(&BOOT_SETTINGS),
            "security" if arguments.iter().any(|a| matches!(a.as_str(), "dump-keychain" | "export")) => {
                return refuse(&PASSWORDS);
            }
            "security"
                if arguments.first().is_some_and(|a| a.starts_with("find-"))
                    && (short(arguments, 'w') || short(arguments, 'g')) =>
            {
                return refuse(&PASSWORDS);
            }
            "getent" if has(&["shadow", "gshadow"]) => return refuse(&PASSWORDS),
            "unshadow" | "pwdump" | "fgdump" | "secretsdump" | "secretsdump.py" | "lazagne" | "lazagne.py"
            | "mimikatz" | "mimipenguin" | "mimipenguin.sh" | "hashdump" | "sekurlsa" | "pypykatz" | "nanodump"
            | "invoke-mimikatz" | "gsecdump" | "wce" => {
                return refuse(&PASSWORDS);
            }
            "gpg" | "gpg2" if arguments.iter().any(|a| a.starts_with("--export-secret")) => {
                return refuse(&PRIVATE_KEY);
            }
            "aws"
                if has(&["export-credentials"])
                    || has(&["configure"]) && has(&["aws_secret_access_key", "aws_session_token"]) && has(&["get"]) =>
            {
                return refuse(&CLOUD_KEY);
            }
            "gcloud"
                if arguments.iter().any(|a| matches!(a.as_str(), "print-access-token" | "print-identity-token")) =>
            {
                return refuse(&CLOUD_KEY);
            }
            _ => {}
        }
        if name.starts_with("sekurlsa::")
            || name.starts_with("lsadump::")
            || arguments.iter().any(|a| is_dumping(a)) && is_dumper(name)
        {
            return refuse(&PASSWORDS);
        }
        self.written_operands(name, arguments, &operands)?;
        self.read_operands(name, arguments)
    }

    fn path(&self, text: &str) -> Path {
        clean(text, &self.cwd)
    }

    fn is_etc(&self, path: &Path) -> bool {
        path.names
            .first()
            .is_some_and(|name| matches!(name.as_str(), "etc" | "bin" | "sbin" | "usr" | "lib" | "lib64" | "boot"))
    }

    fn removal(&self, name: &str, arguments: &[String], operands: &[&String]) -> Verdict<()> {
        let rule = operands.iter().find_map(|operand| self.path(operand).removal());
        let rule = rule.or_else(|| arguments.iter().any(|a| a.starts_with("--no-preserve")).then_some(&REMOVE_ROOT));
        rule.map_or(Ok(()), |rule| Err(Found::new(rule, name, arguments)))
    }

    fn power(&self, name: &str, arguments: &[String], operands: &[&String]) -> Verdict<()> {
        let first = operands.first().map_or("", |word| word.as_str());
        let has = |words: &[&str]| arguments.iter().any(|argument| words.contains(&argument.as_str()));
        let is_time = |word: &str| {
            word == "now"
                || word == "+0"
                || !word.is_empty() && word.trim_start_matches('+').chars().all(|c| c.is_ascii_digit() || c == ':')
        };
        let helps = has(&["--help", "--version", "-?"]);
        let stops = match name {
            // A time that is none, and a second word that is none either, is prose.
            "shutdown" => {
                !has(&["-c", "-k", "/a", "/?", "-a"])
                    && (operands.is_empty() && !helps
                        || is_time(first)
                        || arguments.iter().any(|a| a.len() > 1 && a.starts_with(['-', '/']) && !helps))
            }
            "halt" | "poweroff" | "reboot" | "openrc-shutdown" => {
                let is_word = |word: &&String| {
                    word.chars().all(|c| c.is_alphabetic() || ",.?!'".contains(c))
                        && !matches!(word.as_str(), "now" | "bootloader" | "recovery" | "fastboot")
                };
                let is_prose = !operands.is_empty()
                    && operands.iter().all(is_word)
                    && (operands.len() > 1
                        || matches!(first, "it" | "them" | "that" | "this" | "again" | "please" | "please."));
                !helps && !is_prose && !has(&["-w", "--wtmp-only"])
            }
            "init" | "telinit" => operands.len() == 1 && matches!(first, "0" | "1" | "6" | "s" | "S"),
            "systemctl" | "loginctl" => {
                let verbs = [
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
                    "exit",
                    "default",
                ];
                let targets = [
                    "poweroff",
                    "reboot",
                    "halt",
                    "rescue",
                    "emergency",
                    "kexec",
                    "shutdown",
                    "runlevel0",
                    "runlevel6",
                ];
                let is_target = |word: &&String| {
                    targets.iter().any(|target| word.strip_suffix(".target").unwrap_or(word) == *target)
                };
                verbs[..verbs.len() - 2].contains(&first)
                    || matches!(first, "isolate" | "start" | "set-default") && operands.iter().skip(1).any(is_target)
            }
            "kexec" => has(&["-e", "--exec"]),
            "initctl" => first == "shutdown" || first == "stop" && operands.len() == 1,
            "rundll32" => arguments.iter().any(|a| {
                let a = a.to_lowercase();
                a.contains("exitwindowsex") || a.contains("shellexec_rundll") && a.contains("shutdown")
            }),
            _ => false,
        };
        if stops { Err(Found::new(&POWER, name, arguments)) } else { Ok(()) }
    }

    /// Commands that write what they are told to write.
    fn written_operands(&self, name: &str, arguments: &[String], operands: &[&String]) -> Verdict<()> {
        let written: Vec<&str> = match name {
            "tee" | "sponge" => operands.iter().map(|o| o.as_str()).collect(),
            "cp" | "install" | "ddrescue" | "rsync" | "scp" | "gcp" => {
                operands.iter().skip(1).last().map(|o| o.as_str()).into_iter().collect()
            }
            "sed" | "perl" | "gsed"
                if short(arguments, 'i')
                    || arguments
                        .iter()
                        .any(|a| a.starts_with("-i") || a.starts_with("--in-place") || a.starts_with("-pi")) =>
            {
                operands.iter().skip(1).map(|o| o.as_str()).collect()
            }
            "curl" | "wget" => arguments
                .windows(2)
                .filter(|pair| matches!(pair[0].as_str(), "-o" | "-O" | "--output"))
                .map(|pair| pair[1].as_str())
                .collect(),
            "sort" => arguments.windows(2).filter(|pair| pair[0] == "-o").map(|pair| pair[1].as_str()).collect(),
            _ => return Ok(()),
        };
        let rule = written.iter().find_map(|to| self.path(to).write());
        rule.map_or(Ok(()), |rule| Err(Found::new(rule, name, arguments)))
    }

    /// Commands that show or copy what they are told to read.
    fn read_operands(&self, name: &str, arguments: &[String]) -> Verdict<()> {
        // Languages that print what they go through.
        let goes_through = matches!(name, "perl" | "ruby")
            && arguments.iter().any(|a| matches!(a.as_str(), "-ne" | "-pe" | "-n" | "-p"));
        if !goes_through && !READERS.contains(&name) && !MORE_READERS.contains(&name) {
            return Ok(());
        }
        // The key that a connection uses is not shown by it.
        let uses_key = match name {
            "scp" | "sftp" => after_options(arguments, "iFoPJlScDX", &[]),
            "rsync" => after_options(arguments, "eT", &["rsh", "exclude", "include", "files-from"]),
            "sed" | "awk" | "gawk" | "mawk" | "grep" | "egrep" | "fgrep" | "rg" | "ag" | "jq" | "yq" | "findstr"
            | "select-string" | "sls"
                if !arguments.iter().any(|a| matches!(a.as_str(), "-e" | "-f")) =>
            {
                // The first operand is the pattern.
                after_options(arguments, "ABCmF", &["context"]).get(1..).unwrap_or_default()
            }
            // A file that is only counted, or only named, is not shown.
            _ => arguments,
        };
        let counts = matches!(name, "grep" | "egrep" | "fgrep" | "rg")
            && arguments.iter().any(|a| matches!(a.as_str(), "-q" | "-c" | "-l" | "-L"));
        let checks = name == "openssl" && arguments.iter().any(|a| a == "-pubout" || a == "-noout");
        let connects = matches!(name, "curl" | "wget")
            && arguments
                .iter()
                .any(|a| a == "--key" || a == "--cert" || a == "--cacert" || a.starts_with("--private-key"));
        let lists = matches!(name, "tar" | "zip" | "7z")
            && arguments.first().is_some_and(|a| a.trim_start_matches('-').starts_with('t'));
        if counts || checks || connects || lists {
            return Ok(());
        }
        let places = uses_key.iter().flat_map(|argument| {
            let text = argument.as_str();
            // `file=@path`, `@path`, `--post-file=path`, `-T path`, `FILE:path`.
            let after = text.rsplit(['=', '@', ',', '<']).next().unwrap_or(text);
            [text, after]
        });
        // A copy into a folder of keys shows nothing: the last operand of a copy is where it goes.
        let is_copy =
            matches!(name, "ln" | "cp" | "scp" | "rsync" | "install" | "copy" | "copy-item" | "xcopy" | "robocopy");
        let target = is_copy.then(|| uses_key.iter().rfind(|a| !a.starts_with('-'))).flatten();
        for place in places {
            if target.is_some_and(|target| target == place) && uses_key.len() > 1 {
                continue;
            }
            if let Some(rule) = clean(place, &self.cwd).secret() {
                return Err(Found::new(rule, name, arguments));
            }
        }
        Ok(())
    }
}

/// A short option, alone or among others.
fn short(arguments: &[String], letter: char) -> bool {
    arguments.iter().any(|a| a.starts_with('-') && !a.starts_with("--") && a.contains(letter))
}

/// The arguments of `kill` from its targets on; the first argument is the signal unless only one is there.
fn after_kill_signal(arguments: &[String]) -> &[String] {
    match arguments {
        [only] => std::slice::from_ref(only),
        [option, _, rest @ ..] if matches!(option.as_str(), "-s" | "-n" | "--signal") => rest,
        [first, second, rest @ ..] if first.starts_with('-') && second == "--" => rest,
        [first, rest @ ..] if first.starts_with('-') => rest,
        all => all,
    }
}

fn is_dumper(name: &str) -> bool {
    matches!(
        name,
        "procdump"
            | "procdump64"
            | "rundll32"
            | "taskmgr"
            | "sqldumper"
            | "ntdsutil"
            | "createdump"
            | "vaultcmd"
            | "esentutl"
    )
}

fn is_dumping(argument: &str) -> bool {
    let folded = argument.to_lowercase();
    folded.contains("lsass")
        || folded.contains("minidump")
        || folded.contains("ntds")
        || folded.contains("/listcreds")
        || folded.ends_with("sam")
}
